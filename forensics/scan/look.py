"""What a piece of text says by itself, as frames of polars: its lines, those that matter, and how they repeat.

Nothing here knows of other pieces, so several threads may look at several; `scanner` puts them together in order.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars.exceptions import ComputeError

from .anchors import Tests
from .lines import SeriesSpec
from .text import LINE_LIMIT, repaired

STORM_KEEP = 24
"""Equal lines kept in full before a storm is thinned."""
_PART_LINES = 1 << 19
_FEW_LINES = 2000
"""So few are asked for their series' anchors in Python: every question to polars takes a tenth of a millisecond."""
_MASK = (
    r"(\"(?: |\w*(?i:status|code)\w*\": ?\"?)[1-5]\d\d\b)"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|[A-Za-z]*\d[0-9A-Za-z]*"
)
"""What differs between lines of one storm: numbers, hexadecimal and other ids with a digit in them.

The status of an answer, kept as group 1, tells its line from others: a 400 does not stand for a 500.
"""
_MASK_CHARS = 400
_PACKED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
"""How gzip, zlib and zstd begin."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of whole lines; `n` counts them from 0, `t` is the text."""

    lines: pl.DataFrame
    opened: pl.DataFrame
    """Lines that open a window."""
    masked: pl.DataFrame
    """`n` of all marked lines, and `m`, their text with its digits masked."""
    storms: pl.DataFrame
    """One row for all marked lines that are equal (digits masked), in order of the first: the masked text, how many,
    `n` and `t` of the first `STORM_KEEP`, `n` and `t` of the last."""
    series: list[tuple[int, pl.DataFrame]]
    """Index of a series, and its rows: `n` and the groups."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A piece, cut into parts of bounded size: one of empty lines has ten million of them."""

    parts: list[Part]
    bad_lines: int
    long_lines: int


def look(piece: bytes, tests: Tests, series: Sequence[SeriesSpec], prefilter: bool) -> Looked:
    """Find what matters in a piece."""
    frame, bad_lines = _lines(piece)
    long = frame["t"].str.len_bytes() > LINE_LIMIT
    long_lines = int(long.sum())
    if long_lines:
        frame = frame.with_columns(pl.col("t").str.slice(0, LINE_LIMIT))
    parts = [_part(lines, tests, series, prefilter) for lines in frame.iter_slices(_PART_LINES)]
    return Looked(parts, bad_lines, long_lines)


def _lines(piece: bytes) -> tuple[pl.DataFrame, int]:
    try:
        return _split(piece), 0
    except ComputeError:  # not UTF-8
        piece, bad_lines = repaired(piece)
        return _split(piece), bad_lines


def _split(piece: bytes) -> pl.DataFrame:
    """Raises `ComputeError` for what is not UTF-8. polars would unpack a piece that begins like a compressed file, as
    the text `x^2` does."""
    if piece.startswith(_PACKED):
        return pl.read_lines(io.BytesIO(b"\n" + piece), name="t").slice(1)
    return pl.read_lines(io.BytesIO(piece), name="t")


def _part(frame: pl.DataFrame, tests: Tests, series: Sequence[SeriesSpec], prefilter: bool) -> Part:
    lines = frame.with_row_index("n")
    worth = lines.filter(tests.worth)
    marked = worth.filter(tests.anchored) if prefilter else lines
    text = "\n".join(worth["t"].to_list()) if worth.height <= _FEW_LINES else None
    found = []
    for index, spec in enumerate(series):
        if text is not None and spec.anchor not in text:
            continue
        place = worth if spec.anchor else lines
        if spec.anchor:
            place = place.filter(pl.col("t").str.contains(spec.anchor, literal=True))
        if place.height:
            rows = series_rows(place, spec)
            found.append((index, rows))
            if spec.consume:
                marked = marked.filter(~pl.col("n").is_in(rows["n"].implode()))
    opened = marked.filter(tests.opening)
    marked = marked.with_columns(pl.col("t").str.slice(0, _MASK_CHARS).str.replace_all(_MASK, "${1}#").alias("m"))
    return Part(lines, opened, marked.select("n", "m"), _storms(marked), found)


def series_rows(lines: pl.DataFrame, spec: SeriesSpec) -> pl.DataFrame:
    """Lines of a series: `n`, and its groups by name."""
    groups = lines.select("n", pl.col("t").str.extract_groups(spec.pattern).alias("g")).unnest("g")
    groups.columns = ["n", *spec.groups]
    return groups.filter(pl.any_horizontal(pl.col(*spec.groups).is_not_null()))


def _storms(marked: pl.DataFrame) -> pl.DataFrame:
    if marked.is_empty():
        return marked
    number, text = pl.col("n"), pl.col("t")
    return marked.group_by("m", maintain_order=True).agg(
        pl.len(), number.head(STORM_KEEP), text.head(STORM_KEEP),
        number.last().alias("last"), text.last().alias("last_text"),
    )  # fmt: skip
