"""States of containers that somebody cut out of a pod's JSON or YAML: a list of statuses, one of them, a last state.

`kubectl get pod -o jsonpath='{.status.containerStatuses}'`, `… | jq '.status.containerStatuses[0].lastState'`,
`crictl inspect … | jq -c '.status|{exitCode,reason,…}'`. Whose they are is left out by whoever cut them, often the name
of the container as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import regex

from ..sources import Head
from .json_yaml import read_json, read_yaml
from .located import Array, Object, objects_at

_STATES = frozenset({"running", "waiting", "terminated"})
_ENDED = frozenset({
    "containerID", "exitCode", "finishedAt", "message", "reason", "signal", "startedAt", "state", "name",
})  # fmt: skip
"""Keys of a terminated state (Kubernetes), and of a container's status in a runtime (CRI)."""
_OF_A_CONTAINER = ("restartCount", "containerID", "image", "ready")
MAX_CHARS = 64 * 1024
_JSON = regex.compile(r'[{\[].*"exitCode"\s*:\s*-?\d', regex.DOTALL)
_YAML = regex.compile(r"\s*(?:- )?[a-z][A-Za-z]*:(?:\s|$)")
_YAML_CODE = regex.compile(r"^\s*(?:- )?exitCode: *-?\d", regex.MULTILINE)
_YAML_BEGINS = regex.compile(r"\s*(?:- )?(?:containerStatuses:|lastState:|terminated:|containerID: \S+)\s*")
_LOOK_LINES = 14


def status_of(value: Any) -> Object | None:
    """The status of a pod of which a value is a part, none where it is no state of a container."""
    if isinstance(value, Object) and "containerStatuses" in value and not {"kind", "metadata", "status"} & value.keys():
        return value if objects_at(value, "containerStatuses") else None
    if isinstance(value, Object) and value.keys() == {"status"}:
        return status_of(value["status"])
    items = value if isinstance(value, list) else [value]
    containers = [container for item in items if (container := _container(item)) is not None]
    if not containers or len(containers) != len(items):
        return None
    every = Array(containers[0].line)
    for container in containers:
        every.add(container, container.line)
    return _holding("containerStatuses", every, every.line)


def _container(value: Any) -> Object | None:
    """The status of a container that a value is, or is the state of."""
    if not isinstance(value, Object):
        return None
    states = [key for key in ("state", "lastState") if _is_state(value.get(key))]
    if states and ("lastState" in states or any(key in value for key in _OF_A_CONTAINER)):
        return value
    if _is_state(value):
        return _holding("lastState", value, value.line)
    if isinstance(value.get("exitCode"), int) and len(value) > 1 and value.keys() <= _ENDED:
        return _holding("lastState", _holding("terminated", value, value.line), value.line)
    return None


def _is_state(value: Any) -> bool:
    return isinstance(value, Object) and len(value) == 1 and value.keys() <= _STATES


def _holding(key: str, value: Any, line: int) -> Object:
    outer = Object(line)
    outer.put(key, value, line)
    return outer


def is_fragment(head: Head) -> bool:
    """Whether a text is nothing but such states."""
    text = head.text.strip("\n")
    if not head.whole or len(text) > MAX_CHARS:
        return False
    if _JSON.match(text.lstrip()):
        documents = list(read_json(text))
    elif is_yaml(text):
        documents = list(read_yaml(text))
    else:
        return False
    return bool(documents) and all(not d.problem and status_of(d.value) is not None for d in documents)


def is_yaml(text: str) -> bool:
    """Whether a text begins like YAML and has an exit code."""
    return _YAML.match(text) is not None and _YAML_CODE.search(text) is not None


def begins(lines: Sequence[str], index: int) -> bool:
    """True where such states begin in the middle of a text, as YAML, or as JSON on one line."""
    line = lines[index]
    if line[:1] in ("{", "["):
        return line.rstrip()[-1:] in ("}", "]") and _JSON.match(line) is not None
    ahead = "\n".join(lines[index : index + _LOOK_LINES])
    return _YAML_BEGINS.fullmatch(line) is not None and _YAML_CODE.search(ahead) is not None
