"""Zones that somebody said: the user, a pod's environment, a node's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .. import stamps
from ..model import Basis, Event, StampForm
from ..regexes import lazy_regex
from . import civil as civil_time
from .civil import Civil
from .lanes import Lane
from .network import Network
from .solution import LAST, SCHED_DRIFT, SLEEP_S, Solution
from .stretches import pieces
from .zones import Rule, rule_of

BY_POD = "TZ in the pod's environment"
BY_HEAD = "zone written at the head of the file"
_DAY_S = 86400.0
_HEAD_LINES = 5
_HEADED = lazy_regex(
    r"(?:#|//|;|--) ?(?P<whose>.{0,160}?\b)(?i:TZ|time ?zone)\b[ :=]{0,3}"
    r"(?P<name>UTC(?:[+-]\d[\d:]*)?|[A-Z]\w+(?:/[\w+-]+){1,2})\b"
)
"""A comment that whoever saved a file put above it: `# dmesg -T of node-3, host TZ Asia/Tokyo`."""
_OF_NODE = lazy_regex(r"(?i)\b(?:host|node|machine|server|system)(?:'s)?[ -]?$")


@dataclass(frozen=True, slots=True)
class Declared:
    """A zone that somebody said."""

    rule: Rule
    by: str
    given: bool = False
    """Said by the user, not by the bundle: then nothing else is asked."""


def zones(lanes: Sequence[Lane], events: Iterable[Event], given: Sequence[tuple[str, str]]) -> dict[int, Declared]:
    """Zones given by the user for paths, written at the head of a file, set in a pod's environment (`TZ`), or set on a
    node (timedatectl)."""
    events = tuple(events)
    headed = _headed(events)
    pods: dict[str, str] = {}
    hosts: dict[str, str] = {}
    for event in events:
        env = event.fields.get("env")
        if event.kind == "pod_spec" and event.scope.pod and isinstance(env, Mapping) and isinstance(env.get("TZ"), str):
            pods.setdefault(event.scope.pod, env["TZ"].removeprefix(":"))
        if event.kind == "capture" and isinstance(event.fields.get("timezone"), str):
            hosts.setdefault(event.scope.host, event.fields["timezone"])
    found: dict[int, Declared] = {}
    for lane in lanes:
        if lane.key.form not in (StampForm.LOCAL, StampForm.YEARLESS, StampForm.CLOCK):
            continue
        for pattern, name in given:
            if fnmatchcase(lane.key.source, pattern) and (rule := _rule(lane, name)):
                found[lane.index] = Declared(rule, "zone given", given=True)
        if lane.index in found:
            continue
        name, of_node = headed.get(lane.key.source, ("", False))
        if name and (lane.node or not of_node) and (rule := _rule(lane, name)):
            found[lane.index] = Declared(rule, BY_HEAD)
            continue
        name, by = (
            (_said(hosts, lane.key.host), "time zone set on the node")
            if lane.node
            else (pods.get(lane.key.pod, ""), BY_POD)
        )
        if name and (rule := _rule(lane, name)):
            found[lane.index] = Declared(rule, by)
    return found


def _headed(events: Sequence[Event]) -> dict[str, tuple[str, bool]]:
    """Source → the one zone that comments above its first lines name, and whether they say it of the node alone."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for event in events:
        if event.locator.line <= _HEAD_LINES and not event.stamps and (said := _HEADED.match(event.text, 0, 300)):
            zone = (said["name"], _OF_NODE.search(said["whose"].rstrip()) is not None)
            found.setdefault(event.locator.source, set()).add(zone)
    return {source: next(iter(said)) for source, said in found.items() if len(said) == 1}


def _said(hosts: Mapping[str, str], host: str) -> str:
    """A node's own setting; of an unnamed host, only when nothing else is known."""
    return hosts.get(host) or (hosts[""] if set(hosts) == {""} else "")


def _rule(lane: Lane, name: str) -> Rule | None:
    zone = stamps.zone(name)
    return None if zone is None else rule_of(zone, name, min(lane.walls) - 2 * _DAY_S, max(lane.walls) + 2 * _DAY_S)


def take_given(network: Network, declared: Mapping[int, Declared]) -> None:
    """What the user said holds without proof."""
    for index, said in declared.items():
        if said.given:
            lane = network.lanes.lanes[index]
            segments = civil_time.place(lane, said.rule) or (civil_time.Segment(LAST, -said.rule.first_utcoffset_s),)
            network.add(index, solution_of(lane, Civil(segments, said.rule.names[0]), "solved", said.by))


def solution_of(lane: Lane, civil: Civil, verdict: str, note: str) -> Solution:
    """The law of a lane whose offsets are taken as known."""
    drifts = lane.key.layer == "dmesg"
    parts, _ = pieces(lane, civil, (), drifts)
    basis = Basis.ZONE_SOLVED if verdict == "solved" else Basis.ZONE_ASSUMED
    if verdict == "solved" and lane.year_doubt_s:
        verdict = "assumed"
    return Solution(
        parts,
        basis,
        verdict,
        civil.zone,
        civil.segments[0].offset_s,
        drift=SCHED_DRIFT if drifts else 0.0,
        frame=lane.key.host,
        note=note,
        by_line=lane.ordered,
    ).doubted(lane.year_doubt_s + (SLEEP_S if lane.woken else 0.0))
