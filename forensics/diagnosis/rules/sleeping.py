"""Sleep mode: what stays on the card each time an engine has given its memory back.

vLLM prints it as the card's total less what is free (`v1/worker/gpu_worker.py`), so a neighbour counts as well; but a
neighbour takes its memory at once, and a leak takes as much again with every cycle of sleep and work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...model import Finding
from .. import rank
from ..case import Case, conclude
from ..model import Death, Life
from . import neighbours
from .oom_site import first_failure

LEAST_SLEEPS = 4
LEAST_GIB = 1.0
AT_ONCE = 0.5
"""A step that is this much of all growth is somebody who came, and no leak."""
LATE = 0.25
"""A leak has not done with less of its growth in the later half of the sleeps."""
DIP = 0.05


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """Memory in use that grew from sleep to sleep until an allocation failed, where no neighbour is seen."""
    failure = first_failure(death.life)
    if death.life is None or failure is None or any(neighbours.rules(case, death)):
        return
    for sleeps in _by_worker(death.life, failure):
        used = [f.fields["still_used_gib"] for f in sleeps]
        steps, growth = [b - a for a, b in pairwise(used)], used[-1] - used[0]
        if len(used) >= LEAST_SLEEPS and growth >= LEAST_GIB and _is_steady(steps, growth):
            fields = {
                "start_gib": used[0],
                "end_gib": used[-1],
                "climb_gib": round(growth, 2),
                "climb_gib_per_sleep": round(growth / len(steps), 2),
                "sleeps": len(used),
                "freed_gib": sleeps[-1].fields["freed_gib"],
                "basis": rank.DIFFERENCE,
            }
            yield conclude("gpu_leak_asleep", sleeps[1].event, fields)
            return


def _is_steady(steps: Sequence[float], growth: float) -> bool:
    """Neither a neighbour that came at once, nor a cache that filled up first and stayed, nor an up and down."""
    late = sum(steps[len(steps) // 2 :])
    return min(steps) >= -DIP * growth and max(steps) < AT_ONCE * growth and late >= LATE * growth


def _by_worker(life: Life, failure: Finding) -> Sequence[list[Finding]]:
    """What each worker said that was left, before the failure: every one speaks of its own card."""
    found: dict[tuple[str, int | None], list[Finding]] = {}
    for finding in life.findings:
        if "still_used_gib" in finding.fields and finding.locator.order < failure.locator.order:
            scope = finding.event.scope
            found.setdefault((scope.process, scope.pid), []).append(finding)
    return list(found.values())
