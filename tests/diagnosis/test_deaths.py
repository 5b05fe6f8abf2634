"""What every source says about an end becomes one death each; loops become one incident."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis import deaths
from forensics.diagnosis.model import Death
from forensics.model import Scope


def test_witnesses_of_one_end_are_one_death(b: ModuleType) -> None:
    """Kernel, runtime and Kubernetes tell of one kill within seconds."""
    w = b.World()
    w.pod()
    known = Scope(pod=b.POD, pod_uid=b.UID, container_id=b.CID)
    w.kill("dmesg", 300)
    w.add("containerd", 300.4, "container c3a1 terminated: reason= exit_code=137", "container_terminated", "runtime",
          known, exit_code=137)  # fmt: skip
    w.exited("describe.txt", 301, 137, "OOMKilled")
    (death,) = w.case().deaths
    assert (death.exit_code, death.reason, len(death.witnesses)) == (137, "OOMKilled", 3)


def test_ends_apart_are_two_deaths(b: ModuleType) -> None:
    """Two exits of one container minutes apart are two deaths of one incident."""
    w = b.World()
    w.exited("a", 300, 1)
    w.exited("a", 600, 1)
    case = w.case()
    assert [d.time_s - b.T0 for d in case.deaths if d.time_s] == [300, 600]
    assert len(deaths.group(case.deaths)) == 1


def test_a_dead_engine_may_linger(b: ModuleType) -> None:
    """The container ends up to three minutes after its engine: watchdogs and grace periods."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.fail("a", 100, scope=scope)
    w.exited("describe.txt", 260, 137)
    (death,) = w.case().deaths
    assert death.life is not None
    assert death.exit_code == 137


def test_a_probe_kill_and_the_exit_after_grace_are_one_death(b: ModuleType) -> None:
    """Killing, then SIGKILL 31 s later."""
    w = b.World()
    w.probe_kill("events", 300)
    w.exited("describe.txt", 331, 137)
    (death,) = w.case().deaths
    assert (death.exit_code, death.graceful, len(death.witnesses)) == (137, False, 2)


def test_a_long_grace_period_keeps_kill_and_exit_together(b: ModuleType) -> None:
    """terminationGracePeriodSeconds of 120: the SIGKILL comes two minutes after `Killing`."""
    w = b.World()
    w.probe_kill("events", 300)
    w.exited("describe.txt", 420, 137)
    assert len(w.case().deaths) == 1


def test_ends_of_different_pods_stay_apart(b: ModuleType) -> None:
    """Same second, two pods."""
    w = b.World()
    w.exited("a", 300, 1, name="one")
    w.exited("a", 300, 1, name="two")
    assert {d.entity for d in w.case().deaths} == {"pod:one", "pod:two"}


def test_a_kill_without_a_container_hits_the_only_engine(b: ModuleType) -> None:
    """A victim that looks like an engine belongs to the only engine there is; `java` does not."""
    for comm, found in (("VLLM::EngineCor", True), ("java", False)):
        w = b.World()
        w.start("a", 0)
        w.add("a", 299, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
        w.kill("dmesg", 300, "node", uid="", cid="", comm=comm)
        engine = next(d for d in w.case().deaths if d.life is not None)
        assert any(e.kind == "kernel_oom" for e in engine.witnesses) is found, comm


def test_a_kill_long_before_the_first_run_is_somebody_elses(b: ModuleType) -> None:
    """A bare `python3` on the node, half an hour before the engine came: not the engine. A restart may follow a kill."""
    for start_s, own in ((1800.0, False), (40.0, True)):
        w = b.World()
        w.kill("dmesg", 0, "node", uid="", cid="", comm="python3")
        w.start("a", start_s, ready=False)
        w.fail("a", start_s + 30, "ValueError: Bfloat16 is only supported on GPUs with compute capability 8.0")
        entities = {d.entity for d in w.case().deaths if any(e.kind == "kernel_oom" for e in d.witnesses)}
        assert (entities == {"file:a"}) is own


@pytest.mark.parametrize(
    ("code", "reason", "shutdown", "graceful"),
    [
        (0, "Completed", True, True),
        (143, "Error", False, True),
        (137, "Error", True, False),
        (143, "OOMKilled", True, False),
        (1, "Error", True, False),
    ],
)
def test_what_an_orderly_stop_is(b: ModuleType, code: int, reason: str, shutdown: bool, graceful: bool) -> None:
    """0 and 143 are orderly unless a kill or an error speaks against it."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    if shutdown:
        w.add("a", 299, "Shutting down", scope=scope)
    w.exited("describe.txt", 300, code, reason)
    death = w.case().deaths[-1]
    assert death.graceful is graceful


@pytest.mark.parametrize("ordered", [True, False])
def test_oomkilled_beside_143_may_speak_of_a_helper(b: ModuleType, ordered: bool) -> None:
    """A child was killed at some time; days later a rollout stops the engine, which drains and says so."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.add("a", 299, "Shutting down", scope=scope)
    if ordered:
        w.event("events", 298, "Killing", "Stopping container vllm")
    w.exited("describe.txt", 300, 143, "OOMKilled")
    assert [d.graceful for d in w.case().deaths] == [ordered]


def test_143_that_a_probe_asked_for_is_no_orderly_stop(b: ModuleType) -> None:
    """The engine drained in time, but nobody had planned it."""
    w = b.World()
    w.probe_kill("events", 295)
    w.exited("describe.txt", 300, 143)
    assert [d.graceful for d in w.case().deaths] == [False]


def test_a_log_that_goes_on_is_no_death(b: ModuleType) -> None:
    """The last line of a healthy log is no end."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    assert w.case().deaths == ()


def test_a_run_that_is_followed_by_another_has_ended(b: ModuleType) -> None:
    """A second banner in the same file proves that the first run is over, silent or not."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.start("a", 400)
    (death,) = w.case().deaths
    assert death.life is not None
    assert not death.graceful


@pytest.mark.parametrize(("code", "status", "expected"), [("killed", 9, 137), ("exited", 1, 1), ("dumped", 6, 134)])
def test_systemd_prints_signals_as_numbers(b: ModuleType, code: str, status: int, expected: int) -> None:
    """`code=killed, status=9` is 137 in the words of everybody else."""
    w = b.World()
    w.add("journal", 10, f"vllm.service: Main process exited, code={code}, status={status}/X", "unit_exit", "systemd",
          Scope(unit="vllm.service"), code=code, status=status)  # fmt: skip
    assert w.case().deaths[0].exit_code == expected


def test_a_clean_exit_of_a_unit_is_no_death(b: ModuleType) -> None:
    """status=0 is an end that nobody has to explain."""
    w = b.World()
    w.add("journal", 10, "vllm.service: Main process exited, code=exited, status=0/SUCCESS", "unit_exit", "systemd",
          Scope(unit="vllm.service"), code="exited", status=0)  # fmt: skip
    assert w.case().deaths == ()


def test_half_a_day_separates_incidents(b: ModuleType) -> None:
    """Deaths within twelve hours are one incident, later ones are another; other entities always are."""

    def death(seconds: float, entity: str = "pod:a") -> Death:
        return Death(entity, seconds, (), None, None, "", False)

    grouped = deaths.group([death(1), death(40_000), death(41_000, "pod:b"), death(90_000)])
    assert [[d.time_s for d in group] for group in grouped] == [[1, 40_000], [41_000], [90_000]]


def test_a_witness_without_a_time_joins_the_death_of_its_entity(b: ModuleType) -> None:
    """An undated exit says something about the only death there is."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.fail("a", 100, scope=scope)
    w.add("pods.txt", None, "container vllm terminated: reason=Error exit_code=1", "container_terminated", "k8s",
          Scope(pod=b.POD, container="vllm"), exit_code=1, reason="Error")  # fmt: skip
    (death,) = w.case().deaths
    assert death.exit_code == 1


def test_a_probe_kill_of_uncertain_age_joins_the_exit(b: ModuleType) -> None:
    """`5m` ago without a known capture time: the kill may be the one that ended the container four minutes later."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.fail("a", 600, "TimeoutError: RPC call to execute_model timed out.", scope=scope)
    w.probe_kill("describe.txt", b.at(330, 600.0))
    w.exited("describe.txt", 640, 137)
    assert w.diagnosis().verdict.cause.id == "engine_timeout"




def test_a_unit_and_its_engine_log_are_one_entity(b: ModuleType) -> None:
    """In a journal the engine's lines only carry the syslog identifier; they and systemd's lines are one death."""
    w = b.World()
    w.add("journal", 0, "vLLM API server version 0.11.0", "engine_args", ident="vllm", engine_version="0.11.0")
    w.add("journal", 5, "Starting to load model acme/chat-14b...", ident="vllm")
    w.fail("journal", 80, frames=b.LOADING, ident="vllm", envelope="")
    w.add("journal", 82, "vllm.service: Main process exited, code=exited, status=1/FAILURE", "unit_exit", "systemd",
          Scope(unit="vllm.service"), code="exited", status=1)  # fmt: skip
    (death,) = w.case().deaths
    assert death.entity == "unit:vllm"
    assert death.life is not None


@pytest.mark.parametrize("runs", [1, 3])
def test_a_start_timeout_is_no_orderly_stop(b: ModuleType, runs: int) -> None:
    """`start operation timed out. Terminating.`, then status=15/TERM: killed while loading, once or again and again."""
    w = b.World()
    unit = Scope(unit="vllm.service")
    for n in range(runs):
        t = 100.0 * n
        w.add("journal", t, "vLLM API server version 0.11.0", "engine_args", ident="vllm", engine_version="0.11.0")
        w.add("journal", t + 5, "Starting to load model acme/chat-14b...", ident="vllm")
        w.add("journal", t + 90, "vllm.service: start operation timed out. Terminating.", channel="systemd", scope=unit)
        w.add("journal", t + 91, "vllm.service: Main process exited, code=killed, status=15/TERM", "unit_exit", "systemd",
              unit, code="killed", status=15)  # fmt: skip
    assert w.diagnosis().verdict.cause.id == "external_sigkill"


@pytest.mark.parametrize(
    ("logs", "codes", "confidence"),
    [(2, (1, 1), "established"), (1, (1, 1), "likely"), (2, (137, 1), "possible")],
    ids=["two runs agree", "one run", "another code before"],
)
def test_unexplained_ends_before_the_first_log(
    b: ModuleType, logs: int, codes: tuple[int, int], confidence: str
) -> None:
    """Earlier ends of a loop have no log: what two runs died of, with the same code, they died of too."""
    w = b.World()
    w.pod()
    scope = Scope(pod=b.POD)
    w.exited("journal", 0, codes[0])
    for n in range(logs):
        begin = 600 + 600 * n
        w.start(f"{n}.log", begin, scope, ready=False)
        w.fail(f"{n}.log", begin + 50, "ValueError: No available memory for the cache blocks. Try increasing "
               "`gpu_memory_utilization` when initializing the engine.", b.LOADING, scope)  # fmt: skip
        w.exited("journal", begin + 55, codes[1])
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, str(verdict.confidence)) == ("gpu_oom.kv_cache_startup", confidence)


def test_the_latest_day_is_what_somebody_asks_about(b: ModuleType) -> None:
    """Two incidents six weeks apart in one log: today's is the verdict, the old one is told and no false sign."""
    w = b.World()
    w.start("a", -4_000_000)
    w.answer("a", -3_990_000)
    w.fail("a", -3_980_000)
    w.start("a", 0, loaded=False)
    w.fail("a", 9, "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
           "initializing the engine.", b.LOADING)  # fmt: skip
    diagnosis = w.diagnosis()
    assert [i.hypotheses[0].cause.id for i in diagnosis.incidents] == ["gpu_oom.kv_cache_startup", "gpu_oom.runtime_load"]
    assert "torch.oom" not in {d.finding.signature for d in diagnosis.decoys}


def test_the_first_of_a_day_comes_first(b: ModuleType) -> None:
    """Within hours the earlier one may have caused the later."""
    w = b.World()
    for name, begin in (("a", 0), ("b", 3000)):
        scope = Scope(pod=f"{name}-0")
        w.start(name, begin, scope)
        w.answer(name, begin + 100, scope=scope)
        w.fail(name, begin + 200, scope=scope)
    assert [i.entity for i in w.diagnosis().incidents] == ["pod:a-0", "pod:b-0"]


@pytest.mark.parametrize(("last_state", "restarts", "graceful"), [(False, 0, True), (True, 1, False), (False, 3, False)])
def test_a_job_that_is_done_is_no_death(b: ModuleType, last_state: bool, restarts: int, graceful: bool) -> None:
    """Completed with 0 and not started again: a batch job. A server whose container is started again had crashed."""
    w = b.World()
    w.pod()
    w.start("a", 0, Scope(pod=b.POD), ready=False)
    w.exited("describe.txt", 200, 0, "Completed", last_state=last_state, restart_count=restarts)
    (death,) = w.case().deaths
    assert death.graceful is graceful


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("vllm-1 exited with code 137", 137),
        ("2026-05-12 08:05:00,101 WARN exited: vllm (terminated by SIGKILL; not expected)", 137),
        ("2026-05-12 08:05:00,101 WARN exited: vllm (exit status 1; not expected)", 1),
    ],
)
def test_a_supervisor_reports_the_end(b: ModuleType, line: str, code: int) -> None:
    """What `docker compose` or supervisord prints behind the last line of the engine is its end."""
    w = b.World()
    w.start("out.log", 0)
    w.answer("out.log", 300)
    w.add("out.log", 305, line, channel="container", level="")
    (death,) = w.case().deaths
    assert (death.entity, death.exit_code) == ("file:out.log", code)
    assert w.diagnosis().verdict.cause.id == "insufficient_evidence"


def test_the_end_of_another_service_of_a_compose_file(b: ModuleType) -> None:
    """Two services report their ends in one log: only that of the engine is the engine's."""
    w = b.World()
    w.start("out.log", 0, Scope(container="vllm"))
    w.answer("out.log", 300, scope=Scope(container="vllm"))
    w.add("out.log", 305, "redis-1 exited with code 3", channel="container", level="")
    w.add("out.log", 306, "vllm-1 exited with code 1", channel="container", level="")
    assert {(d.entity, d.exit_code) for d in w.case().deaths} == {("ctr:vllm", 1), ("ctr:redis", 3)}


@pytest.mark.parametrize(("hours", "cause"), [(4.0, "engine_timeout"), (0.25, "gpu_oom.runtime_load")])
def test_what_hours_of_work_overcame_does_not_explain_the_next_end(b: ModuleType, hours: float, cause: str) -> None:
    """An OOM, a restart, hours of work, and then a hang: two incidents, the last leads. In a loop the first does."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 600)
    w.fail("a", 601)
    w.start("a", 700)
    w.answer("a", 700 + 3600 * hours)
    end = 701 + 3600 * hours
    w.add("a", end, "TimeoutError: RPC call to execute_model timed out.", "traceback", exception="TimeoutError",
          frames=(), chained=False, level="ERROR")  # fmt: skip
    w.add("a", end + 1, "EngineCore encountered a fatal error.", level="ERROR")
    incidents = w.diagnosis().incidents
    assert incidents[0].hypotheses[0].cause.id == cause
    assert len(incidents) == (2 if hours > 1 else 1)


@pytest.mark.parametrize(
    ("hours", "stop", "cause"),
    [
        (0.5, "Shutting down FastAPI HTTP server.", "gpu_oom.kv_max_len"),
        (6.0, "", "gpu_oom.kv_max_len"),
        (0.25, "", "gpu_oom.runtime_load"),
    ],
    ids=["stopped by somebody", "hours of work", "a loop"],
)
def test_a_run_that_was_well_separates_incidents(b: ModuleType, hours: float, stop: str, cause: str) -> None:
    """An OOM at night; the next run serves; after it every start fails of another length: that is what somebody asks about."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 600)
    w.fail("a", 601)
    w.start("a", 700)
    end = 770 + 3600 * hours
    w.answer("a", end)
    if stop:
        w.add("a", end + 1, stop)
    for n in range(3):
        w.start("a", end + 60 + 100 * n, loaded=False)
        text = (
            "ValueError: To serve at least one request with the models's max seq len (131072), (2.11 GiB KV cache is needed,"
            " which is larger than the available KV cache memory (1.9 GiB)."
        )
        w.fail("a", end + 80 + 100 * n, text, ("vllm/v1/engine/core.py:_initialize_kv_caches",), envelope="EngineCore failed to start.")
    incidents = w.diagnosis().incidents
    assert incidents[0].hypotheses[0].cause.id == cause
    assert len(incidents) == (1 if cause == "gpu_oom.runtime_load" else 2)


def test_a_peers_watchdog_is_a_consequence(b: ModuleType) -> None:
    """The kernel of one node kills a rank; on the other node the log ends ten minutes later in a collective's timeout."""
    w = b.World()
    for second in range(0, 100, 10):
        w.answer("node-a/vllm.log", second)
    w.kill("node-b/kern.log", 100, "node", uid="", cid="", host="node-b")
    late = w.add("node-a/vllm.log", 700, "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7,"
                 " OpType=SEND, Timeout(ms)=600000) ran for 600004 milliseconds before timing out.", level="ERROR")  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "host_oom.node"
    assert late.locator in {f.locator for f in found.incidents[0].consequences}
    assert late.locator not in {d.finding.locator for d in found.decoys}


@pytest.mark.parametrize(("actor", "confidence"), [("LLMReplica.__init__", "established"), ("Reducer.run", "possible")])
def test_whom_rays_monitor_killed(b: ModuleType, actor: str, confidence: str) -> None:
    """The raylet names the actor: one that serves a model is the engine, another may be anybody."""
    w = b.World()
    w.add("raylet.out", 0, "Node memory usage above threshold, used: 256645770772, threshold_bytes: 256623974400, total bytes:"
          " 270130499584, threshold fraction: 0.95", channel="ray")  # fmt: skip
    w.add("raylet.out", 0.1, "Killing 1 worker(s), kill details: 1 worker(s) were killed due to the node running low on memory."
          f" Selected to kill: (Actor(77aa): task name={actor}, pid=9912)", channel="ray")  # fmt: skip
    found = w.diagnosis().verdict
    assert (found.cause.id, str(found.confidence)) == ("ray_oom", confidence)


def test_a_userspace_killer_speaks_of_its_victim(b: ModuleType) -> None:
    """earlyoom is a unit of its own, and what it kills is another one's process: one end, of the engine."""
    w = b.World()
    unit = Scope(unit="vllm.service")
    w.start("journal", 0, unit)
    w.answer("journal", 900, scope=unit)
    text = 'sending SIGKILL to process 7188 uid 994 "VLLM::EngineCor": badness 941, VmRSS 38107 MiB'
    w.add("journal", 1000, text, channel="oomd", scope=Scope(unit="earlyoom.service"))
    w.add("journal", 1001, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", scope=unit)
    d = w.diagnosis()
    assert [(i.entity, i.hypotheses[0].cause.id) for i in d.incidents] == [("unit:vllm", "external_sigkill")]


def test_a_log_without_times_ended_as_its_status_says(b: ModuleType) -> None:
    """Somebody cut the stamps off: the error and the exit of the same container are one end."""
    w = b.World()
    w.fail("tail.txt", None, "ValueError: No available memory for the cache blocks.", scope=Scope(container="chat"), envelope="")
    w.add("ps.txt", 100, "container chat exited: exit_code=1", "docker_state", "runtime", Scope(container="chat"),
          status="exited", exit_code=1)  # fmt: skip
    (incident,) = w.diagnosis().incidents
    assert [(death.exit_code, death.life is not None) for death in incident.deaths] == [(1, True)]


def test_python_beside_an_engine_is_a_sidecar(b: ModuleType) -> None:
    """A helper in Python would be taken for the engine where nothing else is described; beside one it is none."""
    for image, asides in (("vllm/vllm-openai:v0.11.0", 1), ("registry.example/app:1", 0)):
        w = b.World()
        w.pod(image=image, args=(), gpus=None)
        w.pod(container="helper", image="registry.example/helper:1", command=("python", "-m", "exporter"), args=(), gpus=None)
        w.exited("describe.txt", 300, 137, "OOMKilled", container="helper")
        case = w.case()
        assert (len(case.asides), len(case.deaths)) == (asides, 1 - asides)


def test_each_kill_of_a_restart_loop_is_a_death(b: ModuleType) -> None:
    """The third container died 100 s after the second: another container's kill is another death, of the nearest run."""
    w = b.World()
    for n, (start, end) in enumerate(((0, 85), (90, 170), (185, 275))):
        w.start(f"{n}.log", start, Scope(pod_uid=b.UID), ready=False)
        w.add(f"{n}.log", end - 1, "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", scope=Scope(pod_uid=b.UID))
        w.kill("dmesg", end, cid=f"{n}" * 64, pid=400 + n)
        w.kill("dmesg", end + 0.1, cid=f"{n}" * 64, pid=500 + n, comm="vllm")
    deaths = [d for d in w.case().deaths if d.witnesses]
    assert [d.time_s - b.T0 for d in deaths if d.time_s] == [85, 170, 275]
    assert [d.life.sources[0] for d in deaths if d.life] == ["0.log", "1.log", "2.log"]


def test_a_pod_that_dies_at_once_dies_once(b: ModuleType) -> None:
    """At the pod's limit the kernel takes all its containers in one moment."""
    w = b.World()
    w.start("0.log", 0, Scope(pod_uid=b.UID))
    for n in range(3):
        w.kill("dmesg", 300 + n * 0.1, "pod", cid=f"{n}" * 64, pid=400 + n)
    assert len([d for d in w.case().deaths if d.witnesses]) == 1


def test_a_state_without_a_name_is_the_only_engines(b: ModuleType) -> None:
    """Pasted without the object around it: it can only be the run that is there."""
    w = b.World()
    w.start("vllm.log", 0)
    w.answer("vllm.log", 600)
    w.add("state.json", 620, "container  terminated: reason= exit_code=139", "container_terminated", "runtime", exit_code=139)
    (death,) = w.case().deaths
    assert (death.exit_code, death.life is not None) == (139, True)


@pytest.mark.parametrize(
    ("container", "first_line", "confidence"), [("vllm", "dmesg:1", "established"), ("proxy", "describe.txt:2", "possible")]
)
def test_the_kernels_proof_of_a_later_lap_speaks_for_the_loop(
    b: ModuleType, container: str, first_line: str, confidence: str
) -> None:
    """Of the first kill only the status is left; the kernel's log shows the next one of the same container."""
    w = b.World()
    w.pod(memory_limit_bytes=67_108_864 * 1024)
    w.exited("describe.txt", 0, 137, "OOMKilled", container=container, line=2)
    w.kill("dmesg", 120, uid="", cid=b.CID)
    w.add("describe.txt", 121, "container vllm terminated: reason=OOMKilled exit_code=137", "container_terminated", "k8s",
          Scope(pod=b.POD, container="vllm", container_id=b.CID), reason="OOMKilled", exit_code=137)  # fmt: skip
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "host_oom.container_limit"
    assert (str(diagnosis.first_cause.locator), str(diagnosis.verdict.confidence)) == (first_line, confidence)


@pytest.mark.parametrize(("neighbour", "speaks", "cause"), [
    ("image-studio", False, "shm_exhausted"),
    ("llm-worker", False, "gpu_oom.runtime_load"),
    ("image-studio", True, "gpu_oom.runtime_load"),
], ids=["a-stranger", "a-rank", "another-engine"])  # fmt: skip
def test_another_program_of_the_same_log(b: ModuleType, neighbour: str, speaks: bool, cause: str) -> None:
    """An image generator fails with the same words of torch; it never speaks as an engine."""
    w = b.World()
    llm, other = Scope(container="llm"), Scope(container=neighbour)
    w.add("up.log", 0, "vLLM API server version 0.11.0", "engine_args", scope=llm, engine_version="0.11.0")
    if speaks:
        w.add("up.log", 1, "Application startup complete.", scope=other)
        w.answer("up.log", 2, scope=other)
    w.add("up.log", 4, "image 3 of 4", scope=other)
    w.add("up.log", 5, b.oom_text(), scope=other, level="")
    text = "5b1a0e2c71f4:131:171 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Jq0d1K to 9637892 bytes"
    w.add("up.log", 7, text, scope=llm, level="")
    w.add("up.log", 8, "EngineCore failed to start.", scope=llm, level="ERROR")
    causes = [incident.hypotheses[0].cause.id for incident in w.diagnosis().incidents]
    assert causes[0] == cause
    assert "shm_exhausted" in causes


@pytest.mark.parametrize(
    ("said", "limit", "cause"),
    [
        ("", True, "host_oom.container_limit"),
        ("Application startup complete.", True, "gpu_oom.runtime_load"),
        ("", False, "gpu_oom.runtime_load"),
    ],
    ids=["another program", "another engine", "the engine's own error, cut out"],
)
def test_a_log_in_which_no_engine_speaks(b: ModuleType, said: str, limit: bool, cause: str) -> None:
    """It failed earlier; it leads where it explains what the engine says, and not where that has a cause apart."""
    w = b.World()
    other = "diarize.log" if limit else "rank3.log"
    w.pod()
    w.start("chat.log", 0, Scope(pod=b.POD), ready=False)
    w.add(other, 40, said or "segment 41 of 60", level="INFO")
    if said:
        w.answer(other, 41)
    w.add(other, 42, b.oom_text(), level="ERROR")
    if limit:
        w.kill("kern.log", 70, oom_scope="container")
        w.exited("describe.txt", 72, 137, "OOMKilled")
    else:
        w.add("chat.log", 70, "rank1]: ncclRemoteError: A call failed possibly due to a network error or a remote process"
              " exiting prematurely.", scope=Scope(pod=b.POD), level="ERROR")  # fmt: skip
        w.add("chat.log", 71, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE) ran for"
              " 600009 milliseconds before timing out.", scope=Scope(pod=b.POD), level="ERROR")  # fmt: skip
    assert w.diagnosis().verdict.cause.id == cause


def test_two_containers_of_one_log_keep_their_errors(b: ModuleType) -> None:
    """What one service prints between the lines of another says nothing about the other's end."""
    w = b.World()
    for name in ("chat", "embed"):
        w.start("up.log", 0, Scope(container=name))
        w.answer("up.log", 70, scope=Scope(container=name))
    w.fail("up.log", 100, scope=Scope(container="chat"))
    w.add("up.log", 101, "chat: restarting", scope=Scope(container="chat"))
    w.fail("up.log", 102, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
           scope=Scope(container="embed"))  # fmt: skip
    found = {i.entity: i.hypotheses[0].cause.id for i in w.diagnosis().incidents}
    assert found == {"ctr:chat": "gpu_oom.runtime_load", "ctr:embed": "gpu_illegal_access"}


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ("Free memory on device (6.07/79.18 GiB) on startup is less than desired GPU memory utilization (0.9, 71.26 GiB).",
         "gpu_oom.other_process"),
        ("", "external_sigkill"),
    ],
    ids=["the next start is refused", "it is all that happened"],
)  # fmt: skip
def test_a_stop_that_took_too_long_explains_no_failing_start(b: ModuleType, told: str, cause: str) -> None:
    """systemd kills the server that somebody stopped, a process of it stays, and every start after it finds the card full."""
    w = b.World()
    unit = Scope(unit="vllm.service")

    def say(seconds: float, text: str, kind: str = "log", **fields: Any) -> None:
        w.add("journal", seconds, text, kind, "systemd", unit, **fields)

    w.start("journal", 0, unit)
    w.answer("journal", 900, scope=unit)
    say(1000, "Stopping vllm.service - vLLM...")
    say(1020, "vllm.service: State 'stop-sigterm' timed out. Killing.")
    say(1020, "vllm.service: Main process exited, code=killed, status=9/KILL", "unit_exit", code="killed", status=9)
    say(1020, "vllm.service: Unit process 40211 (VLLM::EngineCor) remains running after unit stopped.")
    for lap in range(3 if told else 0):
        begin = 1030 + 60 * lap
        w.start("journal", begin, unit, ready=False, loaded=False)
        w.fail("journal", begin + 20, f"ValueError: {told}", scope=unit, envelope="")
        say(begin + 22, "vllm.service: Main process exited, code=exited, status=1/FAILURE", "unit_exit", code="exited", status=1)
    found = w.diagnosis()
    assert found.verdict.cause.id == cause
    assert len(found.incidents[0].deaths) == (4 if told else 1)


@pytest.mark.parametrize(
    ("job", "doubt_s", "joined"),
    [("4711", 50_400.0, True), ("4711", 1.0, False), ("4712", 50_400.0, False)],
    ids=["no clock ties them", "an hour apart by good clocks", "another job"],
)
def test_the_kernels_kill_in_a_job(b: ModuleType, job: str, doubt_s: float, joined: bool) -> None:
    """Its number says whose process it was; the kernel's log may be hours off where nothing ties it to the output."""
    w = b.World()
    out = "slurm-4711.out"
    w.start(out, 0, ready=False)
    w.add(out, b.at(300, doubt_s), "RuntimeError: Engine core initialization failed. See root cause above.", level="ERROR")
    w.kill("dmesg", b.at(-3300, doubt_s), "unit", uid="", cid="", comm="VLLM::Worker", job=job)
    w.kill("dmesg", b.at(-20_000, doubt_s), "unit", uid="", cid="", comm="VLLM::Worker", job="4690")
    ends = [d for d in w.case().deaths if d.life is not None]
    kills = [e.fields["job"] for d in ends for e in d.witnesses if e.kind == "kernel_oom"]
    assert kills == (["4711"] if joined else [])
