"""Tracebacks: every way in which a log prints them ends as one event a block."""

from __future__ import annotations

from pathlib import Path

from forensics.model import Event
from forensics.parsers import traceback
from forensics.parsers.embedded import read_text
from forensics.parsers.log import Assembled
from forensics.parsers.records import unwrap


def assemble(text: str) -> Assembled:
    lines = text.strip("\n").split("\n")
    return traceback.assemble([unwrap(line, number) for number, line in enumerate(lines, 1)], "engine.log")


def only(text: str) -> Event:
    events = assemble(text).events
    assert len(events) == 1
    return events[0]


RAW = """
Traceback (most recent call last):
  File "/opt/vllm/v1/engine/core.py", line 700, in run_engine_core
    engine_core = EngineCoreProc(*args, **kwargs)
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/vllm/v1/worker/gpu_model_runner.py", line 3121, in profile_run
    self._dummy_run(self.max_num_tokens)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


def test_a_raw_traceback_is_one_event_at_its_exception_line() -> None:
    """Exception, frames outer to inner, and both places are kept."""
    event = only(RAW)
    assert event.kind == "traceback"
    assert event.channel == "engine"
    assert event.text == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert (event.locator.line, event.fields["first_line"]) == (7, 1)
    assert event.fields["exception"] == "torch.OutOfMemoryError"
    assert event.fields["frames"] == (
        "/opt/vllm/v1/engine/core.py:run_engine_core",
        "/opt/vllm/v1/worker/gpu_model_runner.py:profile_run",
    )
    assert event.complete
    assert not event.fields["chained"]


def test_all_lines_of_a_block_are_used_up() -> None:
    """No line of a traceback stays behind as a message of its own."""
    assert assemble(RAW).used == frozenset(range(1, 8))


def test_a_logged_traceback_repeats_the_header_on_every_line() -> None:
    """vLLM's formatter; the message before the traceback stays a message."""
    header = "(EngineCore_DP0 pid=117) ERROR 11-29 21:25:17 [core.py:718] "
    text = "\n".join(header + line for line in ["EngineCore failed to start.", *RAW.strip().split("\n")])
    found = assemble(text)
    assert [event.locator.line for event in found.events] == [8]
    assert 1 not in found.used
    assert found.events[0].fields["logger"] == "core.py:718"
    assert found.events[0].scope.process == "EngineCore_DP0"
    assert found.events[0].level == "ERROR"


def test_interleaved_processes_are_told_apart() -> None:
    """Two ranks write at the same time; each keeps its own frames."""
    text = """
(Worker_TP0 pid=11) Traceback (most recent call last):
(Worker_TP1 pid=12) Traceback (most recent call last):
(Worker_TP0 pid=11)   File "/opt/vllm/a.py", line 1, in left
(Worker_TP1 pid=12)   File "/opt/vllm/b.py", line 2, in right
(Worker_TP1 pid=12) torch.AcceleratorError: CUDA error: out of memory
(Worker_TP0 pid=11) RuntimeError: NCCL error
"""
    events = {event.scope.process: event for event in assemble(text).events}
    assert events["Worker_TP0"].fields["frames"] == ("/opt/vllm/a.py:left",)
    assert events["Worker_TP0"].text == "RuntimeError: NCCL error"
    assert events["Worker_TP1"].fields["frames"] == ("/opt/vllm/b.py:right",)


def test_rank_prefixes_of_torch_are_peeled() -> None:
    """`[rank1]: ` stands before each line; the rank goes into the scope."""
    event = only("\n".join(f"[rank1]: {line}" for line in RAW.strip().split("\n")))
    assert event.scope.rank == 1
    assert len(event.fields["frames"]) == 2


def test_the_first_block_of_a_chain_is_the_root() -> None:
    """Later blocks are marked as chained, the root is not."""
    text = (
        RAW
        + """
The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/vllm/v1/worker/gpu_worker.py", line 5, in init_device
RuntimeError: CUDA out of memory occurred when warming up sampler
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "/opt/vllm/v1/worker/gpu_worker.py", line 9, in shutdown
KeyError: 'x'
"""
    )
    assert [event.fields["chained"] for event in assemble(text).events] == [False, True, True]


def test_the_inner_half_of_a_remote_error_is_the_root() -> None:
    """Ray and torch print the worker's frames after the wrapper's exception line: the wrapper is chained."""
    ray = """
Traceback (most recent call last):
  File "/opt/serve.py", line 1, in main
ray.exceptions.RayTaskError(OutOfMemoryError): ray::RayWorkerWrapper.execute_method() (pid=9, ip=10.0.0.3)
  File "/opt/vllm/worker.py", line 3, in load_model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.
"""
    torch = """
Traceback (most recent call last):
  File "/opt/dl.py", line 1, in main
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/w.py", line 3, in _worker_loop
RuntimeError: unable to allocate shared memory(shm) for file </torch_9>: No space left on device (28)
"""
    for text in (ray, torch):
        outer, inner = assemble(text).events
        assert (outer.fields["chained"], inner.fields["chained"]) == (True, False)
        assert inner.complete


def test_a_block_without_its_exception_is_incomplete() -> None:
    """The log ends inside it: the innermost frame is what can be shown."""
    event = only(RAW.rpartition("torch.OutOf")[0])
    assert not event.complete
    assert event.fields["exception"] == ""
    assert event.locator.line == 5


def test_a_log_that_begins_inside_a_traceback_keeps_the_rest() -> None:
    """Frames without a header, for instance after rotation."""
    event = only("\n".join(RAW.strip().split("\n")[3:]))
    assert event.text.startswith("torch.OutOfMemoryError")
    assert not event.complete


def test_bare_exceptions_and_odd_names_end_a_block() -> None:
    """Not every exception has a message or ends in `Error`."""
    for last in (
        "MemoryError", "KeyboardInterrupt: terminated", "SystemExit: 1",
            "Exception: WorkerProc initialization failed",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 1, Hardware "
        "limit: 0",
        "subprocess.TimeoutExpired: Command 'nvidia-smi' timed out", "torch._dynamo.exc.Unsupported: call",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ):  # fmt: skip
        event = only(f'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n{last}')
        assert event.text == last.strip()
        assert event.complete


def test_every_exception_line_holds_an_anchor() -> None:
    """What ends a block must be found by the scan."""
    for line in ("ValueError: x", "Exception: x", "queue.Empty", "a.exc.Odd: x", "pkg.errors.Lost: x", "StopIteration"):
        assert any(anchor in line for anchor in traceback.ANCHORS)


def test_shifted_tracebacks_are_read() -> None:
    """torchrun indents the worker's traceback in its summary; exception groups put bars before it."""
    shifted = """
  traceback : Traceback (most recent call last):
    File "/opt/train.py", line 6, in main
      raise error
  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
    group = """
  + Exception Group Traceback (most recent call last):
  |   File "/opt/starlette/_utils.py", line 76, in collapse_excgroups
  |     yield
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
"""
    assert only(shifted).fields["exception"] == "torch.OutOfMemoryError"
    assert only(group).fields["exception"] == "ExceptionGroup"


def test_faulthandler_prints_the_innermost_frame_first() -> None:
    """The dump of the crashing thread becomes a traceback, outer frame first."""
    event = only("""
Fatal Python error: Bus error

Thread 0x00007f5fef3d96c0 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 982 in run

Current thread 0x00007f5fefe7cb80 (most recent call first):
  File "/opt/shm.py", line 3 in write
  File "/opt/shm.py", line 9 in <module>
bash: line 1:  4603 Bus error               python shm.py
""")
    assert event.text == "Fatal Python error: Bus error"
    assert event.fields["frames"] == ("/opt/shm.py:<module>", "/opt/shm.py:write")


def test_a_traceback_inside_one_json_record() -> None:
    """`exc_info` holds it with its line ends; message and traceback are two events of one line."""
    text = RAW.strip().replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    line = (
        '{"asctime": "2026-11-29 21:28:09,233", "levelname": "ERROR", "name": "vllm.v1.engine.core", '
        f'"process": 117, "message": "EngineCore failed to start.", "exc_info": "{text}"}}'
    )
    first, second = read_text(line, "engine.json", "engine").events
    assert first.text == "EngineCore failed to start."
    assert second.kind == "traceback"
    assert second.fields["exception"] == "torch.OutOfMemoryError"
    assert first.locator.line == second.locator.line == 1


def test_long_stacks_keep_both_ends() -> None:
    """The site of an OOM lies near the outside, the failing call at the inside."""
    frames = "\n".join(f'  File "/opt/f{i}.py", line {i}, in f{i}' for i in range(90))
    event = only(f"Traceback (most recent call last):\n{frames}\nRecursionError: x")
    assert len(event.fields["frames"]) == traceback.MAX_FRAMES
    assert event.fields["frames"][0] == "/opt/f0.py:f0"
    assert event.fields["frames"][-1] == "/opt/f89.py:f89"


def test_real_failures_of_python_are_read(captures: Path) -> None:
    """Every genuine traceback has an event, complete and with its exception."""
    for path in sorted((captures / "python").glob("*.txt")):
        text = path.read_text()
        found = [e for e in read_text(text, path.name, "plain").events if e.kind == "traceback"]
        expected = text.count("Traceback (most recent call last)") + text.count("Fatal Python error")
        assert len(found) == expected, path.name
        assert all(event.complete and event.fields["exception"] for event in found), path.name


def test_what_was_raised_from_an_exception_may_come_without_frames() -> None:
    """People leave out the second traceback: its last line is still the later of two, not talk."""
    chain = "\nThe above exception was the direct cause of the following exception:\n\n"
    first, second = assemble(RAW + chain + "engine.errors.EngineDeadError: see above\n").events
    assert (first.fields["chained"], second.fields["chained"], second.kind) == (False, True, "traceback")
    assert second.text == "engine.errors.EngineDeadError: see above"


def test_frames_whose_paths_somebody_cut_short() -> None:
    """A form took the first half of each; the innermost functions still say where it was."""
    event = only(
        """...engine/core.py", line 88, in __init__
    self._initialize_kv_caches(vllm_config)
…worker/gpu_model_runner.py", line 2112, in _dummy_sampler_run
    sampler_output = self.sampler(logits=logits,
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 592.00 MiB.
"""
    )
    assert event.fields["frames"] == ("engine/core.py:__init__", "worker/gpu_model_runner.py:_dummy_sampler_run")
    assert (event.kind, event.channel, event.locator.line) == ("traceback", "engine", 5)


def test_a_path_with_a_line_in_a_sentence_is_no_frame() -> None:
    assert not assemble('see "/opt/vllm/v1/worker/gpu_model_runner.py", line 2112, in load_model\nRuntimeError: x').events
