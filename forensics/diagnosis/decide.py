"""From findings to the answer: build the case, judge its deaths, choose the incident that matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..model import Event, Finding, Locator, Samples, Source
from ..signatures import Library
from . import (
    bystanders,
    engines,
    facts,
    gaps,
    impact,
    jobs,
    ledger,
    lives,
    placing,
    platforms,
    rank,
    rules,
    trends,
    written,
)
from . import deaths as death_stage
from . import evidence as evidence_stage
from . import nodes as node_stage
from .case import Case
from .health import no_fault
from .judge import first_cause, incidents_of, served
from .model import CONFIDENCE_ORDER, Death, Decoy, Diagnosis, Incident
from .quiet import long_after, without_death


def diagnose(
    sources: Sequence[Source],
    events: Sequence[Event],
    samples: Sequence[Samples],
    findings: Sequence[Finding],
    library: Library,
) -> Diagnosis:
    """The answer for a bundle. All inputs in timeline order; the result depends on nothing else."""
    case = build_case(sources, events, samples, findings, library)
    failures = [
        death
        for death in case.deaths
        if not (
            death.graceful
            or _stale(case, death)
            or _retyped(case, death)
            or any(bystanders.is_elsewhere(case, e) for e in death.witnesses)
        )
    ]
    groups = death_stage.group(
        death
        for death in failures
        if not bystanders.is_foreign(case, death.entity)
        and (death_stage.engine_like(death) or bystanders.may_be_engine(case, death.entity))
    )
    beside = [death for death in failures if not case.lives and bystanders.is_beside_engine(case, death.entity)]
    if not groups and not case.lives:
        groups = death_stage.group(death for death in failures if death not in beside)
    if not groups:
        # nothing of the engine ended: what was killed beside it for its memory is what somebody saw
        killed = (death for death in case.asides if _for_memory(death) and not _stale(case, death))
        groups = death_stage.group(killed)
    incidents = [incident for group in groups for incident in incidents_of(case, group)]
    if any(has_verdict(incident) for incident in incidents):
        incidents += long_after(case, incidents)
    else:
        incidents += without_death(case, incidents)
    if not incidents:
        incidents = [incident for group in death_stage.group(beside) for incident in incidents_of(case, group)]
    if not incidents:
        incidents = [no_fault(case)]
    newest_s = max((i.start_s for i in incidents if i.start_s is not None), default=0.0)
    overcome, last = _overcome(incidents), _stopped_before(incidents) | _of_strangers(case, incidents)
    incidents.sort(key=lambda incident: (id(incident) in last, *_importance(case, incident, overcome, newest_s)))
    told = [i for n, i in enumerate(incidents) if not _retold(i, incidents[:n])]
    return _answer(case, tuple(replace(i, id=f"I{n}") for n, i in enumerate(told, 1)))


def _for_memory(death: Death) -> bool:
    return death.reason == "OOMKilled" or any(event.kind == "kernel_oom" for event in death.witnesses)


def _retold(incident: Incident, before: Sequence[Incident]) -> bool:
    """True for an incident of nobody that has the cause and the time of another one: a witness that named no owner."""
    return not incident.entity and any(
        other.hypotheses[0].cause.id == incident.hypotheses[0].cause.id
        and (
            incident.start_s is None or other.start_s is None or abs(incident.start_s - other.start_s) <= RETOLD_S
        )
        for other in before
    )


def build_case(
    sources: Sequence[Source],
    events: Sequence[Event],
    samples: Sequence[Samples],
    findings: Sequence[Finding],
    library: Library,
) -> Case:
    """Index the facts and derive entities, lives, deaths and trends from them."""
    findings = written.quoted(sources, findings, frozenset())
    joined = placing.build(events, samples)
    at: dict[tuple[str, int], list[Finding]] = {}
    hits: dict[str, list[Finding]] = {}
    kinds: dict[str, list[Event]] = {}
    for finding in findings:
        at.setdefault((finding.locator.source, finding.locator.order), []).append(finding)
        hits.setdefault(finding.signature, []).append(finding)
    for event in events:
        kinds.setdefault(event.kind, []).append(event)
    specs: dict[str, Event] = {}
    containers: dict[tuple[str, str], Event] = {}
    for event in kinds.get("pod_spec", ()):
        name = str(event.fields.get("container") or event.scope.container)
        containers.setdefault((joined.of(event), name), event)
        spec = specs.setdefault(joined.of(event), event)
        if event.fields.get("gpus") and not spec.fields.get("gpus"):
            specs[joined.of(event)] = event
    phases = {s.id: s.phase for s in library.signatures.values() if s.phase}
    found_lives = lives.build(events, at, phases, samples, joined)
    if old := written.of_another_day(sources, events, found_lives):
        findings = written.quoted(sources, findings, old)
        return build_case(sources, written.as_talk(events, old), samples, findings, library)
    witnesses = frozenset(s.id for s in library.signatures.values() if s.witness)
    known_jobs = jobs.known(events, findings)
    machines = node_stage.build(events, sources, joined)
    found_deaths = death_stage.build(events, findings, found_lives, joined, witnesses, machines)
    case = Case(
        sources,
        events,
        findings,
        samples,
        found_lives,
        found_deaths,
        joined,
        trends.build(samples, joined),
        library,
        kinds,
        hits,
        specs,
        containers,
        death_stage.asides(events, findings, joined, witnesses),
        lives.inside(found_lives, at),
        known_jobs,
        machines,
    )
    # Exit code 143 looks orderly, but it is none when a probe asked for it; nor is 0 of a server nobody stopped.
    return replace(
        case,
        deaths=tuple(replace(death, graceful=death.graceful and _orderly(case, death)) for death in found_deaths),
    )


def _told_to_stop(death: Death) -> bool:
    life = death.life
    return death.exit_code == 143 or (life is not None and life.shutdown is not None and life.ready is None)


RETOLD_S = 300.0
NODE_GONE = (
    "host.spot_interruption", "k8s.node_not_ready", "k8s.node_shutdown", "kubelet.shutdown", "systemd.shutdown",
)  # fmt: skip
"""What says that a node was taken away."""
CRASH_LOOP = 3


def _stale(case: Case, death: Death) -> bool:
    """An exit that only a status remembers, days before everything else: a service that works since is no incident."""
    if death.life is not None or not death.time_s:
        return False
    if death.witnesses and all(bystanders.is_shaky(case, event) for event in death.witnesses):
        return False  # its year is a guess
    working = [life.last_activity for life in case.lives if life.last_activity is not None]
    long_after_s = death.time_s + bystanders.LONG_PAST_S
    return any(event.time.utc_s is not None and event.time.utc_s > long_after_s for event in working)


def _retyped(case: Case, death: Death) -> bool:
    """A command line that was rejected, typed anew below, and served: whoever sits at the prompt mended it."""
    life = death.life
    if life is None or life.fatal is None or life.fatal.signature not in lives.COMMAND_ERRORS:
        return False
    source, place = life.start.locator.source, life.fatal.locator.order
    typed = [f.locator.order for f in case.named(*ledger.TYPED) if f.locator.source == source]
    return any(
        other.start.locator.source == source
        and served(other)
        and any(place < order <= (other.ready or other.end).locator.order for order in typed)
        for other in case.lives
    )


def _orderly(case: Case, death: Death) -> bool:
    asked = rules.exits.stop_request(case, death) is not None
    if rules.probes.probe_kill_of(case, death) is not None or rules.exits.reclaimed(case, death):
        return False
    stops = [d for d in case.deaths if case.entities.same(d.entity, death.entity) and _told_to_stop(d)]
    if death in stops and len(stops) >= CRASH_LOOP and not asked:
        return False  # nobody plans three stops in a row
    if death.reason == "OOMKilled" and not asked:
        return False
    if death.life is not None and death.life.unfinished and death.exit_code is None and _node_gone(case, death):
        return False  # the node went while requests were still running
    return death.exit_code != 0 or death.life is not None or asked


def _overcome(incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents after which the same entity had another one with a cause."""
    return frozenset(
        id(earlier)
        for n, later in enumerate(incidents)
        for earlier in incidents[:n]
        if has_verdict(later) and earlier.entity == later.entity
    )


def _stopped_before(incidents: Sequence[Incident]) -> frozenset[int]:
    """Ids (`id()`) of the incidents in which something was told to stop and took too long, where others failed unasked.

    A rollout kills the old replica that does not end in time; what matters is that the new one does not start, also
    where nothing says why.
    """
    asked = [i for i in incidents if {f.signature for f in i.hypotheses[0].decisive} == {"derived.killed_after_grace"}]
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
            and not any(rank.matches(other.hypotheses[0].cause.explains, f) for f in engine.hypotheses[0].decisive)
            for engine in own
        )
    )


def _sureness(incident: Incident) -> int:
    return CONFIDENCE_ORDER.index(incident.hypotheses[0].confidence)


def _is_loop(incident: Incident) -> bool:
    counts = (event.fields.get("restart_count") for death in incident.deaths for event in death.witnesses)
    return any(isinstance(count, int) and count >= CRASH_LOOP for count in counts)


def _node_gone(case: Case, death: Death) -> bool:
    return any(not evidence_stage.objection(case, death, finding) for finding in case.named(*NODE_GONE))


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


def _answer(case: Case, incidents: tuple[Incident, ...]) -> Diagnosis:
    main = incidents[0]
    verdict = main.hypotheses[0]
    derived = _unique(f for i in incidents for h in i.hypotheses for f in (*h.evidence, *h.against))
    derived += [f for i in incidents for f in (*i.contributing, *i.hypotheses[0].onset)]
    everything = sorted(_unique((*case.findings, *derived)), key=evidence_stage.order)
    numbered = {id(f): f"F{n}" for n, f in enumerate(everything, 1)}
    named = {(f.signature, f.locator): numbered[id(f)] for f in everything}
    incidents = tuple(_numbered(incident, named) for incident in incidents)
    here = platforms.platforms_of(case, incidents[0])
    main, verdict = replace(incidents[0], decoys=_no_decoys_of(incidents)), incidents[0].hypotheses[0]
    incidents = (main, *incidents[1:])
    return Diagnosis(
        incidents=incidents,
        verdict=verdict,
        first_cause=first_cause(verdict),
        findings=tuple(_with_id(f, named) for f in everything),
        lives=tuple(case.lives),
        ledgers=ledger.build(case, main),
        trends=tuple(case.trends),
        key_facts=facts.collect(case, main),
        gaps=gaps.find(case, main, here),
        decoys=main.decoys,
        impact=impact.measure(case, main),
        engine=engines.engine_of(case, main),
        platforms=here,
    )


def _no_decoys_of(incidents: Sequence[Incident]) -> tuple[Decoy, ...]:
    """The main incident's decoys without those that another incident rests on: they are causes, of something else."""
    causes = {(f.signature, f.locator) for i in incidents[1:] for f in i.hypotheses[0].decisive if has_verdict(i)}
    causes |= {(g.signature, g.locator) for i in incidents[1:] for f in i.hypotheses[0].decisive for g in f.rests_on}
    return tuple(d for d in incidents[0].decoys if (d.finding.signature, d.finding.locator) not in causes)


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    seen: dict[tuple[str, Locator], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.signature, finding.locator), finding)
    return list(seen.values())


def _with_id(finding: Finding, names: Mapping[tuple[str, Locator], str]) -> Finding:
    return replace(
        finding,
        id=names.get((finding.signature, finding.locator), ""),
        rests_on=tuple(_with_id(base, names) for base in finding.rests_on),
    )


def _numbered(incident: Incident, names: Mapping[tuple[str, Locator], str]) -> Incident:
    def own(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(_with_id(f, names) for f in _unique(findings))

    return replace(
        incident,
        hypotheses=tuple(
            replace(
                h,
                decisive=own(h.decisive),
                supporting=own(h.supporting),
                against=own(h.against),
                onset=own(h.onset),
            )
            for h in incident.hypotheses
        ),
        chain=tuple(replace(link, finding=_with_id(link.finding, names)) for link in incident.chain),
        consequences=own(incident.consequences),
        contributing=own(incident.contributing),
        evidence=own(incident.evidence),
        decoys=tuple(replace(d, finding=_with_id(d.finding, names)) for d in incident.decoys),
    )
