"""Which findings are evidence for a death: window, owner, run and place; the rest are decoys with a reason."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from forensics.clocks.years import YEAR_S
from forensics.diagnosis import evidence
from forensics.model import Basis, RawStamp, Scope, StampForm

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=40122, name=VLLM::EngineCor, GPU has fallen off the bus."


def world(b: ModuleType) -> Any:
    """A pod that serves from 08:00 and ends with 137 at 09:00; its node is known."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 3590, scope=scope)
    w.add("a", 3599, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", scope=scope, level="ERROR")
    w.pod(node="gpu-a1")
    w.exited("describe.txt", 3600, 137)
    return w


def objection_to(b: ModuleType, w: Any, signature: str) -> str:
    case = w.case()
    death = next(d for d in case.deaths if d.life is not None)
    one = next(f for f in case.findings if f.signature == signature)
    return str(evidence.objection(case, death, one))


def xid(w: Any, when: Any, **scope: Any) -> None:
    w.add("dmesg", when, XID, "xid", "kernel", Scope(**scope), xid=79)


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [(3598, ""), (3600 - 800, ""), (3600 - 1000, "before"), (3600 + 40, ""), (3600 + 60, "after"), (-7 * 86_400, "before")],
)
def test_the_window_of_a_node_fault(b: ModuleType, seconds: float, reason: str) -> None:
    """A fault of the node counts a quarter of an hour before a death and a moment after it."""
    w = world(b)
    xid(w, seconds)
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == reason


def test_what_has_no_time_cannot_be_shut_out(b: ModuleType) -> None:
    """An unknown clock proves nothing."""
    w = world(b)
    xid(w, None)
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == ""


def test_an_unsure_stamp_keeps_what_may_lie_in_the_window(b: ModuleType) -> None:
    """Local time of an unknown zone: nine hours off may still be the same moment."""
    w = world(b)
    xid(w, b.at(3600 - 9 * 3600, 14 * 3600.0, Basis.ZONE_ASSUMED))
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == ""


def test_an_unsure_stamp_of_last_week_is_still_last_weeks(b: ModuleType) -> None:
    """No zone makes three days into now."""
    w = world(b)
    xid(w, b.at(-3 * 86_400, 14 * 3600.0, Basis.ZONE_ASSUMED))
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == "before"


def test_a_fault_of_another_node(b: ModuleType) -> None:
    """The GPU that fell off its bus sits in another machine."""
    for host, reason in (("gpu-a1", ""), ("gpu-a1.cluster.local", ""), ("gpu-b7", "other_host")):
        w = world(b)
        xid(w, 3598, host=host)
        assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == reason, host


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("gpu-a1/dmesg", ""), ("dmesg.txt", ""), ("gpu-a1.example.net/dmesg", ""), ("boot-2/dmesg", ""),
        ("gpu-b7/dmesg", "other_host"), ("collected/dmesg-gpu-b7.txt", "other_host"),
    ],
)  # fmt: skip
def test_a_file_that_bears_the_name_of_a_node(b: ModuleType, file: str, reason: str) -> None:
    """`dmesg` prints no host: the folder of the collector, or the file's name, says whose it is."""
    w = world(b)
    w.add("nodes.txt", None, "node gpu-b7 Ready", "node_status", "k8s", Scope(host="gpu-b7"))
    w.add(file, 3598, XID, "xid", "kernel", xid=79)
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == reason


def test_a_name_made_like_a_known_one_in_its_place(b: ModuleType) -> None:
    """`gpu-a2/dmesg` beside `gpu-a1/dmesg` is of another node, though nothing else tells of that node."""
    w = world(b)
    w.add("gpu-a1/dmesg", 10, "eth0: renamed from tmpad809", channel="kernel")
    w.add("gpu-a2/dmesg", 3598, XID, "xid", "kernel", xid=79)
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == "other_host"


def test_a_node_event_of_another_node(b: ModuleType) -> None:
    """A reclaim of a node that the pod is not on; the scheduler says which one it is on."""
    w = world(b)
    w.add("events", 3500, "SpotInterrupted: Spot interruption warning was triggered", "k8s_event", "k8s", Scope(host="gpu-b7"),
          reason="SpotInterrupted", object_kind="Node", object_name="gpu-b7")  # fmt: skip
    assert objection_to(b, w, "host.spot_interruption") == "other_host"


def test_an_engine_on_several_nodes_may_end_of_each(b: ModuleType) -> None:
    """With pipeline stages on two machines a GPU that is lost on either ends the engine."""
    w = world(b)
    w.pod("b.yaml", name="chat-1", args=("--pipeline-parallel-size", "2"))
    xid(w, 3598, host="gpu-b7")
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == ""


def test_a_kill_on_a_machine_where_no_engine_ran_is_nobodys_here(b: ModuleType) -> None:
    """A trainer killed on another node leads no report about this one."""
    w = b.World()
    w.start("a", 0, Scope(pod=b.POD))
    w.answer("a", 3590, scope=Scope(pod=b.POD))
    w.pod(node="gpu-a1")
    w.kill("dmesg", 3598, "node", uid="", cid="", comm="python", limit_kib=None, host="gpu-b7")
    verdict = w.diagnosis().verdict
    assert not verdict.cause.id.startswith("host_oom")


def test_a_fault_of_the_machine_without_a_date_is_not_the_first(b: ModuleType) -> None:
    """A kernel log goes back for months: its Xid does not come before a kill whose time is known."""
    w = world(b)
    xid(w, None)
    w.kill("kernel.log", 3599, uid="", cid="")
    w.pod(memory_limit_bytes=67_108_864 * 1024)
    w.exited("describe.txt", 3600, 137, "OOMKilled")
    assert w.diagnosis().verdict.cause.id == "host_oom.container_limit"


def test_an_event_of_another_pod(b: ModuleType) -> None:
    """Evicted, but somebody else."""
    w = world(b)
    w.event("events", 3598, "Evicted", "The node was low on resource: memory. ", name="batch-x9")
    assert objection_to(b, w, "k8s.evicted") == "other_entity"


def test_an_event_of_our_pod_has_a_wide_window(b: ModuleType) -> None:
    """Reports arrive up to three minutes late; what happened before the run began belongs to another one."""
    for seconds, reason in ((3700, ""), (3900, "after"), (-300, "before")):
        w = world(b)
        w.event("events", seconds, "Evicted", "The node was low on resource: memory. ")
        assert objection_to(b, w, "k8s.evicted") == reason, seconds


def test_lines_of_another_run(b: ModuleType) -> None:
    """The run before died of something else; its lines explain its own death only."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", -1000, scope)
    w.fail("a", -900, scope=scope)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.fail("a", 80, "KeyError: 'x'", scope=scope)
    case = w.case()
    death = max((d for d in case.deaths if d.life), key=lambda d: d.time_s or 0)
    oom = next(f for f in case.findings if f.signature == "torch.oom")
    assert evidence.objection(case, death, oom) == "other_run"


def test_a_journal_holds_more_than_the_engine(b: ModuleType) -> None:
    """The unit's log stops; systemd-oomd and systemd, in the same file, say why."""
    w = b.World()
    unit = Scope(unit="vllm.service")
    w.add("journal", 0, "vLLM API server version 0.11.0", "engine_args", ident="vllm", engine_version="0.11.0")
    w.add("journal", 60, "Application startup complete.", ident="vllm")
    w.add("journal", 299, "Engine 000: Avg prompt throughput: 12.0 tokens/s", ident="vllm")
    killed = "Killed /system.slice/vllm.service due to memory pressure for /system.slice being 81.23% > 60.00% for > 20s"
    w.add("journal", 300, f"{killed} with reclaim activity", channel="oomd")
    w.add("journal", 300.1, "vllm.service: systemd-oomd killed 14 process(es) in this unit.", channel="systemd", scope=unit)
    w.add("journal", 300.2, "vllm.service: Main process exited, code=killed, status=9/KILL", "unit_exit", "systemd", unit,
          code="killed", status=9)  # fmt: skip
    assert w.diagnosis().verdict.cause.id == "external_sigkill"


@pytest.mark.parametrize(("worked", "cause"), [(300, "gpu_hardware"), (1900, "external_sigkill")],
                         ids=["stood since", "worked on"])  # fmt: skip
def test_a_fault_of_which_the_end_came_late(b: ModuleType, worked: int, cause: str) -> None:
    """The GPU was lost, and the engine stood for half an hour until somebody killed it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", worked)
    w.add("dmesg", 310, "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
          "xid", "kernel", xid=79)  # fmt: skip
    w.add("syslog", 2000, "ann : TTY=pts/2 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/kill -9 40122", channel="host")
    w.add("a", 2001, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    assert w.diagnosis().verdict.cause.id == cause


def test_the_run_of_a_cron_job_that_killed(b: ModuleType) -> None:
    """It runs every quarter of an hour; the one right before the end is what ended it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 2690)
    for minute in range(0, 60, 15):
        w.add("syslog", 60.0 * minute + 1, "(root) CMD (/opt/ops/gpu-reaper --signal KILL)", channel="host", line=minute + 1)
    w.add("a", 2702, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    found = w.diagnosis()
    assert (found.verdict.cause.id, found.first_cause.locator.line) == ("external_sigkill", 46)


def boot(seconds: float) -> RawStamp:
    return RawStamp(StampForm.BOOT, "dmesg", seconds, 1e-6)


def test_a_ring_buffer_that_nothing_ties_to_utc(b: ModuleType) -> None:
    """Its own seconds tell that a failed allocation of twenty minutes before has nothing to do with the kill, and which
    report is the kill's."""
    w = b.World()
    for number, seconds, comm in ((1, 100.0, "ruby"), (40, 9000.0, "node_exporter")):
        invoked = w.add("dmesg", None, f"{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", channel="kernel",
                        line=number)  # fmt: skip
        w.events[-1] = replace(invoked, stamps=(boot(seconds),))
    failed = w.add("dmesg", None, "kworker/u256:7: page allocation failure: order:5, mode:0x40dc0", channel="kernel", line=30)
    w.events[-1] = replace(failed, stamps=(boot(7700.0),))
    kill = w.kill("dmesg", None, "node", report_line=40)
    w.events[-1] = replace(kill, stamps=(boot(9000.1),))
    found = w.diagnosis()
    assert found.verdict.cause.id == "host_oom.node"
    assert found.first_cause.event.text.startswith("node_exporter")
    assert "kernel.page_allocation_failure" not in {f.signature for f in found.incidents[0].hypotheses[0].evidence}


def test_a_survived_error_is_no_evidence(b: ModuleType) -> None:
    """The run went on for an hour."""
    w = world(b)
    scope = Scope(pod=b.POD)
    w.events = [e for e in w.events if e.locator.source != "a"]
    w.lines.pop("a")
    w.start("a", 0, scope)
    w.fail("a", 80, scope=scope, envelope="")
    w.answer("a", 3590, scope=scope)
    w.add("a", 3599, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", scope=scope, level="ERROR")
    assert objection_to(b, w, "torch.oom") == "recovered"


@pytest.mark.parametrize(("pulled", "pod", "cause"), [
    (60, "", "driver_mismatch"), (-60, "", "config_error"), (60, "other-0", "config_error"),
])  # fmt: skip
def test_an_image_that_came_after_all(b: ModuleType, pulled: float, pod: str, cause: str) -> None:
    """The registry was away for a minute; the start then failed for another reason."""
    w = b.World()
    w.event("events", 0, "Failed", "Error: ImagePullBackOff")
    w.event("events", pulled, "Pulled", 'Successfully pulled image "vllm/vllm-openai:v0.9.2" in 41.2s', pod or b.POD)
    w.event("events", 119, "Failed", "Error: failed to create containerd task: nvidia-container-cli: initialization error: "
            "nvml error: driver/library version mismatch: unknown")  # fmt: skip
    w.exited("describe", 120, 128, "StartError")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize("answered", [True, False])
def test_a_hub_that_answered_was_reached(b: ModuleType, answered: bool) -> None:
    """A name that did not resolve at the first try is no cause of a refusal at the second."""
    w = b.World()
    w.start("a", 0, ready=False, loaded=False)
    text = "NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure in name resolution)"
    w.add("a", 10, text, level="WARNING")
    refusal = "OSError: You are trying to access a gated repo."
    w.fail("a", 20, refusal if answered else "OSError: no such model", ("vllm/config.py:get_config",), envelope="")
    found = w.diagnosis()
    assert found.verdict.cause.id == "model_download"
    assert found.first_cause.event.text == (refusal if answered else text)
    assert ("recovered" in {d.reason for d in found.decoys}) is answered


@pytest.mark.parametrize(("ends", "first"), [
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "NVIDIA GeForce"),
    ("OSError: no such model", "OSError"),
], ids=["of the same", "of something else"])  # fmt: skip
def test_what_torch_warned_of_is_not_overcome_by_loading(b: ModuleType, ends: str, first: str) -> None:
    """It is printed when torch looks at its devices; the first kernel comes only then."""
    w = b.World()
    w.add("a", 0, "vLLM API server version 0.7.3", "engine_args", engine_version="0.7.3")
    w.add("a", 1, "NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with the current PyTorch"
          " installation.", level="")  # fmt: skip
    w.add("a", 6, "Starting to load model acme/chat-14b...")
    w.fail("a", 9, ends, ("vllm/worker.py:load_model",), envelope="")
    assert w.diagnosis().first_cause.event.text.startswith(first)


@pytest.mark.parametrize(("hours", "reason"), [(2, ""), (30, "before")])
def test_a_service_of_the_machine_that_does_not_fit_the_driver(b: ModuleType, hours: float, reason: str) -> None:
    """The fabric manager fails while the machine boots; the engine is started later, and meets what is left of it."""
    w = world(b)
    scope = Scope(host="gpu-a1", unit="nvidia-fabricmanager.service")
    w.add("status.txt", 3600 - hours * 3600, "fabric manager NVIDIA GPU driver interface version 550.90.07 don't match with"
          " driver version 550.127.05. Please update with matching NVIDIA driver package.", channel="host", scope=scope,
          ident="nv-fabricmanager")  # fmt: skip
    w.add("status.txt", 3600 - hours * 3600, "Failed with result 'exit-code'.", channel="systemd", scope=scope)
    assert objection_to(b, w, "nvidia.fabric_manager_mismatch") == reason


def test_talk_about_an_error_is_no_evidence(b: ModuleType) -> None:
    """A prompt that quotes an OOM."""
    w = world(b)
    w.add("a", 100, f"Received request chatcmpl-1: prompt: 'why {b.oom_text()}?', params: SamplingParams(n=1)",
          scope=Scope(pod=b.POD))  # fmt: skip
    case = w.case()
    quoted = [f for f in case.findings if f.signature == "torch.oom"]
    assert all(f.quoted for f in quoted)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_one_fact_told_by_several_is_one(b: ModuleType) -> None:
    """The same kill in dmesg and in the journal: the surer stamp stays."""
    w = b.World()
    w.kill("journal", b.at(300.4, 1.0))
    sure = w.kill("dmesg", 300)
    kills = evidence.distinct(f for f in w.findings() if f.signature == "kernel.oom_kill_memcg")
    assert [f.locator for f in kills] == [sure.locator]


def test_of_lines_between_two_stamps_the_first_stays(b: ModuleType) -> None:
    """Their times are guesses that get a little narrower from line to line: that makes no later one surer."""
    w = b.World()
    for line, doubt_s in ((7, 1.998), (8, 1.997)):
        text = f"gpu-node-7:273:273 [2] misc/shmutils.cc:8{line} NCCL WARN Error: failed to extend /dev/shm/nccl-6Jc8wQ"
        w.add("a", b.at(10 + line / 1000, doubt_s, Basis.FILE_ORDER), text, line=line)
    kept = evidence.distinct(f for f in w.findings() if f.signature == "nccl.shm_segment")
    assert [f.locator.line for f in kept] == [7]


def test_other_victims_are_other_facts(b: ModuleType) -> None:
    """Two processes killed in one second are two facts; the same Xid an hour later is another one, too."""
    w = b.World()
    w.kill("dmesg", 300, pid=1)
    w.kill("dmesg", 300, pid=2)
    xid(w, 300)
    xid(w, 3900)
    assert len(evidence.distinct(w.findings())) == 4


def test_what_an_event_repeats_counts_from_its_first_time(b: ModuleType) -> None:
    """`x20 over 2h`: last seen after the death, first seen before it."""
    w = world(b)
    w.event("events", 9000, "Evicted", "The node was low on resource: memory. ", first_seen_s=b.T0 + 3500)
    assert objection_to(b, w, "k8s.evicted") == ""


def test_order_is_total(b: ModuleType) -> None:
    """By time, then place; what has no time comes last."""
    w = b.World()
    xid(w, None)
    xid(w, 20)
    xid(w, 10)
    assert [f.locator.line for f in sorted(w.findings(), key=evidence.order)] == [3, 2, 1]


@pytest.mark.parametrize(("command", "cause"), [("VLLM::EngineCore", "external_sigkill"), ("redis-server", "insufficient_evidence")])
def test_whose_pid_somebody_killed(b: ModuleType, command: str, cause: str) -> None:
    """A kill of a pid counts against the engine unless a list of processes gives that pid to another program."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.add("auth.log", 3601, "ops : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/kill -9 8933", channel="host")
    w.add("a", 3602, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    w.add("ps.txt", None, f"pid 8933 {command}", "process", "host", pid=8933, command=command)
    assert w.diagnosis().verdict.cause.id == cause



@pytest.mark.parametrize(
    ("second", "host", "owner", "cause"),
    [
        (3601, "gpu-a1", "VLLM::EngineCor", "external_sigkill"), (3601, "gpu-a1", "", "external_sigkill"),
        (3601, "gpu-a1", "tensorboard", "insufficient_evidence"), (3601, "gpu-b7", "", "insufficient_evidence"),
        (3500, "gpu-a1", "", "insufficient_evidence"), (3700, "gpu-a1", "", "insufficient_evidence"),
    ],
    ids=["the engine's pid", "some pid", "another's pid", "another node", "long before", "after it"],
)  # fmt: skip
def test_an_agent_of_the_platform_speaks_of_its_victim(
    b: ModuleType, second: float, host: str, owner: str, cause: str
) -> None:
    """The agent runs in a pod of its own and knows the host's pid of the engine that vanished at that moment."""
    w = b.World()
    scope = Scope(pod=b.POD, container="vllm", host="gpu-a1")
    w.start("a", 0, scope)
    w.answer("a", 3590, scope=scope)
    w.add("janitor.log", second, 'msg="idle gpu" pid=48213 action=SIGKILL dry_run=false', channel="container",
          scope=Scope(pod="janitor-x7", container="janitor", host=host))  # fmt: skip
    w.add("a", 3601.2, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", scope=scope, level="ERROR")
    if owner:
        w.add("dmesg", 3601.3, f"NVRM: Xid (PCI:0000:3b:00): 45, pid=48213, name={owner}, Ch 00000010", "xid", "kernel",
              Scope(host="gpu-a1"), xid=45, pid=48213, comm=owner)  # fmt: skip
    assert w.diagnosis().verdict.cause.id == cause


def test_a_launcher_that_ends_its_own_workers_is_no_agent(b: ModuleType) -> None:
    """The same words in the log of the engine itself: what it tidies up has ended for another reason."""
    w = world(b)
    w.add("a", 3599.5, "killing process 48213 (VLLM::Worker_TP)", channel="container", scope=Scope(pod=b.POD))
    assert objection_to(b, w, "host.agent_kill") == "no_impact"
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_what_an_agent_killed_beside_an_engine_at_work(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0, Scope(pod=b.POD))
    w.answer("a", 3590, scope=Scope(pod=b.POD))
    w.add("janitor.log", 3580, 'msg="idle gpu" pid=48213 action=SIGKILL dry_run=false', channel="container",
          scope=Scope(pod="janitor-x7", container="janitor"))  # fmt: skip
    assert w.diagnosis().verdict.cause.id == "healthy"


def test_a_stop_on_notice_of_a_reclaim_was_not_asked_for(b: ModuleType) -> None:
    w = b.World()
    scope = Scope(pod=b.POD, container="vllm")
    w.start("a", 0, scope)
    w.answer("a", 3600, scope=scope)
    w.add("a", 3610, "Shutting down", scope=scope)
    w.event("events.txt", 3610, "Killing", "Stopping container vllm")
    assert w.diagnosis().verdict.cause.id == "healthy"
    w.add("handler.log", 3600, "Spot ITN received. Instance will be interrupted soon", channel="host")
    assert w.diagnosis().verdict.cause.id == "external_sigkill"


@pytest.mark.parametrize(("rebooted", "uncertainty_s", "reason"), [(-60, 1, "before"), (-60, 900, ""), (110, 1, "")])
def test_a_reboot_ended_nothing_that_was_started_after_it(
    b: ModuleType, rebooted: float, uncertainty_s: float, reason: str
) -> None:
    """The machine comes up, the service starts, and fails minutes later of something else."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.fail("a", 120, "ValueError: unknown rope type 'yarn4'", ("vllm/config.py:get_config",), envelope="")
    text = "Rebooted: Node gpu-a1 has been rebooted, boot id: 0d7c2f1e-6a41-4c55-8f0e-2b1f5f7a9c13"
    w.add("events", b.at(rebooted, uncertainty_s), text, "k8s_event", "k8s", Scope(host="gpu-a1"), reason="Rebooted")
    assert objection_to(b, w, "k8s.node_rebooted") == reason


@pytest.mark.parametrize("text", [
    "Rebooted: Node gpu-a1 has been rebooted, boot id: 0d7c2f1e-6a41-4c55-8f0e-2b1f5f7a9c13",
    "SystemOOM: System OOM encountered, victim process: node-exporter, pid: 3120",
])  # fmt: skip
def test_who_tells_of_his_own_want_of_gpu_memory_was_not_killed(b: ModuleType, text: str) -> None:
    """Events that only have ages may lie hours off; a kill leaves no exception of the GPU's allocator."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.fail("a", 30, frames=b.LOADING, envelope="EngineCore failed to start.")
    w.add("events", b.at(-900, 86_400, Basis.RELATIVE_AGE), text, "k8s_event", "k8s", Scope(host="gpu-a1"),
          reason=text.partition(":")[0])  # fmt: skip
    assert w.diagnosis().verdict.cause.id == "gpu_oom.weights"


def test_the_accounting_of_another_job(b: ModuleType) -> None:
    """The time limit of somebody else's job is no cause of this one's end; the row is told as a decoy."""
    w = b.World()
    w.start("slurm-40120.out", 0, loaded=False)
    w.fail("slurm-40120.out", 30, frames=b.LOADING, envelope="EngineCore failed to start.")
    w.add("sacct.txt", None, "40120|chat|FAILED|1:0", channel="host", job="40120")
    w.add("sacct.txt", None, "39977|tune|TIMEOUT|0:0", channel="host", job="39977")
    found = w.diagnosis()
    assert found.verdict.cause.id == "gpu_oom.weights"
    assert ("slurm.time_limit", "other_entity") in {(d.finding.signature, d.reason) for d in found.decoys}


@pytest.mark.parametrize(
    ("second", "cause", "incidents"),
    [("40188", "host_oom.container_limit", 2), ("40120", "gpu_oom.weights", 1)],
    ids=["the next submission", "the same job, put back into the queue"],
)
def test_jobs_that_append_to_one_file(b: ModuleType, second: str, cause: str, incidents: int) -> None:
    """What is submitted anew is no restart: each job is an incident, and its accounting tells of no other one."""
    w = b.World()
    for start, job in ((0, "40120"), (900, second)):
        w.add("chat.out", start, f"--- job {job} on gpu-7 ---")
        w.add("chat.out", start + 5, "Starting to load model acme/chat-14b...")
        if not start:
            w.fail("chat.out", 30, frames=b.LOADING)
    w.add("sacct.txt", None, f"{second}|chat|OUT_OF_MEMORY|0:125", channel="host", job=second)
    found = w.diagnosis()
    assert (found.verdict.cause.id, len(found.incidents)) == (cause, incidents)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_unit_that_is_never_ready_in_time(b: ModuleType, runs: int) -> None:
    """The unit and the program that it starts have different names in one journal; each run ends by the unit's line."""
    w = b.World()
    unit = Scope(unit="chat.service")
    for n in range(runs):
        w.add("journal", 300 * n, "     █     █     █▄   ▄█")
        w.start("journal", 300 * n + 1, ready=False)
        w.add("journal", 300 * n + 86, "Compiling a graph for dynamic shape takes 41.20 s")
        w.add("journal", 300 * n + 90, "chat.service: start operation timed out. Terminating.", channel="systemd", scope=unit)
        text = "chat.service: Main process exited, code=killed, status=15/TERM"
        w.add(
            "journal", 300 * n + 92, text, "unit_exit", "systemd", unit, code="killed", status=15, status_name="TERM"
        )
    found = w.diagnosis()
    assert found.verdict.cause.id == "external_sigkill"
    assert found.first_cause is not None
    assert "timed out" in found.first_cause.event.text
    if runs > 1:
        assert len(found.incidents[0].deaths) == runs
        assert not any("█" in d.life.end.text for d in found.incidents[0].deaths if d.life)


@pytest.mark.parametrize(("uncertainty_s", "every_s"), [(0.001, 195), (366 * 86400.0, 195), (366 * 86400.0, 75)])
def test_each_lap_of_a_loop_counts_whatever_the_year(b: ModuleType, uncertainty_s: float, every_s: int) -> None:
    """Lines of one journal, with stamps without a year: the first timeout is the cause, and each exit is a death."""
    w = b.World()
    unit = Scope(unit="chat@a.service")
    w.add("chat@.service", None, "unit chat@.service spec", "pod_spec", "systemd", Scope(unit="chat@.service"),
          start_timeout_s=60)  # fmt: skip
    for n in range(3):
        begin = every_s * n
        w.start("journal", begin + 1, unit, ready=False, loaded=False)
        for second, text, kind in (
            (60, "chat@a.service: start operation timed out. Terminating.", "log"),
            (64, "chat@a.service: Main process exited, code=killed, status=15/TERM", "unit_exit"),
        ):
            moment = b.at(begin + second, uncertainty_s - n)  # the last is the surest, as after a solved clock
            fields = {"code": "killed", "status": 15, "process": "main"} if kind == "unit_exit" else {}
            w.add("journal", moment, text, kind, "systemd", unit, **fields)
            stamp = RawStamp(StampForm.YEARLESS, "journal", 1000.0 + begin + second, 1.0)
            w.events[-1] = replace(w.events[-1], stamps=(stamp,))
    found = w.diagnosis()
    assert found.first_cause is not None
    assert found.first_cause.event.stamps[0].seconds == 1060.0
    assert len(found.incidents[0].deaths) == 3
    assert found.key_facts["start_timeout_s"] == 60


def test_a_second_is_nothing_where_the_year_is_not_known(b: ModuleType) -> None:
    """Two lines of one log, of which the later one has a finer stamp: the first one is the cause."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    year = 366 * 86400.0
    first = w.fail("a", b.at(80, year + 1), "RuntimeError: CUDA error: an illegal memory access was encountered")
    w.add("a", b.at(80.8, year + 0.001), "watchdog: CUDA error: an illegal memory access was encountered", level="ERROR")
    found = w.diagnosis()
    assert found.first_cause is not None
    assert found.first_cause.locator == first.locator


@pytest.mark.parametrize(("days", "reason"), [(0, ""), (15, "before"), (15 + 365, "before"), (365, ""), (-20, "after")])
def test_no_year_brings_two_days_of_the_calendar_together(b: ModuleType, days: int, reason: str) -> None:
    """A stamp without a year may be of any: the end of August is two weeks from the middle of September in each."""
    w = world(b)
    xid(w, b.at(3590 - days * 86_400, YEAR_S + 14 * 3600.0, Basis.ZONE_ASSUMED))
    assert objection_to(b, w, "nvidia.xid_fallen_off_bus") == reason


def test_a_raylet_speaks_before_the_log_of_the_run(b: ModuleType) -> None:
    """A driver prints the words of its raylets under their own name: they are of no run, and tell of its end."""
    w = b.World()
    killed = "2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node "
    w.add("driver.log", 99, f"{killed}(ID: 41c07fe2..., IP: 10.9.0.4) over the last time period.", channel="ray", scope=Scope(host="10.9.0.4"))
    w.fail("driver.log", 100, "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.")
    found = w.diagnosis()
    assert found.verdict.cause.id == "ray_oom"
    assert found.first_cause is not None
    assert found.first_cause.signature == "ray.workers_killed_summary"


@pytest.mark.parametrize(("ran_out", "reason"), [(False, "no_impact"), (True, "")])
def test_a_warning_of_every_start_is_evidence_where_it_came_true(b: ModuleType, ran_out: bool, reason: str) -> None:
    """A low limit of open files is printed on many machines; it explains no other error."""
    w = b.World()
    w.start("a", 0, ready=False)
    w.add("a", 30, "Found ulimit of 1024 and failed to automatically increase with error current limit exceeds maximum limit. "
          "This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.", level="WARNING")  # fmt: skip
    if ran_out:
        w.add("a", 32, "OSError: [Errno 24] Too many open files", level="ERROR")
    w.fail("a", 40, "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (3).")
    assert objection_to(b, w, "vllm.ulimit_low") == reason


def test_an_exception_printed_twice_is_one_fact(b: ModuleType) -> None:
    """With its traceback and, by the client, as a line: vLLM's V0 prints it so."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 900)
    w.fail("a", 1000, b.oom_text())
    w.add("a", 1000.2, f"OutOfMemoryError('{b.oom_text().partition(': ')[2]}')", level="ERROR")
    told = [f.locator.line for f in w.diagnosis().verdict.supporting if f.signature == "torch.oom"]
    assert len(told) == 1
