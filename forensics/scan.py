"""The hot path: bytes → the few lines that Python has to see, series as columns, and counts.

A member is read in blocks. polars splits a block into lines and marks those that hold one of the literal anchors, in
one pass at the speed of a grep; lines around block boundaries are carried over. Python objects exist only for marked
lines, for the windows that follow an opening anchor (a kernel report has a table without literals), and for the first
and last lines, which fix the clock. Storms of equal lines (digits masked) are thinned, and counted, before Python
sees them. A line ends at LF only: vLLM prints CR inside lines.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl
from polars.exceptions import ComputeError

LINE_LIMIT = 64 * 1024
"""Characters of a line that are looked at; the rest is cut and said so."""
EDGE_LINES = 40
"""First and last lines kept for the clocks."""
STORM_KEEP = 24
"""Equal lines kept in full before a storm is thinned."""


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
    """Lines cut at `LINE_LIMIT`."""
    bad_encoding: bool = False
    nul_bytes: bool = False


class Scanner:
    """Feed it blocks, then call `finish()`. One scanner reads one member."""

    def __init__(
        self,
        anchors: Iterable[str],
        windows: tuple[Window, ...] = (),
        series: tuple[SeriesSpec, ...] = (),
        prefilter: bool = True,
    ) -> None:
        self._anchors = sorted({*anchors, *(w.opening for w in windows)})
        self._windows = windows
        self._series = [SeriesRows(spec, columns={name: [] for name in spec.groups}) for spec in series]
        self._prefilter = prefilter
        self._rest = b""
        self._open_window: tuple[Window, int] | None = None
        self._decoder = ""
        self._edge: dict[int, str] = {}
        self._kept: dict[int, str] = {}
        self._storms: dict[str, list[int]] = {}
        self._thinned: dict[int, tuple[int, int]] = {}
        self._storm_ends: dict[int, int] = {}
        self.result = Scanned(series=self._series)

    def feed(self, block: bytes) -> None:
        if not self._decoder:
            self._decoder = encoding_of(block)
        if self._decoder != "utf-8":
            self._rest += block
            return
        cut = block.rfind(b"\n")
        if cut < 0:
            self._rest += block
            if len(self._rest) > 64 * LINE_LIMIT:  # one endless line: keep its start, drop the rest
                self.result.long_lines += 1
                self._rest = self._rest[: 2 * LINE_LIMIT]
            return
        chunk = self._rest + block[: cut + 1]
        self._rest = block[cut + 1 :]
        self._scan(chunk)

    def finish(self) -> Scanned:
        if self._decoder not in ("utf-8", ""):
            text = self._rest.decode(self._decoder, "replace")
            self._rest = text.removeprefix("\ufeff").encode("utf-8", "replace")
        if self._rest:
            self._scan(self._rest)
        lines = {**self._kept, **self._edge}
        for number in sorted(lines):
            count, last = self._thinned.get(number, (1, 0))
            self.result.candidates.append(Line(number, lines[number], count, last))
        return self.result

    def _scan(self, chunk: bytes) -> None:
        frame = self._lines(chunk)
        base = self.result.lines + 1
        total = frame.height
        self.result.lines += total
        lines = frame.with_row_index("n", offset=base)
        self._keep_edges(lines, base, total)
        marked = self._marked(lines)
        for rows in self._series:
            marked = self._take_series(rows, lines, marked)
        self._keep(marked)
        self._keep_windows(lines, marked, base)

    def _lines(self, chunk: bytes) -> pl.DataFrame:
        if b"\x00" in chunk:
            self.result.nul_bytes = True
        try:
            frame = pl.read_lines(io.BytesIO(chunk), name="t")
        except ComputeError:  # not UTF-8
            self.result.bad_encoding = True
            text = chunk.decode("utf-8", "replace")
            frame = pl.read_lines(io.BytesIO(text.encode("utf-8")), name="t")
        long = frame["t"].str.len_bytes() > LINE_LIMIT
        cut = int(long.sum())
        if cut:
            self.result.long_lines += cut
            frame = frame.with_columns(pl.col("t").str.slice(0, LINE_LIMIT))
        return frame

    def _marked(self, lines: pl.DataFrame) -> pl.DataFrame:
        if not self._prefilter:
            return lines
        return lines.filter(pl.col("t").str.contains_any(self._anchors))

    def _keep_edges(self, lines: pl.DataFrame, base: int, total: int) -> None:
        if base <= EDGE_LINES:
            for number, text in lines.head(EDGE_LINES + 1 - base).iter_rows():
                self._kept[number] = text
        self._edge = {n: t for n, t in self._edge.items() if n > base + total - 1 - EDGE_LINES}
        self._edge.update(lines.tail(EDGE_LINES).iter_rows())

    def _take_series(self, rows: SeriesRows, lines: pl.DataFrame, marked: pl.DataFrame) -> pl.DataFrame:
        spec = rows.spec
        found = lines.filter(pl.col("t").str.contains(spec.anchor, literal=True)) if spec.anchor else lines
        if found.is_empty():
            return marked
        groups = found.select("n", pl.col("t").str.extract_groups(spec.pattern).alias("g")).unnest("g")
        names = groups.columns[1:]
        hits = groups.filter(pl.any_horizontal(pl.col(names).is_not_null()))
        rows.lines.extend(hits["n"].to_list())
        for name, column in zip(spec.groups, names, strict=True):
            rows.columns[name].extend(hits[column].to_list())
        if not spec.consume:
            return marked
        return marked.filter(~pl.col("n").is_in(hits["n"].implode()))

    def _keep(self, marked: pl.DataFrame) -> None:
        """Keep marked lines; of equal ones (digits masked) the first few, and count the rest."""
        if marked.is_empty():
            return
        masked = marked.with_columns(
            pl.col("t").str.slice(0, 400).str.replace_all(r"[0-9a-f]{12,}|\d+", "#").alias("m")
        ).with_columns(pl.col("n").cum_count().over("m").alias("i"))
        for number, text in masked.filter(pl.col("i") <= STORM_KEEP).select("n", "t").iter_rows():
            self._kept[number] = text
        sizes = masked.group_by("m", maintain_order=True).agg(
            pl.len(), pl.col("n").slice(0, STORM_KEEP), pl.col("n").last().alias("last"), pl.col("t").last().alias("t")
        )
        for mask, size, first, last, text in sizes.iter_rows():
            storm = self._storms.setdefault(mask, [])
            room = STORM_KEEP - len(storm)
            for number in first[room:]:
                self._kept.pop(number, None)
            storm.extend(first[: max(room, 0)])
            thinned = size - min(len(first), max(room, 0))
            if thinned > 0:
                representative = storm[-1]
                count, _ = self._thinned.get(representative, (0, 0))  # the kept last line counts for itself
                self._thinned[representative] = (count + thinned, last)
                self._edge_of_storm(representative, last, text)

    def _edge_of_storm(self, representative: int, last: int, text: str) -> None:
        """The last line of a storm is kept as well: its time ends the storm."""
        previous = self._storm_ends.pop(representative, None)
        if previous is not None:
            self._kept.pop(previous, None)
        self._storm_ends[representative] = last
        self._kept[last] = text

    def _keep_windows(self, lines: pl.DataFrame, marked: pl.DataFrame, base: int) -> None:
        if not self._windows:
            return
        if self._open_window is not None:
            window, left = self._open_window
            self._open_window = None
            self._fill(window, lines, 0, left)
        for window in self._windows:
            for number in marked.filter(pl.col("t").str.contains(window.opening, literal=True))["n"]:
                self._fill(window, lines, number - base + 1, window.lines)

    def _fill(self, window: Window, lines: pl.DataFrame, start: int, left: int) -> None:
        part = lines.slice(start, left)
        closes = part.filter(pl.col("t").str.contains_any(list(window.closing)))
        if not closes.is_empty():
            part = part.filter(pl.col("n") <= closes["n"][0])
        elif part.height < left:
            self._open_window = (window, left - part.height)
        self._kept.update(part.iter_rows())


def encoding_of(block: bytes) -> str:
    """UTF-8 unless a byte order mark, or the look of the zeros, says UTF-16 or UTF-32."""
    if block.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    head = block[:512]
    zeros_odd, zeros_even = head[1::2].count(0), head[0::2].count(0)
    if len(head) >= 64 and zeros_odd > 0.4 * len(head) / 2 and zeros_even == 0:
        return "utf-16-le"
    if len(head) >= 64 and zeros_even > 0.4 * len(head) / 2 and zeros_odd == 0:
        return "utf-16-be"
    return "utf-8"


def scan(
    blocks: Iterator[bytes],
    anchors: Iterable[str],
    windows: tuple[Window, ...] = (),
    series: tuple[SeriesSpec, ...] = (),
    prefilter: bool = True,
) -> Scanned:
    """Scan one member from its blocks."""
    scanner = Scanner(anchors, windows, series, prefilter)
    for block in blocks:
        scanner.feed(block)
    return scanner.finish()
