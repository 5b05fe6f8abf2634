"""A user's folder of signatures and causes, laid over the built-in library under the same law.

The folder looks like `patterns/`: `<family>/<name>.toml`, `causes/<id>.toml`. A file with the id of a built-in one
replaces it, any other adds to the library. `settings.toml` at its root may switch signatures off:

    [tool]
    disable = ["vllm.preempted_v0"]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import LibraryError, Problem
from . import law
from .library import SETTINGS, read, references
from .model import Library
from .reader import Reader
from .snippets import located


@dataclass(frozen=True, slots=True)
class Overlay:
    """The built-in library with a user's folder over it."""

    root: Path
    library: Library
    own: frozenset[str]
    """Ids of the signatures that the folder holds."""
    own_causes: frozenset[str]
    problems: tuple[Problem, ...]
    """Everything that is wrong with the folder; paths are as the user wrote them."""


def overlay(
    base: Library, root: Path, derived: Iterable[str] = (), only: tuple[Path, ...] | None = None
) -> Overlay:
    """Read a user's folder (or only some files of it) and check it; whatever can be read is in the result."""
    folder = read(root, only)
    problems = list(folder.problems)
    if not (folder.signatures or folder.causes or problems or (root / SETTINGS).is_file()):
        problems.append(Problem("", "", "holds no pattern files", "expected <family>/<name>.toml below it"))
    signatures = {**base.signatures, **folder.signatures}
    merged = Library(signatures, {**base.causes, **folder.causes})
    problems += references(folder, merged, derived, root)
    disabled = frozenset(_disabled(root, merged, frozenset(derived), problems)) if only is None else frozenset()
    library = replace(merged, signatures={i: s for i, s in signatures.items() if i not in disabled})
    problems += law.check(library, [i for i in folder.signatures if i not in disabled])
    shown = (located(problem, root) for problem in sorted(problems, key=lambda p: p.path))
    return Overlay(
        root,
        library,
        frozenset(folder.signatures),
        frozenset(folder.causes),
        tuple(replace(p, path=(root / p.path).as_posix() if p.path else root.as_posix()) for p in shown),
    )


def load_over(base: Library, root: Path, derived: Iterable[str] = ()) -> Library:
    """The built-in library with the folder over it. Raises `LibraryError` with all problems of the folder."""
    found = overlay(base, root, derived)
    if found.problems:
        raise LibraryError(found.problems)
    return found.library


def _disabled(root: Path, library: Library, derived: frozenset[str], problems: list[Problem]) -> Iterator[str]:
    """Ids that `settings.toml` switches off; an id that nothing answers to is a problem."""
    if not (root / SETTINGS).exists():
        return
    reader = Reader(root, SETTINGS)
    table = reader.toml()
    if table is not None:
        reader.known(table, ("tool",))
        tool = table.get("tool", {})
        if isinstance(tool, dict):
            yield from _known_ids(reader, tool, library, derived)
        else:
            reader.problem("tool", "must be a table", '[tool] with disable = ["<id>"]')
    problems += reader.problems


def _known_ids(
    reader: Reader, tool: Mapping[str, Any], library: Library, derived: frozenset[str]
) -> Iterator[str]:
    reader.known(tool, ("disable",), "tool")
    for name in reader.strings(tool, "disable"):
        if name in library.signatures:
            yield name
        elif name in library.causes or name in derived:
            what = "a cause" if name in library.causes else "a rule of the diagnosis"
            reader.problem("tool.disable", f"{name!r} is {what}", "only signatures can be switched off")
        else:
            reader.problem("tool.disable", f"no signature is called {name!r}", "see `oomforensics patterns list`")
