"""Captured text → typed values. The unit is part of the field's name, so a converter fixes the unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_UNIT_BYTES = {
    "bytes": 1, "byte": 1, "B": 1,
    "kB": 1024, "KB": 1024, "K": 1024, "KiB": 1024, "Ki": 1024, "k": 1024,
    "MB": 1024**2, "M": 1024**2, "MiB": 1024**2, "Mi": 1024**2,
    "GB": 1024**3, "G": 1024**3, "GiB": 1024**3, "Gi": 1024**3, "Gib": 1024**3,
    "TB": 1024**4, "T": 1024**4, "TiB": 1024**4, "Ti": 1024**4,
}  # fmt: skip


def size_bytes(text: str) -> int:
    """`733.52 MiB`, `14Gi`, `1010 bytes` → bytes; a bare number is bytes.

    GB and kB are binary, as vLLM and the kernel mean them.
    """
    number = text.strip().replace(",", "")
    unit = ""
    while number and not (number[-1].isdigit() or number[-1] == "."):
        unit = number[-1] + unit
        number = number[:-1]
    unit = unit.strip()
    if unit and unit not in _UNIT_BYTES:
        raise ValueError(f"unknown unit {unit!r}")
    return round(float(number) * _UNIT_BYTES.get(unit, 1))


def _integer(text: str) -> int:
    return int(text.replace(",", "").strip())


def _number(text: str) -> float:
    return float(text.replace(",", "").strip())


def _clock_seconds(text: str) -> int:
    """`04:41`, `1:02:30` as progress bars count → seconds."""
    seconds = 0
    for part in text.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds


CONVERTERS: dict[str, Callable[[str], Any]] = {
    "str": str.strip,
    "int": _integer,
    "hex": lambda text: int(text, 16),
    "float": _number,
    "gib": lambda text: round(size_bytes(text) / 1024**3, 4),
    "mib": lambda text: round(size_bytes(text) / 1024**2, 3),
    "kib": lambda text: size_bytes(text) // 1024,
    "bytes": size_bytes,
    "clock": _clock_seconds,
}
"""Name in `types` → function. `gib`, `mib`, `kib` and `bytes` read a number with its unit and convert it, `clock` reads
`minutes:seconds` or `hours:minutes:seconds`.
"""
