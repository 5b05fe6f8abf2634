"""Bytes → whole lines in UTF-8, whatever the encoding and the cuts between blocks."""

from __future__ import annotations

import codecs
import random

import pytest

from forensics.scan import Scanned, Scanner, binary_kind, encoding_of
from forensics.scan.text import LINE_LIMIT, Pieces

LOG = "INFO 06-11 06:00:01 模型加载完成 torch.OutOfMemoryError\r\nERROR 06-11 06:00:02 显存不足 café\n" * 40


def joined(data: bytes, step: int) -> bytes:
    pieces = Pieces()
    parts = [piece for start in range(0, len(data), step) for piece in pieces.feed(data[start : start + step])]
    assert all(part.endswith(b"\n") for part in parts)
    return b"".join([*parts, *pieces.finish()])


def scanned(data: bytes, step: int = 1 << 20, anchors: tuple[str, ...] = ("Error",)) -> Scanned:
    scanner = Scanner(anchors)
    for start in range(0, len(data), step):
        scanner.feed(data[start : start + step])
    return scanner.finish()


ENCODED = {
    "utf-8": LOG.encode(),
    "utf-8 with mark": codecs.BOM_UTF8 + LOG.encode(),
    "utf-16 with mark": LOG.encode("utf-16"),
    "utf-16 big endian with mark": codecs.BOM_UTF16_BE + LOG.encode("utf-16-be"),
    "utf-16 little endian": LOG.encode("utf-16-le"),
    "utf-16 big endian": LOG.encode("utf-16-be"),
    "utf-32 with mark": LOG.encode("utf-32"),
    "utf-32 little endian": LOG.encode("utf-32-le"),
    "utf-32 big endian": LOG.encode("utf-32-be"),
    "utf-8 with NULs": LOG.encode().replace(b"06-11", b"\x00\x006-11").replace(b"6-11", b"06-11"),
}


@pytest.mark.parametrize("step", [512, 513, 1000, 1 << 20])
@pytest.mark.parametrize("name", ENCODED)
def test_encodings(name: str, step: int) -> None:
    """The text is the same in all encodings, with or without a mark, however it is cut; NULs are taken out."""
    assert joined(ENCODED[name], step).decode() == LOG


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("显存不足,内存分配失败".encode("gbk"), "显存不足,内存分配失败"),
        ("modèle chargé, épuisée".encode("latin-1"), "mod\ufffdle charg\ufffd, \ufffdpuis\ufffde"),
        ("Speicher für Größe".encode("latin-1"), "Speicher f\ufffdr Gr\ufffd\ufffde"),
        (b"cut \xe6\x98", "cut \ufffd"),
        (b"overlong \xc0\xaf", "overlong \ufffd\ufffd"),
    ],
)
def test_lines_that_are_not_utf8(data: bytes, text: str) -> None:
    """GBK is read where it looks like Chinese; all else is replaced, line by line, and counted."""
    got = scanned("前 Error\n".encode() + data + b" Error\nlast Error\n")
    assert [line.text for line in got.candidates] == ["前 Error", text + " Error", "last Error"]
    assert got.bad_lines == 1


def test_encoding_of_programs() -> None:
    """The zeros in the tables of a program do not make it UTF-32."""
    elf = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0\1\0\0\0\xd0\x23\0\0" + b"\x40\0\0\0" * 120
    assert encoding_of(elf) == "utf-8"
    assert binary_kind(elf) == ("ELF program, library or core dump", "")


def test_binary_and_text() -> None:
    """Random bytes are binary; colours, NULs and other encodings are text."""
    chance = random.Random(3)
    assert binary_kind(chance.randbytes(4096)) == ("binary data", "")
    assert binary_kind(b"\x1b[1;36mINFO\x1b[0m \x08\n" * 10) is None
    assert binary_kind(b"\0" * 4000 + b"INFO 06-11\n") is None
    assert binary_kind("显存不足".encode("gbk") * 50) is None


def test_lines_end_at_lf_only() -> None:
    """CR, form feeds and Unicode separators stand inside lines; line numbers count LF."""
    got = scanned("a\x0bb\x0cc\x85d\u2028e Error\r\n\r\rf\rg Error\nh".encode())
    assert got.lines == 3
    assert [line.text for line in got.candidates] == ["a\x0bb\x0cc\x85d\u2028e Error", "\r\rf\rg Error", "h"]
    assert not got.one_line


def test_cr_only() -> None:
    """A text without LF but with CR is noticed."""
    assert scanned(b"first Error\rsecond\rthird\rfourth").one_line
    assert not scanned(b"only line\r").one_line


@pytest.mark.parametrize("step", [1000, 65536, 1 << 20, 8 << 20])
@pytest.mark.parametrize("character", ["x", "显", "😀"])
def test_endless_line(step: int, character: str) -> None:
    """Of an overlong line the first characters are kept; it counts as one line, and the next one is found."""
    text = f"one Error\n{character * (10 * LINE_LIMIT)} Error\nthree Error\n{character * (10 * LINE_LIMIT)}"
    got = scanned(text.encode(), step)
    assert [line.number for line in got.candidates] == [1, 2, 3, 4]
    assert got.candidates[1].text == got.candidates[3].text == character * LINE_LIMIT
    assert got.lines == 4
    assert got.long_lines == 2
    assert got.bad_lines == 0


def test_block_of_empty_lines_is_taken_apart() -> None:
    """A block of nothing but line ends is not worked on as one table of millions of rows."""
    parts = Scanner([]).look(b"\n" * 3_000_000).parts
    assert sum(part.lines.height for part in parts) == 3_000_000
    assert max(part.lines.height for part in parts) <= 1 << 19
