"""`scontrol show job` and `scontrol show node`: what Slurm's controller knows of a job, or of a node.

Records of `Key=Value` words begin with `JobId=` or `NodeName=` (Slurm 2.6 to 25.05, `src/api/job_info.c`,
`src/api/node_info.c`); each line is an event that says whose record it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..model import Event, Locator, Parsed
from ..regexes import lazy_regex
from ..sources import Format, Head
from .slurm_values import duration_s, memory_kib

_RECORD = lazy_regex(r"(?:JobId=(?P<job>\d+)\S* |NodeName=(?P<node>\S+) )(?:.* )?\w+=.*")
_LINE = lazy_regex(r"\s*[A-Z][\w:/]*=.*")
_LIMIT = lazy_regex(r"\bTimeLimit=(\S+)")
_MEMORY = lazy_regex(r"\b(?:MinMemoryNode=|(?:Req|Alloc)?TRES=(?:\S*,)?mem=)([\d.]+[KMGT]n?)")
HEAD_LINES = 10


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each line of a record, with the `job` or `node` of the record.

    Of a job also `time_limit_s` and `requested_memory_kib`, wherever in its record they stand.
    """
    events: list[Event] = []
    owner: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        row = line.rstrip()
        begins = _RECORD.fullmatch(row)
        if begins:
            owner = {key: value for key, value in begins.groupdict().items() if value}
        if owner and _LINE.fullmatch(row):
            place = Locator(source, number, number)
            events.append(Event(place, "log", "host", row.strip(), fields=dict(owner), raw=row))
        elif row:
            owner = {}
    return Parsed(tuple(_with_amounts(events)))


def _with_amounts(events: list[Event]) -> Iterator[Event]:
    known: dict[str, dict[str, int]] = {}
    for event in events:
        job = known.setdefault(str(event.fields.get("job", "")), {})
        if "job" not in event.fields:
            continue
        limit, memory = _LIMIT.search(event.text), _MEMORY.search(event.text)
        if limit and (seconds := duration_s(limit[1])) is not None:
            job["time_limit_s"] = seconds
        if memory and (kib := memory_kib(memory[1])) is not None:
            job["requested_memory_kib"] = kib
    for event in events:
        yield replace(event, fields={**event.fields, **known[str(event.fields.get("job", ""))]})


def sniff(head: Head) -> int:
    return 90 if any(_RECORD.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.scontrol", "scontrol", sniff, read, begins="JN")
