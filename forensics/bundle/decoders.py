"""Decoders that the libraries do not offer in the shape of `bz2.BZ2Decompressor`.

`isal` and `zstandard` are imported when the first such stream is met: `oomforensics --help` needs neither.
"""

from __future__ import annotations

import lzma
import struct
from typing import Protocol, cast

from .budget import Damaged

_MAX_HEADER_BYTES = 128 << 10


class Decoder(Protocol):
    """One compressed stream, as `bz2.BZ2Decompressor` has it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def deflate() -> Decoder:
    """A raw deflate stream (RFC 1951)."""
    from isal import igzip_lib

    return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)


class Gzip:
    """One gzip member. CRC and length are checked here: a wrong one is a complaint, not a loss of data."""

    def __init__(self) -> None:
        from isal import isal_zlib

        self._crc32 = isal_zlib.crc32
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
        if self._body is None:
            self._held += data
            start = _gzip_header_bytes(self._held)
            if start is None:
                return b""
            self._body, data, self._held = deflate(), self._held[start:], b""
        if not self._body.eof:
            out = self._body.decompress(data, max_length)
            self._crc = self._crc32(out, self._crc)
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


class Zstd:
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


def errors() -> tuple[type[Exception], ...]:
    """What decoders raise on damage."""
    from isal import igzip_lib
    from zstandard import ZstdError

    isal_error = cast(type[Exception], igzip_lib.error)  # its stub takes the class for an instance
    return (isal_error, lzma.LZMAError, ZstdError, OSError, ValueError, EOFError, MemoryError)
