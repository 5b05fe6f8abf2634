"""A line that decides keeps its answer beside one that tells little: a row of kubectl, or a quoted line of a healthy log."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline

DECISIVE = {
    "argparse": (
        "usage: vllm serve [options]\nvllm serve: error: unrecognized arguments: --enable-warp 3\n", "config_error"
    ),
    "argparse value": (
        "usage: api_server.py [options]\n"
        "api_server.py: error: argument --port: invalid int value: 'eighty'\n", "config_error"
    ),
    "heads": (
        "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).\n",
        "config_error"
    ),
    "kills": (
        "startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 5, failureThreshold: 30}\n\n"
        "  Warning  Unhealthy  90s (x88 over 19m)  kubelet  Startup probe failed: connect: connection refused\n"
        "  Normal   Killing    90s (x5 over 16m)   kubelet  Container engine failed startup probe, will be restarted\n",
        "probe_restart_storm"
    ),
    "sglang": ("Not enough memory. Please try to increase --mem-fraction-static.\n", "gpu_oom.kv_cache_startup"),
}  # fmt: skip
ROW = "NAME     READY   STATUS             RESTARTS      AGE\nchat-0   0/1     CrashLoopBackOff   6 (31s ago)   9m\n"
STRAY = {
    "row": ROW,
    "row below its command": f"$ kubectl get po chat-0\n{ROW}",
    "quoted TGI line": (
        "its log says\n`2026-09-05T08:12:44.401922Z  INFO shard-manager: text_generation_launcher: "
        "Waiting for shard to be ready... rank=1`\n"
    ),
    "quoted vLLM line": "its log says\n`INFO 09-05 08:12:44 [loader.py:447] Loading weights took 11.20 seconds`\n",
    "quoted TGI line without a time": "its log says\n`text_generation_launcher: Waiting for shard to be ready...`\n",
}


def cause_of(folder: Path, text: str) -> str:
    (folder / "clip.txt").write_text(text, encoding="utf-8")
    return pipeline.analyze(folder / "clip.txt").diagnosis.verdict.cause.id


@pytest.mark.parametrize("behind", [True, False], ids=["behind", "before"])
@pytest.mark.parametrize("stray", STRAY)
@pytest.mark.parametrize("decisive", DECISIVE)
def test_a_stray_line_removes_no_cause(tmp_path: Path, decisive: str, stray: str, behind: bool) -> None:
    text, cause = DECISIVE[decisive]
    assert cause_of(tmp_path, f"{text}\n{STRAY[stray]}" if behind else f"{STRAY[stray]}\n{text}") == cause


@pytest.mark.parametrize("text", [
    ROW,
    f"error: the server doesn't have a resource type \"pod\"\n{ROW}",
    "2026-09-05T08:12:44.401922Z  INFO text_generation_launcher: Starting shard rank=1\n"
    "  Normal   Killing    90s   kubelet  Container istio-proxy failed liveness probe, will be restarted\n"
    "  Normal   Killing    95s   kubelet  Container coredns failed liveness probe, will be restarted\n",
], ids=["row", "error of kubectl", "two others"])  # fmt: skip
def test_what_tells_no_cause(tmp_path: Path, text: str) -> None:
    assert cause_of(tmp_path, text) == "insufficient_evidence"
