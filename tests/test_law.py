"""The law of the pattern library: one named case per file and per example, and the library as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from forensics import resources
from forensics.diagnosis.case import DERIVED
from forensics.signatures import Matcher, law, load
from forensics.signatures.model import ENGINES

LIBRARY = load(resources.patterns(), DERIVED)
MATCHER = Matcher(LIBRARY)
CAUSE_IDS = frozenset({
    "gpu_oom.weights", "gpu_oom.kv_cache_startup", "gpu_oom.kv_max_len", "gpu_oom.cuda_graph", "gpu_oom.activation_peak",
    "gpu_oom.sampler_warmup", "gpu_oom.runtime_load", "gpu_oom.fragmentation", "gpu_oom.leak", "gpu_oom.other_process",
    "gpu_oom.reserved_memory", "kv_saturation", "host_oom.container_limit", "host_oom.node", "host_oom.leak", "ray_oom",
    "eviction", "probe_kill", "probe_restart_storm", "external_sigkill", "shm_exhausted", "gpu_hardware",
    "gpu_illegal_access", "nccl_failure", "engine_timeout", "config_error", "model_download", "driver_mismatch",
    "unsupported_hardware", "app_bug", "request_rejected", "healthy", "insufficient_evidence",
})  # fmt: skip


def examples() -> Iterator[object]:
    for signature in LIBRARY.signatures.values():
        for number, example in enumerate(signature.examples, 1):
            verb = example.pattern or "not"
            yield pytest.param(signature.id, number, id=f"{signature.id}-{number}-{verb}")


@pytest.mark.parametrize("identity", sorted(LIBRARY.signatures))
def test_file_is_complete(identity: str) -> None:
    """Every pattern is used by an example, and there is a line that must not match."""
    assert [str(problem) for problem in law.completeness(LIBRARY.signatures[identity])] == []


@pytest.mark.parametrize(("identity", "number"), list(examples()))
def test_example_does_what_it_says(identity: str, number: int) -> None:
    """It hits exactly the pattern it names, with the values it states, or nothing at all."""
    problems = law.example_of(LIBRARY.signatures[identity], number, MATCHER)
    assert [str(problem) for problem in problems] == []


def test_no_signature_fires_on_anothers_examples() -> None:
    """The confusion matrix is diagonal, apart from overlaps that are declared."""
    assert [str(problem) for problem in law.strangers(LIBRARY)] == []


def test_library_is_large_and_proved() -> None:
    """At least 220 signatures, every one with a line that must match and one that must not."""
    assert len(LIBRARY.signatures) >= 220
    for signature in LIBRARY.signatures.values():
        assert {bool(example.pattern) for example in signature.examples} == {True, False}, signature.id


def test_all_causes_are_there_and_carry_evidence() -> None:
    """Every cause id exists; every fault names what is decisive for it, by signatures and rules that exist."""
    assert frozenset(LIBRARY.causes) == CAUSE_IDS
    for cause in LIBRARY.causes.values():
        assert cause.decisive or cause.id in ("insufficient_evidence",), cause.id


def test_every_rule_and_every_fault_signature_serves_a_cause() -> None:
    """A finding that no cause names, as evidence or as the condition of a remedy, would be found and never used."""
    faults = [s.id for s in LIBRARY.signatures.values() if s.role == "cause"]
    causes = LIBRARY.causes.values()
    remedied = {finding for cause in causes for _, condition in cause.conditions() for finding in condition.findings}
    idle = [i for i in (*faults, *DERIVED) if i not in remedied and not any(cause.names(i) for cause in causes)]
    assert idle == []


VLLM, SGLANG, TORCH = frozenset({"vllm"}), frozenset({"sglang"}), frozenset({"vllm", "sglang"})
FLAGS = {
    **dict.fromkeys(
        (
            "--gpu-memory-utilization", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--max-lora-rank", "--max-loras",
            "--kv-cache-memory-bytes", "--swap-space", "--enforce-eager", "--compilation-config", "--limit-mm-per-prompt",
            "--mm-processor-kwargs", "--mm-processor-cache-gb", "--no-enable-prefix-caching", "--enable-sleep-mode",
            "--safetensors-load-strategy", "--hf-overrides", "--api-server-count",
        ),
        VLLM,
    ),
    **dict.fromkeys(
        (
            "--mem-fraction-static", "--chunked-prefill-size", "--max-prefill-tokens", "--max-running-requests",
            "--cuda-graph-max-bs", "--disable-cuda-graph", "--context-length", "--tp-size", "--hicache-size",
            "--hicache-ratio", "--watchdog-timeout",
        ),
        SGLANG,
    ),
    **dict.fromkeys(
        (
            "--tensor-parallel-size", "--pipeline-parallel-size", "--quantization", "--dtype", "--attention-backend",
            "--cpu-offload-gb", "--disable-custom-all-reduce", "--served-model-name",
        ),
        TORCH,
    ),
    "--kv-cache-dtype": {*TORCH, "tgi"},
    "--revision": {*TORCH, "tgi"},
    **dict.fromkeys(
        (
            "--num-shard", "--quantize", "--max-batch-prefill-tokens", "--max-batch-total-tokens",
            "--max-input-tokens", "--max-total-tokens", "--max-concurrent-requests", "--cuda-graphs",
            "--cuda-memory-fraction",
        ),
        frozenset({"tgi"}),
    ),
    "--max-batch-size": {"tgi", "lmdeploy"},
    **dict.fromkeys(
        ("--tp_size", "--max_batch_size", "--max_num_tokens", "--max_seq_len", "--kv_cache_free_gpu_memory_fraction"),
        frozenset({"trtllm"}),
    ),
    **dict.fromkeys(
        (
            "--tp", "--model-format", "--cache-max-entry-count", "--session-len", "--max-prefill-token-num",
            "--quant-policy", "--eager-mode",
        ),
        frozenset({"lmdeploy"}),
    ),
    **dict.fromkeys(
        ("--n-gpu-layers", "--ctx-size", "--ubatch-size", "--tensor-split", "--no-kv-offload"),
        frozenset({"llamacpp"}),
    ),
}  # fmt: skip
"""Flag of a server → the servers that have it."""
OTHER_TOOLS = frozenset({
    "--ipc", "--shm-size", "--gpus", "--memory", "--pids-limit", "--ulimit", "--force", "--previous", "--time", "--avoid",
    "--signal", "--object-store-memory", "--help", "--format", "--dry-run", "--grace-period", "--gpu-reset",
    "--collector", "--constraint", "--cpus", "--cpus-per-task", "--gres", "--health-retries", "--health-start-period",
    "--health-timeout", "--init", "--local-dir", "--mem", "--mem-per-gpu", "--now", "--oom-score-adj", "--output", "--restart", "--rm",
    "--runtime", "--since", "--stop-timeout", "--timestamps", "--until",
})  # fmt: skip
"""Flags of docker, kubectl, schedulers and killers."""


def test_a_flag_is_named_only_to_its_own_engine() -> None:
    """`--gpu-memory-utilization` means nothing to SGLang: a text that names it says for which servers it holds."""
    wrong, unknown = [], set()
    for cause in LIBRARY.causes.values():
        advice = [(item.condition.engine, item.text) for item in (*cause.remedies, *cause.avoid, *cause.prevent)]
        advice += [(item.engine, item.evidence) for item in cause.confirm]
        for engines, text in advice:
            for flag in re.findall(r"(?<![\w-])--[a-z][\w-]+", f"{text.en} {text.zh}"):
                if flag not in FLAGS and flag not in OTHER_TOOLS:
                    unknown.add(flag)
                elif not set(engines.split() or ENGINES) <= FLAGS.get(flag, set(ENGINES)):
                    wrong.append((cause.id, flag, engines))
    assert (wrong, unknown) == ([], set())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cause", ["weights", "kv_cache_startup", "kv_max_len", "activation_peak", "runtime_load"])
def test_every_engine_has_a_remedy_of_its_own(cause: str, engine: str) -> None:
    """Where memory is set by flags, everybody is told his own."""
    remedies = LIBRARY.causes[f"gpu_oom.{cause}"].remedies
    assert any(engine in remedy.condition.engine.split() for remedy in remedies)


def test_library_lies_where_it_is_looked_for() -> None:
    """The folders that the package reads exist."""
    assert (resources.patterns() / "causes").is_dir()
    assert (resources.templates() / "report.md.j2").is_file()
