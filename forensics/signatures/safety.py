"""Which regexes a pattern file may hold.

A regex must be readable by `regex_parser` (no possessive or atomic parts, no unlimited look-behind …), and no
repetition may read one text in exponentially many ways: `(a+)+`, `(\\w+ ?)*`, `(a|a)*`. The second rule is decided on
the position automaton of the repetition (Glushkov's construction): a repetition explodes exactly when two different
paths lead from one position back to it over the same text. Counted repetitions are taken as unlimited ones, unless
what they repeat is rigid (`(?:[0-9a-f]{4}:){3}`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from .regex_parser import RefusedError, parse
from .regex_tree import Assertion, Atom, Choice, Group, Node, Reference, Repeat, Sequence, children, walk

MAX_CHARS = 4000
"""Longest regex."""
MAX_POSITIONS = 150
"""Most characters and classes inside one repetition."""
_EXPANDED = 64
"""Up to this count `x{n}` with a rigid `x` is taken as it stands; above it as a repetition without limit."""
_HINT = "let every round begin or end with something that the rest of the round cannot read, or drop one repetition"


def check(text: str) -> Choice:
    """The tree of a regex that is safe to run on hostile text. Raises `RefusedError` with position and reason."""
    if len(text) > MAX_CHARS:
        raise RefusedError(MAX_CHARS, f"is longer than {MAX_CHARS} characters", "match the shortest stable core")
    tree = parse(text)
    for repeat in _outermost(tree):
        automaton = _Automaton()
        automaton.read(repeat)
        if len(automaton.chars) > MAX_POSITIONS:
            raise RefusedError(repeat.start, "is too large for a repetition", "repeat less")
        if automaton.explodes():
            shown = text[repeat.start : repeat.end]
            shown = shown if len(shown) <= 40 else shown[:39] + "…"
            raise RefusedError(repeat.start, f"nested repetition: {shown} can read one text in too many ways", _HINT)
    return tree


def _outermost(node: Node) -> Iterable[Repeat]:
    """Repetitions that can go round and are no plain run of one class, and stand in no other such repetition."""
    if isinstance(node, Repeat) and node.most != 1 and not isinstance(node.item, Atom | Reference):
        yield node
        return
    for child in children(node):
        yield from _outermost(child)


def _is_rigid(node: Node) -> bool:
    """True when no part of it is repeated a variable number of times."""
    return not any(isinstance(part, Repeat) and part.least != part.most for part in walk(node))


@dataclass(frozen=True, slots=True)
class _Part:
    """How a part of the regex joins with its neighbours."""

    nullable: bool
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


@dataclass(slots=True)
class _Automaton:
    """Positions of a regex, and how often one may follow another."""

    chars: list[frozenset[str]] = field(default_factory=list)
    steps: Counter[tuple[int, int]] = field(default_factory=Counter)

    def read(self, node: Node) -> _Part:
        """Add the positions of a part."""
        if len(self.chars) > MAX_POSITIONS or isinstance(node, Assertion):
            return _Part(True)
        if isinstance(node, Atom):
            self.chars.append(node.chars)
            return _Part(False, (len(self.chars) - 1,), (len(self.chars) - 1,))
        if isinstance(node, Group):
            return self.read(node.body)
        if isinstance(node, Reference):
            return self.read(node.group)
        if isinstance(node, Repeat):
            return self._repeat(node)
        if isinstance(node, Choice):
            parts = [self.read(branch) for branch in node.branches]
            nullable = any(part.nullable for part in parts)
            return _Part(nullable, _joined(p.first for p in parts), _joined(p.last for p in parts))
        assert isinstance(node, Sequence)
        whole = _Part(True)
        for item in node.items:
            whole = self._then(whole, self.read(item))
        return whole

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        return _Part(
            left.nullable and right.nullable,
            left.first + right.first if left.nullable else left.first,
            right.last + left.last if right.nullable else right.last,
        )

    def _repeat(self, node: Repeat) -> _Part:
        if node.most == 0:
            return _Part(True)
        if node.least == node.most and node.least <= _EXPANDED and _is_rigid(node.item):
            whole = _Part(True)
            for _ in range(node.least):
                whole = self._then(whole, self.read(node.item))
            return whole
        part = self.read(node.item)
        if node.most != 1:
            self._connect(part.last, part.first)
        return _Part(part.nullable or node.least == 0, part.first, part.last)

    def _connect(self, last: tuple[int, ...], first: tuple[int, ...]) -> None:
        self.steps.update((a, b) for a in last for b in first)

    def explodes(self) -> bool:
        """True when two different paths lead from one position back to it over the same text."""
        follow: dict[int, list[int]] = {}
        for a, b in self.steps:
            follow.setdefault(a, []).append(b)
        if any(times > 1 and a in _reachable(b, follow) for (a, b), times in self.steps.items()):
            return True
        pairs = self._pairs(follow)
        back: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for pair, nexts in pairs.items():
            for other in nexts:
                back.setdefault(other, []).append(pair)
        for q in follow:
            there, here = _reachable((q, q), pairs), _reachable((q, q), back)
            if any(a != b for a, b in there & here):
                return True
        return False

    def _pairs(self, follow: dict[int, list[int]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Steps that two readers can take over one character, from where both stand together."""
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        waiting = [(q, q) for q in follow]
        while waiting:
            pair = waiting.pop()
            if pair in pairs:
                continue
            pairs[pair] = [
                (a, b) for a in follow.get(pair[0], ()) for b in follow.get(pair[1], ())
                if not self.chars[a].isdisjoint(self.chars[b])
            ]  # fmt: skip
            waiting += pairs[pair]
        return pairs


def _joined(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(position for part in parts for position in part)


_T = TypeVar("_T", bound=Hashable)


def _reachable(start: _T, follow: Mapping[_T, Iterable[_T]]) -> set[_T]:
    """All that can be reached in any number of steps, the start included."""
    found, waiting = {start}, [start]
    while waiting:
        for other in follow.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
