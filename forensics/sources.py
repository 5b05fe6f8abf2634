"""Which format is a member, and whose is it.

Content decides the format: each `Format` looks at the first lines and says how sure it is. A path only gives
hints about the owner (node, namespace, pod, container), read from the layouts of well-known collectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from .model import Event, Parsed, Scope
from .regexes import lazy_re
from .scan import Scanned, SeriesSpec

HEAD_BYTES = 256 * 1024
HEAD_LINES = 400
_T = TypeVar("_T")
_HIDING = frozenset("\x1b\x9b#")
"""A line may begin with a colour, or with an octal escape of syslog."""


@dataclass(frozen=True, eq=False)
class Head:
    """The beginning of a member, decoded, for recognition only."""

    path: str
    text: str
    lines: tuple[str, ...]
    """Without CR; the first `HEAD_LINES`."""
    whole: bool
    """True when the member ends inside the head."""

    @cached_property
    def filled(self) -> tuple[str, ...]:
        """Lines that are not blank."""
        return tuple(line for line in self.lines if line.strip())

    @cached_property
    def begins(self) -> frozenset[str]:
        """The characters with which its lines begin, blanks left out."""
        return frozenset(line.lstrip()[0] for line in self.filled)


@dataclass(frozen=True, slots=True)
class Carried:
    """The text inside a file of another kind: a web page, a notebook, an exported chat."""

    text: str
    places: Sequence[int]
    """For each line of the text the line of the file at which it stands, or where the string begins that holds it."""
    events: tuple[Event, ...] = ()
    """What the file itself tells, at its own lines."""

    def line(self, row: int) -> int:
        """The line of the file for a line of the text."""
        return self.places[min(max(row, 1), len(self.places)) - 1]


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format. Line logs have no `read`: the log parser reads them all in one way."""

    name: str
    """Id such as `k8s.describe` or `log`."""
    title: str
    """In words, for the table of sources."""
    sniff: Callable[[Head], int]
    """0 = not mine; 100 = certain. The highest wins, ties go to the earlier format."""
    read: Callable[[str, str], Parsed] | None = None
    """(text, source path) → facts, for documents, which are read whole."""
    max_bytes: int = 64 << 20
    """Documents above this size are cut, and said so."""
    carried: Callable[[str], Carried] | None = None
    """For files that carry a text, instead of `read`: the text, which is then read like notes."""
    series: Callable[[Head], tuple[SeriesSpec, ...]] | None = None
    """Series to read during the scan, made from the head (for instance from a CSV header)."""
    samples: Callable[[Scanned, str, Head], Parsed] | None = None
    """(scan, source path, head) → facts, for large tables: they are scanned like a log, but read by this
    instead of by the log parser. Such a format has `series` and no `read`."""
    begins: str = ""
    """A set of characters, as in a regex: some line of every text of this format begins with one of them, blanks
    left out. It is asked before `sniff`; empty where any line may do."""
    most: int = 100
    """The surest that `sniff` ever is: a format that cannot win any more is not asked."""


def make_head(path: str, data: bytes, whole: bool, encoding: str = "utf-8") -> Head:
    """Decode the first bytes of a member."""
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    if not whole and len(lines) > 1:
        lines.pop()  # probably torn
    return Head(path, text, tuple(line.rstrip("\r") for line in lines[:HEAD_LINES]), whole)


@lru_cache(maxsize=1024)
def _beginning_with(begins: frozenset[str], formats: tuple[Format, ...]) -> tuple[Format, ...]:
    """The formats that a text may have whose lines begin with these characters; all, where colours hide them."""
    if not begins or begins & _HIDING:
        return formats
    text = "".join(begins)
    return tuple(form for form in formats if not form.begins or re.search(f"[{form.begins}]", text))


def mostly(test: Callable[[_T], object], lines: Sequence[_T], share: float) -> bool:
    """Whether at least this share of the lines passes; most files are of another format, and fail early."""
    left, needed = len(lines), share * len(lines)
    for line in lines:
        if not test(line):
            left -= 1
            if left < needed:
                return False
    return True


def identify(head: Head, formats: tuple[Format, ...]) -> Format | None:
    """The format that is most sure, or none."""
    best: Format | None = None
    best_score = 0
    for candidate in _beginning_with(head.begins, formats):
        score = candidate.sniff(head) if candidate.most > best_score else 0
        if score > best_score:
            best, best_score = candidate, score
    return best


_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
REPLICA = rf"{_SAFE}{{6,10}}-{_SAFE}{{5}}"
"""What Kubernetes appends to a Deployment's name: neither vowels nor 0, 1, 3, so dates do not fit."""
_GENERATED = rf"[a-z0-9][a-z0-9.-]*-{REPLICA}"
"""A pod of a Deployment."""
_NO_CONTAINER = r"(?:logs?|describe|events?|previous|current|pod|stdout|stderr|dmesg|metrics|[\d-]+)\b"
"""File names in a pod's folder that are no container's; a date is none either."""
_OWNERS = tuple(
    lazy_re(pattern)
    for pattern in (
        # /var/log/pods tree (kubelet); also static pods with a 32-hex hash
        rf"(?:^|/)(?P<namespace>[a-z0-9-]+)_(?P<pod>[a-z0-9.-]+)_(?P<pod_uid>{_UID}|[0-9a-f]{{32}})"
        r"/(?P<container>[a-z0-9-]+)/\d+\.log",
        # /var/log/containers symlinks
        r"(?:^|/)(?P<pod>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)_(?P<container>[a-z0-9-]+)-(?P<container_id>[0-9a-f]{64})\.log",
        # troubleshoot support bundle: cluster resources, then collectors of their own name
        r"cluster-resources/pods/logs/(?P<namespace>[^/]+)/(?P<pod>[^/]+)/(?P<container>[^/]+?)(?:-previous)?\.log",
        r"cluster-resources/(?:pods|events|deployments|replicasets|statefulsets|jobs)/(?P<namespace>[a-z0-9-]+)\.json$",
        rf"(?:^|/)(?P<pod>{_GENERATED})/(?!{_NO_CONTAINER})(?P<container>[a-z0-9-]+?)(?:[-_.]previous)?\.(?:log|txt)",
        rf"(?:^|/)(?P<pod>{_GENERATED})/",
        # OpenShift must-gather: the container name is doubled
        r"namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/(?P<container>[^/]+)/(?P=container)/logs/",
        r"(?:^|/)namespaces/(?P<namespace>[a-z0-9-]+)/",
        # kubectl cluster-info dump
        r"(?:^|/)(?P<namespace>[a-z0-9-]+)/(?P<pod>[a-z0-9.-]+)/logs\.txt$",
        # sosreport: host, optional number of the case, date, random suffix; the logs that it takes with kubectl
        r"(?:^|/)sosreport-(?P<host>[A-Za-z0-9.-]+?)(?:-(?:\d{7,9}|[A-Z]{2,6}-?\d{4,10}))?-\d{4}-\d\d-\d\d-[a-z]+(?:/|$)",
        r"/cluster-info/(?P<namespace>[a-z0-9-]+)/podlogs/(?P<pod>[a-z0-9.-]+)/kubectl_.*_-c_(?P<container>[a-z0-9-]+)(?:_|$)",
        # Rancher: host and time of the capture; EKS and others keep the pod in the folder name
        r"(?:^|/)(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)-\d{4}-\d\d-\d\d_\d\d_\d\d_\d\d/"
        r"(?:journald|systemlogs|systeminfo|networking|rke2|k3s|kubeadm|k8s|etcd)/",
        r"/podlogs/(?P<namespace>kube-system|(?:cattle|calico|tigera)-[a-z-]*system|ingress-nginx)-(?P<pod>[a-z0-9.-]+?)(?:-previous)?$",
        rf"(?:^|/)pods/(?P<namespace>[a-z0-9-]+)_(?P<pod>[a-z0-9.-]+?)(?:_(?P<pod_uid>{_UID}))?/(?P<container>[a-z0-9-]+)\.log",
        # Run:ai: <pod>_<container>.log
        rf"(?:^|/)(?P<pod>{_GENERATED})_(?P<container>[a-z0-9-]+?)(?:[-_.]previous)?\.(?:log|txt)",
        # what kubectl told of one pod, in a file that people named after it; pods of DaemonSets have no hash
        rf"(?:^|/)(?P<pod>[a-z][a-z0-9-]*-{_SAFE}{{5}})[-_.](?:describe|status|state|events)\b[^/]*$",
        rf"(?:^|/)(?:describe|status|state|events)[-_](?:pod[-_])?(?P<pod>[a-z][a-z0-9-]*-{_SAFE}{{5}})\.\w+$",
        # folders of nodes
        r"(?:^|/)nodes/(?P<host>[a-z0-9][a-z0-9.-]*)/",
    )
)
_CONTAINER_ID = lazy_re(r"(?<![0-9a-f])(?<!sha256[-:_.@])([0-9a-f]{64})(?![0-9a-f])")
"""Not the digest of an image, which must-gather puts into a folder name."""


def owner(path: str) -> Scope:
    """What a path says about the owner. `a/b_c_<uid>/vllm/2.log` → namespace b, pod c, container vllm."""
    scope = Scope()
    for pattern in _OWNERS:
        found = pattern.search(path)
        if found:
            scope = scope.merged(Scope.from_parts(found.groupdict()))
    if not scope.container_id and (found := _CONTAINER_ID.search(path)):
        scope = scope.merged(Scope(container_id=found[1]))
    return scope


def host_in_path(path: str, hosts: Iterable[str]) -> str:
    """The longest of some known hosts whose name a path bears: `journal-gpu-sh-07.txt`, `ray_10.244.9.32/…`."""
    named = [
        host
        for host in hosts
        if host in path and re.search(rf"(?<![A-Za-z0-9]){re.escape(host)}(?![A-Za-z0-9])", path)
    ]
    return max(named, key=lambda host: (len(host), host), default="")
