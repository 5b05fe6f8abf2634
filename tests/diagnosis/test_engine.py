"""The engine's own story: unknown exceptions, hangs, silent ends, stops."""

from __future__ import annotations

from types import ModuleType

import pytest

from forensics.model import RawStamp, Scope, StampForm

WAIT = "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes hang."


def test_an_unknown_exception_at_work_is_a_bug(b: ModuleType) -> None:
    """A KeyError in a plug-in kills a serving engine."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, "KeyError: 'tenant-42'")
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == "app_bug"
    assert "uncaught_exception" in b.names(verdict.decisive)


@pytest.mark.parametrize(
    ("text", "cause"),
    [("ValueError: no such adapter format: xyz", "config_error"), ("TypeError: unhashable type: 'dict'", "app_bug")],
)
def test_an_unknown_exception_at_the_start(b: ModuleType, text: str, cause: str) -> None:
    """A ValueError before anything is loaded is about the configuration; a TypeError is not."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0")
    w.fail("a", 3, text, frames=("arg_utils.py:create_engine_config",), envelope="EngineCore failed to start.")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(
    ("built", "frames", "cause"),
    [
        ("init engine (profile, create kv cache, warmup model) took 41.20 seconds", ("/opt/vllm/serving_models.py:load_adapters",), "config_error"),
        ("", ("/opt/vllm/api_server.py:init_app_state", "/opt/vllm/serving_models.py:init_static_loras"), "config_error"),
        ("", ("/opt/vllm/gpu_model_runner.py:capture_model",), "app_bug"),
        ("init engine (profile, create kv cache, warmup model) took 41.20 seconds", ("/opt/vllm/core.py:run_busy_loop",), "app_bug"),
    ],
)  # fmt: skip
def test_a_server_is_still_being_set_up_behind_its_engine(
    b: ModuleType, built: str, frames: tuple[str, ...], cause: str
) -> None:
    """Adapters and templates are checked after the graphs are captured: no request has any part in it."""
    w = b.World()
    w.start("a", 0, ready=False)
    w.add("a", 40, "Graph capturing finished in 9 secs, took 0.61 GiB")
    if built:
        w.add("a", 41, built)
    w.fail("a", 42, "ValueError: adapter rank 96 is beyond the limit of 32", frames=frames, envelope="")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [("KeyError: 'tenant-42'", "app_bug"), ("Error: WebserverFailed", "insufficient_evidence"), ("EngineDeadError: gone", "insufficient_evidence")],
)  # fmt: skip
def test_an_exception_whose_traceback_was_cut_out(b: ModuleType, text: str, cause: str) -> None:
    """People leave the frames out; the line beside the engine's last words still says what was raised."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.add("a", 80, "EngineCore encountered a fatal error.", level="ERROR")
    w.add("a", 80, text, level="ERROR")
    assert w.diagnosis().verdict.cause.id == cause


def test_an_exception_far_from_the_end_is_not_its_reason(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0)
    w.add("a", 61, "ValueError: a plug-in was skipped", level="ERROR")
    for second in range(20):
        w.add("a", 62 + second, "Route: /v1/models, Methods: GET")
    w.add("a", 90, "EngineCore encountered a fatal error.", level="ERROR")
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_an_excerpt_may_begin_at_a_frame(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.events[-1] = b.moved(w.fail("a", 80, "KeyError: 'tenant-42'"), complete=False)
    assert w.diagnosis().verdict.cause.id == "app_bug"


def test_an_uncaught_exception_of_the_api_server_is_a_death(b: ModuleType) -> None:
    """The API server prints no envelope line: its traceback is the last word of the log."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0")
    w.fail("a", 3, "KeyError: 'invalid reasoning parser: acme_r1'", frames=("api_server.py:run_server",), envelope="")
    assert w.diagnosis().verdict.cause.id in ("app_bug", "config_error")


def test_a_traceback_without_its_exception_is_no_bug(b: ModuleType) -> None:
    """The log was cut in the middle of a traceback: something failed, nobody knows what."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    headless = w.fail("a", 80, 'File "/app/engine.py", line 7, in step')
    w.events[-1] = b.moved(headless, fields={**headless.fields, "exception": ""}, complete=False)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_an_echo_is_not_the_exception(b: ModuleType) -> None:
    """EngineDeadError and `initialization failed` tell of somebody else's end: nothing is known."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", frames=())
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


@pytest.mark.parametrize(
    "text",
    [
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error",
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
    ],
)
def test_a_known_consequence_is_no_unknown_exception(b: ModuleType, text: str) -> None:
    """The library knows these texts, and that they never are the cause."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, text)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_a_chained_exception_is_not_the_first(b: ModuleType) -> None:
    """The exception that was raised from another one is the consequence."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    first = w.fail("a", 80, "KeyError: 'tenant-42'")
    later = w.fail("a", 80.1, "RuntimeError: Worker failed", envelope="")
    w.events[-1] = b.moved(later, fields={**later.fields, "chained": True})
    diagnosis = w.diagnosis()
    assert diagnosis.first_cause is not None
    assert diagnosis.first_cause.locator == first.locator


def test_repeated_waits_of_a_serving_engine_are_a_hang(b: ModuleType) -> None:
    """Three waits after the last work, then the death; the same waits while loading are patience."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    for n in range(4):
        w.add("a", 150 + 60 * n, WAIT)
    w.fail("a", 400, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", frames=())
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == "engine_timeout"
    assert "first_hang" in b.names(verdict.decisive)


def test_waits_while_compiling_are_harmless(b: ModuleType) -> None:
    """The engine became ready afterwards and works."""
    w = b.World()
    w.start("a", 0, ready=False)
    for n in range(4):
        w.add("a", 100 + 60 * n, WAIT)
    w.add("a", 400, "Application startup complete.")
    w.answer("a", 500)
    assert w.diagnosis().verdict.cause.id == "healthy"


def test_a_silent_death_asks_for_the_kernel(b: ModuleType) -> None:
    """`died unexpectedly` without any traceback: somebody outside killed it, and the bundle does not say who."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.add("a", 80, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "insufficient_evidence"
    assert {"kernel_log", "events"} <= {gap.key for gap in diagnosis.gaps}
    assert "silent_death" in b.names(diagnosis.verdict.supporting)


@pytest.mark.parametrize(("text", "is_cause"), [
    ("Available KV cache memory: -5.12 GiB", True), ("# GPU blocks: 0, # CPU blocks: 780", True),
    ("# GPU blocks: 41, # CPU blocks: 780", False),
], ids=["below zero", "no block", "some blocks"])  # fmt: skip
def test_a_spent_kv_budget_is_a_cause(b: ModuleType, text: str, is_cause: bool) -> None:
    """The measured budget is zero or below: whatever the engine says next, this is the line to read."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 20, text)
    w.fail("a", 21, "ValueError: too small", frames=("core.py:_initialize_kv_caches",))
    found = w.diagnosis()
    assert (found.verdict.cause.id == "gpu_oom.kv_cache_startup") is is_cause
    assert (found.first_cause.event.text == text) is is_cause


def test_a_planned_stop_is_healthy(b: ModuleType) -> None:
    """Stopping container, drained, 143."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.event("events", 300, "Killing", "Stopping container vllm")
    w.add("a", 300.5, "Shutting down", scope=scope)
    w.add("a", 310, "Application shutdown complete.", scope=scope)
    w.exited("describe.txt", 311, 143)
    assert w.diagnosis().verdict.cause.id == "healthy"


def test_a_stop_that_ran_out_of_grace_is_a_kill(b: ModuleType) -> None:
    """Stopping container, then 137 after the grace period."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.pod()
    w.event("events", 300, "Killing", "Stopping container vllm")
    w.exited("describe.txt", 331, 137)
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == "external_sigkill"
    assert "killed_after_grace" in b.names(verdict.decisive)


def test_a_137_without_a_witness_stays_open(b: ModuleType) -> None:
    """137 is any SIGKILL."""
    w = b.World()
    w.pod()
    w.exited("describe.txt", 300, 137)
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, verdict.confidence) == ("insufficient_evidence", "undetermined")


@pytest.mark.parametrize(("later_s", "cause"), [(601.0, "app_bug"), (1.0, "engine_timeout")])
def test_an_exception_long_before_a_timeout(b: ModuleType, later_s: float, cause: str) -> None:
    """A worker raises, the engine waits ten minutes for it: the exception is the cause. In one moment it may be an echo."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 100, "IndexError: list index out of range", envelope="WorkerProc hit an exception.")
    w.fail("a", 100 + later_s, "TimeoutError: RPC call to execute_model timed out.")
    assert w.diagnosis().verdict.cause.id == cause


def test_systemds_watchdog_and_the_abort_that_follows(b: ModuleType) -> None:
    """The program writes into the journal under its own name; systemd names its pid: the abort is a consequence."""
    w = b.World()
    own = Scope(pid=612)
    w.start("journal", 0, own)
    w.answer("journal", 3600, scope=own)
    unit = Scope(unit="vllm.service")
    w.add("journal", 3740, "vllm.service: Watchdog timeout (limit 2min)!", channel="systemd", scope=unit)
    w.add("journal", 3740, "vllm.service: Killing process 612 (python3) with signal SIGABRT.", channel="systemd", scope=unit)
    w.add("journal", 3741, "Fatal Python error: Aborted", "traceback", scope=own, exception="Fatal Python error",
          frames=("/opt/plugins/audit.py:write",), chained=False, level="ERROR")  # fmt: skip
    w.add("journal", 3742, "vllm.service: Main process exited, code=dumped, status=6/ABRT", "unit_exit", "systemd", unit,
          code="dumped", status=6)  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "engine_timeout"
    assert len(found.incidents) == 1


@pytest.mark.parametrize(("seconds", "first"), [(3598.0, "kernel.network_link_down"), (1000.0, "nccl.ib_error")])
def test_a_link_that_went_down_before_a_collective_failed(b: ModuleType, seconds: float, first: str) -> None:
    """Two seconds before, on another node, it is where to look first; an hour before, it is not."""
    w = b.World()
    w.start("node-a/vllm.log", 0)
    w.answer("node-a/vllm.log", 3590)
    w.add("node-b/kern.log", seconds, "infiniband mlx5_0: Port: 1 Link DOWN", channel="kernel", scope=Scope(host="node-b"))
    w.fail("node-a/vllm.log", 3600, "RuntimeError: NCCL WARN NET/IB : Got completion from peer 10.0.0.8<4> with status=12 opcode=0")
    found = w.diagnosis()
    assert found.verdict.cause.id == "nccl_failure"
    assert found.first_cause is not None
    assert found.first_cause.signature == first


@pytest.mark.parametrize(("link_s", "first"), [(2999.0, "kernel.network_link_down"), (3590.0, "nccl.watchdog_timeout")])
def test_a_watchdog_tells_since_when_a_collective_stood_still(b: ModuleType, link_s: float, first: str) -> None:
    """It waited ten minutes: a link that went down then is the cause, one that went down meanwhile is not."""
    w = b.World()
    w.start("node-a/vllm.log", 0)
    w.answer("node-a/vllm.log", 2990)
    w.add("node-b/kern.log", link_s, "infiniband mlx5_0: Port: 1 Link DOWN", channel="kernel", scope=Scope(host="node-b"))
    w.fail("node-a/vllm.log", 3600, "DistBackendError: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
           "OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.")  # fmt: skip
    found = w.diagnosis()
    assert found.first_cause is not None
    assert (found.verdict.cause.id, found.first_cause.signature) == ("nccl_failure", first)


@pytest.mark.parametrize(
    ("since_boot_s", "text", "first"),
    [
        (90_000.0, "RuntimeError: NCCL WARN NET/IB : Got completion from peer 10.0.0.8<4> with status=12", "kernel.network_link_down"),
        (40.0, "RuntimeError: NCCL WARN NET/IB : Got completion from peer 10.0.0.8<4> with status=12", "nccl.ib_error"),
        (90_000.0, "RuntimeError: NCCL error: unhandled system error", "nccl.error"),
    ],
    ids=["while it ran", "while it booted", "nothing of the adapter"],
)
def test_a_link_lost_at_an_unknown_time(b: ModuleType, since_boot_s: float, text: str, first: str) -> None:
    """`dmesg` in seconds since a boot that nothing dates: NCCL blames the adapter, and the kernel says that it was gone."""
    w = b.World()
    w.start("node-a/vllm.log", 0)
    w.answer("node-a/vllm.log", 3590)
    w.add("node-b/dmesg", None, "infiniband mlx5_0: Port: 1 Link DOWN", channel="kernel", scope=Scope(host="node-b"))
    w.events[-1] = b.moved(w.events[-1], stamps=(RawStamp(StampForm.BOOT, "dmesg", since_boot_s),))
    w.fail("node-a/vllm.log", 3600, text)
    found = w.diagnosis()
    assert found.first_cause is not None
    assert (found.verdict.cause.id, found.first_cause.signature) == ("nccl_failure", first)


@pytest.mark.parametrize(("port", "gone_s"), [(1, 41.0), (2, None)])
def test_how_long_a_link_was_gone(b: ModuleType, port: int, gone_s: float | None) -> None:
    """A flap, or a cable that was pulled: the same log tells when that port is back."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3590)
    for when, number, state in ((3598, 1, "DOWN"), (3639, port, "ACTIVE")):
        w.add("kern.log", when, f"infiniband mlx5_0: Port: {number} Link {state}", channel="kernel")
    w.fail("a", 3600, "RuntimeError: NCCL WARN NET/IB : Got completion from peer 10.0.0.8<4> with status=12 opcode=0")
    assert w.diagnosis().key_facts.get("link_down_s") == gone_s


@pytest.mark.parametrize(("code", "confidence"), [(2, "established"), (1, "likely")])
def test_the_exit_code_of_a_rejected_command_line(b: ModuleType, code: int, confidence: str) -> None:
    """argparse leaves with 2: whoever reports that code corroborates its message."""
    w = b.World()
    scope = Scope(container="vllm")
    for n in range(3):
        w.add("a", 60 * n, "vllm serve: error: unrecognized arguments: --swap-room 4", scope=scope, level="")
    w.add("a", 121, f"vllm-1 exited with code {code} (restarting)", scope=scope, level="")
    found = w.diagnosis().verdict
    assert (found.cause.id, str(found.confidence)) == ("config_error", confidence)


@pytest.mark.parametrize(("line", "cause"), [
    ("##[error]The runner has received a shutdown signal. This can happen when the runner service is stopped.", "external_sigkill"),
    ("##[endgroup]", "healthy"),
])  # fmt: skip
def test_a_ci_runner_that_goes_away_is_no_planned_stop(b: ModuleType, line: str, cause: str) -> None:
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.add("a", 80, line, level="ERROR")
    w.add("a", 80.1, "Shutting down FastAPI HTTP server.")
    w.add("a", 82, "Application shutdown complete.")
    assert w.diagnosis().verdict.cause.id == cause


WARNED = "UserWarning: Not enough free disk space to download the file. The expected file size is: 9100.20 MB. The target location "
WARNED += "/models/hub only has 800.10 MB free disk space."


@pytest.mark.parametrize(
    ("error", "first"),
    [("OSError: [Errno 28] No space left on device: '/models/hub/blobs/7c.incomplete'", "derived.disk_too_small"),
     ("OSError: You are trying to access a gated repo.", "hub.gated")],
)  # fmt: skip
def test_a_warning_before_the_disk_was_full(b: ModuleType, error: str, first: str) -> None:
    """Where a download ended for want of space, the warning has the sizes; it is no beginning of anything else."""
    w = b.World()
    w.add("a", 0, "Starting to load model acme/chat-14b...")
    w.add("a", 1, WARNED, level="WARNING")
    w.fail("a", 160, error, ("/opt/hub/file_download.py:_download_to_tmp_and_move",))
    found = w.diagnosis()
    assert found.verdict.cause.id == "model_download"
    assert found.first_cause is not None
    assert found.first_cause.signature == first


@pytest.mark.parametrize(
    ("function", "cause"), [("validate_api_server_args", "config_error"), ("_verify_flags", "config_error"), ("load", "app_bug")]
)
def test_whatever_a_check_of_the_settings_raises(b: ModuleType, function: str, cause: str) -> None:
    """A KeyError may be anything; raised by who looks at the arguments, it is about them."""
    w = b.World()
    w.add("a", 0, "Automatically detected platform cuda.")
    w.fail("a", 1, "KeyError: 'colour'", (f"{b.SITE}/../entrypoints/openai/api_server.py:{function}",), envelope="")
    assert w.diagnosis().verdict.cause.id == cause
