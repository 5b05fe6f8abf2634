"""Give year-less times their year.

Inside a lane the order of months tells where a year ends. Which year it is, is told by the user, by a stamp with a
year on the same line, or by the newest thing that the bundle knows: the last line of a log is not younger than the
capture. File times are weak: copies lose them.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .. import stamps
from ..model import Source, StampForm
from ..regexes import lazy_regex
from .lanes import Lane, Lanes, plausible
from .yearless import DAY_S, in_year, is_leap_day, nearest_year, without_year

GIVEN = "year given"
BESIDE = "year printed beside it"
LAST_DAY = "on the last day of the logs"
_HALFYEAR_S = 183 * DAY_S
YEAR_S = 366 * DAY_S
"""The doubt of a time whose year is assumed."""
_CLOSE_S = 2 * DAY_S
_MOST_VOTES = 64
_PATH_DATE = lazy_regex(r"(?<!\d)(20[0-9]{2})([-_]?)([01][0-9])\2([0-3][0-9])(?!\d{5})")
_PREFIX_DATE = lazy_regex(r"\W{0,3}(20[0-9]{2})([-/.])([01][0-9])\2([0-3][0-9])(?!\d)")
"""A date in front of a line that no envelope reads, as the prefix of a chat."""
_DATE_INSIDE = lazy_regex(
    r"(?<![\d.])(20[0-9]{2})([-/.])([01][0-9])\2([0-3][0-9])(?:T| - | )([0-2][0-9]:[0-5][0-9]:[0-5][0-9])"
)
_READ = 400
"""Characters of a message in which its own stamp may stand."""
_WIDEST_ZONE_S = 14 * 3600.0
_SAME_S = 2.0
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEKDAY = lazy_regex(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) +(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d")


@dataclass(frozen=True, slots=True)
class Newest:
    """A moment that the last lines of the logs lie before, near it in most bundles."""

    seconds: float
    what: str
    slack_s: float
    """How much later than this a log may end (saved later, zones unknown)."""
    sure: bool = True
    """False for file times."""


@dataclass(slots=True)
class _Clues:
    """What the lines of one lane say about the year of its last line."""

    turns: list[int]
    beside: Counter[int] = field(default_factory=Counter)
    weekdays: list[tuple[int, int]] = field(default_factory=list)
    """(position, weekday with Monday as 0)."""


def newest(sources: Sequence[Source], lanes: Lanes, captured_at_s: float | None) -> Newest | None:
    """The latest dated thing of the bundle."""
    if captured_at_s is not None and plausible(StampForm.INSTANT, captured_at_s):
        return Newest(captured_at_s, "the given capture time", 1.5 * DAY_S)
    captures = [
        stamp.seconds
        for event in lanes.events
        if event.kind == "capture"
        for stamp in event.stamps
        if stamp.form in (StampForm.INSTANT, StampForm.LOCAL) and plausible(stamp.form, stamp.seconds)
    ]
    if captures:
        return Newest(max(captures), "the recorded capture", 1.5 * DAY_S)
    dated = _dated(lanes, kernel=False)
    if dated is not None:
        return Newest(dated, "the newest dated line of the bundle", 30 * DAY_S)  # a status tells of what is weeks old
    named = [moment for source in sources if (moment := _date_in_path(source.path)) is not None]
    if named:
        return Newest(max(named), "a date in a file name", 1.5 * DAY_S)
    written = [s.mtime_s for s in sources if s.mtime_s and plausible(StampForm.INSTANT, s.mtime_s)]
    if written:
        return Newest(max(written), "the file times", 1.5 * DAY_S, sure=False)
    rendered = _dated(lanes, kernel=True)  # perhaps on another machine, months off
    return Newest(rendered, "the rendered kernel log", 7 * DAY_S, sure=False) if rendered is not None else None


def _dated(lanes: Lanes, kernel: bool) -> float | None:
    """The last dated line; lanes of a single line (a date in a sentence) speak only where no other does."""
    found = _rendered(lanes) if kernel else [lane for lane in _with_year(lanes) if lane.key.layer != "dmesg"]
    lasts = [(max(lane.walls), len(lane.walls) > 1) for lane in found]
    several = [last for last, many in lasts if many]
    return max(several or [last for last, _ in lasts], default=None)


def _with_year(lanes: Lanes) -> Iterator[Lane]:
    return (lane for lane in lanes.lanes if lane.key.form in (StampForm.INSTANT, StampForm.LOCAL))


def _rendered(lanes: Lanes) -> list[Lane]:
    """Kernel logs with dates, as `dmesg -T` computes them."""
    return [lane for lane in _with_year(lanes) if lane.key.layer == "dmesg"]


def _date_in_path(path: str) -> float | None:
    dates = (stamps.iso(f"{y}-{m}-{d} 23:59:59", "path") for y, _, m, d in _PATH_DATE.findall(path))
    return max((stamp.seconds for stamp in dates if stamp), default=None)


def settle(lanes: Lanes, latest: Newest | None, year: int | None, written: Mapping[str, float | None]) -> None:
    """Fill `walls`, `year` and `year_note` of every year-less lane; `written` are file times by path."""
    rendered = sorted(wall for lane in _rendered(lanes) for wall in lane.walls)
    clues = _clues(lanes)
    for index, clue in clues.items():
        lane = lanes.lanes[index]
        if year is not None and 1970 <= year < 2100:
            last, note, doubt_s = year, GIVEN, 0.0
        elif clue.beside:
            last, note, doubt_s = clue.beside.most_common(1)[0][0], BESIDE, 0.0
        else:
            last, note, doubt_s = _last_year(lane, clue, latest, written.get(lane.key.source), rendered)
        lane.walls = [in_year(wall, last + turn) for wall, turn in zip(lane.walls, clue.turns, strict=True)]
        lane.year = last + clue.turns[0]
        lane.year_note, lane.year_doubt_s = note, doubt_s
    _settle_days(lanes, latest)


def _settle_days(lanes: Lanes, latest: Newest | None) -> None:
    """Put times of day on the day of the newest thing; where only file times tell it, of the logs without a year."""
    day_s = latest.seconds // DAY_S * DAY_S if latest is not None else None
    doubt_s, note = 0.0, ""
    logs = [lane for lane in lanes.lanes if lane.key.form is StampForm.YEARLESS and len(lane.walls) > 1]
    if logs and (latest is None or not latest.sure):
        last = max(logs, key=lambda lane: max(lane.walls))
        day_s, doubt_s, note = max(last.walls) // DAY_S * DAY_S, last.year_doubt_s, LAST_DAY
    for lane in lanes.lanes:
        if lane.key.form is StampForm.CLOCK and day_s is not None:
            lane.walls = [day_s + wall for wall in _over_midnight(lane)]
            lane.year_note, lane.year_doubt_s = note, doubt_s


def _over_midnight(lane: Lane) -> list[float]:
    """Times of day on days that count backwards from the last one: those of a log in order fall at midnight only."""
    walls, earlier = list[float](), int(lane.walls[-1] // DAY_S)  # where weekdays tell them, days are counted
    for wall, after in zip(reversed(lane.walls), [None, *reversed(lane.walls)], strict=False):
        earlier += lane.ordered and after is not None and wall - after > DAY_S / 2
        walls.append(wall - earlier * DAY_S)
    return walls[::-1]


def shift(lane: Lane, years: int) -> None:
    """Move a settled lane by whole years, keeping month, day and time."""
    lane.walls = [in_year(seconds, year + years) for seconds, year in map(without_year, lane.walls)]
    lane.year = None if lane.year is None else lane.year + years


def _clues(lanes: Lanes) -> dict[int, _Clues]:
    found = {
        lane.index: _Clues(_turns(lane.walls) if lane.ordered else [0] * len(lane.walls))
        for lane in lanes.lanes
        if lane.key.form is StampForm.YEARLESS
    }
    for event, places in zip(lanes.events, lanes.places, strict=True):
        for index, position in places:
            clue = found.get(index)
            if clue is None:
                continue
            own_s = lanes.lanes[index].walls[position]
            if len(event.stamps) > 1 and clue.beside.total() < _MOST_VOTES:
                for stamp in event.stamps:
                    if stamp.form in (StampForm.INSTANT, StampForm.LOCAL) and plausible(stamp.form, stamp.seconds):
                        clue.beside[nearest_year(own_s, stamp.seconds) - clue.turns[position]] += 1
            elif clue.beside.total() < _MOST_VOTES:
                printed = _year_in_front(event.raw, own_s) or _year_inside(event.text, own_s)
                if printed is not None:
                    clue.beside[printed - clue.turns[position]] += 1
            if len(clue.weekdays) < _MOST_VOTES and (weekday := _WEEKDAY.search(event.raw[:160])):
                clue.weekdays.append((position, _DAYS.index(weekday[1])))
    return found


def _year_in_front(line: str, own_s: float) -> int | None:
    """The year of the date that a line begins with, where that is the day of its own stamp."""
    found = _PREFIX_DATE.match(line)
    date = stamps.iso(f"{found[1]}-{found[3]}-{found[4]} 12:00:00", "path") if found else None
    if date is None:
        return None
    year = nearest_year(own_s, date.seconds)
    return year if abs(in_year(own_s, year) - date.seconds) <= _CLOSE_S else None


def _year_inside(text: str, own_s: float) -> int | None:
    """The year of a date and time inside a message that says what its stamp says, perhaps in another zone.

    Programs under journald print a stamp of their own (`time=2025-…`, `[GIN] 2025/…`). What a message tells of other
    moments does not differ from its stamp by whole quarters of an hour.
    """
    for found in _DATE_INSIDE.finditer(text, endpos=_READ):
        moment = stamps.iso(f"{found[1]}-{found[3]}-{found[4]} {found[5]}", "path")
        if moment is None:
            continue
        year = nearest_year(own_s, moment.seconds)
        apart_s = abs(in_year(own_s, year) - moment.seconds)
        if apart_s <= _WIDEST_ZONE_S and abs(apart_s - 900 * round(apart_s / 900)) <= _SAME_S:
            return year
    return None


def _turns(walls: Sequence[float]) -> list[int]:
    """For each reading, the number of year ends between it and the last one (0 or negative)."""
    turns = []
    turn = 0
    previous = walls[0] if walls else 0.0
    for wall in walls:
        if wall < previous - _HALFYEAR_S:
            turn += 1
        elif wall > previous + _HALFYEAR_S and turn > 0:
            turn -= 1
        previous = wall
        turns.append(turn)
    last = turns[-1] if turns else 0
    return [turn - last for turn in turns]


def _last_year(
    lane: Lane, clue: _Clues, latest: Newest | None, written_s: float | None, rendered: Sequence[float]
) -> tuple[int, str, float]:
    """The latest year in which the last line is not younger than the bundle; its reason and its doubt in seconds.

    Where only file times tell the bundle's age, and are not near the last line, a kernel log that is (`rendered`,
    ascending) tells the year: copies have the time of the copying.
    """
    if latest is None:
        return stamps.YEARLESS_YEAR, "nothing tells the year", 50 * YEAR_S
    newest_s = max(wall for wall, turn in zip(lane.walls, clue.turns, strict=True) if turn == 0)
    first = stamps.wall(latest.seconds).year + 1
    years = [year for year in range(first, first - 12, -1) if _possible(lane, clue, year)] or [first - 1]
    last = next((year for year in years if in_year(newest_s, year) <= latest.seconds + latest.slack_s), years[-1])
    close = any(
        abs(in_year(newest_s, last) - moment) <= _CLOSE_S
        for moment in (latest.seconds, written_s)
        if moment is not None
    )
    if latest.sure or close:
        return last, f"year from {latest.what}", 0.0
    beside = next((year for year in years if year <= last and _near(in_year(newest_s, year), rendered)), None)
    if beside is not None:
        return beside, "year from the rendered kernel log", 0.0
    return last, f"year from {latest.what}", YEAR_S


def _near(moment: float, walls: Sequence[float]) -> bool:
    index = bisect_left(walls, moment - _CLOSE_S)
    return index < len(walls) and walls[index] <= moment + _CLOSE_S


def _possible(lane: Lane, clue: _Clues, last_year: int) -> bool:
    """29 February must exist in the years that the lane would have, and printed weekdays must fit."""
    for wall, turn in zip(lane.walls, clue.turns, strict=True):
        if is_leap_day(wall) and not calendar.isleap(last_year + turn):
            return False
    return all(
        stamps.wall(in_year(lane.walls[position], last_year + clue.turns[position])).weekday() == weekday
        for position, weekday in clue.weekdays
    )
