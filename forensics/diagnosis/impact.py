"""What the incident cost, as far as the bundle shows it."""

from __future__ import annotations

from typing import Any

from ..stamps import iso_utc
from . import timing
from .case import Case
from .model import Incident


def measure(case: Case, incident: Incident) -> dict[str, Any]:
    """Flat numbers: failed requests, restarts, seconds not ready. Absent keys are unknown, not zero."""
    impact: dict[str, Any] = {}
    failed = [
        event
        for event in case.of_kind("access")
        if isinstance(event.fields.get("status"), int)
        and event.fields["status"] >= 500
        and case.entities.same(case.entities.of(event), incident.entity)
    ]
    if failed:
        impact["failed_requests"] = sum(event.count for event in failed)
        first = min((e.time.utc_s for e in failed if e.time.utc_s is not None), default=None)
        if first is not None:
            impact["first_failed_request_utc"] = iso_utc(first)
    if incident.deaths:
        impact["deaths"] = len(incident.deaths)
    down = timing.not_ready_s(case, incident)
    if down is not None:
        impact["not_ready_s"] = round(down, 1)
    return impact
