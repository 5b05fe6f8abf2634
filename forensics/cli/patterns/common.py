"""What the subcommands share: the library they speak of, and folders and files of signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ...signatures import Cause, Library, Signature
    from ...signatures.user import Overlay

library_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--patterns", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="Your own signatures; they add to the built-in ones, or replace those with the same id.",
)  # fmt: skip


def load(folder: Path | None) -> Library:
    """The built-in library, with a user's folder over it. Raises `LibraryError` for a broken folder."""
    from ...pipeline import load_library

    return load_library(folder)


def find(library: Library, identity: str) -> Signature | Cause:
    """The signature or cause with an id. Raises `OptionError` with ids that look alike."""
    import difflib

    from ...errors import OptionError

    found = library.signatures.get(identity) or library.causes.get(identity)
    if found is not None:
        return found
    known = [*library.signatures, *library.causes]
    close = [name for name in known if identity.rpartition(".")[2] in name]
    close = [*difflib.get_close_matches(identity, known, 3), *close][:5]
    hint = f"; did you mean {', '.join(dict.fromkeys(close))}?" if close else "; see `oomforensics patterns list`"
    raise OptionError(f"no signature or cause is called {identity!r}{hint}")


def signature(library: Library, identity: str) -> Signature:
    """The signature with an id. Raises `OptionError` also for the id of a cause."""
    from ...errors import OptionError

    find(library, identity)
    if identity not in library.signatures:
        raise OptionError(f"{identity} is a cause; only signatures are matched against lines")
    return library.signatures[identity]


def read_path(path: Path | None) -> Overlay:
    """What lies at a path, checked by the law against the built-in library; without a path the library itself.

    The path may be a whole folder of signatures, the folder of one family, or one file.
    """
    from ... import resources
    from ...diagnosis.case import DERIVED
    from ...pipeline import load_library
    from ...signatures import Library
    from ...signatures.user import overlay

    if path is None:
        return overlay(Library({}, {}), resources.patterns(), DERIVED)
    root, only = _root(path)
    return overlay(load_library(), root, DERIVED, only)


def _root(path: Path) -> tuple[Path, tuple[Path, ...] | None]:
    """(root of the library that a path belongs to, files to look at or none for all)."""
    if path.is_file():
        path = path if len(path.parts) > 1 else path.absolute()
        return path.parent.parent, (path,)
    files = [file for file in path.glob("*.toml") if file.name != "settings.toml"]
    if files and not any(path.glob("*/*.toml")):
        path = path if path.name else path.absolute()
        return path.parent, tuple(path.glob("*.toml"))
    return path, None
