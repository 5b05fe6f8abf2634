"""Text of a bundle, made harmless for the place where it is shown: Markdown, Mermaid, HTML, CSV.

Everything that arrives here passed `gate.admit`, so it is one printable line. What remains is the syntax of the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import regex
from markupsafe import Markup, escape

from ..regexes import lazy_regex
from . import text

QUOTE_CHARS = 300
"""Characters of a quoted line in Markdown and HTML; the JSON has more."""

_MARKDOWN = lazy_regex(r"([\\`*{}\[\]<>#|~!$]|(?<![\p{L}\p{N}_])_|_(?![\p{L}\p{N}_]))")
_LIST_MARK = lazy_regex(r"^(?:[-+=]|\d+[.)](?=\s|$))")
_SPAN = lazy_regex(r"`([^`]+)`")
_MERMAID_SAFE = lazy_regex(r"[^\p{L}\p{N} .,:()/+=×·–±%'’_-]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def cell(value: Any) -> str:
    """Free text in a Markdown sentence or table cell: nothing in it acts as Markdown, HTML or a link."""
    shown = _MARKDOWN.sub(r"\\\1", text.printable(str(value), 600)).replace("&", "&amp;")
    shown = shown.replace("://", "\\://").replace("www.", "www\\.").replace("@", "&#64;")
    return _LIST_MARK.sub(lambda m: f"{m[0][:-1]}\\{m[0][-1]}", shown)


def code(value: Any, limit: int = QUOTE_CHARS) -> str:
    """A quoted line as inline code outside of tables; backticks in it do no harm."""
    shown = text.printable(str(value), limit)
    if not shown:
        return ""
    longest = max((len(run) for run in regex.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cellcode(value: Any, limit: int = QUOTE_CHARS) -> str:
    r"""The same inside a table, where a pipe ends a cell even in code.

    Pipes are escaped; a `\|` in the text itself has no form that all parsers read alike, so it becomes HTML.
    """
    shown = text.printable(str(value), limit)
    if "\\|" not in shown:
        return code(shown).replace("|", "\\|")
    return f"<code>{regex.sub(r'[^0-9A-Za-z ]', lambda m: f'&#{ord(m[0])};', shown)}</code>"


def prose(value: str) -> str:
    """One of our own sentences, with backticks around code, as Markdown."""
    return _spans(value, cell, code)


def cellprose(value: str) -> str:
    """The same inside a table."""
    return _spans(value, cell, cellcode)


def _spans(value: str, plain: Callable[[str], str], quoted: Callable[[str], str]) -> str:
    pieces = _SPAN.split(text.printable(value))
    shown = []
    for i, piece in enumerate(pieces):
        if i % 2:
            shown.append(quoted(piece))
        elif piece.strip():  # `cell` trims: the blanks around code spans belong to the sentence
            left, right = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
            shown.append(left + plain(piece) + right)
        else:
            shown.append(piece)
    return "".join(shown).strip()


def fence(value: str, language: str = "") -> str:
    """A fenced block that its content cannot close."""
    longest = max((len(run) for run in regex.findall(r"`+", value)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{value}\n{mark}"


def mermaid(value: Any, limit: int = 90) -> str:
    """A quoted Mermaid label; every character with a meaning becomes an entity code."""
    shown = text.printable(str(value), limit).replace("`", "")
    return '"' + _MERMAID_SAFE.sub(lambda m: f"#{ord(m[0])};", shown) + '"'


def html_prose(value: str) -> Markup:
    """One of our own sentences, with backticks around code, as HTML."""
    pieces = _SPAN.split(text.printable(value))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else escape(piece) for i, piece in enumerate(pieces)
    )


def csv(value: Any) -> Any:
    """A CSV cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return "" if value is None else value
    return f"'{value}" if value.startswith(_FORMULA) else value


def number(value: Any) -> str:
    """`12345.60` → `12345.6`, `1234567` → `1 234 567`: no trailing zeros, no exponent; none is a dash."""
    if isinstance(value, bool) or value is None:
        return "–" if value is None else str(value).lower()
    if isinstance(value, float):
        whole, _, fraction = f"{value:.3f}".rstrip("0").partition(".")
        return _grouped(whole) + (f".{fraction}" if fraction else "")
    return _grouped(str(value)) if isinstance(value, int) else str(value)


def _grouped(digits: str) -> str:
    """Thousands apart from five digits on, with a narrow no-break space."""
    bare = digits.lstrip("-")
    return f"{int(digits):,}".replace(",", "\u202f") if len(bare) > 4 else digits
