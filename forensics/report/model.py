"""`Report`: the answer. `to_dict()` is the contract that JSON, templates, tests and users rely on.

The dictionary holds all that any format shows, in one language. It is raw: `gate.Gate.admit` makes it fit to leave the
program, and every format is rendered from what the gate lets through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..diagnosis.model import ChainLink, Diagnosis, Hypothesis, Incident
from ..model import Diagnostic, Event, Finding, Source
from ..regexes import lazy_re
from . import advice, attempts, commands, contract, curves, pseudonyms, telling, text
from .story import Story

SCHEMA_VERSION = "1.0"
TIMELINE_LIMIT = 1000
"""Most rows of the JSON timeline; the rest is counted."""
_XIDS = lazy_re(r"(?<=[(（]Xid )[\d,、– ]+(?=[)）])")


@dataclass(frozen=True, slots=True)
class BundleInfo:
    name: str
    sha256: str
    """Over the sorted (path, sha256) pairs of its members: the same for an archive and for its folder."""
    captured_at_s: float | None
    layout: str


@dataclass(frozen=True)
class Report:
    """A finished analysis. Immutable; rendering never computes anything new."""

    tool_version: str
    bundle: BundleInfo
    diagnosis: Diagnosis
    sources: tuple[Source, ...]
    timeline: tuple[Event, ...]
    """Events worth showing, in order."""
    diagnostics: tuple[Diagnostic, ...]
    titles: Mapping[str, tuple[str, str]]
    """Signature or rule id → title in English and Chinese."""
    digests: Mapping[tuple[str, int, int], str] = field(default_factory=dict)
    """(member, first line, last line) → sha256 of those lines as they stand in the file; see `seal`."""

    def to_dict(self, language: str = "en") -> dict[str, Any]:
        """The JSON contract, `schema_version` 1.0, texts in `language`. Same bundle, same dictionary."""
        d = self.diagnosis
        owner = attempts.Owner(self)
        runs = attempts.find(self, owner)
        to_do = advice.change(self, language)
        rows, left_out = telling.rows(self, Story(self, owner, runs), language)
        return {
            "schema_version": SCHEMA_VERSION,
            "language": language,
            "tool": {"name": "oomforensics", "version": self.tool_version},
            "bundle": {
                "name": self.bundle.name,
                "sha256": self.bundle.sha256,
                "captured_at": contract.iso(self.bundle.captured_at_s),
                "layout": self.bundle.layout,
            },
            "verdict": {
                "cause": d.verdict.cause.id,
                "confidence": d.verdict.confidence.value,
                "headline": text.headline(d, language),
                "about": advice.told(self, "summary", language),
                "mechanism": advice.told(self, "mechanism", language),
                "reasons": [self.title_of(f, language) for f in _distinct(d.verdict.evidence)[:5]],
                "first_cause": None if d.first_cause is None else self._ref(d.first_cause, language),
            },
            "summary": advice.summary(self, runs, to_do, language),
            "incidents": [self._incident(incident, language) for incident in d.incidents],
            "story": {"rows": rows, "left_out": left_out},
            "restarts": [
                attempts.row(a, self.title_of(a.life.fatal, language) if a.life and a.life.fatal else "")
                for a in runs
            ],
            "advice": to_do,
            "questions": advice.questions(self, language),
            "ledger": [contract.ledger(ledger) for ledger in d.ledgers],
            "curves": curves.choose(self, language),
            "key_facts": contract.plain(d.key_facts),
            "impact": contract.plain(d.impact),
            "gaps": [
                {"key": g.key, "text": text.gap(g, language), "command": commands.on(g.command, d.platforms)}
                for g in d.gaps
            ],
            "decoys": [
                {**self._ref(item.finding, language), "reason": item.reason, "text": text.decoy(item, language)}
                for item in d.decoys
            ],
            "timeline": [self._row(event, language) for event in self.timeline[:TIMELINE_LIMIT]],
            "timeline_omitted": max(0, len(self.timeline) - TIMELINE_LIMIT),
            "findings": [self._finding(f, language) for f in d.findings],
            "lives": [contract.life(life) for life in d.lives],
            "series": [contract.trend(trend) for trend in d.trends],
            "sources": [contract.source(source, text.source_title(source.title, language)) for source in self.sources],
            "diagnostics": [contract.diagnostic(diagnostic) for diagnostic in self.diagnostics],
        }

    def title(self, signature: str, language: str) -> str:
        english, chinese = self.titles.get(signature, (signature, signature))
        return chinese if language == "zh" else english

    def title_of(self, finding: Finding, language: str, others: Iterable[Finding] = ()) -> str:
        """The title of its signature; of the Xids that it lists, only those of the finding and of `others` like it."""
        title = self.title(finding.signature, language)
        alike = (f for f in (finding, *others) if f.signature == finding.signature)
        seen = {xid for f in alike if isinstance(xid := f.fields.get("xid"), int)}
        return _XIDS.sub(", ".join(map(str, sorted(seen))), title) if seen else title

    def used_as(self, finding: Finding) -> str:
        """What the main incident used a finding as: `root`, `decisive`, … `decoy`; empty when it did not."""
        return self._roles.get(finding.id, "")

    @cached_property
    def _user_text(self) -> frozenset[Any]:
        """Lines without any header that were taken for talk: nothing bounds what they may hold."""
        return frozenset(
            f.locator
            for f in self.diagnosis.findings
            if f.quoted and not f.event.level and f.event.kind == "log" and not f.event.fields.get("logger")
        )

    @cached_property
    def _roles(self) -> Mapping[str, str]:
        """Finding id → what the main incident used it as."""
        d = self.diagnosis
        roles: dict[str, str] = {}
        for item in d.incidents[0].decoys:
            roles[item.finding.id] = "decoy"
        for finding in d.incidents[0].consequences:
            roles[finding.id] = "consequence"
        for finding in d.verdict.supporting:
            roles[finding.id] = "supporting"
        for finding in d.verdict.decisive:
            for base in finding.rests_on:
                roles[base.id] = "decisive"
            roles[finding.id] = "decisive"
        if d.first_cause is not None:
            roles[d.first_cause.id] = "root"
        return roles

    @cached_property
    def _at(self) -> Mapping[Any, Finding]:
        """Place → the finding that names its line; printed lines before derived ones."""
        ordered = sorted(self.diagnosis.findings, key=lambda f: f.signature.startswith("derived."))
        return {f.locator: f for f in reversed(ordered)}

    def quoted(self, event: Event) -> dict[str, Any]:
        """The quote of an event; text of users is marked so that the gate can hold it back."""
        return {"quote": contract.quote(event), **({"user_text": True} if event.locator in self._user_text else {})}

    def _ref(self, finding: Finding, language: str) -> dict[str, Any]:
        return {
            "finding": finding.id,
            "signature": finding.signature,
            "role": finding.role.value,
            "title": self.title_of(finding, language),
            "sentence": text.sentence(finding, language),
            "source": finding.locator.source,
            "line": finding.locator.line,
            "line_end": finding.locator.line_end,
            "utc": contract.iso(finding.time.utc_s),
            **self.quoted(finding.event),
        }

    def _incident(self, incident: Incident, language: str) -> dict[str, Any]:
        return {
            "id": incident.id,
            "start": contract.iso(incident.start_s),
            "end": contract.iso(incident.end_s),
            "scope": {"entity": incident.entity},
            "deaths": [contract.death(death) for death in incident.deaths],
            "hypotheses": [self._hypothesis(h, language) for h in incident.hypotheses],
            "chain": [self._link(link, language) for link in incident.chain],
            "consequences": [self._ref(f, language) for f in incident.consequences],
            "contributing": [self._ref(f, language) for f in incident.contributing],
            "impact": contract.plain(self.diagnosis.impact) if incident is self.diagnosis.incidents[0] else {},
        }

    def _hypothesis(self, hypothesis: Hypothesis, language: str) -> dict[str, Any]:
        decisive = {f.id for f in hypothesis.decisive}
        return {
            "cause": hypothesis.cause.id,
            "title": hypothesis.cause.title[language],
            "confidence": hypothesis.confidence.value,
            "for": [
                {**self._ref(f, language), "weight": "decisive" if f.id in decisive else "supporting"}
                for f in hypothesis.evidence
            ],
            "against": [self._ref(f, language) for f in hypothesis.against],
            "would_change": [
                {"evidence": c.evidence[language], "command": command}
                for c, command in advice.confirmations(self, hypothesis.cause.confirm)
            ],
        }

    def _link(self, link: ChainLink, language: str) -> dict[str, Any]:
        return {**self._ref(link.finding, language), "why": link.why}

    def _finding(self, finding: Finding, language: str) -> dict[str, Any]:
        where = finding.locator
        return {
            "id": finding.id,
            "signature": finding.signature,
            "title": self.title_of(finding, language),
            "locator": {
                "source": where.source,
                "line_start": where.line,
                "line_end": where.line_end,
                "sha256": self.digests.get((where.source, where.line, where.line_end)),
            },
            "time": contract.moment(finding.time),
            "fields": contract.plain(finding.fields),
            "role": finding.role.value,
            "severity": finding.severity.value,
            "used_as": self.used_as(finding),
            "scope": finding.event.scope.to_dict(),
            **self.quoted(finding.event),
        }

    def _row(self, event: Event, language: str) -> dict[str, Any]:
        finding = self._at.get(event.locator)
        return {
            **contract.moment(event.time),
            "source": event.locator.source,
            "line": event.locator.line,
            "line_end": event.locator.line_end,
            "kind": event.kind,
            "channel": event.channel,
            "scope": event.scope.to_dict(),
            "summary": event.text,
            **self.quoted(event),
            "title": self.title_of(finding, language) if finding else "",
            "finding": finding.id if finding else None,
            "role": self._roles.get(finding.id, finding.role.value) if finding else None,
            "count": event.count,
        }

    def seeds(self) -> Iterator[tuple[str, str]]:
        """(kind, name) of everything that strict redaction renames, in order of appearance."""
        yield "bundle", self.bundle.name
        kind, _, name = self.diagnosis.incidents[0].entity.partition(":")
        if kind in ("pod", "ctr"):
            yield "pod", name
        for source in self.sources:
            yield "file", source.path
        scopes = [s.scope for s in self.sources] + [f.event.scope for f in self.diagnosis.findings]
        for scope in (*scopes, *(event.scope for event in self.timeline)):
            yield from (("pod", scope.pod), ("host", scope.host), ("namespace", scope.namespace))
        for event in (*self.timeline, *(f.event for f in self.diagnosis.findings)):
            for key in ("model", "model_tag", "tokenizer", "served_model_name", "architecture"):
                yield from (("model", value) for value in pseudonyms.strings(event.fields.get(key)))
            yield from (("image", value) for value in pseudonyms.strings(event.fields.get("image")))
            yield from (("host", value) for value in pseudonyms.strings(event.fields.get("node")))
            yield from (("user", value) for value in pseudonyms.strings(event.fields.get("user")))


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    return list({f.signature: f for f in findings}.values())
