"""`tests/diagnosis/build.py` as a fixture: import mode importlib knows no sibling modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("build.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def b() -> ModuleType:
    """The builder: `b.World()`, `b.at()`, `b.oom_text()` …"""
    return _load("diagnosis_build")
