"""What an engine was told to serve: Hugging Face `config.json`, and command lines of vLLM and its kin."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import Diagnostic, Event, Locator, Parsed, Severity
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import reprs

_KEPT = (
    "model_type", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "sliding_window",
    "tie_word_embeddings",
    "num_local_experts", "num_experts", "n_routed_experts", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim",
    "qk_nope_head_dim", "v_head_dim",
)  # fmt: skip
_LANGUAGE_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")


def _sniff(head: Head) -> int:
    text = head.text.lstrip()
    if not text.startswith("{"):
        return 0
    layers = any(
        f'"{key}"' in text for key in ("num_hidden_layers", "hidden_size", "n_layer", *_LANGUAGE_PARTS)
    )
    return 96 if layers and '"model_type"' in text and '"kind"' not in text[:200] else 0


def _read(text: str, source: str) -> Parsed:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"the model config is no JSON and was skipped: {error}"
        return Parsed(diagnostics=(Diagnostic(source, None, Severity.WARNING, message),))
    if not isinstance(config, dict):
        return Parsed()
    fields = model_config(config)
    heads, size = fields.get("num_key_value_heads"), fields.get("head_dim")
    summary = (
        f"{' '.join(fields.get('architectures', ())) or fields.get('model_type', 'model')}: "
        f"{fields.get('num_hidden_layers', '?')} layers, {heads or '?'} KV heads of {size or '?'}, "
        f"{fields.get('dtype', 'unknown dtype')}, "
        f"up to {fields.get('max_position_embeddings', '?')} positions"
    )
    last = text.count("\n") + 1
    return Parsed((Event(Locator(source, 1, last), "model_config", "engine", summary, fields=fields),))


def model_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that decide memory, by their Hugging Face names.

    Values of a nested language model win (multimodal models). `num_key_value_heads` and `head_dim` are
    derived where the file leaves them out; `dtype` is `torch_dtype` or `dtype`; `full_attention_layers` and
    `sliding_attention_layers` count `layer_types`; `kv_lora_rank` tells multi-head latent attention.
    """
    parts = (config[part] for part in _LANGUAGE_PARTS if isinstance(config.get(part), dict))
    language: dict[str, Any] = next(parts, {})
    whole = {**config, **{key: value for key, value in language.items() if value is not None}}
    fields: dict[str, Any] = {
        key: whole[key] for key in _KEPT if isinstance(whole.get(key), int | float | str)
    }
    architectures = config.get("architectures")
    if isinstance(architectures, list):
        fields["architectures"] = tuple(str(name) for name in architectures)
    for ours, theirs in (
        ("num_hidden_layers", "n_layer"),
        ("num_attention_heads", "n_head"),
        ("hidden_size", "n_embd"),
    ):
        if ours not in fields and isinstance(whole.get(theirs), int):
            fields[ours] = whole[theirs]
    dtype = whole.get("torch_dtype") or whole.get("dtype") or config.get("torch_dtype") or config.get("dtype")
    if isinstance(dtype, str):
        fields["dtype"] = dtype.removeprefix("torch.")
    heads = fields.get("num_attention_heads")
    if isinstance(heads, int) and heads > 0:
        fields.setdefault("num_key_value_heads", heads)
        if isinstance(fields.get("hidden_size"), int):
            fields.setdefault("head_dim", fields["hidden_size"] // heads)
    layers = whole.get("layer_types")
    if isinstance(layers, list):
        fields["full_attention_layers"] = layers.count("full_attention")
        fields["sliding_attention_layers"] = layers.count("sliding_attention")
    quantization = config.get("quantization_config")
    if isinstance(quantization, dict) and isinstance(quantization.get("quant_method"), str):
        fields["quantization"] = quantization["quant_method"]
    return fields


FORMAT = Format("engine.model_config", "model config.json", _sniff, _read, max_bytes=4 << 20, begins="{")

_ALIASES = {
    "tp": "tensor_parallel_size", "tp_size": "tensor_parallel_size", "pp": "pipeline_parallel_size",
    "pp_size": "pipeline_parallel_size", "dp": "data_parallel_size", "q": "quantization",
    "O": "compilation_config", "cc": "compilation_config", "model_path": "model", "m": "model",
}  # fmt: skip
_SWITCHES = lazy_regex(r"(?:enable|disable|enforce|trust|skip|return)_\w+|headless")
"""Flags without a value: a word after them is a positional argument."""
_HUMAN_INTEGERS = frozenset({"max_model_len", "max_num_batched_tokens", "kv_cache_memory_bytes"})
_HUMAN = lazy_regex(r"(\d{1,18}(?:\.\d{1,18})?)([kKmMgGtT])")
_FACTORS = {
    "k": 1000,
    "K": 1 << 10,
    "m": 10**6,
    "M": 1 << 20,
    "g": 10**9,
    "G": 1 << 30,
    "t": 10**12,
    "T": 1 << 40,
}
_ENGINES = ("vllm", "sglang", "lmdeploy", "trtllm", "text-generation-launcher")
_ENDS = frozenset({"&&", "||", ";", "|", "&"})
_REDIRECTION = lazy_regex(r"\d?>.*|<.*")
_LEVEL = lazy_regex(r"O(\d)")


def parse_cli_args(args: Sequence[str]) -> dict[str, Any]:
    """The flags of an engine's command line, by name with underscores, typed.

    `["serve", "Qwen/Qwen3-8B", "--max-model-len=8192", "-tp", "2", "--enforce-eager"]` → `{"model":
    "Qwen/Qwen3-8B", "max_model_len": 8192, "tensor_parallel_size": 2, "enforce_eager": True}`. `--no-x` is
    `x: False`; several values become a tuple; JSON values become dicts; `8k` is read as vLLM reads it (k =
    1000, K = 1024). Shell strings (`["sh", "-c", "exec vllm serve …"]`) are split first, and only the
    engine's own command counts.
    """
    flags: dict[str, Any] = {}
    words = list(_engine_words(args))
    position = 0
    serving = False
    while position < len(words):
        word = words[position]
        position += 1
        if not _is_flag(word):
            if serving:
                flags.setdefault("model", word)
            serving = word == "serve"
            continue
        name, equals, given = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        key = _ALIASES.get(name, name)
        level = _LEVEL.fullmatch(name)
        if level:
            flags["compilation_config"] = int(level[1])
        elif equals:
            flags[key] = _value(key, given)
        elif key.startswith("no_"):
            flags[key[3:]] = False
        else:
            values: list[str] = []
            few = 1 if _SWITCHES.fullmatch(key) else len(words)
            while position < len(words) and not _is_flag(words[position]) and len(values) < few:
                if few == 1 and words[position].lower() not in ("true", "false"):
                    break
                values.append(words[position])
                position += 1
            flags[key] = True if not values else _value(key, values[0]) if len(values) == 1 else tuple(values)
    return flags


def _engine_words(args: Sequence[str]) -> Iterator[str]:
    """Words of the engine's own command, shell strings split."""
    words: list[str] = []
    for arg in map(str, args):
        if (
            " " in arg.strip()
            and (" -" in arg or any(engine in arg for engine in _ENGINES))
            and arg[:1] not in "{["
        ):
            words += [";", *_shell_words(arg), ";"]
        else:
            words.append(arg.strip())
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _ENDS:
            commands.append([])
        elif not _REDIRECTION.fullmatch(word):
            commands[-1].append(word.removesuffix(";"))
            if word.endswith(";"):
                commands.append([])
    ours = [command for command in commands if any(engine in word for word in command for engine in _ENGINES)]
    for command in ours or commands:
        yield from command


def _shell_words(text: str) -> list[str]:
    text = text.replace("\\\n", " ").replace("\n", " ; ")
    try:
        return shlex.split(text)
    except ValueError:  # an unbalanced quote
        return text.split()


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


def _value(key: str, text: str) -> Any:
    human = _HUMAN.fullmatch(text) if key in _HUMAN_INTEGERS else None
    if human:
        return int(float(human[1]) * _FACTORS[human[2]])
    return reprs.literal(text)
