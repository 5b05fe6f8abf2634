"""Bundles in which nothing died: health, saturation, refusals, faults without a victim, and nothing at all."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Scope

POD = "chat-6f9c7d5b8-x2k4p"


def verdict(w: Any) -> tuple[str, str]:
    found = w.diagnosis().verdict
    return (found.cause.id, str(found.confidence))


def test_a_run_at_work_is_healthy(b: ModuleType) -> None:
    """Ready and answering to the end of its log; how it went on is known where a status says that it runs."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    assert verdict(w) == ("healthy", "likely")
    scope = Scope(pod=b.POD)
    w.add("pods.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", scope, phase="Running", restart_count=0)
    assert verdict(w) == ("healthy", "established")


@pytest.mark.parametrize(
    ("name", "image", "cause"),
    [
        (POD, "", "insufficient_evidence"),
        ("calico-node-7xk2p", "", "healthy"),
        ("shop-7c9d5b8f6-aaaaa", "registry.local/shop:1", "healthy"),
    ],
    ids=["may be the engine", "the cluster's", "another service"],
)
def test_restarts_of_what_may_be_the_engine(b: ModuleType, name: str, image: str, cause: str) -> None:
    """A log names nobody; a table says that the only pod it may belong to was restarted five times."""
    w = b.World()
    w.start("vllm.log", 0)
    w.answer("vllm.log", 3600)
    scope = Scope(pod=name)
    w.add("pods.txt", None, f"pod {name} Running", "pod_status", "k8s", scope, phase="Running", restart_count=5)
    if image:
        w.pod("describe.txt", name=name, container="shop", image=image, args=(), gpus=None)
    assert verdict(w)[0] == cause


def test_restarts_beside_several_pods_are_nobodys(b: ModuleType) -> None:
    """Which of two pods wrote the log is not known: its health stays what the log shows, but is not established."""
    w = b.World()
    w.start("vllm.log", 0)
    w.answer("vllm.log", 3600)
    for name, count in (("chat-5d5d5d5d5d-aaaaa", 0), ("shop-5d5d5d5d5d-bbbbb", 5)):
        scope = Scope(pod=name)
        w.add("pods.txt", None, f"pod {name} Running", "pod_status", "k8s", scope, phase="Running", restart_count=count)
    assert verdict(w) == ("healthy", "likely")


def test_an_end_of_the_only_container_is_the_engines(b: ModuleType) -> None:
    """`docker inspect` says OOMKilled of the engine's image; its log only stops."""
    w = b.World()
    w.start("compose.log", 0)
    w.answer("compose.log", 3600)
    w.add("inspect.json", 3700, "container stack-vllm-1 exited: exit_code=137 oom_killed=true", "docker_state", "runtime",
          Scope(container="stack-vllm-1"), status="exited", exit_code=137, oom_killed=True,
          image="vllm/vllm-openai:v0.11.0")  # fmt: skip
    assert verdict(w)[0] == "host_oom.container_limit"


def test_the_last_word_of_a_log(b: ModuleType) -> None:
    """An exception behind which nothing comes ended the program, unless it is that of a request."""
    for frames, cause in ((("/opt/app/gateway.py:main",), "app_bug"), (("/x/starlette/routing.py:app",), "healthy")):
        w = b.World()
        w.start("a", 0)
        w.answer("a", 3600)
        w.fail("a", 3601, "KeyError: 'tenant_id'", frames, envelope="")
        assert verdict(w)[0] == cause


def test_nothing_says_nothing(b: ModuleType) -> None:
    """No event, or only talk that no parser knows."""
    w = b.World()
    assert verdict(w) == ("insufficient_evidence", "undetermined")
    w.add("notes.txt", None, "the service felt slow today", channel="plain", level="")
    assert verdict(w) == ("insufficient_evidence", "undetermined")


@pytest.mark.parametrize(
    ("full", "cause"), [(60, "kv_saturation"), (2, "healthy"), (0, "healthy")], ids=["full for long", "a moment", "never"]
)
def test_a_full_cache_without_a_death(b: ModuleType, full: int, cause: str) -> None:
    """A tenth of the time at the ceiling is saturation; a peak is not."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0 if i < full else 40.0) for i in range(200)], "a")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("full", "cause"), [(5, "kv_saturation"), (2, "insufficient_evidence")])
def test_scrapes_in_a_file_each_are_one_series(b: ModuleType, full: int, cause: str) -> None:
    """Somebody saved `/metrics` every minute; how full the cache was shows only in all files together."""
    w = b.World()
    for n in range(8):
        w.series("kv_cache_usage_pct", [(60.0 * n, 99.0 if n < full else 30.0)], f"metrics-{n}.txt")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("status", "count", "cause"), [(400, 12, "request_rejected"), (429, 12, "request_rejected"), (200, 12, "healthy")])
def test_refused_requests(b: ModuleType, status: int, count: int, cause: str) -> None:
    """4xx answers of a healthy service."""
    w = b.World()
    w.start("a", 0)
    for n in range(count):
        w.answer("a", 70 + n, status)
        w.answer("a", 70.5 + n)
    assert verdict(w)[0] == cause


def test_a_few_refusals_of_a_busy_server_are_daily_life(b: ModuleType) -> None:
    """Two in a thousand lines."""
    w = b.World()
    w.start("a", 0)
    for n in range(400):
        w.answer("a", 70 + n, 400 if n in (7, 9) else 200)
    assert verdict(w)[0] == "healthy"


def test_a_fault_line_without_its_victim(b: ModuleType) -> None:
    """Only the kernel log was saved: the GPU fell off the bus."""
    w = b.World()
    w.add("dmesg", 300, "NVRM: Xid (PCI:0000:3b:00): 79, pid=40122, name=VLLM::EngineCor, GPU has fallen off the bus.",
          "xid", "kernel", xid=79)  # fmt: skip
    assert verdict(w)[0] == "gpu_hardware"


def test_a_fault_that_everybody_survived_is_no_incident(b: ModuleType) -> None:
    """An error, and an hour of work after it."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80, envelope="")
    w.answer("a", 3600)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "healthy"
    assert "recovered" in {d.reason for d in diagnosis.decoys}


def test_a_kill_of_a_stranger_is_no_incident_of_ours(b: ModuleType) -> None:
    """A desktop process of another user is killed while the engine works on."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.kill("dmesg", 300, "user", uid="", cid="", comm="node", limit_kib=8 << 20)
    assert verdict(w)[0] == "healthy"


@pytest.mark.parametrize(("killed_s", "confidence"), [(300, "likely"), (3605, "possible")], ids=["outlived", "at the end"])
def test_a_server_may_run_under_any_name(b: ModuleType, killed_s: float, confidence: str) -> None:
    """The node has no memory left, and a process in nobody's cgroup is killed where the engine's log ends."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.kill("dmesg", killed_s, "node", uid="", cid="", comm="uvicorn", limit_kib=None)
    assert verdict(w) == ("healthy", confidence)


def test_an_unowned_log_that_ends_with_a_137_is_not_healthy(b: ModuleType) -> None:
    """The kubelet's journal tells of a 137 half a minute after the last line of the only engine log."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 300)
    known = Scope(pod=b.POD, pod_uid=b.UID, container_id=b.CID)
    w.add("kubelet.log", 330, "container c3a1 terminated: reason= exit_code=137", "container_terminated", "kubelet", known,
          exit_code=137)  # fmt: skip
    assert verdict(w) != ("healthy", "established")


def test_an_xid_of_another_program_is_no_cause(b: ModuleType) -> None:
    """A notebook reads out of range on another card; the engine dies of a KeyError a minute later."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.add("dmesg", 240, "NVRM: Xid (PCI:0000:ca:00): 13, pid=88110, name=jupyter-lab, Graphics SM Warp Exception on (GPC 3)",
          "xid", "kernel", Scope(gpu="0000:ca:00", pid=88110), xid=13, pid=88110, comm="jupyter-lab")  # fmt: skip
    w.fail("a", 300, "KeyError: 'chatcmpl-88'")
    assert verdict(w)[0] == "app_bug"


def test_an_orderly_stop_is_read_from_its_order(b: ModuleType) -> None:
    """What stopped the container comes first, not the readiness hours before; scaling up stops nobody."""
    w = b.World()
    scope = Scope(namespace="llm", pod=b.POD, container="vllm")
    w.start("a", 0, scope)
    w.answer("a", 3000, scope=scope)
    w.event("events", 3100, "ScalingReplicaSet", "Scaled up replica set chat-84b5d9c6f7 from 0 to 1")
    w.add("kubelet", 3200, '"Killing container with a grace period" pod="llm/' + b.POD + '" containerName="vllm" '
          f'containerID="containerd://{b.CID}" gracePeriod=60', channel="kubelet", scope=scope)  # fmt: skip
    w.add("a", 3200.2, "Shutting down FastAPI HTTP server.", scope=scope)
    w.exited("describe.txt", 3216.9, 143)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "healthy"
    assert diagnosis.first_cause is not None
    assert diagnosis.first_cause.locator.source == "kubelet"
    assert diagnosis.key_facts["drain_s"] == pytest.approx(16.9)


@pytest.mark.parametrize(("comm", "uid", "cause"), [
    ("java", "5d0c4a52-91be-4c33-8f0e-2b6d1f4a9c22", "healthy"),
    ("java", "", "healthy"),
])  # fmt: skip
def test_a_neighbours_kill_is_none_of_the_engine(b: ModuleType, comm: str, uid: str, cause: str) -> None:
    """Another pod's limit, seen by a kernel log whose clock is not tied to UTC; the engine works on, its pod runs."""
    w = b.World()
    scope = Scope(pod=b.POD, pod_uid=b.UID)
    w.start("a", 0, scope)
    w.answer("a", 3600, scope=scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.kill("dmesg", b.at(1800, 75_000), uid=uid, cid="", comm=comm, limit_kib=1_048_576)
    assert verdict(w)[0] == cause


def test_how_many_waited(b: ModuleType) -> None:
    """A full cache and its queue are one finding."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0) for i in range(60)], "a")
    w.series("requests_waiting", [(10.0 * i, 3.0 * i) for i in range(60)], "a", first_line=2_000_001)
    assert w.diagnosis().key_facts["requests_waiting"] == 177.0


@pytest.mark.parametrize(("at_s", "cause"), [(4000, "insufficient_evidence"), (2000, "healthy")], ids=["last", "outlived"])
def test_a_kill_that_nobody_vouches_for(b: ModuleType, at_s: float, cause: str) -> None:
    """The kernel's words in an engine's output prove no kill, but behind its last sign of life no health either."""
    w = b.World()
    w.start("a", 0)
    line = "[1204.883391] Memory cgroup out of memory: Killed process 77 (VLLM::EngineCor) total-vm:98kB, anon-rss:26kB"
    if at_s < 3600:
        w.add("a", at_s, line)
    w.answer("a", 3600)
    if at_s > 3600:
        w.add("a", at_s, line)
    assert verdict(w)[0] == cause
