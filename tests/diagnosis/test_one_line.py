"""One pasted line is often all there is: what it says by itself, and lines that only look so."""

from __future__ import annotations

from types import ModuleType

import pytest


def verdict(b: ModuleType, text: str, channel: str = "plain", **fields: object) -> tuple[str, str]:
    w = b.World()
    w.add("paste.txt", None, text, "traceback" if fields else "log", channel, level="", **fields)
    found = w.diagnosis(padding=0).verdict
    return found.cause.id, str(found.confidence)


@pytest.mark.parametrize(
    ("text", "cause", "confidence"),
    [
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', "config_error", "likely"),
        ("docker: Error response from daemon: unresolvable CDI devices nvidia.com/gpu=3", "config_error", "likely"),
        ("/start.sh: line 4: exec: llama-server: not found", "config_error", "likely"),
        ("| Memory Bandwidth          | Fail                      |", "gpu_hardware", "likely"),
        ("GPU 6 on gpu-node-7: Xid 95", "gpu_hardware", "likely"),
        ("Unable to determine the device handle for GPU 0000:5E:00.0: Unknown Error", "gpu_hardware", "possible"),
        ("ops@gpu-node-7:~$ sudo kill -9 51234", "external_sigkill", "possible"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver_mismatch", "possible"),
        ("gguf_init_from_file_impl: invalid magic characters: '<!DO', expected 'GGUF'", "model_download", "likely"),
        ("NCCL WARN Call to posix_fallocate failed : No space left on device", "shm_exhausted", "likely"),
        ("[TRT] [E] The engine plan file is generated on an incompatible device, expecting compute 9.0 got compute 8.9",
         "unsupported_hardware", "likely"),
        ("KeyError: 'model.layers.0.mlp.experts.w2_scale'", "app_bug", "possible"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/models/chat/config.yaml'", "config_error", "possible"),
    ],
)  # fmt: skip
def test_the_line_alone_is_clear(b: ModuleType, text: str, cause: str, confidence: str) -> None:
    """A cause of its own, and no more confidence than one line carries."""
    assert verdict(b, text) == (cause, confidence)


@pytest.mark.parametrize(
    "text",
    [
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.7', port=8000)",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
        "ValueError",
        "the log said ValueError: bad shape, but it went on",
        "DCGM_FI_DEV_XID_ERRORS == 79",
        "ops@gpu-node-7:~$ kill 51234",
        "level=info msg=\"runtime nvidia is configured\"",
        "| Software                  | Fail                      |",
    ],
)  # fmt: skip
def test_a_line_that_tells_nothing(b: ModuleType, text: str) -> None:
    """Errors of a client, echoes, talk, settings and soft measures."""
    assert verdict(b, text)[0] == "insufficient_evidence"


def test_a_traceback_without_its_log(b: ModuleType) -> None:
    """Raised inside an engine: its own fault; raised in a client, in the middle, or only an echo: nothing."""
    text = "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'"
    raised = {"exception": "TypeError", "frames": b.SERVING}
    assert verdict(b, text, "plain", **raised)[0] == "app_bug"
    assert verdict(b, "ValueError: bad flag", "plain", exception="ValueError", frames=b.LOADING)[0] == "config_error"
    client = ("/usr/lib/python3/site-packages/httpx/_client.py:send",)
    assert verdict(b, text, "plain", **{**raised, "frames": client})[0] == "insufficient_evidence"
    assert verdict(b, text, "plain", **raised, chained=True)[0] == "insufficient_evidence"


def test_an_exception_beside_an_engine_at_work(b: ModuleType) -> None:
    """Somewhere an engine serves: an error of another file did not end it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 700)
    w.add("paste.txt", None, "KeyError: 'w2_scale'", channel="plain", level="")
    assert w.diagnosis().verdict.cause.id != "app_bug"


def test_the_kernel_tells_first_what_a_tool_only_noticed(b: ModuleType) -> None:
    """A card that stops answering is seen by nvidia-smi before the driver's watchdog runs out and names the fault."""
    w = b.World()
    w.start("a", 0)
    w.add("smi.csv", 100, "GPU 3 (GPU-0c3f): [Unknown Error] in all 5 columns", channel="nvidia", level="")
    xid = "NVRM: Xid (PCI:0000:3b:00): 119, pid=3612, name=VLLM::Worker, Timeout after 6s of waiting for RPC response"
    w.add("dmesg.txt", 160, xid, "xid", "kernel", xid=119)
    w.fail("a", 200, "torch.AcceleratorError: CUDA error: unknown error")
    found = w.diagnosis()
    assert found.verdict.cause.id == "gpu_hardware"
    assert found.incidents[0].chain[0].finding.event.locator.source == "dmesg.txt"
