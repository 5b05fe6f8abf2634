"""What programs printed, kept in another kind of file: notebooks, recorded terminals, saved web pages.

Jupyter notebooks (nbformat 4: outputs of the cells, never their source), asciinema casts (versions 1 to 3, the output
only), HTML (its text, without scripts). The text is read like notes: what was pasted speaks, sentences do not. A line
stands where it stands in the file, or where the string that holds it begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape

import regex

from ..regexes import lazy_regex
from ..sources import Carried, Format, Head
from .json_yaml import read_json
from .located import Object, dig, line_at, objects_at, text_at

MAX_BYTES = 32 << 20
_UNSEEN = frozenset({"head", "noscript", "script", "style", "svg", "template"})
_INLINE = frozenset({"a", "abbr", "b", "code", "em", "font", "i", "kbd", "mark", "small", "span", "strong", "tt", "u"})
_NAME = lazy_regex(r"</?([A-Za-z][A-Za-z0-9]*)")
_PAGE = lazy_regex(
    r"\s*+(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|(?P<piece>div|p|pre|table|body|article|h[1-6])(?=[\s>]))\b",
    regex.IGNORECASE,
)
"""How a page begins, or a piece of one that was copied."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of output and the line of the file at which it stands."""

    text: str
    line: int


def carried(pieces: Sequence[Piece]) -> Carried:
    """The pieces as one text; a line belongs to the piece in which it begins."""
    rows: list[list[str]] = []  # a line of many pieces is joined once: a cast may hold millions
    places: list[int] = []
    open_line = False
    for piece in pieces:
        for part in piece.text.splitlines(keepends=True):
            if open_line:
                rows[-1].append(part.rstrip("\r\n"))
            else:
                rows.append([part.rstrip("\r\n")])
                places.append(piece.line)
            open_line = not part.endswith(("\n", "\r"))
    return Carried("\n".join(map("".join, rows)), places or (1,))


def _strings(owner: Object, key: str) -> Iterator[Piece]:
    """A text that is a string, or a list of strings."""
    value = owner.get(key)
    if isinstance(value, str):
        yield Piece(value, line_at(owner, key))
    elif isinstance(value, list):
        yield from (Piece(item, line_at(owner, key, i)) for i, item in enumerate(value) if isinstance(item, str))


def read_notebook(text: str) -> Carried:
    """Standard output, standard error and tracebacks of all cells, in their order."""
    pieces: list[Piece] = []
    for document in read_json(text):
        for cell in objects_at(document.value, "cells"):
            for output in objects_at(cell, "outputs"):
                kind = text_at(output, "output_type")
                found = list(_strings(output, "traceback" if kind == "error" else "text"))
                whole = kind != "error"  # the strings of a stream are pieces of it, those of a traceback are lines
                pieces += found if whole else [Piece(piece.text + "\n", piece.line) for piece in found]
                pieces.append(Piece("\n", pieces[-1].line if pieces else 1))
    return carried(pieces)


def read_cast(text: str) -> Carried:
    """What the terminal showed."""
    pieces: list[Piece] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, list) and len(row) == 3 and row[1] == "o" and isinstance(row[2], str):
            pieces.append(Piece(row[2], number))
        elif isinstance(row, dict) and isinstance(shown := dig(row, "stdout"), list):  # version 1
            pieces += [Piece(str(chunk[1]), number) for chunk in shown if isinstance(chunk, list) and len(chunk) == 2]
    return carried(pieces)


def read_page(text: str) -> Carried:
    """The text of a web page; every element that is not part of a line begins a new one."""
    pieces: list[Piece] = []
    line = 1
    for part, seen in _cut(text):
        if seen:
            shown = unescape(part).splitlines(keepends=True)
            pieces += [Piece(row, line + n) for n, row in enumerate(shown)]
        elif _element(part) not in _INLINE:
            pieces.append(Piece("\n", line))
        line += part.count("\n")
    return carried(pieces)


def _cut(page: str) -> Iterator[tuple[str, bool]]:
    """(text, True) and (markup, False) in turn, in one pass however broken the page is."""
    at = 0
    while (begin := page.find("<", at)) >= 0:
        if not page[begin + 1 : begin + 2].isalpha() and page[begin + 1 : begin + 2] not in ("/", "!", "?"):
            yield page[at : begin + 1], True
            at = begin + 1
            continue
        yield page[at:begin], True
        end = page.find("-->" if page.startswith("<!--", begin) else ">", begin)
        name = _element(page[begin : begin + 20])
        if end >= 0 and name in _UNSEEN and page[begin + 1] != "/":
            end = page.find(f"</{name}", end)
        if end < 0:
            yield page[begin:], False
            return
        closing = page.find(">", end)
        at = closing + 1 if closing >= 0 else len(page)
        yield page[begin:at], False
    yield page[at:], True


def _element(tag: str) -> str:
    """`pre` of `<pre class="x">` and of `</pre>`."""
    found = _NAME.match(tag)
    return found[1].lower() if found else ""


def _sniff_notebook(head: Head) -> int:
    text = head.text.lstrip()
    return 98 if text[:1] == "{" and '"cell_type"' in text and ('"outputs"' in text or '"nbformat"' in text) else 0


def _sniff_cast(head: Head) -> int:
    first = head.lines[0] if head.lines else ""
    return 98 if first.startswith("{") and '"version"' in first and ('"width"' in first or '"term"' in first) else 0


def _sniff_page(head: Head) -> int:
    found = _PAGE.match(head.text[:400])
    return 90 if found and (found["piece"] is None or f"</{found['piece']}>" in head.text) else 0


FORMATS: tuple[Format, ...] = (
    Format("notebook", "notebook", _sniff_notebook, max_bytes=MAX_BYTES, carried=read_notebook, begins="{"),
    Format("cast", "recorded terminal", _sniff_cast, max_bytes=MAX_BYTES, carried=read_cast, begins="{"),
    Format("notes.html", "web page", _sniff_page, max_bytes=MAX_BYTES, carried=read_page, begins="<"),
)
