"""Kernel kills that name only a cgroup or a pid, and processes that systemd signals: whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..model import Event, Scope
from ..regexes import lazy_regex
from .entities import ENGINE_CHANNELS, Entities, hits_engine
from .nodes import differ

KILL_S = 90.0
BOTH = 4
"""Points of a kill that fits a limit and the time of an exit."""
_DOUBT_S = 3600.0
"""More than this no clock is allowed to be wrong when a kill is joined with a log."""
_SIGNALLED = lazy_regex(r"(?:Killing process|to main process) (?P<pid>[1-9]\d{0,9}) \(")
"""systemd names the process of a unit that it signals; the header of a journal names the one that wrote a line."""


@dataclass(frozen=True, slots=True)
class Log:
    """An engine log that names no owner."""

    source: str
    arguments: dict[str, object]
    first_s: float | None
    last_s: float | None
    sure: bool
    """True when its times are good to a minute."""
    starts: int
    """How often it prints an engine's arguments."""
    begins: bool
    """True when they stand at its beginning: it shows a run from its start."""
    worked: bool
    """True when it shows requests that were answered."""


def join_signalled(entities: Entities, events: Sequence[Event]) -> None:
    """A program that writes into a journal under its own name is the unit whose process systemd signals there."""
    units: dict[tuple[str, int], str] = {}
    joined: dict[str, set[str]] = {}
    for event in events:
        found = _SIGNALLED.search(event.text, endpos=400) if event.channel == "systemd" and event.scope.unit else None
        if found is not None:
            units[event.locator.source, int(found["pid"])] = entities.of(event)
    for event in events if units else ():
        unit = units.get((event.locator.source, event.scope.pid or 0))
        if unit is not None and event.channel in ENGINE_CHANNELS and entities.of(event).startswith("file:"):
            joined.setdefault(entities.of(event), set()).add(unit)
    for file, owners in sorted(joined.items()):
        if len(owners) == 1:
            entities.join(owners.pop(), file, "signalled")


def join_restarted(entities: Entities, events: Sequence[Event]) -> None:
    """A unit whose main process ends again and again, each time after the engine in the same journal started anew.

    The program may write under any name, and a wrapper's pid is none of the engine's.
    """
    starts: dict[tuple[str, str], list[int]] = {}
    exits: dict[tuple[str, str], list[int]] = {}
    for event in events:
        owner, place = entities.of(event), event.locator
        if event.kind == "unit_exit" and owner.startswith("unit:"):
            exits.setdefault((place.source, owner), []).append(place.order)
        elif event.kind in ("engine_args", "engine_config") and owner == f"file:{place.source}":
            starts.setdefault((place.source, owner), []).append(place.order)
    for (source, file), begun in sorted(starts.items()):
        units = [unit for (journal, unit), ended in exits.items() if journal == source and _in_turn(begun, ended)]
        if len(units) == 1:
            entities.join(units[0], file, "restarted")


def _in_turn(begun: Sequence[int], ended: Sequence[int]) -> bool:
    """True when something began before each of several ends, and after the end before it."""
    order = sorted(ended)
    spans = pairwise((-1, *order))
    return len(order) > 1 and all(any(first < place < last for place in begun) for first, last in spans)


def place(entities: Entities, events: Sequence[Event], logs: Sequence[Log]) -> None:
    """Join a kernel kill that names only a cgroup with the pod that it hit, or the container of a task.

    `kubectl describe` prints no uid, and after a restart only the new container's id. What is left is the limit of
    the memcg against the limits of the pod's containers, and the time of an exit that says OOMKilled. A container
    without a pod needs both.
    """
    limits: dict[str, list[int]] = {}
    exits: dict[str, list[tuple[float, float]]] = {}
    identified = entities.with_uid()
    nodes: dict[str, str] = {}
    for event in events:
        if event.kind not in ("pod_spec", "container_terminated"):
            continue
        pod = entities.of(event)
        if not pod.startswith(("pod:", "ctr:")) or pod in identified:
            continue  # a pod whose uid is known is either named by the kill or not meant by it
        limit, node = event.fields.get("memory_limit_bytes"), event.fields.get("node")
        if isinstance(node, str) and node:
            nodes[pod] = node
        if event.kind == "pod_spec" and isinstance(limit, int):
            limits.setdefault(pod, []).append(limit)
        if (
            event.kind == "container_terminated"
            and event.fields.get("reason") == "OOMKilled"
            and event.time.utc_s is not None
        ):
            exits.setdefault(pod, []).append((event.time.utc_s, min(event.time.uncertainty_s, _DOUBT_S)))
    fitting: dict[str, dict[str, int]] = {}
    for event in events:
        victim = entities.of(event) if event.kind == "kernel_oom" else ""
        if not victim or victim.startswith("pod:"):
            continue
        here = [pod for pod in {*limits, *exits} if not _is_elsewhere(event, nodes.get(pod, ""))]
        fits = ((_fit_kill(event, limits.get(pod, ()), exits.get(pod, ())), pod) for pod in here)
        scored = sorted((-fit, pod) for fit, pod in fits if fit == BOTH or pod.startswith("pod:"))
        if scored and scored[0][0] < 0 and (len(scored) == 1 or scored[1][0] > scored[0][0]):
            fit, pod = -scored[0][0], scored[0][1]
            victims = fitting.setdefault(pod, {})
            victims[victim] = max(fit, victims.get(victim, 0))
    for pod, victims in fitting.items():
        best = [victim for victim, fit in victims.items() if fit == max(victims.values())]
        if len(best) == 1 or victims[best[0]] == BOTH:  # a pod is one of several that have the limit in common
            for victim in best:
                entities.join(pod, victim, "kill")
    _place_by_table(entities, events, {*limits, *exits})
    _place_by_survivor(entities, events)
    _place_by_log(entities, events, logs)


def _place_by_table(entities: Entities, events: Sequence[Event], measured: Collection[str]) -> None:
    """`kubectl get pods` says OOMKilled without a time or a limit: where one pod and one victim are left, they are one.

    Only for a kill at a container's or pod's own limit: at the node's, a pod's status may tell of any other kill.
    `measured` are pods whose limit or time of exit had their say.
    """
    settled = {*entities.with_uid(), *measured}
    pods: dict[str, str] = {}
    victims: dict[str, str] = {}
    for event in events:
        owner = entities.of(event)
        is_pod = owner.startswith("pod:")
        if is_pod and owner not in settled and event.kind == "container_terminated":
            pods |= {owner: event.scope.host} if event.fields.get("reason") == "OOMKilled" else {}
        elif owner and not is_pod and event.kind == "kernel_oom":
            victims |= {owner: event.scope.host} if event.fields.get("oom_scope") in ("container", "pod") else {}
    if len(pods) == len(victims) == 1:
        ((pod, node),), ((victim, host),) = pods.items(), victims.items()
        if not node or not host or node.split(".")[0] == host.split(".")[0]:
            entities.join(pod, victim, "kill")


def _is_elsewhere(kill: Event, node: str) -> bool:
    """True for a kill on another machine than the one that a pod's description names."""
    return bool(kill.scope.host) and bool(node) and differ(kill.scope.host, node)


TOLD_S = 15.0
"""Ray, or the engine, learns of a worker's death within this."""
_WORKER_LOST = lazy_regex(r"worker (?:process )?(?:has )?(?:died|crashed)|WorkerCrashedError|SYSTEM_ERROR")
_PROCESS_LOST = lazy_regex(r"(?:[Ee]ngine core|[Ww]orker) ?proc(?:ess)?\b.{0,60} died unexpectedly")
"""How Ray, and vLLM's API server, report it."""


def _place_by_survivor(entities: Entities, events: Sequence[Event]) -> None:
    """Join the kill of a worker with the log whose Ray, or own API server, reports its death seconds later.

    The cgroup names a pod, or a container, that nothing else tells of; only where one log and one victim are meant.
    """
    kills = [
        e for e in events
        if e.kind == "kernel_oom" and e.time.utc_s is not None and entities.of(e).startswith(("uid:", "cid:"))
        and hits_engine(e)
    ]  # fmt: skip
    lost = list(_reports_of_loss(entities, events)) if kills else []
    pairs = {
        (log, entities.of(kill))
        for kill in kills for log, told in lost
        if told.time.utc_s is not None and kill.time.utc_s is not None
        and -kill.time.uncertainty_s - 1.0 <= told.time.utc_s - kill.time.utc_s <= TOLD_S
        and not _is_identified(entities, log)
    }  # fmt: skip
    if len(pairs) == 1:
        ((log, victim),) = pairs
        entities.join(log, victim, "kill")


def _reports_of_loss(entities: Entities, events: Sequence[Event]) -> Iterator[tuple[str, Event]]:
    """(whose log it is, line) of who reports that a process of the engine is gone."""
    for event in events:
        if event.channel == "ray" and _WORKER_LOST.search(event.text):
            yield entities.name_of(Scope(), event.locator.source), event
        elif event.channel in ENGINE_CHANNELS and _PROCESS_LOST.search(event.text, endpos=400):
            yield entities.of(event), event


def _is_identified(entities: Entities, name: str) -> bool:
    """True where the pod's uid or the container's id is known, by which a kill would name it."""
    return any(known.startswith(("uid:", "cid:")) for known in entities.members(name))


def _place_by_log(entities: Entities, events: Sequence[Event], logs: Sequence[Log]) -> None:
    """Join a kill of an engine with the log that fell silent then: `dmesg` and an engine log, and nothing else.

    Only where no pod is known that the kill could be of, and where the log, or the kill, is the only one that fits.
    """
    pods = {entities.of(event) for event in events if event.channel in ("k8s", "kubelet", "runtime")}
    if any(name.startswith("pod:") for name in pods):
        return
    logs = [log for log in logs if log.last_s is not None]
    kills = [
        e
        for e in events
        if e.kind == "kernel_oom" and hits_engine(e) and entities.of(e)
    ]
    for event in kills:
        fitting = [log for log in logs if _silent_at(log, event)]
        rivals = {entities.of(e) for e in kills if len(fitting) == 1 and _silent_at(fitting[0], e)}
        if len(fitting) == 1 and len(rivals) == 1:
            entities.join(f"file:{fitting[0].source}", entities.of(event), "kill")


def _silent_at(log: Log, kill: Event) -> bool:
    """True when a log may have ended with a kill; a kill without a time fits any log."""
    when = kill.time.utc_s
    if when is None or log.last_s is None:
        return True
    doubt = min(kill.time.uncertainty_s, _DOUBT_S) + (0.0 if log.sure else _DOUBT_S)
    return -KILL_S - doubt <= log.last_s - when <= KILL_S + doubt


def _fit_kill(event: Event, limits: Sequence[int], exits: Sequence[tuple[float, float]]) -> int:
    limit = event.fields.get("memcg_limit_kib")
    same_limit = isinstance(limit, int) and any(limit * 1024 in (one, sum(limits)) for one in limits)
    when = event.time.utc_s
    spread = min(event.time.uncertainty_s, _DOUBT_S)
    same_time = when is not None and any(abs(when - moment) <= KILL_S + slack + spread for moment, slack in exits)
    return 2 * same_limit + 2 * same_time
