"""Random true histories, printed by random clocks, must never be solved confidently wrong.

A history is a list of moments in true time. Every source prints some of them with its own clock: zone, missing year,
seconds since boot with drift, skew, ages, truncation and lag. The solver sees only the prints.
"""

from __future__ import annotations

import math
import zoneinfo
from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.clocks import Solved, solve
from forensics.model import Event, Locator, Parsed, RawStamp, Samples, Scope, Source, StampForm
from forensics.stamps import epoch

ZONES = sorted(name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/"))
WORDS = ("alpha", "bravo", "carol", "delta", "eagle", "fjord", "gamma", "hotel")


@dataclass
class Print:
    """One source under construction, with the true instant of every line."""

    path: str
    format: str = "log"
    events: list[Event] = field(default_factory=list)
    truth: dict[int, float] = field(default_factory=dict)
    samples: list[Samples] = field(default_factory=list)
    mtime_s: float | None = None

    def line(self, true_s: float, text: str, stamps: tuple[RawStamp, ...], channel: str, **more: Any) -> None:
        number = len(self.events) + 1
        self.truth[number] = true_s
        scope = more.pop("scope", Scope())
        kind = more.pop("kind", "log")
        self.events.append(
            Event(Locator(self.path, number, number), kind, channel, text, stamps, scope, more.pop("fields", {}))
        )

    def parsed(self) -> tuple[Source, Parsed]:
        source = Source(self.path, self.format, "", 1, "", len(self.events), Scope(), self.mtime_s, 1.0)
        return source, Parsed(tuple(self.events), tuple(self.samples))


def local_stamp(form: StampForm, layer: str, host_s: float, zone: str, resolution_s: float) -> RawStamp:
    """What a clock that shows `host_s` prints in a zone."""
    cut = math.floor(host_s / resolution_s + 1e-6) * resolution_s
    if form is StampForm.INSTANT:
        return RawStamp(form, layer, cut, resolution_s)
    moment = datetime.fromtimestamp(cut, UTC).astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)
    if form is StampForm.YEARLESS:
        moment = moment.replace(year=2000)
    return RawStamp(form, layer, epoch(moment), resolution_s)


@dataclass
class History:
    """A bundle with its truth."""

    prints: list[Print]

    def solve(self) -> Solved:
        return solve([one.parsed() for one in self.prints])


def sentence(random: Random, serial: int) -> str:
    """A distinctive message."""
    words = " ".join(random.choice(WORDS) for _ in range(3))
    return f"{words} unit {random.randrange(10**6):06d} serial {serial} took {random.randrange(10**4)} us"


def moments(random: Random) -> list[float]:
    """True instants: bursts and gaps over minutes to days, often across a change of summer time or of the year."""
    year = random.randint(2019, 2030)
    start = random.choice([
        epoch(datetime(year, random.randint(1, 12), random.randint(1, 28), random.randrange(24))),
        epoch(datetime(year, 12, 31, random.randrange(24))),
        epoch(datetime(year, 2, 28, random.randrange(24))),
        epoch(datetime(year, 10, random.randint(24, 31), random.randrange(24))),
        epoch(datetime(year, 3, random.randint(8, 31), random.randrange(24))),
    ])
    here, found = start + random.random() * 3600, []
    for _ in range(random.randint(12, 60)):
        here += random.choice([0.003, 0.4, 2.0, 17.0, 240.0, 1900.0]) * (0.5 + random.random())
        found.append(here)
    return found


@dataclass
class Node:
    """A machine: zone, skew, boots, drift; its clock may be set once."""

    name: str
    zone: str
    skew_s: float
    boots_s: list[float]
    drift: float
    set_at_s: float = math.inf
    """When a time service sets the clock right; before, it ran ahead by `before_s` more."""
    before_s: float = 0.0

    def clock(self, true_s: float) -> float:
        return true_s + self.skew_s + (self.before_s if true_s < self.set_at_s else 0.0)

    def boot_stamp(self, true_s: float) -> RawStamp:
        boot_s = max(boot for boot in self.boots_s if boot <= true_s)
        return RawStamp(StampForm.BOOT, "dmesg", round((true_s - boot_s) * (1 + self.drift), 6), 1e-6)


def machine(random: Random, name: str, times: list[float], skew_s: float) -> Node:
    """A node that was up for minutes to weeks, restarted perhaps, with a clock that is set perhaps."""
    node = Node(name, random.choice(ZONES), skew_s, [times[0] - random.choice([400.0, 86400.0, 25 * 86400.0])],
                random.uniform(-1e-4, 1e-4))  # fmt: skip
    if random.random() < 0.15:
        node.boots_s.append(random.choice(times) + 0.2)
    if not skew_s and random.random() < 0.15:
        node.set_at_s = random.choice(times[3:-3]) + 0.05
        node.before_s = random.choice([-1, 1]) * random.uniform(10, 300)
    return node


def history(random: Random) -> History:
    """A bundle: journal and kernel ring of one or two nodes, container logs, API objects, GPU samples."""
    times = moments(random)
    skew_s = random.choice([0.0, 0.0, 0.0, random.uniform(-400, 400)])
    node = machine(random, "gpu-node-7", times, skew_s)
    prints = journals(random, times, node, "node")
    if random.random() < 0.2:
        prints += journals(random, times, machine(random, "gpu-node-8", times, 0.0), "other")
    prints += containers(random, times, node)
    prints += api(random, times, node)
    if random.random() < 0.3:
        prints.append(sampled(random, times, node))
    if random.random() < 0.5:
        prints[0].mtime_s = times[-1] + random.random() * 500
    return History(prints)


def journals(random: Random, times: list[float], node: Node, folder: str) -> list[Print]:
    """The journal of a node, and its kernel ring as seconds since boot or rendered."""
    scope = Scope(host=node.name)
    form = random.choice([StampForm.YEARLESS, StampForm.LOCAL, StampForm.YEARLESS, StampForm.INSTANT])
    resolution = random.choice([1.0, 1.0, 1e-6])
    with_runtime = random.random() < 0.6
    journal = Print(f"{folder}/journal.txt")
    ring, rendered = Print(f"{folder}/dmesg.txt"), Print(f"{folder}/dmesg-T.txt")
    away_s = random.choice([0.0, 0.0, random.uniform(-40, 40) * 86400])  # rendered on a machine with another boot
    was_set = False
    for serial, true_s in enumerate(times):
        if true_s > node.set_at_s and not was_set:
            was_set = True
            moved = f"System clock was stepped by {-node.before_s:.6f} seconds"
            stamp = local_stamp(form, "journal", node.clock(node.set_at_s + 0.01), node.zone, resolution)
            journal.line(node.set_at_s + 0.01, moved, (stamp,), "clock", scope=scope)
        text = sentence(random, serial)
        shown = node.clock(true_s) + random.choice([0.0, 0.0, 0.02, 0.3])
        stamps: tuple[RawStamp, ...] = (local_stamp(form, "journal", shown, node.zone, resolution),)
        speaker = random.choice(["kernel", "kubelet", "runtime", "host"])
        if speaker == "runtime" and with_runtime:
            stamps += (local_stamp(StampForm.INSTANT, "runtime", node.clock(true_s), "UTC", 1e-6),)
        if speaker == "kubelet":
            stamps += (local_stamp(StampForm.YEARLESS, "klog", node.clock(true_s), node.zone, 1e-6),)
        journal.line(true_s, text, stamps, speaker, scope=scope)
        for _ in range(random.choice([0, 0, 0, 0, 4])):  # a storm of equal lines anchors nothing
            journal.line(true_s, "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 11 timed out", stamps, "kernel",
                         scope=scope)  # fmt: skip
        if speaker == "kernel":
            ring.line(true_s, text, (node.boot_stamp(true_s),), "kernel")
            kernel_s = node.boot_stamp(true_s).seconds + node.clock(times[-1]) - node.boot_stamp(times[-1]).seconds
            rendered.line(true_s, text, (local_stamp(StampForm.LOCAL, "dmesg", kernel_s + away_s, node.zone, 1.0),),
                          "kernel", scope=scope if random.random() < 0.5 else Scope())  # fmt: skip
    if not ring.events or len(node.boots_s) > 1:
        return [journal, ring] if ring.events else [journal]
    return [journal, *random.choice([[ring], [ring, rendered], [rendered], []])]


def containers(random: Random, times: list[float], node: Node) -> list[Print]:
    """Container logs: engine lines in the container's zone, with or without the collector's stamps."""
    zone = random.choice(["UTC", "UTC", random.choice(ZONES)])
    pod = Scope(pod="vllm-llama-0", container="vllm")
    wrapped, bare = Print("pods/vllm-0.log"), Print("kubectl/logs.txt")
    lag = random.choice([0.001, 0.01, 0.3])
    for serial, true_s in enumerate(times):
        text = sentence(random, serial)
        inner = local_stamp(StampForm.YEARLESS, "engine", node.clock(true_s), zone, 1.0)
        cri = local_stamp(StampForm.INSTANT, "cri", node.clock(true_s + lag), "UTC", 1e-6)
        wrapped.line(true_s, text, (cri, inner), "engine", scope=pod)
        bare.line(true_s, text, (inner,), "engine", scope=pod)
    return random.choice([[wrapped], [bare], [wrapped, bare], []])


def api(random: Random, times: list[float], node: Node) -> list[Print]:
    """API objects: starts and ends of containers, events; stamped by the node, stored by the API server."""
    found = Print("k8s/pods.json", "k8s.objects")
    started = RawStamp(StampForm.INSTANT, "k8s", float(math.floor(node.clock(times[0] - 5))))
    scope = Scope(host=node.name, pod="vllm-llama-0", container="vllm", container_id="a" * 64)
    found.line(times[0] - 5, "container vllm started", (started,), "k8s", kind="container_started", scope=scope,
               fields={"attempt": 0})  # fmt: skip
    ended = RawStamp(StampForm.INSTANT, "k8s", float(math.floor(node.clock(times[-1] + 2))))
    found.line(times[-1] + 2, "container vllm terminated", (ended,), "k8s", kind="container_terminated",
               scope=scope, fields={"exit_code": 137})  # fmt: skip
    for number in range(4):
        true_s = times[0] + 30 * number
        seen = float(math.floor(node.clock(true_s)))
        found.line(true_s, f"Unhealthy: probe {number}", (RawStamp(StampForm.INSTANT, "k8s", seen),), "k8s",
                   kind="k8s_event", scope=scope, fields={
                       "reason": "Unhealthy", "object_name": "vllm-llama-0", "component": "kubelet",
                       "first_seen_s": seen, "created_s": float(math.floor(true_s + 0.1)),
                   })  # fmt: skip
    if node.skew_s or random.random() < 0.5:
        return [found]
    return []


def sampled(random: Random, times: list[float], node: Node) -> Print:
    """An nvidia-smi loop in the node's zone."""
    loop = Print("node/nvidia-smi.csv", "nvidia.csv")
    rows = [times[0] + 10 * i for i in range(int((times[-1] - times[0]) // 10) + 2)][:400]
    stamps = [local_stamp(StampForm.LOCAL, "nvidia-smi", node.clock(t), node.zone, 0.001).seconds for t in rows]
    loop.samples.append(Samples(
        "gpu_memory_used_mib", loop.path, Scope(gpu="0"), StampForm.LOCAL, "nvidia-smi",
        array("q", range(2, len(rows) + 2)), array("d", stamps), array("d", [70000.0] * len(rows)),
    ))  # fmt: skip
    return loop


def wrong(found: History, solved: Solved) -> list[str]:
    """Times that are further from the truth than they say, in sources whose clock is called solved or exact."""
    truth = {one.path: one.truth for one in found.prints}
    said = []
    for event in solved.events:
        verdicts = {clock.verdict for clock in solved.clocks.get(event.locator.source, ())}
        if event.time.utc_s is None or not verdicts <= {"solved", "exact"}:
            continue
        error = event.time.utc_s - truth[event.locator.source][event.locator.line]
        if abs(error) > max(1.0, event.time.uncertainty_s) + 1e-6:
            said.append(f"{event.locator} off by {error:.1f} s, said ±{event.time.uncertainty_s:.1f} s")
    return said


@settings(max_examples=300, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_no_history_is_confidently_wrong(seed: int) -> None:
    """What is called solved or exact lies within its stated uncertainty, in every history."""
    found = history(Random(seed))
    assert wrong(found, found.solve()) == []
