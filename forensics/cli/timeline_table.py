"""The timeline as a table for people; the display zone is always named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import tables
from .common import write
from .tables import Cell, Column

PRECISE_S = 0.5
"""Below this a time is shown with milliseconds."""
MESSAGE_CHARS = 240
"""Of a message on a terminal; when piped it is as long as the report quotes it."""
MANY_ROWS = 2000
"""More than this are printed plainly on a terminal, too: fitting them takes longer than anybody reads."""
_ALONE, _FIRST, _MIDDLE, _LAST = " ", "╭", "│", "╰"
_BASIS = {
    "exact": "exact", "zone_assumed": "zone assumed", "zone_solved": "zone solved", "year_solved": "year solved",
    "boot_solved": "boot solved", "skew_corrected": "skew corrected", "relative_age": "from age",
    "file_order": "file order",
}  # fmt: skip


def show(
    rows: Sequence[Mapping[str, Any]], zone: tzinfo, zone_name: str, short: Mapping[str, str], output: Path | None
) -> None:
    """Rows as `timeline.rows` builds them, redacted; to the terminal, or as plain columns.

    `short` gives for each path the shortest end that no other file has; a terminal shows that.
    """
    marks = _brackets(rows)
    label = _label(zone_name, rows, zone)
    if tables.on_terminal(output) and len(rows) <= MANY_ROWS:
        fitted = (Column("", whole=True), Column(f"{zone_name}, basis", least=14), Column("event, place"))
        tables.draw(fitted, list(_by_day(rows, marks, zone, short)), title=f"Times in {label}", note=_note(rows))
        return
    columns = (
        Column(" "), Column(f"time, {label}"), Column("±", right=True), Column("basis"), Column("channel"),
        Column("kind"), Column("place"), Column("event"),
    )  # fmt: skip
    cells = [
        [
            Cell(mark), Cell(_when(row, zone, dated=True)), Cell(_spread(row)), Cell(_BASIS[row["basis"]]),
            Cell(row["channel"]), Cell(row["kind"]), Cell(f"{row['source']}:{row['line']}"), Cell(_event(row)),
        ]
        for row, mark in zip(rows, marks, strict=True)
    ]  # fmt: skip
    write(tables.plain(columns, cells), output)


def _by_day(
    rows: Sequence[Mapping[str, Any]], marks: Sequence[str], zone: tzinfo, short: Mapping[str, str]
) -> Iterator[list[Cell]]:
    """Rows with the time of day; a row with the date before each day."""
    today = ""
    for row, mark in zip(rows, marks, strict=True):
        moment = _moment(row, zone)
        day = f"{moment:%Y-%m-%d}" if moment else "no time"
        if day != today:
            yield [Cell(""), Cell(day, "quiet"), Cell("")]
            today = day
        style = "root" if row.get("role") == "root" else "bad" if row["severity"] in ("error", "critical") else ""
        place = f"{short.get(row['source'], row['source'])}:{row['line']}"
        doubt = "doubt" if row["basis"] in ("zone_assumed", "file_order") else ""
        yield [
            Cell(mark),
            Cell(_when(row, zone, dated=False), doubt, " ".join(filter(None, (_spread(row), _BASIS[row["basis"]])))),
            Cell(_event(row, MESSAGE_CHARS), style, f"{place}  {row['channel']} {row['kind']}"),
        ]


def _brackets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each row whether it opens, continues or closes a run of events whose order is not provable."""
    groups = [None, *(row.get("order_group") for row in rows), None]
    marks = []
    for (before, own), (_, after) in zip(pairwise(groups), pairwise(groups[1:]), strict=False):
        if own is None:
            marks.append(_ALONE)
        else:
            marks.append(_FIRST if before != own else _LAST if after != own else _MIDDLE)
    return marks


def _note(rows: Sequence[Mapping[str, Any]]) -> str:
    from ..report import view  # heavy: not for `--help`

    said = f"{len(rows)} events."
    if any(row.get("order_group") is not None for row in rows):
        said += f" {_FIRST}{_MIDDLE}{_LAST} bracket neighbours whose times overlap: their order is not provable."
    if years := view.assumed_years(rows):
        said += f" The year ({years}) is assumed where a log prints none; ± is the doubt within it."
    return said


def _label(name: str, rows: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    """`Europe/Berlin (UTC+01:00)`, with both offsets when the clocks were changed in between."""
    offsets = dict.fromkeys(_offset(moment) for row in rows if (moment := _moment(row, zone)))
    return name if name == "UTC" or not offsets else f"{name} ({', '.join(offsets)})"


def _offset(moment: datetime) -> str:
    sign = moment.strftime("%z")
    return f"UTC{sign[:3]}:{sign[3:5]}"


def _moment(row: Mapping[str, Any], zone: tzinfo) -> datetime | None:
    try:
        return datetime.fromisoformat(row["utc"]).astimezone(zone) if row.get("utc") else None
    except (ValueError, OverflowError):
        return None


def _when(row: Mapping[str, Any], zone: tzinfo, dated: bool) -> str:
    moment = _moment(row, zone)
    if moment is None:
        return "?"
    digits = "milliseconds" if row.get("uncertainty_s", 0.0) < PRECISE_S else "seconds"
    shown = moment.replace(tzinfo=None).isoformat(" ", timespec=digits)
    return shown if dated else shown.partition(" ")[2]


def _spread(row: Mapping[str, Any]) -> str:
    """`±0.5 s`, `±12 min`, `±8 h`; empty below a tenth of a second and without a time."""
    from ..report import view

    spread = view.within_year(row.get("uncertainty_s"))
    if spread is None or spread < 0.1:
        return ""
    if spread < 10:
        return f"±{spread:.1f} s"
    if spread < 120:
        return f"±{spread:.0f} s"
    return f"±{spread / 60:.0f} min" if spread < 7200 else f"±{spread / 3600:.0f} h"


def _event(row: Mapping[str, Any], limit: int = 0) -> str:
    message = row.get("message", "")
    if limit and len(message) > limit:
        message = message[: limit - 1] + "…"
    found = f"[{row['finding']} {row['role']}: {row['title']}] " if row.get("finding") else ""
    times = f" ×{row['count']}" if row.get("count", 1) > 1 else ""
    return f"{found}{message}{times}"
