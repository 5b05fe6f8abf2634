"""Who else holds the card: a series of what each process uses, or one list of the processes on it.

A series shows who stood beside the engine, and since when. A list says more where the failure prints no numbers: a
driver that cannot make a context, NCCL that cannot make a buffer and an engine that wakes up all fail without a word
about who has the memory. The run that fails so has none of it itself: its weights are not loaded, or given back.

Where the GPU has no memory of its own (Jetson, GB10, other integrated ones), the host's page cache is not free for
it either, although nobody holds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import regex

from ...model import Basis, Event, Finding, Samples, Timestamp
from ...regexes import lazy_regex
from .. import ledger, rank
from ..case import Case, conclude
from ..model import Death, Life, Phase
from ..trends import Point, event_at, points_of
from .oom_site import first_failure, is_of_stub, refused_start, site_of

MOST_OF_IT = 0.5
MIN_FOREIGN_MIB = 256.0
HELD_S = 600.0
"""A neighbour that held its memory so long did no harm with it."""
MIN_TAKEN_MIB = 1024.0
"""The driver and a desktop take less, and not always as much."""
MUCH_MIB = 8 * 1024.0
"""More than the contexts and buffers of an engine that holds no weights."""
NEAR_S = 3600.0
"""A list of processes so far from the failure shows another time."""
SAME_SIZE = 0.03
"""Two readings of one amount differ by what is rounded and what the firmware keeps."""
_PROGRAMS = {
    "vllm": "vllm|enginecore|workerproc", "sglang": "sglang", "tgi": "text-generation", "ollama": "ollama|llama",
    "llamacpp": "llama", "lmdeploy": "lmdeploy", "trtllm": "trtllm|tensorrt|triton",
}  # fmt: skip
"""What the processes of each engine may be called, by the family of its messages."""
_TRITON = lazy_regex(r"tritonserver|triton_python_backend_stub")
_ENGINE = lazy_regex(rf"(?i)ray::|pt_main_thread|{'|'.join(_PROGRAMS.values())}")
_NAMELESS = lazy_regex(r"(?:/usr(?:/local)?/bin/|/opt/venv/bin/)?python[\d.]*|-|\[.*\]|\[?N/?A\]?|")
"""What an engine may be called as well."""


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """A process that held memory of the card when an allocation failed, or a start was refused for want of it."""
    failure = first_failure(death.life)
    refused = refused_start(death.life)
    if failure is not None or refused is not None:
        own = _TRITON if failure is not None and is_of_stub(failure) else None
        yield from _beside_it(case, death, own)
    if refused is not None:
        yield from _page_cache(case, refused)
    if failure is not None:
        yield from _in_its_place(case, death, failure)
        yield from _taken_meanwhile(case, death, failure)


def _beside_it(case: Case, death: Death, parts: regex.Pattern[str] | None = None) -> Iterator[Finding]:
    """Processes beside the engine's on the same GPU, from the moment when they were first seen; none of its `parts`.

    The engine's is the largest that bears the name of the one that failed, else the largest of all. Where the
    engine's clock is sure and the table's zone is not, nothing says when in the run it was: then the rows count, and
    have no time.
    """
    by_gpu: dict[str, list[Samples]] = {}
    for column in case.samples:
        if column.name == "gpu_process_memory_mib" and len(column.values):
            by_gpu.setdefault(column.scope.gpu, []).append(column)
    for gpu in sorted(by_gpu):
        columns = sorted(by_gpu[gpu], key=lambda s: -max(s.values))
        own = next((c for c in columns if _bears_name(death.life, c.scope.process)), columns[0])
        for column in columns:
            when = None if _is_apart(column, death) else death.time_s
            points = [p for p in points_of(column) if not when or p[0] <= when + 600.0]
            seen = bool(points) and (not when or points[0][0] <= when <= points[-1][0] + 600.0)
            apart = own.scope.process != column.scope.process
            apart = apart and (parts is None or parts.search(column.scope.process) is None)
            if seen and apart and max(column.values) >= MIN_FOREIGN_MIB:
                onset, level = _growth(points)
                fields = {
                    "foreign_pid": column.scope.pid,
                    "foreign_name": column.scope.process,
                    "foreign_peak_mib": max(value for _, value, _ in points),
                    "own_peak_mib": max(own.values),
                    **({"foreign_level_mib": level} if level is not None else {}),
                }
                event = event_at(column, onset)
                if death.time_s and when is None:
                    event = replace(event, time=Timestamp(None, math.inf, Basis.FILE_ORDER))
                yield conclude("foreign_process", event, fields)


def _bears_name(life: Life | None, process: str) -> bool:
    families = {f.signature.partition(".")[0] for f in life.findings} if life is not None else set()
    return any(regex.search(_PROGRAMS[family], process.lower()) for family in families & _PROGRAMS.keys())


def _is_apart(column: Samples, death: Death) -> bool:
    """True where a series may be hours off against the end of a run whose own clock is sure."""
    life = death.life
    return life is not None and column.doubt_s > NEAR_S + max(e.time.uncertainty_s for e in (life.start, life.end))


def _growth(points: Sequence[Point]) -> tuple[Point, float | None]:
    """Where a neighbour began to grow beyond what it had held long before; else where it was first seen."""
    level = median(value for _, value, _ in points[: (len(points) + 1) // 2])
    peak = max(value for _, value, _ in points)
    calm = [n for n, (_, value, _) in enumerate(points) if value <= level + 0.02 * (peak - level)]
    grown = points[calm[-1] + 1 :] if calm else []
    if grown and peak - level >= MIN_FOREIGN_MIB and grown[0][0] - points[0][0] >= HELD_S:
        return grown[0], level
    return points[0], None


def _page_cache(case: Case, refused: Finding) -> Iterator[Finding]:
    """What the engine found taken is the host's page cache: one memory for both, and enough that could be given back.

    That it is one memory shows where total and free of the device are those of the host.
    """
    total, free, wanted = (refused.fields.get(n) for n in ("gpu_total_gib", "gpu_free_gib", "requested_gib"))
    if total is None or free is None or wanted is None:
        return
    for event in case.of_kind("meminfo"):
        told = (event.fields.get(f"mem_{name}_kib") for name in ("total", "free", "available"))
        amounts = [value / 1024**2 for value in told if isinstance(value, int)]
        if len(amounts) < 3 or abs(amounts[0] - total) > SAME_SIZE * total:
            continue
        if abs(amounts[1] - free) <= 2 * SAME_SIZE * total and amounts[2] >= wanted:
            fields = {
                "gpu_total_gib": total,
                "gpu_free_gib": free,
                "requested_gib": wanted,
                "host_available_gib": round(amounts[2], 2),
                "page_cache_gib": round(_cached_kib(event, amounts[2] - amounts[1]) / 1024**2, 2),
            }
            yield conclude("page_cache_shared", refused.event, fields, (refused,))
            return


def _cached_kib(event: Event, otherwise_gib: float) -> float:
    """Buffers and page cache, as `free` and `/proc/meminfo` name them; else what is available and not free."""
    values = (event.fields.get(f"{name}_kib") for name in ("mem_buff_cache", "buffers", "cached"))
    return sum(value for value in values if isinstance(value, int)) or otherwise_gib * 1024**2


def _in_its_place(case: Case, death: Death, failure: Finding) -> Iterator[Finding]:
    """The process with most memory that is not the engine, where the engine cannot hold it."""
    if not _holds_nothing(case, death, failure):
        return
    much = MOST_OF_IT * max(_totals_mib(case), default=2 * MUCH_MIB)
    strangers = [e for e in case.of_kind("gpu_process") if _is_stranger(e) and _is_near(e, death)]
    largest = max(strangers, key=used_mib, default=None)
    if largest is None or used_mib(largest) < much:
        return
    fields = {
        "foreign_pid": largest.fields.get("pid"),
        "foreign_name": largest.fields.get("name", ""),
        "foreign_peak_mib": used_mib(largest),
        "basis": rank.DIFFERENCE,
    }
    yield conclude("foreign_process", largest, fields, (failure,))


def _taken_meanwhile(case: Case, death: Death, failure: Finding) -> Iterator[Finding]:
    """Less of the card was free at the start than at the last one of the same service that went well.

    Somebody took it in between; where a list of the processes shows who holds about as much, it is named.
    """
    now = _free_at_start(death.life)
    before = [
        free[0] for life in case.lives_of(death.entity)
        if life is not death.life and life.ready is not None and death.life is not None
        and (life.end.time.utc_s or math.inf) <= (death.life.start.time.utc_s or 0.0)
        and (free := _free_at_start(life)) is not None
    ]  # fmt: skip
    if now is None or not before or before[-1] - now[0] < MIN_TAKEN_MIB:
        return
    taken = before[-1] - now[0]
    fields: dict[str, Any] = {"free_before_load_mib": now[0], "free_at_last_start_mib": before[-1]}
    holders = [e for e in case.of_kind("gpu_process") if _is_near(e, death) and abs(used_mib(e) - taken) <= 0.1 * taken]
    for holder in holders[:1]:
        pid, name = holder.fields.get("pid"), holder.fields.get("name", "")
        fields |= {"foreign_pid": pid, "foreign_name": name, "foreign_peak_mib": used_mib(holder)}
    yield conclude("taken_meanwhile", now[1].event, fields, (now[1], failure))


def _free_at_start(life: Life | None) -> tuple[float, Finding] | None:
    """What an engine found free on the card before it loaded anything, in MiB: llama.cpp and SGLang print it."""
    values = ledger.values_of(life) if life is not None else {}
    for name, factor in (("free_before_load_mib", 1.0), ("free_before_load_gib", 1024.0)):
        if name in values:
            value, finding = values[name]
            return float(value) * factor, finding
    return None


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


def used_mib(event: Event) -> float:
    """What a process on the card uses; 0 where the driver does not say."""
    used = event.fields.get("used_mib")
    return float(used) if isinstance(used, int | float) else 0.0
