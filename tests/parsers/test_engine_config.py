"""Model configs and command lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forensics.model import Severity
from forensics.parsers import FORMATS
from forensics.parsers.engine_config import FORMAT, model_config, parse_cli_args
from forensics.sources import identify, make_head

CONFIG: dict[str, Any] = {
    "architectures": ["MistralForCausalLM"], "head_dim": 128, "hidden_size": 5120, "num_attention_heads": 32,
    "num_hidden_layers": 40, "num_key_value_heads": 8, "max_position_embeddings": 131072, "model_type": "mistral",
    "sliding_window": None, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_the_figures_that_decide_memory() -> None:
    """Layers, KV heads, head size, dtype and positions of a plain decoder."""
    assert FORMAT.read is not None
    (event,) = FORMAT.read(json.dumps(CONFIG, indent=2), "model-config.json").events
    assert event.kind == "model_config"
    assert event.fields["num_hidden_layers"] == 40
    assert event.fields["num_key_value_heads"] == 8
    assert event.fields["dtype"] == "bfloat16"
    assert event.fields["architectures"] == ("MistralForCausalLM",)
    assert event.text == ("MistralForCausalLM: 40 layers, 8 KV heads of 128, bfloat16, up to 131072 positions")


def test_missing_figures_are_derived() -> None:
    """No grouped heads: as many KV heads as heads; head size from the hidden size; GPT-2 names."""
    fields = model_config({"model_type": "gpt2", "n_layer": 12, "n_head": 16, "n_embd": 1024, "dtype": "torch.float16"})
    assert (fields["num_hidden_layers"], fields["num_key_value_heads"], fields["head_dim"]) == (12, 16, 64)
    assert fields["dtype"] == "float16"


def test_a_multimodal_model_has_its_language_part() -> None:
    """The nested text config wins; quantization, latent attention and layer types are kept."""
    fields = model_config({
        "architectures": ["X"], "model_type": "x_vl", "hidden_size": 1,
            "quantization_config": {"quant_method": "fp8"},
        "text_config": {
            "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128, "kv_lora_rank": 512,
            "qk_rope_head_dim": 64, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        },
    })  # fmt: skip
    assert (fields["hidden_size"], fields["kv_lora_rank"], fields["quantization"]) == (7168, 512, "fp8")
    assert (fields["full_attention_layers"], fields["sliding_attention_layers"]) == (1, 2)


def test_only_model_configs_are_claimed() -> None:
    """Other JSON is left alone, broken JSON is said so."""
    assert identify(make_head("config.json", json.dumps(CONFIG).encode(), True), FORMATS) is FORMAT
    for other in ('{"kind": "Pod", "metadata": {}}', '{"status": "firing"}', "[]", '{"model_type": "x"}'):
        assert FORMAT.sniff(make_head("x.json", other.encode(), True)) == 0
    assert FORMAT.read is not None
    (diagnostic,) = FORMAT.read('{"model_type": ', "x.json").diagnostics
    assert diagnostic.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["serve", "Qwen/Qwen3-8B", "--max-model-len=8192", "-tp", "2", "--enforce-eager"],
         {"model": "Qwen/Qwen3-8B", "max_model_len": 8192, "tensor_parallel_size": 2, "enforce_eager": True}),
        (["vllm", "serve", "--enforce-eager", "m", "--served-model-name", "a", "b", "-O3"],
         {"enforce_eager": True, "model": "m", "served_model_name": ("a", "b"), "compilation_config": 3}),
        (["--model", "m", "--no-enable-prefix-caching", "--gpu-memory-utilization", "0.95", "--max-model-len", "-1"],
         {"model": "m", "enable_prefix_caching": False, "gpu_memory_utilization": 0.95, "max_model_len": -1}),
        (["sh", "-c", "pip install x --upgrade && exec python3 -m vllm.entrypoints.openai.api_server "
          "--model /models/x --max-model-len 32k --swap-space 8 2>&1 | tee /tmp/log"],
         {"model": "/models/x", "max_model_len": 32000, "swap_space": 8}),
        (["/bin/bash", "-lc", "vllm serve x/y \\\n  --tensor-parallel-size 4 \\\n  --trust-remote-code\n"],
         {"model": "x/y", "tensor_parallel_size": 4, "trust_remote_code": True}),
        (["python3", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "2",
            "--mem-fraction-static", "0.88"],
         {"model": "m", "tensor_parallel_size": 2, "mem_fraction_static": 0.88}),
        (["--limit-mm-per-prompt", '{"image": 4, "video": 0}', "--kv-cache-dtype", "fp8"],
         {"limit_mm_per_prompt": {"image": 4, "video": 0}, "kv_cache_dtype": "fp8"}),
        (["--max-model-len", "16K"], {"max_model_len": 16384}),
        (["VLLM::EngineCore"], {}),
        ([], {}),
        (["sh", "-c", "vllm serve 'unbalanced --max-num-seqs 7"], {"model": "'unbalanced", "max_num_seqs": 7}),
    ],
)  # fmt: skip
def test_command_lines(args: list[str], expected: dict[str, Any]) -> None:
    """Every way in which pods, compose files and ps show the flags."""
    assert parse_cli_args(args) == expected
