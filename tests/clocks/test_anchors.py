"""Facts that two clocks saw; and what looks like one and is none."""

from __future__ import annotations

from types import ModuleType

from forensics.clocks import anchors, lanes
from forensics.clocks.anchors import Kind, Link
from forensics.model import Scope

T = "2026-05-06 02:00:00"


def links(*prints: object) -> list[Link]:
    return anchors.links(lanes.collect([one.parsed() for one in prints]))  # type: ignore[attr-defined]


def kernel(b: ModuleType, path: str, *, boot_s: float | None, lines: list[tuple[float, str]]) -> object:
    found = b.Print(path)
    for true_s, text in lines:
        stamp = b.boot(true_s - boot_s) if boot_s is not None else b.stamp(b.YEARLESS, "journal", true_s, "Asia/Tokyo")
        found.line(true_s, text, (stamp,), "kernel")
    return found


def test_two_stamps_of_one_line(b: ModuleType) -> None:
    """The journal's stamp and the runtime's on one line are one moment."""
    found = links(b.journal("journal.txt", "Asia/Tokyo", [b.at(T), b.at(T) + 60, b.at(T) + 120, b.at(T) + 180]))
    assert [link.kind for link in found] == [Kind.RECORD, Kind.RECORD]


def test_a_kernel_line_in_two_files(b: ModuleType) -> None:
    """A distinctive line that stands once in dmesg and once in the journal."""
    start = b.at(T)
    lines = [(start, "Memory cgroup out of memory: Killed process 51822 (pt_main_thread) total-vm:131000000kB")]
    found = links(
        kernel(b, "dmesg", boot_s=start - 9000, lines=lines), kernel(b, "journal.txt", boot_s=None, lines=lines)
    )
    assert [link.kind for link in found] == [Kind.TEXT]


def test_storms_pair_nothing(b: ModuleType) -> None:
    """A line that stands twice in a file could be either of them."""
    start = b.at(T)
    text = "NVRM: Xid (PCI:0000:3b:00): 13, pid=4711, name=python3, Graphics Exception: ESR 0x504648=0x10"
    storm = [(start + i, text) for i in range(30)]
    once = [(start + 7, text)]
    assert links(
        kernel(b, "dmesg", boot_s=start - 9000, lines=storm), kernel(b, "journal.txt", boot_s=None, lines=once)
    ) == []


def test_short_and_wordy_lines_pair_nothing(b: ModuleType) -> None:
    """Without numbers the same words may be said again."""
    start = b.at(T)
    lines = [(start, "reset"), (start + 1, "systemd was here and said what it always says in this place")]
    assert links(
        kernel(b, "dmesg", boot_s=start - 9000, lines=lines), kernel(b, "journal.txt", boot_s=None, lines=lines)
    ) == []


def test_early_boot_lines_pair_nothing(b: ModuleType) -> None:
    """Journald receives them late, and another boot printed the same."""
    start = b.at(T)
    lines = [(start, "pci 0000:00:1f.2: reg 0x10: [mem 0xfe800000-0xfe803fff 64bit]")]
    assert links(
        kernel(b, "dmesg", boot_s=start - 2, lines=lines), kernel(b, "journal.txt", boot_s=None, lines=lines)
    ) == []


def test_restarts_that_repeat_their_words_pair_nothing(b: ModuleType) -> None:
    """Two runs of one container print the same lines; only a line's own stamp tells which run it was."""
    first, second = b.Print("previous.log"), b.Print("current.log")
    text = "Model loading took 14.2488 GiB and 53.140227 seconds on rank 0"
    first.line(b.at(T), text, (b.stamp(b.INSTANT, "cri", b.at(T)),), "engine")
    second.line(b.at(T) + 600, text, (b.stamp(b.INSTANT, "cri", b.at(T) + 600),), "engine")
    assert links(first, second) == []
    for one, shift in ((first, 0), (second, 600)):
        one.line(b.at(T) + shift, text, (b.stamp(b.YEARLESS, "engine", b.at(T) + shift),), "engine")
    assert links(first, second) == []


def test_copies_of_a_container_log(b: ModuleType) -> None:
    """A line with its own stamp ties a bare copy to the file that carries the collector's stamps as well."""
    bare, wrapped = b.Print("kubectl/logs.txt"), b.Print("pods/0.log")
    for serial in range(4):
        inner = b.stamp(b.YEARLESS, "engine", b.at(T) + 60 * serial)
        bare.line(0, b.message(serial), (inner,), "engine")
        wrapped.line(0, b.message(serial), (b.stamp(b.INSTANT, "cri", b.at(T) + 60 * serial), inner), "engine")
    assert sum(link.kind is Kind.TEXT for link in links(bare, wrapped)) == 4


def test_other_machines_say_the_same(b: ModuleType) -> None:
    """Equal lines of two known hosts are two facts."""
    lines = []
    for host in ("gpu-node-7", "gpu-node-8"):
        one = b.Print(f"{host}/journal.txt", scope=Scope(host=host))
        one.line(0, b.message(1), (b.stamp(b.YEARLESS, "journal", b.at(T)),), "host")
        lines.append(one)
    assert links(*lines) == []


def test_a_death_by_container_id_and_a_kill_by_pid(b: ModuleType) -> None:
    """The API, the kubelet and the kernel tell one thing in other words."""
    container = Scope(container_id="e9" * 32)
    api, journal, ring = b.Print("pods.json", "k8s.objects"), b.Print("journal.txt"), b.Print("dmesg")
    api.line(0, "container vllm terminated", (b.stamp(b.INSTANT, "k8s", b.at(T)),), "k8s", "container_terminated", container)
    api.line(0, "SystemOOM: System OOM encountered, victim process: python3, pid: 48110",
             (b.stamp(b.INSTANT, "k8s", b.at(T)),), "k8s", "k8s_event", reason="SystemOOM")  # fmt: skip
    journal.line(0, "container vllm died", (b.stamp(b.YEARLESS, "klog", b.at(T)),), "kubelet", "container_died", container)
    ring.line(0, "Out of memory: Killed process 48110 (python3)", (b.boot(90000),), "kernel", "kernel_oom", victim_pid=48110)
    assert sorted(link.kind for link in links(api, journal, ring)) == [Kind.FACT, Kind.FACT]


def test_instants_that_messages_print_about_themselves(b: ModuleType) -> None:
    """The kernel's audit prints Unix time behind seconds since boot."""
    ring = b.Print("dmesg")
    for serial in range(4):
        true_s = b.at(T) + 100 * serial
        ring.line(true_s, f'audit: type=1400 audit({true_s:.3f}:{serial}): apparmor="STATUS"', (b.boot(true_s - b.at(T) + 5000),), "kernel")
    solved = b.solve(ring)
    assert max(abs(error) for error in b.errors(solved, ring)) < 0.01
    assert b.clock(solved, "dmesg", "dmesg").verdict == "solved"
