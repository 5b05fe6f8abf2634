"""docker events, inspect and ps; crictl inspect and ps."""

from __future__ import annotations

import json

import pytest

from forensics.model import StampForm
from forensics.parsers import docker, docker_templates
from forensics.parsers.records import unwrap
from forensics.sources import make_head
from forensics.stamps import iso_utc

CID = "b7e2" * 16
ATTRIBUTES = "com.docker.compose.project=lab, com.docker.compose.service=vllm, image=vllm/vllm-openai:v0.11.0, name=lab-vllm-1"
EVENTS = f"""\
2025-11-27T14:15:46.500000000+11:00 container oom {CID} ({ATTRIBUTES})
2025-11-27T14:15:46.607000000+11:00 container die {CID} (execDuration=36, exitCode=137, {ATTRIBUTES})
2025-11-27T14:15:46.700000000+11:00 network disconnect 0123 (name=lab)
2025-11-27T14:15:46.800000000+11:00 container exec_die {CID} (exitCode=1, {ATTRIBUTES})
2025-11-27T14:15:46.907000000+11:00 container start {CID} ({ATTRIBUTES})
2025-11-27T14:16:00.000000000+11:00 container health_status: unhealthy {CID} ({ATTRIBUTES})
2025-11-27T14:16:10.000000000+11:00 container kill {CID} (signal=15, {ATTRIBUTES})
"""


def test_a_task_of_a_swarm_is_its_service() -> None:
    """Each restart is a new container; the logs of `docker service logs` name the service, and so do its events."""
    attributes = {"exitCode": "2", "image": "vllm/vllm-openai:v0.14.0", "name": "lab_vllm.1.9ee3dc08bbqq"}
    entry = {"Type": "container", "Action": "die", "Actor": {"ID": CID, "Attributes": attributes}, "time": 1771363800}
    (died,) = docker.read_events(json.dumps(entry) + "\n", "events.json").events
    assert (died.scope.container, died.fields["image"]) == ("lab_vllm", "vllm/vllm-openai:v0.14.0")
    line = unwrap("lab_vllm.1.9ee3dc08bbqq@gpu-node-7    | vllm serve: error: unrecognized arguments: --x")
    assert (line.scope.container, line.scope.host) == ("lab_vllm", "gpu-node-7")
    assert line.text == "vllm serve: error: unrecognized arguments: --x"


def test_events_text() -> None:
    """Deaths with code and run time; executions of health checks and networks are left out."""
    oom, die, start, health, kill = docker.read_events(EVENTS, "docker-events.txt").events
    assert oom.text == f"container oom {CID} ({ATTRIBUTES})"
    assert (die.kind, die.text) == (
        "container_terminated",
        "container vllm terminated: reason= exit_code=137",
    )
    assert die.fields["finished_s"] - die.fields["started_s"] == 36
    assert [(s.form, iso_utc(s.seconds)) for s in die.stamps] == [
        (StampForm.INSTANT, "2025-11-27T03:15:46.607Z")
    ]
    assert die.scope.to_dict() == {"container": "vllm", "container_id": CID}
    assert die.raw == EVENTS.split("\n")[1]
    assert start.kind == "container_started"
    assert health.text == f"container health_status: unhealthy {CID} ({ATTRIBUTES})"
    assert (kill.kind, kill.fields["signal"]) == ("container_kill", 15)
    assert kill.text == f"container kill {CID} (signal=15, {ATTRIBUTES})"


KILLS = {
    "docker": {"Type": "container", "Action": "kill", "Actor": {"ID": CID, "Attributes": {"signal": "9", "name": "lab-vllm-1"}},
               "time": 1764213346},
    "compose": {"time": "2025-11-27T03:15:46Z", "type": "container", "service": "lab-vllm-1", "id": CID, "action": "kill",
                "attributes": {"signal": "SIGKILL"}},
    "podman": {"ID": CID, "Name": "lab-vllm-1", "Status": "kill", "Time": "2025-11-27T03:15:46Z", "Type": "container",
               "Attributes": {"signal": "KILL"}},
}  # fmt: skip


@pytest.mark.parametrize("tool", KILLS)
@pytest.mark.parametrize("indent", [None, 2])
def test_kill_of_every_tool(tool: str, indent: int | None) -> None:
    """docker, docker compose and podman name things differently; one object a line, or a pretty document."""
    text = json.dumps(KILLS[tool], indent=indent) + "\n"
    (kill,) = docker.read_events(text, "e.json").events
    assert (kill.kind, kill.fields["signal"], kill.scope.container_id) == ("container_kill", 9, CID)
    assert kill.scope.container == "lab-vllm-1"
    assert kill.text.startswith(f"container kill {CID} (")
    assert (kill.stamps[0].form, kill.stamps[0].seconds) == (StampForm.INSTANT, 1764213346.0)


def test_events_without_a_zone() -> None:
    """`docker compose events` prints local time."""
    (kill,) = docker.read_events(f"2025-11-27 14:16:10.123456 container kill {CID} (name=vllm-1, signal=9)\n", "e").events
    assert (kill.fields["signal"], kill.stamps[0].form) == (9, StampForm.LOCAL)


def test_events_json() -> None:
    """`docker events --format '{{json .}}'` says the same."""
    line = {
        "status": "die", "id": CID, "Type": "container", "Action": "die",
        "Actor": {"ID": CID, "Attributes": {"exitCode": "137", "execDuration": "36", "name": "lab-vllm-1"}},
        "time": 1764213346, "timeNano": 1764213346607000000,
    }  # fmt: skip
    text = json.dumps(line, separators=(",", ":")) + "\n"
    (die,) = docker.read_events(text, "e.json").events
    assert die.text == "container lab-vllm-1 terminated: reason= exit_code=137"
    assert die.stamps[0].seconds == pytest.approx(1764213346.607)
    assert docker.EVENTS.sniff(make_head("e.json", text.encode(), True)) >= 90


def inspect(**state: object) -> str:
    return json.dumps([{
        "Id": CID, "Name": "/lab-vllm-1", "Path": "vllm", "Args": ["serve", "--model", "Qwen/Qwen3-8B"],
        "RestartCount": 19,
        "State": {"Status": "exited", "Running": False, "OOMKilled": True, "ExitCode": 137,
                  "StartedAt": "2025-11-27T03:27:32.5Z", "FinishedAt": "2025-11-27T03:30:00Z"} | state,
        "HostConfig": {"Memory": 68719476736, "ShmSize": 67108864, "IpcMode": "private"},
        "Config": {"Image": "vllm/vllm-openai:v0.11.0", "Env": ["HF_HOME=/models"], "Labels": {}},
    }], indent=4)  # fmt: skip


def test_inspect_of_a_dead_container() -> None:
    text = inspect()
    state, ended, started = docker.read_inspect(text, "inspect.json").events
    assert state.kind == "docker_state"
    expected = {
        "status": "exited", "exit_code": 137, "oom_killed": True, "restart_count": 19,
        "memory_limit_bytes": 64 << 30, "shm_size_bytes": 64 << 20,
        "args": ("vllm", "serve", "--model", "Qwen/Qwen3-8B"), "env": {"HF_HOME": "/models"},
    }  # fmt: skip
    assert expected.items() <= state.fields.items()
    assert '"OOMKilled": true' in state.raw == ended.raw, "the line that says why"
    assert ended.text == "container lab-vllm-1 terminated: reason=OOMKilled exit_code=137"
    assert iso_utc(started.stamps[0].seconds) == "2025-11-27T03:27:32.500Z"


def test_inspect_of_a_container_that_ended_by_itself() -> None:
    """Nothing says why: the status and the time of the end are what to look at."""
    state, _, ended = docker.read_inspect(inspect(OOMKilled=False, ExitCode=1), "inspect.json").events
    assert '"Status"' in state.raw
    assert '"FinishedAt"' in ended.raw


def test_inspect_of_a_running_container() -> None:
    """Its last end is that of the run before, whose code docker has forgotten."""
    text = inspect(
        Status="running", Running=True, ExitCode=0, OOMKilled=False, FinishedAt="2025-11-27T03:20:00Z"
    )
    state, _, ended = docker.read_inspect(text, "i").events
    assert "exit_code" not in state.fields
    assert (ended.kind, ended.fields["last_state"]) == ("container_started", True) or ended.fields[
        "last_state"
    ]
    assert "exit_code" not in ended.fields


def test_never_started_container() -> None:
    """Go's zero time is no time."""
    zero = "0001-01-01T00:00:00Z"
    (state,) = docker.read_inspect(inspect(Status="created", StartedAt=zero, FinishedAt=zero), "i").events
    assert state.stamps == ()


def test_crictl_inspect() -> None:
    text = json.dumps({
        "status": {
            "id": CID, "metadata": {"attempt": 2, "name": "vllm"}, "state": "CONTAINER_EXITED",
            "startedAt": "2026-11-29T21:22:09.5Z", "finishedAt": "2026-11-29T21:24:08Z", "exitCode": 137,
            "reason": "OOMKilled",
            "labels": {"io.kubernetes.pod.name": "vllm-llama-0", "io.kubernetes.pod.namespace": "inference"},
        },
        "info": {"pid": 0},
    })  # fmt: skip
    assert docker.INSPECT.sniff(make_head("x", text.encode(), True)) >= 90
    state, _, ended = docker.read_inspect(text, "i").events
    assert state.fields == {"state": "exited", "restart_count": 2}
    assert ended.text == "container vllm terminated: reason=OOMKilled exit_code=137"
    assert ended.scope.pod == "vllm-llama-0"


def test_docker_ps() -> None:
    text = (
        "CONTAINER ID   IMAGE       COMMAND        CREATED       STATUS                       PORTS     NAMES\n"
        'b7e2b7e2b7e2   vllm:0.11   "vllm serve"   2 days ago    Exited (137) 3 minutes ago             lab-vllm-1\n'
        'c7e2b7e2b7e2   nginx       "/entry"       2 days ago    Up About an hour (unhealthy)           lab-gw-1\n'
    )
    assert docker.PS.sniff(make_head("ps", text.encode(), True)) >= 90
    dead, alive = docker.read_ps(text, "ps").events
    assert (dead.fields["status"], dead.fields["exit_code"], dead.scope.container) == (
        "exited",
        137,
        "lab-vllm-1",
    )
    assert [(s.form, s.seconds, s.resolution_s) for s in dead.stamps] == [(StampForm.AGE, 210.0, 60.0)]
    assert (alive.fields["status"], alive.fields["health"]) == ("running", "unhealthy")


def test_crictl_ps() -> None:
    text = (
        "CONTAINER       IMAGE    CREATED         STATE     NAME   ATTEMPT   POD ID          POD\n"
        "b7e2b7e2b7e2b   sha256   2 minutes ago   Exited    vllm   3         0a1b2c3d0a1b2   vllm-llama-0\n"
    )
    (row,) = docker.read_ps(text, "ps").events
    assert row.fields == {"state": "exited", "restart_count": 3}
    assert (row.scope.pod, row.scope.container) == ("vllm-llama-0", "vllm")


@pytest.mark.parametrize(("text", "shown", "width"), [
    ("3 minutes ago", 210.0, 60.0), ("About a minute ago", 90.0, 60.0), ("About an hour ago", 5400.0, 3600.0),
    ("Less than a second ago", 0.5, 1.0), ("2 weeks ago", 2.5 * 7 * 86400, 7 * 86400.0),
])  # fmt: skip
def test_ago(text: str, shown: float, width: float) -> None:
    stamp = docker.ago(text)
    assert stamp is not None
    assert (stamp.seconds, stamp.resolution_s) == (shown, width)


def test_sniffers_leave_logs_alone() -> None:
    """Logs with stamps in front are no docker events, JSON lines no inspect output."""
    log = b"2025-11-27T14:15:46.607000000Z container die is what I said\n" * 3 + b"x\n" * 10
    assert docker.EVENTS.sniff(make_head("x", log, True)) == 0
    assert docker.INSPECT.sniff(make_head("x", b'{"State": "ok", "ExitCode": 1}', True)) == 0


def test_the_log_of_a_health_check() -> None:
    """`docker inspect --format '{{json .State.Health}}'`: each failure at its own time, successes left out."""
    log = [
        {"Start": "2026-05-12T08:00:00Z", "End": "2026-05-12T08:00:01Z", "ExitCode": 0, "Output": "ok"},
        {"Start": "2026-05-12T08:00:30Z", "End": "2026-05-12T08:00:35Z", "ExitCode": -1,
         "Output": "Health check exceeded timeout (5s)"},
    ]  # fmt: skip
    text = json.dumps({"Status": "unhealthy", "FailingStreak": 1, "Log": log}, indent=1)
    assert docker.INSPECT.sniff(make_head("health.json", text.encode(), True)) > 90
    (failed,) = docker.read_inspect(text, "health.json").events
    assert (failed.kind, failed.channel) == ("probe_failed", "runtime")
    assert failed.text == "health check failed: Health check exceeded timeout (5s)"
    assert iso_utc(failed.stamps[0].seconds) == "2026-05-12T08:00:35.000Z"


def test_a_state_without_its_container() -> None:
    """`docker inspect -f '{{json .State}}'`: exit and times, and no name."""
    text = json.dumps({
        "Status": "exited", "Running": False, "OOMKilled": True, "Pid": 0, "ExitCode": 137, "Error": "",
        "StartedAt": "2025-11-27T02:00:00Z", "FinishedAt": "2025-11-27T03:15:46Z",
    }, indent=1)  # fmt: skip
    assert docker.INSPECT.sniff(make_head("state.json", text.encode(), True)) > 90
    events = {event.kind: event for event in docker.read_inspect(text, "state.json").events}
    assert events["container_terminated"].fields["exit_code"] == 137
    assert events["container_terminated"].fields["reason"] == "OOMKilled"
    assert events["docker_state"].scope.to_dict() == {}


@pytest.mark.parametrize("columns", [("NAMES", "STATUS"), ("CONTAINER ID", "STATUS", "NAMES")])
def test_ps_with_columns_of_the_readers_choice(columns: tuple[str, ...]) -> None:
    cells = {"NAMES": "chat", "STATUS": "Exited (139) 4 minutes ago", "CONTAINER ID": "1f252e2b3c70"}
    text = "   ".join(name.ljust(27) for name in columns) + "\n" + "   ".join(cells[name].ljust(27) for name in columns)
    assert docker.PS.sniff(make_head("ps.txt", text.encode(), True)) > 90
    (row,) = docker.read_ps(text, "ps.txt").events
    assert (row.scope.container, row.fields["exit_code"]) == ("chat", 139)
    assert row.scope.container_id == (cells["CONTAINER ID"] if "CONTAINER ID" in columns else "")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('a1b2c3   vllm:0.15   "vllm serve"   43 minutes ago Up 43 minutes (healthy)  0.0.0.0:80->80/tcp   chat', ("running", None)),
        ('a1b2c3   vllm:0.15   "vllm serve"   2 days ago Exited (137) 3 minutes ago  chat', ("exited", 137)),
        ('a1b2c3   vllm:0.15   "vllm serve"   2 days ago   Restarting (1) 5 seconds ago  chat', ("restarting", 1)),
        ('a1b2c3 vllm:0.15 "vllm serve" 2 days ago Up 2 days 0.0.0.0:80->80/tcp chat', None),
    ],
)  # fmt: skip
def test_docker_ps_without_its_columns(row: str, told: tuple[str, int | None] | None) -> None:
    """Typed off or pasted through a chat, the columns of a table do not line up; who runs did not end."""
    header = "CONTAINER ID   IMAGE       COMMAND        CREATED        STATUS                  PORTS     NAMES\n"
    read = docker.read_ps(header + row + "\n", "ps").events
    assert [(e.fields["status"], e.fields.get("exit_code"), e.scope.container) for e in read] == (
        [(*told, "chat")] if told else []
    )


@pytest.mark.parametrize("alone", [True, False], ids=["a piece by itself", "in the whole"])
def test_the_health_check_of_a_container(alone: bool) -> None:
    """`Config.Healthcheck` is in nanoseconds, and what is not set has docker's defaults; `NONE` is none."""
    check = {"Test": ["CMD", "curl", "-f", "localhost:8000/health"], "StartPeriod": 90_000_000_000, "Retries": 4}
    check |= {"Interval": 20_000_000_000}

    def fields_of(check: dict[str, object]) -> list[dict[str, object]]:
        whole = {"Id": CID, "Name": "/chat", "State": {"Status": "running", "Running": True}, "Config": {"Healthcheck": check}}
        events = docker.read_inspect(json.dumps(check if alone else [whole]), "inspect.json").events
        return [{k: v for k, v in e.fields.items() if k.startswith("health_")} for e in events if e.kind == "pod_spec"]

    told = {"health_delay_s": 90.0, "health_period_s": 20.0, "health_timeout_s": 30.0, "health_failure": 4}
    assert fields_of(check) == [told]
    assert fields_of({"Test": ["NONE"], "Interval": 0}) == []


@pytest.mark.parametrize("row", ["false 1 0", "false 137 8589934592"])
def test_values_that_a_template_cuts_out(row: str) -> None:
    """What the values are, only the command above them says."""
    command = "$ sudo docker inspect --format '{{.State.OOMKilled}} {{ .State.ExitCode }} {{.HostConfig.Memory}}' chat-llm"
    text = f"{command}\n{row}\n"
    assert docker_templates.FORMAT.sniff(make_head("state.txt", text.encode(), True)) >= 90
    (state,) = docker_templates.read(text, "state.txt").events
    killed, code, memory = row.split()
    assert (state.kind, state.locator.line, state.scope.container) == ("docker_state", 2, "chat-llm")
    assert (state.fields["oom_killed"], state.fields["exit_code"]) == (killed == "true", int(code))
    assert state.fields.get("memory_unlimited") is (True if memory == "0" else None)
    assert state.fields.get("memory_limit_bytes") == (int(memory) or None)


@pytest.mark.parametrize(
    "text",
    [
        "$ docker inspect -f '{{range .Mounts}}{{.Source}} {{end}}' chat-llm\n/srv/models\n",
        "$ docker inspect -f '{{.State.ExitCode}}' chat-llm\n0\n",
        "$ docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' chat-llm\nError: No such object: chat-llm\n",
        "$ docker inspect -f '{{.Config.Image}}' chat-llm\nvllm/vllm-openai:v0.11.0\n",
    ],
    ids=["a loop", "a code that says nothing", "an error", "no state"],
)
def test_a_template_that_tells_of_no_end(text: str) -> None:
    assert not docker_templates.read(text, "state.txt").events
