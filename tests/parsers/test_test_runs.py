"""Runs of tests: what their fixtures print is nobody's fault, where all tests passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics import pipeline

XID = "NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 23.60 GiB."
PYTEST = f"""============================= test session starts ==============================
collected 31 items
tests/test_watch.py::test_cordon
-------------------------------- live log call --------------------------------
ERROR    sim:faults.py:12 {XID}
PASSED tests/test_watch.py::test_cordon
ERROR    sim:faults.py:30 {OOM}
PASSED tests/test_retry.py::test_moves_on
"""
UNITTEST = f"test_cordon (tests.test_watch.Watch.test_cordon) ... ERROR:sim:{OOM}\nok\n\nRan 31 tests in 4.210s\n\n"
CARGO = f"test watch::cordons ... ok\n{XID}\ntest retry::moves_on ... ok\n\ntest result: {{}}\n"
GO = f"=== RUN   TestCordon\n    watch_test.go:40: {XID}\n--- PASS: TestCordon (0.02s)\n"


def read(folder: Path, text: str) -> pipeline.Reading:
    (folder / "ci.log").write_text(text, encoding="utf-8")
    return pipeline.read(folder / "ci.log")


def cause_of(folder: Path, text: str, name: str = "ci.log") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return pipeline.analyze(folder).diagnosis.verdict.cause.id


@pytest.mark.parametrize(
    "text",
    [
        f"{PYTEST}=================== 30 passed, 1 xfailed in 9.12s ====================\n",
        f"{PYTEST}30 passed, 2 warnings in 71.03s (0:01:11)\n",
        "".join(f"2026-04-02T09:00:{n:02}.1200000Z {line}\n" for n, line in enumerate((PYTEST + "30 passed in 9.12s").split("\n"))),
        f"tests/test_retry.py ......   [ 66%]\n...   [100%]\n{XID}\nERROR {OOM}\n9 passed in 3.20s\n",
        f"{UNITTEST}OK (skipped=1)\n",
        CARGO.format("ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s"),
        f"{GO}PASS\nok  \texample.org/watch\t0.044s\n",
    ],
    ids=["pytest", "pytest -q", "in a CI job", "only dots", "unittest", "cargo", "go"],
)
def test_a_run_that_passed(tmp_path: Path, text: str) -> None:
    """Its count is an event; what it printed is no evidence, and the run itself went well."""
    events = read(tmp_path, text).events
    (run,) = [event for event in events if event.kind == "test_run"]
    assert run.channel == "tests"
    assert not any(e.channel in ("kernel", "engine") and ("Xid" in e.text or "OutOfMemory" in e.text) for e in events)
    assert cause_of(tmp_path, text) == "healthy"


def test_the_count_is_read(tmp_path: Path) -> None:
    events = read(tmp_path, f"{PYTEST}=========== 30 passed, 1 skipped, 2 xfailed in 9.12s ===========\n").events
    (run,) = [event for event in events if event.kind == "test_run"]
    assert run.fields == {"tests_passed": 30, "tests_skipped": 1, "tests_xfailed": 2, "duration_s": 9.12}


@pytest.mark.parametrize(
    "text",
    [
        f"{PYTEST}============ 1 failed, 30 passed in 9.12s ============\n",
        f"{PYTEST}============ 30 passed, 1 error in 9.12s ============\n",
        PYTEST,
        f"{UNITTEST}FAILED (errors=1)\n",
        CARGO.format("FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s"),
        f"{OOM}\n30 passed in 9.12s\n",
    ],
    ids=["a test failed", "a fixture failed", "it came to no end", "unittest", "cargo", "no run before it"],
)
def test_a_run_that_did_not_pass_is_read_like_every_log(tmp_path: Path, text: str) -> None:
    events = read(tmp_path, text).events
    assert not any(event.kind == "test_run" for event in events)
    assert cause_of(tmp_path, text) != "healthy"


@pytest.mark.parametrize(
    "behind",
    [f"ERROR 04-02 09:02:11 [core.py:600] {OOM}", "##[error]Process completed with exit code 1.", "main.py: error: no such step"],
)
def test_what_fails_behind_the_tests_is_no_test(tmp_path: Path, behind: str) -> None:
    """The next step of the job."""
    assert cause_of(tmp_path, f"{PYTEST}===== 30 passed in 9.12s =====\n{behind}\n") != "healthy"


def test_a_fixture_that_speaks_as_an_engine_makes_no_engine_of_the_job(tmp_path: Path) -> None:
    """A job's log is dated by its collector; the steps around the tests are nobody's service that never got ready."""
    engine = "ERROR 04-02 08:59:58 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly."
    lines = ["Current runner version: '2.330.0'", *PYTEST.splitlines(), engine, "30 passed in 9.12s", "Post job cleanup."]
    job = [f"2026-04-02T09:00:{n:02}.1200000Z {line}" for n, line in enumerate(lines)]
    assert cause_of(tmp_path, "\n".join(job)) == "healthy"


def test_a_fault_beside_the_run(tmp_path: Path) -> None:
    """Tests passed on one machine; the engine's own log in the same bundle ends badly."""
    (tmp_path / "engine.log").write_text(
        "INFO 04-02 09:00:01 [api_server.py:1] vLLM API server version 0.11.0\n"
        "ERROR 04-02 09:00:40 [core.py:600] EngineCore failed to start.\n"
        "ERROR 04-02 09:00:40 [core.py:600] Traceback (most recent call last):\n"
        '  ERROR 04-02 09:00:40 [core.py:600]   File "/x/vllm/v1/worker/gpu_model_runner.py", line 1, in load_model\n'
        f"ERROR 04-02 09:00:40 [core.py:600] {OOM}\n",
        encoding="utf-8",
    )
    assert cause_of(tmp_path, f"{PYTEST}===== 30 passed in 9.12s =====\n").startswith("gpu_oom")


REFUSED = (
    "INFO 04-02 {start} [api_server.py:1] vLLM API server version 0.11.0\n"
    "INFO 04-02 {start} [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='acme/chat-14b'\n"
    "ERROR 04-02 09:01:40 [core.py:600] EngineCore failed to start.\n"
    "ERROR 04-02 09:01:40 [core.py:600] ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine.\n"
)


def gitlab(count: str) -> str:
    """A job's log with its sections: they lasted from 09:00:00 to 09:04:00 UTC."""
    lines = ["section_start:1775120400:step_script\r\x1b[0K\x1b[36;1mExecuting the job script\x1b[0;m", "$ pytest e2e"]
    lines += ["e2e/test_flags.py::test_no_room_is_refused PASSED    [100%]", count]
    return "\n".join((*lines, "section_end:1775120640:step_script\r\x1b[0K\x1b[32;1mJob succeeded\x1b[0;m"))


def stamped(count: str) -> str:
    """The same, as runners since 17.0 print it."""
    return "\n".join(f"2026-04-02T09:0{n}:00.120311Z 0{n}O {line}" for n, line in enumerate(gitlab(count).splitlines()))


@pytest.mark.parametrize("job", [gitlab, stamped], ids=["sections", "with times"])
@pytest.mark.parametrize(
    ("count", "start", "cause"),
    [
        ("===== 1 passed in 190.12s (0:03:10) =====", "09:01:05", "healthy"),
        ("===== 1 passed in 190.12s (0:03:10) =====", "08:41:05", "gpu_oom.kv_cache_startup"),
        ("===== 1 failed in 190.12s (0:03:10) =====", "09:01:05", "gpu_oom.kv_cache_startup"),
    ],
    ids=["wanted", "it had run before", "the test failed"],
)
def test_a_server_that_tests_want_to_fail(tmp_path: Path, job: Callable[[str], str], count: str, start: str, cause: str) -> None:
    """It started and ended while the tests ran, and they were content with it."""
    (tmp_path / "server.log").write_text(REFUSED.format(start=start), encoding="utf-8")
    assert cause_of(tmp_path, job(count)) == cause


def test_a_prompt_in_an_engines_log_hides_nothing(tmp_path: Path) -> None:
    """A user sends the output of a run, in two requests; between them the engine dies."""
    head = "INFO 04-02 09:00:01 [api_server.py:1] vLLM API server version 0.11.0\nINFO:     Application startup complete.\n"
    prompt = "INFO 04-02 09:00:20 [logger.py:39] Received request cmpl-1: prompt: 'explain\n=== test session starts ===\n"
    dead = f"ERROR 04-02 09:00:40 [core.py:600] EngineCore encountered a fatal error.\nERROR 04-02 09:00:40 [core.py:600] {OOM}\n"
    assert cause_of(tmp_path, f"{head}{prompt}{dead}30 passed in 9.12s\n", "engine.log").startswith("gpu_oom")


def test_another_program_in_the_same_journal_is_heard(tmp_path: Path) -> None:
    """The kernel speaks while a runner's output goes to the journal."""
    lines = PYTEST.splitlines()
    journal = [f"Apr 02 09:00:{n:02} box runner[88]: {line}" for n, line in enumerate(lines)]
    journal += [f"Apr 02 09:00:40 box kernel: {XID}", "Apr 02 09:00:44 box runner[88]: 30 passed in 9.12s"]
    (tmp_path / "journal.txt").write_text("\n".join(journal), encoding="utf-8")
    events = pipeline.read(tmp_path / "journal.txt").events
    assert [event.locator.line for event in events if event.kind == "xid"] == [len(lines) + 1]
