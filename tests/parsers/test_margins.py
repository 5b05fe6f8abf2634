"""What copying put in front of lines goes before anything is recognised; what only looks alike stays."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle
from forensics.parsers import margins
from forensics.sources import make_head

LOG = [
    "(EngineCore_DP0 pid=117) ERROR 11-18 02:41:07 [core.py:710] EngineCore encountered a fatal error.",
    "Traceback (most recent call last):",
    '  File "/opt/serve.py", line 3, in <module>',
    "    main()",
    "",
    """ValueError: the pool of "slots" has 0 < 1 & can't grow""",
]
Wrap = Callable[[int, str], str]
WRAPS: dict[str, Wrap] = {
    "cat -n": lambda n, line: f"{n:6d}\t{line}",
    "less -N": lambda n, line: f"{n:7d} {line}",
    "editor": lambda n, line: f"{n + 95:4d} | {line}",
    "grep -n": lambda n, line: f"{n * 3}:{line}",
    "grep -n of a file": lambda n, line: f"logs/pool.log-{n * 3}-{line}",
    "numbers and blanks": lambda n, line: f"{n}: {line}",
    "mail": lambda n, line: f"> {line}",
    "reply to a reply": lambda n, line: f"> > {line}",
    "slack": lambda n, line: f"[9:0{n} AM] @mira: {line}",
    "discord": lambda n, line: f"[03.02.2026 21:0{n}] mira#12: {line}",
    "whatsapp": lambda n, line: f"03/02/2026, 21:0{n} - Mira T: {line}",
    "irc": lambda n, line: f"21:0{n} <mira> {line}",
    "post": lambda n, line: f"    {line}",
    "page": lambda n, line: html.escape(line),
    "numbered quotation": lambda n, line: f"{n:6d}\t> {line}",
}


def read(folder: Path, name: str, data: bytes) -> ReadSource:
    (folder / name).write_bytes(data)
    (item,) = read_bundle(Bundle((str(folder / name),)), ())
    return item


def said(item: ReadSource) -> list[tuple[int, str, str]]:
    return [(event.locator.line, event.kind, event.text) for event in item.parsed.events]


@pytest.mark.parametrize("name", WRAPS)
def test_a_copy_says_what_the_log_says(tmp_path: Path, name: str) -> None:
    """The same events in the same lines, those among them that have no header; a traceback keeps its indentation."""
    plain = read(tmp_path, "a.txt", "\n".join(LOG).encode())
    assert {kind for _, kind, _ in said(plain)} == {"log", "traceback"}
    copied = "\n".join(WRAPS[name](n, line) for n, line in enumerate(LOG, 1))
    assert said(read(tmp_path, "b.txt", copied.encode())) == said(plain)


def test_a_file_of_windows(tmp_path: Path) -> None:
    """What PowerShell redirects is UTF-16; margins and documents are found in it all the same."""
    text = "\r\n".join(f"> {line}" for line in LOG)
    plain = read(tmp_path, "a.txt", "\n".join(LOG).encode())
    assert said(read(tmp_path, "b.txt", text.encode("utf-16"))) == said(plain)


def test_a_large_file_loses_its_margin_in_every_block() -> None:
    """Blocks end anywhere; what comes out does not depend on it."""
    text = "".join(f"> line {n}\n" for n in range(4000)).encode()
    margin = margins.of(make_head("a.txt", text, True))
    assert margin is not None
    for size in (7, 1000, len(text)):
        blocks = (text[i : i + size] for i in range(0, len(text), size))
        assert b"".join(margins.off(blocks, margin)) == text.replace(b"> ", b"")


@pytest.mark.parametrize("text", [
    "02:41:07 message\n02:42:11 message\n03:00:00 message\n",
    "# gpu pwr\n# Idx W\n    0 71\n    1 70\n    2 70\n    3 74\n",
    "  PID COMMAND\n    1 init\n    2 kthreadd\n    3 rcu_gp\n    4 rcu_par\n",
    "12c12\n< a: 1\n---\n> a: 2\n> b: 3\n",
    "$ cat <<EOF\n> one\nEOF\ndone\nbye\nend\n",
    "[02:41:07] ERROR: no\n[02:41:08] kernel: yes\n[02:41:09] WARNING: no\n",
    '{"a": "x &quot;y&quot; &lt;z"}\n{"a": 1}\n{"a": 2}\n',
    "<pre>a &lt; b</pre>\n<p>c &gt; d</p>\n",
    "Name:  chat\nContainers:\n    Image: a\n    Port: 1\n    Args: b\n    Env: c\n",
    "a\n\nb\n",
    "",
])  # fmt: skip
def test_what_only_looks_like_a_margin_stays(text: str) -> None:
    """Times of day, columns of tables, diff, a here-document, loggers, JSON with entities, markup, described objects."""
    assert margins.of(make_head("a.txt", text.encode(), True)) is None
