"""Take typed values out of a TOML table, and note everything that is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli

from ..errors import Problem
from ..regexes import lazy_regex
from . import snippets
from .model import LANGUAGES, Text

MAX_BYTES = 1 << 20
"""Largest file that is read as a signature, a cause or a setting."""

_POSITION = lazy_regex(r" \(at line (?P<line>\d+), column (?P<column>\d+)\)$")


@dataclass(slots=True)
class Reader:
    """One file. Problems are collected; a wrong value comes back as an empty one."""

    root: Path
    path: str
    """Relative to the root."""
    trusted: bool = False
    """True for a library whose regexes need no check."""
    problems: list[Problem] = field(default_factory=list)
    source: str = ""
    """Text of the file, to show places in it."""

    def toml(self) -> dict[str, Any] | None:
        """The table of the file, or none when it cannot be read at all."""
        try:
            with (self.root / self.path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                self.problem("", f"is larger than {MAX_BYTES} bytes", "one signature a file")
                return None
            self.source = data.decode("utf-8").replace("\r\n", "\n")
            return tomli.loads(self.source)
        except OSError as error:
            self.problem("", f"cannot be read: {error.strerror}", "check that it is a file and its permissions")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            self.problem("", f"is not UTF-8: byte {data[error.start]:#04x} in line {line}", "save the file as UTF-8")
        except tomli.TOMLDecodeError as error:
            self._syntax(str(error))
        except ValueError:
            self.problem("", "holds a number of thousands of digits", "write the number that was meant")
        except RecursionError:
            self.problem("", "is nested too deeply", "a pattern file has two levels at most")
        return None

    def _syntax(self, message: str) -> None:
        lines = self.source.split("\n")
        found = _POSITION.search(message)
        line = int(found["line"]) if found else len(lines)
        column = int(found["column"]) if found else len(lines[-1]) + 1
        self.problem(
            "", f"is not valid TOML: {_POSITION.sub('', message)}",
            "write regexes and log lines as literal strings: '''…'''",
            snippets.caret(lines[line - 1], column - 1, line=line) if line <= len(lines) else "",
        )  # fmt: skip

    def problem(self, key: str, reason: str, hint: str = "", snippet: str = "") -> None:
        """Note a problem; without a snippet of its own the line of the key is shown."""
        if not snippet and key:
            snippet = snippets.show_key(self.source, key)
        self.problems.append(Problem(self.path, key, reason, hint, snippet))

    def known(self, table: Mapping[str, Any], allowed: Collection[str], key: str = "") -> None:
        """Every key of a table must be one of `allowed`: a typo must not switch a check off."""
        for name in table:
            if name not in allowed:
                close = difflib.get_close_matches(name, allowed, 1)
                hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(sorted(allowed))}"
                self.problem(f"{key}.{name}".strip("."), "unknown key", hint)

    def string(
        self, table: Mapping[str, Any], name: str, key: str = "", default: str | None = None, hint: str = ""
    ) -> str:
        """A stripped string. Without a default it must be there and not be empty."""
        value = table.get(name, default)
        full = f"{key}.{name}".strip(".")
        if not isinstance(value, str):
            self.problem(full, "is missing" if name not in table else "must be a string", hint)
            return ""
        if not value.strip() and default is None:
            self.problem(full, "must not be empty", hint)
        return value.strip()

    def strings(self, table: Mapping[str, Any], name: str, required: bool = False) -> tuple[str, ...]:
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.problem(name, "must be a list of non-empty strings", f'{name} = ["…"]')
            return ()
        if required and not value:
            self.problem(name, "must hold at least one entry" if name in table else "is missing", f'{name} = ["…"]')
        twice = sorted({item for item in value if value.count(item) > 1})
        if twice:
            self.problem(name, f"{twice[0]!r} stands there twice")
        return tuple(value)

    def choice(self, table: Mapping[str, Any], name: str, choices: Iterable[str]) -> str:
        """One of the choices; the first of them after a problem."""
        options = list(choices)
        shown = ", ".join(option or '""' for option in options)
        value = table.get(name)
        if name not in table:
            self.problem(name, "is missing", f"one of: {shown}")
        elif not isinstance(value, str) or value not in options:
            self.problem(name, f"is {value!r}", f"one of: {shown}")
        return value if isinstance(value, str) and value in options else options[0]

    def boolean(self, table: Mapping[str, Any], name: str) -> bool:
        """True or false; false when the key is absent."""
        value = table.get(name, False)
        if not isinstance(value, bool):
            self.problem(name, "must be true or false")
        return value is True

    def text(self, table: Mapping[str, Any], name: str, key: str = "") -> Text:
        """A text in both languages."""
        value = table.get(name)
        full = f"{key}.{name}".strip(".")
        if not isinstance(value, dict):
            reason = "is missing" if value is None else "must be a table with `en` and `zh`"
            self.problem(full, reason, f"{name}.en = '''…''' and {name}.zh = '''…'''")
            return Text("", "")
        self.known(value, LANGUAGES, full)
        return Text(*(self.string(value, language, full) for language in LANGUAGES))

    def tables(self, table: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.problem(name, f"must be [[{name}]] tables")
            return []
        return value
