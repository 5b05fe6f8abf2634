"""A small bundle, packed in every way, and a reader that reads it whole."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from forensics.bundle import Budget, Bundle
from forensics.model import Diagnostic

FILES = {
    "incident/engine.log": b"".join(b"(EngineCore_DP0 pid=71) INFO 06-11 06:%02d:%02d step %d\n" % (i // 60 % 60, i % 60, i * i)
                                    for i in range(900)),
    "incident/k8s/describe.txt": b"Name:         vllm-llama-0\nNamespace:    inference\n",
    "incident/node/memory.max": b"68719476736\n",
    "incident/node/empty.txt": b"",
}  # fmt: skip


class Read(NamedTuple):
    """What one reading of a bundle gave."""

    contents: dict[str, bytes]
    diagnostics: list[Diagnostic]

    @property
    def said(self) -> str:
        """All messages and hints, one a line."""
        return "\n".join(f"{d.message} | {d.hint}" for d in self.diagnostics)


@pytest.fixture
def files() -> dict[str, bytes]:
    return FILES


@pytest.fixture
def read() -> Callable[..., Read]:
    def reader(*paths: Path | str, **limits: int) -> Read:
        bundle = Bundle(tuple(map(str, paths)), Budget(**limits))
        contents = {member.path: b"".join(member.blocks(70_000)) for member in bundle.members()}
        return Read(contents, bundle.diagnostics)

    return reader


def tar_of(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_781_157_600
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 6, 11, 6, 0, 0)), data, method)
    return buffer.getvalue()


@pytest.fixture
def make_tar() -> Callable[..., bytes]:
    return tar_of


@pytest.fixture
def make_zip() -> Callable[..., bytes]:
    return zip_of


PACKED = {
    "tar": lambda: tar_of(FILES),
    "tar-gnu": lambda: tar_of(FILES, tarfile.GNU_FORMAT),
    "tar-ustar": lambda: tar_of(FILES, tarfile.USTAR_FORMAT),
    "tar.gz": lambda: gzip.compress(tar_of(FILES)),
    "tar.bz2": lambda: bz2.compress(tar_of(FILES)),
    "tar.xz": lambda: lzma.compress(tar_of(FILES)),
    "tar.lzma": lambda: lzma.compress(tar_of(FILES), lzma.FORMAT_ALONE),
    "tar.zst": lambda: zstandard.compress(tar_of(FILES)),
    "zip-stored": lambda: zip_of(FILES, zipfile.ZIP_STORED),
    "zip-deflate": lambda: zip_of(FILES),
    "zip-bzip2": lambda: zip_of(FILES, zipfile.ZIP_BZIP2),
    "zip-lzma": lambda: zip_of(FILES, zipfile.ZIP_LZMA),
}


@pytest.fixture(params=PACKED)
def packed(request: pytest.FixtureRequest) -> bytes:
    """The small bundle, in one archive format after the other."""
    return PACKED[request.param]()
