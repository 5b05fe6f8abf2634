"""What people wrote beside what machines printed: texts of another day, and talk of an error that a log shows.

A text that a person wrote (`notes`) may be a draft about an old incident, kept beside a log of today; its pasted lines
are true, and are history. So is a log that somebody kept because it looks alike, where the remark above it tells of
another day. And a sentence that names an error which a program's own output holds is talk about that output: what
became of the error is told there.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from .. import stamps
from ..clocks.yearless import DAY_S, nearest_turn_s
from ..model import Event, Finding, Source, StampForm
from ..parsers import mentions, notes
from ..regexes import lazy_regex
from .model import Life

HISTORY_S = 14 * DAY_S
"""Who starts a run this long after the day of a text is not who the text is about."""
_DATES = frozenset({StampForm.INSTANT, StampForm.LOCAL, StampForm.YEARLESS})
"""Stamps that print a day."""
_HISTORY = "history"
_REMEMBERED = frozenset({
    "container_started", "container_terminated", "container_state", "docker_state", "k8s_first_seen",
})  # fmt: skip
"""What a status remembers of days before: it is no log of them."""
_DATE = lazy_regex(r"(?<!\d)20\d\d-[01]\d-[0-3]\d(?!\d)")
_MONTH = lazy_regex(rf"\b({'|'.join(calendar.month_name[1:])})\b")
_APART = lazy_regex(
    r"(?i)\b(?:kept|other|another|old|different|unrelated|compar\w+|(?:for|as a) reference)\b"
    r"|另一|别的|其他|旧|对比|参考"
)
"""How somebody says of a log that it is not of what is asked about."""
_REVIEW = lazy_regex(
    r"(?i)(?<![a-z])(?:post-?mortem|incident|retrospective|review|rca|inc-?\d+)(?![a-z])|复盘|事故|障害報告|ポストモーテム"
)
"""How a text calls itself that is written when an incident is over."""
_FILED = lazy_regex(
    r"(?i)(?:^|[/_.-])(?:old|archived?|histor(?:y|ic|ical)|post-?mortems?|last[-_](?:time|week|month|year))(?=[/_.-]|$)"
)
"""How a file or its folder is called that somebody put away when its trouble was over."""
_TODAY = lazy_regex(r"(?i)\b(?:today|this (?:morning|afternoon|evening)|tonight|heute)\b|今天|今日|오늘")


def by_people(sources: Iterable[Source]) -> frozenset[str]:
    """Paths of the files that a person wrote, as far as their text or their name tells."""
    return frozenset(
        source.path for source in sources
        if notes.CHANNEL in (source.format, source.title) or notes.is_named(source.path)
    )  # fmt: skip


def of_another_day(sources: Iterable[Source], events: Sequence[Event], lives: Sequence[Life]) -> frozenset[str]:
    """Paths of the texts, and of the files put away as old, whose lines are weeks older than an engine at work, where
    nothing else is of their day.

    A text whose stamps bear no year has to print it somewhere: else nobody knows which day it is of. Where it pastes
    lines without a day, the days that it names are theirs.
    """
    people = by_people(sources)
    own: dict[str, list[Event]] = {source.path: [] for source in sources}
    for event in events:
        own.setdefault(event.locator.source, []).append(event)
    filed = {path for path in own if _FILED.search(path)}
    texts = {path for path in people | filed if _is_history(path, own.get(path, ()), events, lives)}
    return frozenset(texts | {path for path in own.keys() - people if _is_kept(path, own, people)})


def under_test(events: Iterable[Event], lives: Iterable[Life]) -> frozenset[str]:
    """Paths of the logs all of whose runs started and ended while tests ran that all passed.

    Who starts a server in a test, and demands that it refuses to start, wants it to fail.
    """
    spans = list(_passed(event for event in events if event.kind == "test_run"))
    runs: dict[str, list[Life]] = {}
    for life in lives:
        runs.setdefault(life.start.locator.source, []).append(life)
    return frozenset(path for path, own in runs.items() if spans and all(_is_within(life, spans) for life in own))


def _passed(counts: Iterable[Event]) -> Iterator[tuple[float, float]]:
    """From when to when each dated run of tests may have lasted, as Unix times."""
    for count in counts:
        length_s, time = count.fields.get("duration_s"), count.time
        if isinstance(length_s, float) and time.utc_s is not None and time.uncertainty_s < DAY_S:
            yield time.earliest_s - length_s, time.latest_s


def _is_within(life: Life, spans: Iterable[tuple[float, float]]) -> bool:
    began, ended = life.start.time.utc_s, life.end.time.utc_s
    if not life.from_start or began is None or ended is None:
        return False
    return any(first_s <= began and ended <= last_s for first_s, last_s in spans)


def _is_kept(path: str, own: Mapping[str, Sequence[Event]], people: frozenset[str]) -> bool:
    """Whether a log is of another day than all else, as the remark says that somebody put above it.

    The remark prints the day with its year, and the stamps below are of it. The others are at least weeks apart, and
    later, as a printed year or a `today` beside a date tells; where they print no year, the remark has to compare.
    Only where another file holds an engine's lines: else the kept log is what the bundle is about. Where no line of
    the kept log is dated, a month of which the engine's lines are not, or `last year`, says as much, if the remark
    sets the log apart.
    """
    remark = min(own[path], key=lambda event: event.locator.order, default=None)
    if remark is None or remark.channel != notes.CHANNEL or all(e.channel == notes.CHANNEL for e in own[path]):
        return False
    others = [event for other, told in own.items() if other != path for event in told]
    if not any(event.channel == "engine" and event.locator.source not in people for event in others):
        return False
    if not (days := _days(remark.raw)):
        return _is_set_apart(remark.raw, others) and not any(map(_is_dated, own[path]))
    day_s = days[0]
    if not all(-DAY_S < _apart(event, day_s) < 2 * DAY_S for event in own[path] if _is_dated(event)):
        return False
    said = [
        found_s - day_s for event in others
        if event.channel == notes.CHANNEL and _TODAY.search(event.raw) for found_s in _days(event.raw)
    ]  # fmt: skip
    dated = [event for event in others if _is_dated(event)]
    known = [*said, *(_apart(event, day_s) for event in dated if not _is_yearless(event))]
    apart = all(abs(seconds) > HISTORY_S for seconds in (*said, *(_apart(event, day_s) for event in dated)))
    return apart and (max(known) > 0 if known else bool(dated) and mentions.REFERS.search(remark.raw) is not None)


def _is_set_apart(remark: str, others: Iterable[Event]) -> bool:
    """Whether a remark says in words that what stands below it is of another case, and of another time."""
    if not _APART.search(remark):
        return False
    months = {stamps.MONTHS[found[1][:3]] for found in _MONTH.finditer(remark)}
    engine = (event for event in others if event.channel == "engine" and _is_dated(event))
    seen = {datetime.fromtimestamp(_moment(event), UTC).month for event in engine}
    of_month = bool(months) and bool(seen) and months.isdisjoint(seen)
    return of_month or (not months and mentions.ANOTHER_TIME.search(remark) is not None)


def _days(text: str) -> list[float]:
    """The beginnings of the days that a text names, as Unix times."""
    found = []
    for day in _DATE.findall(text):
        with suppress(ValueError):  # the 31st of February
            found.append(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    return found


def _apart(event: Event, day_s: float) -> float:
    """Seconds from a day to an event; the year that its stamp lacks is the one that brings both together."""
    moment = _moment(event)
    return (nearest_turn_s(moment, day_s) if _is_yearless(event) else moment) - day_s


def _is_history(path: str, told: Sequence[Event], events: Iterable[Event], lives: Iterable[Life]) -> bool:
    dated = [event for event in told if _is_dated(event)]
    working = [life for life in lives if path not in life.sources and life.last_activity is not None]
    if not working or not all(_has_year(event, path, told) for event in dated):
        return False
    days = [_moment(event) for event in dated] or _days_of_review(path, told)
    if not days:
        return False
    first_s, last_s = min(days), max(days)
    others = (_moment(e) for e in events if e.locator.source != path and _is_dated(e) and e.kind not in _REMEMBERED)
    later = any(_moment(life.start) - last_s > HISTORY_S for life in working)
    return later and not any(first_s - DAY_S < moment < last_s + HISTORY_S for moment in others)


def _days_of_review(path: str, told: Sequence[Event]) -> list[float]:
    """The days that a review of an incident names, which calls itself one and does not speak of today."""
    own = [event for event in told if event.kind != _HISTORY]
    head = " ".join([path, *(event.raw[:200] for event in sorted(own, key=lambda e: e.locator.order)[:3])])
    if not _REVIEW.search(head) or any(_TODAY.search(event.raw) for event in own):
        return []
    return [day_s for event in own for day_s in _days(event.raw)]


def as_talk(events: Iterable[Event], paths: frozenset[str]) -> list[Event]:
    """The events, those of some files no longer taken for what they tell of, nor for words of today."""
    return [
        replace(event, kind=_HISTORY, channel=notes.CHANNEL) if event.locator.source in paths else event
        for event in events
    ]


def quoted(sources: Iterable[Source], findings: Sequence[Finding], old: frozenset[str]) -> list[Finding]:
    """The findings, marked where they stand in an old text, or name an error that a program's own output shows."""
    written = by_people(sources)
    printed = {f.signature for f in findings if f.locator.source not in written and not f.quoted}
    return [
        replace(f, quoted=True) if f.locator.source in old or (f.signature in printed and _names(f, written)) else f
        for f in findings
    ]


def _names(finding: Finding, written: frozenset[str]) -> bool:
    """True for a title, a quotation or a sentence with an error in it; a pasted line is none."""
    event = finding.event
    bare = event.kind == "log" and not event.stamps and event.locator.source in written
    return bare and mentions.is_mention(event.raw or event.text)


def _is_dated(event: Event) -> bool:
    printed = event.channel != notes.CHANNEL and any(stamp.form in _DATES for stamp in event.stamps)
    return printed and _moment(event) > 0


def _moment(event: Event) -> float:
    """Unix time, 0 where it is unknown. A year that is assumed counts as it is assumed."""
    return event.time.utc_s or 0.0


def _is_yearless(event: Event) -> bool:
    return any(stamp.form is StampForm.YEARLESS for stamp in event.stamps)


def _has_year(event: Event, path: str, told: Iterable[Event]) -> bool:
    """Whether the year of an event is printed: in its stamp, in the text, or in the name of the file."""
    if not _is_yearless(event):
        return True
    year = str(datetime.fromtimestamp(_moment(event), UTC).year)
    return year in path or any(year in other.raw for other in told)
