"""The shape of a series in one word, with the numbers behind it.

A series is cut at restarts (large drops) and gaps first; slopes are measured inside a segment. The slope is
Theil–Sen's (median of pairwise slopes: one third of outliers does no harm). A climb counts only when its size is
worth talking about, when it goes on in every third of the segment, and when it is no mere rise to a plateau;
Mann–Kendall alone is not used, because autocorrelated noise makes it significant in most cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from ..model import Basis, Event, Locator, Samples, Timestamp
from .entities import Entities
from .model import Trend

MAX_POINTS = 300
"""Points per segment after thinning: pairwise slopes stay cheap."""
MIN_POINTS = 8
MIN_CLIMB_POINTS = 12
MIN_CLIMB_S = 20 * 60
MIN_STEADY_POINTS = 6
MIN_STEADY_S = 3 * 3600
"""A few samples are enough where every one of them is higher than the last, for hours, and by much."""
BARS = "▁▂▃▄▅▆▇█"

Point = tuple[float, float, int]
"""(Unix time, value, line)."""


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Block characters, lowest value lowest; the maximum of each bucket is shown so that peaks stay visible."""
    if not values:
        return ""
    size = max(1, math.ceil(len(values) / width))
    buckets = [max(values[i : i + size]) for i in range(0, len(values), size)]
    low, high = min(values), max(values)
    span = high - low
    if span == 0:
        return BARS[0] * len(buckets)
    return "".join(BARS[min(7, int((value - low) / span * 8))] for value in buckets)


def points_of(samples: Samples) -> list[Point]:
    """Known points in time order, without duplicates of the same instant."""
    return _points(samples, -math.inf, math.inf)


def _points(samples: Samples, first_s: float, last_s: float) -> list[Point]:
    rows = [
        (t, v, n)
        for t, v, n in zip(samples.stamps, samples.values, samples.lines, strict=True)
        if first_s <= t <= last_s and v == v
    ]
    rows.sort()
    return rows[:1] + [row for last, row in pairwise(rows) if row[0] > last[0]]


def thin(points: Sequence[Point], limit: int = MAX_POINTS) -> list[Point]:
    if len(points) <= limit:
        return list(points)
    step = len(points) / limit
    return [points[int(i * step)] for i in range(limit)]


def outline(points: Sequence[Point], buckets: int = 80) -> tuple[tuple[float, float], ...]:
    """A curve of at most two points a bucket, its lowest and its highest: no peak is lost."""
    if len(points) <= 2 * buckets:
        return tuple((t, v) for t, v, _ in points)
    kept = []
    for i in range(buckets):
        part = points[i * len(points) // buckets : (i + 1) * len(points) // buckets]
        ends = {min(part, key=lambda p: p[1])[:2], max(part, key=lambda p: p[1])[:2]}
        kept += sorted(ends)
    return tuple(kept)


def theil_sen_per_h(points: Sequence[Point]) -> float:
    """Median pairwise slope, per hour; 0 for fewer than two points."""
    chosen = thin(points, 120)
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0]) * 3600 for i, a in enumerate(chosen) for b in chosen[i + 1 :] if b[0] > a[0]
    ]
    return median(slopes) if slopes else 0.0


def segments(points: Sequence[Point], scale: float) -> list[list[Point]]:
    """Cut at restarts: a drop far beyond the usual change from point to point, or a gap of 20 median intervals.

    A drop counts from 5 % of the scale: a process that restarts may come back at once with its base memory.
    """
    if not points:
        return []
    intervals = [b[0] - a[0] for a, b in pairwise(points)]
    gap = max(20 * median(intervals), 600.0) if intervals else math.inf
    usual = median([abs(b[1] - a[1]) for a, b in pairwise(points)]) if intervals else 0.0
    drop = max(0.05 * scale, 12 * usual)
    parts = [[points[0]]]
    for a, b in pairwise(points):
        if a[1] - b[1] > drop or b[0] - a[0] > gap:
            parts.append([])
        parts[-1].append(b)
    return parts


def is_leak_like(points: Sequence[Point], scale: float) -> bool:
    """A steady climb that is not a rise to a plateau: all thirds climb, the last at least half as fast as the whole."""
    few = len(points) < MIN_CLIMB_POINTS
    if len(points) < MIN_STEADY_POINTS or points[-1][0] - points[0][0] < (MIN_STEADY_S if few else MIN_CLIMB_S):
        return False
    ends = (points[:1], points[-1:]) if few else (points[:3], points[-3:])  # few rise from each to the next
    rise = median(v for _, v, _ in ends[1]) - median(v for _, v, _ in ends[0])
    if rise < (0.1 if few else 0.03) * scale or (few and any(b[1] <= a[1] for a, b in pairwise(points))):
        return False
    third = len(points) // 3
    whole = theil_sen_per_h(points)
    parts = [theil_sen_per_h(points[i * third : (i + 1) * third + 1]) for i in range(3)]
    return whole > 0 and all(part > 0.1 * whole for part in parts) and parts[-1] >= 0.5 * whole


def after_start(points: Sequence[Point]) -> list[Point]:
    """A segment without its start-up: the steep rise while a model loads is no climb.

    The start-up ends where the values first come near (60 %) what they are in the first fifth of the segment, plus
    five minutes of settling where enough points remain.
    """
    if not points:
        return []
    early = median(v for _, v, _ in points[: max(5, len(points) // 5)])
    start = next((i for i, (_, v, _) in enumerate(points) if v >= 0.6 * early), 0)
    rest = points[start:]
    settled = [p for p in rest if p[0] >= rest[0][0] + 300.0]
    return settled if len(settled) >= 0.8 * len(rest) and len(settled) >= MIN_CLIMB_POINTS else list(rest)


def trend_of(samples: Samples, entity: str, scale: float | None = None) -> Trend | None:
    """Describe a series; `scale` is what a large change is measured against (total memory), else its maximum."""
    points = points_of(samples)
    if not points:
        return None
    values = [v for _, v, _ in points]
    low, high = min(values), max(values)
    reference = scale or high or 1.0
    parts = segments(points, reference)
    word, slope = _word(points, parts, low, high, reference)
    return Trend(
        samples.name,
        samples.source,
        entity,
        samples.scope.gpu,
        word,
        len(points),
        low,
        high,
        values[0],
        values[-1],
        points[0][0],
        points[-1][0],
        slope,
        sparkline(values),
        Locator.at(samples.source, points[0][2]).line,
        Locator.at(samples.source, points[-1][2]).line,
        outline(points),
    )


def _word(
    points: Sequence[Point], parts: Sequence[Sequence[Point]], low: float, high: float, scale: float
) -> tuple[str, float | None]:
    if len(points) < MIN_POINTS:
        return "too_few", None
    longest = after_start(max(parts, key=len))
    slope = theil_sen_per_h(longest)
    if is_leak_like(thin(longest), scale):
        return "climb", slope
    if high - low <= 0.02 * scale:
        return "flat", slope
    if len(parts) > 2:
        return "sawtooth", slope
    spread = max(v for _, v, _ in longest) - min(v for _, v, _ in longest)
    return ("plateau" if spread <= 0.05 * scale else "varying"), slope


def before(samples: Samples, moment_s: float, window_s: float) -> list[Point]:
    """Points of the last `window_s` seconds before a moment (one second of slack after it)."""
    return _points(samples, moment_s - window_s, moment_s + 1.0)


def segment_before(samples: Samples, moment_s: float, scale: float) -> list[Point]:
    """The unbroken segment that ends at, or just before, a moment."""
    parts = segments(_points(samples, -math.inf, moment_s + 1.0), scale)
    return list(parts[-1]) if parts else []


def build(samples: Iterable[Samples], entities: Entities) -> tuple[Trend, ...]:
    """Trends of all series, in a fixed order; memory series are scaled by their own totals where those are known."""
    columns = list(samples)
    totals = {
        (s.source, s.scope.gpu): max(s.values) for s in columns if s.name == "gpu_memory_total_mib" and len(s.values)
    }
    trends = []
    for column in columns:
        if column.name == "gpu_memory_total_mib":
            continue
        scale = totals.get((column.source, column.scope.gpu)) if column.name.startswith("gpu_memory") else None
        if column.name.endswith("_pct"):
            scale = 100.0
        trend = trend_of(column, entities.name_of(column.scope, column.source), scale)
        if trend is not None:
            trends.append(trend)
    return tuple(sorted(trends, key=lambda t: (t.name, t.source, t.gpu, t.entity)))


def event_at(samples: Samples, point: Point) -> Event:
    """A point of a series as an event that a report can quote."""
    place = Locator.at(samples.source, point[2])
    open_s = samples.doubt_s
    time = Timestamp(point[0], max(1.0, open_s), Basis.ZONE_ASSUMED if open_s > 1.0 else Basis.EXACT)
    return Event(place, "sample", "metrics", f"{samples.name} {point[1]:g}", scope=samples.scope, time=time)


def flat_traffic(samples: Iterable[Samples], start_s: float, end_s: float) -> bool | None:
    """True when the load did not grow over a span; none when no traffic series covers it.

    Growth is judged by medians of the first and last third: below a third more counts as flat.
    """
    verdicts = []
    for column in samples:
        if column.name not in ("requests_running", "generation_tokens_per_s", "prompt_tokens_per_s"):
            continue
        points = [p for p in points_of(column) if start_s <= p[0] <= end_s]
        if len(points) < MIN_POINTS:
            continue
        third = len(points) // 3
        first, last = median(p[1] for p in points[:third]), median(p[1] for p in points[-third:])
        verdicts.append(last <= 1.34 * first + 1.0)
    return all(verdicts) if verdicts else None
