"""What the law allows and an author should know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forensics.pipeline import load_library
from forensics.signatures import Library, Pattern, probe
from forensics.signatures.lint import lint
from forensics.signatures.model import Example, Version

BUILT_IN = load_library()
BASE = replace(
    BUILT_IN.signatures["torch.oom"], id="acme.gateway", anchors=("gateway: lost ",), role="symptom",
    patterns=(Pattern("core", r"gateway: lost \d+ of \d+ pages", {}),),
    examples=(Example("gateway: lost 3 of 8 pages", "core", {}, "engine", "ERROR", ""),
              Example("gateway: lost contact", "", {}, "engine", "ERROR", "")),
    versions=(Version("acme", "1.0", "gateway.py"),), title_zh="网关丢页",
)  # fmt: skip


def remarks(hostile: bool = False, source: str = "", **changes: object) -> list[str]:
    if source:
        changes["patterns"] = (Pattern("core", source, {}),)
    library = Library({"acme.gateway": replace(BASE, **changes)}, {})
    return [f"{'W' if r.warning else 'A'} {r.problem.key}: {r.problem.reason}" for r in lint(library, library.signatures, hostile)]


def test_a_good_signature_has_none() -> None:
    """Nothing is made up."""
    assert remarks(hostile=True) == []


def test_weak_parts_are_named() -> None:
    """Short anchors, an untranslated title, an idle cause, open ends, source lines, whole sentences."""
    assert "W anchors: 'oom' is very short: nearly every line holds it" in remarks(anchors=("oom",))
    assert "W title.zh: is not Chinese" in remarks(title_zh="Gateway lost pages")
    assert "W role: is cause, but no cause names the signature: it would be found and never used" in remarks(role="cause")
    assert "W patterns.core.regex: begins with .*, which says nothing" in remarks(source=".*gateway: lost")
    assert "W patterns.core.regex: ends with .*?, which says nothing" in remarks(source="gateway: lost .*?")
    assert any("line number of the source" in r for r in remarks(source=r"gateway\.py:42\] gateway: lost"))
    assert any("101 characters of fixed text" in r for r in remarks(source="gateway: lost " + "x" * 87))


def test_advice_is_no_warning() -> None:
    """An idle near miss, a version without its source."""
    assert remarks(versions=(Version("acme", "1.0", ""),)) == ["A versions: does not say where acme prints it"]
    idle = (BASE.examples[0], replace(BASE.examples[1], text="another thing"))
    assert remarks(examples=idle) == ["A patterns.core: loosened to an anchor, it would pass all examples"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "TIME_LIMIT_S", 0.05)


@pytest.mark.usefixtures("impatient")
def test_slow_regexes_are_found() -> None:
    """Polynomial explosion passes the safety rules and is found by running hostile text."""
    (found,) = remarks(hostile=True, source=r"gateway: lost .*?\d+.*?of.*?\d+.*?pages")[:1]
    assert found.startswith(("W patterns.core.regex: hits the time limit", "W patterns.core.regex: takes "))


@pytest.mark.usefixtures("impatient")
def test_exponential_regexes_are_found() -> None:
    """Also what should have been refused before."""
    slow = probe.slowest(BASE, Pattern("core", r"gateway: lost (\d|\d\d)+ of \d+ pages", {}))
    assert slow is not None
    assert slow.cut


def test_the_library_has_no_warnings_but_slow_ones() -> None:
    """All of the built-in library, without the hostile text, which takes longer."""
    found = [str(r.problem) for r in lint(BUILT_IN, BUILT_IN.signatures, hostile=False) if r.warning]
    assert found == []


def test_a_sample_of_the_library_stands_hostile_text() -> None:
    """Every fifteenth signature, on lines made to slow it down, stays below the limit of a search."""
    for identity in sorted(BUILT_IN.signatures)[::15]:
        signature = BUILT_IN.signatures[identity]
        for pattern in signature.patterns:
            slow = probe.slowest(signature, pattern, limit_s=1.0)
            assert slow is None, (identity, slow)
