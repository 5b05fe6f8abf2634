"""Why the answer is the answer: the ranking of the diagnosis, taken apart for one cause or one line.

Everything here is read off the finished diagnosis with the same functions that made it; nothing is judged anew. The
documents hold plain values, so that they can pass the gate before anything is shown.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from .. import resources
from ..diagnosis import rank
from ..diagnosis.model import Hypothesis, Incident
from ..model import Event, Finding
from ..pipeline import Reading
from ..report import Report, contract
from ..report import text as report_text
from ..report.advice import duration
from ..signatures import Cause

KEY_WORDS = ("no_decisive", "contradicted", "later", "fewer", "fewer_supporting", "tie")
"""What each part of `rank.key` says about the loser."""
IDS_SHOWN = 12


@cache
def words(language: str) -> Mapping[str, Any]:
    """The fixed texts of explanations."""
    path = resources.templates() / f"explain.{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def fill(template: Any, **values: Any) -> str:
    return report_text.fill(str(template), values) or str(template)


class Reasons:
    """Explains one report in one language."""

    def __init__(self, reading: Reading, report: Report, language: str) -> None:
        self.reading, self.report, self.language = reading, report, language
        self.t = words(language)
        self.diagnosis = report.diagnosis
        self.main = report.diagnosis.incidents[0]

    def verdict(self) -> dict[str, Any]:
        """The verdict of the main incident, its rivals, and what is missing."""
        first = self.main.hypotheses[0]
        ranked = {h.cause.id for h in self.main.hypotheses}
        folded = [h for h in self._drafts(self.main) if h.decisive and h.cause.id not in ranked]
        rivals = [*self.main.hypotheses[1:], *folded]
        return {
            "kind": "verdict",
            "standing": self._standing(first, self.main, 1),
            "incident": self._incident(self.main),
            "first_cause": self._refs([f for f in (self.diagnosis.first_cause,) if f is not None]),
            "rivals": [
                {"cause": h.cause.id, "title": h.cause.title[self.language], "confidence": h.confidence.value,
                 "why": self.lost(h, self.main)}
                for h in rivals
            ],
            "consequences": self._refs(self.main.consequences),
            "contributing": self._refs(self.main.contributing),
            "decoys": self._decoys(self.main, lambda _: True),
            "missing": [
                {"text": report_text.gap(gap, self.language), "command": gap.command} for gap in self.diagnosis.gaps
            ],
            "others": [
                {**self._incident(i), "cause": i.hypotheses[0].cause.id, "confidence": i.hypotheses[0].confidence.value}
                for i in self.diagnosis.incidents[1:]
            ],
        }  # fmt: skip

    def cause(self, identity: str) -> dict[str, Any]:
        """Everything in this bundle for and against one cause, in the incident where it came furthest."""
        place = min(
            ((number, i) for i in self.diagnosis.incidents for number, h in enumerate(i.hypotheses, 1)
             if h.cause.id == identity),
            key=lambda item: item[0], default=None,
        )  # fmt: skip
        if place is not None:
            number, incident = place
            return {"kind": "cause", "standing": self._standing(incident.hypotheses[number - 1], incident, number),
                    "incident": self._incident(incident)}  # fmt: skip
        draft = rank.rank_one(self.reading.library.causes[identity], self.main.evidence)
        standing = self._standing(draft, self.main, None)
        return {"kind": "cause", "standing": standing, "incident": self._incident(self.main)}

    def _standing(self, hypothesis: Hypothesis, incident: Incident, number: int | None) -> dict[str, Any]:
        cause = hypothesis.cause
        seen = {f.signature for f in incident.evidence}
        absent = [name for name in cause.decisive if name not in seen and not name.endswith(".*")]
        return {
            "cause": cause.id,
            "title": cause.title[self.language],
            "summary": " ".join(cause.summary[self.language].split()),
            "confidence": hypothesis.confidence.value if number else None,
            "rank": number,
            "of": len(incident.hypotheses),
            "decisive": self._refs(hypothesis.decisive),
            "supporting": self._refs(hypothesis.supporting),
            "against": self._refs(hypothesis.against),
            "why": self.won(incident) if number == 1 else self.lost(hypothesis, incident),
            "set_aside": self._decoys(incident, lambda f: {"decisive", "supporting"} & set(cause.names(f.signature))),
            "absent": [{"id": name, "title": self.report.title(name, self.language)} for name in absent[:IDS_SHOWN]],
            "absent_more": max(0, len(absent) - IDS_SHOWN),
            "change": [{"text": c.evidence[self.language], "command": c.command} for c in cause.confirm],
        }

    def won(self, incident: Incident) -> list[str]:
        """Why the first hypothesis is the first."""
        first = incident.hypotheses[0]
        if first.cause.id in rank.NO_FAULT:
            return [self.t["won"][first.cause.id]]
        rivals = [h for h in incident.hypotheses[1:] if h.cause.id not in rank.NO_FAULT]
        if not rivals:
            return [self.t["won"]["only"]]
        return [fill(self.t["won"][_difference(first, rivals[0])], cause=rivals[0].cause.id)]

    def lost(self, hypothesis: Hypothesis, incident: Incident) -> list[str]:
        """Why a hypothesis is not the first: what was folded under other causes, and what it is behind in."""
        first, t = incident.hypotheses[0], self.t["lost"]
        if hypothesis.cause.id in rank.NO_FAULT:
            return [fill(t["no_fault"], cause=first.cause.id)]
        said = [
            fill(t["folded"], finding=self.name(finding), cause=cause.id)
            for finding, cause in self._folded(hypothesis.cause, incident)
        ]
        ranked = next((h for h in incident.hypotheses if h.cause.id == hypothesis.cause.id), None)
        if said and (ranked is None or not ranked.decisive):
            return said
        if not hypothesis.evidence:
            return [t["nothing"]]
        reason = _difference(first, hypothesis)
        if first.cause.id in rank.NO_FAULT:
            return [*said, t["no_decisive_alone"]]
        against = self._comma.join(self.name(f) for f in _distinct(hypothesis.against))
        span = rank.first_s(hypothesis.decisive) - rank.first_s(first.decisive)
        return [*said, fill(t[reason], cause=first.cause.id, findings=against, span=self._span(span))]

    def _folded(self, cause: Cause, incident: Incident) -> Iterator[tuple[Finding, Cause]]:
        """Findings that would decide for a cause, had the ranking not put them under another cause."""
        draft = rank.rank_one(cause, incident.evidence)
        kept = next((h.decisive for h in incident.hypotheses if h.cause.id == cause.id), ())
        for finding in draft.decisive:
            if _in(finding, kept):
                continue
            for other in incident.hypotheses:
                if other.decisive and not other.against and rank.matches(other.cause.explains, finding):
                    yield finding, other.cause
                    break

    def _drafts(self, incident: Incident) -> list[Hypothesis]:
        causes = (c for c in self.reading.library.causes.values() if c.id not in rank.NO_FAULT)
        return [rank.rank_one(cause, incident.evidence) for cause in causes]

    def finding(self, finding: Finding) -> dict[str, Any]:
        """What a finding is, and what became of it."""
        signature = self.reading.library.signatures.get(finding.signature)
        said = report_text.sentence(finding, self.language)
        return {
            "kind": "finding",
            **self._ref(finding),
            "role": finding.role.value,
            "severity": finding.severity.value,
            "about": " ".join(signature.description.split()) if signature else said,
            "fields": contract.plain(finding.fields),
            **self._moment(finding.event),
            "uses": self._uses(finding),
            **self._speaks(finding),
            "rests_on": self._refs(finding.rests_on),
        }

    def _speaks(self, finding: Finding) -> dict[str, Any]:
        """Causes that name a finding, those that are hypotheses here first."""
        ranked = [h.cause.id for h in self.main.hypotheses]
        found: dict[str, list[str]] = {"for": [], "causes_against": [], "consequence_of": []}
        causes = sorted(self.reading.library.causes.values(), key=lambda c: (c.id not in ranked, c.id))
        for cause in causes:
            names = cause.names(finding.signature)
            weight = next((self.t["weight"][name] for name in ("decisive", "supporting") if name in names), "")
            here = self._here(ranked, cause.id)
            if weight:
                found["for"].append(f"{cause.id} ({weight}{here})")
            if "contradicting" in names:
                found["causes_against"].append(f"{cause.id}{here}")
            if "explains" in names and cause.id in ranked:
                found["consequence_of"].append(f"{cause.id}{here}")
        return {name: causes[:IDS_SHOWN] for name, causes in found.items()}

    def _here(self, ranked: Sequence[str], cause: str) -> str:
        if cause not in ranked:
            return ""
        number = ranked.index(cause) + 1
        key = "first" if number == 1 else "of"
        return f"{self._comma}{fill(self.t['rank'][key], rank=number, of=len(ranked), id=self.main.id)}"

    @property
    def _comma(self) -> str:
        return str(report_text.texts(self.language)["comma"])

    def _uses(self, finding: Finding) -> list[str]:
        return list(dict.fromkeys(self._used(finding))) or [self._unused(finding)]

    def _used(self, finding: Finding) -> Iterator[str]:
        t, first = self.t["use"], self.main.hypotheses[0]
        root = self.diagnosis.first_cause
        if root is not None and _same(root, finding):
            yield t["root"]
        for number, hypothesis in enumerate(self.main.hypotheses, 1):
            weights = {
                "decisive": hypothesis.decisive,
                "supporting": hypothesis.supporting,
                "against": hypothesis.against,
            }
            for weight, findings in weights.items():
                if _in(finding, findings):
                    named = {"cause": hypothesis.cause.id, "rank": number, "weight": self.t["weight"][weight]}
                    yield fill(t[weight if number == 1 else "rival"], **named)
                for other in findings:
                    if number == 1 and _in(finding, other.rests_on):
                        yield fill(t["ground"], finding=self.name(other))
        if _in(finding, self.main.consequences):
            yield fill(t["consequence"], cause=first.cause.id)
        if _in(finding, self.main.contributing):
            yield t["contributing"]
        for decoy in self.main.decoys:
            if _same(decoy.finding, finding):
                yield fill(t["decoy"], reason=report_text.decoy(decoy, self.language))

    def _unused(self, finding: Finding) -> str:
        counted = next((f for f in self.main.evidence if f.signature == finding.signature and f.id), None)
        if counted is not None and not _in(finding, self.main.evidence):
            return fill(self.t["use"]["copy"], finding=self.name(counted))
        return str(self.t["use"]["unused"])

    def place(self, event: Event) -> dict[str, Any]:
        """A line that a parser understood and no signature fires on."""
        return {
            "kind": "event",
            "event": fill(self.t["place"]["event"], kind=event.kind, channel=event.channel),
            "source": event.locator.source,
            "line": event.locator.line,
            **self.report.quoted(event),
            "fields": contract.plain(event.fields),
            **self._moment(event),
            "uses": [self.t["use"]["no_finding"]],
        }

    def quiet(self, source: str, line: int) -> dict[str, Any]:
        """A line that nothing asked for, with its nearest neighbours that something did."""
        own = [e for e in self.reading.events if e.locator.source == source]
        before = max((e for e in own if e.locator.line < line), key=lambda e: e.locator.line, default=None)
        after = min((e for e in own if e.locator.line > line), key=lambda e: e.locator.line, default=None)
        near = [e for e in (before, after) if e is not None]
        return {
            "kind": "quiet",
            "source": source,
            "line": line,
            "nearest": [{"source": source, "line": e.locator.line, **self.report.quoted(e)} for e in near],
        }

    def _moment(self, event: Event) -> dict[str, Any]:
        source = next((s for s in self.reading.sources if s.path == event.locator.source), None)
        layers = {stamp.layer for stamp in event.stamps}
        clocks = [clock for clock in (source.clocks if source else ()) if clock.layer in layers]
        return {"time": contract.moment(event.time), "clocks": [contract.clock(clock) for clock in clocks]}

    def _incident(self, incident: Incident) -> dict[str, Any]:
        return {"id": incident.id, "entity": incident.entity.partition(":")[2] or incident.entity}

    def name(self, finding: Finding) -> str:
        """`F12 “title”`; conclusions that no hypothesis kept have no number."""
        title = self.report.title(finding.signature, self.language)
        return f"{finding.id} “{title}”".strip()

    def _refs(self, findings: Iterable[Finding]) -> list[dict[str, Any]]:
        return [self._ref(finding) for finding in findings]

    def _ref(self, finding: Finding) -> dict[str, Any]:
        return {
            "finding": finding.id,
            "signature": finding.signature,
            "title": self.report.title(finding.signature, self.language),
            "sentence": report_text.sentence(finding, self.language),
            "source": finding.locator.source,
            "line": finding.locator.line,
            **self.report.quoted(finding.event),
        }

    def _decoys(self, incident: Incident, wanted: Any) -> list[dict[str, Any]]:
        return [
            {**self._ref(decoy.finding), "reason": report_text.decoy(decoy, self.language)}
            for decoy in incident.decoys
            if wanted(decoy.finding)
        ]

    def _span(self, seconds: float) -> str:
        return duration(seconds, report_text.texts(self.language)) if math.isfinite(seconds) else ""


def _difference(first: Hypothesis, other: Hypothesis) -> str:
    """The first thing in the order of the ranking in which two hypotheses differ."""
    pairs = zip(KEY_WORDS, rank.key(first), rank.key(other), strict=True)
    return next((word for word, own, others in pairs if own != others), "tie")


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    return list({f.signature: f for f in findings}.values())


def _same(one: Finding, other: Finding) -> bool:
    return one.signature == other.signature and one.locator == other.locator


def _in(finding: Finding, findings: Iterable[Finding]) -> bool:
    return any(_same(finding, other) for other in findings)
