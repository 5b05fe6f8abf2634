"""Stretches of a lane between which its clock was set: where one constant ends and the next begins."""

from __future__ import annotations

from collections.abc import Sequence

from .lanes import Lane
from .offsets import Run
from .solution import LAST, Piece

_ORDER_S = 1.5
"""How far a line may seem to precede the one before it (truncation, lag)."""


def stepped(lane: Lane, runs: Sequence[Run]) -> tuple[Piece, ...]:
    """One piece for each run of anchors; where the change cannot be located, a piece that says so."""
    pieces: list[Piece] = []
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        walls = (run.anchors[len(run.anchors) // 2].wall,)
        if following is None:
            pieces.append(Piece(LAST, walls, (run.constant,)))
            break
        first, last = change(lane, run, following)
        pieces.append(Piece(first, walls, (run.constant,)))
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
