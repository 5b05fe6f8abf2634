"""What a reader does next: the lines for the manager, what to change, and the questions that stay open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import regex

from ..clocks.years import YEAR_S
from ..diagnosis.rank import matches
from ..model import Finding
from ..signatures.model import Remedy
from . import contract, text

if TYPE_CHECKING:
    from .attempts import Attempt
    from .model import Report

_NAME = regex.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
"""What Kubernetes allows in names: nothing that a shell acts on. Anything else never enters a command."""


def change(report: Report, language: str) -> dict[str, Any]:
    """What to change, what not to do, how to verify; texts with code in backticks."""
    cause = report.diagnosis.verdict.cause
    facts = report.diagnosis.key_facts
    filled = (text.fill(remedy.text[language], facts) for remedy in _fitting(report))
    return {
        "change": [remedy for remedy in filled if remedy is not None],
        "avoid": [item[language] for item in cause.avoid],
        "verify": cause.verify[language],
        "prevent": [item[language] for item in cause.prevent],
    }


def _fitting(report: Report) -> list[Remedy]:
    """Remedies of the cause, those for what was found first.

    A remedy for something else is left out; where none fits what was found, all are shown: the reader must choose.
    """
    remedies = report.diagnosis.verdict.cause.remedies
    special = [remedy for remedy in remedies if remedy.when and _is_special(remedy)]
    meant = [remedy for remedy in special if _holds(report, remedy)]
    rest = [r for r in remedies if r not in special and (not r.when or _holds(report, r))]
    return [*meant, *rest] if meant else [r for r in remedies if r in special or r in rest]


def _is_special(remedy: Remedy) -> bool:
    """True for one way in which a cause may come about; a bare fact only says that a number is known."""
    return bool(remedy.findings) or "=" in remedy.when


def _holds(report: Report, remedy: Remedy) -> bool:
    verdict, facts = report.diagnosis.verdict, report.diagnosis.key_facts
    found = [base for f in (*verdict.evidence, *verdict.onset) for base in (f, *f.rests_on)]
    if any(matches(remedy.findings, finding) for finding in found):
        return True
    words = (word.partition("=") for word in remedy.when.split() if word not in remedy.findings)
    return any(facts.get(name) is not None and (not sign or str(facts[name]) == value) for name, sign, value in words)


def questions(report: Report, language: str) -> list[dict[str, Any]]:
    """What is missing first, then what would confirm or refute the verdict; each with the command that shows it."""
    names = _names(report)
    found = [
        {"kind": "missing", "key": g.key, "text": text.gap(g, language), "command": _safe(g.command, report)}
        for g in report.diagnosis.gaps
    ]
    found += [
        {"kind": "confirm", "key": "", "text": c.evidence[language], "command": _put(c.command, names)}
        for c in report.diagnosis.verdict.cause.confirm
    ]
    return found


def _names(report: Report) -> dict[str, str]:
    """Placeholder → the real name, where it is known and harmless in a shell."""
    main = report.diagnosis.incidents[0]
    kind, _, name = main.entity.partition(":")
    found: dict[str, str] = {"pod": name if kind == "pod" else ""}
    for event in report.timeline:
        if kind == "pod" and event.scope.pod == name:
            found.setdefault("namespace", event.scope.namespace)
            found.setdefault("container", event.scope.container)
            found.setdefault("node", event.scope.host)
            for key, value in (("namespace", event.scope.namespace), ("container", event.scope.container),
                               ("node", event.scope.host)):  # fmt: skip
                found[key] = found[key] or value
    return {key: value for key, value in found.items() if _NAME.fullmatch(value)}


def _put(command: str, names: Mapping[str, str]) -> str:
    return regex.sub(r"<(pod|namespace|container|node)>", lambda m: names.get(m[1], m[0]), command)


def _safe(command: str, report: Report) -> str:
    """A command of the diagnosis; a pod name that is none becomes a placeholder again."""
    kind, _, name = report.diagnosis.incidents[0].entity.partition(":")
    if kind == "pod" and name and not _NAME.fullmatch(name):
        return command.replace(name, "<pod>")
    return _put(command, _names(report))


def summary(
    report: Report, attempts: Sequence[Attempt], advice: Mapping[str, Any], language: str
) -> list[dict[str, Any]]:
    """At most eight lines: what, since when until when, impact, cause, how sure, evidence, what now, what not."""
    t = text.texts(language)
    d = report.diagnosis
    main = d.incidents[0]
    ends = sorted(filter(None, (a.end_s for a in attempts)))
    start_s = main.start_s if main.start_s is not None else next(iter(ends), None)
    end_s = main.end_s if main.end_s is not None else max(ends, default=None)
    name = main.entity.partition(":")[2]
    what = d.verdict.cause.title[language] + (text.fill(" – `{name}`", {"name": name}) or "" if name else "")
    lines: list[dict[str, Any]] = [{"key": "what", "text": what}]
    well = d.verdict.cause.id == "healthy"
    fault = not well and d.verdict.cause.id != "insufficient_evidence"
    if not well:
        when = _when(start_s, end_s, attempts, t)
        assumed = start_s is not None and any(f.time.uncertainty_s >= YEAR_S for f in d.verdict.decisive)
        lines.append({"key": "when", "text": text.fill(t["summary"]["when_year"], {"when": when}) if assumed else when})
    unseen = t["summary"]["impact_none" if well else "impact_unknown"]
    lines.append({"key": "impact", "text": impact(d.impact, t) or unseen})
    cause = _because(report, language) if fault else ""
    lines.append({"key": "cause" if fault else "verdict", "text": cause or d.verdict.cause.summary[language]})
    if d.first_cause is not None and fault:
        lines[-1] |= {"source": d.first_cause.locator.source, "line": d.first_cause.locator.line}
    lines.append({"key": "sure", "text": t["confidence"][d.verdict.confidence.value]})
    lines.append({"key": "evidence", "text": _evidence(report, t)})
    if advice["change"]:
        lines.append({"key": "now", "text": advice["change"][0]})
    if advice["avoid"]:
        lines.append({"key": "avoid", "text": advice["avoid"][0]})
    return lines


def _because(report: Report, language: str) -> str:
    """The decisive finding in one sentence, with its numbers: the one that stands on the line shown first."""
    root = report.diagnosis.first_cause

    def order(finding: Finding) -> tuple[bool, bool]:
        here = root is not None and root.locator in {f.locator for f in (finding, *finding.rests_on)}
        return (not here, not text.sentence(finding, language))

    ordered = sorted(report.diagnosis.verdict.decisive, key=order)
    if not ordered:
        return ""
    said = text.sentence(ordered[0], language)
    title = report.title(ordered[0].signature, language)
    return f"{title}{text.texts(language)['colon']}{said}" if said else title


def _when(start_s: float | None, end_s: float | None, attempts: Sequence[Attempt], t: Mapping[str, Any]) -> str:
    if start_s is None:
        return str(t["summary"]["when_unknown"])
    start = clock(start_s)
    ready = [a.ready_s for a in attempts if a.ready_s is not None and end_s is not None and a.ready_s > end_s]
    if ready:
        key, end = "when_recovered", min(ready)
    elif end_s is not None and end_s - start_s >= 1:
        key, end = "when_last", end_s
    else:
        return str(text.fill(t["summary"]["when_since"], {"start": start}))
    shown = clock(end)
    if shown[:10] == start[:10]:
        shown = shown[11:]
    return str(text.fill(t["summary"][key], {"start": start, "end": shown, "for": duration(end - start_s, t)}))


def clock(seconds: float) -> str:
    """`2025-11-18 02:41:10` (UTC)."""
    return (contract.iso(seconds) or "?")[:19].replace("T", " ")


def duration(seconds: float, t: Mapping[str, Any]) -> str:
    """`45 s`, `21 min`, `3 h 31 min`, `2 d 4 h`."""
    unit = t["unit"]
    if seconds < 90:
        return f"{seconds:.0f} {unit['s']}"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} {unit['min']}"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} {unit['h']} {minutes} {unit['min']}" if minutes else f"{hours} {unit['h']}"
    days, hours = divmod(hours, 24)
    return f"{days} {unit['d']} {hours} {unit['h']}" if hours else f"{days} {unit['d']}"


def impact(numbers: Mapping[str, Any], t: Mapping[str, Any]) -> str:
    """All known numbers of the damage in one line; empty when there are none."""
    said = []
    for key, template in t["impact"].items():
        value = numbers.get(key)
        if value is None or value == 0:
            continue
        if key.endswith("_utc"):
            value = str(value)[:19].replace("T", " ")
        elif key.endswith("_s"):
            value = duration(float(value), t)
        said.append(text.fill(template, {"n": value}) or "")
    return str(t["semicolon"]).join(said)


def _evidence(report: Report, t: Mapping[str, Any]) -> str:
    d = report.diagnosis
    unread = sum(s.format == "unrecognised" for s in report.sources)
    clocks = [c.verdict for s in report.sources for c in s.clocks]
    numbers = {
        "for": len({f.locator for f in d.verdict.evidence}),
        "against": len({f.locator for f in d.verdict.against}),
        "files": len(report.sources),
        "read": len(report.sources) - unread,
        "gaps": len(d.gaps),
        "clocks": len(clocks),
        "assumed": clocks.count("assumed"),
        "refused": clocks.count("refused"),
        "others": len(d.incidents) - 1,
    }
    said = [text.fill(t["summary"]["evidence_line"], numbers)]
    said += [text.fill(t["summary"][key], numbers) for key in ("gaps", "assumed", "refused", "others") if numbers[key]]
    return str(t["semicolon"]).join(filter(None, said))
