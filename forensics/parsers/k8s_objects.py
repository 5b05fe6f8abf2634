"""Kubernetes API objects as JSON or YAML, in every wrapping that tools give them.

`kubectl get -o json|yaml` (single object, `List`, typed lists), `kubectl get --raw` (one line, items without
a kind), `kubectl get -w` (watch events), several documents in one file, and `kubectl cluster-info dump`,
whose standard output mixes lists with the logs of all containers. Kinds that carry no facts for this tool are
passed over knowingly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import regex

from ..model import Diagnostic, Event, Parsed, Scope, Severity
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import embedded, k8s_states
from .exports import WRAPPED
from .json_yaml import Document, read_json, read_yaml
from .k8s_cluster import event_events, kubelet_config_event, node_events, workload_events
from .k8s_facts import pod_events
from .k8s_templates import template_events
from .kubectl_lines import SECTION_END, SECTION_START
from .located import Object, dig, holding, line_at, object_at, objects_at, quoted, text_at
from .serve_status import service_events

_WATCH_TYPES = ("ADDED", "MODIFIED", "DELETED")
_WORKLOADS = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
)


def _workload(kind: str) -> Callable[[Object, str], Iterable[Event]]:
    return lambda entry, source: workload_events(entry, kind, source)


_READERS: dict[str, Callable[[Object, str], Iterable[Event]]] = {
    "Pod": pod_events,
    "Node": node_events,
    "Event": event_events,
    "RayService": service_events,
    "KubeletConfiguration": lambda entry, source: [kubelet_config_event(entry, source)],
    **{kind: _workload(kind) for kind in _WORKLOADS},
}


def read(text: str, source: str) -> Parsed:
    """All facts of a file of API objects. Damage is reported, and what stands before it is kept."""
    documents, logs = _without_logs(text)
    as_yaml = _YAML_HEAD.search(documents) or k8s_states.is_yaml(documents)
    as_json = documents.lstrip()[:1] in ("{", "[") or not as_yaml
    lines = text.split("\n")
    events: list[Event] = []
    diagnostics: list[Diagnostic] = []
    for document in read_json(documents) if as_json else read_yaml(documents):
        problem = document.problem or _cut_list(document, as_json)
        found = list(_objects(document.value))
        for entry, kind in found:
            told = list(_READERS[kind](entry, source) if kind in _READERS else template_events(entry, kind, source))
            if problem and entry is found[-1][0]:
                told = [replace(event, complete=False) for event in told]
            events += told
        if problem:
            line = document.problem_line or len(lines)
            diagnostics.append(Diagnostic(
                source, line, Severity.WARNING, f"the {'JSON' if as_json else 'YAML'} {problem}",
                "what stands before it is analysed; collect the object again for the rest",
            ))  # fmt: skip
    parsed = quoted(events, lines, diagnostics)
    if not logs:
        return parsed
    read_logs = embedded.read_text(logs, source, "container")
    return replace(parsed, events=(*parsed.events, *read_logs.events), samples=read_logs.samples, scope=Scope())


def _objects(value: object, kind: str = "") -> Iterator[tuple[Object, str]]:
    """The objects of a document with their kinds; `kind` is what the list around them says."""
    if (status := k8s_states.status_of(value)) is not None:
        yield _picked(status), "Pod"
        return
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, kind)
    if not isinstance(value, Object):
        return
    if text_at(value, "type") in _WATCH_TYPES and isinstance(value.get("object"), Object):
        yield from _objects(value["object"])
    elif isinstance(value.get("items"), list):
        own = text_at(value, "kind")
        inner = own.removesuffix("List") if own != "List" else ""
        for item in value["items"]:
            yield from _objects(item, inner)
    elif _is_bare_status(value):
        yield holding("status", value), "Pod"
    else:
        yield value, _kind(value, kind)


def _picked(status: Object) -> Object:
    """The pod around a status; who picked fields with `jq` may have put the pod's name, uid and node beside it."""
    pod = holding("status", status)
    for part, keys in (("metadata", ("name", "namespace", "uid")), ("spec", ("nodeName",))):
        found = Object(status.line)
        for key in keys:
            if text_at(status, key):
                found.put(key, status[key], line_at(status, key))
        if found:
            pod.put(part, found, status.line)
    return pod


def _kind(entry: Object, default: str) -> str:
    """The kind of an object: as stated, as its list says, or by its shape (collectors drop it from items)."""
    about = object_at(entry, "involvedObject") or object_at(entry, "regarding")
    if about and "reason" in entry:
        return "Event"
    stated = text_at(entry, "kind") or default
    if stated:
        return stated if stated != "Event" else ""  # an audit record calls itself Event, too
    stated_ones = objects_at(entry, "spec", "containers") or objects_at(entry, "status", "containerStatuses")
    if stated_ones or _is_bare_status(object_at(entry, "status")):
        return "Pod"
    if object_at(entry, "status", "nodeInfo"):
        return "Node"
    if objects_at(entry, "spec", "template", "spec", "containers"):
        return "ReplicaSet" if dig(entry, "metadata", "ownerReferences") else "Deployment"
    return ""


def _is_bare_status(value: Object) -> bool:
    """The status of a pod, as people paste it without the object around it: whose it is stays unknown."""
    return text_at(value, "phase") in _POD_PHASES and ("containerStatuses" in value or "reason" in value)


def _cut_list(document: Document, as_json: bool) -> str:
    """A YAML list says its kind after its items: without one the file was cut, though its syntax is whole."""
    value = document.value
    cut = not as_json and isinstance(value, Object) and "items" in value and "kind" not in value
    return "ends in the middle of a list" if cut else ""


def _without_logs(text: str) -> tuple[str, str]:
    """The documents and the log sections of a cluster dump, each with the other's lines left blank."""
    if SECTION_START not in text:
        return text, ""
    documents, logs = [], []
    inside = False
    for line in text.split("\n"):
        inside = inside or line.startswith(SECTION_START)
        documents.append("" if inside else line)
        logs.append(line if inside else "")
        if inside and line.startswith(SECTION_END):
            inside = False
    return "\n".join(documents), "\n".join(logs)


_JSON_KIND = lazy_regex(r'"kind"\s*:\s*"[A-Z]\w+"')
_JSON_VERSION = lazy_regex(r'"apiVersion"\s*:\s*"[\w./-]+"')
_JSON_SHAPE = lazy_regex(r'"(?:containerStatuses|involvedObject|regarding|nodeInfo|creationTimestamp)"\s*:')
_POD_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_JSON_PHASE = lazy_regex(rf'"phase"\s*:\s*"(?:{"|".join(_POD_PHASES)})"')
_JSON_BEGIN = lazy_regex(r"^[{\[]", regex.MULTILINE)
_YAML_HEAD = lazy_regex(r"^(?:apiVersion|kind): *[\"']?[\w./-]+", regex.MULTILINE)
_YAML_KEY = lazy_regex(r"^(?:items|kind|metadata):", regex.MULTILINE)
_LEAD_CHARS = 600
"""A prompt or a warning of kubectl may stand before the first object."""


def sniff(head: Head) -> int:
    """API objects: JSON or YAML with `apiVersion` and `kind`, or with the shape of a known object."""
    if k8s_states.is_fragment(head):
        return 90
    begin = _JSON_BEGIN.search(head.text, 0, _LEAD_CHARS)
    if begin is not None:
        start = head.text[begin.start() : begin.start() + 65536]
        if (version := _JSON_VERSION.search(start)) is not None and _JSON_KIND.search(start):
            return 95 if WRAPPED.search(start, 0, version.start()) is None else 0
        if _JSON_PHASE.search(start) and ('"containerStatuses"' in start or '"reason"' in start):
            return 85
        return 85 if '"metadata"' in start and _JSON_SHAPE.search(start) else 0
    found = _YAML_HEAD.search(head.text, 0, _LEAD_CHARS)
    return 95 if found is not None and _YAML_KEY.search(head.text) else 0


FORMAT = Format("k8s.objects", "Kubernetes objects (JSON or YAML)", sniff, read, begins=r"\[{a-z-")
