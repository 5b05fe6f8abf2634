"""One timeline: solve the clock of every source of a bundle.

A source's clock has unknowns: zone, year, boot epoch, skew, capture time. They are solved from facts that two clocks
saw (`anchors`), outward from the sources that print instants (`network`); where nothing ties a clock, from what is
said about zones and from hints (`assume`), and the doubt that remains becomes the uncertainty of its events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..model import Clock, Diagnostic, Event, Parsed, Samples, Source, StampForm
from . import ages, anchors, apply, assume, boots, declared, lanes, skew, steps, table, years
from .hints import Hints, series_by_lane
from .network import Network

__all__ = ["ANCHORS", "ClockOptions", "Solved", "solve"]

ANCHORS: tuple[str, ...] = (
    "audit(",
    "System clock was stepped",
    "System clock wrong by",
    "jump detected",
    "Time jumped backwards",
    "time stepped by",
    "Initial clock synchronization",
    "PM: suspend",
    "Linux version ",
)
"""Literals of lines that clocks need and no signature asks for; the scan keeps them when it is given them."""


_CLEAR_S = 60.0
"""Lanes with more doubt do not say how long the collection went on."""


@dataclass(frozen=True, slots=True)
class ClockOptions:
    """What the user knows better."""

    tz: tuple[tuple[str, str], ...] = ()
    """(glob over source paths, zone): local times of these sources are in this zone."""
    year: int | None = None
    """Year of the last line of year-less sources."""
    captured_at_s: float | None = None
    """Unix time of the capture, from which ages count."""
    skew: tuple[tuple[str, float], ...] = ()
    """(host, seconds that its clock runs ahead)."""


@dataclass(frozen=True, slots=True)
class Solved:
    """Everything on one axis."""

    events: tuple[Event, ...]
    """In the order given, with `time` filled."""
    samples: tuple[Samples, ...]
    """With stamps in Unix time; NaN where unknown."""
    clocks: Mapping[str, tuple[Clock, ...]]
    """By source path."""
    diagnostics: tuple[Diagnostic, ...]


def solve(parsed: Sequence[tuple[Source, Parsed]], options: ClockOptions = ClockOptions()) -> Solved:
    """Times in UTC, with uncertainty and reason, for all events and samples of a bundle. Never raises on content."""
    sources = [source for source, _ in parsed]
    given_s = options.captured_at_s
    if given_s is not None and not lanes.plausible(StampForm.INSTANT, given_s):
        given_s = None
    found = lanes.collect(parsed)
    newest = years.newest(sources, found, given_s)
    years.settle(found, newest, options.year, {source.path: source.mtime_s for source in sources})
    network = Network(found, anchors.links(found))
    said = declared.zones(found.lanes, found.events, options.tz)
    declared.take_given(network, said)
    named = {index: zone.rule for index, zone in said.items()}
    network.spread(named)
    network.steps = steps.find(found, network.solutions)
    network.spread(named)
    hints = Hints(network, _captured(network, given_s), series_by_lane(parsed))
    boots.settle(network, found.events, boots.recorded(network))
    assume.settle(network, hints, said)
    recorded = boots.recorded(network)
    boots.settle(network, found.events, recorded)
    stepped = steps.find(found, network.solutions)
    captured = _captured(network, given_s)
    newest_s = newest.seconds if newest is not None else None
    if newest is None or not newest.sure:  # a copy made months later has new file times
        newest_s = _last_s(network, inf)
    captures = ages.captures(found, sources, captured, newest_s, given_s, _last_s(network, _CLEAR_S))
    skews = skew.of_hosts(found, stepped, dict(options.skew))
    solved = apply.Clocks(
        found, network.solutions, captures, skews, stepped, hints.ends, recorded, hints.starts
    )
    in_order = frozenset(
        lane.key.source for lane in found.lanes if lane.ordered and lane.key.form is not StampForm.AGE
    ) - frozenset(event.locator.source for event in found.events if event.channel == "k8s")
    clocks = table.of_sources(solved)
    return Solved(
        apply.events(solved, in_order),
        apply.samples(solved, [series for _, part in parsed for series in part.samples]),
        clocks,
        table.diagnostics(solved, clocks),
    )


def _captured(network: Network, given_s: float | None) -> list[float]:
    """Instants of captures, as far as they are known by now."""
    return [given_s] if given_s is not None else sorted(set(boots.recorded(network).values()))


def _last_s(network: Network, most_doubt_s: float) -> float | None:
    """The newest reading of all lanes whose clock is no more open than this."""
    lasts = [
        solution.at(lane.lines[position], lane.walls[position])[0]
        for lane in network.lanes.lanes
        if (solution := network.solutions.get(lane.index))
        and solution.doubt_s < most_doubt_s
        and lane.key.layer != lanes.EMBEDDED_LAYER
        for position in [max(range(len(lane.walls)), key=lane.walls.__getitem__)]
    ]
    return max(lasts, default=None)
