"""Who else holds the card, when the failed allocation prints no numbers: from a list of the processes on it.

A driver that cannot make a context, NCCL that cannot make a buffer and an engine that wakes up all fail without a
word about who has the memory. The run that fails so has none of it itself: its weights are not loaded, or given back.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from ...model import Event, Finding
from .. import ledger, rank
from ..case import Case, conclude
from ..model import Death, Life, Phase
from .oom_site import first_failure, site_of

MOST_OF_IT = 0.5
MUCH_MIB = 8 * 1024.0
"""More than the contexts and buffers of an engine that holds no weights."""
NEAR_S = 3600.0
"""A list of processes so far from the failure shows another time."""
_ENGINE = regex.compile(
    r"(?i)vllm|enginecore|workerproc|sglang|ray::|text-generation|trtllm|tensorrt|llama|lmdeploy|triton|ollama|pt_main_thread"
)
_NAMELESS = regex.compile(r"(?:/usr(?:/local)?/bin/|/opt/venv/bin/)?python[\d.]*|-|\[.*\]|\[?N/?A\]?|")
"""What an engine may be called as well."""


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The process with most memory that is not the engine, where the engine cannot hold it."""
    failure = first_failure(death.life)
    if failure is None or death.life is None or not _holds_nothing(case, death, failure):
        return
    much = MOST_OF_IT * max(_totals_mib(case), default=2 * MUCH_MIB)
    strangers = [e for e in case.of_kind("gpu_process") if _is_stranger(e) and _is_near(e, death)]
    largest = max(strangers, key=_used_mib, default=None)
    if largest is None or _used_mib(largest) < much:
        return
    fields = {
        "foreign_pid": largest.fields.get("pid"),
        "foreign_name": largest.fields.get("name", ""),
        "foreign_peak_mib": _used_mib(largest),
        "basis": rank.DIFFERENCE,
    }
    yield conclude("foreign_process", largest, fields, (failure,))


def _holds_nothing(case: Case, death: Death, failure: Finding) -> bool:
    """True when the allocator printed no figures and the engine's weights are not on the card at that time."""
    life, place = death.life, failure.locator.order
    if life is None or any("gpu_total_gib" in f.fields for f in life.findings if f.locator.order >= place):
        return False
    site, told = site_of(case, death, failure)
    early = told["phase"] in (Phase.UNKNOWN.value, Phase.STARTING.value) and not _loaded(life)
    return site == "oom_waking_up" or early


def _loaded(life: Life) -> bool:
    return life.ready is not None or "weights_gib" in ledger.values_of(life)


def _totals_mib(case: Case) -> Iterator[float]:
    for event in case.of_kind("gpu_state"):
        total = event.fields.get("memory_total_mib")
        if isinstance(total, int | float):
            yield float(total)


def _is_stranger(event: Event) -> bool:
    name = str(event.fields.get("name", ""))
    return _ENGINE.search(name) is None and _NAMELESS.fullmatch(name) is None


def _is_near(event: Event, death: Death) -> bool:
    if event.time.utc_s is None or death.time_s is None:
        return True
    return abs(event.time.utc_s - death.time_s) <= NEAR_S + event.time.uncertainty_s


def _used_mib(event: Event) -> float:
    used = event.fields.get("used_mib")
    return float(used) if isinstance(used, int | float) else 0.0
