"""Ages before the capture."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from forensics.clocks.ages import width_of
from forensics.model import Basis, Scope

CAPTURE = "2026-05-06 03:00:40"
POD = Scope(pod="vllm-llama-0", container="vllm", host="gpu-node-7")


def width(seconds: float) -> float:
    return width_of(seconds)


def table(b: ModuleType, events: list[tuple[str, float]], path: str = "kubectl/events.txt") -> object:
    """`kubectl get events`: (reason, true instant)."""
    found = b.Print(path, "k8s.table")
    for reason, true_s in events:
        seconds = b.at(CAPTURE) - true_s
        found.line(true_s, f"{reason}: said by the kubelet", (b.age(seconds, width(seconds)),), "k8s", "k8s_event", POD,
                   reason=reason, object_name="vllm-llama-0")  # fmt: skip
    return found


def objects(b: ModuleType, events: list[tuple[str, float]]) -> object:
    """The same events as JSON, which prints instants."""
    found = b.Print("events.json", "k8s.objects")
    for reason, true_s in events:
        found.line(true_s, f"{reason}: said by the kubelet", (b.stamp(b.INSTANT, "k8s", true_s),), "k8s", "k8s_event", POD,
                   reason=reason, object_name="vllm-llama-0", component="kubelet", first_seen_s=float(int(true_s)))  # fmt: skip
    return found


def test_an_ordered_end_gives_the_capture_roughly(b: ModuleType) -> None:
    """`describe` has the end of the container and the age of the order to stop it: half a grace period of doubt."""
    ended = b.at("2026-05-06 02:51:09")
    described = b.Print("describe.txt", "k8s.describe")
    described.line(ended, "Finished", (b.stamp(b.INSTANT, "k8s", ended),), "k8s", "container_terminated", POD)
    print_ = table(b, [("Evicted", ended - 1)])
    solved = b.solve(described, print_)
    (evicted,) = (event for event in solved.events if event.kind == "k8s_event")
    assert abs(evicted.time.utc_s - (ended - 1)) <= evicted.time.uncertainty_s <= 60


@pytest.mark.parametrize(("fields", "most_s"), [({"ages_from": True}, 31.0), ({}, 601.0)], ids=["beside it", "of the bundle"])
def test_a_moment_noted_beside_a_table(b: ModuleType, fields: dict[str, bool], most_s: float) -> None:
    """Somebody wrote when it was made: surer than any `date` of the same collection."""
    seen = b.at("2026-05-06 02:55:00")
    print_ = table(b, [("Unhealthy", seen)])
    moment = b.at(CAPTURE)
    print_.line(moment, "captured at", (b.stamp(b.INSTANT, "noted", moment),), "host", "capture", **fields)
    (event,) = (event for event in b.solve(print_).events if event.kind == "k8s_event")
    assert abs(event.time.utc_s - seen) <= event.time.uncertainty_s <= most_s


@pytest.mark.parametrize(
    ("seconds", "unit"), [(119, 1), (599, 1), (600, 60), (3600 * 7.9, 60), (3600 * 8, 3600), (86400 * 9, 86400)]
)
def test_the_width_of_an_age(seconds: float, unit: float) -> None:
    """kubectl cuts ages to seconds below ten minutes, to minutes below eight hours, then to hours and days."""
    assert width_of(seconds) == unit


def test_common_events_give_the_capture(b: ModuleType) -> None:
    """The moment that all pairs of age and instant share, exact to the width of the finest."""
    start = b.at("2026-05-06 02:10:07")
    events = [("Pulled", start), ("Killing", start + 1500), ("Evicted", start + 2400), ("BackOff", start + 2900)]
    solved = b.solve(table(b, events), objects(b, events))
    clock = b.clock(solved, "kubectl/events.txt", "kubectl")
    assert clock.verdict == "solved"
    assert clock.captured_at_s == pytest.approx(b.at(CAPTURE), abs=1)
    assert len(clock.anchors) >= 3
    for event in solved.events[:4]:
        true_s = table(b, events).truth[event.locator.line]
        assert abs(event.time.utc_s - true_s) <= event.time.uncertainty_s
        assert event.time.basis is Basis.RELATIVE_AGE


def test_few_common_events_are_assumed(b: ModuleType) -> None:
    """One start of a container ties ages, but proves little."""
    start = b.at("2026-05-06 02:55:00")
    described = table(b, [("Started", start)], "kubectl/describe.txt")
    described.line(start, "container vllm started", (b.stamp(b.INSTANT, "k8s", start),), "k8s", "container_started", POD)
    solved = b.solve(described)
    clock = b.clock(solved, "kubectl/describe.txt", "kubectl")
    assert clock.verdict == "assumed"
    assert clock.captured_at_s == pytest.approx(b.at(CAPTURE), abs=4)


def test_restarts_and_pod_ages_help(b: ModuleType) -> None:
    """`RESTARTS 5 (9m48s ago)` and AGE count back to the last end and the start of the pod."""
    ended, created = b.at("2026-05-06 02:50:52"), b.at("2026-05-06 01:49:00")
    pods = b.Print("kubectl/pods.txt", "k8s.table")
    pods.line(0, "pod vllm-llama-0 Running", (), "k8s", "pod_status", POD,
              last_restart_age_s=588.5, created_age_s=71 * 60 + 30.0)  # fmt: skip
    api = b.Print("pod.json", "k8s.objects")
    api.line(ended, "ended", (b.stamp(b.INSTANT, "k8s", ended),), "k8s", "container_terminated", POD)
    api.line(created, "pod vllm-llama-0 Running", (), "k8s", "pod_status", POD, started_s=created)
    clock = b.clock(b.solve(pods, api), "kubectl/pods.txt", "kubectl")
    assert clock.captured_at_s == pytest.approx(b.at(CAPTURE), abs=2)


def test_the_capture_is_given(b: ModuleType) -> None:
    """`--captured-at` needs no proof."""
    start = b.at("2026-05-06 02:10:07")
    events = table(b, [("Killing", start)])
    solved = b.solve(events, captured_at_s=b.at(CAPTURE))
    assert b.clock(solved, "kubectl/events.txt", "kubectl").verdict == "solved"
    assert abs(b.errors(solved, events)[0]) <= 60


def test_tables_of_one_collection(b: ModuleType) -> None:
    """A table without a common event is taken as made together with the others."""
    start = b.at("2026-05-06 02:10:07")
    events = [("Pulled", start), ("Killing", start + 1500), ("Evicted", start + 2400)]
    other = table(b, [("FailedScheduling", start + 60)], "kubectl/other.txt")
    solved = b.solve(table(b, events), objects(b, events), other)
    clock = b.clock(solved, "kubectl/other.txt", "kubectl")
    assert (clock.verdict, "together" in clock.note) == ("assumed", True)
    event = next(event for event in solved.events if event.locator.source == "kubectl/other.txt")
    assert abs(event.time.utc_s - (start + 60)) <= event.time.uncertainty_s


def test_ages_of_a_wrong_clock(b: ModuleType) -> None:
    """A kubelet that runs 90 s ahead wrote the time that the age counts from; even `<invalid>` ages fit."""
    start = b.at("2026-05-06 02:55:00")
    found = b.Print("kubectl/events.txt", "k8s.table")
    seconds = b.at(CAPTURE) - (start + 90)
    found.line(start, "Killing: x", (b.age(seconds, 1.0),), "k8s", "k8s_event", POD, reason="Killing", component="kubelet")
    solved = b.solve(found, captured_at_s=b.at(CAPTURE), skew=(("gpu-node-7", 90.0),))
    assert abs(b.errors(solved, found)[0]) <= 2


def test_without_anything_ages_have_no_time(b: ModuleType) -> None:
    """Nothing says when the table was made."""
    solved = b.solve(table(b, [("Killing", b.at("2026-05-06 02:10:07"))]))
    assert solved.events[0].time.utc_s is None


def test_a_container_that_never_started(b: ModuleType) -> None:
    """The kubelet tells a failed start as `Failed` when it writes the end of the container: one fact, two prints."""
    failed = b.at("2026-05-06 02:55:30")
    described = b.Print("kubectl/describe.txt", "k8s.describe")
    described.line(failed, "ended", (b.stamp(b.INSTANT, "k8s", failed),), "k8s", "container_terminated", POD, reason="StartError")
    described.line(failed, "Failed: Error: failed to create containerd task", (b.age(b.at(CAPTURE) - failed, 1.0),), "k8s", "k8s_event",
                   POD, reason="Failed", object_name="vllm-llama-0")  # fmt: skip
    clock = b.clock(b.solve(described), "kubectl/describe.txt", "kubectl")
    assert clock.captured_at_s == pytest.approx(b.at(CAPTURE), abs=4)


def test_tables_that_show_the_same_events(b: ModuleType) -> None:
    """A table made twenty minutes after another one: the ages of what both show tell the difference."""
    start, later = b.at("2026-05-06 02:10:07"), 1200.0
    events = [("Pulled", start), ("Killing", start + 1500), ("Evicted", start + 2400)]
    second = b.Print("kubectl/again.txt", "k8s.table")
    for reason, true_s in [*events, ("FailedScheduling", start + 4000)]:
        seconds = b.at(CAPTURE) + later - true_s
        second.line(true_s, f"{reason}: said by the kubelet", (b.age(seconds, width(seconds)),), "k8s", "k8s_event", POD,
                    reason=reason, object_name="vllm-llama-0")  # fmt: skip
    first = table(b, events)
    first.line(start, "Started: x", (b.age(b.at(CAPTURE) - start, 60.0),), "k8s", "k8s_event", POD, reason="Started")
    first.line(start, "container vllm started", (b.stamp(b.INSTANT, "k8s", start),), "k8s", "container_started", POD)
    solved = b.solve(first, second)
    clock = b.clock(solved, "kubectl/again.txt", "kubectl")
    assert clock.captured_at_s == pytest.approx(b.at(CAPTURE) + later, abs=95)
    for event in solved.events:
        if event.locator.source == "kubectl/again.txt":
            assert abs(event.time.utc_s - second.truth[event.locator.line]) <= event.time.uncertainty_s


def test_a_long_collection(b: ModuleType) -> None:
    """Logs went on for an hour after the first table: one without a common event may be made at any time of it."""
    start = b.at("2026-05-06 02:10:07")
    events = [("Pulled", start), ("Killing", start + 1500), ("Evicted", start + 2400)]
    other = table(b, [("FailedScheduling", start + 60)], "kubectl/other.txt")
    log = b.journal("journal.txt", "Asia/Tokyo", [b.at(CAPTURE) + 300 * i for i in range(12)])
    solved = b.solve(table(b, events), objects(b, events), other, log)
    event = next(event for event in solved.events if event.locator.source == "kubectl/other.txt")
    assert event.time.earliest_s <= start + 60
    assert event.time.latest_s >= start + 60 + 3300


def copied(b: ModuleType, line: str) -> object:
    """A table whose file time is that of a copy made weeks later, and a line without a stamp."""
    found = table(b, [("Killing", b.at("2026-05-06 02:58:40"))])
    found.mtime_s = b.at("2026-05-28 12:00:00")
    found.line(b.at(CAPTURE), line, (), "plain")
    found.events[-1] = replace(found.events[-1], raw=line)
    return found


@pytest.mark.parametrize("line", [
    "  MemoryPressure   True    Wed, 06 May 2026 00:00:12 -0300   Tue, 05 May 2026 23:58:31 -0300   KubeletHasInsufficientMemory",
    "the last line is `2026-05-06T03:00:12.118Z INFO server: waiting`",
    "2026-05-06 03:00:12 | some tool's own table",
])  # fmt: skip
def test_a_printed_date_beats_the_time_of_a_copy(b: ModuleType, line: str) -> None:
    """What the bundle prints is near its capture, within a day of honest doubt; the file's time is the copy's."""
    found = copied(b, line)
    solved = b.solve(found)
    (event,) = (event for event in solved.events if event.kind == "k8s_event")
    assert abs(event.time.utc_s - found.truth[1]) < 60
    assert event.time.uncertainty_s >= 86400


@pytest.mark.parametrize("line", ["creationTimestamp: 2026-02-06T03:00:12Z", "valid until 2027-05-06 00:00:00", "no date"])
def test_file_times_alone_leave_a_day_of_doubt(b: ModuleType, line: str) -> None:
    """Where nothing else is dated, the file's time is taken, never to the second."""
    solved = b.solve(copied(b, line))
    (event,) = (event for event in solved.events if event.kind == "k8s_event")
    assert event.time.utc_s == pytest.approx(b.at("2026-05-28 11:58:00"), abs=60)
    assert event.time.uncertainty_s >= 86400
