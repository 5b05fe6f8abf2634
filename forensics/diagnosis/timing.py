"""How long things took: from start to end, from cause to notice, from order to exit, from end to ready again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from ..clocks import zones
from ..model import Basis, Event, Finding, StampForm
from .case import Case
from .deaths import ONE_INCIDENT_S
from .entities import LOG_CHANNELS
from .model import Death, Incident, Life
from .pod_names import workload_of

SURE_S = 5.0
"""Times less certain than this make no duration."""
START_SURE_S = 30.0
LONGEST_DELAY_S = 3600.0
ONE_STEP_S = 60.0
"""A clock that is set, or changes to summer time, jumps by more; what its solution bends is less."""
LONGEST_GRACE_S = 60.0


def measure(case: Case, incident: Incident, root: Finding | None) -> dict[str, float]:
    """Flat facts of an incident with its first cause; absent keys are unknown, not zero."""
    facts: dict[str, float] = {}
    up = uptime_s(case, incident.deaths[0]) if incident.deaths else None
    if up is not None:
        facts |= {"uptime_h": round(up / 3600, 2)} if up >= 3600 else {"uptime_s": round(up, 1)}
    delay = _detection_delay_s(incident, root)
    if delay is not None:
        facts["detection_delay_s"] = round(delay, 2)
    down = not_ready_s(case, incident)
    if down is not None:
        facts["outage_s"] = round(down, 1)
    return facts | _timeouts_s(case, incident)


def counted_stops(case: Case, evidence: Sequence[Finding]) -> tuple[int, float | None]:
    """How many stops of a loop the kubelet counted in the one event that it keeps of them, and when the first was.

    `Killing … (x5 over 20m)` tells of five ends although a status remembers the last one only. A count that began
    longer ago than one incident lasts belongs to several.
    """
    orders = {f.locator for finding in evidence for f in (finding, *finding.rests_on) if _is_counted_stop(f.event)}
    count, first_s = 0, None
    for first in case.of_kind("k8s_first_seen"):
        lasts = [e.time.utc_s or 0.0 for e in case.of_kind("k8s_event") if e.locator == first.locator]
        began = first.time.utc_s
        if first.locator in orders and began is not None and max(lasts, default=0.0) - began <= ONE_INCIDENT_S:
            count = max(count, int(first.fields["count"]))
            first_s = began if first_s is None else min(began, first_s)
    return count, first_s


def _is_counted_stop(event: Event) -> bool:
    return event.kind == "k8s_event" and event.fields.get("reason") == "Killing"


_STARTING = "Starting "
_AGE = StampForm.AGE


def _timeouts_s(case: Case, incident: Incident) -> dict[str, float]:
    """How long systemd waited: from the last beginning to the line that tells of the timeout, of one unit."""
    starting = [e for e in case.of_kind("log") if e.channel == "systemd" and e.text.startswith(_STARTING)]
    stopping = [f.event for f in case.named("systemd.stopping", "systemd.start_timeout")]
    found: dict[str, float] = {}
    for name, signature, begins in (
        ("start_timeout_s", "systemd.start_timeout", starting),
        ("stop_timeout_s", "systemd.stop_timeout", stopping),
    ):
        for end in case.of_entity((f.event for f in case.named(signature)), incident.entity):
            spans = [_by_one_clock_s(begin, end) for begin in begins if begin.scope.unit == end.scope.unit]
            known = [span for span in spans if span is not None and span > 0]
            if known and name not in found:
                found[name] = float(round(min(known)))
    return found


def repeated_hour(case: Case, incident: Incident) -> str:
    """The local time of the first end, as `02:21:07 CET`, where clocks of the bundle showed that time twice.

    A reader who compares the report with a log in local time would else take one of the two for the other.
    """
    moment = next((death.time_s for death in incident.deaths if death.time_s), None)
    names = sorted({clock.zone for source in case.sources for clock in source.clocks})
    return next(filter(None, (zones.shown_twice(name, moment) for name in names if moment is not None)), "")


def uptime_s(case: Case, death: Death) -> float | None:
    """How long a run lasted: as a container status says, or since the last start that is known."""
    for event in death.witnesses:
        started, finished = event.fields.get("started_s"), event.fields.get("finished_s")
        if isinstance(started, int | float) and isinstance(finished, int | float) and finished >= started:
            return float(finished - started)
    if not death.time_s:
        return None
    own = case.lives_of(death.entity)
    times = [life.start.time for life in own if life.from_start]
    times += [event.time for event in case.of_entity(case.of_kind("container_started"), death.entity)]
    starts = [t.utc_s for t in times if t.utc_s is not None and t.uncertainty_s < START_SURE_S]
    ended = 0.0
    if death.life is None:  # a start before an earlier end is another run's
        ends = (d.time_s for d in case.deaths if d.time_s and case.entities.same(d.entity, death.entity))
        ended = max((moment for moment in ends if moment < death.time_s - LONGEST_GRACE_S), default=0.0)
    before = [moment for moment in starts if ended - SURE_S <= moment < death.time_s]
    return death.time_s - max(before) if before else _told_uptime_s(case, death)


def _told_uptime_s(case: Case, death: Death) -> float | None:
    """By the events of one table: from the last `Started` of the container to what ended it, whatever the day was."""
    spans = [
        span
        for start in case.of_entity(case.of_kind("k8s_event"), death.entity)
        if start.fields.get("reason") == "Started"
        for end in death.witnesses
        if end.kind == "k8s_event" and len({start.scope.container, end.scope.container} - {""}) <= 1
        if (span := _by_one_clock_s(start, end)) is not None and span > 0
    ]
    return min(spans, default=None)


def ready_after_s(life: Life) -> float | None:
    """From the first line of a run to its readiness, where its log begins with the start."""
    if life.ready is None or not life.from_start:
        return None
    taken = _by_one_clock_s(life.start, life.ready)
    return taken if taken is not None and taken > 0 else None


def seconds_between(first: Finding, then: Finding) -> float | None:
    """Seconds from one line to a later one; none unless both times are sure."""
    a, b = first.time, then.time
    if a.utc_s is None or b.utc_s is None or max(a.uncertainty_s, b.uncertainty_s) > SURE_S or b.utc_s < a.utc_s:
        return None
    return b.utc_s - a.utc_s


def _by_one_clock_s(first: Event, then: Event) -> float | None:
    """Seconds between two dated lines of one file, which are right however wrong its clock is.

    As they are printed, where both print them alike and no change of the clock lies between.
    """
    a, b = first.time, then.time
    dated = a.utc_s is not None and b.utc_s is not None and Basis.FILE_ORDER not in (a.basis, b.basis)
    if not dated or first.locator.source != then.locator.source:
        return None
    solved_s = (b.utc_s or 0.0) - (a.utc_s or 0.0)
    pairs = zip(first.stamps, then.stamps, strict=False)
    printed = [y.seconds - x.seconds for x, y in pairs if (x.layer, x.form) == (y.layer, y.form) and x.form is not _AGE]
    return printed[0] if printed and abs(printed[0] - solved_s) < ONE_STEP_S else solved_s


def _detection_delay_s(incident: Incident, root: Finding | None) -> float | None:
    """From a cause outside the engine to the line at which the engine gives up."""
    if root is None or root.event.channel in LOG_CHANNELS:
        return None
    for death in incident.deaths:
        if death.life is not None and death.life.fatal is not None:
            delay = seconds_between(root, death.life.fatal)
            return delay if delay is not None and delay <= LONGEST_DELAY_S else None
    return None


def not_ready_s(case: Case, incident: Incident) -> float | None:
    """Seconds without a ready engine: from each end to the next readiness, be it of a replacement.

    What ended before it was ready lies in the gap of an earlier end. None where the last gap has no end in the bundle.
    """
    gaps = list(not_ready(case, incident))
    return sum(until - since for since, until in gaps) if gaps and gaps[-1][1] < inf else None


def not_ready(case: Case, incident: Incident) -> Iterator[tuple[float, float]]:
    """Each span without a ready engine, as Unix times; the last may be open (infinite)."""
    ready = sorted(_ready_s(case, incident.entity))
    until = 0.0
    for death in sorted((d for d in incident.deaths if d.time_s), key=lambda d: d.time_s or 0.0):
        if death.time_s and death.time_s >= until:
            since = max(_begin_s(death), until)
            until = next((moment for moment in ready if moment > death.time_s), inf)
            yield since, until


def _begin_s(death: Death) -> float:
    """When an end began: the first word of it, which may come a grace period before the exit."""
    assert death.time_s is not None
    words = [e.time.utc_s for e in death.witnesses if e.time.utc_s is not None and e.time.uncertainty_s <= SURE_S]
    return min((moment for moment in words if moment >= death.time_s - LONGEST_GRACE_S), default=death.time_s)


def _ready_s(case: Case, entity: str) -> Iterator[float]:
    """When runs of the entity, or of a pod of the same workload, became ready.

    uvicorn prints no time before "Application startup complete.": it stands within a second of the dated line
    before it, so that its place in the file is as good as a stamp, however late the next line is.
    """
    workload = workload_of(entity) if entity.startswith("pod:") else ""
    for life in case.lives:
        same = case.entities.same(life.entity, entity)
        replacement = bool(workload) and life.entity.startswith("pod:") and workload_of(life.entity) == workload
        if (same or replacement) and life.ready is not None and life.ready.time.utc_s is not None:
            yield life.ready.time.utc_s
