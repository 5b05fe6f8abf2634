"""Robust estimates from anchors, and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.clocks.offsets import Anchor, estimate
from forensics.model import Locator


def anchors(constants: Sequence[float], start: int = 1, lagging: bool = False) -> list[Anchor]:
    here = Locator("a.log", 1, 1)
    return [
        Anchor(float(start + i), 1000.0 * (start + i), constant, 0.5, here, here, lagging)
        for i, constant in enumerate(constants)
    ]


def test_anchors_that_agree_give_one_constant() -> None:
    """The median of the anchors, with their scatter."""
    found = estimate(anchors([-28800.2, -28799.9, -28800.0, -28800.4]))
    assert [run.constant for run in found.runs] == [-28800.1]
    assert found.runs[0].scatter_s < 0.3


def test_one_false_pair_among_many_is_dropped() -> None:
    """An outlier moves nothing, and is remembered."""
    found = estimate(anchors([0.0, 0.1, 512.0, 0.0, -0.1, 0.2]))
    assert [len(run.anchors) for run in found.runs] == [5]
    assert [stray.constant for stray in found.strays] == [512.0]


def test_contradicting_anchors_are_refused() -> None:
    """No correction without agreement; the scatter is told."""
    found = estimate(anchors([0.0, 300.0, -4000.0, 91.0, 12000.0]))
    assert found.refused
    assert found.runs == ()
    assert found.scatter_s > 100


def test_two_anchors_are_too_few_to_disagree() -> None:
    """Two that agree are kept (and later called assumed), two that do not are refused."""
    assert len(estimate(anchors([60.0, 60.4])).runs[0].anchors) == 2
    assert estimate(anchors([60.0, 3660.0])).refused


def test_interleaved_constants_are_refused() -> None:
    """Two constants that alternate are no change of a clock but two things taken for one."""
    assert estimate(anchors([0.0, 90.0] * 6)).refused


def test_a_change_inside_the_file_gives_two_runs() -> None:
    """First one constant, then another: both are kept, in order."""
    found = estimate(anchors([-7200.0] * 4 + [-3600.0] * 4))
    assert [run.constant for run in found.runs] == [-7200.0, -3600.0]


def test_a_constant_may_come_back() -> None:
    """Summer, winter, summer: three stretches; a few outliers that agree with each other make none."""
    year = estimate(anchors([14400.0] * 6 + [18000.0] * 6 + [14400.0] * 6))
    assert [run.constant for run in year.runs] == [14400.0, 18000.0, 14400.0]
    blip = estimate(anchors([0.0] * 10 + [77.0] * 3 + [0.0] * 10))
    assert [len(run.anchors) for run in blip.runs] == [20]


def test_drift_is_no_disagreement() -> None:
    """100 ppm over weeks moves the constant by minutes; neighbours agree."""
    here = Locator("dmesg", 1, 1)
    days = [Anchor(float(d), 86400.0 * d, 1e9 + 8.0 * d, 0.5, here, here) for d in range(1, 30)]
    assert estimate(days).refused
    assert len(estimate(days, 1e-4).runs[0].anchors) == 29


def test_late_witnesses_are_set_aside() -> None:
    """A collector that was late by minutes on some lines does not move the clock of the lines."""
    found = estimate(anchors([0.2, 40.0, 0.3, 200.0, 0.1, 0.2, 90.0, 0.4], lagging=True))
    assert [round(run.constant, 1) for run in found.runs] == [0.2]


def test_what_most_of_the_lane_says_is_no_delay() -> None:
    """Three lines stamped across a set clock do not make the right line behind them a late one: it stays as a doubt."""
    found = estimate([*anchors([0.3] * 12, lagging=True), *anchors([-149.0] * 3, 13, True), *anchors([0.3], 16, True)])
    assert [len(run.anchors) for run in found.runs] == [12, 3]
    assert [stray.constant for stray in found.strays] == [0.3]
