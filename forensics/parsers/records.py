"""From a physical line to a `Record`: peel off the envelopes that collectors put around a message.

A line may be wrapped several times (compose prefix, journal prefix, klog header …). `unwrap` tries the envelopes of
`envelopes.py` again and again until none fits; what remains is the message. Each layer leaves its stamp, so that a
record with two stamps later ties one clock to the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import regex

from ..model import RawStamp, Scope

_ANSI = regex.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_c])|\x9b[0-9;:?]*[@-~]")
_OCTAL_ESCAPES = regex.compile(r"#0(?:33|11|12)")
_OCTAL = {"#033": "\x1b", "#011": "\t", "#012": "\n"}
MAX_LAYERS = 6


@dataclass(frozen=True, slots=True)
class Record:
    """One line without its envelopes."""

    line: int
    text: str
    """The message, without colours and CR."""
    raw: str = ""
    """The physical line."""
    stamps: tuple[RawStamp, ...] = ()
    """Outer to inner."""
    envelopes: tuple[str, ...] = ()
    """Names of the layers that were peeled, outer to inner."""
    channel: str = ""
    """Speaker, when a layer decides it."""
    ident: str = ""
    """syslog identifier or logger component."""
    level: str = ""
    logger: str = ""
    """`file.py:123` as printed by the program."""
    scope: Scope = Scope()
    count: int = 1
    last_line: int = 0
    partial: bool = False
    """True for a CRI line tagged `P`: it goes on in the next line."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one envelope gave."""

    rest: str
    stamp: RawStamp | None = None
    channel: str = ""
    ident: str = ""
    level: str = ""
    logger: str = ""
    scope: Scope = Scope()
    partial: bool = False


def clean(text: str) -> str:
    """Text without colours and CR; syslog's octal escapes are undone."""
    if "#0" in text:
        text = _OCTAL_ESCAPES.sub(lambda m: _OCTAL[m[0]], text)
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    return text.rstrip("\r\n")


def unwrap(raw: str, line: int = 0, count: int = 1, last_line: int = 0) -> Record:
    """Peel all envelopes off a physical line. Never fails: an unknown line is a record without layers."""
    from .envelopes import ENVELOPES

    text = clean(raw)
    if "\r" in text:  # a progress bar glued to a log line: the last non-empty piece is what a terminal shows
        text = next((piece for piece in reversed(text.split("\r")) if piece.strip()), text)
    record = Record(line, text, raw, count=count, last_line=last_line)
    for _ in range(MAX_LAYERS):
        for name, envelope in ENVELOPES:
            if name in record.envelopes and name not in _REPEATABLE:
                continue
            layer = envelope(record.text)
            if layer is not None:
                record = _apply(record, name, layer)
                break
        else:
            break
    return record


_REPEATABLE = frozenset({"process"})


def _apply(record: Record, name: str, layer: Layer) -> Record:
    return replace(
        record,
        text=layer.rest,
        stamps=record.stamps if layer.stamp is None else (*record.stamps, layer.stamp),
        envelopes=(*record.envelopes, name),
        channel=layer.channel or record.channel,
        ident=layer.ident or record.ident,
        level=layer.level or record.level,
        logger=layer.logger or record.logger,
        scope=layer.scope.merged(record.scope),
        partial=record.partial or layer.partial,
    )
