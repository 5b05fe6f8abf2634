"""Solve lane after lane, from those that print instants outward along the links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from ..model import Basis, ClockAnchor, Locator, StampForm
from . import civil as civil_time
from . import years
from .anchors import Kind, Link
from .lanes import EMBEDDED_LAYER, Lane, Lanes
from .offsets import ENOUGH, Anchor, Estimate, Run, estimate, knots
from .solution import SCHED_DRIFT, Piece, Solution, constant_piece
from .steps import Steps
from .stretches import stepped, with_strays
from .zones import Rule

_YEAR_S = 365.2425 * 86400
_MOST_LINKS = 3000
_SHOWN = 12
"""Anchors that the clock table names."""
_QUEUE_S = 0.3
"""A wall clock stamps kernel lines when they are received, so much later."""
_LAG_S = {Kind.RECORD: 0.0, Kind.TEXT: 0.0, Kind.FACT: 1.0, Kind.LOOSE: 15.0}
"""How far apart two readings of one moment may be, beyond their printed units."""


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

    def neighbours(self, index: int) -> Iterable[int]:
        return self._links[index]

    def spread(self, declared: dict[int, Rule]) -> None:
        """Solve every lane that has links to solved ones, best linked first."""
        while True:
            open_lanes = [
                index
                for index, reach in self._reach.items()
                if reach and index not in self.solutions and index not in self.refused and self._solvable(index)
            ]
            if not open_lanes:
                return
            index = max(open_lanes, key=lambda i: (self._reach[i], -i))
            solution = self._solve(self.lanes.lanes[index], declared.get(index))
            if solution is None:
                continue
            self.add(index, solution)

    def _sure(self, lane: Lane) -> bool:
        """Whether the witnesses of a lane are sure themselves."""
        witnesses = [self.solutions[other] for other in self._links[lane.index] if other in self.solutions]
        return any(witness.verdict in ("exact", "solved") for witness in witnesses)

    def _solvable(self, index: int) -> bool:
        key = self.lanes.lanes[index].key
        return key.form is not StampForm.AGE and (key.layer != "dmesg" or self.steps is not None)

    def _solve(self, lane: Lane, declared: Rule | None) -> Solution | None:
        anchors, frame, doubt_s = self.anchors(lane)
        if lane.key.form is StampForm.YEARLESS and anchors and not lane.year_note.startswith("year given"):
            off = round(median(anchor.constant for anchor in anchors) / _YEAR_S)
            if off:
                years.shift(lane, off)
                lane.year_note, lane.year_doubt_s = "year from anchors", 0.0
                anchors, frame, doubt_s = self.anchors(lane)
        drifts = lane.key.layer == "dmesg"
        found = estimate(anchors, SCHED_DRIFT if drifts else 0.0)
        if found.refused:
            self.refused[lane.index] = (
                f"{len(found.strays)} anchors disagree (scatter {found.scatter_s:.0f} s): not corrected by them"
            )
            return None
        if lane.key.form is StampForm.BOOT:
            solution = boot_solution(lane, found, frame, doubt_s, self._sure(lane))
        else:
            solution = local_solution(lane, found, declared, frame, doubt_s, self._sure(lane))
        return replace(solution, pieces=with_strays(lane, solution.pieces, found))

    def anchors(self, lane: Lane) -> tuple[list[Anchor], str, float]:
        """What solved lanes say about a lane: anchors, the frame of their instants, and their doubt.

        One reading is one anchor, however many witnesses it has: the surest speaks. Instants that messages print
        about themselves speak only where nothing better does.
        """
        frames: dict[str, dict[int, tuple[float, Anchor]]] = defaultdict(dict)
        talk: dict[str, dict[int, tuple[float, Anchor]]] = defaultdict(dict)
        for other, links in sorted(self._links[lane.index].items()):
            solution = self.solutions.get(other)
            if solution is None or solution.verdict == "refused":
                continue
            told = talk if self.lanes.lanes[other].key.layer == EMBEDDED_LAYER else frames
            best = told[solution.frame]
            for link in links[:: 1 + len(links) // _MOST_LINKS]:
                position, doubt_s, anchor = self._anchor(lane, link)
                if position not in best or doubt_s + anchor.half_width_s < sum(_quality(best[position])):
                    best[position] = (doubt_s, anchor)
        if max((len(best) for best in frames.values()), default=0) < ENOUGH:
            for frame, best in talk.items():
                frames[frame] = best | frames[frame]
        if not frames:
            return [], "", 0.0
        own = lane.key.host
        frame = max(frames, key=lambda name: (name == own and name != "", len(frames[name]), name))
        chosen = list(frames[frame].values())
        return [anchor for _, anchor in chosen], frame, median(doubt_s for doubt_s, _ in chosen)

    def _anchor(self, lane: Lane, link: Link) -> tuple[int, float, Anchor]:
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
            Locator(lane.key.source, line, line),
            Locator(witness.key.source, witness.lines[other], witness.lines[other]),
            lagging=link.kind is Kind.RECORD and inner,
        )
        return own, doubt_s, anchor


def _quality(told: tuple[float, Anchor]) -> tuple[float, float]:
    return told[0], told[1].half_width_s


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


def local_solution(
    lane: Lane, found: Estimate, declared: Rule | None, frame: str, doubt_s: float, sure: bool
) -> Solution:
    """Local times from anchors: zone and skew apart; without a zone that fits, stretches as measured."""
    drifts = lane.key.layer == "dmesg"
    result = civil_time.fit(lane, found.runs, declared)
    if result is not None and (drifts or civil_time.steady(found.runs)):
        pieces, skew_s = civil_time.pieces(lane, result, found.runs, drifts)
        zone, note = result.zone, result.note
        offset_s: float | None = result.segments[0].offset_s
    else:
        pieces = (measured(found),) if drifts else stepped(lane, found.runs)
        skew_s, zone = 0.0, result.zone if result else ""
        offset_s = result.segments[0].offset_s if result else None
        note = "rendered on another machine" if drifts else "the clock was set inside the file"
    if skew_s:
        doubt_s += max(run.scatter_s for run in found.runs)
    if _verdict(found, sure) == "assumed":
        doubt_s += abs(skew_s)  # no zone is off by so much: rather a false anchor than a wrong clock
    return _with_doubt(
        Solution(
            pieces,
            Basis.SKEW_CORRECTED if skew_s else Basis.ZONE_SOLVED,
            _verdict(found, sure),
            zone,
            offset_s,
            skew_s,
            SCHED_DRIFT if drifts else 0.0,
            frame,
            shown(found.runs),
            _residual(found.runs),
            note,
            lane.ordered,
        ),
        doubt_s + lane.year_doubt_s,
    )


def boot_solution(lane: Lane, found: Estimate, frame: str, doubt_s: float, sure: bool) -> Solution:
    """Seconds since boot: the epoch wanders, so it is taken from the anchors nearest to each time."""
    piece = measured(found)
    piece = replace(piece, doubt_s=piece.doubt_s + doubt_s)
    return Solution(
        (piece,),
        Basis.BOOT_SOLVED,
        _verdict(found, sure),
        "boot",
        drift=SCHED_DRIFT,
        frame=frame,
        anchors=shown(found.runs),
        residual_s=_residual(found.runs),
        by_line=lane.ordered,
    )


def measured(found: Estimate) -> Piece:
    """Constants as the anchors give them, each near its place."""
    known = sorted(knot for run in found.runs for knot in _knots(run))
    doubt_s = max(run.width_s + run.scatter_s for run in found.runs) + _QUEUE_S
    return Piece(float("inf"), tuple(wall for wall, _ in known), tuple(c for _, c in known), doubt_s)


def _knots(run: Run) -> list[tuple[float, float]]:
    """Where a run's constant is known; where exact anchors are among the others, only those."""
    finest = run.width_s
    return knots([anchor for anchor in run.anchors if anchor.half_width_s <= 2 * finest + 0.001])


def _verdict(found: Estimate, sure: bool) -> str:
    return "solved" if sure and all(len(run.anchors) >= ENOUGH for run in found.runs) else "assumed"


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


def _with_doubt(solution: Solution, doubt_s: float) -> Solution:
    if not doubt_s:
        return solution
    return replace(solution, pieces=tuple(replace(p, doubt_s=p.doubt_s + doubt_s) for p in solution.pieces))
