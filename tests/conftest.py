"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COLLECTED_S = 1795953600.0
"""When all samples were collected, as the times of their files say; a checkout makes its own."""


@pytest.fixture
def collected(tmp_path: Path) -> Callable[[Path], Path]:
    """Makes a copy of a sample's bundle whose files have the time of the collection."""

    def copy(bundle: Path) -> Path:
        place = tmp_path / bundle.parent.name / bundle.name
        place.parent.mkdir()
        shutil.copytree(bundle, place) if bundle.is_dir() else shutil.copyfile(bundle, place)
        for path in (place, *place.rglob("*")):
            os.utime(path, (COLLECTED_S, COLLECTED_S))
        return place

    return copy


@pytest.fixture(scope="session")
def captures() -> Path:
    """Genuine output of real tools, where a checkout has it beside the project; tests that need it skip elsewhere."""
    folder = ROOT.parent / "shared" / "captures"
    if not folder.is_dir():
        pytest.skip("no captures beside this checkout")
    return folder
