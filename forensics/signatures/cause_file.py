"""TOML table → `Cause`. The field reference is in `patterns/README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .model import ENGINES, EVIDENCE_KEYS, PLATFORMS, Advice, Cause, Condition, Confirm, Variant
from .reader import Reader

KEYS = (
    "id", "title", "summary", "mechanism", *EVIDENCE_KEYS, "confirm", "remedies", "avoid", "verify", "prevent",
    "variants",
)  # fmt: skip
VARIED = ("summary", "mechanism", "verify")
"""Texts that a variant may replace."""
TABLE_KEYS = {
    "confirm": ("evidence", "command", "engine", "platform"),
    "remedies": ("when", "engine", "platform", "text"),
    "avoid": ("when", "engine", "platform", "text"),
    "prevent": ("when", "engine", "platform", "text"),
    "variants": ("when", "engine", "platform", *VARIED),
}
"""Arrays of tables in a cause, with their keys."""


def read_cause(reader: Reader, table: dict[str, Any], expected_id: str) -> Cause:
    """What the table says; complete only when the reader has noted no problem."""
    reader.known(table, KEYS)
    identity = reader.string(table, "id")
    if identity and identity != expected_id:
        reader.problem("id", f"is {identity!r}, but the file name demands {expected_id!r}", "causes/<id>.toml")
    for name, keys in TABLE_KEYS.items():
        for number, item in enumerate(reader.tables(table, name), 1):
            reader.known(item, keys, f"{name}.{number}")
    return Cause(
        id=identity,
        title=reader.text(table, "title"),
        summary=reader.text(table, "summary"),
        mechanism=reader.text(table, "mechanism"),
        decisive=reader.strings(table, "decisive"),
        supporting=reader.strings(table, "supporting"),
        contradicting=reader.strings(table, "contradicting"),
        explains=reader.strings(table, "explains"),
        onset=reader.strings(table, "onset"),
        contributing=reader.strings(table, "contributing"),
        confirm=tuple(
            Confirm(
                reader.text(item, "evidence", key), reader.string(item, "command", key),
                _words(reader, item, key, "engine", ENGINES), _words(reader, item, key, "platform", PLATFORMS),
            )
            for key, item in _numbered(reader, table, "confirm")
        ),
        remedies=_advice(reader, table, "remedies"),
        avoid=_advice(reader, table, "avoid"),
        verify=reader.text(table, "verify"),
        prevent=_advice(reader, table, "prevent"),
        variants=tuple(
            Variant(
                _condition(reader, item, key), {name: reader.text(item, name, key) for name in VARIED if name in item}
            )
            for key, item in _numbered(reader, table, "variants")
        ),
    )


def _numbered(reader: Reader, table: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{name}.{number}", item) for number, item in enumerate(reader.tables(table, name), 1)]


def _advice(reader: Reader, table: dict[str, Any], name: str) -> tuple[Advice, ...]:
    return tuple(
        Advice(_condition(reader, item, key), reader.text(item, "text", key))
        for key, item in _numbered(reader, table, name)
    )


def _condition(reader: Reader, item: dict[str, Any], key: str) -> Condition:
    engine = _words(reader, item, key, "engine", ENGINES)
    return Condition(reader.string(item, "when", key, ""), engine, _words(reader, item, key, "platform", PLATFORMS))


def _words(reader: Reader, item: dict[str, Any], key: str, name: str, known: Sequence[str]) -> str:
    """Words of a closed list: engines or platforms."""
    words = reader.string(item, name, key, "")
    for word in words.split():
        if word not in known:
            reader.problem(f"{key}.{name}", f"{word!r} is no {name}", f"one or more of {' '.join(known)}")
    return words
