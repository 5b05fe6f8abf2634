"""What a shell loop writes that watches memory: a time, and a number, a row of `kubectl top` or of `docker stats`.

`while sleep 600; do date; kubectl top pod …; done`, `echo "$(date +%s) $(cat memory.current)"`. The time stands above
the rows or in front of each, the number may have a name or a unit; a bare one is bytes. A file whose bare numbers
might be anything must say by its name that they are memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from ..model import Parsed, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from .dates import SPELLED, date_command, is_time
from .points import Points
from .sizes import size_bytes

LAYER = "watch"
MAX_BYTES = 64 << 20
_LEAST_BYTES, _MOST_BYTES = 1 << 26, 1 << 44
_TIMES = 3
_BEFORE, _BEHIND = "-=#[>* ", "-=#]:, "
"""What people print around a date, so that it stands out."""
_EPOCH = lazy_regex(r"1\d{9}(?:\.\d{1,9})?")
_CLOCK = lazy_regex(r"(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?")
_LEAD = lazy_regex(
    r"\[?(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    rf"|1\d{{9}}(?:\.\d{{1,9}})?|{SPELLED}|\d\d:\d\d(?::\d\d)?)\]?"
    r"[\s,;|]+"
)
_VALUE = lazy_regex(
    r"(?P<name>memory[._]?current|memory\.usage_in_bytes|rss|mem(?:ory)?(?:[._]?(?:used|usage|bytes))?|working[._]?set)?"
    r"[=:\s]*(?P<size>\d{1,14}(?:\.\d{1,3})?) ?(?P<unit>[KMGT]i?B?|bytes|B|kB)?(?P<more>[\s,;].*)?",
    regex.IGNORECASE,
)
_TOP = lazy_regex(
    r"(?:(?P<pod>[a-z0-9][a-z0-9.-]*)\s+)?(?P<name>[a-z0-9][a-z0-9.-]*)\s+\d+m?\s+(?P<size>\d+)(?P<unit>[KMG]i)\s*"
)
_STATS = lazy_regex(
    r"(?:(?P<id>[0-9a-f]{12,64}) +)?(?P<name>[\w.-]+) +[\d.]+% +"
    r"(?P<size>[\d.]+) ?(?P<unit>[KMGT]?i?B) / [\d.]+ ?[KMGT]?i?B\b.*"
)
_HEADER = lazy_regex(r"(?i)(?:POD|NAME|NAMESPACE|CONTAINER(?: ID)?|TIMESTAMP|TIME|DATE)\b[A-Z /%(),_.]*")
_ABOUT_MEMORY = lazy_regex(r"(?i)mem|rss|cgroup|(?:^|[/_.-])(?:cg|ram)(?=[_.-]|$)|working")


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    stamp: RawStamp | None
    mib: float
    scope: Scope
    bare: bool = False
    """A number without a name or a unit."""


def _rows(lines: Sequence[str]) -> Iterator[_Row | bool]:
    """A row for each line with a measurement; else whether the line belongs to such a file at all."""
    above: RawStamp | None = None
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line:
            continue
        framed = line.lstrip(_BEFORE).rstrip(_BEHIND)
        if is_time(framed) or _EPOCH.fullmatch(framed):
            above = date_command(framed, LAYER)
            yield above is not None
            continue
        lead = _LEAD.match(line)
        own = _stamp(lead["stamp"]) if lead else None
        rest = line[lead.end() :] if lead and own else line
        if _HEADER.fullmatch(rest):
            yield True
            continue
        row = _row(rest, number, own or above)
        yield row if row is not None else False


def _stamp(text: str) -> RawStamp | None:
    clock = _CLOCK.fullmatch(text)
    if clock:
        seconds = int(clock["h"]) * 3600.0 + int(clock["m"]) * 60 + int(clock["s"] or 0)
        return RawStamp(StampForm.CLOCK, LAYER, seconds)
    return date_command(text, LAYER)


def _row(text: str, number: int, stamp: RawStamp | None) -> _Row | None:
    if found := _TOP.fullmatch(text):
        pod, name = found["pod"], found["name"]
        scope = Scope(pod=pod, container=name) if pod else Scope(pod=name)
    elif found := _STATS.fullmatch(text):
        scope = Scope(container=found["name"], container_id=found["id"] or "")
    elif found := _VALUE.fullmatch(text):
        scope = Scope()
        if found["more"] and not found["name"]:
            return None
    else:
        return None
    unit = found["unit"] or ""
    size = size_bytes(f"{found['size']} {unit if unit.endswith('B') else unit + 'B'}") if unit != "bytes" else None
    held = float(found["size"]) if size is None and unit in ("", "bytes") else size
    if held is None or held > _MOST_BYTES:
        return None
    named = found.groupdict().get("name")
    return _Row(number, stamp, held / 2**20, scope, bare=not unit and not named)


def _sniff(head: Head) -> int:
    told = list(_rows(head.lines[:400]))
    rows = [row for row in told if isinstance(row, _Row)]
    times = {row.stamp.seconds for row in rows if row.stamp is not None}
    if len(times) < _TIMES or sum(row is not False for row in told) < 0.9 * len(told):
        return 0
    if any(row.stamp is None for row in rows[1:]):
        return 0
    bare = any(row.bare for row in rows)
    plausible = all(row.mib * 2**20 >= _LEAST_BYTES for row in rows if row.bare)
    return 0 if bare and not (plausible and _ABOUT_MEMORY.search(head.path)) else 94


def read(text: str, source: str) -> Parsed:
    """`container_memory_mib` by what each row names."""
    points = Points(source)
    for row in _rows(text.split("\n")):
        if isinstance(row, _Row) and row.stamp is not None:
            points.add("container_memory_mib", row.scope, row.stamp, row.line, row.mib)
    return Parsed(samples=tuple(points.samples()))


FORMAT = Format("memory.loop", "memory, watched by a loop", _sniff, read, MAX_BYTES)
