"""Why a signature fires on an event, or does not: the questions that the matcher asks, answered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from ..model import Event
from .matching import MATCH_CHARS, TIME_LIMIT_S, captured, fits_kind, is_talk, user_text_start
from .model import Pattern, Signature
from .regex_parser import FLAGS, RefusedError, parse
from .regex_tree import Choice, Group, Node, Repeat, Sequence

NEAR_SHARE = 0.5
"""Part of an anchor's characters that makes a line worth explaining."""
NEAR_CHARS = 6


@dataclass(frozen=True, slots=True)
class Attempt:
    """How far one pattern came."""

    pattern: Pattern
    matched: bool
    reason: str
    """Empty when it matched."""
    regex_stop: int
    """Place in the regex up to which something in the message still matches."""
    text_start: int
    text_stop: int
    """What that part matches in the message, or what the whole regex matches."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One event against one signature."""

    event: Event
    anchor: str
    """The anchor that the message holds, or empty."""
    near: str
    """Without an anchor: the longest part of one that the message holds, letter case aside."""
    listens: bool
    """The event's channel is one of the signature's."""
    kind_fits: bool
    attempts: tuple[Attempt, ...]
    quoted: str
    """Why a match would not count as evidence, or empty."""

    @property
    def matched(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.matched), None)

    @property
    def hit(self) -> bool:
        """True exactly when the matcher finds the signature here."""
        return bool(self.anchor) and self.listens and self.kind_fits and self.matched is not None


def explain(signature: Signature, event: Event) -> Explanation:
    """All answers, also those behind the first no."""
    text = event.text[:MATCH_CHARS]
    anchor = next((a for a in signature.anchors if a in text), "")
    attempts = tuple(attempt(pattern, text) for pattern in signature.patterns)
    matched = next((a for a in attempts if a.matched), None)
    return Explanation(
        event,
        anchor,
        "" if anchor else _nearest(signature, text),
        event.channel == "plain" or event.channel in signature.channels,
        fits_kind(signature, event),
        attempts,
        _quotation(signature, event, text, matched.text_start) if matched else "",
    )


def _quotation(signature: Signature, event: Event, text: str, start: int) -> str:
    if start >= user_text_start(event, text):
        return "it stands in text that a user sent"
    if is_talk(signature, event, start):
        return f"a cause told at level {event.level} in the middle of a line is talk about an error"
    return ""


def fragments(anchor: str, shortest: int = NEAR_CHARS) -> Iterator[str]:
    """The anchor and its runs of words, from long to short, down to half of it and to `shortest` characters."""
    words = anchor.split(" ")
    for count in range(len(words), 0, -1):
        for start in range(len(words) - count + 1):
            run = " ".join(words[start : start + count])
            if len(run.strip()) >= max(shortest, NEAR_SHARE * len(anchor)):
                yield run


def _nearest(signature: Signature, text: str) -> str:
    lower = text.lower()
    found = [next((f for f in fragments(a) if f.lower() in lower), "") for a in signature.anchors]
    return max(found, key=len, default="")


def attempt(pattern: Pattern, text: str) -> Attempt:
    """Run one pattern, and when it does not match find the longest part of it that does."""
    try:
        found = pattern.regex.search(text, timeout=TIME_LIMIT_S)
    except TimeoutError:
        return Attempt(pattern, False, f"ran out of time ({TIME_LIMIT_S} s)", 0, 0, 0)
    source = pattern.source
    if found is None:
        stop, start, end = _furthest(source, text)
        reason = "nothing of it matches" if end == start else "stops before the end"
        return Attempt(pattern, False, reason, stop, start, end)
    if captured(pattern, found) is None:
        return Attempt(pattern, False, "a captured value is not of its type", len(source), *found.span())
    return Attempt(pattern, True, "", len(source), *found.span())


def _furthest(source: str, text: str) -> tuple[int, int, int]:
    """(place in the regex, start, end in the text) of the branch that comes furthest in the text."""
    try:
        tree = parse(source)
    except RefusedError:
        return 0, 0, 0
    found = [_of_branch(source, branch, text) for branch in tree.branches]
    return max(found, key=lambda stop: (stop[2] - stop[1], stop[0]))


def _of_branch(source: str, branch: Sequence, text: str) -> tuple[int, int, int]:
    """Bisect: when a prefix of the branch matches somewhere, every shorter one does as well."""
    cuts = list(_cuts(branch, ""))
    best, low, high = (branch.start, 0, 0), 0, len(cuts)
    while low < high:
        middle = (low + high) // 2
        place, closing = cuts[middle]
        try:
            found = regex.compile(source[branch.start : place] + closing, FLAGS).search(text, timeout=TIME_LIMIT_S)
        except (TimeoutError, regex.error):
            found = None
        if found is None:
            high = middle
        else:
            best, low = (place, *found.span()), middle + 1
    return best


def _cuts(sequence: Sequence, closing: str) -> Iterator[tuple[int, str]]:
    """Places to cut a branch, in order, with the parentheses that a cut leaves open."""
    for item in sequence.items:
        body = _inside(item)
        if body is not None:
            yield from _cuts(body.branches[0], ")" + closing)
        yield item.end, closing


def _inside(item: Node) -> Choice | None:
    """The body of a group that must be read and has only one branch."""
    if isinstance(item, Repeat):
        return _inside(item.item) if item.least >= 1 else None
    if isinstance(item, Group) and len(item.body.branches) == 1:
        return item.body
    return None
