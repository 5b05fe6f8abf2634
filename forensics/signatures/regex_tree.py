"""The structure of a regex, for those who have to reason about it: the safety rules, and `patterns match`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a regex; `start` and `end` are its place in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Atom(Node):
    """Reads exactly one character."""

    chars: frozenset[str]
    """Those of `regex_parser.ALPHABET` that it reads."""


@dataclass(frozen=True, slots=True)
class Assertion(Node):
    """Reads nothing: `^`, `\\b`, look-around (with a body)."""

    body: Choice | None = None


@dataclass(frozen=True, slots=True)
class Reference(Node):
    """`(?P=name)`: the text of a group again."""

    group: Choice


@dataclass(frozen=True, slots=True)
class Group(Node):
    body: Choice


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    item: Node
    least: int
    most: int | None
    """None: without limit."""


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice(Node):
    branches: tuple[Sequence, ...]


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, from left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node."""
    if isinstance(node, Choice):
        return node.branches
    if isinstance(node, Sequence):
        return node.items
    if isinstance(node, Repeat):
        return (node.item,)
    if isinstance(node, Group) or (isinstance(node, Assertion) and node.body is not None):
        return (node.body,) if node.body is not None else ()
    return ()


def reach(node: Node) -> int | None:
    """The most characters that a part can read, none when there is no limit."""
    if isinstance(node, Atom):
        return 1
    if isinstance(node, Assertion):
        return 0
    if isinstance(node, Reference):
        return None
    inner = [reach(child) for child in children(node)]
    known = [length for length in inner if length is not None]
    if len(known) < len(inner):
        return None
    if isinstance(node, Choice):
        return max(known, default=0)
    if isinstance(node, Repeat):
        return None if node.most is None else known[0] * node.most
    return sum(known)


def is_run(node: Node) -> bool:
    """True for a plain run of one class: `\\d+`, `[0-9a-f]{12,64}`, `\\w`."""
    if isinstance(node, Choice | Sequence):
        parts = children(node)
        return len(parts) == 1 and is_run(parts[0])
    return isinstance(node, Atom) or (isinstance(node, Repeat) and isinstance(node.item, Atom))
