"""What kube-state-metrics says of the last end of a container, in a scrape or in an answer of Prometheus.

`kube_pod_container_status_last_terminated_reason{…,reason="OOMKilled"} 1`: that it was so at the time of the scrape,
not when it happened (kube-state-metrics, docs/metrics/workload/pod-metrics.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Event, Locator
from .k8s_values import terminated_text
from .series_names import scope_of

REASONS = ("kube_pod_container_status_last_terminated_reason", "kube_pod_container_status_terminated_reason")
PREFIX = "kube_pod_container_status_"
_BAD = ("OOMKilled",)


def end_of(name: str, labels: Mapping[str, str], value: float, place: Locator, raw: str = "") -> Event | None:
    """The end of a container that a sample tells of, none when it tells of no bad one."""
    reason = labels.get("reason", "")
    if name not in REASONS or reason not in _BAD or value != 1:
        return None
    scope = scope_of(labels)
    return Event(
        place, "container_terminated", "k8s", terminated_text(scope.container, reason, None), (), scope,
        {"reason": reason, "last_state": True}, raw=raw,
    )  # fmt: skip
