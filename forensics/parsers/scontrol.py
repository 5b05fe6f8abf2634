"""`scontrol show job` and `scontrol show node`: what Slurm's controller knows of a job, or of a node.

Records of `Key=Value` words begin with `JobId=` or `NodeName=` (Slurm 2.6 to 25.05, `src/api/job_info.c`,
`src/api/node_info.c`); each line is an event that says whose record it is in.
"""

from __future__ import annotations

import regex

from ..model import Event, Locator, Parsed
from ..sources import Format, Head

_RECORD = regex.compile(r"(?:JobId=(?P<job>\d+)\S* |NodeName=(?P<node>\S+) )(?:.* )?\w+=.*")
_LINE = regex.compile(r"\s*[A-Z][\w:/]*=.*")
HEAD_LINES = 10


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each line of a record, with the `job` or `node` of the record."""
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
    return Parsed(tuple(events))


def sniff(head: Head) -> int:
    return 90 if any(_RECORD.fullmatch(line.rstrip()) for line in head.lines[:HEAD_LINES]) else 0


FORMAT = Format("slurm.scontrol", "scontrol", sniff, read, begins="JN")
