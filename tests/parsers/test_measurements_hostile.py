"""Torn, mixed and hostile input never raises in a measurement parser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Parsed
from forensics.parsers import FORMATS, earlyoom, engine_config, engine_stats, reprs
from forensics.parsers.embedded import read_text
from forensics.scan import scan
from forensics.sources import Format, make_head

PREFIXES = ("engine.", "nvidia.", "metrics.", "cgroup", "host.", "sysstat.", "ray.status")
MINE = [form for form in FORMATS if form.name.startswith(PREFIXES)]
SEEDS = (
    "timestamp, index, uuid, memory.used [MiB], memory.total [MiB]\n"
    "2026/11/29 21:25:17.100, 0, GPU-9b1e44c0, 1 MiB, [N/A]\n",
    "| NVIDIA-SMI 570.1     Driver Version: 570.1     CUDA Version: 12.8     |\n"
    "|   0  X  On  | 00000000:25:00.0 Off | 0 |\n| N/A  49C P0 8W / 35W | 1MiB / 2MiB | 1% Default |\n",
    "==============NVSMI LOG==============\nTimestamp : Sun Nov 29 21:25:17 2026\nGPU 00000000:1B:00.0\n"
    "    FB Memory Usage\n        Used : 3 MiB\n",
    'vllm:kv_cache_usage_perc{engine="0"} 0.5\nprocess_resident_memory_bytes 1e9 1795987517000\n',
    "timestamp,pod,rss_bytes,memory.max_bytes\n1795987517,a,5,6\n2026-11-29 21:25:17,b,7,8\n",
    '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[[179'
    '5987517,"3"]]}]}}',
    "== memory.max\n5\n== memory.events\nmax 1\noom 1\noom_kill 1\n== memory.pressure\n"
    "some avg10=1.50 avg60=0.10 avg300=0.00 total=77\n",
    "Sun Nov 29 21:25:17 UTC 2026\n  total used free\nMem: 5 6 7\n"
    "Filesystem Size Used Avail Use% Mounted on\nshm 1M 1M 0 9% /dev/shm\n",
    "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nroot 1 0 0 1 1 ? S 1 0:0 x\n"
    " 12:42:35 up 22 days,  9:30,  1 user,  load average: 1\n",
    "Linux 6.1 (n) \t2026-03-07 \t_x86_64_\t(1 CPU)\n23:59:40 kbmemfree kbmemused\n23:59:41 1 2\n",
    "# hostname;interval;timestamp;kbmemused\nn;1;2026-03-07 23:59:50 UTC;3\n",
    '{"model_type": "x", "hidden_size": 1, "num_attention_heads": 0, "layer_types": [null]}',
    "======== Autoscaler status: 2026-11-29 21:25:17.5 ========\nTotal Usage:\n 1/2 CPU\n",
)  # fmt: skip


def run(form: Format, text: str) -> Parsed | None:
    head = make_head("memory/file.txt", text.encode("utf-8", "replace"), True)
    form.sniff(head)
    if form.read is not None:
        return form.read(text, "memory/file.txt")
    if form.samples is not None and form.series is not None:
        scanned = scan(iter([text.encode("utf-8", "replace")]), ["no such line"], (), form.series(head))
        return form.samples(scanned, "memory/file.txt", head)
    return None


def mutations(seed: str) -> st.SearchStrategy[str]:
    """A seed with a piece cut out, doubled, or replaced by noise."""
    noise = st.sampled_from(
        ["", "\x00", "\n\n", "9" * 400, "-", "%", "99:99:99", "[", "{", '"', ",", "1e999", "NaN", "日", "\ud800"]
    )

    def cut(args: tuple[int, int, str]) -> str:
        start, length, text = args
        start %= len(seed)
        return seed[:start] + text + seed[start + length :]

    return st.tuples(st.integers(0, 10**6), st.integers(0, 12), noise).map(cut)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_no_reader_raises(seed: str) -> None:
    """Every reader takes every other reader's input, whole and damaged."""

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(mutations(seed))
    def check(text: str) -> None:
        for form in MINE:
            parsed = run(form, text)
            assert parsed is None or all(len(s.values) == len(s.lines) == len(s.stamps) for s in parsed.samples)

    check()


@pytest.mark.parametrize(
    "function",
    [
        lambda text: reprs.mapping(text),
        lambda text: reprs.keywords(text),
        lambda text: engine_config.parse_cli_args(text.split(" ")),
        lambda text: read_text(f"INFO 11-29 21:25:17 [a.py:1] {text}", "x", "engine"),
        lambda text: engine_stats.samples(scan(iter([text.encode("utf-8", "replace")]), ["x"], (), engine_stats.SERIES), "x"),
        lambda text: earlyoom.samples(scan(iter([text.encode("utf-8", "replace")]), ["x"], (), earlyoom.DIALECT.series), "x"),
    ],
)  # fmt: skip
def test_no_line_raises(function: Callable[[str], object]) -> None:
    """Engine texts, arguments and statistics, damaged at any place."""
    seed = (
        "non-default args: {'a': [1, (2, 'x')], 'b': <E.X: 1>} args: Namespace(a='b', c=1.5) Engine 000: "
        "Running: 9 reqs, "
        "Waiting: 4 reqs, GPU KV cache usage: 61.5%, mem avail:  439 of 1197 MiB x pid=3 rss=4GiB "
        "mem_avail=5MiB"
    )

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(mutations(seed))
    def check(text: str) -> None:
        function(text)

    check()


def test_rows_of_docker_stats_behind_a_time() -> None:
    """A loop that stamps what `docker stats --no-stream` prints; rows without a time tell no curve."""
    row = "9f3c1b2a7d4e  chat-1  87.50%  12.5GiB / 64GiB  19.53%  410MB / 2.2GB  0B / 0B  81\n"
    parsed = read_text(f"2026-05-12T08:00:00Z {row}2026-05-12T08:10:00Z {row}{row}", "stats.log", "plain")
    (column,) = parsed.samples
    assert (column.name, list(column.values)) == ("container_memory_mib", [12_800.0, 12_800.0])
    assert (column.scope.container, column.scope.container_id) == ("chat-1", "9f3c1b2a7d4e")


def test_rows_of_kubectl_top_behind_a_time() -> None:
    """A loop that stamps what `kubectl top pod` prints, with the containers or without; no time, no curve."""
    pod = "2026-05-12T08:00:00+0000 chat-7f9c8d6b5-x2k4p   1471m   18717Mi\n"
    own = "2026-05-12 08:30:00 chat-7f9c8d6b5-x2k4p   vllm   1471m   18900Mi\nchat-7f9c8d6b5-x2k4p   9m   7Mi\n"
    parsed = read_text(f"{pod}{own}", "top.log", "plain")
    assert [(s.name, s.scope.pod, s.scope.container, list(s.values)) for s in parsed.samples] == [
        ("container_memory_mib", "chat-7f9c8d6b5-x2k4p", "", [18717.0]),
        ("container_memory_mib", "chat-7f9c8d6b5-x2k4p", "vllm", [18900.0]),
    ]
