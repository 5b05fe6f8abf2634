"""JSON and YAML with line numbers, read tolerantly.

Both readers feed one builder. A document that is cut or broken in the middle gives what stands before the
damage. YAML goes through its event stream only: no tags are resolved, no objects are constructed, and an
alias is a shared reference, so that alias bombs cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import regex
import yaml

from ..regexes import lazy_regex
from .located import Array, Object

MAX_DEPTH = 150
"""Nesting of a document; Kubernetes objects stay below 30."""
MAX_NODES = 4_000_000
"""Values of one document."""
MAX_BROKEN = 20
"""Damaged JSON documents of one file after which the rest is left."""
MAX_MERGED_KEYS = 20_000
"""Keys that YAML merges (`<<`) may copy in one document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file."""

    value: Any
    line: int
    problem: str = ""
    """Why it ends early, or empty."""
    problem_line: int = 0


class _BrokenError(Exception):
    """The document cannot be followed any further."""


class _Builder:
    """Puts a stream of beginnings, ends and scalars together."""

    def __init__(self) -> None:
        self.root: Any = None
        self.started = False
        self.stack: list[Object | Array] = []
        self.keys: list[tuple[str, int] | None] = []
        self.nodes = 0

    @property
    def wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1], Object) and self.keys[-1] is None

    def key(self, name: str, line: int) -> None:
        self.keys[-1] = (name, line)

    def value(self, value: Any, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _BrokenError(f"more than {MAX_NODES} values")
        if not self.stack:
            self.root, self.started = value, True
            return
        top = self.stack[-1]
        if isinstance(top, Array):
            top.add(value, line)
            return
        pending = self.keys[-1]
        if pending is None:
            raise _BrokenError("a value without a key")
        top.put(pending[0], value, pending[1])
        self.keys[-1] = None

    def begin(self, container: Object | Array) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _BrokenError(f"nested deeper than {MAX_DEPTH} levels")
        self.value(container, container.line)
        self.stack.append(container)
        self.keys.append(None)

    def end(self) -> Object | Array:
        self.keys.pop()
        return self.stack.pop()


_TOKEN = lazy_regex(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++)', regex.DOTALL)
_NOT_BLANK = lazy_regex(r"\S")
_DOCUMENT_START = lazy_regex(r"^[{\[]", regex.MULTILINE)
_LITERALS = {"true": True, "false": False, "null": None}


def read_json(text: str) -> Iterator[Document]:
    """All JSON documents of a text, one after the other; other text between them is passed over.

    A document starts with `{` or `[` at the beginning of a line, or right after the end of the one before.
    """
    position, line = 0, 1
    broken = 0
    while broken < MAX_BROKEN:
        found = _NOT_BLANK.search(text, position)
        if found is not None and found[0] not in "{[":
            found = _DOCUMENT_START.search(text, found.start())
        if found is None:
            return
        start = found.start()
        line += text.count("\n", position, start)
        builder = _Builder()
        problem, end = _fill_from_json(builder, text, start, line)
        problem_line = line + text.count("\n", start, end)
        yield Document(builder.root, line, problem, problem_line if problem else 0)
        position, line = end, problem_line
        if problem:
            broken += 1
            after = text.find("\n", position)
            found = _DOCUMENT_START.search(text, after) if after >= 0 else None
            if found is None:
                return
            line += text.count("\n", position, found.start())
            position = found.start()


def _fill_from_json(builder: _Builder, text: str, position: int, line: int) -> tuple[str, int]:
    """Read one document. Returns (problem or empty, position after it)."""
    colon_due = False
    counted = position
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            return "ends in the middle", len(text)
        token = found[1]
        line += text.count("\n", counted, found.start(1))
        counted, position = found.start(1), found.end()
        try:
            if colon_due != (token == ":"):
                raise _BrokenError(f"is no JSON any more at {token[:20]!r}")
            colon_due = False
            if token in "{[":
                builder.begin(Object(line) if token == "{" else Array(line))
            elif token in "}]":
                if not builder.stack or isinstance(builder.stack[-1], Object) != (token == "}"):
                    raise _BrokenError("closes a bracket that is not open")
                builder.end()
                if not builder.stack:
                    return "", position
            elif token[0] == '"':
                value = json.loads(token, strict=False) if "\\" in token or "\n" in token else token[1:-1]
                if builder.wants_key:
                    builder.key(value, line)
                    colon_due = True
                else:
                    builder.value(value, line)
            elif token not in ":,":
                if position == len(text):
                    return "ends in the middle", position  # the number may be torn
                builder.value(_LITERALS[token] if token in _LITERALS else json.loads(token), line)
        except (_BrokenError, ValueError, RecursionError) as error:
            known = isinstance(error, _BrokenError)
            return str(error) if known else f"is no JSON any more at {token[:20]!r}", counted


_SEPARATOR = lazy_regex(r"^---(?=\s|$).*\n?", regex.MULTILINE)
_UNPRINTABLE = lazy_regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_YAML_INT = lazy_regex(r"[-+]?(?:0|[1-9]\d{0,17})")
_YAML_FLOAT = lazy_regex(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d{1,3})?")
_YAML_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str) -> Iterator[Document]:
    """All YAML documents of a text. A broken one does not spoil those after the next `---`."""
    starts = [0, *(found.end() for found in _SEPARATOR.finditer(text))]
    ends = [*(found.start() for found in _SEPARATOR.finditer(text)), len(text)]
    line = 1
    counted = 0
    for start, end in zip(starts, ends, strict=True):
        line += text.count("\n", counted, start)
        counted = start
        part = _UNPRINTABLE.sub("\ufffd", text[start:end])
        if not part.strip():
            continue
        builder = _Builder()
        problem, problem_line = _fill_from_yaml(builder, part, line)
        if builder.started or problem:
            yield Document(builder.root, line, problem, problem_line)


def _fill_from_yaml(builder: _Builder, text: str, first_line: int) -> tuple[str, int]:
    anchors: dict[str, Any] = {}
    open_anchors: list[str | None] = []
    merged = 0
    line = first_line
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            line = first_line + (event.start_mark.line if event.start_mark is not None else 0)
            if isinstance(event, yaml.ScalarEvent):
                value = _yaml_scalar(event)
                if builder.wants_key:
                    builder.key(event.value, line)
                    continue
                builder.value(value, line)
                if event.anchor:
                    anchors[event.anchor] = value
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                if builder.wants_key:
                    raise _BrokenError("uses a mapping or list as a key")
                builder.begin(Object(line) if isinstance(event, yaml.MappingStartEvent) else Array(line))
                open_anchors.append(event.anchor)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                done = builder.end()
                anchor = open_anchors.pop()
                if isinstance(done, Object) and "<<" in done:
                    merged += _merge(done)
                    if merged > MAX_MERGED_KEYS:
                        raise _BrokenError("merges too many keys")
                if anchor:
                    anchors[anchor] = done
            elif isinstance(event, yaml.AliasEvent):
                builder.value(anchors.get(event.anchor or ""), line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = first_line + mark.line if mark is not None else line
        return f"is no YAML any more ({getattr(error, 'problem', None) or 'unreadable'})", where
    except (_BrokenError, RecursionError) as error:
        return str(error), line
    return "", 0


def _yaml_scalar(event: yaml.ScalarEvent) -> Any:
    """Value of a scalar: quoted ones are text, plain ones follow the core rules of YAML 1.2."""
    word: str = event.value
    if not event.implicit[0]:
        return word
    if word.lower() in _YAML_WORDS:
        return _YAML_WORDS[word.lower()]
    if _YAML_INT.fullmatch(word):
        return int(word)
    return float(word) if _YAML_FLOAT.fullmatch(word) else word


def _merge(mapping: Object) -> int:
    """Take over the keys of `<<`; returns how many."""
    sources = mapping.pop("<<")
    count = 0
    for source in sources if isinstance(sources, Array) else [sources]:
        if isinstance(source, Object):
            for key, value in source.items():
                if key not in mapping:
                    mapping.put(key, value, source.lines.get(key, source.line))
                    count += 1
    return count
