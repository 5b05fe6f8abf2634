"""An admitted explanation as lines of text: wrapped on a terminal, one paragraph a line when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from ...report import text as report_text
from .. import tables
from ..common import write
from .facts import fill, words

SHOWN = 8
"""Most findings of one list."""
QUOTE_CHARS = 160
"""Of a line in a list; the line that is asked for is quoted as long as in the report."""
Doc = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    indent: int
    text: str
    style: str = ""
    """A key of `tables.STYLES`, or `head`."""


def show(lines: Iterable[Line]) -> None:
    """To the terminal with colours and hanging indents, else as plain text."""
    if not tables.on_terminal(None):
        write("".join(f"{'  ' * line.indent}{line.text}".rstrip() + "\n" for line in lines), None)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    for line in lines:
        style = "bold" if line.style == "head" else tables.STYLES[line.style]
        console.print(Padding(Text(line.text, style=style, overflow="fold"), (0, 0, 0, 2 * line.indent)))


class Writer:
    """Puts explanations into words, in one language and one zone; a line is quoted once."""

    def __init__(self, language: str, zone: tzinfo, zone_name: str, short: Mapping[str, str]) -> None:
        self.t = words(language)
        self.labels = report_text.texts(language)
        self.zone, self.zone_name = zone, zone_name
        self.short = short
        """Path → the end of it that is shown; what is missing is shown in full."""
        self._quoted: set[tuple[str, int]] = set()

    def lines(self, document: Doc) -> Iterator[Line]:
        makers = {
            "verdict": self._verdict, "cause": self._cause, "finding": self._finding, "event": self._event,
            "quiet": self._quiet,
        }  # fmt: skip
        yield from makers[document["kind"]](document)

    def _verdict(self, document: Doc) -> Iterator[Line]:
        t, standing = self.t["head"], document["standing"]
        yield Line(0, fill(t["incident"], **document["incident"]), "quiet")
        yield from self._title(standing)
        yield from self._listed(t["first_cause"], document["first_cause"])
        yield from self._evidence(standing)
        yield from self._rivals(document["rivals"])
        for key in ("consequences", "contributing", "decoys"):
            yield from self._listed(t[key], document[key])
        yield from self._commands(t["missing"], document["missing"])
        yield from self._commands(t["change"], standing["change"])
        others = [f"{o['id']} {o['entity']}: {o['cause']}, {o['confidence']}" for o in document["others"]]
        yield from self._texts(t["other_incidents"], others)
        asked = [rival["cause"] for rival in document["rivals"][:1]] or [standing["cause"]]
        asked += [r["finding"] for r in (*document["first_cause"], *document["decoys"][:1]) if r["finding"]]
        yield from self._texts(t["next"], [f"oomforensics explain BUNDLE {subject}" for subject in asked])

    def _rivals(self, rivals: Iterable[Doc]) -> Iterator[Line]:
        yield from self._head(self.t["head"]["rivals"])
        number = 1
        for number, rival in enumerate(rivals, 2):
            confidence = f" ({rival['confidence']})" if rival["confidence"] else ""
            yield Line(1, f"{number}. {rival['cause']} – {rival['title']}{confidence}")
            for reason in rival["why"]:
                yield Line(2, reason, "quiet")
        if number == 1:
            yield Line(1, self.t["none"], "quiet")

    def _cause(self, document: Doc) -> Iterator[Line]:
        t, standing = self.t["head"], document["standing"]
        key = "absent" if standing["rank"] is None else "first" if standing["rank"] == 1 else "of"
        place = {"rank": standing["rank"], "of": standing["of"], "id": document["incident"]["id"]}
        yield Line(0, fill(self.t["rank"][key], **place), "quiet")
        yield from self._title(standing)
        yield from self._evidence(standing)
        yield from self._listed(t["set_aside"], standing["set_aside"])
        absent = [f"{item['id']}: {item['title']}" for item in standing["absent"]]
        if standing["absent_more"]:
            absent.append(fill(self.t["more_ids"], n=standing["absent_more"], cause=standing["cause"]))
        yield from self._texts(t["absent"], absent or [self.t["none"]])
        yield from self._commands(t["change"], standing["change"])

    def _title(self, standing: Doc) -> Iterator[Line]:
        yield Line(0, f"{standing['cause']} – {standing['title']}", "root")
        if standing["confidence"]:
            yield Line(0, str(self.labels["confidence"][standing["confidence"]]))
        yield Line(0, "")
        yield Line(0, standing["summary"])

    def _evidence(self, standing: Doc) -> Iterator[Line]:
        for key in ("decisive", "supporting", "against"):
            yield from self._listed(self.t["head"][key], standing[key], always=True)
        key = "why_first" if standing["rank"] == 1 else "why_not"
        yield from self._texts(self.t["head"][key], standing["why"])

    def _listed(self, title: str, refs: Iterable[Doc], always: bool = False) -> Iterator[Line]:
        """Findings under a heading: name, place, and the quoted line where it was not quoted before."""
        found = list(refs)
        if not found and not always:
            return
        yield from self._head(title)
        if not found:
            yield Line(1, self.t["none"], "quiet")
        shown = found[:SHOWN]
        for number, ref in enumerate(shown, 1):
            name = f"{ref['finding']}  " if ref["finding"] else ""
            said = f"{self.labels['colon']}{ref['sentence']}" if ref["sentence"] else ""
            yield Line(1, f"{name}{ref['title']}{said}")
            if ref.get("reason"):
                yield Line(2, ref["reason"], "doubt")
            if number == len(shown) or _where(found[number]) != _where(ref):
                yield Line(2, f"{self._place(ref)}  {self._quote_once(ref)}".rstrip(), "quiet")
        if len(found) > SHOWN:
            yield Line(1, fill(self.t["more"], n=len(found) - SHOWN), "quiet")

    def _quote_once(self, ref: Doc) -> str:
        if _where(ref) in self._quoted:
            return ""
        self._quoted.add(_where(ref))
        return report_text.printable(ref["quote"], QUOTE_CHARS)

    def _commands(self, title: str, items: Iterable[Doc]) -> Iterator[Line]:
        for number, item in enumerate(items):
            if not number:
                yield from self._head(title)
            yield Line(1, item["text"])
            if item["command"]:
                yield Line(2, f"$ {item['command'].strip()}", "quiet")

    def _finding(self, document: Doc) -> Iterator[Line]:
        t = self.t["head"]
        kind = f"{document['signature']} ({self.t['role'][document['role']]}, {document['severity']})"
        yield Line(0, f"{document['finding']}  {kind}".strip(), "quiet")
        yield Line(0, document["title"], "root")
        yield from self._line(document)
        yield from self._texts(t["what"], filter(None, [document["about"]]))
        yield from self._facts(document)
        yield from self._texts(t["used"], document["uses"])
        for key in ("for", "causes_against", "consequence_of"):
            yield from self._texts(t[key], document[key])
        yield from self._listed(t["rests_on"], document["rests_on"])

    def _event(self, document: Doc) -> Iterator[Line]:
        yield Line(0, document["event"], "quiet")
        yield from self._line(document)
        yield from self._facts(document)
        yield from self._texts(self.t["head"]["used"], document["uses"])
        around = f"oomforensics timeline BUNDLE --around {self._place(document)}"
        match = "oomforensics patterns match SIGNATURE FILE"
        t = self.t["place"]
        yield from self._texts(self.t["head"]["next"], [f"{around}    {t['around']}", f"{match}    {t['patterns']}"])

    def _quiet(self, document: Doc) -> Iterator[Line]:
        yield Line(0, fill(self.t["place"]["quiet"], place=self._place(document)))
        near = [f"{self._place(ref)}  {ref['quote']}" for ref in document["nearest"]]
        yield from self._texts(self.t["place"]["nearest"], near)

    def _line(self, document: Doc) -> Iterator[Line]:
        self._quoted.add(_where(document))
        yield from self._texts(self.t["head"]["line"], filter(None, (self._place(document), document["quote"])))

    def _facts(self, document: Doc) -> Iterator[Line]:
        yield from self._texts(self.t["head"]["fields"], [f"{k} = {v}" for k, v in document["fields"].items()])
        yield from self._texts(self.t["head"]["time"], self._time(document))

    def _time(self, document: Doc) -> Iterator[str]:
        t, moment = self.t["time"], document["time"]
        if moment["utc"] is None:
            yield t["unknown"]
        else:
            local = datetime.fromisoformat(moment["utc"]).astimezone(self.zone)
            shown = f"{local.replace(tzinfo=None).isoformat(' ', 'milliseconds')} {self.zone_name}"
            spread = "" if moment["uncertainty_s"] is None else f"±{moment['uncertainty_s']:g} s"
            yield fill(t["known"], time=shown, spread=spread, basis=self.t["basis"][moment["basis"]])
        for clock in document["clocks"]:
            verdict = self.labels["clock"][clock["verdict"]]
            said = [fill(t["clock"], layer=clock["layer"], zone=clock["zone"] or "?", verdict=verdict)]
            if clock["anchor_count"]:
                said.append(fill(t["anchors"], n=clock["anchor_count"], residual_s=clock["residual_s"] or 0))
            if clock["skew_s"]:
                said.append(fill(t["skew"], skew_s=clock["skew_s"]))
            yield "; ".join(filter(None, [*said, clock["note"]]))

    def _head(self, title: str) -> Iterator[Line]:
        yield Line(0, "")
        yield Line(0, title, "head")

    def _texts(self, title: str, texts: Iterable[str]) -> Iterator[Line]:
        for number, text in enumerate(texts):
            if not number:
                yield from self._head(title)
            yield Line(1, text)

    def _place(self, ref: Doc) -> str:
        return f"{self.short.get(ref['source'], ref['source'])}:{ref['line']}"


def _where(ref: Doc) -> tuple[str, int]:
    return ref["source"], ref["line"]
