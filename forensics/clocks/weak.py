"""When nothing pins a local clock: choose among the zones that exist, by what must lie near what.

A container's log begins soon after its start and ends at its death; logs end near the capture; a GPU's memory falls
when a process dies; two things that name the same id happen close together. One such hint proves little, but local
clocks differ from UTC by one of a few dozen offsets, so a few hints that agree on one offset, and on no other, decide.
What remains open is said as uncertainty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .zones import OFFSETS_S

CLEAR_MARGIN = 1.0
"""By how much the best offset must lead."""
CLEAR_SCORE = 1.2


@dataclass(frozen=True, slots=True)
class Hint:
    """A printed local time that should lie between two instants. Of one group, only the best hint counts."""

    group: str
    wall: float
    low: float
    high: float
    weight: float = 1.0

    def fits(self, offset_s: float) -> bool:
        return self.low <= self.wall + offset_s <= self.high


@dataclass(frozen=True, slots=True)
class Choice:
    """The offset chosen, and how open the choice is."""

    offset_s: float
    doubt_s: float
    hints: int
    """Groups that support it."""
    clear: bool


def choose(hints: Iterable[Hint], priors: Mapping[float, float], possible: Sequence[float] = OFFSETS_S) -> Choice:
    """The best offset; ties go to the stronger prior, then to the one nearest to UTC."""
    groups: dict[str, dict[float, float]] = defaultdict(dict)
    for hint in hints:
        for offset_s in possible:
            if hint.fits(offset_s):
                scores = groups[hint.group]
                scores[offset_s] = max(scores.get(offset_s, 0.0), hint.weight)
    totals = {
        offset_s: sum(scores.get(offset_s, 0.0) for scores in groups.values()) + priors.get(offset_s, 0.0)
        for offset_s in possible
    }
    ranked = sorted(possible, key=lambda offset_s: (-totals[offset_s], -priors.get(offset_s, 0.0), abs(offset_s)))
    best = ranked[0]
    usual = max((offset_s for offset_s in possible if offset_s in priors), key=lambda o: priors[o], default=best)
    if totals[best] - totals[usual] < CLEAR_MARGIN:  # what may be chance moves no clock
        best = usual
    margin = totals[best] - totals[ranked[1]] if len(ranked) > 1 else float("inf")
    clear = margin >= CLEAR_MARGIN and (totals[best] >= CLEAR_SCORE or len(ranked) == 1)
    rivals = [offset_s for offset_s in possible if totals[best] - totals[offset_s] < CLEAR_MARGIN]
    doubt_s = 0.0 if clear else max(abs(offset_s - best) for offset_s in (rivals if len(rivals) > 1 else possible))
    support = sum(best in scores for scores in groups.values())
    return Choice(best, doubt_s, support, clear)
