"""Prometheus text, and series that somebody exported."""

from __future__ import annotations

import json

import pytest

from forensics.model import Parsed, StampForm
from forensics.parsers import FORMATS, metrics
from forensics.parsers.series_names import limit_factor, meaning, owner_of, scope_of
from forensics.sources import identify, make_head

SCRAPE = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="chat"} 141.0
vllm:num_requests_waiting{model_name="chat",engine="0"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="chat"} 0.231
vllm:num_preemptions_total{engine="0",model_name="chat"} 4.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="chat"} 9120.0
process_resident_memory_bytes 1.721344e+09
process_start_time_seconds 1763430870.5
vllm:cache_config_info{block_size="16",engine="0",gpu_memory_utilization="0.9",num_gpu_blocks="16397"} 1.0
vllm:time_to_first_token_seconds_bucket{le="0.5"} 3.0
"""


def read(text: str, path: str = "metrics.txt") -> Parsed:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    assert form is not None
    assert form.name.startswith("metrics.")
    assert form.read is not None
    return form.read(text, path)


def test_one_scrape() -> None:
    """One event an owner; fractions become percent; the config info tells the engine's arguments."""
    parsed = read(SCRAPE)
    engine, process, config = parsed.events
    assert engine.kind == "metrics"
    assert engine.scope.process == "Engine 000"
    assert engine.fields["kv_cache_usage_pct"] == 23.1
    assert engine.fields["requests_waiting"] == 7.0
    assert engine.fields["preemptions_total"] == 4.0
    assert engine.fields["requests_stop_total"] == 9120
    assert process.fields["process_rss_mib"] == pytest.approx(1641.6, abs=0.01)
    assert process.fields["process_start_s"] == 1763430870.5
    assert (config.kind, config.channel) == ("engine_args", "metrics")
    assert config.fields == {"block_size": 16, "gpu_memory_utilization": 0.9, "num_gpu_blocks": 16397}
    assert engine.stamps == ()
    assert {(s.name, s.stamps[0] == s.stamps[0]) for s in parsed.samples} == {
        (name, False) for name in ("requests_running", "requests_waiting", "kv_cache_usage_pct", "preemptions_total")
    }  # the scheduler's figures say something even without a time


def test_several_scrapes_with_times_become_series() -> None:
    """A loop printed the time above each; a repeated metric starts the next scrape."""
    text = "".join(
        f"# scraped at 2026-11-29T21:25:{s}Z\n{SCRAPE.replace('0.231', usage)}"
        for s, usage in (("10", "0.5"), ("20", "0.9"))
    )
    parsed = read(text)
    (usage,) = [sample for sample in parsed.samples if sample.name == "kv_cache_usage_pct"]
    assert list(usage.values) == [50.0, 90.0]
    assert (usage.form, usage.stamps[1] - usage.stamps[0]) == (StampForm.INSTANT, 10.0)
    assert len([event for event in parsed.events if "kv_cache_usage_pct" in event.fields]) == 2
    without = read(SCRAPE + SCRAPE)
    assert len([event for event in without.events if "kv_cache_usage_pct" in event.fields]) == 2


@pytest.mark.parametrize(
    ("comment", "form"),
    [
        ("# curl -s chat-0:8000/metrics   2026-11-29T21:25:17Z", StampForm.INSTANT),
        ("# first look (2026-11-29 21:25:17)", StampForm.LOCAL),
        ("# image built 2026-09-02T11:00:00Z", None),
        ("# nightly-2026-11-29", None),
    ],
)
def test_a_comment_above_a_scrape_tells_its_time(comment: str, form: StampForm | None) -> None:
    """Whoever typed the command noted when; dates of other things date nothing."""
    event = next(event for event in read(f"{comment}\n{SCRAPE}").events if "kv_cache_usage_pct" in event.fields)
    assert (event.stamps[0].form if event.stamps else None) == form


def test_gpu_exporter_and_cadvisor() -> None:
    """DCGM figures are GPU states; the Xid gauge is the last one, not a count; containers keep their pod."""
    parsed = read("""# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="3",UUID="GPU-5c1f",device="nvidia3",Hostname="gpu-node-7"} 74436
DCGM_FI_DEV_FB_FREE{gpu="3",UUID="GPU-5c1f",device="nvidia3",Hostname="gpu-node-7"} 6644
DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-5c1f",device="nvidia3",Hostname="gpu-node-7"} 79
container_memory_working_set_bytes{container="vllm",namespace="inference",pod="vllm-0"} 2.2e+10 1795987517000
""")
    state, container = parsed.events
    assert (state.kind, state.channel) == ("gpu_state", "nvidia")
    assert (state.fields["memory_used_mib"], state.fields["memory_free_mib"], state.fields["last_xid"]) == (
        74436,
        6644,
        79,
    )
    assert (state.scope.gpu, state.scope.host) == ("GPU-5c1f", "gpu-node-7")
    assert (container.scope.pod, container.scope.container) == ("vllm-0", "vllm")
    (sample,) = parsed.samples
    assert (sample.name, sample.stamps[0]) == ("container_memory_mib", 1795987517.0)


def test_broken_lines_are_counted_and_skipped() -> None:
    """A torn download keeps what can be read."""
    parsed = read(SCRAPE + 'vllm:num_requests_running{engine="1" 5\nvllm:kv_cache_usage_perc{engine="1",mod')
    assert parsed.events[0].fields["requests_running"] == 141.0
    assert "2 broken metric lines" in parsed.diagnostics[0].message


def test_key_value_files_are_no_metrics() -> None:
    """`oom_kill 0` has the shape of a sample without labels."""
    assert metrics.FORMAT.sniff(make_head("memory.events", b"low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", True)) == 0


@pytest.mark.parametrize(("name", "series", "gpu"), [
    ("gpu 2 fb used (MiB)", "gpu_memory_used_mib", "2"), ("GPU3 memory usage [GiB]", "gpu_memory_used_mib", "3"),
    ("Memory used GPU 1 (GiB)", "gpu_memory_used_mib", "1"), ("gpu #0 framebuffer total (MiB)", "gpu_memory_total_mib", "0"),
    ("gpu-2 memory used (MiB)", None, ""), ("gpu-node-2 memory used (MiB)", None, ""),
    ("gpu 2 fb used", None, "2"), ("gpu 2 power (W)", None, "2"),
])  # fmt: skip
def test_legends_that_people_write(name: str, series: str | None, gpu: str) -> None:
    """A renamed series of a panel: the words say memory, the brackets its unit, a number the card."""
    known = meaning(name)
    assert (known[0] if known else None, owner_of(name).gpu) == (series, gpu)


@pytest.mark.parametrize(("name", "series", "process"), [
    ("apiserver_rss_kib", "process_rss_mib", "apiserver"), ("enginecore_rss_gib", "process_rss_mib", "enginecore"),
    ("rss_mib", "process_rss_mib", ""), ("process_resident_memory_bytes", "process_rss_mib", ""),
    ("container_rss_mib", "container_memory_mib", ""), ("unit_memory_current_bytes", "container_memory_mib", ""),
    ("container_memory_rss", "container_memory_mib", ""), ("pod_memory_working_set_bytes", "container_memory_mib", ""),
    ("total_rss_kib", "container_memory_mib", ""), ("apiserver_rss", None, ""),
    ("chat-7b rss (GiB)", "process_rss_mib", "chat-7b"), ("chat-7b limit (GiB)", None, ""),
])  # fmt: skip
def test_memory_by_process_and_unit(name: str, series: str | None, process: str) -> None:
    """A loop that somebody wrote heads its columns with the processes, or the unit, that it reads."""
    known = meaning(name)
    assert (known[0] if known else None, owner_of(name).process) == (series, process)


def test_an_oom_kill_in_a_range_query() -> None:
    """The flag of kube-state-metrics beside a counter of restarts: an end between two rows, its reason, the limit."""
    head = "timestamp,container_memory_working_set_bytes,kube_pod_container_resource_limits_memory,restarts,last_terminated_oomkilled"
    rows = [(0, 1, 1), (600, 1, 1), (1200, 2, 1), (1800, 3, 0)]
    text = "".join(f"{1795987200 + s},1048576,2097152,{count},{flag}\n" for s, count, flag in rows)
    limit, end = read(f"{head}\n{text}", "query.csv").events
    assert limit.fields["memory_max_bytes"] == 2 << 20
    assert (end.kind, end.locator.line, end.fields["reason"], end.fields["restart_count"]) == (
        "container_terminated", 4, "OOMKilled", 2)  # fmt: skip
    assert [(stamp.seconds, stamp.resolution_s) for stamp in end.stamps] == [(1795987200 + 900, 600)]


@pytest.mark.parametrize(
    ("head", "row", "expected", "limit"),
    [
        ("date time,mem_usage,mem_limit,rpm", "2026-11-29 21:25:17,1.5GiB,4GiB,88", {"container_memory_mib": 1536.0}, 4 << 30),
        ("time,container,mem_gib,rpm", "2026-11-29 21:25:17,chat,1.5,88", {"container_memory_mib": 1536.0}, None),
        ("time,mem_gib,rpm", "2026-11-29 21:25:17,1.5,88", {}, None),
        ("time,rss,users", "2026-11-29 21:25:17,512 MiB,3", {"process_rss_mib": 512.0}, None),
        ("time,mem_used,rpm", "2026-11-29 21:25:17,2GiB,88", {"host_memory_used_kib": 2.0 * (1 << 20)}, None),
        ("time,mem_usage,mem_limit", "2026-11-29 21:25:17,1.5,4", {}, None),
        ("time,response_size,rpm", "2026-11-29 21:25:17,2GiB,88", {}, None),
    ],
    ids=["docker's columns", "a container", "whose is not said", "a process", "no limit: the machine's", "no unit anywhere", "another quantity"],
)
def test_units_in_the_cells(head: str, row: str, expected: dict[str, float], limit: int | None) -> None:
    """A loop around `docker stats` prints the unit behind each number; the names of the columns have none."""
    parsed = read(f"# every 8 h\n{head}\n{row}\n{row.replace(':17', ':47')}\n", "watch.csv")
    assert {s.name: s.values[0] for s in parsed.samples} == expected
    assert [event.fields["memory_max_bytes"] for event in parsed.events] == ([limit] if limit else [])


@pytest.mark.parametrize(
    ("head", "cells", "container"),
    [("ts,name,mem_usage,mem_limit", "vllm-chat,1.5GiB,4GiB", "vllm-chat"),
     ("ts,pod,name,mem_usage,mem_limit", "vllm-llama-0,k8s_vllm_0,1.5GiB,4GiB", ""),
     ("ts,name,mem_used,rpm", "gpu-node-7,2GiB,88", "")],
    ids=["docker's name", "cAdvisor's, beside the pod", "a machine's"],
)  # fmt: skip
def test_whose_memory_a_name_tells(head: str, cells: str, container: str) -> None:
    parsed = read(f"{head}\n2026-11-29 21:25:17,{cells}\n2026-11-29 21:26:17,{cells}\n", "watch.csv")
    assert [samples.scope.container for samples in parsed.samples] == [container]


@pytest.mark.parametrize(
    ("head", "rows", "expected"),
    [
        ("# every 10 min: epoch rss_kib comm", ("1795987517 2048 VLLM::APIServer", "1795987577 4096 VLLM::APIServer"),
         {"VLLM::APIServer": [2.0, 4.0]}),
        ("# (kB) epoch api_rss engine_rss", ("1795987517   2048 1024", "1795987577   4096 1024"),
         {"api": [2.0, 4.0], "engine": [1.0, 1.0]}),
        ("# epoch of the last rotation", ("1795987517 2048 x y z",), {}),
    ],
    ids=["a program's name beside it", "one unit for all", "a remark"],
)  # fmt: skip
def test_columns_that_a_comment_names(head: str, rows: tuple[str, ...], expected: dict[str, list[float]]) -> None:
    """A loop of a shell prints bare rows; whoever wrote it says above them what they are."""
    parsed = read("\n".join((head, *rows, "")), "rss.log")
    assert {s.scope.process: list(s.values) for s in parsed.samples if s.name == "process_rss_mib"} == expected


def test_a_range_query_as_csv() -> None:
    """Unix times; labels in columns; bytes become MiB."""
    parsed = read(
        "timestamp,pod,container,container_memory_working_set_bytes\n1795987517,vllm-0,vllm,1048576\n"
                  "1795987577,vllm-0,vllm,2097152\n1795987577,vllm-1,vllm,\n", "ws.csv")  # fmt: skip
    (sample,) = parsed.samples
    assert (sample.name, list(sample.values), sample.scope.pod) == ("container_memory_mib", [1.0, 2.0], "vllm-0")
    assert (sample.form, sample.stamps[0], list(sample.lines)) == (StampForm.INSTANT, 1795987517.0, [2, 3])


def test_hand_made_loops() -> None:
    """Local times, units in the names, a limit that repeats; `_utc` makes the time an instant."""
    parsed = read(
        "time,memory.current_bytes,memory.max_bytes\n2026-11-29 21:25:17,3145728,4194304\n"
        "2026-11-29 21:25:27,4194304,4194304\n"
    )
    assert list(parsed.samples[0].values) == [3.0, 4.0]
    assert parsed.samples[0].form is StampForm.LOCAL
    (limit,) = parsed.events
    assert limit.fields["memory_max_bytes"] == 4194304
    utc = read("minute_utc;rss_gib;pid\n2026-11-24T08:00Z;2;77\n2026-11-24T08:01Z;3;77\n")
    assert (utc.samples[0].name, list(utc.samples[0].values), utc.samples[0].scope.pid) == (
        "process_rss_mib",
        [2048.0, 3072.0],
        77,
    )


def test_grafana_exports() -> None:
    """Labels in the column name, units in the cells, or a `Value` below a file that says what it is."""
    parsed = read(
        '"Time","DCGM_FI_DEV_FB_USED{gpu=""0"", Hostname=""gpu-node-7""}"\n"2026-11-29 21:25:17","74436"\n'
        '"2026-11-29 21:26:17","74440"\n'
    )
    assert (parsed.samples[0].name, parsed.samples[0].scope.gpu) == ("gpu_memory_used_mib", "0")
    hinted = read(
        "Time,Value\n2026-11-29 21:25:17,2.00 GB\n2026-11-29 21:26:17,1.00 GB\n",
        "graphs/container_memory_working_set_bytes.csv",
    )
    assert list(hinted.samples[0].values) == [2048.0, 1024.0]
    for name in ("prom-container_memory_working_set_bytes.csv", "2026-11-29.container_memory_working_set_bytes.csv"):
        (column,) = read("time,container,bytes\n2026-11-29T21:25:17Z,vllm,2147483648\n2026-11-29T21:26:17Z,vllm,0\n", name).samples
        assert (column.name, column.scope.container, list(column.values)) == ("container_memory_mib", "vllm", [2048.0, 0.0])


@pytest.mark.parametrize(
    ("file", "heads", "cell", "found"),
    [
        ("Memory Usage (WSS)-data-2026-11-29 21_25_17.csv", "chat-0", "2.00 GiB", [("chat-0", "")]),
        ("RSS memory-data-as-joinbyfield-2026-11-29.csv", "chat-6f9c7d5b8-x2k4p / vllm", "2147483648",
         [("chat-6f9c7d5b8-x2k4p", "vllm")]),
        ("Memory Usage-data-2026-11-29.csv", '"{pod=""chat-0"", container=""vllm""}"', "2.00 GiB", [("chat-0", "vllm")]),
        ("Memory Usage-data-2026-11-29.csv", "limits", "2.00 GiB", []),
        ("Memory Usage-data-2026-11-29.csv", "chat-0", "2.00", []),
        ("GPU Memory Usage-data-2026-11-29.csv", "chat-0", "2.00 GiB", []),
        ("Memory Utilization-data-2026-11-29.csv", "chat-0", "2.00 GiB", []),
        ("Requests-data-2026-11-29.csv", "chat-0", "2147483648", []),
    ],
    ids=["a pod", "pod and container", "labels", "no pod", "no unit", "the card's", "a share", "no memory"],
)
def test_a_panel_of_grafana(file: str, heads: str, cell: str, found: list[tuple[str, str]]) -> None:
    """The file bears the panel's title, and the columns are its legends."""
    parsed = read(f"Time,{heads}\n2026-11-29 21:25:00,{cell}\n2026-11-29 21:35:00,{cell}\n", f"graphs/{file}")
    assert [(s.scope.pod, s.scope.container) for s in parsed.samples] == found
    assert all((s.name, list(s.values)) == ("container_memory_mib", [2048.0, 2048.0]) for s in parsed.samples)


def test_columns_without_meaning_are_left_alone() -> None:
    """Recognised, not used, and said so."""
    parsed = read("minute_utc,requests,p95_ms\n2026-11-24T08:00Z,927,3533\n2026-11-24T08:01Z,870,4124\n")
    assert parsed.samples == ()
    assert "not used" in parsed.diagnostics[0].message


def test_the_http_api_of_prometheus() -> None:
    """Matrix and vector results."""
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": {"__name__": "vllm:num_requests_waiting", "pod": "vllm-0"}, "values": [[1795987517, "3"], [1795987577, "9"]]},
        {"metric": {"__name__": "up"}, "values": [[1795987517, "1"]]},
    ]}}  # fmt: skip
    parsed = read(json.dumps(answer), "range.json")
    (sample,) = parsed.samples
    assert (sample.name, list(sample.values), sample.scope.pod) == ("requests_waiting", [3.0, 9.0], "vllm-0")
    broken = read(json.dumps(answer)[:-40], "range.json")
    assert len(broken.diagnostics) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm_num_requests_running", ("requests_running", 1.0)),
        ("DCGM_FI_DEV_FB_USED_MiB", ("gpu_memory_used_mib", 1.0)),
        ("rss_mb", ("process_rss_mib", 1.0)),
        ("mem_avail_gib", ("host_memory_available_kib", 2.0**20)),
        ("gpu_memory_used_mib", ("gpu_memory_used_mib", 1.0)),
        ("memory.used [MiB]", ("gpu_memory_used_mib", 1.0)),
        ("memory_used_mib", ("host_memory_used_kib", 1024.0)),
        ("kv_cache_usage_pct", ("kv_cache_usage_pct", 1.0)),
        ("torch.cuda.memory_reserved (GiB)", ("torch_reserved_mib", 1024.0)),
        ("pytorch_cuda_memory_allocated_bytes", ("torch_allocated_mib", 2.0**-20)),
        ("gpu_reserved_mib", None),
        ("rss", None),
        ("memory", None),
        ("requests", None),
        ("bytes", None),
    ],
)
def test_names_need_a_unit(name: str, expected: tuple[str, float] | None) -> None:
    """A bare number of a bare name could mean anything."""
    assert meaning(name) == expected


def test_limits_and_labels() -> None:
    """Names of limits; label names of several exporters."""
    assert limit_factor("container_spec_memory_limit_bytes") == 1
    assert limit_factor("memory.max_mib") == 2**20
    assert limit_factor("memory.current_bytes") is None
    scope = scope_of({"exported_pod": "a", "pod": "exporter", "container_name": "POD", "GPU": "0", "pid": "x"})
    assert (scope.pod, scope.container, scope.gpu, scope.pid) == ("a", "", "0", None)


@pytest.mark.parametrize(
    ("text", "series"),
    [
        ('# DCGM_FI_DEV_FB_USED{Hostname="n1",gpu="5"}  step 1m, UTC\ntime,MiB\n', ("gpu_memory_used_mib", "5", 41200.0)),
        ('# DCGM_FI_DEV_FB_USED{gpu="5"}\ntime,GiB\n', ("gpu_memory_used_mib", "5", 41200.0 * 1024)),
        ('# container_memory_working_set_bytes{pod="p-0"}\ntime,value\n', ("container_memory_mib", "", 41200.0 / 2**20)),
        ('# unknown_metric{gpu="5"}\ntime,MiB\n', None),
        ("# free memory of the cards\ntime,MiB\n", None),
    ],
    ids=["its unit", "another unit", "a bare column", "unknown", "no selector"],
)
def test_the_caption_of_a_table_names_its_series(text: str, series: tuple[str, str, float] | None) -> None:
    """Somebody exported one series and wrote the selector above it; the column bears only a unit."""
    rows = "".join(f"2026-03-11T08:{n:02}:00Z,41200\n" for n in range(0, 50, 10))
    found = [(s.name, s.scope.gpu, s.values[0]) for s in read(text + rows, "range.csv").samples]
    assert found == ([series] if series else [])


def test_a_number_that_no_float_holds_is_left_out() -> None:
    """The client's parser reads whole numbers of any length."""
    huge = SCRAPE + f"vllm:num_preemptions_total{{engine=\"1\"}} {'9' * 400}\n"
    assert len(read(huge).events) == len(read(SCRAPE).events)
