"""What is missing: evidence that would decide or deepen the answer, with the command that collects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import Case
from .model import Confidence, Gap, Incident

_NO_PREVIOUS = ("k8s.no_previous_logs",)


def find(case: Case, incident: Incident, platforms: Sequence[str] = ()) -> tuple[Gap, ...]:
    """Gaps in a fixed order, none twice. Commands are those of Kubernetes; a report translates them."""
    return tuple({gap.key: gap for gap in _gaps(case, incident, platforms)}.values())


def _gaps(case: Case, incident: Incident, platforms: Sequence[str]) -> Iterator[Gap]:
    cause = incident.hypotheses[0].cause.id
    if cause == "healthy":
        return
    channels = {event.channel for event in case.events}
    pod = _pod(case, incident.entity)
    namespace = _namespace(case, incident.entity)
    own = case.lives_of(incident.entity)
    restarts = max(
        (
            int(e.fields["restart_count"])
            for e in case.of_entity(
                case.of_kind("container_state", "container_terminated", "container_waiting"), incident.entity
            )
            if isinstance(e.fields.get("restart_count"), int)
        ),
        default=0,
    )
    where = f"-n {namespace} {pod}" if namespace else pod
    if not own:
        yield Gap("engine_log", f"kubectl logs {where} --previous --timestamps --all-containers")
    elif restarts + 1 > len(own):
        yield Gap(
            "earlier_runs",
            "ls -l /var/log/pods/*/*/  # on the node: <restart count>.log",
            {"runs_seen": len(own), "runs": restarts + 1},
        )
    if any("previous terminated container" in e.text and "not found" in e.text for e in case.of_kind("log")):
        yield Gap("previous_log", f"kubectl logs {where} --previous")
    if "kernel" not in channels and cause in _NEED_KERNEL:
        yield Gap("kernel_log", "journalctl -k -b -1 -o json  # and -b 0, on the node")
    if not {"kubelet", "k8s"} & channels and cause in _NEED_CLUSTER:
        if not platforms or "kubernetes" in platforms:
            yield Gap("events", f"kubectl describe pod {where}; kubectl get events -o json  # within one hour")
        elif not _SUPERVISORS & channels and "slurm" not in platforms:
            yield Gap("state", f"kubectl describe pod {where}")
    if cause.startswith("gpu_oom.") and not any(s.name == "gpu_memory_used_mib" for s in case.samples):
        yield Gap(
            "gpu_series", "nvidia-smi --query-gpu=timestamp,index,uuid,memory.used,memory.total --format=csv -l 10"
        )
    if cause == "gpu_oom.leak":
        yield Gap(
            "allocator_snapshot", "torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot()"
        )
    if cause == "host_oom.leak":
        yield Gap("heap_profile", "py-spy dump --pid <pid>; memray attach <pid>")
    sure = incident.hypotheses[0].confidence is Confidence.ESTABLISHED
    if cause.startswith("host_oom.") and not sure and not any(s.name in _MEMORY_SERIES for s in case.samples):
        yield Gap("memory_series", "cat /sys/fs/cgroup/memory.current /proc/meminfo  # every 10 s, in the container")
    if cause in ("nccl_failure", "shm_exhausted"):
        yield Gap("nccl_debug", "NCCL_DEBUG=INFO  # in the container's environment, then restart once")
    if cause == "gpu_hardware":
        yield Gap("hardware_log", "ipmitool sel list; nvidia-bug-report.sh; dcgmi diag -r 3")
    if (
        incident.hypotheses[0].confidence in (Confidence.UNDETERMINED, Confidence.POSSIBLE)
        and "metrics" not in channels
    ):
        yield Gap("metrics", "curl -s http://<pod ip>:8000/metrics  # every 10 s")


_MEMORY_SERIES = frozenset(
    {"container_memory_mib", "process_rss_mib", "host_memory_used_kib", "host_memory_available_kib"}
)
_SUPERVISORS = frozenset({"systemd", "runtime"})
"""Channels of what starts and stops a server where there is no kubelet."""
_NEED_KERNEL = frozenset(
    {
        "insufficient_evidence",
        "host_oom.container_limit",
        "host_oom.node",
        "host_oom.leak",
        "external_sigkill",
        "probe_kill",
        "eviction",
        "gpu_hardware",
        "gpu_illegal_access",
        "nccl_failure",
        "engine_timeout",
        "shm_exhausted",
    }
)
_NEED_CLUSTER = frozenset(
    {"insufficient_evidence", "probe_kill", "probe_restart_storm", "eviction", "external_sigkill"}
)


def _pod(case: Case, entity: str) -> str:
    for name in case.entities.members(entity) if entity else ():
        if name.startswith("pod:"):
            return name.removeprefix("pod:")
    return "<pod>"


def _namespace(case: Case, entity: str) -> str:
    for event in case.events:
        if event.scope.namespace and event.scope.pod and f"pod:{event.scope.pod}" == entity:
            return event.scope.namespace
    return ""
