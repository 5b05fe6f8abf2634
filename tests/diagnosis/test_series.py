"""What the series say about the time before a death."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis.rules import series
from forensics.model import Scope

HOUR = 3600.0


def served(b: ModuleType, until: float) -> Any:
    """A world whose engine `a` serves until a CUDA OOM."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", until - 30)
    w.fail("a", until)
    return w


def concluded(b: ModuleType, w: Any) -> set[str]:
    case = w.case()
    death = next(d for d in case.deaths if d.time_s)
    return set(b.names(series.rules(case, death)))


@pytest.mark.parametrize(
    ("kv", "waiting", "expected"),
    [
        ([80, 90, 99], [10, 40, 90], {"kv_full", "queue_grew"}),
        ([5, 6, 7], [0, 0, 0], {"kv_low", "oom_big_prefill"}),
        ([70, 75, 80], [0, 0, 0], set()),
        ([80, 90, 99], [0, 0, 3], {"kv_full"}),
    ],
)
def test_the_kv_cache_at_the_death(b: ModuleType, kv: list[float], waiting: list[float], expected: set[str]) -> None:
    """Full with a growing queue is load; nearly empty means that one step was too big."""
    w = served(b, 300)
    w.series("kv_cache_usage_pct", [(270 + 10 * i, v) for i, v in enumerate(kv)], "a")
    w.series("requests_waiting", [(270 + 10 * i, v) for i, v in enumerate(waiting)], "a")
    assert concluded(b, w) == expected


@pytest.mark.parametrize(("allocated", "suspected"), [("77.90 GiB", True), ("70.10 GiB", False)])
def test_a_small_request_that_fails_without_load(b: ModuleType, allocated: str, suspected: bool) -> None:
    """20 MiB refused with an empty cache: more is allocated than was planned, or nothing is known."""
    w = b.World()
    w.start("a", 0, gpu_memory_utilization=0.9)
    w.answer("a", 270)
    w.fail("a", 300, b.oom_text(requested="20.00 MiB", free="12.00 MiB", allocated=allocated))
    w.series("kv_cache_usage_pct", [(270 + 10 * i, 5.0) for i in range(3)], "a")
    found = concluded(b, w)
    assert "oom_big_prefill" not in found
    assert ("gpu_leak_suspected" in found) is suspected


def test_old_samples_say_nothing_about_the_death(b: ModuleType) -> None:
    """KV usage of ten minutes ago is not the usage at the end."""
    w = served(b, 3000)
    w.series("kv_cache_usage_pct", [(10.0 * i, 99.0) for i in range(60)], "a")
    assert concluded(b, w) == set()


def test_a_steady_climb_under_flat_traffic_is_a_leak(b: ModuleType) -> None:
    """Hours of growth, the same load, and an allocation failure at the end."""
    w = served(b, 20 * HOUR)
    w.series("gpu_memory_used_mib", [(60.0 * i, 70_000 + 9 * i) for i in range(10, 1199)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    w.series("requests_running", [(600.0 * i, 4.0 + i % 2) for i in range(120)], "a")
    assert {"gpu_leak", "traffic_flat"} <= concluded(b, w)
    assert w.diagnosis().verdict.cause.id == "gpu_oom.leak"


@pytest.mark.parametrize(
    ("climb_mib", "held", "unallocated", "cause"),
    [
        (9000, None, "9.40 GiB", "gpu_oom.fragmentation"),
        (9000, None, "5.40 GiB", "gpu_oom.leak"),
        (9000, 200, "5.40 GiB", "gpu_oom.fragmentation"),
        (9000, 8600, "9.40 GiB", "gpu_oom.leak"),
    ],
    ids=["as much lies unused", "less lies unused", "tensors hold the same", "tensors hold more"],
)
def test_a_reserve_that_climbs_is_no_leak(
    b: ModuleType, climb_mib: int, held: int | None, unallocated: str, cause: str
) -> None:
    """Pieces that fit nothing are kept by torch's allocator: what the card shows as used climbs all the same."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 20 * HOUR - 30)
    w.fail("a", 20 * HOUR, b.oom_text(allocated="68.00 GiB", unallocated=unallocated))
    used = [(60.0 * i, 70_000 + climb_mib * i / 1199) for i in range(10, 1199)]
    w.series("gpu_memory_used_mib", used, "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    if held is not None:
        w.series("torch_allocated_mib", [(t, 61_000 + held * t / 72_000) for t, _ in used], "torch.csv")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(("counts", "told"), [
    (range(300, 6300, 300), True), ([5000 + n for n in range(20)], False), ([300] * 20, False), ([300, 4000], False)
], ids=["multiplied", "as-before", "constant", "two-words"])  # fmt: skip
def test_what_the_program_keeps_while_its_memory_climbs(b: ModuleType, counts: Any, told: bool) -> None:
    w = served(b, 20 * HOUR)
    w.series("gpu_memory_used_mib", [(60.0 * i, 70_000 + 9 * i) for i in range(10, 1199)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    points = [(3000.0 * (i + 1), float(n)) for i, n in enumerate(counts)]
    w.series("held_count", points, "a", Scope(process="conversations tracked"))
    assert ("held_climb" in concluded(b, w)) is told


@pytest.mark.parametrize(
    ("every_h", "values", "leaks"),
    [
        (2, [31_000 + 4_800 * i for i in range(9)], True),
        (1, [44_000 + 5_000 * i for i in range(7)], True),
        (2, [31_000 + 9_600 * i for i in range(5)], False),
        (2, [31_000, 42_000, 40_000, 55_000, 53_000, 61_000, 64_000, 69_000], False),
        (2, [68_000 + 500 * i for i in range(9)], False),
        (0.1, [31_000 + 4_800 * i for i in range(9)], False),
    ],
    ids=["every two hours", "every hour", "too few", "up and down", "a little", "within an hour"],
)
def test_a_few_samples_tell_a_leak_when_all_of_them_climb_for_hours(
    b: ModuleType, every_h: float, values: list[float], leaks: bool
) -> None:
    """Somebody wrote the number down now and then: effect and duration count, not how often it was read."""
    step = every_h * HOUR
    w = served(b, len(values) * step + 0.4 * step)
    w.series("gpu_memory_used_mib", [(step * (1 + i), v) for i, v in enumerate(values)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    assert ("gpu_leak" in concluded(b, w)) is leaks


def test_a_climb_with_growing_traffic_is_load(b: ModuleType) -> None:
    """The same curve, with four times the requests at its end."""
    w = served(b, 20 * HOUR)
    w.series("gpu_memory_used_mib", [(60.0 * i, 70_000 + 9 * i) for i in range(10, 1199)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    w.series("requests_running", [(600.0 * i, 10.0 + i / 2) for i in range(120)], "a")
    assert {"gpu_climb", "traffic_grew"} <= concluded(b, w)
    assert w.diagnosis().verdict.cause.id != "gpu_oom.leak"


def test_a_flat_card_is_a_plateau(b: ModuleType) -> None:
    """97 % all day long is vLLM's pre-allocation, and no evidence."""
    w = served(b, 5 * HOUR)
    w.series("gpu_memory_used_mib", [(60.0 * i, 79_000.0) for i in range(10, 299)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    assert concluded(b, w) == {"gpu_plateau"}


def climbing(b: ModuleType, hours: float, killed: bool = True, **spec: Any) -> Any:
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", hours * HOUR - 5, scope=scope)
    w.pod(memory_limit_bytes=64 << 30, **spec)
    if killed:
        w.kill("dmesg", hours * HOUR)
        w.exited("describe.txt", hours * HOUR + 1, 137, "OOMKilled")
    points = [(60.0 * i, 14_000 + 50_000 * i / (hours * 60)) for i in range(10, int(hours * 60))]
    w.series("container_memory_mib", points, "rss.csv", scope)
    return w


@pytest.mark.parametrize("watched", [("chat-api",), ("chat-api", "gateway")], ids=["the only one", "one of two"])
def test_the_only_container_that_was_watched_is_the_one_that_was_killed(b: ModuleType, watched: tuple[str, ...]) -> None:
    """`docker stats` names the container, the kernel its id, and nothing in the bundle joins them."""
    w = b.World()
    for name in watched:
        w.series("container_memory_mib", [(h * 3600, 4000 + 2500 * h) for h in range(24)], scope=Scope(container=name))
    w.kill("dmesg", 24 * 3600 - 600, uid="")
    assert (w.diagnosis().verdict.cause.id == "host_oom.leak") is (len(watched) == 1)


def test_a_climb_of_hours_that_a_kill_ends_is_a_host_leak(b: ModuleType) -> None:
    """The limit was hit because memory grew without end."""
    assert climbing(b, 20).diagnosis().verdict.cause.id == "host_oom.leak"


@pytest.mark.parametrize(
    ("left_gib", "killed", "cause"),
    [(4, True, "host_oom.leak"), (90, True, "insufficient_evidence"), (4, False, "insufficient_evidence")],
    ids=["nothing was left", "much was left", "no word of a kill"],
)
def test_a_shell_saw_the_kill_that_ended_a_climb(b: ModuleType, left_gib: float, killed: bool, cause: str) -> None:
    """A watcher in the server's own output shows who grew, and that the host had no memory left when it was killed."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 15 * HOUR)
    mib = [(HOUR * (1 + i), 9_000.0 + 8_000 * i) for i in range(15)]
    w.series("process_rss_mib", mib, "a", Scope(process="Front", pid=812))
    w.series("host_memory_available_kib", [(t, 1024 * (1024 * left_gib + mib[-1][1] - v)) for t, v in mib], "a")
    if killed:
        w.add("a", 15 * HOUR + 60, "./serve.sh: line 4:   812 Killed                  vllm serve acme/chat-14b", level="")
    else:
        w.start("a", 15 * HOUR + 60)
    found = w.diagnosis().verdict
    assert found.cause.id == cause
    assert str(found.confidence) in ("likely", "undetermined")


def test_a_climb_of_minutes_is_a_load(b: ModuleType) -> None:
    """Weights pass through host memory while they load."""
    assert climbing(b, 0.8).diagnosis().verdict.cause.id == "host_oom.container_limit"


@pytest.mark.parametrize(
    "spec", [{"env": {"LMCACHE_MAX_LOCAL_CPU_SIZE": "100"}}, {"args": ("--model", "acme/chat-14b", "--swap-space=64")}]
)
def test_a_configured_cache_is_no_leak(b: ModuleType, spec: dict[str, Any]) -> None:
    """Somebody asked for a cache in host memory: it grows until it is full."""
    verdict = climbing(b, 20, **spec).diagnosis().verdict
    assert verdict.cause.id == "host_oom.container_limit"
    assert "host_cache" in b.names(verdict.supporting)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--model", "acme/chat-14b", "--middleware", "audit.Recorder"), "audit.Recorder"),
        (("--logits-processors=guard.repeat:Guard", "--model", "acme/chat-14b"), "guard.repeat:Guard"),
        (("--tool-parser-plugin", "/opt/parsers/tools.py"), "/opt/parsers/tools.py"),
        (("--model", "acme/chat-14b", "--worker-cls", "auto"), None),
        (("--scheduler-cls", "vllm.v1.core.sched.scheduler.Scheduler"), None),
    ],
)
def test_third_party_code_is_the_first_suspect_of_a_leak(b: ModuleType, args: tuple[str, ...], code: str | None) -> None:
    """What the arguments load beside vLLM is named; vLLM's own classes are not."""
    diagnosis = climbing(b, 20, args=args).diagnosis()
    assert diagnosis.verdict.cause.id == "host_oom.leak"
    assert diagnosis.key_facts.get("foreign_code") == code
    assert ("foreign_code" in b.names(diagnosis.incidents[0].contributing)) == (code is not None)


def test_third_party_code_is_no_suspect_without_a_climb(b: ModuleType) -> None:
    """A kill at the limit after minutes has nothing to do with a middleware."""
    w = climbing(b, 0.8, args=("--model", "acme/chat-14b", "--middleware", "audit.Recorder"))
    assert "foreign_code" not in w.diagnosis().key_facts


def test_series_of_another_pod_do_not_count(b: ModuleType) -> None:
    """A neighbour's climb explains nothing."""
    w = climbing(b, 20)
    w.samples.clear()
    points = [(60.0 * i, 14_000 + 40.0 * i) for i in range(10, 1199)]
    w.series("container_memory_mib", points, "rss.csv", Scope(pod="other"))
    assert w.diagnosis().verdict.cause.id == "host_oom.container_limit"


@pytest.mark.parametrize(("pods", "cause"), [(1, "host_oom.leak"), (2, "host_oom.container_limit")])
def test_a_series_that_names_only_its_container(b: ModuleType, pods: int, cause: str) -> None:
    """It is the pod's where no other pod has a container of that name."""
    w = climbing(b, 20)
    (column,) = w.samples
    w.samples = [replace(column, scope=Scope(container="vllm"))]
    if pods > 1:
        w.pod("other.txt", "replica-7c9d8b7f6-k2j4h")
    assert w.diagnosis().verdict.cause.id == cause


def test_a_restart_in_between_ends_the_climb(b: ModuleType) -> None:
    """Only the segment that ends with the death counts: half an hour since the last restart."""
    w = climbing(b, 20)
    w.samples.clear()
    before = [(60.0 * i, 14_000 + 40.0 * i) for i in range(10, 1170)]
    after = [(60.0 * i, 14_000.0 + 1600.0 * (i - 1170)) for i in range(1170, 1199)]
    w.series("container_memory_mib", before + after, "rss.csv", Scope(pod=b.POD))
    assert w.diagnosis().verdict.cause.id == "host_oom.container_limit"


DUMP = "Dumping scheduler stats: SchedulerStats(num_running_reqs=3, num_waiting_reqs=0, kv_cache_usage=0.2210, prefix_cache_stats=None)"
STEP = "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[], total_num_scheduled_tokens=49152, scheduled_spec_decode_tokens={})"


def test_the_dump_at_the_death_beats_an_older_sample(b: ModuleType) -> None:
    """What the engine printed when it failed is nearer than the last ten-second line; it stands alone as well."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 270)
    w.series("kv_cache_usage_pct", [(280, 1.9), (290, 1.1)], "a")
    for text in (STEP, DUMP):
        w.add("a", 300, text, level="ERROR")
    w.fail("a", 300)
    facts = w.diagnosis().key_facts
    assert (facts["kv_cache_usage_pct"], facts["requests_running"], facts["scheduled_tokens"]) == (22.1, 3, 49152)
    w.samples.clear()
    assert concluded(b, w) == {"kv_low", "oom_big_prefill"}


def test_a_dump_counts_where_no_oom_was(b: ModuleType) -> None:
    """Its numbers are facts of any death."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 270)
    w.add("a", 600, DUMP, level="ERROR")
    w.fail("a", 600, "TimeoutError: RPC call to sample_tokens timed out.")
    assert w.diagnosis().key_facts["kv_cache_usage_pct"] == 22.1


@pytest.mark.parametrize(("calls", "cause"), [(1, "gpu_oom.activation_peak"), (40, "gpu_oom.runtime_load")])
def test_the_first_request_is_no_load(b: ModuleType, calls: int, cause: str) -> None:
    """One call after the start and the memory is gone: one step was too much. Forty at once are load."""
    w = b.World()
    w.start("a", 0)
    w.fail("a", 80)
    for number in range(calls):
        w.answer("a", 80 + 0.01 * number, 500)
    assert w.diagnosis().verdict.cause.id == cause


def test_load_is_established_by_signs_of_load_only(b: ModuleType) -> None:
    """An OOM while serving, seen by two sources, is no proof that the batch grew; a full cache is."""
    w = served(b, 300)
    w.pod()
    w.exited("describe.txt", 301, 1)
    assert (w.diagnosis().verdict.cause.id, str(w.diagnosis().verdict.confidence)) == ("gpu_oom.runtime_load", "likely")
    w.series("kv_cache_usage_pct", [(270, 96.0), (280, 99.0), (290, 99.5)], "a")
    assert str(w.diagnosis().verdict.confidence) == "established"


@pytest.mark.parametrize(("pid", "process", "leak"), [(40122, "VLLM::APIServer", True), (812, "restic", False)])
def test_whose_resident_size_climbs(b: ModuleType, pid: int, process: str, leak: bool) -> None:
    """A watch over processes: only the killed one's, or an engine's, memory makes the kill a leak."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 20 * HOUR - 5)
    w.kill("dmesg", 20 * HOUR, "node", uid="", cid="")
    scope = Scope(process=process, pid=pid)
    w.series("process_rss_mib", [(1800.0 * i, 14_000.0 + 1500 * i) for i in range(1, 40)], "ps.log", scope)
    assert (w.diagnosis().verdict.cause.id == "host_oom.leak") is leak


def test_a_short_id_is_the_container_of_the_kill(b: ModuleType) -> None:
    """`docker stats` prints twelve digits, the kernel's path all of them."""
    w = b.World()
    w.kill("dmesg", 20 * HOUR, uid="")
    scope = Scope(container="chat", container_id=b.CID[:12])
    w.series("container_memory_mib", [(600.0 * i, 14_000.0 + 400 * i) for i in range(1, 120)], "stats.log", scope)
    assert w.diagnosis().verdict.cause.id == "host_oom.leak"


@pytest.mark.parametrize(("traffic", "cause"), [(0.0, "gpu_oom.leak"), (0.5, "healthy")])
def test_a_climb_that_nothing_died_of_yet(b: ModuleType, traffic: float, cause: str) -> None:
    """Twenty hours of growth under the same load, and an orderly restart: no health to be told."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 20 * HOUR)
    w.series("gpu_memory_used_mib", [(60.0 * i, 70_000 + 7 * i) for i in range(10, 1199)], "gpu.csv", Scope(gpu="0"))
    w.series("gpu_memory_total_mib", [(0, 81_559.0)], "gpu.csv", Scope(gpu="0"))
    w.series("requests_running", [(600.0 * i, 10.0 + traffic * i) for i in range(120)], "a")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize(
    ("site", "waiting", "cause"),
    [
        ("_get_prompt_logprobs_dict", 140, "gpu_oom.runtime_load"),
        ("_get_prompt_logprobs_dict", 0, "gpu_oom.activation_peak"),
        ("_execute_mm_encoder", 140, "gpu_oom.activation_peak"),
    ],
    ids=["of many requests", "nobody waits", "an encoder's"],
)
def test_log_probabilities_under_load(b: ModuleType, site: str, waiting: int, cause: str) -> None:
    """A buffer that grows with the requests of a step, while cache and queue are full, is load and no single request."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 280)
    w.series("kv_cache_usage_pct", [(t, 99.1) for t in (270, 280, 290)], "a")
    w.series("requests_waiting", [(t, float(waiting)) for t in (270, 280, 290)], "a")
    w.fail("a", 295, frames=(*b.SERVING, f"{b.SITE}/worker/gpu_model_runner.py:{site}"))
    assert w.diagnosis().verdict.cause.id == cause
