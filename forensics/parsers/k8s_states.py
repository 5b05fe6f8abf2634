"""States of containers that somebody cut out of a pod along its structure: a list of statuses, one of them, one state.

`kubectl get pod -o jsonpath='{.status.containerStatuses}'`, `… | jq '.status.containerStatuses[0].lastState'`,
`crictl inspect … | jq -c '.status|{exitCode,reason,…}'`, the same as YAML. Each is whole JSON or YAML; what was cut
across the structure is read by `k8s_pieces`. Whose they are is left out by whoever cut them, often the name of the
container as well: it may stand before the brace, and the pod in the command above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import regex

from ..model import Event, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .commands import owner_of, title_of
from .json_yaml import read_json, read_yaml
from .k8s_facts import terminated_events
from .located import Object, holding, listed, object_at, objects_at

_STATES = frozenset({"running", "waiting", "terminated"})
_ENDED = frozenset({
    "containerID", "exitCode", "finishedAt", "message", "reason", "signal", "startedAt", "state", "name",
})  # fmt: skip
"""Keys of a terminated state (Kubernetes), and of a container's status in a runtime (CRI)."""
_OF_A_CONTAINER = ("restartCount", "containerID", "image", "ready")
MAX_CHARS = 64 * 1024
_JSON = lazy_regex(r'[{\[].*"exitCode"\s*:\s*-?\d', regex.DOTALL)
_YAML = lazy_regex(r"\s*(?:- )?[a-z][A-Za-z]*:(?:\s|$)")
_YAML_CODE = lazy_regex(r"^\s*(?:- )?exitCode: *-?\d", regex.MULTILINE)
_YAML_BEGINS = lazy_regex(r"\s*(?:- )?(?:containerStatuses:|lastState:|terminated:|containerID: \S+)\s*")
_LOOK_LINES = 14
_CONTAINER_BEFORE = lazy_regex(r"(?P<container>[a-z0-9][a-z0-9.-]{0,62})(?:[\t ]|: ?|=)(?=\{)")
_ANSWER = lazy_regex(
    rf"^(?:{_CONTAINER_BEFORE.pattern})?\{{\s*\"(?:terminated|lastState|state|containerID|exitCode)\":", regex.MULTILINE
)
_OF_OBJECTS = ('"kind"', '"apiVersion"', '"containerStatuses"', '"metadata"')
"""What whole objects hold: they are read as such."""


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
    return holding("containerStatuses", listed(containers))


def _container(value: Any) -> Object | None:
    """The status of a container that a value is, or is the state of."""
    if not isinstance(value, Object):
        return None
    states = [key for key in ("state", "lastState") if _is_state(value.get(key))]
    if states and ("lastState" in states or any(key in value for key in _OF_A_CONTAINER)):
        return value
    if _is_state(value):
        return holding("lastState", value)
    if isinstance(value.get("exitCode"), int) and len(value) > 1 and value.keys() <= _ENDED:
        return holding("lastState", holding("terminated", value))
    return None


def _is_state(value: Any) -> bool:
    return isinstance(value, Object) and len(value) == 1 and value.keys() <= _STATES


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


def read_answer(text: str, source: str) -> Parsed:
    """The ends that such objects tell; that a container runs or waits is shown better by any list."""
    owners: dict[int, Scope] = {}
    body, owner = [], Scope()
    for number, line in enumerate(text.split("\n"), 1):
        title = title_of(line)
        owner = owner_of(title) if title else owner
        named = _CONTAINER_BEFORE.match(line)
        owners[number] = owner.merged(Scope(container=named["container"])) if named else owner
        body.append(line[named.end() :] if named else line)
    return Parsed(tuple(_ends("\n".join(body), source, owners)))


def _ends(text: str, source: str, owners: dict[int, Scope]) -> Iterator[Event]:
    for document in read_json(text):
        state = document.value if isinstance(document.value, Object) else Object()
        for key in ("lastState", "state", "terminated"):
            state = object_at(state, key) or state
        if "exitCode" in state and ("finishedAt" in state or "reason" in state):
            yield from terminated_events(state, source, owners[document.line])


def _sniff_answer(head: Head) -> int:
    told = '"exitCode"' in head.text and '"finishedAt"' in head.text and _ANSWER.search(head.text) is not None
    return 91 if told and not any(key in head.text for key in _OF_OBJECTS) else 0


FORMAT = Format(
    "k8s.jsonpath", "container states (kubectl -o jsonpath)", _sniff_answer, read_answer, begins="a-z0-9{", most=91
)
