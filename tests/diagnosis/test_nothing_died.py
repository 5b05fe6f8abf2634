"""Bundles in which nothing died: health, saturation, refusals, faults without a victim, and nothing at all."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from forensics.model import RawStamp, Scope, StampForm

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


def test_restarts_of_one_of_several_replicas(b: ModuleType) -> None:
    """Whichever replica wrote the log, the service ended, and the counter is all that tells of it."""
    w = b.World()
    w.start("vllm.log", 0)
    w.answer("vllm.log", 3600)
    for name, count in (("chat-6f9c7d5b8-x2k4p", 3), ("chat-6f9c7d5b8-zz4gt", 0)):
        scope = Scope(pod=name)
        w.add("pods.txt", None, f"pod {name} Running", "pod_status", "k8s", scope, phase="Running", restart_count=count)
    found = w.diagnosis()
    assert found.verdict.cause.id == "insufficient_evidence"
    assert (found.first_cause.signature, found.key_facts["restart_count"]) == ("derived.restarts_counted", 3)


@pytest.mark.parametrize(
    ("host", "began", "stopped", "cause"),
    [
        ("gpu-node-7", 4800, False, "insufficient_evidence"),
        ("gpu-node-7", -600, False, "healthy"),
        ("gpu-node-7", 90_000, False, "healthy"),
        ("gpu-node-8", 4800, False, "healthy"),
        ("gpu-node-7", 4800, True, "healthy"),
    ],
    ids=["soon after its last line", "before it", "the next day", "another machine", "it was stopped before"],
)
def test_a_machine_that_started_anew(b: ModuleType, host: str, began: float, stopped: bool, cause: str) -> None:
    """The log ends in the middle of work, and the machine boots: that the service was well then is not shown."""
    w = b.World()
    own = Scope(host="gpu-node-7", unit="vllm.service")
    w.start("journal-before.txt", 0, own)
    w.answer("journal-before.txt", 3600, scope=own)
    if stopped:
        w.add("journal-before.txt", 3610, "Shutting down", scope=own)
        w.add("journal-before.txt", 3611, "Application shutdown complete.", scope=own)
    w.add("journal-after.txt", began, "Linux version 6.8.0-51-generic (buildd@lcy02) #52-Ubuntu SMP", channel="kernel",
          scope=Scope(host=host))  # fmt: skip
    w.add("journal-after.txt", began + 1, "File /var/log/journal/5b/system.journal corrupted or uncleanly shut down,"
          " renaming and replacing.", channel="clock", scope=Scope(host=host))  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    if cause == "insufficient_evidence":
        assert (found.first_cause.signature, found.key_facts["outage_s"]) == ("derived.machine_restarted", 1200)
        assert "systemd.journal_unclean" in {f.signature for f in found.incidents[0].hypotheses[0].supporting}


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


@pytest.mark.parametrize(("runs", "owner"), [(1, "a"), (2, "export.csv")], ids=["the only one", "one of two"])
def test_a_series_without_a_name_is_of_the_only_engine(b: ModuleType, runs: int, owner: str) -> None:
    """An export of metrics beside one engine's log tells of that engine; beside two nobody knows of which."""
    w = b.World()
    for name in "ab"[:runs]:
        w.start(name, 0)
        w.answer(name, 3600)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0) for i in range(200)], "export.csv")
    incident = w.diagnosis().incidents[0]
    assert (incident.hypotheses[0].cause.id, incident.entity) == ("kv_saturation", f"file:{owner}")


@pytest.mark.parametrize(
    ("said", "source", "first"),
    [(1330, "a", "preempted"), (1330, "b", "kv_cache_usage_pct"), (4000, "a", "kv_cache_usage_pct")],
    ids=["soon", "by another engine", "much later"],
)
def test_the_engines_own_word_on_a_full_cache(b: ModuleType, said: float, source: str, first: str) -> None:
    """No percentage says more than a request that was taken back for want of room."""
    w = b.World()
    w.start("a", 0)
    w.start("b", 0)
    w.add(source, said, "Sequence group cmpl-7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV"
          " cache space.", level="WARNING")  # fmt: skip
    w.answer("a", 5000)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0 if i >= 130 else 40.0) for i in range(500)], "a")
    found = w.diagnosis()
    assert (found.verdict.cause.id, first in found.first_cause.event.text) == ("kv_saturation", True)


def test_a_full_cache_is_no_answer_where_an_engine_is_gone(b: ModuleType) -> None:
    """Lines whose order is lost make a death look like the noise of a stop: neither health nor a full cache can be told."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.add("a", 3601, "Shutting down")
    w.add("a", 3598, "EngineCore encountered a fatal error.", level="ERROR")
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0) for i in range(360)], "a")
    assert verdict(w)[0] == "insufficient_evidence"


def test_a_counter_of_preemptions_is_a_number_of_a_full_cache(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0)
    w.series("kv_cache_usage_pct", [(100 + 10 * n, 99.5) for n in range(90)], "a")
    w.series("requests_waiting", [(100 + 10 * n, 40.0) for n in range(90)], "a")
    w.series("preemptions_total", [(1000, 1147.0)], "metrics.txt")
    assert w.diagnosis().key_facts["preemptions_total"] == 1147.0


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


TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens"


@pytest.mark.parametrize(
    ("refused", "answered", "reason", "cause"),
    [(1, 14, "", "healthy"), (2, 24, "", "healthy"), (3, 60, "", "request_rejected"), (1, 6, "", "request_rejected"),
     (1, 14, TOO_LONG, "request_rejected"), (1, 30, TOO_LONG, "healthy"), (3, 90, TOO_LONG, "request_rejected")],
    ids=["one slip", "two slips", "several", "few others", "the log says why", "one of many", "several of many"],
)  # fmt: skip
def test_a_slip_among_answers(b: ModuleType, refused: int, answered: int, reason: str, cause: str) -> None:
    """In a short log, one or two refusals among many answers are no incident; where a message says why, among more.

    A call without a key has nothing to do with a prompt that is too long.
    """
    w = b.World()
    w.start("a", 0)
    w.answer("a", 65, 401)
    for n in range(answered):
        w.answer("a", 70 + n)
    for n in range(refused):
        w.answer("a", 75 + n, 400)
    if reason:
        w.add("a", 76, reason, level="ERROR")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("between", "first"), [(0, "400"), (3, "maximum context length")])
def test_a_client_retells_the_refusal(b: ModuleType, between: int, first: str) -> None:
    """Right behind the server's answer it is the same thing; the answer came first."""
    w = b.World()
    w.start("a", 0)
    for n in range(3):
        w.answer("a", 70 + 10 * n, 400)
        for k in range(between):
            w.answer("a", 71 + 10 * n + k)
        w.add("a", 75 + 10 * n, "[bot] openai.BadRequestError: This model's maximum context length is 8192 tokens. However, you"
              " requested 9100 tokens", level="ERROR")  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "request_rejected"
    assert first in found.first_cause.event.text


def test_the_server_tells_of_a_refusal_before_its_client(b: ModuleType) -> None:
    """Somebody pasted what the client printed above the server's log."""
    w = b.World()
    text = "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens"
    w.add("a", 60, f"openai.BadRequestError: Error code: 400 - {{'error': {{'message': \"{text}\"}}}}", level="")
    w.answer("a", 69)
    for n in range(12):
        w.add("a", 70 + n, f"ValueError: {text}", level="ERROR")
        w.answer("a", 70.5 + n, 400)
    found = w.diagnosis()
    assert found.verdict.cause.id == "request_rejected"
    assert found.first_cause.event.text.startswith("ValueError")


@pytest.mark.parametrize(
    ("typed", "ready", "cause"),
    [(True, True, "healthy"), (False, True, "config_error"), (True, False, "config_error")],
    ids=["typed again, and it serves", "nobody typed", "typed again, and it never served"],
)
def test_a_mistyped_command(b: ModuleType, typed: bool, ready: bool, cause: str) -> None:
    """Who sees the usage message at a prompt corrects the command; that is no incident of the server below."""
    w = b.World()
    w.add("a", 0, "vllm serve: error: unrecognized arguments: --quick yes", level="")
    if typed:
        w.add("a", 5, "ann@box:~$ vllm serve acme/chat-14b --max-model-len 4096", level="")
    w.start("a", 10, ready=ready)
    if ready:
        w.answer("a", 90)
    w.add("a", 200, "Shutting down FastAPI HTTP server.")
    assert verdict(w)[0] == cause


def test_a_few_refusals_of_a_busy_server_are_daily_life(b: ModuleType) -> None:
    """Two in a thousand lines."""
    w = b.World()
    w.start("a", 0)
    for n in range(400):
        w.answer("a", 70 + n, 400 if n in (7, 9) else 200)
    assert verdict(w)[0] == "healthy"


@pytest.mark.parametrize(("source", "cause"), [("ticket.txt", "request_rejected"), ("a", "healthy")])
def test_a_client_complains_of_a_few_refusals(b: ModuleType, source: str, cause: str) -> None:
    """Who adds what a client printed asks about it; a gateway prints it in the engine's own log every day."""
    w = b.World()
    w.start("a", 0)
    for n in range(400):
        w.answer("a", 70 + n, 400 if n in (7, 9) else 200)
    w.add(source, 78, "openai.BadRequestError: Error code: 400 - {'error': {'message': \"This model's maximum context length"
          " is 8192 tokens.\"}}", "traceback", "engine" if source == "a" else "plain", level="ERROR")  # fmt: skip
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("said", "cause"), [
    ('docker ps shows chat-1 "Exited (137) 5 minutes ago", recreating it', "insufficient_evidence"),
    ('docker ps shows chat-1 "Exited (0) 5 minutes ago", recreating it', "healthy"),
])  # fmt: skip
def test_a_status_that_people_quote(b: ModuleType, said: str, cause: str) -> None:
    """The container was made anew, and its log with it; that it runs since says nothing of that end."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 900)
    w.add("a", 1000, "Shutting down FastAPI HTTP server.")
    w.add("slack.txt", None, said, channel="notes")
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("folder", "cause"), [("old", "healthy"), ("now", "gpu_oom.runtime_load")])
def test_a_log_that_was_put_away(b: ModuleType, folder: str, cause: str) -> None:
    """What failed weeks before an engine at work, and lies in a folder for such things, is history."""
    w = b.World()
    w.fail(f"{folder}/pm-118.log", 0, frames=b.SERVING)
    w.answer("chat.log", 40 * 86400)
    w.answer("chat.log", 40 * 86400 + 900)
    w.events = [b.moved(e, stamps=(RawStamp(StampForm.INSTANT, "prefix", e.time.utc_s),)) for e in w.events]
    assert verdict(w)[0] == cause


def test_a_fault_of_one_machine_long_before(b: ModuleType) -> None:
    """Of two replicas one ran where a card had failed four weeks ago; it works, and so does the other elsewhere."""
    w = b.World()
    for name, node in (("chat-0", "gpu-w3"), ("chat-1", "gpu-w4")):
        w.start(f"{name}.log", 30 * 86400, Scope(pod=name))
        w.answer(f"{name}.log", 30 * 86400 + 900, scope=Scope(pod=name))
        w.pod(f"{name}.yaml", name=name, node=node)
    w.add("dmesg_gpu-w3.txt", 300, "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the"
          " bus.", "xid", "kernel", Scope(host="gpu-w3"), xid=79)  # fmt: skip
    assert verdict(w)[0] == "healthy"


def test_a_job_that_ended_at_its_time_limit(b: ModuleType) -> None:
    """That was known; what people ask about is the next one, which does not start."""
    w = b.World()
    w.start("slurm-4711.out", 0)
    w.answer("slurm-4711.out", 40000)
    w.add("slurm-4711.out", 43000, "slurmstepd: error: *** JOB 4711 ON gpu-node-7 CANCELLED AT 2026-05-12T19:56:40 DUE TO TIME"
          " LIMIT ***", job="4711")  # fmt: skip
    w.add("sacct.txt", 43000, "4711 chat TIMEOUT 0:0 120G 12:00:00 2026-05-12T08:00:00 2026-05-12T19:56:40", channel="host",
          job="4711")  # fmt: skip
    w.start("slurm-4712.out", 50000, loaded=False)
    w.fail("slurm-4712.out", 50090, "ValueError: No available memory for the cache blocks.", b.LOADING)
    assert verdict(w)[0] == "gpu_oom.kv_cache_startup"


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


@pytest.mark.parametrize(
    ("comm", "again", "cause"),
    [
        ("python3", False, "healthy"),
        ("VLLM::EngineCor", False, "gpu_illegal_access"),
        ("python3", True, "gpu_illegal_access"),
    ],
    ids=["a script", "the engine", "started after it"],
)
def test_an_xid_of_a_script_before_the_lines_at_hand(b: ModuleType, comm: str, again: bool, cause: str) -> None:
    """Somebody tries out a kernel beside the engine, whose log was saved from a later line on."""
    w = b.World()
    text = f"NVRM: Xid (PCI:0000:41:00): 31, pid=50112, name={comm}, Ch 00000003, intr 00000000. MMU Fault"
    w.add("dmesg", 0, text, "xid", "kernel", Scope(gpu="0000:41:00", pid=50112), xid=31, pid=50112, comm=comm)
    for n in range(12):
        w.answer("a", 500 + n)
    if again:
        w.start("b", 40)
    assert verdict(w)[0] == cause


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


def test_a_model_name_that_is_not_served(b: ModuleType) -> None:
    """404 of a call is a refusal with its reason; 404 of any other path is somebody looking around."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 100, 404)
    w.add("a", 100, "Error with model error=ErrorInfo(message='The model `chat-large` does not exist.', type='NotFoundError', code=404)", level="ERROR")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "request_rejected"
    assert diagnosis.key_facts["http_status"] == 404
    w = b.World()
    w.start("a", 0)
    w.answer("a", 90)
    w.add("a", 100, '10.42.0.9:5 - "GET /favicon.ico HTTP/1.1" 404', "access", method="GET", path="/favicon.ico", status=404)
    assert verdict(w)[0] == "healthy"


@pytest.mark.parametrize(("times", "cause"), [(5, "config_error"), (1, "healthy")])
def test_no_descriptor_left_while_it_works(b: ModuleType, times: int, cause: str) -> None:
    """accept() fails again and again, and requests that have their connection go on."""
    w = b.World()
    w.start("a", 0)
    for number in range(times):
        w.add("a", 100 + number, "OSError: [Errno 24] Too many open files", level="ERROR")
    w.answer("a", 300)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("later", "cause"), [(500, "config_error"), (200, "healthy")], ids=["still", "once"])
def test_two_sides_that_do_not_fit(b: ModuleType, later: int, cause: str) -> None:
    """Prefill and decode refuse each other and serve on, until both are of one version again."""
    w = b.World()
    w.start("decode.log", 0)
    text = "RuntimeError: NIXL compatibility hash mismatch. Local: 51aa0c, Remote: e07f11. Prefill and decode instances have incompatible configurations."
    w.fail("decode.log", 100, text, envelope="")
    for number in range(3):
        w.answer("decode.log", 110 + number, later)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("bar", "row", "cause"),
    [
        ("100%|██████████| 4096/4096 [08:12<00:00,  8.32it/s]", "40120_1|COMPLETED|0:0", "healthy"),
        ("100%|██████████| 4096/4096 [08:12<00:00,  8.32it/s]", "40120_1|FAILED|1:0", "insufficient_evidence"),
        (" 62%|██████▎   | 2540/4096 [05:05<03:07,  8.32it/s]", "40120_1|COMPLETED|0:0", "insufficient_evidence"),
    ],
    ids=["done", "failed afterwards", "the log stops in the middle"],
)  # fmt: skip
def test_a_file_of_prompts_was_worked_off(b: ModuleType, bar: str, row: str, cause: str) -> None:
    """An offline run has no server: its progress bar at the end is what shows that it worked."""
    w = b.World()
    w.add("label_1.out", 0, "Starting to load model acme/chat-14b...")
    w.add("label_1.out", 30, "Model loading took 27.6000 GiB and 20.100000 seconds")
    w.add("label_1.out", 600, f"Processed prompts: {bar}")
    w.add("sacct.txt", None, row, channel="host", job="40120_1")
    assert verdict(w)[0] == cause


def test_sleep_and_wake_are_work(b: ModuleType) -> None:
    """An engine that sleeps for a trainer and wakes again is well, though no request is seen."""
    w = b.World()
    for seconds, text in ((0, "It took 2.310442 seconds to fall asleep."), (400, "It took 0.41 seconds to wake up tags ['weights'].")):
        w.add("a", seconds, text)
    assert verdict(w)[0] == "healthy"


@pytest.mark.parametrize(("calls", "cause"), [(1, "healthy"), (3, "request_rejected")])
def test_calls_without_a_key(b: ModuleType, calls: int, cause: str) -> None:
    """One 401 is a slip; a client that gets nothing else has something to repair."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 90)
    for number in range(calls):
        w.answer("a", 100 + number, 401)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("hours", "explained", "cause"),
    [(30.0, True, "kv_saturation"), (30.0, False, "kv_saturation"), (1.0, True, "gpu_oom.runtime_load"),
     (1.0, False, "insufficient_evidence")],
)  # fmt: skip
def test_a_full_cache_long_after_the_last_end(b: ModuleType, hours: float, explained: bool, cause: str) -> None:
    """Yesterday's end was overcome, known or not; what fills the cache right after a restart is its retries."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 600)
    if explained:
        w.fail("a", 601)
    w.start("a", 700)
    begin = 700 + 3600 * hours
    w.answer("a", begin)
    w.series("kv_cache_usage_pct", ((begin + 10 * n, 99.5) for n in range(30)), "a")
    w.series("requests_waiting", ((begin + 10 * n, 20.0 + n) for n in range(30)), "a")
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    assert found.incidents[-1].hypotheses[0].cause.id == ("gpu_oom.runtime_load" if explained else "insufficient_evidence")


@pytest.mark.parametrize(
    ("counts", "waiting", "cause"),
    [((0.0, 611.0), 77.0, "kv_saturation"), ((611.0, 611.0), 77.0, "insufficient_evidence"),
     ((0.0, 611.0), 0.0, "insufficient_evidence")],
    ids=["preemptions grew", "no growth", "no queue"],
)  # fmt: skip
def test_scrapes_without_a_clock(b: ModuleType, counts: tuple[float, ...], waiting: float, cause: str) -> None:
    """Two scrapes that nothing dates: a full cache counts with a queue and a counter that grew."""
    w = b.World()
    unknown = float("nan")
    for name, values in (("kv_cache_usage_pct", (31.0, 99.8)), ("requests_waiting", (0.0, waiting)),
                         ("preemptions_total", counts)):  # fmt: skip
        for n, value in enumerate(values):
            w.series(name, [(unknown, value)], f"metrics/{n}.prom", Scope(process="Engine 000"), first_line=7)
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    if cause == "kv_saturation":
        assert found.first_cause is not None
        assert (found.first_cause.locator.source, found.first_cause.locator.line) == ("metrics/1.prom", 7)
        assert found.key_facts["preemptions_total"] == 611.0
def sidecar(w: Any) -> None:
    """A pod of an engine and a log shipper, both described; the engine serves on."""
    w.start("vllm.log", 0, scope=Scope(pod=POD))
    w.answer("vllm.log", 900, scope=Scope(pod=POD))
    w.pod(memory_limit_bytes=64 << 30)
    w.pod(container="shipper", image="example.com/shipper:3", args=(), gpus=None, memory_limit_bytes=128 << 20)


def test_a_sidecar_that_was_killed_is_the_incident(b: ModuleType) -> None:
    """OOMKilled of the log shipper, nothing of the engine's: the shipper's own limit, with its own numbers."""
    w = b.World()
    sidecar(w)
    w.exited("pod.yaml", 300, 137, "OOMKilled", container="shipper", restart_count=3)
    state = {"state": "running", "restart_count": 0}
    w.add("pod.yaml", None, "container vllm running", "container_state", "k8s", Scope(pod=POD, container="vllm"), **state)
    d = w.diagnosis()
    assert (d.verdict.cause.id, d.incidents[0].container) == ("host_oom.container_limit", "shipper")
    facts = {name: d.key_facts.get(name) for name in ("bystander", "container_limit_kib", "restart_count", "exit_code")}
    assert facts == {"bystander": "shipper", "container_limit_kib": 128 << 10, "restart_count": 3, "exit_code": 137}
    assert "gpus" not in d.key_facts


def test_a_sidecar_that_was_killed_is_no_cause_of_an_engines_death(b: ModuleType) -> None:
    """Where the engine died too, that is the incident; and a sidecar that ends by itself is none."""
    w = b.World()
    sidecar(w)
    w.exited("pod.yaml", 300, 1, container="shipper", restart_count=3)
    assert verdict(w)[0] == "healthy"
    w.exited("pod.yaml", 310, 137, "OOMKilled", container="shipper", restart_count=3)
    w.fail("vllm.log", 950, scope=Scope(pod=POD))
    d = w.diagnosis()
    assert [hypothesis.cause.id for hypothesis in d.incidents[0].hypotheses] == ["gpu_oom.runtime_load"]
    assert [decoy.reason for decoy in d.decoys if decoy.finding.signature == "k8s.oomkilled"] == ["other_entity"]


def test_an_init_container_has_its_own_limit(b: ModuleType) -> None:
    """The pod never came up; the limit shown is that of the container that was killed."""
    w = b.World()
    w.pod(memory_limit_bytes=600 << 30)
    w.pod(container="convert", image="example.com/convert:1", args=(), gpus=None, init=True, memory_limit_bytes=16 << 30)
    w.exited("describe.txt", 300, 137, "OOMKilled", container="convert", restart_count=4, init=True)
    d = w.diagnosis()
    assert d.verdict.cause.id == "host_oom.container_limit"
    assert (d.key_facts["container_limit_gib"], d.key_facts["bystander"]) == (16.0, "convert")


def test_a_kill_names_the_sidecar_by_its_limit(b: ModuleType) -> None:
    """The kernel's line knows no container names; the limit that it enforced is one container's."""
    w = b.World()
    sidecar(w)
    w.kill("dmesg", 300, comm="fluentd", limit_kib=128 << 10)
    w.events[-1] = b.moved(w.events[-1], scope=Scope(pod=POD))
    d = w.diagnosis()
    assert (d.verdict.cause.id, d.incidents[0].container) == ("host_oom.container_limit", "shipper")


def test_a_container_id_tells_whose_end_it_was(b: ModuleType) -> None:
    """The kubelet and containerd print ids: the kill by its limit, and so all that bears its id, is the shipper's."""
    w = b.World()
    sidecar(w)
    killed = Scope(pod=POD, container_id="0badc0de" * 8)
    w.kill("dmesg", 300, comm="fluentd", limit_kib=128 << 10)
    w.events[-1] = b.moved(w.events[-1], scope=killed)
    w.add("containerd", 301, f'TaskOOM event container_id:"{killed.container_id}"', channel="runtime",
          scope=Scope(container_id=killed.container_id))  # fmt: skip
    w.add("kubelet", 302, "container finished", "container_terminated", "kubelet", killed, exit_code=137)
    w.add("kubelet", 900, 'Container vllm failed liveness probe, will be restarted', "k8s_event", "k8s",
          Scope(pod=POD, container="vllm"), reason="Killing")  # fmt: skip
    w.exited("pod.yaml", 930, 137, "Error", container="vllm")
    d = w.diagnosis()
    assert d.verdict.cause.id == "probe_kill"
    assert not any(f.signature == "runtime.task_oom" for h in d.incidents[0].hypotheses for f in h.decisive)


@pytest.mark.parametrize(
    ("image", "args", "healthy"),
    [
        ("example.com/trl:0.19", (), True), ("example.com/lora-finetune:2", (), True), ("example.com/ours:4", (), False),
        ("example.com/ours:4", ("/app/train.py", "--epochs", "3"), True),
        ("example.com/ours:4", ("/app/main.py", "--checkpoint", "/mnt/train/out"), False),
    ],
)  # fmt: skip
def test_a_trainer_with_a_gpu_is_no_engine(b: ModuleType, image: str, args: tuple[str, ...], healthy: bool) -> None:
    """It was killed at its own limit; the engine beside it works. Of an image that says nothing, a GPU tells enough."""
    w = b.World()
    w.start("chat.log", 0, Scope(pod=b.POD))
    w.answer("chat.log", 3600, scope=Scope(pod=b.POD))
    w.pod("describe.txt", name="job-xq8d5", container="main", image=image, args=args, memory_limit_bytes=48 << 30)
    w.exited("describe.txt", 1800, 137, "OOMKilled", "job-xq8d5", "main")
    assert (verdict(w)[0] == "healthy") is healthy


@pytest.mark.parametrize(
    ("said", "other", "began", "healthy"),
    [
        ("Alert: the queue of chat is too long, is the box sick?", "tgi-trial", 7200, True),
        ("Alert: the queue of chat is too long since we gave up the trial", "tgi-trial", 7200, False),
        ("Something is wrong with the box, who can have a look?", "tgi-trial", 7200, False),
        ("Alert: the queue of chat is too long, is the box sick?", "tgi-trial", 900, True),
        ("Alert: the queue of chat is too long, is the box sick?", "chat-a", 7200, False),
        ("Subject: chat-7b slow, and the trial does not start either", "tgi-trial", 900, False),
        ("Subject: chat-7b slow since noon", "tgi-trial", 900, True),
        ("Betreff: chat7 ist langsam", "tgi-trial", 900, True),
        ("Subject: something is slow since noon", "tgi-trial", 900, False),
    ],
    ids=["the later is asked about", "both", "neither", "started right after", "a replica", "both in the subject",
         "the subject", "without its number", "a subject without a name"],
)
def test_what_another_engine_met_beside_the_one_that_people_ask_about(
    b: ModuleType, said: str, other: str, began: float, healthy: bool
) -> None:
    """It failed, and was left so; the one that people name first, in the subject or in their first sentence, works."""
    w = b.World()
    w.start(f"{other}.log", 0, Scope(container=other), loaded=False)
    w.fail(f"{other}.log", 30, frames=b.LOADING, scope=Scope(container=other), envelope="")
    w.start("chat.log", began, Scope(container="chat"))
    w.answer("chat.log", began + 1800, scope=Scope(container="chat"))
    w.add("ticket.txt", None, said, channel="plain")
    assert (verdict(w)[0] == "healthy") is healthy


def task(w: Any, b: ModuleType, code: int, reason: str = "") -> None:
    """A task of an engine and a log shipper; the shipper ended, and the scheduler stopped the engine for it."""
    w.start("serve.log", 0, scope=Scope(container="serve"))
    w.answer("serve.log", 900, scope=Scope(container="serve"))
    ends = (("serve", 64 << 30, 1, 0, "", {"stopped_for": "shipper"}), ("shipper", 128 << 20, None, code, reason, {}))
    for name, limit, gpus, exit_code, why, more in ends:
        spec = {"container": name, "image": f"example.com/{name}:3", "memory_limit_bytes": limit}
        spec |= {"gpus": gpus, "image": "vllm/vllm-openai:v0.11.0"} if gpus else {}
        w.add("task.json", None, f"container {name} spec", "pod_spec", "runtime", Scope(container=name), **spec)
        told = {"reason": why, "exit_code": exit_code, "finished_s": b.T0 + 930, **more}
        w.add("task.json", 930, f"container {name} terminated: reason={why} exit_code={exit_code}", "container_terminated",
              "runtime", Scope(container=name), **told)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "reason", "limit_kib", "cause", "owned"),
    [
        (137, "OOMKilled", 128 << 10, "host_oom.container_limit", True),
        (137, "OOMKilled", 96 << 10, "host_oom.container_limit", False),
        (1, "", None, "insufficient_evidence", False),
    ],
    ids=["killed at its limit", "the kill of another", "for a reason of its own"],
)
def test_a_container_that_took_the_engine_along(
    b: ModuleType, code: int, reason: str, limit_kib: int | None, cause: str, owned: bool
) -> None:
    """The engine stopped in order because it was told to; what is asked about is the end that it was told to for."""
    w = b.World()
    task(w, b, code, reason)
    if limit_kib is not None:
        w.kill("dmesg", 905, comm="fluentd", uid="", limit_kib=limit_kib)
    d = w.diagnosis()
    assert (d.verdict.cause.id, d.incidents[0].container) == (cause, "shipper")
    assert ("victim_pid" in d.key_facts) is owned


def spoilt(w: Any, b: ModuleType, every: int, total: int, raised: bool = True) -> None:
    """Of `total` requests each `every`-th meets an exception of its own and is answered with 500."""
    w.start("a", 0, scope=Scope(pod=POD))
    for n in range(total):
        failed = n % every == every - 1
        if failed and raised:
            w.fail("a", 100 + n, "KeyError: 'arguments'", (f"{b.SITE}/../entrypoints/openai/tool_parsers/x.py:extract",),
                   Scope(pod=POD), envelope="")  # fmt: skip
        w.answer("a", 100.1 + n, 500 if failed else 200, Scope(pod=POD))
    w.answer("a", 99_999, 200, Scope(pod=POD))
    w.add("pods.txt", None, "running", "pod_status", "k8s", Scope(pod=POD), phase="Running", restart_count=0)


@pytest.mark.parametrize(
    ("every", "total", "raised", "expected"),
    [
        (5, 40, True, ("app_bug", "likely")),
        (400, 400, True, ("healthy", "likely")),
        (5, 40, False, ("app_bug", "possible")),
        (50, 40, True, ("healthy", "established")),
    ],
    ids=["one in five", "one in four hundred", "nothing says why", "none"],
)
def test_a_service_that_fails_requests_is_not_well(
    b: ModuleType, every: int, total: int, raised: bool, expected: tuple[str, str]
) -> None:
    """It never ended; still its own log counts failed requests, and an exception stands before each of them."""
    w = b.World()
    spoilt(w, b, every, total, raised)
    assert verdict(w) == expected


def one_big_request(w: Any, b: ModuleType, counts: dict[int, int]) -> None:
    """A request of many pairs meets a CUDA OOM and gets 500; the service answers on, and somebody counted its answers."""
    for n in range(6):
        w.answer("a", n)
    w.fail("a", 10, frames=("/srv/embed/app.py:embed", "/srv/embed/model.py:score"), envelope="")
    w.answer("a", 10.1, 500)
    for n in range(6):
        w.answer("a", 11 + n)
    for status, count in counts.items():
        w.add("check.txt", None, f"{count} {status}", "answers_counted", "plain", status=status, answers=count)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({200: 51_400, 500: 1}, ("healthy", "likely")),
        ({200: 51_400, 500: 9_800}, ("gpu_oom.runtime_load", "likely")),
        ({}, ("gpu_oom.runtime_load", "likely")),
    ],
    ids=["one of many", "one in five", "nobody counted"],
)
def test_memory_that_ran_out_for_a_request(b: ModuleType, counts: dict[int, int], expected: tuple[str, str]) -> None:
    """It is no bug of the code; and where all answers of the day are counted, one that failed is daily life."""
    w = b.World()
    one_big_request(w, b, counts)
    assert verdict(w) == expected


def test_counted_server_errors_forbid_health(b: ModuleType) -> None:
    """The log shows a minute without a fault; the gateway's answers of the night were counted."""
    for count, cause in ((4, "healthy"), (700, "insufficient_evidence")):
        w = b.World()
        w.start("a", 0)
        w.answer("a", 3600)
        for status, answers in ((200, 9000), (503, count)):
            w.add("gateway.txt", None, f"{answers} {status}", "answers_counted", "plain", status=status, answers=answers)
        assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("failed", "path", "stopped", "cause"),
    [
        (14, "/v1/completions", False, "insufficient_evidence"),
        (2, "/v1/completions", False, "healthy"),
        (14, "/health", False, "healthy"),
        (14, "/v1/completions", True, "healthy"),
    ],
    ids=["for minutes", "two", "a probe's", "while one stops"],
)
def test_a_gateway_that_could_not_reach_somebody(
    b: ModuleType, failed: int, path: str, stopped: bool, cause: str
) -> None:
    """Logs of the replicas that were there all the time tell nothing of the one that was not."""
    w = b.World()
    w.start("chat-0.log", 0)
    w.answer("chat-0.log", 3600)
    for n in range(failed):
        w.add("envoy.log", 1800 + n, f'"POST {path} HTTP/1.1" 503 UF 811 91', "access", "plain", method="POST",
              path=path, status=503)  # fmt: skip
    if stopped:
        w.exited("pods.txt", 1800, 143, name="chat-1")
    assert verdict(w)[0] == cause


def test_what_fails_while_an_engine_stops_is_no_harm(b: ModuleType) -> None:
    """503 of a server that was asked to stop."""
    w = b.World()
    scope = Scope(pod=POD)
    w.start("a", 0, scope=scope)
    w.answer("a", 900, scope=scope)
    w.add("a", 901, "Shutting down", scope=scope)
    w.answer("a", 902, 503, scope)
    w.add("a", 903, "Finished server process [1]", scope=scope)
    assert verdict(w) == ("healthy", "established")


def test_a_helper_that_the_kernel_killed_leaves_a_doubt(b: ModuleType) -> None:
    """The engine outlived it and was stopped in order hours later; somebody's request was lost all the same."""
    w = b.World()
    scope = Scope(pod=POD, pod_uid=b.UID)
    w.start("a", 0, scope=scope)
    w.answer("a", 300, scope=scope)
    w.answer("a", 9000, scope=scope)
    w.add("a", 9001, "Shutting down", scope=scope)
    assert verdict(w) == ("healthy", "established")
    w.kill("dmesg", 400, comm="ffmpeg")
    assert verdict(w) == ("healthy", "likely")


@pytest.mark.parametrize(
    ("running", "spot", "expected"),
    [
        (49.0, False, ("healthy", "likely")),
        (0.0, False, ("healthy", "established")),
        (49.0, True, ("external_sigkill", "established")),
    ],
    ids=["cut off", "drained", "the node was taken back"],
)
def test_a_stop_that_did_not_finish(b: ModuleType, running: float, spot: bool, expected: tuple[str, str]) -> None:
    """Requests were still running at the last line: whether they ended well is not known."""
    w = b.World()
    scope = Scope(pod=POD, host="gpu-7")
    w.start("a", 0, scope=scope)
    w.answer("a", 800, scope=scope)
    w.add("a", 900, "Shutting down", scope=scope)
    w.event("events", 899, "Killing", "Stopping container vllm")
    w.series("requests_running", [(890, 58.0), (950, 52.0), (1000, running)], "a", scope, first_line=w.lines["a"] + 1)
    if spot:
        w.add("agent.log", 898, "Spot ITN received. Instance will be interrupted", channel="host", scope=Scope(host="gpu-7"))
    assert verdict(w) == expected


def test_a_job_that_the_scheduler_gave_up(b: ModuleType) -> None:
    """The engine's output just stops; the controller's log says that it lost the node of the job in the file's name."""
    for job, cause in (("40120", "insufficient_evidence"), ("4012", "healthy")):
        w = b.World()
        w.start("slurm-40120.out", 0)
        w.answer("slurm-40120.out", 900)
        w.add("slurmctld.log", 1300, f"Killing JobId={job} on failed node gpu-7", channel="host")
        assert verdict(w)[0] == cause


def test_the_kill_of_another_job(b: ModuleType) -> None:
    """The daemon of a node serves many jobs: it runs no engine itself, and another job's kill explains nothing."""
    w = b.World()
    w.start("slurm-40120.out", 0)
    w.answer("slurm-40120.out", 900)
    w.add("slurmd.log", 500, "Detected 1 oom_kill event in StepId=39001.0. Some of the step tasks have been OOM Killed.", channel="host")
    w.add("slurm-40120.out", 1000, "*** JOB 40120 ON gpu-7 CANCELLED AT 2026-11-29T21:25:17 DUE TO PREEMPTION ***", channel="host")
    found = w.diagnosis()
    assert [h.cause.id for i in found.incidents for h in i.hypotheses] == ["external_sigkill"]


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        (["40120|NODE_FAIL|0:0|gpu-7"], "insufficient_evidence"),
        (["40120|RUNNING|0:0|gpu-7", "40121|NODE_FAIL|0:0|gpu-8"], "healthy"),
    ],
    ids=["the only job", "another job"],
)
@pytest.mark.parametrize("output", ["run.log", "slurm-40120.out"])
def test_accounting_says_how_the_job_ended(b: ModuleType, rows: list[str], cause: str, output: str) -> None:
    """A row without a time is enough, where the job is the engine's by its file's name, or for want of any other."""
    if output == "run.log" and len(rows) > 1:
        pytest.skip("which job it was is not known")
    w = b.World()
    w.start(output, 0)
    w.answer(output, 900)
    for row in rows:
        w.add("sacct.txt", None, row, channel="host", job=row[:5])
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("asked", "confidence"), [(True, "established"), (False, "possible")])
def test_a_restart_in_place_that_nobody_asked_for(b: ModuleType, asked: bool, confidence: str) -> None:
    """A busy server stops in order and starts again in the same container: a person, or a watchdog?"""
    w = b.World()
    scope = Scope(container="vllm")
    w.start("a", 0, scope=scope)
    w.answer("a", 900, scope=scope)
    if asked:
        w.add("docker.log", 901, "container stop " + "c3a1" * 16 + " (image=x, name=vllm)", channel="runtime", scope=scope)
    w.add("a", 902, "Shutting down", scope=scope)
    w.start("a", 930, scope=scope)
    assert verdict(w) == ("healthy", confidence)


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


def test_a_unit_that_was_started_again(b: ModuleType) -> None:
    """The new run is well; systemd's counter says that others ended, and nothing saved says how."""
    w = b.World()
    w.start("vllm.log", 0)
    w.answer("vllm.log", 900)
    w.add("status.txt", -10, "vllm.service: Scheduled restart job, restart counter is at 3.", "unit_restart", "systemd",
          Scope(unit="vllm.service"), n_restarts=3)  # fmt: skip
    assert verdict(w)[0] == "insufficient_evidence"


def test_an_autoscaler_takes_a_replica_away(b: ModuleType) -> None:
    """Serve says that it scales down; what the replica prints as it drains is part of it."""
    w = b.World()
    w.add("controller", 0, "Downscaling Deployment(name='LLMServer', app='chat') from 3 to 2 replicas. Current", channel="ray")
    w.add("replica", 8, "Graceful shutdown complete; replica exiting.", channel="ray")
    assert verdict(w) == ("healthy", "possible")


def test_ollama_that_answers_is_healthy(b: ModuleType) -> None:
    """A model is loaded and its calls are answered; warnings about a guess of free memory are none of a fault."""
    w = b.World()
    w.add("ollama.log", 0, 'msg="gpu VRAM usage didn\'t recover within timeout" seconds=5.1', level="WARN")
    w.add("ollama.log", 5, 'msg="llama runner started in 4.20 seconds"')
    w.add("ollama.log", 9, "[GIN] 200", "access", method="POST", path="/api/chat", status=200)
    assert verdict(w)[0] == "healthy"


def test_refusals_of_tgi(b: ModuleType) -> None:
    """The router refuses what is too long, at level ERROR; nothing is wrong with the server."""
    w = b.World()
    text = "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2000 `inputs` tokens and 512 `max_new_tokens`"
    w.add("tgi.log", 0, text, level="ERROR")
    assert verdict(w)[0] == "request_rejected"


WAITS = 'Waiting for deployment "chat" rollout to finish: 0 of 1 updated replicas are available...'


@pytest.mark.parametrize(
    "failure", ['error: deployment "chat" exceeded its progress deadline', "error: timed out waiting for the condition"]
)
def test_a_rollout_that_failed_is_not_healthy(b: ModuleType, failure: str) -> None:
    w = b.World()
    w.add("ci.txt", 0, WAITS, "workload", "k8s")
    w.add("ci.txt", 600, failure, "workload", "k8s")
    assert verdict(w)[0] == "insufficient_evidence"


def test_a_rollout_that_is_still_awaited_is_not_healthy(b: ModuleType) -> None:
    w = b.World()
    w.add("ci.txt", 0, WAITS, "workload", "k8s")
    assert verdict(w)[0] == "insufficient_evidence"


def test_a_rollout_that_failed_first_and_then_went_through_is_healthy(b: ModuleType) -> None:
    w = b.World()
    w.add("ci.txt", 0, WAITS, "workload", "k8s")
    w.add("ci.txt", 600, "error: timed out waiting for the condition", "workload", "k8s")
    w.add("ci.txt", 900, 'deployment "chat" successfully rolled out', "workload", "k8s")
    assert verdict(w)[0] == "healthy"


def test_a_workload_that_only_grew_is_not_healthy_for_it(b: ModuleType) -> None:
    w = b.World()
    w.add("events.txt", 0, "ScalingReplicaSet: Scaled up replica set chat-7f from 0 to 1", "k8s_event", "k8s")
    assert verdict(w)[0] == "insufficient_evidence"


def counters(w: Any, text: str, **fields: int) -> None:
    w.add("cg.txt", None, f"memory.events: {text}", "cgroup", "cgroup", file="memory.events", **fields)
    w.add("cg.txt", None, "memory.max = 42949672960", "cgroup", "cgroup", file="memory.max", memory_max_bytes=42949672960)


def test_a_counter_of_kills_at_the_own_limit_is_possible(b: ModuleType) -> None:
    """Nothing else is known: neither when nor who."""
    w = b.World()
    counters(w, "max=7741 oom=2 oom_kill=2", oom=2, oom_kill=2)
    found = w.diagnosis()
    assert verdict(w) == ("host_oom.container_limit", "possible")
    assert found.key_facts["memcg_limit_kib"] == 41943040
    assert found.key_facts["oom_kill"] == 2


@pytest.mark.parametrize(("oom", "kills"), [(0, 2), (0, 0)], ids=["somebody else's limit", "no kill"])
def test_other_counters_say_nothing(b: ModuleType, oom: int, kills: int) -> None:
    w = b.World()
    counters(w, f"max=7741 oom={oom} oom_kill={kills}", oom=oom, oom_kill=kills)
    assert verdict(w)[0] == "insufficient_evidence"


def test_a_counter_accuses_nobody_beside_an_engine_at_work(b: ModuleType) -> None:
    """It may count last week's kill."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    counters(w, "max=7741 oom=2 oom_kill=2", oom=2, oom_kill=2)
    assert verdict(w)[0] == "healthy"


def test_a_units_result_alone_tells_of_a_kill_for_memory(b: ModuleType) -> None:
    w = b.World()
    w.add("journal.txt", 0, "vllm.service: Failed with result 'oom-kill'.", "log", "systemd", Scope(unit="vllm.service"))
    assert verdict(w) == ("host_oom.container_limit", "possible")


@pytest.mark.parametrize(
    ("usage", "waiting", "running", "preempted", "cause"),
    [
        (99.8, 214.0, 61.0, None, "kv_saturation"),
        (99.8, 20.0, 61.0, 1877.0, "kv_saturation"),
        (99.8, 20.0, 61.0, 0.0, "insufficient_evidence"),
        (99.8, 0.0, 61.0, 1877.0, "insufficient_evidence"),
        (31.0, 214.0, 61.0, 1877.0, "insufficient_evidence"),
    ],
    ids=["more wait than run", "preempted", "a moment's jam", "no queue", "not full"],
)
def test_a_single_reading(
    b: ModuleType, usage: float, waiting: float, running: float, preempted: float | None, cause: str
) -> None:
    """One scrape: what it shows is possible, how long it lasted nobody knows."""
    w = b.World()
    told = {"kv_cache_usage_pct": usage, "requests_waiting": waiting, "requests_running": running}
    told |= {"preemptions_total": preempted} if preempted is not None else {}
    for name, value in told.items():
        w.series(name, [(float("nan"), value)], "metrics.prom")
    assert verdict(w)[0] == cause
    if cause == "kv_saturation":
        assert verdict(w)[1] == "possible"
        assert w.diagnosis().key_facts["requests_running"] == running


@pytest.mark.parametrize(("statuses", "contents"), [
    ({401: 40, 404: 30, 400: 2}, None), ({404: 40, 401: 30}, None), ({400: 40, 401: 3}, 40), ({401: 30, 400: 20}, 20),
])  # fmt: skip
def test_most_refusals_decide_what_they_are_about(b: ModuleType, statuses: dict[int, int], contents: int | None) -> None:
    """A missing key and a prompt that is too long are not mended in the same place: facts choose the advice."""
    w = b.World()
    w.start("a", 0)
    answers = [status for status, count in {**statuses, 200: 30}.items() for _ in range(count)]
    for number, status in enumerate(answers):
        w.answer("a", 100.0 + number, status)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "request_rejected"
    assert diagnosis.key_facts["http_status"] == max(statuses, key=lambda status: statuses[status])
    assert diagnosis.key_facts.get("contents_refused") == contents


@pytest.mark.parametrize(
    ("pod", "full", "cause"),
    [("exporter-x1", 60, "kv_saturation"), ("chat-7a8b9c6d5f-q2w4r", 60, "config_error"), ("exporter-x1", 0, "config_error")],
    ids=["a bystander", "the engine's next replica", "nothing else is wrong"],
)  # fmt: skip
def test_a_bystanders_image_hides_no_saturation(b: ModuleType, pod: str, full: int, cause: str) -> None:
    """Somebody else's pod has waited for its image for days; the engine's cache is full today."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 3600, scope=scope)
    w.series("kv_cache_usage_pct", [(10 * i, 100.0 if i < full else 40.0) for i in range(100)], "a", scope)
    w.add("pods.txt", None, "container app waiting: ImagePullBackOff", "container_waiting", "k8s",
          Scope(pod=pod, container="app"), reason="ImagePullBackOff")  # fmt: skip
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("days", "serves", "healthy"), [(8, True, True), (1, True, False), (8, False, False)])
def test_a_fault_of_weeks_ago_is_history(b: ModuleType, days: int, serves: bool, healthy: bool) -> None:
    """`dmesg` holds months: an engine that began days after a fault, and works, did not end of it.

    One that began soon after it may have replaced what died of it, and one that never works proves nothing.
    """
    w = b.World()
    w.add("dmesg", -days * 86400.0, "NVRM: Xid (PCI:0000:c1:00): 79, pid=60231, name=python3, GPU has fallen off the bus.",
          "xid", "kernel", xid=79)  # fmt: skip
    w.start("chat.log", 0, ready=serves)
    if serves:
        w.answer("chat.log", 300)
    assert (verdict(w)[0] == "healthy") is healthy


@pytest.mark.parametrize(("days", "healthy"), [(11, True), (1, False)])
def test_a_kill_of_weeks_ago_is_history(b: ModuleType, days: int, healthy: bool) -> None:
    """The pod's last state, and the node's kernel log, which names no host, remember it; the pod works since."""
    w = b.World()
    w.start("chat.log", 0, Scope(pod=b.POD))
    w.answer("chat.log", 3600, scope=Scope(pod=b.POD))
    w.pod(pod_uid=b.UID, node="gpu-node-7")
    w.kill("dmesg", -days * 86400.0)
    w.exited("describe", -days * 86400.0 + 1, 137, "OOMKilled", last_state=True)
    assert (verdict(w)[0] == "healthy") is healthy
    assert ("past_end" in b.names(w.diagnosis().verdict.supporting)) is healthy


@pytest.mark.parametrize("uid", ["", "aaaaaaaa-1111-4222-8333-bbbbbbbbbbbb"], ids=["of nobody", "of a pod"])
def test_a_kill_of_another_program_was_no_end_of_the_service(b: ModuleType, uid: str) -> None:
    """Weeks ago the node had no memory for somebody's job: the report does not call that an end of the service."""
    w = b.World()
    w.start("chat.log", 0, Scope(pod=b.POD))
    w.answer("chat.log", 3600, scope=Scope(pod=b.POD))
    w.kill("dmesg", -11 * 86400.0, "node", uid, "", "trainer", None)
    found = w.diagnosis()
    assert found.verdict.cause.id == "healthy"
    assert "past_end" not in b.names(found.verdict.supporting)


def test_the_facts_of_a_rollout_are_those_of_the_run_that_serves_now(b: ModuleType) -> None:
    """The old replica was stopped, and its log shows no start; the new one's says how it was set up."""
    w = b.World()
    old, new = Scope(pod="chat-6d5c7b4f9-b7xkt"), Scope(pod="chat-7f6bd9c8c-m4v2s")
    w.answer("old.log", 0, scope=old)
    w.start("new.log", 10, new, max_model_len=32768)
    w.answer("new.log", 600, scope=new)
    w.add("old.log", 700, "Shutting down", scope=old)
    found = w.diagnosis()
    assert (found.verdict.cause.id, found.key_facts["max_model_len"]) == ("healthy", 32768)


def scrapes(w: Any, *rows: tuple[float, float, float]) -> None:
    """(usage, waiting, preemptions) of scrapes of one engine, ten minutes apart."""
    for column, name in enumerate(("kv_cache_usage_pct", "requests_waiting", "preemptions_total")):
        made = w.series(name, [(600.0 * n, row[column]) for n, row in enumerate(rows)], "metrics.prom")
        w.samples[w.samples.index(made)] = replace(made, layer="metrics")


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        (((99.1, 60.0, 40.0), (99.7, 85.0, 2940.0)), "kv_saturation"),
        (((99.1, 60.0, 40.0), (99.7, 85.0, 40.0)), "insufficient_evidence"),
        (((61.0, 0.0, 40.0), (72.0, 3.0, 90.0)), "insufficient_evidence"),
    ],
    ids=["a counter grew between them", "nothing tells of the time between", "room enough"],
)
def test_two_dated_scrapes(b: ModuleType, rows: tuple[tuple[float, float, float], ...], cause: str) -> None:
    """Somebody asked twice: too few points for a series, but a counter knows what lies between."""
    w = b.World()
    scrapes(w, *rows)
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("rows", "counts", "cause"),
    [
        (((61.0, 0.0, 200.0), (98.2, 70.0, 310.0), (99.6, 840.0, 290.0)), (), "kv_saturation"),
        (((98.2, 70.0, 310.0), (99.6, 140.0, 290.0)), ((12.0, 15.0), (900.0, 880.0)), "kv_saturation"),
        (((98.2, 70.0, 310.0), (99.6, 140.0, 290.0)), ((12.0, 15.0), (12.0, 15.0)), "healthy"),
        (((98.2, 840.0, 310.0), (99.6, 40.0, 30.0)), (), "healthy"),
        (((98.2, 70.0, 310.0), (41.0, 840.0, 290.0)), (), "healthy"),
    ],
    ids=["more wait than run", "a counter went on", "two bursts", "worked off", "room enough"],
)
def test_a_few_reports_of_a_log(
    b: ModuleType, rows: tuple[tuple[float, float, float], ...], counts: tuple[tuple[float, ...], ...], cause: str
) -> None:
    """Lines that somebody picked, twenty minutes apart, and the counters of two engines beside them."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 100)
    for column, name in enumerate(("kv_cache_usage_pct", "requests_waiting", "requests_running")):
        w.series(name, [(300.0 + 1200.0 * n, row[column]) for n, row in enumerate(rows)], "a", Scope(process="Engine 000"))
    for n, values in enumerate(counts):
        for engine, value in enumerate(values):
            scope = Scope(process=f"Engine {engine:03}")
            w.series("preemptions_total", [(float("nan"), value)], f"m/{n}.prom", scope, first_line=3 + engine)
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    if cause == "kv_saturation" and counts:
        (full,) = [f for f in found.findings if f.signature == "derived.kv_saturated"]
        assert full.fields["preemptions_grew"] == 900.0 + 880.0 - 12.0 - 15.0


@pytest.mark.parametrize(
    ("pod", "rows", "cause"),
    [
        ("llm-gateway-7d8b-x2k4p", ((99.1, 60.0, 40.0), (99.7, 85.0, 2940.0)), "kv_saturation"),
        ("chat-7b-1", ((99.1, 60.0, 40.0), (99.7, 85.0, 2940.0)), "host_oom.container_limit"),
        ("llm-gateway-7d8b-x2k4p", ((31.0, 0.0, 40.0), (35.0, 1.0, 40.0)), "host_oom.container_limit"),
    ],
    ids=["a gateway", "a replica", "nothing ails the engine"],
)
def test_a_gateways_end_hides_no_saturation(
    b: ModuleType, pod: str, rows: tuple[tuple[float, float, float], ...], cause: str
) -> None:
    """Who stands in front of an engine dies on its own account: it is the incident where there is no other."""
    w = b.World()
    scrapes(w, *rows)
    for name, restarts in (("chat-7b-0", 0), (pod, 3), (f"{pod}-b", 0)):
        w.add("pods.txt", None, f"pod {name} Running", "pod_status", "k8s", Scope(pod=name), phase="Running", restart_count=restarts)
    w.exited("describe.txt", 300, 137, "OOMKilled", pod, "", restart_count=3)
    assert verdict(w)[0] == cause


def test_the_pool_of_a_scrape(b: ModuleType) -> None:
    """No log shows how many tokens fit; the scrape of the configuration counts blocks."""
    w = b.World()
    scrapes(w, (99.1, 60.0, 40.0), (99.7, 85.0, 2940.0))
    for _ in range(2):
        w.add("metrics.prom", None, "cache_config_info", "engine_args", "metrics", num_gpu_blocks=1200, block_size=32)
    assert w.diagnosis().key_facts["kv_tokens"] == 38400
    w.add("metrics.prom", None, "cache_config_info", "engine_args", "metrics", num_gpu_blocks=900, block_size=32)
    assert "kv_tokens" not in w.diagnosis().key_facts


def batch(w: Any, b: ModuleType, last: str) -> None:
    """A Ray job in which an engine runs; a task fails for its memory, is tried again, and the job ends as `last` says."""
    w.add("driver.log", 0, "Job 'raysubmit_x7Qm2LxZ4vBw1Hc' submitted successfully")
    w.add("driver.log", 60, "Available KV cache memory: 30.20 GiB")
    w.fail("driver.log", 600, envelope="")
    w.add("driver.log", 620, "attempt 2/4 ok: part-07.parquet")
    w.add("driver.log", 2400, last)


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ("Job 'raysubmit_x7Qm2LxZ4vBw1Hc' succeeded", "healthy"),
        ("Job 'raysubmit_x7Qm2LxZ4vBw1Hc' failed", "gpu_oom"),
        ("Job supervisor polls", "gpu_oom"),
    ],
    ids=["succeeded", "failed", "not told"],
)
def test_a_batch_job_outlives_what_was_tried_again(b: ModuleType, last: str, cause: str) -> None:
    """What the job itself says at its end is proof of health; a retry is none."""
    w = b.World()
    batch(w, b, last)
    assert verdict(w)[0].startswith(cause)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("Job 'nightly' succeeded",), ("healthy", "likely")),
        (("Job 'nightly' succeeded", "Job 'weekly' failed"), ("insufficient_evidence", "undetermined")),
        (("Job 'nightly' succeeded", "Process completed with exit code 137."), ("insufficient_evidence", "undetermined")),
        (("Job 'nightly' submitted successfully",), ("insufficient_evidence", "undetermined")),
    ],
    ids=["done", "another failed", "something failed behind it", "not yet"],
)
def test_what_a_job_says_of_itself(b: ModuleType, lines: tuple[str, ...], expected: tuple[str, str]) -> None:
    w = b.World()
    for n, text in enumerate(lines):
        w.add("submit.log", n, text, channel="ray")
    assert verdict(w) == expected


@pytest.mark.parametrize(
    ("scrapes", "restarts", "cause"),
    [
        ([{"requests_stop_total": 5210, "requests_waiting": 0.0}], 0, "healthy"),
        ([{"requests_stop_total": 5210, "requests_waiting": 0.0}], None, "insufficient_evidence"),
        ([{"requests_stop_total": 5210, "requests_waiting": 0.0}], 3, "insufficient_evidence"),
        ([{"requests_stop_total": 5210, "requests_waiting": 4.0}], 0, "insufficient_evidence"),
        ([{"requests_stop_total": 5210, "requests_error_total": 900, "requests_waiting": 0.0}], 0, "insufficient_evidence"),
        ([{"requests_stop_total": 0, "requests_waiting": 0.0}], 0, "insufficient_evidence"),
        ([{"requests_stop_total": 5210, "requests_waiting": 0.0}] * 2, 0, "insufficient_evidence"),
    ],
    ids=["at work", "no status", "restarted", "somebody waits", "many fail", "nothing answered", "nothing more answered"],
)
def test_a_scrape_of_an_engine_at_work(
    b: ModuleType, scrapes: list[dict[str, float]], restarts: int | None, cause: str
) -> None:
    """An alert about a full card, a scrape and a row of kubectl: it answers, nobody waits, it was never restarted."""
    w = b.World()
    for n, fields in enumerate(scrapes):
        w.add(f"metrics-{n}.txt", None, "requests_waiting=0", "metrics", "metrics", level="", **fields)
    if restarts is not None:
        w.add("pods.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", Scope(pod=b.POD), phase="Running",
              restart_count=restarts)  # fmt: skip
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(("gone", "stops", "cause"), [
    ("chat-6f9c7d5b8-zzzzz", False, "insufficient_evidence"), ("shop-6f9c7d5b8-zzzzz", False, "healthy"),
    ("chat-6f9c7d5b8-zzzzz", True, "healthy"),
])  # fmt: skip
def test_a_replica_that_is_gone(b: ModuleType, gone: str, stops: bool, cause: str) -> None:
    """Somebody asked for the log of a pod that the API server knows no more: its successor's log tells nothing of it."""
    w = b.World()
    w.start("a", 0, Scope(pod=b.POD))
    w.answer("a", 3600, scope=Scope(pod=b.POD))
    w.add("kubectl.txt", None, f'Error from server (NotFound): pods "{gone}" not found', channel="k8s", scope=Scope(pod=gone))
    if stops:
        w.start("b", -900, Scope(pod=gone))
        w.answer("b", -30, scope=Scope(pod=gone))
        w.add("b", -20, "Shutting down FastAPI HTTP server.", scope=Scope(pod=gone))
        w.add("b", -19, "Application shutdown complete.", scope=Scope(pod=gone))
    assert verdict(w)[0] == cause


@pytest.mark.parametrize(
    ("status", "checks", "cause"),
    [("HEALTHY", False, "healthy"), ("UPDATING", False, "insufficient_evidence"), ("HEALTHY", True, "insufficient_evidence")],
)
def test_serve_replaces_its_replicas(b: ModuleType, status: str, checks: bool, cause: str) -> None:
    """An update: the old replicas drained, Serve has what it wants. A replica that failed its checks is another thing."""
    w = b.World()
    if checks:
        w.add("controller.log", 90, "Replica(id='7k2p', deployment='LLM', app='chat') failed health check, stopping it.", channel="ray")
    w.add("replica.log", 100, "Graceful shutdown complete; replica exiting.", channel="ray")
    w.add("actors.txt", None, "1f0c2ab7  ServeReplica:chat:LLM  DEAD   20011  The actor was killed by its controller.", channel="plain")
    w.add("status.yaml", None, f"Serve deployment 'LLM' of 'chat' is {status}", channel="ray")
    assert verdict(w)[0] == cause


def test_sglang_drains(b: ModuleType) -> None:
    """SIGTERM, and the count of requests that are left: an orderly stop, though no status tells of it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 900)
    w.add("a", 1000, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...", level="WARNING")
    w.add("a", 1005, "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
    assert verdict(w)[0] == "healthy"
