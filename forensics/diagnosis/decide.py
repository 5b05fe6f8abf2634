"""From findings to the answer: build the case, judge its deaths, choose the incident that matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..model import Event, Finding, Locator, Samples, Source
from ..signatures import Library
from . import (
    asked,
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
    rules,
    told,
    trends,
    unowned,
    written,
)
from . import deaths as death_stage
from . import evidence as evidence_stage
from . import nodes as node_stage
from .case import Case
from .health import no_fault
from .judge import first_cause, incidents_of, served
from .leading import CRASH_LOOP, has_verdict, in_order, is_only_heard_of
from .model import Confidence, Death, Decoy, Diagnosis, Incident
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
            or bystanders.is_stale(case, death)
            or bystanders.is_of_another_namespace(case, death.entity)
            or _retyped(case, death)
            or any(bystanders.is_elsewhere(case, e) for e in death.witnesses)
        )
    ]
    failures = [death for death in failures if not unowned.is_strangers(case, death, failures)]
    failures = [death for death in failures if not _got_over(case, death, failures)]
    unasked = [death for death in failures if asked.is_beside(case, death.entity)]
    failures = [death for death in failures if death not in unasked]
    essential = _essential(case)
    groups = death_stage.group(
        death
        for death in failures
        if _may_be_engines(case, death) or any(case.entities.same(name, death.entity) for name in essential)
    )
    beside = [death for death in failures if not case.lives and bystanders.is_beside_engine(case, death.entity)]
    if not groups and not case.lives:
        left = [death for death in failures if death not in beside]
        unknown = [death for death in left if not bystanders.is_something_else(case, death.entity)]
        groups = death_stage.group(unknown or left)
    if not groups:
        # nothing of the engine ended: what was killed beside it for its memory is what somebody saw
        killed = (death for death in case.asides if _for_memory(death) and not bystanders.is_stale(case, death))
        groups = death_stage.group(killed)
    incidents = [incident for group in groups for incident in incidents_of(case, group)]
    explained = any(map(has_verdict, incidents))
    incidents += long_after(case, incidents)
    if explained:
        incidents += _surer_beside(case, incidents)
    else:
        incidents += without_death(case, incidents)
    if not incidents:
        incidents = [incident for group in death_stage.group(beside) for incident in incidents_of(case, group)]
    if not incidents:
        incidents = [no_fault(case)]
    ordered = in_order(case, incidents) + _of_others(case, unasked)
    diagnosis = _answer(case, tuple(replace(i, id=f"I{n}") for n, i in enumerate(ordered, 1)))
    return replace(diagnosis, asked=case.asked) if unasked else diagnosis


def _of_others(case: Case, deaths: Sequence[Death]) -> list[Incident]:
    """The trouble of other engines whose logs are here, although nobody asked about them."""
    own = death_stage.group(death for death in deaths if bystanders.speaks_as_engine(case, death.entity))
    found = [incident for group in own for incident in incidents_of(case, group)]
    return in_order(case, [incident for incident in found if has_verdict(incident)])


def _may_be_engines(case: Case, death: Death) -> bool:
    like = death_stage.engine_like(death) and not bystanders.is_another_unit(case, death)
    like = like or bystanders.may_be_engine(case, death.entity)
    return like and not bystanders.is_foreign(case, death.entity)


def _essential(case: Case) -> frozenset[str]:
    """Containers without which a task cannot be: for their end the scheduler stopped the engine beside them."""
    told = ((death_stage.stopped_for(death.witnesses), death) for death in case.deaths)
    return frozenset(f"ctr:{name}" for name, death in told if name and _may_be_engines(case, death))


def _for_memory(death: Death) -> bool:
    return death.reason == "OOMKilled" or any(event.kind == "kernel_oom" for event in death.witnesses)


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
    namespaces: dict[str, set[str]] = {}
    for event in events:
        kinds.setdefault(event.kind, []).append(event)
        if event.scope.namespace:
            namespaces.setdefault(joined.of(event), set()).add(event.scope.namespace)
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
    if old := written.of_another_day(sources, events, found_lives) | written.under_test(events, found_lives):
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
        {entity: frozenset(names) for entity, names in namespaces.items()},
        tuple(told.by_people(events)),
    )
    # Exit code 143 looks orderly, but it is none when a probe asked for it; nor is 0 of a server nobody stopped.
    return replace(
        case,
        asked=asked.of(case),
        deaths=tuple(replace(death, graceful=death.graceful and _orderly(case, death)) for death in found_deaths),
    )


def _told_to_stop(death: Death) -> bool:
    life = death.life
    return death.exit_code == 143 or (life is not None and life.shutdown is not None and life.ready is None)


NODE_GONE = (
    "host.spot_interruption", "k8s.node_not_ready", "k8s.node_shutdown", "kubelet.shutdown", "systemd.shutdown",
)  # fmt: skip
"""What says that a node was taken away."""


def _got_over(case: Case, death: Death, others: Sequence[Death]) -> bool:
    """An error that another program got over, beside an engine's log or somebody's end."""
    beside = any(bystanders.speaks_as_engine(case, life.entity) for life in case.lives)
    beside = beside or any(other.entity != death.entity and other.entity for other in others)
    return beside and death.life is not None and bystanders.went_on(death.life)


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
    wanted = rules.exits.stop_request(case, death) is not None or bool(death_stage.stopped_for(death.witnesses))
    if rules.probes.probe_kill_of(case, death) is not None or rules.exits.reclaimed(case, death):
        return False
    stops = [d for d in case.deaths if case.entities.same(d.entity, death.entity) and _told_to_stop(d)]
    if death in stops and len(stops) >= CRASH_LOOP and not wanted:
        return False  # nobody plans three stops in a row
    if death.reason == "OOMKilled" and not wanted:
        return False
    if death.life is not None and death.life.unfinished and death.exit_code is None and _node_gone(case, death):
        return False  # the node went while requests were still running
    return death.exit_code != 0 or death.life is not None or wanted


def _surer_beside(case: Case, incidents: Sequence[Incident]) -> list[Incident]:
    """Trouble of an engine at work, or of a machine, beside ends of others that are only heard of.

    Where the log is nobody's, an end of a pod may be its own, and explains more than what the log complains of.
    """
    heard = [i for i in incidents if has_verdict(i)]
    if not all(is_only_heard_of(case, i) and _is_apart(case, i.entity) for i in heard):
        return []
    used = frozenset(f.locator for i in heard for f in i.hypotheses[0].evidence)
    return [i for i in without_death(case, (), used) if i.hypotheses[0].confidence is not Confidence.POSSIBLE]


def _is_apart(case: Case, entity: str) -> bool:
    """True for nobody in particular, and for what is another thing than all that has a log here."""
    named = (not life.entity.startswith("file:") or bystanders.cannot_be(case, entity, life) for life in case.lives)
    return bystanders.is_unidentified(case, entity) or (bool(case.lives) and all(named))


def _node_gone(case: Case, death: Death) -> bool:
    return any(not evidence_stage.objection(case, death, finding) for finding in case.named(*NODE_GONE))


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
