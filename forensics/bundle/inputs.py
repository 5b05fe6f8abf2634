"""The inputs of an analysis, and the walk from them down to the members."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError
from ..model import Diagnostic, Severity
from . import tarballs, zip_headers, zips
from .budget import ALTERED, Budget, Counted, Damaged, Guard, Meter, OverBudget, Stream
from .compressed import Codec, Unpacked, codec_of
from .members import Member, hint_of, reason_of
from .names import Unique, clean
from .streams import Pushback, read_up_to

HEAD_BYTES = 1024
SPOOL_BYTES = 64 << 20
"""A zip that cannot be sought in is held in memory up to this size; a larger one is read header by header."""
EQUAL_DIAGNOSTICS = 20
"""Equal remarks about different files; the rest is counted."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk stands."""

    path: str
    root: Counted
    mtime_s: float | None = None
    file: BinaryIO | None = None
    """The whole stream as a file that can be sought in, if it is one."""
    depth: int = 0
    inside: bool = False
    """True for what was inside a compressed file of this path."""
    top: bool = False
    """True for the only input: its own name would be noise in front of its members' names."""

    @property
    def prefix(self) -> str:
        return "" if self.top else f"{self.path}/"


@dataclass(slots=True)
class Bundle:
    """A set of inputs, to be read once."""

    paths: tuple[str, ...]
    """Files, folders, or `-` for standard input."""
    budget: Budget = field(default_factory=Budget)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """What was left out or is damaged; complete when `members()` has ended."""
    _meter: Meter = field(init=False)
    _names: Unique = field(default_factory=Unique)
    _said: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._meter = Meter(self.budget)

    @property
    def name(self) -> str:
        """What the report calls the bundle: base names only, so that the place does not matter."""
        return ", ".join(_base_name(path) for path in self.paths)

    @property
    def used_bytes(self) -> int:
        """Unpacked bytes so far."""
        return self._meter.unpacked_bytes

    @property
    def altered(self) -> bool:
        """True when a checksum says that something was read that nobody packed; complete as the diagnostics are."""
        return any(diagnostic.hint == ALTERED for diagnostic in self.diagnostics)

    def members(self) -> Iterator[Member]:
        """All members in a fixed order. Raises `InputError` when an input path cannot be used at all."""
        inputs: dict[str, str] = {}
        for path in self.paths:
            real = path if path == "-" else _real_path(path)
            if real in inputs:
                self._say(_base_name(path), "was given twice and is read once", "", Severity.NOTICE)
            inputs.setdefault(real, path)
        names = Unique()
        for path in inputs.values():
            if not self._meter.full:
                yield from self._input(path, names.name(clean(_base_name(path))[0]), len(inputs) == 1)
        for problem, count in sorted(self._said.items()):
            if count > EQUAL_DIAGNOSTICS:
                more = f"{count - EQUAL_DIAGNOSTICS:,} more like this: … {problem}"
                self.diagnostics.append(Diagnostic(self.name, None, Severity.NOTICE, more))

    def _input(self, path: str, name: str, only: bool) -> Iterator[Member]:
        if path == "-":
            yield from self._open(_Place(name, root := Counted(sys.stdin.buffer, self._meter), top=only), root)
        elif Path(path).is_dir():
            yield from self._folder(str(Path(path)), "" if only else f"{name}/")
        else:
            yield from self._file(path, name, only)

    def _file(self, file: str, name: str, only: bool) -> Iterator[Member]:
        try:
            with Path(file).open("rb") as handle:
                root = Counted(handle, self._meter)
                seekable = handle if handle.seekable() else None
                yield from self._open(_Place(name, root, os.fstat(handle.fileno()).st_mtime, seekable, top=only), root)
        except OSError as error:
            self._say(name, reason_of(error), "check the file and its permissions")

    def _folder(self, root: str, prefix: str) -> Iterator[Member]:
        def shown(path: str) -> str:
            return clean(prefix + path[len(root) :].lstrip(os.sep))[0]

        def unreadable(error: OSError) -> None:
            self._say(shown(error.filename), reason_of(error), "check the folder's permissions")

        for folder, folders, names in os.walk(root, onerror=unreadable):
            folders.sort()
            for name in folders:
                if Path(file := f"{folder}{os.sep}{name}").is_symlink():
                    self._say(shown(file), "is a link and was not followed", "", Severity.NOTICE)
            for name in sorted(names):
                file = f"{folder}{os.sep}{name}"
                path, mode = shown(file), _mode(file)
                if mode is not None and not stat.S_ISREG(mode):
                    kind = "link" if stat.S_ISLNK(mode) else "special file"
                    self._say(path, f"is a {kind} and was not followed", "", Severity.NOTICE)
                elif self._counted(path):
                    yield from self._file(file, path, only=False)
                if self._meter.full:
                    return

    def _open(self, place: _Place, stream: Stream) -> Iterator[Member]:
        """Look at the first bytes: unpack archives and compressed files, yield everything else."""
        pushback = Pushback(stream)
        head = pushback.peek(HEAD_BYTES)
        codec = codec_of(head)
        if codec is not None:
            yield from self._compressed(place, pushback, codec)
        elif zip_headers.is_zip(head):
            yield from self._zip(place, pushback)
        elif tarballs.is_tar(head):
            yield from self._archive(place, tarballs.entries(pushback, self._note(place)))
        else:
            path = self._names.name(f"{place.path}!" if place.inside else place.path)
            yield Member(path, place.mtime_s, pushback, self._report, self._meter)

    def _compressed(self, place: _Place, packed: Stream, codec: Codec) -> Iterator[Member]:
        if place.inside:  # a compression inside a compression
            place = replace(place, path=f"{place.path}!", depth=place.depth + 1)
            if self._too_deep(place):
                return
        guard = Guard(place.root, self.budget)
        content = Unpacked(packed, codec, guard, self._note(place))
        yield from self._open(replace(place, inside=True, file=None), content)

    def _zip(self, place: _Place, stream: Pushback) -> Iterator[Member]:
        file, root = place.file, place.root
        if file is None:
            data, error = read_up_to(stream, SPOOL_BYTES)
            if error is None and len(data) < SPOOL_BYTES:
                file = io.BytesIO(data)
                root = Counted(file, None)
            stream.give_back(data)
        headers = zip_headers.directory(file) if file is not None else None
        inner = replace(place, root=root)
        guard = Guard(root, self.budget)
        if file is not None and headers is not None:
            yield from self._archive(inner, zips.listed_entries(file, root, headers, guard))
        else:
            if place.file is not None:
                place.file.seek(0)
                stream = Pushback(place.root)
            yield from self._archive(place, zips.streamed_entries(stream, guard, self._note(place)))

    def _archive(self, place: _Place, entries: Iterator[tarballs.Entry]) -> Iterator[Member]:
        place = replace(place, depth=place.depth + 1, inside=False, file=None)
        if self._too_deep(place):
            return
        last = ""
        try:
            for entry in entries:
                shown, outside = clean(entry.name)
                last = path = place.prefix + shown
                if not self._counted(path):
                    return
                if outside:
                    self._say(path, "has a name that points outside of its archive; it is read under this one", "",
                              Severity.NOTICE)  # fmt: skip
                if entry.remark:
                    self._say(path, entry.remark, "", entry.severity)
                if entry.content is not None:
                    below = replace(place, path=path, mtime_s=entry.mtime_s, top=False)
                    yield from self._open(below, entry.content)
                if self._meter.full:
                    return
        except (Damaged, OverBudget, OSError) as error:
            after = f"after {last}" if last else "at all"
            self._say(place.path, f"{reason_of(error)}; nothing was read {after}", hint_of(error))
        if not last:
            self._say(place.path, "is an archive without files", "check how it was packed")

    def _too_deep(self, place: _Place) -> bool:
        if place.depth <= self.budget.depth:
            return False
        self._say(place.path, f"was not opened: it lies more than {self.budget.depth} archives deep",
                  "unpack it yourself, or raise the limit with --max-depth")  # fmt: skip
        return True

    def _counted(self, path: str) -> bool:
        try:
            self._meter.count_entry()
        except OverBudget as limit:
            self._say(path, f"{limit}; it and everything after it was skipped", limit.hint)
            return False
        return True

    def _note(self, place: _Place) -> Callable[[str, str], None]:
        return lambda problem, hint: self._say(place.path, problem, hint)

    def _say(self, path: str, problem: str, hint: str, severity: Severity = Severity.WARNING) -> None:
        self._report(Diagnostic(path, None, severity, f"{path} {problem}", hint))

    def _report(self, diagnostic: Diagnostic) -> None:
        """Keep a remark, unless the same was said about many files already."""
        problem = diagnostic.message.replace(diagnostic.source, "", 1).strip(": ")
        self._said[problem] += 1
        if self._said[problem] <= EQUAL_DIAGNOSTICS:
            self.diagnostics.append(diagnostic)


def _base_name(path: str) -> str:
    return "stdin" if path == "-" else Path(path).resolve().name


def _real_path(path: str) -> str:
    """Raises `InputError` when there is nothing that could be opened."""
    try:
        Path(path).stat()
        return str(Path(path).resolve())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder; check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: {reason}; check that you may read it") from None


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None  # opening it will say why
