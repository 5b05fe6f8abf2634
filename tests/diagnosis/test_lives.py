"""Engine logs are cut into runs: where one begins, how far it got, what it survived, and where it was lost."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from forensics import pipeline
from forensics.diagnosis.model import Phase
from forensics.model import Scope

BANNER = "vLLM API server version 0.11.0"


def test_a_banner_after_anything_else_begins_a_run(b: ModuleType) -> None:
    """Two starts in one file are two lives."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 100)
    w.start("a", 130)
    lives = w.case().lives
    assert [life.phase for life in lives] == [Phase.DEAD, Phase.SERVING]
    assert lives[0].end.locator.line + 1 == lives[1].start.locator.line


def test_a_banner_may_span_lines(b: ModuleType) -> None:
    """Version, logo and arguments are one banner; the same line far below is the next start."""
    w = b.World()
    w.add("a", 0, BANNER, "engine_args")
    w.add("a", 0.1, "non-default args: {}", "engine_args")
    w.add("a", 0.2, BANNER, "engine_args")
    assert len(w.case().lives) == 1
    w.add("a", 300, BANNER, "engine_args", line=80)
    assert len(w.case().lives) == 2


def test_a_banner_after_work_begins_a_run(b: ModuleType) -> None:
    """A log that begins in the middle of a run: reports of work, then a start. The first run lasts to its last report."""
    w = b.World()
    w.add("a", 0, "some line", line=1)
    w.series("generation_tokens_per_s", [(10.0 * i, 500.0) for i in range(6)], "a", first_line=2)
    w.add("a", 100, BANNER, "engine_args", line=20)
    w.add("a", 101, "Starting to load model acme/chat-14b...")
    first, second = w.case().lives
    assert (first.from_start, second.from_start) == (False, True)
    assert (first.end.locator.line, first.end.time.utc_s) == (7, b.T0 + 50)


def test_an_excerpt_is_no_restart(b: ModuleType) -> None:
    """The head of a log and a later excerpt of the same run: nothing ended in between."""
    w = b.World()
    w.start("head.log", 0, Scope(pod=b.POD))
    w.answer("since-80m.log", 9000, scope=Scope(pod=b.POD))
    w.answer("since-80m.log", 9900, scope=Scope(pod=b.POD))
    assert w.case().deaths == ()


def test_one_run_in_two_files_is_one_life(b: ModuleType) -> None:
    """`kubectl logs --previous` and the file of the node show the same run: same entity, same start."""
    w = b.World()
    scope = Scope(pod=b.POD)
    for source in ("previous.log", "0.log"):
        w.start(source, 0, scope)
    w.fail("0.log", 90, scope=scope)
    (life,) = w.case().lives
    assert set(life.sources) == {"previous.log", "0.log"}
    assert life.phase is Phase.DEAD
    assert life.sources[0] == "0.log", "the file that tells more tells the story"


def test_two_pods_that_start_together_are_two_lives(b: ModuleType) -> None:
    """Replicas start at the same second; they are told apart by their entity."""
    w = b.World()
    for n in range(3):
        w.start(f"{n}.log", 0, Scope(pod=f"chat-{n}"))
    assert len(w.case().lives) == 3


@pytest.mark.parametrize(
    ("ready", "loaded", "phase"),
    [(True, True, Phase.SERVING), (False, True, Phase.PROFILING), (False, False, Phase.LOADING)],
)
def test_lifecycle_lines_tell_the_phase(b: ModuleType, ready: bool, loaded: bool, phase: Phase) -> None:
    """How far a run got is read from its last lifecycle line."""
    w = b.World()
    w.start("a", 0, ready=ready, loaded=loaded)
    (life,) = w.case().lives
    assert life.phase in (phase, Phase.CAPTURING if phase is Phase.PROFILING else phase)
    assert (life.ready is not None) is ready


def test_a_log_that_begins_in_the_middle_was_serving(b: ModuleType) -> None:
    """Answers without a start-up before them: rotation took it."""
    w = b.World()
    w.answer("a", 10)
    w.answer("a", 20)
    (life,) = w.case().lives
    assert (life.phase, life.ready) == (Phase.SERVING, None)


def test_an_error_before_later_work_was_survived(b: ModuleType) -> None:
    """A CUDA OOM after which requests are answered is not the end."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, envelope="")
    w.answer("a", 900)
    (life,) = w.case().lives
    assert life.fatal is None
    assert life.last_sign == life.end.locator.line


def test_the_first_unsurvived_error_is_fatal(b: ModuleType) -> None:
    """Of several errors after the last work the first is where the run is lost."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    first = w.fail("a", 80, envelope="")
    w.fail("a", 81, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", envelope="")
    (life,) = w.case().lives
    assert life.fatal is not None
    assert life.fatal.locator == first.locator


def test_failed_answers_are_no_sign_of_life(b: ModuleType) -> None:
    """500s after the engine's death are its echo."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80)
    w.answer("a", 81, 500)
    assert w.case().lives[0].fatal is not None


def test_errors_after_a_stop_are_no_fault(b: ModuleType) -> None:
    """What a run prints after it was asked to stop does not kill it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    stop = w.add("a", 80, "Shutting down")
    w.fail("a", 81, envelope="")
    (life,) = w.case().lives
    assert life.fatal is None
    assert life.shutdown is not None
    assert life.shutdown.locator == stop.locator


def test_a_stop_after_the_death_is_its_echo(b: ModuleType) -> None:
    """The API server shuts down because the engine died: no orderly stop."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80)
    w.add("a", 82, "Shutting down")
    (life,) = w.case().lives
    assert life.fatal is not None
    assert life.shutdown is None


def test_work_reported_by_a_series_is_a_sign_of_life(b: ModuleType) -> None:
    """The engine's own statistics count as work, even where no request was logged."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80, envelope="")
    w.add("a", 900, "Engine 000: Avg prompt throughput: 12.0 tokens/s")
    w.series("requests_running", [(900, 4.0)], source="a", first_line=w.lines["a"])
    assert w.case().lives[0].fatal is None


def test_work_of_a_neighbour_in_the_same_file_is_none(b: ModuleType) -> None:
    """Merged logs of two pods: the statistics of one say nothing about the other."""
    w = b.World()
    one, two = Scope(pod="chat-a"), Scope(pod="chat-b")
    w.start("all", 0, one)
    w.start("all", 0, two)
    w.fail("all", 80, scope=one)
    w.add("all", 90, "Engine 000: Avg prompt throughput: 12.0 tokens/s", scope=two)
    w.series("requests_running", [(90, 4.0)], source="all", scope=two, first_line=w.lines["all"])
    w.add("all", 91, "AsyncLLM output_handler failed.", scope=one, level="ERROR")
    assert w.diagnosis().verdict.cause.id == "gpu_oom.runtime_load"


def test_an_answer_right_after_the_fatal_error_is_an_echo(b: ModuleType) -> None:
    """The API server prints its statistics and the last finished requests seconds after the engine core has died."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80)
    w.answer("a", 80.5)
    w.add("a", 90, "AsyncLLM output_handler failed.", level="ERROR")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "gpu_oom.runtime_load"


@pytest.mark.parametrize(
    ("text", "frames", "cause"),
    [
        ("vllm serve: error: unrecognized arguments: --old-flag", (), "config_error"),
        ("/opt/run.sh: line 9: vllm: command not found", (), "config_error"),
        ("ValueError: Free memory on device cuda:0 (4.11/47.40 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 42.66 GiB).", (), "gpu_oom.other_process"),
        ("[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", (), "config_error"),
        ("ModuleNotFoundError: No module named 'msgspec'", ("/opt/bin/vllm:<module>", "/opt/lib/vllm/__init__.py:<module>"), "app_bug"),
        ("KeyboardInterrupt", ("/opt/bin/vllm:<module>", "/usr/lib/python3.12/asyncio/runners.py:run"), "healthy"),
        ("/opt/run.sh: line 9: nvcc: command not found", (), "healthy"),
    ],
    ids=["flag", "program", "memory", "port", "import", "noise of the stop", "another program"],
)  # fmt: skip
def test_a_start_that_fails_behind_an_orderly_stop(b: ModuleType, text: str, frames: tuple[str, ...], cause: str) -> None:
    """Without a banner; what a run prints after it was asked to stop is no fault, but this is the next run."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.add("a", 3700, "Shutting down FastAPI HTTP server.")
    w.add("a", 3701, "Application shutdown complete.")
    if frames:
        w.fail("a", 3720, text, frames, envelope="")
    else:
        w.add("a", 3720, text, level="ERROR")
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    assert len(found.lives) == (1 if cause == "healthy" else 2)


@pytest.mark.parametrize(
    ("typed", "runs"),
    [
        ("ops@gpu-4:~$ vllm serve acme/chat-14b", 2),
        ("(venv) ops@gpu-4:~/srv$ CUDA_VISIBLE_DEVICES=1 nohup python3 -m sglang.launch_server --model-path acme/chat-14b", 2),
        ("ops@gpu-4:~$ ps aux | grep 'vllm serve'", 1),
        ("Run `vllm serve acme/chat-14b` again", 1),
    ],
)
def test_a_start_typed_behind_a_stop_is_the_next_run(b: ModuleType, typed: str, runs: int) -> None:
    """A terminal shows the command; a start that fails has no banner, and its errors are not the noise of the stop."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.add("a", 3700, "Shutting down FastAPI HTTP server.")
    w.add("a", 3790, typed)
    w.add("a", 3800, "EngineCore failed to start.", level="ERROR")
    lives = w.case().lives
    assert len(lives) == runs
    assert (lives[-1].fatal is not None) == (runs == 2)


@pytest.mark.parametrize(("told", "runs"), [("4711", 2), ("8250", 1), ("", 1)], ids=["of these", "of another", "of none"])
def test_the_jobs_of_a_program_are_no_runs(b: ModuleType, told: str, runs: int) -> None:
    """A program has jobs as well, and says when one starts; what the scheduler tells of are a script's headers."""
    w = b.World()
    w.start("a", 0)
    for second, job in ((100, 4710), (200, 4711)):
        w.add("a", second, f"job {job} started on worker 3")
        w.answer("a", second + 5)
    if told:
        w.add("sacct.txt", None, f"{told}|chat|COMPLETED|0:0", channel="host", job=told)
    assert len(w.case().lives) == runs


TGI_STOP = """2026-04-02T09:00:00.301822Z  INFO generate{total_time="1.8s"}: text_generation_router::server: Success
@2026-04-02T09:00:08.450017Z  INFO text_generation_launcher: Terminating webserver
2026-04-02T09:00:08.450093Z  INFO text_generation_launcher: Waiting for webserver to gracefully shutdown
2026-04-02T09:00:08.451501Z  INFO text_generation_router::server: signal received, starting graceful shutdown
2026-04-02T09:00:09.552361Z  INFO text_generation_launcher: Shutting down shards
"""


@pytest.mark.parametrize(
    ("before", "healthy"),
    [("", True), ("2026-04-02T09:00:07.101501Z ERROR text_generation_launcher: Shard 1 crashed\n", False)],
    ids=["asked", "a shard was gone"],
)
def test_a_router_that_is_told_to_stop(tmp_path: Path, before: str, healthy: bool) -> None:
    """TGI's launcher stops its router on an order from outside, and when a shard is gone."""
    (tmp_path / "tgi.log").write_text(TGI_STOP.replace("@", before), encoding="utf-8")
    assert (pipeline.analyze(tmp_path / "tgi.log").diagnosis.verdict.cause.id == "healthy") is healthy
