"""Exit codes and stop requests: orderly stops, stops that ran out of grace, and ends that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...model import Event, Finding
from .. import evidence
from ..case import Case, conclude
from ..deaths import STOP_SIGNATURES
from ..model import Death
from . import probes

ORDER_SIGNATURES = ("kubelet.kill_with_grace", *STOP_SIGNATURES)
"""The kubelet's order says when a stop began, though not why: it stands before a probe's or an eviction's kill too."""
MECHANISM = "runtime.stop_container"
"""What the runtime does when anybody asks it, a probe too: alone it names nobody."""
RECLAIMS = (
    "host.spot_interruption", "host.operator_reboot", "systemd.shutdown", "kubelet.shutdown", "k8s.node_shutdown",
    "ray.node_preempted", "slurm.time_limit", "slurm.preempted", "systemd.start_timeout", "host.ci_runner_stopped",
)  # fmt: skip
"""The machine, or the time on it, is taken away: whoever drains on such notice was not asked by its owner."""
USAGE = 2
"""Python's argparse, and most other programs, leave with it when they reject their command line."""
NOTICE_S = 600.0
WINDOW_S = 150.0
SHARP_S = 2.0


def rules(case: Case, death: Death) -> Iterator[Finding]:
    place = _place(death)
    if place is None:
        return
    fields = {k: v for k, v in (("exit_code", death.exit_code), ("reason", death.reason)) if v not in (None, "")}
    stop = stop_request(case, death)
    if death.graceful:
        order = _asked(case, death, ORDER_SIGNATURES)
        heard = death.life.shutdown if death.life is not None else None
        told = order if order is not None and (_is_sharp(order) or heard is None) else heard
        shown = told.event if told is not None else place
        yield conclude("graceful_stop", shown, {**fields, **_drain(told, death)}, (told,) if told else ())
        return
    if stop is not None and not (stop.signature == MECHANISM and probes.probe_kill_of(case, death) is not None):
        name = "killed_after_grace" if death.exit_code == 137 else "stop_requested"
        yield conclude(name, stop.event, fields, (stop,))
    yield conclude("unexplained_exit", place, fields)
    if death.exit_code == USAGE:
        yield conclude("usage_exit", place, fields)


def _is_sharp(order: Finding) -> bool:
    """True for a time good to a few seconds, which an event's age is not."""
    return order.time.utc_s is not None and order.time.uncertainty_s <= SHARP_S


def _drain(order: Finding | None, death: Death) -> dict[str, float]:
    """How long the stop took, where it is known when it began."""
    if order is None or order.time.utc_s is None or not death.time_s or not _is_sharp(order):
        return {}
    return {"drain_s": round(max(0.0, death.time_s - order.time.utc_s), 1)}


def _place(death: Death) -> Event | None:
    if death.witnesses:
        ranked = sorted(death.witnesses, key=lambda e: (e.fields.get("exit_code") is None, e.channel != "k8s"))
        return ranked[0]
    return death.life.end if death.life is not None else None


def stop_request(case: Case, death: Death) -> Finding | None:
    """What asked for the stop of a death: a drain, a rollout, `docker stop`, systemd; none when nothing did."""
    return _asked(case, death, STOP_SIGNATURES)


def reclaimed(case: Case, death: Death) -> bool:
    """True when notice of a reclaim came before an orderly stop."""
    heard = death.life.shutdown if death.life is not None else None
    moment = heard.time.utc_s if heard is not None and heard.time.utc_s is not None else death.time_s
    return bool(moment) and any(
        f.time.utc_s is not None
        and -5.0 <= (moment or 0.0) - f.time.utc_s <= NOTICE_S
        and not evidence.objection(case, death, f)
        for f in case.named(*RECLAIMS)
    )


def _asked(case: Case, death: Death, signatures: Sequence[str]) -> Finding | None:
    """The first of some requests that fits a death; one that names its container before one that names nobody."""
    if not death.time_s:
        return None
    fitting = [f for f in case.named(*signatures) if _fits(case, death, f)]
    return min(fitting, key=lambda f: not case.entities.of(f.event), default=None)


def _fits(case: Case, death: Death, request: Finding) -> bool:
    owner, when = case.entities.of(request.event), request.time.utc_s
    if when is None or not death.time_s or (owner and not case.entities.same(owner, death.entity)):
        return False
    if request.fields.get("direction") == "up":
        return False  # new replicas stop nobody
    slack = min(request.time.uncertainty_s, WINDOW_S)
    return -slack - 5 <= death.time_s - when <= WINDOW_S + slack
