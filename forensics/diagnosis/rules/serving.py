"""Trouble of an engine that serves on: nothing died yet, and its users wait or get errors all the same.

A standstill is told by the engine's own reports (requests run, no token moves) or by waits between its processes that
do not end; a queue, by requests that wait for many minutes without becoming fewer. What went over by itself within
minutes is a big prefill or a compilation, and no trouble. What follows an order to stop tells nothing. Of requests that
were refused tells `refusals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from ...model import Event, Finding, Samples, Scope
from .. import evidence, trends
from ..case import Case, conclude
from ..model import Death, Life
from .engine import HANG_WAITS
from .series import LONG_QUEUE

TIMEOUTS = ("vllm.rpc_timeout", "vllm.v0_engine_timeout")
"""Words of an engine that waited for its workers, and gave up."""
BY_HAND = (
    "host.operator_kill", "host.operator_stop", "host.typed_kill", "runtime.docker_kill", "systemd.stop_timeout",
    "supervisord.stop_killed",
)  # fmt: skip
"""Who ended it is no probe, which asks whether it is well, but a person, or a supervisor that a person told to."""
WAIT = "vllm.shm_broadcast_wait"
STALL_S = 180.0
"""Requests that run so long without a token are stuck, where nothing moves until the end of the log."""
OVERCOME_STALL_S = 600.0
"""One that ended by itself counts from here: no prefill and no compilation takes so long."""
QUEUE_S = 600.0
"""A queue that lasts so long is no burst."""
DRAINING = 0.75
"""A queue that has fallen to this share of its peak is on its way to be worked off."""
MIN_REPORTS = 6
MANY = 3
"""Fewer requests that failed or were refused are nobody's trouble."""
MANY_SHARE = 0.02
"""Of the answers, or of the lines of a log: a busy server refuses, or fails, a few requests every day."""
LONG_LOG = 200
"""In a log of fewer lines every refusal counts: somebody cut it out because of them."""
NEAR_LINES = 40
"""An exception stands this close before the answer that it spoilt."""
Row = tuple[int, float, float]
"""Place in reading order, Unix time, value."""
_TOKENS = ("generation_tokens_per_s", "prompt_tokens_per_s")


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """Where a standstill began that a timeout ended: the first wait, which says what it is, else the first report of
    requests without tokens."""
    life = death.life
    lost = [f for f in life.findings if f.signature in TIMEOUTS and f.locator.order > life.last_sign] if life else []
    if life is None or not lost:
        yield from _stood_until_killed(case, death)
        return
    place = lost[0].locator.order
    moved, standing = _standing_before(case, life, place)
    moved = life.last_sign if moved is None else moved  # reports without a token are no work, though requests run
    waits = [f.event for f in life.findings if f.signature == WAIT and moved < f.locator.order < place]
    first = min((*standing, *waits), key=lambda event: event.locator.order, default=None)
    if first is not None:
        start_s, end_s = first.time.utc_s, lost[0].time.utc_s
        began = min(waits, key=lambda event: event.locator.order, default=first)
        fields = {"stall_s": round(end_s - start_s)} if start_s is not None and end_s is not None else {}
        yield conclude("stood_still", began, fields, (lost[0],))


def _stood_until_killed(case: Case, death: Death) -> Iterator[Finding]:
    """A standstill that lasted until somebody stopped the run by hand: what they ended was stuck already."""
    life = death.life
    if life is None or all(evidence.objection(case, death, order) for order in case.named(*BY_HAND)):
        return
    for found, to_the_end in standstills(case):
        if to_the_end and life.holds(found[0].event):
            yield from found


def _standing_before(case: Case, life: Life, order: int) -> tuple[int | None, list[Event]]:
    """Place of the last report of work before a place, if any, and the first one behind it that shows only requests."""
    beside = _by_log(case)
    moved, standing = list[int](), list[Event]()
    for running in columns_of(case, "requests_running"):
        tokens = _sums(column for column in beside[running.source, running.scope] if column.name in _TOKENS)
        rows = [row for row in _of(case, life, running) if row[0] < order]
        moving = max((n for n, row in enumerate(rows) if row[2] == 0 or tokens.get(row[0]) != 0.0), default=-1)
        moved += [rows[moving][0]] if moving >= 0 else []
        if moving + 1 < len(rows):
            place, moment, count = rows[moving + 1]
            standing.append(trends.event_at(running, (moment, count, place)))
    return max(moved, default=None), standing[:1]


def standstills(case: Case) -> Iterator[tuple[tuple[Finding, ...], bool]]:
    """Evidence of an engine that stands still, and whether it is clear: it never moved again, with requests running."""
    beside = _by_log(case)
    for column in columns_of(case, "requests_running"):
        moved = [other for other in beside[column.source, column.scope] if other.name in _TOKENS]
        if any(other.name == "generation_tokens_per_s" for other in moved):
            yield from _stalls(case, column, moved)
    for life in case.lives:
        yield from _waits(case, life)


def _stalls(case: Case, running: Samples, moved: Sequence[Samples]) -> Iterator[tuple[tuple[Finding, ...], bool]]:
    tokens = _sums(moved)
    for rows in _by_run(case, running):
        parts: list[list[Row]] = [[]]
        for place, moment, count in rows:
            if count > 0 and tokens.get(place) == 0.0:
                parts[-1].append((place, moment, count))
            elif parts[-1]:
                parts.append([])
        *over, last = parts
        longest = last if _lasted_s(last) >= STALL_S else max(over, key=_lasted_s, default=last)
        if _lasted_s(longest) >= (STALL_S if longest is last else OVERCOME_STALL_S):
            place, moment, count = longest[0]
            fields = {"requests_running": count, "stall_s": round(_lasted_s(longest))}
            yield (conclude("stalled", trends.event_at(running, (moment, count, place)), fields),), longest is last


def _waits(case: Case, life: Life) -> Iterator[tuple[tuple[Finding, ...], bool]]:
    """Waits for a peer that did not end: no report of work after them, where the engine reports, else no answer."""
    stop = life.shutdown.locator.order if life.shutdown is not None else inf
    waits = [f for f in life.findings if f.signature == WAIT and f.locator.order < stop]
    if sum(f.event.count for f in waits) < HANG_WAITS or (life.ready is None and life.last_activity is None):
        return
    own = [row for column in columns_of(case, "requests_running") for row in _of(case, life, column)]
    tokens = [column for name in _TOKENS for column in columns_of(case, name)]
    work = [place for column in tokens for place, _, value in _of(case, life, column) if value > 0]
    answered = [e.locator.order for e in case.of_kind("access") if life.holds(e) and is_answer(e)] if not own else []
    progress = max((*work, *answered, life.ready.locator.order if life.ready is not None else 0))
    waits = [f for f in waits if f.locator.order > progress]
    count = sum(f.event.count for f in waits)
    last = max((row for row in own if row[0] < waits[0].locator.order), default=None) if waits else None
    if count >= HANG_WAITS and (last is None or last[2] > 0):
        yield (conclude("still_hanging", waits[0].event, {"waits": count}, tuple(waits)),), last is not None


def queues(case: Case) -> Iterator[tuple[Finding, ...]]:
    """Evidence of a queue that lasts and does not become shorter, whatever the cache holds."""
    beside = _by_log(case)
    for waiting in columns_of(case, "requests_waiting"):
        for rows in _by_run(case, waiting):
            short = max((n for n, row in enumerate(rows) if row[2] < LONG_QUEUE), default=-1)
            queue = rows[short + 1 :]
            peak = max((row[2] for row in queue), default=0.0)
            if _lasted_s(queue) < QUEUE_S or queue[-1][2] < DRAINING * peak:
                continue
            place, moment, count = queue[0]
            fields = {"requests_waiting": peak, "queue_s": round(_lasted_s(queue))}
            for name in ("requests_running", "kv_cache_usage_pct"):
                others = [c for c in beside[waiting.source, waiting.scope] if c.name == name]
                values = [v for c in others for n, v in zip(c.lines, c.values, strict=True) if n >= place]
                fields |= {name: max(values)} if values else {}
            yield (conclude("queue_lasting", trends.event_at(waiting, (moment, count, place)), fields),)


def failures(case: Case) -> Iterator[tuple[Life, list[Event], int]]:
    """Runs with the requests that each failed to answer while it served (5xx), and how many it answered in all."""
    posts = _by_source(event for event in case.of_kind("access") if event.fields.get("method") == "POST")
    for life in case.lives:
        answers = [event for event in posts.get(life.start.locator.source, ()) if _while_serving(life, event)]
        failed = [event for event in answers if int(event.fields.get("status") or 0) >= 500]
        yield life, failed, sum(event.count for event in answers)


def spoilt(case: Case) -> Iterator[tuple[Finding, Life]]:
    """Exceptions right before server errors that came again and again, each with the run that served on.

    Where somebody counted the answers, a few that failed among all of them are daily life, however short the log is.
    """
    lines = {source.path: source.lines for source in case.sources}
    counted = _counted(case)
    for life, failed, answered in failures(case):
        seen = sum(event.count for event in failed)
        count, total = max(seen, _server_errors(counted)), max(answered, sum(counted.values()))
        whole = lines.get(life.start.locator.source, 0) > LONG_LOG or bool(counted)
        rare = whole and (count < MANY or count < MANY_SHARE * total)
        raised = _raised_before(case, failed)
        if raised is not None and not rare:
            fields = {"exception": raised.fields.get("exception") or raised.text[:80], "failed_requests": count}
            yield conclude("request_exception", raised, fields), life


def answered_before(case: Case, life: Life, place: Event) -> Event | None:
    """The last request that a run had answered before a line of its log; none when it had answered none."""
    answers = (e for e in case.of_kind("access") if life.holds(e) and is_answer(e))
    before = [e for e in answers if e.locator.order < place.locator.order]
    return max(before, key=lambda e: e.locator.order, default=None)


def _counted(case: Case) -> dict[int, int]:
    """Answers by status, where somebody counted those of a service; of several counts the largest is the whole."""
    found: dict[int, int] = {}
    for event in case.of_kind("answers_counted"):
        status = int(event.fields["status"])
        found[status] = max(found.get(status, 0), int(event.fields["answers"]))
    return found


def _server_errors(counted: Mapping[int, int]) -> int:
    return sum(count for status, count in counted.items() if status >= 500)


def _raised_before(case: Case, failed: Sequence[Event]) -> Event | None:
    """The exception printed just before the first failed request for which there is one."""
    for answer in failed:
        place = answer.locator
        near = [
            event
            for event in case.of_kind("traceback")
            if event.locator.source == place.source and 0 < place.order - event.locator.order <= NEAR_LINES
        ]
        if near:
            return near[-1]
    return None


def unexplained_failures(case: Case) -> Finding | None:
    """Server errors in a number that no service calls well, for requests or for the question whether it is well."""
    counted = _counted(case)
    if (count := _server_errors(counted)) >= max(MANY, MANY_SHARE * sum(counted.values())):
        place = next(e for e in case.of_kind("answers_counted") if e.fields["status"] >= 500)
        fields = {"failed_requests": count, "answered_requests": sum(counted.values())}
        return conclude("requests_failed", place, {**fields, "http_status": place.fields["status"]})
    questions = _by_source(filter(_is_health, case.of_kind("access")))
    for life, failed, answered in failures(case):
        count = sum(event.count for event in failed)
        if count >= max(MANY, MANY_SHARE * answered):
            status = [event.fields["status"] for event in failed]
            fields = {"failed_requests": count, "answered_requests": answered,
                      "http_status": max(set(status), key=status.count)}  # fmt: skip
            return conclude("requests_failed", failed[0], fields)
        asked = [e for e in questions.get(life.start.locator.source, ()) if _while_serving(life, e)]
        ill = [e for e in asked if int(e.fields.get("status") or 0) >= 500]
        if sum(e.count for e in ill) >= MANY and asked[-1] in ill:
            return conclude("unwell", ill[0], {"http_status": ill[0].fields["status"]})
    return None


def _by_source(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Sorted once: a bundle of many small logs has as many runs."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.locator.source, []).append(event)
    return found


def _while_serving(life: Life, event: Event) -> bool:
    stop = life.shutdown.locator.order if life.shutdown is not None else inf
    begin = life.ready.locator.order if life.ready is not None else life.start.locator.order
    return life.holds(event) and begin <= event.locator.order < stop


def is_answer(event: Event) -> bool:
    return event.fields.get("method") == "POST" and int(event.fields.get("status") or 500) < 400


def _is_health(event: Event) -> bool:
    return str(event.fields.get("path")).startswith(("/health", "/v2/health/"))


def _sums(columns: Iterable[Samples]) -> dict[int, float]:
    """Tokens per second of all kinds by place."""
    found: dict[int, float] = {}
    for column in columns:
        for place, value in zip(column.lines, column.values, strict=True):
            found[place] = found.get(place, 0.0) + value
    return found


def columns_of(case: Case, name: str) -> Iterator[Samples]:
    return (column for column in case.samples if column.name == name)


def _by_log(case: Case) -> dict[tuple[str, Scope], list[Samples]]:
    """The series that one program printed into one log, sorted once for all logs."""
    found: dict[tuple[str, Scope], list[Samples]] = {}
    for column in case.samples:
        found.setdefault((column.source, column.scope), []).append(column)
    return found


def _of(case: Case, life: Life, column: Samples) -> list[Row]:
    """The rows of a series that a run printed before it was asked to stop, in reading order."""
    owner = case.entities.name_of(column.scope, column.source)
    mine = owner.startswith("file:") or case.entities.same(owner, life.entity)
    if column.source != life.start.locator.source or not mine:
        return []
    stop = life.shutdown.locator.order if life.shutdown is not None else life.end.locator.order + 1
    return [row for row in _rows(column) if life.start.locator.order <= row[0] < stop]


def _rows(column: Samples) -> list[Row]:
    rows = zip(column.lines, column.stamps, column.values, strict=True)
    return [(place, moment, value) for place, moment, value in rows if value == value]


def _by_run(case: Case, column: Samples) -> list[list[Row]]:
    """A series cut at the runs of its log; one that no log prints is a single run, in the order of time."""
    lives = [life for life in case.lives if life.start.locator.source == column.source]
    if lives:
        return [_of(case, life, column) for life in lives]
    return [sorted(_rows(column), key=lambda row: row[1])]


def _lasted_s(rows: Sequence[Row]) -> float:
    """From the first to the last of enough rows; 0 where they are few or nothing dates them."""
    if len(rows) < MIN_REPORTS:
        return 0.0
    length_s = rows[-1][1] - rows[0][1]
    return length_s if length_s == length_s else 0.0
