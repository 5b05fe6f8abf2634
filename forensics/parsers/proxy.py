"""Access logs of gateways: what those in front of an engine answered when it failed.

nginx 1.x and Apache 2.4 (common and combined log format), Envoy 1.x and Istio, HAProxy and Traefik in CLF, and lines
of one's own that hold `"POST /v1/…" 502`, the form that JSON logs are given when they are unwrapped. Only server errors
are looked for: the good answers of a busy gateway are millions of lines that tell nothing.
"""

from __future__ import annotations

from dataclasses import replace

from .. import stamps
from ..model import Event, RawStamp
from ..regexes import lazy_regex
from .envelopes.json_lines import STATUS_KEYS
from .log import Dialect

_METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"
_LINE = lazy_regex(
    rf'"(?P<method>{_METHODS}) (?P<path>(?:/|https?://)[^\s"]{{0,2000}})(?: HTTP/[\d.]+)?" (?P<status>5\d\d)(?= |$)'
)
_CLF_TIME = lazy_regex(
    r"\[(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<time>\d\d:\d\d:\d\d) (?P<zone>[+-]\d{4})\]"
)
_ISO_TIME = lazy_regex(r"^\[(?P<iso>\d{4}-\d\d-\d\dT[^\]\s]{1,30})\]")

ANCHORS = (
    *(f'" {status} ' for status in (500, 502, 503, 504)),
    *(f'"{key}":{before}50' for key in STATUS_KEYS for before in ("", " ", '"', ' "')),
)


def refine(event: Event) -> Event:
    """A server error becomes an `access` event: `method`, `path`, `status`, and the time that the line holds."""
    found = _LINE.search(event.text)
    if found is None:
        return event
    fields = {"method": found["method"], "path": found["path"], "status": int(found["status"])}
    inner = _stamp(event.text)
    times = (*event.stamps, inner) if inner is not None else event.stamps
    return replace(event, kind="access", fields={**event.fields, **fields}, stamps=times)


def _stamp(text: str) -> RawStamp | None:
    """When the request was logged; Envoy gives its start."""
    found = _CLF_TIME.search(text)
    if found is not None:
        month = stamps.month_number(found["month"])
        date = f"{found['year']}-{month or 0:02d}-{found['day']}"
        return stamps.iso(f"{date}T{found['time']}{found['zone']}", "access")
    found = _ISO_TIME.search(text)
    return stamps.iso(found["iso"], "access") if found is not None else None


DIALECT = Dialect("plain", anchors=ANCHORS, refine=refine)
