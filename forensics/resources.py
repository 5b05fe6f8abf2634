"""Where the data folders are: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def patterns() -> Path:
    """Root of the signature and cause library."""
    return _folder("patterns")


def templates() -> Path:
    """Root of the report templates."""
    return _folder("templates")
