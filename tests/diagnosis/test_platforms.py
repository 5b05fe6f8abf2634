"""What an incident ran on."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from forensics.model import Scope


def _cluster(b: ModuleType, w: Any) -> None:
    w.exited("describe.txt", 3610, 1)


def _unit(b: ModuleType, w: Any) -> None:
    w.add("journal", 3605, "vllm.service: Main process exited, code=exited, status=1/FAILURE", "unit_exit", "systemd",
          Scope(unit="vllm.service"), code="exited", status=1)  # fmt: skip


def _docker(b: ModuleType, w: Any) -> None:
    w.add("inspect.json", 3605, "container chat exited: exit_code=1", "docker_state", "runtime", Scope(container="chat"),
          status="exited", exit_code=1)  # fmt: skip


def _job(b: ModuleType, w: Any) -> None:
    w.add("job.err", 3605, "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-05-12T09:00:05 DUE TO TIME LIMIT ***",
          channel="host", level="")  # fmt: skip


def _machine(b: ModuleType, w: Any) -> None:
    w.add("auth.log", 3000, "Accepted publickey for ops", channel="host")


def _pid_of_a_machine(b: ModuleType, w: Any) -> None:
    w.add("a", 3600.5, "worker says", scope=Scope(process="EngineCore", pid=48213))


@pytest.mark.parametrize(
    ("told", "platforms"),
    [
        (_cluster, ("kubernetes",)), (_unit, ("systemd",)), (_docker, ("docker",)), (_job, ("slurm",)),
        (_machine, ("bare",)), (_pid_of_a_machine, ("bare",)), (None, ()),
    ],
)  # fmt: skip
def test_what_tells_the_platform(
    b: ModuleType, told: Callable[[ModuleType, Any], None] | None, platforms: tuple[str, ...]
) -> None:
    w = b.World()
    w.start("a", 0)
    w.answer("a", 3600)
    w.fail("a", 3601)
    if told is not None:
        told(b, w)
    assert w.diagnosis().platforms == platforms
