"""Clocks that run wrong, and clocks that are set."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from forensics.model import Basis, Scope

NODE = Scope(host="gpu-node-7")


def events_json(b: ModuleType, skew_s: float, count: int, path: str = "events.json") -> object:
    """Events of a kubelet whose clock is wrong, with the API server's own time of storing them."""
    found = b.Print(path, "k8s.objects")
    for number in range(count):
        true_s = b.at("2026-05-06 02:00:00") + 61.3 * number
        seen = float(math.floor(true_s + skew_s))
        found.line(true_s, f"Unhealthy: {number}", (b.stamp(b.INSTANT, "k8s", seen),), "k8s", "k8s_event", NODE,
                   reason="Unhealthy", component="kubelet", first_seen_s=seen, created_s=float(math.floor(true_s + 0.05)))  # fmt: skip
    return found


@pytest.mark.parametrize("skew_s", [90.2, -412.7])
def test_zone_and_skew_are_kept_apart(b: ModuleType, skew_s: float) -> None:
    """A node on Kolkata time, minutes off: both are found, every lane of the node is corrected."""
    times = [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(12)]
    journal = b.journal("journal.txt", "Asia/Kolkata", times, skew_s=skew_s)
    solved = b.solve(journal, events_json(b, skew_s, 5))
    clock = b.clock(solved, "journal.txt", "journal")
    assert (clock.zone, clock.offset_s, clock.verdict) == ("UTC+05:30", -19800, "solved")
    assert clock.skew_s == pytest.approx(skew_s, abs=1)
    assert clock.basis is Basis.SKEW_CORRECTED
    assert max(abs(error) for error in b.errors(solved, journal)) <= 2
    assert any("gpu-node-7" in diagnostic.message for diagnostic in solved.diagnostics)


def test_a_right_clock_is_left_alone(b: ModuleType) -> None:
    """Differences of a second are rounding."""
    solved = b.solve(events_json(b, 0.0, 6))
    assert b.clock(solved, "events.json", "k8s").skew_s == 0
    assert all(event.time.basis is Basis.EXACT for event in solved.events)


def test_one_comparison_is_no_proof(b: ModuleType) -> None:
    """A skew from one event is assumed, and the uncertainty reaches back to no skew at all."""
    solved = b.solve(events_json(b, 90.2, 1))
    assert b.clock(solved, "events.json", "k8s").verdict == "assumed"
    assert solved.events[0].time.uncertainty_s > 90


def test_comparisons_that_disagree_correct_nothing(b: ModuleType) -> None:
    """An event list with delays of minutes shows no skew."""
    one = b.Print("events.json", "k8s.objects")
    for number, off in enumerate([0.0, 300.0, 45.0, -200.0, 800.0]):
        seen = b.at("2026-05-06 02:00:00") + 60.0 * number
        one.line(seen, f"Unhealthy: {number}", (b.stamp(b.INSTANT, "k8s", seen),), "k8s", "k8s_event", NODE,
                 component="kubelet", first_seen_s=seen, created_s=seen - off)  # fmt: skip
    solved = b.solve(one)
    assert b.clock(solved, "events.json", "k8s").verdict == "refused"
    assert all(error == 0 for error in b.errors(solved, one))


def test_the_user_knows_the_skew(b: ModuleType) -> None:
    """`--skew HOST=SECONDS` is taken as it is."""
    journal = b.journal("journal.txt", "UTC", [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(6)], skew_s=30.0)
    solved = b.solve(journal, skew=(("gpu-node-7", 30.0),))
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1


def set_clock(b: ModuleType, ahead_s: float, said: str) -> tuple[object, object]:
    """A node whose time service sets the clock: journal in local time, container log by the same clock."""
    journal = b.Print("journal.txt", scope=NODE)
    log = b.Print("pods/0.log", scope=Scope(host="gpu-node-7", pod="vllm-llama-0"))
    start = b.at("2026-05-06 02:00:00")
    for serial in range(30):
        true_s = start + 20.0 * serial
        wrong = ahead_s if serial < 12 else 0.0
        if serial == 12 and said:
            journal.line(true_s, said, (b.stamp(b.YEARLESS, "journal", true_s, "Asia/Tokyo"),), "clock")
        stamps = (b.stamp(b.YEARLESS, "journal", true_s + wrong, "Asia/Tokyo"),
                  b.stamp(b.INSTANT, "runtime", true_s + wrong, "UTC", 1e-6))  # fmt: skip
        journal.line(true_s, b.message(serial), stamps, "runtime")
        log.line(true_s + 1, b.message(serial + 90), (b.stamp(b.INSTANT, "cri", true_s + 1 + wrong, "UTC", 1e-6),), "engine")
    return journal, log


@pytest.mark.parametrize("ahead_s", [45.0, -45.0, 250.0])
def test_a_step_with_a_witness(b: ModuleType, ahead_s: float) -> None:
    """chronyd says by how much: what was written before is moved, in all files of the node."""
    journal, log = set_clock(b, ahead_s, f"System clock was stepped by {-ahead_s:.6f} seconds")
    solved = b.solve(journal, log)
    assert max(abs(error) for one in (journal, log) for error in b.errors(solved, one)) <= 2
    assert "was set" in b.clock(solved, "journal.txt", "journal").note


def test_a_step_back_without_a_witness(b: ModuleType) -> None:
    """Times that fall show a step; which side is right is open, so the earlier side has the doubt."""
    journal, log = set_clock(b, 45.0, "")
    solved = b.solve(journal, log)
    for one in (journal, log):
        times = [event.time for event in solved.events if event.locator.source == one.path]
        assert all(abs(e) <= max(1, t.uncertainty_s) for e, t in zip(b.errors(solved, one), times, strict=True))


def test_names_with_and_without_domain(b: ModuleType) -> None:
    """The API says `gpu-node-7.example.net`, the journal `gpu-node-7`: one clock."""
    journal = b.journal("journal.txt", "UTC", [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(6)], skew_s=90.2)
    api = events_json(b, 90.2, 5)
    from dataclasses import replace

    api.events = [replace(event, scope=Scope(host="gpu-node-7.example.net")) for event in api.events]
    solved = b.solve(journal, api)
    assert max(abs(error) for error in b.errors(solved, journal)) <= 2
