"""Every container gives the same members, whatever it is called and wherever it comes from."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from forensics.bundle import Bundle

TEXT = b"first line\nlast line\n" * 2000
COMPRESSED = {
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "zstd": zstandard.compress(TEXT),
    "gzip in parts": gzip.compress(TEXT[:9000]) + gzip.compress(TEXT[9000:]),
    "xz in parts, padded": lzma.compress(TEXT[:9000]) + b"\0" * 8 + lzma.compress(TEXT[9000:]) + b"\0" * 4,
    "zstd in frames": zstandard.compress(TEXT[:9000]) + b"\x50\x2a\x4d\x18\4\0\0\0skip" + zstandard.compress(TEXT[9000:]),
    "gzip with all header fields": b"\x1f\x8b\x08\x1c" + bytes(6) + b"\2\0xxname.log\0remark\0" + gzip.compress(TEXT, mtime=0)[10:],
}  # fmt: skip


def test_archive(tmp_path: Path, packed: bytes, files: dict[str, bytes], read: Callable[..., object]) -> None:
    """An archive of any kind, under a name that says nothing, holds its files, byte by byte; nothing is remarked."""
    path = tmp_path / "upload"
    path.write_bytes(packed)
    got = read(path)
    assert got.contents == files
    assert got.diagnostics == []


def test_archive_on_standard_input(
    monkeypatch: pytest.MonkeyPatch, packed: bytes, files: dict[str, bytes], read: Callable[..., object]
) -> None:
    """The same through a pipe, where nothing can be sought."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self._data = io.BytesIO(packed)

        def read(self, size: int = -1) -> bytes:
            return self._data.read(min(size, 1000))

    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Pipe()}))
    assert read("-").contents == files


def test_large_zip_on_standard_input_is_read_header_by_header(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], read: Callable[..., object], make_zip: Callable[..., bytes]
) -> None:
    """A zip that is too large to be held in memory gives the same files."""
    monkeypatch.setattr("forensics.bundle.inputs.SPOOL_BYTES", 100)
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(make_zip(files))}))
    got = read("-")
    assert got.contents == files
    assert got.diagnostics == []


def test_zip_made_by_a_streaming_packer(tmp_path: Path, read: Callable[..., object]) -> None:
    """Sizes behind the data (`zip -`, Go): with the directory, and without it after a cut."""
    import zipfile

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    buffer = Pipe()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", TEXT)
        archive.writestr("b.log", TEXT[::-1])
    path = tmp_path / "x.zip"
    path.write_bytes(buffer.getvalue())
    assert read(path).contents == {"a.log": TEXT, "b.log": TEXT[::-1]}
    path.write_bytes(buffer.getvalue()[: buffer.getvalue().index(b"PK\1\2")])
    got = read(path)
    assert got.contents == {"a.log": TEXT, "b.log": TEXT[::-1]}
    assert "has lost its directory" in got.said


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_file(tmp_path: Path, name: str, read: Callable[..., object]) -> None:
    """A compressed file is one member, marked with `!`; parts are joined."""
    path = tmp_path / "engine.log.1"
    path.write_bytes(COMPRESSED[name])
    got = read(path)
    assert got.contents == {"engine.log.1!": TEXT}
    assert got.diagnostics == []


def test_names_of_nested_members(
    tmp_path: Path, read: Callable[..., object], make_tar: Callable[..., bytes], make_zip: Callable[..., bytes]
) -> None:
    """The only input's own name is left away; an archive inside is a folder; a compressed file bears a `!` per layer."""
    ray = gzip.compress(make_tar({"logs/raylet.out": b"r\n", "logs/old.gz": gzip.compress(b"o\n")}))
    inner = make_zip({"a.log": b"a\n", "twice.gz": gzip.compress(gzip.compress(b"t\n"))})
    path = tmp_path / "collected_logs.tar.gz"
    path.write_bytes(gzip.compress(make_tar({"ray_head_10.0.0.4.tar.gz": ray, "x/inner": inner, "top.log": b"l\n"})))
    assert read(path).contents == {
        "ray_head_10.0.0.4.tar.gz/logs/raylet.out": b"r\n",
        "ray_head_10.0.0.4.tar.gz/logs/old.gz!": b"o\n",
        "x/inner/a.log": b"a\n",
        "x/inner/twice.gz!!": b"t\n",
        "top.log": b"l\n",
    }


def test_extension_does_not_matter(tmp_path: Path, read: Callable[..., object]) -> None:
    """Plain text called `.gz` is text; text that begins like an lzma file but is none stays text."""
    (tmp_path / "plain.gz").write_bytes(b"no gzip at all\n")
    (tmp_path / "bracket.txt").write_bytes(b"]" + b"\0" * 2 + b"text" * 5)
    got = read(tmp_path)
    assert set(got.contents) == {"plain.gz", "bracket.txt"}


def test_several_inputs(tmp_path: Path, read: Callable[..., object], make_tar: Callable[..., bytes]) -> None:
    """Each input is a folder of its own name; equal names are told apart; one given twice is read once."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "dump.tar").write_bytes(make_tar({"x.log": folder.encode()}))
    (tmp_path / "one.log").write_bytes(b"1")
    got = read(tmp_path / "a/dump.tar", tmp_path / "b/dump.tar", tmp_path / "one.log", tmp_path / "b/../one.log", tmp_path / "a")
    assert got.contents == {
        "dump.tar/x.log": b"a", "dump.tar (2)/x.log": b"b", "one.log": b"1", "a/dump.tar/x.log": b"a",
    }  # fmt: skip
    assert "one.log was given twice" in got.said


def test_times_of_members(
    tmp_path: Path, read: Callable[..., object], make_tar: Callable[..., bytes], make_zip: Callable[..., bytes]
) -> None:
    """The time of a member is the archive's; a packer's default (1970, 1980) and nonsense are no times."""
    for data in (make_tar({"x": b""}), make_zip({"x": b""})):
        (tmp_path / "x").write_bytes(data)
        assert [member.mtime_s for member in Bundle((str(tmp_path / "x"),)).members()] == [1_781_157_600]
    default = bytearray(make_zip({"x": b""}))
    moment = struct.pack("<HH", 0, 33)  # 1980-01-01
    at = default.index(b"PK\1\2")
    default[at + 12 : at + 16] = moment
    (tmp_path / "x").write_bytes(default)
    assert [member.mtime_s for member in Bundle((str(tmp_path / "x"),)).members()] == [None]
