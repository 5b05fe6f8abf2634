"""The facts of the timeline that a reader needs: few, chosen by weight, repeats counted, attempts told apart.

Every event worth showing gets a weight (root cause, ends, starts, readiness … context). The same fact from several
sources is one; a fact that repeats within one attempt is one with a count. `telling.py` puts them into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from .. import timeline
from ..model import Event, Finding, Locator, Role
from . import attempts as attempt_stage
from .attempts import Attempt, Owner

if TYPE_CHECKING:
    from .model import Report

MOST = 40
"""Facts in the story; the JSON's `timeline` has all events."""
FEWEST = 10
"""Below this many facts, context fills up."""
MANY_RUNS = 8
"""With more runs than this, those in the middle are told by the restart table only."""
SAME_FACT_S = 5.0
SLACK_S = {"start": 60.0, "end": 45.0, "ready": 20.0, "stop": 20.0}
"""Facts that several sources tell of at somewhat different times, and of which a run has one."""
LATER = frozenset({"other_run", "after"})
"""Reasons that make a finding a repeat or a consequence rather than a false sign."""
NO_FAULT = frozenset({"healthy", "insufficient_evidence"})
"""Verdicts without a root cause to mark."""

ROOT, END, START, STOP, EVIDENCE, SIDE, CONTEXT, NOISE = range(8)

_STOPS = frozenset({"container_kill"})
_STOP_REASONS = frozenset({"Killing", "Evicted", "Preempting", "SystemOOM"})
_SEVERITIES = ("info", "notice", "warning", "error", "critical")


@dataclass(slots=True)
class Fact:
    """One row of the story in the making."""

    lead: Event
    """The witness whose place and time are shown."""
    findings: list[Finding]
    """What its best named witness was recognised as."""
    key: str
    """`start`, `ready`, `stop`, `end`, `root`, a signature, or the shape of the text."""
    weight: int
    attempt: int | None
    events: list[Event]
    """All witnesses, in order."""
    sources: set[str]
    count: int = 1
    until_s: float | None = None


class Story:
    """Finds and chooses the facts of one report."""

    def __init__(self, report: Report, owner: Owner, attempts: Sequence[Attempt]) -> None:
        self._report, self._owner, self._attempts = report, owner, attempts
        d = report.diagnosis
        main = d.incidents[0]
        self._at: dict[tuple[str, int], list[Finding]] = {}
        for finding in d.findings:
            self._at.setdefault((finding.locator.source, finding.locator.line), []).append(finding)
        self.root: Locator | None = d.first_cause.locator if d.first_cause else None
        self.fault = d.verdict.cause.id not in NO_FAULT
        self.evidence = {base.locator for f in d.verdict.evidence for base in (*f.rests_on, f)}
        self.decisive = {f.locator for f in d.verdict.decisive}
        self.decoys = {item.finding.locator for item in main.decoys if item.reason not in LATER}
        self._chain = {link.finding.locator for link in main.chain}
        self._contributing = {f.locator for f in main.contributing}
        here = {f.signature for f in d.findings if f.locator == self.root}
        self._root_names = {name for name in here if not name.startswith("derived.")}
        self._witnesses = {e.locator for death in main.deaths for e in death.witnesses}
        self._starts = {a.started.locator for a in attempts if a.started}
        self._starts |= {a.life.start.locator for a in attempts if a.life and not a.life.from_start}
        self._ready = {a.life.ready.locator for a in attempts if a.life and a.life.ready}
        self._from_s = main.start_s
        self._dated = sum(attempt_stage.known(e) is not None for e in report.timeline) * 2 > len(report.timeline)
        """True when most times are known, so that vague ones may step back."""

    def facts(self) -> tuple[list[Fact], int]:
        """The chosen facts in order of time, and how many were left out."""
        found = self._collect(self._candidates())
        chosen = self._choose(found)
        return chosen, len(found) - len(chosen)

    def leading(self, findings: Sequence[Finding]) -> Finding | None:
        """The finding that names an event: what decided the verdict, else what the line itself says, else a rule's."""

        def order(finding: Finding) -> tuple[int, int]:
            derived = finding.signature.startswith("derived.")
            if derived and finding.role is Role.CAUSE and finding.locator in self.decisive:
                return (0, 0)
            return (2 if derived else 1, -severity([finding]))

        return min(findings, key=order, default=None)

    def _candidates(self) -> list[Event]:
        d = self._report.diagnosis
        events = list(self._report.timeline)
        events += [e for death in d.incidents[0].deaths for e in death.witnesses]
        events += [a.started for a in self._attempts if a.started]
        events += [a.life.start for a in self._attempts if a.life and not a.life.from_start]
        events += [a.life.ready for a in self._attempts if a.life and a.life.ready]
        events += [f.event for f in (*d.verdict.evidence, *d.incidents[0].contributing)]
        events += [d.first_cause.event] if d.first_cause is not None else []
        if self._dated:
            events = [e for e in events if e.time.utc_s is not None or e.locator == self.root]
        seen = {(e.locator, e.kind == "access"): e for e in reversed(events) if e.kind != "k8s_first_seen"}
        return sorted(seen.values(), key=timeline.sort_key)

    def found_at(self, event: Event) -> list[Finding]:
        """What the line of an event was recognised as."""
        return self._at.get((event.locator.source, event.locator.line), [])

    def _collect(self, events: Iterable[Event]) -> list[Fact]:
        """One fact each: duplicates joined, repeats counted."""
        facts: list[Fact] = []
        open_facts: dict[tuple[int | None, str], Fact] = {}
        numbers = attempt_stage.Numbers(self._attempts)
        told = self.evidence | self._contributing
        for event in events:
            if self._owner.owns(event) is False and event.locator not in told:
                continue
            number = numbers.of(event)
            findings = self.found_at(event)
            key = self._key(event, findings)
            fact = open_facts.get((number, key))
            if fact is None or (key in SLACK_S and not _near(fact, event)):
                weight, sources = self._weight(event, findings), {event.locator.source}
                fact = Fact(event, findings, key, weight, number, [event], sources, event.count)
                open_facts[number, key] = fact
                facts.append(fact)
            else:
                self._join(fact, event, findings)
        return facts

    def _join(self, fact: Fact, event: Event, findings: list[Finding]) -> None:
        weight = self._weight(event, findings)
        near = _near(fact, event)
        told = near and event.locator.source not in fact.sources
        if not told and fact.key not in SLACK_S and not _near(fact, event, fact.events[0]):
            fact.count += event.count
            fact.until_s = event.time.utc_s if event.time.utc_s is not None else fact.until_s
        fact.events.append(event)
        fact.sources.add(event.locator.source)
        if findings and (weight < fact.weight or severity(findings) > severity(fact.findings)):
            fact.findings = findings
        if near and fact.lead.locator != self.root and 2 * event.time.uncertainty_s < fact.lead.time.uncertainty_s:
            fact.lead = event  # the better clock tells the time
        if event.locator == self.root:
            fact.lead, fact.findings = event, findings
        fact.weight = min(fact.weight, weight)

    def _key(self, event: Event, findings: Sequence[Finding]) -> str:
        reason = str(event.fields.get("reason", ""))
        if event.locator == self.root or self._like_root(findings):
            return "root"
        if event.locator in self._ready:
            return "ready"
        if event.locator in self._starts or attempt_stage.is_start(event):
            return "start"
        if event.kind in attempt_stage.ENDS:
            return "end"
        if event.kind in _STOPS or reason == "Killing":
            return "kill" if event.fields.get("signal") == 9 else "stop"
        if event.kind == "kernel_oom":
            return f"kill {event.fields.get('victim_pid', event.locator.line)}"
        named = self.leading(findings)
        if named is not None:
            return named.signature
        return f"{event.kind} {reason or regex.sub(r'[0-9a-f]{8,}|[0-9]+', '#', event.text[:120])}"

    def _like_root(self, findings: Sequence[Finding]) -> bool:
        """The same error again: printed twice, or met by a later run."""
        return any(f.signature in self._root_names for f in findings)

    def _weight(self, event: Event, findings: Sequence[Finding]) -> int:
        vague = attempt_stage.known(event) is None and self._dated and event.locator != self.root
        return min(self._plain_weight(event, findings) + (3 if vague else 0), NOISE)

    def _plain_weight(self, event: Event, findings: Sequence[Finding]) -> int:
        where = event.locator
        if where == self.root:
            return ROOT
        if where in self.decisive or (event.kind == "kernel_oom" and where in self.evidence):
            return END
        if where in self._starts or where in self._ready:
            return START
        if where in self._witnesses and event.kind in attempt_stage.ENDS:
            return END
        weight = self._common_weight(event, findings)
        return weight + 1 if where in self.decoys and weight > STOP else weight

    def _common_weight(self, event: Event, findings: Sequence[Finding]) -> int:
        where = event.locator
        if event.kind in _STOPS or event.fields.get("reason") in _STOP_REASONS:
            return STOP
        if event.kind == "access" and int(event.fields.get("status") or 0) >= 500:
            return START
        if self._like_root(findings) and self._owner.owns(event):
            return START
        if where in self.evidence:
            return EVIDENCE
        if where in self._chain or where in self._contributing or event.kind == "kernel_oom":
            return SIDE
        if any(f.role is Role.CONSEQUENCE or (f.role is Role.CAUSE and not f.quoted) for f in findings):
            return SIDE
        if event.kind == "container_started":
            return START if self._owner.owns(event) else NOISE
        return CONTEXT if findings else NOISE

    def _choose(self, facts: Sequence[Fact]) -> list[Fact]:
        last = len(self._attempts)
        first = next((f.attempt for f in facts if f.weight == ROOT), None)

        def order(item: tuple[int, Fact]) -> tuple[int, float, int]:
            index, fact = item
            middle = fact.attempt not in (None, first, 1, last)
            alike = last > MANY_RUNS and middle and 3 < (fact.attempt or 0) < last - 1
            extra = NOISE if alike else 2 if middle and last > 3 and fact.weight >= STOP else 0
            return (fact.weight + (0 if fact.weight == ROOT else extra), self._distance(fact), index)

        ranked = sorted(enumerate(facts), key=order)
        kept = [item for item in ranked if order(item)[0] <= SIDE][:MOST]
        kept += [item for item in ranked if order(item)[0] == CONTEXT][: max(0, FEWEST - len(kept))]
        return [fact for _, fact in sorted(kept, key=lambda item: timeline.sort_key(item[1].lead))]

    def _distance(self, fact: Fact) -> float:
        if self._from_s is None or fact.lead.time.utc_s is None:
            return float("inf")
        return abs(fact.lead.time.utc_s - self._from_s)


def _near(fact: Fact, event: Event, other: Event | None = None) -> bool:
    """True when an event may tell of the same moment as another one, by default the fact's last."""
    last = other or fact.events[-1]
    if last.time.utc_s is None or event.time.utc_s is None:
        return True
    doubt = min(last.time.uncertainty_s + event.time.uncertainty_s, 120.0)
    return event.time.utc_s - last.time.utc_s <= SLACK_S.get(fact.key, SAME_FACT_S) + doubt


def severity(findings: Sequence[Finding]) -> int:
    """The highest severity as a number; −1 for none."""
    return max((_SEVERITIES.index(f.severity) for f in findings), default=-1)
