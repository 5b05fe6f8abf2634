"""What a reader does next: the lines for the manager, what to change, and the questions that stay open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import regex

from ..clocks.yearless import DAY_S
from ..clocks.years import YEAR_S
from ..diagnosis.rank import matches
from ..model import Finding
from ..regexes import lazy_regex
from ..signatures.model import Advice, Condition, Confirm, Text, runs_on, serves
from . import commands, contract, text

if TYPE_CHECKING:
    from .attempts import Attempt
    from .model import Report

_NAME = lazy_regex(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
"""What Kubernetes allows in names: nothing that a shell acts on. Anything else never enters a command."""


ENOUGH = 2
"""With so many general remedies nobody needs those for what was not found."""


def change(report: Report, language: str) -> dict[str, Any]:
    """What to change, what not to do, how to verify; texts with code in backticks."""
    cause = report.diagnosis.verdict.cause

    def filled(items: Iterable[Advice]) -> list[str]:
        """The texts with their numbers; one whose numbers are unknown is left out."""
        said = (text.fill(item.text[language], report.diagnosis.key_facts) for item in items)
        return [item for item in said if item is not None]

    return {
        "change": [*_going_back(report, language), *filled(_fitting(report))],
        "avoid": filled(item for item in cause.avoid if _holds(report, item.condition)),
        "verify": told(report, "verify", language),
        "prevent": filled(item for item in cause.prevent if _holds(report, item.condition)),
    }


def _going_back(report: Report, language: str) -> Iterator[str]:
    """What was changed before the failure: to take it back is quicker than any remedy."""
    t = text.texts(language)["advice"]
    for finding in report.diagnosis.incidents[0].contributing:
        if finding.signature == "derived.settings_changed":
            names = {k: v for k in ("namespace", "workload") if _NAME.fullmatch(v := str(finding.fields.get(k, "")))}
            told = {k: v for k, v in finding.fields.items() if k not in ("namespace", "workload")}
            yield (text.fill(t["changed"], told) or "") + (text.fill(t["roll_back"], {**told, **names}) or "")


def told(report: Report, key: str, language: str) -> str:
    """`summary`, `mechanism` or `verify` of the cause, as it came about here."""
    cause = report.diagnosis.verdict.cause
    own = (v.texts[key] for v in cause.variants if key in v.texts and _holds(report, v.condition))
    general: Text = getattr(cause, key)
    return next(own, general)[language].strip()


def _fitting(report: Report) -> list[Advice]:
    """Remedies of the cause for this engine, those for what was found first.

    A remedy for something else is left out. Where that leaves fewer than `ENOUGH`, all are shown: the reader must
    choose.
    """
    cause, engine = report.diagnosis.verdict.cause, report.diagnosis.engine
    here = report.diagnosis.platforms
    remedies = [
        r for r in cause.remedies if serves(r.condition.engine, engine) and runs_on(r.condition.platform, here)
    ]
    special = [r for r in remedies if r.condition.when and _is_special(r.condition)]
    meant = [r for r in special if _holds(report, r.condition)]
    rest = [r for r in remedies if r not in special and _holds(report, r.condition)]
    return [*meant, *rest] if meant or len(rest) >= ENOUGH else [r for r in remedies if r in special or r in rest]


def _is_special(condition: Condition) -> bool:
    """True for one way in which a cause may come about; a bare fact only says that a number is known."""
    return bool(condition.findings) or "=" in condition.when


def _holds(report: Report, condition: Condition) -> bool:
    d = report.diagnosis
    if not serves(condition.engine, d.engine) or not runs_on(condition.platform, d.platforms):
        return False
    found = [base for f in (*d.verdict.evidence, *d.verdict.onset) for base in (f, *f.rests_on)]
    if not condition.when or any(matches(condition.findings, finding) for finding in found):
        return True
    words = (word.partition("=") for word in condition.when.split() if word not in condition.findings)
    facts = d.key_facts
    return any(facts.get(name) is not None and (not sign or str(facts[name]) == value) for name, sign, value in words)


def questions(report: Report, language: str) -> list[dict[str, Any]]:
    """What is missing first, then what would confirm or refute the verdict; each with the command that shows it."""
    names = _names(report)
    found = [
        {"kind": "missing", "key": g.key, "text": text.gap(g, language), "command": command}
        for g in report.diagnosis.gaps
        if (command := _safe(g.command, report))
    ]
    found += [
        {"kind": "confirm", "key": "", "text": c.evidence[language], "command": _put(command, names)}
        for c, command in confirmations(report, report.diagnosis.verdict.cause.confirm)
    ]
    return found


def confirmations(report: Report, items: Iterable[Confirm]) -> Iterator[tuple[Confirm, str]]:
    """Those that hold for the engine and the platform, each with its command as it is given there."""
    d = report.diagnosis
    for item in items:
        command = commands.on(item.command, d.platforms)
        if command and serves(item.engine, d.engine) and runs_on(item.platform, d.platforms):
            yield item, command


def _names(report: Report) -> dict[str, str]:
    """Placeholder → the real name, where it is known and harmless in a shell."""
    main = report.diagnosis.incidents[0]
    kind, _, name = main.entity.partition(":")
    found: dict[str, str] = {
        "pod": name if kind == "pod" else "",
        "unit": name if kind == "unit" else "",
        "container": {"ctr": name, "pod": main.container}.get(kind, ""),
    }
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
    return regex.sub(r"<(pod|namespace|container|node|unit)>", lambda m: names.get(m[1], m[0]), command)


def _safe(command: str, report: Report) -> str:
    """A command of the diagnosis; a pod name that is none becomes a placeholder again."""
    command = commands.on(command, report.diagnosis.platforms)
    kind, _, name = report.diagnosis.incidents[0].entity.partition(":")
    if kind == "pod" and name and not _NAME.fullmatch(name):
        return command.replace(name, "<pod>")
    return _put(command, _names(report))


def summary(
    report: Report, attempts: Sequence[Attempt], advice: Mapping[str, Any], language: str
) -> list[dict[str, Any]]:
    """At most nine lines: what, who asks for it, when, impact, cause, how sure, evidence, what now, what not."""
    t = text.texts(language)
    d = report.diagnosis
    main = d.incidents[0]
    ends = sorted(filter(None, (a.end_s for a in attempts)))
    start_s = main.start_s if main.start_s is not None else next(iter(ends), _first_failure_s(d.impact))
    end_s = main.end_s if main.end_s is not None else max(ends, default=None)
    name = main.entity.partition(":")[2]
    what = d.verdict.cause.title[language] + (text.fill(" – `{name}`", {"name": name}) or "" if name else "")
    what += text.fill(" / `{bystander}`", d.key_facts) or ""
    lines: list[dict[str, Any]] = [{"key": "what", "text": what}]
    if (place := d.asked.place) is not None:
        lines.append({"key": "asked", "text": t["summary"]["asked_here"], "source": place.source, "line": place.line})
    well = d.verdict.cause.id == "healthy"
    fault = not well and d.verdict.cause.id != "insufficient_evidence"
    if not well:
        when = _when(start_s, end_s, attempts, t)
        dated = [f.time for f in d.verdict.decisive if f.time.utc_s is not None] if start_s is not None else []
        doubts_s = [time.uncertainty_s for time in dated]
        year, day = max(doubts_s, default=0.0) >= YEAR_S, min(doubts_s, default=0.0) >= DAY_S
        open_part = "when_year" if year else "when_day" if day else ""
        lines.append({"key": "when", "text": text.fill(t["summary"][open_part], {"when": when}) if open_part else when})
    unseen = t["summary"]["impact_none" if well else "impact_unknown"]
    lines.append({"key": "impact", "text": impact(d.impact, t) or unseen})
    cause = _because(report, language) if fault else ""
    cause += (text.fill(" – `{failing_process}`", d.key_facts) or "") if cause else ""
    lines.append({"key": "cause" if fault else "verdict", "text": cause or told(report, "summary", language)})
    if d.first_cause is not None and fault:
        lines[-1] |= {"source": d.first_cause.locator.source, "line": d.first_cause.locator.line}
    lines.append({"key": "sure", "text": text.confidence(d.verdict, language)})
    lines.append({"key": "evidence", "text": _evidence(report, t)})
    if advice["change"]:
        lines.append({"key": "now", "text": advice["change"][0]})
    if advice["avoid"]:
        lines.append({"key": "avoid", "text": advice["avoid"][0]})
    return lines


def _first_failure_s(cost: Mapping[str, Any]) -> float | None:
    """When a gateway first answered with an error, as Unix time: all that is known where nothing shows an end."""
    first = cost.get("first_gateway_error_utc")
    return datetime.fromisoformat(str(first)).timestamp() if first else None


def _because(report: Report, language: str) -> str:
    """The decisive finding in one sentence, with its numbers: the one that stands on the line shown first.

    Where a rule found out when it began, that line is the rule's own.
    """
    root, decisive = report.diagnosis.first_cause, report.diagnosis.verdict.decisive
    if root is not None and root.signature.startswith("derived."):
        decisive = (*decisive, root)

    def order(finding: Finding) -> tuple[bool, bool]:
        here = root is not None and root.locator in {f.locator for f in (finding, *finding.rests_on)}
        return (not here, not text.sentence(finding, language))

    ordered = sorted(decisive, key=order)
    if not ordered:
        return ""
    said = text.sentence(ordered[0], language)
    title = report.title_of(ordered[0], language)
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
