"""The timeline that a reader sees: joined, counted, honest about order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from forensics import analyze
from forensics.report import Report
from forensics.report.render import prepare


@pytest.fixture(scope="module")
def data(report: Report) -> dict[str, Any]:
    return prepare(report)


def test_the_story_is_told_by_runs(data: dict[str, Any]) -> None:
    """Each run starts, gets ready, fails and ends; the root cause is marked once, in the first."""
    kinds = [(row["attempt"], row["kind"]) for row in data["story"]["rows"]]
    for run in (1, 2):
        mine = [kind for attempt, kind in kinds if attempt == run]
        assert [kind for kind in mine if kind in ("start", "ready", "end")] == ["start", "ready", "end"]
    roots = [row for row in data["story"]["rows"] if row["mark"] == "root"]
    assert [(row["attempt"], row["places"][0]["line"]) for row in roots] == [(1, 19)]
    assert "512 MiB" in roots[0]["detail"]


def test_one_fact_from_several_sources_is_one_row(data: dict[str, Any]) -> None:
    """The second run's start and end are told by the journal and by kubectl describe: one row each that names both."""
    for kind in ("start", "end"):
        row = next(r for r in data["story"]["rows"] if r["kind"] == kind and r["attempt"] == 2)
        assert {p["source"] for p in row["places"]} == {"node/journal.txt", "k8s/describe.txt"}
        assert row["uncertainty_s"] < 0.1, "the better clock tells the time"


def test_the_same_error_of_a_later_run_is_no_false_sign(data: dict[str, Any]) -> None:
    """A repeat is shown without the mark of a decoy, and is not in the table of decoys."""
    repeat = next(r for r in data["story"]["rows"] if r["attempt"] == 2 and "out of memory" in r["title"])
    assert repeat["mark"] != "decoy"


def test_consequences_within_seconds_are_one_row(
    files: Callable[[str], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report]
) -> None:
    """How the process fell apart is one row, not six."""
    base = files("")
    base["logs/engine.log"] = base["logs/engine.log"].replace(
        "AsyncLLM output_handler failed.\n",
        "AsyncLLM output_handler failed.\n"
        "(APIServer pid=1) ERROR 11-18 02:11:09 [serving_chat.py:1145] Error in chat completion stream generator.\n"
        "(APIServer pid=1) ERROR 11-18 02:11:09 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.\n",
        1,
    )
    rows = prepare(analyzed(base))["story"]["rows"]
    together = [r for r in rows if r["mark"] == "consequence" and r["attempt"] == 1 and "; " in r["title"]]
    assert len(together) == 1
    assert "API server lost the engine" in together[0]["title"]


def test_a_storm_of_one_fact_is_one_row_with_a_count(
    files: Callable[[str], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report]
) -> None:
    """Fourteen back-offs in half a minute are one row with a count and the time of the last."""
    base = files("")
    base["node/journal.txt"] += "".join(
        f'Nov 18 02:21:{20 + 2 * i:02d} gpu-node-7 kubelet[901]: E1118 02:21:{20 + 2 * i:02d}.000000     901 pod_workers.go:1301] '
        '"Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"vllm\\" with CrashLoopBackOff: \\"back-off 20s '
        'restarting failed container=vllm pod=chat-7b-6d5f4c7b9d-x2x4z_serving(6b0f6a3c-2f0e-4a51-9a55-0c1d2e3f4a5b)\\"" '
        'pod="serving/chat-7b-6d5f4c7b9d-x2x4z" podUID="6b0f6a3c-2f0e-4a51-9a55-0c1d2e3f4a5b"\n'
        for i in range(14)
    )
    data = prepare(analyzed(base))
    rows = [r for r in data["story"]["rows"] if "next start" in r["title"]]
    assert len(rows) == 1
    assert rows[0]["count"] >= 11, "the first few seconds are one moment"
    assert rows[0]["until"] == "2025-11-18T02:21:46.000Z"


def test_restarts_are_told_with_the_line_that_lost_each(data: dict[str, Any]) -> None:
    """Start and end as the runtime tells them, readiness from the log, exit code, place of the loss."""
    first, second = data["restarts"]
    assert (first["started"], first["ended"]) == ("2025-11-18T02:10:00.400Z", "2025-11-18T02:11:12.500Z")
    assert first["lasted_s"] == pytest.approx(72.1)
    assert first["ready_after_s"] == pytest.approx(52, abs=5)
    assert (first["exit_code"], second["exit_code"]) == (1, 1)
    assert (first["lost_at"]["line"], second["lost_at"]["line"]) == (13, 35)


def test_the_managers_lines(data: dict[str, Any]) -> None:
    """What, when, impact, cause with numbers and place, how sure, evidence, what now, what not."""
    said = {line["key"]: line["text"] for line in data["summary"]}
    assert list(said) == ["what", "when", "impact", "cause", "sure", "evidence", "now", "avoid"]
    assert "2025-11-18 02:11:09 – 02:21" in said["when"]
    assert "failed requests (5xx): at least 2" in said["impact"]
    assert "512 MiB were refused with 201 MiB of 23.69 GiB free" in said["cause"]
    assert next(line for line in data["summary"] if line["key"] == "cause")["line"] == 19


def test_commands_name_the_pod_and_never_a_hostile_one(
    files: Callable[[str], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report], data: dict[str, Any]
) -> None:
    """Placeholders are filled from the bundle, but a name that is no Kubernetes name never enters a shell command."""
    commands = " ".join(q["command"] for q in data["questions"])
    assert "-n serving logs chat-7b-6d5f4c7b9d-x2x4z -c vllm" in commands
    base = {
        name: text.replace("chat-7b-6d5f4c7b9d-x2x4z", "chat-7b-$(reboot)") for name, text in files("").items()
    }
    hostile = prepare(analyzed(base))
    assert "reboot" not in " ".join(q["command"] for q in hostile["questions"])


def test_curves_have_readable_units_and_say_something(data: dict[str, Any]) -> None:
    """GiB for memory, per cent for the KV cache; points carry the curve; at most twelve."""
    curves = {c["name"]: c for c in data["curves"]}
    assert curves["gpu_memory_used_mib"]["unit"] == "GiB"
    assert curves["gpu_memory_used_mib"]["max"] == pytest.approx(22950 / 1024, abs=0.01)
    assert curves["kv_cache_usage_pct"]["unit"] == "%"
    assert len(curves["gpu_memory_used_mib"]["points"]) == 60
    assert len(data["curves"]) <= 12


def test_a_run_starts_with_its_container_not_with_its_log(tmp_path: Path) -> None:
    """The saved log begins hours after the start that the pod's status knows."""
    (tmp_path / "describe.txt").write_text(
        "Name:             chat-0\nNamespace:        llm\nStatus:           Running\nContainers:\n  vllm:\n"
        "    Image:         vllm/vllm-openai:v0.11.0\n    State:       Running\n"
        "      Started:     Tue, 12 May 2026 09:24:32 +0000\n    Last State:  Terminated\n      Reason:      OOMKilled\n"
        "      Exit Code:   137\n      Started:     Tue, 12 May 2026 02:10:00 +0000\n"
        "      Finished:    Tue, 12 May 2026 09:24:31 +0000\n    Ready:          True\n    Restart Count:  1\n"
    )
    stats = "Avg prompt throughput: 900.1 tokens/s, Avg generation throughput: 1500.{} tokens/s, Running: 3 reqs, Waiting: 0 reqs"
    (tmp_path / "previous.log").write_text("".join(
        f"2026-05-12T{8 + n // 60:02d}:{n % 60:02d}:00.{n:09d}Z INFO 05-12 {8 + n // 60:02d}:{n % 60:02d}:00 [loggers.py:127] "
        f"Engine 000: {stats.format(n)}, GPU KV cache usage: 7.0%, Prefix cache hit rate: 1.0%\n"
        for n in range(85)
    ))  # fmt: skip
    rows = prepare(analyze(tmp_path))["restarts"]
    assert [row["started"] for row in rows if row["exit_code"] == 137] == ["2026-05-12T02:10:00.000Z"]


def test_runs_of_another_incident_are_numbered_by_time(tmp_path: Path) -> None:
    """A log without a zone or a year: a run that served before the incident is no later one than its failed starts."""
    log = tmp_path / "vllm.log"
    banner = "INFO 05-04 {0} [api_server.py:1839] vLLM API server version 0.11.0\n"
    post = 'INFO:     10.1.2.3:4111 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    text = banner.format("01:00:00") + "INFO:     Application startup complete.\n" + 20 * post
    text += "INFO 05-04 03:00:00 [launcher.py:110] Shutting down FastAPI HTTP server.\n"
    for minute in (10, 12):
        text += banner.format(f"03:{minute}:00")
        text += f"ERROR 05-04 03:{minute}:30 [core.py:708] EngineCore failed to start.\n"
        text += f"ERROR 05-04 03:{minute}:30 [core.py:708] ValueError: No available memory for the cache blocks.\n"
    log.write_text(text, encoding="utf-8")
    rows = prepare(analyze(log))["story"]["rows"]
    served = next(row for row in rows if row["kind"] == "ready")
    assert served["attempt"] == 1


def test_a_title_lists_only_the_xids_that_were_seen(analyzed: Callable[[Mapping[str, str]], Report]) -> None:
    """A signature is for many numbers; its row names those of its own lines, in order, and each reference its own."""
    stamp, card = "2025-11-18T02:11:0{}.000000+0000 gpu-node-7 kernel: ", "NVRM: Xid (PCI:0000:3b:00): "
    journal = [
        stamp.format(4) + card + "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3(0x0, 0x0)",
        stamp.format(5) + card + "45, pid=4711, name=VLLM::Worker_TP, Ch 00000010",
        stamp.format(6) + card + "43, pid=4711, name=VLLM::Worker_TP, Ch 00000018",
        stamp.format(7) + card + "45, pid=4712, name=VLLM::Worker_TP, Ch 00000010",
    ]
    told = prepare(analyzed({"node/journal.txt": "\n".join(journal) + "\n"}))
    assert told["verdict"]["first_cause"]["title"] == "NVLink error (Xid 74)"
    assert [r["title"] for r in told["story"]["rows"] if "torn down" in r["title"]] == ["GPU channel torn down (Xid 43, 45)"]
    assert {f["title"] for f in told["findings"] if f["signature"] == "nvidia.xid_consequence"} == {
        "GPU channel torn down (Xid 43)", "GPU channel torn down (Xid 45)",
    }
