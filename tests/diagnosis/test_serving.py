"""Trouble of an engine that serves on: a standstill, a queue that lasts, errors without a reason; and what is none."""

from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis.rules import serving

WAIT = "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging"


def verdict(w: Any) -> tuple[str, str]:
    found = w.diagnosis().verdict
    return (found.cause.id, str(found.confidence))


def served(b: ModuleType) -> Any:
    w = b.World()
    w.start("a", 0)
    for n in range(20):
        w.answer("a", 100 + 10 * n)
    return w


def reports(w: Any, rows: list[tuple[float, float, float, float]]) -> None:
    """The engine's reports: (seconds, requests running, waiting, tokens per second), each on one line."""
    for name, column in (("requests_running", 1), ("requests_waiting", 2), ("generation_tokens_per_s", 3)):
        w.series(name, [(row[0], row[column]) for row in rows], "a")


@pytest.mark.parametrize(
    ("waits", "running", "after", "expected"),
    [
        (5, 4.0, False, ("engine_timeout", "likely")),
        (5, None, False, ("engine_timeout", "possible")),
        (5, 0.0, False, ("healthy", "likely")),
        (1, 4.0, False, ("healthy", "likely")),
        (5, 4.0, True, ("healthy", "likely")),
    ],
    ids=["with requests running", "load unknown", "idle", "one wait", "it went on"],
)
def test_waits_that_do_not_end(
    b: ModuleType, waits: int, running: float | None, after: bool, expected: tuple[str, str]
) -> None:
    """Processes wait for each other to the end of a log that somebody saved before anything was ended."""
    w = served(b)
    if running is not None:
        w.series("requests_running", [(300.0, running)], "a", first_line=40)
        w.series("generation_tokens_per_s", [(300.0, 90.0 * running)], "a", first_line=40)
    for n in range(waits):
        w.add("a", 360 + 60 * n, WAIT, line=50 + n)
    if after:
        w.series("requests_running", [(700.0, 4.0)], "a", first_line=90)
        w.series("generation_tokens_per_s", [(700.0, 90.0)], "a", first_line=90)
        w.answer("a", 705)
    assert verdict(w) == expected


@pytest.mark.parametrize(
    ("stalled_s", "then_works", "expected"),
    [
        (300, False, ("engine_timeout", "likely")),
        (900, True, ("engine_timeout", "possible")),
        (300, True, ("healthy", "likely")),
        (60, False, ("healthy", "likely")),
    ],
    ids=["to the end", "a quarter of an hour", "minutes", "a big prefill"],
)
def test_requests_that_run_without_a_token(
    b: ModuleType, stalled_s: int, then_works: bool, expected: tuple[str, str]
) -> None:
    w = served(b)
    rows = [(300.0 + t, 5.0, 0.0, 400.0) for t in range(0, 300, 10)]
    rows += [(600.0 + t, 5.0, 0.0, 0.0) for t in range(0, stalled_s + 10, 10)]
    rows += [(2000.0 + t, 5.0, 0.0, 400.0) for t in range(0, 300, 10) if then_works]
    reports(w, rows)
    assert verdict(w) == expected


@pytest.mark.parametrize(
    ("queue", "cause"),
    [
        (lambda t: t / 10, "kv_saturation"),
        (lambda t: 60.0, "kv_saturation"),
        (lambda t: 30.0 if t < 400 else 0.0, "healthy"),
        (lambda t: 500 - t / 3, "healthy"),
        (lambda t: 3.0, "healthy"),
    ],
    ids=["grows", "stays", "drained", "is being worked off", "a few"],
)
def test_a_queue_that_lasts(b: ModuleType, queue: Any, cause: str) -> None:
    """As many run as may, the cache has room, and the others wait."""
    w = served(b)
    reports(w, [(300.0 + t, 16.0, float(queue(t)), 400.0) for t in range(0, 1400, 10)])
    w.series("kv_cache_usage_pct", [(300.0 + t, 7.0) for t in range(0, 1400, 10)], "a")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("status", "failed", "expected"),
    [
        (500, 12, ("app_bug", "possible")),
        (503, 12, ("insufficient_evidence", "undetermined")),
        (500, 1, ("healthy", "likely")),
        (499, 12, ("healthy", "likely")),
    ],
)
def test_server_errors_without_a_reason(b: ModuleType, status: int, failed: int, expected: tuple[str, str]) -> None:
    """What a web framework answers for an exception is the application's; another error may be anything."""
    w = served(b)
    for n in range(failed):
        w.answer("a", 400 + n, status)
    w.answer("a", 500)
    assert verdict(w) == expected


@pytest.mark.parametrize(
    ("seconds", "cause"), [(400, "insufficient_evidence"), (30, "healthy")], ids=["serving", "starting"]
)
def test_a_health_endpoint_that_says_no(b: ModuleType, seconds: int, cause: str) -> None:
    w = served(b)
    for n in range(4):
        text = '10.42.0.1:40122 - "GET /health HTTP/1.1" 503'
        w.add("a", seconds + n, text, "access", line=7 if seconds < 60 else None, method="GET", path="/health", status=503)
    assert verdict(w)[0] == cause


def test_every_request_is_asked_once_for_all_runs(b: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A support bundle may hold thousands of small logs: not each run looks at every line of all others."""
    w, asked = b.World(), []
    for n in range(30):
        w.start(f"log-{n:02}", 1000 * n)
        w.answer(f"log-{n:02}", 1000 * n + 100)
    case = w.case()
    monkeypatch.setattr(serving, "_while_serving", lambda life, event: asked.append(event) or True)
    monkeypatch.setattr(serving, "_is_health", lambda event: asked.append(event) or True)
    assert serving.unexplained_failures(case) is None
    assert len(asked) <= 3 * 30


@pytest.mark.parametrize(("tokens", "waits", "line"), [
    ((400.0, 90.0, 0.0, 0.0), 0, 62), ((400.0, 90.0, 0.0, 0.0), 3, 70), ((400.0, 90.0, 80.0, 70.0), 3, 70),
    ((400.0, 0.0, 80.0, 70.0), 0, 90),
], ids=["reports", "waits, which say what it is", "waits", "the-timeout-alone"])  # fmt: skip
def test_a_standstill_begins_before_its_timeout(
    b: ModuleType, tokens: tuple[float, ...], waits: int, line: int
) -> None:
    """The first line to look at is the one from which nothing moved, five minutes before the engine gave up."""
    w = served(b)
    for name, values in (("requests_running", (4.0, 5.0, 6.0, 7.0)), ("generation_tokens_per_s", tokens)):
        w.series(name, [(310.0 + 10 * n, value) for n, value in enumerate(values)], "a", first_line=60)
    for n in range(waits):
        w.add("a", 390 + 60 * n, WAIT, line=70 + n)
    w.fail("a", 650, "TimeoutError: RPC call to execute_model timed out.", envelope="")
    w.events[-1] = b.moved(w.events[-1], locator=b.Locator("a", 90, 90))
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "engine_timeout"
    assert diagnosis.first_cause is not None
    assert (diagnosis.first_cause.locator.line, bool(diagnosis.first_cause.id)) == (line, True)
    assert diagnosis.incidents[0].start_s == pytest.approx(b.T0 + {62: 330, 70: 390, 90: 650}[line])


def test_a_wait_right_before_the_first_standing_report(b: ModuleType) -> None:
    """The wait began a minute before it was printed; that requests still run is no work that it was followed by."""
    w = served(b)
    for name, values in (("requests_running", (4.0, 5.0, 5.0)), ("generation_tokens_per_s", (400.0, 0.0, 0.0))):
        w.series(name, [(310.0 + 60 * n, value) for n, value in enumerate(values)], "a", first_line=60)
    w.add("a", 369, WAIT, line=61)
    for column in w.samples:
        column.lines[1:] = array("q", [62, 64])
    w.add("a", 429, WAIT, line=63)
    w.lines["a"] = 70
    w.fail("a", 650, "TimeoutError: RPC call to execute_model timed out.", envelope="")
    found = w.diagnosis()
    assert found.verdict.cause.id == "engine_timeout"
    assert found.first_cause.locator.line == 61


def test_a_fault_in_the_middle_of_a_standstill_is_its_cause(b: ModuleType) -> None:
    """Where the standstill began says nothing about who began it: the lost card is no consequence of a timeout."""
    w = served(b)
    for name, value in (("requests_running", 4.0), ("generation_tokens_per_s", 0.0)):
        w.series(name, [(310.0 + 10 * n, value) for n in range(3)], "a", first_line=60)
    text = "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    w.add("dmesg", 335, text, "xid", "kernel", xid=79, pci_bus_id="0000:17:00")
    w.fail("a", 650, "TimeoutError: RPC call to execute_model timed out.", envelope="")
    assert w.diagnosis().verdict.cause.id == "gpu_hardware"


@pytest.mark.parametrize(
    ("tokens", "cause"), [(0.0, "gpu_illegal_access"), (400.0, "engine_timeout")], ids=["nothing moved", "it went on"]
)
def test_reports_of_requests_without_tokens_are_no_recovery(b: ModuleType, tokens: float, cause: str) -> None:
    """One rank left its loop; the engine reports what runs, and answers that it is well, until it gives up waiting."""
    w = served(b)
    w.fail("a", 400, "RuntimeError: CUDA error: device-side assert triggered", envelope="WorkerProc hit an exception.")
    for name, value in (("requests_running", 7.0), ("generation_tokens_per_s", tokens)):
        w.series(name, [(410.0 + t, value) for t in range(0, 290, 10)], "a", first_line=70)
    w.add("a", 700, "EngineCore encountered a fatal error.", line=120, level="ERROR")
    w.fail("a", 700, "TimeoutError: RPC call to execute_model timed out.", envelope="")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("reports", "cause"), [(60, "healthy"), (3, "request_rejected")])
def test_one_request_refused_by_a_busy_engine(b: ModuleType, reports: int, cause: str) -> None:
    """Ten minutes of work around it say that it is nobody's trouble; a few lines around it were cut out because of it."""
    w = b.World()
    w.start("a", 0)
    w.add("a", 100, "Input length (140211) exceeds model's maximum context length (131072).", level="ERROR")
    w.series("requests_running", [(90 + 10.0 * n, 20.0 + n % 7) for n in range(reports)], "a")
    w.answer("a", 100.1, 400)
    w.answer("a", 110)
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(("tokens", "cause"), [(0.0, "engine_timeout"), (90.0, "external_sigkill")],
                         ids=["it stood still", "it worked"])  # fmt: skip
def test_what_somebody_killed_was_stuck_already(b: ModuleType, tokens: float, cause: str) -> None:
    """Ten minutes of requests without a token, then a kill by hand: the kill is what followed."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 290)
    moments = [300.0 + 10 * n for n in range(60)]
    w.series("requests_running", [(moment, 12.0) for moment in moments], "a", first_line=100)
    for name in ("generation_tokens_per_s", "prompt_tokens_per_s"):
        w.series(name, [(moment, tokens) for moment in moments], "a", first_line=100)
    w.add("syslog", 920, "ann : TTY=pts/2 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/kill -9 40122", channel="host")
    w.add("a", 921, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR", line=200)
    assert w.diagnosis().verdict.cause.id == cause
