"""Key numbers of an incident, its impact, and what is missing to be surer."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Scope


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
