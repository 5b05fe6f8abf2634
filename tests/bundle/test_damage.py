"""Damage ends a member, or an archive, with a remark; what came before is kept."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from forensics.bundle import BLOCK_BYTES

RANDOM = random.Random(7)
TEXT = "".join(f"INFO 06-11 06:00:00 step {RANDOM.random()} of {RANDOM.random()}\n" for _ in range(10_000)).encode()
PACKERS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "zstd": zstandard.compress,
}
LOST_BYTES = {"gzip": 0, "bzip2": 900_000, "xz": 0, "lzma": 0, "zstd": 131_072}
"""What a cut costs besides the missing part: bzip2 and zstd unpack whole blocks only."""


@pytest.mark.parametrize("name", PACKERS)
def test_cut_stream(tmp_path: Path, name: str, read: Callable[..., object]) -> None:
    """A compressed file that was cut in the middle gives its first half, and says so."""
    packed = PACKERS[name](TEXT)
    (tmp_path / "x").write_bytes(packed[: len(packed) // 2])
    got = read(tmp_path / "x")
    half = got.contents["x!"]
    assert TEXT.startswith(half)
    assert len(half) > 0.4 * len(TEXT) - LOST_BYTES[name]
    assert "x! ends before its" in got.said


@pytest.mark.parametrize("name", PACKERS)
def test_damaged_stream(tmp_path: Path, name: str, read: Callable[..., object]) -> None:
    """A flipped byte ends the content at most one step (4 KiB) or one block too early."""
    packed = bytearray(PACKERS[name](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "x").write_bytes(packed)
    got = read(tmp_path / "x")
    kept = max(0, len(TEXT) // 3 - LOST_BYTES[name])
    assert got.contents["x!"][:kept] == TEXT[:kept]
    assert got.diagnostics


@pytest.mark.parametrize("place", [-8, -1])
def test_wrong_gzip_trailer(tmp_path: Path, place: int, read: Callable[..., object]) -> None:
    """A wrong checksum or length costs nothing: all is read, and the doubt is told."""
    packed = bytearray(gzip.compress(b"all of it\n"))
    packed[place] ^= 1
    (tmp_path / "x.gz").write_bytes(packed + gzip.compress(b"and the next\n"))
    got = read(tmp_path / "x.gz")
    assert got.contents == {"x.gz!": b"all of it\nand the next\n"}
    assert "gzip checksum" in got.said or "gzip trailer" in got.said


@pytest.mark.parametrize("name", PACKERS)
def test_something_else_behind_a_stream(tmp_path: Path, name: str, read: Callable[..., object]) -> None:
    """Zeros behind a stream are padding; anything else is told, and ignored."""
    packed = PACKERS[name](b"text\n")
    (tmp_path / "zeros").write_bytes(packed + bytes(5000))
    (tmp_path / "more").write_bytes(packed + b"\0\0 something appended by hand")
    got = read(tmp_path)
    assert got.contents == {"zeros!": b"text\n", "more!": b"text\n"}
    assert [d.source for d in got.diagnostics] == ["more"]


def test_cut_archive(tmp_path: Path, packed: bytes, files: dict[str, bytes], read: Callable[..., object]) -> None:
    """Whatever the archive, a cut never raises; what is read is the beginning of the files, and what is missing is told."""
    for share in (0.1, 0.5, 0.9, 0.99):
        (tmp_path / "x").write_bytes(packed[: int(share * len(packed))])
        got = read(tmp_path / "x")
        assert got.diagnostics or got.contents == files
        for name, data in got.contents.items():
            assert name in ("x", "x!") or files[name].startswith(data)


def test_corrupted_archive(tmp_path: Path, packed: bytes, read: Callable[..., object]) -> None:
    """Random bit flips, cuts, and repeats never raise."""
    chance = random.Random(len(packed))
    for _ in range(40):
        data = bytearray(packed)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            data[at] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            at = chance.randrange(len(data))
            data[at:at] = data[: chance.randrange(600)]
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        (tmp_path / "x").write_bytes(data)
        read(tmp_path / "x")


def test_damaged_tar_header(tmp_path: Path, files: dict[str, bytes], read: Callable[..., object], make_tar: Callable[..., bytes]) -> None:
    """The file behind a damaged header is lost, the ones after it are not."""
    data = bytearray(make_tar(files, tarfile.USTAR_FORMAT))
    data[data.index(b"incident/k8s/describe.txt")] ^= 0x20
    (tmp_path / "x.tar").write_bytes(data)
    got = read(tmp_path / "x.tar")
    assert set(files) - set(got.contents) == {"incident/k8s/describe.txt"}
    assert "damaged header" in got.said


def test_tar_without_end_mark_and_with_another_behind(tmp_path: Path, read: Callable[..., object], make_tar: Callable[..., bytes]) -> None:
    """A missing end mark is told; concatenated archives are read through (`tar -A`, `cat`)."""
    whole = make_tar({"a": b"1"}, tarfile.USTAR_FORMAT)
    (tmp_path / "x").write_bytes(whole[:1024])
    got = read(tmp_path / "x")
    assert got.contents == {"a": b"1"}
    assert "without an end mark" in got.said
    (tmp_path / "x").write_bytes(whole + make_tar({"b": b"2"}))
    assert read(tmp_path / "x").contents == {"a": b"1", "b": b"2"}
    (tmp_path / "x").write_bytes(whole + b"notes".ljust(1024, b"."))
    got = read(tmp_path / "x")
    assert got.contents == {"a": b"1"}
    assert "behind its end" in got.said


def test_zip_that_lies(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """A wrong checksum or length is told, with the content kept; a directory that points nowhere loses one file only."""
    whole = make_zip({"a.log": b"a" * 5000, "b.log": b"b" * 5000})
    central = whole.index(b"PK\1\2")
    for offset, message in ((16, "checksum"), (24, "shorter"), (42, "not at its place")):
        data = bytearray(whole)
        data[central + offset] ^= 1
        (tmp_path / "x.zip").write_bytes(data)
        got = read(tmp_path / "x.zip")
        assert got.contents["b.log"] == b"b" * 5000
        assert message in got.said


def test_encrypted_and_unknown_zip_entries(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """They are named, with what to do; the other files are read."""
    whole = make_zip({"a.log": b"a" * 50, "b.log": b"b" * 50})
    for flags, method, message in ((1, 8, "password"), (0, 97, "method 97, which is not supported")):
        data = bytearray(whole)
        for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            place = data.index(signature) + at
            data[place], data[place + 2] = flags, method
        (tmp_path / "x.zip").write_bytes(data)
        got = read(tmp_path / "x.zip")
        assert set(got.contents) == {"b.log"}
        assert message in got.said


def test_old_and_sparse_tar_entries(tmp_path: Path, read: Callable[..., object]) -> None:
    """V7 headers have no magic; of sparse files only the data are read, for their holes may be endless."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("old.log")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"old\n"))
    v7 = bytearray(buffer.getvalue())
    v7[257:265] = bytes(8)
    v7[148:156] = b"%06o\0 " % (sum(v7[:148]) + 8 * 32 + sum(v7[156:512]))
    (tmp_path / "v7.tar").write_bytes(v7)
    assert read(tmp_path / "v7.tar").contents == {"old.log": b"old\n"}

    sparse = tarfile.TarInfo("GNUSparseFile.0/hole.log")
    sparse.size = 512 + 4
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole.log",
                          "GNU.sparse.realsize": "8589934596"}  # fmt: skip
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(sparse, io.BytesIO(b"1\n8589934592\n4\n".ljust(512, b"\0") + b"end\n"))
        archive.addfile(tarfile.TarInfo("after.log"))
    (tmp_path / "sparse.tar").write_bytes(buffer.getvalue())
    got = read(tmp_path / "sparse.tar")
    assert got.contents == {"hole.log": b"end\n", "after.log": b""}
    assert "hole.log is sparse" in got.said


def test_error_in_the_middle_of_a_block_keeps_the_block(tmp_path: Path, read: Callable[..., object]) -> None:
    """Blocks are whole but for the last one, whatever the steps of the stream below."""
    (tmp_path / "x").write_bytes(gzip.compress(TEXT)[:-20])
    content = read(tmp_path / "x").contents["x!"]
    assert len(TEXT) - 4096 < len(content) <= len(TEXT) < BLOCK_BYTES


def test_zip_without_its_beginning(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """The directory then points in front of the file; the entries that are left are read by their own headers."""
    whole = make_zip({"a.log": b"a" * 500, "b.log": b"b" * 500})
    (tmp_path / "x.zip").write_bytes(whole[whole.index(b"PK\3\4", 4) :])
    assert read(tmp_path / "x.zip").contents == {"b.log": b"b" * 500}


def test_zip_with_impossible_lzma_properties(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """Properties that the decoder refuses cost that entry only."""
    data = bytearray(make_zip({"a.log": b"a" * 500, "b.log": b"b" * 500}, zipfile.ZIP_LZMA))
    data[data.index(b"a.log") + 5 + 4] = 44  # lc + lp > 4
    (tmp_path / "x.zip").write_bytes(data)
    got = read(tmp_path / "x.zip")
    assert got.contents == {"a.log": b"", "b.log": b"b" * 500}
    assert "a.log is damaged" in got.said
