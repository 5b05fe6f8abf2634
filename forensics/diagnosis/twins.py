"""A run that several files show (an archive of logs and `kubectl logs --previous`) is one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..model import Event, Role
from .model import Life, Phase
from .pod_names import stream_of, tells_run

SAME_START_S = 3.0
CUT_S = 120.0
"""A log that ends so soon after the service is ready was cut there."""


def merge(lives: Iterable[Life]) -> Iterator[Life]:
    """Lives that several files show, once: same entity and start, or overlapping in time."""
    by_entity: dict[str, list[Life]] = {}
    for life in lives:
        by_entity.setdefault(life.entity, []).append(life)
    for entity in sorted(by_entity):
        kept: list[Life] = []
        runs = Counter(life.start.locator.source for life in by_entity[entity])
        for life in sorted(by_entity[entity], key=_order):
            single = runs[life.start.locator.source] == 1
            others = [_same(o, life) or (single and runs[o.sources[0]] == 1 and _are_streams(o, life)) for o in kept]
            twin = next((i for i, same in enumerate(others) if same), None)
            if twin is None:
                kept.append(life)
            else:
                kept[twin] = _united(kept[twin], life)
        yield from _with_beginnings(kept)


def _with_beginnings(lives: Iterable[Life]) -> Iterator[Life]:
    """Lives in order of time; one whose log somebody cut, into its first lines and its last ones, is one."""
    before: Life | None = None
    for life in lives:
        if before is not None and _goes_on(before, life):
            told = (finding for finding in before.findings if finding.role is Role.CONTEXT)
            before = replace(
                life, sources=(*life.sources, *before.sources), ready=life.ready or before.ready, from_start=True,
                phase=max(life.phase, before.phase, key=tuple(Phase).index), findings=(*told, *life.findings),
            )  # fmt: skip
            continue
        if before is not None:
            yield before
        before = life
    if before is not None:
        yield before


def _goes_on(before: Life, life: Life) -> bool:
    """True for a run that a file shows up to its readiness only, and another one from some later line on."""
    ready, end = (event.time.utc_s if event is not None else None for event in (before.ready, before.end))
    cut = ready is not None and end is not None and end - ready <= CUT_S
    ended = before.fatal is not None or before.crash is not None or before.shutdown is not None
    named = any(map(tells_run, (*before.sources, *life.sources)))
    return cut and before.from_start and not ended and not life.from_start and not named and (
        before.sources[0] not in life.sources
    )


def _order(life: Life) -> tuple[float, str, int]:
    start = life.start.time.utc_s
    return (float("inf") if start is None else start, life.sources[0], life.start.locator.order)


def _same(one: Life, other: Life) -> bool:
    if other.sources[0] in one.sources:
        return False
    a, b = one.start.time.utc_s, other.start.time.utc_s
    c, d = one.end.time.utc_s, other.end.time.utc_s
    if a is None or b is None or c is None or d is None:
        return _printed(one.start) == _printed(other.start) is not None
    if abs(a - b) <= SAME_START_S:
        return True
    return min(c, d) - max(a, b) > SAME_START_S


def _are_streams(one: Life, other: Life) -> bool:
    """True for what one job wrote into its two files, where one has no times, as what Python says of a crash."""
    undated = {life.start.time.utc_s is None and life.end.time.utc_s is None for life in (one, other)}
    names = {stream_of(life.start.locator.source) for life in (one, other)}
    return True in undated and len(names) == 1 and "" not in names


def _printed(event: Event) -> float | None:
    return event.stamps[-1].seconds if event.stamps else None


def _united(one: Life, other: Life) -> Life:
    """Two views of a life: the one with more findings tells the story, the other is named as a source."""
    rich, poor = (one, other) if len(one.findings) >= len(other.findings) else (other, one)
    deeper = max(one.phase, other.phase, key=tuple(Phase).index)
    return replace(
        rich,
        sources=(*rich.sources, *poor.sources),
        phase=deeper,
        ready=rich.ready or poor.ready,
        shutdown=rich.shutdown or poor.shutdown,
        from_start=rich.from_start or poor.from_start,
        fatal=rich.fatal or poor.fatal,
        crash=rich.crash or poor.crash,
        last_activity=rich.last_activity or poor.last_activity,
        job=rich.job or poor.job,
    )
