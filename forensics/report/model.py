"""`Report`: the answer as plain data. `to_dict()` is the contract that JSON, tests and users rely on.

Everything that leaves the program is built from this dictionary, so redaction and quoting have one gate.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..diagnosis.model import ChainLink, Death, Diagnosis, Hypothesis, Incident, Ledger, Life, Trend
from ..model import Clock, Diagnostic, Event, Finding, Source, Timestamp
from ..stamps import iso_utc
from . import text

SCHEMA_VERSION = "1.0"
QUOTE_CHARS = 400
TIMELINE_LIMIT = 400
"""Most rows of the timeline; the rest is counted."""


@dataclass(frozen=True, slots=True)
class BundleInfo:
    name: str
    sha256: str
    """Over the sorted (path, sha256) pairs of its members: the same for an archive and for its folder."""
    captured_at_s: float | None
    layout: str


@dataclass(frozen=True, slots=True)
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

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract, `schema_version` 1.0. Same bundle, same dictionary."""
        d = self.diagnosis
        roles = _roles(d)
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "oomforensics", "version": self.tool_version},
            "bundle": {
                "name": self.bundle.name,
                "sha256": self.bundle.sha256,
                "captured_at": _iso(self.bundle.captured_at_s),
                "layout": self.bundle.layout,
            },
            "verdict": {
                "cause": d.verdict.cause.id,
                "confidence": d.verdict.confidence.value,
                "headline": text.headline(d, "en"),
                "reasons": [self.title(f.signature, "en") for f in _distinct(d.verdict.evidence)[:5]],
                "first_cause": self._finding_ref(d.first_cause),
            },
            "incidents": [self._incident(incident) for incident in d.incidents],
            "timeline": [self._row(event, roles) for event in self.timeline[:TIMELINE_LIMIT]],
            "timeline_omitted": max(0, len(self.timeline) - TIMELINE_LIMIT),
            "findings": [self._finding(f, roles) for f in d.findings],
            "sources": [_source(source) for source in self.sources],
            "ledger": [_ledger(ledger) for ledger in d.ledgers],
            "series": [_trend(trend) for trend in d.trends],
            "lives": [_life(life) for life in d.lives],
            "key_facts": dict(d.key_facts),
            "impact": dict(d.impact),
            "gaps": [{"key": g.key, "text": text.gap(g, "en"), "command": g.command} for g in d.gaps],
            "decoys": [
                {**self._finding_ref_of(decoy.finding), "reason": decoy.reason, "text": text.decoy(decoy, "en")}
                for decoy in d.decoys
            ],
            "diagnostics": [_diagnostic(diagnostic) for diagnostic in self.diagnostics],
        }

    def title(self, signature: str, language: str) -> str:
        english, chinese = self.titles.get(signature, (signature, signature))
        return chinese if language == "zh" else english

    def _finding_ref(self, finding: Finding | None) -> dict[str, Any] | None:
        return None if finding is None else self._finding_ref_of(finding)

    def _finding_ref_of(self, finding: Finding) -> dict[str, Any]:
        return {
            "finding": finding.id,
            "signature": finding.signature,
            "title": self.title(finding.signature, "en"),
            "source": finding.locator.source,
            "line": finding.locator.line,
            "line_end": finding.locator.line_end,
            "utc": _iso(finding.time.utc_s),
            "quote": quote(finding.event),
        }

    def _incident(self, incident: Incident) -> dict[str, Any]:
        return {
            "id": incident.id,
            "start": _iso(incident.start_s),
            "end": _iso(incident.end_s),
            "scope": {"entity": incident.entity},
            "deaths": [_death(death) for death in incident.deaths],
            "hypotheses": [self._hypothesis(h) for h in incident.hypotheses],
            "chain": [self._link(link) for link in incident.chain],
            "consequences": [self._finding_ref_of(f) for f in incident.consequences],
            "contributing": [self._finding_ref_of(f) for f in incident.contributing],
            "impact": dict(self.diagnosis.impact) if incident is self.diagnosis.incidents[0] else {},
        }

    def _hypothesis(self, hypothesis: Hypothesis) -> dict[str, Any]:
        return {
            "cause": hypothesis.cause.id,
            "confidence": hypothesis.confidence.value,
            "for": [
                {**self._finding_ref_of(f), "weight": "decisive" if f in hypothesis.decisive else "supporting"}
                for f in hypothesis.evidence
            ],
            "against": [self._finding_ref_of(f) for f in hypothesis.against],
            "would_change": [
                {"evidence": c.evidence.en, "command": c.command} for c in hypothesis.cause.confirm
            ],
        }

    def _link(self, link: ChainLink) -> dict[str, Any]:
        return {**self._finding_ref_of(link.finding), "why": link.why}

    def _finding(self, finding: Finding, roles: Mapping[str, str]) -> dict[str, Any]:
        return {
            "id": finding.id,
            "signature": finding.signature,
            "title": self.title(finding.signature, "en"),
            "locator": {
                "source": finding.locator.source,
                "line_start": finding.locator.line,
                "line_end": finding.locator.line_end,
                "sha256": hashlib.sha256(finding.event.raw.encode("utf-8", "replace")).hexdigest(),
            },
            "time": _time(finding.time),
            "fields": _plain(finding.fields),
            "role": finding.role.value,
            "severity": finding.severity.value,
            "used_as": roles.get(finding.id, ""),
            "scope": finding.event.scope.to_dict(),
            "quote": quote(finding.event),
        }

    def _row(self, event: Event, roles: Mapping[str, str]) -> dict[str, Any]:
        finding = next((f for f in self.diagnosis.findings if f.event is event or _same_place(f, event)), None)
        return {
            **_time(event.time),
            "source": event.locator.source,
            "line": event.locator.line,
            "line_end": event.locator.line_end,
            "kind": event.kind,
            "channel": event.channel,
            "scope": event.scope.to_dict(),
            "summary": quote(event),
            "title": self.title(finding.signature, "en") if finding else "",
            "finding": finding.id if finding else None,
            "role": roles.get(finding.id, finding.role.value) if finding else None,
            "count": event.count,
        }


def _same_place(finding: Finding, event: Event) -> bool:
    return finding.locator == event.locator and not finding.signature.startswith("derived.")


def quote(event: Event) -> str:
    """The line as it may be shown: no control characters, one line, of bounded length."""
    return text.printable(event.text or event.raw, QUOTE_CHARS)


def _roles(diagnosis: Diagnosis) -> dict[str, str]:
    """Finding id → what the main incident used it as."""
    roles: dict[str, str] = {}
    main = diagnosis.incidents[0]
    for decoy in main.decoys:
        roles[decoy.finding.id] = "decoy"
    for finding in main.consequences:
        roles[finding.id] = "consequence"
    for finding in diagnosis.verdict.supporting:
        roles[finding.id] = "supporting"
    for finding in diagnosis.verdict.decisive:
        for base in finding.rests_on:
            roles[base.id] = "decisive"
        roles[finding.id] = "decisive"
    if diagnosis.first_cause is not None:
        roles[diagnosis.first_cause.id] = "root"
    return roles


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    return list({f.signature: f for f in findings}.values())


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None or not math.isfinite(seconds) else iso_utc(seconds)


def _number(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


def _time(time: Timestamp) -> dict[str, Any]:
    return {
        "utc": _iso(time.utc_s),
        "uncertainty_s": _number(time.uncertainty_s),
        "basis": time.basis.value,
    }


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as JSON values, in a fixed order."""
    return {name: _value(value) for name, value in sorted(fields.items())}


def _value(value: Any) -> Any:
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {str(k): _value(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [_value(item) for item in value]
    return str(value)


def _death(death: Death) -> dict[str, Any]:
    return {
        "utc": _iso(death.time_s) if death.time_s else None,
        "exit_code": death.exit_code,
        "reason": death.reason,
        "graceful": death.graceful,
        "phase": death.life.phase.value if death.life else None,
        "witnesses": [{"source": e.locator.source, "line": e.locator.line, "kind": e.kind} for e in death.witnesses],
    }


def _life(life: Life) -> dict[str, Any]:
    return {
        "entity": life.entity,
        "sources": list(life.sources),
        "start": {"line": life.start.locator.line, **_time(life.start.time)},
        "end": {"line": life.end.locator.line, **_time(life.end.time)},
        "ready": None if life.ready is None else {"line": life.ready.locator.line, **_time(life.ready.time)},
        "phase": life.phase.value,
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "path": source.path,
        "format": source.format,
        "title": source.title,
        "lines": source.lines,
        "size_bytes": source.size_bytes,
        "sha256": source.sha256,
        "scope": source.scope.to_dict(),
        "coverage": None if source.coverage is None else round(source.coverage, 3),
        "reason": source.reason,
        "clock": [_clock(clock) for clock in source.clocks],
    }


def _clock(clock: Clock) -> dict[str, Any]:
    return {
        "layer": clock.layer,
        "form": clock.form.value,
        "zone": clock.zone,
        "offset_s": clock.offset_s,
        "year": clock.year,
        "boot_epoch": _iso(clock.boot_epoch_s),
        "skew_s": round(clock.skew_s, 3),
        "captured_at": _iso(clock.captured_at_s),
        "basis": clock.basis.value,
        "verdict": clock.verdict,
        "anchors": [
            {"place": str(a.place), "witness": str(a.witness), "residual_s": round(a.residual_s, 3)}
            for a in clock.anchors[:10]
        ],
        "anchor_count": len(clock.anchors),
        "residual_s": None if clock.residual_s is None else round(clock.residual_s, 3),
        "note": clock.note,
    }


def _ledger(ledger: Ledger) -> dict[str, Any]:
    return {
        "entity": ledger.entity,
        "source": ledger.source,
        "rows": [
            {
                "term": row.term,
                "value": row.gib,
                "derived": row.derived,
                "source": row.evidence.locator.source if row.evidence else None,
                "line": row.evidence.locator.line if row.evidence else None,
            }
            for row in ledger.rows
        ],
        "difference_gib": ledger.difference_gib,
        "facts": dict(ledger.facts),
    }


def _trend(trend: Trend) -> dict[str, Any]:
    return {
        "name": trend.name,
        "source": trend.source,
        "entity": trend.entity,
        "gpu": trend.gpu,
        "word": trend.word,
        "points": trend.points,
        "min": _number(trend.minimum),
        "max": _number(trend.maximum),
        "first": _number(trend.first),
        "last": _number(trend.last),
        "start": _iso(trend.start_s),
        "end": _iso(trend.end_s),
        "slope_per_h": None if trend.slope_per_h is None else _number(trend.slope_per_h),
        "sparkline": trend.sparkline,
        "first_line": trend.first_line,
        "last_line": trend.last_line,
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "source": diagnostic.source,
        "line": diagnostic.line,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }
