"""The GPU memory ledger of a run: total × utilisation = weights + activation + other + graphs + KV cache.

Every term comes from a line of the engine, or follows from the others; what does not add up is said. KV arithmetic:
bytes per token = KV bytes ÷ KV tokens (or 2 × layers × KV heads × head size × bytes from the model's config).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..model import Event, Finding, Locator
from .case import Case
from .model import Incident, Ledger, LedgerRow, Life

GIB = 1024**3
V0_BLOCK_TOKENS = 16

_TERMS = (
    ("total", ("gpu_total_gib",)),
    ("utilization", ("gpu_memory_utilization",)),
    ("budget", ("requested_gib",)),
    ("weights", ("weights_gib",)),
    ("consumed", ("consumed_gib",)),
    ("activation", ("activation_peak_gib",)),
    ("non_torch", ("non_torch_gib",)),
    ("overhead", ()),
    ("graphs_planned", ("graph_estimated_gib",)),
    ("graphs", ("graph_gib",)),
    ("kv_cache", ("kv_available_gib", "kv_cache_gib")),
)
_DTYPE_BYTES = {
    "float32": 4,
    "fp32": 4,
    "float16": 2,
    "bfloat16": 2,
    "half": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "int8": 1,
}


def build(case: Case, incident: Incident) -> tuple[Ledger, ...]:
    """Ledgers of the runs of the incident's entity that print enough to make one."""
    ledgers = []
    for life in case.lives_of(incident.entity):
        ledger = of_life(case, life)
        if ledger is not None:
            ledgers.append(ledger)
    return tuple(ledgers)


TYPED = frozenset({"vllm.typed_command", "sglang.typed_command", "tgi.typed_command"})
"""Commands that somebody shows: whether the run was started by them, only the engine's own lines tell."""


def values_of(life: Life) -> dict[str, tuple[Any, Finding]]:
    """Field → (value, finding) over a run; the first line that prints a field wins, and what was only typed is last."""
    found: dict[str, tuple[Any, Finding]] = {}
    for finding in sorted(life.findings, key=lambda finding: finding.signature in TYPED):
        for name, value in finding.fields.items():
            if value is not None:
                found.setdefault(name, (value, finding))
    return found


def of_life(case: Case, life: Life) -> Ledger | None:
    """The ledger of one run; none when fewer than two of its terms are known."""
    values = values_of(life)
    known: dict[str, float] = {}
    places: dict[str, Locator] = {}
    for term, names in _TERMS:
        for name in names:
            if name in values and isinstance(values[name][0], int | float):
                known[term], places[term] = float(values[name][0]), values[name][1].locator
                break
    arguments = arguments_of(case, life)
    if "utilization" not in known:
        stated = arguments.get("gpu_memory_utilization")
        default = default_utilization(str(arguments.get("engine_version") or ""))
        if isinstance(stated, int | float):
            known["utilization"] = float(stated)
        elif default is not None:
            known["utilization"] = default
    if "total" not in known:
        card = card_of(case)
        if card is not None and _fits(known, card[0]):
            known["total"], places["total"] = card
    if len(known.keys() & {"weights", "kv_cache", "budget", "consumed"}) < 2:
        return None
    derived = _derive(known, _equivalent(values))
    rows = tuple(
        LedgerRow(term, round(known[term], 3), places.get(term), term in derived)
        for term, _ in _TERMS
        if term in known
    )
    kv = kv_facts(case, life, known.get("kv_cache", 0.0))
    return Ledger(life.entity, life.sources[0], rows, _difference(known), kv)


def default_utilization(version: str) -> float | None:
    """vLLM's own default: 0.90 up to 0.19, 0.92 from 0.20 (`config/cache.py`); none for an unknown version."""
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return 0.92 if (int(parts[0]), int(parts[1])) >= (0, 20) else 0.90


def card_of(case: Case) -> tuple[float, Locator] | None:
    """Memory of a card that a program may use, and where nvidia-smi shows it, when all cards of the bundle are alike.

    Its total counts what the driver keeps for itself; used and free do not.
    """
    totals = []
    for event in case.of_kind("gpu_state"):
        total, used, free = (event.fields.get(f"memory_{name}_mib") for name in ("total", "used", "free"))
        usable = used + free if isinstance(used, int | float) and isinstance(free, int | float) else total
        if isinstance(usable, int | float) and isinstance(total, int | float) and 0.9 * total <= usable <= total:
            totals.append((round(float(usable) / 1024, 3), event.locator))
    return totals[0] if len({total for total, _ in totals}) == 1 else None


def _fits(known: Mapping[str, float], total: float) -> bool:
    """False for a card that cannot hold what a run put on its own: the run was another machine's."""
    return known.get("weights", 0.0) + known.get("kv_cache", 0.0) <= total


def _equivalent(values: Mapping[str, tuple[Any, Finding]]) -> float | None:
    """The utilisation that would give the same KV cache without graphs, where the engine counts them (vLLM ≥ 0.20)."""
    value = values["equivalent_utilization"][0] if "equivalent_utilization" in values else None
    return float(value) if isinstance(value, int | float) else None


def _derive(known: dict[str, float], equivalent: float | None = None) -> set[str]:
    """Fill terms that follow from others; returns their names."""
    derived: set[str] = set()
    if "budget" not in known and {"total", "utilization"} <= known.keys():
        known["budget"] = known["total"] * known["utilization"]
        derived.add("budget")
    if "total" not in known and {"budget", "utilization"} <= known.keys() and known["utilization"] > 0:
        known["total"] = known["budget"] / known["utilization"]
        derived.add("total")
    planned = 0.0
    if equivalent is not None and {"total", "utilization"} <= known.keys() and known["utilization"] > equivalent:
        planned = (known["utilization"] - equivalent) * known["total"]
        if "graphs_planned" not in known:
            known["graphs_planned"] = planned
            derived.add("graphs_planned")
    if "activation" not in known and {"budget", "weights", "kv_cache"} <= known.keys():
        rest = known["budget"] - known["weights"] - known["kv_cache"] - known.get("non_torch", 0.0) - planned
        if rest > 0:
            # the activation peak alone only where the rest of it is told; else with context, NCCL and uncounted graphs
            term = "activation" if "non_torch" in known else "overhead"
            known[term] = rest
            derived.add(term)
    return derived


def _difference(known: Mapping[str, float]) -> float | None:
    """Budget minus all terms; none unless every term was printed."""
    fixed = known.get("consumed", known.get("weights", 0.0) + known.get("non_torch", 0.0))
    if not {"budget", "activation", "kv_cache"} <= known.keys() or not ({"weights", "consumed"} & known.keys()):
        return None
    return round(known["budget"] - fixed - known["activation"] - known["kv_cache"], 3)


def kv_facts(case: Case, life: Life, kv_gib: float = 0.0) -> dict[str, float]:
    """Tokens, bytes per token, and what a request of full length takes, as far as known; `kv_gib` 0 is unknown."""
    facts: dict[str, float] = {}
    values = values_of(life)
    tokens = values.get("kv_tokens", (None,))[0]
    if tokens is None and "gpu_blocks" in values:
        tokens = int(values["gpu_blocks"][0]) * V0_BLOCK_TOKENS
    if isinstance(tokens, int) and tokens > 0:
        facts["kv_tokens"] = tokens
        if kv_gib > 0:
            facts["kv_bytes_per_token"] = round(kv_gib * GIB / tokens)
    needed, refusal = values.get("kv_cache_needed_gib", (None, None))
    refused = refusal.fields.get("max_model_len") if refusal is not None else None
    if "kv_bytes_per_token" not in facts and needed and refused:
        facts["kv_bytes_per_token"] = round(needed * GIB / refused)  # what one request of full length takes
    config = next(iter(case.of_kind("model_config")), None)
    if "kv_bytes_per_token" not in facts and config is not None:
        per_token = bytes_per_token(config.fields, arguments_of(case, life))
        if per_token:
            facts["kv_bytes_per_token"] = per_token
    length = max_model_len(case, life)
    if length:
        facts["max_model_len"] = length
        if "kv_bytes_per_token" in facts:
            facts["kv_gib_per_request"] = round(facts["kv_bytes_per_token"] * length / GIB, 3)
        if "kv_tokens" in facts:
            facts["max_concurrency_x"] = round(facts["kv_tokens"] / length, 2)
    return facts


def bytes_per_token(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> int | None:
    """KV cache bytes of one token on one rank; `config` has the names of Hugging Face's config.json.

    2 × layers × KV heads of the rank × head size × bytes; with latent attention (MLA) every rank holds one vector of
    `kv_lora_rank` + `qk_rope_head_dim` per layer. None when a factor is unknown, or some layers only keep a window.
    """
    layers = config.get("num_hidden_layers")
    dtype = str(arguments.get("kv_cache_dtype") or "auto")
    if dtype == "auto":
        dtype = str(config.get("dtype") or "bfloat16")
    width = _DTYPE_BYTES.get(dtype.removeprefix("torch."))
    if not isinstance(layers, int) or not width or config.get("sliding_attention_layers"):
        return None
    latent, rope = config.get("kv_lora_rank"), config.get("qk_rope_head_dim")
    if isinstance(latent, int) and isinstance(rope, int):
        return layers * (latent + rope) * width
    heads, size = config.get("num_key_value_heads"), config.get("head_dim")
    if not (isinstance(heads, int) and isinstance(size, int)):
        return None
    ranks = arguments.get("tensor_parallel_size")
    return 2 * layers * max(1, heads // (ranks if isinstance(ranks, int) and ranks > 0 else 1)) * size * width


def max_model_len(case: Case, life: Life) -> int | None:
    values = values_of(life)
    for name in ("max_model_len", "max_seq_len"):
        if name in values and isinstance(values[name][0], int):
            return int(values[name][0])
    value = arguments_of(case, life).get("max_model_len")
    return value if isinstance(value, int) else None


def flags_of(spec: Event) -> dict[str, Any]:
    """The flags of the command line that a spec gives to its container."""
    return flags((*spec.fields.get("command", ()), *spec.fields.get("args", ())))


def flags(words: Iterable[Any]) -> dict[str, Any]:
    """The flags of a command line, by name with underscores."""
    from ..parsers.engine_config import parse_cli_args

    return parse_cli_args([*map(str, words)])


def arguments_of(case: Case, life: Life) -> dict[str, Any]:
    """The engine's arguments as its own lines print them, completed from the pod's command line."""
    spec = case.spec(life.entity)
    arguments = flags_of(spec) if spec is not None else {}
    for event in case.of_kind("engine_config", "engine_args"):
        inside = life.start.locator.order <= event.locator.order <= life.end.locator.order
        if event.locator.source in life.sources and (inside or event.locator.source != life.sources[0]):
            arguments.update({k: v for k, v in event.fields.items() if k != "logger"})
    return arguments
