"""Key facts: the flat numbers of an incident, with units in their names.

Sources, weakest first: the engine's configuration, its ledger, the pod's spec, the deaths, the evidence of the
verdict. A stronger source overwrites a weaker one, so a number of the failing line is never replaced by a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import Event, Finding
from . import bystanders, counts, holders, jobs, timing
from .case import Case
from .evidence import same_fact
from .judge import first_cause, served
from .ledger import TYPED, arguments_of, build, flags_of, kv_facts, values_of
from .model import Incident, Life
from .rules.gpu import named_cards
from .rules.oom_site import first_failure, refused_start
from .rules.probes import budgets_s, load_time
from .rules.series import dumped_load, load_at_death, reported_load

_ARGUMENTS = (
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "kv_cache_dtype",
    "quantization",
    "enforce_eager",
    "swap_space",
    "cpu_offload_gb",
    "max_loras",
    "max_lora_rank",
    "num_speculative_tokens",
    "kv_cache_memory_bytes",
    # SGLang
    "mem_fraction_static",
    "chunked_prefill_size",
    "max_running_requests",
    "cuda_graph_max_bs",
    "context_length",
    # TGI
    "max_batch_prefill_tokens",
    "max_batch_total_tokens",
    "max_total_tokens",
    "max_input_tokens",
    # LMDeploy
    "session_len",
    "cache_max_entry_count",
    "max_prefill_token_num",
)
_LORA = ("max_loras", "max_lora_rank")
"""Sizes that a server without adapters prints and does not use."""
_LEDGER = (
    "gpu_total_gib",
    "weights_gib",
    "load_s",
    "kv_available_gib",
    "kv_tokens",
    "gpu_blocks",
    "max_concurrency_x",
    "activation_peak_gib",
    "non_torch_gib",
    "graph_gib",
    "graph_estimated_gib",
    "requested_gib",
    "init_s",
    "checkpoint_gib",
    "available_ram_gib",
    # SGLang
    "free_before_load_gib",
    "free_after_load_gib",
    "free_after_kv_gib",
    "free_before_capture_gib",
    # llama.cpp, Ollama
    "context_len",
    "prompt_tokens",
    "model_buffer_mib",
    "kv_buffer_mib",
    "free_before_load_mib",
    "layers_gpu",
    "layers_total",
    "layers_requested",
    "layers_fitting",
    "gpu_available_gib",
    "needed_full_gib",
    # TensorRT-LLM
    "engine_size_mib",
    "free_before_kv_gib",
    "block_mib",  # LMDeploy's
    "kv_blocks",
    "nofile_limit",
)
SKEW_S = 5.0
"""A clock this much off is worth a number."""
_OBSERVED = frozenset(
    {
        "derived.foreign_code",
        "derived.gpu_climb",
        "derived.host_climb",
        "derived.kv_full",
        "derived.kv_low",
        "derived.queue_grew",
    }
)
_TELLING = {"nccl.watchdog_timeout": frozenset({"timeout_ms", "ran_ms"})}
"""Numbers of consequences that belong to the story: how long the peers of a dead rank waited for it."""
_TERM_FACTS = {
    "total": "gpu_total_gib",
    "utilization": "gpu_memory_utilization",
    "budget": "requested_gib",
    "activation": "activation_peak_gib",
    "overhead": "overhead_gib",
    "weights": "weights_gib",
}
_SHORT_OF = (
    ("tried_to_allocate_mib", "gpu_free_mib", "shortfall_mib"),
    ("tried_to_allocate_mib", "free_before_load_mib", "shortfall_mib"),
    ("kv_cache_needed_gib", "kv_cache_available_gib", "shortfall_gib"),
    ("file_mb", "free_mb", "shortfall_mb"),
    ("requested_tokens", "max_model_len", "excess_tokens"),
)
"""What was needed, what there was, and the name of the difference."""
_HIDDEN = frozenset(
    {
        "logger",
        "ident",
        "basis",
        "phase",
        "frames",
        "tasks",
        "process_sentences",
        "message",
        "started_s",
        "finished_s",
        "first_seen_s",
        "last_seen_s",
        "last_state",
        "output",
        "failed_procs",
    }
)


def collect(case: Case, incident: Incident) -> dict[str, Any]:
    """Flat facts: name with unit → number or short text."""
    facts: dict[str, Any] = {}
    life = life_of(case, incident)
    begun = _begun(case, life) if life is not None else None
    if begun is not None:
        _configuration(case, begun, facts)
    elif (spec := _spec_of(case, incident)) is not None:
        _flags(flags_of(spec), facts)
    _specification(case, incident, facts)
    for finding in incident.observations:
        if finding.signature in _OBSERVED:
            _evidence(finding, facts)
    if life is not None:
        _at_death(case, incident, life, facts)
    # the first finding speaks last: its numbers are those of the first failure
    for finding in (*reversed(incident.hypotheses[0].supporting), *reversed(incident.hypotheses[0].decisive)):
        _evidence(finding, facts)
    _copies(case, incident, facts)
    counts.of_ends(case, incident, facts)
    counts.of_processes(incident, facts)
    counts.of_lost_messages(incident, facts)
    _computed(case, incident, facts)
    told = (event for event in case.of_kind("log") if event.fields.get("job"))
    of_job = jobs.facts_of(incident.deaths, told, str(facts.get("job") or ""))
    facts.update({name: value for name, value in of_job.items() if name not in facts})
    counts.of_repeats(incident, facts)
    _refused_starts(case, incident, facts)
    for finding in incident.consequences:
        telling = _TELLING.get(finding.signature, frozenset()) & finding.fields.keys()
        facts |= {name: finding.fields[name] for name in telling - facts.keys()}
    root = first_cause(incident.hypotheses[0])
    counts.of_rank(root, facts)
    for name, value in timing.measure(case, incident, root).items():
        facts.setdefault(name, value)
    ready_s = timing.ready_after_s(begun) if begun is not None else None
    facts |= {"ready_after_s": round(ready_s, 1)} if ready_s is not None else {}
    twice = timing.repeated_hour(case, incident)
    if twice:
        facts["repeated_hour_local"] = twice
    _curves(case, incident, facts)
    cause, ground = incident.hypotheses[0].cause.id, incident.hypotheses[0].decisive
    if cause == "host_oom.node":
        holders.of_node(case, incident, facts)
    holders.of_volume(case, incident, facts)
    if cause == "ray_oom":
        holders.of_ray_node(case, facts)
    if cause == "gpu_oom.other_process":
        holders.of_card(case, facts)
    if cause == "driver_mismatch":
        holders.of_driver(case, facts)
    if cause == "host_oom.node" or any(finding.signature.startswith("oomd.") for finding in ground):
        holders.of_host(case, incident, facts)
    if life is not None and "kv_bytes_per_token" not in facts:
        facts |= {name: value for name, value in kv_facts(case, life).items() if name not in facts}
    if "gpu_total_gib" not in facts:
        named = next((gib for _, gib in named_cards(case, incident.entity) if gib is not None), None)
        facts |= {"gpu_nominal_gib": named} if named is not None else {}
    sizes = {event.fields.get("memory_total_mib") for event in case.of_kind("gpu_state")} - {None}
    facts |= {"gpu_memory_total_mib": sizes.pop()} if len(sizes) == 1 else {}
    skews = [c.skew_s for s in case.sources for c in s.clocks if c.verdict == "solved" and abs(c.skew_s) >= SKEW_S]
    if skews:
        facts["clock_skew_s"] = max(skews, key=abs)
    spec = case.spec(incident.entity)
    if spec is not None and incident.hypotheses[0].cause.id.startswith("probe_"):
        _probes(spec.fields, facts)
    for name in ("victim_rss", "memcg_limit", "largest_task_rss"):
        if isinstance(facts.get(f"{name}_kib"), int | float):
            facts[f"{name}_gib"] = round(facts[f"{name}_kib"] / 1024**2, 2)
    if "kv_available_gib" in facts:
        facts.setdefault("kv_cache_available_gib", facts["kv_available_gib"])
    for needed, had, short in _SHORT_OF:
        if needed in facts and had in facts and facts[needed] > facts[had]:
            facts.setdefault(short, round(facts[needed] - facts[had], 2))
    return dict(sorted(facts.items()))


def life_of(case: Case, incident: Incident) -> Life | None:
    """The run that the incident is about: that of its first death with a log, else any of the entity.

    Where all is well, it is the one that serves now.
    """
    for death in incident.deaths:
        if death.life is not None:
            return death.life
    lives = case.lives_of(incident.entity)
    if incident.hypotheses[0].cause.id == "healthy":
        kin = [life for life in case.lives if bystanders.are_alike(life.entity, incident.entity)]
        lives = [life for life in kin or case.lives if served(life)][-1:] or lives
    return next(iter(lives), None)


def _begun(case: Case, life: Life) -> Life:
    """The log that shows the start of a run, where its own begins in the middle."""
    start = life.start.time.utc_s
    if life.from_start or start is None:
        return life
    before = [
        other
        for other in case.lives
        if other.from_start
        and case.entities.same(other.entity, life.entity)
        and other.start.time.utc_s is not None
        and other.start.time.utc_s <= start
    ]
    return max(before, key=lambda other: other.start.time.utc_s or 0.0, default=life)


def _configuration(case: Case, life: Life, facts: dict[str, Any]) -> None:
    _flags(arguments_of(case, life), facts)
    values = values_of(life)
    for name in (*_ARGUMENTS, *_LEDGER):
        if name in values and not (name in facts and values[name][1].signature in TYPED):
            facts[name] = values[name][0]
    version = values.get("engine_version", values.get("version"))
    if version:
        facts["engine_version"] = version[0]


def _flags(arguments: Mapping[str, Any], facts: dict[str, Any]) -> None:
    unused = _LORA if arguments.get("enable_lora") is False else ()
    facts.update({n: arguments[n] for n in _ARGUMENTS if n not in unused and arguments.get(n) is not None})
    if "max_seq_len" in arguments:
        facts.setdefault("max_model_len", arguments["max_seq_len"])


def _at_death(case: Case, incident: Incident, life: Life, facts: dict[str, Any]) -> None:
    """What the engine dumped when it failed: the load, the size of its step; and how far a batch of prompts got.

    Where it dumped nothing, the load that it reported last before an allocation failed.
    """
    dump = load_at_death(life)
    if dump is not None:
        facts.update(dumped_load(dump))
    elif incident.deaths and first_failure(life) is not None:
        for name, value in reported_load(case, incident.deaths[0]).items():
            facts.setdefault(name, value)
    steps = [f.fields["scheduled_tokens"] for f in life.findings if "scheduled_tokens" in f.fields]
    if steps:
        facts["scheduled_tokens"] = steps[-1]
    facts.update(next((f.fields for f in reversed(life.findings) if f.signature == "vllm.batch_progress"), {}))


def _spec_of(case: Case, incident: Incident) -> Event | None:
    return case.spec(incident.entity, incident.container) if incident.entity else case.specs.get("")


def _specification(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    spec = _spec_of(case, incident)
    if incident.entity and spec is not None and spec is not case.spec(incident.entity):
        facts["bystander"] = incident.container
    if spec is None and incident.entity:  # docker's state holds the settings too
        spec = next(iter(case.of_entity(case.of_kind("docker_state"), incident.entity)), None)
    limit = spec.fields.get("memory_limit_bytes") if spec is not None else None
    if limit := limit or _stated_limit(case, incident):
        facts["container_limit_kib"] = int(limit) // 1024
        facts["container_limit_gib"] = round(int(limit) / 1024**3, 2)
    if spec is None:
        return
    for name in ("gpus", "grace_s", "start_timeout_s"):
        if spec.fields.get(name) is not None:
            facts[name] = spec.fields[name]
    for probe, seconds in budgets_s(spec.fields).items():
        facts[f"{probe}_budget_s"] = seconds
    if spec.fields.get("shm_size_bytes") is not None:
        facts["shm_size_mib"] = int(spec.fields["shm_size_bytes"]) // 1024**2


def _stated_limit(case: Case, incident: Incident) -> int | None:
    """The limit in bytes that cgroup files state, where no others than the entity's can be meant."""
    told = {
        event.fields["memory_max_bytes"]
        for event in case.of_kind("cgroup")
        if isinstance(event.fields.get("memory_max_bytes"), int)
        and (not (owner := case.entities.of(event)) or case.entities.same(owner, incident.entity))
    }
    return told.pop() if len(told) == 1 else None


def _evidence(finding: Finding, facts: dict[str, Any]) -> None:
    for base in (*finding.rests_on, finding):
        for name, value in base.fields.items():
            if name not in _HIDDEN and isinstance(value, bool | int | float | str) and len(str(value)) <= 80:
                facts[name] = value
    requested = finding.fields.get("tried_to_allocate_gib")
    if isinstance(requested, int | float):
        facts["tried_to_allocate_mib"] = round(requested * 1024, 2)
    free = finding.fields.get("gpu_free_gib")
    if isinstance(free, int | float):
        facts["gpu_free_mib"] = round(free * 1024, 2)


def _copies(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """Numbers of the other lines that tell of what decides: the nearest witness is not always the most talkative."""
    for finding in incident.hypotheses[0].decisive:
        for copy in case.named(finding.signature):
            owner = case.entities.of(copy.event)
            mine = not owner or owner.startswith("file:") or case.entities.same(owner, incident.entity)
            if mine and copy.fields and copy.locator != finding.locator and same_fact(finding, copy):
                told: dict[str, Any] = {}
                _evidence(copy, told)
                facts.update({name: value for name, value in told.items() if name not in facts})


def _refused_starts(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """What a start after the failure found: memory that somebody else holds."""
    for life in case.lives_of(incident.entity):
        refused = refused_start(life)
        if refused is not None:
            names = {"gpu_free_gib": "free_at_restart_gib", "requested_gib": "wanted_at_restart_gib"}
            facts |= {new: refused.fields[old] for old, new in names.items() if old in refused.fields}
            return


def _probes(spec: Mapping[str, Any], facts: dict[str, Any]) -> None:
    for probe in ("startup", "liveness"):
        for name in ("delay_s", "period_s", "timeout_s", "failure"):
            if spec.get(f"{probe}_{name}") is not None:
                facts[f"{probe}_{name.replace('failure', 'failure_threshold')}"] = spec[f"{probe}_{name}"]


def _curves(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """Peaks of the curves that concern the incident: GPU memory, and the KV cache."""
    peaks = [t for t in case.trends if t.name == "gpu_memory_used_mib" and t.points > 1]
    own = [t for t in peaks if case.entities.same(t.entity, incident.entity)] or peaks
    if own:
        facts["gpu_memory_peak_mib"] = max(t.maximum for t in own)
    usage = [t for t in case.trends if t.name == "kv_cache_usage_pct"]
    own = [t for t in usage if case.entities.same(t.entity, incident.entity)] or usage
    if own and "kv_cache_usage_pct" not in facts:
        facts["kv_cache_usage_peak_pct"] = max(t.maximum for t in own)
    counts.of_preemptions(case, incident, facts)
    counts.of_pool(case, facts)


def _computed(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """How long loading takes, and the terms of the memory ledger."""
    estimate = load_time(case, incident.deaths[0]) if incident.deaths else None
    if estimate is not None and {"probe_budget_s", "start_timeout_s"} & facts.keys():
        for name in estimate.keys() & {"load_time_s", "earlier_load_time_s"}:
            facts.setdefault(name, estimate[name])
    for ledger in build(case, incident)[:1]:
        for name, value in ledger.facts.items():
            facts.setdefault(name, value)
        for row in ledger.rows:
            if row.gib is not None and row.term in _TERM_FACTS:
                facts.setdefault(_TERM_FACTS[row.term], row.gib)
