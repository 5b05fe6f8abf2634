"""Keep secrets and user texts out of every output.

The rules are data (`templates/redaction.toml`): tokens, keys, credentials, cookies, e-mail addresses, and the prompts
and request bodies that engines log. Each rule proves itself on its own examples before it is used; a rule that fails
there, or runs out of time on a text, raises: a report with a silent hole is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import regex
import tomli

from .. import resources
from ..errors import ForensicsError

TIME_LIMIT_S = 5.0


class RedactionError(ForensicsError):
    """A redaction rule does not work; nothing may be written."""


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    hints: tuple[str, ...]
    """Lower-case literals, one of which a text must hold."""
    pattern: regex.Pattern[str]
    replacement: str


@dataclass(slots=True)
class Tally:
    """What was taken out: per rule the distinct values and the number of places."""

    values: dict[str, set[str]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, rule: str, found: list[str], places: int = 1) -> None:
        self.values.setdefault(rule, set()).update(found)
        self.places[rule] = self.places.get(rule, 0) + places * len(found)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"rule": rule, "values": len(self.values[rule]), "places": places}
            for rule, places in sorted(self.places.items())
        ]


@cache
def _data() -> Mapping[str, Any]:
    path = resources.templates() / "redaction.toml"
    return tomli.loads(path.read_text(encoding="utf-8"))


@cache
def rules() -> tuple[Rule, ...]:
    """The rules, proved on their examples. Raises `RedactionError`."""
    try:
        tables = _data()["rule"]
        found = tuple(
            Rule(
                t["id"], tuple(t["hints"]), regex.compile(t["regex"], regex.DOTALL | regex.VERSION0), t["replace"]
            )
            for t in tables
        )
    except (OSError, KeyError, tomli.TOMLDecodeError, regex.error) as error:
        raise RedactionError(f"redaction rules cannot be read ({error}); nothing was written") from None
    for rule, table in zip(found, tables, strict=True):
        _prove(rule, table)
    return found


def withheld() -> str:
    """What stands in place of a text that is a user's as a whole."""
    return str(_data()["withheld"])


def _prove(rule: Rule, table: Mapping[str, Any]) -> None:
    for example in table["examples"]:
        secret = example.partition("‹")[2].partition("›")[0]
        shown, _ = apply(rule, example.replace("‹", "").replace("›", ""))
        if not secret or secret in shown:
            raise RedactionError(f"redaction rule {rule.id!r} misses its own example; nothing was written")
    for text in table.get("keeps", ()):
        if apply(rule, text)[0] != text:
            raise RedactionError(f"redaction rule {rule.id!r} changes harmless text; nothing was written")


def apply(rule: Rule, value: str) -> tuple[str, list[str]]:
    """The text after one rule, and what it took out."""
    lower = value.lower()
    if not any(hint in lower for hint in rule.hints):
        return value, []
    taken: list[str] = []

    def take(match: regex.Match[str]) -> str:
        taken.append(match[0])
        return match.expand(rule.replacement)

    try:
        return rule.pattern.sub(take, value, timeout=TIME_LIMIT_S), taken
    except TimeoutError:
        raise RedactionError(
            f"redaction rule {rule.id!r} ran out of time on a text of {len(value)} characters; nothing was written "
            "(--no-redact writes the report without redaction)"
        ) from None


def redact(value: str) -> tuple[str, dict[str, list[str]]]:
    """One text without secrets, and what each rule took out of it."""
    taken: dict[str, list[str]] = {}
    lower = value.lower()
    for rule in rules():
        for hint in rule.hints:
            if hint in lower:
                value, found = apply(rule, value)
                if found:
                    taken[rule.id], lower = found, value.lower()
                break
    return value, taken
