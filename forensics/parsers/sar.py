"""`sar -r`, `-S` and `pidstat -r`: a date in the first line, then times of day in the reader's locale
(sysstat 10 to 12).

The header repeats, `LINUX RESTART` lines mark boots, averages (translated) close a part, and after midnight
the times start again under the old date. Nothing names the zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from .. import stamps
from ..model import Diagnostic, Event, Locator, Parsed, RawStamp, Scope, Severity, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from .layer import clean
from .numerals import is_whole
from .points import Points
from .sizes import size_bytes

LAYER = "sar"
_FIRST = lazy_regex(r"Linux (?P<kernel>\S+) \((?P<host>[^)]*)\)\s+(?P<date>\S+)\s+_\S+_\s+\(\d+ CPU\)")
_DATES = (
    (lazy_regex(r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"), False),
    (lazy_regex(r"(?P<y>\d{4})年(?P<m>\d\d)月(?P<d>\d\d)日"), False),
    (lazy_regex(r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{2,4})\.?"), False),
    (lazy_regex(r"(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{2,4})"), True),
)
_TIME = lazy_regex(r"(?P<h>\d\d)[:时](?P<m>\d\d)[:分](?P<s>\d\d)秒?(?: (?P<half>AM|PM))?\s+(?P<rest>\S.*)")
_COLUMNS = {
    "kbmemused": "host_memory_used_kib",
    "kbavail": "host_memory_available_kib",
    "kbswpused": "swap_used_kib",
}
_HOUR_S = 3600.0


def _sniff(head: Head) -> int:
    return 95 if any(_FIRST.match(clean(line)) for line in head.lines[:8]) else 0


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.points = Points(source)
        self.events: list[Event] = []
        self.diagnostics: list[Diagnostic] = []
        self.hosts: set[str] = set()
        self.restarts: set[int] = set()
        self.midnight: float | None = None
        self.columns: tuple[str, ...] = ()
        self.day, self.last = 0, -1.0

    def feed(self, number: int, line: str) -> None:
        first = _FIRST.match(line)
        if first:
            self.hosts.add(first["host"])
            self.midnight = self._date(number, first["date"])
            self.columns, self.day, self.last = (), 0, -1.0
            self.restarts.clear()
            return
        found = _TIME.match(line)
        if not found:
            return
        seconds = (
            int(found["h"]) % (12 if found["half"] else 24) * 3600 + int(found["m"]) * 60 + int(found["s"])
        )
        seconds += 43200 if found["half"] == "PM" else 0
        cells = found["rest"].split()
        if found["rest"].startswith("LINUX RESTART"):
            stamp = self._tick(seconds)
            if seconds not in self.restarts:  # each report of `sar -A` tells it again
                self.restarts.add(seconds)
                self.events.append(Event(
                    Locator(self.source, number, number), "log", "host", found["rest"],
                    (stamp,) if stamp else (), raw=line,
                ))  # fmt: skip
        elif not any(cell[0].isdigit() for cell in cells):
            if tuple(cells) != self.columns:  # another report over the same day
                self.columns, self.day, self.last = tuple(cells), 0, -1.0
            self._tick(seconds)
        elif self.columns:
            self._row(number, cells, self._tick(seconds))

    def _tick(self, seconds: int) -> RawStamp | None:
        """The instant of a time of day; a step back by more than an hour is a midnight."""
        if self.last - seconds > _HOUR_S:
            self.day += 1
        self.last = seconds
        if self.midnight is None:
            return RawStamp(StampForm.CLOCK, LAYER, float(seconds))
        return RawStamp(StampForm.LOCAL, LAYER, self.midnight + self.day * 86400.0 + seconds)

    def _row(self, number: int, cells: Sequence[str], stamp: RawStamp | None) -> None:
        if "Command" in self.columns:
            width = len(self.columns)
            row = dict(zip(self.columns, [*cells[: width - 1], " ".join(cells[width - 1 :])], strict=False))
            rss, pid = row.get("RSS", ""), row.get("PID", "")
            if is_whole(rss) and is_whole(pid):
                scope = Scope(process=row.get("Command", ""), pid=int(pid))
                self.points.add("process_rss_mib", scope, stamp, number, int(rss) / 1024)
            return
        if len(cells) != len(self.columns):
            return
        for column, cell in zip(self.columns, cells, strict=True):
            name = _COLUMNS.get(column)
            value = _kib(cell) if name else nan
            if name and value == value:
                self.points.add(name, Scope(), stamp, number, value)

    def _date(self, number: int, text: str) -> float | None:
        for pattern, american in _DATES:
            found = pattern.fullmatch(text)
            if not found:
                continue
            month, day, year = int(found["m"]), int(found["d"]), int(found["y"])
            if american and month > 12:
                month, day = day, month
            elif american and day <= 12 and month != day:
                self.diagnostics.append(Diagnostic(
                    self.source, number, Severity.INFO, f"the date {text} was read as month/day/year",
                    "sar prints the date in the language of the reader; S_TIME_FORMAT=ISO makes it plain",
                ))  # fmt: skip
            stamp = stamps.iso(f"{year + (2000 if year < 100 else 0)}-{month:02d}-{day:02d} 00:00:00", LAYER)
            return stamp.seconds if stamp else None
        return None


def _kib(cell: str) -> float:
    """KiB; decimal commas; `sar -h` prints `1.3G`."""
    if cell[-1:].isdigit():
        try:
            return float(cell.replace(",", "."))
        except ValueError:
            return nan
    size = size_bytes(cell)
    return nan if size is None else size / 1024


def _read(text: str, source: str) -> Parsed:
    """Samples of host memory, swap and process memory; `LINUX RESTART` lines as `log` events."""
    reader = _Reader(source)
    for number, line in enumerate(text.split("\n"), 1):
        reader.feed(number, clean(line))
    scope = Scope(host=next(iter(reader.hosts))) if len(reader.hosts) == 1 else Scope()
    return Parsed(tuple(reader.events), reader.points.samples(), tuple(reader.diagnostics), scope)


FORMAT = Format("sysstat.sar", "sar", _sniff, _read, begins="L")
