"""Bundles in which nothing died: faults without a victim, saturation, refused requests, and plain health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Event, Finding, Role, Samples
from ..parsers.kernel_oom_lines import killed
from ..parsers.records import MACHINE, unwrap
from . import bystanders, rank, rules, trends
from . import evidence as evidence_stage
from .case import Case, conclude
from .entities import ENGINE_COMM
from .judge import Judged, assemble, judge
from .model import Confidence, Death, Decoy, Hypothesis, Incident, Trend
from .rules.series import FULL_PCT, saturation

REFUSALS = (
    "vllm.context_length_exceeded",
    "vllm.request_bad",
    "vllm.request_too_big_for_kv",
    "vllm.queue_full",
    "tgi.overloaded",
)
REFUSED = frozenset({400, 413, 422, 429})
MANY_REFUSALS = 3
MANY_SHARE = 0.02
"""Refusals per line of the log: a busy server refuses a few requests every day."""


def without_death(case: Case, known: Sequence[Incident]) -> Iterator[Incident]:
    """Trouble that nobody died of here: a fault line without its victim, a full KV cache, refused requests."""
    if known:
        return
    for finding in case.findings:
        if finding.role is not Role.CAUSE or finding.quoted or _survived(case, finding):
            continue
        death = Death(case.entities.of(finding.event), finding.time.utc_s, (finding.event,), None, None, "", False)
        judged = judge(case, death)
        if judged.decided:
            yield assemble(case, judged, judged.hypotheses, (), evidence_stage.decoys(case, death))
            return
    for build in (_saturated, _refused):
        found = build(case)
        if found is not None:
            yield found
            return


def _survived(case: Case, finding: Finding) -> bool:
    """True when some engine went on working after a fault, or the fault is another's."""
    owner = case.entities.of(finding.event)
    machine = finding.event.channel in ("kernel", "runtime", "systemd")
    if machine and owner and case.lives and not bystanders.may_be_engine(case, owner):
        return True
    comm = str(finding.event.fields.get("victim_comm") or "")
    if comm and not owner and case.lives and not ENGINE_COMM.search(comm):
        return True
    return _outlived(case, finding.event)


def _outlived(case: Case, fault: Event) -> bool:
    """True when some engine went on working after a fault."""
    for life in case.lives:
        if fault.locator.source in life.sources:
            if fault.locator.source == life.start.locator.source and fault.locator.order < life.last_sign:
                return True
            continue
        activity = life.last_activity
        if activity is None or activity.time.utc_s is None or fault.time.utc_s is None:
            continue
        began = life.start.time.utc_s
        if began is not None and began < fault.time.utc_s and activity.time.utc_s > fault.time.utc_s + 60.0:
            return True
    return False


def _saturated(case: Case) -> Incident | None:
    for columns in _kv_series(case):
        full = [(p[0], s.source, s, p) for s in columns for p in trends.points_of(s) if p[1] >= FULL_PCT]
        if not full or not saturation(columns):
            continue
        *_, samples, point = min(full, key=lambda item: item[:2])
        fields = {"kv_cache_usage_pct": _peak(columns)}
        waiting = [s for s in case.samples if s.name == "requests_waiting" and s.source in {c.source for c in columns}]
        if waiting:
            fields["requests_waiting"] = _peak(waiting)
        finding = conclude("kv_saturated", trends.event_at(samples, point), fields)
        preempted = tuple(case.named("vllm.preempted_v0", "sglang.retract"))
        entity = case.entities.name_of(samples.scope, samples.source)
        return _alone(case, "kv_saturation", (finding, *preempted), entity)
    return None


def _kv_series(case: Case) -> Sequence[Sequence[Samples]]:
    """KV cache usage by file; scrapes of one moment each, saved as a file each, are one series per owner."""
    groups: dict[tuple[str, str], list[Samples]] = {}
    for samples in case.samples:
        if samples.name == "kv_cache_usage_pct":
            owner = case.entities.name_of(samples.scope, samples.source)
            scraped = len(samples.values) == 1
            key = ("" if owner.startswith("file:") else owner, "") if scraped else ("", samples.source)
            groups.setdefault(key, []).append(samples)
    return list(groups.values())


def _peak(columns: Sequence[Samples]) -> float:
    return max(value for samples in columns for value in samples.values)


def _refused(case: Case) -> Incident | None:
    """Requests answered with 400, 413, 422 or 429, or messages that say why."""
    refusals = tuple(case.named(*REFUSALS))
    answers = [event for event in case.of_kind("access") if event.fields.get("status") in REFUSED]
    total = max(sum(f.event.count for f in refusals), sum(event.count for event in answers))
    planned = any(death.graceful for death in case.deaths)  # a rollout or a stop is what the bundle is about
    logs = {f.locator.source for f in refusals} | {event.locator.source for event in answers}
    lines = sum(s.lines for s in case.sources if s.path in logs)
    rare = lines > 200 and (total < MANY_REFUSALS or total < MANY_SHARE * lines)
    if not total or planned or rare:
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
    decoys = evidence_stage.decoys(case, death)
    return assemble(case, Judged(death, (), evidence), (replace(hypothesis, confidence=confidence),), (), decoys)


def no_fault(case: Case) -> Incident:
    """Nothing died without being asked to: healthy when somebody was seen at work, else nothing can be said."""
    findings: list[Finding] = []
    for death in case.deaths:
        findings += [f for rule in (rules.exits.rules,) for f in rule(case, death)]
    working = [life for life in case.lives if life.ready is not None or life.last_activity is not None]
    for life in working:
        place = life.ready or life.last_activity or life.start
        findings.append(conclude("service_healthy", place, {"phase": life.phase.value}))
    stopped = [death for death in case.deaths if death.graceful]
    planned = list(case.named("k8s.scaled", "k8s.rollout_progress"))
    flat = [
        t for t in case.trends if t.name == "gpu_memory_used_mib" and t.word in ("flat", "plateau") and t.points >= 30
    ]
    for trend in flat[:1]:
        findings += [conclude("gpu_plateau", point_of(case, trend), {"gpu_memory_used_mib": trend.last})]
    findings += planned
    doubts = [conclude("kill_in_output", event) for event in case.of_kind("log") if _is_unread_kill(case, event)][:1]
    findings += doubts
    healthy = bool(working or stopped or planned or flat) and not bystanders.restarted(case) and not doubts
    cause = case.library.causes["healthy" if healthy else "insufficient_evidence"]
    hypothesis = rank.rank_one(cause, findings)
    if healthy:
        sure = any(life.last_activity is not None for life in working) and (stopped or bystanders.seen_running(case))
        seen = Confidence.ESTABLISHED if sure else Confidence.LIKELY if working or stopped else Confidence.POSSIBLE
        if any(_nobodys_kill(case, kill) for kill in case.named("kernel.oom_kill_node")):
            seen = Confidence.POSSIBLE
        hypothesis = replace(_about_stops(hypothesis), confidence=seen)
    entity = working[0].entity if working else stopped[0].entity if stopped else ""
    decoys = tuple(
        Decoy(f, evidence_stage.harmless_reason(f, stopped))
        for f in case.findings
        if f.role in (Role.CAUSE, Role.SYMPTOM, Role.CONSEQUENCE)
    )
    death = Death(entity, None, (), None, None, "", True)
    return assemble(case, Judged(death, (), tuple(findings)), (hypothesis,), (), decoys)


def _nobodys_kill(case: Case, kill: Finding) -> bool:
    """True for a victim outside all pods and containers of a node without memory, that no engine is seen to outlive.

    Its name is no engine's, but a server may run under any name.
    """
    owner = case.entities.of(kill.event)
    return not owner.startswith(("pod:", "uid:", "cid:")) and not _outlived(case, kill.event)


def _is_unread_kill(case: Case, event: Event) -> bool:
    """True for the kernel's words where the kernel does not speak, behind the last sign of life.

    A user may have sent them, or a copy put them there: nothing is proved, least of all that nobody was killed.
    """
    if event.channel in MACHINE or "Killed process " not in event.text:
        return False
    return killed(unwrap(event.text).text.removeprefix("kernel: ")) is not None and not _outlived(case, event)


def _about_stops(healthy: Hypothesis) -> Hypothesis:
    """Where something was stopped, that it was an orderly stop decides; that engines work supports it."""
    stops = tuple(f for f in healthy.decisive if f.signature == "derived.graceful_stop")
    if not stops:
        return healthy
    rest = tuple(f for f in healthy.decisive if f not in stops)
    return replace(healthy, decisive=stops, supporting=(*rest, *healthy.supporting))


def point_of(case: Case, trend: Trend) -> Event:
    """The last point of a trend, as an event to quote."""
    samples = next(
        s for s in case.samples if s.name == trend.name and s.source == trend.source and s.scope.gpu == trend.gpu
    )
    return trends.event_at(samples, trends.points_of(samples)[-1])
