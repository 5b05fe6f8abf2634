"""Stretches of a lane between which its clock was set: where one constant ends and the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .lanes import Lane
from .offsets import Estimate, Run
from .solution import LAST, Piece

_ORDER_S = 1.5
"""How far a line may seem to precede the one before it (truncation, lag)."""


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
        doubt_s = max(abs(stray.constant - found.runs[0].constant) for stray in leading)
        pieces = _doubted(pieces, float("-inf"), first.order - 1e-6, doubt_s)
    if trailing:
        doubt_s = max(abs(stray.constant - found.runs[-1].constant) for stray in trailing)
        pieces = _doubted(pieces, last.order, LAST, doubt_s)
    return pieces


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
