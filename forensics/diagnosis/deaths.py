"""Collect deaths: what every source says about the end of a process, joined into one death each.

Witnesses are exits reported by Kubernetes, kubelet, the runtime, docker or systemd, kernel kills, evictions, and the
ends of engine lives. Two witnesses belong to one death when they speak of the same entity at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import regex

from ..model import Event, Finding
from ..regexes import lazy_regex
from . import jobs, sidecars, witnesses
from .ends import JOIN_S, LINGER_S, UNDATED_S, end_of, is_dated, may_have_ended
from .entities import ENGINE_PROGRAM, NO_ENGINE, Entities, hits_engine
from .model import Death, Life
from .nodes import Nodes

ONE_INCIDENT_S = 12 * 3600.0
"""Deaths of one entity within this time are one incident."""
SAME_KILL_S = 5.0
PROBE_KILLS = ("k8s.probe_kill_liveness", "k8s.probe_kill_startup", "kubelet.probe_kill", "kubelet.probe_unhealthy")
HEALTH_KILLS = (
    "runtime.autoheal_restart", "runtime.sagemaker_ping_failed", "host.script_health_kill", "nomad.check_restart",
)  # fmt: skip
"""Who ends a container for its health check where there is no kubelet, and says so."""
STOP_SIGNATURES = (
    "k8s.stopping_container",
    "systemd.stopping",
    "runtime.stop_container",
    "runtime.docker_stop",
    "k8s.scaled",
    "k8s.drain",
    "nomad.drain",
)
"""Who asks for an orderly stop, and says so."""
_STATES = frozenset({"container_terminated", "docker_state"})
_RAY_SERVER = lazy_regex(r"ServeReplica|LLMReplica|LLMServer|RayWorkerWrapper|vllm|sglang", regex.IGNORECASE)
"""Actors of Ray that serve a model, as Ray's own report of a kill names them."""


@dataclass(slots=True)
class _Draft:
    entity: str
    time_s: float | None
    witnesses: list[Event] = field(default_factory=list)
    life: Life | None = None
    lingers: bool = False
    """True when the end may follow its first witness only after a grace period."""


def build(
    events: Sequence[Event],
    findings: Sequence[Finding],
    lives: Sequence[Life],
    entities: Entities,
    reporters: frozenset[str],
    nodes: Nodes,
) -> tuple[Death, ...]:
    """All deaths, by time. A life that goes on to the end of its log is no death.

    `reporters` are the ids of signatures that report an end.
    """
    drafts: list[_Draft] = []
    of_entity: dict[str, list[Life]] = {}
    for life in lives:
        of_entity.setdefault(life.entity, []).append(life)
    for life in lives:
        ended = end_of(life, of_entity[life.entity])
        if ended is not None:
            drafts.append(_Draft(life.entity, ended, [], life))
    kills = {(f.locator.source, f.locator.order) for f in findings if f.signature in PROBE_KILLS}
    containers = sidecars.containers(events, entities)
    stirring = _stirring(events, entities)
    known_jobs = jobs.known(events, findings)
    pasted = {entities.of(event) for event in events if _is_nameless(event)} - {""}
    for event in witnesses.of_ends(events, findings, reporters, entities):
        entity = entities.of(event) or jobs.owner(jobs.job_of(event), known_jobs, lives)
        is_kernel = event.kind == "kernel_oom"
        if not entity:
            has_victim = is_kernel or "victim_comm" in event.fields  # a userspace killer names its victim too
            entity = _sole_engine(drafts, event, nodes) if has_victim else _only_run(event, lives, pasted)
            entity = "" if jobs.is_of_others(event, known_jobs, lives) else entity
        if containers.get(entity, sidecars.Containers()).is_of_sidecar(event):
            continue
        if is_kernel and _outlived(event, entity, lives, stirring):
            continue
        _add(drafts, event, entity, (event.locator.source, event.locator.order) in kills, lives)
    return _in_order(map(_finish, drafts))


def asides(
    events: Sequence[Event], findings: Sequence[Finding], entities: Entities, reporters: frozenset[str]
) -> tuple[Death, ...]:
    """Ends of containers that serve nothing beside one that does, by time: no deaths of the engine."""
    containers = sidecars.containers(events, entities)
    drafts: dict[str, list[_Draft]] = {}
    for event in witnesses.of_ends(events, findings, reporters, entities):
        entity = entities.of(event)
        own = containers.get(entity, sidecars.Containers())
        if own.is_of_sidecar(event):
            _add(drafts.setdefault(own.of(event), []), event, entity, False, ())
    return _in_order(replace(_finish(draft), container=name) for name, found in drafts.items() for draft in found)


def _in_order(deaths: Iterable[Death]) -> tuple[Death, ...]:
    return tuple(sorted(deaths, key=lambda d: (d.time_s is None, d.time_s or 0.0, d.entity, d.container)))


def _stirring(events: Sequence[Event], entities: Entities) -> dict[str, list[float]]:
    """Entity → times at which anybody reports its exit, its start or its restart."""
    times: dict[str, list[float]] = {}
    for event in events:
        ended = event.kind in witnesses.KINDS and event.kind != "kernel_oom"
        restarted = event.kind == "container_started" or "Scheduled restart job" in event.text
        if (ended or restarted) and event.time.utc_s is not None:
            times.setdefault(entities.of(event), []).append(event.time.utc_s)
    return times


def _outlived(event: Event, entity: str, lives: Sequence[Life], stirring: Mapping[str, list[float]]) -> bool:
    """True when a run of the entity was at work before a kill and went on for minutes after it: a helper was killed."""
    when = event.time.utc_s
    if when is None or any(-JOIN_S <= moment - when <= LINGER_S for moment in stirring.get(entity, ())):
        return False
    for life in lives:
        began, worked = life.start.time.utc_s, life.last_activity and life.last_activity.time.utc_s
        if life.entity != entity or began is None or not worked:
            continue
        if began < when and worked > when + LINGER_S + min(event.time.uncertainty_s, 1800.0):
            return True
    return False


def _add(drafts: list[_Draft], event: Event, entity: str, is_kill: bool, lives: Sequence[Life]) -> None:
    when = event.time.utc_s
    best: _Draft | None = None
    distance = float("inf")
    for draft in drafts:
        if draft.entity != entity or _of_another_container(draft, event) or _of_another_job(draft, event):
            continue
        gap = _gap(draft, when, event.time.uncertainty_s, is_kill)
        if gap is None and _is_of_its_job(draft, event):
            gap = UNDATED_S
        if gap is not None and gap < distance:
            best, distance = draft, gap
    if best is None:
        life = _stopped(entity, when, lives) or jobs.run_of(jobs.job_of(event), lives)
        best = _Draft(entity, when, life=life, lingers=is_kill)
        drafts.append(best)
    best.witnesses.append(event)
    if not best.time_s:
        best.time_s = when


def _of_another_job(draft: _Draft, event: Event) -> bool:
    """True for a scheduler's word on the end of another job than the run says that it was."""
    job = jobs.job_of(event)
    return draft.life is not None and bool(job) and draft.life.job not in ("", job)


def _is_of_its_job(draft: _Draft, event: Event) -> bool:
    """True for the end of the batch job that a run was, where nothing ties the clocks of those who tell of it."""
    job, life = jobs.job_of(event), draft.life
    if not job or life is None or (is_dated(event.time) and is_dated(life.end.time)):
        return False
    return life.job == job or (not life.job and jobs.bears(life.sources, job))


def _of_another_container(draft: _Draft, event: Event) -> bool:
    """True when the kernel kills in one container after another, or the main process of a unit exits once more.

    In a restart loop each is a death of its own. Kills of one moment are one death: one at the pod's limit takes all
    its containers.
    """
    if event.fields.get("process") == "main":
        told = (e for e in draft.witnesses if e.locator.source == event.locator.source)
        ends = (e.time.utc_s for e in told if e.fields.get("process") == "main")
        return any(end is not None and abs((event.time.utc_s or end) - end) > SAME_KILL_S for end in ends)
    if event.kind != "kernel_oom" or not event.scope.container_id or event.time.utc_s is None:
        return False
    return any(
        kill.kind == "kernel_oom"
        and kill.scope.container_id not in ("", event.scope.container_id)
        and kill.time.utc_s is not None
        and abs(event.time.utc_s - kill.time.utc_s) > SAME_KILL_S
        for kill in draft.witnesses
    )


def _stopped(entity: str, when: float | None, lives: Sequence[Life]) -> Life | None:
    """The run whose log stops nearest to the time of a death: a killed process says nothing."""
    near: dict[float, Life] = {}
    for life in lives:
        end = life.end.time.utc_s
        if life.entity == entity and when is not None and end is not None and -JOIN_S <= when - end <= LINGER_S:
            near.setdefault(abs(when - end), life)
    return near[min(near)] if near else None


def _gap(draft: _Draft, when: float | None, uncertainty_s: float, is_kill: bool) -> float | None:
    """Seconds between a draft and a witness when they may be one death, else none."""
    if when is None:
        return 0.0 if draft.time_s is None else UNDATED_S  # nothing better is known about an undated witness
    if not draft.time_s:  # a log without times, of which nobody has told yet how it ended
        return UNDATED_S if draft.life is not None and not draft.witnesses else None
    slack = min(uncertainty_s, 1800.0 if is_kill else 120.0)
    after = when - draft.time_s
    before_s = LINGER_S if is_kill else JOIN_S  # a kill comes a grace period before the exit
    after_s = LINGER_S if draft.life is not None or draft.lingers else JOIN_S
    return abs(after) if -before_s - slack <= after <= after_s + slack else None


def _only_run(event: Event, lives: Sequence[Life], pasted: Set[str]) -> str:
    """The only engine there is, for a container's state or event that was pasted without the name of its pod.

    Where there is no log, `pasted` has the containers of which pasted events speak. What lies in a file that is named
    after a store or a gateway is theirs.
    """
    file = event.locator.source.rpartition("/")[2].lower()
    if NO_ENGINE.search(file) and not ENGINE_PROGRAM.search(file):
        return ""
    names = {life.entity for life in lives} or pasted if event.kind in _STATES or _is_nameless(event) else frozenset()
    return next(iter(names)) if len(names) == 1 else ""


def _is_nameless(event: Event) -> bool:
    """An event from a table that was pasted without the object it is of."""
    return event.kind == "k8s_event" and not event.fields.get("object_name")


def _sole_engine(drafts: Sequence[_Draft], event: Event, nodes: Nodes) -> str:
    """A kill without a container in its path belongs to the only engine there is, when the victim looks like one.

    Not when no run of it can have ended so, or it ran elsewhere: it was somebody else's process.
    """
    if not hits_engine(event):
        return ""
    lives = [draft.life for draft in drafts if draft.life is not None]
    names = {life.entity for life in lives if not nodes.apart(life.entity, event)}
    own = any(life.entity in names and may_have_ended(life, event) for life in lives)
    return next(iter(names)) if len(names) == 1 and own else ""


def _finish(draft: _Draft) -> Death:
    exit_code, reason, container = None, "", ""
    for event in sorted(draft.witnesses, key=witnesses.trust):
        exit_code = witnesses.exit_code(event, exit_code)
        reason = str(event.fields.get("reason") or "") or reason
        container = (event.scope.container if event.kind in witnesses.KINDS else "") or container
    moment = draft.time_s
    if draft.life is not None and draft.life.fatal is None and draft.life.crash is None:
        # the log only stops; the exit says when
        exits = [event.time.utc_s for event in draft.witnesses if event.kind in witnesses.KINDS and event.time.utc_s]
        moment = min(exits, default=moment)
    return Death(
        draft.entity,
        moment,
        tuple(sorted(draft.witnesses, key=witnesses.place)),
        draft.life,
        exit_code,
        reason,
        _graceful(draft, exit_code, reason),
        container,
    )


def _graceful(draft: _Draft, exit_code: int | None, reason: str) -> bool:
    """An orderly stop: the engine drained, or the container ended with 0 or 143, and nothing speaks of a kill.

    `OOMKilled` beside 143 also tells of a helper that was killed at some time: then the engine's own words decide.
    """
    life = draft.life
    drained = exit_code in (0, 143) and life is not None and life.shutdown is not None
    killed = reason == "Evicted" or (reason == "OOMKilled" and not drained)
    if killed or any(event.kind == "kernel_oom" for event in draft.witnesses):
        return False
    if life is not None and (life.fatal is not None or life.crash is not None):
        return False
    if any(witnesses.is_completed(event) for event in draft.witnesses):
        return True
    if exit_code in (0, 143) and stopped_for(draft.witnesses):
        return True
    if exit_code in (0, 143):
        return life is None or life.shutdown is not None or exit_code == 143
    return exit_code is None and life is not None and life.shutdown is not None


def stopped_for(told: Iterable[Event]) -> str:
    """The container of the same task whose end made the scheduler stop this one; empty when nobody says so."""
    return next((str(event.fields["stopped_for"]) for event in told if "stopped_for" in event.fields), "")


def engine_like(death: Death) -> bool:
    """True when the dead thing looks like an inference engine."""
    if death.life is not None:
        return True
    return any(
        hits_engine(event) or (event.channel == "ray" and _RAY_SERVER.search(event.text)) for event in death.witnesses
    )


def group(deaths: Iterable[Death], gap_s: float = ONE_INCIDENT_S) -> list[list[Death]]:
    """Deaths of one entity that follow each other within `gap_s` are one incident: a restart loop is one thing."""
    groups: list[list[Death]] = []
    last: dict[str, int] = {}
    for death in deaths:
        index = last.get(death.entity)
        previous = groups[index][-1].time_s if index is not None else None
        if index is not None and (not death.time_s or not previous or death.time_s - previous <= gap_s):
            groups[index].append(death)
        else:
            last[death.entity] = len(groups)
            groups.append([death])
    return groups
