"""Notes are quoted and no evidence; what was pasted into them is read; reports of this tool are put aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle
from forensics.model import StampForm
from forensics.parsers import prose

NOTES = """Collected by the on-call, chat-7b is flapping since about 02:40.
$ date -u
Tue Nov 18 03:09:40 UTC 2025
I think it was an OOM, exit 137, please raise the limit to 96Gi.

    (EngineCore_DP0 pid=117) ERROR 11-18 02:41:07 [core.py:710] EngineCore encountered a fatal error.

```
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
```
Collected at: 2025-11-18T03:10:00Z
"""


def read(folder: Path, name: str, text: str) -> ReadSource:
    (folder / name).write_text(text)
    (item,) = read_bundle(Bundle((str(folder / name),)), ())
    return item


TICKET = """**Ticket 4471: a 7B model does not fit on an 80 GB card**

> We asked for one slice, as the platform's page says.

Attached:

    GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c)
      MIG 1g.10gb     Device  0: (UUID: MIG-0a4c9e6b-1c5c-5d0e-9a83-6f3a3b9df2b1)

    (EngineCore_DP0 pid=130) ERROR 12-02 11:20:44 [core.py:842] EngineCore failed to start.
    (EngineCore_DP0 pid=130) ERROR 12-02 11:20:45 [core.py:842] No more.

Traceback (most recent call last):
  File "/opt/serve.py", line 3, in <module>
    main()
ValueError: not indented as a whole
"""


def test_a_block_that_is_indented_as_a_whole_is_read_at_the_margin(tmp_path: Path) -> None:
    """Both outputs of the ticket speak, each in its format; a traceback keeps its own indentation."""
    item = read(tmp_path, "ticket.md", TICKET)
    kinds = {event.locator.line: (event.kind, event.channel) for event in item.parsed.events}
    assert (kinds[7][0], kinds[10], kinds[11]) == ("gpu_state", ("log", "engine"), ("log", "engine"))
    (error,) = (event for event in item.parsed.events if event.kind == "traceback")
    assert error.fields["exception"] == "ValueError"


def test_prose_is_kept_apart_from_what_was_pasted(tmp_path: Path) -> None:
    """Sentences speak on a channel that no signature hears; the header, the fence and the times are facts."""
    item = read(tmp_path, "README.txt", NOTES)
    assert (item.source.format, item.source.title) == ("notes", "notes")
    by_line = {event.locator.line: event for event in item.parsed.events if event.kind == "log"}
    assert {line for line, event in by_line.items() if event.channel == "notes"} == {1, 4, 11}
    assert by_line[4].text.startswith("I think it was an OOM")
    assert (by_line[6].channel, by_line[6].scope.pid) == ("engine", 117)
    assert "OutOfMemoryError" in next(e.text for e in item.parsed.events if e.locator.line == 9)
    times = [e.stamps[0] for e in item.parsed.events if e.kind == "capture"]
    assert [(stamp.form, stamp.seconds) for stamp in times] == [(StampForm.INSTANT, 1763435380.0), (StampForm.INSTANT, 1763435400.0)]


@pytest.mark.parametrize(("line", "written"), [
    ("the pod was killed at night, nobody touched it", True),
    ("- restarted the deployment, looks good now", True),
    ("夜里 Pod 被杀死了，请提高内存限制", True),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", False),
    ("ERROR something is wrong with the engine today", False),
    ("kernel[12]: Out of memory", False),
    ("    indented text was pasted from some place", False),
    ("total 2216", False),
    ("", False),
])  # fmt: skip
def test_what_was_written(line: str, written: bool) -> None:
    assert prose.is_prose(line) is written


@pytest.mark.parametrize(("name", "form"), [("what-happened.txt", "notes"), ("server.log", "text"), ("notes.log", "text")])
def test_a_file_of_any_name(tmp_path: Path, name: str, form: str) -> None:
    """Sentences tell notes; a program's log may print sentences too, and stays what it is."""
    text = "We saw the pod restart three times tonight.\nI suspect the new image because nothing else changed.\n"
    assert read(tmp_path, name, text).source.format == form


def test_a_log_called_notes_is_a_log(tmp_path: Path) -> None:
    line = "2025-11-18T02:41:07.123456789Z (EngineCore_DP0 pid=117) ERROR 11-18 02:41:07 [core.py:710] fatal error.\n"
    assert read(tmp_path, "notes.txt", line * 5).source.format == "log"


@pytest.mark.parametrize(("name", "text", "form"), [
    ("old.md", "# Post-mortem: x\n\ntorch.OutOfMemoryError: CUDA out of memory.\n\nCheck with `oomforensics verify r.json B`.\n", "notes.report"),
    ("old.json", '{\n "schema_version": "1.0",\n "tool": {\n  "name": "oomforensics"\n }\n}\n', "notes.report"),
    ("old.html", '<!doctype html>\n<html><head>\n<meta name="generator" content="oomforensics 9.9">\n</head></html>\n', "notes.report"),
    ("prompt.log", "INFO 11-18 02:41:07 [logger.py:1] prompt: `oomforensics verify r.json B`\n" * 3, "log"),
])  # fmt: skip
def test_reports(tmp_path: Path, name: str, text: str, form: str) -> None:
    """An earlier report quotes evidence; it must not become evidence. Its words inside a log change nothing."""
    item = read(tmp_path, name, text)
    assert item.source.format == form
    assert form == "log" or item.parsed.events == ()


OWN = """I can't start it any more:

```
(EngineCore_DP0 pid=130) ERROR 12-02 11:20:44 [core.py:842] EngineCore failed to start.
```
"""
OTHERS = "\nMine ends with\n\n> torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.mark.parametrize("name", ["thread.md", "mail.txt"])
def test_what_somebody_else_saw_is_a_quotation(tmp_path: Path, name: str) -> None:
    """A commenter's error beside the writer's own log; without such a log the quotation is all there is."""
    beside = {event.locator.line: event.channel for event in read(tmp_path, name, OWN + OTHERS).parsed.events}
    assert (beside[4], beside[9]) == ("engine", "notes")
    alone = read(tmp_path, "alone.md", OTHERS)
    assert [event.channel for event in alone.parsed.events if "OutOfMemoryError" in event.text] == ["plain"]


@pytest.mark.parametrize(("name", "evidence"), [
    ("RUNBOOK-memory.md", False), ("docs/gpu_runbook.md", False), ("ansible-playbook.log", True), ("resop.md", True),
])  # fmt: skip
def test_a_manual_holds_examples(tmp_path: Path, name: str, evidence: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    item = read(tmp_path, name, "You see in the log of the pod\n\n```\ntorch.OutOfMemoryError: CUDA out of memory.\n```\n")
    assert any("OutOfMemoryError" in event.text for event in item.parsed.events) is evidence
