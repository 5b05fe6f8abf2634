"""What the envelopes of a line and those who peel them share: a layer, and text without colours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..model import RawStamp, Scope
from ..regexes import lazy_regex
from ..sources import Head

_ANSI = lazy_regex(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_c])|\x9b[0-9;:?]*[@-~]")
_OCTAL_ESCAPES = lazy_regex(r"#0(?:33|11|12)")
_OCTAL = {"#033": "\x1b", "#011": "\t", "#012": "\n"}
UNKNOWN = Scope()


@dataclass(slots=True)
class Layer:
    """What one envelope gave. Nobody changes it; frozen, it would take thrice as long."""

    rest: str
    stamp: RawStamp | None = None
    channel: str = ""
    ident: str = ""
    level: str = ""
    logger: str = ""
    scope: Scope = UNKNOWN
    partial: bool = False
    machine: bool = False
    """True for a header that only the machine's own logs have: kernel ring buffer, journal, syslog."""
    output: bool = False
    """True for a header that a container runtime or its client puts around a container's output."""


def clean(text: str) -> str:
    """Text without colours and CR; syslog's octal escapes are undone."""
    if "#0" in text:
        text = _OCTAL_ESCAPES.sub(lambda m: _OCTAL[m[0]], text)
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    return text.rstrip("\r\n")


@lru_cache(maxsize=1)
def cleaned(head: Head) -> tuple[str, ...]:
    """The lines of a head that are not blank, cleaned: many formats look at them in turn."""
    return tuple(map(clean, head.filled))
