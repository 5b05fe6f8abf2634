"""Which format is a member, and whose is it.

Content decides the format: each `Format` looks at the first lines and says how sure it is. A path only gives hints
about the owner (node, namespace, pod, container), read from the layouts of well-known collectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import regex

from .model import Parsed, Scope
from .scan import SeriesSpec

HEAD_BYTES = 256 * 1024
HEAD_LINES = 400


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a member, decoded, for recognition only."""

    path: str
    text: str
    lines: tuple[str, ...]
    """Without CR; the first `HEAD_LINES`."""
    whole: bool
    """True when the member ends inside the head."""


@dataclass(frozen=True, slots=True)
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
    series: Callable[[Head], tuple[SeriesSpec, ...]] | None = None
    """Series to read during the scan, made from the head (for instance from a CSV header)."""


def make_head(path: str, data: bytes, whole: bool, encoding: str = "utf-8") -> Head:
    """Decode the first bytes of a member."""
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    if not whole and len(lines) > 1:
        lines.pop()  # probably torn
    return Head(path, text, tuple(line.rstrip("\r") for line in lines[:HEAD_LINES]), whole)


def identify(head: Head, formats: tuple[Format, ...]) -> Format | None:
    """The format that is most sure, or none."""
    best: Format | None = None
    best_score = 0
    for candidate in formats:
        score = candidate.sniff(head)
        if score > best_score:
            best, best_score = candidate, score
    return best


_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OWNERS = tuple(
    regex.compile(pattern)
    for pattern in (
        # /var/log/pods tree (kubelet); also static pods with a 32-hex hash
        rf"(?:^|/)(?P<namespace>[a-z0-9-]+)_(?P<pod>[a-z0-9.-]+)_(?P<pod_uid>{_UID}|[0-9a-f]{{32}})/(?P<container>[a-z0-9-]+)/\d+\.log",
        # /var/log/containers symlinks
        r"(?:^|/)(?P<pod>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)_(?P<container>[a-z0-9-]+)-(?P<container_id>[0-9a-f]{64})\.log",
        # troubleshoot support bundle
        r"cluster-resources/pods/logs/(?P<namespace>[^/]+)/(?P<pod>[^/]+)/(?P<container>[^/]+?)(?:-previous)?\.log",
        # OpenShift must-gather: the container name is doubled
        r"namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/(?P<container>[^/]+)/(?P=container)/logs/",
        # kubectl cluster-info dump
        r"(?:^|/)(?P<namespace>[a-z0-9-]+)/(?P<pod>[a-z0-9.-]+)/logs\.txt$",
        # sosreport
        r"(?:^|/)sosreport-(?P<host>[A-Za-z0-9.-]+?)-\d{4}-\d\d-\d\d-[a-z]+(?:/|$)",
        # Rancher and EKS collectors keep the pod in the folder name
        rf"(?:^|/)pods/(?P<namespace>[a-z0-9-]+)_(?P<pod>[a-z0-9.-]+?)(?:_(?P<pod_uid>{_UID}))?/(?P<container>[a-z0-9-]+)\.log",
    )
)
_CONTAINER_ID = regex.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")


def owner(path: str) -> Scope:
    """What a path says about the owner. `a/b_c_<uid>/vllm/2.log` → namespace b, pod c, container vllm."""
    scope = Scope()
    for pattern in _OWNERS:
        found = pattern.search(path)
        if found:
            scope = scope.merged(Scope(**{k: v for k, v in found.groupdict().items() if v}))
    if not scope.container_id and (found := _CONTAINER_ID.search(path)):
        scope = scope.merged(Scope(container_id=found[1]))
    return scope
