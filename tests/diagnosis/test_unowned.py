"""Trouble whose owner nothing names, or another's: it is no end of an engine that ended otherwise, or not at all."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Scope

OTHER_UID = "5d0c4a52-91be-4c33-8f0e-2b6d1f4a9c22"
OPEN_ZONE_S = 50_400.0
XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid=77120, name={}, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS faulted"


def verdict(w: Any) -> tuple[str, str]:
    found = w.diagnosis().verdict
    return (found.cause.id, str(found.confidence))


def somebodys_kill(w: Any, when: Any, comm: str = "python3") -> None:
    """The kernel's last line of a kill at some limit; those above it, with the cgroup, are gone."""
    w.kill("dmesg", when, "", uid="", cid="", comm=comm, limit_kib=None)


def saturated(b: ModuleType, w: Any, scope: Scope) -> None:
    w.start("a", 0, scope)
    w.answer("a", 3600, scope=scope)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0) for i in range(60)], "a", scope)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("fault", ("gpu_oom.runtime_load", "likely")),
        ("silence", ("host_oom.container_limit", "possible")),
        ("stop", ("healthy", "likely")),
    ],
)
@pytest.mark.parametrize("zone_open", [True, False], ids=["yearless", "undated"])
def test_a_kill_of_open_time(b: ModuleType, said: str, expected: tuple[str, str], zone_open: bool) -> None:
    """Where nothing says when, it may have ended a run that fell silent; not one that tells of its own end."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 600)
    if said == "fault":
        w.fail("a", 601)
    elif said == "silence":
        w.add("a", 601, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    else:
        w.add("a", 601, "Shutting down FastAPI HTTP server.")
        w.add("a", 602, "Application shutdown complete.")
    somebodys_kill(w, b.at(-29_000, OPEN_ZONE_S) if zone_open else b.at(None))
    found = verdict(w)
    assert found[0] == expected[0]
    assert said != "silence" or found == expected


@pytest.mark.parametrize(
    ("killed_s", "cause"), [(-29_000.0, "insufficient_evidence"), (598.0, "host_oom.container_limit")]
)
def test_a_kill_hours_before_an_end_that_nothing_explains(b: ModuleType, killed_s: float, cause: str) -> None:
    """The pod ended with 137; eight hours before, the node killed some Python. A kill of that moment may be its."""
    w = b.World()
    w.pod()
    w.exited("describe.txt", 600, 137)
    somebodys_kill(w, killed_s)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("comm", "cause"), [("VLLM::Worker_TP1", "host_oom.container_limit"), ("python3", "engine_timeout")])
def test_a_kill_of_open_time_and_who_waited(b: ModuleType, comm: str, cause: str) -> None:
    """Who waited for a process in vain tells of its loss; only the name of the victim says that it was the engine's."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 600)
    w.add("a", 900, "TimeoutError: RPC call to execute_model timed out.", "traceback", exception="TimeoutError",
          frames=(), chained=False, level="ERROR")  # fmt: skip
    w.add("a", 901, "EngineCore encountered a fatal error.", level="ERROR")
    somebodys_kill(w, b.at(None), comm)
    assert verdict(w)[0] == cause


def test_a_kill_of_open_time_hides_no_saturation(b: ModuleType) -> None:
    """The log goes on and its cache is full; some Python was killed at some time on some node."""
    w = b.World()
    saturated(b, w, Scope())
    somebodys_kill(w, b.at(None))
    assert verdict(w) == ("kv_saturation", "likely")


@pytest.mark.parametrize(("full", "cause"), [(True, "kv_saturation"), (False, "host_oom.container_limit")])
def test_the_end_of_a_replica_without_a_log(b: ModuleType, full: bool, cause: str) -> None:
    """A status without a time is only heard of; the log of the pod that served tells what ailed it."""
    w = b.World()
    scope = Scope(pod="chat-7b-0")
    if full:
        saturated(b, w, scope)
    else:
        w.start("a", 0, scope)
        w.answer("a", 3600, scope=scope)
    w.pod(name="chat-7b-1")
    w.exited("describe.txt", b.at(None), 137, "OOMKilled", "chat-7b-1")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("host", "cause"), [("gpu-node-5", "insufficient_evidence"), ("gpu-node-6", "host_oom.container_limit")])
def test_the_kernel_log_of_the_wrong_node(b: ModuleType, host: str, cause: str) -> None:
    """The pod ran on node 6 and ended with 137; a container that nothing else names was killed half a minute before."""
    w = b.World()
    w.pod(node="gpu-node-6", memory_limit_bytes=80 << 30)
    w.exited("describe.txt", 600, 137)
    w.start("a", 620, Scope(pod=b.POD))
    w.answer("a", 900, scope=Scope(pod=b.POD))
    w.kill("journal.txt", 568, uid=OTHER_UID, cid="e251" * 16, comm="python3", limit_kib=24 << 20, host=host)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("node", "joined"), [("gpu-node-6", False), ("gpu-node-5", True)])
def test_a_limit_of_the_same_size_on_another_node(b: ModuleType, node: str, joined: bool) -> None:
    """Round limits are common: the node has its say before the size."""
    w = b.World()
    w.pod(node=node, memory_limit_bytes=24 << 30)
    w.kill("journal.txt", 568, uid=OTHER_UID, cid="", limit_kib=24 << 20, host="gpu-node-5")
    assert w.case().entities.same(f"pod:{b.POD}", f"uid:{OTHER_UID}") is joined


@pytest.mark.parametrize(("limit", "joined"), [(2 << 30, False), (None, True)])
def test_python_under_a_limit_without_a_gpu_is_no_engine(b: ModuleType, limit: int | None, joined: bool) -> None:
    """Its container started with the engine's log; what its limits leave out, it does not have."""
    w = b.World()
    name = "invoices-6b7d9f8c55-t4v2z"
    w.start("a.txt", 0)
    w.pod(name=name, image="registry.example/invoices:4", args=(), command=("python", "-m", "invoices"), gpus=None,
          memory_limit_bytes=limit)  # fmt: skip
    w.add("describe.txt", -1, "container vllm started", "container_started", "k8s", Scope(pod=name))
    assert w.case().entities.same(f"pod:{name}", "file:a.txt") is joined


@pytest.mark.parametrize(("model", "cause"), [("acme/code-7b", "nccl_failure"), ("acme/chat-14b", "host_oom.container_limit")])
def test_an_end_that_would_explain_another_engines(b: ModuleType, model: str, cause: str) -> None:
    """A rank's kill explains what its peers say; a pod that serves another model is no rank."""
    w = b.World()
    w.start("a.log", 0, model="acme/chat-14b")
    w.answer("a.log", 600)
    w.add("a.log", 700, "[rank1]: ncclRemoteError: A call failed possibly due to a network error or a remote process"
          " exiting prematurely.", level="ERROR")  # fmt: skip
    w.add("a.log", 701, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE) ran for"
          " 600009 milliseconds before timing out.", level="ERROR")  # fmt: skip
    w.pod(name="worker-0", args=("--model", model))
    w.exited("describe.txt", b.at(None), 137, "OOMKilled", "worker-0")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("xid_s", "comm", "cause"),
    [
        (-300.0, "python3", "app_bug"),
        (200.0, "python3", "app_bug"),
        (299.5, "VLLM::EngineCor", "gpu_illegal_access"),
    ],
    ids=["before the start", "an hour of work after it", "just then"],
)
def test_a_programs_fault_on_the_gpu_has_its_moment(b: ModuleType, xid_s: float, comm: str, cause: str) -> None:
    """The program that faults fails at its next call: not a run that came later, nor one that worked on."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 290)
    w.add("dmesg", xid_s, XID.format(comm), "xid", "kernel", Scope(gpu="0000:3b:00", pid=77120), xid=31, pid=77120, comm=comm)
    w.fail("a", 300, "KeyError: 'chatcmpl-88'")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("restarts", "cause"), [(0, "healthy"), (1, "gpu_illegal_access")])
def test_a_programs_fault_of_open_time_beside_an_engine_at_work(b: ModuleType, restarts: int, cause: str) -> None:
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 3600, scope=scope)
    w.add("pods.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", scope, phase="Running", restart_count=restarts)
    w.add("dmesg", b.at(None), XID.format("python3"), "xid", "kernel", Scope(gpu="0000:3b:00", pid=77120), xid=31, pid=77120,
          comm="python3")  # fmt: skip
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("went_on_s", "cause"), [(3000.0, "insufficient_evidence"), (1.0, "gpu_oom.runtime_load")])
def test_a_program_that_got_over_its_error(b: ModuleType, went_on_s: float, cause: str) -> None:
    """A trainer ran out of memory and tried again; the engine ended without a word."""
    w = b.World()
    w.start("chat.log", 0, Scope(pod=b.POD))
    w.answer("chat.log", 600, scope=Scope(pod=b.POD))
    w.exited("describe.txt", 610, 137)
    w.add("output.log", 100, "ranker.train step 1", channel="plain")
    w.add("output.log", 101, b.oom_text(), "traceback", "engine", level="ERROR", exception="torch.OutOfMemoryError",
          frames=("/srv/ranker/train.py:step",), chained=False)  # fmt: skip
    w.add("output.log", 101 + went_on_s, "INFO ranker.train step 2", channel="plain", level="")
    assert verdict(w)[0] == cause


def test_a_pods_status_tells_of_its_last_end(b: ModuleType) -> None:
    """Killed at its limit in the morning, at work all day, taken away with its node in the evening."""
    w = b.World()
    w.pod()
    w.exited("describe.txt", 0, 137, "OOMKilled")
    scope = Scope(pod=b.POD)
    w.answer("a.log", 40_000, scope=scope)
    w.answer("a.log", 40_900, scope=scope)
    w.exited("describe.txt", 40_930, 137, started=10)
    w.add("describe.txt", None, f"pod {b.POD} Failed: Terminated Pod was terminated in response to imminent node shutdown.",
          "pod_status", "k8s", scope, phase="Failed", reason="Terminated",
          message="Pod was terminated in response to imminent node shutdown.")  # fmt: skip
    causes = [incident.hypotheses[0].cause.id for incident in w.diagnosis().incidents]
    assert causes == ["external_sigkill", "host_oom.container_limit"]


@pytest.mark.parametrize(("state", "cause"), [("COMPLETED      0:0", "healthy"), ("FAILED      0:9", "host_oom.container_limit")])
def test_a_job_that_ended_well(b: ModuleType, state: str, cause: str) -> None:
    """The accounting lists a job of somebody else that ran out of memory, and the kernel its kill, at an open time."""
    w = b.World()
    w.start("slurm-40122_1.out", 0)
    w.answer("slurm-40122_1.out", 600)
    w.add("sacct.txt", None, f"40122_1              label  {state}   00:41:10", channel="host", job="40122_1")
    w.add("sacct.txt", None, "40119              train  OUT_OF_MEMORY      0:125   00:12:02", channel="host", job="40119")
    somebodys_kill(w, b.at(None), "python")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("train.log", "healthy"),
        ("worker-1.log", "gpu_oom.runtime_load"),
    ],
    ids=["a log called like another program", "a log called like any rank's"],
)
def test_whose_cuda_oom_it_is(b: ModuleType, path: str, cause: str) -> None:
    """A program that never speaks as an engine, beside the log of one that has a name and works."""
    w = b.World()
    w.start("chat.log", 0)
    w.answer("chat.log", 900)
    w.fail(path, 300, envelope="")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("ident", "cause"), [("comfyui", "insufficient_evidence"), ("vllm", "gpu_oom.runtime_load")],
    ids=["another program", "the engine"],
)  # fmt: skip
def test_who_says_it_in_a_syslog(b: ModuleType, ident: str, cause: str) -> None:
    """Several programs write into one file under their own names, and the engine's process is gone without a word."""
    w = b.World()
    w.add("messages", 0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0", ident="vllm")
    w.add("messages", 60, "Application startup complete.", ident="vllm")
    w.add("messages", 300, b.oom_text(), channel="engine" if ident == "vllm" else "host", level="ERROR", ident=ident)
    w.add("messages", 302, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR",
          ident="vllm")  # fmt: skip
    assert verdict(w)[0] == cause


def test_a_kill_that_an_event_retells(b: ModuleType) -> None:
    """The event of a node's problem detector is the kernel's line once more: it fits no run here either."""
    w = b.World()
    w.start("chat.log", 0, Scope(pod=b.POD))
    w.answer("chat.log", 9000, scope=Scope(pod=b.POD))
    text = "OOMKilling: Memory cgroup out of memory: Killed process 991 (python3) total-vm:9kB, anon-rss:8kB, file-rss:1kB"
    event = w.add("events", b.at(-1600, 86430.0), text, "k8s_event", "k8s", Scope(host="n1"), reason="OOMKilling")
    w.add("events", b.at(-1600, 86430.0), text, "kernel_oom", "k8s", Scope(host="n1"), line=event.locator.line,
          victim_comm="python3", victim_pid=991)  # fmt: skip
    w.add("pods.txt", None, f"{b.POD} 1/1 Running 0", "pod_status", "k8s", Scope(pod=b.POD), phase="Running",
          restart_count=0)  # fmt: skip
    assert verdict(w)[0] == "healthy"


RAYLET = (
    "Killing 1 worker(s), kill details: Memory on the node (IP: 10.0.0.7, ID: ab12) was 380.21GB used / 400.00GB limit"
    " (0.950525) Selected to kill: (Task: job ID=01000000, lease ID=00ff, task name={task}, required resources={{CPU: 4}},"
    " pid=4860, actual memory used=61.92GB, worker ID=2b0a)"
)


@pytest.mark.parametrize(
    ("task", "own", "cause"),
    [
        ("RayWorkerWrapper.__init__", False, "ray_oom"),
        ("etl.explode", False, "insufficient_evidence"),
        ("RayWorkerWrapper.__init__", True, "gpu_oom.weights"),
    ],
    ids=["the engine's worker", "another team's task", "a start that tells its own fault"],
)
def test_whose_worker_ray_killed(b: ModuleType, task: str, own: bool, cause: str) -> None:
    """A raylet tells of all that run on its node; an engine that tells what it failed of lost no worker to it."""
    w = b.World()
    w.start("a", 0, loaded=not own)
    if own:
        w.fail("a", 301, frames=b.LOADING)
    else:
        w.answer("a", 290)
        w.add("a", 301, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    w.add("raylet.out", 299, RAYLET.format(task=task), channel="ray")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("of_new", "cause"), [(True, "kv_saturation"), (False, "external_sigkill")])
def test_a_full_cache_after_a_slow_stop(b: ModuleType, of_new: bool, cause: str) -> None:
    """The old pod was told to stop, and killed; what its successor suffers hours later is what is asked about."""
    w = b.World()
    old, new = Scope(pod=b.POD), Scope(pod="chat-6f9c7d5b8-zzzzz")
    w.start("a", 0, old)
    w.answer("a", 70, scope=old)
    w.event("events", 300, "Killing", "Stopping container vllm")
    w.exited("describe.txt", 331, 137)
    w.start("b", 400, new)
    w.answer("b", 9000, scope=new)
    full_s = 7200.0 if of_new else 80.0
    w.series("kv_cache_usage_pct", [(full_s + 3 * i, 99.5) for i in range(60)], *(("b", new) if of_new else ("a", old)))
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("file", "cause"), [
    ("redis-describe.txt", "healthy"), ("describe.txt", "host_oom.container_limit"),
    ("vllm-router-describe.txt", "host_oom.container_limit"),
])  # fmt: skip
def test_a_piece_of_a_status_in_a_file_named_after_something_else(b: ModuleType, file: str, cause: str) -> None:
    """The state of a container without its pod is the only engine's, but not where its file names a store."""
    w = b.World()
    w.start("chat.log", 0)
    w.answer("chat.log", 3600)
    w.add(file, 600, "container terminated: reason=OOMKilled exit_code=137", "container_terminated", "k8s", Scope(),
          reason="OOMKilled", exit_code=137, finished_s=b.T0 + 600)  # fmt: skip
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("order", "cause"),
    [("kubernetes", "healthy"), ("nomad", "healthy"), ("kubectl", "healthy"), ("", "external_sigkill")],
)
def test_a_drained_node_is_rebooted(b: ModuleType, order: str, cause: str) -> None:
    """Who has emptied a node for maintenance reboots it; that the clocks leave the order open changes nothing."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 300, scope=scope)
    w.add("a", 301, "Shutting down FastAPI HTTP server.", scope=scope)
    w.add("a", 302, "Application shutdown complete.", scope=scope)
    w.exited("describe.txt", 303, 0, "Completed")
    node = Scope(host="gpu-node-7")
    reboot = "Rebooted: Node gpu-node-7 has been rebooted, boot id: 7b1a0a3e-3f7c-4dd0-9df2-1d1c5e8a2f60"
    w.add("events", b.at(-600, 86_400.0), reboot, "k8s_event", "k8s", node, reason="Rebooted")
    if order == "nomad":
        w.add("status.txt", None, "Desired Description: alloc is being migrated", channel="host")
    if order == "kubectl":
        w.add("maint.log", None, "node/gpu-node-7 drained", "operation", "k8s", node, verb="drained", object_kind="node")
    if order == "kubernetes":
        cordon = "NodeNotSchedulable: Node gpu-node-7 status is now: NodeNotSchedulable"
        w.add("events", b.at(-900, 86_400.0), cordon, "k8s_event", "k8s", node, reason="NodeNotSchedulable")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("listed", "own", "cause"),
    [
        ("prod", "staging", "insufficient_evidence"), ("prod", "prod", "gpu_oom.runtime_load"), ("", "staging", "gpu_oom.runtime_load"),
    ],
    ids=["of another stage", "of this one", "nobody says whose is asked about"],
)  # fmt: skip
def test_trouble_in_a_namespace_that_nobody_asked_for(b: ModuleType, listed: str, own: str, cause: str) -> None:
    """An export of all logs holds every stage of a service; the pods that somebody listed are his."""
    w = b.World()
    scope = Scope(namespace=own, pod="chat-7b5d8f9c6-zz4gt")
    w.start("export.jsonl", 0, scope)
    w.answer("export.jsonl", 900, scope=scope)
    w.fail("export.jsonl", 1000, scope=scope)
    mine = Scope(namespace=listed, pod=b.POD)
    w.add("pods.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", mine, phase="Running", restart_count=1)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize("restarts", [0, 2])
def test_a_drain_that_a_service_outlived(b: ModuleType, restarts: int) -> None:
    """Node after node was emptied for an upgrade; the pods of today run unbroken."""
    w = b.World()
    cordon = "NodeNotSchedulable: Node gpu-node-7 status is now: NodeNotSchedulable"
    w.add("events", 0, cordon, "k8s_event", "k8s", Scope(host="gpu-node-7"), reason="NodeNotSchedulable")
    w.event("events", 10, "Killing", "Stopping container vllm", "chat-6f9c7d5b8-n7x4p")
    w.add("pods.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", Scope(pod=b.POD), phase="Running", restart_count=restarts)
    assert (verdict(w)[0] == "healthy") is (restarts == 0)
