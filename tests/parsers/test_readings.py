"""What watchers and programs log of memory: their own words, as series with the time of the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.bundle import Bundle
from forensics.ingest import read_bundle
from forensics.model import Samples


def read(folder: Path, *lines: str) -> list[Samples]:
    (folder / "spooler.log").write_text("\n".join(lines) + "\n")
    (item,) = read_bundle(Bundle((str(folder / "spooler.log"),)), ())
    return list(item.parsed.samples)


@pytest.mark.parametrize(("line", "name", "counter", "value"), [
    ("2025-11-18T02:41:07+0900 WARN keeping batch in spool: spool_bytes=2147483648 batches=41", "counted_mib", "spool_bytes", 2048),
    ('{"timestamp": "2025-11-18T02:41:07Z", "level": "info", "message": "flush", "queue_bytes": 1048576}', "counted_mib", "queue_bytes", 1),
    ("2025-11-18T02:41:07Z watch: rss_bytes=3221225472", "process_rss_mib", "", 3072),
], ids=["logfmt", "json", "known"])  # fmt: skip
def test_what_a_program_counts_of_itself(tmp_path: Path, line: str, name: str, counter: str, value: float) -> None:
    (samples,) = read(tmp_path, "2025-11-18T02:41:00Z start", line)
    assert (samples.name, samples.scope.process) == (name, counter)
    assert (list(samples.lines), list(samples.values)) == ([2], [value])
    assert samples.stamps[0] > 0


@pytest.mark.parametrize("line", [
    "spool_bytes=2147483648", "2025-11-18T02:41:07Z spool_bytes=many", "2025-11-18T02:41:07Z spool_bytes_total", ""
])  # fmt: skip
def test_a_count_without_time_or_number_is_none(tmp_path: Path, line: str) -> None:
    assert not read(tmp_path, "2025-11-18T02:41:00Z start", line)


@pytest.mark.parametrize("line", [
    "2026-02-03 06:00  chat-api  4.50GiB / 64GiB  7.39%  reqs/min=41",
    "2026-02-03T06:00:00Z chat-api 12.30% 4.5GiB / 64GiB 7.0% 1.2kB / 3kB 0B / 0B 41",
    "[2026-02-03 06:00:00] chat-api 4.5GiB / 64GiB",
    "Tue Feb  3 06:00:00 UTC 2026 chat-api 4.5GiB / 64GiB",
    "2026-02-03T06:00:00Z 0f7c9d4c1cb0   chat-api   12.30%   4.5GiB / 64GiB   7.0%",
])  # fmt: skip
def test_rows_of_docker_stats_need_no_id(tmp_path: Path, line: str) -> None:
    (samples,) = [s for s in read(tmp_path, "2026-02-03T00:00:00Z start", line) if s.name == "container_memory_mib"]
    assert (samples.scope.container, list(samples.values)) == ("chat-api", [4608.0])


@pytest.mark.parametrize("line", [
    "chat-api  4.50GiB / 64GiB  7.39%",
    "INFO 02-03 06:00:00 [worker.py:88] usage 4.50GiB / 64GiB",
    "2026-02-03T06:00:00Z copied model-00001.safetensors 4.50GiB / 64GiB",
    "2026-02-03T06:00:00Z memory usage 4.50GiB / 64GiB",
    "downloading shard 4.50GiB / 64GiB 7%",
])  # fmt: skip
def test_what_else_stands_before_two_sizes_is_no_container(tmp_path: Path, line: str) -> None:
    assert not [s for s in read(tmp_path, "2026-02-03T00:00:00Z start", line) if s.name == "container_memory_mib"]


@pytest.mark.parametrize(("line", "container"), [
    ("2026-02-03T06:00:00+00:00 gpu-node-7 memlog[812]: chat-api mem=4.5GiB/64GiB cpu=188% gpu_mem=71904MiB", "chat-api"),
    ("2026-02-03T06:00:00Z chat-api mem_usage: 4.5GiB / 64GiB", "chat-api"), ("2026-02-03 06:00:00 mem=4.5GiB/64GiB", ""),
])  # fmt: skip
def test_what_a_container_uses_of_its_limit(tmp_path: Path, line: str, container: str) -> None:
    (samples,) = [s for s in read(tmp_path, "2026-02-03T00:00:00Z start", line) if s.name == "container_memory_mib"]
    assert (samples.scope.container, list(samples.values)) == (container, [4608.0])


@pytest.mark.parametrize(("words", "kind", "value"), [
    ("SessionGuard: 308 conversations tracked", "conversations tracked", 308),
    ("adapter cache: 41 LoRA weights are cached on cuda:0", "", 0),
    ("adapter cache: 41 adapters cached, 3 evicted", "adapters cached", 41),
    ("hook: 17 hidden states currently retained", "hidden states retained", 17),
    ("replay: 5 batches in memory", "batches in memory", 5),
    ("1 conversations untracked", "", 0),
    ("conversations tracked: many", "", 0),
])  # fmt: skip
def test_what_a_program_says_that_it_keeps(tmp_path: Path, words: str, kind: str, value: int) -> None:
    found = read(tmp_path, "2025-11-18T02:41:00Z start", f"2025-11-18T02:41:07Z INFO {words}")
    held = [(s.scope.process, list(s.values), list(s.lines)) for s in found if s.name == "held_count"]
    assert held == ([(kind, [value], [2])] if kind else [])


@pytest.mark.parametrize(("line", "expected"), [
    ("# 2026-02-03 06:00:00 watch: Front(812) RSS=3.5G  Core(901) RSS=1.5G  MemAvailable=20G",
     [("process_rss_mib", "Front", 812, 3584.0), ("process_rss_mib", "Core", 901, 1536.0),
      ("host_memory_available_kib", "", None, 20971520.0)]),
    ("2026-02-03T06:00:00Z Front pid=812 rss=3.5GiB", [("process_rss_mib", "Front", 812, 3584.0)]),
    ("2026-02-03T06:00:00Z Front (pid 812) rss: 512Mi", [("process_rss_mib", "Front", 812, 512.0)]),
    ("2026-02-03T06:00:00Z rss=3.5Gbit", []),
], ids=["two processes", "a pid by name", "a bare unit", "no size"])  # fmt: skip
def test_sizes_of_processes(tmp_path: Path, line: str, expected: list[tuple[str, str, int | None, float]]) -> None:
    found = read(tmp_path, "2026-02-03T00:00:00Z start", line)
    assert [(s.name, s.scope.process, s.scope.pid, s.values[0]) for s in found] == expected
    assert all(s.stamps[0] > 0 for s in found)
