"""A year that nothing tells is doubted once, in words; the column of doubts says how far off a time is within it."""

from __future__ import annotations

from forensics.clocks.years import YEAR_S
from forensics.report import view


def test_the_doubt_within_the_year() -> None:
    row = {"utc": "2026-05-11T21:39:29.000Z", "uncertainty_s": YEAR_S + 14 * 3600.0}
    assert view.spread(row) == "14 h"
    assert view.spread({**row, "uncertainty_s": YEAR_S}) == ""
    assert view.spread({**row, "uncertainty_s": 24 * 3600.0}) == "24 h"


def test_the_years_that_are_assumed() -> None:
    """Those of doubted rows only, each once."""
    rows = [{"utc": f"{year}-05-11T21:39:29.000Z", "uncertainty_s": doubt}
            for year, doubt in ((2026, YEAR_S + 1), (2025, 2 * YEAR_S), (2024, 3600.0), (2026, YEAR_S), (2023, None))]
    assert view.assumed_years(rows) == "2025, 2026"
    assert view.assumed_years([{"utc": None, "uncertainty_s": None}]) == ""
