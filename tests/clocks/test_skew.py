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


def test_a_time_service_tells_its_offset(b: ModuleType) -> None:
    """Without an API server, `chronyc tracking` says how far its node is off; assumed, for it holds for the capture only."""
    times = [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(12)]
    journal = b.journal("journal.txt", "Asia/Kolkata", times, skew_s=-42.0)
    told = b.Print("chrony.txt", "host.state", NODE)
    told.line(0, "chronyc tracking", (), "clock", offset_s=-42.1, leap_status="Normal")
    solved = b.solve(journal, told)
    clock = b.clock(solved, "journal.txt", "journal")
    assert (clock.verdict, clock.skew_s) == ("assumed", -42.1)
    assert max(abs(error) for error in b.errors(solved, journal)) <= 2
    assert all(event.time.uncertainty_s > 42 for event in solved.events if event.time.utc_s is not None)


@pytest.mark.parametrize("fields", [{"offset_s": 0.0004, "leap_status": "Normal"}, {"offset_s": 50.0, "leap_status": "Not synchronised"}])
def test_a_time_service_that_says_nothing(b: ModuleType, fields: dict[str, object]) -> None:
    """An offset below a second, and one from a service that knows no time."""
    journal = b.journal("journal.txt", "Asia/Kolkata", [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(12)])
    told = b.Print("chrony.txt", "host.state", NODE)
    told.line(0, "chronyc tracking", (), "clock", **fields)
    assert b.clock(b.solve(journal, told), "journal.txt", "journal").skew_s == 0


def test_the_api_server_knows_better(b: ModuleType) -> None:
    """Measured comparisons beat what a node says of itself."""
    told = b.Print("chrony.txt", "host.state", NODE)
    told.line(0, "chronyc tracking", (), "clock", offset_s=300.0, leap_status="Normal")
    clock = b.clock(b.solve(events_json(b, 90.2, 5), told), "events.json", "k8s")
    assert (clock.verdict, clock.skew_s) == ("solved", pytest.approx(90.2, abs=1))


def test_a_step_back_inside_the_hour_that_occurs_twice(b: ModuleType) -> None:
    """A service sets the clock back by three minutes while summer time ends: no step forward is made of it."""
    begin, set_at = b.at("2025-11-02 05:20:00"), b.at("2025-11-02 06:46:30")
    one = b.Print("journal.txt", scope=NODE)
    for serial in range(29):
        true_s = begin + 200.0 * serial
        ahead_s = 187.0 if true_s < set_at else 0.0
        stamps = (b.stamp(b.YEARLESS, "journal", true_s + ahead_s, "America/Chicago"),)
        if serial < 20:
            stamps += (b.stamp(b.INSTANT, "runtime", true_s + ahead_s, "UTC", 1e-6),)
        if true_s - 200 < set_at <= true_s:
            said = (b.stamp(b.YEARLESS, "journal", set_at + 0.1, "America/Chicago"),)
            one.line(set_at + 0.1, "System clock was stepped by -187.000000 seconds", said, "clock")
        one.line(true_s, b.message(serial), stamps, "runtime")
    solved = b.solve(one)
    doubts = [event.time.uncertainty_s for event in solved.events]
    assert all(abs(error) <= max(doubt, 1.0) for error, doubt in zip(b.errors(solved, one), doubts, strict=True))
    assert not any("forward" in diagnostic.message for diagnostic in solved.diagnostics)
