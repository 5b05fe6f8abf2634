"""Lines of the machine beside those of an engine in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze

ENGINE = """(Worker_TP1 pid=77) ERROR 03-04 05:06:13 [multiproc_executor.py:654] WorkerProc hit an exception.
(Worker_TP1 pid=77) ERROR 03-04 05:06:13 [multiproc_executor.py:654] torch.AcceleratorError: CUDA error: unknown error
"""
KERNEL = (
    "Mar 04 05:06:11 gpu-5 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=77, name=python3, GPU has fallen off the bus.\n",
    "[Wed Mar  4 05:06:11 2026] NVRM: Xid (PCI:0000:1b:00): 79, pid=77, name=python3, GPU has fallen off the bus.\n",
)
CAPTIONS = ("dmesg:", "`dmesg`", "Dmesg output:", "kernel log", "kern.log:", "/var/log/syslog", "## Kernel log", "from dmesg -T")
WORKING = (
    "INFO 03-04 05:01:00 [loggers.py:111] Engine 000: Avg prompt throughput: 41.7 tokens/s, Avg generation throughput: "
    "12.3 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.4%, Prefix cache hit rate: 2.8%\n"
)


def cause(folder: Path, text: str, name: str = "a.md") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(analyze(folder / name).to_dict()["verdict"]["cause"])


@pytest.mark.parametrize("kernel", KERNEL)
@pytest.mark.parametrize("caption", [*CAPTIONS, ""])
def test_pieces_between_fences_are_outputs(tmp_path: Path, caption: str, kernel: str) -> None:
    """Whatever is said between them, and if nothing is."""
    assert cause(tmp_path, f"```\n{ENGINE}```\n{caption}\n```\n{kernel}```\n") == "gpu_hardware"


@pytest.mark.parametrize("kernel", KERNEL)
@pytest.mark.parametrize("caption", CAPTIONS)
def test_a_caption_names_the_log_below_it(tmp_path: Path, caption: str, kernel: str) -> None:
    """Without fences."""
    assert cause(tmp_path, f"{ENGINE}{caption}\n{kernel}") == "gpu_hardware"


@pytest.mark.parametrize(
    "prompt", [f"dmesg:\n{KERNEL[0]}", f"```\n{KERNEL[0]}```\n", f"my kernel log\n{KERNEL[1]}"], ids=["caption", "fence", "words"]
)
@pytest.mark.parametrize("frame", ["{}", "My server is slow today.\n\n{}", "Slow:\n```\n{}```\n"], ids=["log", "ticket", "fenced"])
@pytest.mark.parametrize("name", ["a.md", "a.txt", "vllm.log"])
def test_what_a_prompt_holds_is_no_log(tmp_path: Path, prompt: str, frame: str, name: str) -> None:
    """A user may ask about the kernel's lines, with a caption and fences of their own."""
    asked = f"INFO 03-04 05:01:10 [logger.py:39] Received request 9: prompt: 'explain\n{prompt}', params: SamplingParams(n=1)\n"
    assert cause(tmp_path, frame.format(WORKING + asked + WORKING.replace("05:01", "05:04")), name) != "gpu_hardware"
