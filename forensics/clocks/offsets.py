"""Robust estimates: from anchors of one lane to stretches with one constant, or a refusal.

An anchor says: this printed time is that instant, so the constant is their difference. True anchors agree within the
width of the printed units and the lag of a log line; false ones do not. A clock that was set, a change of summer time
or a suspended machine gives several constants, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import median

from ..model import Locator

ENOUGH = 3
"""Anchors that make a constant solved rather than assumed."""
GATE_S = 5.0
"""Largest scatter (median absolute deviation) of anchors that agree."""
_MINORITY = 0.25
_MOST_RUNS = 8
_CHUNK = 9
_CHUNK_S = 3600.0
"""Drift is nothing within this."""
_NEIGHBOURS = 3
_LONGEST_LAG_S = 900.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """One reading of the lane with the instant that a witness gives for it."""

    order: float
    """Line, or printed time in a lane whose lines are not in order."""
    wall: float
    constant: float
    """Middle of what is possible."""
    half_width_s: float
    place: Locator
    witness: Locator
    lagging: bool = False
    """True when the witness wrote later, by an unknown delay: the constant is at most this."""


@dataclass(frozen=True)
class Run:
    """Anchors, one after the other, that agree."""

    anchors: tuple[Anchor, ...]
    drifting: bool = False
    """Whether the constant may wander: then an anchor is compared with its neighbours only."""

    @cached_property
    def constant(self) -> float:
        return median(anchor.constant for anchor in self.anchors)

    @cached_property
    def scatter_s(self) -> float:
        """Median absolute deviation, from the median or, of a clock that drifts, from the line of the neighbours."""
        if self.drifting and len(self.anchors) >= ENOUGH:
            triples = zip(self.anchors, self.anchors[1:], self.anchors[2:], strict=False)
            return median(abs(_off_line(*triple)) for triple in triples)
        centre = self.constant
        return median(abs(anchor.constant - centre) for anchor in self.anchors)

    @cached_property
    def width_s(self) -> float:
        """How exactly the constant is known from printed units alone."""
        return min(anchor.half_width_s for anchor in self.anchors)


def _off_line(before: Anchor, anchor: Anchor, after: Anchor) -> float:
    span = after.wall - before.wall
    share = (anchor.wall - before.wall) / span if span > 0 else 0.5
    return anchor.constant - before.constant - share * (after.constant - before.constant)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Stretches of a lane in order; none when the anchors contradict each other."""

    runs: tuple[Run, ...]
    strays: tuple[Anchor, ...] = ()
    """Anchors that agree with no run."""
    refused: bool = False
    scatter_s: float = 0.0

    @property
    def anchors(self) -> int:
        return sum(len(run.anchors) for run in self.runs)


def estimate(anchors: Sequence[Anchor], drift: float = 0.0) -> Estimate:
    """Group the anchors of a lane into runs; outliers are dropped, contradictions refused."""
    prompt = _without_lag(sorted(anchors, key=lambda a: (a.order, a.wall)))
    scatter_s = _scatter(prompt)
    groups = _groups(prompt, drift)
    if max(map(len, groups), default=0) < ENOUGH:
        if len(groups) > 1:
            return Estimate((), tuple(prompt), refused=True, scatter_s=scatter_s)
        return Estimate(tuple(Run(tuple(group), drift > 0) for group in groups), scatter_s=scatter_s)
    runs = tuple(Run(tuple(stretch), drift > 0) for stretch in _stretches(prompt, groups))
    taken = {id(anchor) for run in runs for anchor in run.anchors}
    strays = tuple(anchor for anchor in prompt if id(anchor) not in taken)
    torn = len(runs) > _MOST_RUNS or any(run.scatter_s > GATE_S for run in runs)
    if torn or len(strays) > len(taken):
        return Estimate((), tuple(prompt), refused=True, scatter_s=scatter_s)
    return Estimate(runs, strays, scatter_s=scatter_s)


def knots(anchors: Sequence[Anchor]) -> list[tuple[float, float]]:
    """(printed time, constant) along a run: medians of near neighbours, and the ends of the run."""
    chunks: list[list[Anchor]] = []
    for anchor in sorted(anchors, key=lambda a: a.wall):
        if chunks and len(chunks[-1]) < _CHUNK and anchor.wall - chunks[-1][0].wall < _CHUNK_S:
            chunks[-1].append(anchor)
        else:
            chunks.append([anchor])
    found = [(median(a.wall for a in chunk), median(a.constant for a in chunk)) for chunk in chunks]
    return [(chunks[0][0].wall, found[0][1]), *found, (chunks[-1][-1].wall, found[-1][1])]


def _groups(anchors: Sequence[Anchor], drift: float) -> list[list[Anchor]]:
    """Put each anchor to the most recent group that it agrees with."""
    groups: list[list[Anchor]] = []
    for anchor in anchors:
        for group in reversed(groups[-8:]):
            last = group[-1]
            allowed = GATE_S + anchor.half_width_s + last.half_width_s + drift * abs(anchor.wall - last.wall)
            if abs(anchor.constant - last.constant) <= allowed:
                group.append(anchor)
                break
        else:
            groups.append([anchor])
    return groups


def _stretches(anchors: Sequence[Anchor], groups: Sequence[Sequence[Anchor]]) -> list[list[Anchor]]:
    """Parts of the lane that one group has to itself. A constant may come back: summer time does.

    A few anchors of a small group in the midst of another are outliers that happen to agree.
    """
    group_of = {id(anchor): number for number, group in enumerate(groups) for anchor in group}
    most = max(map(len, groups))
    labelled = [(group_of[id(anchor)], anchor) for anchor in anchors]
    parts = _contiguous([pair for pair in labelled if len(groups[pair[0]]) >= ENOUGH])
    parts = _contiguous([pair for part in parts if len(part) >= ENOUGH for pair in part])
    kept = [
        part
        for i, part in enumerate(parts)
        if len(groups[part[0][0]]) >= _MINORITY * most
        or not (0 < i < len(parts) - 1 and parts[i - 1][0][0] == parts[i + 1][0][0])
    ]
    return [[anchor for _, anchor in part] for part in _contiguous([pair for part in kept for pair in part])]


def _contiguous(labelled: Sequence[tuple[int, Anchor]]) -> list[list[tuple[int, Anchor]]]:
    return [list(part) for _, part in groupby(labelled, key=lambda pair: pair[0])]


def _without_lag(anchors: Sequence[Anchor]) -> list[Anchor]:
    """Drop anchors whose witness was late: a delay only makes the constant larger than that of the neighbours.

    What most of the lane says is no delay, even beside a few anchors that say less.
    """
    kept: list[Anchor] = []
    usual = median(anchor.constant for anchor in anchors) if anchors else 0.0
    for position, anchor in enumerate(anchors):
        if anchor.lagging and abs(anchor.constant - usual) > GATE_S:
            around = anchors[max(position - _NEIGHBOURS, 0) : position + _NEIGHBOURS + 1]
            constants = sorted(other.constant for other in around if other.lagging)
            promptest = constants[len(constants) // 4]  # not the very first: a clock may be set between the stamps
            if GATE_S < anchor.constant - promptest < _LONGEST_LAG_S:
                continue
        kept.append(anchor)
    return kept


def _scatter(anchors: Sequence[Anchor]) -> float:
    if not anchors:
        return 0.0
    centre = median(anchor.constant for anchor in anchors)
    return median(abs(anchor.constant - centre) for anchor in anchors)
