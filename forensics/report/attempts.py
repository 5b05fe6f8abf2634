"""The runs of the failing service in order: started, ready, ended, how. One row of the restart table each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..diagnosis.model import Death, Life, Phase
from ..model import Event, Locator
from . import contract

if TYPE_CHECKING:
    from .model import Report

START_BEFORE_S = 300.0
"""A container starts at most this long before the first line of its log."""
SAME_START_S = 5.0
VAGUE_S = 1800.0
"""A time less sure than this tells neither an attempt nor a duration."""


ENDS = frozenset({"container_terminated", "container_died", "unit_exit", "docker_state"})
"""Kinds of events by which the keeper of a process tells of its end."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run, as far as anything shows it."""

    number: int
    started: Event | None
    """The container's start, else the first line of the log."""
    life: Life | None
    death: Death | None

    @property
    def start_s(self) -> float | None:
        return known(self.started)

    @property
    def ready_s(self) -> float | None:
        return known(self.life.ready) if self.life else None

    @property
    def end_s(self) -> float | None:
        """When the process ended: as its keeper says, else as its own log says."""
        if self.death is None:
            return None
        told = [known(e) for e in self.death.witnesses if e.kind in ENDS and e.time.uncertainty_s <= 5.0]
        return min(filter(None, told), default=self.death.time_s or None)


def known(event: Event | None) -> float | None:
    """The instant of an event, none when it is vague."""
    if event is None or event.time.uncertainty_s > VAGUE_S:
        return None
    return event.time.utc_s


def is_start(event: Event) -> bool:
    """True when an event tells of the start of a container."""
    return event.kind == "container_started" or event.fields.get("reason") == "Started"


class Owner:
    """Tells whether an event belongs to the failing entity: yes, no, or not said."""

    def __init__(self, report: Report) -> None:
        main = report.diagnosis.incidents[0]
        self.kind, _, self.name = main.entity.partition(":")
        lives = [d.life for d in main.deaths if d.life is not None]
        lives += [life for life in report.diagnosis.lives if life.entity == main.entity]
        self.lives = tuple({(x.sources[0], x.start.locator.line): x for x in lives}.values())
        others = {s for life in report.diagnosis.lives if life.entity != main.entity for s in life.sources}
        self._sources = {s for life in self.lives for s in life.sources} - others
        self._other_sources = others - {s for life in self.lives for s in life.sources}
        self._ids = {
            name
            for event in report.timeline
            if self.kind == "pod" and event.scope.pod == self.name
            for name in (event.scope.container_id, event.scope.pod_uid)
            if name
        }

    def owns(self, event: Event) -> bool | None:
        scope = event.scope
        if self.kind == "pod" and scope.pod:
            return scope.pod == self.name
        if event.locator.source in self._sources:
            return True
        if event.locator.source in self._other_sources:
            return False
        if self.kind == "pod" and (scope.container_id or scope.pod_uid):
            return bool({scope.container_id, scope.pod_uid} & self._ids)
        if self.kind == "unit" and scope.unit:
            return scope.unit.removesuffix(".service") == self.name
        return False if self.kind == "unit" and scope.pod else None


def find(report: Report, owner: Owner) -> tuple[Attempt, ...]:
    """All attempts of the main incident's entity, by time."""
    main = report.diagnosis.incidents[0]
    starts = [e for e in report.timeline if e.kind == "container_started" and owner.owns(e) and known(e) is not None]
    drafts: list[tuple[Event | None, Life | None, Death | None]] = []
    homeless = list(main.deaths)
    for life in sorted(owner.lives, key=lambda x: (known(x.start) or 0.0, x.sources[0], x.start.locator.line)):
        death = next((d for d in homeless if d.life is not None and _same(d.life, life)), None)
        if death is not None:
            homeless.remove(death)
        first = known(life.start)
        if death is None and first is None and life.ready is None and life.phase is Phase.UNKNOWN:
            continue  # nothing of it is known
        began = None if first is None else _container_start(starts, first - START_BEFORE_S, first + 5.0)
        if began is None and first is not None:
            began = _told_start(starts, death, first)
        drafts.append((began or life.start, life, death))
    for death in homeless:
        began = _container_start(starts, 0.0, death.time_s) if death.time_s else None
        drafts.append((began if all(d[0] is not began for d in drafts) else None, None, death))
    drafts.sort(key=_order)
    return tuple(Attempt(n, *draft) for n, draft in enumerate(drafts, 1))


def _order(draft: tuple[Event | None, Life | None, Death | None]) -> float:
    """When a run began, or ended where that is vague; a vague beginning still tells which run came first."""
    began, life, death = draft
    vague = life.start.time.utc_s if life is not None else None
    return known(began) or (death.time_s if death is not None else None) or vague or float("inf")


def _told_start(starts: Sequence[Event], death: Death | None, first_s: float) -> Event | None:
    """The start that the status of a death names: long before a log that begins in the middle of the run."""
    told = (event.fields.get("started_s") for event in (death.witnesses if death is not None else ()))
    moment = next((float(when) for when in told if isinstance(when, int | float)), None)
    if moment is None or moment >= first_s:
        return None
    return _container_start(starts, moment - SAME_START_S, moment + SAME_START_S)


def _same(one: Life, other: Life) -> bool:
    return one.sources[0] == other.sources[0] and one.start.locator == other.start.locator


def _container_start(starts: Sequence[Event], earliest_s: float, latest_s: float) -> Event | None:
    """The last start of a container within a span, as its best witness tells it."""
    near = [e for e in starts if earliest_s <= (known(e) or 0.0) <= latest_s]
    near.sort(key=lambda e: known(e) or 0.0)
    last = len(near) - 1
    while last > 0 and (known(near[last]) or 0.0) - (known(near[last - 1]) or 0.0) <= SAME_START_S:
        last -= 1  # runtime, kubelet and the API tell of one start within seconds
    same = near[last:]
    return min(same, key=lambda e: (e.time.uncertainty_s > 0.5, known(e) or 0.0), default=None)


class Numbers:
    """Tells the attempt that an event falls into; none before the first start and for vague times outside of logs."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._lives = [(a.life, a.number) for a in attempts if a.life is not None]
        self._witnesses: dict[Locator, int] = {}
        for attempt in attempts:
            for event in attempt.death.witnesses if attempt.death is not None else ():
                self._witnesses.setdefault(event.locator, attempt.number)
        dated = [(a.start_s - 0.2, a.number) for a in attempts if a.start_s is not None]
        self._starts, self._numbers = [start for start, _ in dated], [number for _, number in dated]

    def of(self, event: Event) -> int | None:
        seen = self._witnesses.get(event.locator)
        told = next((number for life, number in self._lives if _within(life, event)), None)
        if seen is not None or told is not None:
            return min(number for number in (seen, told) if number is not None)
        when = known(event)
        if when is None:
            return None
        if is_start(event):
            when += event.time.uncertainty_s  # a coarse clock must not put a start into the run before it
        i = bisect_right(self._starts, when)
        return self._numbers[i - 1] if i else None


def _within(life: Life, event: Event) -> bool:
    """True when an event stands between the first and the last line of a run, in its first file."""
    first, last, here = life.start.locator, life.end.locator, event.locator
    return here.source == first.source and first.line <= here.line <= last.line


def row(attempt: Attempt, title: str) -> dict[str, Any]:
    """One line of the restart table; `title` names the line at which the run was lost."""
    life, death = attempt.life, attempt.death
    fatal = life.fatal if life is not None else None
    start, ready, end = attempt.start_s, attempt.ready_s, attempt.end_s
    place = attempt.started
    return {
        "attempt": attempt.number,
        "started": contract.iso(start),
        "ready": contract.iso(ready),
        "ready_after_s": None if ready is None or start is None or ready < start else round(ready - start, 1),
        "ended": contract.iso(end),
        "lasted_s": None if end is None or start is None or end < start else round(end - start, 1),
        "exit_code": death.exit_code if death else None,
        "reason": death.reason if death else "",
        "graceful": death.graceful if death else None,
        "phase": life.phase.value if life else None,
        "lost_at": None if fatal is None else {
            "title": title, "source": fatal.locator.source, "line": fatal.locator.line,
            "quote": contract.quote(fatal.event),
        },
        "source": place.locator.source if place else None,
        "line": place.locator.line if place else None,
        "logs": list(life.sources) if life else [],
    }  # fmt: skip
