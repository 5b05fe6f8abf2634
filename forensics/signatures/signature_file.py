"""TOML table → `Signature`. The field reference is in `patterns/README.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import regex

from ..model import Role, Severity
from ..regexes import lazy_regex
from . import safety, snippets
from .fields import CONVERTERS
from .model import CHANNELS, PHASES, STATUSES, Compiled, Example, Pattern, Signature, Version, compiled
from .reader import Reader
from .regex_parser import RefusedError

KEYS = (
    "id", "title", "status", "severity", "role", "channels", "kinds", "anchors", "description", "false_positives",
    "references", "overlaps", "versions", "patterns", "examples", "quotable", "phase", "witness",
)  # fmt: skip
VERSION_KEYS = ("program", "range", "source")
PATTERN_KEYS = ("name", "regex", "types", "note")
EXAMPLE_KEYS = ("text", "match", "fields", "channel", "level", "note")

_NAME = lazy_regex(r"[a-z][a-z0-9_]*")


def read_signature(reader: Reader, table: dict[str, Any], expected_id: str) -> Signature:
    """What the table says; complete only when the reader has noted no problem."""
    reader.known(table, KEYS)
    identity = reader.string(table, "id")
    if identity and identity != expected_id:
        reader.problem("id", f"is {identity!r}, but the path demands {expected_id!r}",
                       "the id is <family>.<name>, the file <family>/<name>.toml")  # fmt: skip
    title = reader.text(table, "title")
    channels = reader.strings(table, "channels", required=True)
    for channel in channels:
        if channel not in CHANNELS:
            reader.problem("channels", f"unknown channel {channel!r}", f"known: {', '.join(CHANNELS)}")
    patterns = tuple(_patterns(reader, table))
    return Signature(
        id=identity,
        title=title.en,
        title_zh=title.zh,
        status=reader.choice(table, "status", STATUSES),
        severity=Severity(reader.choice(table, "severity", [s.value for s in Severity])),
        role=Role(reader.choice(table, "role", [r.value for r in Role])),
        channels=channels,
        kinds=reader.strings(table, "kinds"),
        anchors=reader.strings(table, "anchors", required=True),
        patterns=patterns,
        versions=tuple(_versions(reader, table)),
        description=reader.string(table, "description", hint="what the message means, and what it does not mean"),
        false_positives=reader.strings(table, "false_positives"),
        references=reader.strings(table, "references"),
        overlaps=reader.strings(table, "overlaps"),
        examples=tuple(_examples(reader, table, channels)),
        phase=reader.choice(table, "phase", PHASES) if "phase" in table else "",
        quotable=reader.boolean(table, "quotable"),
        witness=reader.boolean(table, "witness"),
    )


def _versions(reader: Reader, table: Mapping[str, Any]) -> Iterator[Version]:
    tables = reader.tables(table, "versions")
    if not tables:
        reader.problem("versions", "must say which program prints it",
                       'a [[versions]] table: program = "…", range = "…", source = "…"')  # fmt: skip
    for number, item in enumerate(tables, 1):
        key = f"versions.{number}"
        reader.known(item, VERSION_KEYS, key)
        yield Version(
            reader.string(item, "program", key),
            reader.string(item, "range", key, ""),
            reader.string(item, "source", key, ""),
        )


def _patterns(reader: Reader, table: Mapping[str, Any]) -> Iterator[Pattern]:
    tables = reader.tables(table, "patterns")
    if not tables:
        reader.problem("patterns", "must hold at least one [[patterns]] table")
    names: set[str] = set()
    for number, item in enumerate(tables, 1):
        name = reader.string(item, "name", f"patterns.{number}")
        key = f"patterns.{name or number}"
        reader.known(item, PATTERN_KEYS, key)
        if name and not _NAME.fullmatch(name):
            reader.problem(f"{key}.name", f"{name!r} is no name", "lower-case letters, digits and _")
        if name in names:
            reader.problem(key, "two patterns have this name", "the first that matches wins: give each its own name")
        names.add(name)
        source = item.get("regex")
        checked = None if reader.trusted else compile_regex(reader, f"{key}.regex", source)
        types = item.get("types", {})
        if not isinstance(types, dict):
            reader.problem(f"{key}.types", "must be a table: group = converter")
            types = {}
        _check_types(reader, key, checked, types)
        if checked or reader.trusted:
            yield Pattern(name, str(source), types)


def _check_types(reader: Reader, key: str, checked: Compiled | None, types: Mapping[str, Any]) -> None:
    if checked:
        groups = set(checked.groupindex)
        for group in sorted(groups ^ set(types)):
            reason = "has no type" if group in groups else "is no group of the regex"
            reader.problem(f"{key}.types.{group}", reason, "types name exactly the groups of the regex")
    for group, kind in types.items():
        if not isinstance(kind, str) or kind not in CONVERTERS:
            reader.problem(f"{key}.types.{group}", f"unknown type {kind!r}", f"known: {', '.join(sorted(CONVERTERS))}")


def compile_regex(reader: Reader, key: str, text: Any) -> Compiled | None:
    """The compiled regex when it is valid and safe; else the problem is noted with its position."""
    if not isinstance(text, str) or not text:
        reader.problem(key, "is missing" if text is None else "must be a non-empty string", "regex = '''…'''")
        return None
    try:
        found = compiled(text)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        position = getattr(error, "pos", None) or 0
        reason = f"is no valid regex: {getattr(error, 'msg', 'it is too large')}"
        reader.problem(key, reason, "write the regex as a literal string: '''…'''", _place(reader, key, text, position))
        return None
    try:
        safety.check(text)
    except RefusedError as refused:
        reader.problem(key, refused.reason, refused.hint, _place(reader, key, text, refused.position))
        return None
    except RecursionError:
        reader.problem(key, "is nested too deeply", "match the shortest stable core")
        return None
    if found.search(""):
        reader.problem(key, "matches an empty message", "at least one literal of the message must be required")
        return None
    return found


def _place(reader: Reader, key: str, text: str, position: int) -> str:
    """The place in the file when the regex stands there literally, else in the regex alone."""
    line = snippets.find(reader.source, key)
    if line is not None:
        shown = reader.source.split("\n")[line - 1]
        start = shown.find(text)
        if start >= 0:
            return snippets.caret(shown, start + position, line=line)
    return snippets.caret(text, position)


def _examples(reader: Reader, table: Mapping[str, Any], channels: tuple[str, ...]) -> Iterator[Example]:
    names = [item.get("name") for item in reader.tables(table, "patterns")]
    for number, item in enumerate(reader.tables(table, "examples"), 1):
        key = f"examples.{number}"
        reader.known(item, EXAMPLE_KEYS, key)
        match = item.get("match")
        if match is not False and (not isinstance(match, str) or match not in names):
            reason = "is missing" if match is None else f"is {match!r}"
            reader.problem(f"{key}.match", reason, "the name of a pattern, or false for a line that must not match")
        fields = item.get("fields", {})
        if not isinstance(fields, dict):
            reader.problem(f"{key}.fields", "must be a table: field = value")
            fields = {}
        channel = reader.string(item, "channel", key, channels[0] if channels else "")
        if channel and channel not in (*CHANNELS, "plain"):
            reader.problem(f"{key}.channel", f"unknown channel {channel!r}", f"known: {', '.join(CHANNELS)}")
        yield Example(
            reader.string(item, "text", key, hint="a message as it is matched: without stamps and process prefixes"),
            match if isinstance(match, str) else "",
            fields,
            channel,
            reader.string(item, "level", key, "ERROR"),
            reader.string(item, "note", key, ""),
        )
