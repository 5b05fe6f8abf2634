"""Do the message cores still stand in a program's source? Looks for the anchors of its signatures in a source tree.

Source text is not log text: literals are split over lines, hold placeholders (`{x}`, `%s`) and escapes. Adjacent
literals are joined and escapes undone before the search; an anchor that is not there in one piece is looked for in
pieces. A signature with several wordings has drifted only when none of them is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import regex

from ..errors import OptionError
from ..regexes import lazy_regex
from .explain import fragments
from .model import Library, Signature

SUFFIXES = frozenset({
    ".py", ".pyi", ".pyx", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".hpp", ".java", ".proto",
    ".toml", ".yaml", ".yml", ".json", ".sh",
})  # fmt: skip
SKIPPED = frozenset({".git", "node_modules", "tests", "test", "testing", "docs", "doc", "examples", "benchmarks"})
"""Folders whose text only quotes messages."""
MAX_FILE_BYTES = 8 << 20
MIN_FRAGMENT = 10
"""Shortest piece of an anchor that means something, in characters."""
_BESIDE = 3
"""Characters beside a piece in which a placeholder or the end of a literal is looked for."""

_JOINT = lazy_regex(r"""(["'])[ \t]*(?:\\?\r?\n[ \t]*)?\+?[ \t]*(?:\\?\r?\n[ \t]*)?[rRbBfFuU]{0,2}["']""")
_CONTINUED = lazy_regex(r"\\\r?\n[ \t]*")
_ESCAPE = lazy_regex(r"""\\(["'\\nt])|(\{\{|\}\}|%%)""")
_HOLE = lazy_regex(r"""[{}%"'`$<>]""")


class Status(IntEnum):
    """What became of an anchor; of a signature, the best of its anchors."""

    VANISHED = 0
    CHANGED = 1
    """A piece is there, and the text beside it is another one."""
    ASSEMBLED = 2
    """A piece is there, and a placeholder or the end of a literal stands where the rest would be."""
    FOUND = 3


@dataclass(frozen=True, slots=True)
class Trace:
    """One anchor in a source tree."""

    anchor: str
    status: Status = Status.VANISHED
    piece: str = ""
    """What was found of it."""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """One signature in a source tree."""

    signature: Signature
    traces: tuple[Trace, ...]
    ended: bool
    """Its stated versions end before the newest one that the library knows: it is expected to be gone."""

    @property
    def best(self) -> Trace:
        return max(self.traces, key=lambda trace: trace.status)

    @property
    def drifted(self) -> bool:
        return self.best.status <= Status.CHANGED and not self.ended


def programs(library: Library) -> tuple[str, ...]:
    """Programs that signatures claim, sorted."""
    return tuple(sorted({v.program for s in library.signatures.values() for v in s.versions}))


def guess_program(path: Path, library: Library) -> str:
    """The program that a path is about, from its own name, its parents' names, or a folder directly in it.

    Raises `OptionError` when none, or more than one, fits.
    """
    known = {_plain(name): name for name in programs(library)}
    for part in reversed(path.resolve().parts):
        if name := known.get(_plain(part)):
            return name
    inside = sorted({known[_plain(p.name)] for p in path.iterdir() if _plain(p.name) in known}) if path.is_dir() else []
    if len(inside) == 1:
        return inside[0]
    what = f"holds {', '.join(inside)}" if inside else "does not look like a program that signatures name"
    raise OptionError(f"{path} {what}: say which one with --program (known: {', '.join(known.values())})")


def _plain(name: str) -> str:
    """`vllm-0.34.0`, `TensorRT_LLM` and `llama.cpp` in one form."""
    return regex.sub(r"[-_.]", "", regex.sub(r"[-_][vbr]?\d.*$", "", name.lower()))


def drift(library: Library, root: Path, program: str) -> tuple[tuple[Drift, ...], int]:
    """(one result a signature that claims the program, number of files read). Raises `OptionError` for no files."""
    claimed = [s for s in library.signatures.values() if any(v.program == program for v in s.versions)]
    traces = {anchor: Trace(anchor) for s in claimed for anchor in s.anchors}
    files = 0
    for path, text in sources(root):
        files += 1
        for anchor, trace in traces.items():
            if trace.status < Status.FOUND:
                traces[anchor] = max(trace, _look(anchor, text, path), key=lambda t: (t.status, len(t.piece)))
    if not files:
        raise OptionError(f"{root} holds no source files; expected a source tree or an installed package")
    ends = {s.id: [_end(v.range) for v in s.versions if v.program == program] for s in claimed}
    newest = max((end for found in ends.values() for end in found), default=())
    results = (
        Drift(s, tuple(traces[a] for a in s.anchors), all(ends[s.id]) and max(ends[s.id]) < newest) for s in claimed
    )
    return tuple(results), files


def _end(versions: str) -> tuple[int, ...]:
    """Upper end of a range such as `0.4.2-0.10.2` or `1.x`; empty when none is stated."""
    numbers = regex.findall(r"\d+|(?<=\.)x", versions.rpartition("-")[2])
    return tuple(99999 if n == "x" else int(n) for n in numbers)


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """(path relative to the root, text as a program would print it) of all source files."""
    for path in _files(root):
        try:
            if path.stat().st_size <= MAX_FILE_BYTES:
                text = path.read_text(encoding="utf-8", errors="replace")
                yield (path.relative_to(root).as_posix() if path != root else path.name), printed(text)
        except OSError:
            continue


def _files(root: Path) -> Iterable[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(folder) / name for name in sorted(names) if Path(name).suffix in SUFFIXES)


def printed(source: str) -> str:
    """Source text with adjacent literals joined and escapes undone; placeholders stay."""
    text = _JOINT.sub("", _CONTINUED.sub("", source))
    return _ESCAPE.sub(lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]) if m[1] else m[2][0], text)


def _look(anchor: str, text: str, path: str) -> Trace:
    """The anchor, or its longest piece, in one file."""
    if anchor in text:
        return Trace(anchor, Status.FOUND, anchor, path)
    for piece in fragments(anchor, MIN_FRAGMENT):
        at = text.find(piece)
        if at >= 0:
            before, after = anchor.split(piece, 1)
            left = not before.strip() or bool(_HOLE.search(text[max(at - _BESIDE, 0) : at]))
            end = at + len(piece)
            right = not after.strip() or bool(_HOLE.search(text[end : end + _BESIDE]))
            return Trace(anchor, Status.ASSEMBLED if left and right else Status.CHANGED, piece, path)
    return Trace(anchor)
