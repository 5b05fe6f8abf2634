"""Bundles to measure with: made from a seed, so that every machine measures the same bytes.

A day of one vLLM pod whose GPU memory runs out in the end, with what a careful collector adds: the node's journal,
the cluster's events and a sample of every GPU each ten seconds. All names are invented.
"""

from __future__ import annotations

import io
import random
import tarfile
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from gzip import GzipFile
from pathlib import Path

import zstandard

START = datetime(2026, 11, 29, tzinfo=UTC)
DAY_S = 86_400
END_S = int(START.timestamp()) + DAY_S
POD = "vllm-llama-7c9d8f6b5d-x2x8q"
ROOT = Path(__file__).resolve().parents[2]

_WORDS = ["please", "summarise", "the", "quarterly", "report", "and", "list", "three", "risks", "with", "their", "owners", "then", "translate", "it", "into", "polite", "German", "explain", "how", "a", "heat", "pump", "works", "why", "does", "my", "build", "fail", "after", "the", "upgrade", "write", "a", "haiku", "about", "rain", "compare", "both", "offers"]
_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")
_KUBELET = (
    '"SyncLoop (PLEG): event for pod" pod="inference/{pod}"',
    '"Observed pod startup duration" pod="inference/{pod}" podStartSLOduration={n}',
    '"Volume mounted" volume="model-cache-{n}"',
)
_DEATH = """\
ERROR {at} [core.py:790] EngineCore encountered a fatal error.
ERROR {at} [core.py:790] Traceback (most recent call last):
ERROR {at} [core.py:790]   File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 781, in run_engine_core
ERROR {at} [core.py:790]     engine_core.run_busy_loop()
ERROR {at} [core.py:790]   File "/usr/lib/python3/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 2117, in execute_model
ERROR {at} [core.py:790]     hidden_states = self.model(input_ids, positions)
ERROR {at} [core.py:790] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity \
of 79.25 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 78.11 GiB memory in use. Of the \
allocated memory 74.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated."""
_BEGIN = """\
INFO {at} [api_server.py:1896] vLLM API server version 0.11.0
INFO {at} [utils.py:233] non-default args: {{'model': 'acme/llama-8b', 'max_model_len': 32768, 'gpu_memory_utilization': 0.95}}
INFO {at} [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 12.437612 seconds
INFO {at} [gpu_worker.py:298] Available KV cache memory: 52.11 GiB
INFO {at} [kv_cache_utils.py:1087] GPU KV cache size: 426,880 tokens
INFO {at} [gpu_model_runner.py:3480] Graph capturing finished in 21 secs, took 0.62 GiB
INFO {at} [launcher.py:42] Route: /health, Methods: GET
INFO:     Application startup complete."""
_TROUBLES = (
    "Error in preprocessing prompt inputs: ValueError: The decoder prompt (length {n}) is longer than {m}",
    "Exception in callback {w} {v}: TimeoutError: {w} did not answer within {n} s",
    "RuntimeError: request {n} of {w} was aborted by {v}",
    "Preempted sequence group {n} because there is not enough KV cache space",
)


def engine_log(
    size: int, rng: random.Random, troubled: float = 0.002, seconds: float = DAY_S
) -> Iterator[bytes]:
    """About `size` bytes of `kubectl logs --timestamps` of a serving pod, over one day, ending in a CUDA OOM.

    `troubled` is the share of lines that say something a signature may care for.
    """
    lines = max(size // 300, 100)
    prompts = [" ".join(rng.choices(_WORDS, k=rng.randint(12, 120))) for _ in range(2000)]
    ids = [f"chatcmpl-{rng.getrandbits(128):032x}" for _ in range(4096)]
    peers = [f"10.244.{rng.randint(0, 9)}.{rng.randint(2, 250)}:{rng.randint(32768, 60999)}" for _ in range(4096)]
    step = seconds / lines
    yield _stamped(_BEGIN, 0.0)
    made, number, second, at = 0, 0, -1, ""
    buffer: list[str] = []
    last_stats = -10
    while made < size:
        moment = number * step
        number += 1
        if int(moment) != second:
            second = int(moment)
            now = START + timedelta(seconds=second)
            at, outer = now.strftime("%m-%d %H:%M:%S"), now.strftime("%Y-%m-%dT%H:%M:%S")
        draw = rng.random()
        nine = f"{int(moment % 1 * 1e9):09d}"
        if draw < troubled:
            text = rng.choice(_TROUBLES).format(
                n=rng.randint(1, 99999), m=32768, w=rng.choice(_WORDS), v=rng.choice(_WORDS)
            )
            body = f"(APIServer pid=1) ERROR {at} [serving_chat.py:212] {text}"
        elif second - last_stats >= 10:
            last_stats = second
            body = (
                f"(APIServer pid=1) INFO {at} [loggers.py:127] Engine 000: Avg prompt throughput: {9000 * draw:.1f} "
                f"tokens/s, Avg generation throughput: {900 * draw:.1f} tokens/s, Running: {int(60 * draw)} reqs, Waiting: "
                f"{int(9 * draw)} reqs, GPU KV cache usage: {100 * draw:.1f}%, Prefix cache hit rate: {50 + 9 * draw:.1f}%"
            )
        elif draw < 0.55:
            peer = peers[int(draw * 1e7) % 4096]
            body = f'(APIServer pid=1) INFO:     {peer} - "POST {_PATHS[number % 3]} HTTP/1.1" 200 OK'
        elif draw < 0.65:
            body = f'(APIServer pid=1) INFO:     10.90.14.201:{40000 + number % 20000} - "GET /health HTTP/1.1" 200 OK'
        elif draw < 0.82:
            body = f"(APIServer pid=1) INFO {at} [async_llm.py:261] Added request {ids[number % 4096]}."
        else:
            body = (
                f"(APIServer pid=1) INFO {at} [logger.py:43] Received request {ids[number % 4096]}: prompt: "
                f"'{prompts[number % 2000]}', params: SamplingParams(n=1, temperature=0.7, top_p=0.95, seed=None, stop=[], "
                f"max_tokens={256 + number % 512}, ignore_eos=False), prompt_token_ids: None, lora_request: None."
            )
        line = f"{outer}.{nine}Z {body}\n"
        made += len(line)
        buffer.append(line)
        if len(buffer) >= 8192:
            yield "".join(buffer).encode()
            buffer.clear()
    yield "".join(buffer).encode()
    yield _stamped(_DEATH, seconds - 1.0, "(EngineCore_DP0 pid=117) ")


def _stamped(text: str, second: float, prefix: str = "(APIServer pid=1) ") -> bytes:
    now = START + timedelta(seconds=second)
    outer = now.strftime("%Y-%m-%dT%H:%M:%S")
    lines = text.format(at=now.strftime("%m-%d %H:%M:%S")).split("\n")
    return "".join(f"{outer}.{i:09d}Z {prefix}{line}\n" for i, line in enumerate(lines)).encode()


def journal(size: int, rng: random.Random) -> Iterator[bytes]:
    """`journalctl -o short-iso` of the node: kubelet, containerd, systemd, sshd, kernel."""
    step = DAY_S / max(size // 150, 1)
    made, number = 0, 0
    while made < size:
        lines = []
        for _ in range(4096):
            at = (START + timedelta(seconds=number * step)).strftime("%Y-%m-%dT%H:%M:%S+0000")
            number += 1
            klog = f"I1129 {at[11:19]}.{number % 1000000:06d}    1733 kubelet.go:2453]"
            text = (
                f"kubelet[1733]: {klog} {rng.choice(_KUBELET).format(pod=POD, n=number)}",
                f'containerd[1502]: time="{at}" level=info msg="RemoveContainer for \\"{rng.getrandbits(64):016x}\\""',
                f"systemd[1]: Started session-{number}.scope - Session {number} of User ops.",
                f"sshd[{number % 32768}]: Connection closed by 10.0.0.{number % 250} port {number % 60000}",
                f"kernel: [UFW BLOCK] IN=eth0 OUT= SRC=10.0.{number % 250}.7 DST=10.0.0.1 LEN=60 PROTO=TCP",
            )[rng.choices((0, 1, 2, 3, 4), (60, 15, 10, 10, 5))[0]]
            lines.append(f"{at} gpu-node-7 {text}\n")
        block = "".join(lines).encode()
        made += len(block)
        yield block


def events(count: int, rng: random.Random) -> Iterator[bytes]:
    """`kubectl get events -A`."""
    yield f"{'NAMESPACE':<14}{'LAST SEEN':<12}{'TYPE':<10}{'REASON':<18}{'OBJECT':<45}MESSAGE\n".encode()
    kinds = (
        ("Normal", "Pulled", 'Container image "acme/vllm:0.11.0" already present on machine'),
        ("Warning", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
        ("Normal", "Scheduled", f"Successfully assigned inference/{POD} to gpu-node-7"),
        ("Warning", "BackOff", f"Back-off restarting failed container vllm in pod {POD}"),
    )
    for _ in range(count):
        kind, reason, message = rng.choice(kinds)
        age = f"{rng.randint(1, 59)}m"
        yield f"{'inference':<14}{age:<12}{kind:<10}{reason:<18}{'pod/' + POD:<45}{message}\n".encode()


def gpu_samples(rows: int, rng: random.Random) -> Iterator[bytes]:
    """`nvidia-smi --query-gpu=… --format=csv -l 10` of eight GPUs over the day."""
    yield b"timestamp, index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB], utilization.gpu [%]\n"
    step = DAY_S / max(rows // 8, 1)
    for tick in range(rows // 8):
        at = (START + timedelta(seconds=tick * step)).strftime("%Y/%m/%d %H:%M:%S.000")
        for gpu in range(8):
            used = 76_000 + rng.randint(0, 900)
            yield (
                f"{at}, {gpu}, NVIDIA H100 80GB HBM3, 81559 MiB, {used} MiB, {81559 - used} MiB, "
                f"{rng.randint(0, 100)} %\n"
            ).encode()


def all_signatures(size: int, rng: random.Random) -> Iterator[bytes]:
    """An engine log in which every tenth line is an example of some signature, so that all anchors hit."""
    examples = []
    for path in sorted((ROOT / "patterns").glob("*/*.toml")):
        for example in tomllib.loads(path.read_text(encoding="utf-8")).get("examples", ()):
            if example["match"] is not False:
                examples.append(" ".join(example["text"].split("\n")))
    number = 0
    for block in engine_log(size, rng, troubled=0.0):
        lines = block.split(b"\n")
        for index in range(9, len(lines) - 1, 10):
            stamp = lines[index][:31] + b"(EngineCore_DP0 pid=117) ERROR " + lines[index][5:10] + b" "
            text = examples[number % len(examples)]
            lines[index] = stamp + lines[index][11:19] + b" [core.py:790] " + text.encode()
            number += 1
        yield b"\n".join(lines)


def day(folder: Path, size: int) -> Path:
    """The ordinary bundle: one big engine log, the rest in proportion, at most a day of samples."""
    rng = random.Random(size)
    share = min(1.0, size / 1e9)
    _write(folder / f"pods/{POD}/vllm.log", engine_log(int(size * 0.95), rng))
    _write(folder / "node/journal.txt", journal(int(size * 0.04), rng))
    _write(folder / "k8s/events.txt", events(max(int(4000 * share), 100), rng))
    _write(folder / "node/nvidia-smi.csv", gpu_samples(max(int(69_120 * share), 4000), rng))
    return folder


def noisy(folder: Path, size: int) -> Path:
    """Half of the lines are candidates."""
    _write(folder / "vllm.log", engine_log(size, random.Random(50), troubled=0.5))
    return folder


def signatures(folder: Path, size: int) -> Path:
    """All signatures hit."""
    _write(folder / "vllm.log", all_signatures(size, random.Random(300)))
    return folder


def small_files(folder: Path, count: int) -> Path:
    """Many small files, as a support bundle of a cluster has them: pieces of logs, cgroup files, JSON."""
    rng = random.Random(count)
    log = b"".join(engine_log(4_000_000, rng, seconds=600)).split(b"\n")
    for number in range(count):
        place = folder / f"ns-{number // 1000:03d}"
        if number % 10 == 0:
            _write(place / f"pod-{number}/memory.events", [b"low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n"])
        elif number % 10 == 1:
            body = f'{{"kind": "ConfigMap", "metadata": {{"name": "settings-{number}"}}, "data": {{"a": "1"}}}}\n'
            _write(place / f"settings-{number}.json", [body.encode()])
        else:
            first = rng.randrange(len(log) - 12)
            _write(place / f"pod-{number}/vllm.log", [b"\n".join(log[first : first + 8]) + b"\n"])
    return folder


def tar_gz(folder: Path) -> Path:
    """The folder as `tar -czf` packs it (gzip level 6)."""
    target = folder.with_name(folder.name + ".tar.gz")
    with target.open("wb") as file, GzipFile("", "wb", 6, file, mtime=0) as packed:
        _tar(folder, packed)
    return target


def tar_zst(folder: Path) -> Path:
    """The folder as `tar --zstd -cf` packs it (level 3)."""
    target = folder.with_name(folder.name + ".tar.zst")
    with target.open("wb") as file, zstandard.ZstdCompressor(3).stream_writer(file) as packed:
        _tar(folder, packed)
    return target


def _tar(folder: Path, packed: io.BufferedIOBase) -> None:
    with tarfile.open(fileobj=packed, mode="w|", bufsize=1 << 20) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, f"{folder.name}/{path.relative_to(folder).as_posix()}")
            info.mtime, info.uid, info.gid, info.uname, info.gname = END_S, 0, 0, "root", "root"
            if path.is_file():
                with path.open("rb") as content:
                    tar.addfile(info, content)


def _write(path: Path, blocks: Iterator[bytes] | list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)
