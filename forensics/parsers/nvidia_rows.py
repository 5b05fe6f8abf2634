"""Rows of `nvidia-smi` tables → states, processes and samples, whatever view printed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite, nan

from .. import stamps
from ..model import Event, Locator, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from .numerals import is_whole
from .points import Column, Points

LAYER = "nvidia-smi"
_SERIES = {
    "memory.used": "gpu_memory_used_mib",
    "memory.total": "gpu_memory_total_mib",
    "memory.reserved": "gpu_memory_reserved_mib",
    "utilization.gpu": "gpu_utilization_pct",
    "temperature.gpu": "gpu_temperature_c",
    "power.draw": "gpu_power_w",
    "power.draw.instant": "gpu_power_w",
    "power.draw.average": "gpu_power_w",
}
_NUMBERS = {
    "memory.total": "memory_total_mib",
    "memory.used": "memory_used_mib",
    "memory.free": "memory_free_mib",
    "memory.reserved": "memory_reserved_mib",
    "utilization.gpu": "utilization_pct",
    "temperature.gpu": "temperature_c",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_aggregate",
    "remapped_rows.correctable": "remapped_rows_correctable",
    "remapped_rows.uncorrectable": "remapped_rows_uncorrectable",
    "retired_pages.pending": "retired_pages_pending",
}
_TEXTS = {
    "uuid": "uuid", "gpu_uuid": "uuid", "name": "name", "gpu_name": "name",
    "driver_version": "driver_version", "mig.mode.current": "mig_mode", "compute_mode": "compute_mode",
    "pstate": "pstate",
    "remapped_rows.pending": "remapped_rows_pending", "remapped_rows.failure": "remapped_rows_failure",
    "gpu_recovery_action": "recovery_action", "clocks_event_reasons.active": "clocks_event_reasons",
    "clocks_throttle_reasons.active": "clocks_event_reasons",
}  # fmt: skip
_LOST = ("GPU is lost", "Unknown Error", "GPU requires reset", "GPU requires restart")
SILENT_COLUMNS = 3
"""One sensor may fail; where so many values fail and none is read, the card does not answer."""
_BUS = lazy_regex(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.[0-9A-Fa-f])?")


@lru_cache(maxsize=1024)
def bus_id(text: str) -> str:
    """`00000000:1B:00.0` → `0000:1b:00`, so that it equals the id in an Xid line."""
    found = _BUS.fullmatch(text.strip())
    return f"{(found[1] or '0000')[-4:]}:{found[2]}:{found[3]}".lower() if found else text.strip()


@lru_cache(maxsize=8192)
def number(cell: str) -> float | None:
    """`74218 MiB`, `51 %`, `380.25 W` or a bare number; none for `[N/A]` and the like."""
    try:
        value = float(cell.partition(" ")[0].removesuffix("MiB").removesuffix("%"))
    except ValueError:
        return None
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Row:
    line: int
    cells: Sequence[str]
    outer: RawStamp | None
    """The last time printed before the row, for tables without a time column."""
    raw: str


class _Clock:
    """`2025/12/09 03:50:00.019` → seconds, with the days remembered."""

    def __init__(self) -> None:
        self._days: dict[str, float | None] = {}
        self._last: tuple[str, RawStamp | None] = ("", None)

    def read(self, cell: str) -> RawStamp | None:
        """Rows of one call have the same time, or nearly."""
        if cell != self._last[0]:
            self._last = (cell, self._read(cell))
        return self._last[1]

    def _read(self, cell: str) -> RawStamp | None:
        day = cell[:10]
        if len(cell) >= 19 and day[4] == "/" and cell[13] == ":":
            if day not in self._days:
                midnight = stamps.iso(f"{day.replace('/', '-')} 00:00:00", LAYER)
                self._days[day] = midnight.seconds if midnight else None
            base = self._days[day]
            if base is None:
                return None
            try:
                seconds = int(cell[11:13]) * 3600 + int(cell[14:16]) * 60 + float(cell[17:])
            except ValueError:
                return None
            return RawStamp(StampForm.LOCAL, LAYER, base + seconds, 0.001 if "." in cell else 1.0)
        return stamps.iso(cell, LAYER)


class GpuTable:
    """Collects rows about GPUs; columns are named as nvidia-smi names them."""

    def __init__(self, source: str) -> None:
        self.points = Points(source)
        self._source = source
        self._clock = _Clock()
        self._states: dict[str, Event] = {}
        self._lost: dict[tuple[str, str], Event] = {}
        self._columns: dict[tuple[str, int, StampForm, str], Column] = {}
        self._tick: tuple[float, int] = (nan, -1)
        self.use(())

    def use(self, names: Sequence[str]) -> None:
        """From here on, cells mean these columns."""
        self._names = tuple(names)
        place = {name: i for i, name in reversed(list(enumerate(names)))}
        self._time = place.get("timestamp")
        self._ids = [
            place[name] for name in ("uuid", "gpu_uuid", "index", "pci.bus_id", "gpu_bus_id") if name in place
        ]
        self._values = [(i, _SERIES[name]) for i, name in enumerate(names) if name in _SERIES]
        self._columns.clear()

    def add(self, row: Row) -> bool:
        """Take a row; false when it is torn."""
        cells = row.cells
        if len(cells) < len(self._names):
            return False
        stamp = row.outer if self._time is None else self._clock.read(cells[self._time])
        if stamp is None and self._time is not None:
            return False
        gpu = self._gpu(cells, stamp)
        if gpu not in self._states:
            self._states[gpu] = self._state(row, gpu, stamp)
        form, layer, seconds = (
            (stamp.form, stamp.layer, stamp.seconds) if stamp else (StampForm.LOCAL, "", nan)
        )
        for i, name in self._values:
            value = number(cells[i])
            if value is None:
                if cells[i].strip("[] ") in _LOST:
                    self._note_lost(row, gpu, cells[i].strip("[] "), stamp)
                continue
            key = (gpu, i, form, layer)
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = self.points.column(name, Scope(gpu=gpu), form, layer)
            column.append(row.line, seconds, value)
        return True

    def events(self) -> list[Event]:
        return [*self._states.values(), *self._lost.values()]

    def _gpu(self, cells: Sequence[str], stamp: RawStamp | None) -> str:
        for i in self._ids:
            if cells[i] and cells[i][0] != "[":
                return bus_id(cells[i])
        seconds, position = self._tick  # no column tells: rows of one call come in the order of the index
        same = stamp is not None and abs(stamp.seconds - seconds) < 0.5
        self._tick = (seconds if same else stamp.seconds if stamp else nan, position + 1 if same else 0)
        return str(self._tick[1])

    def _state(self, row: Row, gpu: str, stamp: RawStamp | None) -> Event:
        fields: dict[str, object] = {}
        for name, cell in zip(self._names, row.cells, strict=False):
            if not cell or cell[0] == "[" or cell == "N/A":
                continue
            if name == "index" and is_whole(cell):
                fields["index"] = int(cell)
            elif name in ("pci.bus_id", "gpu_bus_id"):
                fields["pci_bus_id"] = bus_id(cell)
            elif name in _NUMBERS and (value := number(cell)) is not None:
                fields[_NUMBERS[name]] = int(value)
            elif name in _TEXTS:
                fields[_TEXTS[name]] = cell
        used, total = fields.get("memory_used_mib", "?"), fields.get("memory_total_mib", "?")
        label = " ".join(str(fields[key]) for key in ("index", "name") if key in fields) or gpu
        return Event(
            Locator(self._source, row.line, row.line), "gpu_state", "nvidia",
            f"GPU {label}: {used} MiB used of {total} MiB", (stamp,) if stamp else (), Scope(gpu=gpu),
            fields, raw=row.raw,
        )  # fmt: skip

    def _note_lost(self, row: Row, gpu: str, text: str, stamp: RawStamp | None) -> None:
        known = self._lost.get((gpu, text))
        if known is None:
            state = self._states[gpu].fields
            label = f"GPU {state['index']} ({gpu})" if "index" in state else f"GPU {gpu}"
            failed = sum(cell.strip("[] ") == text for cell in row.cells)
            read = sum(number(row.cells[i]) is not None for i, name in self._values if name != "gpu_memory_total_mib")
            reach = f" in all {failed} columns" if failed >= SILENT_COLUMNS and not read else ""
            self._lost[gpu, text] = Event(
                Locator(self._source, row.line, row.line), "log", "nvidia", f"{label}: [{text}]{reach}",
                (stamp,) if stamp else (), Scope(gpu=gpu), raw=row.raw,
            )  # fmt: skip
        elif row.line not in (known.locator.line, known.last_line):
            self._lost[gpu, text] = replace(known, count=known.count + 1, last_line=row.line)


class ProcessTable:
    """Collects rows about processes on GPUs. Names may hold commas: rows are read from both ends."""

    def __init__(self, source: str) -> None:
        self.points = Points(source)
        self._source = source
        self._clock = _Clock()
        self._seen: dict[tuple[str, int], Event] = {}
        self.use(())

    def use(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def add(self, row: Row) -> bool:
        """Take a row; false when it is torn."""
        cells = list(row.cells)
        surplus = len(cells) - len(self._names)
        if surplus < 0:
            return False
        if surplus and "process_name" in self._names:
            at = self._names.index("process_name")
            cells[at : at + surplus + 1] = [", ".join(cells[at : at + surplus + 1])]
        named = dict(zip(self._names, cells, strict=False))
        stamp = self._clock.read(named["timestamp"]) if "timestamp" in named else row.outer
        if not is_whole(named.get("pid", "")) or ("timestamp" in named and stamp is None):
            return False
        gpu = bus_id(named.get("gpu_uuid") or named.get("gpu_bus_id") or named.get("index") or "")
        used = number(named.get("used_gpu_memory") or named.get("used_memory") or "")
        peak = number(named.get("max_memory_usage", ""))
        self.note(row, int(named["pid"]), named.get("process_name", ""), gpu, used, stamp, peak)
        return True

    def note(
        self, row: Row, pid: int, name: str, gpu: str, used_mib: float | None, stamp: RawStamp | None,
        peak_mib: float | None = None,
    ) -> None:  # fmt: skip
        """One process seen on one GPU."""
        scope = Scope(pid=pid, process=name, gpu=gpu)
        if used_mib is not None:
            self.points.add("gpu_process_memory_mib", scope, stamp, row.line, used_mib)
        known = self._seen.get((gpu, pid))
        if known is not None:
            self._seen[gpu, pid] = replace(known, count=known.count + 1, last_line=row.line)
            return
        fields: dict[str, object] = {"pid": pid, "name": name}
        if gpu.startswith(("GPU-", "MIG-")):
            fields["gpu_uuid"] = gpu
        if used_mib is not None:
            fields["used_mib"] = int(used_mib)
        if peak_mib is not None:
            fields["peak_mib"] = int(peak_mib)
        amount = f"uses {int(used_mib)} MiB" if used_mib is not None else "is on the GPU"
        amount = f"used up to {int(peak_mib)} MiB" if used_mib is None and peak_mib is not None else amount
        self._seen[gpu, pid] = Event(
            Locator(self._source, row.line, row.line), "gpu_process", "nvidia",
            f"pid {pid} {name} {amount}".replace("  ", " "), (stamp,) if stamp else (), scope,
            fields, raw=row.raw,
        )  # fmt: skip

    def events(self) -> list[Event]:
        return list(self._seen.values())
