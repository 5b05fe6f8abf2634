"""Drawings for the HTML report: a swim-lane timeline and line charts, as static SVG.

Written by hand: two drawings need polylines and text, not a chart library. What comes out is deterministic, holds no
scripts and no style attributes (the page's Content-Security-Policy forbids both), takes its colours from the page's
style sheet (so dark mode and print work), and names itself for screen readers. Every text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from . import text, view

Doc = Mapping[str, Any]
LANES = ("request", "engine", "container", "kubelet", "kernel", "gpu")
WIDTH, LANE_HEIGHT, LEFT, TOP = 1000.0, 38.0, 84.0, 34.0
LABEL_GAP, DATED_GAP = 66.0, 104.0
"""Least distance between two times on the axis."""


def tag(name: str, content: Any = None, /, **attributes: Any) -> Markup:
    """One element; `class_` is `class`, `font_size` is `font-size`. Numbers are rounded to a tenth."""
    shown = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    if content is None:
        return Markup("<{}{}/>").format(Markup(name), shown)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), shown, content)


def _number(value: Any) -> Any:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def _drawing(identity: str, width: float, height: float, title: str, described: str, parts: Iterator[Markup]) -> Markup:
    head = tag("title", title, id=f"{identity}-t") + tag("desc", described, id=f"{identity}-d")
    return tag(
        "svg", head + Markup("").join(parts), xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_number(width)} {_number(height)}", role="img", class_="drawing",
        aria_labelledby=f"{identity}-t", aria_describedby=f"{identity}-d",
    )  # fmt: skip


def swimlanes(data: Doc) -> Markup:
    """The story by layer. The axis is not to scale: a gap grows with the logarithm of its length, so that seconds
    and days fit one picture; runs of the service are bands."""
    t = text.texts(data["language"])
    rows = [row for row in data["story"]["rows"] if view.instant(row["utc"]) is not None]
    if not rows:
        return Markup("")
    lanes = [lane for lane in LANES if any(row["lane"] == lane for row in rows)]
    places = _places(rows)
    height = TOP + LANE_HEIGHT * len(lanes) + 22
    first, last = view.when(rows[0]), view.when(rows[-1])
    described = text.fill(t["chart"]["timeline_alt"], {"start": first, "end": last}) or ""

    def parts() -> Iterator[Markup]:
        yield from _bands(rows, places, height, t)
        for i, lane in enumerate(lanes):
            y = TOP + LANE_HEIGHT * (i + 0.5)
            yield tag("line", x1=LEFT, x2=WIDTH - 8, y1=y, y2=y, class_="lane")
            yield tag("text", t["lane"][lane], x=4, y=y + 4, class_="lane-name")
        yield from _times(rows, places, height)
        for row, x in zip(rows, places, strict=True):
            yield _marker(row, x, TOP + LANE_HEIGHT * (lanes.index(row["lane"]) + 0.5))

    return _drawing("swim", WIDTH, height, t["head"]["timeline"], described, parts())


def _places(rows: Sequence[Doc]) -> list[float]:
    """Where each row stands on the axis."""
    moments = [view.instant(row["utc"]) for row in rows]
    steps = [0.0]
    for a, b in pairwise(moments):
        gap = max(0.0, (b - a).total_seconds()) if a is not None and b is not None else 0.0
        steps.append(1.0 + 0.9 * math.log10(1.0 + gap))
    total = sum(steps) or 1.0
    room, x, found = WIDTH - LEFT - 30, LEFT + 12, []
    for step in steps:
        x += step / total * room
        found.append(x)
    return found


def _bands(rows: Sequence[Doc], places: Sequence[float], height: float, t: Doc) -> Iterator[Markup]:
    """Alternating background for the runs, each with its number."""
    spans: dict[int, list[float]] = {}
    for row, x in zip(rows, places, strict=True):
        if row["attempt"] is not None:
            spans.setdefault(row["attempt"], []).append(x)
    for i, (attempt, xs) in enumerate(sorted(spans.items())):
        left, right = min(xs) - 9, max(xs) + 9
        shade = "band odd" if i % 2 else "band"
        yield tag("rect", x=left, y=16.0, width=right - left, height=height - 34, class_=shade)
        yield tag("text", f"#{attempt}", x=left + 3, y=12.0, class_="run")


def _times(rows: Sequence[Doc], places: Sequence[float], height: float) -> Iterator[Markup]:
    """Clock times below, the root cause's first, then as many as fit."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["mark"] != "root", i))
    taken: list[float] = []
    dated = len(view.days(rows)) > 1
    gap = DATED_GAP if dated else LABEL_GAP
    for i in order:
        x = min(max(places[i], LEFT + gap / 4), WIDTH - gap / 2)
        if all(abs(x - other) >= gap for other in taken):
            taken.append(x)
            shown = view.when({**rows[i], "uncertainty_s": 1}, dated)[5 if dated else 0 :]
            style = "clock root" if rows[i]["mark"] == "root" else "clock"
            yield tag("text", shown, x=x, y=height - 6, class_=style)


def _marker(row: Doc, x: float, y: float) -> Markup:
    """A sign with its story as tooltip: triangle a start, square an end, diamond the root cause, else a dot."""
    said = tag("title", f"{view.when(row)}  {row['title']}{' – ' + row['detail'] if row['detail'] else ''}")
    name = row["mark"] or "plain"
    if name == "root":
        shape = tag("path", said, d=f"M{_number(x)} {_number(y - 10)}l10 10l-10 10l-10 -10z", class_="dot root")
        return tag("line", x1=x, x2=x, y1=16.0, y2=y, class_="root-line") + shape
    if row["kind"] == "start":
        return tag("path", said, d=f"M{_number(x - 5)} {_number(y - 6)}l11 6l-11 6z", class_=f"dot {name}")
    if row["kind"] == "end":
        return tag("rect", said, x=x - 5, y=y - 5, width=10, height=10, class_=f"dot {name}")
    return tag("circle", said, cx=x, cy=y, r=5.5, class_=f"dot {name}")


def chart(curve: Doc, data: Doc, number: int) -> Markup:
    """One curve with its extremes; ends of the service are marked by red lines."""
    t = text.texts(data["language"])
    width, height, left, top, bottom = 480.0, 170.0, 52.0, 12.0, 24.0
    points = curve["points"]
    if len(points) < 2:
        return Markup("")
    start, end = float(points[0][0]), float(max(points[-1][0], points[0][0] + 1))
    low = float(min(0.0, curve["min"]))
    high = float(max(curve["max"], low + 1e-9))

    def x(moment: float) -> float:
        return left + (moment - start) / (end - start) * (width - left - 10)

    def y(value: float) -> float:
        return top + (high - value) / (high - low) * (height - top - bottom)

    def parts() -> Iterator[Markup]:
        for value in (low, (low + high) / 2, high):
            yield tag("line", x1=left, x2=width - 10, y1=y(value), y2=y(value), class_="grid")
            shown = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
            yield tag("text", shown, x=left - 6, y=y(value) + 4, class_="axis end")
        for moment, place in ((start, "start"), (end, "end")):
            shown = datetime.fromtimestamp(moment, UTC).strftime("%m-%d %H:%M")
            yield tag("text", shown, x=x(moment), y=height - 6, class_=f"axis {place}")
        for moment in _ends(data):
            if start <= moment <= end:
                yield tag("line", x1=x(moment), x2=x(moment), y1=top, y2=height - bottom, class_="death")
        yield tag("polyline", points=" ".join(f"{x(m):.1f},{y(v):.1f}" for m, v in points), class_="curve")

    values = {
        "label": curve["label"], "min": f"{curve['min']:g}", "max": f"{curve['max']:g}", "unit": curve["unit"] or "",
        "start": view.when({"utc": curve["start"]}), "end": view.when({"utc": curve["end"]}),
    }  # fmt: skip
    described = text.fill(t["chart"]["curve_alt"], values) or ""
    return _drawing(f"curve-{number}", width, height, curve["label"], described, parts())


def _ends(data: Doc) -> list[float]:
    moments = (view.instant(row["ended"]) for row in data["restarts"])
    return [moment.timestamp() for moment in moments if moment is not None]
