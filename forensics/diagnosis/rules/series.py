"""What the series say about the minutes, or hours, before a death."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from ...model import Finding, Samples
from .. import ledger, trends
from ..case import Case, conclude
from ..model import Death, Life
from . import foreign
from .gpu import unallocated_gib
from .oom_site import first_failure, is_of_log_probs, site_of

FULL_PCT = 95.0
LOW_PCT = 60.0
LOOK_BACK_S = 180.0
LONG_QUEUE = 10
"""So many waiting requests are a queue, and no moment's jam."""


def rules(case: Case, death: Death) -> Iterator[Finding]:
    yield from _first_request(case, death)
    if not death.time_s:
        return
    yield from _kv(case, death, death.time_s)
    yield from _gpu_memory(case, death, death.time_s)


def load_at_death(life: Life | None) -> Finding | None:
    """The load that the engine dumped when it failed: nearer than any sample."""
    dumps = [f for f in (life.findings if life is not None else ()) if f.signature == "vllm.dump_scheduler_stats"]
    return next((f for f in reversed(dumps) if "kv_cache_usage_ratio" in f.fields), None)


def dumped_load(dump: Finding) -> dict[str, float]:
    """The numbers of a dump by the names that the series have."""
    fields = {name: dump.fields[name] for name in ("requests_running", "requests_waiting") if name in dump.fields}
    return {**fields, "kv_cache_usage_pct": round(100 * dump.fields["kv_cache_usage_ratio"], 2)}


def reported_load(case: Case, death: Death) -> dict[str, float]:
    """The numbers of the last reports before an end, each under its series' name."""
    names = ("requests_running", "requests_waiting", "kv_cache_usage_pct")
    found = {name: _points(case, death, name, death.time_s, LOOK_BACK_S) for name in names if death.time_s}
    return {name: points[-1][1][1] for name, points in found.items() if points}


def _kv(case: Case, death: Death, moment: float) -> Iterator[Finding]:
    """How full the KV cache was before the end: as the engine dumped it when it failed, else as last sampled."""
    kv, waiting, running = (
        _points(case, death, name, moment, LOOK_BACK_S)
        for name in ("kv_cache_usage_pct", "requests_waiting", "requests_running")
    )
    dump = load_at_death(death.life)
    fields: dict[str, float | None]
    if dump is not None:
        fields, event = dict(dumped_load(dump)), dump.event
    elif kv:
        samples, last = kv[-1]
        event = trends.event_at(samples, last)
        fields = {
            "kv_cache_usage_pct": last[1],
            "requests_waiting": waiting[-1][1][1] if waiting else None,
            "requests_running": running[-1][1][1] if running else None,
            "sample_age_s": round(moment - last[0], 1),
        }
    else:
        return
    peak = max(fields["kv_cache_usage_pct"] or 0.0, *(point[1] for _, point in kv), 0.0)
    queued = max((point[1] for _, point in waiting), default=0.0)
    if peak >= FULL_PCT:
        yield conclude("kv_full", event, {**fields, "kv_cache_usage_pct": peak})
        if max(queued, fields["requests_waiting"] or 0.0) >= LONG_QUEUE:
            yield from _log_probs_of_many(case, death)
    elif peak < LOW_PCT:
        yield conclude("kv_low", event, fields)
        failure = first_failure(death.life)
        if failure is not None and site_of(case, death, failure)[0] == "oom_serving":
            yield from _little_load(case, death, failure, fields)
    if len(waiting) >= 3 and queued >= LONG_QUEUE and waiting[-1][1][1] > waiting[0][1][1]:
        yield conclude("queue_grew", trends.event_at(*waiting[-1]), {"requests_waiting": waiting[-1][1][1]})


def _log_probs_of_many(case: Case, death: Death) -> Iterator[Finding]:
    """A buffer of log-probabilities that did not fit while cache and queue were full: many requests, not a big one."""
    failure = first_failure(death.life)
    if failure is None or not is_of_log_probs(death.life, failure):
        return
    if site_of(case, death, failure)[0] == "oom_big_prefill":
        yield conclude("oom_serving", failure.event, failure.fields, (failure,))


FEW_CALLS = 2


def _first_request(case: Case, death: Death) -> Iterator[Finding]:
    """An allocation failure at the first request of a run: one step was too much, and no load was there yet.

    The log must show calls, or nothing can be said about them; many at once are load, after a restart above all.
    """
    life, failure = death.life, first_failure(death.life)
    if life is None or failure is None or life.ready is None or not life.from_start or life.last_activity is not None:
        return
    calls = [
        event
        for event in case.of_kind("access")
        if event.fields.get("method") == "POST" and event.locator.source in life.sources
    ]
    dump = load_at_death(life)
    running = dump.fields.get("requests_running", 0) if dump is not None else 0
    few = 0 < sum(event.count for event in calls) <= FEW_CALLS and running <= FEW_CALLS
    if few and site_of(case, death, failure)[0] == "oom_serving":
        yield conclude("oom_first_request", failure.event, failure.fields, (failure,))


def _little_load(case: Case, death: Death, failure: Finding, fields: dict[str, float | None]) -> Iterator[Finding]:
    """An allocation failure while neither cache nor queue was full: a step too big, or memory that grew unseen."""
    requested = failure.fields.get("tried_to_allocate_gib")
    total = failure.fields.get("gpu_total_gib")
    if not isinstance(requested, int | float):
        return
    if requested >= (0.005 * total if isinstance(total, int | float) else 0.5):
        yield conclude("oom_big_prefill", failure.event, {**failure.fields, **fields}, (failure,))
        return
    allocated = failure.fields.get("allocated_gib")
    book = ledger.of_life(case, death.life) if death.life is not None else None
    planned = next((row.gib for row in book.rows if row.term == "budget"), None) if book is not None else None
    if isinstance(allocated, int | float) and isinstance(planned, int | float) and allocated > 1.03 * planned + 1.0:
        yield conclude("gpu_leak_suspected", failure.event, {**failure.fields, "requested_gib": planned}, (failure,))


def _points(case: Case, death: Death, name: str, moment: float, window: float) -> list[tuple[Samples, trends.Point]]:
    found: list[tuple[Samples, trends.Point]] = []
    for column in case.samples:
        if column.name == name and belongs(case, column, death.entity):
            found += [(column, point) for point in trends.before(column, moment, window)]
    return sorted(found, key=lambda item: (item[1][0], item[0].source, item[1][2]))


_ENGINE_SERIES = ("held_", "kv_cache_", "requests_", "generation_", "prompt_", "prefix_", "preemptions_")


def belongs(case: Case, samples: Samples, entity: str) -> bool:
    """Engine series belong to their entity; measurements of a node or GPU to everybody on it."""
    owner = case.entities.name_of(samples.scope, samples.source)
    if not entity or case.entities.same(owner, entity):
        return True
    if owner.startswith("ctr:"):  # an exporter's label: whose it is where one pod alone has such a container
        named = {key for key, spec in case.specs.items() if f"ctr:{spec.scope.container}" == owner}
        return named == {case.entities.key(entity)} or (not case.specs and _is_only_container(case, owner))
    if not owner.startswith("file:"):
        return False
    if samples.name.startswith(_ENGINE_SERIES):
        speakers = {life.entity for life in case.lives if samples.source in life.sources}
        if speakers:
            return all(case.entities.same(speaker, entity) for speaker in speakers)
        return not any(life.entity == entity for life in case.lives)  # the only word there is about the entity
    return not any(samples.source in life.sources for life in case.lives)


def _is_only_container(case: Case, name: str) -> bool:
    """Whether nobody names another container: what was watched, killed and asked about is the same one."""
    owners = {case.entities.name_of(column.scope, column.source) for column in case.samples}
    owners |= {case.entities.of(event) for event in case.events if event.scope.container}
    return {owner for owner in owners if owner.startswith(("ctr:", "pod:"))} == {name}


def _gpu_memory(case: Case, death: Death, moment: float) -> Iterator[Finding]:
    for column in case.samples:
        if column.name not in ("gpu_memory_used_mib", "gpu_process_memory_mib") or not belongs(
            case, column, death.entity
        ):
            continue
        scale = _total(case, column) or max(column.values, default=0.0) or 1.0
        segment = last_climb(case, column, moment, scale, 3600.0)
        if not segment:
            continue
        fields = climb_fields(segment, "mib")
        event = trends.event_at(column, segment[0])
        if trends.is_leak_like(trends.thin(segment), scale):
            flat = list(_traffic(case, death, segment))
            yield from flat
            failure = first_failure(death.life)
            if is_reserve(case, death.entity, segment, failure):
                yield conclude("gpu_reserve_climb", event, fields)
                continue
            leaking = failure is not None and not any(f.signature == "derived.traffic_grew" for f in flat)
            yield conclude("gpu_leak" if leaking else "gpu_climb", event, fields)
            yield from held(case, death, segment)
            if leaking:
                yield from foreign.loaded(case, death)
        elif max(v for _, v, _ in segment) - min(v for _, v, _ in segment) <= 0.02 * scale:
            yield conclude(
                "gpu_plateau", event, {**fields, "gpu_memory_used_pct": round(100 * segment[-1][1] / scale, 1)}
            )


SMALL_PART = 0.5
"""Of a climb, less than this is not what it is made of."""


def is_reserve(case: Case, entity: str, climb: Sequence[trends.Point], failure: Finding | None) -> bool:
    """True where the memory that climbed is kept by torch's allocator, and not held by tensors.

    A series of what is allocated tells; without one the figures of the failure do. What leaks is taken out of the
    reserve first, so that little of that is left in the end: as much as the whole climb is pieces that fit nothing.
    """
    grown_mib = climb_fields(list(climb), "mib")["climb_mib"]
    for column in case.samples:
        if column.name == "torch_allocated_mib" and belongs(case, column, entity):
            held = [p for p in trends.points_of(column) if climb[0][0] <= p[0] <= climb[-1][0]]
            if len(held) >= trends.MIN_POINTS:
                return climb_fields(held, "mib")["climb_mib"] < SMALL_PART * grown_mib
    return failure is not None and 1024 * unallocated_gib(failure.fields) >= grown_mib


RISE_S = 6 * 3600.0
"""A climb that nothing died of counts when it lasted this long: the caches of a warm engine are full by then."""


def rising(case: Case) -> list[Finding]:
    """GPU memory that climbs for hours under flat traffic although nothing failed yet; empty where none does."""
    for column in case.samples:
        if column.name != "gpu_memory_used_mib":
            continue
        scale = _total(case, column) or max(column.values, default=0.0) or 1.0
        longest = trends.after_start(max(trends.segments(trends.points_of(column), scale), key=len, default=[]))
        if not longest or longest[-1][0] - longest[0][0] < RISE_S:
            continue
        climbs = trends.is_leak_like(trends.thin(longest), scale)
        climbs = climbs and not is_reserve(case, "", longest, None)
        if climbs and trends.flat_traffic(case.samples, longest[0][0], longest[-1][0]):
            rise = conclude("gpu_rise", trends.event_at(column, longest[0]), climb_fields(longest, "mib"))
            return [rise, *_traffic(case, Death("", longest[-1][0], (), None, None, "", False), longest)]
    return []


def last_climb(case: Case, column: Samples, moment: float, scale: float, age_s: float) -> list[trends.Point]:
    """The segment of a series that ends with a death.

    A series whose clock is only assumed may be hours off: then it is the longest segment that ends in a release of
    memory, whatever its stamps say.
    """
    if case.shaky(column.source, column.layer):
        parts = trends.segments(trends.points_of(column), scale)
        longest = max((trends.after_start(part) for part in parts[:-1]), key=len, default=[])
        if _tells(longest, scale):
            return longest
    segment = trends.after_start(trends.segment_before(column, moment, scale))
    pace_s = median(b[0] - a[0] for a, b in pairwise(segment)) if len(segment) > 1 else 0.0
    fresh = bool(segment) and moment - segment[-1][0] <= max(age_s, 1.5 * pace_s)
    return segment if fresh and _tells(segment, scale) else []


def _tells(segment: list[trends.Point], scale: float) -> bool:
    """Whether so many samples tell a climb from a plateau."""
    return len(segment) >= trends.MIN_CLIMB_POINTS or trends.is_leak_like(segment, scale)


def _total(case: Case, column: Samples) -> float | None:
    for other in case.samples:
        if (
            other.name == "gpu_memory_total_mib"
            and other.source == column.source
            and other.scope.gpu == column.scope.gpu
        ):
            return max(other.values, default=None)
    return None


SLOW_H = 48.0
"""A climb over days is told by day as well."""


def climb_fields(segment: list[trends.Point], unit: str) -> dict[str, float]:
    near = 3 if len(segment) >= trends.MIN_CLIMB_POINTS else 1  # of a few points each is far from the next
    first = median(v for _, v, _ in segment[:near])
    last = median(v for _, v, _ in segment[-near:])
    hours, per_h = (segment[-1][0] - segment[0][0]) / 3600, trends.theil_sen_per_h(segment)
    return {
        f"start_{unit}": round(first, 1),
        f"end_{unit}": round(last, 1),
        f"climb_{unit}": round(last - first, 1),
        f"climb_{unit}_per_h": round(per_h, 1),
        **({f"climb_{unit}_per_day": round(24 * per_h, 1)} if hours >= SLOW_H else {}),
        "hours": round(hours, 2),
    }


def _traffic(case: Case, death: Death, segment: list[trends.Point]) -> Iterator[Finding]:
    own = [s for s in case.samples if belongs(case, s, death.entity)]
    flat = trends.flat_traffic(own, segment[0][0], segment[-1][0])
    if flat is None:
        return
    column = next(s for s in own if s.name in ("requests_running", "generation_tokens_per_s", "prompt_tokens_per_s"))
    points = [p for p in trends.points_of(column) if segment[0][0] <= p[0] <= segment[-1][0]]
    if points:
        yield conclude(
            "traffic_flat" if flat else "traffic_grew",
            trends.event_at(column, points[0]),
            {"median": round(median(p[1] for p in points), 1)},
        )


MANY_TIMES = 2.0


def held(case: Case, death: Death, segment: list[trends.Point]) -> Iterator[Finding]:
    """What the program says that it keeps, where that multiplied while the memory climbed."""
    for column in case.samples:
        if column.name != "held_count" or not belongs(case, column, death.entity):
            continue
        points = [p for p in trends.points_of(column) if segment[0][0] <= p[0] <= segment[-1][0]]
        scale = max((v for _, v, _ in points), default=0.0) or 1.0
        if trends.is_leak_like(trends.thin(points), scale) and points[-1][1] >= MANY_TIMES * points[0][1]:
            first, last = points[0], points[-1]
            fields = {"counter": column.scope.process, "start_count": int(first[1]), "end_count": int(last[1])}
            yield conclude("held_climb", trends.event_at(column, first), fields)


def saturation(values: Sequence[float]) -> bool:
    """True for KV cache usages that are at the ceiling for at least a tenth of their time."""
    return bool(values) and sum(v >= FULL_PCT for v in values) >= max(3, 0.1 * len(values))
