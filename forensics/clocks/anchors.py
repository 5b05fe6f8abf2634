"""Find facts that two clocks saw: they tie one lane of times to another.

Two stamps on one line are the surest. Then the same message in two files: it must be distinctive (long, with numbers)
and stand once in each lane, so that storms and restarts that repeat their words pair nothing. Then the same thing told
in other words: a container's death by its id, a kill by its pid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from ..model import Event, StampForm
from ..regexes import lazy_re, lazy_regex
from .lanes import Lane, Lanes

Key = tuple[str, ...]
EARLY_BOOT_S = 120.0
"""Journald receives the first kernel lines late, and every boot prints the same ones."""
_SHORTEST = 24
_MOST_CENTRES = 4
"""In how many lanes a fact is looked up from all others."""
_FOUR_DIGITS = lazy_re(r"(?:\D*\d){4}")
_CHANNEL_FAMILIES = {
    "container": "engine",
    "plain": "engine",
    "systemd": "host",
    "clock": "host",
    "oomd": "host",
}
_REWORDED = frozenset({
    "container_started", "container_terminated", "container_died", "k8s_event", "k8s_first_seen", "capture",
})  # fmt: skip
"""Kinds whose text is not the printed one: the same words may stand for different things."""
_LIFE_STEPS = {"container_started": "started", "container_terminated": "ended", "container_died": "ended"}
_PID = lazy_regex(r"\bpid[:=] ?(\d+)")


class Kind(IntEnum):
    """How two readings are known to be the same moment."""

    RECORD = 0
    """Two stamps of one line."""
    TEXT = 1
    """One message in two files."""
    FACT = 2
    """One thing told by two programs."""
    LOOSE = 3
    """Two things of which one brings about the other within seconds."""


@dataclass(frozen=True, slots=True)
class Link:
    """The reading of one lane that is the same moment as a reading of another."""

    first: tuple[int, int]
    """(lane index, position)."""
    second: tuple[int, int]
    kind: Kind


def links(lanes: Lanes) -> list[Link]:
    """All links between lanes, in a fixed order."""
    return [
        *_record_links(lanes),
        *_matches(lanes, _texts(lanes), Kind.TEXT),
        *_matches(lanes, _facts(lanes, _fact), Kind.FACT),
        *_matches(lanes, _facts(lanes, _end), Kind.LOOSE),
    ]


def _record_links(lanes: Lanes) -> Iterator[Link]:
    for places in lanes.places:
        known = [place for place in places if place[0] >= 0]
        for inner, outer in zip(known[1:], known, strict=False):
            if inner[0] != outer[0]:
                yield Link(inner, outer, Kind.RECORD)


def _texts(lanes: Lanes) -> Iterator[tuple[Key, int, int]]:
    """(key, event, stamp) of every distinctive message."""
    for number, event in enumerate(lanes.events):
        if event.count > 1 or not event.stamps or len(event.text) < _SHORTEST or event.kind in _REWORDED:
            continue
        inner = event.stamps[-1]
        if inner.form is StampForm.AGE:
            continue
        family = _CHANNEL_FAMILIES.get(event.channel, event.channel)
        if family in ("engine", "ray", "k8s"):
            if inner.form not in (StampForm.YEARLESS, StampForm.LOCAL) or inner.layer not in ("engine", "ray"):
                continue  # every start of a container says the same; only its own stamp tells which one it was
            own: Key = (family, f"{inner.seconds:.3f}")
        elif _early(event):
            continue
        else:
            own = (family,)
        if _FOUR_DIGITS.match(event.text, 0, 400):
            yield (*own, " ".join(event.text.split())), number, len(event.stamps) - 1


def _early(event: Event) -> bool:
    return event.kind == "log" and any(
        stamp.form is StampForm.BOOT and stamp.seconds < EARLY_BOOT_S for stamp in event.stamps
    )


def _facts(lanes: Lanes, key_of: Callable[[Event], Key]) -> Iterator[tuple[Key, int, int]]:
    for number, event in enumerate(lanes.events):
        if event.stamps and event.stamps[-1].form is not StampForm.AGE:
            key = key_of(event)
            if key:
                yield key, number, len(event.stamps) - 1


def _fact(event: Event) -> Key:
    """A step in a container's life by its id, a kill by its pid."""
    if event.kind in _LIFE_STEPS and event.scope.container_id:
        return (_LIFE_STEPS[event.kind], event.scope.container_id)
    if event.kind == "kernel_oom" and event.fields.get("victim_pid"):
        return ("kill", str(event.fields["victim_pid"]))
    if event.kind == "k8s_event" and event.fields.get("reason") == "SystemOOM":
        found = _PID.search(event.text)
        return ("kill", found[1]) if found else ()
    return ()


def _end(event: Event) -> Key:
    """A kill inside a container, and the container's end."""
    if event.kind in ("kernel_oom", "container_terminated") and event.scope.container_id:
        return ("end", event.scope.container_id)
    return ()


def _matches(lanes: Lanes, found: Iterable[tuple[Key, int, int]], kind: Kind) -> Iterator[Link]:
    """Pair readings with equal keys, each of which stands once in its lane."""
    seen: dict[Key, dict[int, int | None]] = {}
    for key, number, stamp in found:
        lane, position = lanes.places[number][stamp]
        if lane < 0:
            continue
        once = seen.setdefault(key, {})
        once[lane] = None if lane in once else position
    for readings in seen.values():
        places = [(lane, position) for lane, position in readings.items() if position is not None]
        if len(places) < 2:
            continue
        places.sort(key=lambda place: (_rank(lanes.lanes[place[0]]), place))
        for number, centre in enumerate(places[:_MOST_CENTRES]):
            for place in places[number + 1 :]:
                if _compatible(lanes.lanes[centre[0]], lanes.lanes[place[0]]):
                    yield Link(centre, place, kind)


def _compatible(one: Lane, other: Lane) -> bool:
    """Two machines may say the same; only one machine can have said it once."""
    return not one.key.host or not other.key.host or one.key.host == other.key.host


def _rank(lane: Lane) -> int:
    order = (
        StampForm.INSTANT,
        StampForm.LOCAL,
        StampForm.YEARLESS,
        StampForm.CLOCK,
        StampForm.BOOT,
        StampForm.AGE,
    )
    return order.index(lane.key.form)
