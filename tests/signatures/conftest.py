"""A quiet corpus: what healthy systems print, and innocent lines that sound like trouble.

Invented names, true shapes. The same lines come back with other numbers, as they do in a week of logs; which number
is a function of the line's position, so that every run sees the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

START = datetime(2026, 11, 2, 6, 0, tzinfo=UTC)
NODE = "gpu-node-7"

ENGINE_START = """\
INFO {t} [api_server.py:1839] vLLM API server version 0.11.0
INFO {t} [utils.py:233] non-default args: {{'model': '/models/llama-8b', 'max_model_len': 16384, 'gpu_memory_utilization': 0.9}}
INFO {t} [model.py:547] Resolved architecture: LlamaForCausalLM
INFO {t} [model.py:1510] Using max model len 16384
INFO {t} [scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=8192.
INFO {t} [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/llama-8b', dtype=torch.bfloat16, max_seq_len=16384
INFO {t} [gpu_model_runner.py:2602] Starting to load model /models/llama-8b...
Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:03<00:00,  1.20it/s]
INFO {t} [default_loader.py:267] Loading weights took 3.41 seconds
INFO {t} [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 4.102331 seconds
INFO {t} [backends.py:548] Using cache directory: /root/.cache/vllm/torch_compile_cache/1f/rank_0_0/backbone for vLLM's torch.compile
INFO {t} [backends.py:559] Dynamo bytecode transform time: 4.92 s
INFO {t} [gpu_worker.py:298] Available KV cache memory: 52.31 GiB
INFO {t} [kv_cache_utils.py:1087] GPU KV cache size: 428,544 tokens
INFO {t} [kv_cache_utils.py:1091] Maximum concurrency for 16,384 tokens per request: 26.16x
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|##########| 67/67 [00:03<00:00, 20.01it/s]
INFO {t} [gpu_model_runner.py:3480] Graph capturing finished in 5 secs, took 0.53 GiB
INFO {t} [core.py:210] init engine (profile, create kv cache, warmup model) took 21.90 seconds
INFO {t} [api_server.py:1912] Starting vLLM API server 0 on http://0.0.0.0:8000
INFO:     Started server process [1]
INFO:     Waiting for application startup.
INFO:     Application startup complete.
""".splitlines()

ENGINE_SERVING = """\
INFO {t} [loggers.py:127] Engine 000: Avg prompt throughput: {n}.4 tokens/s, Avg generation throughput: {m}.9 tokens/s, Running: {s} reqs, Waiting: 0 reqs, GPU KV cache usage: {s}.1%, Prefix cache hit rate: 41.{s}%
INFO:     10.42.3.{s}:4{m} - "POST /v1/chat/completions HTTP/1.1" 200 OK
INFO:     10.42.3.{s}:5{m} - "GET /health HTTP/1.1" 200 OK
INFO:     10.42.3.{s}:5{m} - "GET /metrics HTTP/1.1" 200 OK
INFO {t} [async_llm.py:312] Added request chatcmpl-{h}.
INFO {t} [logger.py:41] Received request chatcmpl-{h}: prompt: 'Explain why a process is OOMKilled with exit code 137', params: SamplingParams(n=1, temperature=0.7), prompt_token_ids: None
INFO {t} [logger.py:41] Received request chatcmpl-{h}: prompt: 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. What now?', params: SamplingParams(n=1)
INFO {t} [logger.py:41] Received request chatcmpl-{h}: prompt: 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus', params: SamplingParams(n=1)
INFO {t} [gateway.py:88] conversation {h}: booked the meeting room for Zoom, {n} people
INFO {t} [tools.py:19] bloom filter rebuilt with {n} keys, 0 errors
INFO {t} [tools.py:20] Boomerang: {m} retries avoided, loom width {s}
DEBUG {t} [cache.py:77] room for {n} more entries, groom interval {s} s
INFO {t} [server.py:12] tool call finished: {{"status": "ok", "content": "the kernel's OOM killer chose pid {m}"}}
""".splitlines()

ENGINE_HINTS = """\
WARNING {t} [arg_utils.py:1128] The model has a long context length (131072). This may causeOOM during the initial memory profiling phase, or result in low performance due to small KV cache size. Consider setting --max-model-len to a smaller value.
INFO {t} [gpu_model_runner.py:3102] If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode.
INFO {t} [autotuner.py:256] First inference may OOM due to autotuner; {s} configurations are tried
INFO {t} [launcher.py:28] Available routes are: /health, /oom-report, /v1/models
INFO {t} [utils.py:50] argument --kill-on-oom is off
INFO {t} [utils.py:51] env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, oom_retries=3
""".splitlines()

KUBELET = """\
I{k}    1184 kubelet.go:2421] "SyncLoop ADD" source="api" pods=["inference/vllm-llama-0"]
I{k}    1184 reconciler_common.go:224] "operationExecutor.MountVolume started for volume \\"models\\" (UniqueName: \\"kubernetes.io/nfs/{h}-models\\") pod \\"vllm-llama-0\\""
I{k}    1184 operation_generator.go:580] "MountVolume.SetUp succeeded for volume \\"models\\" pod \\"vllm-llama-0\\""
I{k}    1184 pod_startup_latency_tracker.go:104] "Observed pod startup duration" pod="inference/vllm-llama-0" podStartSLOduration=12.{s}
I{k}    1184 kubelet.go:2453] "SyncLoop (PLEG): event for pod" pod="inference/vllm-llama-0" event={{"ID":"7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41","Type":"ContainerStarted","Data":"{h}"}}
I{k}    1184 kubelet.go:2475] "SyncLoop (probe)" probe="readiness" status="ready" pod="inference/vllm-llama-0"
I{k}    1184 container_manager_linux.go:301] "Creating device plugin manager" oomScoreAdj=-999
I{k}    1184 image_gc_manager.go:222] "Starting to delete unused images" imageCount={s}
I{k}    1184 setters.go:600] "Node status is up to date" node="gpu-node-7" memoryPressure=false
""".splitlines()

CONTAINERD = """\
time="{z}" level=info msg="ImageUpdate event name:\\"registry.example/vllm:v0.11.0\\""
time="{z}" level=info msg="CreateContainer within sandbox \\"{h}\\" for container &ContainerMetadata{{Name:vllm,Attempt:0,}}"
time="{z}" level=info msg="StartContainer for \\"{h}\\" returns successfully"
time="{z}" level=info msg="starting containerd" config="{{OOMScore:-999 MaxConcurrentDownloads:3}}"
time="{z}" level=info msg="runc spec: oomScoreAdj=997 disableOOMKiller=false"
""".splitlines()

SYSTEMD = """\
{j} gpu-node-7 systemd[1]: Started session-{s}.scope - Session {s} of User root.
{j} gpu-node-7 systemd[1]: Starting logrotate.service - Rotate log files...
{j} gpu-node-7 systemd[1]: logrotate.service: Deactivated successfully.
{j} gpu-node-7 systemd[1]: Finished logrotate.service - Rotate log files.
{j} gpu-node-7 systemd[1]: Started systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer.
{j} gpu-node-7 systemd[1]: vllm.service: Consumed 4min {s}s CPU time, 61.2G memory peak.
{j} gpu-node-7 systemd[1]: Loaded drop-in with OOMPolicy=continue and OOMScoreAdjust=-500 for vllm.service.
{j} gpu-node-7 CRON[{m}]: (root) CMD (/usr/lib/sysstat/debian-sa1 1 1)
{j} gpu-node-7 sshd[{m}]: Accepted publickey for ops from 10.0.4.{s} port 5{m} ssh2
{j} gpu-node-7 dbus-daemon[811]: [system] Successfully activated service 'org.freedesktop.hostname1'
{j} gpu-node-7 earlyoom[702]: mem avail: {n} of 515921 MiB (61.{s}%), swap free:    0 of    0 MiB ( 0.00%)
{j} gpu-node-7 postgres[{m}]: LOG:  checkpoint complete: wrote {n} buffers; oldest xid {m} in database 1
{j} gpu-node-7 zoom-sync[{m}]: room directory refreshed, {s} rooms
{j} gpu-node-7 NetworkManager[900]: <info>  [1793599200.{m}] dhcp4 (eno1): state changed new lease
{j} gpu-node-7 chronyd[688]: Selected source 10.0.0.{s} (ntp.example)
""".splitlines()

KERNEL = """\
[{b}] ACPI: PM-Timer IO Port: 0x408
[{b}] usb 1-{s}: new high-speed USB device number {s} using xhci_hcd
[{b}] EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.
[{b}] nvme nvme0: {s}/0/0 default/read/poll queues
[{b}] nvidia: module license 'NVIDIA' taints kernel.
[{b}] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.82.07
[{b}] nvidia-uvm: Loaded the UVM driver, major device number 50{s}.
[{b}] mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged
[{b}] OOM killer disabled.
[{b}] OOM killer enabled.
[{b}] cgroup: Setting release_agent not allowed
[{b}] audit: type=1400 audit(1793599200.{m}:{s}): apparmor="STATUS" operation="profile_load"
[{b}] pcieport 0000:00:01.0: AER: enabled with IRQ {s}
[{b}] Freeing unused kernel image (initmem) memory: {n}K
""".splitlines()

RAY = """\
[{r},{ms} I {m} {m}] (raylet) node_manager.cc:618: Sending heartbeat, {s} workers idle
[{r},{ms} I {m} {m}] (raylet) memory_monitor.cc:52: MemoryMonitor initialized with usage threshold at 506806140928 bytes (0.95 system memory), total system memory bytes: 533480144896
INFO {r},{ms} controller 812 -- Replica 'app#llm#{h}' is healthy, {s} requests
INFO {r},{ms} replica 913 -- POST /v1/chat/completions 200 {n}.1ms
""".splitlines()

EVENTS = """\
LAST SEEN   TYPE     REASON      OBJECT             MESSAGE
{s}m         Normal   Scheduled   pod/vllm-llama-0   Successfully assigned inference/vllm-llama-0 to gpu-node-7
{s}m         Normal   Pulled      pod/vllm-llama-0   Container image "registry.example/vllm:v0.11.0" already present on machine
{s}m         Normal   Created     pod/vllm-llama-0   Created container: vllm
{s}m         Normal   Started     pod/vllm-llama-0   Started container vllm
{s}m         Normal   Completed   job/bloom-index    Job completed
""".splitlines()

CGROUP = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"


def values(i: int) -> dict[str, object]:
    """The numbers and stamps of line `i`: one line a second, numbers without a visible pattern."""
    at = START + timedelta(seconds=i)
    return {
        "t": f"{at:%m-%d %H:%M:%S}", "k": f"{at:%m%d %H:%M:%S}.{i % 999983:06d}", "j": f"{at:%b %d %H:%M:%S}",
        "z": f"{at:%Y-%m-%dT%H:%M:%S}.{i % 997:03d}Z", "r": f"{at:%Y-%m-%d %H:%M:%S}", "ms": f"{i % 1000:03d}",
        "b": f"{40 + i / 7:12.6f}", "n": 100 + i * 37 % 899, "m": 1000 + i * 7919 % 8999, "s": 1 + i * 13 % 58,
        "h": f"{i * 0x9E3779B97F4A7C15 % 2**64:016x}",
    }  # fmt: skip


def fill(templates: list[str], count: int, wrap: Callable[[str, int], str] = lambda line, i: line) -> Iterator[str]:
    """`count` lines, the templates in turn."""
    for i in range(count):
        yield wrap(templates[i % len(templates)].format(**values(i)), i)


def cri(line: str, i: int) -> str:
    return f"{START + timedelta(seconds=i):%Y-%m-%dT%H:%M:%S}.{i % 1000:03d}000000Z stdout F {line}"


def journal(line: str, i: int, program: str) -> str:
    return f"{START + timedelta(seconds=i):%b %d %H:%M:%S} {NODE} {program}[1184]: {line}"


@pytest.fixture(scope="session")
def quiet_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of healthy logs of every speaker, more than 20,000 lines."""
    root = tmp_path_factory.mktemp("quiet")
    pod = "logs/inference_vllm-llama-0_7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41/vllm"
    engine = [*ENGINE_START, *fill(ENGINE_SERVING, 6000)]
    files = {
        f"{pod}/0.log": [cri(line.format(**values(i)) if i < len(ENGINE_START) else line, i) for i, line in enumerate(engine)],
        "engine.log": [*fill(ENGINE_START, len(ENGINE_START)), *fill([*ENGINE_SERVING, *ENGINE_HINTS], 4000)],
        "kubelet.log": list(fill(KUBELET, 1500)),
        "containerd.log": list(fill(CONTAINERD, 1500)),
        "journal.txt": [
            *fill(SYSTEMD, 3000),
            *fill(KUBELET, 600, lambda line, i: journal(line, i, "kubelet")),
            *fill(CONTAINERD, 600, lambda line, i: journal(line, i, "containerd")),
        ],
        "dmesg.txt": list(fill(KERNEL, 2500)),
        "ray/raylet.out": list(fill(RAY, 1500)),
        "events.txt": [EVENTS[0], *fill(EVENTS[1:], 300)],
        "cgroup/memory.events": CGROUP.splitlines(),
    }
    for name, lines in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root
