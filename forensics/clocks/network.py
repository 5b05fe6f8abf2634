"""Solve lane after lane, from those that print instants outward along the links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from statistics import median

from ..model import Locator, StampForm
from . import years
from .anchors import Kind, Link
from .lanes import EMBEDDED_LAYER, Lane, Lanes
from .laws import Testimony, boot_solution, exact, local_solution
from .offsets import ENOUGH, GATE_S, Anchor, estimate
from .solution import SCHED_DRIFT, Solution
from .steps import Steps
from .stretches import with_strays
from .zones import Rule

_YEAR_S = 365.2425 * 86400
_MOST_LINKS = 3000
_MOST_STEP_S = 1800.0
"""Larger doubts of a witness are zones that nobody knows, and say nothing about one place."""
_LAG_S = {Kind.RECORD: 0.0, Kind.TEXT: 0.0, Kind.FACT: 1.0, Kind.LOOSE: 15.0}
"""How far apart two readings of one moment may be, beyond their printed units."""


@dataclass(frozen=True, slots=True)
class _Told:
    """An anchor, with the doubt of its witness."""

    anchor: Anchor
    doubt_s: float
    sure: bool

    @property
    def width_s(self) -> float:
        return self.doubt_s + self.anchor.half_width_s


class Network:
    """Lanes, their links, and the solutions found so far."""

    def __init__(self, lanes: Lanes, links: Sequence[Link]) -> None:
        self.lanes = lanes
        self.solutions: dict[int, Solution] = {}
        self.refused: dict[int, str] = {}
        self.steps: Steps | None = None
        """Steps of clocks, once looked for. Kernel logs wait for them: they do not follow a clock that is set."""
        self._links: dict[int, dict[int, list[Link]]] = defaultdict(lambda: defaultdict(list))
        for link in links:
            one, other = link.first[0], link.second[0]
            self._links[one][other].append(link)
            self._links[other][one].append(link)
        self._reach: dict[int, int] = defaultdict(int)
        self._next: list[tuple[int, int]] = []
        """Heap of (links to solved lanes, negative; lane): a lane stands there once for each time it came nearer."""
        for lane in lanes.lanes:
            if lane.key.form is StampForm.INSTANT:
                self.add(lane.index, exact(lane))

    def add(self, index: int, solution: Solution) -> None:
        """Take a lane as solved; its neighbours come into reach."""
        self.solutions[index] = solution
        if solution.verdict == "refused":
            return
        for neighbour, links in self._links[index].items():
            self._reach[neighbour] += len(links)
            if self.lanes.lanes[neighbour].key.form is not StampForm.AGE:
                heappush(self._next, (-self._reach[neighbour], neighbour))

    def spread(self, declared: dict[int, Rule]) -> None:
        """Solve every lane that has links to solved ones, best linked first."""
        waiting = []
        while self._next:
            reach, index = heappop(self._next)
            if -reach != self._reach[index] or index in self.solutions or index in self.refused:
                continue
            if self.lanes.lanes[index].key.layer == "dmesg" and self.steps is None:
                waiting.append((reach, index))
                continue
            solution = self._solve(self.lanes.lanes[index], declared.get(index))
            if solution is not None:
                self.add(index, solution)
        self._next += waiting
        heapify(self._next)

    def _solve(self, lane: Lane, declared: Rule | None) -> Solution | None:
        said = self._testimony(lane)
        if lane.key.form is StampForm.YEARLESS and said.anchors and lane.year_note != years.GIVEN:
            off = round(median(anchor.constant for anchor in said.anchors) / _YEAR_S)
            if off:
                years.shift(lane, off)
                lane.year_note = "year from anchors"
                said = self._testimony(lane)
            lane.year_doubt_s = 0.0  # the year is the witnesses', with whatever doubt they have
        found = estimate(said.anchors, SCHED_DRIFT if lane.key.layer == "dmesg" else 0.0)
        if found.refused:
            self.refused[lane.index] = (
                f"{len(found.strays)} anchors disagree (scatter {found.scatter_s:.0f} s): not corrected by them"
            )
            return None
        found = replace(found, strays=found.strays + said.doubtful)
        if lane.key.form is StampForm.BOOT:
            solution = boot_solution(lane, found, said)
        else:
            solution = local_solution(lane, found, declared, said)
        blur_s = lane.resolution_s if lane.resolution_s >= 0.5 else 0.0
        return replace(
            solution, pieces=with_strays(lane, solution.pieces, found), breaks=tuple(lane.woken), blur_s=blur_s
        )

    def _testimony(self, lane: Lane) -> Testimony:
        """What solved lanes say about a lane.

        One reading is one anchor, however many witnesses it has: the surest speaks. Instants that messages print
        about themselves speak only where nothing better does. Witnesses on the lane's own host are heard first.
        """
        frames: dict[str, dict[int, _Told]] = defaultdict(dict)
        talk: dict[str, dict[int, _Told]] = defaultdict(dict)
        for other, links in sorted(self._links[lane.index].items()):
            solution = self.solutions.get(other)
            if solution is None or solution.verdict == "refused":
                continue
            store = talk if self.lanes.lanes[other].key.layer == EMBEDDED_LAYER else frames
            best = store[solution.frame]
            for link in links[:: 1 + len(links) // _MOST_LINKS]:
                position, told = self._anchor(lane, link, solution.verdict != "assumed")
                if position not in best or told.width_s < best[position].width_s:
                    best[position] = told
        if max((len(best) for best in frames.values()), default=0) < ENOUGH:
            for frame, best in talk.items():
                frames[frame] = best | frames[frame]
        if not frames:
            return Testimony()
        own = lane.key.host
        frame = max(frames, key=lambda name: (name == own and name != "", len(frames[name]), name))
        clearest_s = min(told.doubt_s for told in frames[frame].values())
        heard = [told for told in frames[frame].values() if told.doubt_s <= clearest_s + GATE_S]
        sure = sum(told.sure for told in heard) >= min(ENOUGH, len(heard))
        doubtful = tuple(
            replace(told.anchor, half_width_s=told.width_s)
            for told in frames[frame].values()
            if clearest_s + GATE_S < told.doubt_s < _MOST_STEP_S
        )
        anchors = tuple(told.anchor for told in heard)
        return Testimony(anchors, frame, median(told.doubt_s for told in heard), sure, doubtful)

    def _anchor(self, lane: Lane, link: Link, sure: bool) -> tuple[int, _Told]:
        inner = link.first[0] == lane.index
        (_, own), (other_index, other) = (link.first, link.second) if inner else (link.second, link.first)
        witness = self.lanes.lanes[other_index]
        instant, doubt_s = self.solutions[other_index].at(witness.lines[other], witness.walls[other])
        if lane.key.layer == "dmesg" and self.steps is not None:
            ahead_s, step_doubt_s = self.steps.ahead(other_index, witness.lines[other], instant)
            instant, doubt_s = instant - ahead_s, doubt_s + step_doubt_s
        line, wall = lane.lines[own], lane.walls[own]
        middle = instant + witness.resolution_s / 2 - wall - lane.resolution_s / 2
        half = (lane.resolution_s + witness.resolution_s) / 2 + _LAG_S[link.kind]
        anchor = Anchor(
            float(line) if lane.ordered else wall,
            wall,
            middle,
            half,
            Locator.at(lane.key.source, line),
            Locator.at(witness.key.source, witness.lines[other]),
            lagging=link.kind is Kind.RECORD and inner,
        )
        return own, _Told(anchor, doubt_s, sure)
