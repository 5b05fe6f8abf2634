"""Slurm accounting: rows of `sacct`, which say how a job and its steps ended.

Columns of Slurm 17.11 to 25.05 `src/sacct/print.c`: a rule of dashes below the header, or `|` between the cells
(`--parsable`). Times are local to the node and stand in columns that a user chooses; they are not read. Memory that
a job asked for, and the most that one of its steps held, are told of all its rows.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Event, Locator, Parsed
from ..regexes import lazy_regex
from ..sources import Format, Head
from .slurm_values import duration_s, memory_kib

_HEADER = lazy_regex(r"\s*JobID(?:Raw)?\b(?=.*\bState\b).*")
_ROW = lazy_regex(r"\s*(?P<job>\d+(?:_\d+)?)(?:[.+]\w+)?[ |].*")
_WORD = lazy_regex(r"\S+")
HEAD_LINES = 10


_AMOUNTS = (
    ("ReqMem", "requested_memory_kib", memory_kib), ("MaxRSS", "max_rss_kib", memory_kib),
    ("Timelimit", "time_limit_s", duration_s), ("Elapsed", "elapsed_s", duration_s),
)  # fmt: skip
"""Column, field, and how it is read."""


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each row below a header; its text is the row, `job` the job it is of.

    With `requested_memory_kib`, `max_rss_kib`, `time_limit_s` and `elapsed_s` of the job, where columns tell them.
    """
    events: list[Event] = []
    inside = False
    header = ""
    amounts: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        row = line.rstrip()
        if _HEADER.fullmatch(row):
            inside, header = True, row.expandtabs()
        elif inside and (found := _ROW.fullmatch(row)):
            place, fields = Locator(source, number, number), {"job": found["job"]}
            events.append(Event(place, "log", "host", row.strip(), fields=fields, raw=row))
            told = _told(header, row.expandtabs())
            job = amounts.setdefault(found["job"], {})
            for column, name, value in _AMOUNTS:
                amount = value(told.get(column, ""))
                if amount is not None:
                    job[name] = max(amount, job.get(name, 0))
    return Parsed(tuple(
        replace(event, fields={**event.fields, **amounts[str(event.fields["job"])]}) for event in events
    ))  # fmt: skip


def _told(header: str, row: str) -> dict[str, str]:
    """Column → cell: between `|`, else below the name of the column.

    Cells and names end at one edge. A word belongs to the name that it shares most characters with: what was typed or
    pasted is a blank off, its rule is out of line (a chat, an editor) or was left out.
    """
    if "|" in header:
        return dict(zip(*([cell.strip() for cell in line.split("|")] for line in (header, row)), strict=False))
    told: dict[str, str] = {}
    names = list(_WORD.finditer(header))
    for word in _WORD.finditer(row):
        shared = {name[0]: min(word.end(), name.end()) - max(word.start(), name.start()) for name in names}
        best = max(shared, key=lambda name: shared[name])
        if shared[best] > 0:
            told[best] = f"{told.get(best, '')} {word[0]}".strip()
    return told


def sniff(head: Head) -> int:
    return 90 if any(_HEADER.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.sacct", "sacct", sniff, read, begins="J")
