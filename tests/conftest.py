"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def captures() -> Path:
    """Genuine output of real tools, where a checkout has it beside the project; tests that need it skip elsewhere."""
    folder = ROOT.parent / "shared" / "captures"
    if not folder.is_dir():
        pytest.skip("no captures beside this checkout")
    return folder
