"""What the law does not forbid and an author should know: slow regexes, weak anchors, near misses that prove little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import Problem
from ..regexes import lazy_regex
from . import mutation, probe
from .model import Library, Pattern, Signature, path_of
from .snippets import caret

MIN_ANCHOR_BYTES = 4
MAX_LITERAL = 100
"""Characters of fixed text in one piece; sentences change from version to version."""

_LITERAL = lazy_regex(r"(?:\\[^\w\s]|[^\\\[\](){}|?*+.^$])+")
_SOURCE_LINE = lazy_regex(r"\\\.(?:py|go|rs|c|cc|cpp|cu|h|hpp):\d")
_OPEN_END = lazy_regex(r"(?<!\\)\.[*+]\??$")
_CHINESE = lazy_regex(r"\p{Han}")


@dataclass(frozen=True, slots=True)
class Remark:
    problem: Problem
    warning: bool
    """False for mere advice."""


def lint(library: Library, only: Iterable[str], hostile: bool = True) -> Iterator[Remark]:
    """Remarks on the signatures named in `only`; `hostile` also runs every regex on text made to slow it down."""
    for identity in only:
        signature = library.signatures[identity]
        yield from (Remark(problem, True) for problem in _warnings(signature, library))
        if hostile:
            yield from (Remark(problem, True) for problem in _slow(signature))
        yield from (Remark(problem, False) for problem in _advice(signature))


def _warnings(signature: Signature, library: Library) -> Iterator[Problem]:
    path = path_of(signature.id)
    for anchor in signature.anchors:
        if len(anchor.encode()) < MIN_ANCHOR_BYTES:
            yield Problem(path, "anchors", f"{anchor!r} is very short: nearly every line holds it",
                          "take the longest literal that every wording of the message holds")  # fmt: skip
    if not _CHINESE.search(signature.title_zh):
        yield Problem(path, "title.zh", "is not Chinese", "say it as you would to a colleague")
    if signature.role == "cause" and not any(c.names(signature.id) for c in library.causes.values()):
        yield Problem(path, "role", "is cause, but no cause names the signature: it would be found and never used",
                      "name it in a causes/<id>.toml, or choose another role")  # fmt: skip
    for pattern in signature.patterns:
        yield from _regex_warnings(path, pattern)


def _regex_warnings(path: str, pattern: Pattern) -> Iterator[Problem]:
    source, key = pattern.source, f"patterns.{pattern.name}.regex"
    if source.startswith(".*"):
        yield Problem(path, key, "begins with .*, which says nothing", "leave it away: a regex is searched")
    elif found := _OPEN_END.search(source):
        yield Problem(path, key, f"ends with {found[0]}, which says nothing", "leave it away: a regex is searched")
    if found := _SOURCE_LINE.search(source):
        yield Problem(path, key, "holds a line number of the source, which changes with every release",
                      "leave it away", caret(source, *found.span()))  # fmt: skip
    for found in _LITERAL.finditer(source):
        if found.end() - found.start() > MAX_LITERAL:
            yield Problem(path, key, f"holds {found.end() - found.start()} characters of fixed text in one piece",
                          "match the shortest stable core: wordings change", caret(source, found.start()))  # fmt: skip


def _slow(signature: Signature) -> Iterator[Problem]:
    for pattern in signature.patterns:
        slow = probe.slowest(signature, pattern)
        if slow is not None:
            took = "hits the time limit" if slow.cut else f"takes {slow.seconds:.2f} s"
            yield Problem(path_of(signature.id), f"patterns.{pattern.name}.regex", f"{took} on {slow.text}",
                          "bound what stands between two parts: [^ ]{1,80} or .{0,200}? instead of .*?")  # fmt: skip


def _advice(signature: Signature) -> Iterator[Problem]:
    path = path_of(signature.id)
    for version in signature.versions:
        if not version.source:
            yield Problem(path, "versions", f"does not say where {version.program} prints it",
                          'source = "<file>: <function>"')  # fmt: skip
    for pattern in signature.patterns:
        looser = mutation.loosened(signature, pattern)
        if looser is not None and mutation.survives(looser):
            yield Problem(path, f"patterns.{pattern.name}", "loosened to an anchor, it would pass all examples",
                          "add a near miss that holds an anchor, with match = false")  # fmt: skip
