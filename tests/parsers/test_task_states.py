"""Containers of ECS and Nomad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forensics.model import Event
from forensics.parsers import docker
from forensics.sources import make_head

TASK: dict[str, Any] = {
    "taskArn": "arn:aws:ecs:eu-west-1:111122223333:task/llm/8f1c2d",
    "lastStatus": "STOPPED",
    "stoppedReason": "Essential container in task exited",
    "startedAt": "2026-11-29T20:00:00.000000+00:00",
    "stoppedAt": "2026-11-29T21:25:17.101000+00:00",
    "containers": [{"name": "vllm", "exitCode": 137, "reason": "OutOfMemoryError: Container killed due to memory usage"}],
}
ALLOCATION: dict[str, Any] = {
    "ID": "8ba85cef", "ClientStatus": "failed", "EvalID": "77aa",
    "TaskStates": {"vllm": {"State": "dead", "Events": [
        {"Type": "Started", "Time": 1795982400000000000},
        {"Type": "Restart Signaled", "Time": 1795987487000000000, "DisplayMessage": "healthcheck: check \"up\" unhealthy"},
        {"Type": "Terminated", "Time": 1795987517000000000, "ExitCode": 137, "Details": {"oom_killed": "true"}},
    ]}},
}  # fmt: skip


def read(document: object) -> tuple[Event, ...]:
    text = json.dumps(document, indent=1)
    assert docker.INSPECT.sniff(make_head("state.json", text.encode(), True)) >= 90
    return docker.read_inspect(text, "state.json").events


def ends(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if event.kind == "container_terminated"]


@pytest.mark.parametrize("document", [{"tasks": [TASK], "failures": []}, TASK, {"detail-type": "", "detail": TASK}])
def test_ecs_task(document: object) -> None:
    """Of `describe-tasks`, alone, or in a state-change event; what ECS says can be matched by signatures."""
    events = read(document)
    (end,) = ends(events)
    assert end.text == "container vllm terminated: reason=OOMKilled exit_code=137"
    assert end.scope.container == "vllm"
    assert end.fields["signal"] == 9
    assert end.fields["finished_s"] - end.fields["started_s"] == pytest.approx(5117.101)
    assert [e.text for e in events if e.kind == "log"] == [TASK["stoppedReason"], TASK["containers"][0]["reason"]]


def test_ecs_task_of_the_old_command_line() -> None:
    """Times in Unix seconds; a container that never started has neither code nor end."""
    task = {**TASK, "startedAt": 1795982400.0, "stoppedAt": 1795987517.5,
            "containers": [{"name": "vllm", "exitCode": 1}, {"name": "sidecar"}]}  # fmt: skip
    (end,) = ends(read({"tasks": [task]}))
    assert end.fields == {"exit_code": 1, "started_s": 1795982400.0, "finished_s": 1795987517.5}


def test_ecs_containers_are_told_apart() -> None:
    """Image, GPUs and limit say which container is the engine's; the one that failed is why the task stopped."""
    engine = {**TASK["containers"][0], "image": "acme/vllm-openai:v0.10.0", "memory": "61440", "gpuIds": ["GPU-1"]}
    sidecar = {"name": "envoy", "exitCode": 0, "memoryReservation": "256"}
    events = read({"tasks": [{**TASK, "containers": [sidecar, engine]}]})
    specs = {event.scope.container: event.fields for event in events if event.kind == "pod_spec"}
    assert specs["vllm"] == {
        "container": "vllm", "image": "acme/vllm-openai:v0.10.0", "memory_limit_bytes": 60 * 2**30, "gpus": 1,
    }  # fmt: skip
    assert specs["envoy"] == {"container": "envoy", "memory_request_bytes": 256 * 2**20}
    assert {event.scope.container for event in events if event.text == TASK["stoppedReason"]} == {"vllm"}


@pytest.mark.parametrize(
    ("codes", "stopped_for"),
    [((0, 137), {"serve": "shipper"}), ((143, 1), {"serve": "shipper"}), ((1, 1), {}), ((1, 143), {"shipper": "serve"})],
)
def test_who_was_stopped_for_whose_end(codes: tuple[int, int], stopped_for: dict[str, str]) -> None:
    """ECS stops the rest of a task when a container ends without which it cannot be; where one failed alone, it is that."""
    names = zip(("serve", "shipper"), codes, strict=True)
    found = ends(read({"tasks": [{**TASK, "containers": [{"name": name, "exitCode": code} for name, code in names]}]}))
    assert {e.scope.container: e.fields["stopped_for"] for e in found if "stopped_for" in e.fields} == stopped_for


def test_nomad_allocation() -> None:
    """A start, why the task was started again, and an end, each at its own time."""
    started, told, end = read(ALLOCATION)
    assert (started.kind, started.stamps[0].seconds) == ("container_started", 1795982400.0)
    assert (told.text, told.stamps[0].seconds) == ('healthcheck: check "up" unhealthy', 1795987487.0)
    assert end.text == "container vllm terminated: reason=OOMKilled exit_code=137"
    assert end.fields["finished_s"] == 1795987517.0


def test_damaged_documents() -> None:
    """Wrong types and missing parts are skipped; what can be read is kept."""
    broken = [7, {"tasks": "none"}, {**TASK, "containers": [3, {"name": [], "exitCode": "x"}]}, {"TaskStates": [1]},
              {"TaskStates": {"vllm": {"Events": [{"Type": "Terminated", "Time": "soon"}, None]}}}]  # fmt: skip
    events = docker.read_inspect(json.dumps(broken), "x").events
    assert [e.text for e in ends(events)] == ["container vllm terminated: reason= exit_code="]
