"""Where a key stands in a TOML file, and how a place is shown: the line with its number and a caret below.

`tomli` keeps no positions, so the file is read a second time, only when there is a problem to show.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import regex

from ..errors import Problem
from ..regexes import lazy_regex

WIDTH = 96
"""Characters of a long line that are shown around the caret."""

_HEADER = lazy_regex(r"\s*(?P<open>\[\[?)\s*(?P<name>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = lazy_regex(r"\s*(?P<key>[\w.\"'-]+)\s*=\s*(?P<value>.*)")
_NAME = lazy_regex(r"""['"]{1,3}(?P<name>[^'"]*)['"]""")


def caret(text: str, start: int, end: int | None = None, line: int | None = None) -> str:
    """The text with a caret (or a run of them) below the characters from `start` to `end`.

    A long text is cut to a window around the place; wide characters count double, as terminals show them. Only the
    line of `text` that holds `start` is shown; `line` is its number, if it is to be printed.
    """
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    shown = text[begin : len(text) if stop < 0 else stop]
    start, length = start - begin, max((end or start) - start, 1)
    left = max(start - WIDTH // 2, 0) if len(shown) > WIDTH else 0
    window = "".join(char if char.isprintable() else " " for char in shown[left : left + WIDTH])
    head = "…" if left else ""
    tail = "…" if left + WIDTH < len(shown) else ""
    offset = _columns(head + window[: start - left])
    marks = min(_columns(window[start - left : start - left + length]) or 1, WIDTH)
    number = "" if line is None else f"{line} | "
    margin = number and " " * (len(number) - 2) + "| "
    return f"{number}{head}{window}{tail}\n{margin}{' ' * offset}{'^' * marks}"


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def located(problem: Problem, root: Path) -> Problem:
    """The problem with the line of its key, when the file below `root` has one and nothing is shown yet."""
    if problem.snippet or not problem.key:
        return problem
    try:
        text = (root / problem.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return problem
    return replace(problem, snippet=show_key(text, problem.key))


def show_key(text: str, key: str) -> str:
    """The line of a dotted key such as `patterns.core.types.pid` or `examples.3.text`, or of the table it is
    missing from; empty when there is no such place."""
    place = find(text, key)
    if place is None:
        return ""
    line = text.splitlines()[place - 1]
    last = regex.search(rf"(?<!\w){regex.escape(key.rpartition('.')[2])}(?!\w)", line)
    start = last.start() if last else len(line) - len(line.lstrip())
    return caret(line, start, last.end() if last else None, place)


def find(text: str, key: str) -> int | None:
    """Line of a dotted key, from 1; of the nearest table around it when the key itself is not there."""
    places = _places(text)
    parts = key.split(".")
    while parts:
        if ".".join(parts) in places:
            return places[".".join(parts)]
        parts.pop()
    return None


def _places(text: str) -> dict[str, int]:
    """Dotted key → line. Tables of an array are called by number and, when they have one, by `name`."""
    places: dict[str, int] = {}
    counts: dict[str, int] = {}
    tables = [""]
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if header := _HEADER.fullmatch(line):
            name = header["name"]
            tables = [name]
            if header["open"] == "[[":
                counts[name] = counts.get(name, 0) + 1
                places.setdefault(name, number)
                tables = [f"{name}.{counts[name]}"]
            for table in tables:
                places.setdefault(table, number)
        elif found := _KEY.fullmatch(line):
            if found["key"] == "name" and (called := _NAME.match(found["value"])) and tables[0]:
                tables = [*tables[:1], f"{tables[0].rpartition('.')[0]}.{called['name']}"]
                places.setdefault(tables[1], places[tables[0]])
            for table in tables:
                places.setdefault(f"{table}.{found['key']}".lstrip("."), number)
            quote = _opened(found["value"])
    return places


def _opened(value: str) -> str:
    """The triple quote that a value opens and does not close on its line."""
    for quote in ("'''", '"""'):
        if value.startswith(quote) and quote not in value[3:]:
            return quote
    return ""
