"""TOML table → `Cause`. The field reference is in `patterns/README.md`."""

from __future__ import annotations

from typing import Any

from .model import EVIDENCE_KEYS, Cause, Confirm, Remedy, Text
from .reader import Reader

KEYS = ("id", "title", "summary", "mechanism", *EVIDENCE_KEYS, "confirm", "remedies", "avoid", "verify", "prevent")
TABLE_KEYS = {
    "confirm": ("evidence", "command"),
    "remedies": ("when", "text"),
    "avoid": ("text",),
    "prevent": ("text",),
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
            Confirm(reader.text(item, "evidence", key), reader.string(item, "command", key))
            for key, item in _numbered(reader, table, "confirm")
        ),
        remedies=tuple(
            Remedy(reader.string(item, "when", key, ""), reader.text(item, "text", key))
            for key, item in _numbered(reader, table, "remedies")
        ),
        avoid=_texts(reader, table, "avoid"),
        verify=reader.text(table, "verify"),
        prevent=_texts(reader, table, "prevent"),
    )


def _numbered(reader: Reader, table: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{name}.{number}", item) for number, item in enumerate(reader.tables(table, name), 1)]


def _texts(reader: Reader, table: dict[str, Any], name: str) -> tuple[Text, ...]:
    return tuple(reader.text(item, "text", key) for key, item in _numbered(reader, table, name))
