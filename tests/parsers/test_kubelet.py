"""kubelet's messages in a journal, in a bare file, and as JSON."""

from __future__ import annotations

import time

import pytest

from forensics.model import Event
from forensics.parsers import kubelet
from forensics.parsers.embedded import read_text

UID = "7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"
CID = "9b1f5d3c" * 8
JOURNAL = "Nov 29 21:25:17 gpu-node-7 kubelet[1184]: "
KLOG = "I1129 21:25:17.123456    1184 some_file.go:107] "
POD = f'pod="inference/vllm-llama-0" podUID="{UID}" containerName="vllm"'


def read(*messages: str, header: str = JOURNAL + KLOG) -> tuple[Event, ...]:
    return read_text("".join(f"{header}{message}\n" for message in messages), "kubelet.log", "kubelet").events


def test_container_finished() -> None:
    """The only place that keeps the exit code of every restart."""
    (event,) = read(f'"Generic (PLEG): container finished" podID="{UID}" containerID="{CID}" exitCode=137')
    assert event.kind == "container_terminated"
    assert event.text == f"container {CID[:12]} terminated: reason= exit_code=137"
    assert (event.fields["exit_code"], event.fields["signal"]) == (137, 9)
    assert (event.scope.pod_uid, event.scope.container_id, event.scope.host) == (UID, CID, "gpu-node-7")
    assert event.channel == "kubelet"
    assert len(event.stamps) == 2


@pytest.mark.parametrize("event", [
    f'event={{"ID":"{UID}","Type":"ContainerDied","Data":"{CID}"}}',
    f"event=&{{ID:{UID} Type:ContainerDied Data:{CID}}}",
])  # fmt: skip
def test_container_died(event: str) -> None:
    """JSON since 1.25, a Go struct before."""
    (told,) = read(f'"SyncLoop (PLEG): event for pod" pod="inference/vllm-llama-0" {event}')
    assert (told.kind, told.text) == ("container_died", f"container {CID[:12]} died")
    assert (told.scope.namespace, told.scope.pod, told.scope.pod_uid) == ("inference", "vllm-llama-0", UID)


def test_container_started_and_other_lifecycle_events() -> None:
    started, removed = read(*(
        f'"SyncLoop (PLEG): event for pod" pod="a/b" event={{"ID":"{UID}","Type":"{kind}","Data":"{CID}"}}'
        for kind in ("ContainerStarted", "ContainerRemoved")
    ))  # fmt: skip
    assert (started.kind, removed.kind) == ("container_started", "log")


def test_grace_period() -> None:
    """The message keeps its words, for signatures."""
    text = f'"Killing container with a grace period" {POD} containerID="containerd://{CID}" gracePeriod=30'
    (event,) = read(text)
    assert (event.kind, event.text, event.fields["grace_s"]) == ("container_kill", text, 30)
    assert (event.scope.container, event.scope.container_id) == ("vllm", CID)


def test_probe_failed() -> None:
    (event,) = read(
        f'"Probe failed" probeType="Startup" {POD} probeResult="failure" '
        'output="Get \\"http://10.244.3.41:8000/health\\": dial tcp: connect: connection refused"'
    )
    assert event.kind == "probe_failed"
    assert event.fields["probe"] == "startup"
    assert event.fields["output"] == (
        'Get "http://10.244.3.41:8000/health": dial tcp: connect: connection refused'
    )


@pytest.mark.parametrize("header", [JOURNAL, ""], ids=["journal", "file"])
def test_output_of_several_lines(header: str) -> None:
    """Each line of the output is an entry of its own in a journal; other speakers may stand between."""
    text = (
        f'{header}{KLOG}"Probe failed" probeType="Liveness" {POD} output=<\n'
        f"{header}\tcurl: (28) timed out\n"
        f"{header}\tsecond\n"
        f"{header} >\n"
        f'{header}{KLOG}"Other" key="value"\n'
    )
    probe, other = read_text(text, "kubelet.log", "kubelet").events
    assert probe.fields["output"] == "curl: (28) timed out\nsecond"
    assert (probe.locator.line, probe.locator.line_end, probe.complete) == (1, 4, True)
    assert other.fields["key"] == "value"


def test_output_without_end() -> None:
    """A record that is cut off keeps what there is and says so."""
    text = f'{KLOG}"Probe failed" probeType="Liveness" {POD} output=<\n\tcurl: (28) timed out\n'
    text += f'{KLOG}"Other" a="b"\n'
    probe, other = read_text(text, "kubelet.log", "kubelet").events
    assert probe.fields["output"] == "curl: (28) timed out"
    assert not probe.complete
    assert other.fields["message"] == "Other"


def test_json_logging() -> None:
    """The same message as JSON has the same facts."""
    (event,) = read_text(
        '{"ts":1795987517123.4,"caller":"prober/prober.go:107","msg":"Probe failed","v":1,'
        '"probeType":"Readiness",'
        f'"pod":{{"name":"vllm-llama-0","namespace":"inference"}},"podUID":"{UID}","containerName":"vllm",'
        '"probeResult":"failure","output":"HTTP probe failed with statuscode: 503"}\n',
        "kubelet.json", "kubelet",
    ).events  # fmt: skip
    assert event.kind == "probe_failed"
    assert event.fields["output"] == "HTTP probe failed with statuscode: 503"
    assert (event.scope.namespace, event.scope.pod) == ("inference", "vllm-llama-0")


def test_other_messages_keep_their_keys() -> None:
    """Messages without a kind of their own are logs with their owner and their keys."""
    text = (
        '"Message for Container of pod" containerName="vllm" '
        f'containerStatusID={{"Type":"containerd","ID":"{CID}"}} pod="inference/vllm-llama-0" '
        'containerMessage="Container vllm failed startup probe, will be restarted"'
    )
    (event,) = read(text)
    assert (event.kind, event.text) == ("log", text)
    assert event.fields["containerMessage"] == "Container vllm failed startup probe, will be restarted"
    assert event.scope.container_id == CID


def test_k3s_runs_the_kubelet_in_its_own_unit() -> None:
    """k3s and RKE2 journals name themselves; the klog header says who speaks."""
    header = f"Nov 29 21:25:17 gpu-node-7 k3s[900]: {KLOG}"
    (event,) = read(
        f'"Generic (PLEG): container finished" podID="{UID}" containerID="{CID}" exitCode=1', header=header
    )
    assert (event.channel, event.kind) == ("kubelet", "container_terminated")


@pytest.mark.parametrize("value", ["{" * 50_000, '{"a":' * 10_000, '"' + '\\"' * 20_000, "<\nx" * 10_000])
def test_hostile_values_take_no_time(value: str) -> None:
    """Unbalanced values end, quickly."""
    began = time.monotonic()
    kubelet.pairs('"message"' + f" key={value}" * 3)
    assert time.monotonic() - began < 1
