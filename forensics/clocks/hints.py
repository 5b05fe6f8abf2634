"""Collect hints for lanes that no anchor ties: what must lie near what."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..model import Event, Parsed, Samples, Source, StampForm
from ..parsers.kernel import ENGINE_COMM, hits_engine
from ..regexes import lazy_re
from . import watches
from .lanes import Lane
from .network import Network
from .weak import Hint

TABLES = frozenset({"kubectl"})
"""Layers of tables whose times whoever made them turned into local time."""
TO_FIRST_LINE_S = 180.0
"""From a container's start to its first log line."""
_IMPORTS_S = 30.0
"""As long as an engine imports its libraries before it prints anything."""
_TO_END_S = 120.0
"""From the last log line to a container's end."""
_GRACE_S = 32.0
"""From the kubelet's order to stop to the last line, where nobody grants more than usual."""
_AT_ONCE_S = 12.0
"""From the last line of a busy container to the end of one that is killed."""
_KILLED_S = 5.0
"""From the kernel's kill to the end of the container, which is printed in whole seconds."""
EXACT = 2.5
"""Weight of a fit within seconds: few of the offsets that exist fit so well by chance."""
_FEW = 4
"""More starts than this fit some offset by chance; they count less."""
_KILLED_BY_HAND_S = 10.0
"""From a kill that somebody ordered to the last word of what dies of it."""
_ORDERED_KILL = lazy_re(r"(?:^|COMMAND=(?:[^\s/]*/){0,12}|[:+>] )kill -(?:s )?(?:SIG)?(?:9|KILL) \d")
_TAIL_S = 300.0
_NEAR_S = 5.0
_MOST_PER_TOKEN = 8
_MOST_NEIGHBOURS = 3
_NEXT_LINES = 3
_NEXT_S = 60.0
"""How far apart neighbouring lines of a busy file are."""
_READ = 2000
"""Characters of a line that are looked at."""
_LINK_LOST = lazy_re(r"(?:mlx5_core|infiniband) .*(?:Link (?:down|DOWN)|Cable (?:unplugged|error))")
_NETWORK_ERROR = lazy_re(
    r"NCCL WARN .*(?:Got async event|Got completion)|network error|Watchdog caught collective operation timeout"
)
"""What NCCL and torch print when a collective lost a peer or the network."""
_WAITED = lazy_re(r" ran for (\d{1,9}) milliseconds")
_NOTICED_S = 120.0
"""From the loss of a link to the first word about it."""
_GPU_ERROR = lazy_re(r"CUDA error|NCCL error|illegal memory access|device-side assert|uncorrectable ECC")
_TOKEN = lazy_re(r"(?<![0-9a-fA-F])[0-9a-f]{24,64}(?![0-9a-fA-F])")
_OF_A_KILL = lazy_re(r"killed by the OOM killer|Failed with result 'oom-kill'|status=9/KILL|died unexpectedly")
"""What systemd and vLLM print within seconds of the kernel's kill."""
_SIGKILLED = lazy_re(
    r": -9\b|signal 9\b|SIGKILL|exit ?code:? -9\b|died unexpectedly|^Killed$|Detected \d{1,9} oom[-_]kill event"
)
"""An engine, or the shell or the scheduler that ran it, tells that a process of it was killed."""
_TOLD_S = 120.0
"""From the last stamped line before a kill to the kill, where the line that tells of it has no stamp."""
_SCHEDULER = "slurm"
_LIFE_KINDS = frozenset({"container_started", "container_terminated", "container_died", "container_kill"})
_PROGRAMS = frozenset({"engine", "container", "plain"})
_TELL_KILLS = _PROGRAMS | {"host"}
"""A scheduler speaks in the output of its job."""
_DEATHS = frozenset({"container_terminated", "container_died", "kernel_oom", "unit_exit"})


@dataclass(frozen=True, slots=True)
class _Engine:
    first_s: float
    last_s: float
    errors_s: tuple[float, ...]
    """Its first words about a broken GPU."""
    unreachable_s: tuple[float, ...] = ()
    """Since when the collectives stand still that it first tells to have failed on the network."""
    killed_s: tuple[float, ...] = ()
    """When it was last heard before it told that a process of it got SIGKILL."""


@dataclass(slots=True)
class Hints:
    """Known instants of a bundle, ready to be compared with a lane."""

    network: Network
    captured: Sequence[float]
    """Instants of captures."""
    series: Mapping[tuple[str, str], list[Samples]]
    """By (source, layer)."""
    newest_s: float | None = None
    """The last instant of all solved lanes."""
    starts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By pod; the empty key holds all."""
    ends: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    deaths: list[float] = field(default_factory=list)
    oom_ends: list[float] = field(default_factory=list)
    """Ends of containers that are said to have been killed for their memory."""
    kernel_kills: list[float] = field(default_factory=list)
    engine_kills: list[float] = field(default_factory=list)
    """Those of them whose victim may be an engine."""
    told_killed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Source → places of the lines that tell that a process of the engine was killed."""
    victims: int = 0
    """Kernel kills of what may be an engine, in lanes of any kind."""
    engines: list[_Engine] = field(default_factory=list)
    """Logs of engines, also those that are only taken for UTC, as containers are: for nodes that nothing ties."""
    xids: list[float] = field(default_factory=list)
    """What the driver reports of processes that may be an engine's."""
    kills: list[float] = field(default_factory=list)
    """SIGKILLs that a person or a script sent, as sudo and syslog tell."""
    tokens: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """Rare id → (lane index, instant) in solved lanes."""
    members: dict[int, list[tuple[int, Event]]] = field(default_factory=lambda: defaultdict(list))
    """Lane → (position, event)."""
    rows: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """Source → (line, instant) of its solved lanes."""
    job_rows: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """The same of engines' logs in which a scheduler speaks, also those that are only taken for UTC."""

    def refresh(self) -> None:
        """Take in what has been solved since."""
        for store in (self.starts, self.ends, self.tokens, self.members, self.rows, self.job_rows, self.told_killed):
            store.clear()
        self.deaths.clear()
        self.oom_ends.clear()
        self.kernel_kills.clear()
        self.engine_kills.clear()
        self.engines.clear()
        self.kills.clear()
        self.xids.clear()
        lanes = self.network.lanes
        lasts = [
            solution.at(lane.lines[last], lane.walls[last])[0]
            for lane in lanes.lanes
            # a document tells of states and ends in an order of its own
            for last in [-1 if lane.ordered else max(range(len(lane.walls)), key=lane.walls.__getitem__)]
            if (solution := self.network.solutions.get(lane.index)) and solution.verdict in ("exact", "solved")
        ]
        self.newest_s = max(lasts, default=None)
        for event, places in zip(lanes.events, lanes.places, strict=True):
            known: tuple[float, float] | None = None
            lane = -1
            for _, (index, position) in zip(event.stamps, places, strict=False):
                if index >= 0:
                    self.members[index].append((position, event))
                    instant = self._instant(index, position)
                    known, lane = (instant, index) if instant is not None else (known, lane)
            if known is not None and known[1] <= _NEAR_S:
                self._remember(event, known[0], lane)
        self.deaths.sort()
        self.victims = sum(_hits_engine(event) for event in lanes.events)
        told = self.told_killed
        for event in lanes.events:
            if event.channel in _TELL_KILLS and _SIGKILLED.search(event.text[:_READ]):
                told[event.locator.source].append(event.locator.order)
        solved = [lane for lane in lanes.lanes if lane.ordered and lane.index in self.network.solutions]
        own = {lane.key.source for lane in solved if lane.key.layer == "engine"}
        self.engines += [
            self._engine(lane, told[lane.key.source])
            for lane in solved
            if lane.key.layer == "engine"
            # TGI's own stamps have a zone, and are no layer of their own
            or (told[lane.key.source] and lane.key.source not in own and lane.key.form is StampForm.INSTANT)
        ]

        jobs = {lane.key.source for lane in lanes.lanes if lane.key.layer == _SCHEDULER}
        for log in solved:
            if log.key.layer == "engine" and log.key.source in jobs:
                at = self.network.solutions[log.index].at
                rows = zip(log.lines, log.walls, strict=True)
                self.job_rows[log.key.source] += [(line, at(line, wall)[0]) for line, wall in rows]

    def _engine(self, lane: Lane, told_killed: Sequence[int]) -> _Engine:
        solution = self.network.solutions[lane.index]
        first, last = (solution.at(lane.lines[i], lane.walls[i])[0] for i in (0, -1))
        told = (p for p, event in self.members.get(lane.index, ()) if _GPU_ERROR.search(event.text[:_READ]))
        errors = [solution.at(lane.lines[p], lane.walls[p])[0] for _, p in zip(range(_FEW), told, strict=False)]
        rows = [_row_before(lane, order) for order in told_killed[:1]]
        killed = [solution.at(lane.lines[row], lane.walls[row])[0] for row in rows]
        lost = ((p, e) for p, e in self.members.get(lane.index, ()) if _NETWORK_ERROR.search(e.text[:_READ]))
        stood = [
            solution.at(lane.lines[p], lane.walls[p])[0] - (int(waited[1]) / 1000 if waited else 0.0)
            for _, (p, e) in zip(range(_FEW), lost, strict=False)
            for waited in [_WAITED.search(e.text[:_READ])]
        ]
        return _Engine(first, last, tuple(errors), tuple(stood), tuple(killed))

    def _remember(self, event: Event, seconds: float, lane: int) -> None:
        if event.kind == "container_started":
            for pod in {event.scope.pod, ""}:
                self.starts[pod].append(seconds)
        if event.kind in ("container_terminated", "container_died"):
            for pod in {event.scope.pod, ""}:
                self.ends[pod].append(seconds)
            if event.fields.get("reason") == "OOMKilled":
                self.oom_ends.append(seconds)
        if event.kind in _DEATHS:
            self.deaths.append(seconds)
        if event.kind == "kernel_oom":
            self.kernel_kills.append(seconds)
            self.engine_kills += [seconds] if hits_engine(event) else []
        if event.kind == "xid" and ENGINE_COMM.search(str(event.fields.get("comm", ""))):
            self.xids.append(seconds)
        if event.channel == "host" and _ORDERED_KILL.search(event.text, 0, 2000):
            self.kills.append(seconds)
        for token in tokens(event):
            if len(self.tokens[token]) < _MOST_PER_TOKEN:
                self.tokens[token].append((lane, seconds))
        if self.network.lanes.lanes[lane].ordered and event.channel != "k8s":
            self.rows[event.locator.source].append((event.locator.order, seconds))

    def _instant(self, index: int, position: int) -> tuple[float, float] | None:
        solution = self.network.solutions.get(index)
        if solution is None:
            return None
        lane = self.network.lanes.lanes[index]
        return solution.at(lane.lines[position], lane.walls[position])

    def of(self, lane: Lane) -> list[Hint]:
        """Everything that is known about when the lane's lines were written."""
        series = self.series.get((lane.key.source, lane.key.layer), ())
        weight = EXACT * min(1.0, _FEW / max(1, len(self.deaths)))
        watched = watches.hints(series, lane.key.form, self.deaths, weight)
        hints = [*self._tail(lane), *watched, *self._shared(lane), *self._beside(lane), *self._kills(lane),
                 *self._faults(lane)]
        told = lane.key.layer in TABLES  # somebody's local time, of what nodes did
        return [*hints, *(self._of_engines(lane) if lane.node or told else self._life(lane))]

    def _of_engines(self, lane: Lane) -> Iterator[Hint]:
        """A node's words of a container or a GPU, beside what the engine in it says of itself."""
        killed = [moment for engine in self.engines for moment in engine.killed_s]
        for position, event in self.members.get(lane.index, ()):
            wall = lane.walls[position]
            if len(killed) == self.victims == 1 and _hits_engine(event):
                yield Hint("killed engine", wall, killed[0] - _KILLED_S, killed[0] + _TOLD_S, EXACT)
            elif not killed and len(self.engines) == self.victims == 1 and _hits_engine(event):
                last_s = self.engines[0].last_s
                yield Hint("silent end", wall, last_s - 2, last_s + _AT_ONCE_S, EXACT)
            for engine in self.engines:
                reason = event.fields.get("reason") if event.kind == "k8s_event" else ""
                if reason == "Killing":
                    yield Hint(f"order {wall}", wall, engine.last_s - _GRACE_S, engine.last_s + 2, 1.5)
                if event.kind == "container_started" or reason == "Started":
                    yield Hint(f"start {wall}", wall, engine.first_s - TO_FIRST_LINE_S, engine.first_s + 2, 0.7)
                    yield Hint(f"start {wall}", wall, engine.first_s - _IMPORTS_S, engine.first_s + 2, 1.5)
                elif event.kind in _DEATHS and event.kind != "kernel_oom":
                    yield Hint(f"end {wall}", wall, engine.last_s - 2, engine.last_s + _AT_ONCE_S, 0.7)
                elif event.channel == "kernel" and _LINK_LOST.search(event.text[:_READ]):
                    for stood_s in engine.unreachable_s:
                        yield Hint("link", wall, stood_s - _NOTICED_S, stood_s + _NEAR_S, EXACT)
                elif event.kind == "xid":
                    for error_s in engine.errors_s:
                        yield Hint("xid", wall, error_s - _AT_ONCE_S, error_s + _AT_ONCE_S, EXACT)
                    if ENGINE_COMM.search(str(event.fields.get("comm", ""))):  # the driver clears up behind it
                        yield Hint("xid", wall, engine.last_s - _AT_ONCE_S, engine.last_s + _AT_ONCE_S, EXACT)

    def _life(self, lane: Lane) -> Iterator[Hint]:
        """A container's first line comes soon after its start, its last line shortly before its end."""
        pod = lane.key.pod
        if not lane.ordered:
            return
        starts, ends = self.starts.get(pod, ()), self.ends.get(pod, ())
        for start in starts:
            weight = min(1.0, _FEW / len(set(starts)))
            yield Hint("start", lane.walls[0], start - 2, start + TO_FIRST_LINE_S, weight)
        for end in ends:
            weight = min(1.0, _FEW / len(set(ends)))
            yield Hint("end", lane.walls[-1], end - _TO_END_S, end + 2, weight)
            yield Hint("end", lane.walls[-1], end - _AT_ONCE_S, end + 1, EXACT * weight)
        told = self.told_killed.get(lane.key.source, ())[:1] if len(self.engine_kills) == self.victims == 1 else ()
        for order in told:
            wall, kill = lane.walls[_row_before(lane, order)], self.engine_kills[0]
            yield Hint("killed engine", wall, kill - _TOLD_S, kill + _KILLED_S, EXACT)
        if len(self.kills) <= _FEW:
            for kill in self.kills:
                yield Hint("killed", lane.walls[-1], kill - 1, kill + _KILLED_BY_HAND_S, EXACT)

    def _kills(self, lane: Lane) -> Iterator[Hint]:
        """The kernel's kill, and what tells of it elsewhere: a container's reason, its unit, the engine's parent."""
        ends, kills = sorted(set(self.oom_ends)), sorted(set(self.kernel_kills))
        for position, event in self.members.get(lane.index, ()):
            if event.kind == "kernel_oom":
                for end in ends:
                    weight = EXACT * min(1.0, _FEW / len(ends))
                    yield Hint("kill", lane.walls[position], end - _KILLED_S, end + 2, weight)
            elif kills and _OF_A_KILL.search(event.text):
                for kill in kills:
                    weight = EXACT * min(1.0, _FEW / len(kills))
                    yield Hint("kill", lane.walls[position], kill - 2, kill + _KILLED_S, weight)

    def _faults(self, lane: Lane) -> Iterator[Hint]:
        """An engine's first words about a broken GPU come within seconds of what the driver says of its process."""
        members = self.members.get(lane.index, ()) if self.xids else ()
        told = (p for p, e in members if e.channel in _PROGRAMS and _GPU_ERROR.search(e.text[:_READ]))
        for position in told:
            for xid in self.xids:
                weight = EXACT * min(1.0, _FEW / len(self.xids))
                yield Hint("xid", lane.walls[position], xid - _AT_ONCE_S, xid + _AT_ONCE_S, weight)
            return

    def _tail(self, lane: Lane) -> Iterator[Hint]:
        """A log of something that still runs ends at the capture."""
        for captured in self.captured:
            yield Hint("tail", max(lane.walls), captured - _TAIL_S, captured + _NEAR_S, 0.8)
        if not self.captured and self.newest_s is not None:
            yield Hint("tail", max(lane.walls), self.newest_s - _TAIL_S, self.newest_s + _TAIL_S, 0.5)

    def _shared(self, lane: Lane) -> Iterator[Hint]:
        """Two things that name the same id happen close together more often than not."""
        seen: dict[str, int] = defaultdict(int)
        for position, event in self.members.get(lane.index, ()):
            for token in tokens(event):
                seen[token] += 1
                if seen[token] > _MOST_PER_TOKEN:
                    continue
                for other, instant in self.tokens.get(token, ()):
                    if other != lane.index:
                        yield Hint(token, lane.walls[position], instant - _NEAR_S, instant + _NEAR_S, 0.6)

    def _beside(self, lane: Lane) -> Iterator[Hint]:
        """Lines of several clocks in one file stand in the order in which they arrived."""
        rows, weight, same_zone = sorted(self.rows.get(lane.key.source, ())), 0.7, True
        if not rows and lane.key.layer == _SCHEDULER:
            # its daemon writes at once; where the job prints the same zone, neither of them tells which
            rows, weight, same_zone = sorted(self.job_rows.get(lane.key.source, ())), EXACT, False
        if not rows or not lane.ordered:
            return
        own = list(zip(lane.lines, lane.walls, strict=True))
        fewer, others = (own, rows) if len(own) < len(rows) else (rows, own)
        places = [line for line, _ in others]
        step = max(1, len(fewer) // _MOST_NEIGHBOURS)
        for line, moment in fewer[step // 2 :: step]:
            right = bisect_left(places, line)
            for place, other in others[max(right - 1, 0) : right + 1]:
                if abs(place - line) <= _NEXT_LINES:
                    wall, instant = (moment, other) if fewer is own else (other, moment)
                    if same_zone or abs(wall - instant) > _NEXT_S:
                        yield Hint(f"line {line}", wall, instant - _NEXT_S, instant + _NEXT_S, weight)


def _row_before(lane: Lane, order: int) -> int:
    """The last stamped row before a place in the lane's file, the first one where there is none."""
    return max(bisect_right(lane.lines, order) - 1, 0)


def _hits_engine(event: Event) -> bool:
    """True for a kernel kill of a process that may be an engine's."""
    return event.kind == "kernel_oom" and hits_engine(event)


def tokens(event: Event) -> set[str]:
    """Long ids on a line of a log, and the pod of a step in a container's life."""
    found = set(_TOKEN.findall(event.text[:_READ]))
    if event.scope.container_id:
        found.add(event.scope.container_id)
    if event.scope.pod and (event.kind in _LIFE_KINDS or event.fields.get("reason") in ("Killing", "Started")):
        found.add(f"pod {event.scope.pod}")
    return found


def series_by_lane(parsed: Sequence[tuple[Source, Parsed]]) -> dict[tuple[str, str], list[Samples]]:
    """Samples by the (source, layer) of their stamps."""
    found: dict[tuple[str, str], list[Samples]] = defaultdict(list)
    for _, part in parsed:
        for samples in part.samples:
            if samples.form is not StampForm.AGE:
                found[samples.source, samples.layer].append(samples)
    return found
