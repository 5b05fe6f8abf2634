"""Sort all printed times into lanes: one lane for each clock that wrote into one source.

A lane is the times of one (source, layer, form), split by the host that wrote them (a journal may hold several) and,
for seconds since boot, by boot. Only inside a lane can times be compared as printed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from .. import stamps
from ..model import Event, Parsed, RawStamp, Samples, Source, StampForm
from ..regexes import lazy_regex
from .stampers import NODE_LAYERS, LaneKey, Stampers
from .yearless import DAY_S, START_S, in_year, nearest_year

EMBEDDED_LAYER = "embedded"
"""Instants that a message prints about itself; they anchor clocks and date nothing."""
_AUDIT = lazy_regex(r"audit\((\d{10}\.\d{3}):\d+\)")
_TS = lazy_regex(r"(?:^|[ {,])(?:(?:ts|time)=\"?|\"?TimeOfDeath\"?:\")(20\d\d-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))")
_OWN_STAMP = ("time=", "ts=")
"""With which a line of logfmt begins."""
_WOKEN = lazy_regex(r"PM: (?:hibernation: )?(?:suspend|hibernation) exit\b")
"""kernel/power/suspend.c, hibernate.c; printk's clock stands still meanwhile."""
_MAX_SERIES_ROWS = 200_000
_BACKWARDS_S = 2.0
_CENTURY_S = 4102444800.0
RANGES = {
    StampForm.INSTANT: (0.0, _CENTURY_S),
    StampForm.LOCAL: (0.0, _CENTURY_S),
    StampForm.YEARLESS: (START_S, START_S + 366 * DAY_S),
    StampForm.CLOCK: (0.0, 366 * DAY_S),
    StampForm.BOOT: (0.0, _CENTURY_S),
    StampForm.AGE: (-DAY_S, _CENTURY_S),
}
_ZONE_PROBES = 4
_BOOT_RESET_S = 5.0


@dataclass(slots=True)
class Lane:
    """The times that one clock printed, in the order of the file."""

    index: int
    key: LaneKey
    lines: list[int] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    """Printed seconds; for year-less forms made whole by `years`."""
    resolution_s: float = 0.0
    series: bool = False
    """Whether rows of numbers are among the readings."""
    ordered: bool = True
    """Whether the order of lines is the order of time."""
    boot: int = 0
    printed_zones: list[tuple[int, str]] = field(default_factory=list)
    """(position, zone abbreviation) of a few readings that print one."""
    woken: list[float] = field(default_factory=list)
    """Printed times at which the machine woke up, in lanes of kernel logs that count since boot."""
    year: int | None = None
    """Year of the first line, where none is printed."""
    year_note: str = ""
    year_doubt_s: float = 0.0
    """How far off the year may be."""

    def wall_of(self, line: int, seconds: float) -> float:
        """Printed seconds of a row that stands in the lane, with the year or the day of the readings around it."""
        if self.key.form not in (StampForm.YEARLESS, StampForm.CLOCK):
            return seconds
        position = min(bisect_left(self.lines, line), len(self.lines) - 1)
        near = self.walls[position]
        if self.key.form is StampForm.CLOCK:
            return seconds + DAY_S * round((near - seconds) / DAY_S)
        return near if self.lines[position] == line else in_year(seconds, nearest_year(seconds, near))

    @property
    def node(self) -> bool:
        return self.key.layer in NODE_LAYERS and not self.key.pod


@dataclass(slots=True)
class Lanes:
    """All lanes, and for each event where its stamps stand."""

    lanes: list[Lane]
    events: list[Event]
    places: list[tuple[tuple[int, int], ...]]
    """For each event and each of its stamps, and for an embedded instant after them: (lane index, position in the
    lane)."""
    by_key: dict[LaneKey, list[int]]
    stampers: Stampers


class _Entry(NamedTuple):
    line: int
    stamp: int
    """Which of the line's stamps; -1 for a row of numbers."""
    seconds: float
    event: int
    """Number of the event, -1 for a row of numbers."""
    zone: str = ""


def collect(parsed: Sequence[tuple[Source, Parsed]]) -> Lanes:
    """Lanes of all events and samples, in a fixed order."""
    events = [event for _, part in parsed for event in part.events]
    stampers = Stampers(events, [source for source, _ in parsed])
    entries: dict[LaneKey, list[_Entry]] = {}
    resolutions: dict[LaneKey, float] = {}
    for number, event in enumerate(events):
        for position, stamp in enumerate((*event.stamps, *embedded(event))):
            if not plausible(stamp.form, stamp.seconds):
                continue
            key = stampers.key(event, stamp.layer, stamp.form)
            entries.setdefault(key, []).append(_Entry(event.locator.order, position, stamp.seconds, number, stamp.zone))
            resolutions[key] = max(resolutions.get(key, 0.0), stamp.resolution_s)
    for _, part in parsed:
        for key, rows in _series_rows(part.samples, stampers).items():
            entries.setdefault(key, []).extend(rows)
            resolutions.setdefault(key, 1.0)
    result = Lanes([], events, [((-1, -1),) * len(event.stamps) for event in events], {}, stampers)
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for key in sorted(entries):
        for boot, part_entries in enumerate(_boots(key, sorted(entries[key], key=itemgetter(0, 1)))):
            lane = Lane(len(result.lanes), key, boot=boot, resolution_s=resolutions[key])
            for position, entry in enumerate(part_entries):
                lane.lines.append(entry.line)
                lane.walls.append(entry.seconds)
                if entry.zone and sum(zone == entry.zone for _, zone in lane.printed_zones) < _ZONE_PROBES:
                    lane.printed_zones.append((position, entry.zone))
                lane.series |= entry.event < 0
                if entry.event >= 0:
                    found.setdefault(entry.event, {})[entry.stamp] = (lane.index, position)
            lane.ordered = key.form is not StampForm.AGE and _in_order(lane.walls)
            result.lanes.append(lane)
            result.by_key.setdefault(key, []).append(lane.index)
    _wake(result, events, found)
    for number, places in found.items():
        last = max(len(events[number].stamps) - 1, *places)
        result.places[number] = tuple(places.get(position, (-1, -1)) for position in range(last + 1))
    return result


def _wake(lanes: Lanes, events: Sequence[Event], found: Mapping[int, Mapping[int, tuple[int, int]]]) -> None:
    """Fill `woken` of the lanes of a kernel log; they share it, whomever its lines belong to."""
    woken: dict[tuple[str, StampForm, int], list[float]] = {}
    for number, places in found.items():
        if events[number].channel == "kernel" and _WOKEN.search(events[number].text):
            for index, position in places.values():
                lane = lanes.lanes[index]
                woken.setdefault((lane.key.source, lane.key.form, lane.boot), []).append(lane.walls[position])
    for lane in lanes.lanes:
        if _since_boot(lane.key):
            lane.woken = sorted(woken.get((lane.key.source, lane.key.form, lane.boot), ()))


def _since_boot(key: LaneKey) -> bool:
    """Whether times of a lane are seconds since boot, printed as such or rendered by dmesg."""
    return key.form is StampForm.BOOT or key.layer == "dmesg"


def plausible(form: StampForm, seconds: float) -> bool:
    """Whether a printed time can be meant: between 1970 and 2100; false for NaN."""
    low, high = RANGES[form]
    return low <= seconds < high


def embedded(event: Event) -> tuple[RawStamp, ...]:
    """The instant that a message of the kernel's audit, a Go program (logfmt) or the kubelet prints about itself.

    Of what an engine prints, only the stamp with which its message begins: the rest may be anybody's words.
    """
    if not event.stamps or (event.channel == "engine" and not event.text.startswith(_OWN_STAMP)):
        return ()
    audit = _AUDIT.search(event.text)
    if audit:
        stamp = stamps.instant(float(audit[1]), EMBEDDED_LAYER, 0.001)
    else:
        found = (_TS.match if event.channel == "engine" else _TS.search)(event.text, endpos=1000)
        stamp = stamps.iso(found[1], EMBEDDED_LAYER) if found else None
    return (stamp,) if stamp else ()


def _series_rows(series: Sequence[Samples], stampers: Stampers) -> Mapping[LaneKey, list[_Entry]]:
    """Each stamped row once, however many series stand in it; very long tables are thinned evenly."""
    rows: dict[LaneKey, dict[int, float]] = {}
    for samples in series:
        if not samples.layer or samples.form is StampForm.AGE:
            continue
        step = 1 + len(samples.lines) // _MAX_SERIES_ROWS
        row = rows.setdefault(stampers.series_key(samples), {})
        low, high = RANGES[samples.form]
        for line, seconds in zip(samples.lines[::step], samples.stamps[::step], strict=True):
            if low <= seconds < high and line not in row:
                row[line] = seconds
    return {key: [_Entry(line, -1, seconds, -1) for line, seconds in row.items()] for key, row in rows.items() if row}


def _boots(key: LaneKey, entries: list[_Entry]) -> list[list[_Entry]]:
    """Seconds since boot fall when the machine starts again: each boot has a clock of its own."""
    if key.form is not StampForm.BOOT:
        return [entries]
    parts: list[list[_Entry]] = [[]]
    for entry in entries:
        if parts[-1] and entry.seconds < parts[-1][-1].seconds - _BOOT_RESET_S:
            parts.append([])
        parts[-1].append(entry)
    return parts


def _in_order(walls: Sequence[float]) -> bool:
    steps = len(walls) - 1
    backwards = sum(later < earlier - _BACKWARDS_S for earlier, later in pairwise(walls))
    return backwards <= max(1, 0.1 * steps)
