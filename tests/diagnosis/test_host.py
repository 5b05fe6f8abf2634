"""Host memory: whose limit a kill enforced, and how much a container's status proves."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from forensics.diagnosis.rules import host
from forensics.model import Scope
from forensics.report import text


@pytest.mark.parametrize(
    ("oom_scope", "name", "cause"),
    [
        ("container", "kill_container_limit", "host_oom.container_limit"),
        ("pod", "kill_pod_limit", "host_oom.container_limit"),
        ("unit", "kill_unit_limit", "host_oom.container_limit"),
        ("user", "kill_unit_limit", "host_oom.container_limit"),
        ("job", "kill_job_limit", "host_oom.container_limit"),
        ("node", "kill_node", "host_oom.node"),
        ("cpuset", "kill_node", "host_oom.node"),
        ("kubepods", "kill_node_allocatable", "host_oom.node"),
        ("qos", "kill_node_allocatable", "host_oom.node"),
        ("", "kill_container_limit", "host_oom.container_limit"),
    ],
)
def test_the_owner_of_the_limit_decides(b: ModuleType, oom_scope: str, name: str, cause: str) -> None:
    """A memcg kill is not the container's just because it is a memcg kill."""
    w = b.World()
    w.kill("dmesg", 300, oom_scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.exited("describe.txt", 301, 137, "OOMKilled")
    case = w.case()
    assert name in b.names(host.rules(case, case.deaths[0]))
    assert w.diagnosis().verdict.cause.id == cause


def test_a_kill_line_and_a_status_together_tell_whose_limit_it_was(b: ModuleType) -> None:
    """The line says that a limit was reached, OOMKilled that it was in this container; each alone leaves the other open."""
    w = b.World()
    w.kill("dmesg", 300, "", limit_kib=None)
    w.pod(memory_limit_bytes=64 << 30)
    w.exited("describe.txt", 301, 137, "OOMKilled")
    diagnosis = w.diagnosis()
    assert (diagnosis.verdict.cause.id, diagnosis.verdict.confidence) == ("host_oom.container_limit", "established")
    (kill,) = (f for f in diagnosis.verdict.decisive if f.signature == "derived.kill_container_limit")
    assert kill.fields["container_limit_gib"] == 64


def test_an_unknown_limit_is_only_possible(b: ModuleType) -> None:
    """A `Killed process` line without its memcg fixes the family, not the member."""
    w = b.World()
    w.kill("dmesg", 300, "", limit_kib=None)
    assert w.diagnosis().verdict.confidence == "possible"


def test_memory_of_the_victim_is_its_rss(b: ModuleType) -> None:
    """anon + file + shmem; never total-vm, which holds CUDA's address space."""
    w = b.World()
    event = w.kill("dmesg", 300)
    assert host.kill_fields(event)["victim_rss_kib"] == 60_000_005


def test_a_kill_of_every_process_is_one_death(b: ModuleType) -> None:
    """memory.oom.group prints the victim twice and then every other task."""
    w = b.World()
    for pid in (40122, 40122, 40050):
        w.kill("dmesg", 300, pid=pid)
    assert len(w.case().deaths) == 1
    assert w.diagnosis().key_facts["kill_count"] == 2


@pytest.mark.parametrize(
    ("code", "name"), [(137, "oomkilled_status"), (1, "oomkilled_child"), (0, "oomkilled_child"), (143, "oomkilled_child")]
)
def test_what_oomkilled_proves(b: ModuleType, code: int, name: str) -> None:
    """With another code than 137 some process of the container was killed at some time: not what ended it."""
    w = b.World()
    w.exited("describe.txt", 300, code, "OOMKilled")
    w.pod()
    case = w.case()
    assert name in b.names(host.rules(case, case.deaths[0]))


@pytest.mark.parametrize("code", [0, 1, 143])
def test_oomkilled_right_after_a_silent_death_was_the_engine(b: ModuleType, code: int) -> None:
    """The engine process vanished, its parent ended by itself in any way, and the status says OOMKilled: possible."""
    w = b.World()
    w.start("a", 0, Scope(pod=b.POD))
    w.answer("a", 900, scope=Scope(pod=b.POD))
    w.add("a", 1000, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR", scope=Scope(pod=b.POD))
    w.add("a", 1001, "Shutting down", scope=Scope(pod=b.POD))
    w.exited("describe.txt", 1005, code, "OOMKilled")
    w.pod(memory_limit_bytes=40 << 30)
    found = w.diagnosis()
    assert (found.verdict.cause.id, found.verdict.confidence) == ("host_oom.container_limit", "possible")
    assert found.first_cause.signature == "vllm.engine_process_died"


@pytest.mark.parametrize(("reason", "exited"), [("Error", 1005), ("OOMKilled", 9000)], ids=["no OOM", "hours later"])
def test_a_silent_death_alone_is_no_kill_for_memory(b: ModuleType, reason: str, exited: float) -> None:
    w = b.World()
    w.start("a", 0, Scope(pod=b.POD))
    w.answer("a", 900, scope=Scope(pod=b.POD))
    w.add("a", 1000, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR", scope=Scope(pod=b.POD))
    w.exited("describe.txt", exited, 0, reason)
    w.pod(memory_limit_bytes=40 << 30)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_oomkilled_without_a_kernel_line_is_not_established(b: ModuleType) -> None:
    """`oom_kill` counts kills at any limit: a status alone does not say whose."""
    w = b.World()
    w.exited("describe.txt", 300, 137, "OOMKilled")
    w.pod()
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == "host_oom.container_limit"
    assert verdict.confidence in ("possible", "likely")


def test_a_kill_of_somebody_else_explains_a_137(b: ModuleType) -> None:
    """The node ran out of memory while ours died: a global kill nearby, of another pod."""
    w = b.World()
    w.exited("describe.txt", 300, 137)
    w.pod()
    w.add("kubelet.log", 0, "x", channel="kubelet", scope=Scope(pod=b.POD, pod_uid=b.UID))
    w.kill("dmesg", 299, "node", uid="aaaaaaaa-1111-4222-8333-bbbbbbbbbbbb", cid="d4" * 32, comm="java")
    case = w.case()
    mine = next(d for d in case.deaths if d.entity == f"pod:{b.POD}")
    assert "node_kill_nearby" in b.names(host.rules(case, mine))


@pytest.mark.parametrize("told", [True, False], ids=["tells why", "silent"])
def test_a_kill_of_somebody_else_explains_no_failure_that_tells_its_cause(b: ModuleType, told: bool) -> None:
    """A worker's own exception on its GPU a minute after the node ran out of memory is no kill."""
    w = b.World()
    w.start("0.log", 0)
    w.answer("0.log", 3600)
    text = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered" if told else "RuntimeError: lost"
    w.fail("0.log", 3700, text, envelope="")
    w.kill("dmesg", 3650, "node", uid="aaaaaaaa-1111-4222-8333-bbbbbbbbbbbb", cid="d4" * 32, comm="java")
    case = w.case()
    mine = next(d for d in case.deaths if d.life is not None)
    assert ("node_kill_nearby" in b.names(host.rules(case, mine))) is not told


@pytest.mark.parametrize(("comm", "other", "cause"), [
    ("python3", "jupyter-kim", "app_bug"),
    ("python3", "vllm-chat", "host_oom.container_limit"),
])  # fmt: skip
def test_a_kill_of_python_in_another_unit(b: ModuleType, comm: str, other: str, cause: str) -> None:
    """The engine is a unit of its own, and fails half a minute later of something else."""
    w = b.World()
    unit = Scope(unit="vllm-chat.service")
    w.start("journal", 0, unit)
    w.answer("journal", 3600, scope=unit)
    killed = w.kill("journal", 3670, "unit", uid="", cid="", comm=comm)
    w.events[-1] = replace(killed, scope=Scope(unit=f"{other}.service", pid=40122))
    w.fail("journal", 3700, "KeyError: 'tenant'", ("/opt/hook.py tag",), unit, "")
    assert w.diagnosis().verdict.cause.id == cause


def test_a_kill_at_another_pods_limit_explains_nothing(b: ModuleType) -> None:
    """A neighbour that hits its own limit does not hurt us."""
    w = b.World()
    w.exited("describe.txt", 300, 137, "OOMKilled")
    w.pod()
    w.add("kubelet.log", 0, "x", channel="kubelet", scope=Scope(pod=b.POD, pod_uid=b.UID))
    w.kill("dmesg", 299, "container", uid="aaaaaaaa-1111-4222-8333-bbbbbbbbbbbb", cid="d4" * 32, comm="java", limit_kib=1)
    case = w.case()
    mine = next(d for d in case.deaths if d.entity == f"pod:{b.POD}")
    assert not b.names(host.rules(case, mine)) & {"node_kill_nearby", "kill_container_limit"}


@pytest.mark.parametrize(
    ("size", "free", "found"), [(64 << 20, 60 << 20, True), (8 << 30, 7 << 30, False), (8 << 30, 1 << 20, True)]
)
def test_small_or_full_shared_memory(b: ModuleType, size: int, free: int, found: bool) -> None:
    """/dev/shm of docker's default size, or full."""
    w = b.World()
    w.exited("describe.txt", 300, 135)
    w.pod()
    w.add("df.txt", 301, "/dev/shm", "df", "host", mount="/dev/shm", size_bytes=size, available_bytes=free, used_bytes=size - free)
    case = w.case()
    assert ("shm_small" in b.names(host.rules(case, case.deaths[0]))) is found


def test_xids_after_a_kill_are_its_consequence(b: ModuleType) -> None:
    """43 and 45 come a second after a SIGKILL: channels of a dead process are torn down."""
    w = b.World()
    w.kill("dmesg", 300)
    for n, seconds in ((45, 301.0), (43, 301.1)):
        w.add("dmesg", seconds, f"NVRM: Xid (PCI:0000:3b:00): {n}, pid=40122, name=VLLM::EngineCor, Ch 00000012", "xid",
              "kernel", Scope(gpu="0000:3b:00", pid=40122), xid=n, pid=40122, comm="VLLM::EngineCor")  # fmt: skip
    verdict = w.diagnosis()
    assert verdict.verdict.cause.id == "host_oom.container_limit"
    assert {"nvidia.xid_consequence"} <= b.names(verdict.incidents[0].consequences)


def test_a_cuda_oom_is_not_the_hosts(b: ModuleType) -> None:
    """A survived CUDA OOM before a kernel kill is a decoy: two worlds of memory."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.fail("a", 80, scope=scope, envelope="")
    w.answer("a", 900, scope=scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.kill("dmesg", 1000)
    w.exited("describe.txt", 1001, 137, "OOMKilled")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "host_oom.container_limit"
    assert "torch.oom" in {d.finding.signature for d in diagnosis.decoys}


def test_a_killed_run_is_the_run_of_its_death(b: ModuleType) -> None:
    """SIGKILL leaves no last line: the run whose log ends at the kill is the one that died, and it was serving."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.fail("a", 80, scope=scope, envelope="")
    w.answer("a", 999, scope=scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.kill("dmesg", 1000)
    w.exited("describe.txt", 1001, 137, "OOMKilled")
    case = w.case()
    (death,) = case.deaths
    assert death.life is not None
    assert ("torch.oom", "recovered") in {(d.finding.signature, d.reason) for d in w.diagnosis().decoys}


def test_a_killed_sidecar_is_not_the_engine(b: ModuleType) -> None:
    """The log shipper hits its own 128 MiB; the engine dies of a CUDA OOM while capturing graphs."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope, ready=False)
    w.fail("a", 80, frames=("gpu_model_runner.py:capture_model",), scope=scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.pod(container="fluent-bit", memory_limit_bytes=128 << 20, gpus=None, args=(), image="fluent/fluent-bit:3")
    w.kill("dmesg", 60, cid="9b2f" * 16, comm="flb-pipeline", limit_kib=128 << 10)
    w.exited("describe.txt", 60, 137, "OOMKilled", container="fluent-bit")
    w.exited("describe.txt", 82, 1)
    assert w.diagnosis().verdict.cause.id == "gpu_oom.cuda_graph"


def test_a_kill_that_the_engine_survived_is_a_decoy(b: ModuleType) -> None:
    """A helper was killed at 08:10; the engine worked until an illegal access at 11:00, with OOMKilled / exit 1."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.pod(memory_limit_bytes=64 << 30)
    w.kill("dmesg", 600, comm="python3", pid=40555)
    w.answer("a", 10_000, scope=scope)
    w.fail("a", 10_800, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", scope=scope)
    w.exited("describe.txt", 10_805, 1, "OOMKilled")
    assert w.diagnosis().verdict.cause.id == "gpu_illegal_access"


def test_the_runtime_saw_an_oom_kill(b: ModuleType) -> None:
    """containerd's TaskOOM and exit 137 of one container, without a kernel log: the host's memory, limit unknown."""
    w = b.World()
    known = Scope(pod=b.POD, pod_uid=b.UID, container_id=b.CID)
    w.pod()
    w.add("containerd", 300, f'TaskOOM event container_id:"{b.CID}"', channel="runtime", scope=known)
    w.add("containerd", 300.4, "container c3a1 terminated: reason= exit_code=137", "container_terminated", "runtime",
          known, exit_code=137)  # fmt: skip
    assert w.diagnosis().verdict.cause.id.startswith("host_oom.")


def test_another_pods_kill_is_not_our_incident(b: ModuleType) -> None:
    """A build container hits its limit three seconds before our engine dies of a bug."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.pod()
    w.kill("dmesg", 297, uid="aaaaaaaa-1111-4222-8333-bbbbbbbbbbbb", cid="d4" * 32, comm="python3", limit_kib=2 << 20)
    w.fail("a", 300, "KeyError: 'chatcmpl-88'", scope=scope)
    w.exited("describe.txt", 302, 1)
    assert w.diagnosis().verdict.cause.id == "app_bug"


def test_last_weeks_kill_does_not_explain_today(b: ModuleType) -> None:
    """The ring buffer still holds a kill of a week ago; today's 137 has no witness."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(memory_limit_bytes=64 << 30)
    w.kill("dmesg", -7 * 86_400)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.exited("describe.txt", 300, 137)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_a_node_kill_is_read_from_its_head(b: ModuleType) -> None:
    """The victim of a node is no culprit: the report's head says who asked. At a container's limit the kill counts."""
    for oom_scope, line in (("node", 1), ("container", 2)):
        w = b.World()
        w.pod(memory_limit_bytes=64 << 30)
        w.add("dmesg", 299.99, "java invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER), order=0, oom_score_adj=0",
              channel="kernel")  # fmt: skip
        w.kill("dmesg", 300, oom_scope)
        w.exited("describe.txt", 301, 137, "OOMKilled")
        diagnosis = w.diagnosis()
        assert diagnosis.first_cause is not None
        assert (diagnosis.first_cause.locator.source, diagnosis.first_cause.locator.line) == ("dmesg", line)
        assert diagnosis.first_cause.id


def test_what_the_kubelet_retells_is_a_consequence(b: ModuleType) -> None:
    """`System OOM encountered` is read out of the kernel log: alone it decides, beside the kernel's line it follows."""
    w = b.World()
    w.pod()
    w.event("events", 302, "SystemOOM", "System OOM encountered, victim process: VLLM::EngineCor, pid: 40122")
    w.exited("describe.txt", 301, 137, "OOMKilled")
    assert "k8s.system_oom" in {f.signature for f in w.diagnosis().verdict.decisive}
    w.kill("dmesg", 300, "node")
    diagnosis = w.diagnosis()
    assert "k8s.system_oom" not in {f.signature for f in diagnosis.verdict.evidence}
    assert "k8s.system_oom" in {f.signature for f in diagnosis.incidents[0].consequences}


@pytest.mark.parametrize(
    ("counters", "kernel_s", "cause"),
    [
        ("max 8812 oom 3 oom_kill 1", None, "host_oom.container_limit"),
        ("max 8812 oom 0 oom_kill 1", None, "insufficient_evidence"),
        ("max 8812 oom 3 oom_kill 1", 290, "insufficient_evidence"),
    ],
    ids=["own limit", "limit further up", "the kernel's log shows no kill"],
)
def test_a_counter_is_a_weak_word(b: ModuleType, counters: str, kernel_s: float | None, cause: str) -> None:
    """The engine vanished, and the cgroup counts a kill at its own limit: possible, for no counter says when."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 200)
    w.add("a", 300, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    w.add("cgroup/memory.events", None, f"memory.events: low 0 high 0 {counters} oom_group_kill 0", "cgroup", "cgroup")
    if kernel_s is not None:
        w.add("dmesg", kernel_s, "eth0: link up", channel="kernel")
    verdict = w.diagnosis().verdict
    assert verdict.cause.id == cause
    assert str(verdict.confidence) in ("possible", "undetermined")


@pytest.mark.parametrize(
    ("word", "cause"),
    [("已杀死", "host_oom.container_limit"), ("Killed", "host_oom.container_limit"), ("bye", "insufficient_evidence")],
)
def test_a_shell_saw_the_kill_that_the_cgroup_counts(b: ModuleType, word: str, cause: str) -> None:
    """SIGKILL beside a counter of the cgroup: its limit, from the file beside the counter, is among the numbers."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 30, "Loading safetensors checkpoint shards:  45% Completed | 5/11 [00:30<00:36,  6.00s/it]")
    w.add("a", 31, word)
    counters = "memory.events: low 0 high 0 max 7 oom 1 oom_kill 1 oom_group_kill 0"
    w.add("box/cgroup/memory.events", None, counters, "cgroup", "cgroup")
    for folder, limit in (("other", 2**30), ("cgroup", 60 * 2**30)):
        w.add(f"box/{folder}/memory.max", None, f"memory.max = {limit}", "cgroup", "cgroup", memory_max_bytes=limit)
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    if word != "bye":
        assert str(found.verdict.confidence) == "possible"
        assert found.key_facts["memcg_limit_kib"] == 60 * 2**20
        assert found.first_cause is not None
        assert found.first_cause.event.text == word


def test_the_culprit_of_a_node_kill_is_named(b: ModuleType) -> None:
    """Who held most memory is in the sentence and in the facts; nobody else is, when it was the victim."""
    for holder in (48110, 40122):
        w = b.World()
        w.pod()
        tasks = ({"comm": "python3", "pid": holder, "rss_kib": 225_024_408, "oom_score_adj": 110},)
        w.kill("dmesg", 300, "node", tasks=tasks)
        w.exited("describe.txt", 301, 137, "OOMKilled")
        diagnosis = w.diagnosis()
        (kill,) = (f for f in diagnosis.verdict.decisive if f.signature == "derived.kill_node")
        named = "python3 (pid 48110) held most memory, 214.6 GiB" in text.sentence(kill, "en")
        assert named is (holder == 48110)
        assert diagnosis.key_facts.get("largest_task_oom_score_adj") == (110 if named else None)


def test_who_used_more_than_requested(b: ModuleType) -> None:
    """Of an evicted pod's containers the one furthest above its request is named, with what the node had left."""
    w = b.World()
    w.pod()
    w.event("events", 300, "Evicted", "The node was low on resource: memory. Threshold quantity: 4Gi, available: "
            "3911224Ki. Container vllm was using 42229760Ki, request is 32Gi, has larger consumption of memory. Container "
            "spooler was using 96636084Ki, request is 256Mi, has larger consumption of memory.")  # fmt: skip
    w.exited("describe.txt", 302, 137)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "eviction"
    facts = diagnosis.key_facts
    assert (facts["consumer"], facts["consumer_usage_kib"], facts["consumer_request_kib"], facts["available_kib"]) == (
        "spooler", 96_636_084, 262_144, 3_911_224,
    )  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 7 rank=1",
        "ERROR multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 812 died, exit code: -7",
        "Unable to initialize shared memory key 'triton_python_backend_shm_region_4' to requested size (1048576 bytes). Error: No space left on device",
    ],
)
def test_a_bus_error_or_no_room_for_a_region_is_shared_memory(b: ModuleType, line: str) -> None:
    """SIGBUS of a child, and the region that the Triton server could not make."""
    w = b.World()
    w.add("a", 1, "INFO shard-manager: text_generation_launcher: Starting shard rank=1")
    w.add("a", 30, line, level="ERROR")
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, verdict.confidence) == ("shm_exhausted", "likely")


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}",
        "ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 9 rank=1",
    ],
)
def test_a_child_killed_while_the_engine_started(b: ModuleType, line: str) -> None:
    """Nobody but the kernel kills one process of a container, as a rule: possible, no more."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 40, line, level="ERROR")
    w.add("a", 40, "Shard 1 failed to start", level="ERROR")
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, str(verdict.confidence)) == ("host_oom.container_limit", "possible")
    assert "killed_while_starting" in b.names(verdict.decisive)


@pytest.mark.parametrize(
    ("limit", "cause"), [({"memory_unlimited": True}, "insufficient_evidence"), ({"memory_limit_bytes": 64 << 30}, "host_oom.container_limit")]
)
def test_a_child_killed_in_a_container_without_a_limit(b: ModuleType, limit: dict[str, object], cause: str) -> None:
    """It reached none; a script, a person or the whole machine's shortage are left, and nothing tells them apart."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 40, "RuntimeError: Engine core initialization failed. Failed core proc(s): {'EngineCore_DP0': -9}", level="ERROR")
    w.add("state.txt", None, "container vllm exited: exit_code=1 oom_killed=false", "docker_state", "runtime",
          status="exited", exit_code=1, oom_killed=False, **limit)  # fmt: skip
    assert w.diagnosis().verdict.cause.id == cause


def test_a_child_that_failed_by_itself_was_not_killed(b: ModuleType) -> None:
    """Exit code 1 is an exception of its own."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 40, "RuntimeError: Engine core initialization failed. Failed core proc(s): {'EngineCore_DP0': 1}", level="ERROR")
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_an_illegal_instruction_is_the_machine(b: ModuleType) -> None:
    """A build for a newer CPU: the kernel names the library, the container ends with 132."""
    w = b.World()
    w.pod()
    text = "traps: python3[1143] trap invalid opcode ip:7f11a039 sp:7fff2b48c010 error:0 in libtorch_cpu.so[1a39,7f110000+8d000]"
    w.add("kern", 10, text, channel="kernel")
    w.exited("describe.txt", 11, 132, started=2)
    assert w.diagnosis().verdict.cause.id == "unsupported_hardware"


def test_a_model_too_large_for_the_host(b: ModuleType) -> None:
    """Refused before anybody was killed."""
    w = b.World()
    w.add("a", 0, "Error: model requires more system memory (52.7 GiB) than is available (30.1 GiB)", channel="host", level="ERROR")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "host_oom.node"
    assert diagnosis.engine == "ollama"


@pytest.mark.parametrize(("promised", "at_the_limit"), [(197_204_412, True), (120_000_000, False)])
def test_memory_that_the_kernel_may_not_promise(b: ModuleType, promised: int, at_the_limit: bool) -> None:
    """Strict overcommit: the allocation fails while half of the machine is free, and nobody is killed."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.fail("a", 20, "RuntimeError: [enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate memory:"
           " you tried to allocate 1879048192 bytes. Error code 12 (Cannot allocate memory)", b.LOADING)  # fmt: skip
    w.add("meminfo", None, "mem_total=395982120KiB", "meminfo", "host", mem_total_kib=395_982_120,
          mem_available_kib=200_000_000, commit_limit_kib=197_991_060, committed_as_kib=promised)  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "host_oom.node"
    assert ("commit_exhausted" in b.names(found.verdict.supporting)) is at_the_limit


def test_huge_pages_that_nobody_uses(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3590)
    w.kill("dmesg", 3600, "node", uid="", cid="")
    w.add("meminfo", None, "mem_total=465686832KiB", "meminfo", "host", mem_total_kib=465_686_832, huge_pages_total=180_000,
          huge_pages_free=180_000, hugepagesize_kib=2048)  # fmt: skip
    found = w.diagnosis()
    assert "hugepages_idle" in b.names(found.verdict.supporting)
    assert found.key_facts["hugepages_free_gib"] == 351.6


@pytest.mark.parametrize(
    ("image", "args", "gpus", "confidence"),
    [
        ("vllm/vllm-openai:v0.11.0", (), None, "established"),
        ("ghcr.io/huggingface/text-embeddings-inference:89-1.7", (), None, "established"),
        ("registry.example/inference:7", (), 2, "established"),
        ("python:3.12-slim", ("python", "job.py"), None, "possible"),
        (None, (), None, "possible"),
    ],
)
def test_a_description_shows_that_the_engine_died(
    b: ModuleType, image: str | None, args: tuple[str, ...], gpus: int | None, confidence: str
) -> None:
    """No log of an engine is in the bundle: its image, its command or its GPUs say what the evicted pod was."""
    w = b.World()
    w.pod(image=image, args=args, gpus=gpus)
    w.event("events", 300, "Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
            "Container vllm was using 30Gi, request is 1Gi, has larger consumption of memory. ")  # fmt: skip
    w.exited("describe.txt", 301, 137)
    w.add("describe.txt", 301, f"pod {b.POD} Failed: Evicted Pod was evicted", "pod_status", "k8s", Scope(pod=b.POD),
          phase="Failed", reason="Evicted")  # fmt: skip
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, str(verdict.confidence)) == ("eviction", confidence)
    assert verdict.doubt == ("whose" if confidence == "possible" else "")


GROWN = ("The node was low on resource: memory. Threshold quantity: 4Gi, available: 3911224Ki. Container spooler was "
         "using 41943040Ki, request is 256Mi, has larger consumption of memory. ")  # fmt: skip


@pytest.mark.parametrize(("end_mib", "pod", "counted"), [
    (38_000.0, "own", True), (9_000.0, "own", False), (38_000.0, "other", False)
])  # fmt: skip
def test_what_a_container_counts_tells_where_an_eviction_began(b: ModuleType, end_mib: float, pod: str, counted: bool) -> None:
    """The first count of what grew into most of the excess use; not a count that explains little, or another pod's."""
    w = b.World()
    w.pod()
    points = [(n * 180.0, 1000.0 + (end_mib - 1000.0) * n / 99) for n in range(100)]
    w.series("counted_mib", points, "spooler.log", Scope(pod=b.POD if pod == "own" else "else-0", process="spool_bytes"))
    w.add("events.txt", 18_000.0, GROWN, "k8s_event", "k8s", Scope(namespace="llm", pod=b.POD), reason="Evicted")
    w.exited("describe.txt", 18_002.0, 137)
    first = w.diagnosis().first_cause
    assert first is not None
    assert (first.signature == "derived.counted_climb") is counted
    assert (first.locator.source == "spooler.log") is counted
