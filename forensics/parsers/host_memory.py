"""Memory of a host: /proc/meminfo, free, vmstat, /proc/vmstat, /proc/pressure, /proc/PID/status (Linux,
procps 3.3 and 4).
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..model import Event, Locator, RawStamp, Scope
from ..regexes import lazy_re
from ..sources import mostly
from . import cgroup
from .dates import date_command
from .numerals import is_whole
from .points import Points
from .sections import Section
from .sizes import size_bytes

_MEMINFO = lazy_re(r"(?P<key>[A-Za-z][\w()]*):\s+(?P<value>\d{1,18})(?P<unit> kB)?")
_FREE_HEADER = lazy_re(r"\s+total\s+used\s+free\s+.*")
_FREE_ROW = lazy_re(r"(?P<name>Mem|Swap|Total|内存|交换|Speicher|Swap)[:：]\s*(?P<cells>.*)")
_FREE_UNITS = {
    "b": 1, "bytes": 1, "k": 1 << 10, "kibi": 1 << 10, "m": 1 << 20, "mebi": 1 << 20, "g": 1 << 30,
    "gibi": 1 << 30, "kilo": 10**3, "mega": 10**6, "giga": 10**9,
}  # fmt: skip
_VMSTAT_S = lazy_re(
    r"\s*(?P<value>\d{1,18}) K (?P<key>total memory|used memory|free memory|total swap|used swap|free swap)"
)
_VMSTAT_KEYS = {
    "total memory": "mem_total_kib", "used memory": "mem_used_kib", "free memory": "mem_free_kib",
    "total swap": "swap_total_kib", "used swap": "swap_used_kib", "free swap": "swap_free_kib",
}  # fmt: skip
_TOP = lazy_re(r"(?P<unit>[KMG])iB (?P<name>Mem|Swap)\s*:\s*(?P<rest>.*)")
_TOP_PART = lazy_re(r"(?P<amount>[\d.]+)\+? (?P<key>total|free|used|buff/cache|avail Mem)")
_STATUS_KEYS = {
    "VmRSS": "rss_kib", "VmSize": "vsz_kib", "VmHWM": "peak_rss_kib", "VmSwap": "swap_kib",
    "RssAnon": "anon_rss_kib", "RssShmem": "shmem_rss_kib",
}  # fmt: skip
_COUNTER = lazy_re(r"(?P<key>[a-z][a-z0-9_]*) (?P<value>\d{1,18})")
_SNAKE = lazy_re(r"(?<=[a-z0-9])(?=[A-Z])")


def matches(section: Section) -> bool:
    """True when the section is one of these outputs."""
    return _kind(section) != ""


def _kind(section: Section) -> str:
    lines = section.filled
    if not lines:
        return ""
    first = lines[0]
    if first.startswith("MemTotal:") or (
        first.startswith("Mem") and sum(bool(_MEMINFO.fullmatch(x)) for x in lines) > 3
    ):
        return "meminfo"
    if _FREE_HEADER.fullmatch(first) and any(_FREE_ROW.match(line) for line in lines[1:]):
        return "free"
    if first.startswith(("procs -", "--procs--")):
        return "vmstat"
    if sum(" K " in line and _VMSTAT_S.match(line) is not None for line in lines) >= 3:
        return "vmstat -s"
    if all(line.startswith(("some avg10=", "full avg10=")) for line in lines):
        return "pressure"
    if any(line.startswith("VmRSS:") for line in lines) and first.startswith("Name:"):
        return "status"
    if not mostly(_COUNTER.fullmatch, lines, 0.9):
        return ""
    keys = {found["key"] for found in map(_COUNTER.fullmatch, lines) if found}
    if (
        len(keys) >= 0.9 * len(lines)
        and "oom_kill" in keys
        and keys & {"pgmajfault", "allocstall_normal", "nr_free_pages"}
    ):
        return "/proc/vmstat"
    return ""


def read(section: Section, source: str, stamp: RawStamp | None, points: Points) -> list[Event]:
    """`meminfo` events with amounts in KiB; rows with a time also become samples of the host's memory."""
    kind = _kind(section)
    if kind == "free":
        return _read_free(section, source, stamp, points)
    if kind == "vmstat":
        return _read_vmstat(section, source, stamp, points)
    if kind == "status":
        return _read_status(section, source, stamp)
    fields: dict[str, object] = {}
    text = ""
    if kind == "meminfo":
        for line in section.filled:
            found = _MEMINFO.fullmatch(line)
            if found:
                fields[f"{_key(found['key'])}{'_kib' if found['unit'] else ''}"] = int(found["value"])
        text = _memory_text(fields)
    elif kind == "vmstat -s":
        fields = {
            _VMSTAT_KEYS[f["key"]]: int(f["value"]) for x in section.filled if (f := _VMSTAT_S.match(x))
        }
        text = _memory_text(fields)
    elif kind == "/proc/vmstat":
        told = ("oom_kill", "pgmajfault", "pgscan_direct", "allocstall_normal", "allocstall_movable")
        pairs = {f["key"]: int(f["value"]) for x in section.filled if (f := _COUNTER.fullmatch(x))}
        fields = {f"{key}_total": pairs[key] for key in told if key in pairs}
        text = " ".join(f"{key} {pairs[key]}" for key in told if key in pairs)
    elif kind == "pressure":
        resource = next(
            (r for r in ("memory", "io", "cpu") if r in section.title.rpartition("/")[2]), "memory"
        )
        figures = cgroup.pressure(section.filled)
        fields = {f"{resource}_{key}": value for key, value in figures.items()}
        text = f"{resource} pressure: " + " ".join(f"{key}={value}" for key, value in figures.items())
    if not fields:
        return []
    if stamp is not None:
        _sample(fields, stamp, points, section.line)
    return [_event(section, source, text, fields, stamp)]


def _key(name: str) -> str:
    """`MemAvailable` → `mem_available`, `Active(anon)` → `active_anon`, `Committed_AS` → `committed_as`."""
    return str(_SNAKE.sub("_", name.replace("(", "_").replace(")", ""))).lower()


def _read_free(section: Section, source: str, stamp: RawStamp | None, points: Points) -> list[Event]:
    """One event a table; `free -s` repeats it. Without a unit the numbers are KiB unless the command says
    otherwise.
    """
    unit = _free_unit(section)
    events = []
    columns: list[str] = []
    fields: dict[str, object] = {}
    line = section.line
    for number, text in enumerate([*section.lines, " total used free "], section.line):
        if _FREE_HEADER.fullmatch(text):
            if fields:
                part = _part(section, line, section.lines[line - section.line : number - section.line])
                events.append(_event(part, source, _memory_text(fields), fields, stamp))
                if stamp is not None:
                    _sample(fields, stamp, points, line)
            columns, fields, line = text.split(), {}, number
            continue
        row = _FREE_ROW.match(text)
        if not row or row["name"] == "Total":
            continue
        prefix = "swap" if row["name"] in ("Swap", "交换") else "mem"
        for column, cell in zip(columns, row["cells"].split(), strict=False):
            size = size_bytes(cell, unit)
            if size is not None:
                fields[f"{prefix}_{column.replace('/', '_')}_kib"] = size // 1024
    return events


def _free_unit(section: Section) -> int:
    """Bytes of one printed unit: from the options in the heading or file name (`free -m`, `free_-m.txt`),
    else guessed.

    Hosts of inference engines have between 4 GiB and 8 TiB, so the size of the number tells the unit.
    """
    options = re.findall(r"(?<!\w)-{1,2}([a-z]+)", section.title.replace("_", " ").rpartition("free")[2])
    for option in options:
        if option in _FREE_UNITS:
            return _FREE_UNITS[option]
    rows = [found["cells"].split() for text in section.lines if (found := _FREE_ROW.match(text))]
    total = int(rows[0][0]) if rows and rows[0] and is_whole(rows[0][0]) else 1 << 30
    return 1 << 30 if total < 1 << 12 else 1 << 20 if total < 1 << 22 else 1 << 10 if total < 1 << 33 else 1


def _read_vmstat(section: Section, source: str, stamp: RawStamp | None, points: Points) -> list[Event]:
    """Rows of `vmstat N`; with `-t` each has its time. The last row stands for the host's state."""
    columns: list[str] = []
    zone = ""
    last: tuple[int, dict[str, object], str, RawStamp | None] | None = None
    for number, text in enumerate(section.lines, section.line):
        cells = text.split()
        if "swpd" in cells and "free" in cells:
            columns = cells
            zone = " UTC" if cells[-1] == "UTC" else ""
        elif columns and len(cells) >= 12 and cells[0].isdigit():
            row = dict(zip(columns, cells, strict=False))
            fields: dict[str, object] = {
                f"{ours}_kib": int(row[theirs])
                for theirs, ours in (
                    ("swpd", "swap_used"),
                    ("free", "mem_free"),
                    ("buff", "mem_buffers"),
                    ("cache", "mem_cache"),
                )
                if is_whole(row.get(theirs, ""))
            }
            when = date_command(f"{' '.join(cells[-2:])}{zone}", "host") if ":" in cells[-1] else stamp
            if when is not None:
                _sample(fields, when, points, number)
            last = (number, fields, text, when)
    if last is None:
        return []
    part = _part(section, last[0], (last[2],))
    return [_event(part, source, _memory_text(last[1]), last[1], last[3])]


def _read_status(section: Section, source: str, stamp: RawStamp | None) -> list[Event]:
    """/proc/PID/status → a `process` event."""
    pairs = {key: value.strip() for line in section.filled for key, _, value in [line.partition(":")]}
    if not is_whole(pairs.get("Pid", "")):
        return []
    fields: dict[str, object] = {"pid": int(pairs["Pid"]), "command": pairs.get("Name", "")}
    for key, ours in _STATUS_KEYS.items():
        number = pairs.get(key, "").removesuffix(" kB")
        if is_whole(number):
            fields[ours] = int(number)
    if is_whole(pairs.get("PPid", "")):
        fields["ppid"] = int(pairs["PPid"])
    text = f"pid {fields['pid']} {fields['command']} rss={fields.get('rss_kib', '?')} KiB"
    return [_event(section, source, text, fields, stamp, kind="process")]


def read_top(section: Section, source: str, stamp: RawStamp | None) -> list[Event]:
    """The memory lines in the head of top."""
    fields: dict[str, object] = {}
    line = section.line
    for number, text in enumerate(section.lines, section.line):
        found = _TOP.match(text)
        if not found:
            continue
        line = number if not fields else line
        factor = {"K": 1, "M": 1 << 10, "G": 1 << 20}[found["unit"]]
        for part in _TOP_PART.finditer(found["rest"]):
            prefix = "mem" if found["name"] == "Mem" or part["key"] == "avail Mem" else "swap"
            key = {"avail Mem": "available", "buff/cache": "buff_cache"}.get(part["key"], part["key"])
            fields[f"{prefix}_{key}_kib"] = int(float(part["amount"]) * factor)
    part_of = _part(section, line, (section.lines[line - section.line],))
    return [_event(part_of, source, _memory_text(fields), fields, stamp)] if fields else []


def _part(section: Section, line: int, lines: tuple[str, ...]) -> Section:
    return replace(section, line=line, lines=lines)


def _memory_text(fields: dict[str, object]) -> str:
    told = (
        "mem_total_kib",
        "mem_used_kib",
        "mem_available_kib",
        "mem_free_kib",
        "swap_total_kib",
        "swap_free_kib",
    )
    return " ".join(f"{key.removesuffix('_kib')}={fields[key]}KiB" for key in told if key in fields)


def _sample(fields: dict[str, object], stamp: RawStamp, points: Points, line: int) -> None:
    total, available, free = (fields.get(f"mem_{key}_kib") for key in ("total", "available", "free"))
    used = fields.get("mem_used_kib")
    if used is None and isinstance(total, int) and isinstance(available, int):
        used = total - available
    values = {
        "host_memory_used_kib": used,
        "host_memory_available_kib": available,
        "swap_used_kib": fields.get("swap_used_kib"),
    }
    if available is None and used is None:
        values["host_memory_available_kib"] = free
    for name, value in values.items():
        if isinstance(value, int):
            points.add(name, Scope(), stamp, line, float(value))


def _event(
    section: Section,
    source: str,
    text: str,
    fields: dict[str, object],
    stamp: RawStamp | None,
    kind: str = "meminfo",
) -> Event:
    return Event(
        Locator(source, section.line, section.line + max(len(section.lines) - 1, 0)), kind, "host", text,
        (stamp,) if stamp else (), section.scope, fields, raw="\n".join(section.filled)[:4000],
    )  # fmt: skip
