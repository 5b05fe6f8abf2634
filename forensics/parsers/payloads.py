"""JSON documents of any tool that carry texts: alerts (PagerDuty, Opsgenie, Alertmanager), tickets, answers of APIs.

What an alert or a ticket says is a hint and is read like notes: sentences are talk, a line of a log that they quote is
evidence, and so is a state of a container that stands in fields of its own. What somebody asked a model, and what a
rule or a dashboard looks for, is neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from ..regexes import lazy_regex
from ..sources import Carried, Format, Head
from .json_yaml import read_json
from .located import Array, Object, line_at, objects_at, text_at
from .recordings import Piece, carried

MAX_BYTES = 8 << 20
MAX_PIECES = 2000
SNIFF_CHARS = 64 << 10
_SAYS = lazy_regex(
    r"message|msg|err|exception|trace|stack|reason|cause|detail|descr|summary|title|text|body|log|output|std|previous|"
    r"last|excerpt|raw|line|event|note|comment|failure|content|sample|evidence",
    regex.IGNORECASE,
)
"""Keys of what was said or printed."""
_LOOKED_FOR = lazy_regex(
    r"prompts?|messages|choices|input|question|conversation|generated\w*|completions?|answers?|expr(?:ession)?|query|"
    r"targets|panels|rules|regex|pattern|filters?|\w*template|args|command|properties|\$schema|runbook\w*",
    regex.IGNORECASE,
)
"""Keys below which nothing happened: what was asked and answered, and what is looked for."""
_OF_A_MODEL = frozenset({"role", "usage", "prompt", "instruction", "choices", "generated_text", "max_tokens"})
"""Keys of a request to a model, or of its answer."""
_WORDS = 4
_REASON = lazy_regex(r"(?i:(?:last_?|terminat(?:ion|ed)_?)*reason)")
_CODE = lazy_regex(r"(?i:(?:last_?|terminat(?:ion|ed)_?)*exit_?(?:code|status))")
_EXCEPTION = lazy_regex(r"(?:[A-Za-z_]\w*\.)*\w+(?:Error|Exception)")
_BEFORE = frozenset({"breadcrumbs"})
"""Keys of what led there, which error trackers put last."""
_END = "OOMKilled"
"""The one reason of an end that names a cause without its code."""


def read(text: str) -> Carried:
    """The texts, each at the line of its key."""
    return carried(list(_pieces_of(text)))


def _pieces_of(text: str) -> Iterator[Piece]:
    pieces = (piece for document in read_json(text) for piece in _pieces(document.value, ""))
    yield from (piece for piece, _ in zip(pieces, range(MAX_PIECES), strict=False))


def _pieces(value: Any, key: str) -> Iterator[Piece]:
    if isinstance(value, Array):
        for item, line in zip(value, value.lines, strict=True):
            yield from _said(item, key, line) if isinstance(item, str) else _pieces(item, key)
        return
    if not isinstance(value, Object) or _OF_A_MODEL & value.keys() or str(value.get("object")).endswith("completion"):
        return
    yield from _state(value)
    if (raised := tuple(_raised(value))) != ():
        yield from raised
        return
    for name, item in sorted(value.items(), key=lambda pair: pair[0] not in _BEFORE):
        if not _LOOKED_FOR.fullmatch(name):
            yield from _said(item, name, value.lines[name]) if isinstance(item, str) else _pieces(item, name)


def _state(value: Object) -> Iterator[Piece]:
    """How a container ended, as `kubectl describe` writes it."""
    reason = next((name for name in value if _REASON.fullmatch(name) and isinstance(value[name], str)), None)
    code = next((name for name in value if _CODE.fullmatch(name) and str(value[name]).isdecimal()), None)
    if reason is None or not value[reason].isalpha() or (code is None and value[reason] != _END):
        return
    yield Piece("Last State:     Terminated\n", value.lines[reason])
    yield Piece(f"  Reason:       {value[reason]}\n", value.lines[reason])
    if code is not None:
        yield Piece(f"  Exit Code:    {value[code]}\n", value.lines[code])
    yield Piece("\n", value.lines[reason])


def _raised(value: Object) -> Iterator[Piece]:
    """An exception that stands in fields, as Python prints it; Sentry keeps the frames, outermost first."""
    name = next((key for key in ("type", "class", "exception_class", "error_type") if key in value), None)
    told = next((key for key in ("value", "message") if isinstance(value.get(key), str)), None)
    if name is None or told is None or not _EXCEPTION.fullmatch(str(value[name])):
        return
    frames = objects_at(value, "stacktrace", "frames")
    if frames:
        yield Piece("Traceback (most recent call last):\n", value.lines[name])
    for frame in frames:
        path, number, function = (text_at(frame, key) for key in ("filename", "lineno", "function"))
        yield Piece(f'  File "{path}", line {number}, in {function}\n', frame.line)
        yield Piece(f"    {text_at(frame, 'context_line').strip()}\n", line_at(frame, "context_line"))
    yield Piece(f"{value[name]}: {value[told]}\n", value.lines[told])


def _said(text: str, key: str, line: int) -> Iterator[Piece]:
    if (not key or _SAYS.search(key)) and len(text.split()) >= _WORDS:
        yield Piece(text.rstrip("\n") + "\n", line)


def _sniff(head: Head) -> int:
    if head.text.lstrip()[:1] not in ("{", "["):
        return 0
    tracked = '"stacktrace"' in head.text and '"frames"' in head.text  # else the log download of an error tracker
    return (75 if tracked else 24) if any(True for _ in _pieces_of(head.text[:SNIFF_CHARS])) else 0


FORMAT = Format(
    "json.texts", "JSON document with texts", _sniff, max_bytes=MAX_BYTES, carried=read, begins=r"\[{", most=75
)
