"""Events as flat rows: one column a fact, for tables, spreadsheets and other timeline tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any

from ..model import Basis, Event
from ..stamps import iso_utc
from .order import groups
from .query import Key, Mark, key, severity_of

COLUMNS: dict[str, type] = {
    "utc": str, "uncertainty_s": float, "basis": str, "local": str, "zone": str, "order_group": int,
    "source": str, "line": int, "line_end": int, "kind": str, "channel": str, "severity": str,
    "host": str, "namespace": str, "pod": str, "container": str, "unit": str, "process": str, "pid": int,
    "gpu": str, "rank": int, "count": int, "finding": str, "title": str, "role": str, "message": str, "fields": str,
}  # fmt: skip
"""Name → type; every value may be none. `order_group` numbers runs of events whose order is not provable."""
_SCOPE = ("host", "namespace", "pod", "container", "unit", "process", "pid", "gpu", "rank")
_MEANING = {
    Basis.EXACT: "Event logged",
    Basis.ZONE_ASSUMED: "Event logged (zone assumed)",
    Basis.ZONE_SOLVED: "Event logged (zone solved)",
    Basis.YEAR_SOLVED: "Event logged (year solved)",
    Basis.BOOT_SOLVED: "Event logged (seconds since boot)",
    Basis.SKEW_CORRECTED: "Event logged (clock corrected)",
    Basis.RELATIVE_AGE: "Age before the capture",
    Basis.FILE_ORDER: "Place in the file",
}


def build(
    events: Iterable[Event],
    marks: Mapping[Key, Mark],
    zone: tzinfo,
    zone_name: str,
    quoted: Callable[[Event], Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """One row an event, in their order, with the columns of `COLUMNS` where they are known.

    `quoted` gives what may be shown of the line. `fields` stay a mapping here; `flat` makes text of them.
    """
    number = 0
    for group in groups(events):
        number += len(group) > 1
        for event in group:
            row = _row(event, marks.get(key(event)))
            if zone_name != "UTC":
                row |= {"local": local(event.time.utc_s, zone), "zone": zone_name}
            if len(group) > 1:
                row["order_group"] = number
            yield {**row, **quoted(event)}


def _row(event: Event, mark: Mark | None) -> dict[str, Any]:
    moment, spread = event.time.utc_s, event.time.uncertainty_s
    scope = event.scope.to_dict()
    return {
        "utc": None if moment is None else iso_utc(moment),
        "uncertainty_s": None if moment is None else round(spread, 3),
        "basis": event.time.basis.value,
        "source": event.locator.source,
        "line": event.locator.line,
        "line_end": event.locator.line_end,
        "kind": event.kind,
        "channel": event.channel,
        "severity": severity_of(event, mark).value,
        **{name: scope[name] for name in _SCOPE if name in scope},
        "count": event.count,
        "finding": " ".join(mark.findings) if mark else None,
        "title": mark.title if mark else None,
        "role": mark.role if mark else None,
        "fields": event.fields,
    }


def local(seconds: float | None, zone: tzinfo) -> str | None:
    """`2026-11-30T05:25:17.447+08:00`; none for no time, and for one outside of the calendar."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(round(seconds, 3), zone).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """All columns, in their order, none of them nested: fields become one JSON text."""
    fields = row.get("fields")
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, default=str) if fields else None
    return {**{name: row.get(name) for name in COLUMNS}, "fields": text}


def timesketch(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row as Timesketch imports it; none for an event without a time, which it cannot hold.

    Timesketch (`docs/guides/user/import-from-json-csv.md`) wants `message`, `datetime` and `timestamp_desc`; all
    other columns are free.
    """
    if row.get("utc") is None:
        return None
    title, message = row.get("title"), row.get("message") or ""
    rest = {
        k: v for k, v in flat(row).items() if v is not None and k not in ("utc", "message", "fields", "local", "zone")
    }
    return {
        "message": f"[{title}] {message}" if title else message,
        "datetime": str(row["utc"]).replace("Z", "+00:00"),
        "timestamp_desc": _MEANING[Basis(row["basis"])],
        **rest,
    }
