"""What a unit was started with, and its limits: unit files, drop-ins, `systemctl cat`, Quadlet, `docker run` in a script."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.model import Event
from forensics.parsers import FORMATS, unit_files
from forensics.parsers.leftovers import read_code
from forensics.sources import identify, make_head

UNIT = """[Unit]
Description=vLLM

[Service]
Environment=HF_HOME=/models "VLLM_USE_V1=1"
ExecStart=-/opt/vllm/bin/vllm serve acme/llama-8b \\
  # a comment between
  --max-model-len 16384 --limit '{"image": 4}'
MemoryMax=48G
MemoryHigh=90%
TimeoutStopSec=2min 30s
TimeoutStartSec=infinity
Restart=on-failure
KillSignal=SIGINT

[Install]
WantedBy=multi-user.target
"""


def specs(text: str, path: str = "etc/vllm.service") -> list[Event]:
    return list(unit_files.read(text, path).events)


def form_of(text: str, path: str) -> str:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    return form.name if form else ""


def test_unit_file() -> None:
    """The command, the environment and the limits; what has no number is absent."""
    (event,) = specs(UNIT)
    assert (event.kind, event.channel, event.scope.unit, event.locator.line) == ("pod_spec", "systemd", "vllm.service", 6)
    assert event.fields == {
        "command": ("/opt/vllm/bin/vllm",),
        "args": ("serve", "acme/llama-8b", "--max-model-len", "16384", "--limit", '{"image": 4}'),
        "env": {"HF_HOME": "/models", "VLLM_USE_V1": "1"}, "memory_limit_bytes": 48 << 30, "grace_s": 150.0,
        "restart_policy": "on-failure", "kill_signal": "SIGINT",
    }  # fmt: skip
    assert form_of(UNIT, "anything.txt") == "systemd.unit"


def test_systemctl_cat_with_a_drop_in() -> None:
    """The drop-in counts after the unit; an empty assignment takes back what was said."""
    text = f"# /etc/systemd/system/vllm.service\n{UNIT}\n# /etc/systemd/system/vllm.service.d/override.conf\n" \
        "[Service]\nMemoryMax=\nMemoryMax=64G\nExecStart=\nExecStart=/usr/bin/vllm serve other\n"  # fmt: skip
    (event,) = specs(text, "systemctl-cat.txt")
    assert (event.scope.unit, event.fields["memory_limit_bytes"], event.fields["args"]) == ("vllm.service", 64 << 30, ("serve", "other"))
    assert form_of(text, "systemctl-cat.txt") == "systemd.unit"


def test_a_drop_in_alone() -> None:
    """A limit without a command is a fact; the unit is named by the folder."""
    (event,) = specs("[Service]\nMemoryMax=64G\n", "system/vllm.service.d/override.conf")
    assert (event.scope.unit, event.fields) == ("vllm.service", {"memory_limit_bytes": 64 << 30})


DOCKER = "docker run --rm --gpus '\"device=0,1\"' -e HF_TOKEN=x --name chat -m 64g -p 8000:8000 vllm/vllm-openai:v0.11.0 --model acme/m"


@pytest.mark.parametrize(("options", "shm"), [("", 64 << 20), ("--ipc=host ", None), ("--shm-size 16g ", 16 << 30)])
def test_docker_run(options: str, shm: int | None) -> None:
    """The limits of the container, and what follows the image; docker gives 64 MiB of /dev/shm unless told otherwise."""
    command = DOCKER.replace("--rm ", f"--rm {options}")
    (event,) = specs(f"[Service]\nExecStart=/usr/bin/{command}\n")
    fields: dict[str, Any] = {
        "container": "chat", "image": "vllm/vllm-openai:v0.11.0", "args": ("--model", "acme/m"), "env": {"HF_TOKEN": "x"},
        "gpus": 2, "memory_limit_bytes": 64 << 30,
    }  # fmt: skip
    assert event.fields == fields | ({"shm_size_bytes": shm} if shm else {})
    wrapped = command.replace(" -m", " \\\n  -m")
    (event,) = read_code(f"#!/bin/bash\n# {command}\nexec {wrapped}\n", "start.sh").events
    assert (event.scope.container, event.locator.line, event.locator.line_end) == ("chat", 3, 4)
    assert event.fields.get("shm_size_bytes") == shm


def test_quadlet() -> None:
    text = "[Container]\nImage=vllm/vllm-openai:v0.11.0\nExec=--model acme/m --max-model-len 8192\nShmSize=8g\n\n[Service]\nRestart=always\n"
    (event,) = specs(text, "containers/systemd/vllm.container")
    assert (event.scope.unit, event.fields["args"][0], event.fields["shm_size_bytes"]) == ("vllm.service", "--model", 8 << 30)
    (event,) = specs(text.replace("ShmSize=8g\n", ""), "vllm.container")
    assert event.fields["shm_size_bytes"] == 64 << 20


@pytest.mark.parametrize("text", [
    "[Service]\nExecStart=\n",
    "[Service]\nExecStart=vllm serve 'open quote\nMemoryMax=lots\nTimeoutStopSec=soon\n",
    "[Service\nExecStart=vllm\n",
    "[Service]\nExecStart=vllm \\",
    "[Service]\nExecStart=docker run --name\nMemoryMax=99999999999999999999G\n",
    "\0\n[Service]\n=\n",
])  # fmt: skip
def test_damaged(text: str) -> None:
    """Nothing raises; what can be read is kept."""
    assert all(event.kind == "pod_spec" for event in specs(text))


@pytest.mark.parametrize(("text", "path"), [
    ("[INFO] a\n[INFO] b = c\n", "x.log"),
    ("[mysqld]\nport = 3306\n", "my.cnf"),
    ("[Service] restarted\nName = x\n", "x.txt"),
    ("[ 12.5] Unit: x\n", "dmesg.txt"),
])  # fmt: skip
def test_not_a_unit(text: str, path: str) -> None:
    assert form_of(text, path) != "systemd.unit"


def test_a_quadlets_health_check() -> None:
    """Budget and what Podman does about it; what is not set has Podman's defaults; the name is `systemd-<unit>`."""
    text = "[Container]\nImage=vllm/vllm-openai:v0.11.0\nExec=acme/m\nHealthCmd=curl -fs localhost:8000/health\n"
    (event,) = specs(text + "HealthStartPeriod=2m\nHealthInterval=20s\nHealthRetries=5\nHealthOnFailure=kill\n",
                     "chat.container")  # fmt: skip
    assert {k: v for k, v in event.fields.items() if k.startswith("health_")} == {
        "health_delay_s": 120.0, "health_period_s": 20.0, "health_timeout_s": 30.0, "health_failure": 5,
        "health_action": "kill",
    }  # fmt: skip
    assert event.fields["container"] == "systemd-chat"
    assert "health_period_s" not in specs(text.replace("curl -fs localhost:8000/health", "none"), "chat.container")[0].fields
