"""Facts from API objects: pods, events, nodes, workloads, in JSON and YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from forensics.model import Event, StampForm
from forensics.parsers import k8s_objects
from forensics.sources import make_head
from forensics.stamps import iso_utc

CID = "4e1f0a7b" * 8
UID = "0f9c1c7e-3b1d-4a53-9d0a-1c6c6a3c9b11"

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "vllm-llama-0", "namespace": "inference", "uid": UID},
    "spec": {
        "nodeName": "gpu-node-7",
        "terminationGracePeriodSeconds": 120,
        "restartPolicy": "Always",
        "nodeSelector": {"gpu": "h100"},
        "initContainers": [{"name": "fetch", "image": "fetch:1", "resources": {"limits": {"memory": "2Gi"}}}],
        "containers": [{
            "name": "vllm",
            "image": "vllm/vllm-openai:v0.11.0",
            "command": ["vllm", "serve"],
            "args": ["--model", "Qwen/Qwen3-8B"],
            "env": [
                {"name": "HF_HOME", "value": "/models"},
                {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
            ],
            "resources": {
                "limits": {"memory": "64Gi", "nvidia.com/gpu": "4"}, "requests": {"memory": "500M"},
            },
            "volumeMounts": [{"mountPath": "/dev/shm", "name": "shm"}],
            "startupProbe": {
                "httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10, "failureThreshold": 60,
                "terminationGracePeriodSeconds": 5,
            },
            "livenessProbe": {"exec": {"command": ["sh", "-c", "curl -sf localhost:8000"]}},
        }],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": "2026-11-29T20:00:00Z",
        "initContainerStatuses": [{
            "name": "fetch", "restartCount": 0, "ready": True,
            "state": {"terminated": {
                "exitCode": 0, "reason": "Completed",
                "startedAt": "2026-11-29T20:00:05Z", "finishedAt": "2026-11-29T20:01:00Z",
            }},
        }],
        "containerStatuses": [{
            "name": "vllm", "restartCount": 3, "ready": False, "containerID": f"containerd://{CID}",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}},
            "lastState": {"terminated": {
                "exitCode": 137, "reason": "OOMKilled", "containerID": f"containerd://{CID}",
                "startedAt": "2026-11-29T21:22:09Z", "finishedAt": "2026-11-29T21:24:08Z",
            }},
        }],
    },
}  # fmt: skip


def read(value: Any, indent: int | None = 2) -> tuple[Event, ...]:
    text = value if isinstance(value, str) else json.dumps(value, indent=indent)
    return k8s_objects.read(text, "pods.json").events


def only(events: Iterable[Event], kind: str, **fields: Any) -> Event:
    found = [e for e in events if e.kind == kind and all(e.fields.get(k) == v for k, v in fields.items())]
    assert len(found) == 1, [e.text for e in found]
    return found[0]


def test_pod_spec() -> None:
    """Limits in bytes, devices, literal environment, probes with the server's defaults, size of /dev/shm."""
    spec = only(read(POD), "pod_spec", container="vllm")
    assert spec.text == "pod vllm-llama-0 container vllm spec"
    expected = {
        "image": "vllm/vllm-openai:v0.11.0", "command": ("vllm", "serve"),
        "args": ("--model", "Qwen/Qwen3-8B"),
        "env": {"HF_HOME": "/models"}, "memory_limit_bytes": 64 << 30, "memory_request_bytes": 500_000_000,
        "gpus": 4, "grace_s": 120, "node": "gpu-node-7", "qos": "Burstable", "restart_policy": "Always",
        "node_selector": {"gpu": "h100"}, "shm_size_bytes": 16 << 30,
        "startup_kind": "http", "startup_path": "/health", "startup_port": 8000, "startup_delay_s": 0,
        "startup_timeout_s": 1, "startup_period_s": 10, "startup_success": 1, "startup_failure": 60,
        "startup_grace_s": 5, "liveness_kind": "exec", "liveness_path": "sh -c curl -sf localhost:8000",
    }  # fmt: skip
    assert expected.items() <= spec.fields.items()
    assert not any(name.startswith("readiness_") for name in spec.fields)


def test_default_shm_without_a_volume() -> None:
    """No mount at /dev/shm means the runtime's 64 MiB, unless the pod shares the host's memory."""
    assert only(read(POD), "pod_spec", container="fetch").fields["shm_size_bytes"] == 64 << 20
    shared = json.loads(json.dumps(POD))
    shared["spec"]["hostIPC"] = True
    assert "shm_size_bytes" not in only(read(shared), "pod_spec", container="fetch").fields


def test_last_state_of_a_waiting_container() -> None:
    """A death has its code, signal, times, its own container id, and the line that says why it was."""
    text = json.dumps(POD, indent=2)
    death = only(read(text), "container_terminated", exit_code=137)
    assert death.text == "container vllm terminated: reason=OOMKilled exit_code=137"
    assert death.fields == {
        "reason": "OOMKilled", "exit_code": 137, "signal": 9, "started_s": 1795987329.0,
        "finished_s": 1795987448.0, "restart_count": 3, "last_state": True,
    }  # fmt: skip
    assert [(s.form, iso_utc(s.seconds)) for s in death.stamps] == [
        (StampForm.INSTANT, "2026-11-29T21:24:08.000Z")
    ]
    assert death.scope.container_id == CID
    assert death.scope.pod_uid == UID
    assert '"reason": "OOMKilled"' in text.split("\n")[death.locator.line - 1] == death.raw
    plain = text.replace("OOMKilled", "Error")
    told = only(read(plain), "container_terminated", exit_code=137)
    assert '"finishedAt": "2026-11-29T21:24:08Z"' in told.raw, "`Error` says no more than the code: when it was"
    started = [e for e in read(POD) if e.kind == "container_started" and e.scope.container == "vllm"]
    assert [e.fields["attempt"] for e in started] == [3]


def test_last_state_of_a_running_container_is_the_attempt_before() -> None:
    """While attempt 3 runs, the last state is attempt 2 and had another container id."""
    pod = json.loads(json.dumps(POD))
    status = pod["status"]["containerStatuses"][0]
    status["state"] = {"running": {"startedAt": "2026-11-29T21:24:30Z"}}
    del status["lastState"]["terminated"]["containerID"]
    events = read(pod)
    starts = {
        e.stamps[0].seconds: e for e in events if e.kind == "container_started" and not e.fields.get("init")
    }
    attempts = [starts[s].fields["attempt"] for s in sorted(starts) if starts[s].scope.container == "vllm"]
    assert attempts == [2, 3]
    assert only(events, "container_terminated", exit_code=137).scope.container_id == ""
    assert only(events, "container_state", state="running").fields["restart_count"] == 3


def test_waiting_and_states() -> None:
    events = read(POD)
    waiting = only(events, "container_waiting")
    assert waiting.text == "container vllm waiting: CrashLoopBackOff"
    assert waiting.fields == {
        "reason": "CrashLoopBackOff", "message": "back-off 40s restarting", "restart_count": 3
    }  # fmt: skip
    assert {e.text for e in events if e.kind == "container_state"} == {
        "container fetch terminated", "container vllm waiting"
    }  # fmt: skip
    assert only(events, "container_terminated", exit_code=0).fields["init"] is True


def test_zero_times_are_no_times() -> None:
    """A StartError starts in 1970; its message is the runtime's own and is told on the runtime's channel."""
    pod = json.loads(json.dumps(POD))
    pod["status"]["containerStatuses"][0]["lastState"] = {"terminated": {
        "exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z",
        "finishedAt": "2026-11-29T21:24:08Z", "message": "failed to create containerd task: nvml error",
    }}  # fmt: skip
    events = read(pod)
    assert not any(e.kind == "container_started" and e.scope.container == "vllm" for e in events)
    assert "signal" not in only(events, "container_terminated", exit_code=128).fields
    complaint = only(events, "log")
    assert (complaint.channel, complaint.text) == ("runtime", "failed to create containerd task: nvml error")


@pytest.mark.parametrize("reason", ["ContainerStatusUnknown", "RestartingAllContainers"])
def test_made_up_137_has_no_signal(reason: str) -> None:
    pod = json.loads(json.dumps(POD))
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] = reason
    assert "signal" not in only(read(pod), "container_terminated", exit_code=137).fields


def test_termination_message_is_read_as_log() -> None:
    """The tail of the log that the kubelet saves can be matched by signatures, dated by the death."""
    pod = json.loads(json.dumps(POD))
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"] = (
        "ERROR 11-29 21:24:07 [core.py:708] EngineCore failed to start.\nRuntimeError: bad\n"
    )
    told = [e for e in read(pod) if e.fields.get("origin") == "termination_message"]
    assert told[0].channel == "engine"
    assert told[0].text == "EngineCore failed to start."
    assert [iso_utc(s.seconds, 0) for s in told[0].stamps] == ["2026-11-29T21:24:08Z"]
    assert told[0].scope.container == "vllm"


def test_pod_status() -> None:
    """Evicted pods say why and by whom; the disruption dates it."""
    pod = json.loads(json.dumps(POD))
    pod["status"] |= {
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. ",
        "conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
            "lastTransitionTime": "2026-11-29T21:30:00Z",
        }],
    }  # fmt: skip
    status = only(read(pod), "pod_status")
    assert status.text == "pod vllm-llama-0 Failed: Evicted The node was low on resource: memory."
    assert status.fields["disruption_reason"] == "TerminationByKubelet"
    assert [iso_utc(s.seconds, 0) for s in status.stamps] == ["2026-11-29T21:30:00Z"]


EVENT: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Unhealthy", "count": 12,
    "message": "Liveness probe failed: HTTP probe failed with statuscode: 503",
    "firstTimestamp": "2026-11-29T20:43:49Z", "lastTimestamp": "2026-11-29T21:25:17Z", "eventTime": None,
    "involvedObject": {
        "kind": "Pod", "namespace": "inference", "name": "vllm-llama-0", "uid": UID,
        "fieldPath": "spec.containers{vllm}",
    },
    "source": {"component": "kubelet", "host": "gpu-node-7"},
    "metadata": {"name": "x", "creationTimestamp": "2026-11-29T20:43:49Z"},
}  # fmt: skip


def test_event_of_core_v1() -> None:
    event = only(read({"kind": "EventList", "apiVersion": "v1", "items": [EVENT]}), "k8s_event")
    assert event.text == "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 503"
    assert event.scope.to_dict() == {
        "host": "gpu-node-7", "namespace": "inference", "pod": "vllm-llama-0", "pod_uid": UID,
        "container": "vllm",
    }  # fmt: skip
    assert event.fields == {
        "reason": "Unhealthy", "event_type": "Warning", "object_kind": "Pod", "object_name": "vllm-llama-0",
        "component": "kubelet", "count": 12, "first_seen_s": 1795985029.0, "last_seen_s": 1795987517.0,
        "created_s": 1795985029.0,
    }  # fmt: skip
    assert event.level == "WARNING"
    assert '"message"' in event.raw


def test_first_occurrence_of_an_event() -> None:
    """An event that counts twelve occurrences tells the first one as well, at its own time."""
    events = read({"kind": "EventList", "apiVersion": "v1", "items": [EVENT, EVENT | {"count": 1}]})
    first, last, single = events
    assert [event.kind for event in events] == ["k8s_first_seen", "k8s_event", "k8s_event"]
    assert first.stamps[0].seconds == last.fields["first_seen_s"] < last.stamps[0].seconds
    assert (first.text, first.scope, first.locator) == ("first of 12 Unhealthy events", last.scope, last.locator)
    assert single.fields["count"] == 1


def test_event_of_events_k8s_io() -> None:
    """The newer API renames every field; a series dates the last occurrence."""
    event = {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "type": "Warning", "reason": "FailedScheduling",
        "note": "0/4 nodes are available", "regarding": EVENT["involvedObject"] | {"fieldPath": ""},
        "eventTime": "2026-11-29T20:00:00.500000Z", "reportingController": "default-scheduler",
        "series": {"count": 7, "lastObservedTime": "2026-11-29T21:00:00.250000Z"},
        "deprecatedFirstTimestamp": None, "deprecatedSource": {},
    }  # fmt: skip
    told = only(read([event]), "k8s_event")
    assert told.text == "FailedScheduling: 0/4 nodes are available"
    assert told.fields["count"] == 7
    assert told.fields["component"] == "default-scheduler"
    assert told.fields["first_seen_s"] == pytest.approx(1795982400.5)
    assert told.stamps[0].seconds == pytest.approx(1795986000.25)


def test_audit_record_is_no_event() -> None:
    """An audit log calls its records Event, too."""
    audit = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "get"}
    assert read(audit) == ()


def test_items_without_kind() -> None:
    """`--raw` lists and older support bundles drop the kind of items: the list or the shape tells it."""
    pod, event = (
        {k: v for k, v in entry.items() if k not in ("kind", "apiVersion")} for entry in (POD, EVENT)
    )
    raw = read({"kind": "PodList", "apiVersion": "v1", "items": [pod]}, indent=None)
    assert only(raw, "pod_status").locator.line == 1
    shaped = read([pod, event])
    assert only(shaped, "pod_status")
    assert only(shaped, "k8s_event")


def test_watch_stream() -> None:
    """`kubectl get -w --output-watch-events -o json` wraps each object."""
    text = "\n".join(json.dumps({"type": kind, "object": EVENT}) for kind in ("ADDED", "MODIFIED"))
    assert [e.locator.line for e in read(text) if e.kind == "k8s_event"] == [1, 2]


def test_node() -> None:
    """Ready and pressure conditions, GPUs that are not allocatable, and a dated event for what is wrong."""
    node = {
        "kind": "Node", "metadata": {"name": "gpu-node-7"},
        "status": {
            "capacity": {"memory": "528280984Ki", "nvidia.com/gpu": "8", "pods": "110"},
            "allocatable": {"memory": "521989528Ki", "nvidia.com/gpu": "7"},
            "nodeInfo": {"kernelVersion": "6.1.0", "containerRuntimeVersion": "containerd://2.2.0"},
            "conditions": [
                {"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory",
                 "message": "kubelet has insufficient memory available",
                 "lastHeartbeatTime": "2026-11-29T21:27:29Z", "lastTransitionTime": "2026-11-29T20:27:38Z"},
                {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure",
                 "lastHeartbeatTime": "2026-11-29T21:27:29Z", "lastTransitionTime": "2026-08-17T17:27:41Z"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady",
                 "lastHeartbeatTime": "2026-11-29T21:27:29Z", "lastTransitionTime": "2026-08-17T17:27:41Z"},
            ],
        },
    }  # fmt: skip
    events = read(node)
    status = only(events, "node_status")
    assert status.text == "node gpu-node-7 not well: MemoryPressure=True"
    assert (status.fields["capacity_gpus"], status.fields["allocatable_gpus"]) == (8, 7)
    assert status.fields["capacity_memory_bytes"] == 528280984 << 10
    condition = only(events, "node_condition")
    assert condition.text.startswith("node gpu-node-7 MemoryPressure=True: KubeletHasInsufficientMemory")
    assert [iso_utc(s.seconds, 0) for s in condition.stamps] == ["2026-11-29T20:27:38Z"]


def test_workload_and_its_template() -> None:
    """A template's spec has no container in its scope: it must not look like one more container."""
    deployment = {
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {
            "name": "vllm-llama", "namespace": "inference", "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {"deployment.kubernetes.io/revision": "14", "kubernetes.io/change-cause": "up"},
        },
        "spec": {"replicas": 2, "template": {"spec": POD["spec"]}},
        "status": {
            "updatedReplicas": 2, "unavailableReplicas": 2,
            "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}],
        },
    }  # fmt: skip
    events = read(deployment)
    workload = only(events, "workload")
    assert workload.text == "deployment vllm-llama 0/2 available"
    assert workload.fields["revision"] == "14"
    assert workload.fields["conditions"] == {"Available": "False MinimumReplicasUnavailable"}
    spec = only(events, "pod_spec", container="vllm")
    assert spec.scope.to_dict() == {"namespace": "inference"}
    assert spec.fields["workload_name"] == "vllm-llama"
    assert spec.fields["memory_limit_bytes"] == 64 << 30


def test_a_revision_tells_what_it_ran() -> None:
    """A ReplicaSet stands where its name is, up to the last argument, at the time of its rollout."""
    template = {"spec": {"containers": POD["spec"]["containers"]}}
    meta = {
        "name": "vllm-llama-6d5b9c7f4b", "namespace": "inference", "creationTimestamp": "2026-11-29T19:00:00Z",
        "annotations": {"deployment.kubernetes.io/revision": "14"}, "ownerReferences": [{"name": "vllm-llama"}],
    }
    text = json.dumps({"kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 1, "template": template}}, indent=2)
    (event,) = read(text)
    assert (event.kind, event.fields["revision"], event.fields["owner"]) == ("workload", "14", "vllm-llama")
    assert iso_utc(event.stamps[0].seconds) == "2026-11-29T19:00:00.000Z"
    assert event.fields["containers"]["vllm"]["args"] == ("--model", "Qwen/Qwen3-8B")
    assert event.fields["containers"]["vllm"]["gpus"] == 4
    lines = text.split("\n")
    assert "vllm-llama-6d5b9c7f4b" in lines[event.locator.line - 1]
    assert "Qwen/Qwen3-8B" in lines[event.locator.line_end - 1]


def test_when_a_pod_was_created() -> None:
    pod = POD | {"metadata": POD["metadata"] | {"creationTimestamp": "2026-11-29T19:59:58Z"}}
    event = only(read(pod), "pod_created")
    assert (event.text, iso_utc(event.stamps[0].seconds)) == ("pod vllm-llama-0 created", "2026-11-29T19:59:58.000Z")
    assert "creationTimestamp" in event.raw


def test_cut_list_keeps_whole_items() -> None:
    """Of a cut list the whole items are kept; facts of the torn one are marked incomplete."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, POD]}, indent=2)
    cut = text[: text.rindex('"OOMKilled"')]
    parsed = k8s_objects.read(cut, "pods.json")
    complete = [e.complete for e in parsed.events if e.kind == "pod_spec" and e.scope.container == "vllm"]
    assert complete == [True, False]
    assert only([e for e in parsed.events if e.complete], "container_terminated", exit_code=137)
    (diagnostic,) = parsed.diagnostics
    assert diagnostic.line == cut.count("\n") + 1


def test_cut_yaml_list_is_noticed() -> None:
    """Cut YAML is valid YAML; a list without its kind, which comes last, gives it away."""
    text = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: gpu-node-7\n"
    parsed = k8s_objects.read(text, "nodes.yaml")
    assert len(parsed.diagnostics) == 1
    assert not parsed.events[0].complete
    assert k8s_objects.read(text + "kind: List\n", "nodes.yaml").diagnostics == ()


def test_yaml_documents_of_several_kinds() -> None:
    """Unknown kinds are passed over; the kubelet's configuration tells how it kills."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n---\n"
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "singleProcessOOMKill: true\nevictionHard:\n  memory.available: 500Mi\n"
    )
    (event,) = k8s_objects.read(text, "x.yaml").events
    assert event.fields["single_process_oom_kill"] is True
    assert event.locator.line == 8


DUMP = """\
{
    "kind": "PodList",
    "apiVersion": "v1",
    "items": []
}
==== START logs for container vllm of pod inference/vllm-llama-0 ====
INFO 11-29 21:21:29 [api_server.py:1] {not json
==== END logs for container vllm of pod inference/vllm-llama-0 ====
{
    "kind": "NodeList",
    "apiVersion": "v1",
    "items": [
        {"kind": "Node", "metadata": {"name": "gpu-node-7"}}
    ]
}
"""


def test_cluster_dump_on_standard_output() -> None:
    """Lists and logs are mixed: each is read as what it is, with the true line numbers."""
    parsed = k8s_objects.read(DUMP, "dump.txt")
    log = only(parsed.events, "log")
    assert (log.locator.line, log.channel, log.scope.pod, log.scope.container) == (
        7, "engine", "vllm-llama-0", "vllm"
    )  # fmt: skip
    assert only(parsed.events, "node_status").locator.line == 13
    assert parsed.diagnostics == ()


@pytest.mark.parametrize(("text", "sure"), [
    (json.dumps(POD), True),
    (json.dumps([{k: v for k, v in POD.items() if k != "kind"}]), True),
    ("$ kubectl get pod -o yaml\napiVersion: v1\nkind: Pod\nmetadata: {}\n", True),
    ("---\napiVersion: v1\nitems: []\nkind: PodList\n", True),
    ('{"levelname": "ERROR", "message": "apiVersion kind Pod"}\n', False),
    ('{"architectures": ["X"], "model_type": "llama"}', False),
    ("kind of blue: a record\nversion: 1\n", False),
    ("INFO 11-29 21:21:29 [api_server.py:1] apiVersion: v1\n", False),
])  # fmt: skip
def test_sniff(text: str, sure: bool) -> None:
    """API objects are recognised by their content only."""
    assert (k8s_objects.FORMAT.sniff(make_head("x", text.encode(), True)) >= 85) is sure


def test_hostile_types_do_not_raise() -> None:
    """Every value may be of any type."""
    for broken in (None, 5, "x", [], [None], {"x": None}):
        for key in ("metadata", "spec", "status"):
            read(POD | {key: broken})
            read(EVENT | {"involvedObject": broken, "reason": broken})


STATUS = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.", "qosClass": "Burstable"}


@pytest.mark.parametrize("document", [{"status": STATUS}, STATUS])
def test_the_status_of_an_unnamed_pod(document: dict[str, object]) -> None:
    """People paste the part that seems to matter."""
    text = json.dumps(document, indent=2)
    assert k8s_objects.FORMAT.sniff(make_head("status.json", text.encode(), True)) >= 85
    (status,) = k8s_objects.read(text, "status.json").events
    assert (status.kind, status.scope.pod, status.fields["reason"]) == ("pod_status", "", "Evicted")
