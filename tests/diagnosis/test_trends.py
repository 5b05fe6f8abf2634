"""The shape of a series in one word, and only a real climb is called one."""

from __future__ import annotations

from array import array
from dataclasses import replace
from random import Random
from types import ModuleType

import pytest

from forensics.diagnosis import trends
from forensics.diagnosis.trends import Point
from forensics.model import Samples, Scope, StampForm

TOTAL = 80_000.0


def points(values: list[float], every_s: float = 60.0) -> list[Point]:
    return [(i * every_s, v, i + 2) for i, v in enumerate(values)]


def word(b: ModuleType, values: list[float], every_s: float = 60.0, name: str = "gpu_memory_used_mib") -> str:
    w = b.World()
    samples = w.series(name, [(i * every_s, v) for i, v in enumerate(values)])
    trend = trends.trend_of(samples, "", TOTAL)
    assert trend is not None
    return str(trend.word)


def ar1(phi: float, sigma: float, count: int, seed: int) -> list[float]:
    rng, value, out = Random(seed), 0.0, []
    for _ in range(count):
        value = phi * value + rng.gauss(0, sigma)
        out.append(60_000 + value)
    return out


def test_a_flat_series_is_flat(b: ModuleType) -> None:
    """vLLM's pre-allocation: constant, or within 2 % of the card."""
    assert word(b, [77_000.0] * 200) == "flat"
    assert word(b, [77_000.0 + 20 * (i % 3) for i in range(200)]) == "flat"


def test_a_steady_climb_is_a_climb(b: ModuleType) -> None:
    """Every third rises, with noise on top."""
    rng = Random(1)
    assert word(b, [60_000 + 60 * i + rng.gauss(0, 40) for i in range(240)]) == "climb"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.98])
def test_noise_with_memory_is_no_climb(phi: float, seed: int) -> None:
    """AR(1) noise of a few hundred MiB fools Mann–Kendall in most cases; it must not fool us."""
    assert not trends.is_leak_like(points(ar1(phi, 300 * (1 - phi**2) ** 0.5, 300, seed)), TOTAL)


@pytest.mark.parametrize("reach", [20, 60, 100])
def test_growth_to_a_plateau_is_no_climb(b: ModuleType, reach: int) -> None:
    """Caches that fill, then stay: the last third is flat."""
    values = [50_000 + 25_000 * min(1.0, i / reach) for i in range(300)]
    assert word(b, values) != "climb"
    exponential = [75_000 - 25_000 * 0.97**i for i in range(300)]
    assert word(b, exponential) != "climb"


def test_a_start_before_a_climb_does_not_hide_it(b: ModuleType) -> None:
    """Weights load in a minute, then memory climbs for hours."""
    values = [500.0] * 5 + [30_000.0, 60_000.0] + [70_000 + 40 * i for i in range(230)]
    assert word(b, values) == "climb"


def test_a_start_alone_is_no_climb(b: ModuleType) -> None:
    """Up within minutes, then flat."""
    assert word(b, [500.0] * 5 + [20_000.0, 40_000.0, 60_000.0] + [77_000.0] * 200) == "plateau"


def test_restarts_make_a_sawtooth(b: ModuleType) -> None:
    """Loops of load and death."""
    assert word(b, ([500.0] * 3 + [40_000.0] + [76_000.0] * 6) * 8, 10.0) == "sawtooth"


def test_a_restart_ends_a_segment() -> None:
    """A large drop cuts; small ups and downs do not; a long gap does."""
    values = [60_000.0 + 50 * i for i in range(50)]
    assert len(trends.segments(points(values + values), TOTAL)) == 1
    assert len(trends.segments(points([*values, 500.0, *values]), TOTAL)) == 2
    late = [(t + 90_000.0, v, n) for t, v, n in points(values)]
    assert len(trends.segments([*points(values), *late], TOTAL)) == 2


def test_a_climb_over_a_restart_is_none(b: ModuleType) -> None:
    """Two flat lives at different levels are a step, no climb."""
    assert word(b, [60_000.0] * 100 + [500.0] * 3 + [66_000.0] * 100) != "climb"


def test_a_step_is_no_climb(b: ModuleType) -> None:
    """One foreign process comes and stays."""
    assert word(b, [60_000.0] * 100 + [70_000.0] * 100) not in ("climb", "flat")


def test_few_points_are_too_few(b: ModuleType) -> None:
    """Seven points say nothing; a short rise says nothing either."""
    assert word(b, [60_000.0 + 1000 * i for i in range(7)]) == "too_few"
    assert not trends.is_leak_like(points([60_000.0 + 1000 * i for i in range(30)], 10.0), TOTAL)


def test_slope_survives_outliers() -> None:
    """One sample in five is nonsense; Theil–Sen does not care."""
    values = [60_000 + 10.0 * i if i % 5 else 0.0 for i in range(100)]
    assert trends.theil_sen_per_h(points(values)) == pytest.approx(600.0, rel=0.25)
    assert trends.theil_sen_per_h(points([1.0])) == 0.0
    assert trends.theil_sen_per_h([(5.0, 1.0, 2), (5.0, 2.0, 3)]) == 0.0


def test_thinning_keeps_the_ends_and_outlines_keep_the_peaks() -> None:
    """No spike is lost in a chart."""
    values = [0.0] * 1000
    values[613] = 99.0
    assert len(trends.thin(points(values))) <= trends.MAX_POINTS
    assert max(v for _, v in trends.outline(points(values))) == 99.0
    assert trends.outline(points([1.0, 2.0])) == ((0.0, 1.0), (60.0, 2.0))


def test_sparkline_shows_peaks() -> None:
    """The maximum of each bucket; constant series are a low line."""
    values = [0.0] * 400
    values[201] = 8.0
    line = trends.sparkline(values)
    assert len(line) == 40
    assert "█" in line
    assert set(trends.sparkline([5.0] * 10)) == {"▁"}
    assert trends.sparkline([]) == ""


def test_unknown_stamps_are_left_out(b: ModuleType) -> None:
    """NaN rows and duplicates of one instant do not count."""
    w = b.World()
    samples = w.series("gpu_memory_used_mib", [(0, 1.0), (0, 2.0), (float("nan"), 3.0), (60, 4.0)])
    assert [v for _, v, _ in trends.points_of(samples)] == [1.0, 4.0]


@pytest.mark.parametrize(
    ("values", "flat"),
    [([10.0] * 30, True), ([10.0 + i for i in range(30)], False), ([30.0 - i for i in range(30)], True), ([1.0] * 5, None)],
)
def test_flat_traffic(b: ModuleType, values: list[float], flat: bool | None) -> None:
    """A third more in the last third than in the first is growth; too few points are no answer."""
    w = b.World()
    w.series("requests_running", [(60.0 * i, v) for i, v in enumerate(values)])
    assert trends.flat_traffic(w.samples, b.T0, b.T0 + 3600) is flat
    assert trends.flat_traffic([], b.T0, b.T0 + 3600) is None


def test_a_point_has_the_doubt_of_its_series() -> None:
    """Where nothing ties a table to UTC, a point of it is not exact either."""
    series = Samples("gpu_memory_used_mib", "a.csv", Scope(), StampForm.INSTANT, "typed", array("q", [2]), array("d", [9.0]), array("d", [1.0]))
    assert trends.event_at(series, (9.0, 1.0, 2)).time.uncertainty_s == 1.0
    assert trends.event_at(replace(series, doubt_s=50400.0), (9.0, 1.0, 2)).time.uncertainty_s == 50400.0
