"""Hints from series of memory: what the clock of a watch must say where something that it watched died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from ..model import Samples, StampForm
from .weak import Hint

_OF_GPUS = frozenset({"gpu_memory_used_mib", "gpu_process_memory_mib"})
_OF_PROCESSES = frozenset({"container_memory_mib", "process_rss_mib"})
_DROP_MIB = 1024.0
_DROP_LAG_S = 45.0
"""A sampling loop sees the freed memory this late."""
_MOST_DROPS = 12
_LEAST_ROWS = 12
_CLOSE_S = 150.0
"""A loop that samples at least so often ends at a moment that few of the offsets that exist fit by chance."""
_LAG_ROWS, _LAG_S = 2.0, 5.0
"""From the last row to the death of what was watched: rows, and seconds for the row that was being taken."""


def hints(series: Sequence[Samples], form: StampForm, deaths: Sequence[float], weight: float) -> Iterator[Hint]:
    """What the deaths of a bundle say of the series that one clock stamped. `weight`: of a fit within seconds."""
    own = [samples for samples in series if samples.form is form and len(samples.stamps)]
    yield from _drops([samples for samples in own if samples.name in _OF_GPUS], deaths)
    yield from _ends([samples for samples in own if samples.name in _OF_PROCESSES], deaths, weight)


def _drops(series: Sequence[Samples], deaths: Sequence[float]) -> Iterator[Hint]:
    """GPU memory falls when a process dies."""
    count = 0
    for samples in series:
        for position, (before, after) in enumerate(pairwise(samples.values)):
            if before - after < _DROP_MIB or after > 0.5 * before:
                continue
            count += 1
            if count > _MOST_DROPS:
                return
            wall = samples.stamps[position + 1]
            for death in deaths:
                yield Hint(f"drop {count}", wall, death - 2, death + _DROP_LAG_S, 0.8)


def _ends(series: Sequence[Samples], deaths: Sequence[float], weight: float) -> Iterator[Hint]:
    """A watch ends with what it watched: the only one, or one that ends while others go on."""
    last = max((samples.stamps[-1] for samples in series), default=0.0)
    for samples in series:
        end = samples.stamps[-1]
        steps = [after - before for before, after in pairwise(samples.stamps)]
        step_s = median(steps) if len(steps) >= _LEAST_ROWS else 0.0
        if not 0 < step_s <= _CLOSE_S or (len(series) > 1 and end == last):
            continue
        for death in deaths:
            yield Hint("watch", end, death - _LAG_ROWS * step_s - _LAG_S, death + _LAG_S, weight)
