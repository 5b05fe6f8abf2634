"""Which regexes a pattern file may hold: the rules of `patterns/README.md`, one case each."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.pipeline import load_library
from forensics.signatures import safety
from forensics.signatures.regex_parser import FLAGS, RefusedError, parse
from forensics.signatures.regex_tree import Assertion, Choice, reach, walk

REFUSED = {
    r"a++": "possessive", r"a*+b": "possessive", r"a?+": "possessive", r"a{1,3}+": "possessive",
    r"x(?>a)": "atomic", r"(?|a|b)": "branch reset", r"a(*SKIP)b": "verbs",
    r"(?<=a)b": "look-behind at the start", r"x(?<=a+)b": "look-behind without a limit",
    r"x(?<!\w*)b": "look-behind without a limit",
    r"(a)\1": "by number", r"(?P<a>a+b)(?P=a)": "back-reference", r"(?P<a>a)\g<a>": "by number",
    r"(?:a){e<=1}": "fuzzy", r"a\Kb": r"\\K", r"a\X": r"\\X", r"(?R)?a": "not allowed", r"(a)?(?(1)b|c)": "not allowed",
    r"(?x) a": "not allowed", r"[[a-z]--[b]]": "class inside a class",
    r"(a+)+b": "nested repetition", r"(a*)*b": "nested repetition", r"(?:\w+ ?)*$": "nested repetition",
    r"(a|a)*b": "nested repetition", r"(?:a{1,2})*b": "nested repetition", r"(.*,){9}x": "nested repetition",
    r"(?:aa|aaa)*b": "nested repetition", r"(?:\s*\w+\s*)*:": "nested repetition",
    r"(?i:(?:[A-Z]+[a-z]+)*)x": "nested repetition", r"x(?=(a+)+)b": "nested repetition",
    r"(?:(?:a|b)+c?)*d": "nested repetition", "a" * 4001: "longer than",
}  # fmt: skip
ALLOWED = (
    r"(?:a|b)*", r"(\w+\s)*x", r"(?:\S+\s+){3,5}x", r"(?:a{2})*", r"(?:\d+(?:\.\d+)*,)*", r"(?i:[A-Z]+)x", r"(?:[A-Z]+[a-z]+)*",
    r"[]a]+", r"[^]a]+\]", r"\p{Lu}+", r"(?<!\w)a", r"x(?<=a{2})b", r"(?<!not syncing: )Out of memory", r"(?:a?){5}", r"(?:a?)*",
    r"a{,3}", r"a{x}", r"(?:,\s*\w+)*", r"(?:\s*,\s*\w+)*", r"(?P<a>\d+) (?P=a)", r"(?P<a>[0-9a-f]{12,64})/(?P=a)", r"a(?#note)b",
    r"[\[\]]+", r"\x41\u4e2d\n", r"(?:[0-9a-f]{4}:){3}", r"a(?i)b|c", r"(?i:a(?-i:b))",
)  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_refused(text: str) -> None:
    """Refused with a reason, a hint and the place."""
    regex.compile(text, FLAGS)
    with pytest.raises(RefusedError, match=REFUSED[text]) as caught:
        safety.check(text)
    assert 0 <= caught.value.position <= len(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(text: str) -> None:
    """Ordinary regexes pass, also those with harmless nesting."""
    regex.compile(text, FLAGS)
    safety.check(text)


def test_all_patterns_of_the_library_are_safe() -> None:
    """The built-in library is loaded without the check, so the check is here."""
    for signature in load_library().signatures.values():
        for pattern in signature.patterns:
            safety.check(pattern.source)


def test_position_of_a_refusal() -> None:
    """The caret stands under the construct."""
    with pytest.raises(RefusedError) as caught:
        safety.check(r"lost (\d+) of (\w+\s?)+ pages")
    assert caught.value.position == len(r"lost (\d+) of ")


def test_tree_covers_the_text() -> None:
    """Every part knows its place."""
    text = r"^a(?:b|c\d{2})+(?P<x>[^)\]]+)(?=z)$"
    tree = parse(text)
    assert (tree.start, tree.end) == (0, len(text))
    parts = {text[node.start : node.end] for node in walk(tree)}
    assert {"^", "a", r"(?:b|c\d{2})+", r"\d{2}", r"(?P<x>[^)\]]+)", "(?=z)", "$"} <= parts
    assert reach(parse(r"(?:ab|c{3})\b")) == 3
    assert reach(parse("a+")) is None
    assert any(isinstance(node, Assertion) and isinstance(node.body, Choice) for node in walk(tree))


ATOMS = st.sampled_from(["a", "b", "[ab]", r"\w", r"\d", ".", " "])


def _joined(parts: list[str]) -> str:
    return "".join(parts)


REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(_joined),
        st.lists(inner, min_size=2, max_size=2).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(REGEXES)
def test_what_passes_is_not_exponential(text: str) -> None:
    """An accepted repetition does not double its work with every further character."""
    try:
        safety.check(text)
    except RefusedError:
        return
    compiled = regex.compile(text + "#", FLAGS)
    for line in ("a" * 34, "ab" * 17, "a " * 17, "1a" * 17):
        started = time.thread_time()
        try:
            compiled.match(line, timeout=5)
        except TimeoutError:
            pytest.fail(f"{text} explodes on {line!r}")
        assert time.thread_time() - started < 2, text
