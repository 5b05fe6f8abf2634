"""The container blocks of `kubectl describe`, turned back into a pod's `spec` and `status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import regex

from ..regexes import lazy_regex
from .k8s_values import utc
from .located import Array, Object
from .numerals import is_whole

Lines = list[tuple[int, str]]
"""(line number, text) in order."""

_NAME = lazy_regex(r" {2,3}(?P<name>[a-z0-9][a-z0-9.-]*):\s*")
_KEY = lazy_regex(r" {4}(?P<key>[A-Z][\w ()-]*?):(?:\s+(?P<value>.*))?")
_SUB = lazy_regex(r" {6}(?P<key>[A-Z][\w ]*?):\s+(?P<value>.*)")
_MESSAGE = lazy_regex(r" {6}Message:\s")
_MESSAGE_END = lazy_regex(r" {6}Exit Code:\s| {4}(?:Last State|Ready):\s")
_ITEM_INDENT = 6
_MOUNT = lazy_regex(r"\s+(?P<path>/\S*) from (?P<name>\S+) \(")
_ENV = lazy_regex(r"(?P<name>[\w.-]+):\s*(?P<value>.*)")
_REFERENCE = lazy_regex(r"<set to the |\(v1:|<Type:|<unknown>$|<resource ")
_PROBE = lazy_regex(
    r"(?P<what>.*?) ?delay=(?P<delay>\d{1,9})s timeout=(?P<timeout>\d{1,9})s period=(?P<period>\d{1,9})s (?P<rest>.*)"
)
_THRESHOLD = lazy_regex(r"#?(success|failure)(?:Threshold)?=(\d{1,9})")
_HTTP = lazy_regex(r"http-get (?P<scheme>\w+)://(?P<host>\[[^\]]*\]|[^:/]*):(?P<port>[^/]*)(?P<path>/.*)?")


def add_containers(body: Lines, spec: Object, spec_key: str, status: Object, status_key: str) -> None:
    """Read a `Containers:` section into `spec[spec_key]`, and into `status[status_key]` if that is named."""
    specs = Array(body[0][0] if body else 0)
    states = Array(specs.line)
    for name, line, block in _blocks(body):
        container, state = Object(line), Object(line)
        for one in (container, state):
            one.put("name", name, line)
        _fill(block, container, state)
        specs.add(container, line)
        if any(key in state for key in ("restartCount", "state", "lastState")):
            states.add(state, line)
    if specs:
        spec.put(spec_key, specs, specs.line)
    if status_key and states:
        status.put(status_key, states, states.line)


def container_of(block: Lines, name: str = "") -> tuple[Object, Object]:
    """Spec and status of one container from its keys, indented as in a described pod."""
    spec, status = Object(block[0][0]), Object(block[0][0])
    for one in (spec, status):
        one.put("name", name, block[0][0])
    _fill(block, spec, status)
    return spec, status


def starts_container(line: str) -> bool:
    """True for the line with a container's name."""
    return _NAME.fullmatch(line) is not None


def with_messages(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, bool]]:
    """Lines, and whether they continue a state's message: printed raw, those may look like anything."""
    inside = False
    for number, line in lines:
        inside = inside and not _MESSAGE_END.match(line)
        yield number, line, inside
        inside = inside or _MESSAGE.match(line) is not None


def _blocks(body: Lines) -> Iterator[tuple[str, int, Lines]]:
    """One block a container. The first may have lost the line with its name; its name is empty then."""
    name, start = "", body[0][0] if body else 0
    block: Lines = []
    for number, line, raw in with_messages(body):
        found = None if raw else _NAME.fullmatch(line)
        if found is None:
            block.append((number, line))
            continue
        if name or _has_keys(block):
            yield name, start, block
        name, start, block = found["name"], number, []
    if name or _has_keys(block):
        yield name, start, block


def _has_keys(block: Lines) -> bool:
    return any(_KEY.fullmatch(line.rstrip()) for _, line in block)


def _fill(block: Lines, spec: Object, status: Object) -> None:
    key, value, start = "", "", 0
    items: Lines = []
    for number, line, raw in with_messages(block):
        found = None if raw else _KEY.fullmatch(line.rstrip())
        if found is None:
            items.append((number, line))
            continue
        _put(key, value, start, items, spec, status)
        key, value, start, items = found["key"], (found["value"] or "").strip(), number, []
    _put(key, value, start, items, spec, status)


def _put(key: str, value: str, line: int, items: Lines, spec: Object, status: Object) -> None:
    if key == "Image":
        spec.put("image", value, line)
    elif key == "Container ID":
        status.put("containerID", value, line)
    elif key in ("Command", "Args"):
        strings = Array(line)
        for number, text in items:
            strings.add(text[_ITEM_INDENT:], number)
        spec.put(key.lower(), strings, line)
    elif key in ("State", "Last State"):
        status.put("state" if key == "State" else "lastState", _state(value, line, items), line)
    elif key == "Ready":
        status.put("ready", value == "True", line)
    elif key == "Restart Count" and is_whole(value):
        status.put("restartCount", int(value), line)
    elif key in ("Limits", "Requests"):
        resources = spec.get("resources")
        if not isinstance(resources, Object):
            resources = Object(line)
            spec.put("resources", resources, line)
        amounts = Object(line)
        for number, text in items:
            name, _, amount = text.strip().partition(":")
            amounts.put(name, amount.strip(), number)
        resources.put(key.lower(), amounts, line)
    elif key in ("Liveness", "Readiness", "Startup"):
        probe = _probe(value, line)
        if probe is not None:
            spec.put(f"{key.lower()}Probe", probe, line)
    elif key == "Environment" and value != "<none>":
        spec.put("env", _env(items, line), line)
    elif key == "Mounts":
        spec.put("volumeMounts", _mounts(items, line), line)


def _state(word: str, line: int, items: Lines) -> Object:
    """`Running`, `Waiting` or `Terminated` with the lines below it, as the API's state."""
    inner = Object(line)
    for number, text, raw in with_messages(items):
        found = None if raw else _SUB.fullmatch(text.rstrip())
        if raw and "message" in inner:
            inner["message"] += f"\n{text}"
        elif found is not None:
            _put_state(inner, found["key"], found["value"], number)
    state = Object(line)
    state.put(word.lower() or "waiting", inner, line)
    return state


def _put_state(state: Object, key: str, value: str, line: int) -> None:
    if key in ("Reason", "Message"):
        state.put(key.lower(), value, line)
    elif key in ("Exit Code", "Signal") and regex.fullmatch(r"-?\d{1,9}", value):
        state.put("exitCode" if key == "Exit Code" else "signal", int(value), line)
    elif key in ("Started", "Finished") and utc(value):
        state.put(f"{key.lower()}At", utc(value), line)


def _probe(text: str, line: int) -> Object | None:
    """`http-get http://:8000/health delay=60s timeout=5s period=10s #success=1 #failure=3`.

    kubectl 1.37 writes `successThreshold=` and `failureThreshold=` instead of `#success=` and `#failure=`.
    """
    found = _PROBE.fullmatch(text)
    if found is None:
        return None
    probe, handler = Object(line), Object(line)
    what = found["what"]
    kind, _, target = what.partition(" ")
    http = _HTTP.fullmatch(what)
    if http:
        probe.put("httpGet", handler, line)
        handler.put("port", http["port"], line)
        handler.put("path", http["path"] or "/", line)
    elif kind == "exec":
        command = Array(line)
        command.add(target.removeprefix("[").removesuffix("]"), line)
        handler.put("command", command, line)
        probe.put("exec", handler, line)
    elif kind == "tcp-socket":
        handler.put("port", target.rpartition(":")[2], line)
        probe.put("tcpSocket", handler, line)
    elif kind == "grpc":
        address, _, service = target.partition(" ")
        handler.put("port", address.rpartition(":")[2], line)
        handler.put("service", service.strip(), line)
        probe.put("grpc", handler, line)
    probe.put("initialDelaySeconds", int(found["delay"]), line)
    probe.put("timeoutSeconds", int(found["timeout"]), line)
    probe.put("periodSeconds", int(found["period"]), line)
    for name, number in _THRESHOLD.findall(found["rest"]):
        probe.put(f"{name}Threshold", int(number), line)
    return probe


def _env(items: Lines, line: int) -> Array:
    """Literal variables; those taken from secrets, fields and resources have no value here."""
    variables = Array(line)
    for number, text in items:
        found = _ENV.fullmatch(text.strip())
        if (
            found is None
            or not text.startswith(" " * _ITEM_INDENT)
            or _REFERENCE.match(found["value"].strip())
        ):
            continue
        variable = Object(number)
        variable.put("name", found["name"], number)
        variable.put("value", found["value"].strip(), number)
        variables.add(variable, number)
    return variables


def _mounts(items: Lines, line: int) -> Array:
    mounts = Array(line)
    for number, text in items:
        found = _MOUNT.match(text)
        if found:
            mount = Object(number)
            mount.put("mountPath", found["path"], number)
            mount.put("name", found["name"], number)
            mounts.add(mount, number)
    return mounts


def add_volumes(body: Sequence[tuple[int, str]], spec: Object) -> None:
    """The volumes that may hold /dev/shm: memory-backed emptyDirs with their size limit."""
    volumes = Array(body[0][0] if body else 0)
    current = Object()
    for number, line in body:
        named = _NAME.fullmatch(line)
        found = _KEY.fullmatch(line.rstrip())
        if named:
            current = Object(number)
            current.put("name", named["name"], number)
            volumes.add(current, number)
        elif found and found["key"] == "Type" and (found["value"] or "").startswith("EmptyDir"):
            current.put("emptyDir", Object(number), number)
        elif found and found["key"] == "SizeLimit" and isinstance(current.get("emptyDir"), Object):
            current["emptyDir"].put("sizeLimit", (found["value"] or "").strip(), number)
    if volumes:
        spec.put("volumes", volumes, volumes.line)
