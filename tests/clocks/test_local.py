"""Local times: zones from anchors, summer time, hints, and what stays open."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Basis, Scope


def minutes(b: ModuleType, start: str, count: int, step: float = 60.0) -> list[float]:
    return [b.at(start) + step * i for i in range(count)]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "Asia/Kathmandu", "America/St_Johns", "Pacific/Chatham", "UTC"])
def test_a_journal_takes_its_zone_from_the_runtime_inside(b: ModuleType, zone: str) -> None:
    """containerd prints UTC inside a journal of local time: the node's zone follows, quarter hours included."""
    journal = b.journal("journal.txt", zone, minutes(b, "2026-05-06 02:00:00", 12))
    solved = b.solve(journal)
    clock = b.clock(solved, "journal.txt", "journal")
    assert clock.verdict == "solved"
    assert clock.skew_s == 0
    assert clock.residual_s is not None
    assert clock.residual_s < 1
    assert len(clock.anchors) >= 3
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1
    assert all(event.time.basis in (Basis.EXACT, Basis.ZONE_SOLVED) for event in solved.events)


def test_a_fixed_offset_has_no_name(b: ModuleType) -> None:
    """Nothing in a file of one day tells Shanghai from Perth."""
    solved = b.solve(b.journal("journal.txt", "Asia/Shanghai", minutes(b, "2026-05-06 02:00:00", 12)))
    assert b.clock(solved, "journal.txt", "journal").zone == "UTC+08:00"


def test_the_hour_that_occurs_twice(b: ModuleType) -> None:
    """File order tells the two passes apart, and the change names the zone."""
    journal = b.journal("journal.txt", "Europe/Berlin", minutes(b, "2026-10-24 22:00:00", 80, 300))
    solved = b.solve(journal)
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1
    clock = b.clock(solved, "journal.txt", "journal")
    assert (clock.verdict, clock.zone, clock.offset_s) == ("solved", "Europe/Berlin", -7200)


def test_a_repeated_hour_is_enough(b: ModuleType) -> None:
    """Without any anchor the fold itself tells zone and offset: only Havana sets its clocks back at one that night."""
    journal = b.journal("journal.txt", "America/Havana", minutes(b, "2026-11-01 00:00:00", 90, 300), runtime_every=0)
    solved = b.solve(journal, captured_at_s=b.at("2026-11-01 09:00:00"))
    clock = b.clock(solved, "journal.txt", "journal")
    assert (clock.verdict, clock.zone) == ("solved", "America/Havana")
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1


def test_two_zones_with_the_same_fold(b: ModuleType) -> None:
    """London and Jerusalem set their clocks back at two in the same night: the choice stays open by two hours."""
    journal = b.journal("journal.txt", "Asia/Jerusalem", minutes(b, "2026-10-24 20:00:00", 90, 300), runtime_every=0)
    solved = b.solve(journal, captured_at_s=b.at("2026-10-25 08:00:00"))
    assert b.clock(solved, "journal.txt", "journal").verdict == "assumed"
    times = [event.time.uncertainty_s for event in solved.events]
    assert all(abs(error) <= doubt for error, doubt in zip(b.errors(solved, journal), times, strict=True))


def test_spring_has_a_gap(b: ModuleType) -> None:
    """An hour is missing; times before and after it are both right."""
    journal = b.journal("journal.txt", "America/New_York", minutes(b, "2026-03-08 03:00:00", 80, 300))
    solved = b.solve(journal)
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1
    assert b.clock(solved, "journal.txt", "journal").zone == "America/New_York"


def test_beyond_the_last_anchor_a_change_is_possible(b: ModuleType) -> None:
    """Anchors before the change only: lines weeks later may be an hour off, and say so."""
    times = minutes(b, "2026-10-20 10:00:00", 10) + minutes(b, "2026-11-05 10:00:00", 10)
    journal = b.Print("journal.txt", scope=Scope(host="gpu-node-7"))
    for serial, true_s in enumerate(times):
        outer = b.stamp(b.LOCAL, "journal", true_s, "Europe/Berlin")
        inner = (b.stamp(b.INSTANT, "runtime", true_s, "UTC", 1e-6),) if serial < 10 else ()
        journal.line(true_s, b.message(serial), (outer, *inner), "runtime")
    solved = b.solve(journal)
    late = [event.time for event in solved.events][10:]
    assert all(time.uncertainty_s >= 3600 for time in late)
    assert all(abs(error) <= time.uncertainty_s for error, time in zip(b.errors(solved, journal)[10:], late, strict=True))


def test_three_zones_in_one_bundle(b: ModuleType) -> None:
    """Container, node and API each print their own zone."""
    times = minutes(b, "2026-05-06 02:00:00", 12)
    journal = b.journal("journal.txt", "Asia/Tokyo", times)
    pod = b.Print("pods/0.log", scope=Scope(pod="vllm-llama-0"))
    for serial, true_s in enumerate(times):
        stamps = (b.stamp(b.INSTANT, "cri", true_s + 0.01, "UTC", 1e-6), b.stamp(b.YEARLESS, "engine", true_s, "America/Denver"))
        pod.line(true_s, b.message(serial + 100), stamps, "engine")
    solved = b.solve(journal, pod)
    assert b.clock(solved, "journal.txt", "journal").zone == "UTC+09:00"
    assert b.clock(solved, "pods/0.log", "engine").zone == "UTC-06:00"


def test_hosts_of_one_file_have_their_own_clocks(b: ModuleType) -> None:
    """A collected journal holds two nodes in two zones."""
    one = b.journal("journal.txt", "Asia/Tokyo", minutes(b, "2026-05-06 02:00:00", 8), "gpu-node-7")
    two = b.journal("journal.txt", "Europe/Paris", minutes(b, "2026-05-06 02:00:30", 8), "gpu-node-8")
    for event, true_s in zip(two.events, two.truth.values(), strict=True):
        one.line(true_s, event.text + " again", event.stamps, event.channel, scope=event.scope)
    solved = b.solve(one)
    assert {clock.zone for clock in solved.clocks["journal.txt"] if clock.layer == "journal"} == {"UTC+09:00", "UTC+02:00"}
    assert max(abs(error) for error in b.errors(solved, one)) <= 1


def test_anchors_that_disagree_correct_nothing(b: ModuleType) -> None:
    """Scattered anchors are refused, the scatter is told, the events keep a wide interval."""
    journal = b.Print("journal.txt", scope=Scope(host="gpu-node-7"))
    for serial, off in enumerate([0, 5000, -9000, 700, 31000, -20000, 12345, 2500]):
        true_s = b.at("2026-05-06 02:00:00") + 60 * serial
        journal.line(true_s, b.message(serial), (b.stamp(b.LOCAL, "journal", true_s), b.stamp(b.INSTANT, "runtime", true_s + off)), "runtime")
    solved = b.solve(journal)
    clock = b.clock(solved, "journal.txt", "journal")
    assert clock.verdict == "refused"
    assert "disagree" in clock.note
    assert any("not solved" in diagnostic.message for diagnostic in solved.diagnostics)


def test_the_user_knows_the_zone(b: ModuleType) -> None:
    """`--tz` matches paths; daylight saving follows the zone's rules."""
    journal = b.journal("node/journal.txt", "America/Chicago", minutes(b, "2026-10-31 22:00:00", 80, 300), runtime_every=0)
    solved = b.solve(journal, tz=(("node/*", "America/Chicago"),), year=2026)
    clock = b.clock(solved, "node/journal.txt", "journal")
    assert (clock.zone, clock.verdict) == ("America/Chicago", "solved")
    assert max(abs(error) for error in b.errors(solved, journal)) <= 1


def test_zones_that_the_bundle_declares(b: ModuleType) -> None:
    """`TZ` in the pod's environment, `timedatectl` on the node."""
    log = b.Print("logs.txt", scope=Scope(pod="vllm-llama-0"))
    times = minutes(b, "2026-05-06 02:00:00", 5)
    for serial, true_s in enumerate(times):
        log.line(true_s, b.message(serial), (b.stamp(b.YEARLESS, "engine", true_s, "Asia/Tokyo"),), "engine")
    spec = b.Print("pods.json", "k8s.objects")
    spec.line(0, "pod spec", (), "k8s", "pod_spec", Scope(pod="vllm-llama-0"), env={"TZ": "Asia/Tokyo"})
    smi = b.Print("nvidia-smi.txt", scope=Scope(host="gpu-node-7"))
    smi.line(times[0], "one line per GPU", (b.stamp(b.LOCAL, "nvidia-smi", times[0], "Europe/Madrid"),), "nvidia")
    clock = b.Print("timedatectl", scope=Scope(host="gpu-node-7"))
    clock.line(times[-1], "captured at", (b.stamp(b.INSTANT, "timedatectl", times[-1]),), "host", "capture", timezone="Europe/Madrid")
    solved = b.solve(log, spec, smi, clock)
    assert b.clock(solved, "logs.txt", "engine").zone == "Asia/Tokyo"
    assert b.clock(solved, "nvidia-smi.txt", "nvidia-smi").zone == "Europe/Madrid"
    assert max(abs(error) for one in (log, smi) for error in b.errors(solved, one)) <= 1


@pytest.mark.parametrize(
    ("heading", "zone"),
    [
        ("# kernel ring buffer of gpu-node-7, host TZ Asia/Seoul", "Asia/Seoul"),
        ("# time zone: UTC+9", "UTC+9"),
        ("# saved from a laptop, TZ unknown", "UTC"),
        ("GET /clock?tz=Asia/Seoul", "UTC"),
    ],
)
def test_a_zone_written_at_the_head_of_a_file(b: ModuleType, heading: str, zone: str) -> None:
    """Whoever saved the lines wrote above them in which zone they are; a message that names one says nothing."""
    times = minutes(b, "2026-05-06 02:00:00", 4)
    log = b.Print("dmesg.txt")
    log.line(times[0], heading, (), "kernel")
    for serial, true_s in enumerate(times):
        log.line(true_s, b.message(serial), (b.stamp(b.LOCAL, "dmesg", true_s, "Asia/Seoul"),), "kernel")
    assert b.clock(b.solve(log), "dmesg.txt", "dmesg").zone == zone


@pytest.mark.parametrize(("heading", "zone"), [("# node TZ Asia/Seoul", "UTC"), ("# TZ Asia/Seoul", "Asia/Seoul")])
def test_the_zone_of_a_node_is_not_that_of_the_containers_on_it(b: ModuleType, heading: str, zone: str) -> None:
    times = minutes(b, "2026-05-06 02:00:00", 4)
    log = b.Print("engine.log")
    log.line(times[0], heading, (), "engine")
    for serial, true_s in enumerate(times):
        log.line(true_s, b.message(serial), (b.stamp(b.YEARLESS, "engine", true_s, "Asia/Seoul"),), "engine")
    assert b.clock(b.solve(log, year=2026), "engine.log", "engine").zone.removesuffix(" 2026") == zone


def test_a_printed_abbreviation_decides_among_zones(b: ModuleType) -> None:
    """`CET` in an hour that occurs twice is its second pass."""
    one = b.Print("status.txt")
    true_s = b.at("2026-10-25 01:21:19")
    one.line(true_s, "Active: active (running)", (b.stamp(b.LOCAL, "systemctl", true_s, "Europe/Berlin", 1.0, "CET"),))
    solved = b.solve(one)
    assert b.clock(solved, "status.txt", "systemctl").verdict == "solved"
    assert b.errors(solved, one) == [0]


def container(b: ModuleType, zone: str, pod: str = "vllm-llama-0") -> tuple[object, object]:
    """A bare `kubectl logs` file, and the API's times of the container."""
    log = b.Print("logs-previous.txt", scope=Scope(pod=pod))
    start = b.at("2026-05-06 02:00:00")
    for serial in range(20):
        true_s = start + 12 + 10 * serial
        log.line(true_s, b.message(serial), (b.stamp(b.YEARLESS, "engine", true_s, zone),), "engine")
    api = b.Print("pods.json", "k8s.objects")
    scope = Scope(pod=pod, container="vllm", container_id="a1" * 32)
    api.line(start, "started", (b.stamp(b.INSTANT, "k8s", start),), "k8s", "container_started", scope)
    api.line(start + 205, "ended", (b.stamp(b.INSTANT, "k8s", start + 205),), "k8s", "container_terminated", scope)
    return log, api


@pytest.mark.parametrize(("zone", "name"), [("UTC", "UTC"), ("Asia/Seoul", "UTC+09:00")])
def test_a_container_log_fits_its_container(b: ModuleType, zone: str, name: str) -> None:
    """First line after the start, last line before the end: one offset fits, and it is called assumed."""
    log, api = container(b, zone)
    solved = b.solve(log, api)
    clock = b.clock(solved, "logs-previous.txt", "engine")
    assert (clock.verdict, clock.zone) == ("assumed", name)
    assert "hints" in clock.note
    assert max(abs(error) for error in b.errors(solved, log)) <= 1
    assert max(event.time.uncertainty_s for event in solved.events) < 10


def test_gpu_memory_falls_when_a_process_dies(b: ModuleType) -> None:
    """Two deaths and two falls of memory tie an nvidia-smi loop, which prints no zone."""
    start = b.at("2026-05-06 02:00:00")
    api = b.Print("pods.json", "k8s.objects")
    for number, death in enumerate((start + 500, start + 1700)):
        scope = Scope(pod="vllm-llama-0", container_id=f"{number}b" * 32)
        api.line(death, "ended", (b.stamp(b.INSTANT, "k8s", death),), "k8s", "container_terminated", scope)
    loop = b.Print("nvidia-smi.csv", "nvidia.csv")
    rows = []
    for number in range(300):
        true_s = start + 10 * number
        used = 4.0 if 500 < true_s - start < 560 or 1700 < true_s - start < 1760 else 70000.0
        rows.append((b.stamp(b.LOCAL, "nvidia-smi", true_s, "Asia/Shanghai", 0.001).seconds, used))
    loop.series("gpu_memory_used_mib", b.LOCAL, "nvidia-smi", rows)
    solved = b.solve(api, loop)
    assert b.clock(solved, "nvidia-smi.csv", "nvidia-smi").zone == "UTC+08:00"
    assert solved.samples[0].stamps[0] == pytest.approx(start, abs=0.01)


@pytest.mark.parametrize(
    ("others", "zone"), [((), "UTC-05:00"), ((600,), "UTC-05:00"), ((0,), "UTC")],
    ids=["the only one", "another goes on", "all end at once"],
)  # fmt: skip
def test_a_watch_ends_with_what_it_watched(b: ModuleType, others: tuple[int, ...], zone: str) -> None:
    """A loop around `docker stats` prints no zone; that its rows of the container stop at the container's end tells it."""
    start = b.at("2026-01-06 02:00:00")
    api = b.Print("inspect.json", "k8s.objects")
    api.line(start + 7200, "ended", (b.stamp(b.INSTANT, "k8s", start + 7200),), "k8s", "container_terminated",
             Scope(container="vllm-llama-0"))  # fmt: skip
    api.line(start + 90000, "much later", (b.stamp(b.INSTANT, "k8s", start + 90000),), "k8s")
    loop = b.Print("stats.csv", "metrics.csv")
    for last_s in (7200, *(7200 + more for more in others)):
        moments = [start + 60 * n for n in range(last_s // 60)]
        rows = [(b.stamp(b.LOCAL, "metrics", moment, "America/Lima").seconds, 9000.0) for moment in moments]
        loop.series("container_memory_mib", b.LOCAL, "metrics", rows)
    assert b.clock(b.solve(api, loop), "stats.csv", "metrics").zone == zone


def test_nothing_ties_it(b: ModuleType) -> None:
    """A local time alone is taken for UTC, and its interval holds every zone."""
    lone = b.journal("journal.txt", "Asia/Tokyo", minutes(b, "2026-05-06 02:00:00", 5), form=b.LOCAL, runtime_every=0)
    solved = b.solve(lone)
    clock = b.clock(solved, "journal.txt", "journal")
    assert (clock.verdict, clock.zone) == ("assumed", "UTC")
    assert "assumed" in clock.note
    assert all(abs(error) <= event.time.uncertainty_s for error, event in zip(b.errors(solved, lone), solved.events, strict=True))


def test_what_is_tied_to_it_is_assumed_too(b: ModuleType) -> None:
    """Files that agree with each other but with no instant keep their distances, and the doubt."""
    times = minutes(b, "2026-05-06 02:00:00", 6)
    lone = b.journal("journal.txt", "Asia/Tokyo", times, form=b.LOCAL, runtime_every=0)
    ring = b.Print("dmesg")
    for serial, true_s in enumerate(times):
        lone.line(true_s, b.message(serial + 50), (b.stamp(b.LOCAL, "journal", true_s, "Asia/Tokyo"),), "kernel")
        ring.line(true_s, b.message(serial + 50), (b.boot(true_s - times[0] + 9000),), "kernel")
    solved = b.solve(lone, ring)
    assert b.clock(solved, "dmesg", "dmesg").verdict == "assumed"
    off = b.errors(solved, ring)
    assert max(off) - min(off) < 1
    assert min(event.time.uncertainty_s for event in solved.events) > 9 * 3600


def test_an_exact_fact_beats_a_hint(b: ModuleType) -> None:
    """A rendered kernel log fits the end of an OOMKilled container to the second in UTC, and the capture in UTC+3."""
    killed = b.at("2026-05-12 12:05:59")
    kernel = b.Print("dmesg-T.txt", scope=Scope())
    for serial in range(30):
        true_s = killed - 3600 + 500 * serial
        kernel.line(true_s, f"link {serial} becomes ready", (b.stamp(b.LOCAL, "dmesg", true_s),), "kernel")
    kernel.line(killed, "Killed process 4711", (b.stamp(b.LOCAL, "dmesg", killed),), "kernel", "kernel_oom")
    api = b.Print("describe.txt", "k8s.describe")
    api.line(killed + 1, "ended", (b.stamp(b.INSTANT, "k8s", killed + 1),), "k8s", "container_terminated",
             Scope(pod="vllm-llama-0"), reason="OOMKilled")  # fmt: skip
    captured = max(kernel.truth.values()) - 3 * 3600
    api.line(captured, "captured", (b.stamp(b.INSTANT, "host", captured),), "host", "capture")
    solved = b.solve(kernel, api)
    clock = b.clock(solved, "dmesg-T.txt", "dmesg")
    assert (clock.verdict, clock.zone) == ("assumed", "UTC")
    assert max(abs(error) for error in b.errors(solved, kernel)) <= 1
    assert all(event.time.uncertainty_s <= 5 for event in solved.events)


def test_a_document_is_not_in_the_order_of_time(b: ModuleType) -> None:
    """`describe` may end with the oldest of its times; a log that goes on to the newest of them was taken then.

    Two ids that both name are not quite enough, and the end of the log decides.
    """
    end = b.at("2026-05-12 12:05:59")
    ids = {0: "a1b2" * 16, 600: "c3d4" * 16}
    kernel = b.Print("dmesg-T.txt", scope=Scope())
    for serial in range(30):
        ago = 120 * (29 - serial)
        stamps = (b.stamp(b.LOCAL, "dmesg", end - ago, "Asia/Shanghai"),)
        kernel.line(end - ago, f"veth {serial} of {ids.get(ago, 'none')}", stamps, "kernel")
    api = b.Print("describe.txt", "k8s.describe")
    for ago, kind in ((-6, "container_started"), (0, "log"), (600, "log"), (40000, "container_started")):
        text = f"{kind} {ids.get(ago, '')}"
        api.line(end - ago, text, (b.stamp(b.INSTANT, "k8s", end - ago),), "k8s", kind, Scope(pod="chat-0"))
    solved = b.solve(kernel, api)
    assert b.clock(solved, "dmesg-T.txt", "dmesg").zone == "UTC+08:00"


def test_the_last_line_of_a_killed_container(b: ModuleType) -> None:
    """A log that stops in the second of its container's end is not moved to a start that fits by an hour."""
    end = b.at("2026-05-12 12:06:00")
    log = b.Print("vllm.log", scope=Scope(pod="vllm-llama-0"))
    for serial in range(20):
        true_s = end - 3 - 10 * (19 - serial)
        log.line(true_s, b.message(serial), (b.stamp(b.YEARLESS, "engine", true_s),), "engine")
    api = b.Print("describe.txt", "k8s.describe")
    for seconds, kind in ((end, "container_terminated"), (log.truth[1] - 3 * 3600 - 20, "container_started")):
        api.line(seconds, kind, (b.stamp(b.INSTANT, "k8s", seconds),), "k8s", kind, Scope(pod="vllm-llama-0"))
    solved = b.solve(log, api)
    assert b.clock(solved, "vllm.log", "engine").offset_s == 0
    assert all(event.time.uncertainty_s <= 5 for event in solved.events)


def test_a_tool_prints_one_zone_on_a_node(b: ModuleType) -> None:
    """A second table of nvidia-smi, without a hint of its own, is as sure as the first."""
    death = b.at("2026-05-06 02:30:00")
    loop = b.Print("nvidia-smi.csv", "nvidia.csv")
    rows = [(b.stamp(b.LOCAL, "nvidia-smi", death + 10 * i, "Australia/Sydney").seconds, 70000.0 if i < 0 else 500.0) for i in range(-60, 60)]
    loop.series("gpu_memory_used_mib", b.LOCAL, "nvidia-smi", rows)
    journal = b.journal("journal.txt", "Australia/Sydney", minutes(b, "2026-05-06 02:00:00", 12), host="")
    journal.line(death, "main process exited, code=killed", (b.stamp(b.YEARLESS, "journal", death, "Australia/Sydney"),), "systemd", "unit_exit")
    once = b.Print("nvidia-smi-1.txt", "nvidia.text")
    once.line(death - 500, "GPU 0", (b.stamp(b.LOCAL, "nvidia-smi", death - 500, "Australia/Sydney"),), "nvidia", "gpu_state")
    solved = b.solve(loop, journal, once)
    event = next(event for event in solved.events if event.locator.source == "nvidia-smi-1.txt")
    assert (abs(event.time.utc_s - (death - 500)) <= 1, event.time.uncertainty_s <= 2) == (True, True)


def engine_log(b: ModuleType, times: list[float], zone: str = "UTC") -> Any:
    """An engine, in a container as a rule, which prints UTC; without a year."""
    found = b.Print("engine.log")
    for serial, true_s in enumerate(times):
        found.line(true_s, b.message(serial), (b.stamp(b.YEARLESS, "engine", true_s, zone),), "engine")
    return found


def test_starts_and_exits_tie_a_node_to_the_engine(b: ModuleType) -> None:
    """Nothing but the life of the container is told by both: the kubelet's local time is half an hour off the grid."""
    start = b.at("2026-03-02 10:00:00")
    kubelet = b.Print("kubelet.txt", scope=Scope(host="gpu-node-7"))
    for serial, (true_s, kind) in enumerate(
        [(start - 8, "container_started"), (start + 240, "log"), (start + 246, "container_terminated")]
    ):
        stamps = (b.stamp(b.YEARLESS, "journal", true_s, "Asia/Kolkata"),)
        kubelet.line(true_s, b.message(1000 + serial), stamps, "kubelet", kind, Scope(pod="chat-0"))
    solved = b.solve(kubelet, engine_log(b, [start + 6 * i for i in range(41)]), year=2026)
    assert b.clock(solved, "kubelet.txt", "journal").zone == "UTC+05:30"
    assert max(abs(error) for error in b.errors(solved, kubelet)) <= 1


@pytest.mark.parametrize(("printed", "zone"), [("IST", "UTC+05:30"), ("", "UTC+05:30"), ("CEST", "UTC+02:00")])
def test_times_of_day_in_a_table_are_tied_to_the_engine(b: ModuleType, printed: str, zone: str) -> None:
    """Start and end of a container lie around its log, which prints the day and no year; a printed zone is believed."""
    start = b.at("2026-08-14 12:00:00")
    table = b.Print("events.txt", "k8s.table", scope=Scope(pod="chat-0"))
    for true_s, reason in ((start - 15, "Started"), (start + 200, "Unhealthy"), (start + 238, "Killing")):
        shown_s = (true_s + 19800) % 86400
        stamp = b.RawStamp(b.StampForm.CLOCK, "kubectl", shown_s, 1.0, printed)
        table.line(true_s, b.message(int(shown_s)), (stamp,), "k8s", "k8s_event", reason=reason)
    solved = b.solve(table, engine_log(b, [start + 6 * i for i in range(41)]), year=2026)
    assert b.clock(solved, "events.txt", "kubectl").zone == zone
    if zone == "UTC+05:30":
        assert max(abs(error) for error in b.errors(solved, table)) <= 1


def test_an_xid_ties_the_kernel_to_the_engine(b: ModuleType) -> None:
    """The driver's line and the CUDA error are one fact; the kubelet of that node has the same zone."""
    start = b.at("2026-03-02 22:00:00")
    engine = engine_log(b, [start + 6 * i for i in range(41)])
    failed = b.stamp(b.YEARLESS, "engine", start + 247)
    engine.line(start + 247, "RuntimeError: CUDA error: an illegal memory access was encountered", (failed,), "engine")
    prints = []
    for path, kind in (("kern.log", "xid"), ("kubelet.txt", "log")):
        node = b.Print(path, scope=Scope(host="gpu-node-7"))
        stamps = (b.stamp(b.YEARLESS, "journal", start + 246, "America/Chicago"),)
        node.line(start + 246, b.message(len(path)), stamps, "kernel", kind)
        prints.append(node)
    solved = b.solve(engine, *prints)
    for node in prints:
        assert b.clock(solved, node.path, "journal").zone == "UTC-06:00"


def test_an_xid_ties_the_engine_to_the_kernel(b: ModuleType) -> None:
    """A unit's journal in local time beside a kernel log whose clock is known."""
    start = b.at("2026-03-02 22:00:00")
    kernel = b.Print("kern.log", scope=Scope(host="gpu-node-7"))
    stamps = (b.stamp(b.INSTANT, "journal", start + 246),)
    kernel.line(start + 246, "NVRM: Xid (PCI:0000:41:00): 48", stamps, "kernel", "xid", xid=48, comm="VLLM::Worker_TP")
    engine = b.Print("unit.txt", scope=Scope(host="gpu-node-7"))
    for true_s in [start + 6 * i for i in range(41)]:
        engine.line(true_s, "ready", (b.stamp(b.YEARLESS, "journal", true_s, "America/Denver"),), "engine")
    text, shown = "CUDA error: uncorrectable ECC error encountered", b.stamp(b.YEARLESS, "journal", start + 247, "America/Denver")
    engine.line(start + 247, text, (shown,), "engine")
    solved = b.solve(engine, kernel, year=2026)
    assert b.clock(solved, "unit.txt", "journal").zone == "UTC-07:00"


@pytest.mark.parametrize(
    ("told", "told_s"),
    [
        ("NCCL WARN NET/IB : Got completion from peer 10.0.0.8<4> with status=12", 259),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600020 milliseconds before timing out.", 846),
    ],
)
def test_a_lost_link_ties_the_kernel_to_the_engine(b: ModuleType, told: str, told_s: float) -> None:
    """NCCL notices within two minutes, or its watchdog says how long it has waited."""
    start = b.at("2026-03-02 22:00:00")
    engine = engine_log(b, [start + 6 * i for i in range(41)])
    engine.line(start + told_s, told, (b.stamp(b.YEARLESS, "engine", start + told_s),), "engine")
    kernel = b.Print("messages", scope=Scope(host="gpu-node-8"))
    down = (b.stamp(b.YEARLESS, "journal", start + 246, "America/Chicago"),)
    kernel.line(start + 246, "mlx5_core 0000:5e:00.0 ens1np0: Link down", down, "kernel")
    assert b.clock(b.solve(engine, kernel, year=2026), "messages", "journal").zone == "UTC-06:00"


@pytest.mark.parametrize(("comm", "zone"), [("VLLM::Worker_TP", "UTC-03:00"), ("blender", "UTC")])
def test_an_xid_of_an_engines_process_stands_at_its_end(b: ModuleType, comm: str, zone: str) -> None:
    """The driver tears down the channels of a process that goes; another program's fault tells nothing of the engine."""
    start = b.at("2026-03-02 22:00:00")
    kernel = b.Print("kern.log", scope=Scope(host="gpu-node-7"))
    stamps = (b.stamp(b.LOCAL, "dmesg", start + 242, "America/Sao_Paulo"),)
    kernel.line(start + 242, "NVRM: Xid (PCI:0000:41:00): 45", stamps, "kernel", "xid", xid=45, comm=comm)
    solved = b.solve(engine_log(b, [start + 6 * i for i in range(41)]), kernel, year=2026)
    assert b.clock(solved, "kern.log", "dmesg").zone == zone


@pytest.mark.parametrize(
    ("victims", "zone"),
    [(["VLLM::EngineCor"], "UTC+02:00"), (["VLLM::EngineCor", "python3"], "UTC"), (["mysqld"], "UTC")],
)  # fmt: skip
def test_the_kernels_only_kill_of_an_engine_is_the_one_that_the_engine_tells_of(
    b: ModuleType, victims: list[str], zone: str
) -> None:
    """A journal in local time beside a container's log in UTC: an engine was killed, and the kernel killed one engine."""
    start = b.at("2026-05-06 09:38:30")
    engine = engine_log(b, [start + 6 * i for i in range(21)])
    engine.line(start + 160, "RuntimeError: Engine core initialization failed. Failed core proc(s): {'EngineCore_DP0': -9}",
                (), "engine")  # fmt: skip
    journal = b.Print("journal.txt", scope=Scope(host="spark-7"))
    for serial, comm in enumerate(["", *victims]):
        true_s = start + 150 + serial
        stamps = (b.stamp(b.YEARLESS, "journal", true_s, "Europe/Berlin"),)
        kind = "kernel_oom" if comm else "log"
        journal.line(true_s, b.message(serial), stamps, "kernel", kind, **({"victim_comm": comm} if comm else {}))
    assert b.clock(b.solve(engine, journal), "journal.txt", "journal").zone == zone


@pytest.mark.parametrize(("others", "zone"), [(0, "UTC+02:00"), (1, "UTC")])
def test_a_scheduler_tells_of_the_kernels_only_kill_of_an_engine(b: ModuleType, others: int, zone: str) -> None:
    """Slurm's line in the job's output has no time: it ties the output, in local time, to a kernel log that has a zone."""
    start = b.at("2026-05-06 09:38:30")
    engine = engine_log(b, [start + 6 * i for i in range(21)], "Europe/Berlin")
    engine.line(start + 150, "slurmstepd: error: Detected 1 oom_kill event in StepId=40117.0.", (), "host")
    kernel = b.Print("dmesg", scope=Scope(host="gpu-node-7"))
    for serial in range(1 + others):
        stamps = (b.stamp(b.INSTANT, "dmesg", start + 150 + 900 * serial),)
        kernel.line(start + 150 + 900 * serial, b.message(serial), stamps, "kernel", "kernel_oom", victim_comm="VLLM::APIServer")
    assert b.clock(b.solve(engine, kernel, year=2026), engine.path, "engine").zone == zone


@pytest.mark.parametrize(("layer", "zone"), [("slurm", "UTC+02:00"), ("other", "UTC")])
def test_what_a_scheduler_writes_between_the_lines_of_its_job(b: ModuleType, layer: str, zone: str) -> None:
    """slurmstepd's stamp is the node's local time, in the output of an engine in UTC: it tells the node's zone."""
    start = b.at("2026-05-06 09:38:30")
    engine = engine_log(b, [start + 6 * i for i in range(21)])
    stamps = (b.stamp(b.LOCAL, layer, start + 122, "Europe/Berlin"),)
    engine.line(start + 122, "slurmstepd: error: *** JOB 40117 ON gpu-node-7 CANCELLED *** DUE TO PREEMPTION", stamps, "host")
    solved = b.solve(engine, year=2026)
    assert b.clock(solved, engine.path, layer).zone == zone
    assert b.clock(solved, engine.path, "engine").zone == "UTC"


@pytest.mark.parametrize(("gap_s", "zone"), [(3.0, "UTC+02:00"), (400.0, "UTC")])
def test_the_kernels_only_kill_of_an_engine_ends_a_log_that_says_nothing(b: ModuleType, gap_s: float, zone: str) -> None:
    """A log that only stops, and a kill seconds later in some zone; minutes later it proves nothing."""
    start = b.at("2026-05-06 09:38:30")
    engine = engine_log(b, [start + 6 * i for i in range(21)])
    journal = b.Print("journal.txt", scope=Scope(host="spark-7"))
    true_s = start + 120 + gap_s
    stamps = (b.stamp(b.YEARLESS, "journal", true_s, "Europe/Berlin"),)
    journal.line(true_s, b.message(1), stamps, "kernel", "kernel_oom", victim_comm="VLLM::EngineCor")
    assert b.clock(b.solve(engine, journal), "journal.txt", "journal").zone == zone


@pytest.mark.parametrize("told", ["Shard process was signaled to shutdown with signal 9 rank=1", "Shutting down shards"])
def test_an_engine_whose_stamps_have_a_zone_ties_the_node(b: ModuleType, told: str) -> None:
    """TGI prints its times in UTC and says so: the journal in local time meets it at the only kill."""
    start = b.at("2026-05-06 09:38:30")
    tgi = b.Print("tgi.log")
    for serial in range(6):
        text = told if serial == 5 else b.message(serial)
        tgi.line(start + 10 * serial, text, (b.stamp(b.INSTANT, "prefix", start + 10 * serial),), "engine")
    syslog = b.Print("syslog", scope=Scope(host="a6000-2"))
    stamps = (b.stamp(b.YEARLESS, "journal", start + 50, "Europe/Berlin"),)
    syslog.line(start + 50, b.message(9), stamps, "kernel", "kernel_oom", victim_comm="pt_main_thread")
    assert (b.clock(b.solve(tgi, syslog), "syslog", "journal").zone == "UTC+02:00") is ("signal 9" in told)


def test_a_unit_that_tells_of_a_kill_ties_its_journal(b: ModuleType) -> None:
    """`dmesg` in seconds since boot, recorded by `uptime`, and a journal in local time, without one line in common."""
    killed = b.at("2026-06-09 20:14:31")
    dmesg = b.Print("dmesg.txt", scope=Scope(host="gpu-node-7"))
    for serial, true_s in enumerate([killed - 3000, killed - 1000, killed, killed + 9000]):
        inner = b.stamp(b.INSTANT, "runtime", true_s, "UTC", 1e-6)
        boot = b.boot(true_s - b.at("2026-05-30 11:00:00"))
        dmesg.line(true_s, b.message(serial), (boot, inner), "kernel", "kernel_oom" if true_s == killed else "log")
    journal = b.Print("journal.txt", scope=Scope(host="gpu-node-7"))
    for serial, true_s in enumerate([killed - 7000, killed - 3500, killed + 0.4]):
        text = "vllm.service: A process of this unit has been killed by the OOM killer." if serial == 2 else b.message(50 + serial)
        journal.line(true_s, text, (b.stamp(b.YEARLESS, "journal", true_s, "America/Chicago"),), "systemd")
    solved = b.solve(dmesg, journal)
    assert b.clock(solved, "journal.txt", "journal").zone == "UTC-05:00"


def test_one_weak_hint_moves_no_clock(b: ModuleType) -> None:
    """A table need not end where the newest log does: half a reason for another zone is none."""
    newest = b.at("2026-03-02 15:00:00")
    log = b.Print("app.log")
    for serial in range(20):
        log.line(newest - serial, b.message(serial), (b.stamp(b.INSTANT, "cri", newest - serial),), "engine")
    table = b.Print("smi.csv")
    table.series("gpu_memory_used_mib", b.LOCAL, "nvidia-smi", [(b.at("2026-03-02 10:00:00") - 60 * i, 1.0) for i in range(9, -1, -1)])
    clock = b.clock(b.solve(log, table), "smi.csv", "nvidia-smi")
    assert (clock.zone, clock.verdict) == ("UTC", "assumed")


def test_without_a_dated_line_ages_count_from_the_newest_log(b: ModuleType) -> None:
    """The files were copied half a year later: their times say nothing about `kubectl get events`."""
    end = b.at("2026-03-02 10:04:00")
    late = b.at("2026-09-20 08:00:00")
    log = engine_log(b, [end - 6 * i for i in range(40, -1, -1)])
    table = b.Print("events.txt", mtime_s=late)
    log.mtime_s = late
    table.line(end - 300, "Back-off restarting failed container", (b.age(300, 60),), "k8s", "k8s_event", reason="BackOff")
    solved = b.solve(log, table)
    (told,) = (event.time.utc_s for event in solved.events if event.locator.source == "events.txt")
    assert abs(told - (end - 300)) < 120


def test_a_log_ends_when_somebody_kills_its_program(b: ModuleType) -> None:
    """sudo's line has a zone, the engine's log has none: its last words come seconds after `kill -9`."""
    sudo = b.Print("auth.log")
    for second, command in ((0.0, "/usr/bin/ls"), (600.0, "/usr/bin/kill -9 8933")):
        when = b.at("2026-05-06 02:00:00") + second
        text = f"ops : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND={command}"
        sudo.line(when, text, (b.stamp(b.INSTANT, "journal", when),), scope=Scope(host="gpu-node-7"))
    engine = b.Print("vllm.log")
    for second in (400.0, 500.0, 602.0):
        when = b.at("2026-05-06 02:00:00") + second
        engine.line(when, "throughput", (b.stamp(b.YEARLESS, "engine", when, "Asia/Shanghai"),), "engine")
    solved = b.solve(sudo, engine)
    assert b.clock(solved, "vllm.log", "engine").offset_s == -8 * 3600


def test_a_zone_taken_from_a_neighbour_whose_zone_is_open_is_open(b: ModuleType) -> None:
    """Two tools of one node that nothing ties: they print the same zone, whichever it is."""
    start, scope = b.at("2026-05-06 09:38:30"), Scope(host="gpu-node-7")
    one, other = b.Print("slurmctld.log", scope=scope), b.Print("slurmd.log", scope=scope)
    for log, lag_s in ((one, 0.0), (other, 0.4)):
        for serial in range(5):
            true_s = start + 300 * serial + lag_s
            log.line(true_s, b.message(serial + int(250 * lag_s)), (b.stamp(b.LOCAL, "host", true_s, "Europe/Berlin"),), "host")
    solved = b.solve(one, other)
    assert min(event.time.uncertainty_s for event in solved.events) > 10 * 3600
