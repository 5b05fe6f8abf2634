"""Key numbers of an incident, its impact, and what is missing to be surer."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Basis, Scope


def gaps(diagnosis: Any) -> set[str]:
    return {gap.key for gap in diagnosis.gaps}


def test_numbers_of_the_failing_line_win(b: ModuleType) -> None:
    """A stronger source overwrites a weaker one; sizes come in both units."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.95, max_num_seqs=512)
    w.answer("a", 70)
    w.fail("a", 80, b.oom_text(requested="2.50 GiB", free="512.00 MiB"))
    facts = w.diagnosis().key_facts
    assert facts["tried_to_allocate_gib"] == 2.5
    assert facts["tried_to_allocate_mib"] == 2560.0
    assert facts["gpu_free_mib"] == 512.0
    assert facts["gpu_total_gib"] == 79.15
    assert (facts["gpu_memory_utilization"], facts["max_num_seqs"]) == (0.95, 512)
    assert (facts["weights_gib"], facts["kv_tokens"], facts["engine_version"]) == (27.6, 164_912, "0.11.0")


def test_the_first_of_several_failures_gives_the_numbers(b: ModuleType) -> None:
    """Later copies and ranks do not replace the numbers of the first failure."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, b.oom_text(requested="2.50 GiB"))
    w.fail("a", 86, b.oom_text(requested="1.00 GiB"), envelope="")
    facts = w.diagnosis().key_facts
    assert facts["tried_to_allocate_gib"] == 2.5
    assert facts["cuda_oom_count"] == 1


def test_failures_with_other_numbers_are_numbered(b: ModuleType) -> None:
    """Two failures of one incident; when all numbers are the same, once is enough."""
    for second, expected in (("1.43 GiB", (1.2, 1.43)), ("1.20 GiB", (None, None))):
        w = b.World()
        for begin, requested in ((0, "1.20 GiB"), (3000, second)):
            w.start("a", begin)
            w.answer("a", begin + 100)
            w.fail("a", begin + 200, b.oom_text(requested=requested))
        facts = w.diagnosis().key_facts
        assert (facts.get("tried_to_allocate_1_gib"), facts.get("tried_to_allocate_2_gib")) == expected


def test_a_refused_start_after_the_failure(b: ModuleType) -> None:
    """What the restart found free, and what it wanted."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 100)
    w.fail("a", 200)
    w.start("a", 230, loaded=False)
    w.fail("a", 240, "ValueError: Free memory on device (28.98/79.15 GiB) on startup is less than desired GPU memory "
           "utilization (0.9, 71.24 GiB). Decrease GPU memory utilization.", b.LOADING)  # fmt: skip
    facts = w.diagnosis().key_facts
    assert (facts["free_at_restart_gib"], facts["wanted_at_restart_gib"]) == (28.98, 71.24)


def test_durations(b: ModuleType) -> None:
    """Start to end, cause to the engine's notice, end to a replacement that is ready."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 7100, scope=scope)
    w.add("dmesg", 7200, "NVRM: Xid (PCI:0000:3b:00): 79, pid=811, name=VLLM::EngineCor, GPU has fallen off the bus.",
          "xid", "kernel", xid=79)  # fmt: skip
    w.add("a", 7231.4, "EngineCore encountered a fatal error.", scope=scope, level="ERROR")
    w.start("b", 7260, Scope(pod="chat-6f9c7d5b8-q9w8e"))
    facts = w.diagnosis().key_facts
    assert (facts["uptime_h"], facts["detection_delay_s"], facts["outage_s"]) == (2.01, 31.4, 88.6)


def test_a_readiness_without_a_stamp_ends_the_outage(b: ModuleType) -> None:
    """uvicorn prints no time: its line stands where the dated line before it stands."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 300)
    w.start("a", 330, ready=False)
    w.add("a", b.at(400, 40, Basis.FILE_ORDER), "Application startup complete.")
    diagnosis = w.diagnosis()
    assert diagnosis.key_facts["outage_s"] == diagnosis.impact["not_ready_s"] == 100.0


def test_a_run_without_its_banner_is_configured_by_its_head(b: ModuleType) -> None:
    """The start lies in one file, the end in another that begins later."""
    w = b.World()
    scope = Scope(unit="vllm.service")
    w.start("start.txt", 0, scope, max_num_seqs=512)
    w.answer("journal.txt", 9000, scope=scope)
    w.fail("journal.txt", 9100, scope=scope)
    facts = w.diagnosis().key_facts
    assert (facts["weights_gib"], facts["max_num_seqs"]) == (27.6, 512)


def test_who_held_the_memory_that_ray_saw(b: ModuleType) -> None:
    """The monitor kills a worker; its list names the largest process."""
    w = b.World()
    w.start("a", 0)
    users = ({"pid": 41, "memory_gib": 301.4, "command": "python3 load.py"}, {"pid": 7, "memory_gib": 61.9, "command": "ray"})
    w.add("raylet.out", 300, "Killing 1 worker(s), kill details: Memory on the node (IP: 10.0.0.4, ID: b371baca) was "
          "380.21GB used / 400.00GB limit (0.950532)", channel="ray", top_memory_users=users)  # fmt: skip
    w.add("a", 302, "EngineCore encountered a fatal error.", level="ERROR")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "ray_oom"
    assert (diagnosis.key_facts["largest_process_pid"], diagnosis.key_facts["largest_process_memory_gib"]) == (41, 301.4)


def test_many_of_a_kind_held_the_memory_that_ray_saw(b: ModuleType) -> None:
    """No single task is large, all of them together are."""
    w = b.World()
    w.start("a", 0)
    users = tuple({"pid": pid, "memory_gib": 20.5 - pid, "command": "ray::Decode(video)"} for pid in (1, 2, 3))
    w.add("raylet.out", 300, "Killing 1 worker(s), kill details: Memory on the node (IP: 10.0.0.4, ID: b371baca) was "
          "60.21GB used / 64.00GB limit (0.950532)", channel="ray",
          top_memory_users=(*users, {"pid": 9, "memory_gib": 9.0, "command": "ray::Worker"}))  # fmt: skip
    w.add("a", 302, "EngineCore encountered a fatal error.", level="ERROR")
    facts = w.diagnosis().key_facts
    assert (facts["largest_process_alike"], facts["largest_process_alike_gib"]) == (3, 55.5)


def test_the_facts_of_health_are_those_of_the_run_that_serves(b: ModuleType) -> None:
    w = b.World()
    scope = Scope(container="chat")
    w.start("a", 0, scope, max_num_seqs=64)
    w.answer("a", 100, scope=scope)
    w.add("a", 200, "Shutting down FastAPI HTTP server.", scope=scope)
    w.start("a", 300, scope, max_num_seqs=256)
    w.answer("a", 400, scope=scope)
    found = w.diagnosis()
    assert found.verdict.cause.id == "healthy"
    assert found.key_facts["max_num_seqs"] == 256


def test_how_long_the_peers_of_a_dead_rank_waited(b: ModuleType) -> None:
    """Numbers of a consequence that belong to the story."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")
    w.add("a", 680, "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1,"
          " NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds", level="ERROR")  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "gpu_hardware"
    assert (found.key_facts["timeout_ms"], found.key_facts["ran_ms"]) == (600_000, 600_031)


def test_the_cuda_of_an_image_that_the_driver_is_too_old_for(b: ModuleType) -> None:
    w = b.World()
    w.add("a", 0, "CUDA Version 13.0.2", channel="container", level="")
    w.start("a", 5, ready=False, loaded=False)
    text = "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver"
    w.fail("a", 20, text, ("torch/cuda/__init__.py:_lazy_init",), envelope="")
    w.add("smi.csv", 0, "GPU 0", "gpu_state", "nvidia", memory_total_mib=49_140)
    found = w.diagnosis()
    assert found.verdict.cause.id == "driver_mismatch"
    assert (found.key_facts["image_cuda_version"], found.key_facts["gpu_memory_total_mib"]) == (13.0, 49_140)


def test_numbers_of_a_kill(b: ModuleType) -> None:
    """Victim, limit, container and exit, all named with their units."""
    w = b.World()
    w.pod(memory_limit_bytes=64 << 30, grace_s=60)
    w.kill("dmesg", 300)
    w.exited("describe.txt", 301, 137, "OOMKilled", restart_count=3)
    facts = w.diagnosis().key_facts
    assert facts["victim_pid"] == 40122
    assert facts["victim_comm"] == "VLLM::EngineCor"
    assert facts["victim_rss_kib"] == 60_000_005
    assert facts["memcg_limit_kib"] == facts["container_limit_kib"] == 64 << 20
    assert (facts["exit_code"], facts["restart_count"], facts["grace_s"]) == (137, 3, 60)


def test_a_loop_is_counted(b: ModuleType) -> None:
    """Each kind of end, once per run."""
    w = b.World()
    scope = Scope(pod=b.POD)
    for n in range(3):
        w.start(f"{n}.log", 300.0 * n, scope)
        w.fail(f"{n}.log", 300.0 * n + 90, scope=scope)
    facts = w.diagnosis().key_facts
    assert (facts["cuda_oom_count"], facts["deaths_seen"]) == (3, 3)


def test_facts_hold_no_private_or_bulky_values(b: ModuleType) -> None:
    """Frames, messages and long texts stay out; values are plain."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, message="x" * 500, note="y" * 500)
    facts = w.diagnosis().key_facts
    assert not {"frames", "message", "note", "phase"} & facts.keys()
    assert list(facts) == sorted(facts)
    assert all(isinstance(value, bool | int | float | str) for value in facts.values())


def test_impact_counts_failed_answers_and_the_time_down(b: ModuleType) -> None:
    """Two 500s, and 130 s from the death to the next readiness; another pod's 500 is not ours."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("0.log", 0, scope)
    w.fail("0.log", 80, scope=scope)
    for _ in range(2):
        w.answer("0.log", 81, 500, scope)
    w.start("1.log", 150, scope)
    w.answer("other.log", 81, 500, Scope(pod="other"))
    impact = w.diagnosis().impact
    assert impact["failed_requests"] == 2
    assert impact["deaths"] == 1
    assert impact["not_ready_s"] == pytest.approx(130, abs=2)
    assert impact["first_failed_request_utc"].startswith("2026-05-12T08:01:21")


def test_a_kill_without_an_engine_log(b: ModuleType) -> None:
    """The command names the pod and its namespace."""
    w = b.World()
    w.pod(memory_limit_bytes=64 << 30)
    w.exited("describe.txt", 301, 137, "OOMKilled")
    diagnosis = w.diagnosis()
    assert {"engine_log", "kernel_log"} <= gaps(diagnosis)
    command = next(g.command for g in diagnosis.gaps if g.key == "engine_log")
    assert f"-n llm {b.POD}" in command


def test_nothing_is_missing_from_health(b: ModuleType) -> None:
    """A healthy service needs no more evidence."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    assert w.diagnosis().gaps == ()


def test_earlier_runs_are_missing(b: ModuleType) -> None:
    """Four restarts and one run in the bundle: the first failure is not among what was saved."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.fail("a", 80, scope=scope)
    w.exited("describe.txt", 82, 1, restart_count=4)
    diagnosis = w.diagnosis()
    gap = next(g for g in diagnosis.gaps if g.key == "earlier_runs")
    assert gap.details == {"runs_seen": 1, "runs": 5}


def test_a_cause_asks_for_its_own_evidence(b: ModuleType) -> None:
    """A CUDA OOM without a curve asks for one, a NCCL failure for its debug log."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80)
    assert "gpu_series" in gaps(w.diagnosis())
    w.series("gpu_memory_used_mib", [(10.0 * i, 79_000.0) for i in range(9)], "gpu.csv", Scope(gpu="0"))
    assert "gpu_series" not in gaps(w.diagnosis())


def test_gaps_are_named_once(b: ModuleType) -> None:
    """No gap twice, in a fixed order."""
    w = b.World()
    w.pod()
    w.exited("describe.txt", 300, 137)
    found = [gap.key for gap in w.diagnosis().gaps]
    assert len(found) == len(set(found))
    assert found == [gap.key for gap in w.diagnosis().gaps]


def test_what_a_gateway_answered(b: ModuleType) -> None:
    """5xx of a gateway around the incident count; those of hours before do not, nor those of another engine."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(gpus=2)
    w.start("a", 0, scope)
    w.answer("a", 7000, scope=scope)
    w.fail("a", 7200, scope=scope)
    w.answer("a", 7201, 500, scope)
    w.start("a", 7230, scope)
    for moment in (100, 7202, 7203, 7270):
        text = f'10.0.0.7 "POST /v1/chat/completions" 502 {moment}'
        w.add("gateway.log", moment, text, "access", "plain", status=502, method="POST", path="/v1/chat/completions")
    w.start("other.log", 0, Scope(pod="other-0"))
    w.answer("other.log", 7205, 500, Scope(pod="other-0"))
    impact = w.diagnosis().impact
    assert (impact["failed_requests"], impact["gateway_errors"]) == (1, 3)
    assert impact["first_gateway_error_utc"] == "2026-05-12T10:00:02.000Z"
    assert impact["gateway_errors_in_worst_minute"] == 2
    assert (impact["not_ready_s"], impact["gpu_idle_h"]) == (90.0, 0.05)


def test_failures_of_another_day_are_another_incidents(b: ModuleType) -> None:
    """Weeks ago requests failed too; the impact is that of the incident that the report is about."""
    w = b.World()
    w.start("a", -4_000_000)
    w.answer("a", -3_990_000)
    w.fail("a", -3_980_000)
    w.answer("a", -3_979_999, 500)
    w.start("a", 0)
    w.answer("a", 100)
    w.fail("a", 200)
    w.answer("a", 201, 500)
    assert w.diagnosis().impact["failed_requests"] == 1


@pytest.mark.parametrize(("enabled", "loras"), [(True, 8), (False, None)])
def test_sizes_of_what_is_switched_off_are_no_facts(b: ModuleType, enabled: bool, loras: int | None) -> None:
    """A server without adapters prints `max_loras` all the same."""
    w = b.World()
    w.start("a", 0, ready=False, enable_lora=enabled, max_loras=8)
    w.fail("a", 30, frames=b.LOADING)
    assert w.diagnosis().key_facts.get("max_loras") == loras


def test_time_down_is_the_sum_of_the_gaps(b: ModuleType) -> None:
    """Two ends with an hour of service between them: 90 s and 150 s, in the second of which a start failed."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(gpus=2)
    for source, moment in (("0.log", 0), ("1.log", 1030)):
        w.start(source, moment, scope)
        w.answer(source, moment + 900, scope=scope)
        w.fail(source, moment + 1000, scope=scope)
    w.start("2.log", 2050, scope, loaded=False)
    w.fail("2.log", 2100, frames=b.LOADING, scope=scope)
    w.start("3.log", 2120, scope)
    impact = w.diagnosis().impact
    assert impact["not_ready_s"] == pytest.approx(90 + 150, abs=2)
    assert impact["gpu_idle_h"] == pytest.approx(2 * 240 / 3600, abs=0.01)


def test_a_probe_that_fails_is_no_failed_request(b: ModuleType) -> None:
    """503 on /health is the engine's answer to its probe; users lost the POST."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 100)
    w.fail("a", 200)
    for path in ("/health", "/v2/health/ready", "/metrics?x=1", "/v1/models", "/"):
        w.add("a", 201, f'10.0.0.1:1 - "GET {path} HTTP/1.1" 503', "access", method="GET", path=path, status=503)
    w.answer("a", 202, 500)
    assert w.diagnosis().impact["failed_requests"] == 1


def test_a_burst_that_stands_in_one_line_has_no_worst_minute(b: ModuleType) -> None:
    """A thinned line counts for requests of other minutes; where the last of them lies in its own, it does not."""
    for last_s, shown in ((700, None), (208, 31)):
        w = b.World()
        w.start("a", 0)
        w.answer("a", 100)
        w.fail("a", 200)
        first, last = w.answer("a", 201, 500), w.answer("a", last_s, 500)
        w.events.remove(first)
        w.events.append(b.moved(first, count=30, last_line=last.locator.line))
        w.answer("a", 800, 500)
        impact = w.diagnosis().impact
        assert impact["failed_requests"] == 32
        assert impact.get("failed_requests_in_worst_minute") == shown


def test_a_gateway_is_the_only_word_about_the_cost(b: ModuleType) -> None:
    """Nothing of the engine was saved, and nothing has a time but the gateway's answers."""
    w = b.World()
    w.pod()
    for moment in (0, 70, 75):
        text = f'"POST /v1/completions HTTP/1.1" 503 UF {moment}'
        w.add("ingress.log", moment, text, "access", "plain", status=503, method="POST", path="/v1/completions")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "insufficient_evidence"
    assert diagnosis.impact["gateway_errors"] == 3
    assert diagnosis.impact["first_gateway_error_utc"] == "2026-05-12T08:00:00.000Z"


def test_numbers_of_a_more_talkative_copy(b: ModuleType) -> None:
    """The first line only says that it happened; the next one, and not another pod's, says with which numbers."""
    w = b.World()
    ours, other = Scope(pod=b.POD), Scope(pod="other-0")
    memory = (
        "Memory on the node (IP: 10.9.0.4, ID: {}) where the task (actor ID: ab12, name=RayWorkerWrapper.init, pid={},"
        " memory used=11.50GB) was running was 60.83GB / 64.00GB (0.950469), which exceeds the memory usage threshold of 0.95"
    )
    w.start("driver.log", 0, ours)
    w.answer("driver.log", 90, scope=ours)
    text = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    w.fail("driver.log", 100, text, scope=ours, envelope="")
    w.add("driver.log", 100.2, memory.format("c0ffee", 4410), scope=ours)
    w.add("other.log", 100.1, memory.format("decade", 77), scope=other)
    facts = w.diagnosis().key_facts
    assert (facts["victim_pid"], facts["used_gb"], facts["limit_gb"]) == (4410, 60.83, 64.0)


def test_timeouts_of_systemd_are_measured(b: ModuleType) -> None:
    """No unit file was saved, and the journal's clock is hours off: the difference of two of its lines is right."""
    w = b.World()
    unit = Scope(unit="vllm.service")

    def say(seconds: float, text: str) -> None:
        w.add("journal", b.at(seconds, 3600.0, Basis.ZONE_ASSUMED), text, "log", "systemd", unit)

    say(0, "Starting vllm.service - vLLM...")
    w.start("journal", 5, unit, loaded=False)
    say(90, "vllm.service: start operation timed out. Terminating.")
    say(120, "vllm.service: State 'stop-sigterm' timed out. Killing.")
    w.add("journal", 120, "vllm.service: Main process exited, code=killed, status=9/KILL", "unit_exit", "systemd", unit,
          code="killed", status=9)  # fmt: skip
    facts = w.diagnosis().key_facts
    assert (facts["start_timeout_s"], facts["stop_timeout_s"]) == (90.0, 30.0)


@pytest.mark.parametrize(("used_mib", "pid"), [(70_000, 5120), (900, None)])
def test_who_holds_the_card(b: ModuleType, used_mib: int, pid: int | None) -> None:
    """A start found the card full: a snapshot names the process that holds most of what is missing, no small one."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.fail("a", 40, "ValueError: Free memory on device (8.98/79.15 GiB) on startup is less than desired GPU memory "
           "utilization (0.9, 71.24 GiB). Decrease GPU memory utilization.", b.LOADING)  # fmt: skip
    for number, held in ((5120, used_mib), (811, 500)):
        text = f"pid {number} python3 uses {held} MiB"
        w.add("nvidia-smi.txt", None, text, "gpu_process", "nvidia", pid=number, name="python3", used_mib=held)
    assert w.diagnosis().key_facts.get("foreign_pid") == pid


def test_who_made_earlyoom_kill(b: ModuleType) -> None:
    """earlyoom's own report tells how much there is, the process list who holds it: not the victim."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 100)
    for moment, left in ((60, 9000), (120, 3000), (400, 40_000)):
        text = f"mem avail: {left} of 64000 MiB ({left / 640:.2f}%), swap free:    0 of    0 MiB ( 0.00%)"
        w.add("journal", moment, text, "log", "oomd")
    text = 'sending SIGTERM to process 4410 uid 1000 "VLLM::EngineCor": badness 1211, VmRSS 21000 MiB'
    w.add("journal", 130, text, "log", "oomd")
    for pid, rss in ((811, 900_000), (6120, 33_000_000)):
        w.add("ps.txt", None, f"{pid}", "process", "host", pid=pid, rss_kib=rss, command="python3 index.py")
    facts = w.diagnosis().key_facts
    assert (facts["memory_available_mib"], facts["memory_total_mib"]) == (3000, 64000)
    assert (facts["largest_process_pid"], facts["largest_process_rss_kib"]) == (6120, 33_000_000)


def test_preemptions_between_two_scrapes(b: ModuleType) -> None:
    """The counter of the only engine, though its page of metrics names nobody."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 4000)
    w.fail("a", 4100)
    for n, (moment, count) in enumerate(((600, 5.0), (4000, 9117.0))):
        w.add(f"metrics-{n}.txt", moment, "metrics", "metrics", "metrics", preemptions_total=count)
    facts = w.diagnosis().key_facts
    assert (facts["preemptions_at_first"], facts["preemptions_total"], facts["preemptions_grew_by"]) == (5, 9117, 9112)


def test_free_and_needed_space_of_a_download(b: ModuleType) -> None:
    """The hub's own warning has the numbers of a full disk."""
    w = b.World()
    w.start("a", 0, loaded=False)
    w.add("a", 20, "UserWarning: Not enough free disk space to download the file. The expected file size is: 4932.16 MB."
          " The target location /models only has 1210.05 MB free disk space.")  # fmt: skip
    w.fail("a", 60, "OSError: [Errno 28] No space left on device", b.LOADING)
    facts = w.diagnosis().key_facts
    assert (facts["file_mb"], facts["free_mb"]) == (4932.16, 1210.05)


@pytest.mark.parametrize(("printed", "shown"), [({}, 0.97), ({"gpu_memory_utilization": 0.8}, 0.8)], ids=["typed", "printed"])
def test_a_typed_flag_counts_where_the_engine_says_nothing(
    b: ModuleType, printed: dict[str, float], shown: float
) -> None:
    w = b.World()
    w.add("a", 0, "$ vllm serve acme/chat-14b --gpu-memory-utilization 0.97 --max-num-seqs 64", channel="container")
    w.start("a", 1, ready=False, **printed)
    w.fail("a", 40, b.oom_text())
    facts = w.diagnosis().key_facts
    assert (facts["gpu_memory_utilization"], facts["max_num_seqs"]) == (shown, 64)


def test_what_others_held_when_a_start_was_refused(b: ModuleType) -> None:
    w = b.World()
    w.start("a", 0, loaded=False)
    text = "ValueError: Free memory on device (17.00/24.00 GiB) on startup is less than desired GPU memory utilization (0.9, 21.60 GiB)."
    w.fail("a", 9, text, envelope="EngineCore failed to start.")
    assert w.diagnosis().key_facts["held_at_start_gib"] == 7.0


@pytest.mark.parametrize(("age_s", "running"), [(9, 141.0), (400, None)])
def test_the_load_that_was_reported_before_a_failure(b: ModuleType, age_s: int, running: float | None) -> None:
    """An engine that dumps nothing told its load seconds before; what it told minutes before is another load."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3000)
    w.fail("a", 3600, b.oom_text(), line=900)
    w.series("requests_running", [(3600 - age_s - 10 * n, 141.0) for n in (2, 1, 0)], "a", first_line=100)
    w.series("kv_cache_usage_pct", [(3600 - age_s, 70.5)], "a", first_line=103)
    assert w.diagnosis().key_facts.get("requests_running") == running


def test_the_driver_of_a_machine_is_a_number_of_a_mismatch_only(b: ModuleType) -> None:
    for text, cuda in (("RuntimeError: The NVIDIA driver on your system is too old (found version 12020)", "12.2"),
                       (b.oom_text(), None)):  # fmt: skip
        w = b.World()
        w.add("smi.txt", 0, "NVIDIA-SMI 535.104.05, driver 535.104.05, CUDA 12.2", channel="nvidia",
              driver_version="535.104.05", driver_cuda="12.2")  # fmt: skip
        w.fail("a", 10, text)
        assert w.diagnosis().key_facts.get("driver_cuda") == cuda


@pytest.mark.parametrize(("used", "holder"), [(17.0 * 1024, 31), (6.0 * 1024, 30)], ids=["the card that was full", "none fits"])
def test_who_holds_the_card_that_was_full(b: ModuleType, used: float, holder: int) -> None:
    """Another card serves another engine with more memory; what was found taken tells which card it was."""
    w = b.World()
    w.start("a", 0, loaded=False)
    text = "ValueError: Free memory on device (7.00/24.00 GiB) on startup is less than desired GPU memory utilization (0.9, 21.60 GiB)."
    w.fail("a", 9, text, envelope="EngineCore failed to start.")
    for gpu, mib, pid, name in (("0", 21.0 * 1024, 30, "VLLM::EngineCore"), ("1", used, 31, "python3")):
        scope = Scope(gpu=gpu)
        w.add("smi", 60, f"GPU {gpu}", "gpu_state", "nvidia", scope, index=int(gpu), memory_used_mib=mib + 300)
        w.add("smi", 60, f"pid {pid}", "gpu_process", "nvidia", scope, pid=pid, name=name, used_mib=mib)
    assert w.diagnosis().key_facts["foreign_pid"] == holder


def test_the_accounting_of_a_job_has_its_memory(b: ModuleType) -> None:
    """The job's own output tells of its end; what it asked for and used stands in another file, beside other jobs."""
    w = b.World()
    w.start("slurm-40122.out", 0)
    w.answer("slurm-40122.out", 290)
    w.add("slurm-40122.out", 300, "slurmstepd: error: *** JOB 40122 ON node-7 CANCELLED AT 2026-05-12T08:05:00 DUE TO PREEMPTION ***",
          level="ERROR")  # fmt: skip
    w.add("slurm-40122.out", 331, "srun: error: node-7: task 0: Killed")
    for job, kib in (("40122", 5 << 20), ("40123", 9 << 20)):
        w.add("sacct.txt", None, f"{job} vllm CANCELLED", channel="host", job=job, requested_memory_kib=8 << 20, max_rss_kib=kib)
    facts = w.diagnosis().key_facts
    assert (facts["job_id"], facts["requested_memory_kib"], facts["max_rss_kib"]) == (40122, 8 << 20, 5 << 20)


def test_how_far_a_batch_of_prompts_got(b: ModuleType) -> None:
    """The last bar before the end counts."""
    w = b.World()
    w.start("label.out", 0)
    for second, bar in ((100, "  5%|▌         | 205/4096"), (900, " 62%|██████▎   | 2540/4096")):
        w.add("label.out", second, f"Processed prompts: {bar} [05:05<03:07,  8.32it/s]")
    w.fail("label.out", 910)
    facts = w.diagnosis().key_facts
    assert (facts["prompts_done"], facts["prompts_total"]) == (2540, 4096)


def test_how_full_the_kv_cache_was_at_most(b: ModuleType) -> None:
    """Also where nothing died of it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 200)
    w.series("kv_cache_usage_pct", [(70 + 10 * n, 12.0 + n) for n in range(6)], "a")
    assert w.diagnosis().key_facts["kv_cache_usage_peak_pct"] == 17.0


def test_how_the_engines_process_ended(b: ModuleType) -> None:
    """The container's code is its parent's; the parent prints the process's own, a signal as a negative number."""
    w = b.World()
    w.start("a", 0, ready=False)
    w.add("a", 40, "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': -7}",
          level="ERROR")  # fmt: skip
    w.exited("describe.txt", 41, 1)
    facts = w.diagnosis().key_facts
    assert (facts["exit_code"], facts["engine_process_exit_code"]) == (1, -7)


def test_lines_that_the_journal_dropped(b: ModuleType) -> None:
    """What is not there proves nothing: a reader wants to know how much is not."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    for n, lost in enumerate((1200, 340)):
        w.add("journal", 80 + 30 * n, f"Suppressed {lost} messages from vllm.service", channel="kernel")
    w.exited("describe.txt", 120, 1)
    assert w.diagnosis().key_facts["lost_messages"] == 1540


@pytest.mark.parametrize(
    ("claims", "told"),
    [({"hub-cache": 100}, 100.0), ({"data-chat-0": 50, "data-chat-1": 80}, 50.0), ({"one": 50, "two": 80}, None)],
    ids=["the only one", "the pod's own", "whose"],
)
def test_the_size_of_a_volume_that_was_full(b: ModuleType, claims: dict[str, int], told: float | None) -> None:
    w = b.World()
    w.start("a", 0, scope=Scope(pod="chat-0"), ready=False, loaded=False)
    w.fail("a", 40, "OSError: [Errno 28] No space left on device", (), Scope(pod="chat-0"), envelope="")
    for name, gib in claims.items():
        w.add("pvc.txt", None, f"claim {name} Bound: {gib}Gi", "volume_claim", "k8s", claim=name,
              capacity_bytes=gib << 30)  # fmt: skip
    found = w.diagnosis()
    assert (found.verdict.cause.id, found.key_facts.get("volume_capacity_gib")) == ("model_download", told)


@pytest.mark.parametrize(("limits", "expected"), [((64,), 64.0), ((64, 64), 64.0), ((64, 24), None), ((), None)])
def test_a_limit_that_only_a_cgroup_states(b: ModuleType, limits: tuple[int, ...], expected: float | None) -> None:
    """Somebody printed `memory.max` inside the container; of several cgroups nobody knows which is the engine's."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 200)
    for gib in limits:
        w.add("shell.txt", None, f"memory.max = {gib << 30}", "cgroup", "cgroup", memory_max_bytes=gib << 30)
    assert w.diagnosis().key_facts.get("container_limit_gib") == expected


def test_flags_of_a_pod_of_which_only_the_description_is_there(b: ModuleType) -> None:
    """No line of the engine was collected; its command line says how it was to run."""
    w = b.World()
    w.pod(args=("--model=acme/chat-14b", "--gpu-memory-utilization=0.97", "--max-model-len", "16384"))
    w.exited("describe.txt", 100, 137, "OOMKilled")
    facts = w.diagnosis().key_facts
    assert (facts["gpu_memory_utilization"], facts["max_model_len"]) == (0.97, 16384)


def test_how_long_a_start_took(b: ModuleType) -> None:
    """From the first line of the run to its readiness; a log that begins in the middle does not tell."""
    w = b.World()
    w.start("a", 0)
    ready_s = next(e.time.utc_s for e in w.events if "startup complete" in e.text) - w.events[0].time.utc_s
    w.answer("a", 900)
    assert w.diagnosis().key_facts["ready_after_s"] == ready_s > 10
    w = b.World()
    w.add("a", 0, "Application startup complete.")
    w.answer("a", 900)
    assert "ready_after_s" not in w.diagnosis().key_facts


def test_how_much_was_missing(b: ModuleType) -> None:
    """The number that a reader works out first: what was asked for, less what there was."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 70)
    w.fail("a", 80, b.oom_text(requested="2.50 GiB", free="512.00 MiB"))
    assert w.diagnosis().key_facts["shortfall_mib"] == 2048.0


def test_the_versions_that_do_not_fit(b: ModuleType) -> None:
    """A journal gives each line of the kernel's complaint a header of its own."""
    w = b.World()
    for text in (
        "NVRM: API mismatch: the client 'nvidia-smi' (pid 48213)",
        "NVRM: has the version 570.86.15, but this kernel module has",
        "NVRM: the version 550.54.15.  Please make sure that this",
    ):
        w.add("journal.txt", 100, text, channel="kernel")
    facts = w.diagnosis().key_facts
    assert (facts["library_version"], facts["driver_module_version"]) == ("570.86.15", "550.54.15")
