"""The timeline that a reader can follow: few rows, chosen by weight, repeats collapsed, order honest.

Every event worth showing gets a weight (root cause, ends, starts, readiness … context). The same fact from several
sources is one row that names them; a fact that repeats within one attempt is one row with a count and an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import regex

from .. import timeline
from ..model import Event, Finding, Role
from . import attempts as attempt_stage
from . import contract, text
from .attempts import Attempt, Owner

if TYPE_CHECKING:
    from .model import Report

ROWS = 40
"""Most rows of the story; the JSON's `timeline` has all."""
FEWEST = 10
"""Below this many rows, context fills up."""
MANY_RUNS = 8
"""With more runs than this, those in the middle are told by the restart table only."""
PLACES = 3
SAME_FACT_S = 5.0
_SLACK_S = {"start": 60.0, "end": 45.0, "ready": 20.0, "stop": 20.0}
"""Facts that several sources tell of at somewhat different times, and of which a run has one."""
_LATER = frozenset({"other_run", "after"})
"""Reasons that make a finding a repeat or a consequence rather than a false sign."""
CLUSTER_S = 30.0

NO_FAULT = frozenset({"healthy", "insufficient_evidence"})
"""Verdicts without a root cause to mark."""
ROOT, END, START, STOP, EVIDENCE, SIDE, CONTEXT, NOISE = range(8)

LANES = ("gpu", "kernel", "engine", "container", "kubelet", "request")
_LANES = {
    "engine": "engine", "container": "engine", "ray": "engine", "metrics": "engine", "runtime": "container",
    "k8s": "kubelet", "kubelet": "kubelet", "kernel": "kernel", "systemd": "kernel", "oomd": "kernel", "clock": "kernel",
    "host": "kernel", "cgroup": "kernel", "nvidia": "gpu", "plain": "engine",
}  # fmt: skip
_KIND_LANES = {
    "access": "request", "xid": "gpu", "container_started": "container", "container_terminated": "container",
    "container_waiting": "container", "docker_state": "container", "unit_exit": "container",
}  # fmt: skip
_KEY_LANES = {"start": "container", "end": "container", "ready": "engine"}
_STOPS = frozenset({"container_kill"})
_STOP_REASONS = frozenset({"Killing", "Evicted", "Preempting", "SystemOOM"})


@dataclass(slots=True)
class _Row:
    """A fact in the making."""

    lead: Event
    findings: list[Finding]
    key: str
    weight: int
    attempt: int | None
    events: list[Event] = field(default_factory=list)
    count: int = 1
    until_s: float | None = None


class Story:
    """Builds the rows of one report."""

    def __init__(self, report: Report, owner: Owner, attempts: Sequence[Attempt]) -> None:
        self._report, self._owner, self._attempts = report, owner, attempts
        d = report.diagnosis
        main = d.incidents[0]
        self._at: dict[tuple[str, int], list[Finding]] = {}
        for finding in d.findings:
            self._at.setdefault((finding.locator.source, finding.locator.line), []).append(finding)
        used = [base for f in d.verdict.evidence for base in (*f.rests_on, f)]
        self._evidence = {f.locator for f in used}
        self._decisive = {f.locator for f in d.verdict.decisive}
        self._chain = {link.finding.locator for link in main.chain}
        self._contributing = {f.locator for f in main.contributing}
        self._decoys = {decoy.finding.locator for decoy in main.decoys if decoy.reason not in _LATER}
        self._root_names = {f.signature for f in d.findings if d.first_cause and f.locator == d.first_cause.locator}
        self._root_names -= {name for name in self._root_names if name.startswith("derived.")}
        self._root = d.first_cause.locator if d.first_cause else None
        self._fault = d.verdict.cause.id not in NO_FAULT
        self._witnesses = {e.locator for death in main.deaths for e in death.witnesses}
        self._starts = {a.started.locator for a in attempts if a.started}
        self._ready = {a.life.ready.locator for a in attempts if a.life and a.life.ready}
        self._from_s = main.start_s
        self._dated = sum(attempt_stage.known(e) is not None for e in report.timeline) * 2 > len(report.timeline)
        """True when most times are known, so that vague ones may step back."""

    def rows(self, language: str) -> tuple[list[dict[str, Any]], int]:
        """Rows in order, and how many facts were left out."""
        facts = self._facts(self._candidates())
        chosen = self._choose(facts)
        leads = {id(row.lead): row for row in chosen}
        rows: list[dict[str, Any]] = []
        for group in timeline.groups(row.lead for row in chosen):
            told = [{**self._shown(leads[id(event)], language), "order_unknown": len(group) > 1} for event in group]
            if len(told) > 1:  # no order can be proved: tell it from the machine upwards
                told.sort(key=lambda shown: (shown["attempt"] or 0, LANES.index(shown["lane"])))
            for shown in told:
                if rows and _clusters(rows[-1], shown):
                    _absorb(rows[-1], shown, language)
                else:
                    rows.append(shown)
        return rows, len(facts) - len(chosen)

    def _candidates(self) -> list[Event]:
        d = self._report.diagnosis
        events = list(self._report.timeline)
        events += [e for death in d.incidents[0].deaths for e in death.witnesses]
        events += [a.started for a in self._attempts if a.started]
        events += [a.life.ready for a in self._attempts if a.life and a.life.ready]
        events += [f.event for f in d.verdict.evidence]
        if self._dated:
            events = [e for e in events if e.time.utc_s is not None or e.locator == self._root]
        seen = {(e.locator, e.kind == "access"): e for e in reversed(events)}
        return sorted(seen.values(), key=timeline.sort_key)

    def _facts(self, events: Iterable[Event]) -> list[_Row]:
        """One row a fact: duplicates joined, repeats counted."""
        rows: list[_Row] = []
        open_rows: dict[tuple[int | None, str], _Row] = {}
        for event in events:
            if self._owner.owns(event) is False and event.locator not in self._evidence | self._contributing:
                continue
            number = attempt_stage.number_at(self._attempts, event)
            findings = self._at.get((event.locator.source, event.locator.line), [])
            key = self._key(event, findings)
            row = open_rows.get((number, key))
            if row is None:
                row = _Row(event, findings, key, self._weight(event, findings), number, [event], event.count)
                open_rows[number, key] = row
                rows.append(row)
            else:
                self._join(row, event, findings)
        return rows

    def _join(self, row: _Row, event: Event, findings: list[Finding]) -> None:
        weight = self._weight(event, findings)
        last = row.events[-1]
        a, b = last.time.utc_s, event.time.utc_s
        doubt = min(last.time.uncertainty_s + event.time.uncertainty_s, 120.0)
        near = a is None or b is None or b - a <= _SLACK_S.get(row.key, SAME_FACT_S) + doubt
        if not (near and event.locator.source not in {e.locator.source for e in row.events}) and row.key not in _SLACK_S:
            if not near or row.until_s is not None:
                row.count += event.count
                row.until_s = b if b is not None else row.until_s
        row.events.append(event)
        if findings and (weight < row.weight or _severity(findings) > _severity(row.findings)):
            row.findings = findings
        if near and row.lead.locator != self._root and 2 * event.time.uncertainty_s < row.lead.time.uncertainty_s:
            row.lead = event  # the better clock tells the time
        if event.locator == self._root:
            row.lead, row.findings = event, findings
        row.weight = min(row.weight, weight)

    def _key(self, event: Event, findings: Sequence[Finding]) -> str:
        reason = str(event.fields.get("reason", ""))
        if event.locator == self._root or any(f.signature in self._root_names for f in findings):
            return "root"
        if event.locator in self._ready:
            return "ready"
        if event.locator in self._starts or event.kind == "container_started" or reason == "Started":
            return "start"
        if event.kind in attempt_stage.ENDS:
            return "end"
        if event.kind in _STOPS or reason == "Killing":
            return "kill" if event.fields.get("signal") == 9 else "stop"
        if event.kind == "kernel_oom":
            return f"kill {event.fields.get('victim_pid', event.locator.line)}"
        named = _leading(findings, self._decisive)
        if named is not None:
            return named.signature
        return f"{event.kind} {reason or regex.sub(r'[0-9a-f]{8,}|[0-9]+', '#', event.text[:120])}"

    def _weight(self, event: Event, findings: Sequence[Finding]) -> int:
        vague = attempt_stage.known(event) is None and self._dated and event.locator != self._root
        return min(self._plain_weight(event, findings) + (3 if vague else 0), NOISE)

    def _plain_weight(self, event: Event, findings: Sequence[Finding]) -> int:
        where = event.locator
        if where == self._root:
            return ROOT
        if where in self._decisive or event.kind == "kernel_oom" and where in self._evidence:
            return END
        if where in self._starts or where in self._ready:
            return START
        if where in self._witnesses and event.kind in attempt_stage.ENDS:
            return END
        weight = CONTEXT
        if event.kind in _STOPS or event.fields.get("reason") in _STOP_REASONS:
            weight = STOP
        elif event.kind == "access" and int(event.fields.get("status") or 0) >= 500:
            weight = START
        elif any(f.signature in self._root_names for f in findings) and self._owner.owns(event):
            weight = START
        elif where in self._evidence:
            weight = EVIDENCE
        elif where in self._chain:
            weight = SIDE
        elif where in self._contributing or any(f.role is Role.CONSEQUENCE for f in findings):
            weight = SIDE
        elif event.kind == "kernel_oom" or any(f.role is Role.CAUSE and not f.quoted for f in findings):
            weight = SIDE
        elif event.kind == "container_started":
            weight = START if self._owner.owns(event) else NOISE
        elif not findings or event.kind == "probe_failed":
            weight = NOISE if not findings else CONTEXT
        if where in self._decoys and weight > STOP:
            weight += 1
        return weight

    def _choose(self, facts: Sequence[_Row]) -> list[_Row]:
        last = len(self._attempts)
        first = next((f.attempt for f in facts if f.weight == ROOT), None)

        def order(item: tuple[int, _Row]) -> tuple[int, float, int]:
            index, row = item
            middle = row.attempt not in (None, first, 1, last)
            alike = last > MANY_RUNS and middle and 3 < (row.attempt or 0) < last - 1
            extra = NOISE if alike else 2 if middle and last > 3 and row.weight >= STOP else 0
            return (row.weight + (0 if row.weight == ROOT else extra), self._distance(row), index)

        ranked = sorted(enumerate(facts), key=order)
        kept = [item for item in ranked if order(item)[0] <= SIDE][:ROWS]
        kept += [item for item in ranked if order(item)[0] == CONTEXT][: max(0, FEWEST - len(kept))]
        return [row for _, row in sorted(kept, key=lambda item: timeline.sort_key(item[1].lead))]

    def _distance(self, row: _Row) -> float:
        if self._from_s is None or row.lead.time.utc_s is None:
            return float("inf")
        return abs(row.lead.time.utc_s - self._from_s)

    def _shown(self, row: _Row, language: str) -> dict[str, Any]:
        t = text.texts(language)
        event, finding = row.lead, _leading(row.findings, self._decisive)
        kind = row.key if row.key in _SLACK_S else event.kind
        if kind == "start" and not any(e.kind == "container_started" or e.fields.get("reason") == "Started" for e in row.events):
            kind = "begin"
        label = t["kind"].get(kind)
        title = self._report.title(finding.signature, language) if finding is not None else ""
        if label and (not title or kind in ("start", "begin", "ready") or (kind == "end" and finding and finding.signature.startswith("derived."))):
            title = label
        places: dict[str, dict[str, Any]] = {}
        for e in (event, *row.events):
            places.setdefault(e.locator.source, {"source": e.locator.source, "line": e.locator.line})
        return {
            **contract.moment(event.time),
            "lane": _KEY_LANES.get(row.key) or _KIND_LANES.get(event.kind) or _LANES.get(event.channel, "engine"),
            "attempt": row.attempt,
            "title": title or event.text,
            "detail": _detail(row, finding, language),
            **(self._report.quoted(event) if row.key not in _SLACK_S else {"quote": ""}),
            "mark": self._mark(row),
            "finding": finding.id if finding is not None else None,
            "count": row.count,
            "until": contract.iso(row.until_s) if row.count > 1 else None,
            "places": list(places.values())[:PLACES],
            "more_places": max(0, len(places) - PLACES),
        }

    def _mark(self, row: _Row) -> str:
        if row.lead.locator == self._root and self._fault:
            return "root"
        where = {event.locator for event in row.events}
        if where & self._evidence:
            return "evidence"
        if where & self._decoys and row.key != "end":
            return "decoy"
        return "consequence" if any(f.role is Role.CONSEQUENCE for f in row.findings) else ""


def _severity(findings: Sequence[Finding]) -> int:
    order = ("info", "notice", "warning", "error", "critical")
    return max((order.index(f.severity) for f in findings), default=-1)


def _leading(findings: Sequence[Finding], decisive: Iterable[Any]) -> Finding | None:
    """The finding that names an event: what decided the verdict, else what the line itself says, else a rule's."""
    decided = set(decisive)

    def order(finding: Finding) -> tuple[int, int]:
        derived = finding.signature.startswith("derived.")
        if derived and finding.role is Role.CAUSE and finding.locator in decided:
            return (0, 0)
        return (2 if derived else 1, -_severity([finding]))

    return min(findings, key=order, default=None)


def _detail(row: _Row, finding: Finding | None, language: str) -> str:
    said = [text.sentence(finding, language)] if finding is not None else []
    if row.key == "end":
        t = text.texts(language)["kind"]
        fields = {k: v for e in reversed(row.events) for k, v in e.fields.items() if v not in ("", None)}
        code, reason = fields.get("exit_code"), fields.get("reason")
        told = finding is not None and not finding.signature.startswith("derived.")  # its title names the code
        said = [text.fill(t["exit_code"], {"exit_code": code}) or ""] if code is not None and not told else []
        said += [str(reason)] if reason not in (None, "Error", "Completed") else []
    return str(text.texts(language)["comma"]).join(part for part in said if part)


def _clusters(row: dict[str, Any], following: dict[str, Any]) -> bool:
    """Consequences, or witnesses of one kind, that follow each other within seconds tell one thing together."""
    if row["mark"] not in ("consequence", "evidence") or row["detail"] or following["detail"]:
        return False
    if (row["mark"], row["attempt"]) != (following["mark"], following["attempt"]):
        return False
    a, b = row["utc"], following["utc"]
    return row["lane"] == following["lane"] and bool(a and b) and seconds_between(a, b) <= CLUSTER_S


def seconds_between(a: str, b: str) -> float:
    """Of two ISO times."""
    return (datetime.fromisoformat(b) - datetime.fromisoformat(a)).total_seconds()


def _absorb(row: dict[str, Any], following: dict[str, Any], language: str) -> None:
    joined = str(text.texts(language)["semicolon"])
    if following["title"] not in row["title"].split(joined):
        row["title"] += joined + following["title"]
    row["quote"] = ""
    row["places"] = [*row["places"][:1], *following["places"][:1]][:PLACES]
    row["until"] = following["utc"] if seconds_between(row["utc"], following["utc"]) >= 1 else row["until"]
