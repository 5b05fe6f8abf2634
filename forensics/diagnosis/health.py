"""Bundles in which nothing went wrong, as far as they show: health, and the doubts that forbid to say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..model import Event, Finding, Role
from ..parsers.kernel_oom_lines import killed
from ..parsers.records import MACHINE, unwrap
from ..regexes import lazy_regex
from . import bystanders, impact, jobs, rank, rules, told, trends
from . import evidence as evidence_stage
from .case import Case, conclude
from .deaths import ONE_INCIDENT_S, PROBE_KILLS
from .entities import hits_engine
from .judge import Judged, assemble
from .model import Confidence, Death, Decoy, Hypothesis, Incident, Life, Phase, Trend
from .rules import serving

_ORDERLY = ("k8s.scaled", "k8s.rollout_done", "ray.serve_downscaled")
"""Who says that a change that somebody wanted took place."""
_SERVE_FAILED = (
    "ray.serve_unhealthy", "ray.serve_health_failed", "ray.serve_health_timeout", "ray.serve_replica_unhealthy",
)  # fmt: skip

_ANSWERED = ("stop", "length", "all")
"""How vLLM's counter says that a request ended with an answer."""
_BAD = frozenset({"ERROR", "CRITICAL", "FATAL"})
_WENT_WRONG = lazy_regex(r"(?i)\bexit(?:ed with)?(?: code| status)[: ]+[1-9]|##\[error\]|\berror: ")
"""How a step fails behind one that went well."""


def no_fault(case: Case) -> Incident:
    """Nothing died without being asked to: healthy when somebody was seen at work, else nothing can be said."""
    findings: list[Finding] = []
    for death in case.deaths:
        if not bystanders.is_of_another_namespace(case, death.entity):
            findings += rules.exits.rules(case, death)
    working = [life for life in case.lives if life.ready is not None or life.last_activity is not None]
    for life in working:
        place = life.ready or life.last_activity or life.start
        findings.append(conclude("service_healthy", place, {"phase": life.phase.value}))
    findings += _past_ends(case)
    stopped = [death for death in case.deaths if death.graceful]
    replaced = [*_replaced(case), *_drained(case)]
    planned = [f for f in case.named(*_ORDERLY) if f.fields.get("direction") != "up"]  # which is a wish, not yet a fact
    planned += replaced
    flat = [
        t for t in case.trends if t.name == "gpu_memory_used_mib" and t.word in ("flat", "plateau") and t.points >= 30
    ]
    for trend in flat[:1]:
        findings += [conclude("gpu_plateau", point_of(case, trend), {"gpu_memory_used_mib": trend.last})]
    findings += (*case.named(*_ORDERLY, "k8s.rollout_progress", "vllm.batch_done"), *replaced)
    scraped = [] if working else list(_answering(case))
    findings += scraped
    succeeded = list(_succeeded(case)) if len(working) == len(case.lives) else []  # all that is seen to run, works
    findings += succeeded
    doubts = [conclude("kill_in_output", event) for event in case.of_kind("log") if _is_unread_kill(case, event)][:1]
    doubts += told.ends(case)
    failed = case.named("slurm.node_failure", "slurm.accounting_failed")
    doubts += (f for f in failed if not jobs.is_of_others(f, case.jobs, case.lives))
    doubts += case.named("ray.job_failed")
    doubts += _failed_rollouts(case)
    doubts += filter(None, [serving.unexplained_failures(case), None if stopped or planned else _failed_in_front(case)])
    doubts += filter(partial(_ended_ours, case), case.named(*PROBE_KILLS, "k8s.evicted"))
    doubts += () if stopped or planned else filter(partial(_was_replica, case), case.named("k8s.pod_gone"))
    if (counted := bystanders.restarted(case)) is not None:
        doubts.append(conclude("restarts_counted", counted, {"restart_count": bystanders.restarts(counted)}))
    if (begun_anew := next(_machine_restarted(case), None)) is not None:
        doubts += [begun_anew, *case.named("systemd.journal_unclean")]
    findings += doubts
    healthy = bool(working or stopped or planned or flat or succeeded or scraped)
    healthy = healthy and not doubts and not broke_before_stop(case)
    cause = case.library.causes["healthy" if healthy else "insufficient_evidence"]
    hypothesis = rank.rank_one(cause, findings)
    if healthy:
        sure = any(life.last_activity is not None for life in working) and (stopped or bystanders.seen_running(case))
        sure = sure and not _harmed(case)
        seen = Confidence.LIKELY if working or stopped or succeeded or scraped else Confidence.POSSIBLE
        seen = Confidence.ESTABLISHED if sure else seen
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


def _past_ends(case: Case) -> list[Finding]:
    """The latest end that is history: the service works since. A kill of another program was never an end of it."""
    past = [d for d in case.deaths if not d.graceful and d.witnesses and bystanders.is_stale(case, d)]
    past = [
        d for d in past
        if any(map(hits_engine, d.witnesses)) or (d.entity and bystanders.may_be_engine(case, d.entity))
    ]  # fmt: skip
    latest = max(past, key=lambda death: death.time_s or 0.0, default=None)
    return [conclude("past_end", latest.witnesses[-1])] if latest is not None else []


def _replaced(case: Case) -> list[Finding]:
    """Replicas of Ray Serve that drained, where Serve has all that it wants, and nobody failed a check of health."""
    drained, healthy = (list(case.named(name)) for name in ("ray.serve_stopped", "ray.serve_healthy"))
    return [drained[-1], healthy[-1]] if drained and healthy and not any(case.named(*_SERVE_FAILED)) else []


def _drained(case: Case) -> list[Finding]:
    """The drain of a node and what was stopped for it, where a status says that the service runs unbroken."""
    drains = list(case.named("k8s.drain")) if bystanders.seen_running(case) else []
    return [*drains, *case.named("k8s.stopping_container")] if drains else []


def _succeeded(case: Case) -> Iterator[Finding]:
    """What a program says of itself that had something to do and has done it: a batch job, a run of tests."""
    found = [conclude("job_succeeded", job.event, job.fields, (job,)) for job in case.named("ray.job_succeeded")]
    found += [conclude("job_succeeded", run, run.fields) for run in case.of_kind("test_run", "job_done")]
    ended = [job for job in case.named(jobs.COMPLETED) if any(jobs.completed((job,), life) for life in case.lives)]
    found += [conclude("job_succeeded", job.event, job.fields, (job,)) for job in ended[:1]]
    for done in found:
        place = done.locator
        behind = (e for e in case.events if e.locator.source == place.source and e.locator.order > place.order)
        if not any(e.kind == "traceback" or e.level in _BAD or _WENT_WRONG.search(e.text) for e in behind):
            yield done


def _answering(case: Case) -> Iterator[Finding]:
    """Scrapes of an engine that has answered what it was asked and lets nobody wait, where a status says that it runs.

    Alone they tell of one moment, and nothing of what came then; of several, the last has to have answered more.
    """
    if case.lives or not bystanders.seen_running(case):
        return
    scrapes = [event for event in case.of_kind("metrics") if "requests_waiting" in event.fields]
    answers = [sum(int(e.fields.get(f"requests_{how}_total") or 0) for how in _ANSWERED) for e in scrapes]
    failed = sum(int(event.fields.get("requests_error_total") or 0) for event in scrapes)
    moved = len(scrapes) == 1 or answers[:1] < answers[-1:]
    well = failed < serving.MANY_SHARE * sum(answers) and not any(e.fields["requests_waiting"] for e in scrapes)
    if well and moved:
        yield conclude("service_healthy", scrapes[-1], scrapes[-1].fields)


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
    return not owner.startswith(("pod:", "uid:", "cid:")) and not outlived(case, kill.event)


def _is_unread_kill(case: Case, event: Event) -> bool:
    """True for the kernel's words where the kernel does not speak, behind the last sign of life.

    A user may have sent them, or a copy put them there: nothing is proved, least of all that nobody was killed.
    """
    if event.channel in MACHINE or "Killed process " not in event.text:
        return False
    return killed(unwrap(event.text).text.removeprefix("kernel: ")) is not None and not outlived(case, event)


def _failed_in_front(case: Case) -> Finding | None:
    """Server errors of a gateway in a number that no service calls well: what it could not reach is not in the bundle.

    Its good answers are not looked for; each of its other lines counts as one.
    """
    lines = {source.path: source.lines for source in case.sources}
    failed: dict[str, list[Event]] = {}
    for event in impact.server_errors(case):
        if impact.is_front(case, event):
            failed.setdefault(event.locator.source, []).append(event)
    for source, events in failed.items():
        count = sum(event.count for event in events)
        if count >= max(serving.MANY, serving.MANY_SHARE * lines.get(source, 0)):
            status = [event.fields["status"] for event in events]
            fields = {"failed_requests": count, "http_status": max(set(status), key=status.count)}
            return conclude("requests_failed", events[0], fields)
    return None


def _machine_restarted(case: Case) -> Iterator[Finding]:
    """Starts of a machine behind the last line of an engine that worked on it, and that nothing had stopped.

    Both bear the machine's name, so one clock dates them; of what is hours later the log tells nothing.
    """
    for boot in case.named("kernel.boot"):
        host, began_s = boot.event.scope.host, boot.time.utc_s
        for life in case.lives:
            ended_s = life.end.time.utc_s
            if not host or life.end.scope.host != host or life.shutdown or began_s is None or ended_s is None:
                continue
            if 0.0 < began_s - ended_s <= ONE_INCIDENT_S:
                yield conclude("machine_restarted", boot.event, {"outage_s": round(began_s - ended_s)}, (boot,))


def _was_replica(case: Case, gone: Finding) -> bool:
    """True for a pod that somebody still knew, and that was called as one which is at work now."""
    return any(bystanders.are_alike(f"pod:{gone.fields['pod']}", life.entity) for life in case.lives)


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
    again = moment.utc_s is not None and any(s is not None and s > moment.latest_s for s in later)
    return ours and not kill.quoted and not again and not outlived(case, kill.event)


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


def outlived(case: Case, fault: Event) -> bool:
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


def broke_before_stop(case: Case) -> bool:
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
