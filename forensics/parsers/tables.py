"""Tables of aligned columns, as kubectl, docker and crictl print them.

A header of upper-case names gives the columns; cells are cut at the header's offsets. Rows that do not line
up (a later batch of `--watch`, a table pasted through a chat) are cut at runs of blanks instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..regexes import lazy_regex

_NAME = lazy_regex(r"\S+(?: \S+)*")
_COLUMN = lazy_regex(r"[A-Z][A-Z0-9 /:._%-]*(?:\((?:[a-z%]+|[A-Z]{3,5}(?:[+-][\d:]{1,5})?)\))?%?")
_GAP = lazy_regex(r" {2,}|\t+")


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a table."""

    names: tuple[str, ...]
    starts: tuple[int, ...]

    def cells(self, row: str) -> dict[str, str]:
        """Cells of a row by column name, without padding; missing ones are empty."""
        values = self._at_offsets(row)
        if values is None:
            values = _GAP.split(row.strip(), maxsplit=len(self.names) - 1)
        padded = [*values, *[""] * (len(self.names) - len(values))]
        return dict(zip(self.names, (value.strip() for value in padded), strict=False))

    def _at_offsets(self, row: str) -> list[str] | None:
        cells = []
        for index, start in enumerate(self.starts):
            end = self.starts[index + 1] if index + 1 < len(self.starts) else len(row)
            if index and row[start - 1 : start] not in ("", " "):
                return None  # a cell reaches into the next column
            cell = row[start:end]
            if cell.startswith(" ") and cell.strip():
                return None  # a cell begins inside the column
            cells.append(cell)
        return cells


def header_of(line: str) -> Header | None:
    """The columns of a header line, none when it does not look like one. A pager's cut mark is left out."""
    line = line.rstrip().removesuffix(">")
    if not "A" <= line.lstrip()[:1] <= "Z":
        return None
    found = list(_NAME.finditer(line.replace("\t", "  ")))
    names = tuple(match[0] for match in found)
    if len(names) < 2 or not all(_COLUMN.fullmatch(name) for name in names):
        return None
    return Header(names, tuple(match.start() for match in found))


def titled(lines: Sequence[tuple[int, str]], *names: str) -> tuple[Header | None, int]:
    """A describe table (`Type  Status`, underlined by dashes): its columns, the index of its first row."""
    for index, (_, line) in enumerate(lines):
        found = list(_NAME.finditer(line))
        if tuple(match[0] for match in found)[: len(names)] == names:
            header = Header(tuple(m[0] for m in found), tuple(m.start() for m in found))
            first = index + 1
            if first < len(lines) and not lines[first][1].strip(" -"):
                first += 1
            return header, first
    return None, len(lines)
