"""What was done to a machine before its next start failed of it: new libraries below an old driver, cards cut anew."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding
from .. import evidence
from ..case import Case, conclude
from ..model import Death

DAYS_S = 60 * 86400.0
"""Libraries that nobody uses lie there until something starts: so long a server runs between two starts."""
_CHANGES = (
    ("driver_upgraded", "nvidia.packages_upgraded", ("nvidia.api_mismatch", "nvidia.nvml_version_mismatch")),
    (
        "cards_cut_anew", "nvidia.mig_reconfigured",
        (
            "torch.oom", "vllm.weights_do_not_fit", "vllm.kv_available", "vllm.kv_no_blocks", "vllm.kv_max_len",
            "vllm.free_memory_low",
        ),
    ),
)  # fmt: skip
"""Name of the conclusion, the change, and what shows that it met a start."""
_ONE_CHANGE_LINES = 30


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The last change before the failure, of the same machine; a package log bears no name and often no time."""
    for name, change, signs in _CHANGES:
        met = tuple(f for f in case.named(*signs) if not evidence.objection(case, death, f))
        done = [f for f in case.named(change) if met and _is_before(f, met[0])]
        done = [f for f in done if not case.nodes.apart(death.entity, f.event)]
        if done:
            first = _first_of_last(done)
            yield conclude(name, first.event, first.fields, met)


def _is_before(change: Finding, met: Finding) -> bool:
    if change.time.utc_s is None or met.time.utc_s is None:
        return True
    since_s = met.time.latest_s - change.time.earliest_s
    return 0.0 <= since_s <= DAYS_S + met.time.uncertainty_s + change.time.uncertainty_s


def _first_of_last(done: list[Finding]) -> Finding:
    """The first line of the last change: each tells of itself in several lines of one file."""
    last = max(done, key=evidence.order)
    near = (
        f for f in done
        if f.locator.source == last.locator.source and last.locator.order - f.locator.order <= _ONE_CHANGE_LINES
    )  # fmt: skip
    return min(near, key=lambda f: f.locator.order)
