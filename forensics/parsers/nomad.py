"""`nomad alloc status ALLOC`: how the tasks of an allocation ended, and what memory each was granted.

Nomad 0.9 to 1.10 (`command/alloc_status.go`). The events of a task are its container's; their times have a zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .. import stamps
from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .embedded import read_text
from .k8s_values import known
from .sizes import size_bytes
from .tables import Header

_TASK = lazy_regex(r'Task "(?P<name>[^"]{1,128})"(?: \([^)]*\))? is "(?P<state>\w+)"(?: \(\w+\))?')
_COLUMN = lazy_regex(r"\S+(?: \S+)*")
_RESTARTS = lazy_regex(r"Total Restarts += (?P<count>\d{1,9})")
_MEMORY = lazy_regex(r"[\d.]+ \w+/(?P<limit>[\d.]+ ?[KMGT]?i?B)(?: Max: (?P<most>[\d.]+ ?[KMGT]?i?B))?")
_WANTED = lazy_regex(r"Desired Description += (?P<why>[^\s<].{0,200})")
_HEAD = ("ID ", "Eval ID ", "Client Status ")
LAYER = "nomad"


def read(text: str, source: str) -> Parsed:
    """For each task its `pod_spec` with the limit, its state with the restarts, its starts, and a `log` event a row.

    What stands behind the last row was put there by somebody: it is read as a log.
    """
    lines = text.split("\n")
    events = tuple(_events(lines, source))
    last = max((event.locator.line for event in events), default=0)
    if not any(line.strip() for line in lines[last:]):
        return Parsed(events)
    behind = read_text("\n".join(["" for _ in lines[:last]] + lines[last:]), source, "plain")
    return replace(behind, events=(*events, *behind.events))


def _events(lines: list[str], source: str) -> Iterator[Event]:
    scope, header, state = Scope(), None, ""
    for number, line in enumerate(lines, 1):
        row, place = line.rstrip(), Locator(source, number, number)
        if wanted := _WANTED.fullmatch(row):
            yield Event(place, "log", "host", f"Desired Description: {wanted['why']}", raw=row)
        elif found := _TASK.fullmatch(row):
            scope, header, state = Scope(container=found["name"]), None, found["state"]
        elif not row or not scope.container or row == "Device Stats":  # a table without a header
            header = None
        elif row.startswith(("CPU ", "Time ")):
            header = _header(row)
        elif found := _RESTARTS.fullmatch(row):
            fields = {"state": state, "restart_count": int(found["count"])}
            text = f"container {scope.container} {state}"
            yield Event(place, "container_state", "runtime", text, scope=scope, fields=fields, raw=row)
        elif header is not None and (cells := header.cells(row)).get("Memory"):
            granted = _MEMORY.match(cells["Memory"])
            limit = size_bytes(granted["most"] or granted["limit"]) if granted else None
            spec = known({"container": scope.container, "memory_limit_bytes": limit})
            text = f"container {scope.container} spec"
            yield Event(place, "pod_spec", "runtime", text, scope=scope, fields=spec, raw=row)
        elif header is not None and (stamp := stamps.iso(header.cells(row).get("Time", ""), LAYER)) is not None:
            told = header.cells(row)
            if told["Type"] == "Started":
                text = f"container {scope.container} started"
                yield Event(place, "container_started", "runtime", text, (stamp,), scope, raw=row)
                continue
            yield Event(place, "log", "host", f"{told['Type']}: {told['Description']}", (stamp,), scope, raw=row)


def _header(row: str) -> Header:
    found = list(_COLUMN.finditer(row))
    return Header(tuple(column[0] for column in found), tuple(column.start() for column in found))


def _sniff(head: Head) -> int:
    stated = all(any(line.startswith(key) for line in head.lines[:20]) for key in _HEAD)
    return 92 if stated and any(map(_TASK.fullmatch, head.lines)) else 0


FORMAT = Format("nomad.status", "nomad alloc status", _sniff, read, begins="I")
