"""Why a cause is the answer, or is not: the ranking of the diagnosis, taken apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from ...diagnosis import rank
from ...diagnosis.model import Hypothesis, Incident
from ...model import Finding
from ...report import text as report_text
from ...report.advice import confirmations, duration
from ...signatures import Cause
from .facts import Teller, fill, is_in

KEY_WORDS = ("no_decisive", "weak", "contradicted", "later", "fewer", "fewer_supporting", "tie")
"""What each part of `rank.key` says about the loser."""
ABSENT_SHOWN = 12
"""Most findings that would decide for a cause and are not there."""


class Causes(Teller):
    """Explains the verdict, or one cause."""

    def verdict(self) -> dict[str, Any]:
        """The verdict of the main incident, its rivals, and what is missing."""
        first = self.main.hypotheses[0]
        ranked = {h.cause.id for h in self.main.hypotheses}
        folded = [h for h in self._drafts(self.main) if h.decisive and h.cause.id not in ranked]
        rivals = [*self.main.hypotheses[1:], *folded]
        return {
            "kind": "verdict",
            "standing": self._standing(first, self.main, 1),
            "incident": self.incident_of(self.main),
            "first_cause": self.refs([f for f in (self.diagnosis.first_cause,) if f is not None]),
            "rivals": [
                {
                    "cause": h.cause.id,
                    "title": h.cause.title[self.language],
                    "confidence": h.confidence.value if h.cause.id in ranked else "",
                    "why": self.lost(h, self.main),
                }
                for h in rivals
            ],
            "consequences": self.refs(self.main.consequences),
            "contributing": self.refs(self.main.contributing),
            "decoys": self.decoys(self.main, lambda _: True),
            "missing": [
                {"text": report_text.gap(gap, self.language), "command": gap.command} for gap in self.diagnosis.gaps
            ],
            "others": [self._other(incident) for incident in self.diagnosis.incidents[1:]],
        }

    def _other(self, incident: Incident) -> dict[str, Any]:
        first = incident.hypotheses[0]
        return {**self.incident_of(incident), "cause": first.cause.id, "confidence": first.confidence.value}

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
                    "incident": self.incident_of(incident)}  # fmt: skip
        draft = rank.rank_one(self.reading.library.causes[identity], self.main.evidence)
        standing = self._standing(draft, self.main, None)
        return {"kind": "cause", "standing": standing, "incident": self.incident_of(self.main)}

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
            "decisive": self.refs(hypothesis.decisive),
            "supporting": self.refs(hypothesis.supporting),
            "against": self.refs(hypothesis.against),
            "why": self.won(incident) if number == 1 else self.lost(hypothesis, incident),
            "set_aside": self.decoys(incident, lambda f: {"decisive", "supporting"} & set(cause.names(f.signature))),
            "absent": [{"id": name, "title": self.report.title(name, self.language)} for name in absent[:ABSENT_SHOWN]],
            "absent_more": max(0, len(absent) - ABSENT_SHOWN),
            "change": [
                {"text": c.evidence[self.language], "command": command}
                for c, command in confirmations(self.report, cause.confirm)
            ],
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
            return [t["nothing"] if first.cause.id in rank.NO_FAULT else fill(t["no_fault"], cause=first.cause.id)]
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
        against = self.comma.join(self.name(f) for f in _distinct(hypothesis.against))
        span = rank.first_s(hypothesis.decisive) - rank.first_s(first.decisive)
        return [*said, fill(t[reason], cause=first.cause.id, findings=against, span=self._span(span))]

    def _folded(self, cause: Cause, incident: Incident) -> Iterator[tuple[Finding, Cause]]:
        """Findings that would decide for a cause, had the ranking not put them under another cause."""
        draft = rank.rank_one(cause, incident.evidence)
        kept = next((h.decisive for h in incident.hypotheses if h.cause.id == cause.id), ())
        for finding in draft.decisive:
            if is_in(finding, kept):
                continue
            for other in incident.hypotheses:
                rival = other.decisive and not other.against and other.cause.id != cause.id
                if rival and rank.matches(other.cause.explains, finding):
                    yield finding, other.cause
                    break

    def _drafts(self, incident: Incident) -> list[Hypothesis]:
        causes = (c for c in self.reading.library.causes.values() if c.id not in rank.NO_FAULT)
        return [rank.rank_one(cause, incident.evidence) for cause in causes]

    def _span(self, seconds: float) -> str:
        return duration(seconds, report_text.texts(self.language)) if math.isfinite(seconds) else ""


def _difference(first: Hypothesis, other: Hypothesis) -> str:
    """The first thing in the order of the ranking in which two hypotheses differ."""
    pairs = zip(KEY_WORDS, rank.key(first), rank.key(other), strict=True)
    return next((word for word, own, others in pairs if own != others), "tie")


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    return list({f.signature: f for f in findings}.values())
