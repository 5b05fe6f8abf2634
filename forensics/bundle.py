"""Open archives, folders, files and standard input, lazily and without touching the disk.

`open_bundle` yields one `Member` after another; its bytes must be read before the next one is asked for, because tar
is a stream. Nothing is ever written, links and devices are never followed, and every cut is reported.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from .errors import InputError
from .model import Diagnostic, Severity

BLOCK_BYTES = 8 << 20
_GZIP = b"\x1f\x8b"
_TAR_MAGIC_AT = 257


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits against hostile input; each can be raised by a flag."""

    total_bytes: int = 64 << 30
    """Unpacked bytes over all members."""
    member_bytes: int = 16 << 30
    ratio: int = 1200
    """Unpacked over packed, checked once a stream has given 64 MiB. Real logs stay below 200."""
    members: int = 1_000_000
    depth: int = 4
    """Archives inside archives."""


@dataclass(slots=True)
class Member:
    """One regular file of the bundle; read it with `blocks()` once, in order."""

    path: str
    mtime_s: float | None
    stream: BinaryIO
    report: Callable[[Diagnostic], None]
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    size_bytes: int = 0
    cut: str = ""
    """Why reading ended early, or empty."""

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The content in blocks; damage ends it with a diagnostic instead of an exception."""
        while True:
            block = self._read(block_bytes)
            if not block:
                return
            self._digest.update(block)
            self.size_bytes += len(block)
            yield block

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self.stream.read(size)
            except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, RuntimeError) as error:
                self._stop(f"damaged or cut off: {error}", "copy the file again; what came before is analysed")
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _stop(self, reason: str, hint: str) -> None:
        if not self.cut:
            self.cut = reason
            self.report(Diagnostic(self.path, None, Severity.WARNING, f"{self.path} is {reason}", hint))
        self.stream = io.BytesIO()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


@dataclass(slots=True)
class Bundle:
    """A set of inputs to read once."""

    paths: tuple[str, ...]
    budget: Budget = Budget()
    diagnostics: list[Diagnostic] = field(default_factory=list)
    used_bytes: int = 0
    used_members: int = 0

    @property
    def name(self) -> str:
        """What the report calls the bundle: base names only, so that the place does not matter."""
        names = ["stdin" if path == "-" else Path(path).resolve().name for path in self.paths]
        return ", ".join(names)

    def members(self) -> Iterator[Member]:
        """All members in a fixed order. Raises `InputError` when an input path cannot be used at all."""
        for path in self.paths:
            if path != "-":
                _check_path(path)
        prefix_names = len(self.paths) > 1
        for path in self.paths:
            if path == "-":
                yield from self._open("stdin", cast(BinaryIO, sys.stdin.buffer), None, 0, top=not prefix_names)
            elif Path(path).is_dir():
                yield from self._folder(Path(path), Path(path).resolve().name + "/" if prefix_names else "")
            else:
                file = Path(path)
                with file.open("rb") as handle:
                    yield from self._open(file.name, handle, file.stat().st_mtime, 0, top=not prefix_names)

    def _folder(self, root: Path, prefix: str) -> Iterator[Member]:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                full = Path(folder) / name
                shown = prefix + full.relative_to(root).as_posix()
                shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                try:
                    info = full.lstat()
                    if not stat.S_ISREG(info.st_mode):
                        self._say(shown, "is a link or a special file and was not followed", "")
                        continue
                    with full.open("rb") as handle:
                        yield from self._open(shown, handle, info.st_mtime, 0)
                except OSError as error:
                    self._say(shown, f"cannot be read: {error.strerror}", "check the file's permissions")

    def _open(
        self, path: str, stream: BinaryIO, mtime_s: float | None, depth: int, top: bool = False
    ) -> Iterator[Member]:
        """Look at the first bytes: unpack archives and compressed files, yield everything else.

        `top` says that this is the only input, so that its own name would be noise in front of its members' names.
        """
        stream, head = _peek(stream, 512 + _TAR_MAGIC_AT)
        if head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar" and depth <= self.budget.depth:
            yield from self._tar(path, stream, depth, "" if top else f"{path}/")
        elif head[:2] == _GZIP and depth <= self.budget.depth:
            yield from self._gzip(path, stream, mtime_s, depth, top)
        else:
            yield from self._plain(path, stream, mtime_s)

    def _plain(self, path: str, stream: BinaryIO, mtime_s: float | None) -> Iterator[Member]:
        self.used_members += 1
        if self.used_members > self.budget.members:
            if self.used_members == self.budget.members + 1:
                self._say(path, f"and all after it were skipped: more than {self.budget.members} files",
                          "raise the limit with --max-members")  # fmt: skip
            return
        member = Member(path, mtime_s, cast(BinaryIO, _Metered(stream, self)), self.diagnostics.append)
        yield member

    def _gzip(
        self, path: str, stream: BinaryIO, mtime_s: float | None, depth: int, top: bool
    ) -> Iterator[Member]:
        from isal import igzip

        counted = _Counted(stream)
        plain = cast(BinaryIO, _Unpacked(igzip.IGzipFile(fileobj=cast(IO[bytes], counted)), counted, self.budget))
        inner = path if _looks_like_archive(path) else f"{path}!"
        yield from self._open(inner, plain, mtime_s, depth + 1, top)

    def _tar(self, path: str, stream: BinaryIO, depth: int, prefix: str) -> Iterator[Member]:
        last = path
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 20) as archive:
                for info in archive:
                    archive.members = []  # tarfile keeps every header otherwise: memory grows with the bundle
                    last = name = prefix + _clean_name(info.name)
                    if info.isdir():
                        continue
                    if not info.isreg():
                        self._say(name, "is a link or a special file and was not followed", "")
                        continue
                    content = archive.extractfile(info)
                    if content is not None:
                        yield from self._open(name, cast(BinaryIO, content), float(info.mtime), depth + 1)
        except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
            self._say(path, f"is damaged or cut off after {last}: {error}",
                      "pack and copy it again; the members before it are analysed")  # fmt: skip

    def _say(self, path: str, problem: str, hint: str) -> None:
        self.diagnostics.append(Diagnostic(path, None, Severity.WARNING, f"{path} {problem}", hint))


def _check_path(path: str) -> None:
    try:
        Path(path).stat()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder; check the path") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check that you may read it") from None


def _looks_like_archive(path: str) -> bool:
    return path.lower().endswith((".tgz", ".tar.gz", ".taz"))


def _clean_name(name: str) -> str:
    """A member name as it may be shown and used as a key: relative, forward slashes, valid UTF-8."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\\", "/")
    parts = [part for part in shown.split("/") if part not in ("", ".")]
    return "/".join(parts) or "(no name)"


def _peek(stream: BinaryIO, size: int) -> tuple[BinaryIO, bytes]:
    """The first bytes of a stream, and the stream with them put back."""
    head = b""
    try:
        while len(head) < size:
            part = stream.read(size - len(head))
            if not part:
                break
            head += part
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
        return cast(BinaryIO, _Chained(head, _Failing(error))), head
    return cast(BinaryIO, _Chained(head, stream)), head


class _Reader:
    """The part of a binary file that tarfile and we need."""

    def read(self, size: int = -1) -> bytes:
        raise NotImplementedError

    def readinto(self, buffer: bytearray) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Chained(_Reader):
    def __init__(self, head: bytes, rest: BinaryIO | _Reader) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read(-1)
        part, self._head = self._head[:size], self._head[size:]
        return part


class _Failing(_Reader):
    """Raises, on the first read, the error that a look ahead met."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, size: int = -1) -> bytes:
        raise self._error


class _Counted(_Reader):
    """Counts packed bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        return data


class _Unpacked(_Reader):
    """Stops a decompression bomb by its ratio."""

    def __init__(self, stream: IO[bytes], packed: _Counted, budget: Budget) -> None:
        self._stream = stream
        self._packed = packed
        self._budget = budget
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._count += len(data)
        if self._count > 64 << 20 and self._count > self._budget.ratio * max(self._packed.count, 1):
            raise ValueError(f"it unpacks to more than {self._budget.ratio} times its size (a decompression bomb?)")
        return data


class _Metered(_Reader):
    """Charges what is read to the bundle's budget."""

    def __init__(self, stream: BinaryIO, bundle: Bundle) -> None:
        self._stream = stream
        self._bundle = bundle
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._count += len(data)
        self._bundle.used_bytes += len(data)
        budget = self._bundle.budget
        if self._count > budget.member_bytes or self._bundle.used_bytes > budget.total_bytes:
            raise ValueError("larger than the limit on unpacked bytes (raise it with --max-bytes)")
        return data
