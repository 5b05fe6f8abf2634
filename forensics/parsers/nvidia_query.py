"""`nvidia-smi -q`: an indented tree of keys for each GPU (drivers 470 to 610)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model import Parsed, RawStamp
from ..regexes import lazy_regex
from .dates import date_command
from .numerals import is_whole
from .nvidia_rows import LAYER, GpuTable, ProcessTable, Row, bus_id, number

_KEY = lazy_regex(r"(?P<indent> *)(?P<key>[^:\s](?:[^:]*[^:\s])?)\s*(?:: (?P<value>.*)|:)?")
_GPU = lazy_regex(r"GPU (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])\s*")
_COLUMNS = {
    ("Product Name",): "name",
    ("GPU UUID",): "uuid",
    ("Minor Number",): "index",
    ("MIG Mode", "Current"): "mig.mode.current",
    ("FB Memory Usage", "Total"): "memory.total",
    ("FB Memory Usage", "Reserved"): "memory.reserved",
    ("FB Memory Usage", "Used"): "memory.used",
    ("FB Memory Usage", "Free"): "memory.free",
    ("Utilization", "Gpu"): "utilization.gpu",
    ("Utilization", "GPU"): "utilization.gpu",
    ("Temperature", "GPU Current Temp"): "temperature.gpu",
    ("GPU Power Readings", "Power Draw"): "power.draw",
    ("GPU Power Readings", "Average Power Draw"): "power.draw",
    ("Remapped Rows", "Correctable Error"): "remapped_rows.correctable",
    ("Remapped Rows", "Uncorrectable Error"): "remapped_rows.uncorrectable",
    ("Remapped Rows", "Pending"): "remapped_rows.pending",
    ("Remapped Rows", "Remapping Failure Occurred"): "remapped_rows.failure",
    ("Retired Pages", "Pending Page Blacklist"): "retired_pages.pending",
    ("GPU Recovery Action",): "gpu_recovery_action",
}
_UNCORRECTABLE = {
    "Volatile": "ecc.errors.uncorrected.volatile.total",
    "Aggregate": "ecc.errors.uncorrected.aggregate.total",
}


def read_query(lines: Sequence[str], source: str, first: int) -> Parsed:
    """One `gpu_state` a GPU and one `gpu_process` a process, with samples for each repetition."""
    gpus, processes = GpuTable(source), ProcessTable(source)
    stamp: RawStamp | None = None
    driver = ""
    values: dict[str, str] = {}
    start = Row(first, (), None, "")
    pid, process = 0, ""

    def finish() -> None:
        if values:
            names = [*values, "driver_version"] if driver else list(values)
            gpus.use(names)
            gpus.add(Row(start.line, (*values.values(), driver), stamp, start.raw))
            values.clear()

    for line_number, line, path, value in _walk(lines, first):
        if path == ("GPU",):
            finish()
            start = Row(line_number, (), stamp, line)
            values["pci.bus_id"] = value
        elif path == ("Timestamp",):
            finish()
            stamp = date_command(value, LAYER)
        elif path == ("Driver Version",):
            driver = value
        elif not values or value in ("", "N/A"):
            continue
        elif (
            path[0] == "ECC Errors"
            and "Uncorrectable" in path[-1]
            and len(path) >= 3
            and path[1] in _UNCORRECTABLE
        ):
            column = _UNCORRECTABLE[path[1]]
            values[column] = str(int(float(values.get(column, "0")) + (number(value) or 0)))
        elif path in _COLUMNS:
            values[_COLUMNS[path]] = value
        elif path[-1] == "Process ID" and is_whole(value):
            pid, process = int(value), ""
        elif path[-1] == "Name" and "Process ID" in path[:-1]:
            process = value
        elif path[-1] == "Used GPU Memory" and pid:
            place = Row(line_number, (), stamp, line.strip())
            owner = values.get("uuid") or bus_id(values["pci.bus_id"])
            processes.note(place, pid, process, owner, number(value), stamp)
    finish()
    events = sorted([*gpus.events(), *processes.events()], key=lambda event: event.locator.line)
    return Parsed(tuple(events), (*gpus.points.samples(), *processes.points.samples()))


def _walk(lines: Sequence[str], first: int) -> Iterator[tuple[int, str, tuple[str, ...], str]]:
    """(line number, line, keys from the GPU down, value) of every line of the tree."""
    stack: list[tuple[int, str]] = []
    for line_number, raw in enumerate(lines, first):
        line = raw.rstrip()
        gpu = _GPU.fullmatch(line)
        if gpu:
            stack.clear()
            yield line_number, line, ("GPU",), gpu["bus"]
            continue
        found = _KEY.fullmatch(line)
        if not found or not line:
            continue
        indent = len(found["indent"])
        while stack and stack[-1][0] >= indent:
            stack.pop()
        stack.append((indent, found["key"].strip()))
        yield line_number, line, tuple(key for _, key in stack), found["value"] or ""
