"""Notebooks, recorded terminals and web pages: what programs printed into them is read, at its lines."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle

LOST = "(EngineCore_DP0 pid=117) ERROR 11-18 02:41:07 [core.py:710] EngineCore encountered a fatal error."
RAISED = "ValueError: No available memory for the cache blocks."

NOTEBOOK = json.dumps({
    "cells": [
        {"cell_type": "markdown", "source": ["CUDA out of memory, as I thought"]},
        {"cell_type": "code", "source": [f"raise {RAISED}"], "outputs": [
            {"output_type": "stream", "name": "stderr", "text": ["loading\n", LOST[:40], LOST[40:] + "\n"]},
            {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": [
                "\x1b[0;31m-----\x1b[0m", "\x1b[0;31mValueError\x1b[0m" + RAISED[10:]]},
        ]},
    ],
    "nbformat": 4,
}, indent=1)  # fmt: skip
CAST = "\n".join([
    json.dumps({"version": 2, "width": 120, "height": 40, "timestamp": 1763433600}),
    json.dumps([0.1, "i", "echo CUDA out of memory\r"]),
    json.dumps([0.2, "o", "$ vllm serve acme/chat\r\n" + LOST[:30]]),
    json.dumps([0.3, "o", LOST[30:] + "\r\n" + RAISED + "\r\n"]),
    "cut in the mid",
])  # fmt: skip
PAGE = f"""<!DOCTYPE html>
<html><head><title>CUDA out of memory</title><script>if (a < b) throw "{RAISED}"</script></head>
<body><p>We saw it again &amp; again.</p>
<pre><span class="c1">{LOST}</span>
{RAISED}</pre><!-- {RAISED} -->
</body></html>
"""


def read(folder: Path, name: str, text: str) -> ReadSource:
    (folder / name).write_text(text)
    (item,) = read_bundle(Bundle((str(folder / name),)), ())
    return item


@pytest.mark.parametrize(
    ("name", "text", "form", "lost", "raised"),
    [
        ("run.ipynb", NOTEBOOK, "notebook", 20, 30),
        ("terminal.cast", CAST, "cast", 3, 4),
        ("issue.html", PAGE, "notes.html", 4, 5),
    ],
)
def test_what_was_printed_stands_at_its_line(
    tmp_path: Path, name: str, text: str, form: str, lost: int, raised: int
) -> None:
    """The engine's line with its header, the exception as it was printed; source code, input and scripts are silent."""
    item = read(tmp_path, name, text)
    assert item.source.format == form
    heard = [event for event in item.parsed.events if event.channel != "notes"]
    told = {event.text: event.locator.line for event in heard}
    assert told["EngineCore encountered a fatal error."] == lost
    assert told[RAISED] == raised
    assert not any("CUDA out of memory" in event.text for event in heard)


def test_a_line_of_many_pieces_costs_one_pass(tmp_path: Path) -> None:
    """A progress bar without an end of line, in a cast: twice the pieces take about twice the time."""

    def seconds(count: int) -> float:
        head = json.dumps({"version": 2, "width": 80, "height": 24})
        text = head + "\n" + '[0.1, "o", "0123456789"]\n' * count
        start = process_time()
        read(tmp_path, "bar.cast", text)
        return process_time() - start

    seconds(100)
    assert seconds(80_000) < 8 * seconds(40_000) + 1.0


@pytest.mark.parametrize("unit", ["<a ", "<!--", "<!", "</", "&", "<script>", "<p>x\n", "< ", "<"])
def test_a_broken_page_costs_one_pass(tmp_path: Path, unit: str) -> None:
    """Twice the text takes about twice the time, whatever is left open."""

    def seconds(size: int) -> float:
        text = "<html>" + unit * (size // len(unit))
        start = process_time()
        read(tmp_path, "page.html", text)
        return process_time() - start

    seconds(1000)
    assert seconds(200_000) < 8 * seconds(100_000) + 1.0
