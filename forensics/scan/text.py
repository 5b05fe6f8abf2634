"""Blocks of a member → pieces of whole lines in UTF-8, whatever the encoding, of bounded size.

A line ends at LF only: vLLM prints CR inside lines. What comes out does not depend on how the bytes were cut into
blocks.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from ..bundle.encodings import decode

LINE_LIMIT = 64 * 1024
"""Characters of a line that are looked at; the rest is cut and said so."""
_REST_LIMIT = 5 * LINE_LIMIT
"""Bytes of an endless line that are kept: more than `LINE_LIMIT` characters, whatever they are."""
_PIECE_BYTES = 10 << 20


def encoding_of(block: bytes) -> str:
    """UTF-8 unless a byte order mark, or the places of the zeros, say UTF-16 or UTF-32."""
    if block.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    head = block[:512]
    if len(head) < 64 or 0 not in head:
        return "utf-8"
    zeros = tuple(4 * head[phase::4].count(0) / len(head) for phase in range(4))
    if min(zeros[2:]) > 0.9 and max(zeros[:2]) < 0.9:
        guess = "utf-32-le"
    elif min(zeros[:2]) > 0.9 and max(zeros[2:]) < 0.9:
        guess = "utf-32-be"
    elif min(zeros[1::2]) > 0.4 and max(zeros[::2]) < 0.05:
        guess = "utf-16-le"
    elif min(zeros[::2]) > 0.4 and max(zeros[1::2]) < 0.05:
        guess = "utf-16-be"
    else:
        return "utf-8"
    try:
        text = codecs.getincrementaldecoder(guess)().decode(head)
    except UnicodeDecodeError:  # the tables of a program have zeros as well
        return "utf-8"
    return guess if sum(c < "\t" for c in text) < 0.05 * len(text) else "utf-8"


class Pieces:
    """Feed it blocks; it gives pieces that end with a whole line, the last one from `finish`."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._started = False
        self._rest = b""
        self._skipping = False
        self.nul_bytes = 0

    def feed(self, block: bytes) -> Iterator[bytes]:
        text = self._utf8(block)
        if self._skipping:
            end = text.find(b"\n")
            if end < 0:
                return
            text, self._skipping = text[end:], False
        cut = text.rfind(b"\n") + 1
        if cut:
            yield from _bounded(b"".join((self._rest, memoryview(text)[:cut])))
            self._rest = text[cut:]
        else:
            self._rest += text
        if len(self._rest) > _REST_LIMIT:
            self._rest, self._skipping = _whole_characters(self._rest[:_REST_LIMIT]), True

    def finish(self) -> Iterator[bytes]:
        if self._decoder is not None:
            yield from self.feed(b"")
            self._rest += self._decoder.decode(b"", final=True).encode()
        if self._rest:
            yield self._rest

    def _utf8(self, block: bytes) -> bytes:
        if not self._started:
            self._started = True
            encoding = encoding_of(block)
            if encoding != "utf-8":
                self._decoder = codecs.getincrementaldecoder(encoding)("replace")
            block = block.removeprefix(codecs.BOM_UTF8)
        if self._decoder is not None:
            return self._decoder.decode(block).encode("utf-8", "replace")
        if b"\0" in block:
            self.nul_bytes += block.count(0)
            block = block.replace(b"\0", b"")
        return block


def repaired(piece: bytes) -> tuple[bytes, int]:
    """A piece with its lines that are not UTF-8 made so, and their number."""
    lines = piece.split(b"\n")
    bad = 0
    for index, line in enumerate(lines):
        try:
            line.decode()
        except UnicodeDecodeError:
            lines[index] = decode(line).encode()
            bad += 1
    return b"\n".join(lines), bad


def _bounded(piece: bytes) -> Iterator[bytes]:
    """Halve a piece at a line end until it is small enough."""
    if len(piece) > _PIECE_BYTES:
        cut = piece.find(b"\n", len(piece) // 2, -1) + 1 or piece.rfind(b"\n", 0, len(piece) // 2) + 1
        if cut:
            yield from _bounded(piece[:cut])
            yield from _bounded(piece[cut:])
            return
    yield piece


def _whole_characters(data: bytes) -> bytes:
    """Without the last character, which may be torn."""
    last = len(data) - 1
    while last > len(data) - 5 and data[last] & 0xC0 == 0x80:
        last -= 1
    return data[:last]
