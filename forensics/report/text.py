"""Texts of a report in both languages. They live in `templates/texts.<language>.toml`; this module only fills them."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

import regex

from .. import resources
from ..diagnosis.model import Decoy, Diagnosis, Gap
from ..model import Finding

_CONTROL = regex.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")


@cache
def texts(language: str) -> Mapping[str, Any]:
    """All fixed texts of a language."""
    path = resources.templates() / f"texts.{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def printable(value: str, limit: int) -> str:
    """One line without control, zero-width and bidi characters; cut at `limit` characters."""
    line = _CONTROL.sub("\ufffd", value.replace("\t", " ").replace("\r", " ").replace("\n", " ⏎ ")).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


class _Blank(dict[str, Any]):
    """Says which placeholders were unknown."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.missing: set[str] = set()

    def __missing__(self, key: str) -> str:
        self.missing.add(key)
        return "?"


def fill(template: str, values: Mapping[str, Any]) -> str | None:
    """A text with its `{placeholders}` filled; none when one of them is unknown."""
    shown = _Blank({name: _shown(value) for name, value in values.items() if value is not None})
    try:
        text = string.Formatter().vformat(template, (), shown)
    except (ValueError, IndexError, KeyError, AttributeError):
        return template  # braces that are no placeholders, for instance in a command
    return None if shown.missing else text


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def headline(diagnosis: Diagnosis, language: str) -> str:
    """What happened, in one sentence."""
    return diagnosis.verdict.cause.title[language]


def derived_title(signature: str, language: str) -> str:
    return str(texts(language)["derived"][signature.removeprefix("derived.")]["title"])


def derived_sentence(finding: Finding, language: str) -> str:
    """The arithmetic of a derived finding in words; its title when a number is missing."""
    entry = texts(language)["derived"][finding.signature.removeprefix("derived.")]
    base: dict[str, Any] = {}
    for ground in finding.rests_on:
        base.update(ground.fields)
    return fill(entry.get("because", entry["title"]), {**base, **finding.fields}) or str(entry["title"])


def decoy(item: Decoy, language: str) -> str:
    template = str(texts(language)["decoy"][item.reason])
    return fill(template, {**item.finding.fields, **item.details}) or template


def gap(item: Gap, language: str) -> str:
    template = str(texts(language)["gap"][item.key])
    return fill(template, item.details) or template
