"""Pieces of a pod's YAML that were cut across its structure."""

from __future__ import annotations

import pytest

from forensics.parsers import k8s_pieces
from forensics.sources import make_head

STATES = """\
    lastState:
      terminated:
        containerID: containerd://4e1f
        exitCode: 137
        finishedAt: "2026-05-03T02:30:31Z"
        reason: OOMKilled
        startedAt: "2026-05-03T01:00:00Z"
    name: vllm
    ready: true
    restartCount: 4
    state:
      running:
        startedAt: "2026-05-03T02:30:33Z"
"""


@pytest.mark.parametrize("text", [
    STATES, STATES + "  terminationGracePeriodSeconds: 45\n", "".join(line[4:] for line in STATES.splitlines(True)),
    STATES.replace("    lastState:", "  - lastState:"), "# from the ticket\n" + STATES,
    "".join(STATES.splitlines(True)[:6]),
])  # fmt: skip
def test_states_without_their_pod(text: str) -> None:
    assert k8s_pieces.FORMAT.sniff(make_head("pod.yaml", text.encode(), True)) == 85
    ends = [e for e in k8s_pieces.read(text, "pod.yaml").events if e.kind == "container_terminated"]
    assert [(e.fields["exit_code"], e.fields["reason"]) for e in ends] == [(137, "OOMKilled")]
    assert text.split("\n")[ends[0].locator.line - 1].strip() == "reason: OOMKilled"


@pytest.mark.parametrize("text", [
    "kind: Pod\n" + STATES, "status:\n  phase: Running\n" + STATES, "exitCode: 137\n", "terminated:\n  done: 1\n",
    "The pod was terminated:\nsee exitCode: 137 below, and tell me what it means please\nThanks\nBob\n",
])  # fmt: skip
def test_no_pieces(text: str) -> None:
    assert k8s_pieces.FORMAT.sniff(make_head("pod.yaml", text.encode(), True)) == 0
