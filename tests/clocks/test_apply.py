"""From solved clocks to the times of events and samples."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from forensics.clocks.undated import after_all, between
from forensics.model import Basis, Scope, Timestamp

POD = Scope(pod="vllm-llama-0")


def stamp(utc_s: float, doubt_s: float = 1.0) -> Timestamp:
    return Timestamp(utc_s, doubt_s, Basis.EXACT)


def test_a_line_between_two_stamps() -> None:
    """In a short gap by its share, in a long one at the start, always with the whole interval."""
    near = between(stamp(100.0), stamp(110.0), 0.25)
    assert near == Timestamp(102.5, 8.5, Basis.FILE_ORDER)
    far = between(stamp(100.0), stamp(4000.0), 0.5)
    assert (far.utc_s, far.uncertainty_s) == pytest.approx((100.001, 3900.999))


def test_a_line_follows_its_predecessor() -> None:
    """Closely, and never before a line without a stamp that stands above it; the gap stays inside the uncertainty."""
    first = between(stamp(100.0), stamp(110.0))
    assert (first.utc_s, first.uncertainty_s) == pytest.approx((100.001, 10.999))
    second = between(stamp(100.0), stamp(110.0), later_than_s=104.0)
    assert (second.utc_s, second.uncertainty_s) == pytest.approx((104.001, 6.999))
    assert between(stamp(100.0), stamp(100.0)) == Timestamp(100.0, 1.0, Basis.FILE_ORDER)
    third = after_all(stamp(100.0), 130.0, 100.002)
    assert (third.utc_s, third.latest_s) == pytest.approx((100.003, 131.003))


def test_a_line_behind_the_last_stamp() -> None:
    """Until the container's end, else for a day."""
    bounded = after_all(stamp(100.0), 130.0)
    assert (bounded.utc_s, bounded.uncertainty_s) == pytest.approx((100.001, 31.0))
    assert after_all(stamp(100.0), None).uncertainty_s == pytest.approx(86401.0)
    assert after_all(None, None) is None


def test_requests_are_spread_and_other_lines_follow(b: ModuleType) -> None:
    """Access lines lie evenly between two stamps; the start-up lines above and below them stay in order."""
    one = b.Print("pods/0.log", scope=POD)
    start = b.at("2026-05-06 02:00:00")
    one.line(start, b.message(1), (b.stamp(b.INSTANT, "cri", start, "UTC", 1e-6),), "engine")
    one.line(start + 0.1, "Application startup complete.", (), "engine")
    for number in range(3):
        one.line(start + 5 + number, "GET /health 200", (), "engine", "access")
    one.line(start + 9, "Shutting down", (), "engine")
    one.line(start + 10, b.message(2), (b.stamp(b.INSTANT, "cri", start + 10, "UTC", 1e-6),), "engine")
    times = [event.time.utc_s - start for event in b.solve(one).events]
    assert times[1] == pytest.approx(0.001, abs=1e-6)
    assert times[2:5] == pytest.approx([10 * place / 6 for place in (2, 3, 4)])
    assert times[5] == pytest.approx(times[4] + 0.001, abs=1e-6)


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


def test_lines_above_the_first_stamp(b: ModuleType) -> None:
    """What a container prints before its first stamped line was written since its start."""
    start = b.at("2026-05-06 02:00:00")
    one, api = b.Print("pods/0.log", scope=POD), b.Print("pod.json", "k8s.objects")
    one.line(start + 1, "fetching the configuration", (), "container")
    one.line(start + 14, b.message(1), (b.stamp(b.INSTANT, "cri", start + 14, "UTC", 1e-6),), "engine")
    api.line(start, "started", (b.stamp(b.INSTANT, "k8s", start),), "k8s", "container_started", POD)
    first = b.solve(one, api).events[0]
    assert first.time.uncertainty_s <= 17
    assert abs(first.time.utc_s - (start + 1)) <= first.time.uncertainty_s
    assert b.solve(one).events[0].time.uncertainty_s > 80000


def test_an_instant_that_a_bare_line_prints(b: ModuleType) -> None:
    """A wrapper script prints its own time: taken where file order agrees, not where somebody quotes another day."""
    start = b.at("2026-05-06 02:00:00")
    one = b.Print("pods/0.log", scope=POD)
    one.line(start, b.message(1), (b.stamp(b.INSTANT, "cri", start, "UTC", 1e-6),), "engine")
    one.line(start + 22, "[entrypoint] 2026-05-06T04:00:22+02:00 SIGTERM received", (), "container")
    one.line(start + 23, "[entrypoint] 2025-01-01T00:00:00Z is the date of the licence", (), "container")
    one.line(start + 40, b.message(2), (b.stamp(b.INSTANT, "cri", start + 40, "UTC", 1e-6),), "engine")
    times = [event.time for event in b.solve(one).events]
    assert (times[1].utc_s, times[1].uncertainty_s) == (start + 22, 1.0)
    assert times[2].utc_s == pytest.approx(start + 22.001, abs=1e-4)


def test_progress_bars_tell_how_long_they_ran(b: ModuleType) -> None:
    """tqdm prints no time but the time it has been running: from its first line on, across stamped lines."""
    start = b.at("2026-05-06 02:00:00")
    one = b.Print("pods/0.log", scope=POD)
    bar = "Loading safetensors checkpoint shards:  {0}% Completed | {0}/90 [{1}, 1.00s/it]"
    for at_s, text in (
        (0, ""), (0.1, bar.format(0, "00:00<?")), (30.1, bar.format(30, "00:30<01:00")), (50, ""),
        (75.1, bar.format(75, "01:15<00:15")), (80.1, "Shutting down"), (120, ""), (121, bar.format(5, "00:05<00:10")), (200, ""),
    ):  # fmt: skip
        stamps = () if text else (b.stamp(b.INSTANT, "cri", start + at_s, "UTC", 1e-6),)
        one.line(start + at_s, text or b.message(int(at_s)), stamps, "engine")
    times = [event.time for event in b.solve(one).events]
    assert [round(time.utc_s - start) for time in times] == [0, 0, 30, 50, 75, 75, 120, 125, 200]
    assert all(time.earliest_s <= start + true for time, true in zip(times, (0, 0.1, 30.1, 50, 75.1, 80.1, 120, 121, 200), strict=True))
