"""Tables: drawn by rich on a terminal, in aligned columns and never cut when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

STYLES = {"root": "bold red", "bad": "red", "doubt": "yellow", "quiet": "dim", "good": "green", "": ""}
"""Words for what a cell means → how rich shows it; without colours the words of the cell must do."""
WIDEST = 60


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    whole: bool = False
    """Never broken over lines on a terminal."""
    least: int | None = None
    """Columns of the terminal that it takes at least."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    style: str = ""
    """A key of `STYLES`."""
    below: str = ""
    """Less important lines below."""

    @property
    def whole(self) -> str:
        return "\n".join(filter(None, (self.text, self.below)))


def on_terminal(output: Path | None) -> bool:
    return output is None and sys.stdout.isatty()


def plain(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """Columns two blanks apart; line breaks inside a cell become `; `.

    A column is as wide as its widest cell, up to `WIDEST`; what is longer is printed in full and shifts its line.
    """
    texts = [[cell.whole.replace("\n", "; ") for cell in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [min(WIDEST, max(map(len, cells))) for cells in zip(titles, *texts, strict=True)]
    lines = []
    for cells in (titles, *texts):
        shown = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        )  # fmt: skip
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines) + "\n"


def draw(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], title: str = "", note: str = "") -> None:
    """On the terminal, fitted to its width; long cells are folded, not cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(
            column.title, justify="right" if column.right else "left", no_wrap=column.whole, overflow="fold",
            min_width=column.least,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(
            Text.assemble((cell.text, STYLES[cell.style]), (f"\n{cell.below}" if cell.below else "", "dim"))
            for cell in row
        ))  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    if note:
        console.print(Text(note, style="dim"))
