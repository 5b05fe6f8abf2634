"""How the times of one lane become instants, once that is known."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..model import Basis, ClockAnchor

LAST = float("inf")
SLEEP_S = 86400.0
"""A machine whose sleep nobody measured is taken to have slept no longer than a day."""
SCHED_DRIFT = 1e-4
"""Seconds since boot run at the crystal's rate, which is off by up to 100 ppm."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a lane with one law: instant = printed + constant."""

    end: float
    """Last line of the stretch (last printed time in lanes whose lines are not in order)."""
    walls: tuple[float, ...]
    """Printed times at which the constant is known, ascending."""
    constants: tuple[float, ...]
    doubt_s: float = 0.0
    """Added to the uncertainty of every time in the stretch."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The law of a lane, and how it is known."""

    pieces: tuple[Piece, ...]
    basis: Basis
    verdict: str
    """`exact`, `solved`, `assumed` or `refused`."""
    zone: str
    offset_s: float | None = None
    """Zone part of the constant at the start of the lane."""
    skew_s: float = 0.0
    drift: float = 0.0
    """Seconds per second that the constant may wander away from where it is known."""
    frame: str = ""
    """The host whose clock the instants follow; empty for true time, as far as the bundle knows."""
    anchors: tuple[ClockAnchor, ...] = ()
    residual_s: float | None = None
    note: str = ""
    by_line: bool = True
    """Whether `end` of a piece is a line."""
    breaks: tuple[float, ...] = ()
    """Printed times, ascending, at which the machine woke up from a sleep that its seconds since boot do not count."""
    blur_s: float = 0.0
    """What is printed within this before a break may stand on either side of it."""

    @property
    def doubt_s(self) -> float:
        """The largest doubt of any stretch."""
        return max(piece.doubt_s for piece in self.pieces)

    def doubted(self, doubt_s: float) -> Solution:
        """The same law with more doubt."""
        if not doubt_s:
            return self
        return replace(self, pieces=tuple(replace(p, doubt_s=p.doubt_s + doubt_s) for p in self.pieces))

    def at(self, line: int, wall: float) -> tuple[float, float]:
        """(instant, doubt in seconds) of a printed time."""
        pieces = self.pieces
        if len(pieces) == 1:
            piece = pieces[0]
        else:
            place = float(line) if self.by_line else wall
            piece = pieces[min(bisect_left([p.end for p in pieces], place), len(pieces) - 1)]
        constant, doubt_s = self._constant(piece, wall)
        return wall + constant, doubt_s

    @property
    def constant(self) -> float | None:
        """What is added to every printed time of the lane, where that is one number."""
        constants = self.pieces[0].constants
        return constants[0] if len(self.pieces) == 1 and len(constants) == 1 else None

    def instants(self, lines: Sequence[int], walls: Sequence[float]) -> list[float]:
        """The instants of many printed times."""
        if (constant := self.constant) is not None:
            return [wall + constant for wall in walls]
        return [self.at(line, wall)[0] for line, wall in zip(lines, walls, strict=True)]

    def _constant(self, piece: Piece, wall: float) -> tuple[float, float]:
        walls, constants = piece.walls, piece.constants
        if len(walls) == 1:
            return constants[0], piece.doubt_s + self._wander(wall, walls[0])
        right = bisect_left(walls, wall)
        if right == 0 or right == len(walls):
            nearest = 0 if right == 0 else -1
            return constants[nearest], piece.doubt_s + self._wander(wall, walls[nearest])
        if walls[right] == wall:
            return constants[right], piece.doubt_s
        left = right - 1
        span = walls[right] - walls[left]
        share = (wall - walls[left]) / span if span > 0 else 0.5
        constant = constants[left] + share * (constants[right] - constants[left])
        jump = abs(constants[right] - constants[left]) - 2 * self.drift * span
        if jump > 1.0:  # not drift: a suspend or a step lies somewhere between the two
            woken = [known for known in self.breaks if walls[left] < known <= walls[right]]
            if woken and not woken[0] - self.blur_s <= wall < woken[-1] + self.blur_s:
                side = left if wall < woken[0] else right
                return constants[side], piece.doubt_s + self.drift * span
            return (constants[left] + constants[right]) / 2, piece.doubt_s + jump / 2 + self.drift * span
        return constant, piece.doubt_s + self.drift * min(wall - walls[left], walls[right] - wall)

    def _wander(self, wall: float, known: float) -> float:
        """How far the constant may be from where it is known: by drift, and by sleep between the two."""
        drifted_s = self.drift * abs(wall - known)
        if not self.breaks:
            return drifted_s
        first, last = min(wall, known) - self.blur_s, max(wall, known) + self.blur_s
        return drifted_s + (SLEEP_S if any(first < woken <= last for woken in self.breaks) else 0.0)


def constant_piece(constant: float, walls: Sequence[float], doubt_s: float = 0.0, end: float = LAST) -> Piece:
    """One constant, known at the latest of the printed times (which matters for lanes that drift)."""
    return Piece(end, (max(walls, default=0.0),), (constant,), doubt_s)
