"""Memory that people typed into an issue: a size by day or hour, below a line that says what was measured.

`| Sep 03 | 70835 MiB |` in a table headed `nvidia-smi memory.used`, `04:00  vllm  21388Mi` below `kubectl top pod every
2 hours:`. Rows that do not say whose memory they are, or of which nothing above does, are not read. Among the rows may
stand the end that they lead to (`12:47  OOMKilled, exit code 137`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from .k8s_values import terminated_text
from .points import Points
from .sizes import size_bytes

LAYER = "typed"
MAX_BYTES = 1 << 20
LEAST = 4
"""So many rows below each other are a series."""
ABOVE = 4
"""They begin this close below what says whose they are: an empty line, the rule of a table, a fence between them."""
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_S = 86400.0
_TIME = (
    rf"(?:(?P<weekday>{'|'.join(_WEEKDAYS)})(?:(?:s|nes|rs|ur)?day|s|rs)?"
    r"(?:,? +(?P<week_clock>[0-2]?\d:[0-5]\d(?::[0-5]\d)?))?(?!\w)"
    r"|(?P<iso>20\d\d-[01]\d-[0-3]\d)(?:[T ](?P<iso_clock>[0-2]\d:[0-5]\d(?::[0-5]\d)?))?"
    r"|(?P<month>[A-Z][a-z]{2}) +(?P<day>[0-3]?\d)(?: +(?P<day_clock>[0-2]\d:[0-5]\d(?::[0-5]\d)?))?"
    r"|(?P<clock>[0-2]\d:[0-5]\d(?::[0-5]\d)?))(?: ?(?:Z|UTC))?"
)
_ROW = lazy_regex(
    rf"\s*(?:[-*|] *)?{_TIME}(?: [\w ]{{1,30}}?(?=[ \t]*\|))?(?:[ \t]*[|,;:=–—→-][ \t|]*|[ \t]+)"
    r"(?:(?P<name>[A-Za-z][\w.-]{0,40})(?:[ \t]*[:=|]?[ \t]+|[:=]))?"
    r"(?:~|≈|about )?(?P<size>\d{1,7}(?:\.\d{1,3})?) ?(?P<unit>[MG]i?B?)\b(?P<more>[^\w].{0,60})?"
)
_END = lazy_regex(rf"\s*(?:[-*|] *)?{_TIME}[ \t|,;:–—→-]+(?P<said>(?:\w+ )?OOM-?[Kk]illed\b.{{0,160}})")
_EXIT = lazy_regex(r"\bexit(?:ed)?(?: code)?[ :=(]{1,3}(?P<code>\d{1,3})\b", regex.IGNORECASE)
_RULE = lazy_regex(r"\s*\|?(?:\s*:?-{2,}:?\s*\|?)+\s*")
_FENCE = lazy_regex(r"\s{0,3}(?:```|~~~)")
_GPU = lazy_regex(r"(?i)nvidia-smi|\bgpu\b|\bvram\b|\bmemory\.used\b|\bfb[_ ]used\b|显存")
_HOST = lazy_regex(
    r"(?i)\brss\b|resident|kubectl top|docker stats|podman stats|working[ _]set|memory\.current|\bcgroup\b|\bps aux\b"
    r"|\b(?:container|pod|host|process|cpu) (?:memory|mem|ram)\b|内存"
)
_AT = lazy_regex(r"\b([0-2]\d:[0-5]\d)\b")
_LIMIT = lazy_regex(
    r"(?i)(?:\b(?:container|pod|memory|mem)(?: memory)? limit(?: (?:is|of))?"
    r"|(?:^|[.,;:(!?]\s*|\b(?:the|our|its|and)\s)limit (?:is|of))"
    r"[ :=]*(\d{1,5}) ?(Gi|Mi)B?\b"
)


@dataclass(frozen=True, slots=True)
class _Heading:
    """What stands above the rows: whose memory it is, and the time of day of rows that print none."""

    series: str
    clock: str
    limit_bytes: int | None


def _heading(line: str) -> _Heading | None:
    """None where the line does not say what was measured, or speaks of both the card and the host."""
    gpu, host = _GPU.search(line), _HOST.search(line)
    if bool(gpu) == bool(host) or len(line) > 400:
        return None
    at, limit = _AT.search(line), _LIMIT.search(line)
    size = size_bytes(f"{limit[1]} {limit[2]}B") if limit else None
    return _Heading("gpu_memory_used_mib" if gpu else "container_memory_mib", at[1] if at else "00:00",
                    int(size) if size is not None else None)  # fmt: skip


def begins(lines: Sequence[str], index: int) -> bool:
    """Whether the line says what the rows below it measure."""
    below = range(index + 1, min(len(lines), index + ABOVE))
    first = next((i for i in below if lines[i].strip() and not _is_frame(lines[i])), len(lines))
    rows = [_is_row(line) for line in lines[first : first + LEAST]]
    return len(rows) == LEAST and all(rows) and not _is_row(lines[index]) and _heading(lines[index]) is not None


def goes_on(lines: Sequence[str], first: int) -> Callable[[int], bool]:
    """The rows, and the fence around them: one that is left behind would open a piece of code."""
    end, fenced = first + 1, False
    for index in range(first + 1, len(lines)):
        line = lines[index]
        if _FENCE.match(line):
            if fenced or index >= first + ABOVE:
                end += fenced
                break
            fenced = True
        elif not (_belongs(line) if line.strip() else index < first + ABOVE):
            break
        end = index + 1
    return lambda index: index < end


def _is_frame(line: str) -> bool:
    return _RULE.fullmatch(line) is not None or _FENCE.match(line) is not None


def _is_row(line: str) -> bool:
    return len(line) <= 200 and _ROW.fullmatch(line.rstrip(" |")) is not None


def _belongs(line: str) -> bool:
    return _is_row(line) or _is_frame(line) or _END.fullmatch(line.rstrip(" |")) is not None


def _sniff(head: Head) -> int:
    lines = [line.rstrip("\r") for line in head.lines if line.strip()]
    return 93 if lines and begins(lines, 0) and all(map(_belongs, lines[1:])) else 0


def read(text: str, source: str) -> Parsed:
    """`gpu_memory_used_mib` or `container_memory_mib`; an end for memory; the limit that the heading tells."""
    lines = text.split("\n")
    at = next((i for i in range(len(lines)) if begins(lines, i)), None)
    heading = _heading(lines[at]) if at is not None else None
    if at is None or heading is None:
        return Parsed()
    points = Points(source)
    events = list[Event]()
    names = set[str]()
    week = _Week()
    for number, line in enumerate(lines[at + 1 :], at + 2):
        bare = line.rstrip(" |\r")
        if found := _ROW.fullmatch(bare):
            unit = found["unit"].rstrip("B")
            size = size_bytes(f"{found['size']} {unit if unit.endswith('i') else unit + 'i'}B")
            stamp = _stamp(found, heading, week)
            if size is not None and stamp is not None:
                names |= {found["name"] or ""}
                points.add(heading.series, _scope(found["name"], heading), stamp, number, size / 2**20)
        elif (found := _END.fullmatch(bare)) and (stamp := _stamp(found, heading, week)):
            events.append(_end(found["said"], line, stamp, Locator(source, number, number)))
    owner = _scope(names.pop() if len(names) == 1 else "", heading)
    if heading.limit_bytes is not None and heading.series == "container_memory_mib":
        fields = {"file": "memory.max", "memory_max_bytes": heading.limit_bytes}
        text = f"memory.max = {heading.limit_bytes}"
        events.insert(0, Event(Locator(source, at + 1, at + 1), "cgroup", "cgroup", text, fields=fields, raw=lines[at]))
    return Parsed(tuple(_owned(event, owner) for event in events), points.samples())


def _scope(name: str | None, heading: _Heading) -> Scope:
    """The container that a row names; a measurement's name, or a card's memory, names nobody."""
    plain = name if name and heading.series == "container_memory_mib" and not _HOST.search(name) else ""
    return Scope(container=plain)


def _owned(event: Event, owner: Scope) -> Event:
    text = terminated_text(owner.container, "OOMKilled", event.fields.get("exit_code"))
    told = text if event.kind == "container_terminated" else event.text
    return Event(event.locator, event.kind, event.channel, told, event.stamps, owner, event.fields, raw=event.raw)


def _end(said: str, line: str, stamp: RawStamp, place: Locator) -> Event:
    code = _EXIT.search(said)
    fields = {"reason": "OOMKilled", "last_state": True, **({"exit_code": int(code["code"])} if code else {})}
    return Event(place, "container_terminated", "k8s", "", (stamp,), fields=fields, raw=line)


class _Week:
    """Weekdays of rows in order, as seconds since the beginning of the first one's day."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0.0

    def seconds(self, weekday: str, time_s: float) -> float:
        day = _WEEKDAYS.index(weekday)
        self._first = day if self._first is None else self._first
        seconds = (day - self._first) % 7 * _DAY_S + time_s
        while seconds < self._last:
            seconds += 7 * _DAY_S
        self._last = seconds
        return seconds


def _stamp(found: regex.Match[str], heading: _Heading, week: _Week) -> RawStamp | None:
    """A day's row has the heading's time of day, or the day's beginning: what ends on that day ends after it."""
    if found["weekday"]:
        time_s = _of_day(found["week_clock"] or heading.clock)
        return RawStamp(StampForm.CLOCK, LAYER, week.seconds(found["weekday"], time_s), 60.0)
    if found["clock"]:
        return RawStamp(StampForm.CLOCK, LAYER, _of_day(found["clock"]), 60.0)
    clock = found["iso_clock"] or found["day_clock"] or heading.clock
    clock = clock if clock.count(":") == 2 else f"{clock}:00"
    if found["iso"]:
        return stamps.iso(f"{found['iso']} {clock}", LAYER)
    month = stamps.month_number(found["month"])
    return stamps.month_day(month, int(found["day"]), clock, LAYER) if month is not None else None


def _of_day(clock: str) -> float:
    hours, minutes, *seconds = map(int, clock.split(":"))
    return hours * 3600.0 + minutes * 60 + sum(seconds)


FORMAT = Format("memory.typed", "memory, typed by somebody", _sniff, read, MAX_BYTES)
