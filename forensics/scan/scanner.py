"""Lines that matter, found in pieces of text.

polars splits a piece into lines and marks those that hold one of the literal anchors, in one pass at the speed of a
grep. Python objects exist only for marked lines, for the windows that follow an opening anchor (a kernel report has a
table without literals), and for the first and last lines, which fix the clock. Storms of equal lines (digits masked)
are thinned, and counted, before Python sees them. What is kept of one member is bounded, whatever it holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import polars as pl

from .anchors import tests
from .lines import Line, Scanned, SeriesRows, SeriesSpec, Window
from .look import STORM_KEEP, Looked, Part, look, series_rows
from .text import LINE_LIMIT, Pieces

EDGE_LINES = 40
"""First and last lines kept for the clocks."""
KEEP_FIRST = KEEP_LAST = 15_000
"""Lines kept of one member with too many marked ones: a file of distinct errors, or not a log at all."""
MAX_STORMS = 20_000
"""Different lines (digits masked) whose repetitions are counted over the whole member."""
MAX_ROWS = 250_000
"""Rows of one series; a day of eight GPUs, measured every three seconds, has 230,000."""
_MAX_TEXTS = 50_000


class Scanner:
    """Feed it blocks, then call `finish()`. One scanner reads one member."""

    def __init__(
        self,
        anchors: Iterable[str],
        windows: tuple[Window, ...] = (),
        series: tuple[SeriesSpec, ...] = (),
        prefilter: bool = True,
    ) -> None:
        self._anchors = frozenset(anchors)
        self._windows = windows
        self._specs = series
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
        self._apart: dict[int, str] = {}
        self.result = Scanned(series=self._series)

    def feed(self, block: bytes) -> None:
        for piece in self.pieces(block):
            self.take(self.look(piece))

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """The next block as pieces for `look`, in order."""
        return self._pieces.feed(block)

    def whole(self, data: bytes) -> Scanned:
        """The same as `feed` and `finish` for a member that is all there; faster for the smallest ones."""
        pieces = [*self._pieces.feed(data), *self._pieces.finish()]
        if not self._keep_few(pieces):
            for piece in pieces:
                self.take(self.look(piece))
        return self._finished()

    def finish(self) -> Scanned:
        for piece in self._pieces.finish():
            self.take(self.look(piece))
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
                found = {number: line for number, line in self._kept.items() if rows.spec.anchor in line}
                self._keep_rows(rows, series_rows(pl.DataFrame({"n": found.keys(), "t": found.values()}), rows.spec), 0)
        return True

    def _finished(self) -> Scanned:
        self._drop_middle(0)
        for rows in self._series:
            self._drop_rows(rows, 0)
        lines = {**self._kept, **self._edge}
        self._count_apart(lines)
        for number in sorted(lines):
            count, last = self._thinned.get(number, (1, 0))
            self.result.candidates.append(Line(number, lines[number], count, last))
        self.result.nul_bytes = self._pieces.nul_bytes
        self.result.one_line = self.result.lines == 1 and next(iter(lines.values())).count("\r") > 2
        return self.result

    def look(self, piece: bytes) -> Looked:
        """What a piece says by itself, for `take`. Changes nothing: several threads may look at several pieces."""
        return look(piece, tests(self._anchors, self._windows, self._specs), self._specs, self._prefilter)

    def take(self, looked: Looked) -> None:
        """Keep what matters of the next piece; pieces come in order, one at a time."""
        self.result.bad_lines += looked.bad_lines
        self.result.long_lines += looked.long_lines
        for part in looked.parts:
            base = self.result.lines + 1
            self.result.lines += part.lines.height
            self._keep_edges(part, base)
            for index, rows in part.series:
                self._keep_rows(self._series[index], rows, base)
            self._keep(part.storms, base)
            self._keep_windows(part, base)
            self._drop_middle(KEEP_LAST)

    def _keep_edges(self, part: Part, base: int) -> None:
        lines = part.lines
        if base <= EDGE_LINES:
            for number, text in lines.head(EDGE_LINES + 1 - base).iter_rows():
                self._kept[base + number] = text
        self._edge = {n: t for n, t in self._edge.items() if n > base + lines.height - 1 - EDGE_LINES}
        self._edge.update((base + number, text) for number, text in lines.tail(EDGE_LINES).iter_rows())
        head = range(base, min(EDGE_LINES, self.result.lines) + 1)
        self._set_apart(part, base, {*head, *self._edge})

    def _keep_rows(self, rows: SeriesRows, found: pl.DataFrame, base: int) -> None:
        rows.lines.extend(base + number for number in found["n"].to_list())
        for name in rows.spec.groups:
            texts = found[name].to_list()
            rows.columns[name].extend(texts if name == "stamp" else self._shared(texts))
        self._drop_rows(rows, MAX_ROWS // 2)

    def _shared(self, texts: list[str | None]) -> list[str | None]:
        """Equal texts as one object: a series repeats few values very often."""
        if len(self._texts) > _MAX_TEXTS:
            self._texts.clear()
        share = self._texts.setdefault
        return [share(text, text) for text in texts]

    def _keep(self, storms: pl.DataFrame, base: int) -> None:
        """Keep marked lines; of equal ones (digits masked) the first few, and count the rest."""
        for mask, size, numbers, texts, last_number, last_text in storms.iter_rows():
            storm = self._storm(mask)
            first = [base + number for number in numbers[: STORM_KEEP - len(storm)]]
            self._kept.update(zip(first, texts, strict=False))
            storm.extend(first)
            if size > len(first):
                representative, last = storm[-1], base + last_number
                count, _ = self._thinned.get(representative, (0, 0))  # the kept last line counts for itself
                self._thinned[representative] = (count + size - len(first), last)
                self._edge_of_storm(representative, last, last_text)

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

    def _set_apart(self, part: Part, base: int, numbers: Iterable[int]) -> None:
        """Remember what the marked ones of some lines look like, which are kept whether they are a storm's or not."""
        rows = part.masked.filter(pl.col("n").is_in([number - base for number in numbers if number >= base]))
        self._apart.update((base + number, mask) for number, mask in rows.iter_rows())

    def _count_apart(self, lines: Iterable[int]) -> None:
        """A thinned line does not stand for those that are kept as lines of their own."""
        for number in self._apart.keys() & lines:
            storm = self._storms.get(self._apart[number], ())
            count, last = self._thinned.get(storm[-1], (1, 0)) if storm else (1, 0)
            if storm and storm[-1] < number < last:
                self._thinned[storm[-1]] = (count - 1, last)

    def _keep_windows(self, part: Part, base: int) -> None:
        lines, opened = part.lines, part.opened
        end = base + lines.height - 1
        if opened.is_empty() and not self._open:
            return
        kept: list[int] = []
        for window in self._windows:
            openings = opened.filter(pl.col("t").str.contains(window.opening, literal=True))["n"].to_list()
            starts = [(base + number + 1, base + number + window.lines) for number in openings]
            if window in self._open:
                starts.insert(0, (base, self._open.pop(window)))
            if not starts:
                continue
            closings = lines.filter(pl.col("t").str.contains_any(list(window.closing)))["n"].to_list()
            done = base - 1
            for first, last in starts:
                index = bisect_left(closings, first - base)
                if index < len(closings) and base + closings[index] <= last:
                    last = base + closings[index]
                elif last > end:
                    self._open[window] = last
                first = max(first, done + 1)  # windows may overlap
                for number, text in lines.slice(first - base, max(0, last - first + 1)).iter_rows():
                    self._kept[base + number] = text
                    kept.append(base + number)
                done = max(done, last)
        self._set_apart(part, base, kept)

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
