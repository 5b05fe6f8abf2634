"""Read `patterns/`: TOML files → `Signature` and `Cause`, with every problem collected, not the first.

Unknown keys are errors: a typo must not switch a check off. Ids equal paths. Nothing in a pattern file is code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from ..errors import LibraryError, Problem
from ..model import Role, Severity
from .fields import CONVERTERS

PHASES = ("", "starting", "loading", "profiling", "capturing", "serving", "draining", "dead")
STATUSES = ("experimental", "test", "stable", "deprecated")
CHANNELS = (
    "engine", "kernel", "kubelet", "runtime", "systemd", "oomd", "clock", "host", "ray", "nvidia", "k8s", "container",
    "metrics", "cgroup",
)  # fmt: skip
LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """A text in both languages."""

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True)
class Pattern:
    name: str
    regex: regex.Pattern[str]
    types: Mapping[str, str]
    """Group name → converter name of `fields.CONVERTERS`."""


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    """A message as it is matched: without stamps and process prefixes."""
    pattern: str
    """Name of the pattern that must hit, or empty for a line that must not match at all."""
    fields: Mapping[str, Any]
    """Values that must be captured, exactly."""
    channel: str
    level: str
    note: str


@dataclass(frozen=True, slots=True)
class Version:
    program: str
    range: str
    source: str


@dataclass(frozen=True, slots=True)
class Signature:
    id: str
    title: str
    title_zh: str
    status: str
    severity: Severity
    role: Role
    channels: tuple[str, ...]
    kinds: tuple[str, ...]
    """Event kinds it may fire on; empty for any."""
    anchors: tuple[str, ...]
    """Literals of which every matching line holds at least one; they feed the scan."""
    patterns: tuple[Pattern, ...]
    versions: tuple[Version, ...]
    description: str
    false_positives: tuple[str, ...]
    references: tuple[str, ...]
    overlaps: tuple[str, ...]
    """Signatures that may fire on the same line on purpose."""
    examples: tuple[Example, ...]
    phase: str
    """Phase of an engine's run that this line begins (`starting`, `loading`, `serving`, `dead` …), or empty."""
    quotable: bool
    """True when the message counts at level INFO and in the middle of a line, too."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Evidence that would confirm or refute a cause, and the command that shows it."""

    evidence: Text
    command: str


@dataclass(frozen=True, slots=True)
class Remedy:
    when: str
    """Empty, or a condition named in `diagnosis/remedies.py`; the remedy is shown only when it holds."""
    text: Text


@dataclass(frozen=True, slots=True)
class Cause:
    id: str
    title: Text
    summary: Text
    mechanism: Text
    decisive: tuple[str, ...]
    supporting: tuple[str, ...]
    contradicting: tuple[str, ...]
    explains: tuple[str, ...]
    """Findings that are consequences when this cause holds."""
    confirm: tuple[Confirm, ...]
    remedies: tuple[Remedy, ...]
    avoid: tuple[Text, ...]
    verify: Text
    prevent: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Library:
    signatures: Mapping[str, Signature]
    causes: Mapping[str, Cause]

    def anchors(self) -> frozenset[str]:
        """All literals that the scan has to look for."""
        return frozenset(anchor for signature in self.signatures.values() for anchor in signature.anchors)


def load(root: Path, derived: Iterable[str] = ()) -> Library:
    """The library below `root`. `derived` are ids of findings made by `diagnosis/`, which causes may name.

    Raises `LibraryError` with all problems.
    """
    problems: list[Problem] = []
    signatures: dict[str, Signature] = {}
    causes: dict[str, Cause] = {}
    for path in sorted(root.rglob("*.toml")):
        name = path.relative_to(root).as_posix()
        reader = _Reader(name, problems)
        table = reader.toml(path)
        if table is None:
            continue
        before = len(problems)
        if name.startswith("causes/"):
            cause = _cause(reader, table, name.removeprefix("causes/").removesuffix(".toml"))
            if len(problems) == before:
                causes[cause.id] = cause
        else:
            signature = _signature(reader, table, name.removesuffix(".toml").replace("/", "."))
            if len(problems) == before:
                signatures[signature.id] = signature
    _check_references(signatures, causes, frozenset(derived), problems)
    if problems:
        raise LibraryError(tuple(problems))
    return Library(signatures, causes)


def _check_references(
    signatures: Mapping[str, Signature], causes: Mapping[str, Cause], derived: frozenset[str], problems: list[Problem]
) -> None:
    known = frozenset(signatures) | derived
    for cause in causes.values():
        for key in ("decisive", "supporting", "contradicting", "explains"):
            for name in getattr(cause, key):
                if name not in known and not (name.endswith(".*") and any(k.startswith(name[:-1]) for k in known)):
                    problems.append(Problem(f"causes/{cause.id}.toml", key, f"no signature or rule is called {name!r}",
                                            "correct the name, or add the signature"))  # fmt: skip
    for signature in signatures.values():
        for name in signature.overlaps:
            if name not in signatures:
                problems.append(Problem(_path(signature.id), "overlaps", f"no signature is called {name!r}"))


def _path(signature_id: str) -> str:
    return signature_id.replace(".", "/", 1) + ".toml"


@dataclass(slots=True)
class _Reader:
    """Takes typed values out of a TOML table and notes what is wrong with them."""

    path: str
    problems: list[Problem]

    def toml(self, path: Path) -> dict[str, Any] | None:
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            self.problem("", f"is not valid TOML: {error}", "use '''literal''' strings for regexes and log lines")
        except UnicodeDecodeError as error:
            self.problem("", f"is not UTF-8: {error}", "save the file as UTF-8")
        return None

    def problem(self, key: str, reason: str, hint: str = "", snippet: str = "") -> None:
        self.problems.append(Problem(self.path, key, reason, hint, snippet))

    def known(self, table: Mapping[str, Any], allowed: Iterable[str], key: str = "") -> None:
        for name in table:
            if name not in allowed:
                self.problem(f"{key}.{name}".strip("."), "unknown key", f"known keys: {', '.join(sorted(allowed))}")

    def string(self, table: Mapping[str, Any], name: str, key: str = "", default: str | None = None) -> str:
        value = table.get(name, default)
        full = f"{key}.{name}".strip(".")
        if not isinstance(value, str):
            self.problem(full, "missing" if name not in table else "must be a string")
            return ""
        if not value.strip() and default is None:
            self.problem(full, "must not be empty")
        return value.strip()

    def strings(self, table: Mapping[str, Any], name: str, required: bool = False) -> tuple[str, ...]:
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.problem(name, "must be a list of non-empty strings")
            return ()
        if required and not value:
            self.problem(name, "must hold at least one entry")
        return tuple(value)

    def choice(self, table: Mapping[str, Any], name: str, choices: Iterable[str]) -> str:
        value = self.string(table, name)
        options = list(choices)
        if value and value not in options:
            self.problem(name, f"is {value!r}", f"one of: {', '.join(options)}")
        return value if value in options else options[0]

    def text(self, table: Mapping[str, Any], name: str, key: str = "") -> Text:
        value = table.get(name)
        full = f"{key}.{name}".strip(".")
        if not isinstance(value, dict):
            self.problem(full, "must be a table with `en` and `zh`")
            return Text("", "")
        self.known(value, LANGUAGES, full)
        return Text(*(self.string(value, language, full) for language in LANGUAGES))

    def tables(self, table: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.problem(name, f"must be [[{name}]] tables")
            return []
        return value


_SIGNATURE_KEYS = (
    "id", "title", "status", "severity", "role", "channels", "kinds", "anchors", "description", "false_positives",
    "references", "overlaps", "versions", "patterns", "examples", "quotable", "phase",
)  # fmt: skip


def _signature(reader: _Reader, table: dict[str, Any], expected_id: str) -> Signature:
    reader.known(table, _SIGNATURE_KEYS)
    identity = reader.string(table, "id")
    if identity != expected_id:
        reader.problem("id", f"is {identity!r}", f"the path demands {expected_id!r}")
    title = reader.text(table, "title")
    channels = reader.strings(table, "channels", required=True)
    for channel in channels:
        if channel not in CHANNELS:
            reader.problem("channels", f"unknown channel {channel!r}", f"known: {', '.join(CHANNELS)}")
    patterns = tuple(_patterns(reader, table))
    versions = tuple(
        Version(reader.string(v, "program", "versions"), reader.string(v, "range", "versions", ""),
                reader.string(v, "source", "versions", ""))
        for v in reader.tables(table, "versions")
    )  # fmt: skip
    for version in reader.tables(table, "versions"):
        reader.known(version, ("program", "range", "source"), "versions")
    if not versions:
        reader.problem("versions", "must say which program prints it", "[[versions]] program = …, range = …, source = …")
    quotable = table.get("quotable", False)
    if not isinstance(quotable, bool):
        reader.problem("quotable", "must be true or false")
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
        versions=versions,
        description=reader.string(table, "description"),
        false_positives=reader.strings(table, "false_positives"),
        references=reader.strings(table, "references"),
        overlaps=reader.strings(table, "overlaps"),
        examples=tuple(_examples(reader, table, channels, patterns)),
        phase=reader.choice({"phase": "", **table}, "phase", PHASES) if "phase" in table else "",
        quotable=bool(quotable),
    )


def _patterns(reader: _Reader, table: Mapping[str, Any]) -> Iterable[Pattern]:
    tables = reader.tables(table, "patterns")
    if not tables:
        reader.problem("patterns", "must hold at least one [[patterns]] table")
    names: set[str] = set()
    for item in tables:
        reader.known(item, ("name", "regex", "types", "note"), "patterns")
        name = reader.string(item, "name", "patterns")
        if name in names:
            reader.problem(f"patterns.{name}", "is used twice")
        names.add(name)
        text = item.get("regex", "")
        compiled = _compile(reader, f"patterns.{name}.regex", text)
        types = item.get("types", {})
        if not isinstance(types, dict):
            reader.problem(f"patterns.{name}.types", "must be a table: group = converter")
            types = {}
        groups = set(compiled.groupindex) if compiled else set()
        for group in groups ^ set(types):
            reason = "has no type" if group in groups else "is no group of the regex"
            reader.problem(f"patterns.{name}.types.{group}", reason, "types name exactly the groups of the regex")
        for group, kind in types.items():
            if kind not in CONVERTERS:
                reader.problem(f"patterns.{name}.types.{group}", f"unknown type {kind!r}",
                               f"known: {', '.join(sorted(CONVERTERS))}")  # fmt: skip
        if compiled:
            yield Pattern(name, compiled, types)


def _compile(reader: _Reader, key: str, text: Any) -> regex.Pattern[str] | None:
    if not isinstance(text, str) or not text:
        reader.problem(key, "must be a non-empty string")
        return None
    try:
        return regex.compile(text, regex.VERSION1 | regex.DOTALL)
    except regex.error as error:
        position = error.pos or 0
        snippet = f"{text}\n{' ' * position}^"
        reader.problem(key, f"is no valid regex: {error.msg}", "test it with `oomforensics patterns test`", snippet)
    return None


def _examples(
    reader: _Reader, table: Mapping[str, Any], channels: tuple[str, ...], patterns: tuple[Pattern, ...]
) -> Iterable[Example]:
    names = {pattern.name for pattern in patterns}
    for number, item in enumerate(reader.tables(table, "examples"), 1):
        key = f"examples.{number}"
        reader.known(item, ("text", "match", "fields", "channel", "level", "note"), key)
        match = item.get("match")
        if match is not False and match not in names:
            reader.problem(f"{key}.match", f"is {match!r}", "the name of a pattern, or false")
        fields = item.get("fields", {})
        if not isinstance(fields, dict):
            reader.problem(f"{key}.fields", "must be a table")
            fields = {}
        channel = reader.string(item, "channel", key, channels[0] if channels else "")
        yield Example(
            reader.string(item, "text", key),
            match if isinstance(match, str) else "",
            fields,
            channel,
            reader.string(item, "level", key, "ERROR"),
            reader.string(item, "note", key, ""),
        )


_CAUSE_KEYS = (
    "id", "title", "summary", "mechanism", "decisive", "supporting", "contradicting", "explains", "confirm", "remedies",
    "avoid", "verify", "prevent",
)  # fmt: skip


def _cause(reader: _Reader, table: dict[str, Any], expected_id: str) -> Cause:
    reader.known(table, _CAUSE_KEYS)
    identity = reader.string(table, "id")
    if identity != expected_id:
        reader.problem("id", f"is {identity!r}", f"the file name demands {expected_id!r}")
    for name, keys in (("confirm", ("evidence", "command")), ("remedies", ("when", "text")), ("avoid", ("text",)),
                       ("prevent", ("text",))):  # fmt: skip
        for item in reader.tables(table, name):
            reader.known(item, keys, name)
    text: Callable[[str], tuple[Text, ...]] = lambda name: tuple(
        reader.text(item, "text", name) for item in reader.tables(table, name)
    )
    return Cause(
        id=identity,
        title=reader.text(table, "title"),
        summary=reader.text(table, "summary"),
        mechanism=reader.text(table, "mechanism"),
        decisive=reader.strings(table, "decisive"),
        supporting=reader.strings(table, "supporting"),
        contradicting=reader.strings(table, "contradicting"),
        explains=reader.strings(table, "explains"),
        confirm=tuple(
            Confirm(reader.text(item, "evidence", "confirm"), reader.string(item, "command", "confirm"))
            for item in reader.tables(table, "confirm")
        ),
        remedies=tuple(
            Remedy(reader.string(item, "when", "remedies", ""), reader.text(item, "text", "remedies"))
            for item in reader.tables(table, "remedies")
        ),
        avoid=text("avoid"),
        verify=reader.text(table, "verify"),
        prevent=text("prevent"),
    )
