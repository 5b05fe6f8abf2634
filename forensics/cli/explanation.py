"""An admitted explanation as lines of text: wrapped on a terminal, one paragraph a line when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from ..report import text as report_text
from . import tables
from .common import write
from .reasoning import fill, words

SHOWN = 8
"""Most findings of one list."""
QUOTE_CHARS = 200
"""Of a line in a list; the line that is asked for is quoted as long as in the report."""
Doc = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    indent: int
    text: str
    style: str = ""
    """A key of `tables.STYLES`, or `head`."""


@dataclass(frozen=True, slots=True)
class Zone:
    zone: tzinfo
    name: str


def show(lines: Iterable[Line], output: Path | None) -> None:
    """To the terminal with colours and hanging indents, else as plain text."""
    if not tables.on_terminal(output):
        write("".join(f"{'  ' * line.indent}{line.text}".rstrip() + "\n" for line in lines), output)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    for line in lines:
        style = "bold" if line.style == "head" else tables.STYLES[line.style]
        console.print(Padding(Text(line.text, style=style, overflow="fold"), (0, 0, 0, 2 * line.indent)))


def lines(document: Doc, language: str, zone: Zone) -> Iterator[Line]:
    """One explanation, whatever it is about."""
    t = words(language)
    makers = {"verdict": _verdict, "cause": _cause, "finding": _finding, "event": _event, "quiet": _quiet}
    yield from makers[document["kind"]](document, t, language, zone)


def _verdict(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    standing = document["standing"]
    yield Line(0, fill(t["head"]["incident"], **document["incident"]), "quiet")
    yield from _title(standing, t, language)
    yield from _listed(t["head"]["first_cause"], document["first_cause"], t)
    yield from _evidence(standing, t)
    yield Line(0, "")
    yield Line(0, t["head"]["rivals"], "head")
    for number, rival in enumerate(document["rivals"], 2):
        yield Line(1, f"{number}. {rival['cause']} – {rival['title']}")
        for reason in rival["why"]:
            yield Line(2, reason, "quiet")
    if not document["rivals"]:
        yield Line(1, t["none"], "quiet")
    yield from _listed(t["head"]["consequences"], document["consequences"], t)
    yield from _listed(t["head"]["contributing"], document["contributing"], t)
    yield from _listed(t["head"]["decoys"], document["decoys"], t)
    yield from _commands(t["head"]["missing"], document["missing"])
    yield from _commands(t["head"]["change"], standing["change"])
    if document["others"]:
        yield Line(0, "")
        yield Line(0, t["head"]["other_incidents"], "head")
        for other in document["others"]:
            yield Line(1, f"{other['id']} {other['entity']}: {other['cause']}, {other['confidence']}")
    yield Line(0, "")
    yield Line(0, t["head"]["next"], "head")
    asked = [rival["cause"] for rival in document["rivals"][:1]] or [standing["cause"]]
    asked += [ref["finding"] for ref in (*document["first_cause"], *document["decoys"][:1]) if ref["finding"]]
    for subject in asked:
        yield Line(1, f"oomforensics explain BUNDLE {subject}", "quiet")


def _cause(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    standing = document["standing"]
    key = "absent" if standing["rank"] is None else "first" if standing["rank"] == 1 else "of"
    place = {"rank": standing["rank"], "of": standing["of"], "id": document["incident"]["id"]}
    yield Line(0, fill(t["rank"][key], **place), "quiet")
    yield from _title(standing, t, language)
    yield from _evidence(standing, t)
    yield from _listed(t["head"]["set_aside"], standing["set_aside"], t)
    yield Line(0, "")
    yield Line(0, t["head"]["absent"], "head")
    for item in standing["absent"]:
        yield Line(1, f"{item['id']}: {item['title']}")
    if standing["absent_more"]:
        yield Line(1, fill(t["more_ids"], n=standing["absent_more"], cause=standing["cause"]), "quiet")
    if not standing["absent"]:
        yield Line(1, t["none"], "quiet")
    yield from _commands(t["head"]["change"], standing["change"])


def _title(standing: Doc, t: Doc, language: str) -> Iterator[Line]:
    yield Line(0, f"{standing['cause']} – {standing['title']}", "root")
    if standing["confidence"]:
        yield Line(0, str(report_text.texts(language)["confidence"][standing["confidence"]]))
    yield Line(0, "")
    yield Line(0, standing["summary"])


def _evidence(standing: Doc, t: Doc) -> Iterator[Line]:
    for key in ("decisive", "supporting", "against"):
        yield from _listed(t["head"][key], standing[key], t, always=True)
    yield Line(0, "")
    yield Line(0, t["head"]["why_first" if standing["rank"] == 1 else "why_not"], "head")
    for reason in standing["why"]:
        yield Line(1, reason)


def _listed(title: str, refs: Iterable[Doc], t: Doc, always: bool = False) -> Iterator[Line]:
    """Findings under a heading: name and place, then the quoted line."""
    found = list(refs)
    if not found and not always:
        return
    yield Line(0, "")
    yield Line(0, title, "head")
    if not found:
        yield Line(1, t["none"], "quiet")
    for number, ref in enumerate(found[:SHOWN], 1):
        name = f"{ref['finding']}  " if ref["finding"] else ""
        said = f": {ref['sentence']}" if ref["sentence"] else ""
        yield Line(1, f"{name}{ref['title']}{said}")
        if ref.get("reason"):
            yield Line(2, ref["reason"], "doubt")
        if number == len(found[:SHOWN]) or found[number]["place"] != ref["place"]:
            yield Line(2, f"{ref['place']}  {_cut(ref['quote'])}".rstrip(), "quiet")
    if len(found) > SHOWN:
        yield Line(1, fill(t["more"], n=len(found) - SHOWN), "quiet")


def _cut(quote: str) -> str:
    return quote if len(quote) <= QUOTE_CHARS else quote[: QUOTE_CHARS - 1] + "…"


def _commands(title: str, items: Iterable[Doc]) -> Iterator[Line]:
    found = list(items)
    if not found:
        return
    yield Line(0, "")
    yield Line(0, title, "head")
    for item in found:
        yield Line(1, item["text"])
        if item["command"]:
            yield Line(2, f"$ {item['command'].strip()}", "quiet")


def _finding(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    role = t["role"][document["role"]]
    yield Line(0, f"{document['finding']}  {document['signature']} ({role}, {document['severity']})".strip(), "quiet")
    yield Line(0, document["title"], "root")
    yield from _quoted(document, t)
    if document["about"]:
        yield from _texts(t["head"]["what"], [document["about"]])
    yield from _facts(document, t, language, zone)
    yield from _texts(t["head"]["used"], document["uses"])
    for key in ("for", "causes_against", "consequence_of"):
        if document[key]:
            yield from _texts(t["head"][key], document[key])
    yield from _listed(t["head"]["rests_on"], document["rests_on"], t)


def _event(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    yield Line(0, document["event"], "quiet")
    yield from _quoted(document, t)
    yield from _facts(document, t, language, zone)
    yield from _texts(t["head"]["used"], document["uses"])
    yield Line(0, "")
    yield Line(0, t["head"]["next"], "head")
    yield Line(1, f"oomforensics timeline BUNDLE --around {document['place']}    {t['place']['around']}", "quiet")
    yield Line(1, f"oomforensics patterns match SIGNATURE FILE    {t['place']['patterns']}", "quiet")


def _quiet(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    yield Line(0, fill(t["place"]["quiet"], place=document["place"]))
    if document["nearest"]:
        yield from _texts(t["place"]["nearest"], [f"{e['place']}  {e['quote']}" for e in document["nearest"]])


def _quoted(document: Doc, t: Doc) -> Iterator[Line]:
    yield from _texts(t["head"]["line"], filter(None, (document["place"], document["quote"])))


def _facts(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[Line]:
    if document["fields"]:
        yield from _texts(t["head"]["fields"], [f"{name} = {value}" for name, value in document["fields"].items()])
    yield from _texts(t["head"]["time"], list(_time(document, t, language, zone)))


def _time(document: Doc, t: Doc, language: str, zone: Zone) -> Iterator[str]:
    moment = document["time"]
    if moment["utc"] is None:
        yield t["time"]["unknown"]
    else:
        local = datetime.fromisoformat(moment["utc"]).astimezone(zone.zone)
        shown = f"{local.replace(tzinfo=None).isoformat(' ', 'milliseconds')} {zone.name}"
        spread = f"±{moment['uncertainty_s']:g} s" if moment["uncertainty_s"] is not None else ""
        yield fill(t["time"]["known"], time=shown, spread=spread, basis=t["basis"][moment["basis"]])
    for clock in document["clocks"]:
        verdict = report_text.texts(language)["clock"][clock["verdict"]]
        said = fill(t["time"]["clock"], layer=clock["layer"], zone=clock["zone"] or "?", verdict=verdict)
        more = [clock["note"]] if clock["note"] else []
        if clock["anchor_count"]:
            more.append(fill(t["time"]["anchors"], n=clock["anchor_count"], residual_s=clock["residual_s"] or 0))
        if clock["skew_s"]:
            more.append(fill(t["time"]["skew"], skew_s=clock["skew_s"]))
        yield "; ".join([said, *more])


def _texts(title: str, texts: Iterable[str]) -> Iterator[Line]:
    yield Line(0, "")
    yield Line(0, title, "head")
    for text in texts:
        yield Line(1, text)
