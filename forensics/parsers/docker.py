"""docker and crictl: `docker events`, `docker inspect`, `docker ps`, `crictl inspect`, `crictl ps`.

Documents of ECS and Nomad that hold the state of containers come in by the same door (`task_states`).

Formats: docker CLI 20 to 28, moby `daemon`, podman's events, cri-tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import regex

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp, Scope, StampForm
from ..regexes import lazy_re, lazy_regex
from ..sources import Format, Head, mostly
from . import healthchecks
from .json_yaml import read_json
from .k8s_values import instant_at, known, shown, terminated_text
from .located import Object, dig, holding, int_at, line_at, object_at, objects_at, quoted, strings_at, text_at
from .numerals import is_whole
from .tables import Header, header_of
from .task_states import is_task_states, task_events

LAYER = "docker"
_EVENT = lazy_re(
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d| [+-]\d{4} \w+)?) "
    r"(?P<type>container|image|network|volume|daemon|plugin|pod) "
    r"(?P<action>exec_\w+(?:: [^(]*)?|\w+(?:: \w+)?) ?(?P<id>[\w.:/@-]*)"
    r"(?: \((?P<attributes>.*)\))?\s*"
)
_ATTRIBUTE = lazy_regex(r"(?P<key>[\w./-]+)=(?P<value>.*?)(?=, [\w./-]+=|$)", regex.DOTALL)
_JSON_EVENT = lazy_re(r'\{(?=.*"[Tt]ype": ?"container")(?=.*"(?:[Aa]ction|Status)": ?").*\}\s*')
_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15}


_TASK = lazy_regex(r"\.\d+\.[a-z0-9]{8,25}$")
"""What a swarm puts behind the name of a service: the slot, and the task's id."""


def _scope(name: str, identity: str, labels: Mapping[str, Any]) -> Scope:
    """A plain container, one of compose or of a swarm (their logs name the service), or one of Kubernetes."""
    service = labels.get("com.docker.compose.service") or labels.get("com.docker.swarm.service.name")
    return Scope(
        container=str(labels.get("io.kubernetes.container.name") or service or _TASK.sub("", name)),
        pod=str(labels.get("io.kubernetes.pod.name") or ""),
        namespace=str(labels.get("io.kubernetes.pod.namespace") or ""),
        pod_uid=str(labels.get("io.kubernetes.pod.uid") or ""),
        container_id=identity if regex.fullmatch(r"[0-9a-f]{64}", identity) else "",
    )


def _number(value: object) -> int | None:
    return int(str(value)) if regex.fullmatch(r"-?\d{1,9}", str(value)) else None


def _signal_of(exit_code: int | None) -> int | None:
    return exit_code - 128 if exit_code is not None and 128 < exit_code <= 192 else None


def _signal_number(text: str) -> int | None:
    """`9`, `KILL`, `SIGKILL`."""
    return _SIGNALS.get(text.upper().removeprefix("SIG"), _number(text))


def read_events(text: str, source: str) -> Parsed:
    """`docker events`, text or JSON. Executions of health checks are left out: they end always."""
    lines = text.split("\n")
    events = [event for number, line in enumerate(lines, 1) if (event := _event(line, number, source)) is not None]
    if not events and text.lstrip()[:1] in ("{", "["):
        documents = [document.value for document in read_json(text)]
        found = [e for value in documents for e in (value if isinstance(value, list) else [value])]
        told = (_json_event(entry, entry.line, source) for entry in found if isinstance(entry, Object))
        events = [event for event in told if event is not None]
    return quoted(events, lines)


def _event(line: str, number: int, source: str) -> Event | None:
    line = line.rstrip("\r")
    found = _EVENT.fullmatch(line)
    if found:
        zoned = regex.sub(r" ([+-]\d{4}) \w+$", r"\1", found["stamp"])
        labels = {m["key"]: m["value"] for m in _ATTRIBUTE.finditer(found["attributes"] or "")}
        kind, action, identity, stamp = found["type"], found["action"], found["id"], stamps.iso(zoned, LAYER)
    elif _JSON_EVENT.fullmatch(line.strip()):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return _json_event(entry, number, source) if isinstance(entry, dict) else None
    else:
        return None
    return _happened(kind, action, identity, labels, stamp, Locator(source, number, number))


def _json_event(entry: Mapping[str, Any], number: int, source: str) -> Event | None:
    """An object of docker, of `docker compose events` (lower case), or of podman (`Status` for the action)."""
    value = {key.lower(): item for key, item in entry.items()}
    actor = value.get("actor")
    attributes = dig(actor, "Attributes") or value.get("attributes")
    labels = {k: str(v) for k, v in attributes.items()} if isinstance(attributes, dict) else {}
    for key, name in (("name", "name"), ("containerexitcode", "exitCode"), ("service", "com.docker.compose.service")):
        if isinstance(value.get(key), str | int):
            labels.setdefault(name, str(value[key]))
    action = str(value.get("action") or value.get("status") or "")
    identity = text_at(actor, "ID") or text_at(value, "id")
    nanos, seconds = int_at(value, "timenano"), int_at(value, "time")
    exact = nanos / 1e9 if nanos is not None else seconds
    stamp = stamps.instant(float(exact), LAYER, 1e-6 if nanos else 1.0) if exact is not None else None
    stamp = stamp or stamps.iso(text_at(value, "time"), LAYER)
    return _happened(text_at(value, "type"), action, identity, labels, stamp, Locator(source, number, number))


def _happened(
    kind: str, action: str, identity: str, labels: Mapping[str, str], stamp: RawStamp | None, place: Locator
) -> Event | None:
    if kind != "container" or not action or action.startswith("exec_"):
        return None
    scope = _scope(labels.get("name", ""), identity, labels)
    told = ", ".join(f"{key}={value}" for key, value in labels.items())
    text = f"container {action.strip()} {identity} ({told})"
    event = Event(place, "log", "runtime", text, (stamp,) if stamp else (), scope)
    return _refined(event, action.strip(), labels, scope.container or identity[:12])


_SPOKEN = lazy_regex(
    r"(?:[A-Z]{1,5} )?(?:m=[+-][\d.]{1,20} )?container (?P<action>\w+(?:: \w+)?) (?P<id>[0-9a-f]{64})"
    r" \((?P<attributes>.*)\)\s*"
)


def spoken(event: Event) -> Event | None:
    """An event that Podman writes into the journal, behind the remains of its stamp (`CEST m=+0.081 container …`)."""
    found = _SPOKEN.fullmatch(event.text)
    if found is None:
        return None
    labels = {m["key"]: m["value"] for m in _ATTRIBUTE.finditer(found["attributes"])}
    told = _happened("container", found["action"], found["id"], labels, None, event.locator)
    return told and replace(
        told, stamps=event.stamps, raw=event.raw, fields={**event.fields, **told.fields},
        scope=replace(told.scope, host=event.scope.host),
    )  # fmt: skip


def _refined(event: Event, action: str, labels: Mapping[str, str], label: str) -> Event:
    if action in ("die", "died"):
        code = _number(labels.get("exitCode") or labels.get("containerExitCode") or "")
        finished = event.stamps[0].seconds if event.stamps else None
        ran = _number(labels.get("execDuration", ""))
        fields = {
            "exit_code": code, "signal": _signal_of(code), "finished_s": finished,
            "started_s": finished - ran if finished is not None and ran is not None else None,
            "image": labels.get("image"),
        }  # fmt: skip
        return replace(event, kind="container_terminated", text=terminated_text(label, "", code), fields=known(fields))
    if action == "start":
        return replace(event, kind="container_started", text=f"container {label} started")
    if action == "kill":
        return replace(event, kind="container_kill", fields=known({"signal": _signal_number(labels.get("signal", ""))}))
    return event


def _sniff_events(head: Head) -> int:
    if head.filled and mostly(lambda line: _EVENT.fullmatch(line) or _JSON_EVENT.fullmatch(line), head.filled, 0.6):
        return 95
    text = head.text.lstrip()
    pretty = text[:1] in ("{", "[") and '"Actor": {' in text and '"Action": "' in text and '"Type": "container"' in text
    return 95 if pretty else 0


def read_inspect(text: str, source: str) -> Parsed:
    """The state of each inspected container, with its start and its end."""
    lines = text.split("\n")
    events: list[Event] = []
    for document in read_json(text):
        entries = document.value if isinstance(document.value, list) else [document.value]
        for entry in entries:
            if isinstance(entry, Object) and "State" in entry:
                events += inspected(entry, source)
            elif isinstance(entry, Object) and "OOMKilled" in entry:
                events += inspected(holding("State", entry), source)  # of `-f '{{json .State}}'`
            elif isinstance(entry, Object) and "status" in entry:
                events += _crictl_inspected(object_at(entry, "status"), source)
            elif isinstance(entry, Object) and "FailingStreak" in entry:
                events += _health_log(entry, Scope(), source)
            elif isinstance(entry, Object) and healthchecks.is_inspected(entry):
                events += healthchecks.inspected(entry, Scope(), source)
            elif isinstance(entry, Object):
                events += task_events(entry, source)
    return quoted(events, lines)


def _health_log(health: Object, scope: Scope, source: str) -> Iterator[Event]:
    """The last failures of a health check, each at its own time (`State.Health.Log`)."""
    for entry in objects_at(health, "Log"):
        if int_at(entry, "ExitCode") == 0:
            continue
        output = text_at(entry, "Output").strip().partition("\n")[0]
        line = line_at(entry, "Output") or line_at(entry, "ExitCode")
        stamp = instant_at(entry, "End") or instant_at(entry, "Start")
        yield Event(
            Locator(source, line, line), "probe_failed", "runtime", f"health check failed: {output[:300]}",
            (stamp,) if stamp else (), scope,
            known({"probe": "health", "output": output[:300], "failing_streak": int_at(health, "FailingStreak")}),
        )  # fmt: skip


def inspected(entry: Object, source: str) -> Iterator[Event]:
    state, host = object_at(entry, "State"), object_at(entry, "HostConfig")
    name = text_at(entry, "Name").removeprefix("/")
    scope = _scope(name, text_at(entry, "Id"), object_at(entry, "Config", "Labels"))
    running = dig(state, "Running") is True
    started, finished = instant_at(state, "StartedAt"), instant_at(state, "FinishedAt")
    code = int_at(state, "ExitCode") if not running else None
    killed = dig(state, "OOMKilled")
    status = text_at(state, "Status") or ("running" if running else "exited")
    shared_ipc = text_at(host, "IpcMode").startswith(("host", "container:"))
    fields = {
        "status": status, "exit_code": code, "oom_killed": killed if isinstance(killed, bool) else None,
        "restart_count": int_at(entry, "RestartCount"), "memory_limit_bytes": int_at(host, "Memory") or None,
        "memory_unlimited": int_at(host, "Memory") == 0 or None,
        "shm_size_bytes": None if shared_ipc else int_at(host, "ShmSize"),
        "args": tuple(filter(None, (text_at(entry, "Path"), *strings_at(entry, "Args")))),
        "image": text_at(entry, "Config", "Image"), "error": text_at(state, "Error"),
        "restart_policy": text_at(host, "RestartPolicy", "Name"),
        "health": text_at(state, "Health", "Status"),
        "started_s": started.seconds if started else None,
        "finished_s": finished.seconds if finished else None,
        "env": dict(item.split("=", 1) for item in strings_at(entry, "Config", "Env") if "=" in item),
    }  # fmt: skip
    stamp = started if running else finished
    line = line_at(state, "OOMKilled" if killed is True else "Status") or line_at(entry, "State")
    yield Event(
        Locator(source, line, line), "docker_state", "runtime",
        f"container {name} {status}: exit_code={shown(code)} oom_killed={str(killed).lower()}",
        (stamp,) if stamp else (), scope, known(fields),
    )  # fmt: skip
    reason = "OOMKilled" if killed is True else ""
    yield from _ends(state, ("StartedAt", "FinishedAt"), scope, source, code, reason, last_state=running)
    yield from _health_log(object_at(state, "Health"), scope, source)
    yield from healthchecks.inspected(
        object_at(entry, "Config", "Healthcheck"), scope, source, text_at(entry, "Config", "Image")
    )


def _ends(
    state: Object,
    keys: tuple[str, str],
    scope: Scope,
    source: str,
    code: int | None,
    reason: str,
    last_state: bool,
) -> Iterator[Event]:
    """Start and end of a container. While it runs, the end is that of the run before, whose code is gone."""
    started, finished = instant_at(state, keys[0]), instant_at(state, keys[1])
    label = scope.container or scope.container_id[:12]
    if started is not None:
        line = line_at(state, keys[0])
        yield Event(Locator(source, line, line), "container_started", "runtime", f"container {label} started",
                    (started,), scope)  # fmt: skip
    if finished is not None:
        reason = "" if last_state else reason
        telling = ("OOMKilled", "reason") if reason == "OOMKilled" else ()
        line = line_at(state, next((key for key in telling if key in state), keys[1]))
        yield Event(
            Locator(source, line, line), "container_terminated", "runtime",
            terminated_text(label, reason, code), (finished,), scope, known({
                "exit_code": code, "signal": _signal_of(code), "reason": reason, "last_state": last_state,
                "finished_s": finished.seconds,
                "started_s": started.seconds if started is not None and not last_state else None,
            }),
        )  # fmt: skip


def _crictl_inspected(status: Object, source: str) -> Iterator[Event]:
    labels = object_at(status, "labels")
    scope = _scope(text_at(status, "metadata", "name"), text_at(status, "id"), labels)
    word = text_at(status, "state").removeprefix("CONTAINER_").lower()
    exited = word == "exited"
    code = int_at(status, "exitCode") if exited else None
    line = line_at(status, "state")
    yield Event(
        Locator(source, line, line), "container_state", "runtime", f"container {scope.container} {word}",
        scope=scope, fields=known({"state": word, "restart_count": int_at(status, "metadata", "attempt")}),
    )  # fmt: skip
    yield from _ends(status, ("startedAt", "finishedAt"), scope, source, code, text_at(status, "reason"),
                     last_state=not exited)  # fmt: skip


def _sniff_inspect(head: Head) -> int:
    text = head.text.lstrip()
    if not text.startswith(("[", "{")):
        return 0
    docker = '"ExitCode"' in text and ('"OOMKilled"' in text or ('"State"' in text and '"HostConfig"' in text))
    crictl = '"CONTAINER_' in text and '"finishedAt"' in text and '"metadata"' in text
    health = ('"FailingStreak"' in text and '"Log"' in text) or ('"Test"' in text and '"Interval"' in text)
    return 96 if docker or crictl or health or is_task_states(text) else 0


_AGO = lazy_regex(r"(?P<count>\d+|About an?|Less than a) (?P<unit>second|minute|hour|day|week|month|year)s?")
_UNIT_S = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 7 * 86400.0, "month": 30 * 86400.0,
    "year": 365 * 86400.0,
}  # fmt: skip


def ago(text: str) -> RawStamp | None:
    """`3 minutes ago`, `About an hour ago`: an age whose true value lies within one unit of what is shown."""
    found = _AGO.search(text)
    if found is None:
        return None
    unit = _UNIT_S[found["unit"]]
    count = int(found["count"]) if is_whole(found["count"]) else 0 if found["count"].startswith("Less") else 1
    return RawStamp(StampForm.AGE, LAYER, count * unit + unit / 2, unit)


_DOCKER_PS = frozenset({"NAMES", "STATUS"})
_CRICTL_PS = ("CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT")
_ID = lazy_regex(r"[0-9a-f]{12}|[0-9a-f]{64}")
_EXITED = lazy_regex(r"(?:Exited|Restarting) \((?P<code>-?\d{1,9})\) (?P<ago>.*)")
_STATUS = lazy_regex(r"(?:Up|Exited|Created|Restarting|Removal|Removing|Dead|Paused)\b")
_JOINED = lazy_regex(rf"(?<= ago) (?={_STATUS.pattern})")
"""Where the columns `CREATED` and `STATUS` of a table lost their gap: it was typed off, or pasted through a chat."""


def is_ps_header(header: Header) -> bool:
    """Whether these are the columns of `docker ps`, as it or its reader's `--format` has them, or of `crictl ps`."""
    return header.names[:5] == _CRICTL_PS[:5] or frozenset(header.names) >= _DOCKER_PS


def _ps_header(line: str) -> Header | None:
    header = header_of(line)
    return header if header is not None and is_ps_header(header) else None


def read_ps(text: str, source: str) -> Parsed:
    """Rows of `docker ps -a` and `crictl ps -a`: who runs, who ended, and with which code."""
    lines = text.split("\n")
    header: Header | None = None
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        new = _ps_header(line)
        if new is not None:
            header = new
        elif header is not None and line.strip():
            cells = header.cells(_JOINED.sub("  ", line.rstrip()))
            place = Locator(source, number, number)
            events += _docker_row(cells, place) if "STATUS" in cells else _crictl_row(cells, place)
    return quoted(events, lines)


def _docker_row(cells: Mapping[str, str], place: Locator) -> Iterator[Event]:
    name, said = cells["NAMES"] or cells.get("PORTS", ""), cells["STATUS"]  # who has no ports leaves their cell empty
    identity = cells.get("CONTAINER ID", "")
    if not _STATUS.match(said):
        return  # the columns cannot be told apart
    exited = _EXITED.match(said)
    code = int(exited["code"]) if exited else None
    status = "running" if said.startswith("Up") else said.partition(" ")[0].lower()
    stamp = ago(exited["ago"] if exited else said)
    yield Event(
        place, "docker_state", "runtime", f"container {name} {status}: exit_code={shown(code)}",
        (stamp,) if stamp else (), Scope(container=name, container_id=identity if _ID.fullmatch(identity) else ""),
        known({"status": status, "exit_code": code, "image": cells.get("IMAGE"),
                "health": "unhealthy" if "(unhealthy)" in said else None}),
    )  # fmt: skip


def _crictl_row(cells: Mapping[str, str], place: Locator) -> Iterator[Event]:
    state = cells["STATE"].lower()
    scope = Scope(container=cells["NAME"], pod=cells.get("POD", ""), namespace=cells.get("NAMESPACE", ""))
    yield Event(place, "container_state", "runtime", f"container {cells['NAME']} {state}", scope=scope,
                fields=known({"state": state, "restart_count": _number(cells["ATTEMPT"])}))  # fmt: skip


EVENTS = Format("docker.events", "docker events", _sniff_events, read_events, begins=r"\d{\[")
INSPECT = Format(
    "docker.inspect", "container state (docker, crictl, ECS, Nomad)", _sniff_inspect, read_inspect, begins=r"\[{"
)  # fmt: skip
PS = Format(
    "docker.ps",
    "docker ps or crictl ps",
    lambda head: 94 if any(map(_ps_header, head.lines[:5])) else 0,
    read_ps,
    begins="A-Z",
)
