"""Mappings and lists that know their lines, and safe steps into them.

A parsed document is plain data plus line numbers, so that a fact found deep inside can be quoted by
`file:line`. Bundles are hostile and tools differ: every access goes by path and returns nothing, or an empty
value, where a step is missing or of another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import regex

from ..model import Diagnostic, Event, Parsed, Scope


class Object(dict[str, Any]):
    """A mapping that knows the line of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def put(self, key: str, value: Any, line: int) -> None:
        self[key] = value
        self.lines[key] = line


class Array(list[Any]):
    """A list that knows the line of each item."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []

    def add(self, value: Any, line: int) -> None:
        self.append(value)
        self.lines.append(line)


def listed(items: Sequence[Object]) -> Array:
    """A list of mappings that stood alone, at least one."""
    every = Array(items[0].line)
    for item in items:
        every.add(item, item.line)
    return every


def holding(key: str, value: Object | Array) -> Object:
    """The mapping around a value that was cut out of it."""
    outer = Object(value.line)
    outer.put(key, value, value.line)
    return outer


def dig(value: Any, *path: str | int) -> Any:
    """The value at a path, none when a step is missing or of another type."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
    return value


def text_at(value: Any, *path: str | int) -> str:
    """A scalar at a path as text; empty when absent or no scalar."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


def int_at(value: Any, *path: str | int) -> int | None:
    """A whole number at a path, also one written as text."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found if abs(found) < 1 << 63 else None
    return int(found) if isinstance(found, str) and regex.fullmatch(r"-?\d{1,18}", found) else None


def object_at(value: Any, *path: str | int) -> Object:
    """A mapping at a path, an empty one when absent."""
    found = dig(value, *path)
    return found if isinstance(found, Object) else Object()


def objects_at(value: Any, *path: str | int) -> list[Object]:
    """The mappings in a list at a path."""
    found = dig(value, *path)
    return [item for item in found if isinstance(item, Object)] if isinstance(found, list) else []


def strings_at(value: Any, *path: str | int) -> tuple[str, ...]:
    """The scalars in a list at a path, as text."""
    found = dig(value, *path)
    if not isinstance(found, list):
        return ()
    return tuple(text_at(found, i) for i, item in enumerate(found) if isinstance(item, str | int | float))


def line_at(value: Any, *path: str | int) -> int:
    """Line of the value at a path; where the path ends early, of its last known part."""
    line = int(getattr(value, "line", 0))
    for step in path:
        inner = dig(value, step)
        if inner is None:
            break
        line, value = int(value.lines[step]), inner
    return line


RAW_CHARS = 4000
"""A longer physical line (a one-line document) is not quoted."""


def quoted(events: Iterable[Event], lines: list[str], diagnostics: Iterable[Diagnostic] = ()) -> Parsed:
    """Events in file order with their physical lines, and the owner that all of them share."""
    ordered = sorted(events, key=lambda event: event.locator.line)
    told = [
        event if event.raw else replace(event, raw=lines[event.locator.line - 1])
        if 0 < event.locator.line <= len(lines) and len(lines[event.locator.line - 1]) <= RAW_CHARS else event
        for event in ordered
    ]  # fmt: skip
    return Parsed(tuple(told), (), tuple(diagnostics), _shared_scope(told))


def _shared_scope(events: Iterable[Event]) -> Scope:
    scopes = [event.scope for event in events]
    shared = {}
    for name in ("host", "namespace", "pod", "pod_uid"):
        values = {getattr(scope, name) for scope in scopes}
        if len(values) == 1:
            shared[name] = values.pop()
    return Scope(**shared)
