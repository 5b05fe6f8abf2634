"""GPU memory: the place of a failed allocation, and what its numbers say."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis.rules import gpu, oom_site
from forensics.model import Scope

GIB = 1024.0


def judged(b: ModuleType, text: str, frames: tuple[str, ...] = (), **start: Any) -> set[str]:
    """Names of what the rules conclude about one OOM while serving."""
    w = b.World()
    w.start("a", 0, **start)
    w.answer("a", 70)
    w.fail("a", 80, text, frames or b.SERVING)
    case = w.case()
    death = case.deaths[0]
    return set(b.names([*gpu.rules(case, death), *oom_site.rules(case, death)]))


NEIGHBOUR = "Process 90211 has 54.70 GiB memory in use. "
THIS = "Including non-PyTorch memory, this process has 24.10 GiB memory in use. "


@pytest.mark.parametrize(
    ("numbers", "expected", "absent"),
    [
        ({"processes": NEIGHBOUR + THIS, "allocated": "23.40 GiB", "free": "190.00 MiB"}, "gpu_neighbour", "no_neighbour"),
        ({}, "no_neighbour", "gpu_neighbour"),
        ({"processes": "Process 2301187 has 78.04 GiB memory in use. ", "allocated": "76.40 GiB"}, "no_neighbour", "gpu_neighbour"),
        ({"processes": NEIGHBOUR, "allocated": "23.40 GiB", "free": "190.00 MiB"}, "gpu_neighbour", "no_neighbour"),
        ({"processes": ""}, "no_neighbour", "gpu_neighbour"),
        ({"processes": "Process 7 has 17179869183.99 GiB memory in use. " + THIS}, "no_neighbour", "gpu_neighbour"),
        ({"free": "400.00 MiB", "requested": "2.20 GiB", "unallocated": "10.30 GiB", "allocated": "66.10 GiB"}, "gpu_fragmented", "free_but_refused"),
        ({"free": "12.00 MiB", "requested": "20.00 MiB", "unallocated": "640.00 MiB"}, "no_neighbour", "gpu_fragmented"),
        ({"free": "402.00 MiB", "requested": "2.40 GiB", "unallocated": "210.00 MiB"}, "no_neighbour", "gpu_fragmented"),
        ({"free": "5.00 GiB", "requested": "2.40 GiB"}, "free_but_refused", "gpu_fragmented"),
        ({"requested": "1024.00 GiB"}, "request_absurd", "gpu_fragmented"),
    ],
    ids=[
        "neighbour beside ourselves", "alone", "container: the one process is ourselves", "a neighbour without ourselves",
        "no process sentences", "NVML without a figure", "large reserve, small free", "small request within a small reserve",
        "small reserve", "free and refused", "larger than the card",
    ],
)  # fmt: skip
def test_what_the_numbers_say(b: ModuleType, numbers: dict[str, str], expected: str, absent: str) -> None:
    """Neighbours, fragmentation and absurd requests follow from A, B, F, T and r alone."""
    found = judged(b, b.oom_text(**numbers))
    assert expected in found
    assert absent not in found


def test_reserved_includes_allocated_in_the_old_shape() -> None:
    """torch ≤ 2.0 prints R = A + B."""
    assert gpu.unallocated_gib({"reserved_gib": 70.0, "allocated_gib": 60.5}) == pytest.approx(9.5)
    assert gpu.unallocated_gib({"reserved_unallocated_gib": 1.5, "reserved_gib": 70.0}) == 1.5
    assert gpu.unallocated_gib({"reserved_gib": 1.0, "allocated_gib": 2.0}) == 0.0
    assert gpu.unallocated_gib({}) == 0.0


@pytest.mark.parametrize(
    ("sentences", "allocated", "others"),
    [
        ("Process 1 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 60.00 GiB memory in use.", 58.0, 10.0),
        ("Process 1 has 60.50 GiB memory in use. Process 2 has 10.00 GiB memory in use.", 58.0, 10.0),
        ("Process 1 has 60.50 GiB memory in use.", 58.0, 0.0),
        ("Process 1 has 512.00 MiB memory in use. Including non-PyTorch memory, this process has 60.00 GiB memory in use.", 58.0, 0.5),
        ("", 58.0, 0.0),
    ],
)  # fmt: skip
def test_memory_of_others(sentences: str, allocated: float, others: float) -> None:
    """Without a “this process” sentence the entry that fits the allocator's own figures is ourselves."""
    fields = {"process_sentences": sentences, "allocated_gib": allocated, "gpu_total_gib": 79.15}
    assert gpu.others_gib(fields) == pytest.approx(others)


def others(sentences: str, allocated: float, free: float, total: float = 95.0) -> float:
    return gpu.others_gib(
        {"process_sentences": sentences, "allocated_gib": allocated, "gpu_free_gib": free, "gpu_total_gib": total}
    )


def test_nobody_holds_what_the_own_allocator_holds() -> None:
    """NCCL, graphs and workspaces may exceed four GiB: an entry that leaves no room for our own figures is ours."""
    entry = "Process 770113 has {} GiB memory in use. ".format
    assert others(entry(93.7), 86.0, 1.24) == 0.0, "the only one, ten GiB above torch's figures"
    assert others(entry(70.0), 12.0, 1.2) == pytest.approx(70.0), "a real neighbour, beside whom our own are not listed"
    assert others(entry(93.7), 0.4, 1.24) == 0.0, "nothing is left for a second process, not even a context"
    assert others(entry(46.2) + entry(47.1), 44.0, 1.5) == pytest.approx(47.1), "two ranks on one card"
    assert others(entry(60.0) + entry(20.0) + entry(12.0), 11.0, 2.0) == pytest.approx(80.0), "two neighbours"
    assert others(entry(19.3) + entry(18.9), 18.6, 0.1, 19.5) < 0.5, "a slice: NVML lists the neighbouring slices too"
    this = "Including non-PyTorch memory, this process has 19.35 GiB memory in use. "
    assert others(entry(18.0) + this, 18.6, 0.1, 19.5) < 0.5, "a slice, with ourselves named"
    assert others(entry(30.0) + this, 18.6, 0.1, 49.5) == pytest.approx(30.0), "a neighbour beside us"


@pytest.mark.parametrize(
    ("frames", "site"),
    [
        (("gpu_worker.py:load_model", "linear.py:create_weights"), "oom_loading_weights"),
        (("core.py:_initialize_kv_caches", "gpu_worker.py:determine_available_memory", "gpu_model_runner.py:profile_run"), "oom_profiling"),
        (("gpu_worker.py:compile_or_warm_up_model", "gpu_model_runner.py:_dummy_sampler_run"), "oom_sampler_warmup"),
        (("gpu_model_runner.py:initialize_kv_cache", "gpu_model_runner.py:_allocate_kv_cache_tensors"), "oom_allocating_kv"),
        (("gpu_model_runner.py:capture_model", "gpu_model_runner.py:_dummy_run"), "oom_capturing_graphs"),
        (("gpu_worker.py:determine_available_memory", "gpu_model_runner.py:profile_cudagraph_memory"), "oom_capturing_graphs"),
        (("gpu_worker.py:determine_available_memory", "gpu/cudagraph_utils.py:capture"), "oom_capturing_graphs"),
        (("gpu_model_runner.py:execute_model", "compilation/cuda_graph.py:__call__"), "oom_serving"),
        (("worker/cache_engine.py:_allocate_kv_cache",), "oom_allocating_kv"),
        (("core.py:run_busy_loop", "gpu_model_runner.py:execute_model", "qwen2.py:forward"), "oom_serving"),
        (("core.py:step", "gpu_model_runner.py:execute_model", "gpu_model_runner.py:_get_prompt_logprobs_dict"), "oom_big_prefill"),
        (("core.py:step", "gpu_model_runner.py:_execute_mm_encoder"), "oom_big_prefill"),
        (("worker.py:determine_num_available_blocks", "model_runner.py:profile_run"), "oom_profiling"),
        (("qwen3.py:__init__", "torch/utils/_device.py:__torch_function__"), "oom_loading_weights"),
        (("torch/nn/modules/module.py:_call_impl", "unet.py:forward", "torch/utils/_device.py:__torch_function__"), ""),
        (("app.py:handler",), ""),
        ((), ""),
    ],
)  # fmt: skip
def test_frames_name_the_site(frames: tuple[str, ...], site: str) -> None:
    """Special sites win over the general ones that call them."""
    assert oom_site.site_of_frames(frames) == site


@pytest.mark.parametrize(
    ("loaded", "ready", "lines", "site"),
    [
        (False, False, (), "oom_loading_weights"),
        (True, True, (), "oom_serving"),
        (True, False, ("Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)",), "oom_capturing_graphs"),
    ],
)  # fmt: skip
def test_without_frames_the_phase_names_the_site(
    b: ModuleType, loaded: bool, ready: bool, lines: tuple[str, ...], site: str
) -> None:
    """A bare message is placed by the last lifecycle line before it."""
    w = b.World()
    w.start("a", 0, loaded=loaded, ready=ready)
    for text in lines:
        w.add("a", 61, text)
    w.fail("a", 80, frames=())
    case = w.case()
    (found,) = oom_site.rules(case, case.deaths[0])
    assert found.signature == f"derived.{site}"
    assert found.fields["basis"] == "phase"


@pytest.mark.parametrize(
    ("args", "seconds", "site"),
    [
        ({"headless": True}, 90, "oom_serving"), ({"node_rank": 1}, 90, "oom_serving"),
        ({}, 8 * 3600, "oom_serving"), ({}, 90, "oom_capturing_graphs"),
    ],
    ids=["headless", "second node", "hours later", "a minute later"],
)  # fmt: skip
def test_a_worker_on_another_machine_never_says_that_it_serves(
    b: ModuleType, args: dict[str, object], seconds: float, site: str
) -> None:
    """Its log ends its start-up with the size of the KV cache; then `execute_model` fails."""
    w = b.World()
    w.start("a", 0, ready=False, **args)
    w.add("a", 37, "Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)")
    w.fail("a", seconds)
    case = w.case()
    (found,) = oom_site.rules(case, case.deaths[0])
    assert found.signature == f"derived.{site}"


@pytest.mark.parametrize("lines", [(), ("Available KV cache memory: 30.20 GiB",), ("GPU KV cache size: 98,752 tokens",)])
def test_a_run_that_answers_serves_whatever_line_of_its_start_was_lost(b: ModuleType, lines: tuple[str, ...]) -> None:
    """A filter kept some lines of the start, and not the one that says that it was over."""
    w = b.World()
    for number, line in enumerate(lines):
        w.add("a", 30 + number, line)
    w.answer("a", 90)
    w.fail("a", 300, frames=())
    case = w.case()
    failure = oom_site.first_failure(case.deaths[0].life)
    assert failure is not None
    assert oom_site.site_of(case, case.deaths[0], failure)[0] == "oom_serving"


def test_a_message_alone_has_no_site(b: ModuleType) -> None:
    """No frames and no start-up: only the family is certain."""
    w = b.World()
    w.add("a", 80, b.oom_text(), channel="plain", level="")
    diagnosis = w.diagnosis(padding=0)
    assert diagnosis.verdict.cause.id.startswith("gpu_oom.")
    assert diagnosis.verdict.confidence == "possible"


def test_numbers_may_stand_on_a_later_copy(b: ModuleType) -> None:
    """The first line only says `CUDA error: out of memory`; a copy below has the figures."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, "torch.AcceleratorError: CUDA error: out of memory")
    w.add("a", 80.1, b.oom_text(processes=NEIGHBOUR + THIS, free="190.00 MiB"), level="ERROR")
    case = w.case()
    assert "gpu_neighbour" in b.names(gpu.rules(case, case.deaths[0]))


def test_a_survived_oom_is_no_first_failure(b: ModuleType) -> None:
    """Only what came after the last work counts."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80, b.oom_text(requested="1.00 GiB"), envelope="")
    w.answer("a", 900)
    last = w.fail("a", 1000, b.oom_text(requested="2.00 GiB"))
    life = w.case().lives[0]
    failure = oom_site.first_failure(life)
    assert failure is not None
    assert failure.locator == last.locator
    assert oom_site.first_failure(None) is None


def test_a_card_that_is_smaller_than_its_name(b: ModuleType) -> None:
    """A MIG slice of an 80 GB card offers 19.5 GiB; a whole 80 GB card has 79."""
    for total, found in (("19.50 GiB", True), ("79.15 GiB", False)):
        w = b.World()
        w.start("a", 0, loaded=False)
        w.fail("a", 30, b.oom_text(total=total), b.LOADING)
        w.add("smi", 20, "GPU 0", "gpu_state", "nvidia", name="NVIDIA A100-SXM4-80GB")
        case = w.case()
        assert ("gpu_smaller_than_named" in b.names(gpu.rules(case, case.deaths[0]))) is found


@pytest.mark.parametrize(
    ("total", "ready", "asked", "found"),
    [("9.50 GiB", False, False, True), ("79.15 GiB", False, False, False), ("9.50 GiB", True, False, False), ("9.50 GiB", False, True, False)],
    ids=["a slice", "another card", "serving on it", "the slice was asked for"],
)  # fmt: skip
def test_a_start_on_a_slice_that_nobody_asked_for(b: ModuleType, total: str, ready: bool, asked: bool, found: bool) -> None:
    w = b.World()
    scope = Scope(pod=b.POD) if asked else Scope()
    w.start("a", 0, scope, loaded=ready, ready=ready)
    w.fail("a", 80, b.oom_text(total=total), b.SERVING if ready else b.LOADING, scope=scope)
    w.add("smi", 20, "GPU 0 MIG instance 7", "gpu_state", "nvidia", mig_instance=7, memory_total_mib=9728, mig_mode="Enabled")
    if asked:
        w.pod(gpu_resources=("nvidia.com/mig-1g.10gb",))
    case = w.case()
    assert ("gpu_is_slice" in b.names(gpu.rules(case, case.deaths[0]))) is found


@pytest.mark.parametrize(
    ("free", "cause", "fits"),
    [(43.92, "gpu_oom.reserved_memory", 0.98), (38.10, "gpu_oom.other_process", None)],
    ids=["only its own context is missing", "somebody holds six GiB"],
)
def test_a_share_that_an_empty_card_does_not_give(b: ModuleType, free: float, cause: str, fits: float | None) -> None:
    w = b.World()
    w.start("a", 0, loaded=False)
    text = (
        f"ValueError: Free memory on device cuda:0 ({free}/44.39 GiB) on startup is less than desired GPU memory"
        " utilization (0.99, 43.95 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    w.fail("a", 15, text, b.LOADING, envelope="EngineCore failed to start.")
    d = w.diagnosis()
    assert d.verdict.cause.id == cause
    assert d.key_facts.get("utilization_that_fits") == fits


def test_the_name_of_a_card_stands_in_for_its_size(b: ModuleType) -> None:
    """An old message has no total: the product that the pod asks for has one in its name."""
    for text, nominal in (("RuntimeError: CUDA error: out of memory", 80.0), (b.oom_text(), None)):
        w = b.World()
        scope = Scope(pod=b.POD)
        w.start("a", 0, scope, loaded=False)
        w.fail("a", 30, text, b.LOADING, scope=scope)
        w.pod(node_selector={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"})
        assert w.diagnosis().key_facts.get("gpu_nominal_gib") == nominal


def test_a_bare_error_is_never_established(b: ModuleType) -> None:
    """`CUDA error: out of memory` has no number: who holds the memory stays open, however much else is known."""
    for text, confidence in ((b.oom_text(), "established"), ("RuntimeError: CUDA error: out of memory", "likely")):
        w = b.World()
        w.start("a", 0)
        w.answer("a", 70)
        w.series("kv_cache_usage_pct", [(70 + 10.0 * i, 99.0) for i in range(8)], "a")
        w.fail("a", 160, text)
        assert str(w.diagnosis().verdict.confidence) == confidence


@pytest.mark.parametrize(
    ("allocated", "processes", "expected"),
    [
        ("61.30 GiB", "", {"gpu_neighbour"}),
        ("72.30 GiB", "", set()),
        ("76.02 GiB", "", {"no_neighbour"}),
        ("61.30 GiB", "Including non-PyTorch memory, this process has 78.61 GiB memory in use. ", {"no_neighbour"}),
    ],
    ids=["much is missing", "some is missing", "nothing is missing", "torch says that it is its own"],
)
def test_memory_that_nobody_names(b: ModuleType, allocated: str, processes: str, expected: set[str]) -> None:
    """Without sentences about processes the difference tells: too much outside of torch's pool is somebody else's."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 160, b.oom_text(allocated=allocated, processes=processes))
    found = b.names(w.diagnosis().incidents[0].observations) & {"gpu_neighbour", "no_neighbour"}
    assert found == expected
    if "gpu_neighbour" in expected:
        assert str(w.diagnosis().verdict.confidence) == "likely"


def test_waking_up_beside_a_trainer(b: ModuleType) -> None:
    """The engine held this memory before it slept: somebody else has it now."""
    w = b.World()
    w.start("a", 0)
    w.add("a", 100, "It took 2.310442 seconds to fall asleep.")
    frames = (f"{b.SITE}/../device_allocator/cumem.py:wake_up", f"{b.SITE}/../device_allocator/cumem.py:create_and_map")
    w.fail("a", 400, "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", frames)
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == "gpu_oom.other_process"
    assert "oom_waking_up" in b.names(verdict.decisive)


@pytest.mark.parametrize(
    ("in_use", "cause"),
    [
        ((2.1, 2.9, 3.8, 4.6, 5.5), "gpu_oom.leak"),
        ((2.1, 3.0, 2.97, 3.9, 4.8, 5.6), "gpu_oom.leak"),
        ((2.1, 2.1, 2.1, 14.4, 14.5), "gpu_oom.other_process"),
        ((2.1, 2.8, 3.5, 3.5, 3.5, 3.5, 3.5), "gpu_oom.other_process"),
        ((2.1, 2.9, 3.8), "gpu_oom.other_process"),
    ],
    ids=["as much again with every sleep", "a dip between", "a trainer came", "a cache that filled up", "too few to tell"],
)
def test_what_sleeps_leave_behind(b: ModuleType, in_use: tuple[float, ...], cause: str) -> None:
    """Memory that stays in use after each sleep and grows with every one is the engine's own leak."""
    w = b.World()
    w.start("a", 0)
    for cycle, used in enumerate(in_use):
        w.answer("a", 90 + 100 * cycle)
        w.add("a", 100 + 100 * cycle, f"Sleep mode freed 41.50 GiB memory, {used:.2f} GiB memory is still in use.")
        w.add("a", 150 + 100 * cycle, "It took 0.740000 seconds to wake up.")
    frames = (f"{b.SITE}/../device_allocator/cumem.py:wake_up",)
    w.fail("a", 1000, "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", frames)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == cause
    if cause == "gpu_oom.leak":
        assert diagnosis.first_cause is not None
        assert f"{in_use[1]:.2f} GiB memory is still in use" in diagnosis.first_cause.event.text
        assert diagnosis.key_facts["sleeps"] == len(in_use)


def test_tensorrt_could_not_load_its_engine(b: ModuleType) -> None:
    """The allocator's error while the engine is read; what Python raises about it is a consequence."""
    w = b.World()
    w.add("a", 0, "[TensorRT-LLM][INFO] Loaded engine size: 41200 MiB")
    w.add("a", 9, "[TensorRT-LLM][ERROR] [defaultAllocator.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)", level="ERROR")
    text = "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Failed to deserialize cuda engine."
    w.fail("a", 9, text, ("/usr/bin/trtllm-serve:<module>",), envelope="")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "gpu_oom.weights"
    assert diagnosis.key_facts["engine_size_mib"] == 41200.0


_TRT_OOM = "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, pool, stream): out of memory (tllmBuffers.h:90)"
_TM_OOM = "[TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/allocator.h:202"


@pytest.mark.parametrize(
    ("before", "error", "cause"),
    [
        (("[TensorRT-LLM][INFO] Loaded engine size: 41200 MiB",), _TRT_OOM, "gpu_oom.weights"),
        (("[TensorRT-LLM][INFO] Loaded engine size: 9200 MiB", "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 7000"),
         _TRT_OOM, "gpu_oom.kv_cache_startup"),
        (("[TM][INFO] [BlockManager] block_size = 8 MB", "[TM][INFO] [BlockManager] max_block_count = 900"), _TM_OOM, "gpu_oom.kv_cache_startup"),
        (("[TM][INFO] [LlamaWeight<T>::prepare] workspace size: 0",), _TM_OOM, "gpu_oom.weights"),
        (("[TM][INFO] [BlockManager] max_block_count = 900", "Application startup complete."), _TM_OOM, "gpu_oom.runtime_load"),
        (("[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 7000", '"Started HTTPService at 0.0.0.0:8000"'),
         _TRT_OOM, "gpu_oom.runtime_load"),
    ],
)  # fmt: skip
def test_other_engines_fail_at_what_they_announced(b: ModuleType, before: tuple[str, ...], error: str, cause: str) -> None:
    """No frames in C++: the last announcement before the failure is its place, and load is blamed only after the start."""
    w = b.World()
    for second, line in enumerate(before):
        w.add("a", second, line)
    w.add("a", 9, error, level="ERROR")
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, verdict.confidence) == (cause, "likely")


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (("slot update_slots: id  0 | task 31 | prompt processing progress, n_past = 4096, n_tokens = 2048, progress = 0.1",), "gpu_oom.activation_peak"),
        (("slot update_slots: id  0 | task 31 | prompt processing progress, n_past = 4096, n_tokens = 2048, progress = 0.1",
          *("slot print_timing: id  0 | task 31 | n_decoded",) * 8), "gpu_oom.runtime_load"),
        ((), "gpu_oom.runtime_load"),
    ],
    ids=["in a prompt", "long after one", "no prompt"],
)  # fmt: skip
def test_llama_cpp_fails_in_a_long_prompt(b: ModuleType, lines: tuple[str, ...], cause: str) -> None:
    w = b.World()
    for second, line in enumerate(lines):
        w.add("a", second, line)
    w.add("a", 20, "ggml_cuda_error: CUDA error: out of memory", level="ERROR")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize("mismatch", [True, False])
def test_error_802_is_no_broken_hardware(b: ModuleType, mismatch: bool) -> None:
    """The fabric manager does not run, or not with this driver; alone the error accuses no device."""
    w = b.World()
    if mismatch:
        text = "fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version 535.216.03. Please update with matching NVIDIA driver package."
        w.add("journal", 0, text, channel="host", scope=Scope(host="hgx-1"))
    w.add("a", 20, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0")
    text = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    w.fail("a", 30, text, ("torch/cuda/__init__.py:_lazy_init",), envelope="")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "driver_mismatch"
    assert diagnosis.first_cause.locator.source == ("journal" if mismatch else "a")


def test_error_802_beside_a_fatal_switch_error(b: ModuleType) -> None:
    """A broken switch explains it."""
    w = b.World()
    text = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 26 LTSSM Fault Up"
    w.add("dmesg", 0, text, channel="kernel")
    w.add("a", 20, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0")
    text = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    w.fail("a", 30, text, ("torch/cuda/__init__.py:_lazy_init",), envelope="")
    assert w.diagnosis().verdict.cause.id == "gpu_hardware"


@pytest.mark.parametrize(
    ("line", "site"),
    [
        ("llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", "oom_allocating_kv"),
        ("llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers", "oom_profiling"),
        ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "oom_loading_weights"),
    ],
)
def test_llama_cpp_says_afterwards_what_it_was_for(b: ModuleType, line: str, site: str) -> None:
    """All three fail while it loads; the next line tells them apart."""
    w = b.World()
    w.add("a", 0, "main: loading model")
    w.add("a", 5, "load_tensors:        CUDA0 model buffer size =  8148.38 MiB")
    w.add("a", 6, "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 24576.00 MiB on device 0: cudaMalloc failed: out of memory", level="ERROR")
    w.add("a", 6, "alloc_tensor_range: failed to allocate CUDA0 buffer of size 25769803776", level="ERROR")
    w.add("a", 6, line, level="ERROR")
    w.add("a", 7, "main: exiting due to model loading error", level="ERROR")
    case = w.case()
    assert site in b.names(oom_site.rules(case, case.deaths[0]))


def _refused(b: ModuleType, needed: float, available: float, **settings: Any) -> Any:
    """Yesterday's start got 30.2 GiB for its cache; today's is refused with `available`."""
    w = b.World()
    w.start("good.log", -90_000, gpu_memory_utilization=0.9, **settings)
    w.answer("good.log", -80_000)
    w.start("bad.log", 0, ready=False, loaded=False, gpu_memory_utilization=0.9)
    w.add("bad.log", 25, "Model loading took 27.6000 GiB and 20.100000 seconds")
    w.add("bad.log", 35, f"Available KV cache memory: {available:.2f} GiB")
    w.fail("bad.log", 36, f"ValueError: To serve at least one request with the models's max seq len (40960), ({needed:.2f} GiB"
           " KV cache is needed, which is larger than the available KV cache memory"
           f" ({available:.2f} GiB).", b.LOADING, envelope="")  # fmt: skip
    return w


@pytest.mark.parametrize(
    ("now_mib", "needed", "cause"),
    [(46_068, 29.0, "gpu_oom.reserved_memory"), (49_140, 29.0, "gpu_oom.kv_max_len"), (46_068, 35.0, "gpu_oom.kv_max_len")],
    ids=["ECC takes 3 GiB", "same card", "more than the card ever had"],
)
def test_a_card_that_became_smaller(b: ModuleType, now_mib: int, needed: float, cause: str) -> None:
    """What fitted before does not fit since nvidia-smi shows less memory on the same card."""
    w = _refused(b, needed, 27.4)
    for source, when, total in (("before.txt", -95_000, 49_140), ("now.txt", 60, now_mib)):
        w.add(source, when, "GPU 0", "gpu_state", "nvidia", pci_bus_id="0000:65:00", memory_total_mib=total)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == cause
    if cause == "gpu_oom.reserved_memory":
        facts = diagnosis.key_facts
        assert (facts["previous_kv_gib"], facts["gpu_total_before_mib"], facts["gpu_total_now_mib"]) == (30.2, 49_140, 46_068)


@pytest.mark.parametrize(
    ("gtt_mib", "vram_mib", "ram_gib", "cause"),
    [(31_900, 1024, 62, "gpu_oom.reserved_memory"), (31_900, 1024, 34, "gpu_oom.weights"),
     (31_900, 1024, None, "gpu_oom.weights"), (64_000, 32_000, 128, "gpu_oom.weights")],
    ids=["half of the memory", "nearly all of it", "memory unknown", "a card of its own"],
)  # fmt: skip
def test_an_apu_borrows_from_the_host(b: ModuleType, gtt_mib: int, vram_mib: int, ram_gib: int | None, cause: str) -> None:
    """The driver's limit is the ceiling where the host could lend far more."""
    w = b.World()
    if ram_gib is not None:
        w.add("host.txt", 0, "MemTotal", "meminfo", "host", mem_total_kib=ram_gib * 1024**2)
    w.add("dmesg", 1, f"[drm] amdgpu: {vram_mib}M of VRAM memory ready", channel="kernel")
    w.add("dmesg", 1, f"[drm] amdgpu: {gtt_mib}M of GTT memory ready.", channel="kernel")
    w.start("a", 10, ready=False, loaded=False)
    w.fail("a", 60, b.oom_text(total="31.15 GiB", allocated="30.50 GiB", free="20.00 MiB", processes=""), b.LOADING)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == cause
    if cause == "gpu_oom.reserved_memory":
        assert "GTT" in diagnosis.first_cause.event.text


@pytest.mark.parametrize(
    ("profile", "settings", "cause"),
    [("3g.40gb", {}, "gpu_oom.reserved_memory"), ("", {}, "gpu_oom.kv_max_len"),
     ("3g.40gb", {"max_num_batched_tokens": 512}, "gpu_oom.kv_max_len")],
    ids=["cut into slices", "nothing says that the card changed", "other settings"],
)  # fmt: skip
def test_a_card_that_was_cut_into_slices(b: ModuleType, profile: str, settings: dict[str, Any], cause: str) -> None:
    """The same settings got far more yesterday; a MIG profile tells why, another batch size would as well."""
    w = _refused(b, 10.0, 1.03, **settings)
    w.add("smi-L.txt", None, "MIG", "gpu_state", "nvidia", uuid="MIG-1", **({"mig_profile": profile} if profile else {}))
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(("days", "first"), [(-9, "nvidia.packages_upgraded"), (-200, "nvidia.api_mismatch"), (1, "nvidia.api_mismatch")])
def test_libraries_that_were_upgraded_below_a_running_driver(b: ModuleType, days: int, first: str) -> None:
    """It shows at the next start, days later: that is where it began, and which versions do not fit."""
    w = b.World()
    told = "Upgrade: nvidia-utils-570-server:amd64 (570.133.20-0ubuntu1, 570.195.03-0ubuntu1)"
    w.add("apt/history.log", days * 86400.0, told, channel="host")
    w.add("kern.log", 0, "NVRM: API mismatch: the client has the version 570.195.03, but", channel="kernel")
    found = w.diagnosis()
    assert found.verdict.cause.id == "driver_mismatch"
    assert found.first_cause is not None
    assert (found.first_cause.signature == "nvidia.api_mismatch") is (first == "nvidia.api_mismatch")
    assert ("driver_upgraded" in b.names(found.verdict.supporting)) is (first != "nvidia.api_mismatch")


@pytest.mark.parametrize(("host", "anew"), [("gpu-node-7", True), ("gpu-node-8", False)])
def test_cards_that_were_cut_anew_before_a_start(b: ModuleType, host: str, anew: bool) -> None:
    """The MIG manager of the node says when; what starts behind it finds a smaller instance."""
    w = _refused(b, 10.0, 1.03)
    w.pod(node="gpu-node-7")
    for seconds, told in ((-900, "Updating to MIG config: all-2g.20gb"), (-890, "Applying the selected MIG config to the node")):
        w.add("mig-manager.log", seconds, told, channel="runtime", scope=Scope(host=host))
    w.add("smi-L.txt", None, "MIG", "gpu_state", "nvidia", uuid="MIG-1", mig_profile="2g.20gb")
    found = w.diagnosis()
    assert found.verdict.cause.id == "gpu_oom.reserved_memory"
    assert ("cards_cut_anew" in b.names(found.verdict.supporting)) is anew
    assert found.first_cause is not None
    assert (found.first_cause.locator.source == "mig-manager.log") is anew


@pytest.mark.parametrize(("logger", "found"), [("pb_stub.cc:402", False), ("core.py:790", True)])
def test_a_python_model_of_triton_runs_beside_its_server(b: ModuleType, logger: str, found: bool) -> None:
    """What the server holds for its other models is none of a stranger's."""
    w = b.World()
    w.answer("triton.log", 3000)
    text = b.oom_text(processes=NEIGHBOUR + THIS, allocated="23.40 GiB", free="190.00 MiB", requested="150.00 MiB")
    w.add("triton.log", 3600, f"Failed to process the request(s) for model 'rank_0', message: {text}", level="ERROR", logger=logger)
    case = w.case()
    names = [f.signature for death in case.deaths for f in gpu.rules(case, death)]
    assert ("derived.gpu_neighbour" in names) is found
