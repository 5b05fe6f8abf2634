"""Clocks that run ahead or behind: how far each host is from true time.

Zone and skew are kept apart: a zone is a multiple of fifteen minutes, a skew is what remains. Within one host nothing
shows a skew; it needs a fact that two machines stamped. The API server stamps every event that a kubelet sends
(`metadata.creationTimestamp`), within a second of the kubelet's own time. Without an API server there is what the
node's time service says of itself (`chronyc tracking`), which holds for the moment of the capture.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from ..model import ClockAnchor
from .lanes import Lanes
from .offsets import ENOUGH, GATE_S
from .steps import Steps

_LAG_S = 0.5
"""The API server stores an event about so much later."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How far a host's clock runs ahead of true time."""

    seconds: float
    doubt_s: float
    verdict: str
    """`solved`, `assumed`, `refused`; empty when the clock may be right, within the doubt."""
    anchors: tuple[ClockAnchor, ...] = ()
    residual_s: float | None = None
    note: str = ""


def of_hosts(lanes: Lanes, steps: Steps, given: Mapping[str, float]) -> dict[str, Skew]:
    """Skew of each host that differs from the control plane, beside what steps of its clock explain."""
    found: dict[str, list[ClockAnchor]] = defaultdict(list)
    for event, places in zip(lanes.events, lanes.places, strict=True):
        stored_s, first_s = event.fields.get("created_s"), event.fields.get("first_seen_s")
        if event.kind != "k8s_event" or not isinstance(stored_s, float) or not isinstance(first_s, float):
            continue
        host = lanes.stampers.host(event)
        if host and places and places[0][0] >= 0:
            ahead_s, doubt_s = steps.ahead(places[0][0], event.locator.order, first_s)
            if doubt_s < GATE_S:
                found[host].append(ClockAnchor(event.locator, event.locator, first_s - stored_s - ahead_s))
    skews = {}
    for host, anchors in sorted(found.items()):
        skew = _measured(host, anchors)
        if skew is not None:
            skews[host] = skew
    for host, skew in _said(lanes):
        if host not in found and not any(step.host == host for step in steps.steps):
            skews.setdefault(host, skew)
    for host, seconds in given.items():
        skews[lanes.stampers.canonical(host)] = Skew(seconds, 0.0, "solved", note=f"skew of {host} given")
    return skews


def _said(lanes: Lanes) -> Iterator[tuple[str, Skew]]:
    """Offsets from the network's time, as a time service states them: before, the clock may have been further off."""
    for event in lanes.events:
        offset_s = event.fields.get("offset_s")
        host = lanes.stampers.host(event)
        if event.channel != "clock" or not isinstance(offset_s, float) or not host or abs(offset_s) <= 1.0:
            continue
        if event.fields.get("leap_status") != "Not synchronised":
            way = "ahead" if offset_s > 0 else "behind"
            note = f"the clock of {host} runs {abs(offset_s):.0f} s {way}, by its time service ({event.locator})"
            anchor = ClockAnchor(event.locator, event.locator, 0.0)
            yield host, Skew(round(offset_s, 2), abs(offset_s) + 1.0, "assumed", (anchor,), note=note)


def _measured(host: str, anchors: list[ClockAnchor]) -> Skew | None:
    values = [anchor.residual_s for anchor in anchors]
    centre = median(values)
    scatter_s = median(abs(value - centre) for value in values)
    if scatter_s > GATE_S:
        return Skew(
            0.0,
            abs(centre) + scatter_s,
            "refused",
            residual_s=scatter_s,
            note=f"{len(values)} comparisons of {host} with other machines disagree (scatter {scatter_s:.0f} s)",
        )
    near = [value for value in values if abs(value - centre) <= GATE_S]
    low, high = max(near) - 1.0, min(near) + 1.0 + _LAG_S
    if low > high:
        low, high = min(near) - 1.0, max(near) + 1.0
    if low <= 0 <= high:
        most_s = max(-low, high)
        return None if most_s <= 1.0 else Skew(0.0, most_s, "", residual_s=round(scatter_s, 3))
    seconds, doubt_s = round((low + high) / 2, 2), (high - low) / 2 + _LAG_S
    sure = len(near) >= ENOUGH
    note = f"the clock of {host} runs {abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
    if not sure:
        note += f", by {len(near)} comparison{'s' if len(near) > 1 else ''} only"
    return Skew(
        seconds,
        doubt_s if sure else doubt_s + abs(seconds),
        "solved" if sure else "assumed",
        tuple(anchors[:12]),
        round(scatter_s, 3),
        note,
    )
