"""A pattern of the user's own that explodes is refused, or cut and named; it never stops an analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.errors import LibraryError
from forensics.pipeline import Options, analyze
from forensics.signatures import matching

FILE = """
id = "mine.slow"
title.en = "A gateway ran out of buffers"
title.zh = "网关缓冲区耗尽"
status = "test"
severity = "error"
role = "symptom"
channels = ["engine"]
anchors = ["gateway: "]
description = "Made for a test."

[[versions]]
program = "gateway"
range = "1"
source = "a.py"

[[patterns]]
name = "core"
regex = '''{regex}'''

[[examples]]
text = '''gateway: out of buffers x'''
match = "core"

[[examples]]
text = '''gateway: nothing'''
match = false
"""
SLOW = r"gateway: .*[a-z]*.*[a-z]*.*[a-z]*.*[a-z]*.*x$"
"""Polynomial, so no rule against exponential ones finds it."""
EXPLODING = r"gateway: (?:[a-z ]+)+x$"


def patterns(folder: Path, pattern: str) -> Path:
    path = folder / "patterns" / "mine" / "slow.toml"
    path.parent.mkdir(parents=True)
    path.write_text(FILE.format(regex=pattern), encoding="utf-8")
    return folder / "patterns"


def test_exponential_patterns_are_refused(tmp_path: Path) -> None:
    """With the file, the pattern and the reason; nothing is analysed with half a library."""
    (tmp_path / "vllm.log").write_text("INFO 11-29 21:20:00 [a.py:1] x\n", encoding="utf-8")
    with pytest.raises(LibraryError, match=r"(?s)slow\.toml.*nested repetition"):
        analyze(tmp_path / "vllm.log", options=Options(patterns=patterns(tmp_path, EXPLODING)))


def test_slow_patterns_are_cut_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of lines that it chokes on does not hold the analysis up; the report names the pattern and the first line."""
    monkeypatch.setattr(matching, "TIME_LIMIT_S", 0.02)
    log = tmp_path / "logs" / "vllm.log"
    log.parent.mkdir()
    lines = [f"ERROR 11-29 21:20:00 [a.py:1] gateway: {chr(97 + n % 26) * (3000 + n)}!" for n in range(200)]
    log.write_text("INFO 11-29 21:20:00 [a.py:1] start\n" + "\n".join(lines) + "\n", encoding="utf-8")
    report = analyze(log, options=Options(patterns=patterns(tmp_path, SLOW)))
    named = [d for d in report.diagnostics if "mine.slow (pattern core)" in d.message]
    assert [(d.source, d.line) for d in named][:1] == [("vllm.log", 2)]
    assert "switched off" in named[1].message
    assert len(named) == 2
