"""States of containers that were cut out of their pod along its structure, as JSON or YAML, also by jsonpath or jq."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Event, Scope
from forensics.parsers import k8s_states
from forensics.pipeline import read
from forensics.sources import make_head

STATE = '{"exitCode":137,"finishedAt":"2026-08-11T02:19:50Z","reason":"OOMKilled","startedAt":"2026-08-11T02:17:03Z"}'
YAML = """lastState:
  terminated:
    exitCode: 137
    reason: OOMKilled
    finishedAt: "2026-08-11T02:19:50Z"
name: vllm
restartCount: 3
"""


def ends(tmp_path: Path, text: str, name: str) -> list[Event]:
    (tmp_path / name).write_text(text)
    return [event for event in read(tmp_path / name).events if event.kind == "container_terminated"]


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        (STATE, "state.json", 1),
        (f'{{"terminated":{STATE}}}', "state.json", 1),
        (f'[{{"name":"vllm","restartCount":3,"lastState":{{"terminated":{STATE}}},"state":{{"running":{{}}}}}}]', "x", 1),
        (f"$ kubectl get pod chat-0 -o jsonpath='{{.status}}'\n{STATE}\n", "session.txt", 2),
        (YAML, "status.yaml", 4),
        (indented(YAML, "    "), "status.yaml", 4),
        ("- " + indented(YAML, "  ").lstrip(), "status.yaml", 4),
        ("containerStatuses:\n- " + indented(YAML, "  ").lstrip(), "status.yaml", 5),
        ("status:\n  containerStatuses:\n  - " + indented(YAML, "    ").lstrip(), "status.yaml", 6),
        (f"It keeps restarting:\n\n```\n{YAML}```\nany idea?\n", "ticket.md", 7),
    ],
)
def test_a_state_without_its_pod(tmp_path: Path, text: str, name: str, line: int) -> None:
    (end,) = ends(tmp_path, text, name)
    assert (end.fields["reason"], end.fields["exit_code"], end.locator.line) == ("OOMKilled", 137, line)


def test_the_pod_beside_the_states(tmp_path: Path) -> None:
    """`jq '{name: .metadata.name, uid: .metadata.uid, nodeName: .spec.nodeName} + .status'`."""
    status = f'"containerStatuses":[{{"name":"vllm","restartCount":3,"lastState":{{"terminated":{STATE}}}}}]'
    text = f'{{"name":"chat-0","uid":"0f7c9d4c-1cb0-4e4b-9d0e-5f6a7b8c9d0e","nodeName":"gpu-node-7",{status}}}'
    (end,) = ends(tmp_path, text, "pod.json")
    assert (end.scope.pod, end.scope.pod_uid[:8], end.scope.container) == ("chat-0", "0f7c9d4c", "vllm")


@pytest.mark.parametrize(
    "text",
    [
        '{"level":"error","msg":"step failed","exitCode":137,"reason":"OOMKilled is possible"}',
        "jobs:\n  build:\n    exitCode: 137\n    reason: test fixture\n",
        '[{"exitCode":137,"name":"unit-test"},{"other":1}]',
    ],
)
def test_other_documents_with_an_exit_code(tmp_path: Path, text: str) -> None:
    assert not ends(tmp_path, text, "other.yaml")


ENDED = '{"containerID":"containerd://77aa01","exitCode":0,"finishedAt":"2026-01-22T06:20:09Z","reason":"OOMKilled","startedAt":"2026-01-19T04:00:10Z"}'
QUERY = "$ kubectl -n ml get pod chat-0 -o jsonpath='{.status.containerStatuses[0].lastState}'"


@pytest.mark.parametrize(
    ("text", "line", "scope"),
    [
        (f'{{"terminated":{ENDED}}}', 1, Scope()),
        (f'{{"lastState":{{"terminated":{ENDED}}},"name":"vllm"}}', 1, Scope()),
        (f"vllm\t{ENDED}\nproxy\t\n", 1, Scope(container="vllm")),
        (f'{QUERY}\n{{"terminated":{ENDED}}}\n{{"limits":{{"memory":"40Gi"}}}}', 2, Scope(namespace="ml", pod="chat-0")),
        (ENDED.replace(",", ",\n ").replace("{", "{\n "), 5, Scope()),
    ],
    ids=["by its word", "of a status", "after the name", "below the command", "printed by jq"],
)
def test_an_end_is_read(text: str, line: int, scope: Scope) -> None:
    assert k8s_states.FORMAT.sniff(make_head("state.txt", text.encode(), True)) > 0
    ended = [event for event in k8s_states.read_answer(text, "state.txt").events if event.kind == "container_terminated"]
    assert [(e.fields["exit_code"], e.fields["reason"], e.locator.line) for e in ended] == [(0, "OOMKilled", line)]
    assert (ended[0].scope.namespace, ended[0].scope.pod, ended[0].scope.container) == (
        scope.namespace, scope.pod, scope.container,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '{"level":"info","exitCode":0,"finishedAt":"never","msg":"x"}',
        f'{{"kind":"Pod","metadata":{{}},"status":{{"containerStatuses":[{{"lastState":{{"terminated":{ENDED}}}}}]}}}}',
        '{"terminated":false,"exitCode":0}',
    ],
    ids=["a log line", "a whole pod", "something else"],
)
def test_other_json_is_none(text: str) -> None:
    assert k8s_states.FORMAT.sniff(make_head("x.json", text.encode(), True)) == 0
