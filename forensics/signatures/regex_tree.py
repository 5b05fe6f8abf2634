"""The structure of a regex, for those who have to reason about it: the safety rules, and `patterns match`.

Reads the dialect that pattern files may use: the usual operators of the `regex` module (version 1, DOTALL), without
what the library does not allow. Constructs that are not allowed are refused here, with their position; the rules are
written down in `patterns/README.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

FLAGS = regex.VERSION1 | regex.DOTALL
"""How every pattern of the library is compiled."""

ALPHABET = "".join(map(chr, range(127))) + "\u00a0éßжЖ中１\u2028，"
"""Stands for all characters when two atoms are asked whether they have one in common."""


class RefusedError(Exception):
    """A construct that pattern files may not use."""

    def __init__(self, position: int, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a regex; `start` and `end` are its place in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Atom(Node):
    """Reads exactly one character."""

    chars: frozenset[str]
    """Those of `ALPHABET` that it reads."""


@dataclass(frozen=True, slots=True)
class Assertion(Node):
    """Reads nothing: `^`, `\\b`, look-around (with a body)."""

    body: Choice | None = None


@dataclass(frozen=True, slots=True)
class Reference(Node):
    """`(?P=name)`: the text of a group again."""

    name: str


@dataclass(frozen=True, slots=True)
class Group(Node):
    name: str
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


def parse(text: str) -> Choice:
    """The tree of a regex that `regex.compile` accepts. Raises `RefusedError` for a construct that is not allowed."""
    return _Parser(text).whole()


@lru_cache(maxsize=4096)
def _chars(atom: str, ignore_case: bool) -> frozenset[str]:
    compiled = regex.compile(atom, FLAGS | (regex.IGNORECASE if ignore_case else 0))
    return frozenset(char for char in ALPHABET if compiled.fullmatch(char))


_COUNT = regex.compile(r"\{(?P<least>\d*)(?P<comma>,(?P<most>\d*))?\}")
_GROUP_HEADS = (
    ("(?P<", "group"), ("(?<=", "behind"), ("(?<!", "not-behind"), ("(?P=", "reference"), ("(?:", "plain"),
    ("(?=", "ahead"), ("(?!", "ahead"), ("(?#", "comment"),
)  # fmt: skip
_FLAG_GROUP = regex.compile(r"\(\?(?P<on>[a-zA-Z0-9]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)])")
_REFUSED = {
    "(?>": ("atomic groups are not allowed", "use an ordinary group (?:…); matches have a time limit anyway"),
    "(?|": ("branch reset groups are not allowed", "give every branch a pattern of its own"),
    "(?(": ("conditional groups are not allowed", "write two [[patterns]] instead"),
    "(*": ("backtracking verbs are not allowed", "state what must not follow with (?!…)"),
}
_ESCAPED_ATOMS = frozenset("dDwWsSntrfvaxuUpPN0")
_ESCAPED_ASSERTIONS = frozenset("bBAZmM")
_ESCAPE = regex.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[pPN]\{[^}]*\}|0[0-7]{0,2}|.)", FLAGS)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ignore_case = False
        self.groups: dict[str, Choice] = {}

    def whole(self) -> Choice:
        tree = self.choice()
        if self.at < len(self.text):  # an unbalanced `)` does not compile; this is for safety only
            raise RefusedError(self.at, "the structure of the regex is not understood", "write it more simply")
        return tree

    def choice(self) -> Choice:
        start, case = self.at, self.ignore_case
        branches = [self.sequence()]
        while self.text.startswith("|", self.at):
            self.at += 1
            branches.append(self.sequence())
        self.ignore_case = case
        return Choice(start, self.at, tuple(branches))

    def sequence(self) -> Sequence:
        start = self.at
        items: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            item = self.element()
            if item is not None:
                items.append(self.repeated(item))
        return Sequence(start, self.at, tuple(items))

    def element(self) -> Node | None:
        start, char = self.at, self.text[self.at]
        if char == "(":
            return self.group()
        if char == "[":
            return self.atom(start, _end_of_class(self.text, start))
        if char == "\\":
            return self.escape()
        self.at += 1
        if char in "^$":
            return Assertion(start, self.at)
        return self.atom(start, self.at)

    def atom(self, start: int, end: int) -> Atom:
        self.at = end
        return Atom(start, end, _chars(self.text[start:end], self.ignore_case))

    def escape(self) -> Node:
        start, kind = self.at, self.text[self.at + 1]
        if kind in "123456789" or kind == "g":
            raise RefusedError(start, "back-references by number are not allowed", "name the group: (?P=name)")
        if kind in _ESCAPED_ASSERTIONS:
            self.at += 2
            return Assertion(start, self.at)
        if kind.isalnum() and kind not in _ESCAPED_ATOMS:
            raise RefusedError(start, f"\\{kind} is not allowed", "use classes such as [A-Za-z] and \\d, \\w, \\s, \\b")
        found = _ESCAPE.match(self.text, start)
        return self.atom(start, found.end() if found else start + 2)

    def group(self) -> Node | None:
        start = self.at
        for head, (reason, hint) in _REFUSED.items():
            if self.text.startswith(head, start):
                raise RefusedError(start, reason, hint)
        kind = next((kind for head, kind in _GROUP_HEADS if self.text.startswith(head, start)), "")
        if kind == "comment":
            self.at = self.text.index(")", start) + 1
            return None
        if kind == "reference":
            return self.reference()
        if kind:
            return self.known_group(start, kind)
        if self.text.startswith("(?", start):
            return self.flags(start)
        self.at = start + 1
        body = self.choice()
        return Group(start, self.closed(), "", body)

    def known_group(self, start: int, kind: str) -> Node:
        name = ""
        if kind == "group":
            name = self.text[start + 4 : self.text.index(">", start)]
            self.at = self.text.index(">", start) + 1
        else:
            self.at = start + (4 if kind.endswith("behind") else 3)
        body = self.choice()
        if kind == "group":
            self.groups[name] = body
        if kind == "behind" and start == 0:
            raise RefusedError(start, "a look-behind at the start is not allowed",
                               "write it as ordinary text: `ab`, not `(?<=a)b`")  # fmt: skip
        if kind.endswith("behind") and reach(body) is None:
            raise RefusedError(start, "a look-behind must have a bounded reach",
                               "replace `*` and `+` inside it by a count such as {0,80}")  # fmt: skip
        if kind in ("group", "plain"):
            return Group(start, self.closed(), name, body)
        return Assertion(start, self.closed(), body)

    def flags(self, start: int) -> Node | None:
        found = _FLAG_GROUP.match(self.text, start)
        if not found or set(found["on"] + (found["off"] or "")) - set("is"):
            raise RefusedError(start, "this (?…) construct is not allowed",
                               "allowed: (?:…) (?P<name>…) (?P=name) (?=…) (?!…) (?<!…) (?i:…)")  # fmt: skip
        outer, self.at = self.ignore_case, found.end()
        self.ignore_case = "i" in found["on"] or (outer and "i" not in (found["off"] or ""))
        if found["end"] == ")":
            return None  # holds until the enclosing group ends
        body = self.choice()
        self.ignore_case = outer
        return Group(start, self.closed(), "", body)

    def reference(self) -> Node:
        start = self.at
        self.at = self.text.index(")", start) + 1
        name = self.text[start + 4 : self.at - 1]
        if name not in self.groups or run_of(self.groups[name]) is None:
            raise RefusedError(start, f"the back-reference to {name!r} is not allowed",
                               "it may only repeat a group that is a plain run of one class, as (?P<pid>\\d+)")  # fmt: skip
        return Reference(start, self.at, name)

    def closed(self) -> int:
        """Step over the closing parenthesis."""
        if not self.text.startswith(")", self.at):
            raise RefusedError(self.at, "the structure of the regex is not understood", "write it more simply")
        self.at += 1
        return self.at

    def repeated(self, item: Node) -> Node:
        """The item with the quantifiers that follow it."""
        while self.at < len(self.text):
            start, char = self.at, self.text[self.at]
            count = _COUNT.match(self.text, start) if char == "{" else None
            if char in "*+?":
                least, most = (1 if char == "+" else 0), (1 if char == "?" else None)
                self.at += 1
            elif count and (count["least"] or count["most"]):
                least = int(count["least"] or 0)
                most = least if count["comma"] is None else int(count["most"]) if count["most"] else None
                self.at = count.end()
            elif char == "{" and _FUZZY.match(self.text, start):
                raise RefusedError(start, "fuzzy matching is not allowed", "spell the variants out: (?:GiB|GB)")
            else:
                return item
            if self.text.startswith("+", self.at):
                raise RefusedError(start, f"possessive quantifiers such as {self.text[start : self.at + 1]} are not allowed",
                                   "use an ordinary quantifier; matches have a time limit anyway")  # fmt: skip
            if self.text.startswith("?", self.at):
                self.at += 1
            item = Repeat(item.start, self.at, item, least, most)
        return item


def _end_of_class(text: str, start: int) -> int:
    """Behind the `]` that closes the class at `start`; classes may be nested (`[[a-z]--[aeiou]]`)."""
    depth, at = 1, start + 1
    while depth:
        at += text.startswith("^", at)
        at += text.startswith("]", at)  # a literal bracket when it comes first
        while at < len(text) and text[at] not in "[]":
            at += 2 if text[at] == "\\" else 1
        depth += 1 if text.startswith("[", at) else -1
        at += 1
        if depth and text[at - 1] == "]":
            return _rest_of_class(text, at, depth)
    return at


def reach(node: Node) -> int | None:
    """The most characters that a part can read, none when there is no limit."""
    if isinstance(node, Atom):
        return 1
    if isinstance(node, Group):
        return reach(node.body)
    if isinstance(node, Choice):
        return _total(node.branches, max)
    if isinstance(node, Sequence):
        return _total(node.items, sum)
    if isinstance(node, Repeat):
        inner = reach(node.item)
        return None if inner is None or node.most is None else inner * node.most
    return None if isinstance(node, Reference) else 0
