"""Cut the engine logs of an entity into lives: one run each, from its banner to its end.

A banner after anything but a banner begins a new life; so does the same banner line twice. A life that stands in
several files is one life, see `twins`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from math import inf

from ..model import Event, Finding, Locator, Role, Samples
from ..regexes import lazy_regex
from . import jobs, twins
from .entities import LOG_CHANNELS, Entities
from .model import Life, Phase

ECHO_S = 60.0
ECHO_LINES = 40
_TOKENS = ("generation_tokens_per_s", "prompt_tokens_per_s")
_Report = tuple[int, float, bool]
"""Place and time of an engine's report of requests that run, or of tokens, and whether anything moves."""
BANNER_LINES = 25
"""A banner may span this many lines (a logo, then the arguments); the same banner further on is another start."""
_ORDER = tuple(Phase)
_BEFORE_READY = frozenset(_ORDER[: _ORDER.index(Phase.SERVING)])
_AT_WORK = frozenset({"vllm.sleep_mode", "vllm.batch_done", "ray.job_succeeded"})
"""Messages of an engine that does what it is asked to, where no request shows it: it sleeps and wakes for a trainer,
works off a file of prompts, or the batch job in which it runs is done."""
COMMAND_ERRORS = frozenset({"vllm.argparse_error", "runtime.command_missing", "runtime.exec_format"})
"""Errors of a command line, or of the program that it names."""
_LAUNCH_ERRORS = COMMAND_ERRORS | {"vllm.free_memory_low", "vllm.port_in_use"}
"""These, and errors of what the run before has not given back yet."""
_TYPED_START = lazy_regex(
    r"[^$#%❯➜]{0,120}[$#%❯➜] (?:(?:sudo|nohup|exec|time) |\w+=\S+ )*"
    r"(?:vllm serve|(?:\S*/)?python[\d.]* -m (?:vllm\.entrypoints|sglang\.launch_server|lmdeploy)\b)"
)
"""A prompt at which somebody starts an engine."""
_OF_A_REQUEST = lazy_regex(r"/(?:starlette|uvicorn/protocols|fastapi|aiohttp|httptools|anyio)/")
"""Frames of a handler: its exception ends a request, not the server."""


@dataclass(slots=True)
class _Draft:
    entity: str
    source: str
    events: list[Event] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    phase: Phase = Phase.UNKNOWN
    ready: Event | None = None
    shutdown: Finding | None = None
    activity: Event | None = None
    progress: int = 0
    dead: set[int] = field(default_factory=set)
    """Places, in reading order, at which the engine says that it is gone."""
    banners: dict[str, int] = field(default_factory=dict)
    """Banner signature → place where it was seen last."""
    beyond_banner: bool = False
    from_start: bool = False
    job: str = ""


def build(
    events: Sequence[Event],
    findings: Mapping[tuple[str, int], Sequence[Finding]],
    phases: Mapping[str, str],
    samples: Sequence[Samples],
    entities: Entities,
) -> tuple[Life, ...]:
    """All lives, by entity and time.

    `findings` are keyed by (source, place in reading order); `phases` maps signature ids to the phase that their
    line begins.
    """
    by_source: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.channel in LOG_CHANNELS and event.kind != "model_config":
            by_source.setdefault((event.locator.source, entities.of(event)), []).append(event)
    reports: dict[str, list[Samples]] = {}
    for column in samples:
        if column.name in (*_TOKENS, "requests_running"):
            reports.setdefault(column.source, []).append(column)
    submitted = jobs.submitted(events, chain.from_iterable(findings.values()))
    lives: list[Life] = []
    for (source, entity), own in sorted(by_source.items()):
        own.sort(key=lambda event: event.locator.order)
        if not _is_engine_log(own, findings, phases):
            continue
        work = _work(reports.get(source, ()), entity, entities)
        counts = [column for column in reports.get(source, ()) if column.name == "requests_running"]
        running = [(place, value) for place, _, value in _reported(counts, entity, entities)]
        drafts = list(_cut(own, findings, phases, work, source, entity, submitted))
        nexts = [*(draft.events[0].locator.order for draft in drafts[1:]), inf]
        lives += [
            _unfinished(_finish(draft, work, place), [row for row in running if row[0] < place])
            for draft, place in zip(drafts, nexts, strict=False)  # none where no line has a letter
        ]
    return tuple(twins.merge(lives))


def inside(lives: Iterable[Life], places: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    """Those places, (source, reading order), that lie inside some run, in the file that tells it best."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for life in lives:
        spans.setdefault(life.start.locator.source, []).append((life.start.locator.order, life.end.locator.order))
    starts, furthest = {}, {}
    for source, known in spans.items():
        known.sort()
        starts[source] = [first for first, _ in known]
        furthest[source] = list(accumulate((last for _, last in known), max))
    return frozenset(
        (source, place) for source, place in places
        if (found := bisect_right(starts.get(source, ()), place)) and place <= furthest[source][found - 1]
    )  # fmt: skip


def _is_engine_log(
    events: Sequence[Event], findings: Mapping[tuple[str, int], Sequence[Finding]], phases: Mapping[str, str]
) -> bool:
    return any(event.channel == "engine" for event in events) or any(
        finding.signature in phases or (finding.role is Role.CAUSE and not finding.quoted)
        for event in events
        for finding in findings.get(_key(event), ())
    )


def _key(event: Event) -> tuple[str, int]:
    return (event.locator.source, event.locator.order)


def _cut(
    events: Iterable[Event],
    findings: Mapping[tuple[str, int], Sequence[Finding]],
    phases: Mapping[str, str],
    work: Sequence[_Report],
    source: str,
    entity: str,
    submitted: frozenset[str],
) -> Iterator[_Draft]:
    """The runs of one file; `work` holds its reports of requests at work.

    `submitted` are the files in which the output of a scheduler's jobs stands.
    """
    draft, logo, job = _Draft(entity, source), list[Event](), ""
    for event in events:
        if event.kind == "log" and not any(map(str.isalnum, event.text)):
            logo.append(event)  # above a banner: the first line of a run, and not the last one of the run before
            continue
        own = [f for f in findings.get(_key(event), ()) if not f.quoted]
        if source in submitted:
            job = jobs.told_in(f for f in own if f.signature == jobs.HEADER) or job  # of the run that follows
        phase = None if _is_shown(event) else _phase_of(own, phases)
        banner = next((f.signature for f in own if phases.get(f.signature) == Phase.STARTING), "")
        again = event.locator.order - draft.banners.get(banner, event.locator.order) > BANNER_LINES
        restarted = draft.shutdown is not None and _starts_again(event, own)
        anew = draft.beyond_banner and job not in ("", draft.job)
        banners = banner and (draft.beyond_banner or again or _worked(draft, work, event.locator.order))
        if restarted or anew or banners:
            if draft.events:
                yield draft
            draft = _Draft(entity, source, from_start=restarted or anew, job=job)
        if banner:
            draft.banners[banner] = event.locator.order
        elif phase is not None or any(f.role in (Role.CAUSE, Role.CONSEQUENCE) for f in own):
            draft.beyond_banner = True
        if not draft.beyond_banner:
            draft.job = job
        draft.events += (*logo, event)
        logo.clear()
        draft.findings += own
        _advance(draft, event, own, phase, phases)
    if draft.events:
        yield draft


def _is_shown(event: Event) -> bool:
    """True for a line between marks of quotation: somebody shows it, wherever in the text; it is no later progress."""
    text = event.text.strip()
    return len(text) > 2 and text[0] == text[-1] == "`"


def _starts_again(event: Event, findings: Sequence[Finding]) -> bool:
    """True for what only a program says that is being started and has not come to its banner, and for its command.

    Behind an orderly stop this is the next start; everything else there is the noise of the stop.
    """
    if any(f.signature in _LAUNCH_ERRORS for f in findings) or (event.kind == "log" and _TYPED_START.match(event.text)):
        return True
    frames = [str(frame) for frame in event.fields.get("frames", ())] if event.kind == "traceback" else []
    return bool(frames) and frames[0].endswith(":<module>") and frames[-1].endswith(":<module>")


def _worked(draft: _Draft, work: Sequence[_Report], place: int) -> bool:
    """True when the run so far served requests: the log began in the middle of it."""
    if not draft.events:
        return False
    index = bisect_left(work, (draft.events[0].locator.order, 0.0, False))
    return draft.activity is not None or (index < len(work) and work[index][0] < place)


def _phase_of(findings: Iterable[Finding], phases: Mapping[str, str]) -> Phase | None:
    found = [Phase(phases[f.signature]) for f in findings if phases.get(f.signature)]
    return max(found, key=_ORDER.index) if found else None


def _advance(
    draft: _Draft, event: Event, findings: Sequence[Finding], phase: Phase | None, phases: Mapping[str, str]
) -> None:
    if phase is not None and phase in _BEFORE_READY:
        draft.from_start = True
    if phase is Phase.SERVING:
        draft.ready = draft.ready or event
    if phase is Phase.DRAINING and draft.phase is not Phase.DEAD and draft.shutdown is None:
        draft.shutdown = next(f for f in findings if phases.get(f.signature) == Phase.DRAINING)
    if phase is Phase.DEAD:
        draft.dead.add(event.locator.order)
    if phase is not None and _ORDER.index(phase) > _ORDER.index(draft.phase):
        draft.phase = phase
        if phase not in (Phase.DRAINING, Phase.DEAD):
            draft.progress = event.locator.order
    if event.kind == "job_done" or any(f.signature in _AT_WORK for f in findings):
        draft.activity = event
    status = event.fields.get("status")
    if event.kind == "access" and event.fields.get("method") == "POST" and isinstance(status, int) and status < 400:
        draft.activity = event


def _work(reports: Sequence[Samples], entity: str, entities: Entities) -> list[_Report]:
    """The engine's reports of requests at work; those of a neighbour in the file are not its own.

    Requests that run do not move where the report counts their tokens, and there are none.
    """
    tokens: dict[int, float] = {}
    for place, _, value in _reported([c for c in reports if c.name in _TOKENS], entity, entities):
        tokens[place] = tokens.get(place, 0.0) + value
    rows = ((place, moment) for place, moment, value in _reported(reports, entity, entities) if value > 0)
    return sorted((place, moment if moment == moment else 0.0, tokens.get(place) != 0.0) for place, moment in rows)


def _reported(reports: Sequence[Samples], entity: str, entities: Entities) -> Iterator[tuple[int, float, float]]:
    """Place, time and value of each report that is the engine's own."""
    for column in reports:
        owner = entities.name_of(column.scope, column.source)
        if owner.startswith("file:") or entities.same(owner, entity):
            yield from zip(column.lines, column.stamps, column.values, strict=True)


def _finish(draft: _Draft, work: Sequence[_Report], next_run: float) -> Life:
    """The run of a draft; it ends before `next_run`, where the file goes on with another one."""
    first, end = draft.events[0].locator.order, draft.events[-1]
    inside = [row for row in work if first <= row[0] < next_run]
    moving = [row for row in inside if row[2]]
    activity = draft.activity
    if moving and (activity is None or moving[-1][0] > activity.locator.order):
        activity = _report_at(draft.events, moving[-1])
    if inside and inside[-1][0] > end.locator.order:
        end = _report_at(draft.events, inside[-1])
    phase = draft.phase
    if activity is not None and phase not in (Phase.DRAINING, Phase.DEAD) and activity.locator.order > draft.progress:
        phase = Phase.SERVING  # the log begins in the middle of a run, or the line that says so is lost
    sign = max(draft.progress, activity.locator.order if activity else 0)
    if draft.dead and activity is not None and _is_echo(draft, activity):
        sign = max(draft.progress, *(place for place, *_ in moving if place < min(draft.dead)), 0)
    return Life(
        draft.entity,
        (draft.source,),
        draft.events[0],
        end,
        draft.ready,
        phase,
        tuple(draft.findings),
        activity,
        sign,
        _fatal(draft, sign),
        _crash(draft, sign),
        draft.shutdown,
        draft.from_start,
        job=draft.job or jobs.told_in(f for f in draft.findings if f.signature != jobs.HEADER),
    )


def _unfinished(life: Life, running: Sequence[tuple[int, float]]) -> Life:
    """The life, marked where its last word, behind the order to stop, reports requests that still run.

    `running` holds place and number of each report up to the end of the run.
    """
    place, count = max(running, default=(0, 0.0))
    stop = life.shutdown
    cut = stop is not None and count > 0 and place > stop.locator.order and place >= life.end.locator.order
    return replace(life, unfinished=True) if cut else life


def _report_at(events: Sequence[Event], report: _Report) -> Event:
    """A report of work, which is a row of a series, as an event of its run."""
    place, moment, _ = report
    nearest = min(events, key=lambda event: abs(event.locator.order - place))
    time = replace(nearest.time, utc_s=moment) if moment else nearest.time
    return replace(nearest, locator=Locator.at(nearest.locator.source, place), time=time)


def _crash(draft: _Draft, last_sign: int) -> Event | None:
    """An exception that ended the program: it left the outermost frame, the run never got ready after it, or it is the
    last word of the log and no request's.
    """
    for place, event in enumerate(draft.events):
        if event.kind == "traceback" and event.fields.get("exception") and event.locator.order > last_sign:
            frames = event.fields.get("frames", ())
            left = bool(frames) and str(frames[0]).endswith(":<module>")
            starting = draft.ready is None and draft.activity is None and draft.phase is not Phase.UNKNOWN
            last = all(later.fields.get("chained") for later in draft.events[place + 1 :])
            last = last and not any(_OF_A_REQUEST.search(str(frame)) for frame in frames)
            if draft.shutdown is None and (left or starting or (last and frames)):
                return event
    return None


def _is_echo(draft: _Draft, activity: Event) -> bool:
    """True when the last sign of work comes within a minute after the engine said that it is gone: buffers emptying."""
    dead = next(event for event in draft.events if event.locator.order == min(draft.dead))
    if activity.locator.order < dead.locator.order:
        return False
    if activity.time.utc_s is None or dead.time.utc_s is None:
        return activity.locator.order - dead.locator.order <= ECHO_LINES
    return activity.time.utc_s - dead.time.utc_s <= ECHO_S


def _fatal(draft: _Draft, last_sign: int) -> Finding | None:
    """The first cause or death line after the last progress; a death line alone when progress seems to follow it.

    What a run prints after it was asked to stop is no fault.
    """
    stop = draft.shutdown.locator.order if draft.shutdown is not None else float("inf")
    lost = [
        f for f in draft.findings if (f.role is Role.CAUSE or f.locator.order in draft.dead) and f.locator.order < stop
    ]
    after = [f for f in lost if f.locator.order > last_sign]
    if after:
        return after[0]
    return next((f for f in lost if f.locator.order in draft.dead), None)
