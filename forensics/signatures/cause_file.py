"""TOML table → `Cause`. The field reference is in `patterns/README.md`."""

from __future__ import annotations

from typing import Any

from .model import ENGINES, EVIDENCE_KEYS, Advice, Cause, Condition, Confirm, Variant
from .reader import Reader

KEYS = (
    "id", "title", "summary", "mechanism", *EVIDENCE_KEYS, "confirm", "remedies", "avoid", "verify", "prevent",
    "variants",
)  # fmt: skip
VARIED = ("summary", "mechanism", "verify")
"""Texts that a variant may replace."""
TABLE_KEYS = {
    "confirm": ("evidence", "command", "engine"),
    "remedies": ("when", "engine", "text"),
    "avoid": ("when", "engine", "text"),
    "prevent": ("when", "engine", "text"),
    "variants": ("when", "engine", *VARIED),
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
        confirm=tuple(
            Confirm(
                reader.text(item, "evidence", key), reader.string(item, "command", key), _engines(reader, item, key)
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
    return Condition(reader.string(item, "when", key, ""), _engines(reader, item, key))


def _engines(reader: Reader, item: dict[str, Any], key: str) -> str:
    engines = reader.string(item, "engine", key, "")
    for word in engines.split():
        if word not in ENGINES:
            reader.problem(f"{key}.engine", f"{word!r} is no engine", f"one or more of {' '.join(ENGINES)}")
    return engines
