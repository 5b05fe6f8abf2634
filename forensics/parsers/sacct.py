"""Slurm accounting: rows of `sacct`, which say how a job and its steps ended.

Columns of Slurm 17.11 to 25.05 `src/sacct/print.c`: a rule of dashes below the header, or `|` between the cells
(`--parsable`). Times are local to the node and stand in columns that a user chooses; they are not read.
"""

from __future__ import annotations

import regex

from ..model import Event, Locator, Parsed
from ..sources import Format, Head

_HEADER = regex.compile(r"\s*JobID(?:Raw)?\b(?=.*\bState\b).*")
_ROW = regex.compile(r"\s*(?P<job>\d+(?:_\d+)?)(?:[.+]\w+)?[ |].*")
HEAD_LINES = 10


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each row below a header; its text is the row, `job` the job it is of."""
    events: list[Event] = []
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        row = line.rstrip()
        if _HEADER.fullmatch(row):
            inside = True
        elif inside and (found := _ROW.fullmatch(row)):
            place, fields = Locator(source, number, number), {"job": found["job"]}
            events.append(Event(place, "log", "host", row.strip(), fields=fields, raw=row))
    return Parsed(tuple(events))


def sniff(head: Head) -> int:
    return 90 if any(_HEADER.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.sacct", "sacct", sniff, read, begins="J")
