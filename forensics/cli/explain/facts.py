"""What explanations share: one report in one language, and its findings as plain values.

Everything is read off the finished diagnosis with the same functions that made it; nothing is judged anew. The
documents hold plain values, so that they can pass the gate before anything is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import tomli

from ... import resources
from ...diagnosis.model import Incident
from ...model import Finding
from ...pipeline import Reading
from ...report import Report
from ...report import text as report_text


@cache
def words(language: str) -> Mapping[str, Any]:
    """The fixed texts of explanations."""
    path = resources.templates() / f"explain.{language}.toml"
    return tomli.loads(path.read_text(encoding="utf-8"))


def fill(template: Any, **values: Any) -> str:
    return report_text.fill(str(template), values) or str(template)


class Teller:
    """Turns parts of one diagnosis into documents."""

    def __init__(self, reading: Reading, report: Report, language: str) -> None:
        self.reading, self.report, self.language = reading, report, language
        self.t = words(language)
        self.diagnosis = report.diagnosis
        self.main = report.diagnosis.incidents[0]

    @property
    def comma(self) -> str:
        return str(report_text.texts(self.language)["comma"])

    def incident_of(self, incident: Incident) -> dict[str, Any]:
        return {"id": incident.id, "entity": incident.entity.partition(":")[2] or incident.entity}

    def name(self, finding: Finding) -> str:
        """`F12 “title”`; conclusions that no hypothesis kept have no number."""
        title = self.report.title_of(finding, self.language)
        return f"{finding.id} “{title}”".strip()

    def refs(self, findings: Iterable[Finding]) -> list[dict[str, Any]]:
        return [self.ref(finding) for finding in findings]

    def ref(self, finding: Finding) -> dict[str, Any]:
        return {
            "finding": finding.id,
            "signature": finding.signature,
            "title": self.report.title_of(finding, self.language),
            "sentence": report_text.sentence(finding, self.language),
            "source": finding.locator.source,
            "line": finding.locator.line,
            **self.report.quoted(finding.event),
        }

    def decoys(self, incident: Incident, wanted: Callable[[Finding], object]) -> list[dict[str, Any]]:
        return [
            {**self.ref(decoy.finding), "reason": report_text.decoy(decoy, self.language)}
            for decoy in incident.decoys
            if wanted(decoy.finding)
        ]


def same(one: Finding, other: Finding) -> bool:
    return one.signature == other.signature and one.locator == other.locator


def is_in(finding: Finding, findings: Iterable[Finding]) -> bool:
    return any(same(finding, other) for other in findings)
