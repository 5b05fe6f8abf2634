"""Member names as they may be shown and used as keys: relative, valid Unicode, without control characters, unique."""

from __future__ import annotations

from ..regexes import lazy_regex
from .encodings import decode

MAX_NAME_CHARS = 1000
_CONTROLS = lazy_regex(r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]")
"""C0, C1, invisible and bidirectional marks, line separators, lone surrogates."""
_DRIVE = lazy_regex(r"[A-Za-z]:")


def clean(name: str | bytes) -> tuple[str, bool]:
    """A member name for display, and whether it pointed outside of the bundle (absolute, drive, `..`)."""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    text = decode(raw).replace("\\", "/")
    if not text.isprintable():
        text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
    outside = text.startswith("/")
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." or (not parts and _DRIVE.fullmatch(part)):
            outside = outside or not parts
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    shown = "/".join(parts) or "(no name)"
    if len(shown) > MAX_NAME_CHARS:
        shown = f"{shown[: MAX_NAME_CHARS // 2]}…{shown[-MAX_NAME_CHARS // 2 :]}"
    return shown, outside


class Unique:
    """Tells equal names apart: the second `a.log` is `a.log (2)`."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        name = wanted
        while name in self._next:
            name = f"{wanted} ({self._next[wanted]})"
            self._next[wanted] += 1
        self._next[name] = 2
        return name
