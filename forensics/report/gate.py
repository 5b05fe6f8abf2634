"""The one gate to the outside: every text of a report passes it before any format is written.

It cleans (no control, escape, zero-width or bidi characters), redacts, pseudonymises on request, and cuts. Formats are
rendered from what comes out here, so none of them can leak what another one hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..regexes import lazy_regex
from . import pseudonyms, redact, text
from .pseudonyms import Pseudonyms

MODES = ("default", "strict", "off")
LONGEST = 8000
"""Characters of a text that are looked at; a longer one is cut before the rules run, and its last word dropped."""
QUOTE_CHARS = 400
TEXT_CHARS = 4000

_QUOTES = frozenset({"quote", "summary"})
_FREE = frozenset({"fields", "key_facts"})
"""Mappings whose keys say what a value is, as in `api_key`."""
_VERBATIM = frozenset({"sha256"})
_VOCABULARY = frozenset({
    "basis", "cause", "channel", "confidence", "finding", "form", "format", "id", "key", "kind", "lane", "language",
    "layer", "mark", "phase", "role", "schema_version", "severity", "signature", "term", "used_as", "verdict", "weight",
    "why", "word",
})  # fmt: skip
"""Keys of our own words; a host may be called like one of them."""
_WORD = lazy_regex(r"[A-Za-z0-9_.-]{1,80}")
_TYPED = {"pod": "pod", "host": "host", "node": "host", "namespace": "namespace", "source": "file", "path": "file",
          "user": "user"}  # fmt: skip


class Gate:
    """Admits documents of one run; the tally and the pseudonyms grow with them."""

    def __init__(self, mode: str = "default", names: Pseudonyms | None = None) -> None:
        self.mode = mode
        self.names = names if names is not None else Pseudonyms()
        self._tally = redact.Tally()
        self._renamed = 0
        self._seen: dict[str, tuple[str, dict[str, list[str]], int]] = {}

    def admit(self, document: Mapping[str, Any], seeds: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
        """A copy fit to leave the program, with what was done to it under `redactions`.

        `seeds` are (kind, name) pairs for pseudonyms. Raises `redact.RedactionError` when a rule does not work.
        """
        if self.mode == "strict":
            pseudonyms.seed(self.names, seeds)
        admitted: dict[str, Any] = self._walk(document, "", False)
        admitted["redactions"] = {"mode": self.mode, "rules": self._tally.rows(), "renamed": self._renamed}
        return admitted

    def _walk(self, value: Any, key: str, free: bool) -> Any:
        if isinstance(value, str):
            return self._text(value, key, free)
        if isinstance(value, Mapping):
            if value.get("user_text") and self.mode != "off":
                value = {**value, **{k: redact.withheld() for k in _QUOTES & value.keys()}}
                self._tally.add("user text", [str(value.get("line"))])
            return {self._key(k): self._walk(v, k, free or k in _FREE) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item, "source" if key == "sources" else key, free) for item in value]
        return value

    def _key(self, key: str) -> str:
        return key if key.isidentifier() and key.isascii() else self._text(key, "", False)

    def _text(self, value: str, key: str, free: bool) -> str:
        own = key in _VERBATIM or (key in _VOCABULARY and not free and _WORD.fullmatch(value))
        if own or not value:
            return value
        if self.mode == "strict" and key in _TYPED and not free:
            self.names.learn(_TYPED[key], value, self.names.name(_TYPED[key], value))
            shown = self.names.name(_TYPED[key], value)
            self._renamed += 1
            return shown
        named = f"{key}={value}" if free and key else value
        shown = self._clean(named)
        if free and key:
            shown = shown.removeprefix(f"{key}=")
        limit = QUOTE_CHARS if key in _QUOTES else TEXT_CHARS
        return shown if len(shown) <= limit else shown[: limit - 1] + "…"

    def _clean(self, value: str) -> str:
        if value not in self._seen:
            cut = value
            if len(cut) > LONGEST:
                cut = cut[:LONGEST]
                cut = cut[: max(cut.rfind(" "), LONGEST - 300)] + "…"
            shown, renamed = text.printable(cut), 0
            taken: dict[str, list[str]] = {}
            if self.mode != "off":
                shown, taken = redact.redact(shown)
            if self.mode == "strict":
                shown, renamed = self.names.apply(shown)
            self._seen[value] = (shown, taken, renamed)
        shown, taken, renamed = self._seen[value]
        for rule, found in taken.items():
            self._tally.add(rule, found)
        self._renamed += renamed
        return shown
