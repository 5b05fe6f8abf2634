"""Would the examples notice if a pattern were looser? Spoil a signature on purpose and see whether the law objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import regex

from . import law
from .matching import Matcher
from .model import Library, Pattern, Signature, compiled
from .regex_parser import parse
from .regex_tree import Group, Node, children


def without(signature: Signature, pattern: Pattern) -> Signature:
    """The signature with one pattern deleted."""
    return replace(signature, patterns=tuple(p for p in signature.patterns if p is not pattern))


def loosened(signature: Signature, pattern: Pattern) -> Signature | None:
    """The signature with one regex reduced to an anchor and its optional groups; none when it is hardly more than
    that: without groups, a regex that demands nothing beyond an anchor cannot be loosened."""
    anchors = "|".join(regex.escape(anchor) for anchor in signature.anchors)
    parts = [f"(?:{anchors})", *(f"{group}?" for group in _groups(pattern.source))]
    if len(parts) == 1 and _is_literal(pattern.source):
        return None
    try:
        looser = replace(pattern, source=compiled(".*?".join(parts)).pattern)
    except regex.error:  # a group that refers to another one
        return None
    return replace(signature, patterns=tuple(looser if p is pattern else p for p in signature.patterns))


def survives(signature: Signature) -> bool:
    """True when the spoilt signature's own examples do not notice."""
    return not any(law.examples_of(signature, Matcher(Library({signature.id: signature}, {}))))


def _groups(source: str) -> Iterator[str]:
    """The outermost named groups of a regex, as text."""
    waiting: list[Node] = [parse(source)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Group) and source.startswith("(?P<", node.start):
            yield source[node.start : node.end]
        else:
            waiting = [*children(node), *waiting]


def _is_literal(source: str) -> bool:
    """True for alternatives of plain text, which are anchors themselves as a rule."""
    return not any(char in regex.sub(r"\\[^\w]", "", source) for char in ".*+?[]{}\\")
