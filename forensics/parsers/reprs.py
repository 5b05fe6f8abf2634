"""Python reprs as programs print them, read tolerantly and without running anything.

`{'model': 'x', 'dtype': torch.bfloat16}`, `Namespace(host=None, port=8000)` and `k=v, k=v` hold enums and
objects that `ast.literal_eval` refuses; here they become strings and the rest keeps its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from ..regexes import lazy_regex

MAX_DEPTH = 12
_CONSTANTS = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
_INTEGER = lazy_regex(r"[+-]?\d{1,18}")
_NUMBER = lazy_regex(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_STRING = lazy_regex(r"[rbuf]?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", regex.DOTALL)
_ESCAPE = lazy_regex(r"\\(.)", regex.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_KEY = lazy_regex(r"\s*([A-Za-z_]\w*)=")
_OPENERS = {"(": ")", "[": "]", "{": "}"}


def split(text: str, separator: str = ",") -> Iterator[str]:
    """Cut at separators that stand outside quotes and brackets."""
    depth, start, quote = 0, 0, ""
    position = 0
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"" and (
            position == 0 or not text[position - 1].isalnum() or text[position - 1] in "rbuf"
        ):
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break  # the end of the bracket that we are in
        elif char == separator and depth == 0:
            yield text[start:position]
            start = position + 1
        position += 1
    yield text[start:position]


def literal(text: str, depth: int = 0) -> Any:
    """A value with its type; lists become tuples, what is no literal stays a string."""
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    quoted = _STRING.fullmatch(text)
    if quoted:
        return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), quoted[1][1:-1])
    if len(text) >= 2 and _OPENERS.get(text[0]) == text[-1] and depth < MAX_DEPTH:
        inner = text[1:-1]
        if text[0] == "{" and (":" in inner or not inner.strip()):
            return mapping(text, depth + 1)
        return tuple(literal(part, depth + 1) for part in split(inner) if part.strip())
    return text


def mapping(text: str, depth: int = 0) -> dict[str, Any]:
    """`{'a': 1, 'b': <object>}` → {"a": 1, "b": "<object>"}; an unfinished one keeps what is there."""
    found: dict[str, Any] = {}
    for part in split(text.strip().removeprefix("{")):
        key, colon, value = _pair(part)
        if colon:
            found[str(literal(key, depth))] = literal(value, depth)
    return found


def _pair(part: str) -> tuple[str, str, str]:
    pieces = split(part, ":")
    key = next(pieces)
    return key, part[len(key) : len(key) + 1], part[len(key) + 1 :]


def keywords(text: str) -> dict[str, Any]:
    """`a=1, b='x', c=[1, 2]` → {"a": 1, "b": "x", "c": (1, 2)}; stops at the bracket that encloses it."""
    found: dict[str, Any] = {}
    last = ""
    for part in split(text):
        key = _KEY.match(part)
        if key:
            last = key[1]
            found[last] = literal(part[key.end() :])
        elif last and isinstance(found[last], str):  # a comma inside an unquoted value
            found[last] = f"{found[last]},{part}"
    return found
