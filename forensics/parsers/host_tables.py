"""Processes and file systems of a host: ps, top, df (procps 3.3 and 4, coreutils, busybox)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..model import Event, Locator, RawStamp, Scope
from ..regexes import lazy_re
from .numerals import is_whole
from .points import Points
from .sections import Section
from .sizes import human, size_bytes

_PS_HEADER = lazy_re(r"\s*(?:[%A-Z+-]+\s+)*PID\s+(?:\S+\s+)*(?:COMMAND|CMD)\s*")
_DF_HEADER = lazy_re(r"Filesystem\s+.*Mounted on\s*")
_WEEKDAYS = frozenset(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
_BLOCKS = lazy_re(r"(\d*)([KMGT]?)B?-blocks", re.IGNORECASE)


def matches_ps(section: Section) -> bool:
    """True for ps (any columns that end with the command) and for the process part of top."""
    return any(_PS_HEADER.fullmatch(line) for line in section.filled[:8])


def read_ps(section: Section, source: str, stamp: RawStamp | None) -> list[Event]:
    """One `process` event a row; kernel threads are left out, zombies (`<defunct>`) are kept."""
    events = []
    columns: list[str] = []
    threads: set[str] = set()
    for number, line in enumerate(section.lines, section.line):
        if _PS_HEADER.fullmatch(line):
            columns = line.split()
        elif columns and line.strip():
            row = _row(columns, line)
            if row is None or not is_whole(row.get("PID", "")) or row["PID"] in threads:
                continue
            if "LWP" in row:  # `ps -L` repeats the process for each thread
                threads.add(row["PID"])
            event = _process(section, source, number, line, row, stamp)
            if event is not None:
                events.append(event)
    return events


_LARGE_KIB = 1 << 20
"""A process below one GiB fills no machine that runs an inference server."""


def sample(rows: Sequence[Event], stamp: RawStamp | None, points: Points) -> None:
    """The resident sizes of large processes at the time of a list, as samples by process and pid."""
    for row in rows:
        rss, pid = row.fields.get("rss_kib"), row.fields.get("pid")
        if stamp is not None and isinstance(rss, int) and rss >= _LARGE_KIB and isinstance(pid, int):
            name = str(row.fields.get("command") or "?").split()[0].rpartition("/")[2]
            scope = Scope(process=name[:40], pid=pid).merged(row.scope)
            points.add("process_rss_mib", scope, stamp, row.locator.line, rss / 1024)


def _row(columns: Sequence[str], line: str) -> dict[str, str] | None:
    cells = line.split()
    if len(cells) < len(columns):
        return None
    values: list[str] = []
    position = 0
    for column in columns[:-1]:
        if position >= len(cells):
            return None
        width = 5 if column in ("STARTED", "LSTART") and cells[position] in _WEEKDAYS else 1
        values.append(" ".join(cells[position : position + width]))
        position += width
    command = line
    for cell in cells[:position]:
        command = command.lstrip()[len(cell) :]
    row = dict(
        zip(reversed(columns[:-1]), reversed(values), strict=True)
    )  # the first of two equal names wins
    return {**row, columns[-1]: command.strip()}


def _process(
    section: Section, source: str, number: int, line: str, row: dict[str, str], stamp: RawStamp | None
) -> Event | None:
    command = row.get("COMMAND") or row.get("CMD") or ""
    rss, vsz = (
        _kib(row.get("RSS") or row.get("RES") or row.get("RSZ")),
        _kib(row.get("VSZ") or row.get("VIRT")),
    )
    if command.lstrip("\\_ |").startswith("[") and not rss and "<defunct>" not in command:
        return None
    fields: dict[str, object] = {"pid": int(row["PID"]), "command": command}
    if row.get("USER") or row.get("UID"):
        fields["user"] = row.get("USER") or row["UID"]
    for key, value in (("rss_kib", rss), ("vsz_kib", vsz)):
        if value is not None:
            fields[key] = value
    for column, key in (("STAT", "stat"), ("S", "stat"), ("PPID", "ppid")):
        if column in row:
            fields[key] = int(row[column]) if key == "ppid" and is_whole(row[column]) else row[column]
    size = "" if rss is None else f" rss={rss} KiB"
    return Event(
        Locator(source, number, number), "process", "host", f"pid {row['PID']} {command}{size}",
        (stamp,) if stamp else (), section.scope, fields, raw=line,
    )  # fmt: skip


def _kib(text: str | None) -> int | None:
    """RSS and VSZ are KiB; top prints `1.2g` for large ones."""
    size = size_bytes(text, 1024) if text else None
    return None if size is None else size // 1024


def matches_df(section: Section) -> bool:
    """True for df with sizes; the inode view has none."""
    return bool(section.filled) and _DF_HEADER.fullmatch(section.filled[0].rstrip()) is not None


def read_df(section: Section, source: str, stamp: RawStamp | None) -> list[Event]:
    """One `df` event a row, in bytes; `df -h` rounds."""
    header = section.filled[0].split()
    if "IUse%" in header or "Inodes" in header:
        return []
    blocks = _BLOCKS.fullmatch(header[2 if header[1] == "Type" else 1])
    unit = int(blocks[1] or 1) * 1024 ** " KMGT".index(blocks[2].upper() or " ") if blocks else 1
    typed = header[1] == "Type"
    events = []
    for number, cells, line in _df_rows(section):
        cells = [cells[0], *cells[2:]] if typed else cells
        size, used, available = (size_bytes(cell, unit) for cell in cells[1:4])
        mount = " ".join(cells[5:])
        if size is None or used is None or available is None or not mount:
            continue
        share = f" ({cells[4]})" if cells[4].endswith("%") else ""
        fields = {
            "mount": mount, "filesystem": cells[0], "size_bytes": size, "used_bytes": used,
            "available_bytes": available,
        }  # fmt: skip
        events.append(Event(
            Locator(source, number, number), "df", "host",
            f"{mount}: {human(used)} used of {human(size)}{share}", (stamp,) if stamp else (),
            section.scope, fields, raw=line,
        ))  # fmt: skip
    return events


def _df_rows(section: Section) -> Iterator[tuple[int, list[str], str]]:
    """Rows; a long device name stands alone on its line and the row goes on in the next."""
    pending: list[str] = []
    for number, line in enumerate(section.lines, section.line):
        cells = line.split()
        if not cells or _DF_HEADER.fullmatch(line.rstrip()):
            continue
        if len(cells) == 1 and not pending:
            pending = cells
            continue
        cells, pending = [*pending, *cells], []
        if len(cells) >= 6:
            yield number, cells, line
