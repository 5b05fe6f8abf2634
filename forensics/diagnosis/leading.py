"""Which of several incidents leads: what somebody asks about, known best, before what was overcome or is another's."""

from __future__ import annotations

from collections.abc import Sequence

from . import bystanders, rank
from . import deaths as death_stage
from . import evidence as evidence_stage
from .case import Case
from .model import CONFIDENCE_ORDER, Confidence, Incident

RETOLD_S = 300.0
CRASH_LOOP = 3


def in_order(case: Case, incidents: Sequence[Incident]) -> list[Incident]:
    """Incidents with the one that leads first, without those that only retell another one."""
    newest_s = max((i.start_s for i in incidents if i.start_s is not None), default=0.0)
    overcome = _overcome(incidents)
    last = _stopped_before(incidents) | _of_strangers(case, incidents) | _only_heard_of(case, incidents)
    last |= _in_passing(case, incidents) | _explained(incidents)
    ordered = sorted(incidents, key=lambda i: (id(i) in last, *_importance(case, i, overcome, newest_s)))
    return [i for n, i in enumerate(ordered) if not _retold(i, ordered[:n])]


def _retold(incident: Incident, before: Sequence[Incident]) -> bool:
    """True for an incident of nobody that has the cause and the time of another one: a witness that named no owner."""
    return not incident.entity and any(
        other.hypotheses[0].cause.id == incident.hypotheses[0].cause.id
        and (
            incident.start_s is None or other.start_s is None or abs(incident.start_s - other.start_s) <= RETOLD_S
        )
        for other in before
    )


def _overcome(incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents after which the same entity had another one with a cause."""
    return frozenset(
        id(earlier)
        for n, later in enumerate(incidents)
        for earlier in incidents[:n]
        if has_verdict(later) and earlier.entity == later.entity
    )


def _stopped_before(incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents in which something was told to stop and took too long, or ended at the time limit
    that it was submitted with, where others failed unasked.

    A rollout kills the old replica that does not end in time; what matters is that the new one does not start, also
    where nothing says why.
    """
    asked = [i for i in incidents if rank.is_slow_stop(i.hypotheses[0]) or rank.is_scheduled(i.hypotheses[0])]
    others = [i for i in incidents if i not in asked and (has_verdict(i) or _is_loop(i))]
    return frozenset(
        id(stop)
        for stop in asked
        if any(
            stop.start_s is None or other.start_s is None
            or other.start_s > stop.start_s - evidence_stage.NODE_BEFORE_S
            for other in others
        )
    )  # fmt: skip


def _of_strangers(case: Case, incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents of logs in which no engine speaks, and that explain nothing of an engine's own.

    Such a log may be a rank's, or the error that somebody cut out of the engine's; then its cause is the engine's, or
    explains it. Where that has a cause apart, known no worse, the other log is another program's.
    """
    own = [i for i in incidents if has_verdict(i) and bystanders.speaks_as_engine(case, i.entity)]
    strange = [i for i in incidents if bystanders.speaks_as_engine(case, i.entity) is False]
    return frozenset(
        id(other)
        for other in strange
        if any(
            _sureness(engine) <= _sureness(other)
            and engine.hypotheses[0].cause != other.hypotheses[0].cause
            and not bystanders.are_alike(engine.entity, other.entity)
            and not _explains(other, engine)
            for engine in own
        )
    )


def _explained(incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents that another one of the same engine explains: its second log says more."""
    return frozenset(
        id(incident)
        for incident in incidents
        for other in incidents
        if other.entity != incident.entity
        and bystanders.are_alike(other.entity, incident.entity)
        and other.hypotheses[0].cause != incident.hypotheses[0].cause
        and _explains(other, incident)
        and not _explains(incident, other)
    )


def is_only_heard_of(case: Case, incident: Incident) -> bool:
    """True for what is no more than possible, of somebody whose log is not here: a status, a lone line of a kernel."""
    possible = incident.hypotheses[0].confidence is Confidence.POSSIBLE
    return has_verdict(incident) and possible and not case.lives_of(incident.entity)


def _only_heard_of(case: Case, incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents that are only heard of, where something surer is known that they do not explain."""
    return frozenset(
        id(heard)
        for heard in incidents
        if is_only_heard_of(case, heard)
        and any(
            has_verdict(known)
            and _sureness(known) < _sureness(heard)
            and not (_may_concern(case, heard, known) and _explains(heard, known))
            for known in incidents
        )
    )


def _in_passing(case: Case, incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents that only lines in another service's log tell of, where that one was described.

    An export of a whole namespace holds everybody's troubles; the pod whose status somebody added is asked about. What
    befell a replica, or another service at that moment, may be the same trouble.
    """
    asked = [i for i in incidents if case.spec(i.entity) is not None and any(death.witnesses for death in i.deaths)]
    return frozenset(
        id(other)
        for other in incidents
        if _logs(case, other) and case.spec(other.entity) is None
        and not any(death.witnesses for death in other.deaths)
        and any(
            _logs(case, other) <= _logs(case, own)
            and not bystanders.are_alike(own.entity, other.entity)
            and own.start_s is not None and other.start_s is not None
            and abs(own.start_s - other.start_s) > RETOLD_S
            for own in asked
        )
    )  # fmt: skip


def _logs(case: Case, incident: Incident) -> set[str]:
    return {source for life in case.lives_of(incident.entity) for source in life.sources}


def _explains(one: Incident, other: Incident) -> bool:
    """True when the cause of one incident explains something that decides another one."""
    return any(rank.matches(one.hypotheses[0].cause.explains, f) for f in other.hypotheses[0].decisive)


def _may_concern(case: Case, one: Incident, other: Incident) -> bool:
    """True when two incidents may be of one service: ranks, replicas, or a log that names nobody."""
    if any(bystanders.cannot_be(case, one.entity, life) for life in case.lives_of(other.entity)):
        return False
    nameless = bystanders.is_unidentified(case, one.entity) or other.entity.startswith("file:") or not other.entity
    return nameless or case.nodes.spanning or bystanders.are_alike(one.entity, other.entity)


def _sureness(incident: Incident) -> int:
    return CONFIDENCE_ORDER.index(incident.hypotheses[0].confidence)


def _is_loop(incident: Incident) -> bool:
    counts = (event.fields.get("restart_count") for death in incident.deaths for event in death.witnesses)
    return any(isinstance(count, int) and count >= CRASH_LOOP for count in counts)


def _importance(
    case: Case, incident: Incident, overcome: frozenset[int], newest_s: float
) -> tuple[bool, bool, bool, bool, int, float, str]:
    """With a cause first, then an engine's, then those not overcome, the latest day's, more deaths, the earlier.

    Somebody asks about what happened last; on that day the earlier one may have caused the later, but not where the
    same service was well in between.
    """
    served = bool(case.lives_of(incident.entity))
    return (
        not has_verdict(incident),
        not (served or case.spec(incident.entity) is not None),
        id(incident) in overcome,
        incident.start_s is not None and newest_s - incident.start_s > death_stage.ONE_INCIDENT_S,
        -len(incident.deaths),
        incident.start_s if incident.start_s is not None else float("inf"),
        incident.entity,
    )


def has_verdict(incident: Incident) -> bool:
    return incident.hypotheses[0].cause.id not in rank.NO_FAULT
