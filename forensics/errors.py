"""The error tree, readable from top to bottom.

Only what a user can act on is an exception. A bad log line never is: it becomes a `model.Diagnostic`.
"""

from __future__ import annotations

from dataclasses import dataclass


class ForensicsError(Exception):
    """Base of all errors that this program raises on purpose; the text is fit to print."""


class InputError(ForensicsError):
    """An input path cannot be used at all: what, where, and what to try."""


class NothingReadableError(ForensicsError):
    """Every input was opened and none of them held anything that can be analysed."""


class OptionError(ForensicsError):
    """A command line option has a value that makes no sense."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One defect in a library file."""

    path: str
    """File, relative to the library's root."""
    key: str
    """Dotted key inside the file, or an empty string for the whole file."""
    reason: str
    """What is wrong."""
    hint: str = ""
    """What to do about it."""
    snippet: str = ""
    """The offending text with a caret line below it, when a position is known."""

    def __str__(self) -> str:
        place = f"{self.path}: {self.key}" if self.key else self.path
        lines = [f"{place}: {self.reason}"]
        if self.snippet:
            lines += [f"    {line}" for line in self.snippet.splitlines()]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)


class LibraryError(ForensicsError):
    """The pattern library is broken. All problems are reported, not the first."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        noun = "problem" if len(problems) == 1 else "problems"
        super().__init__("\n".join([f"{len(problems)} {noun} in the pattern library", *map(str, problems)]))
