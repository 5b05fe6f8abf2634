"""Ages: solve the moment of the capture, before which they count.

An age is truncated, so every event whose instant is also known gives an interval for the capture. The moment that most
intervals share is the capture; how far it is from sure is kept (kubernetes apimachinery `duration.HumanDuration`;
kubectl computes ages against its own machine's clock from times that the node or the API server wrote).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import stamps
from ..model import Event, Locator, RawStamp, Source, StampForm
from ..regexes import lazy_regex
from .lanes import Lanes, plausible
from .offsets import ENOUGH

_DAY_S = 86400.0
_STARTED = ("Started", "Created", "Pulled")
_START_LAG_S = 3.0
"""Image check, creation and start of a container follow each other within this."""
BESIDE_S = 600.0
"""Commands of one collection run within minutes."""
_STOPPED = frozenset({"Evicted", "ExceededGracePeriod", "Killing", "Preempting"})
_GRACE_S = 35.0
"""From the order to stop to the end: the grace period that pods have when nobody sets one, and the kill."""
_NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
"""Ends of containers that did not start: the kubelet tells them as `Failed: Error: …` in the same moment."""
_NOTED_S = 30.0
"""From the command to the note about it."""
_ONE_RUN_S = 120.0
"""Logs of one collection end within this of the tables."""
_SPAN_S = 6 * 3600.0
_MOST_PAIRS = 20
_READ = 400
"""Characters of a line in which dates are looked for."""
_PRINTED = lazy_regex(
    r"\b20\d\d-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}"
)
_OTHER_DATES = lazy_regex(r"(?i)\bwill\b|creat|build|built|releas|expir|not ?(?:after|before)|valid|deadline|due\b")


@dataclass(frozen=True, slots=True)
class Window:
    """The capture lies in here, if an age and an instant speak of one event."""

    low: float
    high: float
    place: Locator
    witness: Locator


@dataclass(frozen=True, slots=True)
class Capture:
    """When the ages of a source were computed."""

    seconds: float
    doubt_s: float
    verdict: str
    windows: tuple[Window, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """Instants of the bundle, by what they are about."""

    events: dict[tuple[str, str, str], list[tuple[float, float | None, Event]]]
    """(reason, object, text) → (last seen, first seen, event)."""
    starts: dict[str, list[tuple[float, Event]]]
    finishes: dict[str, list[tuple[float, Event]]]
    pods: dict[str, list[tuple[float, Event]]]


def captures(
    lanes: Lanes,
    sources: Sequence[Source],
    recorded: Sequence[float],
    newest_s: float | None,
    given: float | None,
    last_s: float | None = None,
) -> dict[str, Capture]:
    """The capture of every source that holds ages.

    `recorded` are instants at which the bundle says it was made, `newest_s` is its newest dated line, `last_s` the
    newest of all whose clock is solved: the collection went on until then.
    """
    by_source: dict[str, list[Event]] = {}
    for event in lanes.events:
        if _has_age(event):
            by_source.setdefault(event.locator.source, []).append(event)
    if not by_source:
        return {}
    known = _known(lanes.events)
    written = {s.path: s.mtime_s for s in sources if s.mtime_s and plausible(StampForm.INSTANT, s.mtime_s)}
    found: dict[str, Capture] = {}
    for source, events in sorted(by_source.items()):
        if given is not None:
            found[source] = Capture(given, 1.0, "solved", (), "capture time given")
            continue
        solved = _intersect([window for event in events for window in _windows(event, known)])
        if solved is not None:
            found[source] = solved
    if given is None:
        for source, seconds in _noted(lanes.events):
            if source in by_source and source not in found:
                found[source] = Capture(seconds, _NOTED_S, "solved", (), "time noted beside the table")
        found |= _beside(by_source, found)
    solved_ones = list(found.values())
    own: dict[str, list[float]] = {}
    for event in lanes.events:
        if event.locator.source in by_source:
            instants = (s.seconds for s in event.stamps if s.form is StampForm.INSTANT)
            plain = [seconds for seconds in instants if plausible(StampForm.INSTANT, seconds)]
            own.setdefault(event.locator.source, []).extend(plain)
    told = _told(lanes.events, written) if len(found) < len(by_source) else {}
    if newest_s is None:
        newest_s = max(told.values(), default=None)
    for source in sorted(by_source):
        if source not in found:
            own_s = max(own.get(source, ()), default=told.get(source))
            assumed = _assumed(solved_ones, recorded, written.get(source), newest_s, own_s, last_s)
            if assumed is not None:
                found[source] = assumed
    return found


def _noted(events: Iterable[Event]) -> Iterator[tuple[str, float]]:
    """By source, the moment of the capture that somebody wrote beside the table."""
    for event in events:
        if event.kind == "capture" and event.fields.get("ages_from"):
            yield event.locator.source, event.stamps[0].seconds


def _told(events: Iterable[Event], written: Mapping[str, float]) -> dict[str, float]:
    """By source, the newest date that lines without a stamp print: a pasted table's, a quoted line's of a log.

    Nobody reads them as the times of something, but what was printed is older than the capture, and file times are
    often those of a copy. When something was made or will expire says nothing about the capture.
    """
    found: dict[str, float] = {}
    for event in events:
        if event.stamps:
            continue
        line = event.raw[:_READ]
        if _OTHER_DATES.search(line):
            continue
        source = event.locator.source
        latest_s = written.get(source, float("inf")) + _DAY_S
        for printed in _PRINTED.findall(line):
            stamp = stamps.iso(printed, "path") or stamps.rfc1123(printed, "path")
            if stamp is not None and plausible(stamp.form, stamp.seconds) and stamp.seconds <= latest_s:
                found[source] = max(found.get(source, 0.0), stamp.seconds)
    return found


def _has_age(event: Event) -> bool:
    return _age(event) is not None or any(key in event.fields for key in ("created_age_s", "last_restart_age_s"))


def _age(event: Event) -> RawStamp | None:
    return next((s for s in event.stamps if s.form is StampForm.AGE and plausible(s.form, s.seconds)), None)


def width_of(age_s: float) -> float:
    """Width of the truncation of an age of this size."""
    return 1.0 if age_s < 600 else 60.0 if age_s < 8 * 3600 else 3600.0 if age_s < 8 * _DAY_S else _DAY_S


def _known(events: Iterable[Event]) -> _Known:
    known = _Known({}, {}, {}, {})
    for event in events:
        if event.channel != "k8s":
            continue
        pod = event.scope.pod
        stamp = next((s for s in event.stamps[:1] if s.form is StampForm.INSTANT), None)
        if stamp is not None and not plausible(stamp.form, stamp.seconds):
            continue
        if event.kind == "k8s_event" and stamp is not None:
            first = event.fields.get("first_seen_s")
            known.events.setdefault(_event_key(event), []).append(
                (stamp.seconds, first if isinstance(first, float) else None, event)
            )
        elif event.kind == "container_started" and stamp is not None:
            known.starts.setdefault(pod, []).append((stamp.seconds, event))
        elif event.kind == "container_terminated" and stamp is not None:
            known.finishes.setdefault(pod, []).append((stamp.seconds, event))
        elif event.kind == "pod_status" and isinstance(event.fields.get("started_s"), float):
            known.pods.setdefault(pod, []).append((event.fields["started_s"], event))
    return known


def _event_key(event: Event) -> tuple[str, str, str]:
    return str(event.fields.get("reason", "")), str(event.fields.get("object_name", "")), event.text


def _windows(event: Event, known: _Known) -> Iterator[Window]:
    """What one event with an age says about the capture."""
    age = _age(event)
    pod = event.scope.pod
    if age is not None and event.kind == "k8s_event":
        low, high = age.seconds - age.resolution_s / 2, age.seconds + age.resolution_s / 2 + 1.0
        first_age = event.fields.get("first_age_s")
        for last_s, first_s, other in known.events.get(_event_key(event), ())[-_MOST_PAIRS:]:
            if isinstance(first_age, float) and first_s is not None:
                half = width_of(first_age) / 2
                yield _window(event, other, first_s + first_age - half, first_s + first_age + half + 1.0)
            yield _window(event, other, last_s + low, last_s + high)
        reason = event.fields.get("reason")
        if reason in _STARTED:
            for started_s, other in _latest(known.starts.get(pod, ())):
                yield _window(event, other, started_s + low - _START_LAG_S, started_s + high + _START_LAG_S)
        elif reason == "Failed" and ": Error: " in event.text:
            failed = [(s, other) for s, other in known.finishes.get(pod, ()) if _never_started(other)]
            for ended_s, other in _latest(failed):
                yield _window(event, other, ended_s + low - _START_LAG_S, ended_s + high + _START_LAG_S)
        elif reason in _STOPPED:
            for ended_s, other in _latest(known.finishes.get(pod, ())):
                yield _window(event, other, ended_s + low - _GRACE_S, ended_s + high + _START_LAG_S)
        elif reason == "Scheduled":
            for started_s, other in known.pods.get(pod, ())[:1]:
                yield _window(event, other, started_s + low - _START_LAG_S, started_s + high)
    created, restart = event.fields.get("created_age_s"), event.fields.get("last_restart_age_s")
    if event.kind == "pod_status" and isinstance(created, float):
        half = width_of(created) / 2
        for started_s, other in known.pods.get(pod, ())[:1]:
            yield _window(event, other, started_s + created - half - _START_LAG_S, started_s + created + half + 1.0)
    if event.kind == "pod_status" and isinstance(restart, float):
        half = width_of(restart) / 2
        for ended_s, other in _latest(known.finishes.get(pod, ())):
            yield _window(event, other, ended_s + restart - half, ended_s + restart + half + 1.0)


def _never_started(event: Event) -> bool:
    return event.fields.get("reason") in _NEVER_STARTED


def _beside(by_source: Mapping[str, Sequence[Event]], known: Mapping[str, Capture]) -> dict[str, Capture]:
    """Captures of tables that show the same events as another one, whose capture is known."""
    told: dict[tuple[object, ...], list[tuple[float, float, Event]]] = {}
    for source, capture in known.items():
        for key, age, event in _told_once(by_source[source]):
            doubt_s = capture.doubt_s + age.resolution_s / 2
            told.setdefault(key, []).append((capture.seconds - age.seconds, doubt_s, event))
    found = {}
    for source, events in sorted(by_source.items()):
        if source in known:
            continue
        windows = []
        for key, age, event in _told_once(events):
            for seen_s, doubt_s, other in told.get(key, ()):
                half = doubt_s + age.resolution_s / 2
                windows.append(_window(event, other, seen_s + age.seconds - half, seen_s + age.seconds + half))
        shared = _intersect(windows)
        if shared is not None:
            sure = all(known[window.witness.source].verdict == "solved" for window in shared.windows)
            note = "taken from events that another table shows, too"
            found[source] = replace(shared, verdict=shared.verdict if sure else "assumed", note=note)
    return found


def _told_once(events: Iterable[Event]) -> list[tuple[tuple[object, ...], RawStamp, Event]]:
    """Kubernetes events with an age, by what they say; what a table says twice cannot be told apart."""
    aged = [
        ((*_event_key(event), event.fields.get("count")), age, event)
        for event in events
        if event.kind == "k8s_event" and (age := _age(event)) is not None
    ]
    times = Counter(key for key, _, _ in aged)
    return [item for item in aged if times[item[0]] == 1]


def _latest(pairs: Sequence[tuple[float, Event]]) -> Sequence[tuple[float, Event]]:
    return [max(pairs, key=lambda pair: pair[0])] if pairs else []


def _window(event: Event, witness: Event, low: float, high: float) -> Window:
    return Window(low, high, event.locator, witness.locator)


def _intersect(windows: Sequence[Window]) -> Capture | None:
    """The interval that most windows share. Lines about one event, or with one witness, are one fact."""
    if not windows:
        return None
    edges = sorted([(w.low, 0, i) for i, w in enumerate(windows)] + [(w.high, 1, i) for i, w in enumerate(windows)])
    open_now: set[int] = set()
    places, witnesses = Counter[Locator](), Counter[Locator]()
    best, low, high = (0, 0), 0.0, 0.0
    members: frozenset[int] = frozenset()
    for position, (value, closing, index) in enumerate(edges):
        window = windows[index]
        change = -1 if closing else 1
        places[window.place] += change
        witnesses[window.witness] += change
        if closing:
            open_now.discard(index)
            for counts, key in ((places, window.place), (witnesses, window.witness)):
                if not counts[key]:
                    del counts[key]
            continue
        open_now.add(index)
        score = (min(len(places), len(witnesses)), len(open_now))
        if score > best:
            best, low, members = score, value, frozenset(open_now)
            high = next(v for v, c, i in edges[position:] if c and i in open_now)
    everyone = min(len({w.place for w in windows}), len({w.witness for w in windows}))
    verdict = "solved" if best[0] >= ENOUGH and 2 * best[0] > everyone else "assumed"
    chosen = tuple(windows[i] for i in sorted(members))
    return Capture((low + high) / 2, (high - low) / 2, verdict, chosen)


def _assumed(
    siblings: Sequence[Capture],
    recorded: Sequence[float],
    written_s: float | None,
    newest_s: float | None,
    own_s: float | None,
    last_s: float | None,
) -> Capture | None:
    """Without a common event: near other captures, a recorded time, or between the newest line and the file time.

    Not before `own_s`, the newest instant of the source itself; perhaps as late as `last_s`.
    """
    earliest_s = own_s if own_s is not None else newest_s
    if siblings or recorded:
        beside = max(siblings, key=lambda capture: (capture.verdict == "solved", capture.seconds), default=None)
        seconds = beside.seconds if beside is not None else max(recorded)
        note = "taken as made together with the other tables" if beside is not None else "taken as made when recorded"
        later_s = last_s - seconds if last_s is not None and last_s - seconds < _SPAN_S else 0.0
        if later_s > _ONE_RUN_S:  # a long collection: made at some time of it
            return Capture(seconds + later_s / 2, later_s / 2 + BESIDE_S, "assumed", (), note)
        open_s = seconds - own_s if own_s is not None else 0.0
        return Capture(seconds, max(BESIDE_S, open_s), "assumed", (), note)
    if earliest_s is None:
        return Capture(written_s, _DAY_S, "assumed", (), "taken from the file time") if written_s else None
    if written_s is not None and 0 <= written_s - earliest_s < _SPAN_S:
        half = (written_s - earliest_s) / 2
        return Capture(earliest_s + half, half + 1.0, "assumed", (), "between the newest line and the file time")
    return Capture(earliest_s, _DAY_S, "assumed", (), "taken as soon after the newest line")
