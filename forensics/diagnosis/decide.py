"""From findings to the answer: build the case, judge each death, choose the incident that matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..model import Event, Finding, Locator, Role, Samples, Source
from ..signatures import Library
from . import deaths as death_stage
from . import entities as entity_stage
from . import evidence as evidence_stage
from . import facts, gaps, impact, ledger, lives, rank, rules, trends
from .case import Case, conclude
from .model import ChainLink, Confidence, Death, Decoy, Diagnosis, Hypothesis, Incident, Life, Phase
from .rules.series import FULL_PCT, saturation

REFUSALS = ("vllm.context_length_exceeded", "vllm.request_bad", "vllm.request_too_big_for_kv", "vllm.queue_full", "tgi.overloaded")
REFUSED = frozenset({400, 413, 422, 429})
MANY_REFUSALS = 3


@dataclass(frozen=True, slots=True)
class _Judged:
    death: Death
    hypotheses: tuple[Hypothesis, ...]
    evidence: tuple[Finding, ...]
    decoys: tuple[Decoy, ...]

    @property
    def decided(self) -> bool:
        return bool(self.hypotheses) and bool(self.hypotheses[0].decisive)


def diagnose(
    sources: Sequence[Source],
    events: Sequence[Event],
    samples: Sequence[Samples],
    findings: Sequence[Finding],
    library: Library,
) -> Diagnosis:
    """The answer for a bundle. All inputs in timeline order; the result depends on nothing else."""
    case = build_case(sources, events, samples, findings, library)
    failures = [death for death in case.deaths if not death.graceful]
    groups = death_stage.group(death for death in failures if death_stage.engine_like(death) or _of_engine(case, death))
    if not groups and not case.lives:
        groups = death_stage.group(failures)
    incidents = [_incident(case, group, number) for number, group in enumerate(groups, 1)]
    if not any(_has_verdict(incident) for incident in incidents):
        incidents += _without_death(case, incidents)
    if not incidents:
        incidents = [_no_fault(case)]
    incidents.sort(key=_importance)
    return _answer(case, tuple(replace(i, id=f"I{n}") for n, i in enumerate(incidents, 1)))


def build_case(
    sources: Sequence[Source],
    events: Sequence[Event],
    samples: Sequence[Samples],
    findings: Sequence[Finding],
    library: Library,
) -> Case:
    """Index the facts and derive entities, lives, deaths and trends from them."""
    joined = entity_stage.build(sources, events)
    at: dict[tuple[str, int], list[Finding]] = {}
    hits: dict[str, list[Finding]] = {}
    kinds: dict[str, list[Event]] = {}
    for finding in findings:
        at.setdefault((finding.locator.source, finding.locator.line), []).append(finding)
        hits.setdefault(finding.signature, []).append(finding)
    for event in events:
        kinds.setdefault(event.kind, []).append(event)
    phases = {s.id: s.phase for s in library.signatures.values() if s.phase}
    found_lives = lives.build(events, at, phases, samples, joined)
    found_deaths = death_stage.build(events, findings, found_lives, joined)
    case = Case(
        sources, events, findings, samples, found_lives, found_deaths, joined, trends.build(samples, joined), library,
        kinds, hits,
    )  # fmt: skip
    # Exit code 143 looks orderly, but it is none when a probe asked for it.
    return replace(case, deaths=tuple(
        replace(death, graceful=death.graceful and rules.probes.probe_kill_of(case, death) is None) for death in found_deaths
    ))  # fmt: skip


def _of_engine(case: Case, death: Death) -> bool:
    """True when the dead entity serves a model: it has an engine log, GPUs, or an engine's arguments."""
    if any(case.entities.same(life.entity, death.entity) for life in case.lives):
        return True
    spec = case.spec(death.entity)
    if spec is None:
        return False
    words = " ".join(map(str, (*spec.fields.get("command", ()), *spec.fields.get("args", ()), spec.fields.get("image", ""))))
    return bool(spec.fields.get("gpus")) or bool(entity_stage.ENGINE_COMM.search(words))


def _judge(case: Case, death: Death) -> _Judged:
    sifted = evidence_stage.sift(case, death, case.findings)
    derived = tuple(finding for rule in rules.ALL for finding in rule(case, death))
    found = evidence_stage.distinct((*sifted.evidence, *derived))
    lines = sum(source.lines for source in case.sources)
    return _Judged(death, rank.rank(case.library, found, lines), found, sifted.decoys)


def _incident(case: Case, deaths: Sequence[Death], number: int) -> Incident:
    """One incident from the deaths of a loop: the first death that can be explained explains the loop."""
    judged = [_judge(case, death) for death in deaths]
    chosen = next((j for j in judged if j.decided), judged[0])
    hypotheses = chosen.hypotheses if chosen.decided else (_unknown(case, chosen), *chosen.hypotheses)
    hypotheses = (replace(hypotheses[0], confidence=_agreed(judged, chosen)), *hypotheses[1:])
    return _assemble(case, chosen, hypotheses, tuple(deaths))


def _agreed(judged: Sequence[_Judged], chosen: _Judged) -> Confidence:
    """Deaths of a loop as witnesses: the same cause again corroborates, an unexplained first death takes certainty."""
    if not chosen.decided:
        return Confidence.UNDETERMINED
    top = chosen.hypotheses[0]
    again = sum(j.decided and j.hypotheses[0].cause.id == top.cause.id for j in judged)
    if top.confidence is Confidence.LIKELY and again >= 2 and not top.against:
        return Confidence.ESTABLISHED
    if top.confidence is Confidence.ESTABLISHED and judged[0] is not chosen and again < 2:
        return Confidence.LIKELY
    return top.confidence


def _assemble(case: Case, judged: _Judged, hypotheses: tuple[Hypothesis, ...], deaths: tuple[Death, ...]) -> Incident:
    top = hypotheses[0]
    used = {(f.signature, f.locator) for f in top.evidence}
    explained = tuple(
        f for f in judged.evidence
        if (f.signature, f.locator) not in used
        and (f.role is Role.CONSEQUENCE or rank.matches(top.cause.explains, f))
    )  # fmt: skip
    times = [death.time_s for death in deaths if death.time_s]
    start = min((rank.first_s(top.decisive), *times), default=float("inf"))
    return Incident(
        id="",
        entity=judged.death.entity,
        start_s=start if start not in (0.0, float("inf")) else None,
        end_s=max(times) if times else None,
        deaths=deaths,
        hypotheses=hypotheses,
        chain=_chain(top, explained, deaths),
        consequences=tuple(sorted(explained, key=evidence_stage.order)),
        decoys=judged.decoys,
        contributing=tuple(
            f for f in judged.evidence
            if f.role is Role.SYMPTOM and (f.signature, f.locator) not in used and f not in explained
        ),
        observations=tuple(f for f in judged.evidence if f.signature.startswith("derived.")),
    )  # fmt: skip


def _chain(top: Hypothesis, explained: Sequence[Finding], deaths: Sequence[Death]) -> tuple[ChainLink, ...]:
    root = first_cause(top)
    links = [ChainLink(root, "root")] if root is not None else []
    seen = {root.signature} if root is not None else set()
    for finding in sorted(explained, key=evidence_stage.order):
        if finding.signature not in seen and len(links) < 8:
            seen.add(finding.signature)
            links.append(ChainLink(finding, "explained"))
    return tuple(links)


def first_cause(hypothesis: Hypothesis) -> Finding | None:
    """The line that a reader should look at first: the earliest decisive finding, printed lines before derived ones."""
    if not hypothesis.decisive:
        ends = [f for f in hypothesis.supporting if f.signature == "derived.unexplained_exit"]
        return min(ends, key=evidence_stage.order, default=None)
    ground = [base for f in hypothesis.decisive for base in (f.rests_on or (f,))]
    earliest = min(ground, key=evidence_stage.order)
    same_moment = [f for f in ground if f.time.earliest_s <= earliest.time.latest_s + REPORT_DELAY_S]
    return min(same_moment, key=lambda f: (_distance(f), round(f.time.uncertainty_s, 1), *evidence_stage.order(f)), default=earliest)


REPORT_DELAY_S = 2.0
"""The kernel's line, containerd's, kubelet's and the event of one fact come within this time."""
_DISTANCES = {"kernel": 0, "nvidia": 0, "runtime": 3, "kubelet": 4, "k8s": 5}


def _distance(finding: Finding) -> int:
    """How far a source is from the fact: the kernel acts, the kubelet hears of it, an event retells it."""
    return _DISTANCES.get(finding.event.channel, 1)


def _unknown(case: Case, judged: _Judged) -> Hypothesis:
    cause = case.library.causes["insufficient_evidence"]
    draft = rank.rank_one(cause, judged.evidence)
    return replace(draft, confidence=Confidence.UNDETERMINED)


def _has_verdict(incident: Incident) -> bool:
    return incident.hypotheses[0].cause.id not in rank.NO_FAULT


def _without_death(case: Case, known: Sequence[Incident]) -> Iterator[Incident]:
    """Trouble that nobody died of here: a fault line without its victim, a full KV cache, refused requests."""
    if known:
        return
    for finding in case.findings:
        if finding.role is not Role.CAUSE or finding.quoted or _survived(case, finding):
            continue
        death = Death(case.entities.of(finding.event), finding.time.utc_s, (finding.event,), None, None, "", False)
        judged = _judge(case, death)
        if judged.decided:
            yield _assemble(case, judged, judged.hypotheses, ())
            return
    for build in (_saturated, _refused):
        found = build(case)
        if found is not None:
            yield found
            return


def _survived(case: Case, finding: Finding) -> bool:
    """True when some engine went on working after a fault, or the fault is another's."""
    for life in case.lives:
        if finding.locator.source in life.sources:
            if finding.locator.source == life.start.locator.source and finding.locator.line < life.last_sign_line:
                return True
            continue
        activity = life.last_activity
        if activity is None or activity.time.utc_s is None or finding.time.utc_s is None:
            continue
        if activity.time.utc_s > finding.time.utc_s + 60.0:
            return True
    return False


def _saturated(case: Case) -> Incident | None:
    for trend in case.trends:
        if trend.name == "kv_cache_usage_pct" and saturation(case, trend):
            samples = next(s for s in case.samples if s.name == trend.name and s.source == trend.source)
            point = next(p for p in trends.points_of(samples) if p[1] >= FULL_PCT)
            finding = conclude("kv_saturated", trends.event_at(samples, point), {"kv_cache_usage_pct": trend.maximum})
            preempted = tuple(case.named("vllm.preempted_v0", "sglang.retract"))
            return _alone(case, "kv_saturation", (finding, *preempted), trend.entity)
    return None


def _refused(case: Case) -> Incident | None:
    """Requests answered with 400, 413, 422 or 429, or messages that say why."""
    refusals = tuple(case.named(*REFUSALS))
    answers = [event for event in case.of_kind("access") if event.fields.get("status") in REFUSED]
    total = max(sum(f.event.count for f in refusals), sum(event.count for event in answers))
    planned = any(death.graceful for death in case.deaths)  # a rollout or a stop is what the bundle is about
    if not total or planned or (total < MANY_REFUSALS and sum(s.lines for s in case.sources) > 200):
        return None
    place = refusals[0].event if refusals else answers[0]
    fields = {"requests_refused": total, **(refusals[0].fields if refusals else {})}
    finding = conclude("requests_refused", place, fields, refusals[:1])
    return _alone(case, "request_rejected", (finding, *refusals), case.entities.of(place))


def _alone(case: Case, cause: str, evidence: tuple[Finding, ...], entity: str) -> Incident:
    death = Death(entity, evidence[0].time.utc_s, (), None, None, "", False)
    hypothesis = rank.rank_one(case.library.causes[cause], evidence)
    lines = sum(source.lines for source in case.sources)
    confidence = Confidence.LIKELY if lines >= 10 else Confidence.POSSIBLE
    decoys = evidence_stage.sift(case, death, case.findings).decoys
    return _assemble(case, _Judged(death, (), evidence, decoys), (replace(hypothesis, confidence=confidence),), ())


def _no_fault(case: Case) -> Incident:
    """Nothing died without being asked to: healthy when somebody was seen at work, else nothing can be said."""
    findings: list[Finding] = []
    for death in case.deaths:
        findings += [f for rule in (rules.exits.rules,) for f in rule(case, death)]
    working = [life for life in case.lives if life.ready is not None or life.last_activity is not None]
    for life in working:
        place = life.ready or life.last_activity or life.start
        findings.append(conclude("service_healthy", place, {"phase": life.phase.value}))
    findings += [f for f in case.named("k8s.rollout_progress") if not f.quoted]
    stopped = [death for death in case.deaths if death.graceful]
    healthy = bool(working or stopped)
    cause = case.library.causes["healthy" if healthy else "insufficient_evidence"]
    hypothesis = rank.rank_one(cause, findings)
    if healthy:
        sure = bool(working) and any(life.last_activity is not None for life in working)
        hypothesis = replace(hypothesis, confidence=Confidence.ESTABLISHED if sure else Confidence.LIKELY)
    entity = working[0].entity if working else stopped[0].entity if stopped else ""
    decoys = tuple(
        Decoy(f, evidence_stage.harmless_reason(f, stopped))
        for f in case.findings
        if f.role in (Role.CAUSE, Role.SYMPTOM, Role.CONSEQUENCE)
    )
    death = Death(entity, None, (), None, None, "", True)
    return _assemble(case, _Judged(death, (), tuple(findings), decoys), (hypothesis,), ())


def _importance(incident: Incident) -> tuple[bool, int, float, str]:
    """Incidents with a cause first, then those with more deaths, then the earlier."""
    return (
        not _has_verdict(incident),
        -len(incident.deaths),
        incident.start_s if incident.start_s is not None else float("inf"),
        incident.entity,
    )


def _answer(case: Case, incidents: tuple[Incident, ...]) -> Diagnosis:
    main = incidents[0]
    verdict = main.hypotheses[0]
    derived = _unique(f for i in incidents for h in i.hypotheses for f in (*h.evidence, *h.against))
    everything = sorted(_unique((*case.findings, *derived)), key=evidence_stage.order)
    numbered = {id(f): f"F{n}" for n, f in enumerate(everything, 1)}
    named = {(f.signature, f.locator): numbered[id(f)] for f in everything}
    incidents = tuple(_numbered(incident, named) for incident in incidents)
    main, verdict = incidents[0], incidents[0].hypotheses[0]
    return Diagnosis(
        incidents=incidents,
        verdict=verdict,
        first_cause=first_cause(verdict),
        findings=tuple(_with_id(f, named) for f in everything),
        lives=tuple(case.lives),
        ledgers=ledger.build(case, main),
        trends=tuple(case.trends),
        key_facts=facts.collect(case, main),
        gaps=gaps.find(case, main),
        decoys=main.decoys,
        impact=impact.measure(case, main),
    )


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    seen: dict[tuple[str, Locator], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.signature, finding.locator), finding)
    return list(seen.values())


def _with_id(finding: Finding, names: Mapping[tuple[str, Locator], str]) -> Finding:
    return replace(
        finding, id=names.get((finding.signature, finding.locator), ""),
        rests_on=tuple(_with_id(base, names) for base in finding.rests_on),
    )  # fmt: skip


def _numbered(incident: Incident, names: Mapping[tuple[str, Locator], str]) -> Incident:
    def own(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(_with_id(f, names) for f in _unique(findings))

    return replace(
        incident,
        hypotheses=tuple(
            replace(h, decisive=own(h.decisive), supporting=own(h.supporting), against=own(h.against))
            for h in incident.hypotheses
        ),
        chain=tuple(replace(link, finding=_with_id(link.finding, names)) for link in incident.chain),
        consequences=own(incident.consequences),
        contributing=own(incident.contributing),
        decoys=tuple(replace(d, finding=_with_id(d.finding, names)) for d in incident.decoys),
    )
