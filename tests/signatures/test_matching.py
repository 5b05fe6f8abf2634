"""The matcher: anchors first, a time limit, and no prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import Event, Locator
from forensics.pipeline import load_library
from forensics.signatures import Library, Matcher, Pattern, matching
from forensics.signatures.fields import CONVERTERS, size_bytes
from forensics.signatures.literals import Literals

LIBRARY = load_library()
BASE = LIBRARY.signatures["torch.oom"]


def library(source: str, anchor: str = "a", **types: str) -> Library:
    pattern = Pattern("core", source, types)
    return Library({"x.y": replace(BASE, id="x.y", anchors=(anchor,), patterns=(pattern,))}, {})


def event(text: str, line: int = 1, channel: str = "engine", kind: str = "log") -> Event:
    return Event(Locator("engine.log", line, line), kind, channel, text, level="ERROR")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TIME_LIMIT_S", 0.01)


@pytest.mark.usefixtures("impatient")
def test_an_exploding_pattern_is_cut_and_named() -> None:
    """The line is skipped, the analysis goes on, one diagnostic says so."""
    matcher = Matcher(library(r"(a|aa)+$"))
    assert list(matcher.hits(event("a" * 5000 + "b"))) == []
    assert list(matcher.hits(event("a" * 5000 + "b", 2))) == []
    (diagnostic,) = matcher.diagnostics
    assert diagnostic.message == "signature x.y (pattern core) ran out of time on this line and was skipped there"
    assert (diagnostic.source, diagnostic.line) == ("engine.log", 1)
    assert [hit.signature.id for hit in matcher.hits(event("aaa"))] == ["x.y"]


@pytest.mark.usefixtures("impatient")
def test_a_signature_that_is_always_slow_is_switched_off() -> None:
    """A flood of hostile lines costs a bounded time."""
    matcher = Matcher(library(r"(a|aa)+$"))
    for line in range(matching.SLOW_LINES + 5):
        assert list(matcher.hits(event("a" * 5000 + "b", line))) == []
    assert [d.line for d in matcher.diagnostics] == [0, matching.SLOW_LINES - 1]
    assert "switched off" in matcher.diagnostics[1].message
    assert list(matcher.hits(event("aaa"))) == []


def test_no_anchor_no_match() -> None:
    """A pattern is tried only where an anchor stands, and only in the first part of a message."""
    assert list(Matcher(library("bcd", "zzz")).hits(event("bcd"))) == []
    long = "x" * matching.MATCH_CHARS + "bcd"
    assert list(Matcher(library("bcd", "bcd")).hits(event(long))) == []


def test_values_that_are_no_numbers() -> None:
    """A size with an unknown unit is another message, not an error."""
    matcher = Matcher(library(r"size (?P<size_gib>\S+ \S+)", "size", size_gib="gib"))
    assert [hit.fields for hit in matcher.hits(event("size 2.5 GiB"))] == [{"size_gib": 2.5}]
    assert list(matcher.hits(event("size two furlongs"))) == []


def test_pasted_text_has_all_signatures() -> None:
    """Channel `plain`: no header says who speaks, so everybody may."""
    matcher = Matcher(LIBRARY)
    text = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=VLLM::EngineCor, GPU has fallen off the bus."
    assert "nvidia.xid_fallen_off_bus" in {hit.signature.id for hit in matcher.hits(event(text, channel="plain"))}
    assert not list(matcher.hits(event(text, channel="engine")))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("int", "1,024", 1024), ("hex", "0x1f", 31), ("float", "-1.5", -1.5), ("str", " a ", "a"), ("gib", "2048 MiB", 2.0),
     ("mib", "1 GB", 1024.0), ("kib", "4096 bytes", 4), ("bytes", "14Gi", 14 * 1024**3), ("bytes", "733", 733),
     ("clock", "04:41", 281), ("clock", "1:02:30", 3750)],
)  # fmt: skip
def test_converters(kind: str, text: str, value: object) -> None:
    """Units are binary, whatever they are called."""
    assert CONVERTERS[kind](text) == value


@pytest.mark.parametrize("text", ["", "GiB", "3 furlongs", "1.2.3 GiB"])
def test_no_sizes(text: str) -> None:
    """What is no size raises `ValueError`, which the matcher takes for another message."""
    with pytest.raises(ValueError, match=r"."):
        size_bytes(text)


def test_many_events_are_matched_as_one_by_one() -> None:
    """Looking up the anchors of all messages together changes no hit; half a character in one of them does not either."""
    texts = [example.text for s in LIBRARY.signatures.values() for example in s.examples]
    events = [event(text, line) for line, text in enumerate(texts, 1)]
    for batch in (events, [*events, event("CUDA out of memory. \ud800")], []):
        matcher = Matcher(LIBRARY)
        assert list(matcher.hits_in(batch)) == [(e, hit) for e in batch for hit in matcher.hits(e)]


WORDS = st.text(alphabet="abcde é模", max_size=9)


@given(st.sets(WORDS.filter(bool)), WORDS.flatmap(lambda word: st.lists(WORDS).map(lambda rest: word.join(rest))))
def test_literals_are_found_as_by_looking_for_each(literals: set[str], text: str) -> None:
    """The index finds the literals that stand in a text, each once, and no other."""
    assert sorted(Literals(literals).found(text)) == sorted(literal for literal in literals if literal in text)
