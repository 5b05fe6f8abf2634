"""Captures that the bundle records, and boot times that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..model import Basis, Event, StampForm
from .network import Network
from .solution import LAST, SCHED_DRIFT, Piece, Solution

_CAPTURED_S = 120.0
_UPTIME_S = 60.0
"""uptime prints minutes; /proc/uptime counts hundredths of a second."""


def recorded(network: Network) -> dict[tuple[str, str], float]:
    """Instants at which the bundle says it was captured, by (source, host); solved lanes only."""
    found: dict[tuple[str, str], float] = {}
    lanes = network.lanes
    for event, places in zip(lanes.events, lanes.places, strict=True):
        if event.kind != "capture":
            continue
        for index, position in places:
            solution = network.solutions.get(index)
            if solution is None:
                continue
            lane = lanes.lanes[index]
            instant, doubt_s = solution.at(lane.lines[position], lane.walls[position])
            if doubt_s < _CAPTURED_S:
                key = (event.locator.source, event.scope.host)
                found[key] = max(instant, found.get(key, instant))
                break
    return found


def settle(network: Network, events: Iterable[Event], recorded_s: Mapping[tuple[str, str], float]) -> None:
    """Boot epochs from `btime` and uptime, for kernel logs that no line ties to a wall clock."""
    known = dict(_epochs(events, recorded_s))
    for lane in network.lanes.lanes:
        if lane.key.form is not StampForm.BOOT or lane.index in network.solutions or not known:
            continue
        epoch = known.get(lane.key.host) or (
            next(iter(known.values())) if len(known) == 1 and not lane.key.host else None
        )
        if epoch is None or lane.index != network.lanes.by_key[lane.key][-1]:  # only the running boot
            continue
        seconds, width_s, note = epoch
        piece = Piece(LAST, (0.0,), (seconds,), width_s)  # boot itself; from there on, the clocks wander apart
        network.add(
            lane.index,
            Solution(
                (piece,),
                Basis.BOOT_SOLVED,
                "assumed",
                "boot",
                drift=SCHED_DRIFT,
                frame=lane.key.host,
                note=note,
                by_line=lane.ordered,
                breaks=tuple(lane.woken),
            ),
        )


def _epochs(
    events: Iterable[Event], recorded_s: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, tuple[float, float, str]]]:
    for event in events:
        if event.kind != "capture":
            continue
        host = event.scope.host
        captured_s = recorded_s.get((event.locator.source, host))
        uptime_s, epoch_s = event.fields.get("uptime_s"), event.fields.get("boot_epoch_s")
        if isinstance(epoch_s, int | float):
            yield host, (float(epoch_s) + 0.5, 1.0, "boot time from /proc/stat")
        elif isinstance(uptime_s, int | float) and captured_s is not None:
            width_s = 1.0 if uptime_s % 60 else _UPTIME_S
            yield host, (captured_s - uptime_s - width_s / 2, width_s, "boot time from uptime")
