"""Where fuzzed bytes come from: pieces of the samples, changed in ways that hurt parsers.

Hypothesis draws the piece and the changes, so a failure shrinks to few changes of a small piece.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import regex
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_SEED_BYTES = 1 << 20
PIECE_LINES = 50
PIECE_BYTES = 12_000

NUMBERS = (
    "-1", "0", "9" * 25, "9" * 5000, "1e400", "-1e400", "1e-400", "NaN", "inf", "-0", "0x1f", "1_000", "1,024", "١٢", "٣", "²",
    "18446744073709551616", "9223372036854775807", "2147483648", "-2147483649", "0.0000000001", "1e17", "1.5.5", "",
    "253402300800", "99999999999999", "+5", "00", "1.", ".5",
)  # fmt: skip
"""What may stand where a number stood."""
TEXTS = (
    "", "\x00", "\x1b[31m", "\x1b]52;c;eA==\x07", "\u202e", "\ufeff", "\ufffd", "\r", "\t", "\x85", "\u2028", "{", "}", "[", "]",
    '"', "'", "\\", "\\u0000", '\\ud800', ":", ",", "|", "`", "${x}", "{{x}}", "%s%n", "<script>", "---", "...", "- ", "? ", "&a",
    "*a", "<<: ", "!!python/object:x", "null", "true", "~", "=", "#", "-", "(", ")", "A" * 3000, "[" * 300, "(" * 300, " " * 2000,
    '{"a":' * 200, "a: {b: " * 100, "0000-00-00T00:00:00Z", "9999-12-31T23:59:60.999999999Z", "2026-02-30 25:61:61",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "Feb 30 25:61:61", "Sun Nov 29 21:24:17 9999", "[9999999999999.999999]",
    "99999999y", "5m", "Mon, 30 Feb 2026 25:61:61 +9999", "\nTraceback (most recent call last):\n", "\n\n", "\r\n",
    "Killed process 1 (x) total-vm:1kB, anon-rss:1kB, file-rss:0kB", "oom-kill:constraint=CONSTRAINT_NONE,",
    "python3 invoked oom-killer: gfp_mask=0xcc0, order=0", "NVRM: Xid (PCI:0000:3b:00): 79, ", "(EngineCore_DP0 pid=1) ",
    "ERROR 11-29 21:25:17 [core.py:1] ", "I1129 21:25:17.123456    1 a.go:1] ", "Nov 29 21:25:17 gpu-node-7 kernel: ",
    "2026-11-29T21:25:17.123456789Z stdout F ", "[pod/a/b] ",
)  # fmt: skip
"""What may be put anywhere."""
_NUMBER = regex.compile(r"-?\d+(?:\.\d+)?")


def _head(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(MAX_SEED_BYTES)
    except (OSError, EOFError):  # a sample of damage
        return b""


@cache
def pieces() -> tuple[bytes, ...]:
    """Heads and middles of all sample files, and of the files in the folder `FUZZ_CORPUS`, if that is set."""
    found: dict[bytes, None] = {}
    roots = [ROOT / "samples", *(Path(path) for path in filter(None, [os.environ.get("FUZZ_CORPUS")]))]
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".toml" and path.stat().st_size < 4 << 20:
                lines = _head(path).split(b"\n")
                for start in {0, len(lines) // 2, max(0, len(lines) - PIECE_LINES)}:
                    found[b"\n".join(lines[start : start + PIECE_LINES])[:PIECE_BYTES]] = None
    return tuple(found)


@cache
def patterns() -> tuple[bytes, ...]:
    """Pattern files, made a user's own."""
    files = sorted((ROOT / "patterns").glob("*/*.toml"))
    return tuple(regex.sub(rb'(?m)^id = ".*"', b'id = "mine.one"', path.read_bytes()) for path in files)


@cache
def archives() -> tuple[bytes, ...]:
    """Small archives of every kind, some of them inside others."""
    content = {"bundle/engine.log": pieces()[0], "bundle/k8s/pods.json": b"{}", "../../x": b"x\n", "b/\x1b[2J\n\u202ename": b"y\n"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo(f"special-{kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    plain = buffer.getvalue()
    made = [plain, gzip.compress(plain, mtime=0), lzma.compress(plain)]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, data in {**content, "inner.tar.gz": made[1]}.items():
                archive.writestr(zipfile.ZipInfo(name), data, method)
        made.append(buffer.getvalue())
    made.append(gzip.compress(made[-1], mtime=0) + gzip.compress(b"more", mtime=0))
    return tuple(made)


def _changed(data: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    for kind, place, which in changes:
        data = _CHANGES[kind % len(_CHANGES)](data, place, which)
    return data[: 4 * PIECE_BYTES]


def _number(data: bytes, place: int, which: int) -> bytes:
    text = data.decode("utf-8", "replace")
    spots = [found.span() for found in _NUMBER.finditer(text)]
    if not spots:
        return data
    start, end = spots[place % len(spots)]
    return (text[:start] + NUMBERS[which % len(NUMBERS)] + text[end:]).encode("utf-8", "replace")


def _text(data: bytes, place: int, which: int) -> bytes:
    at = place % (len(data) + 1)
    return data[:at] + TEXTS[which % len(TEXTS)].encode() + data[at:]


def _drop(data: bytes, place: int, which: int) -> bytes:
    lines = data.split(b"\n")
    at = place % len(lines)
    del lines[at : at + 1 + which % 5]
    return b"\n".join(lines)


def _twice(data: bytes, place: int, which: int) -> bytes:
    lines = data.split(b"\n")
    at = place % len(lines)
    return b"\n".join([*lines[:at], *[lines[at]] * (2 + which % 40), *lines[at:]])


def _splice(data: bytes, place: int, which: int) -> bytes:
    lines, others = data.split(b"\n"), pieces()[which % len(pieces())].split(b"\n")
    at = place % len(lines)
    return b"\n".join([*lines[:at], *others[place % len(others) :][:6], *lines[at:]])


def _cut(data: bytes, place: int, which: int) -> bytes:
    at = place % (len(data) + 1)
    return data[:at] if which % 2 else data[at:]


def _flip(data: bytes, place: int, which: int) -> bytes:
    if not data:
        return data
    at = place % len(data)
    return data[:at] + bytes([data[at] ^ (1 << which % 8)]) + data[at + 1 :]


def _indent(data: bytes, place: int, which: int) -> bytes:
    lines = data.split(b"\n")
    at = place % len(lines)
    lines[at] = b" " * (which % 12) + lines[at].strip()
    return b"\n".join(lines)


_CHANGES = (_number, _text, _number, _drop, _twice, _splice, _cut, _flip, _indent)
_change = st.tuples(st.integers(0, len(_CHANGES) - 1), st.integers(0, 20_000), st.integers(0, 1000))


def _of(seeds: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(_changed, seeds, st.lists(_change, max_size=8))


_bytes_and_piece = st.builds(lambda head, data: bytes([head]) + data, st.integers(0, 255), _of(st.deferred(lambda: st.sampled_from(pieces()))))
_piece = _of(st.deferred(lambda: st.sampled_from(pieces())))
_line = st.one_of(_of(st.deferred(lambda: st.sampled_from(pieces())).map(lambda p: max(p.split(b"\n"), key=len))), st.text().map(str.encode))
_times = st.sampled_from([text for text in TEXTS if any(char.isdigit() for char in text)]).map(str.encode)

STRATEGIES: dict[str, st.SearchStrategy[bytes]] = {
    "bundle": _of(st.deferred(lambda: st.sampled_from(archives()))),
    "analyze": _piece,
    "document": _bytes_and_piece,
    "log": _bytes_and_piece,
    "line": _line,
    "stamp": st.one_of(_of(_times), _line, st.text(max_size=40).map(str.encode)),
    "signature": _of(st.deferred(lambda: st.sampled_from(patterns()))),
    "report": st.one_of(st.text().map(str.encode), _piece),
    "redaction": st.one_of(st.text().map(str.encode), _piece),
}
