"""zip as a stream of entries: by its directory where there is one, else header by header from its start.

`zipfile` reads the directory. Contents are unpacked here, as everywhere, so that damage and wrong checksums cost no
data. Header by header is for what was cut off, and for what cannot be sought in: standard input too large to hold.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import BinaryIO

from ..model import Severity
from .budget import Altered, Counted, Damaged, Guard, OverBudget, Stream
from .compressed import BZIP2, DEFLATE, MAX_DICTIONARY_BYTES, XZ, ZSTD, Codec, Unpacked
from .streams import STEP_BYTES, Limited, Pushback, read_exactly, skip
from .tarballs import Entry
from .zip_headers import CENTRAL, ENCRYPTED, FIXED, LOCAL, ZipHeader, local_header

_CODECS = {8: DEFLATE, 12: BZIP2, 93: ZSTD, 95: XZ}
_STORED, _LZMA = 0, 14


def listed_entries(file: BinaryIO, root: Counted, headers: list[ZipHeader], guard: Guard) -> Iterator[Entry]:
    """The entries of a directory; `root` reads `file` and counts. Raises `OSError`."""
    for header, following in zip_longest(headers, headers[1:]):
        if following is not None and header.offset + FIXED.size + (header.packed_bytes or 0) > following.offset:
            yield _without(header, "overlaps the next file of its archive and was skipped")
            continue
        file.seek(header.offset)
        try:
            found = local_header(root) is not None
        except Damaged:
            found = False
        yield _entry(header, root, guard)[0] if found else _without(header, "is not at its place in the archive")


def streamed_entries(stream: Pushback, guard: Guard, note: Callable[[str, str], None]) -> Iterator[Entry]:
    """The entries by their local headers, from the start. Raises what the stream raises."""
    while _find_header(stream):
        header = local_header(stream)
        if header is None:
            continue
        packed = stream if header.packed_bytes is None else Limited(stream, header.packed_bytes)
        entry, unpacked = _entry(header, packed, guard)
        yield entry
        if isinstance(packed, Limited):
            skip(stream, packed.left)
        elif unpacked is not None:
            with suppress(Damaged):  # then the next header is looked for
                while unpacked.read(STEP_BYTES):
                    pass
            stream.give_back(unpacked.leftover)
    if not stream.peek(1):
        note("has lost its directory, so files may be missing", "pack and copy it again")


def _find_header(stream: Pushback) -> bool:
    """Go to the next local header: usually right here, behind damage further on. False at the directory or the end."""
    while data := stream.peek(STEP_BYTES):
        found = [at for at in (data.find(LOCAL), data.find(CENTRAL)) if at >= 0]
        read_exactly(stream, min(found, default=max(len(data) - 3, 1)))
        if found:
            return stream.peek(4) == LOCAL
    return False


def _entry(header: ZipHeader, packed: Stream, guard: Guard) -> tuple[Entry, Unpacked | None]:
    """The entry whose data begin here, and what unpacks it."""
    if header.name.endswith(b"/"):
        return Entry(header.name, header.mtime_s, None), None
    if header.link:
        return Entry(header.name, header.mtime_s, None, "is a link and was not followed"), None
    if header.flags & ENCRYPTED:
        return _without(header, "is encrypted: unpack its archive with the password and give the folder"), None
    if header.packed_bytes is not None and not isinstance(packed, Limited):
        packed = Limited(packed, header.packed_bytes)
    if header.method == _STORED:
        if header.packed_bytes is None:
            return _without(header, "has no known length without the directory of its archive"), None
        return Entry(header.name, header.mtime_s, _Checked(packed, header)), None
    try:
        codec = _lzma(packed) if header.method == _LZMA else _CODECS.get(header.method)
    except (Damaged, OverBudget) as error:
        return _without(header, str(error)), None
    if codec is None:
        return _without(header, f"is packed by method {header.method}, which is not supported"), None
    unpacked = Unpacked(packed, codec, guard, several=False)
    return Entry(header.name, header.mtime_s, _Checked(unpacked, header)), unpacked


def _without(header: ZipHeader, remark: str) -> Entry:
    return Entry(header.name, header.mtime_s, None, remark, Severity.WARNING)


def _lzma(packed: Stream) -> Codec:
    """LZMA begins with a small header of its own, which is read here. Raises `Damaged`."""
    _, _, properties, dictionary_bytes = struct.unpack("<HHBI", read_exactly(packed, 9))
    if properties >= 225 or dictionary_bytes > MAX_DICTIONARY_BYTES:
        raise Damaged("has LZMA properties that are wrong or would take too much memory")
    filters = [{
        "id": lzma.FILTER_LZMA1, "lc": properties % 9, "lp": properties // 9 % 5, "pb": properties // 45,
        "dict_size": max(dictionary_bytes, 4096),
    }]  # fmt: skip
    return replace(XZ, name="lzma", decoder=lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters))


class _Checked:
    """The content of an entry, held against the length and the checksum that the archive states."""

    def __init__(self, content: Stream, header: ZipHeader) -> None:
        self._content = content
        self._stated = header
        self._size = 0
        self._crc = 0

    def read(self, size: int, /) -> bytes:
        stated = self._stated.size_bytes
        if stated is not None:  # raw LZMA may have no end of its own
            size = min(size, stated - self._size)
        data = self._content.read(size) if size > 0 else b""
        if data:
            self._size += len(data)
            self._crc = zlib.crc32(data, self._crc)
        elif stated is not None and self._size < stated:
            raise Damaged("is shorter than its archive says")
        elif self._stated.crc is not None and self._crc != self._stated.crc:
            raise Altered("does not match the checksum in its archive")
        return data
