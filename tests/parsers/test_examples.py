"""Lines and files that tell what may happen or what was mended."""

from __future__ import annotations

import pytest

from forensics.parsers import examples

OOM = "torch.OutOfMemoryError: CUDA out of memory."


@pytest.mark.parametrize(("line", "example"), [
    (f"2. If the log has `{OOM}`, lower it", True),
    (f"the pod restarts; if you see {OOM} call the owner", True),
    (f"- engine: fix {OOM}", True),
    (f"* **api:** handle {OOM} ([#812](https://x/812))", True),
    ("- raise the limit, it was OOMKilled (#1169)", True),
    ("* Fix Xid 79 handling by @x in https://github.com/a/b/pull/12", True),
    ("summary: '{{ $labels.pod }} was OOMKilled'", True),
    (f"- 02:41:07 {OOM}", False),
    (f"If I start it I get {OOM}", False),
    (f"- raised it to 0.97, now {OOM}", False),
    (f"3. {OOM}", False),
    (OOM, False),
    ("If reserved but unallocated memory is large", True),
    ("", False),
])  # fmt: skip
def test_lines(line: str, example: bool) -> None:
    assert bool(examples.in_lines([line])) is example


def test_where_a_line_stands() -> None:
    """A remark in settings, and a line that an instruction introduces."""
    lines = ["args:", f"  # {OOM}", "  - --max-model-len=8192  # " + OOM, "", "2. On the node, example:", f"   {OOM}", "", OOM]
    assert examples.in_lines(lines) == {1, 2, 5}


@pytest.mark.parametrize(("text", "manual"), [
    (f"# Runbook\nIf it is full:\n{OOM}\n", True),
    (f"## [1.2.0] - 2026-01-01\n- fix {OOM}\n- more\n", True),
    (f"# Runbook\n2026-01-01 02:03:04 {OOM}\nIf it is full, call.\n", False),
    (f"# Runbook did not help?\n{OOM}\nIf you see more, call.\n", False),
    (f"If you see it:\n{OOM}\nit died\n", False),
    ("annotations:\n  summary: GPU fell off\n", True),
    ("annotations:\n  summary: GPU fell off\nstatus: firing\n", False),
    ("kind: Deployment\nmetadata:\n  annotations:\n    a: b\n", False),
    ("", False),
])  # fmt: skip
def test_files(text: str, manual: bool) -> None:
    assert examples.is_manual(text.split("\n")) is manual
