"""Files of the memory controller, version 1 and 2 (kernel Documentation/admin-guide/cgroup-v2.rst,
cgroup-v1/memory.rst).

Tiny files are known by their name only: one number says nothing by itself. Inside a saved session the name
is the heading or the command above them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..model import Event, Locator
from ..regexes import lazy_re
from ..sources import mostly
from .cgroup_path import path_scope
from .sections import Section

_SINGLE = {
    "memory.max": "memory_max_bytes",
    "memory.high": "memory_high_bytes",
    "memory.low": "memory_low_bytes",
    "memory.min": "memory_min_bytes",
    "memory.current": "memory_current_bytes",
    "memory.peak": "memory_peak_bytes",
    "memory.swap.max": "swap_max_bytes",
    "memory.swap.high": "swap_high_bytes",
    "memory.swap.current": "swap_current_bytes",
    "memory.zswap.current": "zswap_current_bytes",
    "memory.zswap.max": "zswap_max_bytes",
    "memory.oom.group": "oom_group",
    "memory.limit_in_bytes": "memory_max_bytes",
    "memory.usage_in_bytes": "memory_current_bytes",
    "memory.max_usage_in_bytes": "memory_peak_bytes",
    "memory.soft_limit_in_bytes": "memory_low_bytes",
    "memory.memsw.limit_in_bytes": "memsw_max_bytes",
    "memory.memsw.usage_in_bytes": "memsw_current_bytes",
    "memory.memsw.max_usage_in_bytes": "memsw_peak_bytes",
    "memory.memsw.failcnt": "memsw_failcnt",
    "memory.failcnt": "failcnt",
    "pids.current": "pids_current",
    "pids.max": "pids_max",
    "pids.peak": "pids_peak",
}
_KEYED = ("memory.events.local", "memory.events", "memory.swap.events", "memory.oom_control", "memory.stat",
          "memory.numa_stat", "cgroup.events", "cgroup.stat", "pids.events", "pids.events.local")  # fmt: skip
NAMES = (*sorted(_SINGLE, key=len, reverse=True), *_KEYED, "memory.pressure")
UNLIMITED = 1 << 62
"""Version 1 prints 9223372036854771712 for no limit."""
_ALTERNATIVES = "|".join(re.escape(name) for name in sorted(NAMES, key=len, reverse=True))
_NAME = lazy_re(rf"(?<![\w.])(?:{_ALTERNATIVES})(?!\w|\.[a-z]+\.)")
_OTHER_NAME = lazy_re(
    r"(?<![\w.])(?:memory|pids|cgroup|cpu|cpuset)\.(?!(?:txt|log|csv|json|out|err)\b)[a-z][a-z0-9_.]+"
)
_NUMBERS = lazy_re(r"(?:[a-z_.]+ )?(?:-?\d+(?:[ -]\d+)*|max)")
"""What other controller files hold; they are known and say nothing here."""
_NUMBER = lazy_re(r"\d{1,20}|max")
_PAIR = lazy_re(r"(?P<key>[a-z][a-z0-9_]*) (?P<value>\d{1,20})")
_GREPPED = lazy_re(
    r"(?P<path>\S*?)(?P<name>memory\.[a-z_.]+|pids\.[a-z.]+|cgroup\.[a-z.]+): ?(?P<rest>\S.*)"
)
_PRESSURE = lazy_re(
    r"(?P<kind>some|full) avg10=(?P<a>[\d.]+) avg60=(?P<b>[\d.]+) avg300=(?P<c>[\d.]+) total=(?P<total>\d+)"
)


def name_in(title: str) -> str:
    """The controller file that a path, heading or command names, or an empty string."""
    found = _NAME.findall(title)
    return str(found[-1]) if found else ""


def matches(section: Section) -> bool:
    """True when the body is what the named files hold, or keys that only a controller file has."""
    lines = section.filled
    if not lines:
        return False
    if all(_GREPPED.fullmatch(line) and name_in(line) for line in lines) or len(_files(section)) > 1:
        return True
    name = name_in(section.title)
    if not name and _OTHER_NAME.search(section.title):
        return all(_NUMBERS.fullmatch(line.strip()) for line in lines)
    if name in _SINGLE:
        return len(lines) == 1 and _NUMBER.fullmatch(lines[0].strip()) is not None
    if name == "memory.pressure":
        return all(_PRESSURE.fullmatch(line.strip()) for line in lines)
    if not mostly(_pair, lines, 0.8):
        return name == "memory.numa_stat" and all("N0=" in line for line in lines)
    keys = {pair["key"] for pair in map(_pair, lines) if pair}
    return len(keys) >= 0.8 * len(lines) and (bool(name) or _kind_of(keys) != "")


def _files(section: Section) -> list[Section]:
    """The files that one command printed one behind the other (`cat memory.events memory.max`), each with its name.

    A file of one number says nothing of itself: it has the next such name of the command, and without one it is left
    out. Empty where anything else stands between them.
    """
    singles = [name for name in _NAME.findall(section.title) if name in _SINGLE]
    runs: list[tuple[int, list[str]]] = []
    seen: set[str] = set()
    for number, line in enumerate(section.lines, section.line):
        text, pair = line.strip(), _pair(line)
        if pair is not None and seen and pair["key"] not in seen and pair["key"] not in _FIRST:
            runs[-1][1].append(text)
        elif pair is not None or _NUMBER.fullmatch(text):
            runs.append((number, [text]))
            seen = set()
        elif text.strip("-="):
            return []
        else:
            seen = set()
            continue
        seen = seen | {pair["key"]} if pair is not None else set()
    files = []
    for number, body in runs:
        if _NUMBER.fullmatch(body[0]):
            name = singles.pop(0) if singles else ""
        else:
            name = _kind_of({pair["key"] for pair in map(_pair, body) if pair is not None})
        if name:
            files.append(replace(section, title=f"{section.title} {name}", line=number, lines=tuple(body)))
    return files


_FIRST = frozenset({"low", "anon", "cache", "oom_kill_disable"})
"""Keys with which a file begins: memory.events, memory.stat of both versions, memory.oom_control."""


def _pair(line: str) -> re.Match[str] | None:
    return _PAIR.fullmatch(line.strip())


def _kind_of(keys: set[str]) -> str:
    """Which file has these keys."""
    if {"max", "oom", "oom_kill"} <= keys:
        return "memory.events"
    if "oom_kill_disable" in keys:
        return "memory.oom_control"
    if {"anon", "file", "inactive_file"} <= keys or {"cache", "rss", "hierarchical_memory_limit"} <= keys:
        return "memory.stat"
    return ""


def read(section: Section, source: str) -> list[Event]:
    """One `cgroup` event a file: `memory.max = 103079215104` with the field `memory_max_bytes`.

    No limit (`max`) gives the field none and `unlimited`. Keys of `memory.events` and `memory.oom_control`
    keep their names; amounts of `memory.stat` get `_bytes`. `local` marks `memory.events.local`. Pressure is
    in percent.
    """
    grepped = [_GREPPED.fullmatch(line) for line in section.lines]
    if any(grepped):
        return list(_read_grepped(section, source, grepped))
    if len(files := _files(section)) > 1:
        return [event for file in files for event in read(file, source)]
    pairs = [pair for line in section.lines if (pair := _PAIR.fullmatch(line.strip()))]
    name = name_in(section.title) or _kind_of({pair["key"] for pair in pairs})
    fields = _fields(name, section.filled)
    return (
        [_event(section, source, name, fields, section.line, section.line + len(section.lines) - 1)]
        if fields
        else []
    )


def _read_grepped(section: Section, source: str, grepped: list[re.Match[str] | None]) -> Iterator[Event]:
    """`grep . /sys/fs/cgroup/memory.*`: every line names its file."""
    files: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for i, found in enumerate(grepped):
        if found:
            files.setdefault((found["path"], found["name"]), []).append((section.line + i, found["rest"]))
    for (path, name), rows in files.items():
        fields = _fields(name, tuple(text for _, text in rows))
        if fields:
            title, body = f"{section.title} {path}{name}", tuple(text for _, text in rows)
            part = replace(section, title=title, line=rows[0][0], lines=body)
            yield _event(part, source, name, fields, rows[0][0], rows[-1][0])


def _fields(name: str, lines: tuple[str, ...]) -> dict[str, object]:
    if name in _SINGLE and lines:
        text = lines[0].strip()
        key = _SINGLE[name]
        if not _NUMBER.fullmatch(text):
            return {}
        if text == "max" or (key.endswith("_bytes") and int(text) >= UNLIMITED):
            return {key: None, "unlimited": True}
        return {key: int(text)}
    if name == "memory.pressure":
        return pressure(lines)
    pairs = {pair["key"]: int(pair["value"]) for line in lines if (pair := _PAIR.fullmatch(line.strip()))}
    if name in ("memory.events", "memory.swap.events", "memory.events.local", "pids.events"):
        return {**pairs, "local": name.endswith(".local")}
    if name == "memory.stat":
        return {_stat_key(key): value for key, value in pairs.items()}
    return dict(pairs)


_COUNTS = ("pg", "workingset_", "thp_", "zswp", "total_pg", "nr_", "ws", "numa_")


def _stat_key(key: str) -> str:
    return key if key.startswith(_COUNTS) else f"{key}_bytes"


def pressure(lines: tuple[str, ...]) -> dict[str, object]:
    """`some avg10=0.71 avg60=… total=…` → `some_avg10_pct`, `full_avg10_pct` …, `some_total_us`."""
    fields: dict[str, object] = {}
    for line in lines:
        found = _PRESSURE.fullmatch(line.strip())
        if found:
            kind = found["kind"]
            fields |= {f"{kind}_avg10_pct": float(found["a"]), f"{kind}_avg60_pct": float(found["b"])}
            fields |= {f"{kind}_avg300_pct": float(found["c"]), f"{kind}_total_us": int(found["total"])}
    return fields


def _event(
    section: Section, source: str, name: str, fields: dict[str, object], first: int, last: int
) -> Event:
    if name in _SINGLE:
        value = section.filled[0].strip()
        text = f"{name} = {value}"
    elif name == "memory.stat":
        told = (
            "anon_bytes",
            "file_bytes",
            "shmem_bytes",
            "kernel_bytes",
            "total_rss_bytes",
            "total_cache_bytes",
        )
        text = f"{name}: " + " ".join(f"{key}={fields[key]}" for key in told if key in fields)
    else:
        text = f"{name}: " + " ".join(f"{key}={value}" for key, value in fields.items() if key != "local")
    return Event(
        Locator(source, first, last), "cgroup", "cgroup", text,
        scope=path_scope(f"{source}/{section.title}").merged(section.scope),
        fields={"file": name, **fields}, raw="\n".join(section.filled)[:4000],
    )  # fmt: skip
