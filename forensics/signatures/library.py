"""Read a folder of pattern files into a `Library`, with every problem collected, not the first.

Unknown keys are errors: a typo must not switch a check off. Ids equal paths. Nothing in a pattern file is code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import LibraryError, Problem
from .cause_file import read_cause
from .model import EVIDENCE_KEYS, Cause, Example, Library, Pattern, Signature, Text, path_of
from .reader import Reader
from .signature_file import read_signature

__all__ = ["Cause", "Example", "Library", "Pattern", "Signature", "Text", "load", "read"]

SETTINGS = "settings.toml"
"""At the root of a user's folder: settings, not a pattern file."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What a folder of pattern files holds: all that could be read, and what is wrong with the rest."""

    signatures: Mapping[str, Signature]
    causes: Mapping[str, Cause]
    problems: tuple[Problem, ...]


def load(root: Path, derived: Iterable[str] = (), trusted: bool = False) -> Library:
    """The library below `root`. `derived` are ids of findings made by `diagnosis/`, which causes may name.

    A trusted library's regexes are taken as sound and safe, and compiled when they are needed: the tests check them.
    Raises `LibraryError` with all problems.
    """
    folder = read(root, trusted=trusted)
    problems = [*folder.problems, *references(folder, Library(folder.signatures, folder.causes), derived, root)]
    if problems:
        raise LibraryError(tuple(problems))
    return Library(folder.signatures, folder.causes)


def read(root: Path, only: Iterable[Path] | None = None, trusted: bool = False) -> Folder:
    """All pattern files below `root`, or some of them; never raises for what is in them."""
    signatures: dict[str, Signature] = {}
    causes: dict[str, Cause] = {}
    problems: list[Problem] = []
    paths = sorted(root.rglob("*.toml") if only is None else only, key=str)
    for path in paths:
        name = path.relative_to(root).as_posix()
        if name == SETTINGS:
            continue
        reader = Reader(root, name, trusted)
        item = _one(reader, name)
        if reader.problems:
            problems += dict.fromkeys(reader.problems)
        elif isinstance(item, Cause):
            causes[item.id] = item
        elif item is not None:
            signatures[item.id] = item
    return Folder(signatures, causes, tuple(problems))


def _one(reader: Reader, name: str) -> Signature | Cause | None:
    table = reader.toml()
    if table is None:
        return None
    family, _, file = name.rpartition("/")
    stem = file.removesuffix(".toml")
    if family == "causes":
        return read_cause(reader, table, stem)
    if not family or "/" in family or "." in stem:
        reader.problem("", "does not lie in a family's folder", "<family>/<name>.toml, or causes/<id>.toml")
        return None
    return read_signature(reader, table, f"{family}.{stem}")


def references(folder: Folder, library: Library, derived: Iterable[str], root: Path) -> Iterator[Problem]:
    """Names in the folder's files that nothing answers to: neither `library` (which holds the folder), nor `derived`,
    nor another file below `root`, which may be broken and is then reported itself."""
    known = frozenset(library.signatures) | frozenset(derived)

    def answers(name: str) -> bool:
        if name.endswith(".*"):
            return any(k.startswith(name[:-1]) for k in known) or (root / name[:-2]).is_dir()
        return name in known or (root / path_of(name)).is_file()

    for cause in folder.causes.values():
        for key in EVIDENCE_KEYS:
            for name in getattr(cause, key):
                if not answers(name):
                    yield Problem(path_of(cause.id, cause=True), key, f"no signature or rule is called {name!r}",
                                  "correct the name, or add the signature")  # fmt: skip
        for place, condition in cause.conditions():
            for name in condition.findings:
                if not answers(name):
                    key = f"{place}.when"
                    yield Problem(path_of(cause.id, cause=True), key, f"no signature or rule is called {name!r}",
                                  "correct the name, or add the signature")  # fmt: skip
    for signature in folder.signatures.values():
        for name in signature.overlaps:
            if not answers(name):
                yield Problem(path_of(signature.id), "overlaps", f"no signature is called {name!r}",
                              "correct the name, or remove it")  # fmt: skip
