"""From the anchors of a lane to its law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model import Basis, ClockAnchor
from . import civil as civil_time
from .lanes import Lane
from .offsets import ENOUGH, Anchor, Estimate, Run, knots
from .solution import LAST, SCHED_DRIFT, Piece, Solution, constant_piece
from .stretches import pieces, steady, stepped
from .zones import Rule

_SHOWN = 12
"""Anchors that the clock table names."""
_QUEUE_S = 0.3
"""A wall clock stamps kernel lines when they are received, so much later."""


@dataclass(frozen=True, slots=True)
class Testimony:
    """What solved lanes say about another one."""

    anchors: tuple[Anchor, ...] = ()
    frame: str = ""
    """The host whose clock the instants follow."""
    doubt_s: float = 0.0
    sure: bool = False
    """Whether enough of the witnesses are solved or exact themselves."""
    doubtful: tuple[Anchor, ...] = ()
    """What witnesses say at whose time their own clock was set: too unsure to solve anything, but not to be ignored."""


def exact(lane: Lane) -> Solution:
    """Printed with zone or epoch: nothing is open but the rightness of the clock itself."""
    return Solution(
        (constant_piece(0.0, lane.walls),),
        Basis.EXACT,
        "exact",
        "UTC",
        offset_s=0.0,
        drift=SCHED_DRIFT if lane.key.layer == "dmesg" else 0.0,
        frame=lane.key.host,
        by_line=lane.ordered,
    )


def local_solution(lane: Lane, found: Estimate, declared: Rule | None, said: Testimony) -> Solution:
    """Local times from anchors: zone and skew apart; without a zone that fits, stretches as measured."""
    drifts = lane.key.layer == "dmesg"
    result = civil_time.fit(lane, found.runs, declared)
    if result is not None and (drifts or steady(found.runs)):
        parts, skew_s = pieces(lane, result, found.runs, drifts)
        zone, note = result.zone, result.note
        offset_s: float | None = result.segments[0].offset_s
    else:
        parts = (measured(found),) if drifts else stepped(lane, found.runs)
        skew_s, zone = 0.0, result.zone if result else ""
        offset_s = result.segments[0].offset_s if result else None
        note = "rendered on another machine" if drifts else "the clock was set inside the file"
    doubt_s = said.doubt_s + lane.year_doubt_s
    if skew_s:
        doubt_s += max(run.scatter_s for run in found.runs)
    if _verdict(found, said) == "assumed":
        doubt_s += abs(skew_s)  # no zone is off by so much: rather a false anchor than a wrong clock
    return Solution(
        parts,
        Basis.SKEW_CORRECTED if skew_s else Basis.ZONE_SOLVED,
        _verdict(found, said),
        zone,
        offset_s,
        skew_s,
        SCHED_DRIFT if drifts else 0.0,
        said.frame,
        shown(found.runs),
        _residual(found.runs),
        note,
        lane.ordered,
    ).doubted(doubt_s)


def boot_solution(lane: Lane, found: Estimate, said: Testimony) -> Solution:
    """Seconds since boot: the epoch wanders, so it is taken from the anchors nearest to each time."""
    return Solution(
        (measured(found),),
        Basis.BOOT_SOLVED,
        _verdict(found, said),
        "boot",
        drift=SCHED_DRIFT,
        frame=said.frame,
        anchors=shown(found.runs),
        residual_s=_residual(found.runs),
        by_line=lane.ordered,
    ).doubted(said.doubt_s)


def measured(found: Estimate) -> Piece:
    """Constants as the anchors give them, each near its place."""
    known = sorted(knot for run in found.runs for knot in _knots(run))
    doubt_s = max(run.width_s + run.scatter_s for run in found.runs) + _QUEUE_S
    return Piece(LAST, tuple(wall for wall, _ in known), tuple(c for _, c in known), doubt_s)


def _knots(run: Run) -> list[tuple[float, float]]:
    """Where a run's constant is known; where exact anchors are among the others, only those."""
    finest = run.width_s
    return knots([anchor for anchor in run.anchors if anchor.half_width_s <= 2 * finest + 0.001])


def _verdict(found: Estimate, said: Testimony) -> str:
    return "solved" if said.sure and all(len(run.anchors) >= ENOUGH for run in found.runs) else "assumed"


def _residual(runs: Sequence[Run]) -> float | None:
    return round(max(run.scatter_s for run in runs), 3) if runs else None


def shown(runs: Sequence[Run]) -> tuple[ClockAnchor, ...]:
    """A few anchors of each stretch, evenly chosen."""
    chosen = []
    for run in runs:
        step = 1 + (len(run.anchors) * len(runs)) // _SHOWN
        chosen += [
            ClockAnchor(anchor.place, anchor.witness, round(anchor.constant - run.constant, 3))
            for anchor in run.anchors[::step]
        ]
    return tuple(chosen)
