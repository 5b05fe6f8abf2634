"""The examples guard the patterns: a deleted or loosened pattern is noticed."""

from __future__ import annotations

import pytest

from forensics.pipeline import load_library
from forensics.signatures import mutation

LIBRARY = load_library()
ALL = [(s, p) for s in LIBRARY.signatures.values() for p in s.patterns]
SAMPLE = [pytest.param(s, p, id=f"{s.id}-{p.name}") for s, p in ALL[::9]]
SURVIVORS_PCT = 15
"""Patterns that are hardly more than an anchor with a number behind it survive being loosened to just that."""


@pytest.mark.parametrize(("signature", "pattern"), SAMPLE)
def test_deleting_a_pattern_breaks_the_law(signature: object, pattern: object) -> None:
    """Every pattern is needed by an example."""
    assert not mutation.survives(mutation.without(signature, pattern))


def test_loosening_a_pattern_breaks_the_law() -> None:
    """Patterns reduced to an anchor and their groups: nearly all are noticed, and lint names the others."""
    looser = [(f"{s.id}-{p.name}", mutation.loosened(s, p)) for s, p in ALL[::3]]
    tried = [(name, spoilt) for name, spoilt in looser if spoilt is not None]
    survivors = [name for name, spoilt in tried if mutation.survives(spoilt)]
    assert len(tried) > 150
    assert len(survivors) * 100 <= SURVIVORS_PCT * len(tried), survivors


def test_an_untouched_signature_survives() -> None:
    """The check tells spoilt from sound."""
    assert all(mutation.survives(signature) for signature, _ in ALL[::25])
