"""Years of year-less times."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from forensics.clocks import yearless
from forensics.model import Scope, StampForm
from forensics.stamps import iso_utc


def engine(b: ModuleType, path: str, *times: str, **more: object) -> object:
    found = b.Print(path, **more)
    for text in times:
        found.line(b.at(text), "Avg prompt throughput", (b.stamp(b.YEARLESS, "engine", b.at(text)),), "engine")
    return found


def dated(b: ModuleType, text: str) -> object:
    """Another source, which prints the year."""
    found = b.Print("k8s/events.json", "k8s.objects")
    for second in range(2):
        found.line(b.at(text) + second, f"Killing: {second}", (b.stamp(b.INSTANT, "k8s", b.at(text) + second),), "k8s")
    return found


def test_new_year_inside_a_log(b: ModuleType) -> None:
    """December 31 followed by January 1 is one night; the year of the first line is the old one."""
    log = engine(b, "vllm.log", "2025-12-31 23:59:50", "2026-01-01 00:00:10", "2026-01-01 04:06:12")
    solved = b.solve(log, dated(b, "2026-01-01 04:10:00"))
    assert b.errors(solved, log) == [0, 0, 0]
    assert b.clock(solved, "vllm.log", "engine").year == 2025


def test_a_log_is_not_younger_than_the_bundle(b: ModuleType) -> None:
    """A December log in a bundle of January is last year's."""
    log = engine(b, "vllm.log", "2025-12-12 08:00:00", "2025-12-12 08:10:00")
    assert b.errors(b.solve(log, dated(b, "2026-01-03 00:00:00")), log) == [0, 0]


def test_a_status_tells_of_what_is_weeks_old(b: ModuleType) -> None:
    """The newest dated line is when a pod started; its log goes on eleven days later, and is not of the year before."""
    log = engine(b, "vllm.log", "2025-10-14 06:20:10", "2025-10-14 06:36:40")
    assert b.errors(b.solve(log, dated(b, "2025-10-02 22:10:16")), log) == [0, 0]


def test_the_29th_of_february_needs_a_leap_year(b: ModuleType) -> None:
    """A log with that day is of the last leap year before the capture."""
    log = engine(b, "vllm.log", "2024-02-28 23:00:00", "2024-02-29 12:00:00", "2024-03-01 01:00:00")
    solved = b.solve(log, dated(b, "2026-06-01 00:00:00"))
    assert b.errors(solved, log) == [0, 0, 0]


def test_march_in_a_common_year(b: ModuleType) -> None:
    """Year-less times are kept in a leap year; in a common one the days after February move by one."""
    assert yearless.in_year(b.stamp(b.YEARLESS, "engine", b.at("2025-03-01 00:00:00")).seconds, 2025) == b.at("2025-03-01 00:00:00")
    seconds, year = yearless.without_year(b.at("2025-12-31 23:59:59"))
    assert (yearless.in_year(seconds, year), year) == (b.at("2025-12-31 23:59:59"), 2025)


def test_a_stamp_beside_it_tells_the_year(b: ModuleType) -> None:
    """The collector's stamp on the same line beats everything that is newer in the bundle."""
    log = b.Print("archive.log")
    for number in range(4):
        true_s = b.at("2023-11-20 10:00:00") + 60 * number
        stamps = (b.stamp(b.INSTANT, "cri", true_s, "UTC", 1e-6), b.stamp(b.YEARLESS, "engine", true_s))
        log.line(true_s, b.message(number), stamps, "engine")
    solved = b.solve(log, dated(b, "2026-06-01 00:00:00"))
    assert b.clock(solved, "archive.log", "engine").year == 2023


@pytest.mark.parametrize(("prefix", "year"), [("2024-11-20 10:02 ana: ", 2024), ("2024-03-02 forwarded: ", 2025), ("", 2025)])
def test_a_date_in_front_of_the_line_tells_the_year(b: ModuleType, prefix: str, year: int) -> None:
    """A chat's prefix on the day of the line beats everything newer; a date of another day is another thing's."""
    log = b.Print("thread.txt")
    for number in range(3):
        true_s = b.at("2024-11-20 10:00:00") + 60 * number
        log.line(true_s, b.message(number), (b.stamp(b.YEARLESS, "engine", true_s),), "engine")
    log.events = [replace(event, raw=f"{prefix}{event.text}") for event in log.events]
    assert b.clock(b.solve(log, dated(b, "2026-06-01 00:00:00")), "thread.txt", "engine").year == year


def test_file_times_are_weak(b: ModuleType) -> None:
    """A file time shortly after the last line settles the year; one of months later leaves a year of doubt."""
    near = engine(b, "vllm.log", "2025-08-01 10:00:00", "2025-08-01 10:05:00", mtime_s=b.at("2025-08-01 10:06:00"))
    far = engine(b, "vllm.log", "2025-08-01 10:00:00", "2025-08-01 10:05:00", mtime_s=b.at("2026-03-01 10:06:00"))
    assert b.errors(b.solve(near), near) == [0, 0]
    doubt_s = max(event.time.uncertainty_s for event in b.solve(near).events)
    assert doubt_s < 86400
    assert min(event.time.uncertainty_s for event in b.solve(far).events) > 360 * 86400


def test_a_kernel_log_beside_beats_the_time_of_a_copy(b: ModuleType) -> None:
    """Files copied a year later: `dmesg -T` of the same hour tells the year; one of another month tells nothing."""
    copied_s = b.at("2026-11-30 06:00:00")

    def solved(moment: str) -> object:
        log = engine(b, "vllm.log", "2025-11-20 10:00:00", "2025-11-20 10:05:00", mtime_s=copied_s)
        kernel = b.Print("dmesg.txt", mtime_s=copied_s)
        for second in range(2):
            kernel.line(b.at(moment) + second, "x", (b.stamp(b.LOCAL, "dmesg", b.at(moment) + second),), "kernel")
        return b.clock(b.solve(log, kernel), "vllm.log", "engine")

    assert solved("2025-11-20 10:05:03").year == 2025
    assert solved("2025-08-02 10:05:03").year == 2026


def test_a_printed_weekday_decides(b: ModuleType) -> None:
    """`Thu Nov 20` was in 2025, not in 2026."""
    from dataclasses import replace

    log = engine(b, "syslog", "2025-11-20 10:00:00", "2025-11-20 10:05:00")
    log.events = [replace(event, raw="Thu Nov 20 10:00:00 gpu-node-7 kernel: x") for event in log.events]
    solved = b.solve(log, dated(b, "2026-12-01 00:00:00"))
    assert b.clock(solved, "syslog", "engine").year == 2025


def test_the_user_knows_the_year(b: ModuleType) -> None:
    """`--year` is the year of the last line."""
    log = engine(b, "vllm.log", "2021-12-31 23:59:50", "2022-01-01 00:00:10")
    assert b.errors(b.solve(log, dated(b, "2026-01-03 00:00:00"), year=2022), log) == [0, 0]


def test_without_anything_the_year_is_open(b: ModuleType) -> None:
    """No source tells a year: the order is kept, the instant is not claimed."""
    log = engine(b, "vllm.log", "2025-08-01 10:00:00", "2025-08-01 10:05:00")
    solved = b.solve(log)
    assert all(event.time.uncertainty_s > 365 * 86400 for event in solved.events)
    first, second = (event.time.utc_s for event in solved.events)
    assert second - first == pytest.approx(300)


def test_a_date_in_a_path(b: ModuleType) -> None:
    """A support bundle's folder carries its date."""
    log = engine(b, "support-bundle-2026-05-06T02_42_30/logs/vllm.log", "2026-05-06 02:00:00", "2026-05-06 02:05:00")
    assert b.errors(b.solve(log), log) == [0, 0]


def test_a_doubtful_year_counts_once(b: ModuleType) -> None:
    """A year from old file times is off by a year at most, in the lane that is tied to the doubtful one as well."""
    true_s = b.at("2026-08-24 10:20:00")
    one = b.Print("journal.txt", mtime_s=true_s + 80 * 86400)
    for serial in range(6):
        stamps = (b.stamp(b.YEARLESS, "journal", true_s + 60 * serial), b.stamp(b.YEARLESS, "engine", true_s + 60 * serial))
        one.line(true_s + 60 * serial, b.message(serial), stamps, "engine")
    times = [event.time for event in b.solve(one).events]
    assert all(366 * 86400 <= time.uncertainty_s <= 368 * 86400 for time in times)


@pytest.mark.parametrize("first_h", [2, 20])
def test_times_of_day_are_of_the_newest_day(b: ModuleType, first_h: int) -> None:
    """A series that prints hours and minutes only ends on the day of the newest dated line, and may begin on another."""
    end = b.at("2026-01-01 00:00:00") + 3600 * (first_h + 6)
    loop = b.Print("top.txt", "memory.loop")
    loop.series("container_memory_mib", StampForm.CLOCK, "watch",
                [((first_h + n) % 24 * 3600.0, 100.0 * n) for n in range(7)])  # fmt: skip
    solved = b.solve(loop, dated(b, iso_utc(end + 60)[:19].replace("T", " ")))
    assert list(solved.samples[0].stamps) == [end - 3600 * (6 - n) for n in range(7)]


@pytest.mark.parametrize(("text", "year"), [
    ('time=2024-11-20T12:00:00.482+02:00 level=WARN msg="slow" attempt=3', 2024),
    ("[GIN] 2024/11/20 - 10:00:00 | 200 | 1.2s | 10.0.0.9 | POST /api/chat", 2024),
    ("2024-11-20 11:30:01 | INFO | the program's own stamp, in another zone", 2024),
    ("the certificate is valid from 2024-11-20 10:07:31 for one year", 2025),  # another moment
    ("built 2024-03-02 10:00:00", 2025),
])  # fmt: skip
def test_the_stamp_that_a_message_begins_with_tells_the_year(b: ModuleType, text: str, year: int) -> None:
    """A program under journald prints a date of its own; a date of another moment is no stamp."""
    log = b.Print("journal.txt")
    true_s = b.at("2024-11-20 10:00:00")
    log.line(true_s, text, (b.stamp(b.YEARLESS, "journal", true_s),), "host")
    assert b.clock(b.solve(log, dated(b, "2026-06-01 00:00:00")), "journal.txt", "journal").year == year


def test_the_offset_that_an_engine_prints_at_the_beginning_of_its_message(b: ModuleType) -> None:
    """It ties the journal around it to UTC, the kernel's lines with it; an instant further on may be anybody's."""
    kernel = b.at("2025-10-11 19:40:58")

    def printed(form: str) -> object:
        log = b.Print("journal.txt", scope=Scope(host="nuc15"))
        for second, text in ((-40, form), (1, form)):
            own = stamps_iso(kernel + second)
            log.line(kernel + second, text.format(own), (b.stamp(b.YEARLESS, "journal", kernel + second, "Europe/Berlin"),), "engine")
        log.line(kernel, "Out of memory", (b.stamp(b.YEARLESS, "journal", kernel, "Europe/Berlin"),), "kernel")
        return b.solve(log), log

    solved, log = printed('time={} level=INFO msg="x"')
    assert [abs(error) <= 1 for error in b.errors(solved, log)] == [True] * 3
    assert max(event.time.uncertainty_s for event in solved.events) < 60
    solved, log = printed("the client said ts={}")
    assert b.clock(solved, "journal.txt", "journal").zone == "UTC"


def stamps_iso(seconds: float) -> str:
    """An instant as a clock in Berlin's summer prints it."""
    return iso_utc(seconds + 7200)[:19] + ".100+02:00"
