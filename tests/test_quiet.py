"""No signature that accuses anybody fires on healthy logs, however often they say "oom"."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from forensics import analyze, ingest, pipeline
from forensics.bundle import Budget, Bundle
from forensics.model import Role
from forensics.signatures import Library, Matcher

CORPUS = Path(__file__).resolve().parent.parent / "samples" / "quiet"
HARMLESS = (Role.CONTEXT, Role.BENIGN)
LINES_PER_SOURCE = 2200


def _generator() -> ModuleType:
    """`tests/quiet.py`, which is no package's module (import mode importlib)."""
    spec = importlib.util.spec_from_file_location("quiet", Path(__file__).with_name("quiet.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


quiet = _generator()


@pytest.fixture(scope="module")
def library() -> Library:
    return pipeline.load_library()


def _accusations(paths: Iterable[Path], library: Library) -> Iterator[str]:
    """`file:line signature text` of everything that fires and is not harmless. A quotation accuses nobody."""
    matcher = Matcher(library)
    for item in ingest.read_bundle(Bundle(tuple(map(str, paths)), Budget()), library.anchors()):
        for event in item.parsed.events:
            for hit in matcher.hits(event):
                if hit.signature.role not in HARMLESS and not hit.quoted:
                    place = f"{item.source.path}:{event.locator.line}"
                    yield f"{place} {hit.signature.id} ({hit.signature.role}): {event.text[:160]}"


def test_corpus_is_large_and_of_many_kinds() -> None:
    """A corpus that shrinks proves less."""
    files = [path for path in sorted(CORPUS.rglob("*")) if path.is_file()]
    assert len(files) >= 15
    assert sum(path.read_bytes().count(b"\n") for path in files) >= 1500
    assert LINES_PER_SOURCE * len(quiet.SOURCES) >= 20_000


def test_generator_is_deterministic_and_long_enough() -> None:
    """The same arguments give the same lines; every source gives as many as asked for, in one piece each."""
    for source in quiet.SOURCES:
        first = list(quiet.lines(source, 300))
        assert first == list(quiet.lines(source, 300))
        assert first != list(quiet.lines(source, 300, seed=1))
        assert len(first) == 300
        assert not any("\n" in line for line in first)
        assert len(set(first)) > 100


def test_nothing_fires_on_committed_files(library: Library) -> None:
    """Healthy logs of all sources, and prompts, hints, file and unit names with frightening words."""
    assert list(_accusations([CORPUS], library)) == []


@pytest.mark.parametrize("source", sorted(quiet.SOURCES))
def test_nothing_fires_on_generated_lines(source: str, library: Library, tmp_path: Path) -> None:
    """Thousands of lines of each source."""
    path = tmp_path / f"{source}.log"
    path.write_text("\n".join(quiet.lines(source, LINES_PER_SOURCE)) + "\n", encoding="utf-8")
    assert list(_accusations([path], library)) == []


def test_quiet_bundle_is_healthy() -> None:
    """The verdict over the whole corpus is that nothing happened."""
    assert analyze(CORPUS).to_dict()["verdict"]["cause"] == "healthy"
