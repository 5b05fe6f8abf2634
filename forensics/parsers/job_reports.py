"""The last word of a job that counts what it did: `done. retries=4 rows_written=90112 rows_failed=0`.

Programs that work off a list (embedders, evaluations, data loaders) say so in words of their own; what they share is a
word for the end and counters by name. Where none of the items failed, the job got over whatever it met before: a batch
that did not fit was halved, a request was sent again.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Event
from ..regexes import lazy_regex
from .log import Dialect

_DONE = lazy_regex(
    r"(?:\[?(?:INFO|NOTICE)\]?:?\s+)?(?:[\w.-]{1,60}:?\s+)??"
    r"(?i:all done|done|finished|completed?|summary)(?: in [\w. ]{1,30}?)?[.:,;!]?\s(?P<told>[^\n]{1,400})"
)
_COUNTER = lazy_regex(r"(?<![\w.-])(?P<name>[A-Za-z]\w{0,40})(?:=|: )(?P<value>\d{1,15})(?![\w.])")
_FAILED = lazy_regex(r"(?i)(?:\w+_)?(?:failed|failures|errors)")
_AGAIN = lazy_regex(r"(?i)(?:\w+_)?(?:retries|retried)")
ANCHORS = ("failed=0", "failed: 0", "failures=0", "failures: 0", "errors=0", "errors: 0")


def refine(event: Event) -> Event:
    """A dated report in which nothing failed becomes a `job_done`: `items_failed` (0), `retries` where counted."""
    told = _DONE.fullmatch(event.text.strip()) if event.stamps else None
    counters = {c["name"]: int(c["value"]) for c in _COUNTER.finditer(told["told"])} if told else {}
    failed = [count for name, count in counters.items() if _FAILED.fullmatch(name)]
    if not failed or any(failed):
        return event
    again = [count for name, count in counters.items() if _AGAIN.fullmatch(name)]
    fields = {"items_failed": 0, **({"retries": sum(again)} if again else {})}
    return replace(event, kind="job_done", fields={**event.fields, **fields})


DIALECT = Dialect("plain", anchors=ANCHORS, refine=refine)
