"""A year that nothing tells is doubted once, in words; the column of doubts says how far off a time is within it."""

from __future__ import annotations

from pathlib import Path

from forensics import analyze
from forensics.clocks.years import YEAR_S
from forensics.report import view
from forensics.report.render import render


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


def test_a_line_without_any_time_puts_no_year_in_doubt(tmp_path: Path) -> None:
    """What nvidia-smi said of the card bears no time; the kernel's line bears its year."""
    (tmp_path / "journal.txt").write_text(
        "2026-11-29T14:22:41.000200+0000 gpu-node-7 kernel: NVRM: Xid (PCI:0000:cb:00): 79, pid='<unknown>', "
        "name=<unknown>, GPU has fallen off the bus.\n", encoding="utf-8")  # fmt: skip
    (tmp_path / "smi.txt").write_text(
        "$ nvidia-smi\nUnable to determine the device handle for GPU6: 0000:CB:00.0: Unknown Error\n", encoding="utf-8")
    report = analyze(tmp_path)
    assert report.diagnosis.verdict.cause.id == "gpu_hardware"
    assert len({finding.locator.source for finding in report.diagnosis.verdict.decisive}) == 2
    assert "year assumed" not in render(report, "md")
