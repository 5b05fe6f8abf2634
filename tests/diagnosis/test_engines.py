"""Whose flags the advice may name: messages, code paths and the pod tell the engine."""

from __future__ import annotations

from types import ModuleType

import pytest

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free."


@pytest.mark.parametrize(
    ("engine", "lines"),
    [
        ("vllm", ("vLLM API server version 0.11.0", "Starting to load model acme/chat-14b...")),
        ("sglang", ("Load weight begin. avail mem=78.10 GB", "Memory pool end. avail mem=9.30 GB")),
        ("tgi", ("Starting shard rank=0", "Warming up model")),
        ("trtllm", ("[TensorRT-LLM][INFO] Loaded engine size: 13028 MiB",)),
        ("lmdeploy", ("[BlockManager] max_block_count = 812",)),
        ("llamacpp", ("main: loading model", "load_tensors: offloaded 33/33 layers to GPU")),
        ("ollama", ('msg=offload layers.requested=33 layers.model=33 layers.offload=20', "load_tensors: offloaded 33/33 layers to GPU", "main: loading model")),
    ],
)  # fmt: skip
def test_messages_tell_the_engine(b: ModuleType, engine: str, lines: tuple[str, ...]) -> None:
    """The family with most messages; Ollama prints those of the llama.cpp it runs, and is the one with the flags."""
    w = b.World()
    for number, line in enumerate(lines):
        w.add("serve.log", number, line)
    w.add("serve.log", 10, f"torch.OutOfMemoryError: {OOM}", "traceback", level="ERROR", exception="torch.OutOfMemoryError")
    assert w.diagnosis().engine == engine


def test_frames_and_image_tell_it_where_no_message_does(b: ModuleType) -> None:
    """A traceback of SGLang's code; a pod that runs TGI."""
    w = b.World()
    frames = ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py:event_loop_normal",)
    w.add("out.log", 0, f"torch.OutOfMemoryError: {OOM}", "traceback", level="ERROR", frames=frames, exception="torch.OutOfMemoryError")
    assert w.diagnosis().engine == "sglang"
    w = b.World()
    w.pod(image="ghcr.io/huggingface/text-generation-inference:3.3.5", args=("--model-id", "acme/chat-14b"))
    w.exited("describe.txt", 60, 137)
    assert w.diagnosis().engine == "tgi"


def test_nothing_tells(b: ModuleType) -> None:
    """No engine is guessed."""
    w = b.World()
    w.pod(image="registry.acme.example/serve:7")
    w.exited("describe.txt", 60, 1)
    assert w.diagnosis().engine == ""
