"""Files of the memory controller: alone, in folders, in sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline
from forensics.model import Event, StampForm
from forensics.parsers import FORMATS
from forensics.sources import identify, make_head


def events(text: str, path: str) -> list[Event]:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    assert form is not None, path
    assert form.name == "cgroup", path
    assert form.read is not None
    return list(form.read(text, path).events)


@pytest.mark.parametrize(
    ("path", "text", "fields"),
    [
        ("cgroup/container/memory.max", "103079215104\n", {"memory_max_bytes": 103079215104}),
        ("memory.max.txt", "max\n", {"memory_max_bytes": None, "unlimited": True}),
        ("pod/memory.peak", "5\n", {"memory_peak_bytes": 5}),
        ("memory.limit_in_bytes", "9223372036854771712\n", {"memory_max_bytes": None, "unlimited": True}),
        ("memory.failcnt", "79\n", {"failcnt": 79}),
        ("memory.events", "low 0\nhigh 0\nmax 51822\noom 2\noom_kill 2\noom_group_kill 0\n",
         {"low": 0, "high": 0, "max": 51822, "oom": 2, "oom_kill": 2, "oom_group_kill": 0, "local": False}),
        ("x/memory.events.local", "low 0\nhigh 0\nmax 1\noom 1\noom_kill 0\n",
         {"low": 0, "high": 0, "max": 1, "oom": 1, "oom_kill": 0, "local": True}),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
         {"oom_kill_disable": 0, "under_oom": 0, "oom_kill": 1}),
        ("memory.pressure", "some avg10=1.50 avg60=0.10 avg300=0.00 total=77\n",
         {"some_avg10_pct": 1.5, "some_avg60_pct": 0.1, "some_avg300_pct": 0.0, "some_total_us": 77}),
    ],
)  # fmt: skip
def test_single_files(path: str, text: str, fields: dict[str, object]) -> None:
    """The name decides for a lone number; keys keep their names, amounts are bytes."""
    (event,) = events(text, path)
    assert (event.kind, event.channel) == ("cgroup", "cgroup")
    assert {key: value for key, value in event.fields.items() if key != "file"} == fields


def test_statistics_get_units() -> None:
    """Amounts are bytes, counters are not."""
    (event,) = events(
        "anon 742563840\nfile 4096\nshmem 8192\ninactive_file 0\npgfault 181347\nworkingset_refault_file 3\n",
        "memory.stat",
    )
    assert event.fields["anon_bytes"] == 742563840
    assert event.fields["shmem_bytes"] == 8192
    assert event.fields["pgfault"] == 181347
    assert event.fields["workingset_refault_file"] == 3


def test_the_owner_comes_from_the_path() -> None:
    """Pod uid and container id of a path as the node has it."""
    container = "9b" * 32
    path = (
        "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7f3c9a52_1d0e_4b7b_9c55"
        "_2f6b1e0d9a41.slice/"
        f"cri-containerd-{container}.scope/memory.max"
    )
    (event,) = events("4096\n", path)
    assert event.scope.pod_uid == "7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"
    assert event.scope.container_id == container


@pytest.mark.parametrize(
    "text",
    [
        "== memory.max\n429496729600\n== memory.events\nlow 0\nhigh 0\nmax 0\noom 1\noom_kill 1\n",
        "==> /sys/fs/cgroup/memory.max <==\n429496729600\n\n==> /sys/fs/cgroup/memory.events <==\nlow 0\n"
        "max 0\noom 1\noom_kill 1\n",
        "$ cat /sys/fs/cgroup/memory.max\n429496729600\n$ cat /sys/fs/cgroup/memory.events\nmax 0\noom 1\noom_kill 1\n",
        "root@vllm-0:/# cat /sys/fs/cgroup/memory.max\n429496729600\n"
        "root@vllm-0:/# cat /sys/fs/cgroup/memory.events\nmax 0\noom 1\noom_kill 1\n",
        "/sys/fs/cgroup/memory.max:429496729600\n/sys/fs/cgroup/memory.events:max 0\n"
        "/sys/fs/cgroup/memory.events:oom 1\n"
        "/sys/fs/cgroup/memory.events:oom_kill 1\n",
    ],
    ids=["headings", "head", "prompt", "root prompt", "grep"],
)
def test_several_files_in_one(text: str) -> None:
    """head, cat behind prompts, grep, and headings by hand."""
    limit, counters = events(text, "cgroup-worker.txt")
    assert limit.fields["memory_max_bytes"] == 429496729600
    assert counters.fields["oom_kill"] == 1
    assert counters.locator.line > limit.locator.line


def test_a_time_above_the_files_is_theirs() -> None:
    """Loops print `date` first; current usage then becomes a series."""
    text = "".join(f"2026-11-29T21:25:{s}Z\n== memory.current\n{n}\n" for s, n in ((10, 2**20), (20, 2**21)))
    form = identify(make_head("loop.txt", text.encode(), True), FORMATS)
    assert form is not None
    assert form.read is not None
    (sample,) = form.read(text, "loop.txt").samples
    assert (sample.name, list(sample.values), sample.form) == ("container_memory_mib", [1.0, 2.0], StampForm.INSTANT)


def test_numbers_say_nothing_without_a_name() -> None:
    """A lone number or unknown keys are nobody's."""
    for path, text in (
        ("notes.txt", "103079215104\n"),
        ("memory.txt", "5\n"),
        ("x.txt", "a 1\nb 2\n"),
        ("memory.max", "lots\n"),
    ):
        form = identify(make_head(path, text.encode(), True), FORMATS)
        assert form is None or form.name != "cgroup"


def test_genuine_files_are_recognised(captures: Path) -> None:
    """All controller files of two kernels and both versions."""
    files = [p for p in captures.glob("*/**/memory.*.txt") if p.is_file()]
    for path in files:
        assert identify(make_head(str(path), path.read_bytes(), True), FORMATS).name == "cgroup", path  # type: ignore[union-attr]


EVENTS = "low 0\nhigh 0\nmax 881\noom 3\noom_kill 3\noom_group_kill 0"


@pytest.mark.parametrize(
    ("text", "kills_at", "limit_at"),
    [
        (f"# cat /sys/fs/cgroup/memory.max\n34359738368\n# cat /sys/fs/cgroup/memory.events\n{EVENTS}", 4, 2),
        (f"root@chat-0:/app# cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory.max\n{EVENTS}\n34359738368", 2, 8),
        (f"docker exec vllm cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.events\n34359738368\n{EVENTS}", 3, 2),
        ("# cd /sys/fs/cgroup/docker/4fd0b1c7a2; grep . memory.events memory.max\n"
         "memory.events:oom 3\nmemory.events:oom_kill 3\nmemory.max:34359738368", 2, 4),
    ],
    ids=["prompt of root", "two files of one command", "docker exec", "grep behind cd"],
)  # fmt: skip
def test_files_that_a_person_printed(tmp_path: Path, text: str, kills_at: int, limit_at: int) -> None:
    """The command names the files; a file of one number has the next such name."""
    (tmp_path / "session.txt").write_text(f"{text}\n")
    found = [event for event in pipeline.read(tmp_path / "session.txt").events if event.kind == "cgroup"]
    limit = next(event for event in found if "memory_max_bytes" in event.fields)
    kills = next(event for event in found if "oom_kill" in event.fields)
    assert (limit.fields["memory_max_bytes"], limit.locator.line) == (34359738368, limit_at)
    assert (kills.fields["oom_kill"], kills.locator.line) == (3, kills_at)


def test_the_keys_of_two_files_do_not_mix(tmp_path: Path) -> None:
    stat = "anon 11408506880\nfile 56501174272\nshmem 0\ninactive_file 52003102720"
    (tmp_path / "memory.events+stat").write_text(f"{EVENTS}\n---\n68698112000\n---\n{stat}\n")
    found = [event for event in pipeline.read(tmp_path / "memory.events+stat").events if event.kind == "cgroup"]
    assert [event.fields["file"] for event in found] == ["memory.events", "memory.stat"]
    assert found[1].fields["file_bytes"] == 56501174272
