"""Compressed streams: gzip (RFC 1952), bzip2, xz and lzma, zstd (RFC 8878), told by their first bytes.

The libraries throw away what they had unpacked when they meet damage. Here a stream is unpacked in small steps, so that
at most one of them (4 KiB) is lost, and for gzip, whose checksum is verified here, nothing.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .budget import ALTERED, Altered, Damaged, Guard, OverBudget, Stream
from .decoders import Decoder, Gzip, Zstd, deflate, errors

T = TypeVar("T")
_OUT_BYTES = 4096
MAX_DICTIONARY_BYTES = 96 << 20
"""Memory of one decoder; `xz -9` needs 65 MiB."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A kind of compression."""

    name: str
    begins: Callable[[bytes], bool]
    """Do these first bytes belong to it?"""
    decoder: Callable[[], Decoder]
    in_bytes: int = 512
    """Packed bytes for one step, where the library cannot stop between steps by itself."""


def codec_of(head: bytes) -> Codec | None:
    """The compression that a file begins with, or none."""
    return next((codec for codec in CODECS if codec.begins(head)), None)


class Unpacked:
    """The content of a compressed stream, or of several one after the other, as a stream."""

    def __init__(
        self,
        packed: Stream,
        codec: Codec,
        guard: Guard,
        note: Callable[[str, str], None] = lambda _problem, _hint: None,
        several: bool = True,
    ) -> None:
        """`note(problem, hint)` hears of damage that costs no data; `several` allows concatenated streams."""
        self._packed = packed
        self._codec = codec
        self._guard = guard
        self._note = note
        self._several = several
        self._decoder: Decoder | None = None
        self._ended = False
        self._error: Exception | None = None
        self.leftover = b""
        """Bytes read from `packed` that lie behind the end."""

    def read(self, size: int, /) -> bytes:
        if self._error is not None:
            raise self._error
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._next(min(size, _OUT_BYTES))
                self._guard.count(len(part))
            except (Damaged, OverBudget, OSError) as error:
                self._error = error
                if not parts:
                    raise
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _next(self, most: int) -> bytes:
        while not self._ended:
            decoder = self._decoder = self._decoder or self._guarded(self._codec.decoder)
            if decoder.eof:
                self._finish(decoder)
                continue
            data = b""
            if decoder.needs_input:
                data = self.leftover or self._packed.read(self._codec.in_bytes)
                self.leftover = b""
                if not data:
                    raise Damaged(f"ends before its {self._codec.name} stream does")
            if out := self._guarded(decoder.decompress, data, most):
                return out
        return b""

    def _guarded(self, step: Callable[..., T], *arguments: bytes | int) -> T:
        try:
            return step(*arguments)
        except errors() as error:
            raise Altered(f"is damaged: {str(error) or self._codec.name}") from None

    def _finish(self, decoder: Decoder) -> None:
        """After one stream: another one, zeros (tapes, `xz` padding), or something that is none of ours."""
        complaint = getattr(decoder, "complaint", "")
        if complaint:
            self._note(complaint, ALTERED)
        self._decoder, self._ended = None, True
        self.leftover = decoder.unused_data
        if not self._several:
            return
        while not (rest := self.leftover.lstrip(b"\0")) or len(rest) < 16:
            more = self._packed.read(self._codec.in_bytes)
            self.leftover = rest + more
            if not more:
                break
        if self._codec.begins(rest := self.leftover.lstrip(b"\0")):
            self.leftover, self._ended = rest, False
        elif rest:
            self._note(f"has something else behind the end of its {self._codec.name} stream, which was ignored", "")


def _is_lzma(head: bytes) -> bool:
    """An `.lzma` file has no magic number: its usual properties, a dictionary size, and a plausible length."""
    if len(head) < 13 or head[0] != 0x5D or head[1:3] != b"\0\0":
        return False
    length = int.from_bytes(head[5:13], "little")
    return length == (1 << 64) - 1 or length < 1 << 40


def _is_zstd(head: bytes) -> bool:
    return head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


DEFLATE = Codec("deflate", lambda _head: False, deflate, in_bytes=64 << 10)
"""The raw stream of a zip entry; never recognised by itself."""
BZIP2 = Codec(
    "bzip2", lambda head: head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"), bz2.BZ2Decompressor
)
XZ = Codec(
    "xz",
    lambda head: head[:6] == b"\xfd7zXZ\0",
    lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY_BYTES),
)
ZSTD = Codec("zstd", _is_zstd, Zstd)
CODECS = (
    Codec("gzip", lambda head: head[:3] == b"\x1f\x8b\x08", Gzip, in_bytes=64 << 10),
    BZIP2,
    XZ,
    ZSTD,
    Codec("lzma", _is_lzma, lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MAX_DICTIONARY_BYTES)),
)
