"""The tz database, asked about offsets: which exist, which zones have one at a time, and when they change.

Offsets here are what clocks add: `utcoffset` is added to UTC to get local time; `offset` (negated) is added to a
printed local time to get UTC.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from math import ceil, floor

UTCOFFSETS_MIN = (
    -720,
    -660,
    -600,
    -570,
    -540,
    -480,
    -420,
    -360,
    -300,
    -270,
    -240,
    -210,
    -180,
    -150,
    -120,
    -60,
    0,
    60,
    120,
    180,
    210,
    240,
    270,
    300,
    330,
    345,
    360,
    390,
    420,
    480,
    510,
    525,
    540,
    570,
    585,
    600,
    630,
    660,
    690,
    720,
    765,
    780,
    825,
    840,
)
"""Every offset in civil use since 2000, in minutes."""
OFFSETS_S = tuple(sorted(0.0 - 60.0 * minutes for minutes in UTCOFFSETS_MIN))
"""The same as seconds to be added to a printed local time."""
_DAY_S = 86400.0
_STEP_S = 5 * _DAY_S
_LONG_S = 400 * _DAY_S
"""Files with longer spans share what is computed for whole years."""
_MOST_STEPS = 200
"""Longer spans are looked at in larger steps, which still find summer time."""
_WELL_KNOWN = (
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "Australia/Sydney",
    "America/Sao_Paulo",
    "Europe/Athens",
    "Asia/Jerusalem",
)
"""Names that stand for all zones with the same rules."""


def nearest_offset(seconds: float) -> float:
    """The civil offset (to be added to local time) nearest to a measured one."""
    right = bisect_left(OFFSETS_S, seconds)
    around = OFFSETS_S[max(right - 1, 0) : right + 1]
    return min(around, key=lambda offset: (abs(offset - seconds), abs(offset)))


def label(offset_s: float) -> str:
    """`UTC`, `UTC+08:00`: a fixed zone, named by what it is ahead of UTC."""
    if offset_s == 0:
        return "UTC"
    sign = "-" if offset_s > 0 else "+"
    minutes = round(abs(offset_s) / 60)
    return f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}"


@dataclass(frozen=True, slots=True)
class Rule:
    """How local time runs over a span, and all zones in which it runs so."""

    names: tuple[str, ...]
    first_utcoffset_s: float
    changes: tuple[tuple[float, float], ...]
    """(Unix time, utcoffset from then on)."""

    def utcoffset_s(self, utc_s: float) -> float:
        if not self.changes:
            return self.first_utcoffset_s
        position = bisect_right(self.changes, (utc_s, float("inf")))
        return self.changes[position - 1][1] if position else self.first_utcoffset_s

    def instants(self, wall_s: float) -> tuple[float, ...]:
        """The instants at which a clock shows this local time: none in a gap, two in a fold."""
        found = []
        for utcoffset in dict.fromkeys((self.first_utcoffset_s, *(after for _, after in self.changes))):
            utc = wall_s - utcoffset
            if self.utcoffset_s(utc) == utcoffset:
                found.append(utc)
        return tuple(sorted(found))

    @property
    def name(self) -> str:
        """One name for the rule: a well-known one when it belongs, else the first."""
        return next((name for name in _WELL_KNOWN if name in self.names), self.names[0])


def rule_of(zone: tzinfo, name: str, start_s: float, end_s: float) -> Rule:
    """The rule of one zone between two instants."""
    first, changes = _changes(zone, _clamp(start_s), _clamp(end_s))
    return Rule((name,), first, changes)


def rules(start_s: float, end_s: float) -> tuple[Rule, ...]:
    """All zones, grouped by how they run between two instants (widened to whole days, long spans to whole years)."""
    first_s, last_s = _clamp(start_s), _clamp(end_s)
    if last_s - first_s > _LONG_S:
        first_s, last_s = _new_year(first_s, 0), _clamp(_new_year(last_s, 1))
    return _rules(floor(first_s / _DAY_S), ceil(last_s / _DAY_S))


def _new_year(utc_s: float, later: int) -> float:
    return datetime(datetime.fromtimestamp(utc_s, UTC).year + later, 1, 1, tzinfo=UTC).timestamp()


@lru_cache(maxsize=64)
def _rules(first_day: int, last_day: int) -> tuple[Rule, ...]:
    groups: dict[tuple[float, tuple[tuple[float, float], ...]], list[str]] = {}
    for name, zone in _zones().items():
        run = _changes(zone, first_day * _DAY_S, last_day * _DAY_S)
        groups.setdefault(run, []).append(name)
    return tuple(Rule(tuple(names), first, changes) for (first, changes), names in sorted(groups.items()))


@lru_cache(maxsize=1)
def _zones() -> dict[str, zoneinfo.ZoneInfo]:
    """All zones of the world, by name. zoneinfo itself keeps eight and would read the files again and again."""
    names = sorted(
        name for name in zoneinfo.available_timezones() if "/" in name and (name[:4] != "Etc/" or name == "Etc/UTC")
    )
    return {name: zoneinfo.ZoneInfo(name) for name in names}


def fold_rules(before_wall_s: float, after_wall_s: float, slack_s: float = 900.0) -> tuple[Rule, ...]:
    """Zones whose clocks are set back between two neighbouring lines, the second of which shows an earlier time.

    The first line must stand shortly before the change, the second shortly after it.
    """
    found = []
    for rule in rules(before_wall_s - 2 * _DAY_S, before_wall_s + 2 * _DAY_S):
        before = rule.first_utcoffset_s
        for utc, after in rule.changes:
            turn, restart = utc + before, utc + after
            set_back = after < before
            before = after
            if set_back and turn - slack_s <= before_wall_s < turn and restart <= after_wall_s < restart + slack_s:
                found.append(rule)
                break
    return tuple(found)


def names_printing(printed: Iterable[tuple[float, str]]) -> frozenset[str]:
    """Zones whose clocks print these abbreviations at these local times; `CST` alone is printed on three continents."""
    return _names_printing(tuple(printed))


@lru_cache(maxsize=64)
def _names_printing(printed: tuple[tuple[float, str], ...]) -> frozenset[str]:
    kept = []
    for name, zone in _zones().items():
        for wall_s, abbreviation in printed:
            local = datetime.fromtimestamp(wall_s, UTC).replace(tzinfo=zone)
            if abbreviation not in (local.tzname(), local.replace(fold=1).tzname()):
                break
        else:
            kept.append(name)
    return frozenset(kept)


def printed_offset(name: str, wall_s: float, abbreviation: str) -> float | None:
    """The offset (to be added to local time) with which a zone prints an abbreviation at a local time."""
    zone = _zones().get(name)
    if zone is None:
        return None
    local = datetime.fromtimestamp(wall_s, UTC).replace(tzinfo=zone)
    offsets = {
        -(moment.utcoffset() or timedelta()).total_seconds()
        for moment in (local, local.replace(fold=1))
        if moment.tzname() == abbreviation
    }
    return offsets.pop() if len(offsets) == 1 else None


def shown_twice(name: str, utc_s: float) -> str:
    """The local time of an instant, as `02:21:07 CET`, when the zone's clocks showed it twice; else empty."""
    zone = _zones().get(name)
    if zone is None:
        return ""
    local = datetime.fromtimestamp(utc_s, zone)
    twin = local.replace(fold=1 - local.fold)
    there_and_back = datetime.fromtimestamp(twin.timestamp(), zone)
    repeated = twin.utcoffset() != local.utcoffset() and there_and_back.replace(fold=0) == local.replace(fold=0)
    return f"{local:%H:%M:%S} {local.tzname()}" if repeated else ""


def only(candidates: Iterable[Rule], names: frozenset[str]) -> tuple[Rule, ...]:
    """Rules with none but some zones; all, when there are no such zones."""
    kept = (Rule(tuple(n for n in r.names if n in names), r.first_utcoffset_s, r.changes) for r in candidates)
    return tuple(rule for rule in kept if rule.names)


def matching(candidates: Iterable[Rule], known: Iterable[tuple[float, float]]) -> tuple[Rule, ...]:
    """Rules that agree with what is known: (instant, offset to be added to local time)."""
    facts = tuple(known)
    return tuple(rule for rule in candidates if all(rule.utcoffset_s(utc) == -offset for utc, offset in facts))


def _changes(zone: tzinfo, start_s: float, end_s: float) -> tuple[float, tuple[tuple[float, float], ...]]:
    previous = first = _utcoffset_s(zone, start_s)
    changes = []
    here = start_s
    step_s = max(_STEP_S, (end_s - start_s) / _MOST_STEPS)
    while here < end_s:
        there = min(here + step_s, end_s)
        current = _utcoffset_s(zone, there)
        if current != previous:
            low, high = here, there
            while high - low > 1:
                middle = floor((low + high) / 2)
                low, high = (middle, high) if _utcoffset_s(zone, middle) == previous else (low, middle)
            changes.append((float(ceil(high)), current))
            previous = current
        here = there
    return first, tuple(changes)


def _utcoffset_s(zone: tzinfo, utc_s: float) -> float:
    offset = datetime.fromtimestamp(utc_s, UTC).astimezone(zone).utcoffset()
    return (offset or timedelta()).total_seconds()


def _clamp(seconds: float) -> float:
    return min(max(seconds, 0.0), 4102444800.0 - _DAY_S)
