"""Competition of causes: contradictions, folding, ties, and what a confidence word asks for."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis import rank
from forensics.diagnosis.model import Confidence, Hypothesis
from forensics.model import Basis, Event, Finding, Locator, Role, Severity
from forensics.report import text
from forensics.signatures import Cause, Library, Text

EMPTY = Text("", "")


def cause(
    name: str,
    decisive: tuple[str, ...] = (),
    supporting: tuple[str, ...] = (),
    contradicting: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
    onset: tuple[str, ...] = (),
) -> Cause:
    return Cause(name, EMPTY, EMPTY, EMPTY, decisive, supporting, contradicting, explains, onset, (), (), (), EMPTY, ())


def library(*causes: Cause) -> Library:
    return Library({}, {c.id: c for c in causes})


def finding(b: ModuleType, name: str, seconds: float | None = 0.0, line: int = 1, role: Role = Role.CAUSE) -> Finding:
    event = Event(Locator("a", line, line), "log", "engine", name, time=b.at(seconds))
    return Finding("", name, name, role, Severity.ERROR, event, {})


def ids(hypotheses: tuple[Hypothesis, ...]) -> list[str]:
    return [h.cause.id for h in hypotheses]


A = cause("a", decisive=("x.a",), supporting=("x.more",), explains=("x.b",))
B = cause("b", decisive=("x.b",), supporting=("x.more",), contradicting=("x.against",))


def test_a_decisive_finding_beats_any_number_of_supporting_ones(b: ModuleType) -> None:
    """Support alone never decides."""
    found = [finding(b, "x.b"), *(finding(b, "y.s", line=n) for n in range(2, 9))]
    weak = cause("weak", decisive=("x.none",), supporting=("y.*",))
    assert ids(rank.rank(library(weak, B), found, 100))[0] == "b"


def test_fewer_contradictions_win(b: ModuleType) -> None:
    """A contradicted cause loses to one without objections, even when it came first."""
    other = cause("c", decisive=("x.c",))
    found = [finding(b, "x.b", 0), finding(b, "x.c", 60, 2), finding(b, "x.against", 1, 3)]
    ranked = rank.rank(library(B, other), found, 100)
    assert ids(ranked) == ["c", "b"]
    assert ranked[1].confidence is Confidence.POSSIBLE


def test_the_earlier_of_two_causes_wins(b: ModuleType) -> None:
    """Without folding, time decides; the same moment does not."""
    one, two = cause("one", decisive=("x.1",)), cause("two", decisive=("x.2",), supporting=("x.more",))
    late = [finding(b, "x.1", 100), finding(b, "x.2", 0, 2)]
    assert ids(rank.rank(library(one, two), late, 100)) == ["two", "one"]
    together = [finding(b, "x.1", 0), finding(b, "x.2", 1, 2), finding(b, "x.more", 1, 3)]
    assert ids(rank.rank(library(one, two), together, 100))[0] == "two", "more support at the same moment"


def test_a_consequence_is_folded_under_its_cause(b: ModuleType) -> None:
    """What an earlier cause explains is taken away from the other."""
    ranked = rank.rank(library(A, B), [finding(b, "x.a", 0), finding(b, "x.b", 300, 2)], 100)
    assert ids(ranked) == ["a"]


def test_a_consequence_may_be_logged_a_little_earlier(b: ModuleType) -> None:
    """NCCL notices a lost peer before the driver prints its Xid; an hour earlier it is no consequence."""
    soon = rank.rank(library(A, B), [finding(b, "x.a", 60), finding(b, "x.b", 0, 2)], 100)
    assert ids(soon)[0] == "a"
    long_before = rank.rank(library(A, B), [finding(b, "x.a", 3600), finding(b, "x.b", 0, 2)], 100)
    assert ids(long_before)[0] == "b"


@pytest.mark.parametrize(
    ("basis", "doubt_s", "source", "first"),
    [
        (Basis.ZONE_ASSUMED, 50400.0, "kernel.log", "a"),
        (Basis.ZONE_SOLVED, 1.0, "kernel.log", "b"),
        (Basis.ZONE_ASSUMED, 3600.0, "kernel.log", "b"),
        (Basis.ZONE_ASSUMED, 50400.0, "a", "b"),
    ],
)
def test_a_clock_in_an_assumed_zone_proves_no_order(
    b: ModuleType, basis: Basis, doubt_s: float, source: str, first: str
) -> None:
    """A cause may stand hours behind its consequence by such a clock; within one file, or within its doubt, not."""
    cause_line = finding(b, "x.a", 7200.0)
    event = replace(cause_line.event, locator=Locator(source, 1, 1), time=b.at(7200.0, doubt_s, basis))
    ranked = rank.rank(library(A, B), [replace(cause_line, event=event), finding(b, "x.b", 0.0, 2)], 20)
    assert ids(ranked)[0] == first


def test_a_consequence_without_a_time_is_folded_too(b: ModuleType) -> None:
    """A log without stamps beside a kernel line with one: nothing proves that the consequence came first."""
    ranked = rank.rank(library(A, B), [finding(b, "x.a", 60), finding(b, "x.b", None, 2)], 100)
    assert ids(ranked) == ["a"]


def test_a_contradicted_cause_explains_nothing(b: ModuleType) -> None:
    """A cause with an objection takes nothing away from its rivals."""
    doubtful = replace(A, contradicting=("x.against",))
    found = [finding(b, "x.a", 0), finding(b, "x.b", 10, 2), finding(b, "x.against", 0, 3)]
    plain = replace(B, contradicting=())
    assert ids(rank.rank(library(doubtful, plain), found, 100))[0] == "b"


def test_causes_that_explain_each_other(b: ModuleType) -> None:
    """The earlier one keeps its finding and takes the other's."""
    one = cause("one", decisive=("x.1",), explains=("x.2",))
    two = cause("two", decisive=("x.2",), explains=("x.1",))
    for first, second, winner in ((0, 60, "one"), (60, 0, "two")):
        ranked = rank.rank(library(one, two), [finding(b, "x.1", first), finding(b, "x.2", second, 2)], 100)
        assert ids(ranked) == [winner]


def test_a_family_names_all_its_members(b: ModuleType) -> None:
    """`nccl.*` is every finding of the family, and no other family that begins alike."""
    assert rank.matches(("nccl.*",), finding(b, "nccl.error"))
    assert not rank.matches(("nccl.*",), finding(b, "ncclx.error"))
    assert rank.matches(("nccl.error",), finding(b, "nccl.error"))
    assert not rank.matches(("nccl.error",), finding(b, "nccl.error_two"))


def word(b: ModuleType, found: list[Finding], lines: int = 100, of: Cause = A) -> str:
    return str(rank.rank(library(of), found, lines)[0].confidence)


def test_confidence_words(b: ModuleType) -> None:
    """Established asks for a second, other finding elsewhere, and for ten lines; an objection leaves `possible`."""
    decisive, more = finding(b, "x.a"), finding(b, "x.more", 5, 2, Role.SYMPTOM)
    assert word(b, [decisive, more]) == "established"
    assert word(b, [decisive]) == "likely"
    assert word(b, [decisive, finding(b, "x.more", 0, 1)]) == "likely", "the same line twice corroborates nothing"
    assert word(b, [decisive, finding(b, "x.a", 5, 2)]) == "likely", "the same finding twice corroborates nothing"
    assert word(b, [decisive, more], lines=9) == "likely"
    assert word(b, [more]) == "possible"
    against = replace(A, contradicting=("x.against",))
    assert word(b, [decisive, more, finding(b, "x.against", 0, 3)], of=against) == "possible"


def test_possible_has_a_reason(b: ModuleType) -> None:
    """What speaks against it, that only the family is certain, or that somebody only told so."""
    one = cause("c", decisive=("x.a", "derived.oomkilled_status"), contradicting=("x.against",))

    def doubt(*found: Finding) -> str:
        return rank.rank(library(one), list(found), 100)[0].doubt

    told = replace(finding(b, "x.a"), hearsay=True)
    assert doubt(finding(b, "x.a"), finding(b, "x.against", 0, 3)) == "against"
    assert doubt(finding(b, "derived.oomkilled_status")) == "family"
    assert doubt(told) == "hearsay"
    assert doubt(finding(b, "x.a")) == ""
    for language in ("en", "zh"):
        assert {"against", "family", "hearsay", "codes", "whose"} == set(text.texts(language)["doubt"])


@pytest.mark.parametrize("name", sorted(rank.WEAK))
def test_weak_findings_never_give_more_than_possible(b: ModuleType, name: str) -> None:
    """They fix the family of a cause, not the member."""
    one = cause("c", decisive=(name, "x.strong"), supporting=("x.more",))
    found = [finding(b, name), finding(b, "x.more", 5, 2)]
    assert word(b, found, of=one) == "possible"
    assert word(b, [*found, finding(b, "x.strong", 0, 3)], of=one) == "established"


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_weak_finding_loses_to_a_strong_one(b: ModuleType, seconds: float) -> None:
    """A verdict that is only possible stands above no alternative that is likely, whichever came first."""
    weak = cause("a", decisive=("derived.oom_unknown_site",))
    strong = cause("b", decisive=("x.b",))
    ranked = rank.rank(library(weak, strong), [finding(b, "derived.oom_unknown_site"), finding(b, "x.b", seconds, 2)], 100)
    assert ids(ranked)[0] == "b"


@pytest.mark.parametrize("name", sorted(rank.UNKNOWN_ERRORS))
def test_unknown_exceptions_are_never_established(b: ModuleType, name: str) -> None:
    """Nobody has described this error: a bug is likely, not proven."""
    one = cause("app", decisive=(name,), supporting=("x.more",))
    assert word(b, [finding(b, name), finding(b, "x.more", 5, 2)], of=one) == "likely"


def test_ties_are_ordered_by_name_only(b: ModuleType) -> None:
    """Equal evidence: both stay, in a fixed order."""
    one, two = cause("m", decisive=("x.t",)), cause("k", decisive=("x.t",))
    assert ids(rank.rank(library(one, two), [finding(b, "x.t")], 100)) == ["k", "m"]
    assert ids(rank.rank(library(two, one), [finding(b, "x.t")], 100)) == ["k", "m"]


def test_alternatives_without_a_fault_of_their_own_are_left_out(b: ModuleType) -> None:
    """A cause that only shares the winner's support is no alternative."""
    ranked = rank.rank(library(A, B), [finding(b, "x.a"), finding(b, "x.more", 0, 2, Role.SYMPTOM)], 100)
    assert ids(ranked) == ["a"]


def test_every_cause_of_the_library_can_win(b: ModuleType) -> None:
    """Each cause wins with its own decisive findings alone, whichever of them was seen."""
    everything: Any = b.library()
    for one in everything.causes.values():
        if one.id in rank.NO_FAULT or one.id in ("kv_saturation", "request_rejected"):
            continue
        winners = {
            rank.rank(everything, [finding(b, name)], 100)[0].cause.id
            for name in one.decisive
            if not name.endswith(".*")
        }
        assert one.id in winners, one.id


def test_the_reason_comes_before_the_count_of_errors(b: ModuleType) -> None:
    """pydantic counts the errors above their words; where a signature knows those, they are what is to be read."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.11.0", "engine_args")
    head = w.add("a", 1, "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig", level="ERROR")
    first = w.diagnosis().first_cause
    assert first is not None
    assert first.locator == head.locator
    said = "Value error, Total number of attention heads (20) must be divisible by tensor parallel size (8)."
    reason = w.add("a", 1, said, level="ERROR")
    first = w.diagnosis().first_cause
    assert first is not None
    assert first.locator == reason.locator
