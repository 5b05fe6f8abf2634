"""A hand-built bundle: what sources would say, as events, so that a test of the diagnosis needs no files.

Messages are texts in the true shape and go through the real signature library; clocks, parsers and scan are left out.
All times are seconds after `T0`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from forensics import pipeline
from forensics.diagnosis import Diagnosis, diagnose
from forensics.diagnosis.case import Case
from forensics.diagnosis.decide import build_case
from forensics.model import Basis, Event, Finding, Locator, Samples, Scope, Source, StampForm, Timestamp
from forensics.signatures import Library, Matcher

T0 = 1_778_572_800.0
"""2026-05-12 08:00:00 UTC."""
UID = "7d0c4a52-91be-4c33-8f0e-2b6d1f4a9c11"
CID = "c3a1" * 16
POD = "chat-6f9c7d5b8-x2k4p"
NOBODY = Scope()
SITE = "/usr/local/lib/python3.12/dist-packages/vllm/v1"
SERVING = (f"{SITE}/engine/core.py:run_busy_loop", f"{SITE}/worker/gpu_model_runner.py:execute_model")
LOADING = (f"{SITE}/worker/gpu_model_runner.py:load_model", f"{SITE}/layers/linear.py:create_weights")


@cache
def library() -> Library:
    return pipeline.load_library()


@cache
def _matcher() -> Matcher:
    return Matcher(library())


def at(seconds: float | None, uncertainty_s: float = 0.001, basis: Basis = Basis.EXACT) -> Timestamp:
    """A moment after `T0`; none is an unknown time."""
    if seconds is None:
        return Timestamp(None, float("inf"), Basis.FILE_ORDER)
    return Timestamp(T0 + seconds, uncertainty_s, basis)


def oom_text(
    requested: str = "2.40 GiB",
    total: str = "79.15 GiB",
    free: str = "402.00 MiB",
    allocated: str = "76.02 GiB",
    unallocated: str = "210.00 MiB",
    processes: str = "Including non-PyTorch memory, this process has 78.61 GiB memory in use. ",
) -> str:
    """The allocator's message of torch ≥ 2.4."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of"
        f" {total} of which {free} is free. {processes}Of the allocated memory {allocated} is allocated by PyTorch, and"
        f" {unallocated} is reserved by PyTorch but unallocated."
    )


@dataclass
class World:
    """A bundle under construction. Methods return the event they add; lines count per source."""

    events: list[Event] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        source: str,
        seconds: float | Timestamp | None,
        text: str,
        kind: str = "log",
        channel: str = "engine",
        scope: Scope = NOBODY,
        level: str = "INFO",
        line: int | None = None,
        **fields: Any,
    ) -> Event:
        number = line or self.lines.get(source, 0) + 1
        self.lines[source] = max(number, self.lines.get(source, 0))
        time = seconds if isinstance(seconds, Timestamp) else at(seconds)
        event = Event(
            Locator(source, number, number), kind, channel, text, scope=scope, fields=fields, level=level, raw=text,
            time=time,
        )  # fmt: skip
        self.events.append(event)
        return event

    def start(
        self, source: str, seconds: float, scope: Scope = NOBODY, ready: bool = True, loaded: bool = True, **args: Any
    ) -> None:
        """An engine starts: banner at once, weights after 20 s, ready after 60 s."""

        def say(after: float, text: str, kind: str = "log", **fields: Any) -> None:
            self.add(source, seconds + after, text, kind, scope=scope, **fields)

        say(0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0")
        say(0.1, "non-default args: {}", "engine_args", **args)
        say(5, "Starting to load model acme/chat-14b...")
        if not loaded:
            return
        say(25, "Model loading took 27.6000 GiB and 20.100000 seconds")
        say(35, "Available KV cache memory: 30.20 GiB")
        say(36, "GPU KV cache size: 164,912 tokens")
        if ready:
            say(59, "Starting vLLM API server 0 on http://0.0.0.0:8000")
            say(60, "Application startup complete.")

    def answer(self, source: str, seconds: float, status: int = 200, scope: Scope = NOBODY) -> Event:
        text = f'10.42.0.7:40122 - "POST /v1/chat/completions HTTP/1.1" {status}'
        fields = {"method": "POST", "path": "/v1/chat/completions", "status": status}
        return self.add(source, seconds, text, "access", scope=scope, **fields)

    def fail(
        self,
        source: str,
        seconds: float,
        text: str | None = None,
        frames: Sequence[str] = SERVING,
        scope: Scope = NOBODY,
        envelope: str = "EngineCore encountered a fatal error.",
        **fields: Any,
    ) -> Event:
        """The engine's fatal error and its traceback; by default a CUDA OOM while serving."""
        if envelope:
            self.add(source, seconds, envelope, scope=scope, level="ERROR")
        text = text or oom_text()
        exception = text.partition(":")[0]
        return self.add(
            source, seconds, text, "traceback", scope=scope, level="ERROR", exception=exception, frames=tuple(frames),
            chained=False, **fields,
        )  # fmt: skip

    def kill(
        self,
        source: str,
        seconds: float | Timestamp,
        oom_scope: str = "container",
        uid: str = UID,
        cid: str = CID,
        comm: str = "VLLM::EngineCor",
        limit_kib: int | None = 67_108_864,
        pid: int = 40122,
        host: str = "",
        **fields: Any,
    ) -> Event:
        """The kernel kills a process at the limit of `oom_scope`; uid and cid are the victim's, where it has any."""
        prefix = "Out of memory" if oom_scope == "node" else "Memory cgroup out of memory"
        text = f"{prefix}: Killed process {pid} ({comm}) total-vm:1kB, anon-rss:60000000kB, file-rss:1kB, shmem-rss:4kB"
        return self.add(
            source, seconds, text, "kernel_oom", "kernel", Scope(host=host, pod_uid=uid, container_id=cid, pid=pid),
            oom_scope=oom_scope, victim_pid=pid, victim_comm=comm, victim_anon_rss_kib=60_000_000,
            victim_file_rss_kib=1, victim_shmem_rss_kib=4, global_oom=oom_scope == "node",
            **({"memcg_limit_kib": limit_kib} if limit_kib is not None else {}), **fields,
        )  # fmt: skip

    def pod(self, source: str = "describe.txt", name: str = POD, container: str = "vllm", **fields: Any) -> Event:
        """The spec of a pod's container."""
        spec = {"image": "vllm/vllm-openai:v0.11.0", "args": ("--model", "acme/chat-14b"), "gpus": 1, **fields}
        spec = {key: value for key, value in spec.items() if value is not None}
        text = f"pod {name} container {container} spec"
        return self.add(source, None, text, "pod_spec", "k8s", Scope(pod=name, container=container), **spec)

    def exited(
        self,
        source: str,
        seconds: float | Timestamp,
        code: int,
        reason: str = "Error",
        name: str = POD,
        container: str = "vllm",
        started: float | None = None,
        **fields: Any,
    ) -> Event:
        moment = seconds.utc_s if isinstance(seconds, Timestamp) else T0 + seconds
        stamps = {"finished_s": moment} | ({"started_s": T0 + started} if started is not None else {})
        text = f"container {container} terminated: reason={reason} exit_code={code}"
        scope = Scope(namespace="llm", pod=name, container=container)
        return self.add(
            source, seconds, text, "container_terminated", "k8s", scope, reason=reason, exit_code=code, **stamps, **fields
        )

    def event(
        self, source: str, seconds: float | Timestamp, reason: str, message: str, name: str = POD, **fields: Any
    ) -> Event:
        scope = Scope(namespace="llm", pod=name, container="vllm")
        return self.add(source, seconds, f"{reason}: {message}", "k8s_event", "k8s", scope, reason=reason, **fields)

    def probe_kill(self, source: str, seconds: float | Timestamp, probe: str = "liveness", name: str = POD) -> Event:
        return self.event(source, seconds, "Killing", f"Container vllm failed {probe} probe, will be restarted", name)

    def series(
        self,
        name: str,
        points: Iterable[tuple[float, float]],
        source: str = "metrics.csv",
        scope: Scope = NOBODY,
        first_line: int = 1_000_001,
    ) -> Samples:
        """A series; its lines lie behind all others of its source unless a test is about their order."""
        rows = list(points)
        lines = array("q", range(first_line, first_line + len(rows)))
        stamps = array("d", [T0 + t for t, _ in rows])
        values = array("d", [v for _, v in rows])
        samples = Samples(name, source, scope, StampForm.INSTANT, "engine", lines, stamps, values)
        self.samples.append(samples)
        return samples

    def ordered(self) -> list[Event]:
        """In timeline order: by time, then by place; what has no time comes last."""
        unknown = float("inf")
        return sorted(
            self.events,
            key=lambda e: (unknown if e.time.utc_s is None else e.time.utc_s, e.locator.source, e.locator.line),
        )

    def findings(self) -> list[Finding]:
        return list(pipeline.find(_matcher(), self.ordered()))

    def sources(self, padding: int = 20) -> list[Source]:
        names = {*self.lines, *(s.source for s in self.samples)}
        return [
            Source(name, "log", "log", 1, "0" * 64, self.lines.get(name, 0) + padding, Scope(), None, None)
            for name in sorted(names)
        ]

    def case(self) -> Case:
        return build_case(self.sources(), self.ordered(), self.samples, self.findings(), library())

    def diagnosis(self, padding: int = 20) -> Diagnosis:
        """`padding` lines are added to each source: how much was seen caps the confidence."""
        return diagnose(self.sources(padding), self.ordered(), self.samples, self.findings(), library())


def names(findings: Iterable[Finding]) -> set[str]:
    """Ids of findings, without `derived.`."""
    return {f.signature.removeprefix("derived.") for f in findings}


def moved(event: Event, **changes: Any) -> Event:
    return replace(event, **changes)
