"""Which findings are evidence for a death, and why the others are not.

A finding counts when it belongs to the dying entity (or to its node), lies in the window of the death, and was not
survived. Everything else gets a reason, which the report prints in its table of decoys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..clocks.yearless import DAY_S, nearest_turn_s
from ..clocks.years import YEAR_S
from ..model import Finding, Role, StampForm, Timestamp
from ..regexes import lazy_regex
from . import asked, jobs
from .case import Case
from .ends import OF_PEERS, PEER_LOST, faults_of
from .entities import ENGINE_CHANNELS, ENGINE_COMM
from .model import Death, Decoy, Phase

AFTER_S = 200.0
"""Consequences and reports of a death arrive this much later (grace, watchdogs, kubelet syncs)."""
NODE_BEFORE_S = 900.0
"""A node-level fault this long before a death may have caused it."""
NODE_AFTER_S = 45.0
LONG_BEFORE_S = 12 * 3600.0

UNREACHED = "hub.unreachable"
ANSWERED = frozenset({"hub.gated", "hub.unauthorized", "hub.not_found", "hub.http_error"})
"""Who got such an answer had reached the hub: what failed to connect before was tried again."""

STANDING = frozenset({"torch.no_kernel_image"})
"""What torch warns of while it is loaded, and fails of at its first kernel: whatever succeeds in between is no cure."""
CAME_TRUE = {"vllm.ulimit_low": "python.too_many_files"}
"""Warnings that every start prints on many machines, and the error of which they are evidence: alone they are none."""

_NODE_CHANNELS = frozenset({"kernel", "nvidia", "oomd", "systemd", "clock", "host", "cgroup"})
_TIMELESS = _NODE_CHANNELS | {"k8s", "ray"}
"""Channels whose lines stand between and behind those of the run that they are about."""


def of_death(case: Case, death: Death) -> tuple[Finding, ...]:
    """The findings that are evidence for a death."""
    near = (f for f in case.findings if not _is_outside(death, f))  # a log of many runs has many more of others
    return tuple(finding for finding in near if not objection(case, death, finding))


def _is_outside(death: Death, finding: Finding) -> bool:
    """True for what the log of the run printed before or after it: no evidence, whatever the objection."""
    life, event = death.life, finding.event
    if life is None or event.channel in _TIMELESS or event.locator.source != life.start.locator.source:
        return False
    return not life.start.locator.order <= event.locator.order <= life.end.locator.order


def decoys(case: Case, death: Death) -> tuple[Decoy, ...]:
    """The findings that look like a cause of a death and are none; context is left out."""
    told = (f for f in case.findings if f.role in (Role.CAUSE, Role.SYMPTOM, Role.CONSEQUENCE))
    return tuple(Decoy(finding, reason) for finding in told if (reason := objection(case, death, finding)))


SAME_FACT_S = 5.0


def order(finding: Finding) -> tuple[bool, float, str, int, str]:
    """Time, then place: a total order of findings; those without a time come last."""
    moment = finding.time.utc_s
    return (moment is None, moment or 0.0, finding.locator.source, finding.locator.order, finding.signature)


def doubt_s(finding: Finding) -> float:
    """How unsure a time is, in what makes a difference: one second is nothing where the year is not known."""
    return round(float(f"{finding.time.uncertainty_s:.1e}"), 1)


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding a fact: the same thing said by several sources, or several times in a row, counts once.

    Of copies, the one with the smallest uncertainty stays, then the earliest; in one file, the first.
    """
    kept: list[Finding] = []
    ordered = sorted(findings, key=lambda f: (doubt_s(f), f.time.utc_s or 0.0, f.locator.source, f.locator.order))
    for finding in ordered:
        twin = next((n for n, other in enumerate(kept) if same_fact(other, finding)), None)
        if twin is None:
            kept.append(finding)
        elif _stands_before(finding, kept[twin]):
            kept[twin] = finding
    kept.sort(key=order)
    return tuple(kept)


def _stands_before(one: Finding, other: Finding) -> bool:
    """True for the line above in one file: that it has no stamp of its own makes it no later."""
    return one.locator.source == other.locator.source and one.locator.order < other.locator.order


def same_fact(one: Finding, other: Finding) -> bool:
    """True for two sources, or two lines, that tell of one thing."""
    if one.signature != other.signature or not _alike(one.event.kind, other.event.kind):
        return False
    a, b = one.time, other.time
    if a.utc_s is not None and b.utc_s is not None:
        slack = SAME_FACT_S + (0.0 if _one_clock(one, other) else min(a.uncertainty_s + b.uncertainty_s, 600.0))
        if abs(a.utc_s - b.utc_s) > slack:
            return False
    elif one.locator.source == other.locator.source:
        return one.event.text == other.event.text
    return all(
        one.fields.get(key) == value for key, value in other.fields.items() if key in one.fields and key in _IDENTITY
    )


def _alike(one: str, other: str) -> bool:
    """True for events of one kind; an exception may be printed once more without its traceback."""
    return one == other or {one, other} == {"log", "traceback"}


def _one_clock(one: Finding, other: Finding) -> bool:
    """True for two lines of one file with the same kind of stamp: the time between them is known, whatever the year."""
    first, second = ([(s.layer, s.form) for s in f.event.stamps if s.form is not StampForm.AGE] for f in (one, other))
    return one.locator.source == other.locator.source and bool(first) and first == second


_IDENTITY = frozenset({"victim_pid", "xid", "exit_code", "tried_to_allocate_gib", "pid", "container_id"})


def objection(case: Case, death: Death, finding: Finding) -> str:
    """Why a finding is no evidence for a death: a key of the decoy texts, or empty when it is evidence."""
    if finding.quoted:
        return "quoted"
    if finding.role is Role.BENIGN:
        return "benign"
    if finding.signature in CAME_TRUE and not any(case.named(CAME_TRUE[finding.signature])):
        return "no_impact"
    comm = finding.event.fields.get("comm")
    if finding.signature == "nvidia.xid_application" and comm and not ENGINE_COMM.search(str(comm)):
        return "other_entity"  # the fault of another program on the card
    if _killed_another(case, finding) or _of_sidecar(case, death, finding) or _of_other_program(death, finding):
        return "other_entity"
    if finding.signature == "k8s.image_pull_failed" and _pulled_later(case, finding):
        return "recovered"
    life = death.life
    of_node = finding.event.channel in _NODE_CHANNELS
    of_log = not of_node and not (finding.event.channel == "k8s" and finding.event.kind != "log")  # kubectl's tables
    in_run = (finding.locator.source, finding.locator.order) in case.in_runs
    of_log = of_log and (in_run or finding.event.channel != "ray")  # a driver prints the words of its raylets anywhere
    owner = case.entities.of(finding.event)
    stranger = bool(owner) and not case.entities.same(owner, death.entity)
    if finding.signature == AGENT_KILL:
        return _by_agent(case, death, finding) if stranger else "no_impact"
    mixed = stranger and not owner.startswith("file:") and not case.nodes.spanning  # several containers in one log
    if life is not None and finding.locator.source in life.sources and of_log and not mixed:
        return _in_life(death, finding)
    if stranger or (life is not None and jobs.is_of_another(jobs.job_of(finding), case.jobs, life)):
        return "other_entity"
    if of_log and in_run:
        return "other_run"  # of the same entity: a death without its log has no claim on another run's lines
    if not owner and (case.nodes.apart(death.entity, finding.event) or _is_apart(case, death, finding)):
        return "other_host"
    return _outside_run(death, finding) or _in_time(case, death, finding, bool(owner))


def _is_apart(case: Case, death: Death, finding: Finding) -> bool:
    ours = any(case.entities.same(death.entity, name) for name in case.asked.entities)
    return ours and asked.is_elsewhere(case, finding.event)


REBOOTS = frozenset({
    "k8s.node_rebooted", "kernel.reboot", "k8s.node_shutdown", "kubelet.shutdown", "systemd.shutdown",
})  # fmt: skip
"""What ends everything that runs on a machine: who was started after it did not end of it."""
SURVIVED_S = 60.0
"""A program whose kernel faults on the GPU fails at its next call: this long at work after it, it was another's."""


def _outside_run(death: Death, finding: Finding) -> str:
    """Why a program's fault on the GPU, a reboot, or a kill of some worker of Ray did not end the run.

    It came before the start; or the run worked on after the fault; or it tells what it failed of, and lost no worker.
    """
    life, time = death.life, finding.time
    if life is not None and finding.event.channel == "ray" and finding.signature.startswith("ray."):
        faults = faults_of(life)
        of_peers = (f.signature.startswith(OF_PEERS) or PEER_LOST.match(f.signature) for f in faults)
        return "other_entity" if faults and not any(of_peers) else ""
    of_program = finding.signature == "nvidia.xid_application"
    if life is None or time.utc_s is None or not (of_program or finding.signature in REBOOTS):
        return ""
    worked = life.last_activity.time if of_program and life.last_activity is not None else None
    if worked is not None and worked.utc_s is not None and worked.earliest_s > time.latest_s + SURVIVED_S:
        return "recovered"
    began = life.start.time
    early = began.utc_s is not None and began.earliest_s > time.latest_s + SAME_FACT_S
    return "before" if early and _begins_with_start(death) else ""


def _killed_another(case: Case, finding: Finding) -> bool:
    """True for a kill that somebody ordered of another program, as a name or a list of processes tells."""
    task = finding.fields.get("task")
    if finding.event.channel == "ray" and task:
        return not _ENGINE_TASK.search(str(task))
    pid = finding.fields.get("victim_pid")
    if finding.event.kind != "log" or finding.event.channel not in ("host", "container") or pid is None:
        return False
    if comm := finding.fields.get("victim_comm"):
        return not ENGINE_COMM.search(str(comm))
    named = [e for e in case.of_kind("process", "gpu_process", "xid") if e.fields.get("pid") == pid]
    return bool(named) and not any(ENGINE_COMM.search(e.text) for e in named)


_ENGINE_TASK = lazy_regex(
    r"(?i)vllm|sglang|llm|engine|serve|replica|worker_?(?:wrapper|proc)|executor|model|actor|infer|predict"
)
"""How the tasks and actors are called in which Ray runs an engine, and what serves it."""
CRON_KILL = "host.cron_kill"
AGENT_KILL = "host.agent_kill"
AT_ONCE_S = 30.0
"""A process that gets a SIGKILL is gone at once, and who waits for it says so within this."""


def _by_agent(case: Case, death: Death, finding: Finding) -> str:
    """Why what an agent of the node did to a process of others was not this end: another machine, or another time.

    It speaks of its victim, and knows no more of it than a pid, which an engine's log does not know.
    """
    if case.nodes.apart(death.entity, finding.event):
        return "other_host"
    if not death.time_s or finding.time.utc_s is None:
        return "other_entity"
    if finding.time.latest_s < death.time_s - AT_ONCE_S:
        return "before"
    return "after" if finding.time.earliest_s > death.time_s + SAME_FACT_S else ""


def _of_sidecar(case: Case, death: Death, finding: Finding) -> bool:
    """True for the end of a container that serves nothing, beside the one whose end is asked about."""
    witnesses = [event for aside in case.asides if aside is not death for event in aside.witnesses]
    container = finding.event.scope.container_id
    return any(
        event.locator == finding.locator or (container and event.scope.container_id == container) for event in witnesses
    )


_OF_PYTHON = ("torch.", "python.", "nccl.", "hub.")
"""Families of what every program in Python says that uses the same libraries."""


def _of_other_program(death: Death, finding: Finding) -> bool:
    """True for what another program wrote into the syslog in which the engine writes under its own name."""
    life, event = death.life, finding.event
    speaks = event.channel in ENGINE_CHANNELS or finding.signature.startswith(_OF_PYTHON)
    if life is None or not speaks or event.locator.source != life.start.locator.source:
        return False
    names = (event.fields.get("ident"), life.start.fields.get("ident"))
    return all(names) and names[0] != names[1]


def _pulled_later(case: Case, finding: Finding) -> bool:
    """True where the image of a container came after all."""
    failed_s, owner = finding.time.utc_s, case.entities.of(finding.event)
    pulled = [e for e in case.of_kind("k8s_event") if e.fields.get("reason") == "Pulled"]
    came = (e for e in (*pulled, *case.of_kind("container_started")) if case.entities.same(case.entities.of(e), owner))
    return failed_s is not None and any(e.time.utc_s is not None and e.time.utc_s > failed_s for e in came)


def _in_life(death: Death, finding: Finding) -> str:
    life = death.life
    assert life is not None
    if finding.locator.source == life.start.locator.source:
        if not life.holds(finding.event):
            return "other_run"
        survived = finding.locator.order < life.last_sign and finding.role in (Role.CAUSE, Role.SYMPTOM)
        if finding.signature in STANDING and life.fatal is not None and life.fatal.signature == finding.signature:
            return ""
        if finding.signature == UNREACHED:
            survived |= any(f.signature in ANSWERED and f.locator.order > finding.locator.order for f in life.findings)
            return "recovered" if survived else ""
        return "recovered" if survived and finding is not life.fatal else ""
    moment = finding.time.utc_s
    start, end = life.start.time.utc_s, life.end.time.utc_s
    if moment is None or start is None or end is None:
        return ""
    return "" if start - 5 <= moment <= end + AFTER_S else "other_run"


def _in_time(case: Case, death: Death, finding: Finding, owned: bool) -> str:
    if finding.event.kind == "pod_status" and owned and _ends_again(case, death):
        return "after"  # a pod's phase, and why it has it, tell of its last end
    if not death.time_s or finding.time.utc_s is None:
        return _in_printed_time(death, finding, owned)
    begin, end = window(death, owned)
    begin = min(begin, death.time_s - LONG_BEFORE_S) if finding.signature in LASTING else begin
    earliest, latest = _span(finding.time, death.time_s)
    first = finding.event.fields.get("first_seen_s")
    earliest = min(earliest, float(first)) if isinstance(first, int | float) else earliest
    if latest < begin or _runs_again_before(case, death, finding):
        return "before"
    return "after" if earliest > end else ""


def _runs_again_before(case: Case, death: Death, finding: Finding) -> bool:
    """True for a job of cron that ran once more before the end: as often as it ran, it harmed nobody until then."""
    if finding.signature != CRON_KILL or not death.time_s or finding.time.utc_s is None:
        return False
    end_s, began_s, command = death.time_s + SAME_FACT_S, finding.time.utc_s, finding.fields.get("command")
    return any(
        other.fields.get("command") == command and other.time.utc_s is not None and began_s < other.time.utc_s <= end_s
        for other in case.named(CRON_KILL)
    )


def _in_printed_time(death: Death, finding: Finding, owned: bool) -> str:
    """The same by the seconds that one clock printed, where nothing ties it to UTC: a ring buffer holds weeks."""
    own = {stamp.layer: stamp.seconds for stamp in finding.event.stamps if stamp.form is StampForm.BOOT}
    told = (s for e in death.witnesses if e.locator.source == finding.locator.source for s in e.stamps)
    apart = [own[s.layer] - s.seconds for s in told if s.form is StampForm.BOOT and s.layer in own]
    if not apart:
        return ""
    if max(apart) < -(LONG_BEFORE_S if owned else NODE_BEFORE_S):
        return "before"
    return "after" if min(apart) > (AFTER_S if owned else NODE_AFTER_S) else ""


def _ends_again(case: Case, death: Death) -> bool:
    """True when the same entity ended once more after this."""
    if not death.time_s:
        return False
    ends = [other.time_s for other in case.deaths if case.entities.same(other.entity, death.entity)]
    return any(end is not None and end > death.time_s + AFTER_S for end in ends)


def _span(time: Timestamp, moment_s: float) -> tuple[float, float]:
    """The first and the last instant that a stamp may mean; of a guessed year, the one that brings it nearest.

    Whatever the year, the end of August is two weeks from the middle of September.
    """
    if time.utc_s is None or time.uncertainty_s < YEAR_S:
        return time.earliest_s, time.latest_s
    nearest_s = nearest_turn_s(time.utc_s, moment_s)
    doubt_s = time.uncertainty_s - YEAR_S + DAY_S
    return nearest_s - doubt_s, nearest_s + doubt_s


LASTING = frozenset({"nvidia.fabric_manager_mismatch", "nvidia.nvml_version_mismatch", "nvidia.api_mismatch"})
"""What was installed together and does not fit stays so until somebody mends it."""


def window(death: Death, owned: bool) -> tuple[float, float]:
    """From when to when an event may have to do with a death (Unix time)."""
    assert death.time_s is not None
    moment = death.time_s
    start = death.life.start.time.utc_s if death.life is not None else None
    if not owned:
        return min(moment - NODE_BEFORE_S, _stood_since(death)), moment + NODE_AFTER_S
    begin = (
        start - 60.0
        if start is not None and death.life is not None and _begins_with_start(death)
        else moment - LONG_BEFORE_S
    )
    return begin, moment + AFTER_S


def _stood_since(death: Death) -> float:
    """When the run was last seen at work: what broke it then may have been ended by hand hours later."""
    assert death.time_s is not None
    worked = death.life.last_activity if death.life is not None else None
    if worked is None or worked.time.utc_s is None:
        return death.time_s
    return max(worked.time.utc_s - NODE_AFTER_S, death.time_s - LONG_BEFORE_S)


def _begins_with_start(death: Death) -> bool:
    """False when the log begins in the middle of the run: its first line is no start."""
    life = death.life
    return (
        life is not None
        and any(f.locator == life.start.locator for f in life.findings)
        and life.phase is not Phase.UNKNOWN
    )


def harmless_reason(finding: Finding, stopped: Sequence[Death]) -> str:
    """Why a finding is no trouble when nothing went wrong."""
    if finding.quoted:
        return "quoted"
    if finding.role is Role.BENIGN:
        return "benign"
    comm = finding.event.fields.get("comm")
    if finding.signature == "nvidia.xid_application" and comm and not ENGINE_COMM.search(str(comm)):
        return "other_entity"  # the fault of another program on the card
    for death in stopped:
        if death.time_s and finding.time.utc_s and abs(finding.time.utc_s - death.time_s) <= AFTER_S:
            return "planned_stop"
    return "recovered" if finding.role is Role.CAUSE else "no_impact"
