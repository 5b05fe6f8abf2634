"""States of containers cut out of the API by jsonpath or jq."""

from __future__ import annotations

import pytest

from forensics.model import Scope
from forensics.parsers import k8s_states
from forensics.sources import make_head

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
    ended = [event for event in k8s_states.read(text, "state.txt").events if event.kind == "container_terminated"]
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
