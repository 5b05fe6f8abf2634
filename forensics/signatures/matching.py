"""Find signatures in events.

Anchors are looked up first, so most signatures never run on most lines. A regex has a time limit: a pattern that
explodes on hostile text is cut and named. Text that a user sent (prompts, request bodies) is never matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from ..model import Diagnostic, Event, Role, Severity
from ..regexes import lazy_regex
from ..scan import literals_in
from .fields import CONVERTERS
from .literals import Literals
from .model import Library, Pattern, Signature

TIME_LIMIT_S = 0.5
"""Longest search of one regex in one message."""
SLOW_LINES = 20
"""A signature that ran out of time on so many lines is switched off for the rest of the run."""
MATCH_CHARS = 8000
"""Characters of a message that patterns see."""

_USER_TEXT = lazy_regex(
    r"(?:Received request [^:]{1,80}: prompt:"
    r"|\bprompt(?:_text)?(?:\[[^\]\n]{0,20}\])?['\"]?\s*[:=]"
    r"|['\"](?:content|messages|input|text)['\"]\s*:"
    r"|\b(?:user|request|body|payload|query|completion|response_text|output_text)=['\"])"
)
_SOURCE_LINE = lazy_regex(r"(?:\./)?[\w./+-]{1,200}\.(?:pyi?|md|rst|ipynb|adoc)[:-]\d+[:-](?! \w*Warning\b)")
"""What `grep -n` shows of source code and documents; Python's own warnings begin alike."""
_RAISE = lazy_regex(r"\braise \w+\(\s*f?[\"']")
"""The statement that would print a message is not the message."""
_USER_CHANNELS = frozenset({"engine", "plain", "container", "ray", "host"})
"""Channels on which a service may print what its users sent."""


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
        self._all = tuple(library.signatures.values())
        self._by_anchor: dict[str, list[int]] = {}
        for number, signature in enumerate(self._all):
            for anchor in signature.anchors:
                self._by_anchor.setdefault(anchor, []).append(number)
        self._anchors = Literals(self._by_anchor)
        self._slow: Counter[str] = Counter()

    def hits(self, event: Event) -> Iterator[Hit]:
        """All signatures that fire on an event. On channel `plain` (pasted text) every signature may."""
        text = event.text[:MATCH_CHARS]
        return self._fired(event, text, self._anchors.found(text))

    def hits_in(self, events: Sequence[Event]) -> Iterator[tuple[Event, Hit]]:
        """The same for many events: their anchors are looked up together, at a tenth of the cost."""
        texts = [event.text[:MATCH_CHARS] for event in events]
        try:
            found: Iterable[Iterable[str]] = list(literals_in(texts, self._by_anchor))
        except UnicodeEncodeError:  # half a character, as JSON can spell it
            found = map(self._anchors.found, texts)
        for event, text, anchors in zip(events, texts, found, strict=True):
            for hit in self._fired(event, text, anchors):
                yield event, hit

    def _fired(self, event: Event, text: str, anchors: Iterable[str]) -> Iterator[Hit]:
        numbers = {number for anchor in anchors for number in self._by_anchor[anchor]}
        limit = user_text_start(event, text) if numbers else 0
        for number in sorted(numbers):
            signature = self._all[number]
            if fits_kind(signature, event) and (event.channel == "plain" or event.channel in signature.channels):
                hit = self._first(signature, event, text, limit)
                if hit is not None:
                    yield hit

    def _first(self, signature: Signature, event: Event, text: str, limit: int) -> Hit | None:
        """The first pattern that matches, if any does."""
        for pattern in signature.patterns:
            found = self._search(signature, pattern, text, event)
            fields = None if found is None else captured(pattern, found)
            if found is not None and fields is not None:
                quoted = found.start() >= limit or is_talk(signature, event, found.start())
                return Hit(signature, pattern.name, fields, found.start(), found.end(), quoted)
        return None

    def _search(self, signature: Signature, pattern: Pattern, text: str, event: Event) -> regex.Match[str] | None:
        if self._slow[signature.id] >= SLOW_LINES:
            return None
        try:
            return pattern.regex.search(text, timeout=TIME_LIMIT_S)
        except TimeoutError:
            self._slow[signature.id] += 1
        told = {1: "ran out of time on this line and was skipped there",
                SLOW_LINES: f"ran out of time on {SLOW_LINES} lines and was switched off from here on"}  # fmt: skip
        if what := told.get(self._slow[signature.id]):
            self.diagnostics.append(Diagnostic(
                event.locator.source, event.locator.line, Severity.WARNING,
                f"signature {signature.id} (pattern {pattern.name}) {what}",
                "`oomforensics patterns lint` shows on what kind of text it explodes",
            ))  # fmt: skip
        return None


def fits_kind(signature: Signature, event: Event) -> bool:
    """Whether a signature may fire on an event of this kind; pasted text has no kinds."""
    return not signature.kinds or event.kind in signature.kinds or event.channel == "plain"


def captured(pattern: Pattern, found: regex.Match[str]) -> dict[str, Any] | None:
    """The typed values of a match; none when one of them is no number after all: not this message."""
    try:
        return {
            name: CONVERTERS[kind](found[name]) for name, kind in pattern.types.items() if found[name] is not None
        }
    except (ValueError, OverflowError):
        return None


def user_text_start(event: Event, text: str) -> int:
    """Where text that a user chose begins in a message; the end of the message when there is none.

    The kernel begins its messages in their first line; what looks like one further on was a name with a newline in it.
    """
    if event.channel == "kernel" and event.kind == "log":
        return text.find("\n") if "\n" in text else len(text)
    if event.channel not in _USER_CHANNELS:
        return len(text)
    if event.kind == "log" and _SOURCE_LINE.match(text):
        return 0
    found = _USER_TEXT.search(text) or (_RAISE.search(text) if event.kind == "log" else None)
    return found.start() if found else len(text)


def is_talk(signature: Signature, event: Event, start: int) -> bool:
    """A cause told at INFO, in the middle of an ordinary line, is talk about an error, not the error."""
    if signature.quotable or signature.role is not Role.CAUSE or event.kind != "log":
        return False
    return event.channel in ("engine", "container", "host") and event.level in ("INFO", "DEBUG") and start > 0
