"""A pattern file to start from, made out of one pasted log line.

Numbers, sizes and hex ids become typed groups, the rest stays literal; the longest run without a number becomes the
anchor. What only a human knows (titles, role, description, program, a near miss) is left empty, so that
`oomforensics patterns test` lists it until it is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import regex

from ..model import Severity
from ..parsers.records import unwrap
from ..regexes import lazy_regex
from .fields import CONVERTERS
from .model import CHANNELS
from .regex_parser import FLAGS

MAX_CORE = 400
"""Characters of a message that go into the regex."""
MAX_ANCHOR = 60
_SEVERITY = {
    "DEBUG": Severity.INFO, "INFO": Severity.INFO, "WARNING": Severity.WARNING, "WARN": Severity.WARNING,
    "CRITICAL": Severity.CRITICAL, "FATAL": Severity.CRITICAL,
}  # fmt: skip

_VALUE = lazy_regex(
    r"(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    r"|(?P<hex>\b0x[0-9a-fA-F]+\b)"
    r"|(?P<id>\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b)"
    r"|(?P<dotted>(?<![\w.])[0-9]+(?:\.[0-9]+){2,}(?![\w.]))"
    r"|(?P<size>(?<![\w.])-?[0-9]+(?:\.[0-9]+)? ?(?:[KMGT]i?B|[KMGT]i|kB|bytes)(?!\w))"
    r"|(?P<float>(?<![\w.])-?[0-9]+\.[0-9]+(?=\D|$))"
    r"|(?P<int>(?<![\w.])-?[0-9]{1,3}(?:,[0-9]{3})+(?!\w)|(?<![\w.])-?[0-9]+(?=%|s\b|ms\b|\b))"
)
_FORMS = {
    "uuid": (r"[0-9a-fA-F-]{36}", "str"),
    "hex": (r"0x[0-9a-fA-F]+", "hex"),
    "id": (r"[0-9a-f]{12,64}", "str"),
    "dotted": (r"[\d.]+", "str"),
    "float": (r"-?\d+(?:\.\d+)?", "float"),
    "int": (r"-?[\d,]+", "int"),
}
"""Kind of value → regex and converter."""
_SIZE_FIELDS = {"G": ("gib", r"Gi?B?"), "M": ("mib", r"Mi?B?"), "K": ("kib", r"Ki?B?"), "k": ("kib", "kB")}


@dataclass(frozen=True, slots=True)
class _Piece:
    regex: str
    name: str = ""
    """Field name, empty for literal text."""
    converter: str = ""
    text: str = ""


def skeleton(line: str, identity: str | None = None, channel: str | None = None) -> str:
    """The TOML text for a log line. `identity` and `channel` are proposed when they are not given."""
    record = unwrap(line.rstrip("\n"))
    message = record.text.strip()
    pieces = list(_pieces(message[:MAX_CORE]))
    speaker = channel or (record.channel if record.channel in CHANNELS else "engine")
    anchor = _anchor(pieces)
    return _toml(identity or f"my.{_slug(anchor)}", speaker, record.level or "ERROR", message, pieces, anchor)


def _pieces(message: str) -> Iterator[_Piece]:
    """The message as literal text and typed values, in order."""
    names: set[str] = set()
    at = 0
    for found in _VALUE.finditer(message):
        before = message[at : found.start()]
        if before:
            yield _Piece(regex.escape(before, special_only=True, literal_spaces=True), text=before)
        kind = found.lastgroup or "int"
        form, converter, unit = _form(kind, found[0])
        name = _name(before, unit or _unit_after(message[found.end() :]), names)
        yield _Piece(f"(?P<{name}>{form})", name, converter, found[0])
        at = found.end()
    if at < len(message):
        rest = message[at:]
        yield _Piece(regex.escape(rest, special_only=True, literal_spaces=True), text=rest)


def _form(kind: str, text: str) -> tuple[str, str, str]:
    """(regex, converter, unit for the name) of a value."""
    if kind != "size":
        return (*_FORMS[kind], "")
    unit = text.lstrip("-0123456789. ")
    converter, pattern = _SIZE_FIELDS.get(unit[0], ("bytes", regex.escape(unit)))
    blank = " ?" if " " in text else ""
    return rf"-?\d+(?:\.\d+)?{blank}{pattern}", converter, converter


def _unit_after(text: str) -> str:
    """The unit that follows a bare number, as it stands in a field's name."""
    found = regex.match(r" ?(%|ms\b|s\b|seconds?\b|tokens?\b)", text)
    return {"%": "pct", "s": "s", "second": "s", "seconds": "s", "ms": "ms"}.get(found[1], "") if found else ""


def _name(before: str, unit: str, taken: set[str]) -> str:
    """A field name from the words right before a value, with its unit, used once."""
    words = [word.lower() for word in regex.findall(r"[A-Za-z]{2,}", before[-60:])][-2:]
    name = "_".join([*(words or ["value"]), *([unit] if unit and unit not in words else [])])
    unique, count = name, 2
    while unique in taken:
        unique, count = f"{name}_{count}", count + 1
    taken.add(unique)
    return unique


def _anchor(pieces: list[_Piece]) -> str:
    """The longest run of text without values; of a very long one its longest clause, and no exception's name."""
    longest = max((piece.text.strip() for piece in pieces if not piece.name), key=len, default="")
    longest = regex.sub(r"^(?:[\w.]+(?:Error|Exception|Warning|Exit): )+", "", longest)
    if len(longest) > MAX_ANCHOR:
        longest = max(regex.split(r"(?<=[.;:!?。；：]) ", longest), key=len)
    return longest[:MAX_ANCHOR].strip()


def _slug(text: str) -> str:
    return "_".join(regex.findall(r"[a-z]+", text.lower())[:4]) or "new"


def _toml(identity: str, channel: str, level: str, message: str, pieces: list[_Piece], anchor: str) -> str:
    values = [piece for piece in pieces if piece.name]
    source = "".join(piece.regex for piece in pieces)
    types = ", ".join(f'{piece.name} = "{piece.converter}"' for piece in values)
    fields = ", ".join(f"{name} = {_value(value)}" for name, value in _captured(source, values, message).items())
    severity = _SEVERITY.get(level.upper(), Severity.ERROR).value
    lines = [
        f'id = "{identity}"',
        'title.en = ""',
        'title.zh = ""',
        'status = "experimental"',
        f'severity = "{severity}"',
        'role = ""',
        f'channels = ["{channel}"]',
        f"anchors = [{quote(anchor) if anchor else ''}]",
        'description = ""',
        "",
        "[[versions]]",
        'program = ""',
        'range = ""',
        'source = ""',
        "",
        "[[patterns]]",
        'name = "core"',
        f"regex = {quote(source)}",
        *([f"types = {{ {types} }}"] if types else []),
        "",
        "[[examples]]",
        f"text = {quote(message)}",
        'match = "core"',
        *([f"fields = {{ {fields} }}"] if fields else []),
        *([f'level = "{level.upper()}"'] if level.upper() != "ERROR" else []),
        "",
        "[[examples]]",
        'text = ""',
        "match = false",
        'note = "a line that looks alike and means something else"',
    ]
    return "\n".join(lines) + "\n"


def _captured(source: str, values: list[_Piece], message: str) -> dict[str, Any]:
    """What the skeleton's own regex captures, converted."""
    found = regex.compile(source, FLAGS).search(message)
    if found is None:
        return {}
    return {piece.name: CONVERTERS[piece.converter](found[piece.name]) for piece in values}


def _value(value: Any) -> str:
    return quote(value) if isinstance(value, str) else repr(value)


def quote(text: str) -> str:
    """A TOML string: literal where that is possible, else with escapes."""
    plain = all(char.isprintable() or char in "\t\n" for char in text)
    if plain and "'''" not in text and not text.endswith("'"):
        opening = "'''\n" if text.startswith("\n") else "'''"  # TOML drops a line end right after the quotes
        return f"{opening}{text}'''"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)
    return f'"{shown}"'
