"""Pieces of a pod's YAML, as people cut them out for a ticket: the states of a container without the object around.

Cut along the structure they are read whole (`k8s_states`). Where the cut goes across it, as it does in a `grep -A`
or a selection by mouse, the text is no YAML; then each state is looked for and read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from ..model import Event, Parsed
from ..regexes import lazy_regex
from ..sources import Format, Head
from .json_yaml import read_yaml
from .k8s_facts import pod_events
from .located import Object, holding, listed, quoted, text_at

MAX_BYTES = 4 << 20
_STATE = lazy_regex(r"(?P<indent> *)(?:- )?(?P<key>state|lastState): *")
_COUNT = lazy_regex(r" *(?:- )?(?P<key>restartCount|terminationGracePeriodSeconds): *(?P<value>\d{1,6}) *")
_NAME = lazy_regex(r" *(?:- )?name: *[\"']?(?P<name>[a-z0-9][a-z0-9.-]*)[\"']? *")
_OBJECT = lazy_regex(
    r"^(?:kind|apiVersion):|^ *[\"']?(?:containerStatuses|conditions|hostIP|phase)[\"']?:", regex.MULTILINE
)
_YAML_LINE = lazy_regex(r" *(?:- *)?[\w./-]+:(?:\s.*)?")


def read(text: str, source: str) -> Parsed:
    """The facts of one container of one pod; neither has a name, unless a line gives the container's."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return quoted(_events(lines, source), lines)


def _events(lines: Sequence[str], source: str) -> Iterator[Event]:
    status, spec = Object(1), Object(1)
    status.put("name", "", 1)
    for number, line in enumerate(lines, 1):
        if (found := _STATE.fullmatch(line)) is not None:
            _put_state(status, found["key"], lines, number, len(found["indent"]))
        elif (found := _COUNT.fullmatch(line)) is not None:
            owner = status if found["key"] == "restartCount" else spec
            owner.put(found["key"], int(found["value"]), number)
        elif (found := _NAME.fullmatch(line)) is not None and not text_at(status, "name"):
            status.put("name", found["name"], number)
    pod = holding("status", holding("containerStatuses", listed([status])))
    pod.put("spec", spec, 1)
    yield from pod_events(pod, source, printed_lines=True)


def _put_state(status: Object, key: str, lines: Sequence[str], number: int, indent: int) -> None:
    """The lines below a key that are deeper than it, at the places where they stand."""
    end = number
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    block = "\n" * number + "\n".join(lines[number:end])
    value = next((document.value for document in read_yaml(block) if isinstance(document.value, Object)), None)
    if value is not None and key not in status:
        status.put(key, value, number)


def _sniff(head: Head) -> int:
    text = head.text
    if "exitCode:" not in text or "terminated:" not in text or _OBJECT.search(text):
        return 0
    lines = head.filled
    return 85 if sum(_YAML_LINE.fullmatch(line) is not None for line in lines) >= 0.9 * len(lines) else 0


FORMAT = Format("k8s.pieces", "pieces of a pod's YAML", _sniff, read, MAX_BYTES)
