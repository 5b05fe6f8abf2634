"""Which machine a fact is of, and on which machines an entity ran: another node's fault ended nobody here.

Collectors put each node's files into a folder, or under a name, that is the node's. Such a name is known from what
the bundle says of its pods and nodes; a name that stands where another file bears a known one, and is made like it, is
a node's too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from ..model import Event, Source
from ..regexes import lazy_regex
from ..sources import host_in_path
from .entities import LOG_CHANNELS, Entities

OF_NODES = frozenset({"kernel", "nvidia", "oomd", "systemd", "clock", "host", "cgroup", "kubelet", "runtime"})
"""Channels of which a file tells of one machine."""
_ADDRESS = lazy_regex(r"(?:ip-)?(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?:\..*)?", regex.IGNORECASE)
_NAME = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_NUMBERED = lazy_regex(r"\d+|(?<=[-_])[a-z]$")
_SCHEDULED = lazy_regex(r"Successfully assigned \S+ to (?P<node>[A-Za-z0-9][A-Za-z0-9.-]*)")
_SPANNING = (
    "nnodes", "num_nodes", "node_rank", "headless", "pipeline_parallel_size", "dist_init_addr", "master_addr",
    "data_parallel_address",
)  # fmt: skip
"""Arguments by which an engine may run on several machines, where they are set to more than the default."""
_SPANNING_WORDS = lazy_regex(
    r"--(?:nnodes|num[-_]nodes|node[-_]rank|headless|dist[-_]init[-_]addr|master[-_]addr|data[-_]parallel[-_]address)\b"
    r"|--pipeline[-_]parallel[-_]size[= ](?!1\b)|--distributed[-_]executor[-_]backend[= ]ray|LWS_LEADER_ADDRESS"
    r"|ray (?:start|symmetric-run)"
)
"""The same in the command line of a container."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The machines of a bundle, as far as anything names them."""

    files: Mapping[str, str] = field(default_factory=dict)
    """The node whose name the path of a file bears."""
    homes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names of the machine that an entity ran on: its node's, and its host's where that has another one."""
    spanning: bool = False
    """True when an engine runs on several machines: each of them can end it."""

    def of(self, event: Event) -> str:
        """The machine that an event tells of; empty when nothing says so."""
        return event.scope.host or (self.files.get(event.locator.source, "") if event.channel in OF_NODES else "")

    def apart(self, entity: str, event: Event) -> bool:
        """True for a fact of a machine on which the entity did not run, and no part of its engine."""
        home, host = self.homes.get(entity, frozenset()), self.of(event)
        return bool(home) and bool(host) and not self.spanning and all(differ(host, name) for name in home)


def build(events: Sequence[Event], sources: Iterable[Source], entities: Entities) -> Nodes:
    """What events state, and what the paths of their files say beyond that."""
    paths = [source.path for source in sources]
    pods = {event.scope.pod for event in events if event.scope.pod}
    nodes = {_node_of(event) for event in events} | {e.scope.host for e in events if e.channel == "k8s"}
    hosts = {event.scope.host for event in events} - pods  # a container's host name is its pod's
    names = nodes | {host for host in hosts if regex.search(r"[\d-]", host)}  # no folder of a host `gpu` is meant by it
    names |= {name.partition(".")[0] for name in names if not name.replace(".", "").isdigit()}
    files = {path: host for path in paths if (host := host_in_path(path, names - {""}))}
    files |= _made_alike(files, paths)
    homes: dict[str, set[str]] = {}
    for event in events:
        owner = entities.of(event)
        if not owner:
            continue
        of_file = files.get(event.locator.source, "") if event.channel in OF_NODES | LOG_CHANNELS else ""
        for name in (_node_of(event), event.scope.host, of_file):
            if name and name not in pods:
                homes.setdefault(owner, set()).add(name)
    return Nodes(files, {owner: frozenset(names) for owner, names in homes.items()}, any(map(_spans, events)))


def _node_of(event: Event) -> str:
    """The node that an event gives a pod."""
    node = event.fields.get("node")
    if isinstance(node, str) and node:
        return node
    placed = _SCHEDULED.search(event.text) if event.kind == "k8s_event" and event.scope.pod else None
    return placed["node"] if placed else ""


def _made_alike(files: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """`rack3-b/dmesg` beside `rack3-a/dmesg`, where only one of the names is known: path → name."""
    places = {tuple(path.split(host, 1)): host for path, host in files.items()}
    patterns = [
        (regex.compile(rf"{regex.escape(head)}{_NAME}{regex.escape(tail)}"), _shape(host))
        for (head, tail), host in places.items()
    ]
    return {
        path: found["host"]
        for path in paths if path not in files
        for pattern, shape in patterns
        if (found := pattern.fullmatch(path)) and _shape(found["host"]) == shape
    }  # fmt: skip


def _shape(name: str) -> str:
    """A name without its numbers: `gpu-node-07` and `gpu-node-12` are made alike."""
    return _NUMBERED.sub("0", name)


def differ(one: str, other: str) -> bool:
    """True for two machines; an address and a name may be one."""
    a, b = _ADDRESS.fullmatch(one), _ADDRESS.fullmatch(other)
    if a or b:
        return a is not None and b is not None and a.groups() != b.groups()
    return one.partition(".")[0].lower() != other.partition(".")[0].lower()


def _spans(event: Event) -> bool:
    """True for an engine that is told to run on several machines, or for a line of Ray."""
    told = event.fields
    if event.channel == "ray" or told.get("distributed_executor_backend") == "ray":
        return True
    if event.kind in ("engine_args", "engine_config"):
        return any(told.get(name) not in (None, "", 1, "1", 0, "0", False) for name in _SPANNING)
    if event.kind != "pod_spec":
        return False
    words = " ".join(map(str, (*told.get("command", ()), *told.get("args", ()), *told.get("env", {}))))
    return bool(_SPANNING_WORDS.search(words))
