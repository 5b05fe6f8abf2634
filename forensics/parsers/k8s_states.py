"""States of containers cut out of the API: `kubectl get pod … -o jsonpath='{.status…lastState}'`, or `jq` of the same.

Each is a JSON object: a state by its word (`{"terminated": {…}}`) or what `terminated` holds, on one line or several,
after the name of the container where the query asked for it. Whose pod it is stands in the command above, if anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from ..model import Event, Parsed, Scope
from ..sources import Format, Head
from .commands import owner_of, title_of
from .json_yaml import read_json
from .k8s_facts import terminated_events
from .located import Object, object_at

_NAMED = regex.compile(r"(?P<container>[a-z0-9][a-z0-9.-]{0,62})(?:[\t ]|: ?|=)(?=\{)")
_BEGINS = regex.compile(
    rf"^(?:{_NAMED.pattern})?\{{\s*\"(?:terminated|lastState|state|containerID|exitCode)\":", regex.MULTILINE
)
_OTHERS = ('"kind"', '"apiVersion"', '"containerStatuses"', '"metadata"')
"""What whole objects hold: they are read as such."""


def read(text: str, source: str) -> Parsed:
    """The ends that such objects tell; that a container runs or waits is shown better by any list."""
    owners: dict[int, Scope] = {}
    body, owner = [], Scope()
    for number, line in enumerate(text.split("\n"), 1):
        title = title_of(line)
        owner = owner_of(title) if title else owner
        named = _NAMED.match(line)
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


def _sniff(head: Head) -> int:
    told = '"exitCode"' in head.text and '"finishedAt"' in head.text and not any(map(head.text.__contains__, _OTHERS))
    return 91 if told and _BEGINS.search(head.text) else 0


FORMAT = Format("k8s.states", "container states (kubectl -o jsonpath)", _sniff, read, begins="a-z0-9{", most=91)
