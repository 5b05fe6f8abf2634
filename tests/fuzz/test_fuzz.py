"""Every input that ever failed, and a few fresh ones of each kind. `make fuzz` runs for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.inputs import STRATEGIES
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, Phase, given, settings

FOUND = sorted((Path(__file__).resolve().parent / "regressions").glob("*/*"))
EXAMPLES = {"analyze": 3, "report": 2, "signature": 3}
"""The slow ones; all others get 20."""


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_failed_once(path: Path) -> None:
    """Inputs that made the program raise, hang or lie; named after the defect."""
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_changed_samples(name: str) -> None:
    """The harness itself works, and nothing fails at first sight."""

    @settings(
        max_examples=EXAMPLES.get(name, 20), derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(STRATEGIES[name])
    def fresh(data: bytes) -> None:
        TARGETS[name](data)

    fresh()
