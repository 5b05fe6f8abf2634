"""The facts of the story as rows: title, detail, quote, layer, places; order told only where it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import timeline
from ..model import Event, Finding, Role
from . import attempts as attempt_stage
from . import contract, text
from .story import SLACK_S, Fact, Story

if TYPE_CHECKING:
    from .model import Report

PLACES = 3
SECOND_CHARS = len("2026-01-01T00:00:00")
CLUSTER_S = 30.0
LANES = ("gpu", "kernel", "engine", "container", "kubelet", "request")
"""From the machine upwards."""

_CHANNEL_LANES = {
    "engine": "engine", "container": "engine", "ray": "engine", "metrics": "engine", "runtime": "container",
    "k8s": "kubelet", "kubelet": "kubelet", "kernel": "kernel", "systemd": "kernel", "oomd": "kernel",
    "clock": "kernel", "host": "kernel", "cgroup": "kernel", "nvidia": "gpu", "plain": "engine",
}  # fmt: skip
_KIND_LANES = {
    "access": "request", "xid": "gpu", "container_started": "container", "container_terminated": "container",
    "container_waiting": "container", "docker_state": "container", "unit_exit": "container",
}  # fmt: skip
_KEY_LANES = {"start": "container", "end": "container", "ready": "engine"}
_SAMPLE_LANES = (("gpu_", "gpu"), ("host_", "kernel"), ("container_", "kernel"), ("process_", "kernel"),
                 ("swap_", "kernel"))  # fmt: skip


def rows(report: Report, story: Story, language: str) -> tuple[list[dict[str, Any]], int]:
    """Rows in order, and how many facts were left out."""
    chosen, left_out = story.facts()
    facts = {id(fact.lead): fact for fact in chosen}
    told: list[dict[str, Any]] = []
    for group in timeline.groups(fact.lead for fact in chosen):
        shown = [{**_row(report, story, facts[id(e)], language), "order_unknown": len(group) > 1} for e in group]
        if len(shown) > 1:  # no order can be proved: the cause first, then by the second, from the machine upwards
            first = min((row["attempt"] for row in shown if row["attempt"]), default=0)
            shown.sort(key=partial(_unproved, first))
        for row in shown:
            root = story.root is not None and row["places"][0] == {"source": story.root.source, "line": story.root.line}
            if told and not root and _one_thing(told[-1], row):
                _absorb(told[-1], row, language)
            else:
                told.append(row)
    return told, left_out


def _unproved(first_attempt: int, row: Mapping[str, Any]) -> tuple[int, bool, str, int]:
    """A row of no run stands among those of the first."""
    attempt = row["attempt"] or first_attempt
    return (attempt, row["mark"] != "root", str(row["utc"])[:SECOND_CHARS], LANES.index(row["lane"]))


def _row(report: Report, story: Story, fact: Fact, language: str) -> dict[str, Any]:
    event, finding = fact.lead, story.leading(fact.findings)
    places: dict[str, dict[str, Any]] = {}
    for e in (event, *fact.events):
        places.setdefault(e.locator.source, {"source": e.locator.source, "line": e.locator.line})
    return {
        **contract.moment(event.time),
        "lane": _lane(fact, event),
        "attempt": fact.attempt,
        "kind": fact.key if fact.key in SLACK_S else event.kind,
        "title": _title(report, story, fact, finding, language) or event.text,
        "detail": _detail(fact, finding, language),
        **(report.quoted(event) if fact.key not in SLACK_S else {"quote": ""}),
        "mark": _mark(story, fact),
        "finding": finding.id if finding is not None else None,
        "count": fact.count,
        "until": contract.iso(fact.until_s) if fact.count > 1 else None,
        "places": list(places.values())[:PLACES],
        "more_places": max(0, len(places) - PLACES),
    }


def _lane(fact: Fact, event: Event) -> str:
    if event.kind == "sample":
        return next((lane for prefix, lane in _SAMPLE_LANES if event.text.startswith(prefix)), "engine")
    return _KEY_LANES.get(fact.key) or _KIND_LANES.get(event.kind) or _CHANNEL_LANES.get(event.channel, "engine")


def _title(report: Report, story: Story, fact: Fact, finding: Finding | None, language: str) -> str:
    """What the finding says; starts, readiness and ends have words of their own."""
    seen = (f for event in fact.events for f in story.found_at(event))
    named = report.title_of(finding, language, seen) if finding is not None else ""
    kind = fact.key if fact.key in SLACK_S else fact.lead.kind
    if kind == "start" and not any(map(attempt_stage.is_start, fact.events)):
        kind = "begin"
    label = str(text.texts(language)["kind"].get(kind, ""))
    plain = finding is None or (kind == "end" and finding.signature.startswith("derived."))
    return label if label and (plain or kind in ("start", "begin", "ready")) else named


def _detail(fact: Fact, finding: Finding | None, language: str) -> str:
    said = [text.sentence(finding, language)] if finding is not None else []
    if fact.key == "end":
        t = text.texts(language)["kind"]
        fields = {k: v for e in reversed(fact.events) for k, v in e.fields.items() if v not in ("", None)}
        code, reason = fields.get("exit_code"), fields.get("reason")
        told = finding is not None and not finding.signature.startswith("derived.")  # its title names the code
        said = [text.fill(t["exit_code"], {"exit_code": code}) or ""] if code is not None and not told else []
        said += [str(reason)] if reason not in (None, "Error", "Completed") else []
    return str(text.texts(language)["comma"]).join(part for part in said if part)


def _mark(story: Story, fact: Fact) -> str:
    if fact.lead.locator == story.root and story.fault:
        return "root"
    where = {event.locator for event in fact.events}
    if where & story.evidence:
        return "evidence"
    if where & story.decoys and fact.key != "end":
        return "decoy"
    return "consequence" if any(f.role is Role.CONSEQUENCE for f in fact.findings) else ""


def _one_thing(row: dict[str, Any], following: dict[str, Any]) -> bool:
    """Consequences, or witnesses of one kind, that follow each other within seconds tell one thing together."""
    if row["mark"] not in ("consequence", "evidence") or row["detail"] or following["detail"]:
        return False
    if any(row[name] != following[name] for name in ("mark", "attempt", "lane")):
        return False
    return bool(row["utc"] and following["utc"]) and _seconds(row["utc"], following["utc"]) <= CLUSTER_S


def _seconds(a: str, b: str) -> float:
    return (datetime.fromisoformat(b) - datetime.fromisoformat(a)).total_seconds()


def _absorb(row: dict[str, Any], following: dict[str, Any], language: str) -> None:
    joined = str(text.texts(language)["semicolon"])
    if following["title"] not in row["title"].split(joined):
        row["title"] += joined + following["title"]
    row["quote"] = ""
    row["places"] = _first_of_each([*row["places"][:1], *following["places"][:1]])
    row["until"] = following["utc"] if _seconds(row["utc"], following["utc"]) >= 1 else row["until"]


def _first_of_each(places: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [place for i, place in enumerate(places) if place not in places[:i]]
