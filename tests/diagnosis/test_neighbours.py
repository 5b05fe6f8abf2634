"""Who else holds the card: by a series of its processes, or by one list where the failure says no number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from forensics import analyze
from forensics.diagnosis.rules import neighbours


def test_a_second_process_on_the_card_is_foreign(b: ModuleType) -> None:
    """Seen before the death, of another name, and larger than a CUDA context."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 300)

    def process(name: str, pid: int, mib: float, first: float) -> None:
        scope = b.Scope(gpu="0", pid=pid, process=name)
        w.series("gpu_process_memory_mib", [(first + 10 * i, mib) for i in range(8)], "apps.csv", scope)

    process("VLLM::EngineCore", 40122, 70_000, 230)
    process("python3", 99120, 9_000, 240)
    process("Xorg", 801, 120, 230)
    process("late", 802, 9_000, 400)
    case = w.case()
    found = [f for f in neighbours.rules(case, case.deaths[0]) if f.signature == "derived.foreign_process"]
    assert [f.fields["foreign_name"] for f in found] == ["python3"]


@pytest.mark.parametrize(
    ("engine", "hours_off", "doubt_s", "foreign"),
    [("VLLM::EngineCore", 0, 0.0, "python3"), ("VLLM::EngineCore", 2, 0.0, ""), ("VLLM::EngineCore", 2, 50_400.0, "python3"),
     ("/usr/bin/ollama", 0, 0.0, "/usr/bin/ollama")],
    ids=["beside a larger one", "after the end", "the table's zone is open", "another engine beside a nameless one"],
)  # fmt: skip
def test_a_larger_neighbour(b: ModuleType, engine: str, hours_off: int, doubt_s: float, foreign: str) -> None:
    """The engine's name tells its process from a larger one; a table whose zone is open is not asked when it was."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 300)
    for name, pid, mib in ((engine, 40122, 9_000), ("python3", 99120, 14_000)):
        scope = b.Scope(gpu="0", pid=pid, process=name)
        w.series("gpu_process_memory_mib", [(hours_off * 3600 + 250 + 10 * i, mib) for i in range(8)], "apps.csv", scope)
    w.samples[:] = [replace(column, doubt_s=doubt_s) for column in w.samples]
    case = w.case()
    told = [f for f in neighbours.rules(case, case.deaths[0]) if f.signature == "derived.foreign_process"]
    assert [f.fields["foreign_name"] for f in told] == [foreign] * bool(foreign)
    assert all((f.time.utc_s is None) is (doubt_s > 0) for f in told)


@pytest.mark.parametrize(("grows_at", "line"), [(3600, 61), (None, 1)])
def test_a_neighbour_does_harm_when_it_grows(b: ModuleType, grows_at: int | None, line: int) -> None:
    """It lived beside the engine for an hour; what it took then is the cause, not its first sample."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 4700)
    w.fail("a", 4800)
    held = [(60.0 * i, 2100.0 if grows_at is None or 60 * i < grows_at else 2100 + 2 * (60 * i - grows_at + 60))
            for i in range(80)]  # fmt: skip
    w.series("gpu_process_memory_mib", [(60.0 * i, 39_000) for i in range(80)], "e.csv", b.Scope(gpu="0", process="VLLM"))
    w.series("gpu_process_memory_mib", held, "n.csv", b.Scope(gpu="0", pid=99, process="reranker"), first_line=1)
    case = w.case()
    (found,) = [f for f in neighbours.rules(case, case.deaths[0]) if f.signature == "derived.foreign_process"]
    assert (found.locator.line, found.fields.get("foreign_level_mib")) == (line, 2100.0 if grows_at else None)


NCCL = "Cuda failure 2 'out of memory'"


def failed_start(b: ModuleType, name: str, mib: int, listed_s: float | None = 40, loaded: bool = False) -> tuple[str, str]:
    """NCCL finds no memory in a start, and a list shows one process on a card of 80 GiB."""
    w = b.World()
    w.start("a", 0, loaded=loaded, ready=False, tensor_parallel_size=4) if loaded else w.add(
        "a", 0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0", tensor_parallel_size=4
    )
    w.add("a", 38, NCCL, level="ERROR")
    w.add("a", 39, "EngineCore failed to start.", level="ERROR")
    w.add("a", 40, "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    w.add("gpus.csv", listed_s, "GPU 2", "gpu_state", "nvidia", index=2, memory_total_mib=81_559, memory_used_mib=mib)
    w.add("gpus.csv", listed_s, f"pid 771 {name} uses {mib} MiB", "gpu_process", "nvidia", pid=771, name=name, used_mib=mib)
    diagnosis = w.diagnosis()
    hypothesis = diagnosis.incidents[0].hypotheses[0]
    return hypothesis.cause.id, str(hypothesis.confidence)


@pytest.mark.parametrize("name", ["/opt/draw/venv/bin/python", "python train.py", "jupyter-lab", "Xorg"])
@pytest.mark.parametrize("listed_s", [None, 40])
def test_the_process_on_the_card_is_named(b: ModuleType, name: str, listed_s: float | None) -> None:
    assert failed_start(b, name, 79_000, listed_s) == ("gpu_oom.other_process", "likely")


@pytest.mark.parametrize("name", ["VLLM::Worker_TP2", "python3", "/usr/bin/python3.12", "[N/A]", "sglang::scheduler"])
def test_what_may_be_the_engine_is_no_stranger(b: ModuleType, name: str) -> None:
    assert failed_start(b, name, 79_000)[0] != "gpu_oom.other_process"


def test_a_small_or_distant_one_did_no_harm(b: ModuleType) -> None:
    assert failed_start(b, "jupyter-lab", 9_000)[0] != "gpu_oom.other_process"
    assert failed_start(b, "jupyter-lab", 79_000, -90_000)[0] != "gpu_oom.other_process"


def test_an_engine_with_its_weights_holds_the_card_itself(b: ModuleType) -> None:
    assert failed_start(b, "jupyter-lab", 45_000, loaded=True)[0] != "gpu_oom.other_process"


@pytest.mark.parametrize(
    ("free_gib", "available_gib", "cause"),
    [(20.3, 55.0, "gpu_oom.reserved_memory"), (20.3, 21.0, "gpu_oom.other_process"), (48.0, 55.0, "gpu_oom.other_process")],
    ids=["page cache", "taken by programs", "a card with its own memory"],
)  # fmt: skip
def test_page_cache_of_a_host_that_shares_its_memory(
    b: ModuleType, free_gib: float, available_gib: float, cause: str
) -> None:
    """Device and host have the same total and the same free memory, and the missing part can be given back."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.fail("a", 20, "ValueError: Free memory on device (20.10/62.80 GiB) on startup is less than desired GPU memory utilization (0.7, 43.96 GiB).")
    amounts = {"total": 62.6, "free": free_gib, "available": available_gib}
    fields = {f"mem_{name}_kib": int(gib * 1024**2) for name, gib in amounts.items()}
    w.add("free.txt", 40, "memory", "meminfo", "host", **fields)
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    assert found.first_cause is not None
    assert found.first_cause.locator.source == "a"


START = """\
Nov 06 {at}:40 gpu-node-7 systemd[1]: Started llama-server.service - llama.cpp server.
Nov 06 {at}:40 gpu-node-7 llama-server[{pid}]: build: 5602 (745aa531) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
Nov 06 {at}:40 gpu-node-7 llama-server[{pid}]: main: loading model
Nov 06 {at}:40 gpu-node-7 llama-server[{pid}]: srv    load_model: loading model '/srv/gguf/chat-32b-Q4_K_M.gguf'
Nov 06 {at}:40 gpu-node-7 llama-server[{pid}]: llama_model_load_from_file_impl: using device CUDA0 (NVIDIA L4) - {free} MiB free
"""
LOADED = """\
Nov 06 08:10:52 gpu-node-7 llama-server[1411]: load_tensors:        CUDA0 model buffer size = 18423.24 MiB
Nov 06 08:10:55 gpu-node-7 llama-server[1411]: main: server is listening on http://0.0.0.0:8081 - starting the main loop
Nov 06 17:49:26 gpu-node-7 llama-server[1411]: srv  log_server_r: request: POST /v1/chat/completions 192.0.2.44 200
Nov 06 18:41:02 gpu-node-7 systemd[1]: Stopping llama-server.service - llama.cpp server...
Nov 06 18:41:02 gpu-node-7 llama-server[1411]: srv    operator(): operator(): cleaning up before exit...
Nov 06 18:41:03 gpu-node-7 systemd[1]: Stopped llama-server.service - llama.cpp server.
"""
REFUSED = """\
Nov 06 18:58:42 gpu-node-7 llama-server[90233]: ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18423.24 MiB on device 0: \
cudaMalloc failed: out of memory
Nov 06 18:58:42 gpu-node-7 llama-server[90233]: alloc_tensor_range: failed to allocate CUDA0 buffer of size 19318167306
Nov 06 18:58:42 gpu-node-7 llama-server[90233]: llama_model_load: error loading model: unable to allocate CUDA0 buffer
Nov 06 18:58:42 gpu-node-7 llama-server[90233]: main: exiting due to model loading error
Nov 06 18:58:42 gpu-node-7 systemd[1]: llama-server.service: Main process exited, code=exited, status=1/FAILURE
Nov 06 18:58:42 gpu-node-7 systemd[1]: llama-server.service: Failed with result 'exit-code'.
"""


@pytest.mark.parametrize(("free", "cause"), [(9389, "gpu_oom.other_process"), (22871, "gpu_oom.weights")],
                         ids=["less than before", "as before"])  # fmt: skip
def test_less_is_free_than_at_the_last_start(tmp_path: Path, free: int, cause: str) -> None:
    """llama.cpp says what it finds free; the same model fitted into what was free before, and a process holds the rest."""
    again = START.format(at="18:58", pid=90233, free=free)
    (tmp_path / "journal.txt").write_text(START.format(at="08:10", pid=1411, free=23000) + LOADED + again + REFUSED)
    (tmp_path / "apps.csv").write_text("pid, process_name, used_gpu_memory [MiB]\n88712, /usr/local/bin/ollama, 13614 MiB\n")
    found = analyze(tmp_path).diagnosis
    assert found.verdict.cause.id == cause
    assert found.key_facts.get("foreign_pid") == (88712 if free < 10000 else None)
