"""Container runtimes' messages: containerd, CRI-O, conmon, dockerd, and the events that Podman writes into the journal.

What a runtime says about a container carries its id only; the name, the pod and the attempt stand in the
lines that create it, and the sandbox ids in those that create pods. Those lines are learned first, file by
file. Sources: containerd `internal/cri` 1.6 to 2.4, CRI-O 1.36, moby `daemon`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import regex

from .. import stamps
from ..model import Event, Scope
from ..regexes import lazy_regex
from . import docker
from .k8s_values import known, terminated_text
from .log import Assembled, Dialect, event_of
from .numerals import is_whole
from .records import Record

_TEXT_CHARS = 4000
"""Characters of a message that are looked at."""
_ID = r"[0-9a-f]{64}"
_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# Fields of protobuf messages: `Name:vllm,` (gogo, up to 2.0) or `name:"vllm"` (golang, later).
_RUN_SANDBOX = lazy_regex(rf"RunPodSandbox for (?P<meta>.*?) returns sandbox id \"(?P<id>{_ID})\"")
_CREATE = lazy_regex(
    rf"CreateContainer within sandbox \"(?P<sandbox>{_ID})\" for (?P<meta>.*?)"
    rf" returns container id \"(?P<id>{_ID})\""
)
_META = {
    name: lazy_regex(rf"\b{name}:\"?(?P<value>[^\s,\"}}]+)", regex.IGNORECASE)
    for name in ("Name", "Namespace", "Uid", "Attempt")
}
_CRIO_NAMED = lazy_regex(
    rf"(?:Created|Started|Stopped|Removed) container (?P<id>{_ID}):"
    r" (?P<namespace>[^/\s]+)/(?P<pod>[^/\s]+)/(?P<name>\S+?)\"?(?:\s|$)"
)
_CRIO_STARTED = lazy_regex(
    rf"Started container.*?containerID=(?P<id>{_ID})"
    r" description=(?P<namespace>[^/\s]+)/(?P<pod>[^/\s]+)/(?P<name>[^\s\"]+)"
)

_TASK_OOM = lazy_regex(rf"TaskOOM event .*?(?:container_id:\"|ContainerID:)(?P<id>{_ID})")
_EXIT = lazy_regex(
    rf"received (?:container )?exit event .*?(?:container_id:\"|ContainerID:)(?P<id>{_ID})\"?,?"
    rf"\s*(?:id:\"|ID:)(?P<process>{_ID}|[^\s\",]+)"
)
_EXIT_STATUS = lazy_regex(r"(?:exit_status|ExitStatus):(\d{1,9})(?!\d)")
_EXITED_PROTO = lazy_regex(r"exited_at:\{seconds:(?P<s>\d{1,11})(?!\d)(?:\s+nanos:(?P<n>\d{1,9})(?!\d))?")
_EXITED_GO = lazy_regex(r"ExitedAt:(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [+-]\d{4})")
_STARTED = lazy_regex(rf"StartContainer for \"(?P<id>{_ID})\" returns successfully")
_STOP = lazy_regex(
    rf"StopContainer for \"(?P<id>{_ID})\" with timeout (?P<grace>\d{{1,18}}) \(s\)|"
    rf"Stopping container: (?P<id2>{_ID}) \(timeout: (?P<grace2>\d{{1,18}})s\)"
)
_KILL = lazy_regex(
    rf"Kill container \"(?P<id>{_ID})\"|"
    rf"Stopping container (?P<id2>{_ID}) with stop signal ?\(\w+\) timed out|"
    r"Container (?P<id3>[0-9a-f]{12,64}) failed to exit within|"
    r"Container failed to exit within .*?container=(?P<id4>[0-9a-f]{12,64})"
)
_ANY_ID = lazy_regex(rf"(?<![0-9a-f])(?P<id>{_ID})(?![0-9a-f])")


@dataclass(slots=True)
class _Names:
    """What a file says about ids."""

    containers: dict[str, tuple[Scope, int | None]] = field(default_factory=dict)
    """Container id → owner, attempt."""
    sandboxes: dict[str, Scope] = field(default_factory=dict)

    def learn(self, text: str) -> None:
        if found := _RUN_SANDBOX.search(text):
            self.sandboxes[found["id"]] = Scope(
                namespace=_meta(found["meta"], "Namespace"), pod=_meta(found["meta"], "Name"),
                pod_uid=_meta(found["meta"], "Uid"),
            )  # fmt: skip
        elif found := _CREATE.search(text):
            pod = self.sandboxes.setdefault(found["sandbox"], Scope())
            attempt = _meta(found["meta"], "Attempt")
            owner = Scope(container=_meta(found["meta"], "Name"), container_id=found["id"]).merged(pod)
            self.containers[found["id"]] = (owner, int(attempt) if is_whole(attempt) else 0)
        elif found := _CRIO_NAMED.search(text) or _CRIO_STARTED.search(text):
            owner = Scope(
                namespace=found["namespace"],
                pod=found["pod"],
                container=found["name"],
                container_id=found["id"],
            )
            self.containers[found["id"]] = (owner, None)


def _meta(text: str, name: str) -> str:
    found = _META[name].search(text)
    return found["value"] if found else ""


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """Learn who is who in this file, then read the messages with that knowledge."""
    names = _Names()
    for record in records:
        names.learn(record.text[:_TEXT_CHARS])
    events = [_read(event_of(record, source), names) for record in records if record.text.strip()]
    return Assembled(tuple(events), frozenset(record.line for record in records))


def _read(event: Event, names: _Names) -> Event:
    if (told := docker.spoken(event)) is not None:
        return told
    for pattern, reader in _READERS:
        found = pattern.search(event.text, 0, _TEXT_CHARS)
        if found is not None:
            return reader(event, found, names)
    found = _ANY_ID.search(event.text, 0, _TEXT_CHARS)
    return _owned(event, found["id"], names) if found is not None else event


def _owned(event: Event, identity: str, names: _Names) -> Event:
    """An event with the container, or the pod, that an id stands for."""
    if identity in names.containers:
        scope = names.containers[identity][0]
    elif identity in names.sandboxes:
        scope = names.sandboxes[identity]
    else:
        scope = Scope(container_id=identity) if len(identity) == 64 else Scope()
    return replace(event, scope=scope.merged(event.scope))


def _with(event: Event, kind: str, text: str, fields: dict[str, Any]) -> Event:
    return replace(event, kind=kind, text=text, fields={**event.fields, **known(fields)})


def label(scope: Scope, identity: str) -> str:
    """How texts name a container: by name, else by the first twelve digits of its id."""
    return scope.container or identity[:12]


def _oom(event: Event, found: regex.Match[str], names: _Names) -> Event:
    return _owned(event, found["id"], names)


def _exit(event: Event, found: regex.Match[str], names: _Names) -> Event:
    """The end of a container. An exec'd process (a probe) and a pod's sandbox may end without a container."""
    identity = found["id"]
    event = _owned(event, identity, names)
    if found["process"] != identity or identity in names.sandboxes:
        return event
    status = _EXIT_STATUS.search(event.text)
    code = int(status[1]) if status else 0  # protobuf leaves out zeros
    signal = code - 128 if 128 < code <= 192 else None
    return _with(event, "container_terminated", terminated_text(label(event.scope, identity), "", code),
                 {"exit_code": code, "signal": signal, "finished_s": _exited_s(event.text)})  # fmt: skip


def _exited_s(text: str) -> float | None:
    if found := _EXITED_PROTO.search(text):
        return int(found["s"]) + int(found["n"] or 0) / 1e9
    found = _EXITED_GO.search(text)
    stamp = stamps.iso(found["time"].replace(" +", "+").replace(" -", "-"), "runtime") if found else None
    return stamp.seconds if stamp is not None else None


def _start(event: Event, found: regex.Match[str], names: _Names) -> Event:
    event = _owned(event, found["id"], names)
    attempt = names.containers[found["id"]][1] if found["id"] in names.containers else None
    return _with(event, "container_started", f"container {label(event.scope, found['id'])} started",
                 {"attempt": attempt})  # fmt: skip


def _stop(event: Event, found: regex.Match[str], names: _Names) -> Event:
    event = _owned(event, found["id"] or found["id2"], names)
    return _with(
        event, "container_kill", event.text, {"grace_s": int(found["grace"] or found["grace2"]), "signal": 15}
    )


def _kill(event: Event, found: regex.Match[str], names: _Names) -> Event:
    """The grace period is over: SIGKILL."""
    identity = next(value for value in found.groups() if value)
    return _with(_owned(event, identity, names), "container_kill", event.text, {"signal": 9})


_READERS: tuple[tuple[regex.Pattern[str], Callable[[Event, regex.Match[str], _Names], Event]], ...] = (
    (_TASK_OOM, _oom),
    (_EXIT, _exit),
    (_STARTED, _start),
    (_CRIO_STARTED, _start),
    (_STOP, _stop),
    (_KILL, _kill),
)

DIALECT = Dialect(
    "runtime",
    anchors=(
        "TaskOOM event ", "received exit event ", "received container exit event ", "RunPodSandbox for ",
        "CreateContainer within sandbox ", "StartContainer for ", "StopContainer for ", "Kill container ",
        "Started container", "Stopped container ", "Created container ", "Stopping container",
        "failed to exit within",
        " container health_status ", " container kill ", " container died ", " container start ",
    ),
    assemble=assemble,
)  # fmt: skip
