"""Read a regex into its structure, and refuse what pattern files may not use.

The dialect is that of the `regex` module (version 1, DOTALL), without what the library does not allow. Refusals carry
their position; the rules are written down in `patterns/README.md`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

import regex

from ..regexes import lazy_regex
from .regex_tree import Assertion, Atom, Choice, Group, Node, Reference, Repeat, Sequence, is_run, reach

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


def parse(text: str) -> Choice:
    """The tree of a regex that `regex.compile` accepts. Raises `RefusedError` for a construct that is not allowed."""
    parser = _Parser(text)
    tree = parser.choice()
    if parser.at < len(text):
        parser.refuse(parser.at, "the structure of the regex is not understood", "write it more simply")
    return tree


@lru_cache(maxsize=4096)
def _chars(atom: str, ignore_case: bool) -> frozenset[str]:
    compiled = regex.compile(atom, FLAGS | (regex.IGNORECASE if ignore_case else 0))
    return frozenset(char for char in ALPHABET if compiled.fullmatch(char))


_COUNT = lazy_regex(r"\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")
_FUZZY = lazy_regex(r"\{[^{}]*[eisd]\s*(?:[<:]|\})")
_ESCAPE = lazy_regex(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[pPN]\{[^}]*\}|0[0-7]{0,2}|.)", FLAGS)
_ESCAPED_ATOMS = frozenset("dDwWsSntrfvaxuUpPN0")
_ESCAPED_ASSERTIONS = frozenset("bBAZmM")
_FLAG_GROUP = lazy_regex(r"\(\?(?P<on>[a-zA-Z0-9]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)])")
_NAMED = lazy_regex(r"\(\?P?<(?P<name>\w+)>")
_REFERENCE = lazy_regex(r"\(\?P=(?P<name>\w+)\)")
_REFUSED = {
    "(?>": ("atomic groups are not allowed", "use an ordinary group (?:…): every match has a time limit anyway"),
    "(?|": ("branch reset groups are not allowed", "write one [[patterns]] table for each branch"),
    "(*": ("backtracking verbs are not allowed", "say what must not follow with (?!…)"),
}
_OTHER = "allowed: (?:…) (?P<name>…) (?P=name) (?=…) (?!…) (?<!…) (?<=…) (?i:…)"


class _Parser:
    """Recursive descent; `at` is the next character to read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._ignore_case = False
        self._groups: dict[str, Choice] = {}

    def refuse(self, position: int, reason: str, hint: str) -> NoReturn:
        raise RefusedError(position, reason, hint)

    def choice(self) -> Choice:
        start, case = self.at, self._ignore_case
        branches = [self._sequence()]
        while self.text.startswith("|", self.at):
            self.at += 1
            branches.append(self._sequence())
        self._ignore_case = case  # `(?i)` holds until its group ends
        return Choice(start, self.at, tuple(branches))

    def _sequence(self) -> Sequence:
        start = self.at
        items: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            item = self._element()
            if item is not None:
                items.append(self._repeated(item))
        return Sequence(start, self.at, tuple(items))

    def _element(self) -> Node | None:
        start, char = self.at, self.text[self.at]
        if char == "(":
            return self._parenthesis()
        if char == "[":
            return self._atom(start, self._end_of_class(start))
        if char == "\\":
            return self._escape()
        if char in "^$":
            self.at += 1
            return Assertion(start, self.at)
        return self._atom(start, start + 1)

    def _atom(self, start: int, end: int) -> Atom:
        self.at = end
        return Atom(start, end, _chars(self.text[start:end], self._ignore_case))

    def _escape(self) -> Node:
        start, kind = self.at, self.text[self.at + 1]
        if kind in "123456789g":
            self.refuse(start, "back-references by number are not allowed", "name the group and write (?P=name)")
        if kind in _ESCAPED_ASSERTIONS:
            self.at += 2
            return Assertion(start, self.at)
        if kind.isalpha() and kind not in _ESCAPED_ATOMS:
            self.refuse(start, f"\\{kind} is not allowed", "use \\d, \\w, \\s, \\b and classes such as [A-Za-z]")
        found = _ESCAPE.match(self.text, start)
        return self._atom(start, found.end() if found else start + 2)

    def _end_of_class(self, start: int) -> int:
        at = start + 1
        at += self.text.startswith("^", at)
        at += self.text.startswith("]", at)  # a literal bracket when it comes first
        while self.text[at] != "]":
            if self.text[at] == "[":
                self.refuse(at, "a class inside a class is not allowed", "escape a literal bracket: \\[")
            at += 2 if self.text[at] == "\\" else 1
        return at + 1

    def _parenthesis(self) -> Node | None:
        start = self.at
        for head, (reason, hint) in _REFUSED.items():
            if self.text.startswith(head, start):
                self.refuse(start, reason, hint)
        if named := _NAMED.match(self.text, start):
            group = self._group(start, named.end())
            self._groups[named["name"]] = group.body
            return group
        if reference := _REFERENCE.match(self.text, start):
            return self._reference(reference)
        for head in ("(?<=", "(?<!", "(?=", "(?!"):
            if self.text.startswith(head, start):
                return self._look_around(start, head)
        if self.text.startswith("(?#", start):
            self.at = self.text.index(")", start) + 1
            return None
        if self.text.startswith("(?", start):
            return self._flags(start)
        return self._group(start, start + 1)

    def _group(self, start: int, inside: int) -> Group:
        self.at = inside
        body = self.choice()
        self._close()
        return Group(start, self.at, body)

    def _look_around(self, start: int, head: str) -> Assertion:
        group = self._group(start, start + len(head))
        if head == "(?<=" and start == 0:
            self.refuse(start, "a look-behind at the start is not allowed",
                        "write it as ordinary text: `ab`, not `(?<=a)b`")  # fmt: skip
        if head.startswith("(?<") and reach(group.body) is None:
            self.refuse(start, "a look-behind without a limit is not allowed",
                        "replace * and + inside it by a count such as {0,80}")  # fmt: skip
        return Assertion(start, self.at, group.body)

    def _reference(self, found: regex.Match[str]) -> Reference:
        body = self._groups.get(found["name"])
        if body is None or not is_run(body):
            self.refuse(found.start(), f"a back-reference to {found['name']!r} is not allowed",
                        "it may only repeat a plain run of one class, such as (?P<pid>\\d+)")  # fmt: skip
        self.at = found.end()
        return Reference(found.start(), found.end(), body)

    def _flags(self, start: int) -> Node | None:
        found = _FLAG_GROUP.match(self.text, start)
        if not found or set(found["on"] + (found["off"] or "")) - set("is"):
            self.refuse(start, f"{self.text[start : start + 4]}… is not allowed", _OTHER)
        outer = self._ignore_case
        self._ignore_case = "i" in found["on"] or (outer and "i" not in (found["off"] or ""))
        if found["end"] == ")":
            self.at = found.end()
            return None
        group = self._group(start, found.end())
        self._ignore_case = outer
        return group

    def _close(self) -> None:
        if not self.text.startswith(")", self.at):
            self.refuse(self.at, "the structure of the regex is not understood", "write it more simply")
        self.at += 1

    def _repeated(self, item: Node) -> Node:
        """The item with the quantifiers that follow it."""
        while self.at < len(self.text):
            start = self.at
            counts = self._quantifier()
            if counts is None:
                return item
            if self.text.startswith("+", self.at):
                shown = self.text[item.start : self.at + 1]
                self.refuse(start, f"possessive quantifiers such as {shown} are not allowed",
                            "leave the second + away: every match has a time limit anyway")  # fmt: skip
            self.at += self.text.startswith("?", self.at)
            item = Repeat(item.start, self.at, item, *counts)
        return item

    def _quantifier(self) -> tuple[int, int | None] | None:
        char = self.text[self.at]
        if char in "*+?":
            self.at += 1
            return (int(char == "+"), 1 if char == "?" else None)
        count = _COUNT.match(self.text, self.at)
        if count and (count["least"] or count["most"]):
            self.at = count.end()
            least = int(count["least"] or 0)
            if not count["comma"]:
                return (least, least)
            return (least, int(count["most"]) if count["most"] else None)
        if _FUZZY.match(self.text, self.at):
            self.refuse(self.at, "fuzzy matching is not allowed", "spell the variants out: (?:GiB|GB)")
        return None
