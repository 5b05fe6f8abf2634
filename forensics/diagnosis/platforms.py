"""What an incident ran on: it decides which settings and commands the advice may name.

Kubernetes hides what lies below it; elsewhere several may hold (a unit that runs a container, Ray in a Slurm job).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Event
from .case import Case
from .model import Incident

_CLUSTER = frozenset({"k8s", "kubelet"})
_UNIT_KINDS = frozenset({"unit_exit", "unit_state"})
MACHINE_PID = 1000
_OF_MACHINE = frozenset({"host", "systemd", "oomd"})


def platforms_of(case: Case, incident: Incident) -> tuple[str, ...]:
    """Words of `PLATFORMS`; empty when nothing tells."""
    names = case.entities.members(incident.entity) if incident.entity else ()
    if any(name.startswith(("pod:", "uid:")) for name in names) or any(map(_of_cluster, case.events)):
        return ("kubernetes", "ray") if _speaks(case, "ray") else ("kubernetes",)
    found = dict.fromkeys(_found(case, names))
    if not found and (any(event.channel in _OF_MACHINE for event in case.events) or _outside_containers(case)):
        found["bare"] = None
    return tuple(found)


def _of_cluster(event: Event) -> bool:
    return event.channel in _CLUSTER or bool(event.scope.pod or event.scope.pod_uid)


def _found(case: Case, names: tuple[str, ...]) -> Iterator[str]:
    if _speaks(case, "slurm") or any(source.format.startswith("slurm.") for source in case.sources):
        yield "slurm"
    if any(name.startswith("unit:") for name in names) or any(map(_of_unit, case.events)):
        yield "systemd"
    runtimes = [event for event in case.events if event.channel == "runtime" or event.kind == "docker_state"]
    if any(event.fields.get("ident") == "podman" for event in runtimes) or _quadlets(case):
        yield "podman"
    elif runtimes or any(name.startswith(("ctr:", "cid:")) for name in names) or _daemon_answered(case):
        yield "docker"
    if _speaks(case, "ray"):
        yield "ray"


def _outside_containers(case: Case) -> bool:
    """True when the engine's processes have pids of a machine: in a container they count from 1."""
    pids = [event.scope.pid for event in case.events if event.channel == "engine" and event.scope.pid]
    return bool(pids) and min(pids) >= MACHINE_PID


def _of_unit(event: Event) -> bool:
    return event.kind in _UNIT_KINDS or (event.kind == "pod_spec" and event.channel == "systemd")


def _daemon_answered(case: Case) -> bool:
    """True for what docker printed at a prompt, outside of its own log."""
    return any("Error response from daemon" in finding.event.text for finding in case.findings)


def _quadlets(case: Case) -> bool:
    return any(source.path.rstrip("!").endswith(".container") for source in case.sources)


def _speaks(case: Case, family: str) -> bool:
    return any(True for _ in case.named(f"{family}.*"))
