"""Which events of a timeline somebody wants to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..model import Event, Locator, Severity

SEVERITIES = tuple(Severity)
"""From harmless to critical."""
_OF_LEVEL = {
    "NOTICE": Severity.NOTICE, "WARN": Severity.WARNING, "WARNING": Severity.WARNING, "ERR": Severity.ERROR,
    "ERROR": Severity.ERROR, "CRIT": Severity.CRITICAL, "CRITICAL": Severity.CRITICAL, "FATAL": Severity.CRITICAL,
    "ALERT": Severity.CRITICAL, "EMERG": Severity.CRITICAL, "PANIC": Severity.CRITICAL,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """What the analysis made of an event."""

    findings: tuple[str, ...]
    """Ids, the one that names the event first."""
    title: str
    role: str
    """What the verdict used it as, else the role of its signature."""
    severity: Severity


Key = tuple[Locator, str]
"""What tells an event from the others: its place, and its kind, since one line may tell several things."""


def key(event: Event) -> Key:
    return event.locator, event.kind


@dataclass(frozen=True, slots=True)
class Query:
    """All conditions must hold; an empty one holds always. Times are Unix times."""

    since_s: float | None = None
    until_s: float | None = None
    sources: tuple[str, ...] = ()
    """Globs on the member's path or on its file name."""
    kinds: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    severity: Severity = Severity.INFO
    """At least this."""

    @property
    def timed(self) -> bool:
        return self.since_s is not None or self.until_s is not None


def severity_of(event: Event, mark: Mark | None) -> Severity:
    """What the analysis says, else what the line claims of itself."""
    claimed = _OF_LEVEL.get(event.level, Severity.INFO)
    return claimed if mark is None else max(mark.severity, claimed, key=SEVERITIES.index)


def select(events: Iterable[Event], query: Query, marks: Mapping[Key, Mark]) -> Iterator[Event]:
    """Events that fit, in their order. With a bound in time, the best instant decides and undated events drop out."""
    for event in events:
        if (
            _in_time(event, query)
            and (not query.sources or any(of_source(event.locator.source, glob) for glob in query.sources))
            and (not query.kinds or event.kind in query.kinds)
            and (not query.channels or event.channel in query.channels)
            and _rank(severity_of(event, marks.get(key(event)))) >= _rank(query.severity)
        ):
            yield event


def of_source(path: str, glob: str) -> bool:
    """`*.log` fits a file of that kind in any folder; `logs/*` everything below `logs`."""
    return fnmatchcase(path, glob) or fnmatchcase(path.rpartition("/")[2], glob)


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def _in_time(event: Event, query: Query) -> bool:
    moment = event.time.utc_s
    if moment is None:
        return not query.timed
    return (query.since_s is None or moment >= query.since_s) and (query.until_s is None or moment <= query.until_s)
