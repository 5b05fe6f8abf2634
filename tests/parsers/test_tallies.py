"""Statuses that a shell counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline


def counted(folder: Path, text: str) -> list[tuple[int, int]]:
    (folder / "check.txt").write_text(text, encoding="utf-8")
    events = pipeline.read(folder / "check.txt").events
    return [(e.fields["status"], e.fields["answers"]) for e in events if e.kind == "answers_counted"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "$ journalctl -u embed | grep -oE 'HTTP/1.1\" [0-9]{3}' | sort | uniq -c\n  9120 HTTP/1.1\" 200\n     2 HTTP/1.1\" 500\n",
            [(200, 9120), (500, 2)],
        ),
        ("# $ awk '{print $11}' lb.log | sort | uniq -c    (one night)\n#   611 200\n", [(200, 611)]),
        ("$ cut -d' ' -f9 a.log | sort | uniq -c | sort -rn\n   77 \"200\"\n    3 status=503\n", [(200, 77), (503, 3)]),
        ("$ sort words | uniq -c\n   12 timeout\n  300 200\n", []),
        ("$ cat counts.txt\n  9120 200\n     2 500\n", []),
        ("$ sort sizes | uniq -c\n   12 4096\n    7 8192\n", []),
    ],
    ids=["with the protocol", "a comment", "quoted", "of words", "not counted", "of sizes"],
)  # fmt: skip
def test_counts_of_statuses(tmp_path: Path, text: str, found: list[tuple[int, int]]) -> None:
    assert counted(tmp_path, text) == found
