"""The archives and traps that were captured or made with real tools."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from forensics.bundle import Budget, Bundle
from forensics.bundle.rotation import rotation_of


def test_every_wrapper_holds_the_same_bundle(captures: Path, read: Callable[..., object]) -> None:
    """All archives of one folder give the same members and bytes as the folder."""
    folder = captures / "archives/bundle"
    whole = {f"bundle/{path}": data for path, data in read(folder).contents.items()}
    assert len(whole) == 8
    seen = 0
    for archive in sorted((captures / "archives").glob("bundle*.*")):
        got = read(archive).contents
        top = "" if archive.name == "bundle_no_top_folder.tar" else "bundle/"
        assert {name: whole[name.replace(top, "bundle/", 1) if top else f"bundle/{name}"] for name in got} == got
        seen += len(got) == len(whole)
    assert seen == 8


def test_every_compression_holds_the_same_file(captures: Path, read: Callable[..., object]) -> None:
    """One file in five compressions; names that lie; two gzip members in one file."""
    folder = captures / "archives"
    (text,) = read(folder / "bundle/node/dmesg.txt").contents.values()
    for packed in sorted(folder.glob("dmesg.txt.*")):
        assert read(packed).contents == {f"{packed.name}!": text}
    assert read(folder / "two_members_concatenated.log.gz").contents["two_members_concatenated.log.gz!"].count(b"\n") == 100
    assert set(read(folder / "extension_lies_plain_text.gz").contents) == {"extension_lies_plain_text.gz"}
    assert set(read(folder / "extension_lies_gzip_inside.log").contents) == {"extension_lies_gzip_inside.log!"}


def test_rotated_set(captures: Path, read: Callable[..., object]) -> None:
    """Ordered by number, not by name: the stamps of the first lines rise."""
    contents = read(captures / "archives/rotated").contents
    order = rotation_of(contents)
    paths = sorted(contents, key=lambda path: order[path][1])
    stamps = [contents[path].split(b" [", 1)[0] for path in paths]
    assert len(stamps) == 5
    assert stamps == sorted(stamps)


def test_traps(captures: Path) -> None:
    """Every trap ends quickly, without an exception; where something is cut it is said."""
    silent = {"README.md", "duplicate_names.tar.gz", "duplicate_names.zip", "empty.tar", "empty_stream.gz", "zero_bytes.gz",
              "zero_bytes.zip", "empty_archive.tar", "empty_archive.tar.gz", "nested_5_deep.tar.gz", "non_utf8_member_names.tar",
              "setuid_and_odd_modes.tar.gz"}  # fmt: skip
    for trap in sorted((captures / "hostile").glob("*.*")):
        began = time.monotonic()
        bundle = Bundle((str(trap),), Budget(members=2000))
        for member in bundle.members():
            for _ in member.blocks(1 << 20):
                pass
        assert time.monotonic() - began < 20, trap.name
        assert bool(bundle.diagnostics) == (trap.name not in silent), trap.name
