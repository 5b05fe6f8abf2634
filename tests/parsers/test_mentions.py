"""Errors that people mention beside a log of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.parsers import mentions

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 44.39 GiB of"
    " which 12.00 MiB is free."
)
DRIVER = "RuntimeError: The NVIDIA driver on your system is too old (found version 11070)"
OWN = """ERROR 02-11 10:17:29 [core.py:398] EngineCore encountered a fatal error.
ERROR 02-11 10:17:29 [core.py:398] Traceback (most recent call last):
ERROR 02-11 10:17:29 [core.py:398]   File "/opt/vllm/v1/core/sched/scheduler.py", line 7, in schedule
ERROR 02-11 10:17:29 [core.py:398] KeyError: 'chatcmpl-77'
"""
FENCED = f"```\n{OWN}```\n"


def verdict(folder: Path, text: str, name: str = "a.txt") -> tuple[str, str]:
    (folder / name).write_text(text, encoding="utf-8")
    told = analyze(folder / name).to_dict()["verdict"]
    return told["cause"], told["confidence"]


@pytest.mark.parametrize("log", [OWN, FENCED])
@pytest.mark.parametrize(
    "before",
    [
        f"[Bug]: {DRIVER}",
        f"# {OOM}",
        f"Subject: {OOM}",
        f"Maybe the same as #4711 (`{DRIVER}`)?",
        f'Duplicate of #12 "{OOM}"',
        f"At first I got {OOM} but a smaller batch cured that.",
        f"求助：升级之后一直报错，{OOM} 是显存不够吗？",
        f"Yesterday it was\n```\n{OOM}\n```\nand a smaller batch solved it. Now:",
    ],
)
def test_what_is_mentioned_above_the_log_is_not_its_error(tmp_path: Path, before: str, log: str) -> None:
    """A title, a reference, an old trouble."""
    assert verdict(tmp_path, f"{before}\n\n{log}")[0] == "app_bug"
    assert verdict(tmp_path, f"{before}\n\n{log}", "issue.md")[0] == "app_bug"


@pytest.mark.parametrize("log", [OWN, FENCED])
@pytest.mark.parametrize(
    "below",
    [
        f"**kim** commented: on mine it is `{OOM}`",
        f"### kim commented on Mar 3\n\nme too:\n```\n{OOM}\n```",
        f"### Comment\n\n```\n{OOM}\n```",
        f"@kim wrote:\n\n{OOM}",
        f"On Tue, Feb 11, 2026 at 10:40 AM Kim <kim@example.org> wrote:\n\n{OOM}",
        f"#### Answer 2\n\n```\n{OOM}\n```",
    ],
)
def test_what_others_comment_is_another_case(tmp_path: Path, below: str, log: str) -> None:
    """Their errors stand below the log of who asked."""
    assert verdict(tmp_path, f"It died today.\n\n{log}\n{below}\n")[0] == "app_bug"


def test_what_nccl_calls_a_warning_is_an_error_of_its_own(tmp_path: Path) -> None:
    """The paste breaks off before the exception that NCCL's words lead to."""
    text = (
        "```bash\ndocker run --rm --gpus all vllm/vllm-openai:v0.13.0 --model m --tensor-parallel-size 4\n```\n\n"
        'My disk has 900 GB free, so "No space left on device" makes no sense to me.\n\n```\n'
        "INFO 02-11 10:17:20 [utils.py:253] non-default args: {'model': 'm', 'tensor_parallel_size': 4}\n"
        "INFO 02-11 10:17:29 [pynccl.py:111] vLLM is using nccl==2.27.5\n"
        "gpu-node-7:12:40 [2] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 33030532 bytes, "
        "error: No space left on device (28)\n"
        "ERROR 02-11 10:17:30 [multiproc_executor.py:684] WorkerProc failed to start.\n"
    )
    assert verdict(tmp_path, text)[0] == "shm_exhausted"


def test_the_poster_s_next_comment_is_the_same_case(tmp_path: Path) -> None:
    """The full log is often asked for."""
    short = OWN.replace("KeyError: 'chatcmpl-77'", "ConnectionError: peer")
    full = f"```\n{OWN.replace('KeyError', 'torch.AcceleratorError').replace(chr(39), '')}```"
    text = f"kim opened this issue\n\n```\n{short}```\n\nkim commented\n\n{full}\n\nlee commented\n\n{OOM}\n"
    assert "gpu_oom" not in verdict(tmp_path, text)[0]


def test_a_comment_of_the_same_day_belongs_to_the_incident(tmp_path: Path) -> None:
    """Colleagues put pieces of one incident together in a ticket: what the machine says, and logs of that time."""
    xid = "Feb 11 10:17:28 gpu-3 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=8, name=VLLM::Worker, GPU has fallen off the bus."
    assert verdict(tmp_path, f"The engine died.\n\n{FENCED}\nops wrote: the kernel says\n\n```\n{xid}\n```\n")[0] == "gpu_hardware"


@pytest.mark.parametrize("name", ["a.txt", "question.txt"])
def test_without_a_log_the_mention_is_what_is_known(tmp_path: Path, name: str) -> None:
    """Hearsay, never more than possible."""
    assert verdict(tmp_path, f"My pod dies with `{OOM}` since the update. Any idea?\n", name) == ("gpu_oom.runtime_load", "possible")


def test_a_log_that_only_says_that_it_died_leaves_the_word_to_the_mention(tmp_path: Path) -> None:
    """`EngineDeadError` names no cause."""
    dead = OWN.replace("KeyError: 'chatcmpl-77'", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
    assert verdict(tmp_path, f"{dead}\nThe root cause above was `{OOM}`\n")[0] == "gpu_oom.runtime_load"


@pytest.mark.parametrize(
    "line",
    [
        OOM,
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing.",
        'docker: Error response from daemon: stderr: "nvidia-container-cli: initialization error: driver error": unknown.',
        "Process EngineCore_0:",
        '{"level": "error", "message": "RuntimeError: x"}',
    ],
)
def test_what_programs_print_is_no_mention(line: str) -> None:
    """Flags in backticks, messages in quotation marks."""
    assert not mentions.is_mention(line)


def test_a_command_behind_a_mark_is_no_mention() -> None:
    """How the engine was started names no error, also where it stands as a heading or a remark does."""
    assert not mentions.is_mention("# run as: vllm serve acme/chat-14b --gpu-memory-utilization 0.96")
    assert not mentions.is_mention("### python -m sglang.launch_server --model-path acme/chat-14b --tp 2")
    assert mentions.is_mention(f"# vllm serve acme/chat-14b --max-num-seqs 64 gives {OOM}")
    assert mentions.is_mention("# vllm serve dies")
