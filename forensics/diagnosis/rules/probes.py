"""Probes: was the container killed for a failed probe, in which phase, and would a longer budget have helped?

Budget before a kill: initialDelay + period × failureThreshold (kubelet counts from the container's start; no liveness
probe runs until the startup probe has succeeded).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ...model import Event, Finding
from ..case import Case, conclude
from ..deaths import HEALTH_KILLS, ONE_INCIDENT_S, PROBE_KILLS, STOP_SIGNATURES
from ..model import Death, Life, Phase
from ..timing import uptime_s
from ..witnesses import INSTANCE

DEFAULT_GRACE_S = 30.0
KILLING = ("liveness", "startup")
"""Probes that end a container; a readiness probe only takes it out of service."""
AT_ONCE_S = 2.0
"""The kubelet stops a container in the pass in which the last probe failed."""
HEALTH_KILL_S = 60.0
"""Who watches health checks looks at them every few seconds, and acts at once."""
_LOADED = (Phase.SERVING, Phase.DRAINING)
SAME_SPAN_S = 5.0
NOT_FOUND = 404
MOSTLY = 0.8
"""A run ended with its budget when it lasted for this share of it: a log begins late, and its last line is no end."""
_ASKED = ("runtime.sagemaker_ping_failed",)
"""Who gives up in the same words on a container that broke by itself."""


def rules(case: Case, death: Death) -> Iterator[Finding]:
    kill = probe_kill_of(case, death)
    if kill is None:
        yield from _budget_met(case, death)
        return
    life = death.life
    if life is not None and life.fatal is not None and _precedes(life.fatal, kill):
        yield conclude("engine_error_before_probe", life.fatal.event, life.fatal.fields, (life.fatal, kill))
        return
    spec = case.spec(death.entity)
    budgets = budgets_s(spec.fields) if spec is not None else {}
    probe = _probe_of(kill)
    budget = budgets.get(probe) or kill.fields.get("waited_s")
    phase = _phase_of(case, death, probe, budget)
    if budget is None and phase == "loading":
        budget = _measured_budget_s(case, death)
    load = load_time(case, death)
    up_s = uptime_s(case, death)
    fields: dict[str, Any] = {"probe": probe, **_known(probe_budget_s=budget, uptime_s=up_s and round(up_s, 1))}
    if load is not None:
        fields.update(load)
    fields.update(_answered(case, death, probe))
    earlier = _laps_before(case, death, kill) if phase == "loading" else ()
    yield conclude(f"probe_kill_{phase}", kill.event, fields, (*earlier, kill))
    needed = fields.get("load_time_s")
    if phase != "loading" or spec is None or probe not in budgets:
        return
    if budget is not None and needed is not None and needed > budget:
        period = float(spec.fields[f"{probe}_period_s"])
        delay = float(spec.fields.get(f"{probe}_delay_s") or 0)
        if spec.fields.get(f"{probe}_failure") != 1:  # one span is granted: there is no count to raise
            fields["failure_threshold_needed"] = int(-(-(1.2 * needed - delay) // period))
        yield conclude("probe_budget_short", spec, fields, (kill,))


def _laps_before(case: Case, death: Death, kill: Finding) -> tuple[Finding, ...]:
    """Kills of the same container in the loop that this one goes on with, whose runs the bundle does not show.

    They are the same thing, and the first of them is where it began; not behind a run that came to work.
    """
    if kill.signature not in HEALTH_KILLS or kill.time.utc_s is None:
        return ()
    worked = [life.end.time.utc_s or 0.0 for life in case.lives_of(death.entity) if _worked(life)]
    begin_s = max([kill.time.utc_s - ONE_INCIDENT_S, *(end for end in worked if end < kill.time.utc_s)])
    named = (f for f in case.named(kill.signature) if _names(case, f, death) and f is not kill)
    return tuple(f for f in named if f.time.utc_s is not None and begin_s < f.time.utc_s < kill.time.utc_s)


def _budget_met(case: Case, death: Death) -> Iterator[Finding]:
    """A loading run was told to stop just when a probe may first kill, and its container was started again.

    The `Killing` events may have expired. Whoever deletes a pod does not restart its container in place.
    """
    life, spec = death.life, case.spec(death.entity)
    if life is None or spec is None or life.shutdown is None or _worked(life) or not _in_place(case, death.entity):
        return
    start_s, stop_s = life.start.time.utc_s, life.shutdown.time.utc_s
    if start_s is None or stop_s is None:
        return
    for probe, budget_s in budgets_s(spec.fields).items():
        if probe == "health" and spec.fields.get("health_action", "none") == "none":
            continue  # docker leaves an unhealthy container alone
        up_s = round(stop_s - start_s, 1)
        if MOSTLY * budget_s <= up_s <= budget_s + 2 * DEFAULT_GRACE_S:
            fields: dict[str, Any] = {"probe": probe, "probe_budget_s": budget_s, "uptime_s": up_s}
            fields.update(load_time(case, death) or {})
            yield conclude("probe_budget_met", life.shutdown.event, fields, (life.shutdown,))
            return  # no liveness probe runs before the startup probe has succeeded


def _measured_budget_s(case: Case, death: Death) -> float | None:
    """What the probe grants where no spec says it: every container of the loop was told to stop after the same time."""
    spans = []
    starts = [e.time.utc_s for e in case.of_entity(case.of_kind("container_started"), death.entity)]
    for other in case.deaths:
        kill = probe_kill_of(case, other) if case.entities.same(other.entity, death.entity) else None
        when = kill.time.utc_s if kill is not None else None
        began = max((s for s in starts if s is not None and when is not None and s < when), default=None)
        if when is not None and began is not None:
            spans.append(when - began)
    alike = len(spans) > 1 and max(spans) - min(spans) <= max(SAME_SPAN_S, 0.02 * max(spans))
    return float(round(median(spans))) if alike else None


def _answered(case: Case, death: Death, probe: str) -> dict[str, Any]:
    """The status that the probe was answered with; with 404, the path that the server does not have."""
    told = [
        f
        for f in case.named(f"k8s.probe_failed_{probe}", "kubelet.probe_failed")
        if f.fields.get("status_code") is not None
        and str(f.fields.get("probe", probe)).lower() == probe
        and case.entities.same(case.entities.of(f.event), death.entity)
    ]
    if not told:
        return {}
    status = told[-1].fields["status_code"]
    spec = case.spec(death.entity)
    asked = [spec.fields.get(f"{probe}_path")] if spec is not None else []
    asked += [
        e.fields.get("path")
        for e in case.of_entity(case.of_kind("access"), death.entity)
        if (e.fields.get("method"), e.fields.get("status")) == ("GET", NOT_FOUND)
    ]
    path = next(filter(None, asked), None) if status == NOT_FOUND else None
    return {"probe_status_code": status, **({"missing_path": path} if path else {})}


def _worked(life: Life) -> bool:
    return life.ready is not None or life.last_activity is not None


def _served(life: Life) -> bool:
    return _worked(life) or life.phase is Phase.SERVING


def _told_to_stop_midway(life: Life) -> bool:
    """True for an excerpt of a log that shows nothing but the stop of a run, which may have served before."""
    return life.phase is Phase.DRAINING and not life.from_start


def _in_place(case: Case, entity: str) -> bool:
    """True when a container of the entity was started again."""
    counts = (e.fields.get("restart_count") for e in case.of_entity(case.of_kind("container_state"), entity))
    runs = case.lives_of(entity)
    return len(runs) > 1 or any(isinstance(count, int) and count > 0 for count in counts)


def _known(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def probe_kill_of(case: Case, death: Death) -> Finding | None:
    """The probe kill that ended this death's container, if any source tells of one."""
    fitting = [kill for kill in _health_kills(case) if _names(case, kill, death) and _fits(kill.event, death)]
    fitting = [kill for kill in fitting if kill.signature not in _ASKED or _used_up(case, death)]
    told = (f for f in case.named(*PROBE_KILLS) if "liveness" in f.event.text or "startup" in f.event.text)
    for finding in (*told, *_kubelet_kills(case)):
        owner = case.entities.of(finding.event)
        if owner and death.entity and not case.entities.same(owner, death.entity):
            continue
        if _fits(finding.event, death) or _is_last_word(case, death, finding):
            fitting.append(finding)
    moment = death.time_s or 0.0
    return min(
        fitting,
        default=None,
        key=lambda f: (
            min(f.time.uncertainty_s, 3600.0) + abs((f.time.utc_s or moment) - moment),
            f.locator.source,
            f.locator.order,
        ),
    )


def _used_up(case: Case, death: Death) -> bool:
    """True for a run whose log goes on for nearly as long as its health check allows a start to take."""
    life, spec = death.life, case.spec(death.entity)
    budget_s = budgets_s(spec.fields).get("health") if spec is not None else None
    times = [event.time.utc_s for event in (life.start, life.end)] if life is not None else []
    if budget_s is None or len(times) < 2 or times[0] is None or times[1] is None:
        return False
    return times[1] - times[0] >= MOSTLY * budget_s


def _health_kills(case: Case) -> Iterator[Finding]:
    """Ends for a failed health check outside Kubernetes: what says so, and a kill right behind the last failure.

    Docker leaves an unhealthy container alone; Podman (`HealthOnFailure`), autoheal and Swarm do not.
    """
    yield from case.named(*HEALTH_KILLS)
    for failure in case.named("runtime.docker_unhealthy"):
        owner, failed_s = case.entities.of(failure.event), failure.time.utc_s
        kills = [e.time.utc_s for e in case.of_kind("container_kill") if case.entities.same(case.entities.of(e), owner)]
        if any(failed_s is not None and s is not None and 0.0 <= s - failed_s <= HEALTH_KILL_S for s in kills):
            yield failure


def _kubelet_kills(case: Case) -> Iterator[Finding]:
    """Failures of a probe right behind which the kubelet stops the container, where no line says why."""
    for order in case.named("kubelet.kill_with_grace"):
        stopped_s, owner = order.time.utc_s, case.entities.of(order.event)
        for failure in case.named("kubelet.probe_failed"):
            failed_s = failure.time.utc_s
            behind = stopped_s is not None and failed_s is not None and 0.0 <= stopped_s - failed_s <= AT_ONCE_S
            alike = failure.fields.get("container") == order.fields.get("container", failure.fields.get("container"))
            if behind and alike and _probe_of(failure) in KILLING and case.entities.of(failure.event) == owner:
                yield failure


def _names(case: Case, kill: Finding, death: Death) -> bool:
    """True when a health check's kill speaks of the dead container, or of nobody.

    autoheal names `<project>-<service>-<n>`, where compose's log names the service.
    """
    named = str(kill.fields.get("container") or "")
    if named:
        known = [name[4:] for name in case.entities.members(death.entity) if name.startswith("ctr:")]
        bare = INSTANCE.sub("", named)
        return not known or any(name in (named, bare) or bare.endswith((f"-{name}", f"_{name}")) for name in known)
    owner = case.entities.of(kill.event)
    if owner.startswith("file:") and not case.lives_of(owner):
        return True  # the log of a script that names nobody
    return not owner or not death.entity or case.entities.same(owner, death.entity)


def _fits(event: Event, death: Death) -> bool:
    """A kill fits a death that follows it within the grace period; repeated events stand for several kills."""
    if event.time.utc_s is None or not death.time_s:
        return True
    slack = 10.0 + min(event.time.uncertainty_s, 300.0)
    grace = 2 * DEFAULT_GRACE_S
    first = event.fields.get("first_seen_s")
    if isinstance(first, int | float) and first - slack <= death.time_s <= event.time.utc_s + grace + slack:
        return True
    return -slack <= death.time_s - event.time.utc_s <= grace + slack


def _is_last_word(case: Case, death: Death, kill: Finding) -> bool:
    """Whether a kill was joined with a death and nobody ordered a stop of the container after it.

    Nothing may tie their clocks: the events of `kubectl get` have ages, a log has no zone. Whoever kills for a probe
    asks for an orderly stop first, so that the engine's farewell speaks for the kill and not against it.
    """
    killed_s = kill.time.utc_s
    if killed_s is None or kill.locator not in [event.locator for event in death.witnesses]:
        return False
    for order in case.named(*STOP_SIGNATURES):
        owner, when = case.entities.of(order.event), order.time.utc_s
        is_own = not owner or case.entities.same(owner, death.entity)
        if is_own and when is not None and when >= killed_s and order.fields.get("direction") != "up":
            return False
    return True


def _precedes(fatal: Finding, kill: Finding) -> bool:
    a, b = fatal.time, kill.time
    return a.utc_s is None or b.utc_s is None or a.earliest_s <= b.latest_s


def _probe_of(kill: Finding) -> str:
    if kill.signature in HEALTH_KILLS or kill.signature == "runtime.docker_unhealthy":
        return "health"
    named = str(kill.fields.get("probe") or "").lower()
    return named or ("startup" if "startup" in kill.event.text else "liveness")


def budgets_s(fields: Mapping[str, Any]) -> dict[str, float]:
    """Seconds that each probe grants, from a `pod_spec` event."""
    budgets = {}
    for probe in ("startup", "liveness", "health"):
        if fields.get(f"{probe}_period_s") is not None:
            delay = float(fields.get(f"{probe}_delay_s") or 0)
            budgets[probe] = delay + float(fields[f"{probe}_period_s"]) * int(fields.get(f"{probe}_failure") or 3)
    return budgets


def _phase_of(case: Case, death: Death, probe: str, budget: float | None) -> str:
    """`loading`, `serving`, or `unseen` when no source shows how far the container had got."""
    if death.life is not None:
        return "serving" if _served(death.life) else "loading"
    own = _lives_near(case, death)
    never_ready = bool(own) and not any(_served(life) or _told_to_stop_midway(life) for life in own)
    if never_ready or probe == "startup":
        return "loading"
    uptime, needed = uptime_s(case, death), _load_time(own)
    if uptime is None:
        return "unseen"
    if needed is not None and needed["load_time_basis"] == "measured":
        return "loading" if uptime <= needed["load_time_s"] else "serving"
    if budget is not None and uptime <= budget + 2 * DEFAULT_GRACE_S:
        return "loading"  # killed as soon as a probe may kill: it never answered once
    return "unseen" if budget is None or uptime <= 4 * budget else "serving"


def _lives_near(case: Case, death: Death) -> list[Life]:
    """The entity's runs of the incident; one of another day, saved as the last good one, tells nothing of it."""

    def is_near(life: Life) -> bool:
        times = [event.time.utc_s for event in (life.start, life.end)]
        return not death.time_s or any(t is None or abs(t - death.time_s) <= ONE_INCIDENT_S for t in times)

    return [life for life in case.lives_of(death.entity) if is_near(life)]


def load_time(case: Case, death: Death) -> dict[str, Any] | None:
    """How long a start takes, as the runs of the incident show it.

    A run of another day stands in where it took longer than this one lived; a quicker one is told as `earlier_`.
    """
    near = _lives_near(case, death)
    found = _load_time(near)
    earlier = _load_time([life for life in case.lives_of(death.entity) if life not in near])
    if earlier is None or earlier["load_time_basis"] != "measured":
        return found or earlier
    if found is None and earlier["load_time_s"] > (uptime_s(case, death) or 0.0):
        return earlier
    return {**(found or {}), "earlier_load_time_s": earlier["load_time_s"]}


def _load_time(lives: Sequence[Life]) -> dict[str, Any] | None:
    """Measured in a run that became ready, else extrapolated from the shards loaded."""
    for life in lives:
        if life.ready is not None and life.ready.time.utc_s is not None and life.start.time.utc_s is not None:
            seconds = life.ready.time.utc_s - life.start.time.utc_s
            if seconds > 0:
                return {"load_time_s": round(seconds, 1), "load_time_basis": "measured"}
    estimates = [estimate for life in lives if (estimate := _extrapolated(life)) is not None]
    return max(estimates, key=lambda e: (e["shards_loaded"], e["load_time_s"]), default=None)


def _extrapolated(life: Life) -> dict[str, Any] | None:
    shards = [f for f in life.findings if f.signature == "vllm.checkpoint_shards" and f.fields.get("shards")]
    if not shards:
        return None
    last = max(shards, key=lambda f: f.fields.get("shard", 0))
    first = min(shards, key=lambda f: f.fields.get("shard", 0))
    done, total = int(last.fields.get("shard", 0)), int(last.fields["shards"])
    begin, now = first.time.utc_s, last.time.utc_s
    elapsed = last.fields.get("elapsed_s")
    if not 0 < done < total:
        return None
    if begin is not None and now is not None and done > int(first.fields.get("shard", 0)) and now > begin:
        rate = (now - begin) / (done - int(first.fields.get("shard", 0)))
    elif isinstance(elapsed, int) and elapsed > 0:
        rate = elapsed / done  # a single bar tells by itself how long it took
    else:
        return None
    start = life.start.time.utc_s
    before = max(0.0, now - start - rate * done) if now is not None and start is not None else 0.0
    return {
        "load_time_s": round(before + rate * total, 1),
        "load_time_basis": "extrapolated",
        "shards_loaded": done,
        "shards_total": total,
        "seconds_per_shard": round(rate, 2),
    }
