"""Put the solved clocks to use: a time for every event, Unix time for every sample."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import stamps
from ..model import UNKNOWN_TIME, Basis, Event, RawStamp, Samples, StampForm, Timestamp
from ..regexes import lazy_regex
from .ages import BESIDE_S, Capture
from .hints import TO_FIRST_LINE_S
from .lanes import EMBEDDED_LAYER, RANGES, Lanes, plausible
from .skew import Skew
from .solution import Solution
from .steps import Steps
from .undated import MILLISECOND, Bars, after_all, between

BUFFERED_S = 3.0
"""An outer stamp that is later than this was written after the line had waited in a buffer."""
_START_DOUBT_S = 2.0
"""Kubernetes prints starts in whole seconds, and a kubelet that lists containers sees them a second late."""
_PRINTED = lazy_regex(
    r"(?s)[^\n]{0,40}?(?<![\d.-])(20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))(?!\d)"
)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Everything that is solved."""

    lanes: Lanes
    solutions: Mapping[int, Solution]
    captures: Mapping[str, Capture]
    skews: Mapping[str, Skew]
    steps: Steps
    ends: Mapping[str, Sequence[float]]
    """Ends of containers by pod."""
    recorded: Mapping[tuple[str, str], float]
    """Recorded instants of captures, by (source, host)."""
    starts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Starts of containers by pod."""

    def latest_s(self, event: Event, before: Timestamp | None) -> float | None:
        """Until when a container can have gone on writing: its end, else the capture."""
        if before is None or before.utc_s is None:
            return None
        written_s = before.utc_s - before.uncertainty_s - BUFFERED_S
        ends = self.ends.get(event.scope.pod, ()) if event.scope.pod else ()
        tables = () if self.recorded else [c.seconds + c.doubt_s + BESIDE_S for c in self.captures.values()]
        later = [end for end in (*ends, *self.recorded.values(), *tables) if end >= written_s]
        return min(later, default=None)

    def start(self, event: Event, after: Timestamp) -> Timestamp | None:
        """The start of the container whose first stamped line is `after`: what stands above was written since."""
        if after.utc_s is None or not event.scope.pod:
            return None
        earlier = [s for s in self.starts.get(event.scope.pod, ()) if 0 <= after.latest_s - s <= TO_FIRST_LINE_S]
        return Timestamp(max(earlier), _START_DOUBT_S, Basis.FILE_ORDER) if earlier else None

    def printed(self, event: Event, between: Timestamp) -> Timestamp | None:
        """The instant that a line without a known header prints near its start, where file order agrees with it."""
        found = None if event.stamps else _PRINTED.match(event.text)
        stamp = stamps.iso(found[1], EMBEDDED_LAYER) if found else None
        if stamp is None or not between.earliest_s - 1 <= stamp.seconds <= between.latest_s + 1:
            return None
        skew_s, doubt_s = self.skew(self.lanes.stampers.host(event))
        return Timestamp(stamp.seconds - skew_s, max(stamp.resolution_s, MILLISECOND) + doubt_s, Basis.EXACT)

    def skew(self, frame: str) -> tuple[float, float]:
        skew = self.skews.get(frame) if frame else None
        return (skew.seconds, skew.doubt_s) if skew else (0.0, 0.0)

    def unplaced_s(self, index: int, instant_s: float) -> float:
        """How wrong a lane may be that a host with a wrong clock may have written, as far as anybody knows."""
        if not self.skews and not self.steps.steps:
            return 0.0
        key = self.lanes.lanes[index].key
        if key.host or key.layer in ("k8s", "kubectl", "age") or self.solutions[index].frame:
            return 0.0
        skewed = max((abs(skew.seconds) for skew in self.skews.values()), default=0.0)
        before = (
            step for step in self.steps.steps if not step.placed or instant_s <= max(step.before_s, step.after_s) + 1.0
        )
        unsure_s = skewed + max((abs(step.ahead_s) for step in before), default=0.0)
        return unsure_s + 1.0 if unsure_s else 0.0

    def utc(self, index: int, line: int, wall: float) -> float | None:
        """A printed time of a lane as Unix time."""
        solution = self.solutions.get(index)
        if solution is None:
            return None
        utc, _ = solution.at(line, wall)
        skew_s, _ = self.skew(solution.frame)
        if self.steps.steps:
            skew_s += self.steps.ahead(index, line, utc)[0]
        return utc - skew_s

    def law(self, index: int) -> tuple[float, float] | None:
        """Constant and skew of a lane where all its times share them: Unix time = printed + constant - skew."""
        solution = self.solutions.get(index)
        if solution is None or solution.constant is None or self.steps.steps:
            return None
        return solution.constant, self.skew(solution.frame)[0]

    def instant(self, index: int, line: int, wall: float, resolution_s: float) -> Timestamp | None:
        """A printed time of a lane as an instant."""
        solution = self.solutions.get(index)
        if solution is None:
            return None
        utc, doubt_s = solution.at(line, wall)
        skew_s, skew_doubt_s = self.skew(solution.frame)
        if self.steps.steps:
            ahead_s, step_doubt_s = self.steps.ahead(index, line, utc)
            skew_s, skew_doubt_s = skew_s + ahead_s, skew_doubt_s + step_doubt_s
        basis = Basis.SKEW_CORRECTED if skew_s else solution.basis
        doubt_s += skew_doubt_s + self.unplaced_s(index, utc)
        return Timestamp(utc - skew_s, max(resolution_s, MILLISECOND) + doubt_s, basis)

    def aged(self, event: Event, stamp: RawStamp) -> Timestamp | None:
        """An age as an instant; ages of things that a skewed node wrote carry its skew."""
        capture = self.captures.get(event.locator.source)
        if capture is None:
            return None
        host = self.lanes.stampers.host(event)
        shown_s = capture.seconds - stamp.seconds
        skew_s, skew_doubt_s = self.skew(host)
        doubt_s = stamp.resolution_s / 2 + capture.doubt_s
        aheads = [self.steps.ahead_of(host, shown_s + off) for off in (0.0, -doubt_s, doubt_s)]
        ahead_s = aheads[0][0]
        doubt_s += skew_doubt_s + max(abs(other - ahead_s) + step_doubt_s for other, step_doubt_s in aheads)
        return Timestamp(shown_s - skew_s - ahead_s, doubt_s, Basis.RELATIVE_AGE)

    def time(self, number: int) -> Timestamp | None:
        """The best of an event's stamps: the surest, unless an outer one shows that the line waited."""
        event, places = self.lanes.events[number], self.lanes.places[number]
        best: Timestamp | None = None
        for stamp, (index, position) in zip(event.stamps, places, strict=False):
            if stamp.form is StampForm.AGE:
                found = self.aged(event, stamp) if plausible(stamp.form, stamp.seconds) else None
            elif index < 0:
                continue
            else:
                lane = self.lanes.lanes[index]
                found = self.instant(index, lane.lines[position], lane.walls[position], stamp.resolution_s)
            if found is None or found.utc_s is None:
                continue
            if best is None or best.utc_s is None:
                best = found
            elif best.utc_s - found.utc_s > BUFFERED_S + found.uncertainty_s + best.uncertainty_s:
                best = found  # the inner stamp is when it was written
            elif found.uncertainty_s < best.uncertainty_s:
                best = found
        return best


def events(clocks: Clocks, ordered_sources: frozenset[str]) -> tuple[Event, ...]:
    """All events with their times; lines without a stamp get the interval of their neighbours."""
    everything = clocks.lanes.events
    times = [clocks.time(number) for number in range(len(everything))]
    unsure = {event.locator.source for event, time in zip(everything, times, strict=True) if time is None}
    stamped = _rows(clocks, ordered_sources & unsure)
    for event, time in zip(everything, times, strict=True):
        aged = time is not None and time.basis is Basis.RELATIVE_AGE  # a table, that says nothing of a log beside it
        if time is not None and event.locator.source in stamped and not aged:
            stamped[event.locator.source][event.locator.order] = time
    lines = {source: sorted(rows) for source, rows in stamped.items() if rows}
    undated = [n for n, time in enumerate(times) if time is None and everything[n].locator.source in lines]
    undated.sort(key=lambda n: (everything[n].locator.source, everything[n].locator.order))
    here, latest_s, bars = ("", 0), 0.0, Bars()
    for number in undated:
        event = everything[number]
        known, rows = lines[event.locator.source], stamped[event.locator.source]
        right = bisect_right(known, event.locator.order)
        before = rows[known[right - 1]] if right else None
        after = rows[known[right]] if right < len(known) else None
        if event.channel == "kernel" and before is not None:  # a continuation line has its predecessor's stamp
            times[number] = replace(before, basis=Basis.FILE_ORDER)
            continue
        if (event.locator.source, right) != here:
            here, latest_s = (event.locator.source, right), -math.inf
        if before is None and after is not None:
            before = clocks.start(event, after)
        at_s = bars.at(event, before, latest_s)
        if after is None:
            found = after_all(before, clocks.latest_s(event, before), latest_s, at_s)
        else:
            spread = right and event.kind == "access"
            share = (event.locator.order - known[right - 1]) / (known[right] - known[right - 1]) if spread else 0.0
            found = between(before, after, share, latest_s, at_s)
        if found is not None:
            found = clocks.printed(event, found) or found
        times[number] = found
        latest_s = found.utc_s if found is not None and found.utc_s is not None else latest_s
    return tuple(replace(event, time=time or UNKNOWN_TIME) for event, time in zip(everything, times, strict=True))


def _rows(clocks: Clocks, sources: frozenset[str]) -> dict[str, dict[int, Timestamp]]:
    """For each source whose lines are in order, the instants of its rows of numbers."""
    rows: dict[str, dict[int, Timestamp]] = {source: {} for source in sources}
    for lane in clocks.lanes.lanes:
        found = rows.get(lane.key.source)
        if found is None or not lane.series or not lane.ordered:
            continue
        for line, wall in zip(lane.lines, lane.walls, strict=True):
            instant = clocks.instant(lane.index, line, wall, lane.resolution_s)
            if instant is not None:
                found[line] = instant
    return rows


def samples(clocks: Clocks, series: Sequence[Samples]) -> tuple[Samples, ...]:
    """All series with Unix times; NaN for points whose time is unknown."""
    memo: dict[tuple[int, int], float] = {}
    return tuple(_converted(clocks, one, memo) for one in series)


def _converted(clocks: Clocks, series: Samples, memo: dict[tuple[int, int], float]) -> Samples:
    lanes = clocks.lanes
    indexes = lanes.by_key.get(lanes.stampers.series_key(series), []) if series.layer else []
    if not indexes:
        return replace(series, form=StampForm.INSTANT, stamps=array("d", [math.nan]) * len(series.stamps))
    index, form = indexes[0], series.form
    doubts = (clocks.solutions[i].doubt_s for i in indexes if i in clocks.solutions)
    series = replace(series, doubt_s=max(doubts, default=0.0))
    partial = form in (StampForm.YEARLESS, StampForm.CLOCK)  # the lane knows the rest
    law = clocks.law(index) if len(indexes) == 1 and not partial else None
    if law is not None:
        constant, skew_s = law
        low, high = RANGES[form]
        known = [s + constant - skew_s if low <= s < high else math.nan for s in series.stamps]
        return replace(series, form=StampForm.INSTANT, stamps=array("d", known))
    converted = array("d")
    for line, seconds in zip(series.lines, series.stamps, strict=True):
        if len(indexes) > 1:
            index = next((i for i in reversed(indexes) if lanes.lanes[i].lines[0] <= line), indexes[0])  # its boot
        instant = memo.get((index, line))
        if instant is None:
            instant = memo[index, line] = _row_instant(clocks, index, line, seconds)
        converted.append(instant)
    return replace(series, form=StampForm.INSTANT, stamps=converted)


def _row_instant(clocks: Clocks, index: int, line: int, seconds: float) -> float:
    if not plausible(clocks.lanes.lanes[index].key.form, seconds):
        return math.nan
    utc_s = clocks.utc(index, line, clocks.lanes.lanes[index].wall_of(line, seconds))
    return math.nan if utc_s is None else utc_s
