"""Texts of a report in both languages. They live in `templates/*.<language>.toml`; this module only fills them.

`texts.*.toml` words what the diagnosis found (derived findings, decoys, gaps); `labels.*.toml` holds the headings,
columns and labels of the report. Texts know one kind of markup: backticks around code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import tomli

from .. import resources
from ..diagnosis.model import Confidence, Decoy, Diagnosis, Gap, Hypothesis
from ..model import Finding
from ..regexes import lazy_regex

LANGUAGES = ("en", "zh")

_COLOUR = lazy_regex(r"\x1b\[[0-9;:]*m")
_UNPRINTABLE = lazy_regex(r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]")
_PLACEHOLDER = lazy_regex(r"\{([a-z][a-z0-9_]*)\}")
_SIZE = lazy_regex(r"\{([a-z][a-z0-9_]*_(kib|mib|gib))\} (?:K|M|G)iB")
_UNIT_KIB = {"kib": 1.0, "mib": 1024.0, "gib": 1024.0**2}


@cache
def texts(language: str) -> Mapping[str, Any]:
    """All fixed texts of a language: sections of both files in one mapping."""
    found: dict[str, Any] = {}
    for name in ("labels", "texts"):
        path = resources.templates() / f"{name}.{language}.toml"
        found |= tomli.loads(path.read_text(encoding="utf-8"))
    return found


def printable(value: str, limit: int = 0) -> str:
    """One line that no terminal, editor or browser acts on; cut at `limit` characters (0: not at all).

    Colours vanish; every other control, escape, zero-width or bidi character becomes U+FFFD and stays visible.
    """
    line = _COLOUR.sub("", value) if "\x1b" in value else value
    line = line.replace("\r\n", "\n").replace("\t", " ").replace("\r", " ").strip().replace("\n", " ⏎ ")
    if not line.isascii() or not line.isprintable():
        line = _UNPRINTABLE.sub("\ufffd", line)
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


def fill(template: str, values: Mapping[str, Any]) -> str | None:
    """A text with its `{placeholders}` filled; none when one of them is unknown. Other braces stay as they are.

    `{x_kib} KiB` (also MiB, GiB) is shown in the unit that reads best.
    """
    known = {name: value for name, value in values.items() if value is not None}
    if any(found[1] not in known for found in _PLACEHOLDER.finditer(template)):
        return None
    sized = _SIZE.sub(lambda m: _sized(known[m[1]], m[2]) or m[0], template)
    return _PLACEHOLDER.sub(lambda m: _shown(known[m[1]]), sized)


def _sized(value: Any, unit: str) -> str | None:
    """In the unit that reads best; a shortfall stays in the unit in which the log prints it."""
    if not isinstance(value, int | float):
        return None
    return size(float(value) * _UNIT_KIB[unit]) if value >= 0 else f"{float(value):.4g} {unit[0].upper()}iB"


def size(kib: float) -> str:
    """`67108864` → `64 GiB`: four digits in the largest unit that gives at least one."""
    amount, unit = abs(kib), "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    shown = f"{amount:.0f}" if amount >= 1000 else f"{amount:.4g}"
    return f"{'-' if kib < 0 else ''}{shown} {unit}"


def _shown(value: Any) -> str:
    """A value inside a sentence; it cannot open or close the sentence's code spans."""
    if isinstance(value, float):
        return f"{value:.{2 if abs(value) >= 1 else 3}f}".rstrip("0").rstrip(".")  # a utilisation of 0.995 is not 1
    return printable(str(value), 200).replace("`", "'")


def source_title(title: str, language: str) -> str:
    """A format in words; the part in brackets names a tool's own option and stays."""
    known = texts(language).get("source_title", {})
    name, bracket, shape = title.partition(" (")
    return known.get(title) or (known[name] + bracket + shape if name in known else title)


def headline(diagnosis: Diagnosis, language: str) -> str:
    """What happened, in one sentence."""
    return diagnosis.verdict.cause.title[language]


def confidence(hypothesis: Hypothesis, language: str) -> str:
    """How sure, and why not more."""
    t = texts(language)
    doubt = hypothesis.doubt if hypothesis.confidence is Confidence.POSSIBLE else ""
    return str(t["doubt"][doubt] if doubt else t["confidence"][hypothesis.confidence.value])


def derived_title(signature: str, language: str) -> str:
    return str(texts(language)["derived"][signature.removeprefix("derived.")]["title"])


def sentence(finding: Finding, language: str) -> str:
    """The arithmetic of a derived finding in words; empty for others, and when a number is missing.

    `also` goes on behind `because` where its own numbers are known.
    """
    if not finding.signature.startswith("derived."):
        return ""
    told = texts(language)["derived"][finding.signature.removeprefix("derived.")]
    values: dict[str, Any] = {}
    for ground in (*finding.rests_on, finding):
        values.update(ground.fields)
    said = fill(told.get("because", ""), values)
    return said + (fill(told.get("also", ""), values) or "") if said else ""


def decoy(item: Decoy, language: str) -> str:
    template = str(texts(language)["decoy"][item.reason])
    return fill(template, {**item.finding.fields, **item.details}) or template


def gap(item: Gap, language: str) -> str:
    template = str(texts(language)["gap"][item.key])
    return fill(template, item.details) or template
