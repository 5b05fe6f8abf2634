"""Lines that matter, found in pieces of text.

polars splits a piece into lines and marks those that hold one of the literal anchors, in one pass at the speed of a
grep. Python objects exist only for marked lines, for the windows that follow an opening anchor (a kernel report has a
table without literals), and for the first and last lines, which fix the clock. Storms of equal lines (digits masked)
are thinned, and counted, before Python sees them. What is kept of one member is bounded, whatever it holds.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import polars as pl
from polars.exceptions import ComputeError

from .anchors import tests
from .lines import Line, Scanned, SeriesRows, SeriesSpec, Window
from .text import LINE_LIMIT, Pieces, repaired

EDGE_LINES = 40
"""First and last lines kept for the clocks."""
STORM_KEEP = 24
"""Equal lines kept in full before a storm is thinned."""
KEEP_FIRST = KEEP_LAST = 15_000
"""Lines kept of one member with too many marked ones: a file of distinct errors, or not a log at all."""
MAX_STORMS = 20_000
"""Different lines (digits masked) whose repetitions are counted over the whole member."""
MAX_ROWS = 250_000
"""Rows of one series; a day of eight GPUs, measured every three seconds, has 230,000."""
_MAX_TEXTS = 50_000
_PART_LINES = 1 << 19
_FEW_LINES = 2000
"""So few are asked for their series' anchors in Python: every question to polars takes a tenth of a millisecond."""
_MASK = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|[A-Za-z]*\d[0-9A-Za-z]*"
"""What differs between lines of one storm: numbers, hexadecimal and other ids with a digit in them."""


class Scanner:
    """Feed it blocks, then call `finish()`. One scanner reads one member."""

    def __init__(
        self,
        anchors: Iterable[str],
        windows: tuple[Window, ...] = (),
        series: tuple[SeriesSpec, ...] = (),
        prefilter: bool = True,
    ) -> None:
        self._tests = tests(frozenset(anchors), windows, series)
        self._windows = windows
        self._series = [SeriesRows(spec, columns={name: [] for name in spec.groups}) for spec in series]
        self._prefilter = prefilter
        self._pieces = Pieces()
        self._open: dict[Window, int] = {}
        self._edge: dict[int, str] = {}
        self._kept: dict[int, str] = {}
        self._texts: dict[str | None, str | None] = {}
        self._storms: dict[str, list[int]] = {}
        self._thinned: dict[int, tuple[int, int]] = {}
        self._storm_ends: dict[int, int] = {}
        self.result = Scanned(series=self._series)

    def feed(self, block: bytes) -> None:
        for piece in self._pieces.feed(block):
            self._scan(piece)

    def whole(self, data: bytes) -> Scanned:
        """The same as `feed` and `finish` for a member that is all there; faster for the smallest ones."""
        pieces = [*self._pieces.feed(data), *self._pieces.finish()]
        if not self._keep_few(pieces):
            for piece in pieces:
                self._scan(piece)
        return self._finished()

    def finish(self) -> Scanned:
        for piece in self._pieces.finish():
            self._scan(piece)
        return self._finished()

    def _keep_few(self, pieces: list[bytes]) -> bool:
        """Keep the lines of a member without polars when they are too few for a storm; false when they are not."""
        if not pieces or sum(map(len, pieces)) > LINE_LIMIT or sum(p.count(b"\n") for p in pieces) >= STORM_KEEP:
            return False
        try:
            text = b"".join(pieces).decode()
        except UnicodeDecodeError:
            return False
        lines = text.removesuffix("\n").split("\n")
        self._kept = {number: line.removesuffix("\r") for number, line in enumerate(lines, 1)}  # as polars has them
        self.result.lines = len(self._kept)
        for rows in self._series:
            if rows.spec.anchor in text:
                found = pl.DataFrame({"n": self._kept.keys(), "t": self._kept.values()})
                self._take_series(rows, found, found)
        return True

    def _finished(self) -> Scanned:
        self._drop_middle(0)
        for rows in self._series:
            self._drop_rows(rows, 0)
        lines = {**self._kept, **self._edge}
        for number in sorted(lines):
            count, last = self._thinned.get(number, (1, 0))
            self.result.candidates.append(Line(number, lines[number], count, last))
        self.result.nul_bytes = self._pieces.nul_bytes
        self.result.one_line = self.result.lines == 1 and next(iter(lines.values())).count("\r") > 2
        return self.result

    def _scan(self, piece: bytes) -> None:
        frame = self._lines(piece)
        for part in frame.iter_slices(_PART_LINES):  # a block of empty lines has eight million of them
            self._scan_lines(part)

    def _scan_lines(self, frame: pl.DataFrame) -> None:
        base = self.result.lines + 1
        total = frame.height
        self.result.lines += total
        lines = frame.with_row_index("n", offset=base)
        self._keep_edges(lines, base, total)
        worth = lines.filter(self._tests.worth)
        marked = worth.filter(self._tests.anchored) if self._prefilter else lines
        text = "\n".join(worth["t"].to_list()) if worth.height <= _FEW_LINES else None
        for rows in self._series:
            if text is None or rows.spec.anchor in text:
                marked = self._take_series(rows, worth if rows.spec.anchor else lines, marked)
        self._keep(marked)
        self._keep_windows(lines, marked, base)
        self._drop_middle(KEEP_LAST)

    def _lines(self, piece: bytes) -> pl.DataFrame:
        try:
            frame = pl.read_lines(io.BytesIO(piece), name="t")
        except ComputeError:  # not UTF-8
            piece, bad_lines = repaired(piece)
            self.result.bad_lines += bad_lines
            frame = pl.read_lines(io.BytesIO(piece), name="t")
        long = frame["t"].str.len_bytes() > LINE_LIMIT
        cut = int(long.sum())
        if cut:
            self.result.long_lines += cut
            frame = frame.with_columns(pl.col("t").str.slice(0, LINE_LIMIT))
        return frame

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
            texts = hits[column].to_list()
            rows.columns[name].extend(texts if name == "stamp" else self._shared(texts))
        self._drop_rows(rows, MAX_ROWS // 2)
        if not spec.consume:
            return marked
        return marked.filter(~pl.col("n").is_in(hits["n"].implode()))

    def _shared(self, texts: list[str | None]) -> list[str | None]:
        """Equal texts as one object: a series repeats few values very often."""
        if len(self._texts) > _MAX_TEXTS:
            self._texts.clear()
        share = self._texts.setdefault
        return [share(text, text) for text in texts]

    def _keep(self, marked: pl.DataFrame) -> None:
        """Keep marked lines; of equal ones (digits masked) the first few, and count the rest."""
        if marked.is_empty():
            return
        masked = marked.with_columns(pl.col("t").str.slice(0, 400).str.replace_all(_MASK, "#").alias("m")).with_columns(
            pl.col("n").cum_count().over("m").alias("i")
        )
        for number, text in masked.filter(pl.col("i") <= STORM_KEEP).select("n", "t").iter_rows():
            self._kept[number] = text
        sizes = masked.group_by("m", maintain_order=True).agg(
            pl.len(), pl.col("n").slice(0, STORM_KEEP), pl.col("n").last().alias("last"), pl.col("t").last().alias("t")
        )
        for mask, size, first, last, text in sizes.iter_rows():
            storm = self._storm(mask)
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

    def _storm(self, mask: str) -> list[int]:
        storm = self._storms.get(mask, [])
        if len(self._storms) < MAX_STORMS:
            self._storms[mask] = storm
        return storm

    def _edge_of_storm(self, representative: int, last: int, text: str) -> None:
        """The last line of a storm is kept as well: its time ends the storm."""
        previous = self._storm_ends.pop(representative, None)
        if previous is not None:
            self._kept.pop(previous, None)
        self._storm_ends[representative] = last
        self._kept[last] = text

    def _keep_windows(self, lines: pl.DataFrame, marked: pl.DataFrame, base: int) -> None:
        end = base + lines.height - 1
        opened = marked.filter(self._tests.opening)
        if opened.is_empty() and not self._open:
            return
        for window in self._windows:
            openings = opened.filter(pl.col("t").str.contains(window.opening, literal=True))["n"].to_list()
            starts = [(number + 1, number + window.lines) for number in openings]
            if window in self._open:
                starts.insert(0, (base, self._open.pop(window)))
            if not starts:
                continue
            closings = lines.filter(pl.col("t").str.contains_any(list(window.closing)))["n"].to_list()
            done = base - 1
            for first, last in starts:
                index = bisect_left(closings, first)
                if index < len(closings) and closings[index] <= last:
                    last = closings[index]
                elif last > end:
                    self._open[window] = last
                first = max(first, done + 1)  # windows may overlap
                self._kept.update(lines.slice(first - base, max(0, last - first + 1)).iter_rows())
                done = max(done, last)

    def _drop_middle(self, slack: int) -> None:
        """Keep the first and the last lines of too many. `slack` makes it rare, and so cheap, while reading goes on."""
        if len(self._kept) > KEEP_FIRST + KEEP_LAST + slack:
            middle = sorted(self._kept)[KEEP_FIRST:-KEEP_LAST]
            for number in middle:
                del self._kept[number]
            self.result.dropped_lines += len(middle)

    def _drop_rows(self, rows: SeriesRows, slack: int) -> None:
        """The same for the rows of a series."""
        size = len(rows.lines)
        if size > MAX_ROWS + slack:
            middle = slice(MAX_ROWS // 2, size - MAX_ROWS // 2)
            del rows.lines[middle]
            for column in rows.columns.values():
                del column[middle]
            self.result.dropped_rows += size - MAX_ROWS


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
