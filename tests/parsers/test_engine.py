"""Engine messages: arguments, configuration, access lines."""

from __future__ import annotations

import pytest

from forensics.model import Event, Locator
from forensics.parsers import DIALECTS, engine, reprs
from forensics.parsers.embedded import read_text


def refine(text: str) -> Event:
    return engine.refine(Event(Locator("engine.log", 1, 1), "log", "engine", text))


def test_non_default_args_become_typed_fields() -> None:
    """Numbers are numbers, lists tuples, objects without a literal strings."""
    event = refine(
        "non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 8192, 'gpu_memory_utilization': 0.95, "
        "'enforce_eager': True, 'served_model_name': ['a', 'b'], 'dtype': <Dtype.AUTO: 'auto'>, "
        "'limit_mm_per_prompt': {'image': 4}}"
    )
    assert event.kind == "engine_args"
    assert event.fields == {
        "model": "Qwen/Qwen3-8B", "max_model_len": 8192, "gpu_memory_utilization": 0.95, "enforce_eager": True,
        "served_model_name": ("a", "b"), "dtype": "<Dtype.AUTO: 'auto'>", "limit_mm_per_prompt": {"image": 4},
    }  # fmt: skip


def test_namespaces_are_read() -> None:
    """vLLM before 0.9, and SGLang."""
    vllm = refine("args: Namespace(host=None, port=8000, model='x, y', max_num_seqs=256, swap_space=4.0, api_key='')")
    assert vllm.kind == "engine_args"
    assert vllm.fields["model"] == "x, y"
    assert (vllm.fields["host"], vllm.fields["max_num_seqs"], vllm.fields["swap_space"]) == (None, 256, 4.0)
    sglang = refine("server_args=ServerArgs(model_path='m', mem_fraction_static=0.88, tp_size=2, cuda_graph_bs=[1, 2])")
    assert sglang.fields["mem_fraction_static"] == 0.88
    assert sglang.fields["cuda_graph_bs"] == (1, 2)


@pytest.mark.parametrize(("path", "kind"), [("/api/chat", "access"), ("/v1/embeddings", "access"), ("/api/tags", "log")])
def test_access_lines_of_ollama(path: str, kind: str) -> None:
    """A call of a model tells of work; a list of models, or another Go program's page, does not."""
    event = refine(f'[GIN] 2026/02/03 - 04:05:06 | 200 |  2.5s |       127.0.0.1 | POST     "{path}"')
    assert event.kind == kind
    assert event.fields.get("status") == (200 if kind == "access" else None)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("srv  log_server_r: request: POST /v1/chat/completions 10.0.0.9 400", 400),
        ("srv  log_server_r: done request: GET /metrics 10.0.0.9", None),
        ("user text: request: POST /v1/chat/completions 10.0.0.9 400", None),
    ],
)
def test_access_lines_of_llamacpp(text: str, status: int | None) -> None:
    """The server's own function prints them; the same words in a text are none."""
    assert refine(text).fields.get("status") == status


@pytest.mark.parametrize(
    ("lead", "generation"),
    [("Initializing an LLM engine (v0.6.3)", None), ("Initializing a V1 LLM engine (v0.6.3)", "V1"),
     ("Initializing a V0 LLM engine (v0.6.3)", "V0")],
)  # fmt: skip
def test_the_config_line_in_its_three_wordings(lead: str, generation: str | None) -> None:
    """Version and keys; nested objects do not confuse the commas."""
    event = refine(
        f"{lead} with config: model='m', dtype=torch.bfloat16, max_seq_len=65536, tensor_parallel_size=8, "
        "observability_config=ObservabilityConfig(otlp_traces_endpoint=None, x=[1, 2]), "
        "enable_prefix_caching=True, "
        'compilation_config={"level":3,"use_inductor":true,"sizes":[512,504]}'
    )
    assert event.kind == "engine_config"
    assert event.fields["engine_version"] == "0.6.3"
    assert event.fields.get("generation") == generation
    assert event.fields["max_seq_len"] == 65536
    assert event.fields["dtype"] == "torch.bfloat16"
    assert event.fields["enable_prefix_caching"] is True
    assert event.fields["compilation_config"] == {"level": 3, "use_inductor": True, "sizes": (512, 504)}


def test_the_version_comes_from_banner_and_logo() -> None:
    """Old banner, new banner, and the two text lines of the logo."""
    assert refine("vLLM API server version 0.6.3.post1").fields == {"engine_version": "0.6.3.post1"}
    assert refine("vLLM server version 0.33.0, serving model Qwen/Qwen3-8B").fields["model"] == "Qwen/Qwen3-8B"
    assert refine(" █ █ █▄   ▄█  version 0.19.0").fields == {"engine_version": "0.19.0"}
    assert refine("  ▄▄ ▄█ █     █   model   Qwen/Qwen3-8B").fields == {"model": "Qwen/Qwen3-8B"}


def test_access_lines() -> None:
    """uvicorn's access line, with and without a client."""
    event = refine('10.0.4.7:5120 - "POST /v1/chat/completions HTTP/1.1" 503 Service Unavailable')
    assert event.kind == "access"
    assert event.fields == {"method": "POST", "path": "/v1/chat/completions", "status": 503}
    assert refine('- - "GET /health HTTP/1.1" 200').fields["status"] == 200
    assert refine('she typed "GET /health HTTP/1.1" 200').kind == "log"


@pytest.mark.parametrize(
    "text",
    [
        "Received request cmpl-1: prompt: 'non-default args: {1: 2}', params: SamplingParams(n=1)",
        "please use args: Namespace(x=1)",
        "version 3 of the prompt",
        "Initializing a V1 LLM engine is slow",
        "non-default args: none",
    ],
)
def test_talk_about_arguments_stays_a_message(text: str) -> None:
    """Only the engine's own position counts."""
    assert refine(text).kind == "log"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            ' INFO generate_stream{parameters=GenerateParameters { top_k: Some(5), .. } total_time="2.1s" queue_time="40µs"}:'
            " text_generation_router::server: router/src/server.rs:510: Success", "/generate_stream",
        ),
        ('generate{parameters=GenerateParameters}: Success total_time="1.2s" queue_time="1ms" seed="None"', "/generate"),
        ("generate{parameters=GenerateParameters}: Success", ""),
        ('embed{total_time="8ms" tokenization_time="1ms"}: text_embeddings_router::http::server: Success', "/embed"),
        (' INFO generate{total_time="2.1s"}: text_generation_router::infer: router/src/infer.rs:9: Failure', ""),
        ("the user asks: text_generation_router::server: Success", ""),
    ],
    ids=["TGI", "times behind", "no times", "TEI", "not answered", "talk"],
)
def test_answers_of_routers(text: str, path: str) -> None:
    """Each answered request is one line, in which no access log's words stand."""
    event = refine(text)
    assert (event.kind == "access", event.fields.get("path", "")) == (bool(path), path)


@pytest.mark.parametrize(
    ("target", "message", "path"),
    [
        ("text_generation_router::server", "Success", "/chat_completions"),
        ("text_generation_router::infer", "Request failed", ""), ("shop::server", "Success", ""),
    ],
)  # fmt: skip
def test_answers_of_routers_in_json(target: str, message: str, path: str) -> None:
    """With `--json-output` the message is one word, and the handler stands in the span beside it."""
    line = f'{{"level": "INFO", "message": "{message}", "target": "{target}", "span": {{"name": "chat_completions"}}}}'
    event = engine.refine(Event(Locator("tgi.jsonl", 1, 1), "log", "engine", message, raw=line))
    assert (event.kind == "access", event.fields.get("path", "")) == (bool(path), path)


def test_hostile_reprs_end_without_an_error() -> None:
    """Unbalanced quotes, deep nesting, cut lines."""
    assert reprs.mapping("{'a': 1, 'b': [1, 2") == {"a": 1, "b": "[1, 2"}
    assert reprs.mapping("{'a': 'it") == {"a": "'it"}
    assert isinstance(reprs.literal("[" * 500 + "]" * 500), tuple)
    assert reprs.keywords("") == {}
    assert reprs.literal("9" * 400) == float("9" * 400)
    assert reprs.literal("'it\\'s'") == "it's"


def test_a_container_without_engine_header_may_still_hold_a_traceback() -> None:
    """An engine that dies while it is imported prints nothing but its traceback."""
    text = "\n".join(f"2026-11-29T21:25:17.12345678{i}Z stderr F {line}" for i, line in enumerate([
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/site-packages/vllm/__init__.py", line 3, in <module>',
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    ]))  # fmt: skip
    events = read_text(text, "0.log", "container").events
    assert [(event.kind, event.channel) for event in events] == [("traceback", "engine")]


def test_dialects_are_registered() -> None:
    """The channels in which an engine may be heard."""
    assert DIALECTS["engine"] is engine.DIALECT
    assert all(DIALECTS[channel].assemble for channel in ("engine", "container", "plain", "host", "ray"))
