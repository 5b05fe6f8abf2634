"""From solved clocks to the times of events and samples."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from forensics.clocks.apply import after_all, between
from forensics.model import Basis, Scope, Timestamp

POD = Scope(pod="vllm-llama-0")


def stamp(utc_s: float, doubt_s: float = 1.0) -> Timestamp:
    return Timestamp(utc_s, doubt_s, Basis.EXACT)


def test_a_line_between_two_stamps() -> None:
    """In a short gap by its place among the lines, in a long one at the start, always with the whole interval."""
    near = between(stamp(100.0), stamp(110.0), 0.25)
    assert near == Timestamp(102.5, 8.5, Basis.FILE_ORDER)
    far = between(stamp(100.0), stamp(4000.0), 0.5)
    assert far == Timestamp(100.0, 3901.0, Basis.FILE_ORDER)


def test_a_line_behind_the_last_stamp() -> None:
    """Until the container's end, else for a day."""
    assert after_all(stamp(100.0), 130.0) == Timestamp(100.0, 31.0, Basis.FILE_ORDER)
    assert after_all(stamp(100.0), None) == Timestamp(100.0, 86401.0, Basis.FILE_ORDER)
    assert after_all(None, None) is None


def log(b: ModuleType) -> object:
    """A container log with lines that carry no stamp."""
    found = b.Print("pods/0.log", scope=POD)
    start = b.at("2026-05-06 02:00:00")
    for number in range(3):
        found.line(start + 10 * number, b.message(number), (b.stamp(b.INSTANT, "cri", start + 10 * number, "UTC", 1e-6),), "engine")
        found.line(start + 10 * number + 4, "INFO: GET /health 200", (), "engine")
    return found


def test_lines_without_stamp_lie_between_their_neighbours(b: ModuleType) -> None:
    """uvicorn prints no time: file order bounds it."""
    one = log(b)
    solved = b.solve(one)
    bare = [event for event in solved.events if not event.stamps]
    assert all(event.time.basis is Basis.FILE_ORDER for event in bare)
    assert all(abs(event.time.utc_s - one.truth[event.locator.line]) <= event.time.uncertainty_s for event in bare)
    assert all(event.time.uncertainty_s <= 11 for event in bare[:2])


def test_the_end_of_a_container_bounds_its_last_lines(b: ModuleType) -> None:
    """Nothing is written after the end that the API names."""
    one, api = log(b), b.Print("pod.json", "k8s.objects")
    end = b.at("2026-05-06 02:00:30")
    api.line(end, "ended", (b.stamp(b.INSTANT, "k8s", end),), "k8s", "container_terminated", POD)
    solved = b.solve(one, api)
    last = [event for event in solved.events if event.locator.source == one.path][-1]
    assert last.time.latest_s <= end + 1


def test_kernel_continuation_lines_keep_the_stamp_above(b: ModuleType) -> None:
    """`Mem-Info:` is followed by lines without a stamp, printed in the same instant."""
    ring = b.Print("dmesg.txt")
    true_s = b.at("2026-05-06 02:00:00")
    ring.line(true_s, b.message(1), (b.stamp(b.INSTANT, "dmesg", true_s, "UTC", 1e-6),), "kernel")
    ring.line(true_s, "active_anon:123 inactive_anon:456", (), "kernel")
    ring.line(true_s + 900, b.message(2), (b.stamp(b.INSTANT, "dmesg", true_s + 900, "UTC", 1e-6),), "kernel")
    times = [event.time.utc_s for event in b.solve(ring).events]
    assert times[1] == times[0]


def test_documents_have_no_order(b: ModuleType) -> None:
    """A pod's specification is not dated by the state that happens to stand above it."""
    api = b.Print("pod.json", "k8s.objects")
    true_s = b.at("2026-05-06 02:00:00")
    api.line(true_s, "ended", (b.stamp(b.INSTANT, "k8s", true_s),), "k8s", "container_terminated", POD)
    api.line(0, "pod spec", (), "k8s", "pod_spec", POD)
    assert b.solve(api).events[1].time.utc_s is None


def test_a_buffered_line_was_written_earlier(b: ModuleType) -> None:
    """The collector's stamp is finer, unless it is minutes late: then the line's own stamp tells."""
    one = b.Print("pods/0.log", scope=POD)
    start = b.at("2026-05-06 02:00:00")
    for number in range(10):
        true_s = start + 10 * number
        late = 300.0 if number == 7 else 0.004
        stamps = (b.stamp(b.INSTANT, "cri", true_s + late, "UTC", 1e-6), b.stamp(b.YEARLESS, "engine", true_s))
        one.line(true_s, b.message(number), stamps, "engine")
    solved = b.solve(one)
    assert max(abs(error) for error in b.errors(solved, one)) <= 1
    assert solved.events[0].time.uncertainty_s < 0.1
    assert solved.events[7].time.uncertainty_s >= 1


def test_series_become_unix_time(b: ModuleType) -> None:
    """Samples of a solved lane are converted, those without a stamp are not a number."""
    one = b.Print("pods/0.log", scope=POD)
    start = b.at("2026-12-31 23:59:00")
    rows = []
    for number in range(10):
        true_s = start + 20 * number
        inner = b.stamp(b.YEARLESS, "engine", true_s)
        one.line(true_s, b.message(number), (b.stamp(b.INSTANT, "cri", true_s + 0.01, "UTC", 1e-6), inner), "engine")
        rows.append((inner.seconds, 1.0))
    one.series("kv_cache_usage_pct", b.YEARLESS, "engine", [*rows[1:], (math.nan, 2.0)])
    solved = b.solve(one)
    assert solved.samples[0].form is b.INSTANT
    assert list(solved.samples[0].stamps[:9]) == [start + 20 * number for number in range(1, 10)]
    assert math.isnan(solved.samples[0].stamps[9])


def test_nothing_in_nothing_out(b: ModuleType) -> None:
    """An empty bundle, and one with times that no calendar knows, raise nothing."""
    assert b.solve().events == ()
    one = b.Print("odd.log")
    for value in (math.nan, math.inf, -1.0, 1e18):
        one.line(0, "x", (b.RawStamp(b.LOCAL, "journal", value),), "host")
    assert [event.time.utc_s for event in b.solve(one).events] == [None] * 4


def test_the_same_bundle_gives_the_same_times(b: ModuleType) -> None:
    """Two runs agree to the last bit."""
    times = [b.at("2026-05-06 02:00:00") + 60.0 * i for i in range(12)]
    one = b.journal("journal.txt", "Asia/Tokyo", times)
    first, second = b.solve(one, log(b)), b.solve(one, log(b))
    assert first == second
    assert first.events[0].time.utc_s == pytest.approx(times[0])
