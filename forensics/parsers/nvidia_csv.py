"""Tables of `nvidia-smi --query-…= --format=csv`: GPUs over time, processes on them, remapped rows.

Rows are comma separated and unquoted; values carry their unit unless `nounits` was asked. Shell loops repeat
the header, appended files change it, `noheader` leaves it out, collectors that were killed leave a torn last
line (nvidia-smi, drivers 470 to 610).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import stamps
from ..model import Diagnostic, Event, Locator, Parsed, RawStamp, Severity
from ..regexes import lazy_regex
from ..scan import Scanned, SeriesSpec
from ..sources import Format, Head, mostly
from .dates import date_command
from .numerals import is_whole
from .nvidia_rows import LAYER, GpuTable, ProcessTable, Row, number

_ROWS = SeriesSpec(anchor="", pattern=r"^(.*)$", groups=("row",))
_FIELD = lazy_regex(r"[a-z][a-z_0-9]*(?:\.[a-z_0-9]+)*(?: \[[A-Za-z/%]+\])?")
_KNOWN = frozenset({
    "gpu_uuid", "gpu_name", "pci.bus_id", "gpu_bus_id", "used_gpu_memory", "used_memory", "memory.used",
    "memory.total", "memory.free", "memory.reserved", "utilization.gpu", "utilization.memory",
    "temperature.gpu", "power.draw", "max_memory_usage", "remapped_rows.pending", "remapped_rows.failure",
    "retired_pages.pending",
})  # fmt: skip
"""Names that no other table has; a header holds at least one."""
_SLASHED = lazy_regex(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?")
_UUID = lazy_regex(r"(?:GPU|MIG)-[0-9a-f-]{8,}")
_BUS = lazy_regex(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]")
_QUERY = lazy_regex(r"--query-(?:gpu|compute-apps|accounted-apps|remapped-rows)=(?P<columns>[\w.,]+)")
_TROUBLE = lazy_regex(
    r"NVIDIA-SMI has failed.*|Failed to initialize NVML.*|Unable to determine the device handle.*"
    r"|No devices were found"
)


def columns_of(line: str) -> tuple[str, ...]:
    """Column names of a header line without their units; empty when it is none."""
    cells = line.split(",")
    if len(cells) < 2 and line.strip() not in ("memory.used [MiB]", "memory.free [MiB]"):
        return ()
    if not all(_FIELD.fullmatch(cell.strip()) for cell in cells):
        return ()
    names = tuple(cell.strip().partition(" [")[0] for cell in cells)
    return names if any(name in _KNOWN for name in names) else ()


def guess_columns(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Columns of a table without header, from the shape of its cells; what cannot be told is left without a
    name.

    A single `MiB` column is the used memory. Of two the one that never changes and is never smaller is the
    total. Of three, used and free cannot be told apart, so only the total gets its name.
    """
    width = max((len(row) for row in rows), default=0)
    whole = [row for row in rows if len(row) == width]
    if not whole or width < 2:
        return ()
    names = [_guess_column([row[i] for row in whole]) for i in range(width)]
    sizes = [i for i, name in enumerate(names) if name == "MiB"]
    peaks = {i: max(number(row[i]) or 0.0 for row in whole) for i in sizes}
    if len(sizes) == 1:
        names[sizes[0]] = "memory.used"
    elif sizes:
        total = max(sizes, key=lambda i: peaks[i])
        names[total] = "memory.total"
        if len(sizes) == 2:
            names[next(i for i in sizes if i != total)] = "memory.used"
    return tuple("" if name == "MiB" else name for name in names)


def _guess_column(cells: Sequence[str]) -> str:
    if all(_SLASHED.fullmatch(cell) or stamps.iso(cell, LAYER) for cell in cells):
        return "timestamp"
    if all(_UUID.fullmatch(cell) for cell in cells):
        return "uuid"
    if all(_BUS.fullmatch(cell) for cell in cells):
        return "pci.bus_id"
    if all(cell.endswith(" MiB") or cell.startswith("[") for cell in cells):
        return "MiB"
    if all(cell.endswith(" W") or cell.startswith("[") for cell in cells):
        return "power.draw"
    if all(cell.endswith(" %") or cell.startswith("[") for cell in cells):
        return "utilization.gpu"
    if all(is_whole(cell) and int(cell) < 64 for cell in cells) and len(set(cells)) <= 16:
        return "index"
    return ""


@dataclass(slots=True)
class _Columns:
    """The columns that hold at the moment, and how they were learnt."""

    names: tuple[str, ...]
    guessed: bool


def _head_columns(head: Head) -> _Columns:
    for line in head.lines[:60]:
        names = columns_of(line)
        if names:
            return _Columns(names, guessed=False)
    for line in head.lines[:20]:
        asked = _QUERY.search(line)
        if asked:
            return _Columns(tuple(asked["columns"].split(",")), guessed=False)
    rows = [cells for line in head.lines[:200] if len(cells := _cells(line)) > 1]
    return _Columns(guess_columns(rows), guessed=True)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")] if "," in line else []


def _sniff(head: Head) -> int:
    lines = [line for line in head.lines[:120] if line.strip()]
    if any(columns_of(line) for line in lines[:60]):
        return 95
    rows = [line for line in lines if "," in line and line[0] != "#"]  # people note beside the rows what they are
    if len(rows) < 2 or len(rows) < 0.4 * len(lines):
        return 0
    ours = mostly(_begins_with_a_time, rows, 0.8) or mostly(_is_row, rows, 0.8)
    return 90 if ours else 0


def _is_row(line: str) -> bool:
    return " MiB" in line and (" %" in line or _UUID.search(line) is not None)


def _begins_with_a_time(line: str) -> bool:
    """A stamp fills its cell; Go programs print the same form in front of a message."""
    return _SLASHED.fullmatch(line.partition(",")[0].strip()) is not None


def _series(head: Head) -> tuple[SeriesSpec, ...]:
    return (_ROWS,)


def _samples(scanned: Scanned, source: str, head: Head) -> Parsed:
    """Rows → `gpu_state` and `gpu_process` events (first row of each), samples, error texts as `log` events."""
    columns = _head_columns(head)
    gpus, processes = GpuTable(source), ProcessTable(source)
    troubles: list[Event] = []
    outer: RawStamp | None = None
    torn = 0
    table: GpuTable | ProcessTable | None = None
    for rows in scanned.series:
        if rows.spec != _ROWS:
            continue
        for place, line in zip(rows.lines, rows.columns["row"], strict=True):
            line = (line or "").strip()
            header = columns_of(line) if line[:1].isalpha() else ()
            if header:
                columns, table = _Columns(header, guessed=False), None
                continue
            cells = line.split(", ") if ", " in line else line.split(",")
            if len(cells) < 2 and (len(columns.names) > 1 or number(cells[0]) is None):
                outer = _date_line(line) or outer
                if _TROUBLE.match(line):
                    stamp = (outer,) if outer else ()
                    troubles.append(
                        Event(Locator(source, place, place), "log", "nvidia", line, stamp, raw=line)
                    )
                continue
            if table is None:
                table = processes if "pid" in columns.names else gpus
                table.use(columns.names)
            if not table.add(Row(place, tuple(cells), outer, line)):
                torn += 1
    diagnostics = []
    if columns.guessed and "" in columns.names:
        diagnostics.append(Diagnostic(
            source, 1, Severity.NOTICE,
            "the table has no header; columns that the values do not tell were left out",
            "record with the header, without `noheader`",
        ))  # fmt: skip
    if torn > 1:
        diagnostics.append(
            Diagnostic(source, None, Severity.NOTICE, f"{torn} torn rows of nvidia-smi were skipped")
        )
    events = sorted([*troubles, *gpus.events(), *processes.events()], key=lambda event: event.locator.line)
    return Parsed(tuple(events), (*gpus.points.samples(), *processes.points.samples()), tuple(diagnostics))


def _date_line(line: str) -> RawStamp | None:
    """The output of `date` between two calls in a loop."""
    if not 15 < len(line) < 50 or ":" not in line:
        return None
    return date_command(line, LAYER)


FORMAT = Format("nvidia.csv", "nvidia-smi CSV", _sniff, series=_series, samples=_samples)
