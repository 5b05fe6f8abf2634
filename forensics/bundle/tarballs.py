"""tar (POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU, V7) as a stream of entries.

`tarfile` decodes the headers. The walk is our own: `tarfile` ends without a word at a damaged header, reads names of
any length into memory, and fills the holes of sparse files with zeros.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..model import Severity
from .budget import Damaged, Stream
from .streams import Limited, read_exactly, read_up_to, skip

BLOCK = 512
_MAX_HEADER_BYTES = 1 << 20
_MAX_SPARSE_BYTES = 2 << 20
_FILES = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE})
_LINKS = frozenset({tarfile.LNKTYPE, tarfile.SYMTYPE})
_DEVICES = frozenset({tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE})


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive."""

    name: str | bytes
    """As stored."""
    mtime_s: float | None
    content: Stream | None
    """None for what is no regular file."""
    remark: str = ""
    """What was left out, as the end of a sentence."""
    severity: Severity = Severity.NOTICE
    """Of the remark."""


@dataclass(slots=True)
class _Extra:
    """What extra headers say about the next entry."""

    name: str | bytes = b""
    size: int | None = None
    mtime_s: float | None = None
    sparse: dict[str, str] = field(default_factory=dict)


def is_tar(head: bytes) -> bool:
    """By the magic of ustar and GNU, or by the checksum of the header (V7)."""
    return head[257:262] == b"ustar" or (len(head) >= BLOCK and _header(head[:BLOCK]) is not None)


def entries(stream: Stream, note: Callable[[str, str], None]) -> Iterator[Entry]:
    """All entries; the content of one must be read before the next is asked for. `note(problem, hint)` hears of damage.

    Raises what the stream raises. A damaged header is passed over: the next intact one goes on.
    """
    extra = _Extra()
    lost = ended = False
    while block := _next_block(stream, ended, note):
        info = _header(block)
        if info is None:
            if any(block):
                if ended:
                    note("has something else behind its end, which was ignored", "")
                    return
                if not lost:
                    note("has a damaged header; reading goes on at the next intact one", "pack and copy it again")
                lost = True
            ended = not lost
            continue
        lost = ended = False
        if info.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME,
                         tarfile.GNUTYPE_LONGLINK):  # fmt: skip
            _read_extra(info, stream, extra)
            continue
        yield from _entry(info, block, extra, stream)
        extra = _Extra()


def _next_block(stream: Stream, ended: bool, note: Callable[[str, str], None]) -> bytes:
    block, error = read_up_to(stream, BLOCK)
    if error is not None:
        raise error
    if len(block) == BLOCK:
        return block
    if block or not ended:
        note("ends without an end mark, so its last part may be missing", "pack and copy it again")
    return b""


def _header(block: bytes) -> tarfile.TarInfo | None:
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return None
    return info if info.size >= 0 else None


def _entry(info: tarfile.TarInfo, block: bytes, extra: _Extra, stream: Stream) -> Iterator[Entry]:
    name = extra.name or info.name
    size = info.size if extra.size is None else extra.size
    mtime_s = _plausible(info.mtime if extra.mtime_s is None else extra.mtime_s)
    if info.type not in _FILES:
        if info.type == tarfile.DIRTYPE:
            yield Entry(name, mtime_s, None)
        else:
            kind = "link" if info.type in _LINKS else "special file"
            yield Entry(name, mtime_s, None, f"is a {kind} and was not followed")
        if info.type not in _LINKS | _DEVICES | {tarfile.DIRTYPE}:  # an unknown kind: what follows is its content
            skip(stream, size + -size % BLOCK)
        return
    padding = -size % BLOCK
    sparse = info.type == tarfile.GNUTYPE_SPARSE or bool(extra.sparse)
    if info.type == tarfile.GNUTYPE_SPARSE:
        _skip_sparse_headers(block, stream)
    elif extra.sparse.get("major") == "1":
        size -= _skip_sparse_map(stream)
    content = Limited(stream, max(size, 0))
    yield Entry(name, mtime_s, content, "is sparse: its holes (runs of zeros) were left out" if sparse else "")
    skip(stream, content.left + padding)


def _read_extra(info: tarfile.TarInfo, stream: Stream, extra: _Extra) -> None:
    """A header that only describes the next entry; one that is absurdly long is passed over."""
    if info.size > _MAX_HEADER_BYTES or info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
        skip(stream, info.size + -info.size % BLOCK)
        return
    data = read_exactly(stream, info.size + -info.size % BLOCK)[: info.size]
    if info.type == tarfile.GNUTYPE_LONGNAME:
        extra.name = data.rstrip(b"\0")
        return
    for key, value in _pax_records(data):
        if key == b"path" and not extra.sparse.get("name"):
            extra.name = value
        elif key in (b"size", b"mtime"):
            try:
                number = float(value)
            except ValueError:
                continue
            if key == b"mtime":
                extra.mtime_s = number
            elif 0 <= number < 1 << 62:
                extra.size = int(value) if value.isdigit() else None
        elif key.startswith(b"GNU.sparse."):
            extra.sparse[key[11:].decode("ascii", "replace")] = value.decode("ascii", "replace")
            if key == b"GNU.sparse.name":
                extra.name = value


def _pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """`<length> <key>=<value>\\n`, again and again; ends at the first one that is malformed."""
    at = 0
    while at < len(data):
        digits, _, _ = data[at : at + 12].partition(b" ")
        if not digits.isdigit() or not len(digits) + 2 < int(digits) <= len(data) - at:
            return
        key, _, value = data[at + len(digits) + 1 : at + int(digits) - 1].partition(b"=")
        yield key, value
        at += int(digits)


def _plausible(seconds: float) -> float | None:
    """Unix time after 1980, where DOS begins; packers that want equal archives write 0 or 1980."""
    return float(seconds) if 315_619_200 < seconds < 4_102_444_800 else None


def _skip_sparse_headers(block: bytes, stream: Stream) -> None:
    """Old GNU sparse: more blocks with the map may stand before the data."""
    more, used = block[482], 0
    while more:
        more = read_exactly(stream, BLOCK)[504]
        used += BLOCK
        if used > _MAX_SPARSE_BYTES:
            raise Damaged("has a sparse map without end")


def _skip_sparse_map(stream: Stream) -> int:
    """GNU sparse 1.0: the data begin with the map, decimal numbers in lines. Returns the bytes passed over."""
    block = read_exactly(stream, BLOCK)
    regions = block.partition(b"\n")[0]
    if not regions.isdigit() or len(regions) > 9:
        raise Damaged("has a damaged sparse map")
    left, used = 1 + 2 * int(regions) - block.count(b"\n"), BLOCK
    while left > 0:
        left -= read_exactly(stream, BLOCK).count(b"\n")
        used += BLOCK
        if used > _MAX_SPARSE_BYTES:
            raise Damaged("has a sparse map without end")
    return used
