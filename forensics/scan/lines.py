"""What the scan looks for, and what it keeps."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Line:
    """A line worth an object."""

    number: int
    text: str
    count: int = 1
    """Equal lines (digits masked) that this one stands for: itself and the thinned ones after it."""
    last: int = 0
    """Number of the last of them, or 0."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lines without an anchor of their own that belong to an opening line."""

    opening: str
    """Literal that opens the window."""
    closing: tuple[str, ...]
    """Literals of which the first one seen closes it."""
    lines: int
    """Most lines to keep."""


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """How to read numbers out of a repeated line, vectorised. The regex is in polars' dialect (Rust `regex`)."""

    anchor: str
    """Literal that every such line holds; empty: every line is tried."""
    pattern: str
    """One group per name in `groups`."""
    groups: tuple[str, ...]
    """Group names in order; `stamp` is the printed time, names in `keys` select the series, others are values."""
    keys: tuple[str, ...] = ()
    consume: bool = True
    """True when such a line needs no Python object of its own."""


@dataclass(slots=True)
class SeriesRows:
    """Rows of one `SeriesSpec`, as text columns by group name, plus the line numbers."""

    spec: SeriesSpec
    lines: array[int] = field(default_factory=lambda: array("q"))
    columns: dict[str, list[str | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Scanned:
    """What the scan keeps of one member."""

    lines: int = 0
    candidates: list[Line] = field(default_factory=list)
    """Marked lines, window lines, edge lines: ascending, no number twice."""
    series: list[SeriesRows] = field(default_factory=list)
    long_lines: int = 0
    """Lines of which only the beginning was looked at."""
    bad_lines: int = 0
    """Lines that are not UTF-8; read as GBK where they look like it, else with replacement characters."""
    nul_bytes: int = 0
    """They were taken out: a crash or a truncated file leaves runs of them between lines."""
    one_line: bool = False
    """True for a text without LF that has CR instead."""
    dropped_lines: int = 0
    """Marked lines out of the middle of a member that has too many of them."""
    dropped_rows: int = 0
    """Rows out of the middle of a series that is too long."""
