"""GPU memory: what the numbers of a failed allocation say about neighbours, fragmentation and the card itself.

Who the neighbours are, lists of processes tell (`neighbours`).

The arithmetic is that of torch's caching allocator (`c10/cuda/CUDACachingAllocator.cpp`): A allocated by tensors,
B reserved but unallocated, F free on the device, T total, r requested.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...model import Finding
from ...regexes import lazy_regex
from ...signatures.fields import size_bytes
from .. import ledger, rank
from ..case import Case, conclude
from ..model import Death, Life
from .oom_site import first_failure, is_of_stub

_OTHER_PROCESS = lazy_regex(r"Process (\d+) has ([\d.]+ (?:bytes|KiB|MiB|GiB)) memory in use")
_THIS_PROCESS = lazy_regex(r"this process has ([\d.]+ (?:bytes|KiB|MiB|GiB)) memory in use")
_GIB = 1024**3
CONTEXT_GIB = 3.0
"""CUDA contexts, NCCL buffers and workspaces of one engine, outside of torch's pool."""
OWN_CONTEXT_GIB = 0.75
"""The CUDA context alone, which a process has when it first asks what is free."""
OUTSIDE_POOL_GIB = 4.0
"""As above with graphs: an entry of NVML so far above torch's own figures can still only be ourselves."""
MUCH_OUTSIDE_GIB = 8.0
"""More than any engine takes outside of torch's pool: somebody else is on the card."""
CARVED = 0.25
"""An APU's own video memory is small beside what it borrows."""
MUCH_MORE = 1.4
"""Beyond this multiple the host could lend more, and keep enough for itself."""
_NOMINAL = lazy_regex(r"(?<![\d.])(\d{2,3}) ?GB?(?![\w.])|-(\d{1,3})[CQAB]\b")
_SLICE = lazy_regex(r"(?i)\bmig[-. ]?\d+c?\.?\d*g?\.?(\d+)gb|\d+g\.(\d+)gb|\bGRID\b|-\d{1,3}[CQ]\b")


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """What the numbers of the first allocation failure add to its site."""
    failure = first_failure(death.life)
    yield from _smaller(case, death)
    yield from _smaller_than_before(case, death)
    yield from _share_above_free(death.life)
    if failure is None:
        return
    yield from _share_of_ram(case, death)
    numbers = _numbers(death.life, failure)
    if numbers is not None:
        yield from _arithmetic(numbers)


def _share_above_free(life: Life | None) -> Iterator[Finding]:
    """A share of the card that is refused although only the process's own context is missing from the total."""
    for finding in life.findings if life is not None else ():
        if finding.signature == "vllm.free_memory_low":
            free, total = finding.fields["gpu_free_gib"], finding.fields["gpu_total_gib"]
            if 0 < total - free <= OWN_CONTEXT_GIB:
                fits = math.floor(100 * free / total) / 100
                fields = {**finding.fields, "context_gib": round(total - free, 2), "utilization_that_fits": fits}
                yield conclude("share_above_free", finding.event, fields, (finding,))
                return


def _smaller(case: Case, death: Death) -> Iterator[Finding]:
    """The card offers much less than its name says: a MIG slice, a vGPU profile, memory lost to errors."""
    life = death.life
    seen = next(
        (
            (f.fields["gpu_total_gib"], f)
            for f in (life.findings if life is not None else ())
            if isinstance(f.fields.get("gpu_total_gib"), int | float)
        ),
        None,
    )
    if seen is None:
        return
    total, witness = seen
    for text, nominal in named_cards(case, death.entity):
        sliced = _SLICE.search(text) is not None
        if (nominal is not None and total < 0.75 * nominal) or (sliced and (nominal is None or total < 0.9 * nominal)):
            yield conclude(
                "gpu_smaller_than_named",
                witness.event,
                {
                    "gpu_total_gib": total,
                    "nominal_gib": nominal if nominal is not None else total,
                    "named": text[:80],
                },
            )
            return
    if life is not None and life.ready is None and case.spec(death.entity) is None:
        yield from _slice(case, total, witness)


def _slice(case: Case, total: float, witness: Finding) -> Iterator[Finding]:
    """A start that failed on a MIG instance, as nvidia-smi lists it, where no spec says that one was asked for."""
    for event in case.of_kind("gpu_state"):
        size_mib = event.fields.get("memory_total_mib")
        if "mig_instance" in event.fields and size_mib and abs(size_mib - total * 1024) <= 0.03 * size_mib:
            yield conclude("gpu_is_slice", witness.event, {"gpu_total_gib": total, "slice": event.text})
            return


def _smaller_than_before(case: Case, death: Death) -> Iterator[Finding]:
    """A start was refused for want of KV cache, and fitted as long as the card had its former size.

    Either nvidia-smi showed more memory on the same card before, or an earlier run with the same settings got more
    and the card is now cut into slices. ECC on a GDDR card, a MIG profile: nothing in the engine has changed.
    """
    life = death.life
    values = ledger.values_of(life) if life is not None and life.ready is None else {}
    if life is None or "kv_cache_needed_gib" not in values or "kv_available_gib" not in values:
        return
    (needed, _), (available, witness) = values["kv_cache_needed_gib"], values["kv_available_gib"]
    share = ledger.arguments_of(case, life).get("gpu_memory_utilization") or 1.0
    fields: dict[str, Any] = {"kv_available_gib": available}
    totals = _shrunk_card(case)
    if totals is not None:
        fields |= {"gpu_total_before_mib": totals[0], "gpu_total_now_mib": totals[1]}
        fields["gpu_shrunk_gib"] = round((totals[0] - totals[1]) / 1024, 2)
    before = _earlier_kv_gib(case, life)
    if before is not None and before > available:
        fields["previous_kv_gib"] = before
        if any(event.fields.get("mig_profile") for event in case.of_kind("gpu_state")):
            fields.setdefault("gpu_shrunk_gib", round((before - available) / share, 2))
    if needed <= available + fields.get("gpu_shrunk_gib", 0.0) * share:
        yield conclude("gpu_smaller_than_before", witness.event, fields, (witness,))


def _share_of_ram(case: Case, death: Death) -> Iterator[Finding]:
    """A start failed on an APU: its memory is what the driver lends it of the host's, and the host has far more."""
    life = death.life
    totals = [f.fields["gpu_total_gib"] for f in life.findings if "gpu_total_gib" in f.fields] if life else []
    ram = [e.fields["mem_total_kib"] for e in case.of_kind("meminfo") if e.fields.get("mem_total_kib")]
    told = list(case.named("kernel.amdgpu_memory"))
    own = sum(f.fields.get("vram_mib", 0) for f in told)
    if life is None or life.ready is not None or not totals or not ram:
        return
    for lent in (f for f in told if "gtt_mib" in f.fields):
        size = lent.fields["gtt_mib"]
        is_it = abs(totals[0] * 1024 - size) <= 0.03 * size
        if is_it and own <= CARVED * size and ram[0] >= MUCH_MORE * size * 1024:
            fields = {**lent.fields, "gpu_total_gib": totals[0], "host_memory_gib": round(ram[0] / 1024**2, 1)}
            yield conclude("gpu_is_share_of_ram", lent.event, fields)
            return


def _shrunk_card(case: Case) -> tuple[float, float] | None:
    """Memory of a card in an earlier and in a later snapshot, in MiB, where it became notably less."""
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for event in case.of_kind("gpu_state"):
        place = str(event.fields.get("uuid") or event.fields.get("pci_bus_id") or event.fields.get("index", ""))
        total, when = event.fields.get("memory_total_mib"), event.time.utc_s
        if place and isinstance(total, int | float) and when is not None:
            seen.setdefault((event.scope.host, place), []).append((when, float(total)))
    for snapshots in seen.values():
        first, last = min(snapshots)[1], max(snapshots)[1]
        if last <= 0.98 * first:
            return first, last
    return None


_SETTINGS = (
    "model", "model_tag", "engine_version", "gpu_memory_utilization", "tensor_parallel_size", "pipeline_parallel_size",
    "max_num_batched_tokens", "max_num_seqs", "quantization", "kv_cache_dtype", "enforce_eager",
)  # fmt: skip
"""What decides how much of a card is left for the KV cache; `max_model_len` does not."""


def _earlier_kv_gib(case: Case, life: Life) -> float | None:
    """What the last run with the same settings and weights got before this one, and served with."""
    arguments, weights = ledger.arguments_of(case, life), ledger.values_of(life).get("weights_gib", (None,))[0]
    found: list[tuple[float, float]] = []
    for other in case.lives:
        values, when, now = ledger.values_of(other), other.start.time.utc_s, life.start.time.utc_s
        kv, loaded = (values.get(name, (None,))[0] for name in ("kv_available_gib", "weights_gib"))
        if other.ready is None or when is None or now is None or when >= now or not (kv and loaded and weights):
            continue
        told = ledger.arguments_of(case, other)
        if abs(loaded - weights) <= 0.01 * weights and all(told.get(k) == arguments.get(k) for k in _SETTINGS):
            found.append((when, kv))
    return max(found)[1] if found else None


def named_cards(case: Case, entity: str) -> Iterator[tuple[str, float | None]]:
    """(text, GiB) of what the pod asks for and what the driver calls its cards: `NVIDIA-A100-SXM4-80GB`, 80."""
    spec = case.spec(entity)
    asked = (
        (*(spec.fields.get("gpu_resources") or ()), *(spec.fields.get("node_selector") or {}).values()) if spec else ()
    )
    for text in (" ".join(map(str, asked)), *(str(e.fields.get("name") or "") for e in case.of_kind("gpu_state"))):
        yield text, next((float(n[1] or n[2]) for n in _NOMINAL.finditer(text)), None)


def _numbers(life: Life | None, failure: Finding) -> Finding | None:
    """The finding that holds the allocator's figures: the failure itself, or a copy of it with numbers."""
    if "tried_to_allocate_gib" in failure.fields:
        return failure
    candidates = life.findings if life is not None else ()
    later = (f for f in candidates if f.locator.order >= failure.locator.order)
    return next((f for f in later if "tried_to_allocate_gib" in f.fields), None)


def _arithmetic(failure: Finding) -> Iterator[Finding]:
    fields = failure.fields
    requested = fields["tried_to_allocate_gib"]
    total, free = fields.get("gpu_total_gib"), fields.get("gpu_free_gib")
    allocated = fields.get("allocated_gib", 0.0)
    unallocated = unallocated_gib(fields)
    if total and requested > total:
        yield conclude("request_absurd", failure.event, fields, (failure,))
    if total is None or free is None:
        return
    others, basis = others_gib(fields), {}
    if not _tells_processes(fields) and _outside_gib(fields) >= max(MUCH_OUTSIDE_GIB, 0.1 * total):
        others, basis = _outside_gib(fields), {"basis": rank.DIFFERENCE}
    if others >= max(1.0, 0.05 * total) and others + free >= requested and not is_of_stub(failure):
        numbers = {**fields, "others_gib": round(others, 2), **basis}
        yield conclude("gpu_neighbour", failure.event, numbers, (failure,))
    elif others < 0.5 and (_tells_processes(fields) or _outside_gib(fields) <= CONTEXT_GIB):
        yield conclude("no_neighbour", failure.event, {**fields, "others_gib": round(others, 2)}, (failure,))
    if free >= requested:
        yield conclude("free_but_refused", failure.event, fields, (failure,))
    elif unallocated >= requested and unallocated >= 0.05 * (allocated + unallocated) and unallocated >= 0.5:
        yield conclude(
            "gpu_fragmented", failure.event, {**fields, "reserved_unallocated_gib": round(unallocated, 2)}, (failure,)
        )


def _tells_processes(fields: Mapping[str, Any]) -> bool:
    return bool(fields.get("process_sentences"))


def _outside_gib(fields: Mapping[str, Any]) -> float:
    """What is neither free nor torch's: contexts, NCCL, and all that others hold. Zero when torch says too little."""
    total, free, allocated = (fields.get(name) for name in ("gpu_total_gib", "gpu_free_gib", "allocated_gib"))
    if total is None or free is None or allocated is None:
        return 0.0
    return max(0.0, float(total) - float(free) - float(allocated) - unallocated_gib(fields))


def unallocated_gib(fields: Mapping[str, Any]) -> float:
    """B: printed by torch ≥ 2.1; in the old shape, reserved minus allocated."""
    if "reserved_unallocated_gib" in fields:
        return float(fields["reserved_unallocated_gib"])
    if "reserved_gib" in fields:
        return max(0.0, float(fields["reserved_gib"]) - float(fields.get("allocated_gib", 0.0)))
    return 0.0


def others_gib(fields: Mapping[str, Any]) -> float:
    """Memory that other processes hold on the GPU, and never more than the card has beside what is our own.

    In a container torch cannot recognise its own host pid and lists itself as `Process <pid>`: without a “this
    process” sentence, the smallest entry that holds the allocator's own figures may be ourselves. It is when it
    comes near them, and when the card has no room for it beside them. On a MIG slice NVML lists the whole card.
    """
    sentences = str(fields.get("process_sentences") or "")
    total = float(fields.get("gpu_total_gib") or 0.0)
    sizes = [size_bytes(size) / _GIB for _, size in _OTHER_PROCESS.findall(sentences)]
    if total and any(size > total for size in sizes):
        return 0.0  # NVML had no figure
    taken = total - float(fields.get("gpu_free_gib") or 0.0) if total else math.inf
    own = float(fields.get("allocated_gib") or 0.0) + unallocated_gib(fields)
    told = _THIS_PROCESS.search(sentences)
    if told is not None:
        own = size_bytes(told[1]) / _GIB
    else:
        us = min((size for size in sizes if size >= own - 0.1), default=None)
        if us is not None and (us <= own + OUTSIDE_POOL_GIB or sum(sizes) + own > taken + 0.1):
            sizes.remove(us)
            own = us
    return max(0.0, min(sum(sizes), taken - own))
