"""Which measured curves a reader needs: those of the failing service and its node that bear on the cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..diagnosis.model import Trend
from . import contract, text

if TYPE_CHECKING:
    from .model import Report

MOST = 12
_ENGINE = ("kv_cache_usage_pct", "requests_waiting", "requests_running", "requests_swapped", "preemptions_total",
           "generation_tokens_per_s")  # fmt: skip
_GPU = ("gpu_memory_used_mib", "gpu_process_memory_mib", "torch_reserved_mib", "torch_allocated_mib",
        "gpu_memory_reserved_mib")
_HOST = ("container_memory_mib", "process_rss_mib", "host_memory_available_kib", "host_memory_used_kib",
         "swap_used_kib")  # fmt: skip
_SENSORS = ("gpu_temperature_c", "gpu_power_w", "gpu_utilization_pct")
_LOAD = ("gpu_oom.runtime_load", "gpu_oom.leak", "kv_saturation", "engine_timeout", "host_oom.leak", "healthy")
"""Causes for which traffic matters."""
_ORDERS = (
    (("host_oom", "ray_oom", "eviction", "shm_exhausted"), (*_HOST, *_GPU, *_ENGINE)),
    (("gpu_hardware",), (*_GPU, *_SENSORS, *_ENGINE)),
    (("",), (*_GPU, *_ENGINE, *_HOST)),
)
_TO_GIB = {"_mib": 1024.0, "_kib": 1024.0**2}
_UNITS = (("_pct", "%"), ("_per_s", "/s"), ("_c", "°C"), ("_w", "W"))
ALIKE = 0.03
"""GPUs whose extremes differ by less than this share are shown as one."""


def choose(report: Report, language: str) -> list[dict[str, Any]]:
    """The curves worth showing, most telling first, in units that read well."""
    cause = report.diagnosis.verdict.cause.id
    order = next(names for prefixes, names in _ORDERS if cause.startswith(prefixes))
    main = report.diagnosis.incidents[0].entity
    loaded = cause.startswith(_LOAD)
    wanted = [t for t in report.diagnosis.trends if t.name in order and _says_something(t, loaded) and _near(t, main)]
    wanted.sort(key=lambda t: (order.index(t.name), -t.points, t.source, t.gpu))
    kept: list[Trend] = []
    alike: dict[int, int] = {}
    for trend in wanted:
        if any(_covers(other, trend) for other in kept):
            continue
        twin = next((i for i, other in enumerate(kept) if _alike(other, trend)), None)
        if twin is not None:
            alike[twin] = alike.get(twin, 1) + 1
        else:
            kept.append(trend)
    return [_curve(trend, alike.get(i, 1), language) for i, trend in enumerate(kept[:MOST])]


def _says_something(trend: Trend, loaded: bool) -> bool:
    if trend.maximum == 0 or (trend.word == "flat" and trend.name in _ENGINE):
        return False
    if trend.name == "kv_cache_usage_pct" and not loaded and trend.maximum < 30:
        return False
    if trend.name in ("requests_running", "generation_tokens_per_s") and not loaded:
        return False
    return trend.points >= 4 and (trend.word != "too_few" or trend.maximum > trend.minimum)


def _near(trend: Trend, main: str) -> bool:
    """Engine series must be the failing service's; series of GPUs, the node and processes may be anybody's there."""
    if trend.entity == main:
        return True
    return trend.name not in _ENGINE and trend.entity.partition(":")[0] in ("", "file")


def _covers(wide: Trend, narrow: Trend) -> bool:
    same = (wide.name, wide.entity, wide.gpu) == (narrow.name, narrow.entity, narrow.gpu)
    inside = wide.start_s - 60 <= narrow.start_s and narrow.end_s <= wide.end_s + 60
    return same and inside and wide.source != narrow.source


def _alike(one: Trend, other: Trend) -> bool:
    if not (one.gpu and other.gpu and one.gpu != other.gpu):
        return False
    if (one.name, one.source, one.word) != (other.name, other.source, other.word):
        return False
    scale = max(abs(one.maximum), abs(other.maximum), 1e-9)
    return abs(one.maximum - other.maximum) <= ALIKE * scale and abs(one.minimum - other.minimum) <= ALIKE * scale


def _curve(trend: Trend, alike: int, language: str) -> dict[str, Any]:
    unit, divisor = _unit(trend)
    labels = text.texts(language)["series"]
    return {
        "name": trend.name,
        "label": labels.get(trend.name, trend.name),
        "source": trend.source,
        "first_line": trend.first_line,
        "last_line": trend.last_line,
        "entity": trend.entity.partition(":")[2] if not trend.entity.startswith("file:") else "",
        "gpu": trend.gpu.removeprefix("GPU-"),
        "alike": alike,
        "word": trend.word,
        "unit": unit,
        **{
            name: contract.rounded(value / divisor)
            for name, value in zip(
                ("min", "max", "first", "last"), (trend.minimum, trend.maximum, trend.first, trend.last), strict=True
            )
        },
        "slope_per_h": contract.rounded(None if trend.slope_per_h is None else trend.slope_per_h / divisor),
        "start": contract.iso(trend.start_s),
        "end": contract.iso(trend.end_s),
        "sparkline": trend.sparkline,
        "points": [[round(t, 1), round(v / divisor, 3)] for t, v in trend.curve],
    }


def _unit(trend: Trend) -> tuple[str, float]:
    for suffix, divisor in _TO_GIB.items():
        if trend.name.endswith(suffix):
            return ("GiB", divisor) if abs(trend.maximum) >= divisor else (f"{suffix[1].upper()}iB", 1.0)
    return next(((unit, 1.0) for suffix, unit in _UNITS if trend.name.endswith(suffix)), ("", 1.0))


def bars(points: Sequence[Sequence[float]], count: int) -> list[tuple[float, float]]:
    """(instant, highest value) of equal parts of the time span: what a small bar or line chart shows."""
    if len(points) < 2:
        return [(p[0], p[1]) for p in points]
    start, end = points[0][0], points[-1][0]
    width = (end - start) / count or 1.0
    found: dict[int, float] = {}
    for t, v in points:
        i = min(count - 1, int((t - start) / width))
        found[i] = max(found.get(i, v), v)
    return _filled(found, start, width, count)


def _filled(found: dict[int, float], start: float, width: float, count: int) -> list[tuple[float, float]]:
    """Gaps take the value before them."""
    rows, last = [], found[min(found)]
    for i in range(count):
        last = found.get(i, last)
        rows.append((start + i * width, last))
    return rows

