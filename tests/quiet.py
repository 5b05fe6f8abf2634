"""Healthy log lines by the thousand: made from a seed, in the true shape of each source, full of innocent "oom" words.

`lines(source, count)` gives the same lines for the same arguments. Incidents do not belong here: no failed probes, no
back-off, no signals. What looks like an incident is only talk: prompts that quote errors, options and file names,
hints of healthy start-ups, transaction ids of databases.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2026, 3, 17, 4, 0, 0, tzinfo=UTC)
HOST = "gpu-node-7"

_WORDS = (
    "oom", "oom-notes.md", "CUDA out of memory", "OOMKilled", "exit code 137", "Killed process", "No space left",
    "NCCL", "Xid 79", "SIGKILL", "evicted", "deadline exceeded", "illegal memory access", "bus error",
)  # fmt: skip
_PROMPTS = (
    "Explain this line: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "What does 'Out of memory: Killed process 4711 (python3)' mean?",
    "Translate: No available memory for the cache blocks.",
    "My pod says OOMKilled, exit code 137. Write a haiku about it.",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null) - who wrote this?",
    "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. Is my GPU broken?",
    "EngineCore encountered a fatal error. What now?",
    "Liveness probe failed: HTTP probe failed with statuscode: 503",
)
_ROUTES = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize")


class _Clock:
    """Steps forward by a random time at each call."""

    def __init__(self, rng: Random, mean_s: float) -> None:
        self._rng, self._mean, self._now = rng, mean_s, START

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=self._rng.uniform(0.1, 1.9) * self._mean)
        return self._now


def lines(source: str, count: int, seed: int = 0) -> Iterator[str]:
    """`count` lines of `source`, one of `SOURCES`; without line ends."""
    rng = Random(zlib.crc32(f"{source}/{seed}".encode()))
    make, mean_s = SOURCES[source]
    clock = _Clock(rng, mean_s)
    for _ in range(count):
        yield make(rng, clock())


def _hex(rng: Random, size: int) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in range(size))


def _pod(rng: Random) -> str:
    app = rng.choice(("vllm-llama", "oom-exporter", "embedder", "postgres", "xid-watch", "node-exporter"))
    return f"{app}-{_hex(rng, 9)}-{''.join(rng.choice('bcdfghjklmnpqrstvwxz2456789') for _ in range(5))}"


def _stats(rng: Random) -> str:
    run = rng.randint(0, 40)
    return (
        f"Avg prompt throughput: {run * rng.uniform(50, 150):.1f} tokens/s, Avg generation throughput: "
        f"{run * rng.uniform(20, 40):.1f} tokens/s, Running: {run} reqs, "
    )


def _engine(rng: Random, now: datetime) -> str:
    """vLLM 0.11 (V1): statistics, requests, start-up notes."""
    api, core = "\x1b[1;36m(APIServer pid=1)\x1b[0;0m ", "\x1b[1;36m(EngineCore_DP0 pid=142)\x1b[0;0m "
    head = f"INFO {now:%m-%d %H:%M:%S} "
    kind = rng.random()
    if kind < 0.5:
        return (
            f"{api}{head}[loggers.py:127] Engine 000: {_stats(rng)}Waiting: {rng.randint(0, 2)} reqs, "
            f"GPU KV cache usage: {rng.uniform(1, 70):.1f}%, Prefix cache hit rate: {rng.uniform(0, 60):.1f}%"
        )
    if kind < 0.75:
        return (
            f"{api}{head}[logger.py:40] Received request chatcmpl-{_hex(rng, 32)}: prompt: "
            f"{rng.choice(_PROMPTS)!r}, params: SamplingParams(n=1, temperature=0.7, max_tokens=512), "
            "prompt_token_ids: None, lora_request: None."
        )
    if kind < 0.85:
        return f"{api}{head}[async_llm.py:254] Added request chatcmpl-{_hex(rng, 32)}."
    return rng.choice((
        f"{core}{head}[gpu_worker.py:298] Available KV cache memory: {rng.uniform(3, 60):.2f} GiB",
        f"{core}{head}[kv_cache_utils.py:1087] GPU KV cache size: {rng.randint(20, 900):,},{rng.randint(100, 999)} tokens",
        f"{core}{head}[gpu_model_runner.py:2653] Model loading took {rng.uniform(5, 70):.4f} GiB and 31.204100 seconds",
        f"{core}{head}[gpu_model_runner.py:3480] Graph capturing finished in {rng.randint(8, 30)} secs, took 0.61 GiB",
        f"{core}{head}[default_loader.py:267] Loading weights took {rng.uniform(4, 90):.2f} seconds",
        f"{api}{head}[utils.py:233] non-default args: {{'model': '/models/oom-tuned-8b', 'served_model_name': ['oom']}}",
    ))  # fmt: skip


def _engine_v0(rng: Random, now: datetime) -> str:
    """vLLM 0.6 (V0): no bracket before the file name, hints that mention running out of memory."""
    head = f"INFO {now:%m-%d %H:%M:%S} "
    if rng.random() < 0.8:
        return (
            f"{head}metrics.py:345] {_stats(rng)}Swapped: 0 reqs, Pending: {rng.randint(0, 3)} reqs, "
            f"GPU KV cache usage: {rng.uniform(1, 60):.1f}%, CPU KV cache usage: 0.0%."
        )
    return head + rng.choice((
        "model_runner.py:1406] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of "
        "memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.",
        "model_runner.py:1530] Graph capturing finished in 12 secs.",
        "model_runner.py:1071] Loading model weights took 14.9888 GB",
        f"gpu_executor.py:122] # GPU blocks: {rng.randint(900, 40000)}, # CPU blocks: 2048",
        f"logger.py:37] Received request chat-{_hex(rng, 32)}: prompt: {rng.choice(_PROMPTS)!r}, params: SamplingParams(n=1)",
    ))  # fmt: skip


def _uvicorn(rng: Random, now: datetime) -> str:
    """Access lines of the API server, successful ones; health checks; the names of files that clients ask for."""
    client = f"10.42.{rng.randint(0, 9)}.{rng.randint(2, 250)}:{rng.randint(32768, 60999)}"
    if rng.random() < 0.7:
        return f'INFO:     {client} - "POST {rng.choice(_ROUTES)} HTTP/1.1" 200 OK'
    path = rng.choice(("/health", "/metrics", "/v1/models", "/static/oom-killer.png", "/docs/exit-code-137.html"))
    return f'INFO:     {client} - "GET {path} HTTP/1.1" 200 OK'


def _short(now: datetime, identifier: str, pid: int | None, message: str) -> str:
    return f"{now:%b %d %H:%M:%S} {HOST} {identifier}{f'[{pid}]' if pid else ''}: {message}"


def _journal(rng: Random, now: datetime) -> str:
    """journalctl, short: system services, sessions, cron, and units that have "oom" in their names."""
    pid = rng.randint(700, 900000)
    return rng.choice((
        _short(now, "systemd", 1, f"Started session-{rng.randint(1, 9999)}.scope - Session {rng.randint(1, 99)} of User ops."),
        _short(now, "systemd", 1, "Starting oom-report.service - Weekly report about memory..."),
        _short(now, "systemd", 1, "oom-report.service: Deactivated successfully."),
        _short(now, "systemd", 1, "Finished oom-report.service - Weekly report about memory."),
        _short(now, "systemd", 1, "Started systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer."),
        _short(now, "systemd", 1, "Starting fstrim.service - Discard unused blocks on filesystems..."),
        _short(now, "CRON", pid, "(root) CMD (/usr/local/bin/oom-score-check --quiet)"),
        _short(now, "sshd", pid, f"Accepted publickey for ops from 10.9.8.{rng.randint(2, 250)} port {rng.randint(1024, 65000)} ssh2"),
        _short(now, "sudo", pid, "ops : TTY=pts/1 ; PWD=/home/ops ; USER=root ; COMMAND=/usr/bin/dmesg --grep oom-kill"),
        _short(now, "chronyd", 911, f"Selected source 10.9.0.{rng.randint(2, 9)}"),
        _short(now, "earlyoom", 690, f"mem avail: {rng.randint(90000, 250000)} of 257712 MiB (61.20%), swap free:    0 of    0 MiB ( 0.00%)"),
        _short(now, "dockerd", 1022, 'level=info msg="Config reloaded: {\\"oom-score-adjust\\":-500}"'),
        _short(now, "logrotate", pid, f"rotating /var/log/oom/{rng.choice(('oom', 'xid', 'sigkill'))}.log"),
    ))  # fmt: skip


def _dmesg(rng: Random, now: datetime) -> str:
    """Kernel lines with boot seconds: network, audit, perf, NVIDIA driver at work."""
    stamp = f"[{(now - START).total_seconds() + 4000:12.6f}] "
    return stamp + rng.choice((
        f"IPv6: ADDRCONF(NETDEV_CHANGE): cali{_hex(rng, 11)}: link becomes ready",
        f"eth0: renamed from tmp{_hex(rng, 5)}",
        f"perf: interrupt took too long ({rng.randint(2500, 4000)} > 2500), lowering kernel.perf_event_max_sample_rate to 63750",
        f"audit: type=1400 audit({now.timestamp():.3f}:{rng.randint(100, 9000)}): apparmor=\"STATUS\" "
        f"operation=\"profile_replace\" name=\"oom-guard\" pid={rng.randint(1000, 90000)} comm=\"apparmor_parser\"",
        f"cgroup: fork accepted in /kubepods.slice/kubepods-burstable.slice/oom-{_hex(rng, 6)}",
        "nvidia-uvm: Loaded the UVM driver, major device number 236.",
        "OOM killer disabled.", "OOM killer enabled.",
        f"EXT4-fs (nvme{rng.randint(0, 3)}n1): mounted filesystem with ordered data mode. Quota mode: none.",
        f"TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:{rng.randint(8000, 9999)}. Sending cookies.",
    ))  # fmt: skip


def _klog(now: datetime, place: str, message: str) -> str:
    return f"I{now:%m%d %H:%M:%S}.{now.microsecond:06d}    1184 {place}] {message}"


def _kubelet(rng: Random, now: datetime) -> str:
    """klog lines of a kubelet that has nothing to complain about."""
    pod, uid = _pod(rng), "-".join(_hex(rng, n) for n in (8, 4, 4, 4, 12))
    return rng.choice((
        _klog(now, "kubelet.go:2431", f'"SyncLoop UPDATE" source="api" pods=["prod/{pod}"]'),
        _klog(now, "kubelet.go:2453", f'"SyncLoop (PLEG): event for pod" pod="prod/{pod}" event={{"ID":"{uid}",'
                                      f'"Type":"ContainerStarted","Data":"{_hex(rng, 64)}"}}'),
        _klog(now, "kubelet.go:2537", f'"SyncLoop (probe)" probe="readiness" status="ready" pod="prod/{pod}"'),
        _klog(now, "kubelet.go:2537", f'"SyncLoop (probe)" probe="startup" status="started" pod="prod/{pod}"'),
        _klog(now, "pod_startup_latency_tracker.go:104", f'"Observed pod startup duration" pod="prod/{pod}" podStartSLOduration=3.2'),
        _klog(now, "reconciler_common.go:245", '"operationExecutor.VerifyControllerAttachedVolume started for volume '
                                               f'\\"oom-dumps\\" (UniqueName: \\"kubernetes.io/empty-dir/{uid}-oom-dumps\\")" pod="prod/{pod}"'),
        _klog(now, "flags.go:64", 'FLAG: --oom-score-adj="-999"'),
        _klog(now, "container_manager_linux.go:301", '"Creating device plugin manager"'),
        _klog(now, "kubelet_node_status.go:724", f'"Recording event message for node" node="{HOST}" event="NodeHasSufficientMemory"'),
    ))  # fmt: skip


def _containerd(rng: Random, now: datetime) -> str:
    """containerd in the journal: sandboxes, images, starts."""
    cid = _hex(rng, 64)
    message = rng.choice((
        f'StartContainer for \\"{cid}\\" returns successfully',
        f'CreateContainer within sandbox \\"{cid}\\" for container &ContainerMetadata{{Name:oom-exporter,Attempt:0,}}',
        f'RunPodSandbox for &PodSandboxMetadata{{Name:{_pod(rng)},Namespace:prod,Attempt:0,}} returns sandbox id \\"{cid}\\"',
        'ImageUpdate event name:\\"registry.example.org/oom-exporter:1.4\\"  labels:{key:\\"io.cri-containerd.image\\"  value:\\"managed\\"}',
        'Start cri plugin with config {\\"oomScoreAdj\\":0,\\"restrictOOMScoreAdj\\":false}',
    ))  # fmt: skip
    return _short(now, "containerd", 1090, f'time="{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond:06d}123Z" level=info msg="{message}"')


def _ray(rng: Random, now: datetime) -> str:
    """raylet.out of a quiet node, with the sentences that mention the OOM killer in passing."""
    head = f"[{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} I 4762 4798] (raylet) "
    return head + rng.choice((
        f"node_manager.cc:{rng.randint(500, 600)}: [state-dump] NodeManager:",
        "object_store.cc:37: Object store current usage 8e-09 / 18.6 GB.",
        "threshold_memory_monitor.cc:53: ThresholdMemoryMonitor initialized with usage threshold at 128849018880 bytes "
        "(95.000000% of system memory), total system memory bytes: 135630546944, monitor interval: 250ms",
        f"worker_pool.cc:729: Job 01000000 already started in worker pool. worker_id={_hex(rng, 56)}",
        f"local_object_manager.cc:{rng.randint(100, 400)}: Restored 0 MiB, 0 objects, read throughput 0 MiB/s",
        "main.cc:230: Setting cluster ID, oom_retries=infinite, task_oom_retries=-1",
    ))  # fmt: skip


def _postgres(rng: Random, now: datetime) -> str:
    """A database on the same host: its "xid" are transactions."""
    stamp = f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} UTC [{rng.randint(100, 9000)}] "
    return stamp + rng.choice((
        f"LOG:  automatic vacuum of table \"shop.public.orders\": removable cutoff: {rng.randint(10**6, 10**9)}, "
        f"which was 3 XIDs old when operation ended",
        f"LOG:  oldest xmin is far in the past: xid {rng.randint(10**6, 10**9)}",
        f"LOG:  checkpoint complete: wrote {rng.randint(10, 9000)} buffers (0.2%); 0 WAL file(s) added",
        f"STATEMENT:  SELECT * FROM incidents WHERE title LIKE '%{rng.choice(_WORDS)}%'",
        f"LOG:  duration: {rng.uniform(1, 900):.3f} ms  execute: SELECT txid_current() -- xid for {rng.choice(_WORDS)}",
    ))  # fmt: skip


def _application(rng: Random, now: datetime) -> str:
    """A Python service that talks about errors at INFO: tickets, chats, file names."""
    word = rng.choice(_WORDS)
    return f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} INFO " + rng.choice((
        f"ticket.router: new ticket {rng.randint(1000, 9999)}, title={word!r}, queue=support",
        f"rag.indexer: indexed docs/runbooks/{rng.choice(('oom', 'xid-79', 'exit-137', 'evicted'))}.md ({rng.randint(3, 90)} chunks)",
        f"chat.gateway: user='{rng.choice(_PROMPTS)}' tokens={rng.randint(10, 900)}",
        f"scheduler: job oom-simulation-{rng.randint(1, 99)} finished, status=0",
        f"search: query={word!r} hits={rng.randint(0, 500)} took={rng.randint(1, 90)}ms",
    ))  # fmt: skip


SOURCES: dict[str, tuple[Callable[[Random, datetime], str], float]] = {
    "engine": (_engine, 3.0),
    "engine_v0": (_engine_v0, 5.0),
    "uvicorn": (_uvicorn, 0.5),
    "journal": (_journal, 20.0),
    "dmesg": (_dmesg, 60.0),
    "kubelet": (_kubelet, 8.0),
    "containerd": (_containerd, 15.0),
    "ray": (_ray, 10.0),
    "postgres": (_postgres, 2.0),
    "application": (_application, 1.0),
}
"""Source → (maker of a line, mean seconds between lines)."""
