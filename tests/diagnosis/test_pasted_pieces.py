"""Pieces of a log that people paste: what they say by their order, and what they do not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forensics import pipeline


def ask(folder: Path, text: str, name: str = "issue.md") -> Any:
    (folder / name).write_text(text, encoding="utf-8")
    return pipeline.analyze(folder / name).diagnosis


def verdict(folder: Path, text: str) -> tuple[str, str]:
    found = ask(folder, text).verdict
    return found.cause.id, str(found.confidence)


def decode(second: int, running: int, usage: float, queue: int) -> str:
    return (
        f"[2026-03-04 09:{second // 60:02}:{second % 60:02}] Decode batch, #running-req: {running}, #token: 90000, token usage: "
        f"{usage:.2f}, cuda graph: True, gen throughput (token/s): 901.22, #queue-req: {queue}\n"
    )


def retract(second: int, text: str = "KV cache pool is full. Retract requests. #retracted_reqs: 4") -> str:
    return f"[2026-03-04 09:{second // 60:02}:{second % 60:02}] {text}, #new_tokens_gained: 9120\n"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (decode(0, 40, 0.97, 51) + retract(4) + decode(8, 36, 0.88, 60), "kv_saturation"),
        (decode(0, 40, 0.96, 0) + retract(4) + decode(8, 36, 0.9, 14) + retract(20) + decode(30, 33, 0.9, 40), "kv_saturation"),
        (retract(4) + decode(8, 36, 0.88, 60) + decode(48, 36, 0.93, 75) + retract(50) + decode(55, 30, 0.9, 80), "kv_saturation"),
        (
            decode(0, 40, 0.97, 51) + retract(4, "Decode out of memory happened. #retracted_reqs: 2") + decode(8, 36, 0.9, 53),
            "kv_saturation",
        ),
        (decode(0, 40, 0.97, 51) + retract(4) + decode(8, 36, 0.88, 30), "healthy"),
        (decode(0, 40, 0.97, 0) + retract(4) + decode(8, 36, 0.88, 3), "healthy"),
        (decode(0, 40, 0.97, 20) + retract(4) + decode(8, 36, 0.9, 60) + decode(90, 36, 0.5, 12), "healthy"),
        (decode(0, 40, 0.97, 51) + decode(8, 36, 0.88, 60), "healthy"),
        (decode(0, 40, 0.97, 11) + retract(4) + decode(8, 36, 0.88, 0) + decode(3000, 36, 0.2, 14), "healthy"),
    ],
    ids=["once", "from none", "begins with it", "older words", "drains", "short", "worked off", "no retraction", "long after"],
)  # fmt: skip
def test_retractions_with_a_queue_that_grows(tmp_path: Path, log: str, cause: str) -> None:
    """Who takes running requests back has no cache left; with a queue that grows it is no moment's jam."""
    assert verdict(tmp_path, f"Requests are slow today, why?\n\n```\n{log}```\n")[0] == cause


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 812.00 MiB. GPU 0 has a total capacity of 44.40 GiB of which "
    "611.00 MiB is free. Including non-PyTorch memory, this process has 43.80 GiB memory in use. Of the allocated memory "
    "42.10 GiB is allocated by PyTorch, and 133.00 MiB is reserved by PyTorch but unallocated."
)
CHAINED = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests. Please try lowering "
    "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
)


def vllm(second: int, text: str, level: str = "INFO", file: str = "gpu_model_runner.py:2708") -> str:
    return f"(EngineCore_0 pid=77) {level} 03-04 09:12:{second:02} [{file}] {text}\n"


START = vllm(1, "Model loading took 14.1 GiB and 9.1 seconds") + vllm(9, "Available KV cache memory: 21.10 GiB")
FINISHED = vllm(20, "Graph capturing finished in 9 secs, took 0.61 GiB")
CAPTURING = vllm(12, "Capturing CUDA graphs (decode, FULL):  40%|####      | 12/30 [00:04<00:06,  2.9it/s]")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (START + FINISHED + vllm(21, OOM, "ERROR") + vllm(21, CHAINED, "ERROR"), "gpu_oom.sampler_warmup"),
        (START + CAPTURING + FINISHED + vllm(21, CHAINED, "ERROR"), "gpu_oom.sampler_warmup"),
        (START + CAPTURING + vllm(14, OOM, "ERROR"), "gpu_oom.cuda_graph"),
    ],
    ids=["both errors", "the last one", "while capturing"],
)
def test_captured_graphs_end_their_phase(tmp_path: Path, log: str, cause: str) -> None:
    assert verdict(tmp_path, f"OOM at start\n\n```\n{log}```\n")[0] == cause


def test_what_failed_behind_the_graphs_is_not_known(tmp_path: Path) -> None:
    diagnosis = ask(tmp_path, START + CAPTURING + FINISHED + vllm(21, OOM, "ERROR"))
    assert (diagnosis.verdict.cause.id, str(diagnosis.verdict.confidence)) != ("gpu_oom.cuda_graph", "established")
    assert all(f.signature != "derived.oom_capturing_graphs" for f in diagnosis.verdict.decisive)


def test_a_comment_below_a_log_is_no_evidence(tmp_path: Path) -> None:
    log = START + FINISHED + vllm(21, OOM, "ERROR") + vllm(21, CHAINED, "ERROR")
    text = f"OOM at start\n\n```\n{log}```\n\n**kari** replied\n512 works, closing\n"
    evidence = ask(tmp_path, text).verdict.evidence
    assert max(f.locator.line for f in evidence) <= text[: text.index("kari")].count("\n")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("annotation: container engine was OOMKilled 3 times in 15 minutes (working set 63.8Gi of 64Gi limit)", "host_oom.container_limit"),
        ("Container engine in pod llm/chat-0 has been OOMKilled 2 times in the last 10 minutes.", "host_oom.container_limit"),
        ("[FIRING] OOM: container vllm got OOM killed again (15.9Gi of 16Gi limit)", "host_oom.container_limit"),
        ('kube_pod_container_status_last_terminated_reason{container="engine",reason="OOMKilled"} 1', "host_oom.container_limit"),
        ('kube_pod_container_status_last_terminated_reason{container="engine",reason="OOMKilled"} 0', "insufficient_evidence"),
        ("expr: kube_pod_container_status_last_terminated_reason{reason=\"OOMKilled\"} == 1", "insufficient_evidence"),
        ("Fires when a container engine was OOMKilled 3 times in 15 minutes", "insufficient_evidence"),
        ("Container engine has been OOMKilled 0 times in the last 10 minutes.", "insufficient_evidence"),
        ("OOMKilled means that a container used more than its limit.", "insufficient_evidence"),
    ],
)  # fmt: skip
def test_an_alert_tells_of_a_kill(tmp_path: Path, text: str, cause: str) -> None:
    assert verdict(tmp_path, f"{text}\n")[0] == cause


TRITON = "E0304 09:12:20.118201 1 backend_model.cc:692] "
SHARED = (
    '"ERROR: Failed to create instance: Failed to increase the shared memory pool size for key '
    "'triton_python_backend_shm_region_9' to 33554432 bytes. Error: No space left on device\""
)


def test_a_stamped_line_of_triton_is_a_log(tmp_path: Path) -> None:
    """Not somebody's words; and what the asker says of it below is no second error."""
    text = f"Triton dies\n\n```\n{TRITON}{SHARED}\n```\nthe disk has 2T free so \"No space left on device\" is wrong?\n"
    assert verdict(tmp_path, text) == ("shm_exhausted", "likely")


EVICTED = (
    "  Warning  Evicted  2m  kubelet  The node was low on resource: memory. Threshold quantity: 500Mi, available: 301004Ki. "
    "Container {name} was using 48720256Ki, request is 8Gi, has larger consumption of memory.\n"
)


@pytest.mark.parametrize(
    ("name", "confidence"), [("vllm", "likely"), ("sglang-chat", "likely"), ("server", "possible"), ("vllm-router", "possible")]
)
def test_a_container_named_after_its_engine(tmp_path: Path, name: str, confidence: str) -> None:
    assert verdict(tmp_path, EVICTED.format(name=name)) == ("eviction", confidence)
