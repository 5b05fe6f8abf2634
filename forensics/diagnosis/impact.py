"""What the incident cost, as far as the bundle shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..model import Event
from ..regexes import lazy_regex
from ..stamps import iso_utc
from . import timing
from .case import Case
from .deaths import ONE_INCIDENT_S
from .model import Incident

BEFORE_S = 60.0
AFTER_S = 600.0
"""Answers of a gateway belong to an incident from a minute before it until ten minutes after its last end."""
_FRONT = frozenset({"plain", "container"})
_CHECKS = lazy_regex(
    r"/(?:-/)?(?:health\w*|healthy?|live\w*|ready\w*|startup|ping|status|up|metrics|version|load|is_sleeping|server_info"
    r"|get_model_info|get_server_info|v2/health/\w+|v1/models(?:/[^?]*)?|api/tags|api/version|props|slots|favicon\.ico)?/?(?:\?.*)?"
)
"""What probes, scrapers and balancers ask for: nobody waits for the answer."""


def measure(case: Case, incident: Incident) -> dict[str, Any]:
    """Flat numbers: failed requests, restarts, seconds not ready, idle GPUs. Absent keys are unknown, not zero."""
    impact: dict[str, Any] = {}
    near = [event for event in server_errors(case) if not _of_another_day(incident, event)]
    own = [event for event in near if case.entities.same(case.entities.of(event), incident.entity)]
    if own:
        impact |= {"failed_requests": sum(event.count for event in own), **_times(own, "failed_request")}
    front = [event for event in near if event not in own and is_front(case, event) and _concerns(incident, event)]
    if front:
        impact |= {"gateway_errors": sum(event.count for event in front), **_times(front, "gateway_error")}
    counted, _ = timing.counted_stops(case, incident.hypotheses[0].decisive)
    if counted > len(incident.deaths):
        impact["deaths_counted"] = counted
    elif incident.deaths:
        impact["deaths"] = len(incident.deaths)
    down = timing.not_ready_s(case, incident)
    if down is not None:
        impact["not_ready_s"] = round(down, 1)
        spec = case.spec(incident.entity)
        gpus = spec.fields.get("gpus") if spec is not None else None
        if isinstance(gpus, int) and gpus > 0:
            impact["gpu_idle_h"] = round(gpus * down / 3600, 2)
    return impact


def server_errors(case: Case) -> list[Event]:
    """Requests for work that somebody answered with a server error."""
    return [event for event in case.of_kind("access") if _is_server_error(event) and not _is_check(event)]


def _is_server_error(event: Event) -> bool:
    status = event.fields.get("status")
    return isinstance(status, int) and status >= 500


def _is_check(event: Event) -> bool:
    """True for a probe's request, or another that is no work: its failure is the probe's answer, not a user's loss."""
    return _CHECKS.fullmatch(str(event.fields.get("path", ""))) is not None


def _of_another_day(incident: Incident, event: Event) -> bool:
    """True for an answer half a day before or after: another incident's."""
    if incident.start_s is None or event.time.utc_s is None:
        return False
    end = max(incident.end_s or 0.0, incident.start_s)
    return event.time.latest_s < incident.start_s - ONE_INCIDENT_S or event.time.earliest_s > end + ONE_INCIDENT_S


def is_front(case: Case, event: Event) -> bool:
    """True for the log of somebody who is no engine."""
    return event.channel in _FRONT and not any(event.locator.source in life.sources for life in case.lives)


def _concerns(incident: Incident, event: Event) -> bool:
    """True for an answer around an incident; of one without a time it is the only word about when it was."""
    if event.time.utc_s is None:
        return False
    if incident.start_s is None:
        return not incident.deaths and incident.hypotheses[0].cause.id == "insufficient_evidence"
    end = max(incident.end_s or 0.0, incident.start_s) + AFTER_S
    return event.time.latest_s >= incident.start_s - BEFORE_S and event.time.earliest_s <= end


def _times(errors: Sequence[Event], name: str) -> dict[str, Any]:
    """When the first one was, and how many there were in the worst minute (where one is worse than the others).

    A line that stands for many tells no minute of theirs, unless the last of them lies in its own.
    """
    found: dict[str, Any] = {}
    times = {(event.locator.source, event.locator.line): event.time.utc_s for event in errors}
    dated = [(moment, event) for event in errors if (moment := event.time.utc_s) is not None]
    if dated:
        found[f"first_{name}_utc"] = iso_utc(min(moment for moment, _ in dated))
        minutes: Counter[int] = Counter()
        for moment, event in dated:
            last = moment if event.last_line is None else times.get((event.locator.source, event.last_line))
            if last is None or last // 60 != moment // 60:
                return found
            minutes[int(moment // 60)] += event.count
        if len(minutes) > 1:
            found[f"{name}s_in_worst_minute"] = max(minutes.values())
    return found
