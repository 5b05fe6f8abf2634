"""`make eval`: what it prints over the samples is a snapshot, so that no change of the diagnosis goes unseen."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from syrupy.assertion import SnapshotAssertion


def _evaluation() -> ModuleType:
    """`tests/evaluate.py`, which is no package's module (import mode importlib)."""
    spec = importlib.util.spec_from_file_location("evaluate", Path(__file__).with_name("evaluate.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluate"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


evaluate = _evaluation()


def test_the_evaluation_of_the_samples(collected: Callable[[Path], Path], snapshot: SnapshotAssertion) -> None:
    """A line per case, then the scores."""
    scores = [evaluate.score(replace(truth, bundle=collected(truth.bundle))) for truth in evaluate.samples()]
    assert [*(score.line() for score in scores), *evaluate.summary(scores)] == snapshot


def test_a_score_tells_right_from_wrong() -> None:
    """Exact, acceptable, harmful, abstained; a decoy as evidence; a missing number; the mean over causes."""
    truth = evaluate.Truth("a", Path(), "ray_oom", ("host_oom.node",), ("healthy",), ("log:3",), key_facts={"x_gib": 1.0})
    other = replace(truth, name="b", cause="eviction")

    def case(of: object, cause: str, place: str = "log:3", fallen: tuple[str, ...] = (), missing: tuple[str, ...] = ()) -> object:
        return evaluate.Score(of, cause, "likely", place, fallen, missing)

    scores = [
        case(truth, "ray_oom"),
        case(truth, "host_oom.node", "log:9"),
        case(truth, "healthy", fallen=("log:5",), missing=("x_gib",)),
        case(truth, "insufficient_evidence", "-"),
        case(other, "eviction"),
    ]
    assert [score.line()[:4] for score in scores] == ["ok  ", "acc ", "HARM", "MISS", "ok  "]
    assert list(evaluate.summary(scores)) == [
        "5 cases, 2 causes",
        "exact 2, right 3, macro per cause 0.625",
        "harmful 1, abstained 1",
        "first cause 3, decoy falls 1",
        "key facts 4/5",
        "likely: 3 right of 5",
    ]


def test_numbers_are_found_in_any_unit() -> None:
    """A number counts when it is a key fact, in another common unit, or printed in the report."""
    facts = {"limit_kib": 67_108_864, "comm": "python3"}
    assert evaluate.fact_found(64, facts, "")
    assert evaluate.fact_found("python3", facts, "")
    assert evaluate.fact_found([64, "python3"], facts, "")
    assert evaluate.fact_found(1234, {}, "after 1 234 s")
    assert not evaluate.fact_found(65, facts, "")
    assert not evaluate.fact_found(True, {"x": 1.0}, "")
