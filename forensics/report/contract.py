"""Typed values → plain JSON values, piece by piece. No judgement here; `document.py` puts the pieces together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..diagnosis.model import Death, Ledger, Life, Trend
from ..model import Clock, Diagnostic, Event, Source, Timestamp
from ..stamps import iso_utc

ANCHORS_SHOWN = 10


def iso(seconds: float | None) -> str | None:
    return None if seconds is None or not math.isfinite(seconds) else iso_utc(seconds)


def rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def moment(time: Timestamp) -> dict[str, Any]:
    return {
        "utc": iso(time.utc_s),
        "uncertainty_s": rounded(time.uncertainty_s),
        "basis": time.basis.value,
    }


def quote(event: Event) -> str:
    """The evidence itself: the message where the line holds it as it is, else the line as it stands in the file.

    Messages put together by a parser (`container x terminated …`) are no quotes. Empty for a measured point.
    """
    line = " ".join(event.raw.replace('\\"', '"').split())
    message = " ".join(event.text.split())
    if message and (message in line or message.rstrip('"') in line):
        return message
    return line


def plain(value: Any) -> Any:
    """Any field value as a JSON value, mappings in a fixed order."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return str(value)


def death(item: Death) -> dict[str, Any]:
    return {
        "utc": iso(item.time_s) if item.time_s else None,
        "exit_code": item.exit_code,
        "reason": item.reason,
        "graceful": item.graceful,
        "phase": item.life.phase.value if item.life else None,
        "witnesses": [
            {"source": e.locator.source, "line": e.locator.line, "kind": e.kind} for e in item.witnesses
        ],
    }


def life(item: Life) -> dict[str, Any]:
    def place(event: Event) -> dict[str, Any]:
        return {"source": event.locator.source, "line": event.locator.line, **moment(event.time)}

    return {
        "entity": item.entity,
        "sources": list(item.sources),
        "start": place(item.start),
        "end": place(item.end),
        "ready": None if item.ready is None else place(item.ready),
        "phase": item.phase.value,
    }


def source(item: Source, title: str = "") -> dict[str, Any]:
    """`title`: the format in the reader's language, when that is not English."""
    return {
        "path": item.path,
        "format": item.format,
        "title": title or item.title,
        "lines": item.lines,
        "size_bytes": item.size_bytes,
        "sha256": item.sha256,
        "scope": item.scope.to_dict(),
        "coverage": rounded(item.coverage),
        "reason": item.reason,
        "clock": [clock(c) for c in item.clocks],
    }


def clock(item: Clock) -> dict[str, Any]:
    return {
        "layer": item.layer,
        "form": item.form.value,
        "zone": item.zone,
        "offset_s": None if item.offset_s is None else item.offset_s + 0.0,
        "year": item.year,
        "boot_epoch": iso(item.boot_epoch_s),
        "skew_s": round(item.skew_s, 3) + 0.0,
        "captured_at": iso(item.captured_at_s),
        "basis": item.basis.value,
        "verdict": item.verdict,
        "anchors": [
            {"place": str(a.place), "witness": str(a.witness), "residual_s": round(a.residual_s, 3) + 0.0}
            for a in item.anchors[:ANCHORS_SHOWN]
        ],
        "anchor_count": len(item.anchors),
        "residual_s": rounded(item.residual_s),
        "note": item.note,
    }


def ledger(item: Ledger) -> dict[str, Any]:
    return {
        "entity": item.entity,
        "source": item.source,
        "rows": [
            {
                "term": row.term,
                "value": row.gib,
                "derived": row.derived,
                "source": row.place.source if row.place else None,
                "line": row.place.line if row.place else None,
            }
            for row in item.rows
        ],
        "difference_gib": item.difference_gib,
        "facts": dict(item.facts),
    }


def trend(item: Trend) -> dict[str, Any]:
    return {
        "name": item.name,
        "source": item.source,
        "entity": item.entity,
        "gpu": item.gpu,
        "word": item.word,
        "points": item.points,
        "min": rounded(item.minimum),
        "max": rounded(item.maximum),
        "first": rounded(item.first),
        "last": rounded(item.last),
        "start": iso(item.start_s),
        "end": iso(item.end_s),
        "slope_per_h": rounded(item.slope_per_h),
        "sparkline": item.sparkline,
        "first_line": item.first_line,
        "last_line": item.last_line,
    }


def diagnostic(item: Diagnostic) -> dict[str, Any]:
    return {
        "source": item.source,
        "line": item.line,
        "severity": item.severity.value,
        "message": item.message,
        "hint": item.hint,
    }
