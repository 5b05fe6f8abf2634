"""Mermaid line charts of the curves that tell most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from . import escape
from .curves import bars

POINTS = 24
"""Points of a Mermaid chart: more do not fit a page, and labels would overlap."""
MOST = 2
MOVING = frozenset({"climb", "varying", "sawtooth", "step", "spike"})

def telling(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The first curves that move; a flat line needs no picture."""
    moving = [c for c in data["curves"] if c["word"] in MOVING and c["max"] - c["min"] > 0.05 * abs(c["max"])]
    chosen: dict[str, Mapping[str, Any]] = {}
    for curve in moving:
        if len(curve["points"]) >= 8:
            chosen.setdefault(curve["name"], curve)
    return list(chosen.values())[:MOST]


def xychart(curve: Mapping[str, Any]) -> str:
    """A curve as Mermaid `xychart-beta`: the highest value of each of up to 24 equal spans."""
    rows = bars(curve["points"], POINTS)
    labels = ", ".join(f'"{clock}"' for clock in _clocks([t for t, _ in rows]))
    values = ", ".join(f"{value:g}" for _, value in rows)
    low = 0 if curve["min"] >= 0 else curve["min"]
    unit = f" ({curve['unit']})" if curve["unit"] else ""
    top = curve["max"] if curve["max"] > low else low + 1
    return "\n".join([
        "xychart-beta",
        f"  title {escape.mermaid(curve['label'] + unit)}",
        f"  x-axis [{labels}]",
        f"  y-axis {low:g} --> {top:g}",
        f"  line [{values}]",
    ])  # fmt: skip


def _clocks(times: Sequence[float]) -> list[str]:
    long = times[-1] - times[0] > 2 * 86400
    return [datetime.fromtimestamp(t, UTC).strftime("%m-%d" if long else "%H:%M") for t in times]
