"""What a zip (APPNOTE 6.3.10) says about its entries: in the directory at its end, and in front of each of them."""

from __future__ import annotations

import calendar
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from .budget import Stream
from .streams import read_exactly

LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
ENCRYPTED, DESCRIPTOR, UTF8 = 0x1, 0x8, 0x800
"""General purpose flags."""
FIXED = struct.Struct("<4s5H3I2H")
"""The local header without name and extra fields."""
MAX_DIRECTORY_BYTES = 64 << 20
"""About half a million entries; every one becomes an object of `zipfile`."""
_ZIP64, _UNIX_TIMES = 0x0001, 0x5455
_END_BYTES = 22 + 20 + 56
"""The end record, the ZIP64 locator and the ZIP64 end record."""


@dataclass(frozen=True, slots=True)
class ZipHeader:
    """One entry."""

    name: bytes
    flags: int
    method: int
    crc: int | None
    """None where only a descriptor behind the data knows it; so the sizes."""
    packed_bytes: int | None
    size_bytes: int | None
    mtime_s: float | None
    offset: int = 0
    """Of the local header; 0 in the local header itself."""
    link: bool = False


def is_zip(head: bytes) -> bool:
    """An entry, or the end of an empty archive; `PK00` begins a split archive of one part."""
    return head[:4] in (LOCAL, b"PK\x05\x06") or head[:8] == b"PK00" + LOCAL


def directory(file: BinaryIO) -> list[ZipHeader] | None:
    """The entries in the order of their data, or none when there is no sound directory of bearable size."""
    try:
        if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
            return None
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error, OverflowError, IndexError):
        return None
    headers = sorted((_of_info(info) for info in infos), key=lambda header: header.offset)
    return headers if not headers or headers[0].offset >= 0 else None


def local_header(stream: Stream) -> ZipHeader | None:
    """Read the header in front of an entry; none when there is no such thing here.

    Raises `Damaged` when it is cut off, and what the stream raises.
    """
    signature, _, flags, method, time, date, crc, packed_bytes, size_bytes, name_bytes, extra_bytes = FIXED.unpack(
        read_exactly(stream, FIXED.size)
    )
    if signature != LOCAL:
        return None
    name, extra = read_exactly(stream, name_bytes), read_exactly(stream, extra_bytes)
    moment = (1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, 2 * (time & 31))
    header = ZipHeader(name, flags, method, crc, packed_bytes, size_bytes, _mtime(moment, extra))
    if flags & DESCRIPTOR and not packed_bytes:
        return replace(header, crc=None, packed_bytes=None, size_bytes=None)
    long_sizes = dict(_extras(extra)).get(_ZIP64, b"")
    if packed_bytes == 0xFFFFFFFF and len(long_sizes) >= 16:
        size_bytes, packed_bytes = struct.unpack_from("<QQ", long_sizes)
        return replace(header, packed_bytes=packed_bytes, size_bytes=size_bytes)
    return header


def _directory_bytes(file: BinaryIO) -> int:
    """Size of the directory as the end records state it, 0 when none is found."""
    size = file.seek(0, 2)
    start = file.seek(max(0, size - (64 << 10) - _END_BYTES))
    tail = file.read(size - start)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 16:
        return 0
    (length,) = struct.unpack_from("<I", tail, end + 12)
    long_end = tail.rfind(b"PK\x06\x06")
    if length == 0xFFFFFFFF and 0 <= long_end <= len(tail) - 48:
        (length,) = struct.unpack_from("<Q", tail, long_end + 40)
    return int(length)


def _of_info(info: zipfile.ZipInfo) -> ZipHeader:
    name = info.orig_filename.encode("utf-8" if info.flag_bits & UTF8 else "cp437", "replace")
    return ZipHeader(
        name,
        info.flag_bits,
        info.compress_type,
        info.CRC,
        info.compress_size,
        info.file_size,
        _mtime(info.date_time, info.extra),
        info.header_offset,
        link=info.create_system == 3 and info.external_attr >> 28 == 0xA,  # Unix, S_IFLNK
    )


def _extras(extra: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        yield kind, extra[at + 4 : at + 4 + length]
        at += 4 + length


def _mtime(moment: tuple[int, ...], extra: bytes) -> float | None:
    """Unix time from Info-ZIP's extra field; else DOS time, whose zone is unknown, taken as UTC."""
    stamp = dict(_extras(extra)).get(_UNIX_TIMES, b"")
    if len(stamp) >= 5 and stamp[0] & 1:
        return float(struct.unpack_from("<i", stamp, 1)[0])
    year, month, day, hour, minute, second = moment
    if (year, month, day) <= (1980, 1, 1) or not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24):
        return None  # the default of packers that want equal archives, or no date at all
    return float(calendar.timegm((year, month, 1, hour, minute, second, 0, 0, 0)) + 86400 * (day - 1))
