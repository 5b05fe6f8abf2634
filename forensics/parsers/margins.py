"""What stands in front of every line of a copy, and was put there by whoever copied it: taken off before recognition.

Numbers (`grep -n`, `cat -n`, `less -N`, an editor), marks of quotation (`> `), who said it in a chat (`<sven> `,
`[10:41] @sven: `), the indentation of a post, and the entities of HTML that a web page or a ticket system puts for `<`,
`>`, `&` and quotes. A document or a traceback behind them is none to any parser, so they go first; the lines stay where
they are. What collectors write, and what says whose line it is or when it was printed, is no margin: see `envelopes`,
`prefixes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from ..regexes import lazy_re
from ..sources import Head, mostly
from . import prose
from .envelopes import channel_of
from .envelopes.identity import LEVELS
from .layer import cleaned
from .records import unwrap

Margin = Callable[[str], str]
"""Takes the margin off all lines of a text."""
MAX_DEPTH = 4
"""Margins in front of each other: a numbered quotation out of a chat."""
MIN_LINES = 3
POST = 4
"""Blanks in front of what Markdown shows as it is."""
LONGEST_LINE = 1 << 20
"""Bytes; a longer line is passed on in pieces."""

_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?"
_WHO = r"(?P<who>[^\W\d_][\w.#'-]{0,39}(?: [^\W\d_][\w.#'-]{0,39}){0,2}(?: \((?i:bot|app)\))?)"
_CHATS = tuple(
    (lazy_re(form, re.MULTILINE), share)
    for form, share in (
        (rf"^\[(?:{_DATE},? )?{_CLOCK}(?:,? {_DATE})?\] ?@?{_WHO}: ?", 0.1),
        (rf"^{_DATE},? {_CLOCK} - {_WHO}: ?", 0.1),
        (rf"^(?:\[?(?:{_DATE}[ T])?{_CLOCK}\]? )?<[@+]?{_WHO}> ", 0.75),
        (rf"^(?:{_CLOCK} )?@{_WHO}: ?", 0.75),
    )
)
"""How lines begin in chats, and the share of them that must: a message of several lines is named once."""
_GREP_HEAD = (
    r"(?:(?P<file>[\w./-]+?\.(?:log|txt|out|err)[\w.-]*?)(?P<mark>[:-]))?"
    r"(?P<number>\d{1,9})(?(mark)(?P=mark)|[:-])(?!\d\d(?!\d))"
)
_GREP = lazy_re(rf"{_GREP_HEAD}(?P<rest>.*)")
"""`25:message`, `engine.log-26-message`; a time of day is no number."""
_COUNT = lazy_re(r" {0,8}(?P<number>\d{1,9})(?P<gap>\t| ?[|│→] ?| *)(?P<rest>.*)")
_GAPS = r"\t| ?[|│→] ?"
_QUOTE = lazy_re(r"^> ?", re.MULTILINE)
_ENTITIES = {"lt": "<", "gt": ">", "quot": '"', "#34": '"', "#x22": '"', "apos": "'", "#39": "'", "#x27": "'",
             "#039": "'", "nbsp": " ", "amp": "&"}  # fmt: skip
_ENTITY = lazy_re("&(" + "|".join(_ENTITIES) + ");")


def of(head: Head) -> Margin | None:
    """The outermost margin that the lines of a text have, if any."""
    if len(head.filled) < MIN_LINES:
        return _entities(head)
    lines = tuple(line for line in cleaned(head) if line.strip())
    found = _entities(head) or (_quotes(lines) if ">" in head.begins else None) or _grep(lines)
    if found is None and any(char in "[<@0123456789" for char in head.begins):
        found = _count(lines) or _chat(lines)
    return found or _indent(lines)


def off(blocks: Iterable[bytes], margin: Margin) -> Iterator[bytes]:
    """The blocks of a member in UTF-8, cut at the ends of lines, without the margin."""
    rest = b""
    for block in blocks:
        rest += block
        cut = rest.rfind(b"\n") + 1 or (len(rest) if len(rest) > LONGEST_LINE else 0)
        if cut:
            yield _applied(margin, rest[:cut])
            rest = rest[cut:]
    if rest:
        yield _applied(margin, rest)


def _applied(margin: Margin, data: bytes) -> bytes:
    return margin(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _entities(head: Head) -> Margin | None:
    """A text is escaped when none of the characters stands in it that its entities stand for."""
    found = {_ENTITIES[name] for name in _ENTITY.findall(head.text)} if "&" in head.text else set()
    if not found & set("<>\"'") or any(char in head.text for char in {*"<>", *found} - {"&", " "}):
        return None
    return lambda text: _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], text)


def _quotes(lines: Sequence[str]) -> Margin | None:
    """Some lines in a row, a fifth of all; `diff` has both marks, and a prompt stands alone."""
    rows = [line.startswith(">") for line in lines]
    if sum(rows) < 0.2 * len(lines) or not any(a and b for a, b in pairwise(rows)):
        return None
    return None if any(line.startswith("< ") for line in lines) else _without(_QUOTE)


def _grep(lines: Sequence[str]) -> Margin | None:
    """Numbers that grow, in each file by itself."""
    texts = [line for line in lines if line != "--"]
    if len(texts) < MIN_LINES or not mostly(_GREP.match, texts, 0.75):
        return None
    found = [match for line in texts if (match := _GREP.match(line))]
    for name in {match["file"] for match in found}:
        numbers = [int(match["number"]) for match in found if match["file"] == name]
        if not all(a < b for a, b in pairwise(numbers)):
            return None
    spaced = all(match["rest"].startswith(" ") for match in found if match["rest"])
    return _without(re.compile(rf"^{_GREP_HEAD}{' ?' if spaced else ''}", re.MULTILINE))


def _count(lines: Sequence[str]) -> Margin | None:
    """Numbers of which each is one more than the last, on all lines, headings included: no table has such a column."""
    if len(lines) <= MIN_LINES or not mostly(_COUNT.match, lines, 0.95):
        return None
    found = [match for line in lines if (match := _COUNT.match(line))]
    steps = sum(int(a["number"]) + 1 == int(b["number"]) for a, b in pairwise(found))
    if steps + 1 < 0.95 * len(lines):
        return None
    gaps = [match["gap"] for match in found if match["rest"]]
    blanks = min((len(gap) for gap in gaps), default=0)
    if not blanks:
        return None
    spaced = all(gap.isspace() and "\t" not in gap for gap in gaps)
    gap = f" {{0,{blanks}}}" if spaced else _GAPS
    return _without(re.compile(rf"^ {{0,8}}\d{{1,9}}(?:{gap})", re.MULTILINE))


def _chat(lines: Sequence[str]) -> Margin | None:
    for form, share in _CHATS:
        found = [match for line in lines if (match := form.match(line)) and not _speaks(match)]
        if len(found) >= max(2, share * len(lines)):
            return _without(form, but=_speaks)
    return None


def _indent(lines: Sequence[str]) -> Margin | None:
    """Everything is indented but the sentences around it: a post."""
    blanks = [len(line) - len(line.lstrip(" ")) for line in lines]
    block = [n for n in blanks if n >= POST]
    at_margin = [line for line, n in zip(lines, blanks, strict=True) if n < POST]
    if len(block) < max(MIN_LINES, len(at_margin)) or not all(map(prose.is_prose, at_margin)):
        return None
    return _without(re.compile(rf"^ {{{min(block)}}}", re.MULTILINE))


def _speaks(match: re.Match[str]) -> bool:
    """Whether it is a program that stands there, with a header that says more than a name."""
    who = match["who"]
    return who.upper() in LEVELS or channel_of(who) != "host" or bool(unwrap(match[0] + "x").envelopes)


def _without(margin: re.Pattern[str], but: Callable[[re.Match[str]], bool] = lambda match: False) -> Margin:
    return lambda text: margin.sub(lambda match: match[0] if but(match) else "", text)
