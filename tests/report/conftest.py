"""An incident small enough to read: one vLLM pod dies of a CUDA OOM under load, twice, seen by five kinds of sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from forensics import analyze
from forensics.report import Report

POD, UID = "chat-7b-6d5f4c7b9d-x2x4z", "6b0f6a3c-2f0e-4a51-9a55-0c1d2e3f4a5b"
RUNS = ("a1" * 32, "b2" * 32)
"""Container ids of the two runs."""

_ENGINE = """\
(APIServer pid=1) INFO 11-18 02:{m:02d}:05 [api_server.py:1839] vLLM API server version 0.11.0
(APIServer pid=1) INFO 11-18 02:{m:02d}:05 [utils.py:233] non-default args: {{'model': 'acme/Atlas-7B', 'max_model_len': 8192, 'max_num_seqs': 512}}
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:15 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='acme/Atlas-7B', max_seq_len=8192, tensor_parallel_size=1
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:20 [gpu_model_runner.py:2602] Starting to load model acme/Atlas-7B...
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:40 [gpu_model_runner.py:2653] Model loading took 14.2500 GiB and 20.100000 seconds
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:44 [gpu_worker.py:298] Available KV cache memory: 5.50 GiB
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:44 [kv_cache_utils.py:1087] GPU KV cache size: 45,056 tokens
(EngineCore_DP0 pid=71) INFO 11-18 02:{m:02d}:44 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 5.50x
(APIServer pid=1) INFO 11-18 02:{m:02d}:50 [launcher.py:29] Route: /health, Methods: GET
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO 11-18 02:{m:02d}:55 [loggers.py:127] Engine 000: Avg prompt throughput: 900.1 tokens/s, Avg generation throughput: 1500.0 tokens/s, Running: 300 reqs, Waiting: 0 reqs, GPU KV cache usage: 71.0%, Prefix cache hit rate: 1.0%
(APIServer pid=1) INFO 11-18 02:{n:02d}:05 [loggers.py:127] Engine 000: Avg prompt throughput: 990.1 tokens/s, Avg generation throughput: 1700.0 tokens/s, Running: 505 reqs, Waiting: 80 reqs, GPU KV cache usage: 99.8%, Prefix cache hit rate: 1.0%
{extra}(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710] EngineCore encountered a fatal error.
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710] Traceback (most recent call last):
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710]   File "/usr/local/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 701, in run_engine_core
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710]     engine_core.run_busy_loop()
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710]   File "/usr/local/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 2300, in execute_model
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710]     logits = self.model.compute_logits(sample_hidden_states, None)
(EngineCore_DP0 pid=71) ERROR 11-18 02:{n:02d}:09 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 201.00 MiB is free. Process 4711 has 23.40 GiB memory in use. Of the allocated memory 22.80 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.
(APIServer pid=1) ERROR 11-18 02:{n:02d}:09 [async_llm.py:480] AsyncLLM output_handler failed.
(APIServer pid=1) INFO:     10.1.2.3:40000 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
(APIServer pid=1) INFO:     Shutting down
"""

_JOURNAL = """\
Nov 18 02:{m:02d}:00 gpu-node-7 containerd[900]: time="2025-11-18T02:{m:02d}:00.400000000Z" level=info msg="StartContainer for \\"{cid}\\" returns successfully"
Nov 18 02:{m:02d}:01 gpu-node-7 kubelet[901]: I1118 02:{m:02d}:01.300000     901 kubelet.go:2453] "SyncLoop (PLEG): event for pod" pod="serving/{pod}" event={{"ID":"{uid}","Type":"ContainerStarted","Data":"{cid}"}}
Nov 18 02:{n:02d}:12 gpu-node-7 containerd[900]: time="2025-11-18T02:{n:02d}:12.500000000Z" level=info msg="received exit event container_id:\\"{cid}\\" id:\\"{cid}\\" pid:4700 exit_status:1 exited_at:{{seconds:1763433672 nanos:500000000}}"
Nov 18 02:{n:02d}:13 gpu-node-7 kubelet[901]: I1118 02:{n:02d}:13.100000     901 kubelet.go:2453] "SyncLoop (PLEG): event for pod" pod="serving/{pod}" event={{"ID":"{uid}","Type":"ContainerDied","Data":"{cid}"}}
"""

_DESCRIBE = """\
Name:             {pod}
Namespace:        serving
Node:             gpu-node-7/10.1.0.7
Start Time:       Tue, 18 Nov 2025 02:09:55 +0000
Status:           Running
IP:               10.1.2.9
Containers:
  vllm:
    Container ID:  containerd://{cid}
    Image:         registry.acme.internal/ml/vllm:v0.11.0
    Args:
      --model=acme/Atlas-7B
      --max-num-seqs=512
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
      Started:      Tue, 18 Nov 2025 02:20:00 +0000
      Finished:     Tue, 18 Nov 2025 02:21:12 +0000
    Ready:          False
    Restart Count:  2
    Limits:
      memory:          64Gi
      nvidia.com/gpu:  1
    Liveness:          http-get http://:8000/health delay=120s timeout=5s period=10s #success=1 #failure=3
    Environment:
      HF_TOKEN:            <set to the key 'token' in secret 'hf-token'>  Optional: false
Events:          <none>
"""

_GPU = "timestamp, index, uuid, memory.used [MiB], memory.total [MiB]\n" + "".join(
    f"2025/11/18 02:{10 + i // 6:02d}:{i % 6 * 10:02d}.000, 0, GPU-11111111-2222-3333-4444-555555555555, {20000 + 50 * i} MiB, 24258 MiB\n"
    for i in range(60)
)


def incident(extra: str = "") -> dict[str, str]:
    """File → content. `extra` lines stand in the engine's log just before it dies."""
    runs = ((10, 11, RUNS[0]), (20, 21, RUNS[1]))
    return {
        "logs/engine.log": "".join(_ENGINE.format(m=m, n=n, extra=extra) for m, n, _ in runs),
        "node/journal.txt": "".join(_JOURNAL.format(m=m, n=n, cid=cid, pod=POD, uid=UID) for m, n, cid in runs),
        "k8s/describe.txt": _DESCRIBE.format(pod=POD, cid=RUNS[1]),
        "node/gpu.csv": _GPU,
        "notes.txt": "seen on Tuesday by the night shift\n",
    }


@pytest.fixture(scope="session")
def files() -> Callable[[str], dict[str, str]]:
    return incident


def unpack(files: Mapping[str, str], folder: Path) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")
    return folder


@pytest.fixture(scope="session")
def analyzed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mapping[str, str]], Report]:
    """Write files to a folder and analyse it."""
    return lambda files: analyze(unpack(files, tmp_path_factory.mktemp("analyzed") / "bundle"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(incident(), tmp_path_factory.mktemp("incident") / "acme-incident")


@pytest.fixture(scope="session")
def report(folder: Path) -> Report:
    return analyze(folder)
