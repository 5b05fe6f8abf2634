"""A cgroup path → whose it is: container, pod, QoS class, systemd unit.

Paths differ by cgroup driver (kubelet `cgroup_manager_linux.go`), runtime and nesting, so they are read
from the end, component by component, and never anchored at their start:

    /kubepods/burstable/pod<uid>/<64 hex>                                             cgroupfs driver
    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid, _ for ->.slice/crio-<id>.scope
    /lxc/<id>[/ns] · /lxc.payload.<name>                                              LXC, Proxmox
    /system.slice/[<node>_]slurmstepd.scope/job_4711/step_0/user/task_0 · /slurm/uid_1001/job_4711/step_0   Slurm
    /docker/<64 hex> · /system.slice/docker-<64 hex>.scope · /system.slice/vllm.service · /user.slice/…
"""

from __future__ import annotations

from ..model import Scope
from ..regexes import lazy_regex

_CONTAINER = lazy_regex(
    r"(?:(?P<runtime>[a-z][a-z-]*?)-)?(?P<id>[0-9a-f]{64})(?:\.scope)?"
    r"|(?P<runtime>docker|libpod|crio|cri-containerd|nerdctl)-(?P<id>[0-9a-f]{8,63})\.scope"
)
"""An id, or behind a runtime's name the digits that people leave of it."""
_POD = lazy_regex(
    r"(?:[a-z-]*kubepods-(?:burstable-|besteffort-)?)?pod"
    r"(?P<uid>[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
)
_QOS = lazy_regex(r"(?:[a-z-]*kubepods-)?(?:burstable|besteffort)(?:\.slice)?")
_KUBEPODS = lazy_regex(r"(?:[a-z-]*-)?kubepods(?:\.slice)?")
_UNIT = lazy_regex(r".+\.(?:service|scope|slice|socket|mount|swap)")
_LXC = lazy_regex(r"(?:/[^/]+)*?/(?:lxc/[^/]+(?:/ns)?|lxc\.payload[./][^/]+)")
_NO_UNIT = frozenset({"init.scope", "-.slice"})
_JOB = lazy_regex(r"/job_(?P<job>\d{1,18})(?=/|$)")
_OF_JOBS = "slurmstepd.scope"
"""All jobs of a node run in this one scope."""


def owner_kind(path: str) -> str:
    """Whose limit a cgroup is: `container`, `pod`, `job`, `qos`, `kubepods`, `user`, `unit` or `other`."""
    parts = [part for part in path.split("/") if part]
    for part in reversed(parts):
        if _container_id(part):
            return "container"
        if _POD.fullmatch(part):
            return "pod"
        if _JOB.fullmatch(f"/{part}") and "slurm" in path:
            return "job"
        if _KUBEPODS.fullmatch(part):
            return "kubepods"
        if _QOS.fullmatch(part) and "kubepods" in path:
            return "qos"
        if _UNIT.fullmatch(part) and part not in _NO_UNIT:
            return "user" if "user.slice" in parts else "unit"
    return "container" if _LXC.fullmatch(path) else "other"


def path_scope(path: str) -> Scope:
    """Pod uid (with dashes), container id and systemd unit in a path; static pods have a 32-digit hash."""
    pod_uid = container_id = unit = ""
    for part in path.split("/"):
        if found := _POD.fullmatch(part):
            pod_uid, container_id, unit = found["uid"].replace("_", "-"), "", ""
        elif identity := _container_id(part):
            container_id, unit = identity, part if part.endswith(".scope") else ""
        elif (
            _UNIT.fullmatch(part)
            and part not in _NO_UNIT
            and not part.endswith((".slice", _OF_JOBS))
            and not container_id
        ):
            unit = part
    return Scope(pod_uid=pod_uid, container_id=container_id, unit=unit)


def job_in(path: str) -> str:
    """The number of the Slurm job that a path names, empty when it names none."""
    found = _JOB.search(path)
    return found["job"] if found and "slurm" in path else ""


def _container_id(part: str) -> str:
    """Container id of one component; conmon runs beside the container and is none."""
    found = _CONTAINER.fullmatch(part)
    return found["id"] if found and not (found["runtime"] or "").endswith("conmon") else ""
