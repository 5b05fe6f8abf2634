"""States of containers that were cut out of their pod, as JSON, YAML and columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Event
from forensics.pipeline import read

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


def test_columns_of_ones_own(tmp_path: Path) -> None:
    table = """NAMESPACE   NAME     LAST_REASON        EXIT_CODE   RESTARTS   FINISHED
llm         chat-0   <none>,OOMKilled   <none>,137  0,4        <none>,2026-06-03T12:44:08Z
llm         chat-1   <none>             <none>      0          <none>
"""
    (end,) = ends(tmp_path, table, "pods.txt")
    assert end.fields == {
        "reason": "OOMKilled", "exit_code": 137, "last_state": True, "restart_count": 4, "finished_s": 1780490648.0,
    }  # fmt: skip
    assert (end.scope.pod, end.locator.line) == ("chat-0", 2)
