"""A KV cache that is full while nobody dies: by a series of readings, by a few scrapes or reports, by a single one."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan

from ..model import Event, Finding, Locator, Samples
from . import bystanders, trends
from .case import Case, conclude
from .rules.series import FULL_PCT, saturation
from .rules.serving import DRAINING, QUEUE_S

_PREEMPTED = ("vllm.preempted_v0", "sglang.retract")
"""What an engine says when it takes KV cache back from running requests."""
Saturation = tuple[tuple[Finding, ...], str]
"""The evidence, and whose cache it is."""


def by_any(case: Case) -> Saturation | None:
    return for_long(case) or by_preemptions(case) or by_scrapes(case) or by_reports(case) or at_once(case)


def for_long(case: Case, since_s: float = -inf) -> Saturation | None:
    """A KV cache at its ceiling, looked at from a moment on (Unix time)."""
    for columns in _kv_series(case):
        points = [(point, samples) for samples in columns for point in trends.points_of(samples) if point[0] >= since_s]
        full = [(point[0], s.source, s, point) for point, s in points if point[1] >= FULL_PCT]
        if not full or not saturation([point[1] for point, _ in points]):
            continue
        *_, samples, point = min(full, key=lambda item: item[:2])
        fields = {"kv_cache_usage_pct": max(point[1] for point, _ in points)}
        waiting = [s for s in case.samples if s.name == "requests_waiting" and s.source in {c.source for c in columns}]
        if waiting:
            fields["requests_waiting"] = _peak(waiting)
        preempted = tuple(case.named(*_PREEMPTED))
        told = [f for f in preempted if f.locator.source == samples.source and _soon_after(f, point[0])]
        entity = case.entities.name_of(samples.scope, samples.source)
        if counted := _preempted(case, entity)[-1]:
            fields["preemptions_total"] = counted
        finding = conclude("kv_saturated", trends.event_at(samples, point), fields, told[:1])
        return (finding, *preempted), entity
    return None


def _soon_after(preempted: Finding, full_s: float) -> bool:
    """True for the engine's own word that the cache is full, near the first report that shows it."""
    moment = preempted.time.utc_s
    return not preempted.quoted and moment is not None and full_s - REPORT_S <= moment <= full_s + QUEUE_S


def by_preemptions(case: Case) -> Saturation | None:
    """Requests were taken back for want of KV cache, and the queue grew from the first of them to the last report.

    How full the cache was between two reports is not printed; who takes requests back says that it was full.
    """
    for waiting in (s for s in case.samples if s.name == "requests_waiting"):
        own = [f for f in case.named(*_PREEMPTED) if f.locator.source == waiting.source and not f.quoted]
        rows = [row for row in zip(waiting.lines, waiting.stamps, waiting.values, strict=True) if not isnan(row[2])]
        if not own or len(rows) < 2:
            continue
        places = [f.locator.order for f in own]
        before = [row for row in rows if row[0] < min(places)][-1:] or rows[:1]
        behind = [row for row in rows if row[0] > before[0][0]]
        beside = [row for row in rows if row[0] < max(places)][-1:] or before
        if not behind or behind[-1][0] < max(places) or behind[-1][1] - beside[0][1] > QUEUE_S:
            continue
        queue, least = behind[-1][2], min(value for _, _, value in behind)
        if queue >= QUEUE and queue > beside[0][2] and least >= before[0][2] and queue >= DRAINING * _peak([waiting]):
            usage = [s for s in case.samples if (s.name, s.source) == ("kv_cache_usage_pct", waiting.source)]
            fields = {"preemptions": sum(f.event.count for f in own), "requests_waiting": queue}
            fields |= {"kv_cache_usage_pct": _peak(usage)} if usage else {}
            owner = case.entities.name_of(waiting.scope, waiting.source)
            return (conclude("kv_preempting", own[0].event, fields, own[:1]), *own), owner
    return None


def by_scrapes(case: Case) -> Saturation | None:
    """A full cache with a queue in a few scrapes, dated or not: their files' order, and a counter, need no clock."""
    scraped = [s for s in case.samples if s.name in _SCRAPED and (all(map(isnan, s.stamps)) or _is_sparse(s))]
    owners = {case.entities.name_of(s.scope) for s in scraped}
    for owner in sorted(owners):
        own = [s for s in scraped if case.entities.name_of(s.scope) == owner]
        kv, waiting, preempted = (_in_file_order(own, name) for name in _SCRAPED)
        full = [row for row in kv if row[2] >= FULL_PCT]
        queue = max((value for *_, value in waiting), default=0.0)
        counts = [value for *_, value in preempted]
        grew = max(counts, default=0.0) - min(counts, default=0.0)
        if full and queue >= QUEUE and (grew or len(full) > 1):
            source, line, _ = full[0]
            if not grew and any(map(_is_sparse, own)):
                continue  # what lies between two dated scrapes is longer than they are
            fields = {"kv_cache_usage_pct": max(v for *_, v in full), "requests_waiting": queue}
            fields |= {"preemptions_total": counts[-1], "preemptions_grew": grew} if grew else {}
            place = Locator.at(source, line)
            event = Event(place, "sample", "metrics", f"kv_cache_usage_pct {full[0][2]:g}", scope=own[0].scope)
            dated = (trends.event_at(s, p) for s in own for p in trends.points_of(s) if (s.source, p[2]) == full[0][:2])
            return (conclude("kv_saturated", next(dated, event), fields),), owner
    return None


def _is_sparse(samples: Samples) -> bool:
    """True for the few dated scrapes that somebody made by hand."""
    return samples.layer == SCRAPE_LAYER and 1 <= len(samples.values) <= FEW_SCRAPES and not isnan(samples.stamps[0])


def by_reports(case: Case) -> Saturation | None:
    """A full cache with a queue that grew, in the last of the few reports that somebody picked out of a log.

    What lies between them is not shown. That more wait than run at the end, or that a counter of preemptions went on,
    says that they are no two bursts.
    """
    for waiting in (s for s in case.samples if s.name == "requests_waiting" and s.layer != SCRAPE_LAYER):
        beside = {s.name: s for s in case.samples if (s.source, s.scope) == (waiting.source, waiting.scope)}
        kv = beside.get("kv_cache_usage_pct")
        if kv is None or kv.lines != waiting.lines or not 2 <= len(kv.lines) <= FEW_REPORTS:
            continue
        rows = list(zip(waiting.lines, waiting.stamps, waiting.values, kv.values, strict=True))
        room = max((n for n, row in enumerate(rows) if not (row[2] >= QUEUE and row[3] >= FULL_PCT)), default=-1)
        jam = rows[room + 1 :]
        if len(jam) < 2 or not jam[-1][1] - jam[0][1] >= QUEUE_S or jam[-1][2] <= jam[0][2]:
            continue
        owner = case.entities.name_of(waiting.scope, waiting.source)
        counts = _preempted(case, owner)
        running = beside.get("requests_running")
        crowded = running is not None and jam[-1][2] > running.values[-1]
        if counts[-1] > counts[0] or crowded:
            place, moment, _, usage = jam[0]
            fields = {"kv_cache_usage_pct": max(row[3] for row in jam), "requests_waiting": max(row[2] for row in jam)}
            fields |= {"requests_running": running.values[-1]} if running is not None else {}
            if any(counts):
                fields |= {"preemptions_total": counts[-1], "preemptions_grew": counts[-1] - counts[0]}
            return (conclude("kv_saturated", trends.event_at(kv, (moment, usage, place)), fields),), owner
    return None


def _preempted(case: Case, owner: str) -> list[float]:
    """What a counter of preemptions showed in the order of its files: an engine's, or that of scrapes of its own."""
    named = ((s, case.entities.name_of(s.scope)) for s in case.samples)
    own = [s for s, name in named if (name == owner if name else bystanders.may_tell_of(case, s.source, owner))]
    return [value for *_, value in _in_file_order(own, "preemptions_total")] or [0.0]


def at_once(case: Case) -> Saturation | None:
    """A single reading, and nothing before or after it: full, with a queue that is no moment's jam.

    Requests were preempted, or more of them wait than run. How long it lasts is not shown: never more than possible.
    """
    last: dict[str, list[Samples]] = {}
    for samples in case.samples:
        if samples.name in _GAUGES:
            last.setdefault(case.entities.name_of(samples.scope), []).append(samples)
    for owner, own in sorted(last.items()):
        if any(len(s.values) != 1 for s in own) or len({s.source for s in own}) != 1:
            continue
        kv, waiting, preempted, running = ([s for s in own if s.name == name] for name in _GAUGES)
        fullest = max(kv, key=_value, default=None)
        queue, runs, count = (sum(map(_value, columns)) for columns in (waiting, running, preempted))
        if fullest is not None and _value(fullest) >= FULL_PCT and queue >= QUEUE and (count or queue > runs):
            fields = {"kv_cache_usage_pct": _value(fullest), "requests_waiting": queue}
            fields |= {"requests_running": runs} if running else {}
            fields |= {"preemptions_total": count} if preempted else {}
            text = f"kv_cache_usage_pct {_value(fullest):g}"
            event = Event(Locator.at(fullest.source, fullest.lines[0]), "sample", "metrics", text, scope=fullest.scope)
            return (conclude("kv_full_once", event, fields),), owner
    return None


def _value(single: Samples) -> float:
    return single.values[0]


_SCRAPED = ("kv_cache_usage_pct", "requests_waiting", "preemptions_total")
_GAUGES = (*_SCRAPED, "requests_running")
SCRAPE_LAYER = "metrics"
REPORT_S = 60.0
"""Reports of an engine come this often."""
FEW_SCRAPES = 5
FEW_REPORTS = 5
"""An engine reports every ten seconds: so few of them were picked."""
QUEUE = 10.0
"""So many requests wait when a full cache is more than a well used one."""


def _in_file_order(columns: Sequence[Samples], name: str) -> list[tuple[str, int, float]]:
    """(file, line, value) of one series over several files, in the order of their names.

    The engines of one server are counted together; of caches, the fullest counts.
    """
    scrapes: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for samples in (s for s in columns if s.name == name):
        for n, (line, value) in enumerate(zip(samples.lines, samples.values, strict=True)):
            if not isnan(value):
                scrapes.setdefault((samples.source, n), []).append((line, value))
    together = max if name == "kv_cache_usage_pct" else sum
    return [(source, rows[0][0], together(v for _, v in rows)) for (source, _), rows in sorted(scrapes.items())]


def _kv_series(case: Case) -> Sequence[Sequence[Samples]]:
    """KV cache usage by file; scrapes of one moment each, saved as a file each, are one series per owner."""
    groups: dict[tuple[str, str], list[Samples]] = {}
    for samples in case.samples:
        if samples.name == "kv_cache_usage_pct":
            owner = case.entities.name_of(samples.scope, samples.source)
            scraped = len(samples.values) == 1
            key = ("" if owner.startswith("file:") else owner, "") if scraped else ("", samples.source)
            groups.setdefault(key, []).append(samples)
    return list(groups.values())


def _peak(columns: Sequence[Samples]) -> float:
    return max(value for samples in columns for value in samples.values)
