"""zip (APPNOTE 6.3) as a stream of entries: through its directory where there is one, else header by header.

`zipfile` reads the directory. The contents are unpacked here, as everywhere: damage and wrong checksums cost no data.
A zip that cannot be sought in (from standard input, too large to hold), or that lost its directory because it was cut
off, is read from its start by the local headers.
"""

from __future__ import annotations

import calendar
import lzma
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from .budget import Counted, Damaged, Guard, OverBudget, Stream
from .compressed import BZIP2, MAX_DICTIONARY_BYTES, XZ, ZSTD, Codec, Unpacked, deflate
from .streams import STEP_BYTES, Limited, Pushback, read_exactly
from .tarballs import Entry

MAX_DIRECTORY_BYTES = 64 << 20
"""About half a million entries; every one becomes an object of `zipfile`."""
_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
_ENCRYPTED, _DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800
_HEADER = struct.Struct("<4s5H3I2H")
Note = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class _Header:
    """What a zip says about one entry."""

    name: bytes
    flags: int
    method: int
    crc: int | None
    """None where only a descriptor behind the data knows it; so the sizes."""
    packed_bytes: int | None
    size_bytes: int | None
    mtime_s: float | None
    offset: int = 0
    """Of the local header."""
    link: bool = False


def is_zip(head: bytes) -> bool:
    """An entry, or the end of an empty archive; `PK00` begins a split archive of one part."""
    return head[:4] in (_LOCAL, b"PK\x05\x06") or head[:8] == b"PK00" + _LOCAL


def directory(file: BinaryIO) -> list[_Header] | None:
    """The entries in the order of their data, or none when there is no sound directory."""
    try:
        if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
            return None
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error, OverflowError, IndexError):
        return None
    return sorted((_of_info(info) for info in infos), key=lambda header: header.offset)


def listed_entries(file: BinaryIO, root: Counted, headers: list[_Header], guard: Guard, note: Note) -> Iterator[Entry]:
    """Entries by the directory. `root` reads and counts `file`. Raises `OSError`."""
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        if following is not None and header.offset + _HEADER.size + (header.packed_bytes or 0) > following.offset:
            yield Entry(header.name, header.mtime_s, None, "overlaps the next file of its archive and was skipped")
            continue
        file.seek(header.offset)
        try:
            local = _local_header(Pushback(root))
        except Damaged:
            local = None
        if local is None:
            yield Entry(header.name, header.mtime_s, None, "was not found at its place in the archive")
            continue
        yield _entry(header, root, guard, note)


def streamed_entries(stream: Pushback, guard: Guard, note: Note) -> Iterator[Entry]:
    """Entries by their local headers, from the start. Raises what the stream raises."""
    while _find_header(stream):
        header = _local_header(stream)
        if header is None:
            continue
        if header.packed_bytes is None and (header.method == 0 or header.flags & _ENCRYPTED):
            yield Entry(header.name, header.mtime_s, None, "has no known length without the archive's directory")
            continue
        entry = _entry(header, stream, guard, note)
        yield entry
        content = entry.content
        if isinstance(content, _Checked):
            while content.read(STEP_BYTES):
                pass
            if header.packed_bytes is None:
                stream.give_back(content.leftover)
    note("has no directory at its end, so files may be missing", "pack and copy it again")


def _directory_bytes(file: BinaryIO) -> int:
    """Size of the central directory by the end records, 0 when none is found."""
    size = file.seek(0, 2)
    start = file.seek(max(0, size - (64 << 10) - 22 - 76))
    tail = file.read(size - start)
    file.seek(0)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 16:
        return 0
    (length,) = struct.unpack_from("<I", tail, end + 12)
    long_end = tail.rfind(b"PK\x06\x06")
    if length == 0xFFFFFFFF and 0 <= long_end <= len(tail) - 48:
        (length,) = struct.unpack_from("<Q", tail, long_end + 40)
    return int(length)


def _of_info(info: zipfile.ZipInfo) -> _Header:
    name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437", "replace")
    link = info.create_system == 3 and info.external_attr >> 28 == 0xA  # S_IFLNK
    mtime_s = _mtime(info.date_time, info.extra)
    return _Header(name, info.flag_bits, info.compress_type, info.CRC, info.compress_size, info.file_size, mtime_s,
                   info.header_offset, link)  # fmt: skip


def _find_header(stream: Pushback) -> bool:
    """Go to the next local header: usually right here, behind damage further on. False at the directory or the end."""
    while data := stream.peek(STEP_BYTES):
        found = [at for at in (data.find(_LOCAL), data.find(_CENTRAL)) if at >= 0]
        if found:
            read_exactly(stream, min(found))
            return stream.peek(4) == _LOCAL
        read_exactly(stream, max(len(data) - 3, 1))
    return False


def _local_header(stream: Pushback) -> _Header | None:
    """Read a local header; none when there is no such thing here. Raises `Damaged` at the end of the stream."""
    fields = _HEADER.unpack(read_exactly(stream, _HEADER.size))
    signature, _, flags, method, time, date, crc, packed_bytes, size_bytes, name_bytes, extra_bytes = fields
    if signature != _LOCAL:
        return None
    name, extra = read_exactly(stream, name_bytes), read_exactly(stream, extra_bytes)
    moment = (1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, 2 * (time & 31))
    header = _Header(name, flags, method, crc, packed_bytes, size_bytes, _mtime(moment, extra))
    if flags & _DESCRIPTOR and not packed_bytes:
        return replace(header, crc=None, packed_bytes=None, size_bytes=None)
    long = dict(_extras(extra)).get(1, b"")
    if packed_bytes == 0xFFFFFFFF and len(long) >= 16:  # zip64
        size_bytes, packed_bytes = struct.unpack_from("<QQ", long)
        return replace(header, packed_bytes=packed_bytes, size_bytes=size_bytes)
    return header


def _extras(extra: bytes) -> Iterator[tuple[int, bytes]]:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def _mtime(moment: tuple[int, ...], extra: bytes) -> float | None:
    """Unix time from Info-ZIP's extra field; else DOS time, whose zone is unknown, taken as UTC."""
    stamp = dict(_extras(extra)).get(0x5455, b"")
    if len(stamp) >= 5 and stamp[0] & 1:
        return float(struct.unpack_from("<i", stamp, 1)[0])
    if moment <= (1980, 1, 1, 0, 0, 0):
        return None
    return float(calendar.timegm((*moment, 0, 0, 0)))


def _entry(header: _Header, stream: Stream, guard: Guard, note: Note) -> Entry:
    """The entry whose data begin here."""
    if header.name.endswith(b"/"):
        return Entry(header.name, header.mtime_s, None)
    if header.link:
        return Entry(header.name, header.mtime_s, None, "is a link and was not followed")
    packed = stream if header.packed_bytes is None else Limited(stream, header.packed_bytes)
    if header.flags & _ENCRYPTED:
        return Entry(header.name, header.mtime_s, _Checked(packed, None, header),
                     "is encrypted: unpack the archive with its password and give the folder")  # fmt: skip
    try:
        codec = _codec(header.method, packed)
    except (Damaged, OverBudget) as error:
        return Entry(header.name, header.mtime_s, None, f"{error}")
    if codec is None and header.method:
        return Entry(header.name, header.mtime_s, None, f"is packed by method {header.method}, which is not supported")
    unpacked = Unpacked(packed, codec, guard, several=False) if codec is not None else None
    return Entry(header.name, header.mtime_s, _Checked(packed, unpacked, header))


def _codec(method: int, packed: Stream) -> Codec | None:
    """How an entry is packed, none for stored and unknown ones. LZMA begins with a small header, which is read here."""
    if method == 14:
        _, _, properties, dictionary_bytes = struct.unpack("<HHBI", read_exactly(packed, 9))
        if properties >= 225 or dictionary_bytes > MAX_DICTIONARY_BYTES:
            raise Damaged("has LZMA properties that are wrong or would take too much memory")
        lzma1 = {"id": lzma.FILTER_LZMA1, "lc": properties % 9, "lp": properties // 9 % 5, "pb": properties // 45,
                 "dict_size": max(dictionary_bytes, 4096)}  # fmt: skip
        return replace(XZ, name="lzma", decoder=lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[lzma1]))
    return {8: Codec("deflate", bool, deflate, in_bytes=64 << 10), 12: BZIP2, 93: ZSTD, 95: XZ}.get(method)


class _Checked:
    """The content of an entry, held against the length and checksum that the archive states."""
