"""Facts of a pod, built from its API object, so that describe, JSON and YAML of one pod say the same.

Source of the meanings: Kubernetes core/v1, `pkg/kubelet` (who fills a container status) and kubectl's
printers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..model import Event, Locator, Scope
from . import embedded
from .k8s_values import container_id, gpus, instant_at, known, probe_fields, terminated_text, whole
from .located import Object, dig, int_at, line_at, object_at, objects_at, strings_at, text_at

NAMELESS = "pod "
"""Title of a pod whose name was left out: the names of its containers are all that tells whose a spec is."""
MESSAGE_CHARS = 8192
"""The kubelet keeps at most 4096 bytes of a termination message."""
DEFAULT_SHM_BYTES = 64 << 20
"""/dev/shm of a container without a volume there (containerd and CRI-O)."""
_SYNTHETIC = ("ContainerStatusUnknown", "RestartingAllContainers")
"""Reasons whose 137 the kubelet made up: no signal was seen."""
_SAYS_NOTHING = ("", "Error", "Completed")
"""Reasons that tell no more than the exit code; beside them the time of the end is what to look at."""
_RUNTIME_REASONS = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")
"""Reasons whose message is the container runtime's, not the program's."""
_STATUS_LISTS = (
    ("initContainerStatuses", True), ("containerStatuses", False), ("ephemeralContainerStatuses", False),
)  # fmt: skip


def pod_events(pod: Object, source: str, printed_lines: bool = False) -> list[Event]:
    """Everything a pod object says: specs, states, deaths, starts, and its own status.

    `printed_lines`: a message of several lines stands in the file as lines (describe), not in one (JSON).
    """
    metadata = object_at(pod, "metadata")
    scope = Scope(
        host=text_at(pod, "spec", "nodeName"), namespace=text_at(metadata, "namespace"),
        pod=text_at(metadata, "name"), pod_uid=text_at(metadata, "uid"),
    )  # fmt: skip
    events = [*spec_events(object_at(pod, "spec"), pod, source, scope, f"pod {scope.pod}" if scope.pod else NAMELESS)]
    for key, init in _STATUS_LISTS:
        for status in objects_at(pod, "status", key):
            events += _container_events(status, source, scope, init, printed_lines)
    if text_at(pod, "status", "phase"):
        events.append(_pod_status(pod, source, scope))
    created = instant_at(metadata, "creationTimestamp")
    if created is not None and scope.pod:
        line = line_at(metadata, "creationTimestamp")
        event = _event(source, line, "pod_created", f"pod {scope.pod} created", scope, {})
        events.append(replace(event, stamps=(created,)))
    return events


def spec_events(spec: Object, owner: Object, source: str, scope: Scope, title: str) -> Iterator[Event]:
    """One `pod_spec` for each container of a pod or of a workload's pod template."""
    shared: dict[str, Any] = {
        "grace_s": int_at(spec, "terminationGracePeriodSeconds"),
        "node": text_at(spec, "nodeName"),
        "qos": text_at(owner, "status", "qosClass"),
        "restart_policy": text_at(spec, "restartPolicy"),
        "node_selector": dict(object_at(spec, "nodeSelector")) or None,
    }
    for key, init in (("initContainers", True), ("containers", False)):
        for container in objects_at(spec, key):
            name = text_at(container, "name")
            fields = {
                **container_spec(container),
                **shared,
                "shm_size_bytes": _shm_size_bytes(container, spec),
            }
            if init:
                fields["init"] = True
            yield Event(
                Locator(source, line_at(container, "name"), line_at(container, "name")), "pod_spec", "k8s",
                f"{title} container {name} spec",
                scope=replace(scope, container=name) if scope.pod or title == NAMELESS else scope,
                fields=known({**fields, "container": name}),
            )  # fmt: skip


def without_defaults(event: Event) -> Event:
    """A description of a piece of a container: what a whole one has by default, a piece does not say."""
    return replace(event, fields={key: value for key, value in event.fields.items() if key != "shm_size_bytes"})


def container_spec(container: Object) -> dict[str, Any]:
    """What one container of a pod or of a template is to run, with what limits and probes."""
    limits, requests = (
        object_at(container, "resources", "limits"),
        object_at(container, "resources", "requests"),
    )
    fields: dict[str, Any] = {
        "image": text_at(container, "image"),
        "args": strings_at(container, "args"),
        "command": strings_at(container, "command"),
        "env": {
            text_at(item, "name"): text_at(item, "value")
            for item in objects_at(container, "env")
            if "valueFrom" not in item and text_at(item, "name")
        },
        "memory_limit_bytes": whole(limits.get("memory")),
        "memory_request_bytes": whole(requests.get("memory")),
        "gpus": gpus(limits) or gpus(requests),
        "gpu_resources": tuple(sorted(name for name in {**limits, **requests} if ".com/" in name)) or None,
    }
    for kind in ("liveness", "readiness", "startup"):
        fields |= probe_fields(kind, object_at(container, f"{kind}Probe"))
    return fields


def _shm_size_bytes(container: Object, spec: Object) -> int | None:
    """Size of /dev/shm: the limit of the volume mounted there, the runtime's default without one."""
    mount = next(
        (m for m in objects_at(container, "volumeMounts") if text_at(m, "mountPath") == "/dev/shm"), None
    )
    if mount is None:
        return None if dig(spec, "hostIPC") is True else DEFAULT_SHM_BYTES
    for volume in objects_at(spec, "volumes"):
        if text_at(volume, "name") == text_at(mount, "name"):
            return whole(dig(volume, "emptyDir", "sizeLimit"))
    return None


def _container_events(
    status: Object, source: str, pod_scope: Scope, init: bool, printed_lines: bool
) -> Iterator[Event]:
    name = text_at(status, "name")
    restarts = int_at(status, "restartCount")
    running, waiting = "running" in object_at(status, "state"), "waiting" in object_at(status, "state")
    current_id = container_id(text_at(status, "containerID"))
    scope = replace(pod_scope, container=name, container_id=current_id)
    shared: dict[str, Any] = {"restart_count": restarts, **({"init": True} if init else {})}

    for key in ("lastState", "state"):
        terminated = object_at(status, key, "terminated")
        if not terminated:
            continue
        last = key == "lastState"
        # The last state of a container that waits to be restarted is the one with its current id and number.
        stale = last and not waiting
        own_id = container_id(text_at(terminated, "containerID")) or ("" if stale else current_id)
        dead = replace(scope, container_id=own_id)
        attempt = restarts if restarts is None or not stale else max(restarts - 1, 0)
        yield from _started(terminated, source, dead, attempt)
        yield from _terminated(terminated, source, dead, {**shared, "last_state": last}, printed_lines)

    if waiting:
        reason = text_at(status, "state", "waiting", "reason")
        message = text_at(status, "state", "waiting", "message")[:MESSAGE_CHARS]
        yield _event(source, line_at(status, "state", "waiting", "reason"), "container_waiting",
                     f"container {name} waiting: {reason}", scope,
                     {"reason": reason, "message": message, **shared})  # fmt: skip
    if running:
        yield from _started(object_at(status, "state", "running"), source, scope, restarts)
    state = next(iter(object_at(status, "state")), "")
    if state:
        ready = dig(status, "ready")
        told = {"state": state, "ready": ready if isinstance(ready, bool) else None, **shared}
        line = line_at(status, "restartCount")
        yield _event(source, line, "container_state", f"container {name} {state}", scope, told)


def terminated_events(terminated: Object, source: str, scope: Scope) -> Iterator[Event]:
    """Start and end of a container whose terminated state was cut out of its pod."""
    dead = replace(scope, container_id=container_id(text_at(terminated, "containerID")))
    yield from _started(terminated, source, dead, None)
    yield from _terminated(terminated, source, dead, {}, printed_lines=False)


def _started(state: Object, source: str, scope: Scope, attempt: int | None) -> Iterator[Event]:
    stamp = instant_at(state, "startedAt")
    if stamp is not None:
        event = _event(source, line_at(state, "startedAt"), "container_started",
                       f"container {scope.container} started", scope, {"attempt": attempt})  # fmt: skip
        yield replace(event, stamps=(stamp,))


def _terminated(
    state: Object, source: str, scope: Scope, shared: dict[str, Any], printed_lines: bool
) -> Iterator[Event]:
    reason, code = text_at(state, "reason"), int_at(state, "exitCode")
    signal = int_at(state, "signal")
    if not signal and code is not None and 128 < code <= 128 + 64 and reason not in _SYNTHETIC:
        signal = code - 128
    started, finished = instant_at(state, "startedAt"), instant_at(state, "finishedAt")
    message = text_at(state, "message")[:MESSAGE_CHARS].rstrip()
    fields = {
        "reason": reason, "exit_code": code, "signal": signal or None, "message": message,
        "started_s": started.seconds if started else None,
        "finished_s": finished.seconds if finished else None,
        **shared,
    }  # fmt: skip
    said = "reason" if reason not in _SAYS_NOTHING else "finishedAt" if finished else "exitCode"
    line = line_at(state, said)
    event = _event(source, line, "container_terminated",
                   terminated_text(scope.container, reason, code), scope, fields)  # fmt: skip
    event = replace(event, stamps=(finished,) if finished else ())
    yield event
    if message and reason not in _SYNTHETIC:
        yield from _message_events(message, event, reason, line_at(state, "message"), printed_lines)


def _message_events(
    message: str, death: Event, reason: str, line: int, printed_lines: bool
) -> Iterator[Event]:
    """The termination message is the end of the program's log, or the runtime's complaint: read it as such.

    Its lines carry the time of the death, which is when the message was taken.
    """
    source = death.locator.source
    if reason in _RUNTIME_REASONS:
        yield Event(Locator(source, line, line), "log", "runtime", message, death.stamps, death.scope)
        return
    for event in embedded.read_text(message, source, "container").events:
        first, last = event.locator.line - 1, event.locator.line_end - 1
        place = Locator(source, line + first, line + last) if printed_lines else Locator(source, line, line)
        yield replace(
            event, locator=place, last_line=None, scope=event.scope.merged(replace(death.scope, pid=None)),
            stamps=death.stamps or event.stamps, fields={**event.fields, "origin": "termination_message"},
        )  # fmt: skip


def _pod_status(pod: Object, source: str, scope: Scope) -> Event:
    status = object_at(pod, "status")
    phase, reason = text_at(status, "phase"), text_at(status, "reason")
    message = text_at(status, "message")[:MESSAGE_CHARS].strip()
    disruption = next(
        (c for c in objects_at(status, "conditions")
         if text_at(c, "type") == "DisruptionTarget" and text_at(c, "status") == "True"), Object(),
    )  # fmt: skip
    disrupted_by = text_at(disruption, "reason")
    said = f"{reason} {message}".strip()
    if disrupted_by and not said:
        said = f"DisruptionTarget {disrupted_by} {text_at(disruption, 'message')}".strip()
    stamp = instant_at(disruption, "lastTransitionTime")
    started = instant_at(status, "startTime")
    owner = next(iter(objects_at(pod, "metadata", "ownerReferences")), Object())
    deleted = instant_at(pod, "metadata", "deletionTimestamp")
    terminating = "deletionTimestamp" in object_at(pod, "metadata")
    event = _event(
        source, line_at(status, "reason" if reason else "phase"), "pod_status",
        f"pod {scope.pod} {'Terminating' if terminating else phase}{': ' if said else ''}{said}", scope,
        {
            "phase": phase, "reason": reason, "message": message, "node": scope.host,
            "pod_ip": text_at(status, "podIP"), "disruption_reason": disrupted_by,
            "started_s": started.seconds if started else None,
            "owner": f"{text_at(owner, 'kind')}/{text_at(owner, 'name')}" if owner else "",
            "terminating": True if terminating else None,
            "deleted_s": deleted.seconds if deleted else None,
        },
    )  # fmt: skip
    return replace(event, stamps=(stamp,) if stamp else ())


def _event(source: str, line: int, kind: str, text: str, scope: Scope, fields: dict[str, Any]) -> Event:
    """An event of the API object; unknown fields are left out."""
    return Event(Locator(source, line, line), kind, "k8s", text, scope=scope, fields=known(fields))
