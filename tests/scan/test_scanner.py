"""What is kept of a member: lines of interest, windows, edges and storms, bounded."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.scan import Scanned, Scanner, SeriesSpec, Window, anchors, look, scan, scanner

WORDS = ["".join(random.Random(i).choices(string.ascii_letters, k=8)) for i in range(3000)]


def blocks(text: str, step: int = 4096) -> Iterator[bytes]:
    data = text.encode()
    for start in range(0, len(data), step):
        yield data[start : start + step]


def kept(text: str, step: int = 4096, **options: object) -> Scanned:
    return scan(blocks(text, step), ("Error",), **options)


def filler(lines: int) -> str:
    return "".join(f"quiet {word}\n" for word in WORDS[:lines])


def test_edges_and_marked_lines() -> None:
    """First and last lines are kept for the clocks, lines with an anchor for the signatures."""
    got = kept(filler(300) + "an Error here\n" + filler(300))
    numbers = [line.number for line in got.candidates]
    assert numbers == [*range(1, 41), 301, *range(562, 602)]
    assert got.lines == 601


@pytest.mark.parametrize("step", [64, 1000, 1 << 20])
def test_windows(step: int) -> None:
    """The lines after an opening are kept up to the closing one, over block ends, several kinds at once."""
    tables = (Window("open A", ("close",), 50), Window("open B", ("stop",), 3))
    text = filler(100) + "open A\na1\nopen B\nb1\nb2\nclose\nb4\n" + filler(100) + "open A\nopen A\nstop\n" + filler(60)
    got = kept(text, step, windows=tables)
    numbers = [line.number for line in got.candidates]
    assert [n for n in numbers if 40 < n < 208] == [*range(101, 107)]
    assert [n for n in numbers if 207 < n <= 230] == [*range(208, 231)]


@pytest.mark.parametrize("magic", [b"x^", b"x\x01", b"x\x9c", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])
def test_text_that_begins_like_a_compressed_file(magic: bytes) -> None:
    """A formula in a log, or the torn rest of an archive, is read as it stands."""
    found = scan(iter([magic + b"2 Error\n" + filler(200).encode()]), ("Error",))
    assert (found.lines, found.candidates[0].number, found.candidates[0].text[-7:]) == (201, 1, "2 Error")


def test_overlapping_windows_cost_no_more_than_their_lines() -> None:
    """Openings in every line do not each copy the lines behind them."""
    got = kept("open it\n" * 50_000, 1 << 20, windows=(Window("open it", ("never",), 4000),))
    assert got.lines == 50_000


STORMS = {
    "numbers": lambda i: f"Error in request {i}, {i * 7} ms",
    "uuids": lambda i: f"Error in {random.Random(i).getrandbits(128):032x}",
    "dashed uuids": lambda i: "Error in " + "-".join(f"{random.Random(i * 9 + n).getrandbits(32):08x}"[:w]
                                                    for n, w in enumerate((8, 4, 4, 4, 8))) + "0123",
    "mixed ids": lambda i: f"Error in req_{WORDS[i][:3]}{i}{WORDS[-i][:2]}",
}  # fmt: skip


@pytest.mark.parametrize("name", STORMS)
def test_storms_are_thinned_and_counted(name: str) -> None:
    """Lines that differ in numbers and ids only are one storm: the first ones, the last one, and the count."""
    got = kept(filler(50) + "".join(STORMS[name](i) + "\n" for i in range(500)) + filler(50))
    storm = [line for line in got.candidates if "Error" in line.text]
    assert len(storm) == look.STORM_KEEP + 1
    assert storm[-1].number == 550
    assert storm[-2].last == 550
    assert sum(line.count for line in storm) == 500


@pytest.mark.parametrize("step", [64, 1000, 1 << 20])
@pytest.mark.parametrize("size", [24, 25, 26, 38, 60, 300])
def test_every_line_of_a_storm_counts_once(size: int, step: int) -> None:
    """At the edges of a file, and behind an opening, lines of a storm are kept beside the one that stands for them."""
    storm = [f"Error in request {i}\n" for i in range(size)]
    for text in ("".join(storm), filler(50) + "".join(storm), filler(60) + "".join(storm[:30]) + "open A\n"
                 + "".join(storm[30:]) + filler(60)):  # fmt: skip
        got = kept(text, step, windows=(Window("open A", ("close",), 20),))
        assert sum(line.count for line in got.candidates if "Error" in line.text) == size


def test_answers_of_one_storm_have_one_status() -> None:
    """A refused request does not stand for a failed one, whoever writes the access log."""
    for form in ('"POST /v1/completions HTTP/1.1" {} 157 Error', '{{"path": "/v1/completions", "status": {}, "Error": 1}}'):
        lines = [form.format((400, 502)[i % 2]) + "\n" for i in range(200)]
        got = kept("".join(lines), windows=())
        for status in ("400", "502"):
            assert sum(line.count for line in got.candidates if status in line.text) == 100


def test_too_many_different_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many lines of interest the first and the last are kept, and the loss is told."""
    monkeypatch.setattr(scanner, "KEEP_FIRST", 100)
    monkeypatch.setattr(scanner, "KEEP_LAST", 100)
    monkeypatch.setattr(scanner, "MAX_STORMS", 50)
    text = "".join(f"Error {word} in {other}\n" for word, other in zip(WORDS, reversed(WORDS), strict=True))
    for step in (500, 1 << 20):
        got = kept(text, step)
        assert [line.number for line in got.candidates] == [*range(1, 101), *range(2901, 3001)]
        assert got.dropped_lines == 2800


def test_too_long_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many rows the first and the last are kept, and the loss is told."""
    monkeypatch.setattr(scanner, "MAX_ROWS", 10)
    spec = SeriesSpec("usage", r"usage (\d+)%", ("value",))
    got = kept("".join(f"usage {i}%\n" for i in range(1000)), 300, series=(spec,))
    (rows,) = got.series
    assert rows.columns["value"] == ["0", "1", "2", "3", "4", "995", "996", "997", "998", "999"]
    assert list(rows.lines) == [1, 2, 3, 4, 5, 996, 997, 998, 999, 1000]
    assert got.dropped_rows == 990


@pytest.mark.parametrize("step", [100, 4096, 1 << 20])
def test_blocks_do_not_matter(step: int) -> None:
    """What is kept does not depend on how the bytes were cut."""
    chance = random.Random(11)
    lines = [f"Error {chance.choice(WORDS[:20])} {i}" if chance.random() < 0.3 else f"quiet {i}" for i in range(2000)]
    text = "\n".join(lines)
    one = kept(text, len(text))
    other = kept(text, step)
    assert one.candidates == other.candidates
    assert one.lines == other.lines


PARTS = st.sampled_from(["an Error", "usage 7%", "open A", "close", "\r", "\n", "\n", "\n", " ", "é", "模型", "x" * 70_000, "\0", "\x1b[0m"])


@settings(max_examples=60, deadline=None)
@given(st.lists(PARTS, max_size=60), st.booleans())
def test_short_members_are_read_like_long_ones(parts: list[str], torn: bool) -> None:
    """The way of the smallest members keeps the same lines, rows and counts as the way of all others."""
    data = "".join(parts).encode() + (b"\xe6" if torn else b"")
    series = (SeriesSpec("usage", r"usage (\d+)%", ("value",)), SeriesSpec("", r"^(.*)$", ("row",), consume=False))
    few, many = (Scanner(("Error",), (Window("open A", ("close",), 3),), series) for _ in range(2))
    many.feed(data)
    assert few.whole(data) == many.finish()


def test_very_many_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    """More literals than one regex should hold are looked for in another way, with the same result."""
    text = filler(300) + "an Error here\n" + filler(100)
    before = kept(text, windows=(Window("open A", ("close",), 4),))
    monkeypatch.setattr(anchors, "_MOST_CHARS", 3)
    anchors.tests.cache_clear()
    assert kept(text, windows=(Window("open A", ("close",), 4),)) == before
    anchors.tests.cache_clear()
