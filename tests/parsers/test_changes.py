"""What was changed and what kubectl answered: diffs, rollouts, replies; none of it is a message of a program."""

from __future__ import annotations

import pytest

from forensics.model import StampForm
from forensics.parsers import FORMATS, changes, helm, kubectl_replies
from forensics.sources import identify, make_head

HELM = """llm, chat-7b, Deployment (apps) has changed:
  spec:
-         - mountPath: /dev/shm
-           name: dshm
+         - --max-model-len=131072
llm, chat-7b, Service (v1) has changed:
-   port: 8000
"""
UNIFIED = """diff --git a/values.yaml b/values.yaml
index 1a2b3c4..5d6e7f8 100644
--- a/values.yaml
+++ b/values.yaml
@@ -1,3 +1,3 @@
 memory:
-  limit: 64Gi
+  limit: 48Gi
"""
ROLLOUT = """Waiting for deployment "chat-7b" rollout to finish: 0 out of 2 new replicas have been updated...
Waiting for deployment "chat-7b" rollout to finish: 1 old replicas are pending termination...
deployment "chat-7b" successfully rolled out
"""
REPLIES = """deployment.apps/chat-7b restarted
pod "chat-7b-6d5b9c7f4b-x2kqp" force deleted
Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated.
node/gpu-node-7 cordoned
evicting pod llm/chat-7b-6d5b9c7f4b-x2kqp
deployment.apps/chat-7b scaled
"""


def form_of(text: str, path: str = "x.txt") -> str:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    return form.name if form else ""


def test_helm_diff() -> None:
    """Each line with its object; the colours of a terminal are no part of it."""
    coloured = HELM.replace("-         - mount", "\x1b[31m-         - mount").replace("/dev/shm\n", "/dev/shm\x1b[0m\n")
    for text in (HELM, coloured):
        events = changes.read(text, "helm-diff.txt").events
        assert [(e.locator.line, e.text, e.fields["object"]) for e in events] == [
            (3, "- - mountPath: /dev/shm", "Deployment chat-7b"), (4, "- name: dshm", "Deployment chat-7b"),
            (5, "+ - --max-model-len=131072", "Deployment chat-7b"), (7, "- port: 8000", "Service chat-7b"),
        ]  # fmt: skip
        assert {e.channel for e in events} == {"notes"}
        assert form_of(text) == "diff"


def test_unified_diff() -> None:
    events = changes.read(UNIFIED, "x.diff").events
    assert [(e.fields["sign"], e.text, e.fields["object"]) for e in events] == [
        ("-", "- limit: 64Gi", "values.yaml"), ("+", "+ limit: 48Gi", "values.yaml"),
    ]  # fmt: skip
    assert form_of(UNIFIED) == "diff"
    assert form_of("\n".join(UNIFIED.split("\n")[2:])) == "diff"


@pytest.mark.parametrize("text", [
    "- first item\n- second item\n+ third\n",
    "--- kernel log ---\n[   12.345678] x\n+++ more\n",
    "-- Boot 8d1f1111111111111111111111111111 --\n",
    "",
])  # fmt: skip
def test_no_diff(text: str) -> None:
    assert form_of(text) != "diff"


def test_rollout_status() -> None:
    """Waiting, then done: facts about the workload, in order, without a time."""
    events = kubectl_replies.read(ROLLOUT, "rollout-status.txt").events
    assert [(e.kind, e.fields["rollout"], e.fields["workload_name"]) for e in events] == [
        ("workload", "waiting", "chat-7b"), ("workload", "waiting", "chat-7b"), ("workload", "done", "chat-7b")]
    assert form_of(ROLLOUT) == "k8s.reply"
    failed = 'error: deployment "chat-7b" exceeded its progress deadline\n'
    assert kubectl_replies.read(failed, "x").events[0].fields["rollout"] == "failed"


def test_replies() -> None:
    """Who was touched, and how."""
    events = kubectl_replies.read(REPLIES, "x").events
    assert [(e.fields["object_kind"], e.fields["verb"]) for e in events] == [
        ("deployment", "restarted"), ("pod", "force deleted"), ("node", "cordoned"), ("pod", "evicted"), ("deployment", "scaled")]
    assert events[1].scope.pod == events[3].scope.pod == "chat-7b-6d5b9c7f4b-x2kqp"
    assert events[2].scope.host == "gpu-node-7"
    assert form_of(REPLIES) == "k8s.reply"


def test_a_drain_below_its_command() -> None:
    """The command, an eviction that a budget held up, and what was done in the end."""
    text = (
        "$ kubectl drain gpu-node-7 --ignore-daemonsets --timeout=15m\nnode/gpu-node-7 cordoned\n"
        "Warning: ignoring DaemonSet-managed Pods: kube-system/cilium-7xk2p\nevicting pod llm/chat-0\n"
        'error when evicting pods/"chat-0" -n "llm" (will retry after 5s): Cannot evict pod as it would violate the '
        "pod's disruption budget.\nevicting pod llm/chat-0\npod/chat-0 evicted\nnode/gpu-node-7 drained\n"
    )
    verbs = [event.fields["verb"] for event in kubectl_replies.read(text, "x").events]
    assert (form_of(text), verbs) == ("k8s.reply", ["cordoned", "evicted", "evicted", "evicted", "drained"])
    traced = text.replace("$ kubectl", "2026-11-29T21:25:17Z + kubectl") + "2026-11-29T21:31:40Z + ssh gpu-node-7 sudo reboot\n"
    assert (form_of(traced), len(kubectl_replies.read(traced, "x").events)) == ("k8s.reply", 5)


@pytest.mark.parametrize("text", [
    "INFO 11-18 02:41:07 [core.py:710] deployment.apps/x restarted\n",
    "the rollout of deployment chat-7b took long\nand then it stopped\n",
    "pod/vllm-0\npod/vllm-1\n",
])  # fmt: skip
def test_no_reply(text: str) -> None:
    assert form_of(text) != "k8s.reply"


HISTORY = """REVISION\tUPDATED                 \tSTATUS    \tCHART      \tAPP VERSION\tDESCRIPTION
6       \tMon Nov 17 09:12:44 2025\tsuperseded\tvllm-0.3.1 \t0.10.2     \tUpgrade complete
7       \tTue Nov 18 02:31:02 2025\tfailed    \tvllm-0.3.2 \t0.11.0     \tUpgrade "chat-7b" failed: timed out
"""
STATUS = """NAME: chat-7b
LAST DEPLOYED: Tue Nov 18 02:31:02 2025
NAMESPACE: llm
STATUS: deployed
REVISION: 7
NOTES:
NAME: not the release
"""
RELEASES = """NAME   \tNAMESPACE\tREVISION\tUPDATED                                \tSTATUS  \tCHART     \tAPP VERSION
chat-7b\tllm      \t7       \t2025-11-18 02:31:02.123456789 +0100 CET\tdeployed\tvllm-0.3.2\t0.11.0
"""


def test_helm_releases() -> None:
    """When a release changed; history and status say it in the client's zone, list with an offset."""
    first, second = helm.read_table(HISTORY, "history.txt").events
    assert (first.kind, first.text, first.fields["app_version"]) == ("release", "helm release revision 6 superseded: Upgrade complete", "0.10.2")
    assert (second.stamps[0].form, second.stamps[0].seconds, second.fields["status"]) == (StampForm.LOCAL, 1763433062.0, "failed")
    (status,) = helm.read_status(STATUS, "status.txt").events
    assert (status.text, status.locator.line, status.scope.namespace) == ("helm release chat-7b revision 7 deployed", 2, "llm")
    (listed,) = helm.read_table(RELEASES, "list.txt").events
    assert (listed.stamps[0].form, int(listed.stamps[0].seconds)) == (StampForm.INSTANT, 1763429462)
    assert [form_of(text) for text in (HISTORY, RELEASES, STATUS)] == ["helm.releases", "helm.releases", "helm.status"]
    assert helm.read_table(HISTORY[:120], "x").events == ()
    assert form_of("NAME: x\nSTATUS: y\n") == ""
