"""What is fuzzed: each target takes bytes and must end, soon and without an exception of the program's own making.

A target raises only for a defect. Input that is bad in a way the program has words for is no defect. The first bytes
of some targets choose what the rest is given to, so that one corpus serves a coverage-guided fuzzer as well.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import regex

from forensics import pipeline, stamps
from forensics.bundle import Budget, Bundle
from forensics.cli import terminal
from forensics.errors import LibraryError, NothingReadableError
from forensics.model import Event, Locator, Severity
from forensics.parsers import DIALECTS, FORMATS, embedded
from forensics.parsers.records import unwrap
from forensics.report import redact, render
from forensics.report.gate import Gate
from forensics.report.text import printable
from forensics.signatures import Matcher

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = tuple(form for form in FORMATS if form.read is not None)
CHANNELS = ("plain", *sorted(DIALECTS))
_UNSHOWABLE = regex.compile(r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}--[\n]]", regex.VERSION1)


class SlowError(Exception):
    """A target took longer than its input is worth."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """CPU seconds, so that a busy machine finds nothing."""
    start = time.process_time()
    yield
    used = time.process_time() - start
    if used > seconds:
        raise SlowError(f"{used:.1f} s")


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def bundle(data: bytes) -> None:
    """Any bytes as an archive: members come out with clean names and within their budgets, or not at all."""
    budget = Budget(total_bytes=8 << 20, members=200)
    with _saved(data, "b") as path, within(10):
        opened = Bundle((str(path),), budget)
        total = 0
        for member in opened.members():
            total += sum(len(block) for block in member.blocks(1 << 16))
            parts = member.path.split("/")
            assert member.path
            assert not member.path.startswith("/")
            assert ".." not in parts
            assert not _UNSHOWABLE.search(member.path)
        assert total <= budget.total_bytes + (1 << 16)
        assert sorted(item.name for item in path.parent.iterdir()) == [path.name]


def analyze(data: bytes) -> None:
    """A file with this content, whatever it is, becomes a report in every format and language."""
    with _saved(data, "input.txt") as path:
        analyze_files(path)


def analyze_files(path: Path) -> None:
    """The same for a file or folder."""
    with within(20):
        try:
            report = pipeline.analyze(path)
        except NothingReadableError:
            return
        defects = [d.message for d in report.diagnostics if d.severity is Severity.ERROR]
        assert not defects, defects
        for language in ("en", "zh"):
            show(render.prepare(report, language, Gate("strict")))


def show(document: Mapping[str, Any]) -> None:
    """Every format of an admitted document: nothing in it that a terminal or an editor acts on."""
    for form in render.FORMATS:
        shown = render.write(document, form)
        assert not _UNSHOWABLE.search(shown), form
        if form == "json":
            json.loads(shown, parse_constant=_refuse)
    assert not _UNSHOWABLE.search(terminal.render(document, width=20))


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def document(data: bytes) -> None:
    """Every document reader on every text, not only on those that it recognises."""
    if data:
        form = DOCUMENTS[data[0] % len(DOCUMENTS)]
        assert form.read is not None
        with within(10):
            form.read(text_of(data[1:]), "pods/vllm-0/x.txt")


def log(data: bytes) -> None:
    """Every dialect on every text."""
    if data:
        with within(10):
            embedded.read_text(text_of(data[1:]), "x.log", CHANNELS[data[0] % len(CHANNELS)])


def line(data: bytes) -> None:
    """Envelopes, one line; a program's output never becomes the machine's word."""
    with within(10):
        record = unwrap(text_of(data))
        inside = unwrap(text_of(data), output=True)
    assert record.text is not None
    assert not inside.machine


def stamp(data: bytes) -> None:
    """Times from text and back."""
    text = text_of(data)
    with within(10):
        found = [stamps.iso(text, "x"), stamps.ctime(text, "x"), stamps.rfc1123(text, "x"), stamps.age(text, "x")]
        found.append(stamps.month_day(len(data) % 14, len(data) % 33, text, "x"))
        stamps.duration(text)
        stamps.zone(text)
        stamps.fixed_zone(text)
        stamps.month_number(text)
        for item in found:
            if item is not None:
                assert stamps.iso_utc(item.seconds)


def signature(data: bytes) -> None:
    """A user's pattern file: it is refused with a reason, or it works within its time limit."""
    with tempfile.TemporaryDirectory() as folder, within(30):
        path = Path(folder) / "mine" / "one.toml"
        path.parent.mkdir()
        path.write_bytes(data)
        try:
            library = pipeline.load_library(Path(folder))
        except LibraryError as error:
            assert str(error)  # noqa: PT017
            return
        matcher = Matcher(library)
        for channel in ("engine", "kernel", "plain"):
            text = text_of(data)[-4000:]
            list(matcher.hits(Event(Locator("x", 1, 1), "log", channel, text)))


def report(data: bytes) -> None:
    """Any text in every place of a report where text of a bundle may stand."""
    texts = text_of(data).split("\n")
    with within(20):
        for mode in ("default", "strict", "off"):
            show(Gate(mode).admit(_with_texts(_document(), texts), [("host", texts[0]), ("pod", texts[-1])]))


def redaction(data: bytes) -> None:
    """Redaction of any text ends, and finds nothing more in what it left."""
    with within(5):
        shown = printable(text_of(data))
        once, _ = redact.redact(shown)
        redact.redact(once)


@cache
def _document() -> dict[str, Any]:
    sample = ROOT / "samples" / "kv-cache-startup" / "bundle"
    return pipeline.analyze(sample).to_dict()


_PLACES = frozenset({"quote", "pod", "host", "container", "source", "path", "message", "name", "namespace", "note"})


def _with_texts(value: Any, texts: list[str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _with_texts(v, texts, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, texts, key) for item in value]
    if isinstance(value, str) and key in _PLACES:
        return texts[len(value) % len(texts)]
    return value


@contextmanager
def _saved(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


TARGETS: dict[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (bundle, analyze, document, log, line, stamp, signature, report, redaction)
}
