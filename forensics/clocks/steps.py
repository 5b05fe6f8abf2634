"""Clocks that were set while they wrote: time services say so, and times that fall in a file show it.

After the step the clock is taken as right: that is what a time service sets it for. What was written before ran ahead
(set back) or behind (set forward) by the size of the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import regex

from ..model import Event, Locator, StampForm
from ..regexes import lazy_regex
from .lanes import Lane, Lanes
from .solution import Solution
from .stampers import NODE_LAYERS

_SAID = lazy_regex(
    r"System clock was stepped by (?P<chrony>-?[\d.]+) seconds"  # chrony 3 and 4
    r"|time stepped by (?P<ntp>-?[\d.]+)"  # ntpsec, ntpd
    r"|step time server \S+ offset (?P<ntpdate>-?[\d.]+) sec"
    r"|(?P<unsized>Time jumped backwards|Backward time jump detected|Initial clock synchronization to"
    r"|System clock time unset or jumped backwards)"  # journald, chronyd, timesyncd
)
_LEAST_S = 2.0
_AROUND = 3
"""Lines around the witness among which the step is looked for."""
_SUSTAINED = 2
_UNSAID_S = (5.0, 900.0)
"""Falls of this size are taken for a set clock without a witness; larger ones are joined files."""
_MOST = 3
_LOGS = NODE_LAYERS | {"cri", "prefix", "engine", "ray"}
"""Layers of files that grow line by line; in documents times fall without a meaning."""
_PLACED_S = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """A clock was set."""

    host: str
    source: str
    line: int
    """First line after it."""
    before_s: float
    """What the clock showed when it was set: before, and after."""
    after_s: float
    ahead_s: float
    """How far it ran ahead before; negative: behind."""
    doubt_s: float
    placed: bool = True
    """Whether its instant is known, so that it can be looked for in other files of the host."""

    @property
    def note(self) -> str:
        way = "back" if self.ahead_s > 0 else "forward"
        return f"the clock was set {way} by {abs(self.ahead_s):.0f} s at {Locator.at(self.source, self.line)}"


@dataclass(slots=True)
class Steps:
    """All steps, and where they lie in each lane."""

    lanes: Lanes
    solutions: Mapping[int, Solution]
    steps: tuple[Step, ...]
    _bounds: dict[tuple[int, int], int | None] = field(default_factory=dict)

    def of(self, index: int) -> list[Step]:
        """Steps that a lane shows: those of its host, and its own falls."""
        lane, solution = self.lanes.lanes[index], self.solutions.get(index)
        if solution is None or lane.key.layer == "dmesg":  # rendered with the clock that ran at the capture
            return []
        host = solution.frame or lane.key.host
        return [
            step
            for step in self.steps
            if (step.host and step.host == host) or (not step.host and step.source == lane.key.source)
        ]

    def ahead(self, index: int, line: int, instant_s: float) -> tuple[float, float]:
        """(seconds ahead, doubt) of a time that a lane shows."""
        ahead_s = doubt_s = 0.0
        for number, step in enumerate(self.of(index)):
            earlier = self._earlier(index, number, step, line, instant_s)
            if earlier is None:
                doubt_s += abs(step.ahead_s) + 1.0
            elif earlier:
                ahead_s += step.ahead_s
                doubt_s += step.doubt_s
        return ahead_s, doubt_s

    def ahead_of(self, host: str, instant_s: float) -> tuple[float, float]:
        """(seconds ahead, doubt) of a time that a host wrote somewhere."""
        ahead_s = doubt_s = 0.0
        for step in self.steps:
            if step.host and step.host == host:
                earlier = _earlier(step, instant_s)
                if earlier is None:
                    doubt_s += abs(step.ahead_s) + 1.0
                elif earlier:
                    ahead_s += step.ahead_s
                    doubt_s += step.doubt_s
        return ahead_s, doubt_s

    def _earlier(self, index: int, number: int, step: Step, line: int, instant_s: float) -> bool | None:
        lane = self.lanes.lanes[index]
        if lane.key.source == step.source and lane.ordered:
            return line < step.line
        if not step.placed:
            return None
        bound = self._bounds.get((index, number), -1)
        if bound == -1:
            bound = self._bounds[index, number] = self._own_bound(index, step)
        if bound is not None:
            return line < bound
        return _earlier(step, instant_s)

    def _own_bound(self, index: int, step: Step) -> int | None:
        """The line at which the lane's own times fall, as the clock was set back."""
        lane, solution = self.lanes.lanes[index], self.solutions[index]
        if step.ahead_s < 0 or not lane.ordered:
            return None
        shown = solution.instants(lane.lines, lane.walls)
        for position, (earlier, later) in enumerate(pairwise(shown)):
            if earlier - later > 0.3 * step.ahead_s and step.after_s - 5 <= later and earlier <= step.before_s + 5:
                return lane.lines[position + 1]
        return None


def _earlier(step: Step, instant_s: float) -> bool | None:
    """Whether a shown time was written before a step; none when it was shown twice."""
    if not step.placed or (step.ahead_s > 0 and step.after_s <= instant_s <= step.before_s):
        return None
    return instant_s <= (step.before_s + step.after_s) / 2


def find(lanes: Lanes, solutions: Mapping[int, Solution]) -> Steps:
    """Steps that a time service says, and falls of a lane that nobody explains."""
    found: list[Step] = []
    for event, places in zip(lanes.events, lanes.places, strict=True):
        if event.channel in ("clock", "systemd", "host", "kernel", "plain") and (said := _SAID.search(event.text)):
            for index, position in places[: len(event.stamps)]:
                step = _witnessed(event, said, lanes, solutions, index, position)
                if step is not None:
                    if not any(_same(step, other) for other in found):
                        found.append(step)
                    break
    hosts = {step.host for step in found}
    for lane in lanes.lanes:
        solution = solutions.get(lane.index)
        if solution is None or not lane.ordered or lane.key.form in (StampForm.BOOT, StampForm.AGE):
            continue
        if lane.key.layer in _LOGS and not (hosts & {solution.frame, lane.key.host} - {""}):
            found += _unsaid(lane, solution)
    return Steps(lanes, solutions, tuple(found))


def _same(one: Step, other: Step) -> bool:
    near = abs(one.after_s - other.after_s) < 60 and abs(one.ahead_s - other.ahead_s) < 60
    return one.host == other.host and near


def _witnessed(
    event: Event, said: regex.Match[str], lanes: Lanes, solutions: Mapping[int, Solution], index: int, position: int
) -> Step | None:
    """The step that a line speaks of: its size from the line, its direction from the times around it."""
    solution = solutions.get(index)
    if solution is None or not lanes.lanes[index].ordered:
        return None
    lane = lanes.lanes[index]
    low, high = max(position - _AROUND, 0), min(position + _AROUND + 1, len(lane.walls))
    told = [solution.at(lane.lines[i], lane.walls[i]) for i in range(low, high)]
    shown = [instant for instant, _ in told]
    if max(doubt_s for _, doubt_s in told) > _PLACED_S:  # an hour that occurs twice, or the like: as printed
        shown = [shown[0] + lane.walls[i] - lane.walls[low] for i in range(low, high)]
    jumps = [later - earlier for earlier, later in pairwise(shown)]
    if not jumps:
        return None
    amount = next((float(value) for value in (said["chrony"], said["ntp"], said["ntpdate"]) if value), 0.0)
    size_s = abs(amount)
    nearest = sorted(range(len(jumps)), key=lambda at: abs(low + at + 1 - position))
    falls = [at for at in nearest if -jumps[at] > max(_LEAST_S, 0.5 * size_s)]
    leaps = [at for at in nearest if amount > _LEAST_S and jumps[at] >= 0.8 * size_s]  # any gap looks like a leap
    if falls:
        at = falls[0]
        ahead_s, doubt_s = size_s or -jumps[at], 1.0 if size_s else -jumps[at]
    elif leaps:
        at, ahead_s, doubt_s = leaps[0], -size_s, 1.0
    elif size_s > _LEAST_S:  # neither shows: a step back that a gap hides, or lines that are missing
        at, ahead_s, doubt_s = nearest[0], -amount, size_s
    else:
        return None
    after_s = shown[at + 1]
    _, open_s = solution.at(lane.lines[position], lane.walls[position])
    return Step(
        solution.frame or lane.key.host,
        lane.key.source,
        lane.lines[low + at + 1],
        after_s + ahead_s + lane.resolution_s,
        after_s,
        ahead_s,
        doubt_s,
        open_s < _PLACED_S,
    )


def _unsaid(lane: Lane, solution: Solution) -> Iterator[Step]:
    """Falls of a lane: either side may be the right one."""
    shown = solution.instants(lane.lines, lane.walls)
    falls = []
    for position in range(1, len(shown)):
        fall = shown[position - 1] - shown[position]
        if not _UNSAID_S[0] < fall < _UNSAID_S[1]:
            continue
        following = shown[position : position + _SUSTAINED]
        spike = position > 1 and shown[position] >= shown[position - 2]  # one late stamp, not a set clock
        below = all(later < shown[position - 1] for later in following)
        if below and not spike:
            falls.append((position, fall))
    if len(falls) > _MOST:
        return
    for position, fall in falls:
        yield Step("", lane.key.source, lane.lines[position], shown[position - 1], shown[position], 0.0, 2 * fall)
