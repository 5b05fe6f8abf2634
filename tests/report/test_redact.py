"""Rules that keep secrets and user texts inside."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import regex

from forensics import resources
from forensics.report import redact
from forensics.report.gate import Gate
from forensics.report.redact import RedactionError, Rule

TABLES = tomllib.loads((resources.templates() / "redaction.toml").read_text(encoding="utf-8"))["rule"]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t["id"])
def test_rule_hides_its_examples_whole(table: dict[str, Any]) -> None:
    """All rules together leave nothing of the marked part of an example, not even a piece of eight characters."""
    for example in table["examples"]:
        secret = example.partition("‹")[2].partition("›")[0]
        shown, taken = redact.redact(example.replace("‹", "").replace("›", ""))
        assert taken
        around = example.replace(f"‹{secret}›", "")
        pieces = {secret[i : i + 8] for i in range(max(1, len(secret) - 7))}
        assert not [piece for piece in pieces if piece in shown and piece not in around], shown


@pytest.mark.parametrize("table", [t for t in TABLES if t.get("keeps")], ids=lambda t: t["id"])
def test_rules_leave_harmless_text_alone(table: dict[str, Any]) -> None:
    """What looks alike and is no secret stays, under all rules together."""
    for text in table["keeps"]:
        assert redact.redact(text)[0] == text


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


@pytest.mark.parametrize(
    "path",
    [*sorted((resources.patterns() / "causes").glob("*.toml")), *sorted(resources.templates().glob("[lt]*.toml"))],
    ids=lambda p: p.name,
)
@pytest.mark.parametrize("mode", ["default", "strict"])
def test_our_own_texts_pass_unchanged(path: Any, mode: str) -> None:
    """No rule mistakes a sentence or a command of the library for a secret, or for a name."""
    for text in strings(tomllib.loads(path.read_text(encoding="utf-8"))):
        flat = " ".join(text.split())
        assert Gate(mode).admit({"text": flat})["text"] == flat


def test_redacting_twice_changes_nothing() -> None:
    """What stands in for a secret is no secret."""
    once = redact.redact("Authorization: Bearer abc123def456, password=hunter22, jane@example.org, prompt: 'x'")[0]
    assert redact.redact(once)[0] == once


def test_a_rule_that_runs_out_of_time_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather no report than one with a hole: the error names the rule and the way out."""
    slow = Rule("slow", ("a",), regex.compile(r"(a|aa|a?)+$"), "x")
    monkeypatch.setattr(redact, "TIME_LIMIT_S", 0.05)
    with pytest.raises(RedactionError, match=r"'slow' ran out of time.*--no-redact"):
        redact.apply(slow, "a" * 60 + "b")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"examples": ["key ‹s3cret›"]}, "misses its own example"),
        ({"examples": [], "keeps": ["key x"]}, "changes harmless text"),
    ],
)
def test_a_rule_that_fails_its_proof_is_loud(table: dict[str, Any], said: str) -> None:
    """A broken rule stops the program before anything is written."""
    rule = Rule("broken", ("key",), regex.compile(r"key(?= x)"), "")
    with pytest.raises(RedactionError, match=said):
        redact._prove(rule, table)


def test_unreadable_rules_are_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rules, no report."""
    redact.rules.cache_clear()
    monkeypatch.setattr(redact, "_data", lambda: {"rule": [{"id": "x"}]})
    try:
        with pytest.raises(RedactionError, match="cannot be read"):
            redact.rules()
    finally:
        monkeypatch.undo()
        redact.rules.cache_clear()


def test_names_of_fields_say_what_a_value_is() -> None:
    """A bare value under a telling key is hidden; numbers and our own keys stay."""
    admitted = Gate().admit({"fields": {"api_key": "k1-8f2c", "prompt": "tell me", "kv_tokens": 5}, "title": "prompt"})
    assert admitted["fields"] == {"api_key": "[redacted]", "prompt": "[prompt]", "kv_tokens": 5}
    assert admitted["title"] == "prompt"


def test_the_tally_counts_values_and_places() -> None:
    """One secret in three places is one value, three places."""
    line = "token hf_AbCdEfGhIjKlMn1234 refused"
    admitted = Gate().admit({"a": line, "b": [line, line], "c": "mail to a@b.example"})
    assert admitted["redactions"]["rules"] == [
        {"rule": "e-mail", "values": 1, "places": 1},
        {"rule": "token", "values": 1, "places": 3},
    ]


def test_text_of_users_is_withheld_as_a_whole() -> None:
    """A quote marked as user text does not pass, whatever it looks like; unredacted it does."""
    row = {"quote": "my salary is low", "line": 3, "user_text": True}
    assert Gate().admit({"rows": [row]})["rows"][0]["quote"] == "[user text]"
    assert Gate("off").admit({"rows": [row]})["rows"][0]["quote"] == "my salary is low"


def test_a_cut_leaves_no_half_secret() -> None:
    """A text is redacted before it is cut, and its last word goes when it is too long to look at."""
    token = "hf_" + "Ab1" * 11
    quote = Gate().admit({"quote": "x " * 199 + token})["quote"]
    assert "hf_" not in quote
    long = Gate().admit({"text": "y" * 7990 + " " + token})["text"]
    assert "hf_" not in long
    assert long.endswith("…")
