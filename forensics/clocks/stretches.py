"""Stretches of a lane between which its clock was set: where one constant ends and the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from .civil import NO_SKEW_S, Civil, snapped
from .lanes import Lane
from .offsets import Anchor, Estimate, Run, knots
from .solution import LAST, Piece

_ROUNDING_S = 0.5
_ORDER_S = 1.5
"""How far a line may seem to precede the one before it (truncation, lag)."""


def pieces(lane: Lane, civil: Civil, runs: Sequence[Run], drifting: bool) -> tuple[tuple[Piece, ...], float]:
    """Segments and remainders as pieces, and the skew: how far the clock ran ahead of its witnesses."""
    walls: tuple[float, ...] = (max(lane.walls),)
    values: tuple[float, ...] = (0.0,)
    doubt_s = 0.0
    if drifting and runs:
        known = sorted((wall, constant - snapped(run)[0]) for run in runs for wall, constant in knots(run.anchors))
        walls, values = tuple(wall for wall, _ in known), tuple(rest for _, rest in known)
        doubt_s = max(run.width_s + run.scatter_s for run in runs)
    elif runs:
        values = (median(snapped(run)[1] for run in runs),)
        doubt_s = max(max(abs(run.constant - snapped(run)[0] - values[0]) - _ROUNDING_S, 0.0) for run in runs)
    result = tuple(
        Piece(s.end, walls, tuple(s.offset_s + value for value in values), s.doubt_s + doubt_s) for s in civil.segments
    )
    skew_s = -median(values)
    return result, skew_s if abs(skew_s) > NO_SKEW_S else 0.0


def steady(runs: Sequence[Run]) -> bool:
    """Whether the remainders beside the zones are the same in all runs: nobody set the clock."""
    rests = [snapped(run)[1] for run in runs]
    return max(rests) - min(rests) <= NO_SKEW_S


def stepped(lane: Lane, runs: Sequence[Run]) -> tuple[Piece, ...]:
    """One piece for each run of anchors; where the change cannot be located, a piece that says so."""
    pieces: list[Piece] = []
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        walls = (run.anchors[len(run.anchors) // 2].wall,)
        if following is None:
            pieces.append(Piece(LAST, walls, (run.constant,), run.width_s + run.scatter_s))
            break
        first, last = change(lane, run, following)
        pieces.append(Piece(first, walls, (run.constant,), run.width_s + run.scatter_s))
        if last > first:
            middle = (run.constant + following.constant) / 2
            pieces.append(Piece(last, walls, (middle,), abs(run.constant - following.constant) / 2))
    return tuple(pieces)


def change(lane: Lane, run: Run, following: Run) -> tuple[float, float]:
    """(last place that surely has the first constant, last place that may still have it)."""
    open_from, open_to = run.anchors[-1].order, following.anchors[0].order
    if not lane.ordered:
        return open_from, open_to - 1e-6
    set_s = following.constant - run.constant
    candidates = []
    for i in range(1, len(lane.lines)):
        if open_from < lane.lines[i] <= open_to:
            gap_s = lane.walls[i] - lane.walls[i - 1]
            if gap_s < -_ORDER_S:  # the fall itself
                return float(lane.lines[i - 1]), float(lane.lines[i - 1])
            if gap_s + set_s >= -_ORDER_S:  # the lines stay in order if the clock was set here
                candidates.append(float(lane.lines[i - 1]))
    if not candidates:
        return open_from, open_to - 1
    return min(candidates), max(candidates)


def with_strays(lane: Lane, pieces: tuple[Piece, ...], found: Estimate) -> tuple[Piece, ...]:
    """Doubt for the ends of a lane where single anchors contradict: another stretch may begin there."""
    if not found.runs or not found.strays:
        return pieces
    first, last = found.runs[0].anchors[0], found.runs[-1].anchors[-1]
    leading = [stray for stray in found.strays if stray.order < first.order]
    trailing = [stray for stray in found.strays if stray.order > last.order]
    if leading:
        doubt_s = max(_off(stray, found.runs[0]) for stray in leading)
        pieces = _doubted(pieces, float("-inf"), first.order - 1e-6, doubt_s)
    if trailing:
        doubt_s = max(_off(stray, found.runs[-1]) for stray in trailing)
        pieces = _doubted(pieces, last.order, LAST, doubt_s)
    return pieces


def _off(stray: Anchor, run: Run) -> float:
    return abs(stray.constant - run.constant) + stray.half_width_s


def _doubted(pieces: Sequence[Piece], start: float, end: float, doubt_s: float) -> tuple[Piece, ...]:
    """Pieces cut at `start` and `end`, with more doubt between them."""
    result: list[Piece] = []
    begin = float("-inf")
    for piece in pieces:
        for cut in (start, end, piece.end):
            upto = min(cut, piece.end)
            if upto > begin:
                extra = doubt_s if begin >= start and upto <= end else 0.0
                result.append(replace(piece, end=upto, doubt_s=piece.doubt_s + extra))
                begin = upto
    return tuple(result)
