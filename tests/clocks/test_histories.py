"""Random true histories, printed by random clocks, must never be solved confidently wrong.

A history is a list of moments in true time. Every source prints some of them with its own clock: zone, missing year,
seconds since boot with drift, skew, a clock that is set, ages, truncation, lag. Storms and equal words at other times
are mixed in. The solver sees only the prints.
"""

from __future__ import annotations

import math
import os
import zoneinfo
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from random import Random
from types import ModuleType
from typing import Any

import pytest

from forensics.clocks.ages import width_of
from forensics.model import Scope
from forensics.stamps import epoch

HISTORIES = int(os.environ.get("HISTORIES", "3000"))
"""Each number is a history, always the same one."""
CHUNKS = 8
"""Tests that share them, so that several processes can work on them."""
ZONES = sorted(name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/"))
WORDS = ("alpha", "bravo", "carol", "delta", "eagle", "fjord", "gamma", "hotel")
STORM = "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 11 timed out"
POD = Scope(pod="vllm-llama-0", container="vllm", container_id="a1" * 32)


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
    asleep_s: tuple[float, float] = (math.inf, math.inf)
    """From when to when the machine was suspended; the seconds since boot stand still."""

    def clock(self, true_s: float) -> float:
        return true_s + self.skew_s + (self.before_s if true_s < self.set_at_s else 0.0)

    def up_s(self, true_s: float) -> float:
        """Seconds since boot, as the kernel counts them."""
        boot_s = max(boot for boot in self.boots_s if boot <= true_s)
        slept_s = max(min(true_s, self.asleep_s[1]) - self.asleep_s[0], 0.0) if boot_s < self.asleep_s[0] else 0.0
        return (true_s - boot_s - slept_s) * (1 + self.drift)


@dataclass
class History:
    """A bundle in the making."""

    b: ModuleType
    random: Random
    times: list[float]
    prints: list[Any] = field(default_factory=list)

    def sentence(self, serial: int) -> str:
        words = " ".join(self.random.choice(WORDS) for _ in range(3))
        number, took = self.random.randrange(10**6), self.random.randrange(10**4)
        return f"{words} unit {number:06d} serial {serial} took {took} us"

    def add(self, path: str, kind: str = "log", scope: Scope | None = None) -> Any:
        found = self.b.Print(path, kind, scope or Scope())
        self.prints.append(found)
        return found

    def machine(self, name: str, skew_s: float) -> Node:
        """A node that was up for minutes to weeks, restarted perhaps, with a clock that is set perhaps."""
        random, times = self.random, self.times
        node = Node(name, random.choice(ZONES), skew_s, [times[0] - random.choice([400.0, 86400.0, 25 * 86400.0])],
                    random.uniform(-1e-4, 1e-4))  # fmt: skip
        if random.random() < 0.15:
            node.boots_s.append(random.choice(times) + 0.2)
        gaps = [(one + 1, other - 1) for one, other in pairwise(times) if other - one > 30]
        if gaps and random.random() < 0.15:
            node.asleep_s = random.choice(gaps)
        if not skew_s and random.random() < 0.15:
            node.set_at_s = random.choice(times[3:-3]) + 0.05
            node.before_s = random.choice([-1, 1]) * random.uniform(10, 300)
        return node

    def journal(self, node: Node, folder: str) -> None:
        """The journal of a node, and its kernel ring as seconds since boot or rendered, perhaps elsewhere."""
        b, random = self.b, self.random
        form = random.choice([b.YEARLESS, b.LOCAL, b.YEARLESS, b.INSTANT])
        fine = random.choice([1.0, 1.0, 1e-6])
        with_runtime = random.random() < 0.6
        journal = self.add(f"{folder}/journal.txt", scope=Scope(host=node.name))
        ring, rendered = b.Print(f"{folder}/dmesg.txt"), b.Print(f"{folder}/dmesg-T.txt")
        away_s = random.choice([0.0, 0.0, random.uniform(-40, 40) * 86400])
        witness: dict[float, str] = {}
        if node.asleep_s[1] < math.inf:
            witness = {node.asleep_s[0] - 0.1: "PM: suspend entry (deep)", node.asleep_s[1] + 0.1: "PM: suspend exit"}
        received = random.random() < 0.7
        for boot_s in node.boots_s[1:]:
            witness[boot_s] = "Linux version 6.1.0-18-amd64 (gcc-12, GNU ld 2.40) #1 SMP PREEMPT_DYNAMIC"
        for serial, true_s in enumerate(self.times):
            if true_s > node.set_at_s >= (self.times[serial - 1] if serial else 0):
                said_s = node.set_at_s + 0.01
                said = (b.stamp(form, "journal", node.clock(said_s), node.zone, fine),)
                journal.line(said_s, f"System clock was stepped by {-node.before_s:.6f} seconds", said, "clock")
            while witness and min(witness) < true_s:
                said_s = min(witness)
                text = witness.pop(said_s)
                ring.line(said_s, text, (b.boot(node.up_s(said_s)),), "kernel")
                shown = node.up_s(said_s) + node.clock(self.times[-1]) - node.up_s(self.times[-1]) + away_s
                rendered.line(said_s, text, (b.stamp(b.LOCAL, "dmesg", shown, node.zone),), "kernel")
                if received:
                    stamps = (b.stamp(form, "journal", node.clock(said_s), node.zone, fine),)
                    journal.line(said_s, text, stamps, "kernel")
            text = self.sentence(serial)
            late_s = random.choice([0.0, 0.0, 0.02, 0.3])
            stamps = (b.stamp(form, "journal", node.clock(true_s) + late_s, node.zone, fine),)
            speaker = random.choice(["kernel", "kubelet", "runtime", "host"])
            if speaker == "runtime" and with_runtime:
                stamps += (b.stamp(b.INSTANT, "runtime", node.clock(true_s), "UTC", 1e-6),)
            if speaker == "kubelet":
                stamps += (b.stamp(b.YEARLESS, "klog", node.clock(true_s), node.zone, 1e-6),)
            journal.line(true_s, text, stamps, speaker)
            for _ in range(random.choice([0, 0, 0, 0, 4])):
                journal.line(true_s, STORM, stamps, "kernel")
            if speaker == "kernel":
                ring.line(true_s, text, (b.boot(node.up_s(true_s)),), "kernel")
                shown = node.up_s(true_s) + node.clock(self.times[-1]) - node.up_s(self.times[-1]) + away_s
                owner = Scope(host=node.name) if random.random() < 0.5 else Scope()
                rendered.line(true_s, text, (b.stamp(b.LOCAL, "dmesg", shown, node.zone),), "kernel", scope=owner)
        if len(ring.events) > 6 and random.random() < 0.3:
            text, last = self.sentence(-1), self.times[-1]  # equal words, once in each file, at different times
            journal.line(last + 1, text, (b.stamp(form, "journal", node.clock(last + 1), node.zone, fine),), "kernel")
            ring.line(last + 700, text, (b.boot(node.up_s(last + 700)),), "kernel")
        if ring.events:
            pairs = [[ring], [ring, rendered], [rendered], []] if len(node.boots_s) == 1 else [[ring]]
            self.prints += random.choice(pairs)

    def containers(self, node: Node) -> None:
        """Container logs: engine lines in the container's zone, with or without the collector's stamps."""
        b, random = self.b, self.random
        zone = random.choice(["UTC", "UTC", random.choice(ZONES)])
        lag_s = random.choice([0.001, 0.01, 0.3])
        wrapped = b.Print("pods/vllm-0.log", scope=Scope(pod=POD.pod))
        bare = b.Print("kubectl/logs.txt", scope=Scope(pod=POD.pod))
        for serial, true_s in enumerate(self.times):
            text = self.sentence(serial)
            inner = b.stamp(b.YEARLESS, "engine", node.clock(true_s), zone)
            cri = b.stamp(b.INSTANT, "cri", node.clock(true_s + lag_s), "UTC", 1e-6)
            wrapped.line(true_s, text, (cri, inner), "engine")
            bare.line(true_s, text, (inner,), "engine")
        self.prints += random.choice([[wrapped], [bare], [wrapped, bare], []])

    def api(self, node: Node) -> None:
        """API objects, stamped by the node and stored by the API server; and a table of the same events with ages."""
        b = self.b
        scope = POD.merged(Scope(host=node.name))
        found = self.add("k8s/pods.json", "k8s.objects")
        for true_s, kind in ((self.times[0] - 5, "container_started"), (self.times[-1] + 2, "container_terminated")):
            found.line(true_s, kind, (b.stamp(b.INSTANT, "k8s", node.clock(true_s)),), "k8s", kind, scope)
        table = b.Print("kubectl/events.txt", "k8s.table")
        captured_s = self.times[-1] + 60 + self.random.random() * 600
        for number in range(4):
            true_s = self.times[0] + 30 * number
            seen_s = float(math.floor(node.clock(true_s)))
            told = {"reason": "Unhealthy", "object_name": POD.pod, "component": "kubelet"}
            found.line(true_s, f"Unhealthy: probe {number}", (b.stamp(b.INSTANT, "k8s", seen_s),), "k8s", "k8s_event",
                       scope, first_seen_s=seen_s, created_s=float(math.floor(true_s + 0.1)), **told)  # fmt: skip
            age_s = captured_s - seen_s
            if age_s > 0:
                stamps = (b.age(age_s, width_of(age_s)),)
                table.line(true_s, f"Unhealthy: probe {number}", stamps, "k8s", "k8s_event", scope, **told)
        if self.random.random() < 0.5:
            self.prints.append(table)

    def samples(self, node: Node) -> None:
        """An nvidia-smi loop in the node's zone."""
        rows = [self.times[0] + 10 * i for i in range(int((self.times[-1] - self.times[0]) // 10) + 2)][:400]
        stamps = [self.b.stamp(self.b.LOCAL, "nvidia-smi", node.clock(t), node.zone, 0.001).seconds for t in rows]
        loop = self.add("node/nvidia-smi.csv", "nvidia.csv")
        loop.series("gpu_memory_used_mib", self.b.LOCAL, "nvidia-smi", [(seconds, 70000.0) for seconds in stamps])


def moments(random: Random) -> list[float]:
    """True instants: bursts and gaps over minutes to days, often across a change of summer time or of the year."""
    year = random.randint(2019, 2030)
    day = random.choice([
        (random.randint(1, 12), random.randint(1, 28)), (12, 31), (2, 28), (10, random.randint(24, 31)),
        (3, random.randint(8, 31)), (11, random.randint(1, 7)), (4, random.randint(1, 7)),
    ])  # fmt: skip
    here = epoch(datetime(year, *day, random.randrange(24))) + random.random() * 3600
    found = []
    for _ in range(random.randint(12, 60)):
        here += random.choice([0.003, 0.4, 2.0, 17.0, 240.0, 1900.0]) * (0.5 + random.random())
        found.append(here)
    return found


def history(b: ModuleType, random: Random) -> History:
    """A bundle of one or two nodes, a container, the API, and a GPU loop."""
    found = History(b, random, moments(random))
    node = found.machine("gpu-node-7", random.choice([0.0, 0.0, 0.0, random.uniform(-400, 400)]))
    found.journal(node, "node")
    if random.random() < 0.2:
        found.journal(found.machine("gpu-node-8", 0.0), "other")
    found.containers(node)
    if node.skew_s or random.random() < 0.5:
        found.api(node)
    if random.random() < 0.3:
        found.samples(node)
    if random.random() < 0.5:
        found.prints[0].mtime_s = found.times[-1] + random.random() * 500
    return found


def wrong(found: History, solved: Any, sure: bool = True) -> list[str]:
    """Times further from the truth than they say, in sources whose clocks are all called solved or exact."""
    truth = {one.path: one.truth for one in found.prints}
    said = []
    for event in solved.events:
        verdicts = {clock.verdict for clock in solved.clocks.get(event.locator.source, ())}
        if event.time.utc_s is None or (sure and not verdicts <= {"solved", "exact"}):
            continue
        error = event.time.utc_s - truth[event.locator.source][event.locator.line]
        if abs(error) > max(1.0, event.time.uncertainty_s) + 1e-6:
            said.append(f"{event.locator} off by {error:.1f} s, said ±{event.time.uncertainty_s:.1f} s")
    return said


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_history_is_confidently_wrong(b: ModuleType, chunk: int) -> None:
    """What is called solved or exact lies within its stated uncertainty, in every history."""
    for seed in range(chunk, HISTORIES, CHUNKS):
        found = history(b, Random(seed))
        assert wrong(found, b.solve(*found.prints)) == [], f"history {seed}"
