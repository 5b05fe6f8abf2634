"""Logs whose newest line comes first: `journalctl -r`, Loki's `logcli`, Grafana's downloads, a copy from a console.

Such a log is read from its end, as if its lines were numbered backwards; afterwards every event gets its true lines.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ..model import Event, Locator, Parsed, Samples, reading_order
from ..scan import Line
from .records import Record

MIN_FALLS = 3
_LINES = ("first_line", "report_line")
"""Fields that hold the number of a line."""


def is_newest_first(times: Sequence[float]) -> bool:
    """Whether times fall nearly always where they change; a clock that was set back falls once."""
    falls = sum(b < a for a, b in pairwise(times))
    rises = sum(b > a for a, b in pairwise(times))
    return falls >= MIN_FALLS and falls > 4 * rises


def times_of(records: Sequence[Record]) -> list[float]:
    """The outer times of the records, of the kind of stamp that most of them begin with."""
    outer = [record.stamps[0] for record in records if record.stamps]
    kinds = Counter((stamp.layer, stamp.form) for stamp in outer)
    most = max(kinds, key=lambda kind: kinds[kind], default=None)
    return [stamp.seconds for stamp in outer if (stamp.layer, stamp.form) == most]


def turned(lines: Sequence[Line]) -> list[Line]:
    """Lines in the order of time, numbered from 1 as the last line of the file is."""
    total = max((max(line.number, line.last) for line in lines), default=0) + 1
    return [
        replace(line, number=total - (line.last or line.number), last=total - line.number if line.last else 0)
        for line in reversed(lines)
    ]


def restored(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """Events with the lines that they have in the file."""
    total = max((max(line.number, line.last) for line in lines), default=0) + 1
    return [placed(event, lambda number: total - number, True) for event in events]


def placed(event: Event, true: Callable[[int], int], turn: bool = False) -> Event:
    """An event whose line numbers are translated; `turn`: they come from a text that was turned around."""
    first, end = sorted((true(event.locator.line), true(event.locator.line_end)))
    fields = event.fields
    if any(name in fields for name in _LINES):
        fields = {name: true(value) if name in _LINES else value for name, value in fields.items()}
    return replace(
        event, locator=Locator(event.locator.source, first, end, turn or event.locator.newest_first), fields=fields,
        last_line=true(event.last_line) if event.last_line else None,
    )  # fmt: skip


def placed_rows(samples: Samples, true: Callable[[int], int], turn: bool = False) -> Samples:
    """A series whose line numbers are translated, as `placed` does with events."""
    rows = (Locator.at(samples.source, order) for order in samples.lines)
    lines = array("q", (reading_order(true(row.line), turn or row.newest_first) for row in rows))
    return replace(samples, lines=lines)


def placed_all(parsed: Parsed, true: Callable[[int], int], turn: bool = False) -> Parsed:
    """What a parser made of a text inside a file, with the lines of the file."""
    return replace(
        parsed, events=tuple(placed(event, true, turn) for event in parsed.events),
        samples=tuple(placed_rows(samples, true, turn) for samples in parsed.samples),
        diagnostics=tuple(replace(item, line=true(item.line)) if item.line else item for item in parsed.diagnostics),
    )  # fmt: skip
