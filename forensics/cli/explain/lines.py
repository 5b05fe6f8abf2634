"""What became of one finding, or of one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...model import Event, Finding
from ...report import contract
from ...report import text as report_text
from .facts import Teller, fill, is_in, same

CAUSES_SHOWN = 12


class Lines(Teller):
    """Explains findings, and lines without any."""

    def finding(self, finding: Finding) -> dict[str, Any]:
        """What a finding is, and what became of it."""
        signature = self.reading.library.signatures.get(finding.signature)
        said = report_text.sentence(finding, self.language)
        return {
            "kind": "finding",
            **self.ref(finding),
            "role": finding.role.value,
            "severity": finding.severity.value,
            "about": " ".join(signature.description.split()) if signature else said,
            "fields": contract.plain(finding.fields),
            **self._moment(finding.event),
            "uses": self._uses(finding),
            **self._speaks(finding),
            "rests_on": self.refs(finding.rests_on),
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
        return {name: causes[:CAUSES_SHOWN] for name, causes in found.items()}

    def _here(self, ranked: Sequence[str], cause: str) -> str:
        if cause not in ranked:
            return ""
        number = ranked.index(cause) + 1
        key = "first" if number == 1 else "of"
        return f"{self.comma}{fill(self.t['rank'][key], rank=number, of=len(ranked), id=self.main.id)}"

    def _uses(self, finding: Finding) -> list[str]:
        return list(dict.fromkeys(self._used(finding))) or [self._unused(finding)]

    def _used(self, finding: Finding) -> Iterator[str]:
        t, first = self.t["use"], self.main.hypotheses[0]
        root = self.diagnosis.first_cause
        if root is not None and same(root, finding):
            yield t["root"]
        for number, hypothesis in enumerate(self.main.hypotheses, 1):
            weights = {
                "decisive": hypothesis.decisive,
                "supporting": hypothesis.supporting,
                "against": hypothesis.against,
            }
            for weight, findings in weights.items():
                if is_in(finding, findings):
                    named = {"cause": hypothesis.cause.id, "rank": number, "weight": self.t["weight"][weight]}
                    yield fill(t[weight if number == 1 else "rival"], **named)
                for other in findings:
                    if number == 1 and is_in(finding, other.rests_on):
                        yield fill(t["ground"], finding=self.name(other))
        if is_in(finding, self.main.consequences):
            yield fill(t["consequence"], cause=first.cause.id)
        if is_in(finding, self.main.contributing):
            yield t["contributing"]
        for decoy in self.main.decoys:
            if same(decoy.finding, finding):
                yield fill(t["decoy"], reason=report_text.decoy(decoy, self.language))

    def _unused(self, finding: Finding) -> str:
        counted = next((f for f in self.main.evidence if f.signature == finding.signature and f.id), None)
        if counted is not None and not is_in(finding, self.main.evidence):
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
