"""Whose clock wrote a time: the host, where it is known, and the pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model import Event, Samples, Scope, Source, StampForm
from ..sources import host_in_path

NODE_LAYERS = frozenset({
    "journal", "dmesg", "klog", "runtime", "nvidia-smi", "syslog", "host", "systemctl", "systemctl-now",
    "slurm",
})  # fmt: skip
"""Layers written in the node's zone; all others are written by containers, in the container's zone."""
_NODE_KINDS = frozenset(
    {"container_started", "container_terminated", "container_waiting", "container_state", "node_condition"}
)
"""What a kubelet stamps, not the API server."""
_KUBELET_REASONS = frozenset(
    {
        "Pulling",
        "Pulled",
        "Created",
        "Started",
        "Killing",
        "Unhealthy",
        "BackOff",
        "Failed",
        "SystemOOM",
        "Evicted",
    }
)
"""Events of kubelets, for tables that do not print who sent them."""


class LaneKey(NamedTuple):
    source: str
    layer: str
    form: StampForm
    host: str
    """The machine whose clock wrote it; empty when unknown, or the control plane's."""
    pod: str
    """For container layers: a host runs containers of several zones."""


class Stampers:
    """Which machine's clock wrote a time: known hosts, and the node of each pod."""

    def __init__(self, events: Sequence[Event], sources: Sequence[Source]) -> None:
        self._pod_nodes: dict[str, str] = {}
        self.specified = frozenset(e.scope.pod for e in events if e.kind == "pod_spec" and e.scope.pod)
        """Pods whose environment is known."""
        for event in events:
            node = event.fields.get("node") or (event.scope.host if event.channel == "k8s" else "")
            if isinstance(node, str) and node and event.scope.pod:
                self._pod_nodes.setdefault(event.scope.pod, node)
        nodes = {event.scope.host for event in events if event.scope.host}
        self.hosts = frozenset(nodes | set(self._pod_nodes.values()) | {s.scope.host for s in sources if s.scope.host})
        self._canonical = _canonical(self.hosts)
        self._of_path = {source.path: host_in_path(source.path, self.hosts) for source in sources}
        self._scopes = {source.path: source.scope for source in sources}

    def canonical(self, host: str) -> str:
        """One name for a host that some print with its domain and some without."""
        return self._canonical.get(host, host)

    def host(self, event: Event) -> str:
        return self.canonical(self._host(event))

    def _host(self, event: Event) -> str:
        scope = event.scope
        if event.channel != "k8s":
            return self._owner(scope, event.locator.source)
        component = str(event.fields.get("component", ""))
        by_node = event.kind in _NODE_KINDS or component.startswith("kubelet")
        by_node = by_node or (not component and event.fields.get("reason") in _KUBELET_REASONS)
        return (scope.host or self._pod_nodes.get(scope.pod, "")) if by_node else ""

    def _owner(self, scope: Scope, source: str) -> str:
        return scope.host or self._pod_nodes.get(scope.pod, "") or self._of_path.get(source, "")

    def key(self, event: Event, layer: str, form: StampForm) -> LaneKey:
        """The lane of a stamp of an event."""
        source = event.locator.source
        if form is StampForm.AGE:
            return LaneKey(source, layer, form, "", "")
        if layer == "ray":  # its lines speak of many nodes; the file was written by one
            host = self.canonical(self._owner(self._scopes.get(source, Scope()), source))
            return LaneKey(source, layer, form, host, "")
        return LaneKey(source, layer, form, self.host(event), event.scope.pod if _in_container(layer) else "")

    def series_key(self, samples: Samples) -> LaneKey:
        """The lane of the stamps of a series."""
        scope = samples.scope.merged(self._scopes.get(samples.source, Scope()))
        host = self.canonical(self._owner(scope, samples.source))
        pod = scope.pod if _in_container(samples.layer) else ""
        return LaneKey(samples.source, samples.layer, samples.form, host, pod)


def _in_container(layer: str) -> bool:
    """Whether a layer is written in the zone of a container rather than of a node or an API."""
    return layer not in NODE_LAYERS and layer not in ("cri", "k8s", "kubectl")


def _canonical(hosts: Iterable[str]) -> dict[str, str]:
    """`node-7` → `node-7.example.net`, where only one long name begins so."""
    known = sorted(hosts)
    names = {}
    for short in known:
        longer = [host for host in known if host.startswith(f"{short}.")]
        if len(longer) == 1 and not short.replace(".", "").isdigit():
            names[short] = longer[0]
    return names
