"""Requests that a server refused: the senders' trouble, where they are more than the few of every day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from ...model import Event, Finding
from ...regexes import lazy_regex
from ..case import Case, conclude
from .serving import LONG_LOG, MANY, MANY_SHARE, columns_of, is_answer

MANY_ANSWERS = 10
"""Not where nothing says why, and for each of one or two so many others were answered: a slip of some client."""
MANY_BESIDE_MESSAGES = 25
"""Where a message says why, from so many on: of a short log the scan sees the answers among the last lines at least."""
REFUSALS = (
    "vllm.context_length_exceeded",
    "vllm.request_bad",
    "vllm.request_too_big_for_kv",
    "vllm.queue_full",
    "tgi.overloaded",
    "tgi.request_too_long",
    "vllm.model_not_found",
    "llamacpp.request_too_long",
    "trtllm.request_too_long",
    "sglang.request_too_long",
)
REFUSED = frozenset({400, 413, 422, 429})
OF_CALLS = frozenset({"vllm.model_not_found"})
"""Messages that say what was wrong with a call, not with what it asked for."""
REFUSED_CALLS = frozenset({401, 403, 404, 405})
"""Refusals of a call to the API, where there are several, or a message says why.

One alone is a slip of somebody; of any other path they are somebody looking around, or a probe's wrong address.
"""
_CLIENTS = lazy_regex(
    r"\bError code: \d{3} - |\b(?:openai|litellm|anthropic|httpx|aiohttp)\.[\w.]*(?:Error|Exception)\b"
)
"""How clients print the answer that they got: where the server speaks for itself, they only retell it."""
WORTH_TELLING = 0.1
"""Less than this share of the refusals is not what they are about."""


def found(case: Case) -> tuple[Finding, ...]:
    """Requests that the server answered with a refusal, or messages that say why."""
    told = tuple(case.named(*REFUSALS))
    messages = tuple(f for f in told if not _CLIENTS.search(f.event.text)) or told
    answers = [event for event in case.of_kind("access") if event.fields.get("status") in REFUSED]
    calls = [event for event in case.of_kind("access") if _is_refused_call(event)]
    if any(f.signature in OF_CALLS for f in messages) or sum(event.count for event in calls) >= MANY:
        answers += calls
    total = max(sum(f.event.count for f in messages), sum(event.count for event in answers))
    planned = any(death.graceful for death in case.deaths)  # a rollout or a stop is what the bundle is about
    logs = {f.locator.source for f in messages} | {event.locator.source for event in answers}
    lines = sum(s.lines for s in case.sources if s.path in logs)
    rare = lines > LONG_LOG and (total < MANY or total < MANY_SHARE * lines)
    others = MANY_BESIDE_MESSAGES if messages else MANY_ANSWERS
    rare |= total < MANY and max(_answered(case, logs), _busy(case, logs)) >= others * total
    if not total or planned or (rare and not any(_is_complaint(case, f) for f in told)):
        return ()
    counted = _statuses(answers, total)
    place = messages[0].event if messages else next(e for e in answers if e.fields["status"] == counted["http_status"])
    fields = {"requests_refused": total, **counted, **(messages[0].fields if messages else {})}
    retold = [e for e in answers if messages and _is_just_before(e, place)]  # a client's word about the server's answer
    return conclude("requests_refused", *((retold[-1], fields) if retold else (place, fields, messages[:1]))), *messages


def _is_complaint(case: Case, message: Finding) -> bool:
    """True for what a client printed, outside of the engines' logs: who adds that asks about these refusals."""
    logs = {source for life in case.lives for source in life.sources}
    return message.locator.source not in logs and _CLIENTS.search(message.event.text) is not None


def _is_just_before(answer: Event, message: Event) -> bool:
    a, b = answer.locator, message.locator
    return a.source == b.source and b.order - a.order == 1


def _answered(case: Case, logs: Collection[str]) -> int:
    """How many requests were answered in some logs."""
    return sum(event.count for event in case.of_kind("access") if event.locator.source in logs and is_answer(event))


def _busy(case: Case, logs: Collection[str]) -> int:
    """How many reports of some logs show requests at work: what was answered between them need not be seen."""
    columns = (column for column in columns_of(case, "requests_running") if column.source in logs)
    return sum(value > 0 for column in columns for value in column.values)


def _statuses(answers: Sequence[Event], total: int) -> dict[str, Any]:
    """The most frequent status; how many were refused for how they called, and for what they asked."""
    counts = Counter[int]()
    for event in answers:
        counts[event.fields["status"]] += event.count
    calls = sum(count for status, count in counts.items() if status in REFUSED_CALLS)
    told = {"http_status": counts.most_common(1)[0][0] if counts else None, "calls_refused": calls or None}
    asked = total - calls
    return {**told, "contents_refused": asked if asked >= WORTH_TELLING * total else None}


def _is_refused_call(event: Event) -> bool:
    called = event.fields.get("method") == "POST" and str(event.fields.get("path")).startswith("/v1/")
    return called and event.fields.get("status") in REFUSED_CALLS
