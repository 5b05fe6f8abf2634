"""Kill lines of the kernel that somebody passed on: behind marks, names and times; and those that are talk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.model import Event
from forensics.pipeline import read

MEMCG = (
    "Memory cgroup out of memory: Killed process 88121 (VLLM::Worker_TP) total-vm:91230148kB, anon-rss:45891320kB, "
    "file-rss:20240kB, shmem-rss:1024kB, UID:1000 pgtables:93880kB oom_score_adj:970"
)
NODE = (
    "Out of memory: Killed process 7712 (python3.11) total-vm:61230148kB, anon-rss:55891320kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:0 pgtables:110880kB oom_score_adj:0"
)
OLD = "Killed process 4410 (python) total-vm:41230148kB, anon-rss:35891320kB, file-rss:0kB, shmem-rss:0kB"
SUMMARY = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/4fd0b1c7a2,"
    "task_memcg=/docker/4fd0b1c7a2,task=VLLM::Worker_TP,pid=88121,uid=1000"
)


def kills(tmp_path: Path, text: str, name: str = "pasted.txt") -> list[Event]:
    (tmp_path / name).write_text(text + "\n")
    return [event for event in read(tmp_path / name).events if event.kind == "kernel_oom"]


@pytest.mark.parametrize(
    "line",
    [
        f"> {MEMCG}",
        f"- {MEMCG}",
        f"`{MEMCG}`",
        f"**{MEMCG}**",
        f"     1\t{MEMCG}",
        f"gpu-node-3: {MEMCG}",
        f"2026-11-03T11:22:33Z gpu3 {MEMCG}",
        f"kern.log:Nov  3 11:22:33 gpu3 kernel: [  881.221231] {MEMCG}",
        f"    lut  3 11:22:33 gpu3 kernel: {MEMCG}",
        f"kern.log:févr.  3 11:22:33 gpu3 kernel: {MEMCG}",
        f"/var/log/messages:Nov  3 11:22:33 gpu3 kernel: {MEMCG}",
        f"gpu[03]: [Tue Nov  3 11:22:33 2026] {MEMCG}",
        f"| 2026-11-03T11:22:33Z | gpu3 | {MEMCG} |",
        f"2026-11-03T11:22:33Z app[148ed193c6d189] ams [info][   71.402310] {MEMCG}",
    ],
)
def test_a_kill_behind_a_mark_or_a_header_is_the_kernels(tmp_path: Path, line: str) -> None:
    (kill,) = kills(tmp_path, line)
    assert kill.text == MEMCG
    assert kill.fields["victim_pid"] == 88121
    assert kill.fields["victim_anon_rss_kib"] == 45891320
    assert kill.fields["global_oom"] is False


def test_what_stands_behind_the_name_of_a_file_has_its_time(tmp_path: Path) -> None:
    (kill,) = kills(tmp_path, f"kern.log:2026-11-03T11:22:33.250000+00:00 gpu3 kernel: {NODE}")
    assert kill.fields["oom_scope"] == "node"
    assert kill.time.utc_s == pytest.approx(1793704953.25)
    assert kill.scope.host == "gpu3"


def test_the_lines_of_one_report_stay_one_kill(tmp_path: Path) -> None:
    (kill,) = kills(tmp_path, f"web3> {SUMMARY}\nweb3> {MEMCG}")
    assert kill.fields["oom_memcg"] == "/docker/4fd0b1c7a2"
    chosen = "Memory cgroup out of memory: Kill process 4410 (python) score 1970 or sacrifice child"
    (old,) = kills(tmp_path, f"web3> {chosen}\nweb3> {OLD}")
    assert old.fields["global_oom"] is False


@pytest.mark.parametrize(
    "line",
    [
        f"2026-09-09 08:15:02 gateway INFO user asks what this means: {MEMCG}",
        f"2026-09-09T08:15:02Z INFO chat.history role=user text={MEMCG}",
        f'{{"role": "user", "content": "{MEMCG}"}}',
        f"prompt: {MEMCG}",
        f"    line = '{MEMCG}'",
        "- Killed process 123 (python) is what the kernel prints when a limit is hit",
        "The kernel prints Memory cgroup out of memory: Killed process 123 (python), we did not see it.",
        "- pattern: 'Memory cgroup out of memory: Killed process \\d+'",
        f"gpu-3 {MEMCG[:60]} and so on",
        "`Memory cgroup out of memory: Killed process 4242 (python3) total-vm:… anon-rss:33554432kB …`",
        f"2. On the node, for example:\n   `{MEMCG}`",
    ],
)
def test_talk_is_no_kill(tmp_path: Path, line: str) -> None:
    assert not kills(tmp_path, line)


def test_a_prompt_between_an_engines_lines_is_no_kill(tmp_path: Path) -> None:
    head = "INFO 09-09 08:15:02 [api_server.py:100] vLLM API server version 0.11.0"
    log = "\n".join([head, f"> {MEMCG}", f"gpu-3: {NODE}", *[head] * 5])
    assert not kills(tmp_path, log, "vllm.log")


def npd_event() -> str:
    return json.dumps({
        "metadata": {"name": "gpu3.17f", "namespace": "default"}, "reason": "OOMKilling", "message": MEMCG,
        "source": {"component": "kernel-monitor", "host": "gpu3"}, "lastTimestamp": "2026-11-03T11:22:33Z", "count": 1,
        "type": "Warning", "involvedObject": {"kind": "Node", "name": "gpu3"},
    })  # fmt: skip


def test_an_event_of_the_node_problem_detector_is_the_kill_that_it_retells(tmp_path: Path) -> None:
    (kill,) = kills(tmp_path, npd_event(), "events.ndjson")
    assert kill.channel == "k8s"
    assert kill.scope.host == "gpu3"
    assert kill.fields["victim_anon_rss_kib"] == 45891320


def test_the_kernels_own_line_tells_a_kill_once(tmp_path: Path) -> None:
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "dmesg.txt").write_text(f"[  881.221231] {MEMCG}\n")
    (kill,) = kills(tmp_path / "both", npd_event(), "events.ndjson")
    found = [e for e in read(tmp_path / "both").events if e.kind == "kernel_oom"]
    assert kill.channel == "k8s"
    assert [e.channel for e in found] == ["kernel"]
