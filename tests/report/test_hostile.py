"""A bundle that attacks its readers: every name and text in it tries to act in some format."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from html.parser import HTMLParser

import pytest
import regex
from markdown_it import MarkdownIt

from forensics.cli import terminal
from forensics.report import Report
from forensics.report.gate import Gate
from forensics.report.render import prepare, write

EVIL = "=cmd|' /C calc'!A0 | ``` </script><script>alert(1)</script> \x1b]52;c;ZXZpbA==\x07 \u202etxt.exe [x](http://evil.example) {{7*7}}"
"""Formula, pipe, fence, script, clipboard escape, bidi mark, link, template."""


@pytest.fixture(scope="module")
def hostile(files: Callable[[str], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report]) -> Report:
    """The incident with the attack in a message, an exception, a process name, a file name, a reason and a note."""
    base = files(f"(EngineCore_DP0 pid=71) ERROR 11-18 02:11:08 [core.py:710] RuntimeError: CUDA error: out of memory {EVIL}\n")
    base["logs/engine.log"] = base["logs/engine.log"].replace("unallocated.", f"unallocated. {EVIL}")
    base["node/journal.txt"] += (
        "Nov 18 02:11:10 gpu-node-7 kernel: Memory cgroup out of memory: Killed process 4242 (</td>|`x`\x1b[2J) "
        "total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
    )
    base["k8s/describe.txt"] = base["k8s/describe.txt"].replace("Reason:       Error", f"Reason:       Error|{EVIL}")
    base["logs/=cmd()|`<b>\u202e.log"] = base["notes.txt"] + f"CUDA out of memory. Tried to allocate 1.00 GiB {EVIL}\n"
    return analyzed(base)


@pytest.fixture(scope="module", params=["default", "strict", "off"])
def data(hostile: Report, request: pytest.FixtureRequest) -> dict[str, object]:
    return prepare(hostile, "en", Gate(request.param))


def test_no_format_holds_a_control_or_bidi_character(data: dict[str, object]) -> None:
    """Nothing that a terminal or an editor acts on, in any format; also without redaction."""
    shown = [write(data, form) for form in ("md", "html", "json", "csv")] + [terminal.render(data, width=120)]
    for text in shown:
        assert not regex.search(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}--[\n]]", text, regex.VERSION1)


def test_markdown_tables_stay_whole_and_nothing_links(data: dict[str, object]) -> None:
    """Every table has as many cells in each row as columns; no link, image or HTML but our escaped code."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(write(data, "md"))
    columns = cells = 0
    for token in tokens:
        columns = columns + 1 if token.type == "th_open" else 0 if token.type == "table_open" else columns
        cells = cells + 1 if token.type == "td_open" else 0 if token.type == "tr_open" else cells
        assert token.type != "html_block"
        if token.type == "tr_close" and cells:
            assert cells == columns
        for child in token.children or []:
            assert child.type not in ("link_open", "image"), child
            assert child.type != "html_inline" or child.content in ("<code>", "</code>")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_html_has_no_script_and_no_foreign_element(data: dict[str, object]) -> None:
    """Only our own elements, no handlers, no style attributes, no links out; the CSP forbids what might slip through."""
    page = _Page()
    html = write(data, "html")
    page.feed(html)
    assert not {"script", "iframe", "img", "object", "embed", "link", "form", "base", "b"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    assert all((value or "").startswith("#") for name, value in page.attributes if name in ("href", "src", "action"))
    assert "default-src &#39;none&#39;" in html
    for drawing in regex.findall(r"<svg.*?</svg>", html, regex.DOTALL):
        ET.fromstring(drawing)


def test_csv_has_no_formula(data: dict[str, object]) -> None:
    """No cell begins like a formula, and every row has all its cells."""
    rows = list(csv.reader(io.StringIO(write(data, "csv"))))
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@", "\t")]


def test_mermaid_labels_hold_no_syntax(data: dict[str, object]) -> None:
    """What stands between the quotes of a label cannot end it."""
    for block in regex.findall(r"```mermaid\n(.*?)\n```", write(data, "md"), regex.DOTALL):
        for line in block.splitlines():
            assert line.count('"') % 2 == 0
            if line.strip().startswith("n") and "[" in line:
                assert regex.fullmatch(r'\s+n\d+\["[^"`<>\[\]{}|]*"\]:::\w+', line), line


def test_templates_in_the_bundle_are_not_run(data: dict[str, object]) -> None:
    """`{{7*7}}` stays text."""
    assert "{{7*7}}" in json.loads(write(data, "json"))["incidents"][0]["hypotheses"][0]["for"][0]["quote"]
    assert "49 " not in write(data, "csv")
