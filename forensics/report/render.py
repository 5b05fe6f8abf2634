"""`Report` → text. Markdown comes from `templates/`, JSON from `Report.to_dict()`; both pass the same redaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jinja2
import regex

from .. import resources, timeline
from ..diagnosis.model import Hypothesis
from ..model import Event, Finding
from ..stamps import iso_utc
from . import redact as redaction
from . import text
from .model import TIMELINE_LIMIT, Report

TIMELINE_ROWS = 80
"""Rows of the Markdown timeline; the JSON has more."""


def render(report: Report, form: str, language: str = "en", redact: bool = True) -> str:
    """The report as `md` or `json`, in `en` or `zh`. Deterministic; lines end in LF only."""
    data = report.to_dict()
    counts: dict[str, int] = {}
    if redact:
        data, counts = redaction.redact(data)
    data["redactions"] = counts
    if form == "json":
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    rendered = _environment(language).get_template("report.md.j2").render(_context(report, data, language))
    return regex.sub(r"\n{3,}", "\n\n", rendered).strip() + "\n"


def _environment(language: str) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.templates()),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown: cells and code are escaped by the filters below
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(cell=cell, code=code, num=number)
    environment.globals["t"] = text.texts(language)
    return environment


_MARKDOWN = regex.compile(r"([\\`*_{}\[\]<>#|~!])")


def cell(value: Any) -> str:
    """Free text inside a table cell or a sentence: nothing in it may act as Markdown or HTML."""
    shown = text.printable(str(value), 400)
    return _MARKDOWN.sub(r"\\\1", shown).replace("&", "&amp;")


def code(value: Any) -> str:
    """A quoted line as inline code that survives backticks and, inside a table, pipes."""
    shown = text.printable(str(value), 300)
    longest = max((len(run) for run in regex.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or shown.startswith("`") or shown.endswith("`") else ""
    escaped = shown.replace("|", "\\|")
    return f"{fence}{pad}{escaped}{pad}{fence}"


def number(value: Any) -> str:
    """`12345.60` → `12 345.6`: no trailing zeros, no exponent."""
    if isinstance(value, bool) or value is None:
        return "–" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".").replace(",", " ")
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ") if abs(value) >= 100000 else str(value)
    return str(value)


def _context(report: Report, data: Mapping[str, Any], language: str) -> dict[str, Any]:
    diagnosis = report.diagnosis
    facts = {**diagnosis.key_facts, **data["key_facts"]}
    verdict = diagnosis.verdict
    return {
        "lang": language,
        "data": data,
        "cause": verdict.cause,
        "confidence": verdict.confidence.value,
        "facts": facts,
        "evidence": _evidence(report, verdict, data, language),
        "alternatives": [
            _alternative(report, h, data, language) for h in diagnosis.incidents[0].hypotheses[1:5]
        ],
        "chain": [
            {"title": report.title(link.finding.signature, language), "why": link.why, "f": _ref(link.finding, data)}
            for link in diagnosis.incidents[0].chain
        ],
        "remedies": _remedies(report, facts, language),
        "decoys": [
            {"title": report.title(d.finding.signature, language), "text": text.decoy(d, language), "f": _ref(d.finding, data)}
            for d in diagnosis.decoys
        ],
        "gaps": [{"text": text.gap(g, language), "command": g.command} for g in diagnosis.gaps],
        "rows": _rows(report, data, language),
        "rows_omitted": max(0, len(report.timeline) - TIMELINE_ROWS),
        "timeline_limit": TIMELINE_LIMIT,
    }


def _ref(finding: Finding, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The redacted form of a finding, by its id."""
    return next((f for f in data["findings"] if f["id"] == finding.id), {
        "id": finding.id, "quote": "", "locator": {"source": finding.locator.source, "line_start": finding.locator.line},
        "time": {"utc": None},
    })  # fmt: skip


def _evidence(
    report: Report, hypothesis: Hypothesis, data: Mapping[str, Any], language: str
) -> dict[str, list[dict[str, Any]]]:
    def lines(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
        return [
            {
                "title": report.title(f.signature, language),
                "sentence": text.derived_sentence(f, language) if f.signature.startswith("derived.") else "",
                "f": _ref(f, data),
            }
            for f in findings
        ]

    return {
        "decisive": lines(hypothesis.decisive),
        "supporting": lines(hypothesis.supporting[:8]),
        "against": lines(hypothesis.against),
    }


def _alternative(report: Report, hypothesis: Hypothesis, data: Mapping[str, Any], language: str) -> dict[str, Any]:
    return {
        "id": hypothesis.cause.id,
        "title": hypothesis.cause.title[language],
        "confidence": hypothesis.confidence.value,
        **_evidence(report, hypothesis, data, language),
    }


def _remedies(report: Report, facts: Mapping[str, Any], language: str) -> list[str]:
    """Remedies whose condition holds and whose numbers are known."""
    shown = []
    for remedy in report.diagnosis.verdict.cause.remedies:
        if remedy.when and facts.get(remedy.when) is None:
            continue
        filled = text.fill(remedy.text[language], facts)
        if filled is not None:
            shown.append(filled)
    return shown


def _rows(report: Report, data: Mapping[str, Any], language: str) -> list[dict[str, Any]]:
    """Timeline rows: the main incident's surroundings first in the budget, then the rest, in order."""
    chosen = _chosen(report)
    by_place = {(row["source"], row["line"]): row for row in data["timeline"]}
    rows = []
    for group in timeline.groups(chosen):
        for event in group:
            row = by_place.get((event.locator.source, event.locator.line))
            if row is None:
                continue
            finding = next((f for f in report.diagnosis.findings if f.id == row["finding"]), None)
            title = report.title(finding.signature, language) if finding is not None else ""
            rows.append({**row, "title": title, "grouped": len(group) > 1, "shown": _shown_time(event)})
    return rows


def _chosen(report: Report) -> list[Event]:
    events = list(report.timeline[:TIMELINE_LIMIT])
    if len(events) <= TIMELINE_ROWS:
        return events
    important = {f.locator for h in report.diagnosis.incidents[0].hypotheses[:1] for f in h.evidence}
    important |= {link.finding.locator for link in report.diagnosis.incidents[0].chain}
    ranked = sorted(range(len(events)), key=lambda i: (events[i].locator not in important, _distance(report, events[i]), i))
    keep = set(ranked[:TIMELINE_ROWS])
    return [event for i, event in enumerate(events) if i in keep]


def _distance(report: Report, event: Event) -> float:
    start = report.diagnosis.incidents[0].start_s
    if start is None or event.time.utc_s is None:
        return float("inf")
    return abs(event.time.utc_s - start)


def _shown_time(event: Event) -> str:
    if event.time.utc_s is None:
        return "?"
    spread = event.time.uncertainty_s
    moment = iso_utc(event.time.utc_s, 3 if spread < 0.5 else 0).replace("T", " ").removesuffix("Z")
    return f"{moment} ± {_spread(spread)}" if spread >= 0.5 else moment


def _spread(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


