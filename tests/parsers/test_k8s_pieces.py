"""Pieces of a pod's YAML, and rows of events without their header."""

from __future__ import annotations

import pytest

from forensics.parsers import k8s_pieces, k8s_text
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
    assert k8s_pieces.FORMAT.sniff(make_head("pod.yaml", text.encode(), True)) in (0, 85)
    ends = [e for e in k8s_pieces.read(text, "pod.yaml").events if e.kind == "container_terminated"]
    assert [(e.fields["exit_code"], e.fields["reason"]) for e in ends] == [(137, "OOMKilled")]
    assert text.split("\n")[ends[0].locator.line - 1].strip() == "reason: OOMKilled"


@pytest.mark.parametrize("text", [
    "kind: Pod\n" + STATES, "status:\n  phase: Running\n" + STATES, "exitCode: 137\n", "terminated:\n  done: 1\n",
    "The pod was terminated:\nsee exitCode: 137 below, and tell me what it means please\nThanks\nBob\n",
])  # fmt: skip
def test_no_pieces(text: str) -> None:
    assert k8s_pieces.FORMAT.sniff(make_head("pod.yaml", text.encode(), True)) == 0


EVENTS = """\
2026-05-03T02:30:00Z Normal ScaleDown pod/yak-0 deleting pod for node scale down
2026-05-03T02:30:00Z   Normal   Killing   pod/yak-0   Stopping container vllm
3m   Warning   BackOff   pod/yak-0   Back-off restarting failed container vllm
"""


def test_rows_of_events_without_a_header() -> None:
    assert k8s_text.TABLE.sniff(make_head("ev.txt", EVENTS.encode(), True)) == 94
    events = k8s_text.read(EVENTS, "ev.txt").events
    assert [(e.fields["reason"], e.scope.pod) for e in events] == [("ScaleDown", "yak-0"), ("Killing", "yak-0"), ("BackOff", "yak-0")]
    assert [e.fields.get("last_seen_s") for e in events][:2] == [1777775400.0] * 2


@pytest.mark.parametrize("text", [
    "2026-05-03T02:30:00Z Normal operation resumed\n", "2026-05-03T02:30:00Z Warning Low disk/space on node\n",
    "3m Normal pod/yak-0 Killing\n", EVENTS + "and then it was gone\n",
])  # fmt: skip
def test_other_rows(text: str) -> None:
    assert k8s_text.TABLE.sniff(make_head("ev.txt", text.encode(), True)) < 94
