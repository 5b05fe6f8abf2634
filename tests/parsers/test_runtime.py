"""containerd, CRI-O, conmon and dockerd: who ended how."""

from __future__ import annotations

import pytest

from forensics.model import Event
from forensics.parsers.embedded import read_text

CID, OTHER, SANDBOX = ("9b1f5d3c" * 8, "0a1b2c3d" * 8, "feedbeef" * 8)
UID = "7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"


def read(*messages: str, quote: bool = True) -> list[Event]:
    lines = []
    for message in messages:
        escaped = message.replace('"', '\\"') if quote else message
        lines.append(f'time="2026-11-29T21:25:17.123456789Z" level=info msg="{escaped}"\n')
    return list(read_text("".join(lines), "containerd.log", "runtime").events)


OLD_CREATION = (
    f'RunPodSandbox for &PodSandboxMetadata{{Name:vllm-llama-0,Uid:{UID},Namespace:inference,Attempt:0,}} '
    f'returns sandbox id "{SANDBOX}"',
    f'CreateContainer within sandbox "{SANDBOX}" for &ContainerMetadata{{Name:vllm,Attempt:3,}} '
    f'returns container id "{CID}"',
)  # fmt: skip
NEW_CREATION = (
    f'RunPodSandbox for name:"vllm-llama-0"  uid:"{UID}"  namespace:"inference" '
    f'returns sandbox id "{SANDBOX}"',
    f'CreateContainer within sandbox "{SANDBOX}" for name:"vllm"  attempt:3 returns container id "{CID}"',
)


@pytest.mark.parametrize("creation", [OLD_CREATION, NEW_CREATION], ids=["gogo", "protobuf"])
def test_creation_names_the_container(creation: tuple[str, ...]) -> None:
    """Later lines carry only the id; the file itself tells name, pod and attempt."""
    *_, started, killed = read(
        *creation, f'StartContainer for "{CID}" returns successfully', f'Kill container "{CID}"'
    )
    assert (started.kind, started.text) == ("container_started", "container vllm started")
    assert started.fields["attempt"] == 3
    for event in (started, killed):
        assert event.scope.to_dict() == {
            "namespace": "inference", "pod": "vllm-llama-0", "pod_uid": UID, "container": "vllm",
            "container_id": CID,
        }  # fmt: skip


EXITS = {
    "1.7": f'received exit event container_id:"{CID}"  id:"{CID}"  pid:4711  exit_status:137  '
           'exited_at:{seconds:1795987448  nanos:500000000}',
    "one blank": f'received exit event container_id:"{CID}" id:"{CID}" pid:4711 exit_status:137 '
                 'exited_at:{seconds:1795987448 nanos:500000000}',
    "2.2": f'received container exit event container_id:"{CID}"  id:"{CID}"  pid:4711  exit_status:137  '
           'exited_at:{seconds:1795987448  nanos:500000000}',
    "1.6": f'received exit event &TaskExit{{ContainerID:{CID},ID:{CID},Pid:4711,ExitStatus:137,'
           'ExitedAt:2026-11-29 21:24:08.5 +0000 UTC,XXX_unrecognized:[],}',
}  # fmt: skip


@pytest.mark.parametrize("text", EXITS.values(), ids=EXITS.keys())
def test_exit_event(text: str) -> None:
    """All versions: code, signal, and the runtime's own time of the end."""
    (event,) = read(text)
    assert event.kind == "container_terminated"
    assert event.text == f"container {CID[:12]} terminated: reason= exit_code=137"
    assert event.fields == {"exit_code": 137, "signal": 9, "finished_s": 1795987448.5}
    assert event.channel == "runtime"


def test_exit_status_zero_is_left_out_by_protobuf() -> None:
    (event,) = read(
        f'received exit event container_id:"{CID}"  id:"{CID}"  pid:4711  exited_at:{{seconds:1}}'
    )
    assert event.fields["exit_code"] == 0


def test_exec_and_sandbox_exits_are_no_deaths() -> None:
    """A probe's command and a pod's sandbox end, too; so does the retried copy of an exit."""
    events = read(
        *OLD_CREATION,
        f'received exit event container_id:"{CID}"  id:"{OTHER}"  pid:4712  exit_status:1',
        f'received exit event container_id:"{SANDBOX}"  id:"{SANDBOX}"  pid:1  exit_status:137',
        f'received sandbox container exit event sandbox_id:"{SANDBOX}" exit_status:137',
        f'TaskExit event container_id:"{CID}"  id:"{CID}"  pid:4711  exit_status:137',
    )
    assert {event.kind for event in events} == {"log"}
    assert events[2].scope.container == "vllm"
    assert events[3].scope.pod == "vllm-llama-0"


@pytest.mark.parametrize("text", [
    f'TaskOOM event container_id:"{CID}"', f"TaskOOM event &TaskOOM{{ContainerID:{CID},XXX_unrecognized:[],}}"
])  # fmt: skip
def test_oom_event(text: str) -> None:
    (event,) = read(text)
    assert event.scope.container_id == CID
    assert event.text.startswith("TaskOOM event ")


def test_stop_and_kill() -> None:
    """StopContainer begins the grace period, Kill container ends it."""
    stop, kill = read(f'StopContainer for "{CID}" with timeout 30 (s)', f'Kill container "{CID}"')
    assert (stop.kind, stop.fields["grace_s"], stop.fields["signal"]) == ("container_kill", 30, 15)
    assert (kill.kind, kill.fields["signal"]) == ("container_kill", 9)


def test_crio() -> None:
    """CRI-O names the container in its own lines."""
    events = read(
        f"Created container {CID}: inference/vllm-llama-0/vllm",
        f'Started container" PID=4711 containerID={CID} description=inference/vllm-llama-0/vllm',
        f"Stopping container: {CID} (timeout: 30s)",
        f"Stopping container {CID} with stop signal(SIGTERM) timed out. Killing...",
        quote=False,
    )
    assert [e.kind for e in events] == ["log", "container_started", "container_kill", "container_kill"]
    assert {(e.scope.pod, e.scope.container, e.scope.container_id) for e in events} == {
        ("vllm-llama-0", "vllm", CID)
    }
    assert [e.fields.get("signal") for e in events] == [None, None, 15, 9]


def test_dockerd_uses_force() -> None:
    (event,) = read(f"Container {CID[:12]} failed to exit within 10 seconds of signal 15 - using the force")
    assert (event.kind, event.fields["signal"]) == ("container_kill", 9)


def test_podman_writes_its_events_into_the_journal() -> None:
    """`podman[pid]: <stamp with zone and m=> container …` is Podman's own word; what a container prints is not."""
    head = "May 12 10:00:00 gpu-node-7 podman[4711]: "
    lines = (
        f"{head}2026-05-12 10:00:00.217881213 +0200 CEST m=+0.081 container health_status {CID} (image=vllm/vllm-openai,"
        " name=chat, health_status=unhealthy, health_failing_streak=3, health_log=)\n",
        f"{head}2026-05-12 10:00:01.004 +0200 CEST m=+0.1 container kill {CID} (image=vllm/vllm-openai, name=chat)\n",
        f"{head}the prompt says: container kill {CID} (image=x, name=chat)\n",
    )
    events = read_text("".join(lines), "journal.txt", "plain").events
    told = [event for event in events if event.channel == "runtime"]
    assert [event.kind for event in told] == ["log", "container_kill"]
    assert {(event.scope.container, event.scope.host) for event in told} == {("chat", "gpu-node-7")}
    assert told[0].stamps[-1].seconds == 1_778_572_800.217881213
