"""The blocks of `kubectl describe`; what nodes and workloads say in them, turned back into API objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from ..regexes import lazy_regex
from .k8s_containers import Lines, add_containers, add_volumes, with_messages
from .k8s_values import utc
from .located import Array, Object
from .numerals import is_whole
from .tables import titled

_KEY = lazy_regex(r"(?P<key>[A-Z][\w /()-]*?):(?:\s+(?P<value>.*))?")
_SECTION = lazy_regex(r" {2}(?P<key>\w[\w -]*?):(?:\s+(?P<value>.*))?")
_AFTER_MESSAGE = (
    "IP", "IPs", "Controlled By", "NominatedNodeName",
    "Init Containers", "Containers", "Ephemeral Containers",
)  # fmt: skip
"""Keys that may follow a pod's own message; every other line belongs to the message."""


@dataclass(frozen=True, slots=True)
class Block:
    """A key with its value and the lines below it."""

    key: str
    value: str
    line: int
    body: Lines

    def pairs(self) -> Iterator[tuple[str, str, int]]:
        """`key=value` or `key: value` lines; the first one stands beside the key."""
        for number, line in [(self.line, self.value), *self.body]:
            found = regex.match(r"\s*(?P<name>[^\s=:]+(?::[^\s=:]+)*)(?:=|:\s+)(?P<value>\S.*|$)", line)
            if found:
                yield found["name"], found["value"].strip(), number


class Blocks:
    """The blocks of one object by key."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = {block.key: block for block in blocks}

    def __contains__(self, key: str) -> bool:
        return key in self._blocks

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks.values())

    def get(self, key: str) -> Block:
        """The block of a key; an empty one when the object has none."""
        return self._blocks.get(key) or Block(key, "", 0, [])

    def value(self, key: str) -> str:
        """What stands beside a key; empty for kubectl's placeholders."""
        value = self.get(key).value.strip()
        return "" if value in ("<none>", "<unset>", "<unknown>") else value


def blocks_of(lines: Lines) -> Blocks:
    """Cut an object at its keys in column 0. What a raw message spills there is no key; Events come last."""
    return Blocks(_cut(lines))


def _cut(lines: Lines) -> Iterator[Block]:
    key, value, start = "", "", 0
    body: Lines = []
    for number, line, raw in with_messages(lines):
        found = None if raw or key == "Events" or not line[:1].isalpha() else _KEY.fullmatch(line)
        if found is None or (key == "Message" and found["key"] not in _AFTER_MESSAGE):
            body.append((number, line))
            continue
        if key:
            yield Block(key, value, start, body)
        key, value, start, body = found["key"], found["value"] or "", number, []
    if key:
        yield Block(key, value, start, body)


def child(parent: Object, key: str, line: int) -> Object:
    """A new mapping under a key."""
    made = Object(line)
    parent.put(key, made, line)
    return made


def put_text(parent: Object, key: str, blocks: Blocks, title: str) -> None:
    """The value of a block under an API name, when there is one."""
    if blocks.value(title):
        parent.put(key, blocks.value(title), blocks.get(title).line)


def put_time(parent: Object, key: str, blocks: Blocks, title: str) -> None:
    """The time of a block as the API prints it, when it is one."""
    moment = utc(blocks.value(title))
    if moment:
        parent.put(key, moment, blocks.get(title).line)


_CONDITION_TEXTS = (("Type", "type"), ("Status", "status"), ("Reason", "reason"), ("Message", "message"))
_CONDITION_TIMES = (("LastHeartbeatTime", "lastHeartbeatTime"), ("LastTransitionTime", "lastTransitionTime"))


def add_conditions(status: Object, blocks: Blocks) -> None:
    """The conditions table: Type and Status; for workloads a Reason, for nodes times and a message."""
    block = blocks.get("Conditions")
    header, first = titled(block.body, "Type", "Status")
    if header is None:
        return
    conditions = Array(block.line)
    for number, line in block.body[first:]:
        cells = header.cells(line)
        condition = Object(number)
        for column, key in _CONDITION_TEXTS:
            if cells.get(column):
                condition.put(key, cells[column], number)
        for column, key in _CONDITION_TIMES:
            if utc(cells.get(column, "")):
                condition.put(key, utc(cells[column]), number)
        if "type" in condition:
            conditions.add(condition, number)
    status.put("conditions", conditions, conditions.line)


_NODE_INFO = {
    "Kernel Version": "kernelVersion",
    "Container Runtime Version": "containerRuntimeVersion",
    "Boot ID": "bootID",
}


def fill_node(node: Object, blocks: Blocks) -> None:
    """Capacity, conditions and versions of a described node."""
    spec, status = child(node, "spec", node.line), child(node, "status", node.line)
    if blocks.value("Unschedulable") == "true":
        spec.put("unschedulable", True, blocks.get("Unschedulable").line)
    for title in ("Capacity", "Allocatable"):
        resources = child(status, title.lower(), blocks.get(title).line)
        for number, line in blocks.get(title).body:
            name, _, amount = line.strip().partition(":")
            resources.put(name, amount.strip(), number)
    info = child(status, "nodeInfo", blocks.get("System Info").line)
    for number, line in blocks.get("System Info").body:
        name, _, text = line.strip().partition(":")
        if name in _NODE_INFO:
            info.put(_NODE_INFO[name], text.strip(), number)
    add_conditions(status, blocks)


_AMOUNTS = lazy_regex(r"(\d{1,9}) (\w+)")
_REPLICAS = {
    "desired": ("spec", "replicas"), "updated": ("status", "updatedReplicas"),
    "available": ("status", "availableReplicas"), "unavailable": ("status", "unavailableReplicas"),
}  # fmt: skip
_COUNTS = {
    "Desired Number of Nodes Scheduled": ("status", "desiredNumberScheduled"),
    "Number of Nodes Scheduled with Available Pods": ("status", "numberAvailable"),
    "Number of Nodes Scheduled with Up-to-date Pods": ("status", "updatedNumberScheduled"),
    "Completions": ("spec", "completions"),
}
_STATUSES = {"Running": "readyReplicas", "Succeeded": "succeeded", "Failed": "failed"}


def fill_workload(workload: Object, blocks: Blocks) -> None:
    """Replica counts, conditions, annotations and the pod template of a described workload."""
    top = workload.line
    parts = {"spec": child(workload, "spec", top), "status": child(workload, "status", top)}
    for amount, word in _AMOUNTS.findall(blocks.value("Replicas")):
        if word in _REPLICAS:
            part, key = _REPLICAS[word]
            parts[part].put(key, int(amount), blocks.get("Replicas").line)
    for title, (part, key) in _COUNTS.items():
        if is_whole(blocks.value(title)):
            parts[part].put(key, int(blocks.value(title)), blocks.get(title).line)
    for title in ("Pods Status", "Pods Statuses"):
        for amount, word in _AMOUNTS.findall(blocks.value(title)):
            if word in _STATUSES:
                parts["status"].put(_STATUSES[word], int(amount), blocks.get(title).line)
    if "Annotations" in blocks:
        annotations = child(workload["metadata"], "annotations", blocks.get("Annotations").line)
        for name, text, number in blocks.get("Annotations").pairs():
            annotations.put(name, text, number)
    _fill_template(parts["spec"], blocks.get("Pod Template"))
    add_conditions(parts["status"], blocks)


def _fill_template(spec: Object, template: Block) -> None:
    pod_spec = child(child(spec, "template", template.line), "spec", template.line)
    sections: dict[str, Lines] = {}
    key = ""
    for number, line in template.body:
        found = _SECTION.fullmatch(line)
        if found:
            key = found["key"]
            sections[key] = []
        elif key:
            sections[key].append((number, line))
    unused = Object(template.line)
    add_containers(sections.get("Init Containers", []), pod_spec, "initContainers", unused, "")
    add_containers(sections.get("Containers", []), pod_spec, "containers", unused, "")
    add_volumes(sections.get("Volumes", []), pod_spec)
