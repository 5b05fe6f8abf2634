"""What to change: the remedy for what was found comes first, those for something else stay away."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.report.advice import told as told_by
from forensics.report.render import render
from forensics.signatures.model import Condition

HUB = "ERROR 05-12 08:00:06 [core.py:718] "
LINES = {
    "unreachable": "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    "gated": "OSError: You are trying to access a gated repo.",
}


def advice(tmp_path: Path, line: str) -> list[str]:
    log = tmp_path / "vllm.log"
    start = "INFO 05-12 08:00:00 [api_server.py:1839] vLLM API server version 0.11.0\n" * 2
    log.write_text(f"{start}{HUB}{line}\n", encoding="utf-8")
    data = analyze(log).to_dict()
    assert data["verdict"]["cause"] == "model_download"
    return list(data["advice"]["change"])


@pytest.mark.parametrize(("name", "first", "absent"), [("unreachable", "Network", "HF_TOKEN"), ("gated", "401", "HTTPS_PROXY")])
def test_the_remedy_for_what_was_found(tmp_path: Path, name: str, first: str, absent: str) -> None:
    """First in the list; the general ones follow; remedies for other findings are left out."""
    change = advice(tmp_path, LINES[name])
    assert change[0].startswith(first)
    assert len(change) >= 2
    assert not any(absent in item for item in change)


def test_words_of_a_condition() -> None:
    """Facts, facts with a value, and findings; only the last are ids."""
    assert Condition("max_num_seqs", "").findings == ()
    assert Condition("resource=memory hub.gated oomd.*", "").findings == ("hub.gated", "oomd.*")
    assert Condition("", "").findings == ()


SGLANG = """[2025-06-17 11:02:50] server_args=ServerArgs(model_path='acme/moe-lite', mem_fraction_static=0.72, tp_size=1)
[2025-06-17 11:03:02] Load weight begin. avail mem=43.10 GB
[2025-06-17 11:03:14] Load weight end. type=AcmeForCausalLM, dtype=torch.bfloat16, avail mem=11.40 GB, mem usage=31.70 GB.
[2025-06-17 11:03:14] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py", line 836, in init_memory_pool
    raise RuntimeError(
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
"""
KV_TENSORS = """INFO 05-12 08:00:00 [api_server.py:1839] vLLM API server version 0.11.0
INFO 05-12 08:00:01 [utils.py:233] non-default args: {'model': 'acme/chat-70b', 'gpu_memory_utilization': 0.985}
INFO 05-12 08:05:10 [gpu_model_runner.py:2653] Model loading took 38.2000 GiB and 280.100000 seconds
INFO 05-12 08:06:02 [gpu_worker.py:298] Available KV cache memory: 33.10 GiB
ERROR 05-12 08:06:03 [core.py:708] Traceback (most recent call last):
ERROR 05-12 08:06:03 [core.py:708]   File "/usr/lib/python3.12/vllm/v1/worker/gpu_model_runner.py", line 3901, in _allocate_kv_cache_tensors
ERROR 05-12 08:06:03 [core.py:708]     tensor = torch.zeros(kv_cache_tensor.size,
ERROR 05-12 08:06:03 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 860.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 78.64 GiB memory in use. Of the allocated memory 71.20 GiB is allocated by PyTorch, and 180.00 MiB is reserved by PyTorch but unallocated.
"""
BUDGET = """INFO 05-12 08:00:00 [api_server.py:1839] vLLM API server version 0.11.0
INFO 05-12 08:05:10 [gpu_model_runner.py:2653] Model loading took 68.2000 GiB and 280.100000 seconds
INFO 05-12 08:06:02 [gpu_worker.py:298] Available KV cache memory: -1.40 GiB
ERROR 05-12 08:06:03 [core.py:708] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
"""


def told(tmp_path: Path, log: str, language: str = "en") -> tuple[str, str, str]:
    """(mechanism, what to change, what not to do) for a log of a KV cache that found no memory."""
    file = tmp_path / "serve.log"
    file.write_text(log, encoding="utf-8")
    data = analyze(file).to_dict(language)
    assert data["verdict"]["cause"] == "gpu_oom.kv_cache_startup"
    advice = data["advice"]
    return data["verdict"]["mechanism"], "\n".join(advice["change"]), "\n".join(advice["avoid"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_flag_of_another_engine(tmp_path: Path, language: str) -> None:
    """SGLang's own flag with its value; nothing of vLLM's."""
    mechanism, change, avoid = told(tmp_path, SGLANG, language)
    assert "--mem-fraction-static" in change
    assert "0.72" in change
    for text in (mechanism, change, avoid):
        assert "gpu-memory-utilization" not in text.replace("_", "-")
        assert "--max-num-batched-tokens" not in text


def test_a_failed_allocation_is_no_spent_budget(tmp_path: Path) -> None:
    """The same cause in two ways: what helps the one harms the other."""
    mechanism, change, avoid = told(tmp_path, KV_TENSORS)
    assert "zero or negative" not in mechanism
    assert change.startswith("Lower `--gpu-memory-utilization`")
    assert "0.985" in change
    assert "Do not raise" in avoid
    assert "Do not lower `--gpu-memory-utilization`" not in avoid
    mechanism, change, avoid = told(tmp_path, BUDGET)
    assert "zero or negative" in mechanism
    assert "Raise `--gpu-memory-utilization`" in change
    assert "Do not lower `--gpu-memory-utilization`" in avoid


@pytest.mark.parametrize(
    ("text", "ended"),
    [("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n", False),
     ("    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1\n", True)],
    ids=["counters of nothing", "an exit code"],
)  # fmt: skip
def test_something_ended_is_said_only_where_it_did(tmp_path: Path, text: str, ended: bool) -> None:
    file = tmp_path / "paste.txt"
    file.write_text(text, encoding="utf-8")
    report = analyze(file)
    assert report.diagnosis.verdict.cause.id == "insufficient_evidence"
    assert told_by(report, "summary", "en").startswith("Something ended") is ended
    assert told_by(report, "summary", "zh").startswith("确实有东西挂了") is ended


TYPED = "# It grows\n\nvLLM 0.11.0\n\n{head}\n{rows}\n"


def test_a_climb_that_was_typed_says_from_where_to_where_and_that_its_day_is_assumed(tmp_path: Path) -> None:
    """Times of day alone: the climb is a fact, the day is the file's; no restart is told that nobody showed."""
    rows = "".join(f"{2 * hour:02d}:30 - {10000 + 5000 * hour} MiB\n" for hour in range(7))
    file = tmp_path / "issue.md"
    file.write_text(TYPED.format(head="RSS of the server:", rows=rows + "13:11 OOMKilled (exit code 137)"), encoding="utf-8")
    report = analyze(file)
    assert report.diagnosis.verdict.cause.id == "host_oom.leak"
    page = render(report, "md")
    assert "(day assumed)" in page
    assert "from 14.65 GiB to 39.06 GiB" in page
    assert "restart" not in told_by(report, "summary", "en")
