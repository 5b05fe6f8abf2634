"""The memory equation of a run, and the arithmetic of its KV cache."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis import ledger
from forensics.diagnosis.model import Ledger
from forensics.model import Locator
from forensics.parsers.engine_config import model_config
from forensics.report import tables, text
from forensics.report.text import texts as text_of


def of(b: ModuleType, w: Any) -> Ledger:
    case = w.case()
    book = ledger.of_life(case, case.lives[0])
    assert book is not None
    return book


def terms(book: Ledger) -> dict[str, tuple[float | None, bool]]:
    return {row.term: (row.gib, row.derived) for row in book.rows}


def three_lines(b: ModuleType, kv: str) -> Any:
    """V0's own ledger, one record of three lines."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.8.5", "engine_args", engine_version="0.8.5")
    for part in (
        "the current vLLM instance can use total_gpu_memory (79.15GiB) x gpu_memory_utilization (0.90) = 71.24GiB",
        "model weights take 27.60GiB; non_torch_memory takes 0.50GiB; PyTorch activation peak memory takes 4.40GiB;"
        f" the rest of the memory reserved for KV Cache is {kv}GiB.",
    ):
        w.add("a", 10, part)
    return w


@pytest.mark.parametrize(("kv", "difference"), [("38.74", 0.0), ("36.00", 2.74)])
def test_a_complete_ledger_is_checked(b: ModuleType, kv: str, difference: float) -> None:
    """budget = weights + non-torch + activation + KV; what is left over is said."""
    book = of(b, three_lines(b, kv))
    assert terms(book)["budget"] == (71.24, False)
    assert book.difference_gib == pytest.approx(difference, abs=0.01)


def test_missing_terms_follow_from_the_others(b: ModuleType) -> None:
    """Total and utilisation give the budget; what weights and KV leave of it was for all the rest, unnamed."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.9)
    w.add("smi", 1, "GPU 0", "gpu_state", "nvidia", memory_total_mib=81_050)
    book = of(b, w)
    found = terms(book)
    assert found["total"][0] == pytest.approx(79.15, abs=0.01)
    assert found["budget"] == (pytest.approx(0.9 * 79.15, abs=0.01), True)
    assert "activation" not in found
    assert found["overhead"] == (pytest.approx(0.9 * 79.15 - 27.6 - 30.2, abs=0.02), True)
    assert book.rows[0].place == Locator("smi", 1, 1), "nvidia-smi prints the total"
    assert book.difference_gib is None, "a term that follows from the others checks nothing"


def test_too_little_makes_no_ledger(b: ModuleType) -> None:
    """One number is no equation."""
    w = b.World()
    w.start("a", 0, loaded=False)
    case = w.case()
    assert ledger.of_life(case, case.lives[0]) is None


def test_kv_arithmetic_from_measured_numbers(b: ModuleType) -> None:
    """bytes/token = KV bytes ÷ KV tokens; one request; how many fit."""
    w = b.World()
    w.start("a", 0, max_model_len=16_384)
    facts = of(b, w).facts
    per_token = 30.2 * 2**30 / 164_912
    assert facts["kv_tokens"] == 164_912
    assert facts["kv_bytes_per_token"] == pytest.approx(per_token, rel=1e-4)
    assert facts["kv_gib_per_request"] == pytest.approx(per_token * 16_384 / 2**30, abs=0.001)
    assert facts["max_concurrency_x"] == pytest.approx(164_912 / 16_384, abs=0.01)


def test_v0_blocks_hold_sixteen_tokens(b: ModuleType) -> None:
    """`# GPU blocks: 1000` are 16 000 tokens."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.6.3", "engine_args", engine_version="0.6.3")
    w.add("a", 5, "Loading model weights took 27.6000 GB")
    w.add("a", 9, "# GPU blocks: 1000, # CPU blocks: 512")
    w.add("a", 9.1, "the rest of the memory reserved for KV Cache is 3.00GiB.")
    values = ledger.values_of(w.case().lives[0])
    assert values["gpu_blocks"][0] == 1000
    case = w.case()
    book = ledger.of_life(case, case.lives[0])
    assert book is None or book.facts["kv_tokens"] == 16_000


GQA = model_config(
    {"model_type": "x", "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192}
)
"""As the parser of config.json gives it."""


@pytest.mark.parametrize(
    ("config", "arguments", "expected"),
    [
        ({**GQA, "dtype": "bfloat16"}, {}, 2 * 48 * 8 * 128 * 2),
        (GQA, {"tensor_parallel_size": 4}, 2 * 48 * 2 * 128 * 2),
        (GQA, {"tensor_parallel_size": 16}, 2 * 48 * 1 * 128 * 2),
        (GQA, {"kv_cache_dtype": "fp8_e4m3"}, 2 * 48 * 8 * 128),
        ({**GQA, "dtype": "torch.float16"}, {}, 2 * 48 * 8 * 128 * 2),
        ({**GQA, "kv_lora_rank": 512, "qk_rope_head_dim": 64}, {"tensor_parallel_size": 8}, 48 * 576 * 2),
        ({**GQA, "full_attention_layers": 8, "sliding_attention_layers": 40}, {}, None),
        ({"num_hidden_layers": 48, "num_key_value_heads": 8}, {}, None),
        (GQA, {"kv_cache_dtype": "int3_weird"}, None),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_bytes_per_token_from_the_model(config: dict[str, Any], arguments: dict[str, Any], expected: int | None) -> None:
    """2 × layers × KV heads per rank × head size × bytes; a rank holds at least one head; unknown stays unknown.

    Latent attention has one vector per layer on every rank.
    """
    assert ledger.bytes_per_token(config, arguments) == expected


@pytest.mark.parametrize(
    ("version", "expected"), [("0.11.0", 0.90), ("v0.19.1", 0.90), ("0.20.0", 0.92), ("0.33.0", 0.92), ("", None), ("dev", None)]
)
def test_the_default_utilisation(version: str, expected: float | None) -> None:
    """0.90 up to 0.19, 0.92 from 0.20."""
    assert ledger.default_utilization(version) == expected


def test_the_engine_speaks_before_the_pod(b: ModuleType) -> None:
    """Arguments come from the pod's command line, and what the engine prints overrides them."""
    w = b.World()
    w.pod(args=("--model", "acme/chat-14b", "--max-model-len", "8192", "--max-num-seqs", "64"))
    w.start("a", 0, model="acme/chat-14b", max_model_len=16_384)
    case = w.case()
    found = ledger.arguments_of(case, case.lives[0])
    assert (found["max_model_len"], found["max_num_seqs"]) == (16_384, 64)


def test_the_first_line_that_prints_a_number_wins(b: ModuleType) -> None:
    """Other ranks print the same terms again, with their own values."""
    w = b.World()
    w.start("a", 0, ready=False)
    w.add("a", 26, "Model loading took 28.9000 GiB and 20.100000 seconds")
    assert ledger.values_of(w.case().lives[0])["weights_gib"][0] == 27.6


def test_cards_that_differ_have_no_common_size(b: ModuleType) -> None:
    """A bundle with two kinds of cards does not say which one the run had."""
    w = b.World()
    w.add("smi", 1, "GPU 0", "gpu_state", "nvidia", memory_total_mib=81_559)
    found = ledger.card_of(w.case())
    assert found is not None
    assert found[0] == pytest.approx(79.647, abs=0.01)
    w.add("smi", 1, "GPU 1", "gpu_state", "nvidia", memory_total_mib=46_068)
    assert ledger.card_of(w.case()) is None


def test_a_refusal_tells_bytes_per_token(b: ModuleType) -> None:
    """20 GiB for one request of 131,072 tokens: 163,840 bytes each, though the run never sized its cache."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 20, "Using max model len 131072")
    w.fail("a", 60, "ValueError: To serve at least one request with the models's max seq len (131072), (20.00 GiB KV cache is"
           " needed, which is larger than the available KV cache memory (4.91 GiB).", b.LOADING)  # fmt: skip
    assert w.diagnosis().key_facts["kv_bytes_per_token"] == 163_840


def test_a_card_that_is_too_small_is_another_machines(b: ModuleType) -> None:
    """The log of a replica lies in the bundle: 57.8 GiB of weights and cache were never on this card of 15 GiB."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.9)
    w.add("smi", 1, "GPU 0", "gpu_state", "nvidia", memory_total_mib=15_360)
    assert not {"total", "budget"} & terms(of(b, w)).keys()


@pytest.mark.parametrize(
    ("budget", "shown"),
    [(71.24, "71.24 − 27.60 weights − 4.40 activation peak = 39.24 GiB left for the KV cache"),
     (73.0, "73.00 − 27.60 weights − 4.40 activation peak − 1.76 that no line tells of = 39.24 GiB left for the KV cache"),
     (70.0, "")],
)  # fmt: skip
def test_a_sum_that_does_not_hold_is_not_shown(budget: float, shown: str) -> None:
    """A reader checks it: what is left over is a term of its own, and less than nothing is an error somewhere."""
    values = {"budget": budget, "weights": 27.6, "activation": 4.4, "kv_cache": 39.24}
    rows = [{"term": term, "value": value} for term, value in values.items()]
    assert tables.equation({"rows": rows}, text.texts("en")) == shown


@pytest.mark.parametrize(("equivalent", "graphs"), [(0.8873, 1.005), (None, None), (0.93, None)])
def test_graphs_that_the_engine_counts_are_a_term(b: ModuleType, equivalent: float | None, graphs: float | None) -> None:
    """vLLM ≥ 0.20 says what utilisation would do without them: the difference is theirs."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.9)
    if equivalent is not None:
        text = "CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.9000"
        w.add("a", 34, f"{text} is equivalent to --gpu-memory-utilization={equivalent:.4f} without CUDA graph memory")
    w.add("smi", 1, "GPU 0", "gpu_state", "nvidia", memory_total_mib=81_050)
    book = of(b, w)
    found = terms(book)
    rest = 0.9 * 79.15 - 27.6 - 30.2
    assert found["overhead"] == (pytest.approx(rest - (graphs or 0.0), abs=0.02), True)
    assert found.get("graphs_planned") == ((pytest.approx(graphs, abs=0.01), True) if graphs else None)
    document = {"rows": [{"term": row.term, "value": row.gib} for row in book.rows]}
    line = tables.equation(document, text_of("en"))
    assert ("CUDA graphs, as estimated" in line) is (graphs is not None)
    assert "no line tells" not in line


@pytest.mark.parametrize(("used", "free", "total_gib"), [
    (4, 81_076, 79.18), (None, None, 79.65), (40_000, 10_000, None)
], ids=["without-reserve", "total-only", "not-the-whole-card"])  # fmt: skip
def test_what_the_driver_keeps_is_nobodys(b: ModuleType, used: int | None, free: int | None, total_gib: float | None) -> None:
    """nvidia-smi's total counts the driver's reserve; what torch calls total does not."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.9)
    w.add("smi", 1, "GPU", "gpu_state", "nvidia", memory_total_mib=81_559, memory_used_mib=used, memory_free_mib=free)
    found = terms(of(b, w))
    assert found.get("total", (None,))[0] == (pytest.approx(total_gib, abs=0.01) if total_gib else None)
