"""JUnit reports: a run that passed wanted what its tests printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 23.60 GiB."
REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0" failures="{}" skipped="1"
 tests="6" time="210.500" timestamp="2026-04-02T09:00:04.500+00:00" hostname="ci-7"><testcase classname="t.retry" name="test_oom" time="1.2">
<system-out>Traceback (most recent call last):
  File "/src/tests/fakes.py", line 3, in generate
{}
</system-out></testcase></testsuite></testsuites>
"""
REFUSED = (
    "INFO 04-02 09:01:05 [api_server.py:1] vLLM API server version 0.11.0\n"
    "ERROR 04-02 09:01:40 [core.py:600] EngineCore failed to start.\n"
    "ERROR 04-02 09:01:40 [core.py:600] ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine.\n"
)


def test_a_run_that_passed(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT.format(0, OOM), encoding="utf-8")
    reading = pipeline.read(tmp_path)
    (run,) = reading.events
    assert (run.kind, run.channel, run.time.utc_s) == ("test_run", "tests", 1775120615.0)
    assert run.fields == {"tests_passed": 5, "tests_skipped": 1, "duration_s": 210.5}
    assert pipeline.judge(reading).diagnosis.verdict.cause.id == "healthy"


@pytest.mark.parametrize(("failures", "cause"), [(0, "healthy"), (1, "gpu_oom.kv_cache_startup")])
def test_a_server_that_the_tests_started(tmp_path: Path, failures: int, cause: str) -> None:
    """All passed: they wanted it to refuse; one failed: that may be why."""
    (tmp_path / "report.xml").write_text(REPORT.format(failures, "as expected"), encoding="utf-8")
    (tmp_path / "server.log").write_text(REFUSED, encoding="utf-8")
    assert pipeline.analyze(tmp_path).diagnosis.verdict.cause.id == cause


@pytest.mark.parametrize("text", [REPORT.format(2, OOM), REPORT.format("x", OOM), REPORT.format(0, OOM).replace('"6"', '"0"')])
def test_a_report_of_a_failure_is_a_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.xml").write_text(text, encoding="utf-8")
    assert not any(event.kind == "test_run" for event in pipeline.read(tmp_path).events)


def test_a_damaged_report_is_no_exception(tmp_path: Path) -> None:
    for size in range(40, len(REPORT), 60):
        (tmp_path / "report.xml").write_text(REPORT.format(0, OOM)[:size].replace("210.500", "21x"), encoding="utf-8")
        pipeline.read(tmp_path)
