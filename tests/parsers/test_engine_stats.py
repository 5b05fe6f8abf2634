"""Statistics lines: seven wordings of vLLM, two of SGLang, under any envelope."""

from __future__ import annotations

import array
import json
import math

import pytest
import regex

from forensics.model import Samples, StampForm
from forensics.parsers import engine_stats
from forensics.scan import scan

THROUGHPUT = "Avg prompt throughput: 210.4 tokens/s, Avg generation throughput: 97.5 tokens/s, "
V0 = f"{THROUGHPUT}Running: 9 reqs, Swapped: 1 reqs, Pending: 4 reqs, GPU KV cache usage: 61.5%"
V1 = f"{THROUGHPUT}Running: 9 reqs, Waiting: 4 reqs, GPU KV cache usage: 61.5%, Prefix cache hit rate: 12.5%"
WORDINGS = {
    "0.4 V0": f"{V0}, CPU KV cache usage: 2.0%",
    "0.5.4 V0": f"{V0}, CPU KV cache usage: 2.0%.",
    "0.7.0 V1": "Running: 9 reqs, Waiting: 4 reqs ",
    "0.7.3 V1": V1,
    "0.8.5": f"Engine 003: {V1}",
    "0.11.2": f"2 Engines Aggregated: {V1}, External prefix cache hit rate: 99.0%, MM cache hit rate: 98.0%",
    "0.33": f"Engine 003: {THROUGHPUT}Running: 9 reqs, Waiting: 4 reqs, Deferred: 2 reqs, KV fetch: 1 reqs, "
    "XPU KV cache usage: 61.5%, External prefix cache hit rate: 99.0%",
}


def read(*lines: str) -> dict[str, Samples]:
    scanned = scan(iter(["\n".join(lines).encode()]), ["no such line"], (), engine_stats.SERIES)
    return {sample.name: sample for sample in engine_stats.samples(scanned, "engine.log")}


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_gives_its_numbers(wording: str) -> None:
    """Values by name; what a wording does not print is absent; other hit rates are not ours."""
    line = WORDINGS[wording]
    found = {name: list(sample.values) for name, sample in read(f"INFO 11-29 21:25:17 [loggers.py:127] {line}").items()}
    expected = {
        "requests_running": [9.0], "requests_waiting": [4.0], "prompt_tokens_per_s": [210.4],
        "generation_tokens_per_s": [97.5], "kv_cache_usage_pct": [61.5], "prefix_cache_hit_pct": [12.5],
        "requests_swapped": [1.0],
    }  # fmt: skip
    absent = {"requests_swapped"} if "Swapped" not in line else set()
    absent |= {"prefix_cache_hit_pct"} if ", Prefix" not in line else set()
    absent |= (
        {"prompt_tokens_per_s", "generation_tokens_per_s", "kv_cache_usage_pct"} if wording == "0.7.0 V1" else set()
    )
    assert found == {name: values for name, values in expected.items() if name not in absent}


@pytest.mark.parametrize("spec", engine_stats.SERIES, ids=["vllm", "v0-prefix", "sglang"])
def test_the_scan_and_python_read_the_same(spec: engine_stats.SeriesSpec) -> None:
    """The patterns mean in polars what they mean in `regex`."""
    lines = [f"INFO 11-29 21:25:{i:02d} [loggers.py:127] {line}" for i, line in enumerate(WORDINGS.values())]
    lines += [
        "INFO 11-29 21:25:17 metrics.py:449] Prefix cache hit rate: GPU: 12.50%, CPU: 0.00%",
        "[2026-11-29 21:25:17 TP0] Decode batch, #running-req: 3, #token: 900, token usage: 0.25, "
        "cuda graph: True, gen throughput (token/s): 124.47, #queue-req: 5",
        "[2026-11-29 21:25:17 TP0] Prefill batch. #new-seq: 1, #new-token: 9, #cached-token: 0, token "
        "usage: 0.10, "
        "#running-req: 2, #queue-req: 7",
        "Running: many reqs, Waiting: none",
        "what is Running: 3 reqs?",
    ]
    scanned = scan(iter(["\n".join(lines).encode()]), ["no such line"], (), (spec,))
    rows = scanned.series[0]
    got = {line: tuple(rows.columns[name][i] for name in spec.groups) for i, line in enumerate(rows.lines)}
    reference = {}
    for number, line in enumerate(lines, 1):
        found = regex.search(spec.pattern, line) if spec.anchor in line else None
        if found:
            reference[number] = found.groups()
    assert got == reference
    assert got


def test_stats_lines_are_no_candidates_any_more() -> None:
    """They are consumed even if an anchor hits them."""
    text = "x\n" * 100 + WORDINGS["0.8.5"] + "\n" + "x\n" * 100
    scanned = scan(iter([text.encode()]), ["KV cache usage"], (), engine_stats.SERIES)
    assert all("KV cache" not in line.text for line in scanned.candidates)


@pytest.mark.parametrize(
    ("line", "form", "layer", "seconds"),
    [
        ("(APIServer pid=1) INFO 11-29 21:25:17 [v1/metrics/loggers.py:127] {}", StampForm.YEARLESS, "engine", 0.0),
        ("2026-11-29T21:25:17.5Z stdout F INFO:     {}", StampForm.INSTANT, "cri", 1795987517.5),
        ("2026-11-29T21:25:17Z {}", StampForm.INSTANT, "prefix", 1795987517.0),
        ("{}", StampForm.LOCAL, "", math.nan),
    ],
)  # fmt: skip
def test_the_innermost_clock_is_used(line: str, form: StampForm, layer: str, seconds: float) -> None:
    """The engine's stamp where there is one, else the collector's; without any the time is unknown."""
    sample = read(line.format(WORDINGS["0.8.5"]))["requests_running"]
    assert (sample.form, sample.layer) == (form, layer)
    if form is StampForm.YEARLESS:
        assert sample.stamps[0] % 86400 == 21 * 3600 + 25 * 60 + 17
    else:
        assert sample.stamps[0] == seconds or math.isnan(seconds)


def test_json_logging_keeps_its_full_date() -> None:
    """The stamp stands in another key of the record."""
    record = {"asctime": "2026-11-29 21:28:09,233", "levelname": "INFO", "message": WORDINGS["0.8.5"], "process": 1}
    sample = read(json.dumps(record))["kv_cache_usage_pct"]
    assert (sample.form, sample.layer, sample.values[0]) == (StampForm.LOCAL, "engine", 61.5)
    assert sample.stamps[0] == pytest.approx(1795987689.233)


def test_engines_and_pods_are_separate_series() -> None:
    """Engine number, aggregate, and the pod of `kubectl logs --prefix`."""
    head = "INFO 11-29 21:25:17 [loggers.py:127] "
    lines = [
        f"[pod/vllm-llama-0/vllm] {head}{WORDINGS['0.8.5']}",
        f"[pod/vllm-llama-1/vllm] {head}{WORDINGS['0.8.5']}",
        f"{head}{WORDINGS['0.11.2']}",
    ]
    scanned = scan(iter(["\n".join(lines).encode()]), ["no such line"], (), engine_stats.SERIES)
    scopes = [s.scope for s in engine_stats.samples(scanned, "x") if s.name == "requests_running"]
    assert [(scope.pod, scope.process) for scope in scopes] == [
        ("vllm-llama-0", "Engine 003"), ("vllm-llama-1", "Engine 003"), ("", "2 Engines Aggregated"),
    ]  # fmt: skip


def test_sglang_batches_in_percent() -> None:
    """Its usage is a fraction of the token pool."""
    found = read(
        "[2026-11-29 21:25:17 TP0] Decode batch, #running-req: 3, #token: 900, token usage: 0.25, cuda "
        "graph: True, "
        "gen throughput (token/s): 124.47, #queue-req: 5"
    )
    assert found["kv_cache_usage_pct"].values == array.array("d", [25.0])
    assert found["generation_tokens_per_s"].values[0] == 124.47
    assert found["requests_waiting"].values[0] == 5
    assert found["requests_running"].scope.process == "TP0"
    assert found["requests_running"].form is StampForm.LOCAL
