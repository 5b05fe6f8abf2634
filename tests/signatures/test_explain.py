"""Why a signature fires, or does not."""

from __future__ import annotations

import pytest

from forensics.model import Event, Locator
from forensics.pipeline import load_library
from forensics.signatures import Matcher, law
from forensics.signatures import explain as explaining
from forensics.signatures.explain import attempt, explain, fragments
from forensics.signatures.model import Pattern

LIBRARY = load_library()


def pattern(text: str, **types: str) -> Pattern:
    return Pattern("core", text, types)


@pytest.mark.parametrize(
    ("source", "text", "regex_part", "text_part"),
    [
        (r"used (?P<n>\d+) of (?P<m>\d+) pages", "acme used 3 of many pages", r"used (?P<n>\d+) of ", "used 3 of "),
        (r"used (?P<n>\d+) pages", "acme used some pages", "used ", "used "),
        (r"lost|used (?:up )?(?:all|no) pages$", "it used up all pages now", r"lost|used (?:up )?(?:all|no) pages", "used up all pages"),
        (r"a(?:bc(?:de))f", "abcdx", r"a(?:bc(?:d", "abcd"),
        (r"(?i:ACME) down (?!soon)\w+ x", "acme down now y", r"(?i:ACME) down (?!soon)\w+ ", "acme down now "),
        (r"zzz", "abc", "", ""),
    ],
    ids=["value", "group", "branch", "nested", "flags", "nothing"],
)
def test_where_a_regex_stops(source: str, text: str, regex_part: str, text_part: str) -> None:
    """The longest part of the regex that still matches, and what it matches."""
    tried = attempt(pattern(source), text)
    assert not tried.matched
    assert source[: tried.regex_stop] == regex_part
    assert text[tried.text_start : tried.text_stop] == text_part


def test_a_captured_word_is_no_number() -> None:
    """A regex that matches is not enough: the values must have their types."""
    assert attempt(pattern(r"size (?P<n>\S+)", n="int"), "size big").reason == "a captured value is not of its type"


def test_a_slow_regex_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt has the matcher's time limit."""
    monkeypatch.setattr(explaining, "TIME_LIMIT_S", 0.01)
    assert "ran out of time" in attempt(pattern(r"(a|aa)+$"), "a" * 5000 + "b").reason


def event(text: str, channel: str = "engine", level: str = "ERROR", kind: str = "log") -> Event:
    return Event(Locator("x.log", 1, 1), kind, channel, text, level=level)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


def test_hit() -> None:
    """Anchor, channel, pattern: everything fits."""
    told = explain(LIBRARY.signatures["torch.oom"], event(OOM))
    assert told.hit
    assert told.anchor
    assert not told.quoted


def test_wrong_channel() -> None:
    """The pattern matches, but the kernel does not print torch's errors."""
    told = explain(LIBRARY.signatures["torch.oom"], event(OOM, "kernel"))
    assert (told.hit, told.listens, bool(told.matched)) == (False, False, True)


def test_wrong_kind() -> None:
    """A signature for container states does not fire on a log line."""
    told = explain(LIBRARY.signatures["k8s.oomkilled"], event("container vllm terminated: reason=OOMKilled exit_code=137", "k8s"))
    assert not told.kind_fits
    assert not told.hit


def test_user_text_and_talk() -> None:
    """Prompts are no evidence, and neither is a cause told at INFO within a line."""
    prompt = explain(LIBRARY.signatures["torch.oom"], event(f"Received request c-1: prompt: '{OOM}'", level="INFO"))
    talk = explain(LIBRARY.signatures["torch.oom"], event(f"last time we saw {OOM}", level="INFO"))
    assert "a user sent" in prompt.quoted
    assert "talk about an error" in talk.quoted


def test_half_an_anchor_is_near() -> None:
    """A reworded message is shown, with what is left of the anchor."""
    told = explain(LIBRARY.signatures["vllm.kv_max_len"], event("64 GiB kv cache is needed, which exceeds 4 GiB"))
    assert not told.anchor
    assert told.near == "KV cache is needed, which"
    assert list(fragments("one two three")) == ["one two three", "one two", "two three"]


def test_explanation_agrees_with_the_matcher() -> None:
    """On all examples of every seventh signature, for the owner and for a stranger."""
    matcher = Matcher(LIBRARY)
    signatures = list(LIBRARY.signatures.values())
    for i in range(0, len(signatures), 7):
        for example in signatures[i].examples:
            seen = law.event_of(example, signatures[i])
            hits = {hit.signature.id: hit for hit in matcher.hits(seen)}
            for other in (signatures[i], signatures[i - 1]):
                told = explain(other, seen)
                assert told.hit == (other.id in hits), (other.id, example.text)
                assert not told.hit or bool(told.quoted) == hits[other.id].quoted
