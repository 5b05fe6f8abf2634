"""Seconds since boot: epochs, drift, restarts, and renderings of them."""

from __future__ import annotations

from types import ModuleType

from forensics.model import Scope


def ring(b: ModuleType, journal: object, boot_s: float, drift: float = 0.0, start: int = 0, path: str = "dmesg") -> object:
    """The kernel's ring: the kernel lines of a journal, as seconds since boot."""
    found = b.Print(path)
    for event in journal.events[start:]:  # type: ignore[attr-defined]
        true_s = journal.truth[event.locator.line]  # type: ignore[attr-defined]
        found.line(true_s, event.text, (b.boot((true_s - boot_s) * (1 + drift)),), "kernel")
    return found


def kernel_journal(b: ModuleType, times: list[float], form: object = None, path: str = "journal.txt") -> object:
    found = b.Print(path, scope=Scope(host="gpu-node-7"))
    for serial, true_s in enumerate(times):
        found.line(true_s, b.message(serial), (b.stamp(form or b.INSTANT, "journal", true_s, "Asia/Tokyo"),), "kernel")
    return found


def test_the_same_lines_in_the_journal_give_the_epoch(b: ModuleType) -> None:
    """Boot time to within a second, and a clock called solved."""
    boot_s = b.at("2026-04-02 10:15:00") + 0.7
    journal = kernel_journal(b, [b.at("2026-05-06 02:00:00") + 71.3 * i for i in range(20)])
    solved = b.solve(journal, ring(b, journal, boot_s))
    clock = b.clock(solved, "dmesg", "dmesg")
    assert clock.verdict == "solved"
    assert abs(clock.boot_epoch_s - boot_s) <= 1
    assert all(anchor.place.source == "dmesg" for anchor in clock.anchors)


def test_drift_is_taken_from_the_nearest_anchors(b: ModuleType) -> None:
    """At 80 ppm thirty days are 200 s; lines beside an anchor are still right, lines far away say their doubt."""
    boot_s = b.at("2026-04-01 00:00:00")
    times = [boot_s + 86400.0 * day + i for day in (1, 10, 20, 30) for i in range(4)]
    journal = kernel_journal(b, times)
    kernel = ring(b, journal, boot_s, 8e-5)
    lone_s = boot_s + 86400.0 * 38
    kernel.line(lone_s, "a line that the journal lacks", (b.boot((lone_s - boot_s) * (1 + 8e-5)),), "kernel")
    solved = b.solve(journal, kernel)
    found = [event.time for event in solved.events if event.locator.source == "dmesg"]
    errors = b.errors(solved, kernel)
    assert max(abs(error) for error in errors[:-1]) <= 1.5
    assert all(abs(error) <= time.uncertainty_s for error, time in zip(errors, found, strict=True))
    assert found[-1].uncertainty_s > 60


def test_two_boots_in_one_file(b: ModuleType) -> None:
    """Each boot has its own epoch."""
    first_s, second_s = b.at("2026-05-06 00:00:00"), b.at("2026-05-06 03:00:00")
    times = [first_s + 600 + 60.0 * i for i in range(10)] + [second_s + 200 + 60.0 * i for i in range(10)]
    journal = kernel_journal(b, times)
    kernel = b.Print("kern.log")
    for event, true_s in zip(journal.events, times, strict=True):
        kernel.line(true_s, event.text, (b.boot(true_s - (first_s if true_s < second_s else second_s)),), "kernel")
    solved = b.solve(journal, kernel)
    epochs = [clock.boot_epoch_s for clock in solved.clocks["kern.log"]]
    assert [round(epoch) for epoch in epochs] == [round(first_s), round(second_s)]
    assert "boot 2" in solved.clocks["kern.log"][1].note
    assert max(abs(error) for error in b.errors(solved, kernel)) <= 1.5


def test_a_suspended_machine(b: ModuleType) -> None:
    """Kernel time stops in suspend: before and after differ by its length, in between either may hold."""
    boot_s = b.at("2026-05-06 00:00:00")
    times = [boot_s + 600 + 60.0 * i for i in range(8)] + [boot_s + 9000 + 60.0 * i for i in range(8)]
    journal = kernel_journal(b, times)
    kernel = b.Print("dmesg")
    for event, true_s in zip(journal.events, times, strict=True):
        kernel.line(true_s, event.text, (b.boot(true_s - boot_s - (5000 if true_s > boot_s + 5000 else 0)),), "kernel")
    solved = b.solve(journal, kernel)
    assert max(abs(error) for error in b.errors(solved, kernel)) <= 1.5


def test_dmesg_rendered_on_another_machine(b: ModuleType) -> None:
    """`dmesg -F saved -T` adds the boot time of the wrong machine; the journal tells how far off it is."""
    journal = kernel_journal(b, [b.at("2026-05-06 02:00:00") + 71.0 * i for i in range(12)])
    rendered = b.Print("dmesg-T.txt")
    for event in journal.events:
        true_s = journal.truth[event.locator.line]
        rendered.line(true_s, event.text, (b.stamp(b.LOCAL, "dmesg", true_s + 17.3 * 86400, "Asia/Tokyo"),), "kernel")
    solved = b.solve(journal, rendered)
    clock = b.clock(solved, "dmesg-T.txt", "dmesg")
    assert (clock.zone, clock.offset_s) == ("", None)
    assert "another machine" in clock.note
    assert max(abs(error) for error in b.errors(solved, rendered)) <= 1.5


def test_boot_time_and_uptime(b: ModuleType) -> None:
    """/proc/stat and uptime date a kernel log that shares no line with anything; assumed, with drift in the doubt."""
    boot_s = b.at("2026-04-02 10:15:00")
    kernel = b.Print("dmesg", scope=Scope(host="gpu-node-7"))
    for serial in range(5):
        true_s = boot_s + 30 * 86400 + 100 * serial
        kernel.line(true_s, b.message(serial), (b.boot(true_s - boot_s),), "kernel")
    for fields, width_s in (
        ({"boot_epoch_s": int(boot_s)}, 2), ({"uptime_s": 30 * 86400 + 500.25}, 2), ({"uptime_s": 30 * 86400 + 480}, 90),
    ):  # fmt: skip
        now = boot_s + 30 * 86400 + 500
        state = b.Print("state.txt", "host.state", Scope(host="gpu-node-7"))
        state.line(now, "captured at", (b.stamp(b.INSTANT, "host", now),), "host", "capture", **fields)
        solved = b.solve(kernel, state)
        clock = b.clock(solved, "dmesg", "dmesg")
        assert clock.verdict == "assumed"
        assert max(abs(error) for error in b.errors(solved, kernel)) <= width_s
        times = [event.time for event in solved.events if event.locator.source == "dmesg"]
        assert all(abs(e) <= t.uncertainty_s for e, t in zip(b.errors(solved, kernel), times, strict=True))


def test_a_kernel_log_alone_stays_on_its_own_lane(b: ModuleType) -> None:
    """Boot seconds without any anchor are not guessed."""
    kernel = b.Print("dmesg")
    kernel.line(0, b.message(1), (b.boot(12345.6),), "kernel")
    solved = b.solve(kernel)
    assert solved.events[0].time.utc_s is None
    assert b.clock(solved, "dmesg", "dmesg").verdict == "refused"


def asleep(b: ModuleType, shared: int) -> tuple[object, object]:
    """A journal and a ring of a machine that slept for 5000 s; the last `shared` lines before it are in the ring only."""
    boot_s = b.at("2026-05-06 00:00:00")
    times = [boot_s + 600 + 60.0 * i for i in range(12)] + [boot_s + 9000 + 60.0 * i for i in range(8)]
    journal, kernel = b.Print("journal.txt", scope=Scope(host="gpu-node-7")), b.Print("dmesg")
    for serial, true_s in enumerate(times):
        up_s = true_s - boot_s - (5000 if true_s > boot_s + 5000 else 0)
        text = {11: "PM: suspend entry (deep)", 12: "PM: suspend exit"}.get(serial, b.message(serial))
        kernel.line(true_s, text, (b.boot(up_s),), "kernel")
        if serial >= 14 or serial < 12 - shared:
            journal.line(true_s, text, (b.stamp(b.INSTANT, "journal", true_s),), "kernel")
    return journal, kernel


def test_the_kernel_says_when_it_slept(b: ModuleType) -> None:
    """Between the last fact before a sleep and the first after it, its own lines tell which side a line is on."""
    journal, kernel = asleep(b, 6)
    solved = b.solve(journal, kernel)
    assert max(abs(error) for error in b.errors(solved, kernel)) <= 1.5
    assert all(event.time.uncertainty_s <= 3 for event in solved.events)


def test_a_sleep_that_nothing_measures(b: ModuleType) -> None:
    """Facts from after the sleep only: what stands before it may be off by the length of the sleep, and says so."""
    journal, kernel = asleep(b, 12)
    solved = b.solve(journal, kernel)
    times = [event.time for event in solved.events if event.locator.source == "dmesg"]
    errors = b.errors(solved, kernel)
    assert all(abs(error) <= time.uncertainty_s for error, time in zip(errors, times, strict=True))
    assert max(abs(error) for error in errors[12:]) <= 1.5
    assert all(time.uncertainty_s <= 3 for time in times[12:])


def test_a_sleep_after_the_boot_time(b: ModuleType) -> None:
    """Boot time from /proc/stat holds until the machine sleeps."""
    _, kernel = asleep(b, 0)
    now = b.at("2026-05-06 03:00:00")
    state = b.Print("state.txt", "host.state")
    state.line(now, "captured at", (b.stamp(b.INSTANT, "host", now),), "host", "capture", boot_epoch_s=int(b.at("2026-05-06 00:00:00")))
    solved = b.solve(kernel, state)
    times = [event.time for event in solved.events if event.locator.source == "dmesg"]
    assert all(abs(error) <= time.uncertainty_s for error, time in zip(b.errors(solved, kernel), times, strict=True))
    assert times[0].uncertainty_s < 5
    assert times[-1].uncertainty_s > 5000
