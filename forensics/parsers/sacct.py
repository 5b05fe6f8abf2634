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
_WORD = regex.compile(r"\S+")
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
            told = _told(header, row, ruled)
            job = amounts.setdefault(found["job"], {})
            for column, name, value in _AMOUNTS:
                amount = value(told.get(column, ""))
                if amount is not None:
                    job[name] = max(amount, job.get(name, 0))
    return Parsed(tuple(
        replace(event, fields={**event.fields, **amounts[str(event.fields["job"])]}) for event in events
    ))  # fmt: skip


def _told(header: str, row: str, ruled: str) -> dict[str, str]:
    """Column → cell: between `|`, or below the dashes of the rule.

    Where the rule is no longer in line with the header (a chat, an editor), by the right edges, which cells share with
    the name of their column.
    """
    if "|" in header or not ruled:
        return dict(zip(*([cell.strip() for cell in line.split("|")] for line in (header, row)), strict=False))
    edges = {name.end(): name[0] for name in _WORD.finditer(header)}
    columns, cells = list(_DASHES.finditer(ruled)), list(_WORD.finditer(row))
    told = {edges[cell.end()]: cell[0] for cell in cells if cell.end() in edges}
    if sum(cell.end() in {dashes.end() for dashes in columns} for cell in cells) < len(told):
        return told
    return {header[d.start() : d.end()].strip(): row[d.start() : d.end()].strip() for d in columns}


def sniff(head: Head) -> int:
    return 90 if any(_HEADER.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.sacct", "sacct", sniff, read, begins="J")
