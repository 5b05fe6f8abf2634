"""`kubectl describe`: the same facts as the API object, whatever a message spills into column 0."""

# ruff: noqa: W291  # kubectl pads its cells
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from forensics.model import Event, StampForm
from forensics.parsers import k8s_text
from forensics.pipeline import analyze
from forensics.pipeline import read as read_bundle
from forensics.sources import make_head
from forensics.stamps import iso_utc

CID = "4e1f0a7b" * 8
POD = f"""\
Name:             vllm-llama-6d5b9c7f4b-x2kqp
Namespace:        inference
Priority:         0
Node:             gpu-node-7/10.20.0.17
Start Time:       Sun, 29 Nov 2026 15:00:00 -0500
Labels:           app=vllm
Status:           Running
IP:               10.244.3.17
Controlled By:    ReplicaSet/vllm-llama-6d5b9c7f4b
Containers:
  vllm:
    Container ID:  containerd://{CID}
    Image:         vllm/vllm-openai:v0.11.0
    Port:          8000/TCP
    Command:
      vllm
      serve
    Args:
      --model
      Qwen/Qwen3-8B
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Message:      ERROR 11-29 21:24:07 [core.py:708] EngineCore failed to start.
Name:             not-a-pod
Containers:
  fake:
    State:          Running
Events:  none of them
      Exit Code:    1
      Started:      Sun, 29 Nov 2026 16:22:09 -0500
      Finished:     Sun, 29 Nov 2026 16:24:08 -0500
    Ready:          False
    Restart Count:  3
    Limits:
      memory:          64Gi
      nvidia.com/gpu:  4
    Requests:
      cpu:     500m
      memory:  64Gi
    Liveness:   http-get http://:8000/health delay=60s timeout=5s period=10s #success=1 #failure=3
    Readiness:  tcp-socket :http delay=0s timeout=1s period=10s successThreshold=2 failureThreshold=4
    Startup:    exec [sh -c curl -sf localhost:8000] delay=0s timeout=1s period=10s #success=1 #failure=60
    Environment:
      HF_HOME:   /models
      HF_TOKEN:  <set to the key 'token' in secret 'hf'>  Optional: false
      POD_IP:     (v1:status.podIP)
    Mounts:
      /dev/shm from dshm (rw)
Conditions:
  Type              Status
  Ready             False 
Volumes:
  dshm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  16Gi
QoS Class:       Burstable
Node-Selectors:  gpu=h100
                 zone=a
Events:
  Type     Reason     Age                   From               Message
  ----     ------     ----                  ----               -------
  Normal   Scheduled  119m                  default-scheduler  Successfully assigned inference/x to gpu-node-7
  Warning  Unhealthy  5m33s (x12 over 47m)  kubelet            spec.containers{{vllm}}: Liveness probe failed: boom
second line

last line
  Normal   Killing    <unknown>             kubelet            Container vllm failed liveness probe, will be restarted


"""


def read(text: str) -> tuple[Event, ...]:
    return k8s_text.read(text, "describe.txt").events


def only(events: Iterable[Event], kind: str, **fields: Any) -> Event:
    found = [e for e in events if e.kind == kind and all(e.fields.get(k) == v for k, v in fields.items())]
    assert len(found) == 1, [e.text for e in found]
    return found[0]


def test_spec() -> None:
    """Both wordings of probe thresholds, a named port, exec, and only literal environment values."""
    spec = only(read(POD), "pod_spec").fields
    expected = {
        "image": "vllm/vllm-openai:v0.11.0", "command": ("vllm", "serve"), "args": ("--model", "Qwen/Qwen3-8B"),
        "env": {"HF_HOME": "/models"}, "memory_limit_bytes": 64 << 30, "gpus": 4, "qos": "Burstable",
        "node": "gpu-node-7", "node_selector": {"gpu": "h100", "zone": "a"}, "shm_size_bytes": 16 << 30,
        "liveness_kind": "http", "liveness_port": 8000, "liveness_path": "/health", "liveness_delay_s": 60,
        "readiness_kind": "tcp", "readiness_port": "http", "readiness_success": 2, "readiness_failure": 4,
        "startup_kind": "exec", "startup_path": "sh -c curl -sf localhost:8000", "startup_failure": 60,
    }  # fmt: skip
    assert expected.items() <= spec.items()


def test_message_that_looks_like_describe() -> None:
    """What a termination message prints in column 0 is the message, until the exit code."""
    events = read(POD)
    death = only(events, "container_terminated")
    assert (death.fields["exit_code"], death.fields["reason"], death.fields["restart_count"]) == (
        1,
        "Error",
        3,
    )
    assert death.fields["message"].endswith("Events:  none of them")
    assert death.raw.strip() == "Finished:     Sun, 29 Nov 2026 16:24:08 -0500"
    assert [e.text for e in events if e.kind == "container_state"] == ["container vllm waiting"]
    told = [e for e in events if e.fields.get("origin") == "termination_message"]
    assert told[0].text == "EngineCore failed to start."
    assert [e.raw for e in told[1:]] == [POD.split("\n")[e.locator.line - 1] for e in told[1:]]


def test_times_carry_the_clients_offset() -> None:
    """Times are in the zone of the kubectl client, with its offset: they are instants."""
    death = only(read(POD), "container_terminated")
    assert [(s.form, iso_utc(s.seconds, 0)) for s in death.stamps] == [
        (StampForm.INSTANT, "2026-11-29T21:24:08Z")
    ]
    assert only(read(POD), "pod_status").fields["started_s"] == 1795982400.0


@pytest.mark.parametrize("zero", ["Mon, 01 Jan 0001 00:00:00 +0000", "Thu, 01 Jan 1970 00:00:00 +0000"])
def test_zero_times_are_no_times(zero: str) -> None:
    text = POD.replace("Sun, 29 Nov 2026 16:22:09 -0500", zero)
    death = only(read(text), "container_terminated")
    assert "started_s" not in death.fields
    assert not [e for e in read(text) if e.kind == "container_started"]


def test_events_table() -> None:
    """Ages with counts, the container before the message (1.35 and later), messages of several lines."""
    scheduled, unhealthy, killing = (e for e in read(POD) if e.kind == "k8s_event")
    assert scheduled.fields["component"] == "default-scheduler"
    assert scheduled.scope.host == ""
    assert [(s.form, s.seconds, s.resolution_s) for s in scheduled.stamps] == [(StampForm.AGE, 7170.0, 60.0)]
    assert unhealthy.text == "Unhealthy: Liveness probe failed: boom\nsecond line\n\nlast line"
    assert unhealthy.scope.container == "vllm"
    assert unhealthy.scope.host == "gpu-node-7"
    assert (unhealthy.fields["count"], unhealthy.fields["first_age_s"]) == (12, 2850.0)
    assert unhealthy.stamps[0].seconds == 333.5
    assert unhealthy.locator.line_end - unhealthy.locator.line == 3
    assert killing.stamps == ()
    assert killing.scope.container == "vllm"


def test_several_objects_in_one_file() -> None:
    """Objects follow each other, with or without blank lines between them, and tables may stand among them."""
    second = POD.replace("x2kqp", "qw4zt").replace("Name:             not-a-pod\n", "")
    table = "NAME   READY   STATUS    RESTARTS   AGE\nproxy-0   1/1     Running   0          3d\n"
    events = read(f"$ kubectl describe pods\n{POD}{second.rstrip()}\n{table}")
    names = [e.scope.pod for e in events if e.kind == "pod_status"]
    assert names == ["vllm-llama-6d5b9c7f4b-x2kqp", "vllm-llama-6d5b9c7f4b-qw4zt", "proxy-0"]


def test_pod_message_of_several_lines() -> None:
    text = POD.replace(
        "Status:           Running\n",
        "Status:           Failed\nReason:           Evicted\nMessage:          Pod was low on\nStatus: of memory\n",
    )
    status = only(read(text), "pod_status")
    assert status.text == "pod vllm-llama-6d5b9c7f4b-x2kqp Failed: Evicted Pod was low on\nStatus: of memory"


def test_terminating_pod() -> None:
    text = POD.replace("Status:           Running", "Status:           Terminating (lasts 5m)")
    status = only(read(text), "pod_status")
    assert status.fields["terminating"] is True
    assert status.text == "pod vllm-llama-6d5b9c7f4b-x2kqp Terminating"


NODE = """\
Name:               gpu-node-7
Roles:              <none>
Labels:             kubernetes.io/hostname=gpu-node-7
Unschedulable:      true
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason               Message
  ----             ------  -----------------                 ------------------                ------               -------
  MemoryPressure   False   Sun, 29 Nov 2026 21:27:29 +0000   Mon, 17 Aug 2026 17:27:41 +0000   KubeletHasSufficientMemory   ok
  Ready            Unknown   Sun, 29 Nov 2026 21:20:00 +0000   Sun, 29 Nov 2026 21:21:00 +0000   NodeStatusUnknown    Kubelet stopped posting node status.
Capacity:
  memory:             528280984Ki
  nvidia.com/gpu:     8
Allocatable:
  memory:             521989528Ki
  nvidia.com/gpu:     7
System Info:
  Boot ID:                    8d1f0c3b
  Kernel Version:             6.1.0-57-amd64
  Container Runtime Version:  containerd://1.7.27
Events:              <none>
"""


def test_a_condition_that_should_be_true() -> None:
    """What is named ready or healthy is bad when it is not; all others are bad when they are."""
    last = next(line for line in NODE.split("\n") if line.startswith("  Ready "))
    for name, state, bad in (("AcceleratedHardwareReady", "False", True), ("AcceleratedHardwareReady", "True", False),
                             ("GPUMissing", "True", True), ("GPUMissing", "False", False)):  # fmt: skip
        row = f"  {name}  {state}    Sun, 29 Nov 2026 21:20:00 +0000   Mon, 17 Aug 2026 17:27:41 +0000   Seen   GPU 3"
        told = {e.fields["condition"] for e in read(NODE.replace(last, f"{last}\n{row}")) if e.kind == "node_condition"}
        assert (name in told) is bad


def test_node() -> None:
    """Conditions are read even where a cell is wider than its column."""
    events = read(NODE)
    status = only(events, "node_status")
    assert status.fields["conditions"] == {"MemoryPressure": "False", "Ready": "Unknown"}
    assert (status.fields["capacity_gpus"], status.fields["allocatable_gpus"]) == (8, 7)
    assert status.fields["kernel_version"] == "6.1.0-57-amd64"
    assert status.fields["unschedulable"] is True
    condition = only(events, "node_condition")
    assert condition.text == (
        "node gpu-node-7 Ready=Unknown: NodeStatusUnknown Kubelet stopped posting node status."
    )
    assert [iso_utc(s.seconds, 0) for s in condition.stamps] == ["2026-11-29T21:21:00Z"]


DEPLOYMENT = """\
Name:                   vllm-llama
Namespace:              inference
CreationTimestamp:      Sun, 29 Nov 2026 19:00:49 +0000
Annotations:            deployment.kubernetes.io/revision: 2
                        kubernetes.io/change-cause: helm upgrade
Selector:               app=vllm-llama
Replicas:               2 desired | 2 updated | 2 total | 0 available | 2 unavailable
StrategyType:           RollingUpdate
Pod Template:
  Labels:           app=vllm-llama
  Containers:
   vllm:
    Image:      vllm/vllm-openai:v0.9.2
    Args:
      --tensor-parallel-size
      4
    Limits:
      memory:  64Gi
    Mounts:
      /dev/shm from shm (rw)
  Volumes:
   shm:
    Type:          EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:        Memory
    SizeLimit:     8Gi
Conditions:
  Type          Status  Reason
  ----          ------  ------
  Progressing   False   ProgressDeadlineExceeded
Events:         <none>
"""


def test_deployment() -> None:
    events = read(DEPLOYMENT)
    workload = only(events, "workload")
    assert workload.text == "deployment vllm-llama 0/2 available"
    assert workload.fields["revision"] == "2"
    assert workload.fields["change_cause"] == "helm upgrade"
    assert workload.fields["conditions"] == {"Progressing": "False ProgressDeadlineExceeded"}
    spec = only(events, "pod_spec")
    assert spec.fields["args"] == ("--tensor-parallel-size", "4")
    assert spec.fields["shm_size_bytes"] == 8 << 30
    assert spec.scope.pod == ""


@pytest.mark.parametrize("cut", range(0, len(POD), 97))
def test_cut_anywhere(cut: int) -> None:
    """A cut file gives what stands before the cut."""
    for event in read(POD[:cut]):
        assert event.kind != "container_terminated" or event.fields.get("exit_code") in (1, None)


def test_sniff() -> None:
    assert k8s_text.DESCRIBE.sniff(make_head("x", POD.encode(), True)) >= 95
    assert k8s_text.DESCRIBE.sniff(make_head("x", f"$ kubectl describe po\n\n{POD}".encode(), True)) >= 90
    assert k8s_text.DESCRIBE.sniff(make_head("x", b"Name: John\nAddress: here\n", True)) == 0


def test_a_containers_block_without_its_pod(tmp_path: Path) -> None:
    """The block begins with the name of the container; arguments stand above the states."""
    (tmp_path / "snip.txt").write_text("""\
  embedder:
    Image:         example.com/tei:1
    Args:
      --model-id
      example/embedder
    State:          Running
      Started:      Mon, 15 Jun 2026 08:31:20 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  4
    Limits:
      memory:          10Gi
""")
    diagnosis = analyze(tmp_path / "snip.txt").diagnosis
    assert diagnosis.key_facts["container"] == "embedder"
    assert diagnosis.key_facts["container_limit_gib"] == 10.0
    assert diagnosis.key_facts["restart_count"] == 4


def test_states_of_nobody_have_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "snip.txt").write_text("""\
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
    Restart Count:  11
    Limits:
      memory:          96Gi
""")
    facts = analyze(tmp_path / "snip.txt").diagnosis.key_facts
    assert (facts["restart_count"], facts["container_limit_gib"], facts["exit_code"]) == (11, 96.0, 1)


@pytest.mark.parametrize(
    ("line", "reason", "code", "restarts"),
    [
        ("Last State: Terminated  Reason: Error  Exit Code: 137  Started: 07:02:11  Finished: 07:41:50", "Error", 137, None),
        ("  Last State: Terminated, Reason: OOMKilled, Exit Code: 137, Restart Count: 6", "OOMKilled", 137, 6),
        ("State: Terminated (Reason: Completed, Exit code: 0)", "Completed", 0, None),
        ("Last State: Terminated | Exit Code: 139 | Signal: 11", "", 139, None),
    ],
)
def test_a_state_in_one_line(tmp_path: Path, line: str, reason: str, code: int, restarts: int | None) -> None:
    """The template of an alert puts a container's state into one line; the log below stays a log."""
    (tmp_path / "page.txt").write_text(f"[FIRING] chat-0 restarts\n{line}\nTail of the log:\nINFO 05-02 07:41:44 [a.py:1] Ready\n")
    events = read_bundle(tmp_path / "page.txt").events
    (end,) = [event for event in events if event.kind == "container_terminated"]
    assert (end.fields.get("reason", ""), end.fields["exit_code"], end.locator.line) == (reason, code, 2)
    assert end.fields.get("restart_count") == restarts
    assert {"Tail of the log:", "Ready"} <= {event.text for event in events}


@pytest.mark.parametrize(
    "line",
    [
        "Last State: Terminated means that it ended; look at its Exit Code: there",
        "If you see Last State: Terminated  Reason: OOMKilled  Exit Code: 137, raise the limit",
        "State: Terminated by the operator on Monday",
    ],
)
def test_a_sentence_about_a_state(tmp_path: Path, line: str) -> None:
    (tmp_path / "page.txt").write_text(f"Hello\n{line}\nBye\n")
    assert not [event for event in read_bundle(tmp_path / "page.txt").events if event.kind == "container_terminated"]


def test_probes_of_nobody(tmp_path: Path) -> None:
    """The rows of the probes were copied into a message, and nothing of the states."""
    (tmp_path / "msg.txt").write_text("""It never gets ready:
    Startup:      http-get http://:8000/health delay=20s timeout=2s period=15s #success=1 #failure=12
    Restart Count:  5
and now?
""")
    (spec,) = [event for event in read_bundle(tmp_path / "msg.txt").events if event.kind == "pod_spec"]
    assert (spec.fields["startup_delay_s"], spec.fields["startup_period_s"], spec.fields["startup_failure"]) == (20, 15, 12)


@pytest.mark.parametrize(
    "lost",
    [
        ("Node:", "Status:"),
        ("Node:", "Status:", "Start Time:", "QoS Class:", "Node-Selectors:"),
        ("Containers:",),
        ("  vllm:",),
        ("Containers:", "  vllm:", "Node:"),
        ("    State:", "    Restart Count:"),
    ],
    ids=" ".join,
)
def test_a_redacted_pod_keeps_its_containers(lost: tuple[str, ...]) -> None:
    """Whoever pastes into a ticket takes out the node's name, and more."""
    text = "".join(line for line in POD.splitlines(True) if not line.startswith(lost))
    ends = [e for e in read(text) if e.kind == "container_terminated"]
    assert [(e.fields["exit_code"], e.fields["reason"]) for e in ends] == [(1, "Error")]
