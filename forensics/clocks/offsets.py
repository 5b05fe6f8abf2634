"""Robust estimates: from anchors of one lane to stretches with one constant, or a refusal.

An anchor says: this printed time is that instant, so the constant is their difference. True anchors agree within the
width of the printed units and the lag of a log line; false ones do not. A clock that was set, a change of summer time
or a suspended machine gives several constants, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..model import Locator

ENOUGH = 3
"""Anchors that make a constant solved rather than assumed."""
GATE_S = 5.0
"""Largest scatter (median absolute deviation) of anchors that agree."""
_MINORITY = 0.25
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


@dataclass(frozen=True, slots=True)
class Run:
    """Anchors, one after the other, that agree."""

    anchors: tuple[Anchor, ...]
    drifting: bool = False
    """Whether the constant may wander: then an anchor is compared with its neighbours only."""

    @property
    def constant(self) -> float:
        return median(anchor.constant for anchor in self.anchors)

    @property
    def scatter_s(self) -> float:
        """Median absolute deviation, from the median or, of a clock that drifts, from the line of the neighbours."""
        if self.drifting and len(self.anchors) >= ENOUGH:
            triples = zip(self.anchors, self.anchors[1:], self.anchors[2:], strict=False)
            return median(abs(_off_line(*triple)) for triple in triples)
        centre = self.constant
        return median(abs(anchor.constant - centre) for anchor in self.anchors)

    @property
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
    runs = _runs(prompt, drift)
    scatter_s = _scatter(prompt)
    strong = [run for run in runs if len(run.anchors) >= ENOUGH]
    if not strong:
        if len(runs) > 1:
            return Estimate((), tuple(prompt), refused=True, scatter_s=scatter_s)
        return Estimate(tuple(runs), scatter_s=scatter_s)
    most = max(len(run.anchors) for run in strong)
    strong = [run for run in strong if len(run.anchors) >= _MINORITY * most or _apart(run, strong)]
    kept = sum(len(run.anchors) for run in strong)
    if 2 * kept < len(prompt) or _interleaved(strong) or any(run.scatter_s > GATE_S for run in strong):
        return Estimate((), tuple(prompt), refused=True, scatter_s=scatter_s)
    strong.sort(key=lambda run: run.anchors[0].order)
    taken = {id(anchor) for run in strong for anchor in run.anchors}
    strays = tuple(anchor for anchor in prompt if id(anchor) not in taken)
    return Estimate(tuple(strong), strays, scatter_s=scatter_s)


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


def _runs(anchors: Sequence[Anchor], drift: float) -> list[Run]:
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
    return [Run(tuple(group), drift > 0) for group in groups]


def _without_lag(anchors: Sequence[Anchor]) -> list[Anchor]:
    """Drop anchors whose witness was late: a delay only makes the constant larger than that of the neighbours."""
    kept: list[Anchor] = []
    for position, anchor in enumerate(anchors):
        if anchor.lagging:
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


def _span(run: Run) -> tuple[float, float]:
    return run.anchors[0].order, run.anchors[-1].order


def _apart(run: Run, others: Sequence[Run]) -> bool:
    """Whether a run has its stretch of the file to itself."""
    first, last = _span(run)
    return all(other is run or _span(other)[0] > last or _span(other)[1] < first for other in others)


def _interleaved(runs: Sequence[Run]) -> bool:
    return any(not _apart(run, runs) for run in runs)
