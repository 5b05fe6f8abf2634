"""Facts of events, nodes and workloads, built from API objects or from what kubectl prints of them.

Formats: Kubernetes core/v1 and events.k8s.io/v1 `Event`, core/v1 `Node`, apps/v1 and batch/v1 workloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .. import stamps
from ..model import Event, Locator, RawStamp, Scope
from ..regexes import lazy_regex
from .k8s_facts import container_spec, spec_events
from .k8s_values import container_of_path, gpus, instant_at, known, scope_of_message, shown, whole
from .located import Object, dig, int_at, line_at, object_at, objects_at, strings_at, text_at

MESSAGE_CHARS = 8192
_COUNTED_AGE = lazy_regex(r"(?P<last>\S+)(?: \(x(?P<count>\d{1,9}) over (?P<first>\S+)\))?")
_CONTROL_PLANE = lazy_regex(r"scheduler|controller|autoscaler")
"""Components whose host is where they run, not where the event happened."""
_RECOVERY_S = 24 * 3600.0
"""A node condition that is fine again is told when it changed this shortly before the last heartbeat."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A Kubernetes event, from whatever printed it."""

    reason: str
    message: str
    event_type: str = ""
    object_kind: str = ""
    object_name: str = ""
    namespace: str = ""
    object_uid: str = ""
    field_path: str = ""
    component: str = ""
    host: str = ""
    count: int | None = None
    stamp: RawStamp | None = None
    """Of the last occurrence: an instant or an age."""
    first_seen: RawStamp | None = None
    stored: RawStamp | None = None
    """When the API server created the object, by its own clock."""


def occurrence_event(seen: Occurrence, place: Locator) -> Event:
    """An occurrence as an event; its scope is the object it speaks of."""
    message = seen.message[:MESSAGE_CHARS].rstrip()
    said = scope_of_message(message)
    pod = seen.object_name if seen.object_kind.lower() == "pod" else ""
    node = seen.object_name if seen.object_kind.lower() == "node" else ""
    scope = Scope(
        host=node or ("" if _CONTROL_PLANE.search(seen.component) else seen.host),
        namespace=seen.namespace, pod=pod, pod_uid=seen.object_uid if pod else "",
        container=container_of_path(seen.field_path) or (said.container if pod else ""),
    )  # fmt: skip
    if pod and said.pod == pod:
        scope = scope.merged(said)
    fields: dict[str, Any] = {
        "reason": seen.reason, "event_type": seen.event_type, "object_kind": seen.object_kind,
        "object_name": seen.object_name, "component": seen.component, "count": seen.count,
    }  # fmt: skip
    if seen.first_seen is not None:
        ages = seen.first_seen.form.value == "age"
        fields["first_age_s" if ages else "first_seen_s"] = seen.first_seen.seconds
    if seen.stamp is not None and seen.stamp.form.value == "instant":
        fields["last_seen_s"] = seen.stamp.seconds
    if seen.stored is not None:
        fields["created_s"] = seen.stored.seconds
    return Event(
        place, "k8s_event", "k8s", f"{seen.reason}: {message}", (seen.stamp,) if seen.stamp else (), scope,
        known(fields),
        level="WARNING" if seen.event_type == "Warning" else "",
    )  # fmt: skip


def occurrence_events(seen: Occurrence, place: Locator) -> list[Event]:
    """The event, and where it counts several occurrences, the first of them: a moment of its own, as well known."""
    last, first = occurrence_event(seen, place), seen.first_seen
    repeated = seen.count is not None and seen.count > 1
    if not repeated or first is None or seen.stamp is None or first.seconds == seen.stamp.seconds:
        return [last]
    told = ("reason", "event_type", "object_kind", "object_name", "component", "count", "last_seen_s")
    fields = {name: last.fields[name] for name in told if name in last.fields}
    text = f"first of {seen.count} {seen.reason} events"
    return [
        replace(last, kind="k8s_first_seen", text=text, stamps=(first,), fields=fields),
        last,
    ]


def with_age(seen: Occurrence, age: str) -> Occurrence:
    """`5m32s (x12 over 47m)`, `9s`, `<unknown>`: the times and the count that an age column tells."""
    found = _COUNTED_AGE.fullmatch(age.strip())
    if found is None:
        return seen
    first = stamps.age(found["first"], "kubectl") if found["first"] else None
    count = int(found["count"]) if found["count"] else seen.count
    return replace(
        seen, stamp=stamps.age(found["last"], "kubectl"), count=count, first_seen=first or seen.first_seen
    )


def event_events(entry: Object, source: str) -> list[Event]:
    """An `Event` object of either API: its last occurrence, and the first of several."""
    about = object_at(entry, "involvedObject") or object_at(entry, "regarding")
    origin = object_at(entry, "source") or object_at(entry, "deprecatedSource")
    stored = instant_at(entry, "metadata", "creationTimestamp")
    last = (
        instant_at(entry, "series", "lastObservedTime")
        or instant_at(entry, "lastTimestamp")
        or instant_at(entry, "deprecatedLastTimestamp")
        or instant_at(entry, "eventTime")
        or stored
    )
    first = (
        instant_at(entry, "firstTimestamp")
        or instant_at(entry, "deprecatedFirstTimestamp")
        or instant_at(entry, "eventTime")
    )
    counts = (int_at(entry, "series", "count"), int_at(entry, "count"), int_at(entry, "deprecatedCount"))
    kind = text_at(about, "kind")
    component = (
        text_at(origin, "component")
        or text_at(entry, "reportingComponent")
        or text_at(entry, "reportingController")
    )
    message_key = "message" if "message" in entry else "note"
    line = line_at(entry, message_key if message_key in entry else "reason")
    last_line = max(line, line_at(entry, "reason"))
    seen = Occurrence(
        reason=text_at(entry, "reason"), message=text_at(entry, message_key),
        event_type=text_at(entry, "type"), object_kind=kind, object_name=text_at(about, "name"),
        namespace=text_at(about, "namespace"),
        object_uid=text_at(about, "uid"), field_path=text_at(about, "fieldPath"), component=component,
        host=text_at(origin, "host"), count=next((c for c in counts if c), None),
        stamp=last, first_seen=first, stored=stored,
    )  # fmt: skip
    return occurrence_events(seen, Locator(source, line, last_line))


def node_events(node: Object, source: str) -> list[Event]:
    """A node's state, and each condition that is bad, or was until shortly before the last heartbeat."""
    name = text_at(node, "metadata", "name")
    status = object_at(node, "status")
    scope = Scope(host=name)
    conditions = objects_at(status, "conditions")
    states = {text_at(c, "type"): text_at(c, "status") for c in conditions}
    bad = [kind for kind, state in states.items() if _is_bad(kind, state)]
    heartbeats = [s.seconds for c in conditions if (s := instant_at(c, "lastHeartbeatTime")) is not None]
    capacity, allocatable = object_at(status, "capacity"), object_at(status, "allocatable")
    fields: dict[str, Any] = {
        "conditions": states,
        "capacity_gpus": gpus(capacity),
        "allocatable_gpus": gpus(allocatable),
        "capacity_memory_bytes": whole(capacity.get("memory")),
        "allocatable_memory_bytes": whole(allocatable.get("memory")),
        "kernel_version": text_at(status, "nodeInfo", "kernelVersion"),
        "runtime_version": text_at(status, "nodeInfo", "containerRuntimeVersion"),
        "boot_id": text_at(status, "nodeInfo", "bootID"),
        "unschedulable": True if dig(node, "spec", "unschedulable") is True else None,
        "heartbeat_s": max(heartbeats, default=None),
    }
    line = line_at(node, "metadata", "name")
    said = "Ready" if not bad else f"not well: {', '.join(f'{kind}={states[kind]}' for kind in bad)}"
    events = [Event(
        Locator(source, line, line), "node_status", "k8s", f"node {name} {said}", scope=scope,
        fields=known(fields),
    )]  # fmt: skip
    changes = Counter(text_at(c, "lastTransitionTime") for c in conditions)
    for condition in conditions:
        stamp = instant_at(condition, "lastTransitionTime")
        kind, state = text_at(condition, "type"), text_at(condition, "status")
        recovered = stamp is not None and bool(heartbeats) and max(heartbeats) - stamp.seconds < _RECOVERY_S
        alone = changes[text_at(condition, "lastTransitionTime")] == 1  # a kubelet's start sets all at once
        if not (_is_bad(kind, state) or (recovered and alone)):
            continue
        reason, message = text_at(condition, "reason"), text_at(condition, "message")
        place = Locator(source, line_at(condition, "type"), line_at(condition, "type"))
        events.append(Event(
            place, "node_condition", "k8s", f"node {name} {kind}={state}: {reason} {message}".rstrip(),
            (stamp,) if stamp else (), scope,
            {"condition": kind, "status": state, "reason": reason, "message": message},
        ))  # fmt: skip
    return events


def _is_bad(kind: str, state: str) -> bool:
    """What is ready or healthy should be; every other condition names a problem and should be False.

    EKS' agent has `AcceleratedHardwareReady`, `NetworkingReady` and the like beside the kubelet's `Ready`.
    """
    if kind == "Ready":
        return state != "True"
    return state == "False" if kind.endswith(("Ready", "Healthy")) else state in ("True", "Unknown")


def workload_events(workload: Object, kind: str, source: str) -> Iterator[Event]:
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job: what it wants, what is there, its template.

    Template specs carry the namespace only, for they speak of no single container. A ReplicaSet is dated by
    its creation, which is when its revision was rolled out, and says in `containers` what that revision ran.
    """
    metadata, spec, status = (object_at(workload, key) for key in ("metadata", "spec", "status"))
    name = text_at(metadata, "name")
    scope = Scope(namespace=text_at(metadata, "namespace"))
    desired = _first(
        int_at(spec, "replicas"), int_at(status, "desiredNumberScheduled"), int_at(spec, "completions")
    )
    available = _first(int_at(status, "availableReplicas"), int_at(status, "numberAvailable"))
    ready = _first(
        int_at(status, "readyReplicas"), int_at(status, "numberReady"), int_at(status, "succeeded")
    )
    unavailable = _first(int_at(status, "unavailableReplicas"), int_at(status, "numberUnavailable"))
    created = instant_at(metadata, "creationTimestamp")
    fields: dict[str, Any] = {
        "workload_kind": kind,
        "workload_name": name,
        "desired": desired,
        "updated": _first(int_at(status, "updatedReplicas"), int_at(status, "updatedNumberScheduled")),
        "available": available,
        "ready": ready,
        "unavailable": unavailable,
        "failed": int_at(status, "failed"),
        "revision": text_at(metadata, "annotations", "deployment.kubernetes.io/revision"),
        "change_cause": text_at(metadata, "annotations", "kubernetes.io/change-cause"),
        "conditions": {
            text_at(c, "type"): f"{text_at(c, 'status')} {text_at(c, 'reason')}".rstrip()
            for c in objects_at(status, "conditions")
        },
        "created_s": created.seconds if created else None,
    }
    line = line_at(metadata, "name")
    have = _first(available, ready, 0 if unavailable else None)
    counted = desired is not None or have is not None
    amount = f" {shown(have, '?')}/{shown(desired, '?')} available" if counted else ""
    event = Event(
        Locator(source, line, line), "workload", "k8s", f"{kind.lower()} {name}{amount}", scope=scope,
        fields=known(fields),
    )  # fmt: skip
    template = object_at(spec, "jobTemplate", "spec", "template") or object_at(spec, "template")
    if kind == "ReplicaSet":
        yield _revision(event, workload, object_at(template, "spec"), (created,) if created else ())
        return
    yield event
    for specified in spec_events(
        object_at(template, "spec"), Object(), source, scope, f"{kind.lower()} {name}"
    ):
        yield replace(specified, fields={**specified.fields, "workload_kind": kind, "workload_name": name})


def _revision(event: Event, workload: Object, spec: Object, created: tuple[RawStamp, ...]) -> Event:
    """A ReplicaSet with the containers of its revision, from its name to the last argument."""
    owner = next(iter(objects_at(workload, "metadata", "ownerReferences")), Object())
    containers = {text_at(c, "name"): known(container_spec(c)) for c in objects_at(spec, "containers")}
    lines = [line_at(c, "args", len(strings_at(c, "args")) - 1) for c in objects_at(spec, "containers") if "args" in c]
    first = event.locator.line
    return replace(
        event, stamps=created, locator=replace(event.locator, line_end=max(first, *lines, first)),
        fields=known({**event.fields, "containers": containers or None, "owner": text_at(owner, "name")}),
    )  # fmt: skip


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def kubelet_config_event(config: Object, source: str) -> Event:
    """The settings of a kubelet that decide over kills: `singleProcessOOMKill`, the eviction thresholds."""
    single = dig(config, "singleProcessOOMKill")
    eviction = {name: text_at(config, "evictionHard", name) for name in object_at(config, "evictionHard")}
    shutdown = text_at(config, "shutdownGracePeriod")
    fields: dict[str, Any] = {
        "single_process_oom_kill": single if isinstance(single, bool) else None,
        "eviction_hard": eviction or None,
        "shutdown_grace_period": shutdown,
    }
    parts = [f"singleProcessOOMKill={str(single).lower()}"] if isinstance(single, bool) else []
    parts += [f"evictionHard {name}<{limit}" for name, limit in eviction.items()]
    line = (
        line_at(config, "singleProcessOOMKill")
        if parts and isinstance(single, bool)
        else line_at(config, "kind")
    )
    text = f"kubelet configuration: {', '.join(parts) or 'defaults'}"
    return Event(Locator(source, line, line), "log", "kubelet", text, fields=known(fields))
