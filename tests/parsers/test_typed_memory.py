"""Memory that people typed into issues."""

from __future__ import annotations

import pytest

from forensics import ingest
from forensics.bundle import Bundle
from forensics.parsers import typed_memory
from forensics.sources import make_head

DAYS = [31000, 33400, 35900, 38300, 40800, 43100]


def rows(form: str) -> str:
    return "".join(form.format(day=9 + n, hour=2 * n, mib=mib, gib=mib / 1024) + "\n" for n, mib in enumerate(DAYS))


@pytest.mark.parametrize(("text", "series"), [
    ("| Date | VRAM used |\n|:--|--:|\n" + rows("| 2026-08-{day:02d} | {mib} MiB |"), "gpu_memory_used_mib"),
    ("| day (06:00 UTC) | nvidia-smi memory.used |\n|---|---|\n" + rows("| Aug {day} | {mib} MiB |"), "gpu_memory_used_mib"),
    ("nvidia-smi every morning at 08:00:\n" + rows("- Aug {day}: {mib}MiB"), "gpu_memory_used_mib"),
    ("GPU memory by day\n\n```\n" + rows("2026-08-{day:02d} 08:00  {mib}M") + "```\n", "gpu_memory_used_mib"),
    ("RSS of the server, from ps aux:\n" + rows("{hour:02d}:30 - {mib} MiB"), "container_memory_mib"),
    ("`kubectl top pod` every 2 hours:\n" + rows("  {hour:02d}:00  ocr  {mib}Mi"), "container_memory_mib"),
    ("docker stats:\n" + rows("* {hour:02d}:00 ocr: {mib} MiB"), "container_memory_mib"),
])  # fmt: skip
def test_rows_below_what_says_whose_memory_they_are(text: str, series: str) -> None:
    assert typed_memory.FORMAT.sniff(make_head("", text.encode(), True)) == 93
    (found,) = typed_memory.read(text, "issue.md").samples
    assert (found.name, list(found.values)) == (series, DAYS)
    assert list(found.stamps) == sorted(found.stamps)
    assert found.scope.container == ("ocr" if "ocr" in text else "")


@pytest.mark.parametrize("text", [
    "checkpoint sizes:\n" + rows("- Aug {day}: {mib} MiB"),  # whose?
    "GPU memory and container memory:\n" + rows("- Aug {day}: {mib} MiB"),  # which?
    "RSS:\n08:00 10 GiB\n10:00 20 GiB\n12:00 30 GiB\n",  # too few
    "RSS:\n" + rows("- step {day}: {mib} MiB"),  # no time
    "RSS:\n" + rows("{hour:02d}:00 {mib} requests"),
    "RSS:\n" + rows("{hour:02d}:00 INFO server: loaded weights, {mib} MiB"),  # a log
    rows("{hour:02d}:00 {mib} MiB"),
])  # fmt: skip
def test_what_is_no_such_series(text: str) -> None:
    assert typed_memory.FORMAT.sniff(make_head("", text.encode(), True)) == 0


WEEK = ("Thu", "Thu", "Fri", "Sat", "Mon", "Thu", "Fri")


def test_rows_by_weekday() -> None:
    """Days are counted from the first row's, over the end of a week as well; the limit may have no other name."""
    text = "RSS by ps aux, the limit is 96Gi:\n"
    text += "".join(f"{day} {9 + 6 * (n == 1):02}:00  {30000 + 2000 * n}Mi\n" for n, day in enumerate(WEEK))
    text += "Friday 21:40  OOMKilled (exit 137)\n"
    parsed = typed_memory.read(text, "chat.txt")
    (found,) = parsed.samples
    hours = [stamp / 3600 for stamp in found.stamps]
    assert hours == [9, 15, 33, 57, 105, 177, 201]
    limit, end = parsed.events
    assert (limit.fields["memory_max_bytes"], end.stamps[0].seconds / 3600) == (96 << 30, 192 + 21 + 40 / 60)


@pytest.mark.parametrize("word", ["Month", "Wedge", "Sunny"])
def test_a_word_that_begins_like_a_weekday(word: str) -> None:
    text = "RSS:\n" + rows(f"{word}" + " {hour:02d}:00 {mib} MiB")
    assert typed_memory.FORMAT.sniff(make_head("", text.encode(), True)) == 0


@pytest.mark.parametrize("said", ["the shm limit is 5Gi", "no-limit is 5Gi", "the disk limit of 5Gi"])
def test_another_limit(said: str) -> None:
    events = typed_memory.read(f"{said}, RSS:\n" + rows("{hour:02d}:00 {mib} MiB"), "chat.txt").events
    assert not any("memory_max_bytes" in event.fields for event in events)


def test_the_end_and_the_limit_beside_the_rows() -> None:
    """`OOMKilled` in a row of its own is the end of what was measured; the limit is that of the heading."""
    text = "pod memory limit 48Gi, docker stats:\n" + rows("{hour:02d}:00 ocr {mib}MiB") + "13:02 ocr OOMKilled (exit code 137)\n"
    limit, end = typed_memory.read(text, "issue.md").events
    assert limit.fields["memory_max_bytes"] == 48 << 30
    assert (end.kind, end.fields["reason"], end.fields["exit_code"], end.scope.container) == (
        "container_terminated", "OOMKilled", 137, "ocr",
    )  # fmt: skip
    assert (end.locator.line, end.stamps[0].seconds) == (8, 13 * 3600 + 120)


def test_the_rows_inside_an_issue(tmp_path: object) -> None:
    """They are found between sentences and logs, with the lines of the file; the fence around them is theirs."""
    issue = tmp_path / "issue.md"  # type: ignore[operator]
    issue.write_text(
        "# It grows\n\nGPU memory by day:\n\n```\n" + rows("2026-08-{day:02d} 08:00  {mib}MiB") + "```\n\nSomebody says it is the load.\n"
    )
    (read,) = ingest.read_bundle(Bundle((str(issue),)), ())
    (found,) = read.parsed.samples
    assert list(found.lines) == [6, 7, 8, 9, 10, 11]
    assert [event.channel for event in read.parsed.events if "Somebody" in event.text] == ["notes"]
