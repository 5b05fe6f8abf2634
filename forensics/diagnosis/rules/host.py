"""Host memory: whose limit a kernel kill enforced, and what a container status adds to it.

`oom_memcg` owns the limit, `task_memcg` holds the victim; a kill without a memcg is the node's. `OOMKilled` with an
exit code other than 137 says that some process of the container was killed at some time, not that this ended it; where
a process of the engine vanished just before that exit, it is the one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...model import Event, Finding
from ...parsers.sizes import size_bytes
from ...regexes import lazy_regex
from .. import evidence, jobs, unowned
from ..case import Case, conclude
from ..ends import JOIN_S, LINGER_S, OF_PEERS, SILENT_ENDS, faults_of
from ..entities import hits_engine
from ..model import Death
from . import probes
from .host_series import counted_climb

NEAR_S = 120.0

MEMCG_KILL = "kernel.oom_kill_memcg"
_KILL = {
    "container": "kill_container_limit",
    "pod": "kill_pod_limit",
    "qos": "kill_node_allocatable",
    "kubepods": "kill_node_allocatable",
    "node": "kill_node",
    "cpuset": "kill_node",
    "unit": "kill_unit_limit",
    "job": "kill_job_limit",
    "user": "kill_unit_limit",
}


def rules(case: Case, death: Death) -> Iterator[Finding]:
    kills = [event for event in death.witnesses if event.kind == "kernel_oom"]
    scoped = any(event.fields.get("oom_scope") in _KILL for event in kills)
    status = None if scoped else _status(case, death)
    told = [_kill(case, event, status) for event in kills] + ([status] if status is not None else [])
    yield from told
    limit_mib = next(filter(None, map(_limit_mib, told)), None)
    if limit_mib is not None and (grown := counted_climb(case, death, MOST_OF_IT * limit_mib)) is not None:
        yield grown
    if not kills:
        yield from _nearby(case, death)
        yield from _counter(case, death)
        yield from _killed_child(case, death)
    yield from _evicted(case, death)
    yield from _shared_memory(case, death)
    yield from _promised(case, death)
    if any(e.kind == "kernel_oom" and e.fields.get("oom_scope") == "node" for e in death.witnesses):
        yield from _set_aside(case)


_USAGE = lazy_regex(
    r"Container (?P<name>\S+) was using (?P<usage>[\d.]+[KMGT]?i?), "
    r"(?:request is|which exceeds its request of) (?P<request>[\d.]+[KMGT]?i?)\b"
)
MOST_OF_IT = 0.5
_AVAILABLE = lazy_regex(r"resource: memory\. Threshold quantity: \S+, available: (?P<available>[\d.]+[KMGT]?i?)\b")


def _evicted(case: Case, death: Death) -> Iterator[Finding]:
    """Which container of an evicted pod used most beyond its request, as the kubelet's message tells.

    Where a log of the pod counts what grew into most of that, its first count is where the trouble began.
    Source: Kubernetes, `pkg/kubelet/eviction/helpers.go`, evictionMessage.
    """
    for event in death.witnesses:
        used = [
            (usage - request, name, usage, request)
            for name, *amounts in _USAGE.findall(event.text)
            for usage, request in [[size_bytes(amount) or 0 for amount in amounts]]
        ]
        if used and "resource: memory" in event.text:
            _, name, usage, request = max(used)
            fields = {"consumer": name, "consumer_usage_kib": usage // 1024, "consumer_request_kib": request // 1024}
            available = _AVAILABLE.search(event.text)
            if available:
                fields["available_kib"] = (size_bytes(available["available"]) or 0) // 1024
            grown = counted_climb(case, death, least_mib=MOST_OF_IT * (usage - request) / 1024**2)
            if grown is not None:
                yield grown
            yield conclude("evicted_over_request", event, fields, (grown,) if grown is not None else ())
            return


REFUSED_PROMISES = ("torch.cpu_alloc_failed", "python.memory_error", "python.errno_enomem", "python.bad_alloc")
"""What a program says when the kernel promises it no memory; nobody is killed."""
MUCH = 0.1
"""Share of the machine's memory that is worth a remark."""


def _promised(case: Case, death: Death) -> Iterator[Finding]:
    """`vm.overcommit_memory=2`: all memory that may be promised is, while much of it is free (proc_meminfo(5))."""
    refused = next((f for f in case.named(*REFUSED_PROMISES) if not evidence.objection(case, death, f)), None)
    for event in case.of_kind("meminfo") if refused is not None else ():
        names = ("commit_limit", "committed_as", "mem_available", "mem_total")
        limit, promised, available, total = (int(event.fields.get(f"{name}_kib") or 0) for name in names)
        if 0 < 0.9 * limit <= promised <= limit and available >= MUCH * total > 0:
            fields = {"commit_limit_kib": limit, "committed_kib": promised, "mem_available_kib": available}
            yield conclude("commit_exhausted", event, fields)
            return


def _set_aside(case: Case) -> Iterator[Finding]:
    """Huge pages that nobody uses: memory which is neither free nor anybody's (hugetlbpage.rst of the kernel)."""
    for event in case.of_kind("meminfo"):
        total, free, size_kib, ram_kib = (
            event.fields.get(name)
            for name in ("huge_pages_total", "huge_pages_free", "hugepagesize_kib", "mem_total_kib")
        )
        if not (isinstance(free, int) and isinstance(size_kib, int) and isinstance(ram_kib, int)):
            continue
        if free * size_kib >= MUCH * ram_kib:
            fields = {"hugepages_total": total, "hugepages_free": free, "hugetlb_kib": event.fields.get("hugetlb_kib"),
                      "hugepages_free_gib": round(free * size_kib / 1024**2, 1)}  # fmt: skip
            yield conclude("hugepages_idle", event, {k: v for k, v in fields.items() if v is not None})
            return


SHM_DEFAULT_BYTES = 64 * 1024**2
"""What docker and Kubernetes give a container that asks for nothing."""


def _shared_memory(case: Case, death: Death) -> Iterator[Finding]:
    """/dev/shm of the default size, or full, in a container that runs several ranks or says that it is too small."""
    for event in case.of_kind("df"):
        if event.fields.get("mount") == "/dev/shm":
            size, free = event.fields.get("size_bytes"), event.fields.get("available_bytes")
            small = isinstance(size, int) and size <= 2 * SHM_DEFAULT_BYTES
            full = isinstance(size, int) and isinstance(free, int) and free < 0.05 * size
            if small or full:
                yield conclude("shm_small", event, {**event.fields, "shm_size_mib": (size or 0) // 1024**2})
                return
    spec = case.spec(death.entity)
    stated = spec.fields.get("shm_size_bytes") if spec is not None else None
    if spec is not None and isinstance(stated, int) and stated <= 2 * SHM_DEFAULT_BYTES:
        yield conclude("shm_small", spec, {"shm_size_mib": stated // 1024**2})


def _kill(case: Case, event: Event, status: Finding | None = None) -> Finding:
    """Whose limit it was: the kernel says it, or a line that says that there was one and the status together."""
    scope, known, hits = str(event.fields.get("oom_scope") or ""), {}, tuple(_hits_at(case, event))
    if status is not None and any(hit.signature == MEMCG_KILL for hit in hits):
        scope, known = "container", {key: status.fields[key] for key in _OF_A_LIMIT if key in status.fields}
    return conclude(_KILL.get(scope, "kill_unknown_limit"), event, {**known, **kill_fields(event)}, hits)


def _limit_mib(finding: Finding) -> float | None:
    """The limit that a kill enforced, or that the spec of the killed container sets."""
    limit_kib, limit_gib = (finding.fields.get(name) for name in ("memcg_limit_kib", "container_limit_gib"))
    if isinstance(limit_kib, int):
        return limit_kib / 1024
    return limit_gib * 1024 if isinstance(limit_gib, int | float) else None


def _hits_at(case: Case, event: Event) -> Iterator[Finding]:
    for finding in case.findings:
        if finding.locator == event.locator:
            yield finding


_TASK = ("comm", "pid", "rss_kib", "oom_score_adj")


def kill_fields(event: Event) -> dict[str, object]:
    """The numbers of a kill that a report shows; `victim_rss_kib` is anon + file + shmem, never total-vm.

    At the node's limit `largest_task_…` is who held most memory, where that is not the victim.
    """
    fields = dict(event.fields)
    parts = [fields.get(f"victim_{kind}_rss_kib") for kind in ("anon", "file", "shmem")]
    known = [part for part in parts if isinstance(part, int)]
    if known:
        fields["victim_rss_kib"] = sum(known)
    if fields.get("oom_scope") in ("node", "kubepods", "qos"):
        tasks = fields.get("tasks") or ()
        largest = tasks[0] if tasks and tasks[0].get("pid") != fields.get("victim_pid") else {}
        fields.update({f"largest_task_{key}": largest[key] for key in _TASK if largest.get(key) is not None})
    return fields


_OF_A_LIMIT = ("container", "container_limit_gib")


def _status(case: Case, death: Death) -> Finding | None:
    """What the status of the container says of a kill for memory, with the limit that its spec sets."""
    spec = case.spec(death.entity, death.container)
    limit = spec.fields.get("memory_limit_bytes") if spec is not None and death.container else None
    known = {"container_limit_gib": round(limit / 1024**3, 3)} if isinstance(limit, int) else {}
    for event in death.witnesses:
        if event.fields.get("reason") == "OOMKilled" or event.fields.get("oom_killed"):
            code = event.fields.get("exit_code")
            gone = _gone_before(death, event) if code not in (137, None) else None
            name = "oomkilled_status" if code in (137, None) else "oomkilled_engine" if gone else "oomkilled_child"
            own = {"container": death.container} if death.container else {}
            return conclude(name, event, {**event.fields, **own, **known}, (gone,) if gone is not None else ())
    return None


GONE = (*SILENT_ENDS, "sglang.child_failed", "tgi.shard_signal", "python.killed")
"""What a parent says of an engine process that is gone, and that left no word itself."""


def _gone_before(death: Death, status: Event) -> Finding | None:
    """A process of the engine that vanished just before its container ended, for memory as the status says.

    Its parent then ends by itself, in any way: the exit code is the parent's.
    """
    for finding in death.life.findings if death.life is not None else ():
        gone_s, ended_s = finding.time.utc_s, status.time.utc_s
        if finding.signature in GONE and gone_s is not None and ended_s is not None:
            slack_s = min(finding.time.uncertainty_s + status.time.uncertainty_s, LINGER_S)
            if -JOIN_S <= ended_s - gone_s <= LINGER_S + slack_s:
                return finding
    return None


_SIGKILLED = lazy_regex(r": -9\b")


ZONES_S = 14 * 3600.0
"""So far apart may two clocks stand that print no zone."""


def _killed_child(case: Case, death: Death) -> Iterator[Finding]:
    """A process of the engine that got SIGKILL while it started, as its parent tells.

    A probe, a stop or an eviction ends the whole container, not a child of it: what kills a child while weights are
    read into host memory is, as a rule, the kernel's OOM killer. Whose limit it was stays open, unless the bundle shows
    the kernel kill an engine at the node's, some hours off by a clock without a zone. A container without a limit
    reached none: who sent the signal can then not be told.
    """
    life = death.life
    if life is None or life.ready is not None or life.shutdown is not None:
        return
    unlimited = _is_unlimited(case, death)
    for finding in life.findings:
        processes = _SIGKILLED.search(str(finding.fields.get("failed_procs", "")))
        shard = finding.signature == "tgi.shard_signal" and finding.fields.get("signal") == 9
        if processes or shard:
            if not unlimited:
                yield conclude("killed_while_starting", finding.event, {"signal": 9}, (finding,))
            yield from _killed_elsewhen(case, death)
            return


def _is_unlimited(case: Case, death: Death) -> bool:
    """Whether the runtime says that the container that ended has no memory limit of its own."""
    states = [*case.of_entity(case.of_kind("docker_state"), death.entity), *death.witnesses]
    return any(event.fields.get("memory_unlimited") for event in states)


def _killed_elsewhen(case: Case, death: Death) -> Iterator[Finding]:
    for event in case.of_kind("kernel_oom"):
        ours = event.fields.get("oom_scope") == "node" and hits_engine(event)
        open_zone = any(case.shaky(event.locator.source, stamp.layer) for stamp in event.stamps)
        when = event.time.utc_s
        near = when is None or not death.time_s or abs(when - death.time_s) <= ZONES_S
        if ours and open_zone and near and not case.nodes.apart(death.entity, event):
            yield conclude("node_kill_nearby", event, kill_fields(event))
            return


def _counter(case: Case, death: Death) -> Iterator[Finding]:
    """A process that vanished without a word, or by SIGKILL, in a cgroup that counts a kill at its own limit.

    No counter says when that was: it is weak, and nothing where a kernel log of that time shows no kill.
    """
    life = death.life
    if life is None or _kernel_seen(case, death):
        return
    shot = [f for f in life.findings if f.signature == "python.killed" and f.locator.order > life.last_sign]
    if not (shot or death.exit_code == 137 or any(f.signature in SILENT_ENDS for f in life.findings)):
        return
    for limit in case.named("cgroup.oom_own_limit"):
        owner = case.entities.of(limit.event)
        mine = not owner or owner.startswith("file:") or case.entities.same(owner, death.entity)
        kills = [f for f in case.named("cgroup.oom_kill") if f.locator == limit.locator]
        if mine and kills:
            fields = {**limit.fields, **kills[0].fields, **_limit_beside(case, limit.event)}
            yield conclude("oom_counter", limit.event, fields, (*shot[:1], limit))
            return


def counted_kill(case: Case) -> Finding | None:
    """A cgroup that counts a kill at its own limit, where nothing else tells of a death and no kernel log speaks.

    Nobody says when that was, nor of whom: the limit, and that it was hit, is all that is known. Version 1 does not
    count the shortages by themselves; there the failed charges say that the limit was reached.
    """
    if case.lives or any(event.channel == "kernel" for event in case.events):
        return None
    reached = [*case.named("cgroup.oom_own_limit"), *case.named("cgroup.max_reached")]
    for kill in case.named("cgroup.oom_kill"):
        version_1 = str(kill.event.fields.get("file")) == "memory.oom_control"
        own = [f for f in reached if f.locator == kill.locator and f.signature == "cgroup.oom_own_limit"]
        charged = [f for f in reached if version_1 and f.locator.source == kill.locator.source]
        if own or charged:
            counted = own[0].fields if own else {}
            fields = {**counted, **kill.fields, **_limit_beside(case, kill.event)}
            return conclude("oom_counter", _at_row(kill.event, "oom_kill"), fields)
    return None


def _at_row(event: Event, key: str) -> Event:
    """The event at the line of its file that holds a key."""
    rows = event.raw.split("\n")
    index = next((i for i, row in enumerate(rows) if row.startswith(f"{key} ")), 0)
    return replace(event, locator=replace(event.locator, line=event.locator.line + index))


def _limit_beside(case: Case, counter: Event) -> dict[str, int]:
    """The limit of the cgroup that counts: its file lies in the same folder, or was printed into the same file."""
    folder = counter.locator.source.rpartition("/")[0]
    for event in case.of_kind("cgroup"):
        limit, source = event.fields.get("memory_max_bytes"), event.locator.source
        printed = source == counter.locator.source
        saved = source.endswith(("/memory.max", "/memory.limit_in_bytes")) and source.rpartition("/")[0] == folder
        if isinstance(limit, int) and (printed or saved):
            return {"memcg_limit_kib": limit // 1024}
    return {}


def _kernel_seen(case: Case, death: Death) -> bool:
    """True when a kernel log covers the time of a death."""
    times = [e.time.utc_s for e in case.events if e.channel == "kernel" and e.time.utc_s is not None]
    return bool(times) and (not death.time_s or min(times) - NEAR_S <= death.time_s <= max(times) + NEAR_S)


def _nearby(case: Case, death: Death) -> Iterator[Finding]:
    """A node-wide kill of somebody else at the time of this death: the node was out of memory.

    A run that tells what it failed of was not killed; that it lost a peer may be another's kill.
    """
    faults = faults_of(death.life) if death.life is not None else []
    if not death.time_s or not all(fault.signature.startswith(OF_PEERS) for fault in faults):
        return
    ordered = probes.probe_kill_of(case, death) is not None
    for event in case.of_kind("kernel_oom"):
        if ordered and unowned.may_be_anybodys(case, event):
            continue
        when = event.time.utc_s
        if when is None or abs(when - death.time_s) > NEAR_S + min(event.time.uncertainty_s, NEAR_S):
            continue
        if case.nodes.apart(death.entity, event) or jobs.is_of_others(event, case.jobs, case.lives):
            continue
        scope = event.fields.get("oom_scope")
        if scope in ("node", "kubepods", "qos") and not case.entities.same(case.entities.of(event), death.entity):
            yield conclude("node_kill_nearby", event, kill_fields(event))
        elif not case.entities.of(event) and hits_engine(event):
            yield _kill(case, event)
