"""Lines without a stamp: what their neighbours, and what they print themselves, tell about when they were written."""

from __future__ import annotations

import math

from ..model import Basis, Event, Timestamp
from ..regexes import lazy_regex

MILLISECOND = 0.001
_SHORT_GAP_S = 60.0
_OPEN_S = 86400.0
_ELAPSED = lazy_regex(r"(?P<what>[^\d%\n]{0,80})[^\n]*\[(?:(?P<h>\d{1,3}):)?(?P<m>\d\d):(?P<s>\d\d)<")
"""tqdm: `Loading safetensors checkpoint shards:  29% Completed | 5/17 [02:23<05:44, 28.71s/it]`."""


class Bars:
    """Progress bars of lines without a stamp: they print how long they have been running (tqdm, `[01:27<02:37, …`)."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], tuple[float, float]] = {}
        """(source, what is in progress) → (instant at which it began, what it showed last)."""

    def at(self, event: Event, before: Timestamp | None, later_than_s: float) -> float | None:
        """When a bar was printed, if it began right behind the line above it."""
        found = _ELAPSED.search(event.text, endpos=400)
        if found is None or before is None or before.utc_s is None:
            return None
        shown_s = 3600.0 * int(found["h"] or 0) + 60.0 * int(found["m"]) + int(found["s"])
        key = (event.locator.source, found["what"].strip())
        begun_s, last_s = self._begun.get(key, (max(before.utc_s, later_than_s), 0.0))
        if shown_s < last_s:  # another bar with the same words
            begun_s = max(before.utc_s, later_than_s)
        self._begun[key] = begun_s, shown_s
        return begun_s + shown_s


def between(
    before: Timestamp | None,
    after: Timestamp,
    share: float = 0.0,
    later_than_s: float = -math.inf,
    at_s: float | None = None,
) -> Timestamp | None:
    """The interval of the neighbours; `share` of the lines between them stand before this one.

    A program's line follows its predecessor closely, requests are spread evenly; in a long gap nothing is known, and
    the start is named. `later_than_s` is the line without a stamp before this one, if there is one.
    """
    if after.utc_s is None:
        return None
    if before is None or before.utc_s is None:
        return Timestamp(after.utc_s, after.uncertainty_s + _OPEN_S, Basis.FILE_ORDER)
    gap_s = max(after.utc_s - before.utc_s, 0.0)
    start_s = before.utc_s + (share * gap_s if gap_s <= _SHORT_GAP_S else 0.0) if at_s is None else at_s
    into_s = min(_following(start_s, before.utc_s, later_than_s) - before.utc_s, gap_s)
    doubt_s = max(before.uncertainty_s, after.uncertainty_s)
    return Timestamp(before.utc_s + into_s, max(into_s, gap_s - into_s) + doubt_s, Basis.FILE_ORDER)


def after_all(
    before: Timestamp | None, latest_s: float | None, later_than_s: float = -math.inf, at_s: float | None = None
) -> Timestamp | None:
    """A line behind the last stamp: not before it, and not after `latest_s`, if that is known."""
    if before is None or before.utc_s is None:
        return None
    open_s = _OPEN_S if latest_s is None else max(latest_s - before.utc_s, 0.0)
    told_s = before.utc_s if at_s is None else min(at_s, before.utc_s + open_s)
    start_s = _following(told_s, before.utc_s, later_than_s)
    return Timestamp(start_s, before.uncertainty_s + max(open_s, start_s - before.utc_s), Basis.FILE_ORDER)


def _following(start_s: float, before_s: float, later_than_s: float) -> float:
    """Not before what stands before it: a line is written after the one above, be it a moment only."""
    return max(start_s, max(before_s, later_than_s) + MILLISECOND)
