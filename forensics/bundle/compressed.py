"""Compressed streams: gzip (RFC 1952), bzip2, xz and lzma, zstd (RFC 8878), told by their first bytes.

The libraries throw away what they had unpacked when they meet damage. Here a stream is unpacked in small steps, so that
at most one of them (4 KiB) is lost, and for gzip, whose checksum is verified here, nothing.
"""

from __future__ import annotations

import bz2
import lzma
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .budget import Damaged, Guard, OverBudget, Stream

_OUT_BYTES = 4096
_MAX_HEADER_BYTES = 128 << 10
MAX_DICTIONARY_BYTES = 96 << 20
"""Memory of one decoder; `xz -9` needs 65 MiB."""


class Decoder(Protocol):
    """One compressed stream, as `bz2.BZ2Decompressor` has it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


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


def deflate() -> Decoder:
    """A raw deflate stream, as in gzip and zip."""
    from isal import igzip_lib

    return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)


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
        self._decoder: Decoder | None = codec.decoder()
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
        while self._decoder is not None:
            decoder = self._decoder
            if decoder.eof:
                self._finish(decoder)
                continue
            data = b""
            if decoder.needs_input:
                data = self.leftover or self._packed.read(self._codec.in_bytes)
                self.leftover = b""
                if not data:
                    raise Damaged(f"ends before its {self._codec.name} stream does")
            try:
                out = decoder.decompress(data, most)
            except _errors() as error:
                raise Damaged(f"is damaged: {str(error) or self._codec.name}") from None
            if out:
                return out
        return b""

    def _finish(self, decoder: Decoder) -> None:
        """After one stream: another one, zeros (tapes, `xz` padding), or something that is none of ours."""
        complaint = getattr(decoder, "complaint", "")
        if complaint:
            self._note(complaint, "parts of it may be wrong; copy the file again")
        self._decoder = None
        self.leftover = decoder.unused_data
        if not self._several:
            return
        while not (rest := self.leftover.lstrip(b"\0")) or len(rest) < 16:
            more = self._packed.read(self._codec.in_bytes)
            self.leftover = rest + more
            if not more:
                break
        if self._codec.begins(rest := self.leftover.lstrip(b"\0")):
            self.leftover = rest
            self._decoder = self._codec.decoder()
        elif rest:
            self._note(f"has something else behind the end of its {self._codec.name} stream, which was ignored", "")


class _Gzip:
    """One gzip member. CRC and length are checked here: a wrong one is a complaint, not a loss of data."""

    def __init__(self) -> None:
        self._body: Decoder | None = None
        self._held = b""
        self._crc = 0
        self._size = 0
        self.eof = False
        self.unused_data = b""
        self.complaint = ""

    @property
    def needs_input(self) -> bool:
        if self._body is None:
            return True
        return self._body.needs_input if not self._body.eof else len(self._held) < 8

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        from isal import isal_zlib

        if self._body is None:
            self._held += data
            start = _gzip_header_bytes(self._held)
            if start is None:
                return b""
            self._body, data, self._held = deflate(), self._held[start:], b""
        if not self._body.eof:
            out = self._body.decompress(data, max_length)
            self._crc = isal_zlib.crc32(out, self._crc)
            self._size += len(out)
            if self._body.eof:
                self._held = self._body.unused_data
            return out
        self._held += data
        if len(self._held) >= 8:
            crc, size = struct.unpack_from("<II", self._held)
            if crc != self._crc:
                self.complaint = "does not match its gzip checksum"
            elif size != self._size & 0xFFFFFFFF:
                self.complaint = "has not the length that its gzip trailer says"
            self.eof, self.unused_data = True, self._held[8:]
        return b""


def _gzip_header_bytes(data: bytes) -> int | None:
    """Length of a gzip header; none while it is incomplete. Raises `Damaged` for one without end."""
    if len(data) > _MAX_HEADER_BYTES:
        raise Damaged("has a gzip header without end")
    if len(data) < 10:
        return None
    flags, end = data[3], 10
    if flags & 4:  # FEXTRA
        if len(data) < end + 2:
            return None
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (8, 16):  # FNAME, FCOMMENT
        if flags & flag:
            end = data.find(b"\0", end) + 1
            if not end:
                return None
    end += 2 if flags & 2 else 0  # FHCRC
    return end if len(data) >= end else None


class _Zstd:
    """One zstd frame; the library has neither a limit on output nor a way to ask for more."""

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._out = memoryview(b"")

    @property
    def eof(self) -> bool:
        return self._frame.eof and not self._out

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._out and not self._frame.eof

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if data:  # only after all of the output was taken
            self._out = memoryview(self._frame.decompress(data))
        part, self._out = self._out[:max_length], self._out[max_length:]
        return bytes(part)


def _is_lzma(head: bytes) -> bool:
    """An `.lzma` file has no magic number: its usual properties, a dictionary size, and a plausible length."""
    if len(head) < 13 or head[0] != 0x5D or head[1:3] != b"\0\0":
        return False
    length = int.from_bytes(head[5:13], "little")
    return length == (1 << 64) - 1 or length < 1 << 40


def _is_zstd(head: bytes) -> bool:
    return head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


def _errors() -> tuple[type[Exception], ...]:
    from isal import igzip_lib
    from zstandard import ZstdError

    return (igzip_lib.error, lzma.LZMAError, ZstdError, OSError, ValueError, EOFError, MemoryError)


BZIP2 = Codec(
    "bzip2", lambda head: head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"), bz2.BZ2Decompressor
)
XZ = Codec(
    "xz",
    lambda head: head[:6] == b"\xfd7zXZ\0",
    lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY_BYTES),
)
ZSTD = Codec("zstd", _is_zstd, _Zstd)
CODECS = (
    Codec("gzip", lambda head: head[:3] == b"\x1f\x8b\x08", _Gzip, in_bytes=64 << 10),
    BZIP2,
    XZ,
    ZSTD,
    Codec("lzma", _is_lzma, lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MAX_DICTIONARY_BYTES)),
)
