"""`sadf`: sar's records for databases (`-d`, `-p`) and as JSON (`-j`) (sysstat 11 and 12).

Other exports are recognised and not used.
"""

from __future__ import annotations

import json

from ..model import Diagnostic, Parsed, RawStamp, Scope, Severity
from ..regexes import lazy_re
from ..sources import Format, Head
from .dates import date_command
from .points import Points

LAYER = "sadf"
_ROW = lazy_re(r"[^;\t]+[;\t]-?\d+[;\t](?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC)?|1\d{9})[;\t].*")
_RAW = lazy_re(r"\d\d:\d\d:\d\d(?: UTC)?; (?:LINUX-RESTART|[\w-]+;).*")
_SERIES = {
    "kbmemused": "host_memory_used_kib",
    "memused": "host_memory_used_kib",
    "kbavail": "host_memory_available_kib",
    "avail": "host_memory_available_kib",
    "kbswpused": "swap_used_kib",
    "swpused": "swap_used_kib",
}


def _sniff(head: Head) -> int:
    lines = [line for line in head.lines[:30] if line.strip()]
    tables = [line for line in lines if ";" in line or "\t" in line]
    rows = sum(_ROW.fullmatch(line) is not None or line.startswith("# hostname;interval;") for line in tables)
    if lines and rows >= 0.8 * len(lines):
        return 95
    return 95 if head.text.lstrip().startswith('{"sysstat"') else 0


def _sniff_unused(head: Head) -> int:
    lines = head.lines[:12]
    if any(
        "<!DOCTYPE sysstat" in line
        or line.strip() == "<sysstat"
        or line.startswith("System activity data file:")
        for line in lines
    ):
        return 95
    return 95 if sum(_RAW.fullmatch(line) is not None for line in lines) >= 2 else 0


def _read(text: str, source: str) -> Parsed:
    """Samples of host memory and swap. `-d` and `-p` print UTC, local time without a zone (`-T`) or Unix
    time (`-U`).
    """
    if text.lstrip().startswith("{"):
        return _read_json(text, source)
    points = Points(source)
    hosts: set[str] = set()
    columns: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("# hostname;"):
            columns = line[2:].rstrip("\r").split(";")
            continue
        cells = line.rstrip("\r").split(";") if ";" in line else line.rstrip("\r").split("\t")
        if len(cells) < 4 or not _ROW.fullmatch(line.rstrip("\r")):
            continue
        hosts.add(cells[0])
        stamp = date_command(cells[2], LAYER)
        if ";" in line:
            for name, cell in zip(columns[3:], cells[3:], strict=False):
                _add(points, name, cell, stamp, number)
        elif len(cells) == 6:
            _add(points, cells[4], cells[5], stamp, number)
    scope = Scope(host=next(iter(hosts))) if len(hosts) == 1 else Scope()
    return Parsed((), points.samples(), (), scope)


def _add(points: Points, name: str, cell: object, stamp: RawStamp | None, line: int) -> None:
    series = _SERIES.get(name)
    if series is None or stamp is None:
        return
    try:
        points.add(series, Scope(), stamp, line, float(str(cell).replace(",", ".")))
    except ValueError:
        return


def _read_json(text: str, source: str) -> Parsed:
    try:
        hosts = json.loads(text)["sysstat"]["hosts"]
        records = [(host, record) for host in hosts for record in host["statistics"]]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        message = f"the sadf export could not be read ({type(error).__name__})"
        return Parsed(diagnostics=(Diagnostic(source, None, Severity.WARNING, message),))
    points = Points(source)
    scope = Scope()
    for host, record in records:
        if (
            not isinstance(host, dict)
            or not isinstance(record, dict)
            or not isinstance(record.get("timestamp"), dict)
        ):
            continue
        scope = Scope(host=str(host.get("nodename", "")))
        when = record["timestamp"]
        zone = " UTC" if when.get("utc") == 1 or when.get("tz") == "UTC" else ""
        stamp = date_command(f"{when.get('date')} {when.get('time')}{zone}", LAYER)
        memory = record.get("memory")
        for name, value in memory.items() if isinstance(memory, dict) else ():
            _add(points, name, value, stamp, 1)
    return Parsed((), points.samples(), (), scope)


FORMATS = (
    Format("sysstat.sadf", "sadf export", _sniff, _read),
    Format(
        "sysstat.other",
        "sysstat export, not used",
        _sniff_unused,
        lambda text, source: Parsed(),
        max_bytes=1 << 20,
        begins=r"<S\d",
    ),
)
