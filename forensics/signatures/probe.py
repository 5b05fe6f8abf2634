"""Search for text on which a regex explodes, as an attacker would: long runs put into lines that almost match.

The safety rules stop exponential regexes when a file is read. What is left can still be slow in a polynomial way
(`.*a.*b.*c`), and only running it shows how slow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ..regexes import lazy_regex
from .matching import MATCH_CHARS, TIME_LIMIT_S
from .model import Pattern, Signature

SLOW_S = 0.1
"""A search that takes longer is worth a warning: a thousand such lines are minutes."""
_FILLERS = ("0", "a", " ", ".", ", ", "(", "/x", "a=1 ", '"', "\n")
_PLACES = 7
_EDGE = lazy_regex(r"\b")


@dataclass(frozen=True, slots=True)
class Slow:
    """The worst text found for one pattern."""

    pattern: str
    seconds: float
    cut: bool
    """True when the search hit the time limit."""
    text: str
    """How the text was made, in words."""


def slowest(signature: Signature, pattern: Pattern, limit_s: float = SLOW_S) -> Slow | None:
    """The first hostile text on which the pattern is slower than `limit_s`, none when there is none."""
    for text, how in _hostile(signature, pattern):
        started = time.thread_time()
        try:
            pattern.regex.search(text, timeout=TIME_LIMIT_S)
            cut = False
        except TimeoutError:
            cut = True
        seconds = time.thread_time() - started
        if cut or seconds > limit_s:
            return Slow(pattern.name, seconds, cut, how)
    return None


def _hostile(signature: Signature, pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Texts of up to `MATCH_CHARS` characters, each with a description."""
    for anchor in signature.anchors[:3]:
        yield _long(anchor), f"the anchor {anchor!r} again and again"
    seen = 0
    for number, example in enumerate(signature.examples, 1):
        found = pattern.regex.search(example.text) if example.pattern == pattern.name else None
        if found is None or seen == 2:
            continue
        seen += 1
        core = example.text[found.start() : found.end() - 1]  # without its last character it should not match
        yield _long(core), f"example {number}, cut short, again and again"
        for place in _places(core):
            for filler in _FILLERS:
                run = _long(filler)[: max(MATCH_CHARS - len(core), 0)]
                yield (core[:place] + run + core[place:])[:MATCH_CHARS], (
                    f"example {number}, cut short, with a long run of {filler!r} after {place} characters"
                )


def _places(core: str) -> list[int]:
    """The start, the end, and some word boundaries between them."""
    edges = sorted({0, len(core), *(found.start() for found in _EDGE.finditer(core))})
    return edges if len(edges) <= _PLACES else [edges[i * (len(edges) - 1) // (_PLACES - 1)] for i in range(_PLACES)]


def _long(piece: str) -> str:
    return (piece * (MATCH_CHARS // max(len(piece), 1) + 1))[:MATCH_CHARS]
