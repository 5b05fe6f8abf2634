"""The Events table of `kubectl describe` without the object around it: the piece of it that people paste.

Its rows name a container and no pod, so whose events they are has to be concluded. The header is often left out, and
chats and terminals change the blanks between the cells, so that a row is known by its cells alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import regex

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .k8s_cluster import Occurrence, occurrence_events, with_age
from .k8s_values import AGE
from .located import quoted

_ROW = lazy_regex(
    rf"\s*(?:[-*] )?(?P<type>Normal|Warning)\s+(?P<reason>[A-Z][A-Za-z]+)\s+(?P<age>{AGE})"
    r"\s+(?P<from>[a-z][\w.-]*(?:, \S+)?)\s+(?:spec\.\w+\{(?P<container>[^}]+)\}: )?(?P<message>\S.*)"
)
_HEADER = lazy_regex(r"\s*Type\s+Reason\s+Age\s+From\s+Message\s*")
_RULE = lazy_regex(r"\s*-{2,}(?:\s+-{2,}){4}\s*")
_TITLE = "Events:"
_CONTAINER = lazy_regex(
    r"[Cc]ontainer:? (?P<name>[a-z0-9][a-z0-9-]*)(?=$| (?:failed|was|exceeded|definition)\b)"
)
"""The container of which a message speaks: `Container vllm failed liveness probe`, `Started container vllm`."""


def is_row(line: str) -> bool:
    """Whether a line is one event, as `kubectl describe` prints it."""
    return "  " in line.replace("\t", "  ") and _ROW.fullmatch(line.rstrip()) is not None


def starts(lines: Sequence[str], index: int) -> bool:
    """True at the first line of a table: its title, its header, or its first row where these were left out."""
    line = lines[index]
    if line.strip() == _TITLE:
        return any(_is_part(other) for other in lines[index + 1 : index + 2])
    before = lines[index - 1] if index else ""
    return _is_part(line) and not (_is_part(before) or before.strip() == _TITLE)


def goes_on(lines: Sequence[str], first: int) -> Callable[[int], bool]:
    """Rows, and what stands above them."""
    return lambda index: index == first or _is_part(lines[index])


def _is_part(line: str) -> bool:
    return is_row(line) or _HEADER.fullmatch(line) is not None or _RULE.fullmatch(line) is not None


def read(text: str, source: str) -> Parsed:
    """A `k8s_event` for each row, of the container that it names, or of the only one that the table names."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    rows = [(number, found) for number, line in enumerate(lines, 1) if (found := _ROW.fullmatch(line.rstrip()))]
    named = {name for _, row in rows for name in _containers(row)}
    events: list[Event] = []
    for number, found in rows:
        own = _containers(found) or named
        scope = Scope(container=next(iter(own))) if len(own) == 1 else Scope()
        seen = Occurrence(found["reason"], found["message"], found["type"], component=found["from"])
        place = Locator(source, number, number)
        events += (replace(e, scope=scope) for e in occurrence_events(with_age(seen, found["age"]), place))
    return quoted(events, lines)


def _containers(row: regex.Match[str]) -> set[str]:
    """The containers that a row names; from 1.35 on, kubectl puts one before the message."""
    said = {found["name"] for found in _CONTAINER.finditer(row["message"])}
    return said | ({row["container"]} if row["container"] else set())


def _sniff(head: Head) -> int:
    """Nothing else may stand in the file: what stands beside such a table is cut from it (`shapes`)."""
    filled = head.filled
    rows = sum(map(is_row, filled))
    alone = all(_is_part(line) or line.strip() == _TITLE for line in filled)
    return 90 if rows and alone else 0


FORMAT = Format("k8s.event_rows", "events of kubectl describe", _sniff, read, 4 << 20)
