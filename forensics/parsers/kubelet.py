"""kubelet's messages: probes, kills, and the life events of containers.

The envelopes have taken off journal and klog headers; what is left is klog's structured form, `"message"
key="value" key=1 key={…}`. A value of several lines is printed as `key=<`, tab-indented lines, ` >`; in a
journal each of them is an entry of its own. Source: Kubernetes `pkg/kubelet` and `k8s.io/klog`, 1.20 to 1.36.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import regex

from ..model import Event, Locator, Scope
from ..regexes import lazy_regex
from ..scan import Window
from .k8s_values import container_id, known, terminated_text
from .log import Assembled, Dialect, event_of
from .records import Record

MAX_CONTINUATION = 60
"""Lines of one multi-line value."""
_MESSAGE = lazy_regex(r'"(?P<message>(?:[^"\\]|\\.)*+)"')
_KEY = lazy_regex(r"\s+(?P<key>[A-Za-z][\w./-]*)=")
_QUOTED = lazy_regex(r'"(?:[^"\\]|\\.)*+"', regex.DOTALL)
_LINES_END = lazy_regex(r"\n\s*>(?=\s|$)")
_BLANK = lazy_regex(r"\s")
_DECODER = json.JSONDecoder(strict=False)
_OLD_EVENT = lazy_regex(r"ID:(?P<ID>\S+) Type:(?P<Type>\w+) Data:(?P<Data>[0-9a-f]+)")
_SHORT = 12
"""Hex digits of a container id in texts, as the runtimes' tools print it."""
_MESSAGE_CHARS = 16000
"""Characters of a message whose keys are read."""
_VALUE_CHARS = 2000


def pairs(text: str) -> dict[str, str]:
    """The keys of a structured message with their values as text, without quotes."""
    text = text[:_MESSAGE_CHARS]
    head = _MESSAGE.match(text)
    found: dict[str, str] = {}
    position = head.end() if head is not None else len(text)
    while (key := _KEY.search(text, position)) is not None:
        found[key["key"]], position = _value_at(text, key.end())
    return found


def _value_at(text: str, start: int) -> tuple[str, int]:
    """A value and the position after it: quoted, lines in `<` `>`, an object, or a bare word."""
    if text.startswith('"', start) and (quoted := _QUOTED.match(text, start)) is not None:
        return _unquoted(quoted[0]), quoted.end()
    if text.startswith("<\n", start):
        close = _LINES_END.search(text, start)
        lines = text[start + 2 : close.start() if close else len(text)].split("\n")
        return "\n".join(line.removeprefix("\t") for line in lines), close.end() if close else len(text)
    if text.startswith(("{", "[", "&{"), start):
        try:
            end = _DECODER.raw_decode(text, start)[1]
        except (ValueError, RecursionError):  # a Go struct, as kubelets before 1.25 print their events
            following = _KEY.search(text, start)
            end = following.start() if following else len(text)
        return text[start:end], end
    blank = _BLANK.search(text, start)
    end = blank.start() if blank else len(text)
    return text[start:end], end


def _unquoted(text: str) -> str:
    """A Go-quoted string; its escapes are JSON's, save a few that are left as they stand."""
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _scope(keys: Mapping[str, str]) -> Scope:
    """Whose a message is: `pod="ns/name"` (an object in JSON logging), its uid, its container."""
    pod = keys.get("pod", "")
    as_object = _mapping(pod) if pod.startswith("{") else {}
    namespace, _, name = pod.rpartition("/") if not as_object else ("", "", "")
    ids = (keys.get(key, "") for key in ("containerID", "containerStatusID", "containerId"))
    identity = next((found for text in ids if (found := _id_of(text))), "")
    uid = keys.get("podUID") or keys.get("podID") or ""
    return Scope(
        namespace=str(as_object.get("namespace", namespace)), pod=str(as_object.get("name", name)),
        pod_uid=uid if regex.fullmatch(r"[0-9a-f-]{32,36}", uid) else "",
        container=keys.get("containerName", ""), container_id=identity,
    )  # fmt: skip


def _id_of(text: str) -> str:
    """`containerd://<id>`, a bare id, or `{"Type":"containerd","ID":"<id>"}`."""
    return container_id(str(_mapping(text).get("ID", ""))) if text.startswith("{") else container_id(text)


def refine(event: Event) -> Event:
    """A kubelet message with its owner and fields; lifecycle messages get their own kind."""
    head = _MESSAGE.match(event.text)
    if head is None:
        return event
    keys = pairs(event.text)
    message = head["message"]
    event = replace(event, scope=_scope(keys).merged(event.scope))
    special = _REFINERS.get(message)
    if special is not None:
        return special(event, keys)
    values = {key: value[:_VALUE_CHARS] for key, value in keys.items()}
    return replace(event, fields={**event.fields, "message": message, **values})


def _with(event: Event, kind: str, fields: dict[str, Any], text: str = "") -> Event:
    return replace(event, kind=kind, text=text or event.text, fields={**event.fields, **known(fields)})


def _probe_failed(event: Event, keys: Mapping[str, str]) -> Event:
    output = keys.get("output", "").removesuffix("<") or keys.get("err", "")
    return _with(event, "probe_failed", {
        "probe": keys.get("probeType", "").lower(), "result": keys.get("probeResult"),
        "output": output.strip(),
    })  # fmt: skip


def _kill(event: Event, keys: Mapping[str, str]) -> Event:
    return _with(event, "container_kill", {"grace_s": _number(keys.get("gracePeriod"))})


def _finished(event: Event, keys: Mapping[str, str]) -> Event:
    code = _number(keys.get("exitCode"))
    signal = code - 128 if code is not None and 128 < code <= 192 else None
    return _with(event, "container_terminated", {"exit_code": code, "signal": signal},
                 terminated_text(_label(event.scope), "", code))  # fmt: skip


def _lifecycle(event: Event, keys: Mapping[str, str]) -> Event:
    """`SyncLoop (PLEG)`: a container, or the pod's sandbox, was seen to start or to be gone."""
    raw = keys.get("event", "")
    old = _OLD_EVENT.search(raw)
    told: Mapping[str, Any] = _mapping(raw) or (old.groupdict() if old else {})
    kind = {"ContainerStarted": "container_started", "ContainerDied": "container_died"}.get(
        str(told.get("Type"))
    )
    if kind is None:
        return event
    own = Scope(pod_uid=str(told.get("ID", "")), container_id=container_id(str(told.get("Data", ""))))
    event = replace(event, scope=event.scope.merged(own))
    verb = "started" if kind == "container_started" else "died"
    return _with(event, kind, {}, f"container {_label(event.scope)} {verb}")


def _label(scope: Scope) -> str:
    return scope.container or scope.container_id[:_SHORT] or "?"


def _number(text: str | None) -> int | None:
    return int(text) if text and regex.fullmatch(r"-?\d{1,9}", text) else None


_REFINERS: dict[str, Callable[[Event, Mapping[str, str]], Event]] = {
    "Probe failed": _probe_failed,
    "Probe errored": _probe_failed,
    "Killing container with a grace period": _kill,
    "Killing container with a grace period override": _kill,
    "Generic (PLEG): container finished": _finished,
    "SyncLoop (PLEG): event for pod": _lifecycle,
    "SyncLoop (PLEG): event for pod with container ID": _lifecycle,
}


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """Join the lines of a multi-line value to the message that opens it."""
    events: list[Event] = []
    used: set[int] = set()
    for index, record in enumerate(records):
        if not record.text.rstrip().endswith("=<") or not record.text.startswith('"'):
            continue
        parts, last = [record.text.rstrip()], record
        complete = False
        for following in records[index + 1 : index + 1 + MAX_CONTINUATION]:
            if "klog" in following.envelopes or following.text.startswith('"'):
                break
            parts.append(following.text)
            used.add(following.line)
            last = following
            if following.text.strip().startswith(">"):
                complete = True
                break
        used.add(record.line)
        text = "\n".join(parts) if complete else "\n".join([*parts, " >"])
        event = event_of(replace(record, text=text), source)
        place = Locator(source, record.line, last.line)
        events.append(refine(replace(event, locator=place, complete=complete)))
    return Assembled(tuple(events), frozenset(used))


DIALECT = Dialect(
    "kubelet",
    anchors=(
        '"Generic (PLEG): container finished"', '"SyncLoop (PLEG): event for pod',
        '"Killing container with a grace', '"Probe failed"', '"Probe errored"',
    ),
    windows=tuple(Window(f"{key}=<", (" >",), MAX_CONTINUATION) for key in ("output", "err")),
    assemble=assemble,
    refine=refine,
)  # fmt: skip
