"""Containers of Amazon ECS and Nomad: `aws ecs describe-tasks` and `nomad alloc status -json`.

Shapes from the ECS API 2014-11-13 (a task of `DescribeTasks`, or the `detail` of its state-change event) and from
Nomad 0.9 to 1.10 `api/allocations.go`. Both name an OOM kill in words of their own; it becomes the reason OOMKilled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import stamps
from ..model import Event, Locator, RawStamp, Scope
from .k8s_values import instant, known, terminated_text
from .located import Object, dig, int_at, line_at, object_at, objects_at, text_at

_ECS_OOM = "OutOfMemoryError"
_ESSENTIAL = "EssentialContainerExited"
_ESSENTIAL_TOLD = "Essential container in task exited"
_TERMINATED = 143
"""What a program leaves with that ends of the agent's SIGTERM."""


def is_task_states(text: str) -> bool:
    """Whether the beginning of a JSON document looks like tasks of ECS or an allocation of Nomad."""
    ecs = '"lastStatus"' in text and ('"taskArn"' in text or '"containers"' in text)
    return ecs or ('"ClientStatus"' in text and ('"TaskStates"' in text or '"EvalID"' in text))


def task_events(entry: Object, source: str) -> Iterator[Event]:
    """Ends of the containers of one document, with what the scheduler says about them."""
    for task in (*objects_at(entry, "tasks"), *([entry, object_at(entry, "detail")])):
        if "lastStatus" in task and "containers" in task:
            yield from _ecs_task(task, source)
    for name in object_at(entry, "TaskStates"):
        yield from _nomad_task(object_at(entry, "TaskStates", name), name, source)


def _ecs_task(task: Object, source: str) -> Iterator[Event]:
    started, stopped = (_when(task, key) for key in ("startedAt", "stoppedAt"))
    containers = objects_at(task, "containers")
    sole = _first_ended(containers)
    if text_at(task, "stoppedReason"):
        yield _said(task, "stoppedReason", Scope(container=sole), stopped, source)
    essential = text_at(task, "stopCode") == _ESSENTIAL or text_at(task, "stoppedReason").startswith(_ESSENTIAL_TOLD)
    for container in containers:
        scope = Scope(container=text_at(container, "name"))
        yield from _described(container, scope, source)
        if text_at(container, "reason"):
            yield _said(container, "reason", scope, stopped, source)
        code = int_at(container, "exitCode")
        reason = "OOMKilled" if text_at(container, "reason").startswith(_ECS_OOM) else ""
        if code is None and not reason:
            continue
        place = _place(container, "exitCode" if code is not None else "reason", source)
        end = _ended(place, scope, code, reason, started, stopped)
        stopped_for = {"stopped_for": sole} if essential and sole not in ("", scope.container) else {}
        yield replace(end, fields={**end.fields, **stopped_for})


def _first_ended(containers: Sequence[Object]) -> str:
    """The one container that ended unasked: ECS then stops those that are left. Empty where several may be it."""
    told = [c for c in containers if text_at(c, "reason") or int_at(c, "exitCode")]
    failed = [c for c in told if text_at(c, "reason") or int_at(c, "exitCode") != _TERMINATED]
    ended = failed or told or containers
    return text_at(ended[0], "name") if len(ended) == 1 else ""


def _described(container: Object, scope: Scope, source: str) -> Iterator[Event]:
    """What a container is and may use: without it a sidecar looks like the engine. ECS counts memory in MiB."""
    limit, reserved = (int_at(container, key) for key in ("memory", "memoryReservation"))
    gpus = dig(container, "gpuIds")
    fields = known({
        "container": scope.container, "image": text_at(container, "image"),
        "memory_limit_bytes": limit and limit * 2**20, "memory_request_bytes": reserved and reserved * 2**20,
        "gpus": len(gpus) if isinstance(gpus, list) and gpus else None,
    })  # fmt: skip
    if len(fields) > 1:
        place = _place(container, "image" if "image" in fields else "name", source)
        yield Event(place, "pod_spec", "runtime", f"container {scope.container} spec", (), scope, fields)


def _nomad_task(task: Object, name: str, source: str) -> Iterator[Event]:
    scope = Scope(container=name)
    for event in objects_at(task, "Events"):
        kind, nanos = text_at(event, "Type"), int_at(event, "Time")
        stamp = stamps.instant(nanos / 1e9, "nomad", 1e-6) if nanos else None
        if kind == "Started":
            said = _said(event, "Type", scope, stamp, source)
            yield replace(said, kind="container_started", text=f"container {name} started")
        elif kind == "Restart Signaled":
            yield _said(event, "DisplayMessage", scope, stamp, source)
        if kind != "Terminated":
            continue
        details = object_at(event, "Details")
        killed = text_at(details, "oom_killed") == "true" or "OOM Killed" in text_at(event, "DisplayMessage")
        code = int_at(event, "ExitCode")
        code = code if code is not None else int_at(details, "exit_code")
        yield _ended(_place(event, "Type", source), scope, code, "OOMKilled" if killed else "", None, stamp)


def _when(task: Object, key: str) -> RawStamp | None:
    """A time of ECS: ISO 8601, or Unix seconds as version 1 of the command line prints them."""
    value = dig(task, key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return stamps.instant(float(value), "ecs", 1e-3) if 0 < value < 1e11 else None
    return instant(value)


def _place(value: Object, key: str, source: str) -> Locator:
    line = line_at(value, key)
    return Locator(source, line, line)


def _said(value: Object, key: str, scope: Scope, stamp: RawStamp | None, source: str) -> Event:
    stamps_of = (stamp,) if stamp is not None else ()
    return Event(_place(value, key, source), "log", "runtime", text_at(value, key), stamps_of, scope)


def _ended(
    place: Locator, scope: Scope, code: int | None, reason: str, started: RawStamp | None, stopped: RawStamp | None
) -> Event:
    fields = {
        "exit_code": code, "reason": reason, "signal": code - 128 if code is not None and 128 < code <= 192 else None,
        "started_s": started.seconds if started is not None else None,
        "finished_s": stopped.seconds if stopped is not None else None,
    }  # fmt: skip
    text = terminated_text(scope.container, reason, code)
    stamps_of = (stopped,) if stopped is not None else ()
    return Event(place, "container_terminated", "runtime", text, stamps_of, scope, known(fields))
