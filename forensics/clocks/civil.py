"""Local times: which offset held where in a lane, and what of it is proven.

The tz database knows every way in which local time can run. The ways that agree with the anchors and with the jumps in
the file are kept. Where they agree with each other the offset is certain; where they differ (a change of summer time
may or may not lie beyond the last anchor) the doubt is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..model import Locator
from .lanes import Lane
from .offsets import Anchor, Run
from .solution import LAST
from .zones import (
    Rule,
    fold_rules,
    label,
    matching,
    names_printing,
    nearest_offset,
    only,
    printed_offset,
    rules,
)

NO_SKEW_S = 3.0
"""Remainders up to this are lag and rounding, not a wrong clock."""
_HALF_DAY_S = 43200.0
_MOST_SKEW_S = 840.0
"""What is further from every zone is no local time of this machine: rendered elsewhere, or never set."""
_MOST_PROBES = 24
_LONGEST_S = 8 * 366 * 86400.0
"""What stands further before the end of a lane was hardly printed by a running clock: zones are not followed there."""
_SUMMER_S = 7200.0
"""How far summer time, or another such change, moves a clock at most."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch with one offset."""

    end: float
    offset_s: float
    doubt_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Civil:
    """Offsets of a lane, and the name that they justify."""

    segments: tuple[Segment, ...]
    zone: str
    """An IANA name only where the file proves it or somebody said it; else a fixed offset."""
    note: str = ""


def snapped(run: Run) -> tuple[float, float]:
    """(civil offset, remainder) of a measured constant; a remainder within lag and rounding is none."""
    offset_s = nearest_offset(run.constant)
    rest_s = run.constant - offset_s
    return offset_s, rest_s if abs(rest_s) > max(NO_SKEW_S, run.width_s) else 0.0


def fit(lane: Lane, runs: Sequence[Run], declared: Rule | None = None) -> Civil | None:
    """The offsets that the runs of anchors allow; none when no zone runs like that (a clock was set instead)."""
    facts: list[tuple[float, float]] = []
    anchors: list[Anchor] = []
    for run in runs:
        offset_s, _ = snapped(run)
        step = 1 + len(run.anchors) // _MOST_PROBES
        facts += [(anchor.wall + offset_s, offset_s) for anchor in (*run.anchors[::step], run.anchors[-1])]
        anchors += run.anchors
    if any(abs(run.constant - snapped(run)[0]) > _MOST_SKEW_S for run in runs):
        return None
    facts = [fact for fact in facts if fact[0] > _followed_from(lane)] or facts[-1:]
    candidates = matching(local_rules(lane), facts)
    if declared is not None and matching((declared,), facts):
        segments = place(lane, declared, anchors)
        if segments is not None:
            return Civil(segments, declared.names[0])
    if not candidates:
        offsets = {offset_s for _, offset_s in facts}
        if len(offsets) != 1:
            return None
        offset_s = offsets.pop()
        return Civil((Segment(LAST, offset_s),), label(offset_s))
    return choose(lane, candidates, anchors)


def choose(lane: Lane, candidates: Sequence[Rule], anchors: Sequence[Anchor] = ()) -> Civil | None:
    """Of several ways in which local time may have run, the one that fits the file best, with the doubt left."""
    groups: dict[tuple[Segment, ...], list[Rule]] = {}
    for rule in candidates:
        segments = place(lane, rule, anchors)
        if segments is not None:
            groups.setdefault(segments, []).append(rule)
    if not groups:
        return None
    jumps = _hour_jumps(lane)
    ranked = sorted(
        groups,
        key=lambda s: (_unexplained(s, jumps), -sum(len(rule.names) for rule in groups[s]), s[0].offset_s),
    )
    best = ranked[0]
    rivals = [s for s in ranked[1:] if _unexplained(s, jumps) == _unexplained(best, jumps)]
    segments = _with_rivals(best, rivals)
    if len({segment.offset_s for segment in best}) == 1:
        return Civil(segments, label(best[0].offset_s))
    names = sorted(name for rule in groups[best] for name in rule.names)
    rule = max(groups[best], key=lambda rule: len(rule.names))
    same = f"; {len(names) - 1} more zones run alike" if len(names) > 1 else ""
    return Civil(segments, rule.name, f"summer time changes inside the file{same}")


def place(lane: Lane, rule: Rule, anchors: Sequence[Anchor] = ()) -> tuple[Segment, ...] | None:
    """Where a rule changes the offset inside a lane; none when the lane shows times that the rule skips."""
    anchors = sorted((*anchors, *_printed(lane, rule)), key=lambda anchor: anchor.order)
    segments: list[Segment] = []
    offset_s = -rule.first_utcoffset_s
    low, high = min(lane.walls), max(lane.walls)
    for utc, after in rule.changes:
        before = -offset_s
        new_offset_s = -after
        if utc + min(before, after) > high:
            break
        if utc + max(before, after) <= low:
            offset_s = new_offset_s
            continue
        if after > before:
            first, second = utc + before, utc + after
            if any(first + 2 < wall < second - 2 for wall in lane.walls):
                return None
            segments.append(Segment(_last_before(lane, second), offset_s))
        else:
            segments += _fold(lane, utc + after, utc + before, offset_s, new_offset_s, anchors)
        offset_s = new_offset_s
    segments.append(Segment(LAST, offset_s))
    if low < _followed_from(lane):
        segments.insert(0, Segment(_last_before(lane, _followed_from(lane)), segments[0].offset_s, _SUMMER_S))
    start = float(lane.lines[0]) if lane.ordered else low
    return tuple(_joined([segment for segment in segments if segment.end >= start]))


def _followed_from(lane: Lane) -> float:
    """From which local time on zones are followed through a lane."""
    return max(lane.walls) - _LONGEST_S


def _printed(lane: Lane, rule: Rule) -> list[Anchor]:
    """What printed abbreviations (`CEST`, `CET`) say about the offset."""
    found = []
    for position, zone in lane.printed_zones:
        wall, line = lane.walls[position], lane.lines[position]
        offset_s = printed_offset(rule.names[0], wall, zone)
        if offset_s is not None:
            here = Locator.at(lane.key.source, line)
            found.append(Anchor(float(line) if lane.ordered else wall, wall, offset_s, 0.5, here, here))
    return found


def _last_before(lane: Lane, wall_s: float) -> float:
    """Line of the last reading before the first one at or after a local time."""
    if not lane.ordered:
        return wall_s - 1e-6
    index = next((i for i, wall in enumerate(lane.walls) if wall >= wall_s), len(lane.walls))
    return float(lane.lines[index - 1]) if index else 0.0


def _fold(
    lane: Lane, first: float, second: float, offset_s: float, new_offset_s: float, anchors: Sequence[Anchor]
) -> list[Segment]:
    """Local times from `first` to `second` occur twice; file order, or anchors among them, tell which is which."""
    doubt_s = abs(new_offset_s - offset_s) + 1.0
    if not lane.ordered:
        return [Segment(first - 1e-6, offset_s), Segment(second - 1e-6, offset_s, doubt_s)]
    start = next((i for i, wall in enumerate(lane.walls) if wall >= first), len(lane.walls))
    stop = next((i for i in range(start, len(lane.walls)) if lane.walls[i] >= second), len(lane.walls))
    inside = range(max(start, 1), min(stop + 1, len(lane.walls)))
    turn = min(inside, key=lambda i: lane.walls[i] - lane.walls[i - 1], default=0)
    if turn and lane.walls[turn] - lane.walls[turn - 1] < -60.0:
        return [Segment(float(lane.lines[turn - 1]), offset_s)]
    if start >= stop:
        return [Segment(float(lane.lines[start - 1]) if start else 0.0, offset_s)]
    open_from, open_to = float(lane.lines[start - 1]) if start else 0.0, float(lane.lines[stop - 1])
    for anchor in anchors:
        if open_from < anchor.order <= open_to:
            if abs(anchor.constant - offset_s) < abs(anchor.constant - new_offset_s):
                open_from = anchor.order
            else:
                open_to = anchor.order - 1
                break
    return [Segment(open_from, offset_s), Segment(open_to, offset_s, doubt_s)]


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbours with one law as one; empty stretches dropped."""
    joined: list[Segment] = []
    for segment in segments:
        if joined and segment.end <= joined[-1].end:
            continue
        if joined and (joined[-1].offset_s, joined[-1].doubt_s) == (segment.offset_s, segment.doubt_s):
            joined.pop()
        joined.append(segment)
    return joined


def _with_rivals(best: tuple[Segment, ...], rivals: Sequence[tuple[Segment, ...]]) -> tuple[Segment, ...]:
    """The best segments, with the doubt that equally good ones leave."""
    if not rivals:
        return best
    ends = sorted({segment.end for segments in (best, *rivals) for segment in segments})
    result = []
    for end in ends:
        own = _covering(best, end)
        doubt_s = max(abs(_covering(rival, end).offset_s - own.offset_s) for rival in rivals)
        result.append(Segment(end, own.offset_s, max(doubt_s + 1.0 if doubt_s else 0.0, own.doubt_s)))
    return tuple(_joined(result))


def _covering(segments: Sequence[Segment], end: float) -> Segment:
    return next(segment for segment in segments if segment.end >= end)


def local_rules(lane: Lane) -> tuple[Rule, ...]:
    """All ways in which local time ran around the lane, of zones with the abbreviations that it prints."""
    found = rules(max(min(lane.walls), _followed_from(lane)) - _HALF_DAY_S, max(lane.walls) + _HALF_DAY_S)
    if not lane.printed_zones:
        return found
    return only(found, names_printing((lane.walls[p], zone) for p, zone in lane.printed_zones)) or found


def _hour_jumps(lane: Lane) -> list[float]:
    """Lines after which the printed time falls by half an hour to two hours, as at the end of summer time."""
    if not lane.ordered:
        return []
    return [
        float(lane.lines[i])
        for i, (earlier, later) in enumerate(pairwise(lane.walls))
        if -7300 < later - earlier < -900
    ]


def _unexplained(segments: Sequence[Segment], jumps: Sequence[float]) -> int:
    changes = {segment.end for segment in segments}
    return sum(jump not in changes for jump in jumps)


def from_fold(lane: Lane) -> Civil | None:
    """Offsets of a lane that is tied to nothing, from the hour that it shows twice."""
    for line in _hour_jumps(lane):
        index = lane.lines.index(int(line))
        found = fold_rules(lane.walls[index], lane.walls[index + 1])
        if found:
            wide = [rule for rule in local_rules(lane) if any(name in rule.names for f in found for name in f.names)]
            return choose(lane, wide)
    return None
