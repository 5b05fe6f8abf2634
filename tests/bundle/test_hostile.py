"""Traps: names, links, devices, bombs. Nothing is followed or written; every limit names its flag."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from forensics.bundle.names import Unique, clean

ZEROS = bytes(3 << 20)


@pytest.fixture
def low_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small bombs are bombs."""
    monkeypatch.setattr("forensics.bundle.budget.RATIO_FLOOR_BYTES", 1 << 18)
    monkeypatch.setattr("forensics.bundle.budget.BUNDLE_RATIO_FLOOR_BYTES", 1 << 19)
    monkeypatch.setattr("forensics.bundle.budget.READ_AHEAD_BYTES", 1024)


NAMES = {
    "a/b.log": ("a/b.log", False),
    "./a//b.log": ("a/b.log", False),
    "a/../b.log": ("b.log", False),
    "../../etc/passwd": ("etc/passwd", True),
    "a/../../b": ("b", True),
    "/etc/cron.d/x": ("etc/cron.d/x", True),
    "//host/share": ("host/share", True),
    "C:\\Windows\\x.txt": ("Windows/x.txt", True),
    "..\\..\\x": ("x", True),
    "a\nb\x1b[31m.log": ("a\ufffdb\ufffd[31m.log", False),
    "\u202egol.exe": ("\ufffdgol.exe", False),
    "": ("(no name)", False),
    "..": ("(no name)", True),
    b"caf\xe9.log": ("caf\ufffd.log", False),
    "日志.log".encode("gbk"): ("日志.log", False),
    "日志.log".encode(): ("日志.log", False),
    "a\udcff.log": ("a\ufffd.log", False),
}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_are_cleaned(name: str | bytes) -> None:
    """A name is a relative path in valid Unicode without control characters; whether it pointed outside is known."""
    assert clean(name) == NAMES[name]


def test_long_names_are_shortened() -> None:
    """Both ends of an absurd name stay visible."""
    shown, _ = clean("d/" * 5000 + "x.log")
    assert len(shown) <= 1001
    assert shown.endswith("d/x.log")


def test_equal_names_are_told_apart() -> None:
    """The second gets a number; a file that has such a name already keeps it."""
    names = Unique()
    assert [names.name(n) for n in ("a", "a (2)", "a", "a", "A")] == ["a", "a (2)", "a (3)", "a (4)", "A"]


def test_links_devices_and_wrong_names_in_tar(tmp_path: Path, read: Callable[..., object]) -> None:
    """Links, devices and pipes are named and left out; a path through a link is only a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("s", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("c", tarfile.CHRTYPE),
                           ("b", tarfile.BLKTYPE), ("p", tarfile.FIFOTYPE), ("d", tarfile.DIRTYPE)):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ("s/through", "../up", "twice", "twice"):
            archive.addfile(tarfile.TarInfo(name))
    (tmp_path / "x.tar").write_bytes(buffer.getvalue())
    got = read(tmp_path / "x.tar")
    assert set(got.contents) == {"s/through", "up", "twice", "twice (2)"}
    assert sorted(d.message.split(" is a ")[0] for d in got.diagnostics if " is a " in d.message) == ["b", "c", "h", "p", "s"]
    assert "up has a name that points outside" in got.said
    assert list(tmp_path.iterdir()) == [tmp_path / "x.tar"]


def test_folder_with_links_pipes_and_unreadable_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[..., object]
) -> None:
    """In a folder the same holds; what cannot be opened is named with the reason."""
    top = tmp_path / "in"
    (top / "sub").mkdir(parents=True)
    (top / "a.log").write_bytes(b"a\n")
    (top / "sub/new\nline").write_bytes(b"b\n")
    (top / "loop").symlink_to(top)
    (top / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(top / "pipe")
    (top / "secret.log").write_bytes(b"s\n")
    real_open = Path.open

    def guarded(self: Path, *args: object, **kwargs: object) -> object:
        if self.name == "secret.log":
            raise PermissionError(13, "Permission denied")
        return real_open(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", guarded)
    got = read(top)
    assert got.contents == {"a.log": b"a\n", "sub/new\ufffdline": b"b\n"}
    for said in ("loop is a link", "passwd is a link", "pipe is a special file", "secret.log cannot be read: Permission"):
        assert said in got.said


BOMBS = {
    "gzip": gzip.compress(ZEROS),
    "xz": lzma.compress(ZEROS),
    "zstd": zstandard.compress(ZEROS),
    "gzip in gzip": gzip.compress(gzip.compress(ZEROS)),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("low_floors")
def test_bomb(tmp_path: Path, name: str, read: Callable[..., object], make_tar: Callable[..., bytes]) -> None:
    """A stream that unpacks to absurdly more than its size is stopped, alone and in an archive; a higher limit lets it."""
    (tmp_path / "bomb").write_bytes(BOMBS[name])
    got = read(tmp_path / "bomb")
    (content,) = got.contents.values()
    assert 1 << 18 <= len(content) + 4096 < 1 << 20
    assert "more than 500 times its size" in got.said
    assert "--max-ratio" in got.said
    assert sum(map(len, read(tmp_path / "bomb", ratio=10**6).contents.values())) == len(ZEROS)
    (tmp_path / "tar").write_bytes(make_tar({"bomb": BOMBS[name], "after.log": b"x"}))
    assert read(tmp_path / "tar").contents["after.log"] == b"x"


@pytest.mark.usefixtures("low_floors")
def test_bomb_of_many_streams(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """Many streams, each below the floor of a single one, are stopped together."""
    packed = gzip.compress(bytes(1 << 17))
    (tmp_path / "x.zip").write_bytes(gzip.compress(make_zip({f"{i}.gz": packed for i in range(50)})))
    got = read(tmp_path / "x.zip")
    assert len(got.contents) < 10
    assert "--max-ratio" in got.said


def test_zip_with_overlapping_entries(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """Many directory entries over the same data are read once."""
    whole = make_zip({"kernel": ZEROS})
    central = whole.index(b"PK\1\2")
    end = whole.index(b"PK\5\6")
    entry = whole[central:end]
    entries = b"".join(entry.replace(b"kernel", b"kern%02d" % i) for i in range(50))
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 50, 50, len(entries), central, 0)
    (tmp_path / "x.zip").write_bytes(whole[:central] + entries + tail)
    got = read(tmp_path / "x.zip")
    assert [len(data) for data in got.contents.values()] == [len(ZEROS)]
    assert "overlaps the next file" in got.said
    assert "29 more like this" in got.said


def test_limits_name_their_flags(tmp_path: Path, read: Callable[..., object], make_tar: Callable[..., bytes]) -> None:
    """Each limit stops the reading, keeps what was read, and names the option that raises it."""
    files = {f"{i}.log": b"x" * 100_000 for i in range(9)}
    (tmp_path / "x.tar").write_bytes(make_tar(files))
    got = read(tmp_path / "x.tar", total_bytes=450_000)
    assert list(got.contents) == ["0.log", "1.log", "2.log", "3.log", "4.log"]
    assert got.said.count("--max-bytes") == 1
    got = read(tmp_path / "x.tar", total_bytes=350_000)
    assert "0.log is larger than 87,500 bytes" in got.said
    got = read(tmp_path / "x.tar", members=3)
    assert list(got.contents) == ["0.log", "1.log", "2.log"]
    assert "3.log is one of more than 3 files; it and everything after it was skipped" in got.said
    assert "--max-members" in got.said
    nested = make_tar({"deep.log": b"d"})
    for level in range(3):
        nested = gzip.compress(make_tar({f"{level}.tgz": nested, f"{level}.log": b"l"}))
    (tmp_path / "n.tgz").write_bytes(nested)
    assert "2.tgz/1.tgz/0.tgz/deep.log" in read(tmp_path / "n.tgz", depth=4).contents
    got = read(tmp_path / "n.tgz", depth=2)
    assert set(got.contents) == {"2.log", "2.tgz/1.log"}
    assert "--max-depth" in got.said


def test_gzip_quine_ends(tmp_path: Path, read: Callable[..., object]) -> None:
    """A compression inside a compression counts as a level, so nothing unpacks for ever."""
    data = b"end\n"
    for _ in range(12):
        data = gzip.compress(data)
    (tmp_path / "x.gz").write_bytes(data)
    got = read(tmp_path / "x.gz")
    assert got.contents == {}
    assert "lies more than 6 archives deep" in got.said


def test_headers_that_claim_too_much(tmp_path: Path, read: Callable[..., object]) -> None:
    """Sizes and name lengths of terabytes neither reserve memory nor read for ever."""
    info = tarfile.TarInfo("claims.log")
    info.size = 1 << 40
    long_name = tarfile.TarInfo("././@LongLink")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"text\n".ljust(512, b"."))
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(long_name.tobuf(tarfile.GNU_FORMAT) + ZEROS))
    tracemalloc.start()
    got = read(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got.contents["a.tar/claims.log"].startswith(b"text\n")
    assert "bytes early" in got.said
    assert peak < 10 << 20


def test_many_equal_remarks_are_counted(tmp_path: Path, read: Callable[..., object]) -> None:
    """A hundred thousand links do not make as many remarks."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for index in range(300):
            info = tarfile.TarInfo(f"l{index}")
            info.type = tarfile.SYMTYPE
            archive.addfile(info)
    (tmp_path / "x.tar").write_bytes(buffer.getvalue())
    got = read(tmp_path / "x.tar")
    assert len(got.diagnostics) == 21
    assert "280 more like this: … is a link and was not followed" in got.said


def test_directory_of_a_zip_may_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], read: Callable[..., object], make_zip: Callable[..., bytes]
) -> None:
    """Then the zip is read header by header, without an object for each of millions of entries."""
    monkeypatch.setattr("forensics.bundle.zip_headers.MAX_DIRECTORY_BYTES", 10)
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda self: pytest.fail("the directory was read"))
    (tmp_path / "x.zip").write_bytes(make_zip(files))
    assert read(tmp_path / "x.zip").contents == files


def test_empty_things(tmp_path: Path, read: Callable[..., object], make_zip: Callable[..., bytes]) -> None:
    """Nothing is an error; an empty archive says that it is one."""
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "c.zip").write_bytes(make_zip({}))
    got = read(tmp_path)
    assert got.contents == {"a": b"", "b.gz!": b""}
    assert "c.zip is an archive without files" in got.said
