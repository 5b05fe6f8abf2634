"""Do the messages still stand in the source?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forensics.errors import OptionError
from forensics.pipeline import load_library
from forensics.signatures import Library
from forensics.signatures import drift as watch
from forensics.signatures.drift import Status
from forensics.signatures.model import Version

BUILT_IN = load_library()
BASE = BUILT_IN.signatures["torch.oom"]


def library(*anchors: str, versions: str = "1.0-2.0", **more: str) -> Library:
    signatures = {"acme.first": replace(BASE, id="acme.first", anchors=anchors, versions=(Version("acme", versions, "a.py"),))}
    for name, span in more.items():
        signatures[f"acme.{name}"] = replace(
            BASE, id=f"acme.{name}", anchors=("never there at all",), versions=(Version("acme", span, "b.py"),)
        )
    return Library(signatures, {})


def trace(tmp_path: Path, source: str, anchor: str, name: str = "acme/server.py") -> watch.Trace:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    (result,), _ = watch.drift(library(anchor), tmp_path, "acme")
    return result.best


@pytest.mark.parametrize(
    ("source", "anchor", "name"),
    [
        ('raise ValueError(\n    "no room for the "\n    f"buffers of {n}"\n)', "no room for the buffers of ", "a/server.py"),
        ('log.Error("no room for the " +\n\t"buffers")', "no room for the buffers", "a/server.go"),
        ('printf("no room for \\"it\\"\\n");', 'no room for "it"', "a/server.c"),
        ("f'{{room}} is full: 100%%'", "{room} is full: 100%", "a/server.py"),
        ('error!("no room \\\n         for buffers")', "no room for buffers", "a/server.rs"),
        ("'it\\'s full now'", "it's full now", "a/server.py"),
    ],
    ids=["python", "go", "c", "format", "rust", "quote"],
)
def test_source_text_is_read_as_printed(tmp_path: Path, source: str, anchor: str, name: str) -> None:
    """Literals over several lines are joined, escapes undone."""
    found = trace(tmp_path, source, anchor, name)
    assert found.status is Status.FOUND
    assert found.path == name


@pytest.mark.parametrize(
    ("source", "anchor", "status", "piece"),
    [
        ('f"{self.name} has no room for buffers"', "Gateway has no room for buffers", Status.ASSEMBLED, "has no room for buffers"),
        ('"no room for buffers: %s" % n', "no room for buffers: 12", Status.ASSEMBLED, "no room for buffers:"),
        ('"there is no room for the new buffers"', "no room for the old buffers", Status.CHANGED, "no room for the"),
        ('"something else entirely"', "no room for buffers", Status.VANISHED, ""),
    ],
    ids=["placeholder-before", "placeholder-after", "reworded", "gone"],
)
def test_pieces_of_an_anchor(tmp_path: Path, source: str, anchor: str, status: Status, piece: str) -> None:
    """A placeholder may print the rest; another wording may not."""
    found = trace(tmp_path, source, anchor)
    assert (found.status, found.piece) == (status, piece)


def test_one_wording_left_is_enough(tmp_path: Path) -> None:
    """Old wordings of a signature stay in the library and are expected to be gone."""
    (tmp_path / "a.py").write_text('"the new wording of it"')
    (result,), files = watch.drift(library("the old wording of it", "the new wording of it"), tmp_path, "acme")
    assert files == 1
    assert not result.drifted
    assert [t.status for t in result.traces] == [Status.CHANGED, Status.FOUND]


def test_ended_signatures_are_expected_to_be_gone(tmp_path: Path) -> None:
    """Whose range ends before the newest version that the library knows has not drifted."""
    (tmp_path / "a.py").write_text('"nothing"')
    results, _ = watch.drift(library("no room for buffers", old="0.4-1.5", same="1.1-2.0", open=""), tmp_path, "acme")
    assert {r.signature.id.removeprefix("acme."): r.drifted for r in results} == {
        "first": True, "old": False, "same": True, "open": True,
    }  # fmt: skip


def test_tests_and_binaries_do_not_count(tmp_path: Path) -> None:
    """A test that quotes a message does not print it; no source at all is a mistake in the path."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text('"no room for buffers"')
    (tmp_path / "a.so").write_bytes(b"\x7fELF no room for buffers")
    with pytest.raises(OptionError, match="no source files"):
        watch.drift(library("no room for buffers"), tmp_path, "acme")


@pytest.mark.parametrize(
    ("path", "program"),
    [("site-packages/vllm", "vllm"), ("vllm-0.34.0/vllm", "vllm"), ("src/text-generation-inference", "text-generation-inference"),
     ("TensorRT_LLM-1.0", "tensorrt-llm"), ("llama.cpp-b9000/src", "llama.cpp")],
)  # fmt: skip
def test_program_from_the_path(tmp_path: Path, path: str, program: str) -> None:
    """Version suffixes and separators do not matter."""
    (tmp_path / path).mkdir(parents=True)
    assert watch.guess_program(tmp_path / path, BUILT_IN) == program


def test_program_from_what_lies_in_it(tmp_path: Path) -> None:
    """One known package inside decides; none, or two, does not."""
    with pytest.raises(OptionError, match="does not look like"):
        watch.guess_program(tmp_path, BUILT_IN)
    (tmp_path / "vllm").mkdir()
    assert watch.guess_program(tmp_path, BUILT_IN) == "vllm"
    (tmp_path / "ray").mkdir()
    with pytest.raises(OptionError, match="holds ray, vllm"):
        watch.guess_program(tmp_path, BUILT_IN)
