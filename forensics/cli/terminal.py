"""The report on a terminal: the same admitted document as every other format, laid out by rich.

Texts come from `templates/`; nothing of the bundle is read as markup. Colours obey `NO_COLOR`, the width is the
terminal's (or `COLUMNS`).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ..regexes import lazy_regex
from ..report import tables, text, view

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

Doc = Mapping[str, Any]
WIDTH = 100
"""Columns when the output is no terminal and nothing else is said."""
_CONFIDENCE = {"established": "bold green", "likely": "green", "possible": "yellow", "undetermined": "yellow"}
_MARKS = {"root": "bold red", "evidence": "", "decoy": "dim", "consequence": "dim", "": ""}
_CODE = lazy_regex(r"`([^`]+)`")


def render(data: Doc, zone: tzinfo | None = None, width: int | None = None, terminal: bool = False) -> str:
    """The document as text with ANSI colours for a terminal, without any elsewhere."""
    from rich.console import Console

    buffer = io.StringIO()
    given = terminal or "COLUMNS" in os.environ
    console = Console(
        file=buffer, width=width or (None if given else WIDTH), force_terminal=terminal or None, highlight=False,
        markup=False, emoji=False, soft_wrap=False, legacy_windows=False,
    )  # fmt: skip
    _Page(data, console, zone).print()
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


class _Page:
    """One report being printed, part by part."""

    def __init__(self, data: Doc, console: Console, zone: tzinfo | None) -> None:
        self.data, self.console, self.zone = data, console, zone
        self.t = text.texts(data["language"])
        self.short = view.short(data)

    def print(self) -> None:
        self._verdict()
        self._timeline()
        self._evidence("evidence_for", self.data["incidents"][0]["hypotheses"][0]["for"], 8)
        self._evidence("evidence_against", self.data["incidents"][0]["hypotheses"][0]["against"], 5)
        self._chain()
        self._measurements()
        self._list("change", self.data["advice"]["change"])
        self._list("avoid", self.data["advice"]["avoid"])
        self._list("verify", [self.data["advice"]["verify"]])
        self._questions()
        self._decoys()

    def _verdict(self) -> None:
        from rich.panel import Panel
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for line in self.data["summary"]:
            said = self._prose(line["text"])
            if "source" in line:
                said.append(f" ({self._place(line['source'], line['line'])})", style="dim")
            if line["key"] == "sure":
                said.stylize(_CONFIDENCE[self.data["verdict"]["confidence"]])
            grid.add_row(self.t["summary"][line["key"]], said)
        title = f"{self.t['file_title']}{self.t['colon']}{self.data['verdict']['headline']}"
        self.console.print(Panel(grid, title=self._text(title, "bold"), title_align="left", expand=True))

    def _timeline(self) -> None:
        rows = self.data["story"]["rows"]
        if not rows:
            return
        dates = view.days(rows)
        head = self.t["head"]["timeline"]
        self._head(f"{head} · {dates[0]}" if len(dates) == 1 else head)
        table = self._table([(str(self.zone) if self.zone else self.t["column"]["utc"], True), ("±", True),
                             (self.t["column"]["layer"], True), (self.t["column"]["event"], False),
                             (self.t["column"]["source"], False)])  # fmt: skip
        for row in view.told(self.data):
            if row["head"]:
                said = text.fill(self.t["story"]["attempt"], {"n": row["head"], "of": len(self.data["restarts"])})
                table.add_row("", "", "", self._text(said or "", "bold"), "")
            mark = "≈ " if row["order_unknown"] else ""
            places = self.t["comma"].join(self._place(p["source"], p["line"]) for p in row["places"])
            table.add_row(
                self._text(mark + view.when(row, len(dates) > 1, self.zone)), self._text(view.spread(row)),
                self._text(self.t["lane"][row["lane"]]), self._event(row), self._text(places, "dim"),
            )  # fmt: skip
        self.console.print(table)
        if years := view.assumed_years(rows):
            self.console.print(self._text(text.fill(self.t["story"]["year"], {"year": years}) or "", "dim"))

    def _event(self, row: Doc) -> Text:
        said = self._text("")
        if row["mark"] == "root":
            said.append(f"{self.t['mark']['root']} ", style="bold red")
        said.append(row["title"], style=_MARKS[row["mark"]])
        if row["detail"]:
            said.append(self.t["colon"] + row["detail"])
        elif row["quote"]:
            said.append(f" {text.printable(row['quote'], 90)}", style="dim")
        if row["count"] > 1:
            said.append(f" ×{row['count']}", style="dim")
        if row["aside"]:
            said.append(f" ({text.fill(self.t['story']['aside'], {'n': row['aside']})})", style="dim")
        return said

    def _evidence(self, head: str, refs: Sequence[Doc], most: int) -> None:
        points = view.points(refs)
        if not points:
            return
        self._head(self.t["head"][head])
        for point in points[:most]:
            said = self._text("• ")
            for i, part in enumerate(point["titles"]):
                said.append(self.t["semicolon"] if i else "")
                said.append(part["title"], style="bold")
                said.append(self.t["colon"] + part["sentence"] if part["sentence"] else "")
            self.console.print(said)
            place = self._text(f"  {self._place(point['source'], point['line'])}  ", "cyan")
            place.append(text.printable(point["quote"], 300), style="dim")
            self.console.print(place)

    def _chain(self) -> None:
        nodes = view.chain(self.data, self.t)
        if len(nodes) < 2:
            return
        self._head(self.t["head"]["chain"])
        for node in nodes:
            arrow = "⇢" if node["kind"] == "contributing" else "→"
            clock = view.when(node, dated=False)[:8] if node["utc"] else ""
            style = "bold red" if node["kind"] == "root" else ""
            self.console.print(self._text(f"{arrow} {clock:8} {node['title']}", style))

    def _measurements(self) -> None:
        for ledger in tables.ledgers(self.data)[:1]:
            self._head(self.t["head"]["ledger"])
            for said in (tables.equation(ledger, self.t), tables.kv_facts(self.data, ledger, self.t)):
                if said:
                    self.console.print(self._prose(said))
        if self.data["curves"]:
            self._head(self.t["head"]["curves"])
            table = self._table([(self.t["column"]["series"], False), (self.t["column"]["shape"], True),
                                 (self.t["column"]["curve"], True), (self.t["column"]["range"], False)])  # fmt: skip
            for c in self.data["curves"]:
                gpu = f" · GPU {c['gpu'][:9]}" if c["gpu"] else ""
                table.add_row(
                    self._text(c["label"] + gpu), self._text(self.t["shape"].get(c["word"], c["word"])),
                    self._text(c["sparkline"], "cyan"), self._text(f"{c['min']:g} – {c['max']:g} {c['unit']}"),
                )  # fmt: skip
            self.console.print(table)

    def _list(self, head: str, items: Sequence[str]) -> None:
        if not items:
            return
        self._head(self.t["head"][head])
        for n, item in enumerate(items, 1):
            self.console.print(self._bullet(f"{n}." if len(items) > 1 else "•", self._prose(item)))

    def _questions(self) -> None:
        if not self.data["questions"]:
            return
        self._head(self.t["head"]["questions"])
        for n, question in enumerate(self.data["questions"][:6], 1):
            self.console.print(self._bullet(f"{n}.", self._prose(question["text"])))
            if question["command"]:
                self.console.print(self._text(f"   $ {question['command'].strip()}", "cyan"))

    def _decoys(self) -> None:
        rows = tables.decoys(self.data)
        if not rows:
            return
        self._head(self.t["head"]["decoys"])
        table = self._table([(self.t["column"][name], False) for name in ("looks_like", "why_not", "source")])
        for row in rows[:10]:
            count = f" ×{row['count']}" if row["count"] > 1 else ""
            table.add_row(self._text(row["title"] + count), self._text(row["text"]),
                          self._text(self._place(row["source"], row["line"]), "dim"))  # fmt: skip
        self.console.print(table)

    def _head(self, title: str) -> None:
        self.console.print()
        self.console.print(self._text(title, "bold underline"))

    def _table(self, columns: Iterable[tuple[str, bool]]) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for title, whole in columns:
            table.add_column(self._text(title), no_wrap=whole, overflow="fold")
        return table

    def _bullet(self, mark: str, said: Text) -> RenderableType:
        from rich.table import Table

        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(self._text(mark), said)
        return grid

    def _place(self, source: str, line: int) -> str:
        return f"{self.short.get(source, source)}:{line}"

    def _text(self, value: str, style: str = "") -> Text:
        from rich.text import Text

        return Text(value, style=style)

    def _prose(self, value: str) -> Text:
        """One of our sentences; code between backticks is coloured."""
        from rich.text import Text

        said = Text()
        for i, piece in enumerate(_CODE.split(value)):
            said.append(piece, style="cyan" if i % 2 else "")
        return said
