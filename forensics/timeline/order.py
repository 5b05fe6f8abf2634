"""One ordered sequence of events, honest about what cannot be ordered.

Events are sorted by their instant; those without one keep the order of their file. Two events whose intervals
overlap, and that stand in different files, form a group: the report must not claim an order between them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..model import Event

GROUP_LIMIT_S = 5.0
"""Events with a larger uncertainty do not glue groups together: they are shown alone, with their interval."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in order; `undated` ones could not be tied to UTC."""

    dated: tuple[Event, ...]
    undated: tuple[Event, ...]

    def between(self, start_s: float, end_s: float) -> tuple[Event, ...]:
        """Events whose best instant lies in [start, end]."""
        times = [_instant(event) for event in self.dated]
        return self.dated[bisect_left(times, start_s) : bisect_right(times, end_s)]

    def __iter__(self) -> Iterator[Event]:
        yield from self.dated
        yield from self.undated


def _instant(event: Event) -> float:
    assert event.time.utc_s is not None
    return event.time.utc_s


def sort_key(event: Event) -> tuple[float, str, int]:
    """Time, then file and line: a total order that does not depend on the order of reading."""
    moment = event.time.utc_s
    return (float("inf") if moment is None else moment, event.locator.source, event.locator.order)


def build(events: Iterable[Event]) -> Timeline:
    ordered = sorted(events, key=sort_key)
    dated = tuple(event for event in ordered if event.time.utc_s is not None)
    return Timeline(dated, tuple(event for event in ordered if event.time.utc_s is None))


def groups(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """Runs of neighbours whose order is not provable; most runs hold one event."""
    run: list[Event] = []
    latest = float("-inf")
    for event in events:
        precise = event.time.uncertainty_s <= GROUP_LIMIT_S
        same_file = bool(run) and all(other.locator.source == event.locator.source for other in run)
        if run and precise and event.time.earliest_s < latest and not same_file:
            run.append(event)
            latest = max(latest, event.time.latest_s)
            continue
        if run:
            yield tuple(run)
        run = [event]
        latest = event.time.latest_s if precise else float("-inf")
    if run:
        yield tuple(run)
