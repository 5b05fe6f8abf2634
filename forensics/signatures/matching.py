"""Find signatures in events.

Anchors are looked up first, so most signatures never run on most lines. A regex has a time limit: a pattern that
explodes on hostile text is cut and named. Text that a user sent (prompts, request bodies) is never matched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import regex

from ..model import Diagnostic, Event, Role, Severity
from .fields import CONVERTERS
from .library import Library, Signature

TIME_LIMIT_S = 0.5
MATCH_CHARS = 8000
"""Characters of a message that patterns see."""

_USER_TEXT = regex.compile(
    r"(?:Received request [^:]{1,80}: prompt:|\bprompt(?:_text)?['\"]?\s*[:=]|['\"](?:content|messages|input|text)['\"]\s*:|\b(?:user|request|body|payload|query|completion|response_text|output_text)=['\"])"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One signature on one event."""

    signature: Signature
    pattern: str
    fields: dict[str, Any]
    start: int
    end: int
    quoted: bool
    """True when the text stands where a quotation would: it is talk about the error, not the error."""


class Matcher:
    """Matches events against a library; collects diagnostics about patterns that ran out of time."""

    def __init__(self, library: Library) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._by_channel: dict[str, list[Signature]] = {}
        for signature in library.signatures.values():
            for channel in signature.channels:
                self._by_channel.setdefault(channel, []).append(signature)
        self._all = list(library.signatures.values())
        self._slow: set[str] = set()

    def hits(self, event: Event) -> Iterator[Hit]:
        """All signatures that fire on an event. On channel `plain` (pasted text) every signature may."""
        text = event.text[:MATCH_CHARS]
        candidates = self._all if event.channel == "plain" else self._by_channel.get(event.channel, ())
        limit = _user_text_start(text) if event.channel in ("engine", "plain", "container", "ray", "host") else len(text)
        for signature in candidates:
            if signature.kinds and event.kind not in signature.kinds and event.channel != "plain":
                continue
            if not any(anchor in text for anchor in signature.anchors):
                continue
            for pattern in signature.patterns:
                found = self._search(signature, pattern.regex, text, event)
                if found is None:
                    continue
                try:
                    fields = {
                        name: CONVERTERS[kind](found[name])
                        for name, kind in pattern.types.items()
                        if found[name] is not None
                    }
                except (ValueError, OverflowError):
                    continue  # a number that is none: not this message
                quoted = found.start() >= limit or _is_talk(signature, event, text, found.start())
                yield Hit(signature, pattern.name, fields, found.start(), found.end(), quoted)
                break

    def _search(
        self, signature: Signature, pattern: regex.Pattern[str], text: str, event: Event
    ) -> regex.Match[str] | None:
        try:
            return pattern.search(text, timeout=TIME_LIMIT_S)
        except TimeoutError:
            if signature.id not in self._slow:
                self._slow.add(signature.id)
                self.diagnostics.append(Diagnostic(
                    event.locator.source, event.locator.line, Severity.WARNING,
                    f"signature {signature.id} ran out of time on this line and was skipped there",
                    "simplify its regex: nested repetition is the usual reason",
                ))  # fmt: skip
            return None


def _user_text_start(text: str) -> int:
    found = _USER_TEXT.search(text)
    return found.start() if found else len(text)


def _is_talk(signature: Signature, event: Event, text: str, start: int) -> bool:
    """A cause told at INFO, or in the middle of an ordinary line, is talk about an error, not the error."""
    if signature.quotable or signature.role is not Role.CAUSE or event.channel not in ("engine", "container", "host"):
        return False
    if event.kind != "log":
        return False
    return event.level in ("INFO", "DEBUG") and start > 0
