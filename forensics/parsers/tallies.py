"""How often each status was answered, as a shell counted it: `… | sort | uniq -c` and the lines below.

Coreutils' `uniq -c` writes the count right-aligned before the line. The command tells that the figures are counts, and
that every counted line is a status (`200`, `HTTP/1.1" 200`, `status=200`) tells of what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Event
from ..regexes import lazy_regex
from ..scan import Window
from .log import Assembled, Dialect, event_of
from .records import Record

MAX_LINES = 12
"""Statuses that one service answers with."""
COMMAND = "uniq -c"
_COUNT = lazy_regex(
    r"#?\s*(?P<count>\d{1,12})\s+(?:(?:HTTP/\d(?:\.\d)?\"?|\"|[Ss]tatus(?:_code)?[=:\"]+)\s*)?(?P<status>[1-5]\d\d)\"?\s*"
)


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """One `answers_counted` event a status, with `status` and `answers`."""
    events: list[Event] = []
    for index, record in enumerate(records):
        if COMMAND in record.text:
            events += _counted(records[index + 1 : index + 1 + MAX_LINES], record.line, source)
    return Assembled(tuple(events), frozenset(event.locator.line for event in events))


def _counted(below: Sequence[Record], line: int, source: str) -> Iterator[Event]:
    for record in below:
        line += 1
        found = _COUNT.fullmatch(record.text)
        if found is None or record.line != line:
            return
        fields = {"status": int(found["status"]), "answers": int(found["count"])}
        yield replace(event_of(record, source), kind="answers_counted", fields=fields)


DIALECT = Dialect("plain", windows=(Window(COMMAND, (), MAX_LINES),), assemble=assemble)
