"""Exit codes and stop requests: orderly stops, stops that ran out of grace, and ends that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Event, Finding
from ..case import Case, conclude
from ..model import Death

STOP_SIGNATURES = (
    "k8s.stopping_container",
    "systemd.stopping",
    "runtime.stop_container",
    "runtime.docker_stop",
    "k8s.scaled",
    "k8s.drain",
)
WINDOW_S = 150.0


def rules(case: Case, death: Death) -> Iterator[Finding]:
    place = _place(death)
    if place is None:
        return
    fields = {k: v for k, v in (("exit_code", death.exit_code), ("reason", death.reason)) if v not in (None, "")}
    stop = stop_request(case, death)
    if death.graceful:
        yield conclude("graceful_stop", place, fields, (stop,) if stop else ())
        return
    if stop is not None:
        name = "killed_after_grace" if death.exit_code == 137 else "stop_requested"
        yield conclude(name, stop.event, fields, (stop,))
    yield conclude("unexplained_exit", place, fields)


def _place(death: Death) -> Event | None:
    if death.witnesses:
        ranked = sorted(death.witnesses, key=lambda e: (e.fields.get("exit_code") is None, e.channel != "k8s"))
        return ranked[0]
    return death.life.end if death.life is not None else None


def stop_request(case: Case, death: Death) -> Finding | None:
    """What asked for the stop of a death: a drain, a rollout, `docker stop`, systemd; none when nothing did."""
    if not death.time_s:
        return None
    for finding in case.named(*STOP_SIGNATURES):
        owner = case.entities.of(finding.event)
        if owner and not case.entities.same(owner, death.entity):
            continue
        when = finding.time.utc_s
        slack = min(finding.time.uncertainty_s, WINDOW_S)
        if when is not None and -slack - 5 <= death.time_s - when <= WINDOW_S + slack:
            return finding
    return None
