"""Whole incidents: truth stated by hand in `case.toml` first, the report's wording as a snapshot second."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from forensics import analyze
from forensics.report.render import render

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CASES = sorted(path.parent for path in SAMPLES.glob("*/case.toml"))
SNAPSHOTS_ZH = 4
"""Every fourth report is kept in Chinese as well."""


class MarkdownExtension(SingleFileSnapshotExtension):
    """One report, one `.md` file that a reviewer can read."""

    file_extension = "md"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def reports(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(MarkdownExtension)


def truth_of(case: Path) -> dict[str, Any]:
    return tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))


def bundle_of(case: Path) -> Path:
    """`bundle/`, or the only file beside `case.toml` (thin cases)."""
    folder = case / "bundle"
    return folder if folder.is_dir() else next(p for p in sorted(case.iterdir()) if p.name != "case.toml")


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_sample_tells_the_truth(
    case: Path, collected: Callable[[Path], Path], reports: SnapshotAssertion
) -> None:
    """Cause, confidence, first-cause line, key numbers, decoys and gaps are as stated; then the wording."""
    truth = truth_of(case)
    report = analyze(collected(bundle_of(case)))
    data = report.to_dict()
    verdict = data["verdict"]
    assert verdict["cause"] == truth["cause"]
    if "confidence" in truth:
        assert verdict["confidence"] in truth["confidence"]
    if "first_cause" in truth:
        first = verdict["first_cause"]
        assert f"{first['source']}:{first['line']}" in truth["first_cause"]
    for name, value in truth.get("key_facts", {}).items():
        assert name in data["key_facts"], f"no fact {name}"
        assert data["key_facts"][name] == (pytest.approx(value) if isinstance(value, float) else value), name
    evidence = {f"{e['source']}:{e['line']}" for e in data["incidents"][0]["hypotheses"][0]["for"]}
    assert not evidence & set(truth.get("decoys", []))
    assert set(truth.get("gaps", [])) <= {gap["key"] for gap in data["gaps"]}
    assert render(report, "md") == reports
    if CASES.index(case) % SNAPSHOTS_ZH == 0:
        assert render(report, "md", "zh") == reports(name="zh")


def test_there_are_enough_samples() -> None:
    """The cases that the product must never get wrong are among them."""
    causes = [truth_of(case)["cause"] for case in CASES]
    assert len(causes) >= 8
    for needed in ("gpu_oom.kv_cache_startup", "gpu_oom.kv_max_len", "gpu_oom.weights", "gpu_oom.runtime_load",
                   "host_oom.container_limit", "probe_restart_storm", "healthy", "insufficient_evidence"):  # fmt: skip
        assert needed in causes
