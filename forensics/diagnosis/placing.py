"""Give logs and kernel kills that name no owner to the pod that fits them best, and say why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan

from ..bundle.rotation import rotation_of
from ..model import Event, Samples, Scope, StampForm
from ..parsers import prose
from ..regexes import lazy_regex
from . import entities as entity_stage
from . import placing_kills as kills
from . import pod_names, sidecars
from .entities import CLUSTER_NAME, ENGINE_CHANNELS, LOG_CHANNELS, NO_ENGINE, Entities, may_run_engine, names_of, stated
from .placing_kills import KILL_S, Log

_SHORT_ID = 12
SETTLED_S = 60.0
"""Logs of one container, of its ranks or streams, begin and end within this time of each other."""
MIN_REPORTS = 3
"""So many reports of an engine tell it from another one."""


def build(events: Sequence[Event], samples: Sequence[Samples]) -> Entities:
    """All entities of a bundle: what events state, then the owners that can be concluded."""
    entities = stated(events)
    _join_short_ids(entities, events, samples)
    _join_bare_containers(entities, events)
    kills.join_signalled(entities, events)
    kills.join_restarted(entities, events)
    _name_by_status(entities, events)
    _place_files(entities, events, samples)
    kills.place(entities, events, _ownerless_logs(entities, events))
    _name_by_series(entities, events, samples)
    return entities


def _join_short_ids(entities: Entities, events: Sequence[Event], samples: Sequence[Samples]) -> None:
    """`docker ps` and `docker stats` print the first twelve digits of an id that the kernel prints in full."""
    told = {event.scope.container_id for event in events} | {column.scope.container_id for column in samples}
    short = {name for name in told if len(name) == _SHORT_ID}
    for name in sorted(short):
        full = [known for known in told if known.startswith(name) and known != name]
        if len(full) == 1:
            entities.join(f"cid:{full[0]}", f"cid:{name}", "stated")


def _join_bare_containers(entities: Entities, events: Sequence[Event]) -> None:
    """A container's state, pasted without its pod, is of the only pod whose events and states name such a container."""
    told = [event.scope for event in events if event.channel == "k8s" and event.scope.container]
    for name in sorted({scope.container for scope in told if names_of(scope) == (f"ctr:{scope.container}",)}):
        pods = {scope.pod for scope in told if scope.container == name and scope.pod}
        if len(pods) == 1:
            entities.join(f"pod:{pods.pop()}", f"ctr:{name}", "only_candidate")


def _name_by_status(entities: Entities, events: Sequence[Event]) -> None:
    """A log that is called exactly like a container, or a unit, whose status is there is its own."""
    names = {event.scope.container: "ctr" for event in events if event.kind == "docker_state"}
    names |= {entities.of(e).partition(":")[2]: "unit" for e in events if e.kind in ("unit_exit", "unit_state")}
    names.pop("", None)
    for file in sorted({event.locator.source for event in events if names and event.channel in LOG_CHANNELS}):
        stem = file.rpartition("/")[2].partition(".")[0]
        if stem in names and entities.key(f"file:{file}").startswith("file:"):
            entities.join(f"{names[stem]}:{stem}", f"file:{file}", "file_name")


def _name_by_series(entities: Entities, events: Sequence[Event], samples: Sequence[Samples]) -> None:
    """A log of no pod that bears the name of one whose memory somebody measured is that pod's."""
    pods = sorted({f"pod:{column.scope.pod}" for column in samples if column.scope.pod})
    files = {event.locator.source for event in events if event.channel in ENGINE_CHANNELS} if pods else set()
    for file in sorted(files):
        if (named := pod_names.named_in(file, pods)) and not entities.key(f"file:{file}").startswith("pod:"):
            entities.join(named, f"file:{file}", "file_name")


@dataclass(slots=True)
class _Pod:
    name: str
    arguments: list[str] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    gpus: int = 0
    described: bool = False
    born_s: float | None = None
    """When a pod with a name of its own (not a StatefulSet's) was started on its node."""
    images: list[str] = field(default_factory=list)
    runs_engine: bool = False
    """True when one of its descriptions may be an engine's."""
    looping: bool = False
    """True for a container that is started again and again."""

    @property
    def is_something_else(self) -> bool:
        """True for what is described, by command, image and limits, as no engine."""
        return self.described and bool(self.images or self.arguments) and not (self.gpus or self.runs_engine)

    @property
    def may_serve(self) -> bool:
        """False for what belongs to the cluster, or is described as, or named like, something else than an engine."""
        bare = self.name.partition(":")[2]
        if self.gpus:
            return True
        if self.described and (self.images or self.arguments):
            return not self.is_something_else
        return not CLUSTER_NAME.match(bare) and not NO_ENGINE.search(bare)


def _place_files(entities: Entities, events: Sequence[Event], samples: Sequence[Samples]) -> None:
    """Give engine logs without an owner to the pod whose arguments, start times or name fit best."""
    logs = _ownerless_logs(entities, events)
    pods = _pods(entities, events)
    names = [pod.name for pod in pods]
    reports = _reports(samples)
    known: dict[str, list[frozenset[tuple[int, float]]]] = {}
    for source, told in sorted(reports.items()):
        known.setdefault(entities.name_of(told.scope, source), []).append(told.points)
    proposals: list[tuple[int, str, str, str]] = []
    placed: set[str] = set()
    for log in logs:
        named = pod_names.named_in(log.source, names)
        replica = "" if named else pod_names.replica_in(log.source, names)
        if replica:
            entities.join(replica, f"file:{log.source}", "file_name")
            placed.add(log.source)
            continue
        fits = {pod.name: (NAMED, "file_name") if pod.name == named else _fit(log, pod) for pod in pods}
        if named:
            fits = {named: fits[named]}
        elif not any(points > 0 for points, _ in fits.values()):
            fits = _only_candidate(log, logs, pods, fits)
        scored = sorted(((fit, name) for name, fit in fits.items()), key=lambda item: (-item[0][0], item[1]))
        best = scored[0] if scored else None
        if best and best[0][0] > 0 and (len(scored) == 1 or scored[1][0][0] < best[0][0]):
            proposals.append((-best[0][0], log.source, best[1], best[0][1]))
    owners = {entities.of(event) for event in events if event.channel in ENGINE_CHANNELS}
    taken: set[str] = set()
    by_source = {log.source: log for log in logs}
    ran: dict[str, list[Log]] = {}
    for _, source, pod, reason in sorted(proposals):
        points = reports[source].points if source in reports else frozenset()
        if any(_two_engines(points, other) for other in known.get(pod, ())):
            continue  # a replica, or a neighbour: another engine tells of the same minutes
        if any(_succeeds(by_source[source], other) for other in ran.get(pod, ())):
            continue  # the pod after this one
        others = ran.get(pod, []) if pod in taken else []
        if reason == "only_candidate" and (pod in owners or not _goes_on(by_source[source], others)):
            continue  # the pod's own logs are here
        if reason != "only_candidate":
            taken.add(pod)
        ran.setdefault(pod, []).append(by_source[source])
        known.setdefault(pod, []).append(points)
        entities.join(pod, f"file:{source}", reason)
        placed.add(source)
    placed |= _place_looping(entities, events, [log for log in logs if log.source not in placed], pods, owners | taken)
    _join_rotated(entities, sorted(placed), [log.source for log in logs if log.source not in placed])


def _place_looping(
    entities: Entities, events: Sequence[Event], logs: Sequence[Log], pods: Sequence[_Pod], taken: set[str]
) -> set[str]:
    """Give the only log of a program that failed to the only pod that is started again and again and has no log yet.

    Its usage message or its traceback bears neither a name nor, as a rule, a time. Returns the sources placed.
    """
    looping = [pod for pod in pods if pod.looping and pod.may_serve]
    sources = {log.source for log in logs} | set(_bare_outputs(entities, events))
    told = (e for e in events if e.channel in LOG_CHANNELS and e.locator.source in sources)
    failed = sorted({e.locator.source for e in told if _FAILURE.search(e.text)})
    fits = {log.source: _fit(log, looping[0])[0] for log in logs} if looping else {}
    if len(looping) != 1 or len(failed) != 1 or looping[0].name in taken or fits.get(failed[0], 0) < 0:
        return set()
    entities.join(looping[0].name, f"file:{failed[0]}", "crash_loop")
    return {failed[0]}


_FAILURE = lazy_regex(r"(?<![A-Za-z])error: |\b[A-Z]\w*(?:Error|Exception)\b: ")
"""How programs end: argparse, compilers and shells; and exceptions."""


def _bare_outputs(entities: Entities, events: Sequence[Event]) -> Iterator[str]:
    """Files of a program's output, by their names, that nothing else tells the owner of."""
    for source in {event.locator.source for event in events if event.channel == "plain"}:
        if prose.is_output(source) and entities.key(f"file:{source}") == f"file:{source}":
            yield source


NAMED = 9
"""Points of a file that bears the whole name of a pod: more than all circumstances together."""


def _only_candidate(
    log: Log, logs: Sequence[Log], pods: Sequence[_Pod], fits: dict[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    """A log that nothing places goes to the only pod that may be an engine's, if no other log tells of its time."""
    left = [pod for pod in pods if pod.may_serve]
    if len(left) != 1 or fits[left[0].name][0] < 0 or any(_at_once(log, other) for other in logs if other is not log):
        return {}
    return {left[0].name: (1, "only_candidate")}


def _at_once(one: Log, other: Log) -> bool:
    """True when two logs tell, or may tell, of the same time: then they are two programs'."""
    if one.first_s is None or one.last_s is None or other.first_s is None or other.last_s is None:
        return True
    return min(one.last_s, other.last_s) > max(one.first_s, other.first_s)


def _succeeds(log: Log, other: Log) -> bool:
    """True for an engine that starts while another one works, and goes on after its end: a rollout makes such pods."""
    times = (log.first_s, log.last_s, other.first_s, other.last_s)
    if not (log.sure and other.sure and log.begins) or None in times:
        return False
    first, last, began, ended = (moment for moment in times if moment is not None)
    return began + SETTLED_S < first < ended - 1.0 and last > ended + SETTLED_S


def _goes_on(log: Log, others: Sequence[Log]) -> bool:
    """True where no log is known yet, and for a log from some line on, where the others show starts only.

    So people save the two ends of a long log.
    """
    return not others or (not log.begins and all(
        other.begins and not other.worked and other.last_s is not None and log.first_s is not None
        and other.last_s <= log.first_s
        for other in others
    ))  # fmt: skip


@dataclass(slots=True)
class _Reports:
    scope: Scope
    points: frozenset[tuple[int, float]] = frozenset()
    """(second, tokens/s) of every report of an engine that had work."""


def _reports(samples: Sequence[Samples]) -> dict[str, _Reports]:
    """What each file says of an engine's throughput: no two engines report the same numbers at the same seconds."""
    found: dict[str, _Reports] = {}
    for column in samples:
        if column.name == "generation_tokens_per_s" and column.form is StampForm.INSTANT:
            told = found.setdefault(column.source, _Reports(column.scope))
            rows = zip(column.stamps, column.values, strict=True)
            told.points |= {(int(t), value) for t, value in rows if value > 0 and not isnan(t)}
    return found


def _two_engines(one: frozenset[tuple[int, float]], other: frozenset[tuple[int, float]]) -> bool:
    """True when two logs tell of the same minutes and never the same."""
    if not one or not other:
        return False
    begin, end = max(min(one), min(other))[0] - 1, min(max(one), max(other))[0] + 1
    few, many = sorted(({p for p in points if begin <= p[0] <= end} for points in (one, other)), key=len)
    return len(few) >= MIN_REPORTS and not any((t + d, v) in many for t, v in few for d in (-1, 0, 1))


def _ownerless_logs(entities: Entities, events: Sequence[Event]) -> list[Log]:
    arguments: dict[str, dict[str, object]] = {}
    times: dict[str, list[float]] = {}
    unsure: dict[str, float] = {}
    starts: dict[str, int] = {}
    begun: set[str] = set()
    worked = {e.locator.source for e in events if e.kind == "access" and e.fields.get("method") == "POST"}
    crashed = {e.locator.source for e in events if e.kind == "traceback" and e.channel == "plain" and e.time.utc_s}
    for event in events:
        source = event.locator.source
        program = event.channel in ENGINE_CHANNELS or (event.channel == "plain" and source in crashed)
        if not program or not entities.of(event).startswith("file:"):
            continue
        times.setdefault(source, [])
        if event.time.utc_s is not None:
            times[source].append(event.time.utc_s)
            unsure[source] = max(unsure.get(source, 0.0), event.time.uncertainty_s)
        if event.kind in ("engine_args", "engine_config"):
            starts[source] = starts.get(source, 0) + (event.kind == "engine_config")
            seen = times[source]
            if source not in arguments and seen and max(seen) - min(seen) <= SETTLED_S:
                begun.add(source)
            arguments.setdefault(source, {}).update(event.fields)
    return [
        Log(
            source,
            arguments.get(source, {}),
            min(seen, default=None),
            max(seen, default=None),
            unsure.get(source, 0.0) <= 60.0,
            starts.get(source, 0),
            source in begun,
            source in worked,
        )
        for source, seen in sorted(times.items())
    ]


_OF_PODS = (
    "pod_spec", "docker_state", "container_started", "container_terminated", "container_waiting", "pod_status",
    "k8s_event",
)  # fmt: skip


def _pods(entities: Entities, events: Sequence[Event]) -> list[_Pod]:
    pods: dict[str, _Pod] = {}
    containers = sidecars.containers(events, entities)
    for event in events:
        if event.channel not in ("k8s", "runtime", "kubelet") or event.kind not in _OF_PODS:
            continue
        if event.kind != "pod_spec" and containers.get(entities.of(event), sidecars.Containers()).is_of_sidecar(event):
            continue
        name = entities.name_of(event.scope)
        of_container = event.kind == "k8s_event" and event.fields.get("object_name")
        if not name or (of_container and not name.startswith("pod:")):
            continue
        pod = pods.setdefault(name, _Pod(name))
        if event.kind in ("pod_spec", "docker_state"):
            pod.arguments += [str(a) for a in (*event.fields.get("command", ()), *event.fields.get("args", ()))]
            pod.images += [str(event.fields["image"])] if event.fields.get("image") else []
            pod.gpus += int(event.fields.get("gpus") or 0)
            pod.runs_engine |= may_run_engine(event)
            pod.described = True
        pod.looping |= event.kind == "container_waiting" and event.fields.get("reason") == "CrashLoopBackOff"
        started = event.fields.get("started_s")
        if event.kind == "container_started" and event.time.utc_s is not None:
            pod.starts.append(event.time.utc_s)
        elif isinstance(started, int | float):
            pod.starts.append(float(started))
            if event.kind == "pod_status" and pod_names.workload_of(name) != name.partition(":")[2]:
                pod.born_s = float(started)
        if event.kind == "container_terminated" and event.time.utc_s is not None:
            pod.ends.append(event.time.utc_s)
    return list(pods.values())


def _fit(log: Log, pod: _Pod) -> tuple[int, str]:
    """How well a log fits a pod: points, and the reason that gave most of them. Negative when they contradict."""
    points, reason = 0, ""
    if log.sure and log.starts <= 1 and any(_outlives(log, end) for end in pod.ends):
        return -1, ""  # a replica of the same service: it goes on where this container ended
    if log.sure and pod.born_s is not None and log.first_s is not None and log.first_s < pod.born_s - KILL_S:
        return -1, ""  # a replica, or the pod before this one
    same = entity_stage.serves(log.arguments, " ".join(pod.arguments))
    if same is False:
        return -1, ""
    if same:
        points, reason = points + 4, "arguments"
    timed = not pod.is_something_else  # that it started at the same time says nothing
    if timed and log.first_s is not None and any(-3 <= log.first_s - start <= 120 for start in pod.starts):
        points, reason = points + 3, reason or "start_time"
    if timed and log.last_s is not None and any(-60 <= end - log.last_s <= 120 for end in pod.ends):
        points, reason = points + 2, reason or "end_time"
    if pod_names.resembles(log.source, pod.name):
        points, reason = points + 2, reason or "file_name"
    if not points and pod.described and pod.gpus and not entity_stage.models_of(log.arguments):
        points, reason = 1, "only_candidate"
    return points, reason


def _outlives(log: Log, end: float) -> bool:
    return log.first_s is not None and log.last_s is not None and log.first_s < end - 60.0 and log.last_s > end + 60.0


def _join_rotated(entities: Entities, placed: Sequence[str], left: Sequence[str]) -> None:
    """Give the logs that are left to the service of their siblings.

    Such are the pieces of a rotated log, `…-previous` beside `…-current`, standard output beside the errors, and the
    first lines of a log beside its last ones.
    """
    pieces = rotation_of([*placed, *left])
    services: dict[str, str] = {}
    for source in (*placed, *left):
        log = pieces[source][0] if source in pieces else source
        folder, _, name = log.rpartition("/")
        service = f"{folder}/{pod_names.log_of(name)}"
        known = services.setdefault(service, source)
        if known != source and source in left:
            entities.join(f"file:{known}", f"file:{source}", "file_name")
