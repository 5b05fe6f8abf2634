"""Bundles in which nothing died: faults without a victim, saturation, refused requests, and plain health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..model import Event, Finding, Role
from ..parsers.kernel_oom_lines import killed
from ..parsers.records import MACHINE, unwrap
from . import bystanders, jobs, rank, rules, saturated, trends
from . import evidence as evidence_stage
from .case import Case, conclude
from .deaths import ONE_INCIDENT_S, PROBE_KILLS
from .entities import ENGINE_COMM
from .judge import Judged, assemble, judge
from .model import Confidence, Death, Decoy, Hypothesis, Incident, Life, Phase, Trend
from .raised import raised
from .rules import serving
from .rules.series import rising

REFUSALS = (
    "vllm.context_length_exceeded",
    "vllm.request_bad",
    "vllm.request_too_big_for_kv",
    "vllm.queue_full",
    "tgi.overloaded",
    "tgi.request_too_long",
    "vllm.model_not_found",
    "llamacpp.request_too_long",
    "trtllm.request_too_long",
    "sglang.request_too_long",
)
REFUSED = frozenset({400, 413, 422, 429})
REFUSED_CALLS = frozenset({401, 403, 404, 405})
"""Refusals of a call to the API, where there are several, or a message says why.

One alone is a slip of somebody; of any other path they are somebody looking around, or a probe's wrong address.
"""
NEAR_LINES = 40
"""An exception stands this close before the answer that it spoilt."""
INTERNAL_ERROR = 500
"""What a web framework answers for an exception that nobody caught."""
MANY_REFUSALS = 3
WORTH_TELLING = 0.1
"""Less than this share of the refusals is not what they are about."""
MANY_SHARE = 0.02
"""Refusals per line of the log: a busy server refuses a few requests every day."""


def without_death(case: Case, known: Sequence[Incident]) -> Iterator[Incident]:
    """Trouble that nobody died of here: a fault line without its victim, a full KV cache, refused requests."""
    if known:
        return
    faults = [f for f in case.findings if f.role is Role.CAUSE and not f.quoted and not _survived(case, f)]
    others = [f for f in faults if bystanders.tells_of_one(case, f.event)]
    full = () if _broke_before_stop(case) else (_saturated,)
    first, last = partial(_fault, [f for f in faults if f not in others]), partial(_fault, others)
    trouble = (_counted, *full, _standing, _queueing, _leaking)
    for build in (first, *trouble, last, _starved, _failing, _refused, _raised):
        found = build(case)
        if found is not None:
            yield found
            return


def _fault(faults: Sequence[Finding], case: Case) -> Incident | None:
    """The first of some fault lines that explains something."""
    for finding in faults:
        death = Death(case.entities.of(finding.event), finding.time.utc_s, (finding.event,), None, None, "", False)
        judged = judge(case, death)
        if judged.decided:
            return assemble(case, judged, judged.hypotheses, (), evidence_stage.decoys(case, death))
    return None


def long_after(case: Case, known: Sequence[Incident]) -> Iterator[Incident]:
    """A KV cache that is full long after the last end: the service overcame that one, and the present leads."""
    last_s = max((death.time_s or 0.0 for incident in known for death in incident.deaths), default=0.0)
    found = saturated.for_long(case, last_s + ONE_INCIDENT_S) if last_s else None
    if found is not None:
        yield _alone(case, "kv_saturation", *found)


def _survived(case: Case, finding: Finding) -> bool:
    """True when some engine went on working after a fault, or the fault is another's."""
    owner = case.entities.of(finding.event)
    machine = finding.event.channel in ("kernel", "runtime", "systemd")
    if machine and owner and case.lives and not bystanders.may_be_engine(case, owner):
        return True
    comm = str(finding.event.fields.get("victim_comm") or "")
    if comm and not owner and case.lives and not ENGINE_COMM.search(comm):
        return True
    event = finding.event
    return bystanders.is_elsewhere(case, event) or bystanders.is_past(case, event) or _outlived(case, event)


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


def _broke_before_stop(case: Case) -> bool:
    """True where an engine said that it is gone before it was told to stop, though that stands behind the stop.

    Lines whose order was lost make a death look like the noise of a stop: nothing that needs a living engine is sure.
    """
    gone = {s.id for s in case.library.signatures.values() if s.phase == Phase.DEAD}
    stops = [life.shutdown for life in case.lives if life.shutdown is not None]
    return any(
        stop.locator.source == f.locator.source and stop.locator.order < f.locator.order
        and stop.time.utc_s is not None and f.time.utc_s is not None and f.time.utc_s < stop.time.utc_s - 1.0
        for f in case.findings if f.signature in gone and not f.quoted
        for stop in stops
    )  # fmt: skip


def _saturated(case: Case) -> Incident | None:
    """A full KV cache, by the best of the ways to know it."""
    found = saturated.by_any(case)
    return _alone(case, "kv_saturation", *found) if found else None


def _counted(case: Case) -> Incident | None:
    """A kill for memory of which only a counter is left."""
    found = rules.host.counted_kill(case)
    return _alone(case, "host_oom.container_limit", (found,), case.entities.of(found.event)) if found else None


def _standing(case: Case) -> Incident | None:
    """An engine that does not move while requests run: whoever saved the log did so before anything ended it."""
    found = sorted(serving.standstills(case), key=lambda item: (not item[1], evidence_stage.order(item[0][0])))
    for evidence, clear in found[:1]:
        most = Confidence.LIKELY if clear else Confidence.POSSIBLE
        return _alone(case, "engine_timeout", evidence, _printed_by(case, evidence[0]), most)
    return None


def _queueing(case: Case) -> Incident | None:
    """Requests that wait and wait although the cache has room: what runs at once is limited by something else."""
    for evidence in serving.queues(case):
        return _alone(case, "kv_saturation", evidence, _printed_by(case, evidence[0]))
    return None


def _printed_by(case: Case, finding: Finding) -> str:
    """Whose log a line, or a point of a series, stands in."""
    return case.entities.name_of(finding.event.scope, finding.locator.source)


def _leaking(case: Case) -> Incident | None:
    """GPU memory that climbs and climbs: what dies of it has not died yet, or was restarted in time."""
    found = rising(case)
    owners = {life.entity for life in case.lives}
    return _alone(case, "gpu_oom.leak", tuple(found), owners.pop() if len(owners) == 1 else "") if found else None


def _starved(case: Case) -> Incident | None:
    """Connections that an engine could not accept for want of a file descriptor, while those it had went on."""
    logs = {source for life in case.lives for source in life.sources}
    wants = tuple(f for f in case.named("python.too_many_files") if f.locator.source in logs)
    if sum(f.event.count for f in wants) < MANY_REFUSALS:
        return None
    limits = tuple(case.named("vllm.ulimit_low"))
    return _alone(case, "config_error", (*wants, *limits), case.entities.of(wants[0].event))


def _failing(case: Case) -> Incident | None:
    """Requests that the engine answered with a server error right after an exception, again and again: it serves on."""
    lines = {source.path: source.lines for source in case.sources}
    for life, failed, answered in serving.failures(case):
        long = lines.get(life.start.locator.source, 0) > 200
        rare = long and (len(failed) < MANY_REFUSALS or len(failed) < MANY_SHARE * answered)
        raised = _raised_before(case, failed)
        if raised is not None and not rare:
            count = sum(event.count for event in failed)
            fields = {"exception": raised.fields.get("exception") or raised.text[:80], "failed_requests": count}
            return _alone(case, "app_bug", (conclude("request_exception", raised, fields),), life.entity)
    failure = serving.unexplained_failures(case)
    if failure is not None and failure.fields["http_status"] == INTERNAL_ERROR and "failed_requests" in failure.fields:
        return _alone(case, "app_bug", (failure,), case.entities.of(failure.event), Confidence.POSSIBLE)
    return None


def _raised(case: Case) -> Incident | None:
    """An exception that nothing surrounds: it is all that is known of the engine that raised it."""
    found = raised(case)
    return _alone(case, found[0], (found[1],), case.entities.of(found[1].event)) if found is not None else None


def _raised_before(case: Case, failed: Sequence[Event]) -> Event | None:
    """The exception printed just before the first failed request for which there is one."""
    for answer in failed:
        place = answer.locator
        near = [
            event
            for event in case.of_kind("traceback")
            if event.locator.source == place.source and 0 < place.order - event.locator.order <= NEAR_LINES
        ]
        if near:
            return near[-1]
    return None


def _refused(case: Case) -> Incident | None:
    """Requests that the server answered with a refusal, or messages that say why."""
    refusals = tuple(case.named(*REFUSALS))
    answers = [event for event in case.of_kind("access") if event.fields.get("status") in REFUSED]
    calls = [event for event in case.of_kind("access") if _is_refused_call(event)]
    if refusals or sum(event.count for event in calls) >= MANY_REFUSALS:
        answers += calls
    total = max(sum(f.event.count for f in refusals), sum(event.count for event in answers))
    planned = any(death.graceful for death in case.deaths)  # a rollout or a stop is what the bundle is about
    logs = {f.locator.source for f in refusals} | {event.locator.source for event in answers}
    lines = sum(s.lines for s in case.sources if s.path in logs)
    rare = lines > 200 and (total < MANY_REFUSALS or total < MANY_SHARE * lines)
    if not total or planned or rare:
        return None
    told = _statuses(answers, total)
    place = refusals[0].event if refusals else next(e for e in answers if e.fields["status"] == told["http_status"])
    fields = {"requests_refused": total, **told, **(refusals[0].fields if refusals else {})}
    finding = conclude("requests_refused", place, fields, refusals[:1])
    return _alone(case, "request_rejected", (finding, *refusals), case.entities.of(place))


def _statuses(answers: Sequence[Event], total: int) -> dict[str, Any]:
    """The most frequent status; how many were refused for how they called, and for what they asked."""
    counts = Counter[int]()
    for event in answers:
        counts[event.fields["status"]] += event.count
    calls = sum(count for status, count in counts.items() if status in REFUSED_CALLS)
    told = {"http_status": counts.most_common(1)[0][0] if counts else None, "calls_refused": calls or None}
    asked = total - calls
    return {**told, "contents_refused": asked if asked >= WORTH_TELLING * total else None}


def _is_refused_call(event: Event) -> bool:
    called = event.fields.get("method") == "POST" and str(event.fields.get("path")).startswith("/v1/")
    return called and event.fields.get("status") in REFUSED_CALLS


def _alone(
    case: Case, cause: str, evidence: tuple[Finding, ...], entity: str, most: Confidence = Confidence.LIKELY
) -> Incident:
    death = Death(entity, evidence[0].time.utc_s, (), None, None, "", False)
    hypothesis = rank.rank_one(case.library.causes[cause], evidence)
    lines = sum(source.lines for source in case.sources)
    weak = all(f.signature in rank.WEAK for f in hypothesis.decisive)
    confidence = most if lines >= 10 and not weak else Confidence.POSSIBLE
    decoys = tuple(d for d in evidence_stage.decoys(case, death) if d.finding not in evidence)
    return assemble(case, Judged(death, (), evidence), (replace(hypothesis, confidence=confidence),), (), decoys)


_ORDERLY = ("k8s.scaled", "k8s.rollout_done", "ray.serve_downscaled")
"""Who says that a change that somebody wanted took place."""


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
    planned = [f for f in case.named(*_ORDERLY) if f.fields.get("direction") != "up"]  # which is a wish, not yet a fact
    flat = [
        t for t in case.trends if t.name == "gpu_memory_used_mib" and t.word in ("flat", "plateau") and t.points >= 30
    ]
    for trend in flat[:1]:
        findings += [conclude("gpu_plateau", point_of(case, trend), {"gpu_memory_used_mib": trend.last})]
    findings += case.named(*_ORDERLY, "k8s.rollout_progress")
    doubts = [conclude("kill_in_output", event) for event in case.of_kind("log") if _is_unread_kill(case, event)][:1]
    doubts += filter(partial(_may_be_ours, case), case.named("slurm.node_failure"))
    doubts += _failed_rollouts(case)
    doubts += filter(None, [serving.unexplained_failures(case)])
    doubts += filter(partial(_ended_ours, case), case.named(*PROBE_KILLS, "k8s.evicted"))
    findings += doubts
    healthy = bool(working or stopped or planned or flat) and not bystanders.restarted(case) and not doubts
    healthy = healthy and not _broke_before_stop(case)
    cause = case.library.causes["healthy" if healthy else "insufficient_evidence"]
    hypothesis = rank.rank_one(cause, findings)
    if healthy:
        sure = any(life.last_activity is not None for life in working) and (stopped or bystanders.seen_running(case))
        sure = sure and not _harmed(case)
        seen = Confidence.ESTABLISHED if sure else Confidence.LIKELY if working or stopped else Confidence.POSSIBLE
        if any(_nobodys_kill(case, kill) for kill in case.named("kernel.oom_kill_node")) or _unasked(case):
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


def _harmed(case: Case) -> bool:
    """True when requests failed, were still running at the end, or the kernel killed a helper: not all was well."""
    killed = (case.lives_of(case.entities.of(event)) for event in case.of_kind("kernel_oom"))
    return any(killed) or any(life.unfinished or failed for life, failed, _ in serving.failures(case))


def _unasked(case: Case) -> bool:
    """True when a busy engine was stopped and came up again in the same place, and nothing says who asked for it.

    A rollout makes a new pod. Whoever restarts in place may be a person, or a watchdog that found it unhealthy.
    """
    for death in case.deaths:
        life = death.life
        if life is None or not death.graceful or life.last_activity is None or rules.exits.stop_request(case, death):
            continue
        later = (other for other in case.lives_of(death.entity) if other is not life and other.from_start)
        if any(_after(other, life) for other in later):
            return True
    return False


def _after(other: Life, life: Life) -> bool:
    begin, end = other.start, life.end
    if begin.locator.source == end.locator.source:
        return begin.locator.order > end.locator.order
    return begin.time.utc_s is not None and end.time.utc_s is not None and begin.time.utc_s >= end.time.utc_s


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


def _may_be_ours(case: Case, told: Finding) -> bool:
    """False for what a scheduler says of a job that no engine of the bundle was."""
    return not case.lives or not all(jobs.is_of_another(jobs.job_of(told), case.jobs, life) for life in case.lives)


def _failed_rollouts(case: Case) -> Iterator[Finding]:
    """Rollouts that did not become ready in time, unless the same source says later that one did."""
    done = [finding.locator for finding in case.named("k8s.rollout_done")]
    for failed in case.named("k8s.progress_deadline"):
        place = failed.locator
        if not any(later.source == place.source and later.order > place.order for later in done):
            yield failed


def _ended_ours(case: Case, kill: Finding) -> bool:
    """True for a kill of the engine by the kubelet that no death was made of, and that no run is seen to outlive."""
    owner, moment = case.entities.of(kill.event), kill.time
    ours = not owner or any(case.entities.same(owner, life.entity) for life in case.lives)
    later = (life.start.time.utc_s for life in case.lives)
    outlived = moment.utc_s is not None and any(s is not None and s > moment.latest_s for s in later)
    return ours and not kill.quoted and not outlived and not _outlived(case, kill.event)


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
