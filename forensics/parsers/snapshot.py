"""Snapshots of a host: single command outputs, /proc and cgroup files, and sessions in which they follow
each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath

from ..model import Event, Locator, Parsed, RawStamp, Samples, Scope, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import cgroup, host_clock, host_memory, host_tables, limits, nvidia_text
from .dates import date_command, is_time
from .embedded import read_text
from .points import Points
from .sections import Section, cut


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of output."""

    kind: str
    matches: Callable[[Section], bool]


_OTHER = lazy_regex(
    r"(?:\d+\.\d\d ){3}\d+/\d+ \d+|\d+\.\d\d \d+\.\d\d"  # /proc/loadavg, /proc/uptime
    r"|\d+:[\w=,]*:/.*"  # /proc/PID/cgroup
    r"|[0-9a-f]+-[0-9a-f]+ .*\[rollup\]|[A-Z][\w]+: +\d+ kB"  # /proc/PID/smaps_rollup
    r"|(?:NAME +TYPE +SIZE +USED +PRIO|Filename\s+Type\s+Size\s+Used\s+Priority)\s*"  # swapon, /proc/swaps
    r"|/\S+\s+(?:partition|file)\s+\S+\s+\S+\s+-?\d+\s*"
)
"""Outputs that are known and say nothing about an incident."""
_DF_ROW = lazy_regex(r"^Filesystem\s|\d%|\s/\S*\s*$|^/\S+\s*$")
_READERS = (
    Reader("cgroup", cgroup.matches),
    Reader("memory", host_memory.matches),
    Reader("clock", lambda section: host_clock.kind_of(section) != ""),
    Reader("ps", host_tables.matches_ps),
    Reader("df", host_tables.matches_df),
    Reader("limits", limits.matches),
    Reader("other", lambda section: all(_OTHER.fullmatch(line) for line in section.filled)),
    Reader("other", lambda section: "oom_" in section.title and section.filled[0].strip("-").isdigit()),
    Reader("nvidia", lambda section: any(line.startswith("| NVIDIA-SMI ") for line in section.filled[:4])),
)


def _kind(section: Section) -> str:
    return next((reader.kind for reader in _READERS if reader.matches(section)), "")


def _name(path: str) -> str:
    """File name with its folder: `memory/memory.max`, `proc/pressure/memory`."""
    return "/".join(PurePosixPath(path.removesuffix("!")).parts[-3:])


@lru_cache(maxsize=1)
def _sections(head: Head) -> list[tuple[str, Section]]:
    return [(_kind(section), section) for section in cut(head.lines, _name(head.path))]


def _score(head: Head, cgroup_only: bool) -> int:
    if len(head.text) > 4 and head.text.lstrip()[:1] in "{<[":
        return 0
    parts = _sections(head)
    total = sum(len(section.filled) for _, section in parts)
    known = sum(len(section.filled) for kind, section in parts if kind)
    kinds = {kind for kind, _ in parts if kind}
    if not kinds or known < 0.6 * total or ("nvidia" in kinds and kinds <= {"nvidia", "clock"}):
        return 0
    return 93 if cgroup_only == (kinds == {"cgroup"}) else 0


def _read(text: str, source: str) -> Parsed:
    """Every part by its own reader, the rest as a log; a time printed before a part is the time of that part."""
    events: list[Event] = []
    points = Points(source)
    samples: list[Samples] = []
    stamp: RawStamp | None = None
    lines = text.split("\n")
    rest = [""] * len(lines)
    processes = Points(source)
    for section in cut(lines, _name(source)):
        kind = _kind(section)
        if is_time(section.title):
            stamp = date_command(section.title, "host") or stamp
        for number, line in enumerate(section.lines, section.line):
            if not kind or (kind == "df" and not _DF_ROW.search(line)):
                rest[number - 1] = line
        if kind == "clock":
            found = host_clock.read(section, source)
            stamp = next(
                (s for e in found for s in e.stamps if e.kind == "capture" and s.form != StampForm.CLOCK),
                stamp,
            )
            if stamp is not None:
                found = [replace(e, stamps=e.stamps or (stamp,)) if "uptime_s" in e.fields else e for e in found]
            events += [*found, *host_memory.read_top(section, source, stamp)]
        elif kind == "cgroup":
            for event in cgroup.read(section, source):
                events.append(event if stamp is None else replace(event, stamps=(stamp,)))
                _sample(event, stamp, points)
        elif kind == "memory":
            events += host_memory.read(section, source, stamp, points)
        elif kind == "ps":
            rows = host_tables.read_ps(section, source, stamp)
            host_tables.sample(rows, stamp, processes)
            events += rows
        elif kind == "df":
            events += host_tables.read_df(section, source, stamp)
        elif kind == "limits":
            events += limits.read(section, source)
        elif kind == "nvidia":
            parsed = nvidia_text.read_lines(section.lines, source, section.line)
            events += parsed.events
            samples += parsed.samples
    if any(rest):
        left = read_text("\n".join(rest), source, "plain")
        events += left.events
        samples += left.samples
    events.sort(key=lambda event: event.locator.line)
    watched = (s for s in processes.samples() if len(s.values) >= _WATCHED)
    return Parsed(tuple(events), (*points.samples(), *watched, *samples))


_WATCHED = 3
"""A list of processes that was taken this often is a watch over their memory."""


def _sample(event: Event, stamp: RawStamp | None, points: Points) -> None:
    current = event.fields.get("memory_current_bytes")
    if stamp is not None and isinstance(current, int):
        points.add("container_memory_mib", event.scope, stamp, event.locator.line, current / 2**20)


def _sniff_time_json(head: Head) -> int:
    return (
        95
        if head.whole and len(head.text) < 2000 and '"timezone"' in head.text and "ntp" in head.text.lower()
        else 0
    )


def _read_time_json(text: str, source: str) -> Parsed:
    """`system/time.json` of the troubleshoot collector: the node's zone."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return Parsed()
    if not isinstance(facts, dict) or not isinstance(facts.get("timezone"), str):
        return Parsed()
    fields = {"timezone": facts["timezone"]}
    if isinstance(facts.get("ntp_synchronized"), bool):
        fields["synchronized"] = facts["ntp_synchronized"]
    event = Event(
        Locator(source, 1, 1),
        "capture",
        "host",
        f"time zone {facts['timezone']}",
        (),
        Scope(),
        fields,
        raw=text,
    )
    return Parsed((event,))


FORMATS = (
    Format("cgroup", "cgroup files", lambda head: _score(head, cgroup_only=True), _read, max_bytes=16 << 20),
    Format(
        "host.state", "host state", lambda head: _score(head, cgroup_only=False), _read, max_bytes=16 << 20
    ),
    Format("host.time", "node time settings", _sniff_time_json, _read_time_json, max_bytes=1 << 20),
)
