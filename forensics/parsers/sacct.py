"""Slurm accounting: rows of `sacct`, which say how a job and its steps ended.

Columns of Slurm 17.11 to 25.05 `src/sacct/print.c`: a rule of dashes below the header, or `|` between the cells
(`--parsable`). Times are local to the node and stand in columns that a user chooses; they are not read. Memory that
a job asked for, and the most that one of its steps held, are told of all its rows.
"""

from __future__ import annotations

from dataclasses import replace

import regex

from ..model import Event, Locator, Parsed
from ..sources import Format, Head
from .slurm_values import duration_s, memory_kib

_HEADER = regex.compile(r"\s*JobID(?:Raw)?\b(?=.*\bState\b).*")
_ROW = regex.compile(r"\s*(?P<job>\d+(?:_\d+)?)(?:[.+]\w+)?[ |].*")
_DASHES = regex.compile(r"-+")
HEAD_LINES = 10


_AMOUNTS = (
    ("ReqMem", "requested_memory_kib", memory_kib), ("MaxRSS", "max_rss_kib", memory_kib),
    ("Timelimit", "time_limit_s", duration_s),
)  # fmt: skip
"""Column, field, and how it is read."""


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each row below a header; its text is the row, `job` the job it is of.

    With `requested_memory_kib`, `max_rss_kib` and `time_limit_s` of the job, where columns tell them.
    """
    events: list[Event] = []
    inside = False
    header, ruled = "", ""
    amounts: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        row = line.rstrip()
        if _HEADER.fullmatch(row):
            inside, header, ruled = True, row, ""
        elif inside and not row.strip("- "):
            ruled = ruled or row
        elif inside and (found := _ROW.fullmatch(row)):
            place, fields = Locator(source, number, number), {"job": found["job"]}
            events.append(Event(place, "log", "host", row.strip(), fields=fields, raw=row))
            told = dict(zip(_cells(header, ruled), _cells(line, ruled), strict=False))
            job = amounts.setdefault(found["job"], {})
            for column, name, value in _AMOUNTS:
                amount = value(told.get(column, ""))
                if amount is not None:
                    job[name] = max(amount, job.get(name, 0))
    return Parsed(tuple(
        replace(event, fields={**event.fields, **amounts[str(event.fields["job"])]}) for event in events
    ))  # fmt: skip


def _cells(row: str, ruled: str) -> list[str]:
    """The cells of a row, below the dashes of the rule, or between `|`."""
    if "|" in row or not ruled:
        return [cell.strip() for cell in row.split("|")]
    return [row[dashes.start() : dashes.end()].strip() for dashes in _DASHES.finditer(ruled)]


def sniff(head: Head) -> int:
    return 90 if any(_HEADER.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.sacct", "sacct", sniff, read, begins="J")
