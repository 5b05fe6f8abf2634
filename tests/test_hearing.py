"""Who is heard where no logger's header says who speaks: programs are, people are quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.pipeline import Reading, analyze, read

NOTES = "Hello, the service on box 7 went away again tonight.\n\n{line}\n\nI have no idea what it wants from us.\n"
OWN = (
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
    "main: exiting due to model loading error",
    "Value error, Total number of attention heads (40) must be divisible by tensor parallel size (3).",
)
TALK = (
    "so we got an initialization error: nvml error: driver/library version mismatch",
    "Verdict: CUDA out of memory",
    "the pod was OOMKilled with exit code 137 and restarted",
    "maybe main: exiting due to model loading error",
)
PODS = """NAME                    READY   STATUS             RESTARTS      AGE
chat-66d8b7fd5c-dhz8w   0/1     CrashLoopBackOff   5 (40s ago)   6m
"""
USAGE = "usage: vllm [-h] [-v] [--port PORT]\n            [--tensor-parallel-size N]\nvllm serve: error: unrecognized arguments: --no-such-flag 8\n"


def reading(folder: Path, files: dict[str, str]) -> Reading:
    for name, text in files.items():
        (folder / name).write_text(text)
    return read(folder)


def heard(found: Reading, name: str) -> set[str]:
    return {f.signature for f in found.findings if f.locator.source == name and not f.quoted}


@pytest.mark.parametrize("line", OWN)
def test_a_programs_sentence_in_notes(tmp_path: Path, line: str) -> None:
    """It reads like prose, but a signature says that it is a message, word for word: hearsay."""
    found = reading(tmp_path, {"notes.md": NOTES.format(line=line)})
    assert heard(found, "notes.md")
    assert all(f.hearsay for f in found.findings)


@pytest.mark.parametrize("line", TALK)
def test_talk_about_an_error_stays_talk(tmp_path: Path, line: str) -> None:
    assert not heard(reading(tmp_path, {"notes.md": NOTES.format(line=line)}), "notes.md")


@pytest.mark.parametrize(("name", "speaks"), [("logs.txt", True), ("vllm.log", True), ("x.txt", True), ("notes.txt", False)])
def test_an_output_beside_real_sources(tmp_path: Path, name: str, speaks: bool) -> None:
    """A file that a program printed, by its name or its lines, is evidence; what stands in notes is told."""
    found = reading(tmp_path, {name: USAGE, "pods.txt": PODS})
    (error,) = (f for f in found.findings if f.signature == "vllm.argparse_error")
    assert (error.quoted or error.hearsay) is not speaks


def test_sentences_beside_real_sources_are_told(tmp_path: Path) -> None:
    text = "The pods crashed after lunch again.\nVersion 0.19 says this.\n" + USAGE.split("\n")[2]
    found = reading(tmp_path, {"mail-from-ops.txt": text, "pods.txt": PODS})
    (error,) = (f for f in found.findings if f.signature == "vllm.argparse_error")
    assert error.quoted or error.hearsay


def test_an_exception_of_which_only_the_last_echo_follows(tmp_path: Path) -> None:
    """A pasted chain without any header: the first exception decides, its echo is a consequence."""
    text = """Traceback (most recent call last):
  File "/opt/vllm/core/scheduler.py", line 12, in _step
    left = budget // count
TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'

The above exception was the direct cause of the following exception:

vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.
"""
    (tmp_path / "paste.txt").write_text(text)
    verdict = analyze(tmp_path / "paste.txt").to_dict()["verdict"]
    assert (verdict["cause"], verdict["confidence"]) == ("app_bug", "likely")
