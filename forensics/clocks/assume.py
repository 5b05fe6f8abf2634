"""Lanes that no anchors solve: zones that somebody said, zones of neighbours, hints, and at last UTC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model import StampForm
from . import civil as civil_time
from . import weak
from .civil import Civil
from .declared import BY_POD, Declared, solution_of
from .hints import EXACT, TABLES, Hints
from .lanes import Lane
from .network import Network
from .solution import LAST, Solution
from .weak import Hint
from .zones import OFFSETS_S, label, matching, nearest_offset, only, rules

_DAY_S = 86400.0
_LOCAL_FORMS = (StampForm.LOCAL, StampForm.YEARLESS)
_UTC_PRIOR = 0.5
_NEIGHBOUR_PRIOR = 0.6
_HOST_PRIOR = 1.5
_DEFAULT_PRIOR = 1.0
_SHARED_PRIOR = 0.8
_MAJORITY = 0.6
_CAPTURE_SLACK_S = 600.0
_CLEAR_S = 60.0
_OPEN_S = 1800.0
"""More doubt than this leaves the zone open."""
_PROBES = 64
_ROUNDS = 8
_JOURNALS = frozenset({"journal", "klog", "syslog", "dmesg"})


def settle(network: Network, hints: Hints, declared: Mapping[int, Declared]) -> None:
    """Solve the remaining local lanes, the surest first; what one of them ties is solved by its links."""
    named = {index: said.rule for index, said in declared.items()}
    for _ in range(_ROUNDS):
        network.spread(named)
        hints.refresh()
        open_lanes = [
            lane
            for lane in network.lanes.lanes
            if lane.index not in network.solutions and lane.key.form not in (StampForm.AGE, StampForm.BOOT)
        ]
        open_lanes = [lane for lane in open_lanes if lane.key.layer != "dmesg"] or open_lanes
        shared = _shared_offsets(network, hints, open_lanes)
        found = [(lane, _assume(network, hints, lane, declared, shared)) for lane in open_lanes]
        ranked = sorted(found, key=lambda item: (_rank(item[1]), item[0].index))
        clear = [item for item in ranked if _rank(item[1])[1] < _CLEAR_S]
        containers = [item for item in ranked if not (item[0].node or item[0].key.layer in TABLES)]
        for lane, solution in clear or containers or ranked:  # containers are in UTC far more often than nodes are
            if lane.index not in network.solutions:
                if not clear:  # what was settled in this round may tell the zone
                    solution = _assume(network, hints, lane, declared, shared)
                network.add(lane.index, solution)
                network.spread(named)
        if not clear and all(lane.key.layer == "dmesg" for lane in open_lanes):
            return


def _rank(solution: Solution) -> tuple[bool, float]:
    """Sorts what is sure before what is open."""
    return solution.verdict != "solved", solution.doubt_s


def _shared_offsets(network: Network, hints: Hints, open_lanes: Sequence[Lane]) -> dict[bool, float]:
    """The one offset that all lanes of unknown owners fit, of nodes (true) and of containers."""
    found = {}
    for node in (True, False):
        lanes = [lane for lane in open_lanes if lane.node == node and not lane.key.pod and not lane.key.host]
        if len(lanes) > 1:
            pooled = [replace(hint, group=f"{lane.index} {hint.group}") for lane in lanes for hint in hints.of(lane)]
            priors, _ = _priors(network, lanes[0])
            choice = weak.choose(pooled, priors)
            if choice.clear:
                found[node] = choice.offset_s
    return found


def _assume(
    network: Network,
    hints: Hints,
    lane: Lane,
    declared: Mapping[int, Declared],
    shared: Mapping[bool, float],
) -> Solution:
    said = declared.get(lane.index)
    if said is not None:
        segments = civil_time.place(lane, said.rule)
        if segments is not None:
            refused = network.refused.get(lane.index, "")
            note = "; ".join(filter(None, (said.by, refused)))
            return solution_of(lane, Civil(segments, said.rule.names[0]), "assumed" if refused else "solved", note)
    proven = civil_time.from_fold(lane)
    if proven is None and lane.printed_zones:
        proven = civil_time.choose(lane, civil_time.local_rules(lane))
    if proven is not None and not any(segment.doubt_s for segment in proven.segments):
        return solution_of(lane, proven, "solved", proven.note or f"prints {lane.printed_zones[0][1]}")
    priors, note = _priors(network, lane)
    if lane.node in shared and not lane.key.pod and not lane.key.host:
        priors[shared[lane.node]] = priors.get(shared[lane.node], 0.0) + _SHARED_PRIOR
    found = hints.of(lane)
    choice = weak.choose(found, priors, _possible(lane, hints, found))
    civil = _civil(lane, choice.offset_s)
    doubt_s = choice.doubt_s
    supported = choice.hints > 0
    if choice.clear and not supported and lane.node and not _usual(network, lane, choice.offset_s):
        doubt_s = abs(choice.offset_s)  # the node's zone, or a container on it that prints UTC
    if not supported:
        doubt_s = max(doubt_s, _open_zone_s(network, lane))
    reason = f"{choice.hints} hint{'s' if choice.hints > 1 else ''} for it" if supported else note
    refused = network.refused.get(lane.index, "")
    verdict = "refused" if refused else "assumed"
    solution = solution_of(lane, civil, verdict, "; ".join(filter(None, (refused, reason))))
    if lane.key.form is StampForm.CLOCK:
        solution = _on_day(solution, lane, hints.newest_s)
    return solution.doubted(doubt_s)


def _civil(lane: Lane, offset_s: float) -> Civil:
    """An offset in the middle of a lane, with the changes that zones with this offset have inside it."""
    middle = _middle(lane) + offset_s
    near = matching(rules(middle - _DAY_S, middle + _DAY_S), [(middle, offset_s)])
    names = frozenset(name for rule in near for name in rule.names)
    civil = civil_time.choose(lane, only(civil_time.local_rules(lane), names))
    return civil or Civil((civil_time.Segment(LAST, offset_s),), label(offset_s))


def _usual(network: Network, lane: Lane, offset_s: float) -> bool:
    """Whether a node's tool surely prints the node's zone: journals do, others when one of them was seen to."""
    return lane.key.layer in _JOURNALS or any(
        other.key.layer == lane.key.layer and network.solutions[other.index].offset_s == offset_s
        for other in network.lanes.lanes
        if other.index in network.solutions and not network.solutions[other.index].doubt_s
    )


def _middle(lane: Lane) -> float:
    return lane.walls[len(lane.walls) // 2]


def _on_day(solution: Solution, lane: Lane, newest_s: float | None) -> Solution:
    """A time of day, on the day that brings it nearest to the newest line."""
    if newest_s is None:  # the day that `years` gave it, if it knew one
        return solution if lane.year_note else solution.doubted(365 * _DAY_S)
    instant, _ = solution.at(lane.lines[-1], lane.walls[-1])
    shift_s = _DAY_S * round((newest_s - instant) / _DAY_S)
    return replace(
        solution,
        pieces=tuple(
            replace(piece, constants=tuple(constant + shift_s for constant in piece.constants))
            for piece in solution.pieces
        ),
    )


def _possible(lane: Lane, hints: Hints, found: Sequence[Hint]) -> Sequence[float]:
    """Offsets that fit a printed abbreviation and do not put the last line behind the capture.

    Of two captures the bundle may record the earlier one only, so that an exact fact may stand behind it.
    """
    kept: Sequence[float] = OFFSETS_S
    if lane.printed_zones:
        middle = _middle(lane)
        kept = sorted({-rule.utcoffset_s(middle) for rule in civil_time.local_rules(lane)})
    if hints.captured:
        latest = max(*hints.captured, hints.newest_s or 0.0) + _CAPTURE_SLACK_S
        exact = [hint for hint in found if hint.weight >= EXACT]
        kept = [
            offset_s
            for offset_s in kept
            if max(lane.walls) + offset_s <= latest or any(hint.fits(offset_s) for hint in exact)
        ] or kept
    return kept


def _priors(network: Network, lane: Lane) -> tuple[dict[float, float], str]:
    """What is usual, and what neighbours do, in words as well."""
    own: list[tuple[float, Lane]] = []
    others: list[tuple[float, Lane]] = []
    for other, solution in _neighbours(network, lane):
        if _together(lane, other):
            own.append((_offset_near(solution, other, lane), other))
        elif solution.note != BY_POD:
            others.append((_offset_near(solution, other, lane), other))
    priors = {0.0: _UTC_PRIOR / 2 if lane.node else _UTC_PRIOR}
    if own:
        offset_s, other = max(own, key=lambda pair: len(pair[1].lines))
        priors[offset_s] = priors.get(offset_s, 0.0) + _HOST_PRIOR
        return priors, f"zone taken from {other.key.source}"
    if not lane.node and lane.key.pod in network.lanes.stampers.specified:
        priors[0.0] += _DEFAULT_PRIOR
        return priors, "no TZ in the pod's environment: UTC assumed"
    nodes = {other.key.host for other in network.lanes.lanes if other.node and other.key.host}
    if others and not (lane.node and len(nodes) > 1):
        offset_s, votes = Counter(offset_s for offset_s, _ in others).most_common(1)[0]
        if votes >= _MAJORITY * len(others):
            alike = [other for offset, other in others if offset == offset_s]
            owners = {(other.key.host, other.key.pod) for other in alike}
            same_tool = any(other.key.layer == lane.key.layer for other in alike)
            grounds = 1 + (len(owners) > 1 or lane.node) + (lane.node and same_tool)
            strength = _NEIGHBOUR_PRIOR * grounds
            priors[offset_s] = priors.get(offset_s, 0.0) + strength
            return priors, f"zone taken from {alike[0].key.source}"
    return priors, "nothing ties it to UTC: UTC assumed"


def _neighbours(network: Network, lane: Lane) -> Sequence[tuple[Lane, Solution]]:
    """Solved lanes of the same kind, the sure ones where there are any: on one node even an open zone is the same."""
    found = [
        (other, solution)
        for other in network.lanes.lanes
        if (solution := network.solutions.get(other.index)) is not None
        and other.node == lane.node
        and other.key.form in _LOCAL_FORMS
        and solution.offset_s is not None
    ]
    sure = [(other, s) for other, s in found if s.doubt_s - other.year_doubt_s <= _OPEN_S]  # a zone stays in any year
    return sure or (found if lane.node else [])


def _open_zone_s(network: Network, lane: Lane) -> float:
    """The doubt of the zone that a lane takes from its neighbours, where it is open for all of them."""
    least_s = min((s.doubt_s - other.year_doubt_s for other, s in _neighbours(network, lane)), default=0.0)
    return least_s if least_s > _OPEN_S else 0.0


def _together(lane: Lane, other: Lane) -> bool:
    """Whether two lanes were written in one place: on one node, in one pod, or at one address."""
    if lane.node or not (lane.key.pod or other.key.pod):
        return lane.key.host == other.key.host != ""
    return lane.key.pod == other.key.pod


def _offset_near(solution: Solution, other: Lane, lane: Lane) -> float:
    """The offset that another lane had at about this lane's time."""
    middle = _middle(lane)
    step = 1 + len(other.walls) // _PROBES
    position = min(range(0, len(other.walls), step), key=lambda i: abs(other.walls[i] - middle))
    instant, _ = solution.at(other.lines[position], other.walls[position])
    return nearest_offset(instant - other.walls[position])
