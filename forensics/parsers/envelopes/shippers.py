"""Log entries as log backends store and export them: an object with a message, a time, and labels that name the owner.

One reader for all of them, since they differ only in how they name things: Fluent Bit, Fluentd, Vector, Filebeat and
Elasticsearch (`_source`), Loki (`logcli -o jsonl`, Grafana downloads), Google Cloud Logging (`textPayload`,
`jsonPayload`), CloudWatch (`logStreamName`), Splunk (`_raw`), Datadog, VictoriaLogs (`_msg`), Azure, stern `-o json`.
Keys are compared without case, `_`, `.` and `-`, at any depth: `kubernetes.pod_name`, `podName` and `k8s.pod.name` are
one key. A row of a CSV export is such an object too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import regex

from ... import stamps
from ...model import RawStamp, Scope
from ...regexes import lazy_regex
from ...sources import owner
from ..layer import Layer, clean
from .container import cri
from .identity import UNIT_SUFFIXES, channel_of, speaker, unit_named

MAX_DEPTH = 5
MAX_KEYS = 300
_MESSAGE = (
    "log", "message", "msg", "textpayload", "raw", "line", "body", "logmessage", "logentry", "eventoriginal",
    "content", "text", "event",
)  # fmt: skip
_FAULT = ("error", "err", "errormessage", "exception", "excinfo", "stacktrace", "stack", "stderr")
"""What went wrong, beside the message or instead of one."""
_OTHERWISE = ("output", "stdout", "description", "detail", "details")
"""Where an entry that has none of these says what it says."""
_FAULT_WORDS = 3
"""A code or a flag is no message."""
_TIME = (
    "timestamp", "time", "ts", "timegeneratedutc", "date", "datetime", "timegenerated", "timens", "tsns", "timestampns",
    "eventtime",
    "receivetimestamp", "ingestiontime",
)  # fmt: skip
_POD = ("kubernetespodname", "k8spodname", "podname", "kubernetespod", "iokubernetespodname", "pod")
_OWNER: dict[str, tuple[str, ...]] = {
    "pod": _POD,
    "namespace": (
        "kubernetesnamespacename", "k8snamespacename", "namespacename", "podnamespace", "kubernetesnamespace",
        "kubenamespace", "iokubernetespodnamespace", "namespace",
    ),
    "container": (
        "kubernetescontainername", "k8scontainername", "containername", "kubernetescontainer", "kubecontainername",
        "iokubernetescontainername", "container",
    ),
    "pod_uid": ("kubernetespodid", "kubernetespoduid", "k8spoduid", "poduid", "poduuid", "podid", "iokubernetespoduid"),
    "container_id": ("kubernetesdockerid", "containerid", "dockerid", "dockercontainerid"),
    "host": (
        "kuberneteshost", "kubernetesnodename", "k8snodename", "nodename", "kubernetesnode", "hostname", "computer",
        "node", "host", "ec2instanceid", "instance",
    ),
}  # fmt: skip
_MARKS = frozenset({
    *_POD, "textpayload", "jsonpayload", "logstreamname", "logstream", "containername", "k8scontainername",
})  # fmt: skip
"""Keys that only a backend's entry has."""
_WRAPPERS = frozenset({
    "source", "result", "jsonpayload", "content", "attributes", "resource", "labels", "fields", "stream", "properties",
    "resourcesstring", "attributesstring", "labelsstring", "structuredmetadata",
})  # fmt: skip
"""Objects whose keys count as the entry's own."""
AUTHORS = frozenset({
    "user", "user_profile", "username", "user_id", "author", "sender", "from", "from_name", "display_name", "reporter",
})  # fmt: skip
"""Keys that name who wrote something; a log's entry has none, or a level beside it."""
_PROGRAMS = ("syslogidentifier", "comm", "ident", "systemdunit")
_LEVELS = ("level", "severity", "levelname", "lvl", "loglevel")
_TAGS = ("tags", "ddtags")
_SPLIT = lazy_regex(r"[^a-z0-9]+")
_NUMBER = lazy_regex(r"\d{9,19}(?:\.\d{1,9})?(?:[eE]\+?\d{1,2})?")
_ID = lazy_regex(r"(?:\w+://)?(?P<id>[0-9a-f]{64})")
_UID = lazy_regex(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}")
_NAME = lazy_regex(r"/?(?P<name>[A-Za-z0-9][\w.:/-]{0,252})")
_TAIL = lazy_regex(r"(?:^|[./])(?:containers|pods)[./](?P<path>.+)")
_AMERICAN = lazy_regex(
    r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4}),? (?P<hour>\d{1,2}):(?P<rest>\d\d:\d\d(?:\.\d+)?)"
    r"(?: (?P<half>AM|PM))?(?P<zone>Z?)"
)
_WORDED = lazy_regex(
    r"(?:[A-Z][a-z]{2,8},? )?"
    r"(?:(?P<month>[A-Z][a-z]{2,8})\.? (?P<day>\d{1,2})|(?P<day>\d{1,2})[ /-](?P<month>[A-Z][a-z]{2,8}))"
    r"[,/ -] ?(?P<year>\d{4})(?:,| @| at|:)? ?(?P<hour>\d{1,2}):(?P<rest>\d\d:\d\d(?:[.,]\d+)?)"
    r"(?: (?P<half>[AaPp][Mm]))?(?P<zone> ?(?:UTC|GMT|Z|[+-]\d\d:?\d\d)?)"
)
"""The month by its name: `Nov 12, 2025 @ 14:20:00.314` (Kibana, OpenSearch), `12/Nov/2025:14:20:00 +0000`."""
_SPACED = lazy_regex(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d),? (?P<time>\d\d:\d\d:\d\d(?:[.,]\d+)?)(?P<zone> ?(?:UTC|GMT|Z|[+-]\d\d:?\d\d)?)"
    r"(?: [A-Z]{3,4})?"  # Go writes the zone twice
)


def flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Scalars by their normalised path (`kubernetespodname`), and by their last name where that is free."""
    found: dict[str, Any] = {}
    short: dict[str, Any] = {}
    for path, value in _walk(entry, "", 0):
        if len(found) >= MAX_KEYS:
            break
        found.setdefault(path, value[1])
        short.setdefault(value[0], value[1])
    return {**short, **found}


def _walk(entry: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, tuple[str, Any]]]:
    for key, value in entry.items():
        steps = [_SPLIT.sub("", step) for step in str(key).lower().split(".")]
        name = steps[-1]
        for step in steps if isinstance(value, Mapping) else steps[:-1]:
            if step in _WRAPPERS:
                yield step, (step, "")
        inside = path + "".join(step for step in steps[:-1] if step not in _WRAPPERS)
        if isinstance(value, Mapping):
            if depth < MAX_DEPTH:
                yield from _walk(value, inside if name in _WRAPPERS else inside + name, depth + 1)
        elif name in _TAGS:
            yield from _tags(value)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield inside + name, (name, value)


def _tags(value: Any) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Datadog's labels: `["pod_name:vllm-0", …]`, or one text with commas."""
    for tag in value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ():
        key, mark, text = str(tag).partition(":")
        if mark:
            name = _SPLIT.sub("", key.lower())
            yield f"tags{name}", (name, text)


def is_shipped(keys: Mapping[str, Any]) -> bool:
    """Whether a flattened object is a backend's entry: it has a message, and names an owner or a stream."""
    return bool(_MARKS & keys.keys()) and _message(keys) is not None


def shipped(entry: Mapping[str, Any], certain: bool = False) -> Layer | None:
    """An entry's message, time and owner. `certain`: known to be an entry, whatever its keys (a row of an export)."""
    keys = flat(entry)
    message = _message(keys)
    if message is None or not (certain or is_shipped(keys)):
        return None
    inner = _inner(message)
    if inner is not None:  # Container Insights and others put the entry of their agent into the message
        keys = {**keys, **flat(inner)}
        message = _message(flat(inner)) or message
    stamp, scope, partial = _time(keys), _owner(keys), False
    if (wrapped := cri(message)) is not None:  # an agent without a parser for the runtime's format
        message, stamp, partial = wrapped.rest, wrapped.stamp or stamp, wrapped.partial
    text, level = clean(message.rstrip("\n")), str(keys.get("severity") or keys.get("level") or "").upper()
    if scope.pod or scope.container or scope.container_id:
        return Layer(text, stamp, "container", level=level, scope=scope, partial=partial, output=True)
    return replace(_of_node(text, keys, scope), stamp=stamp, level=level)


def _of_node(text: str, keys: Mapping[str, Any], scope: Scope) -> Layer:
    """A message of no container, with the program or the unit that its labels name; Loki's agents call it `unit`."""
    ident = next((str(keys[name]) for name in _PROGRAMS if keys.get(name)), "")
    ident = ident or _log_name(str(keys.get("logname") or ""))
    unit = str(keys.get("unit") or "")
    if not ident and (unit.endswith(UNIT_SUFFIXES) or channel_of(unit) != "host"):
        ident = unit
    elif not ident and keys.get("transport") == "kernel":
        ident = "kernel"
    channel = speaker(ident, text, None) if ident else ""
    return Layer(text, None, channel, ident, scope=replace(scope, unit=unit_named(ident)), machine=bool(channel))


def message_of(entry: Mapping[str, Any]) -> str | None:
    """What an entry says, as it stands in it."""
    return _message(flat(entry))


def logged(entry: Mapping[str, Any]) -> Layer | None:
    """The line of any other logger that writes objects: a message and a time, and nobody who wrote it."""
    names = {key.lower() for key in entry}
    if "role" in names or (names & AUTHORS and not names & frozenset(_LEVELS)):
        return None
    layer = shipped(entry, certain=True)
    return layer if layer is not None and layer.stamp is not None else None


def _message(keys: Mapping[str, Any]) -> str | None:
    """The message, and what went wrong where a key of its own says it."""
    fault = _words(keys, _FAULT)
    for name in _MESSAGE:
        value = keys.get(name)
        if isinstance(value, str) and value:
            told = fault is None or fault in value or value.startswith("{")
            return value if told else f"{value}\n{fault}" if "\n" in str(fault) else f"{value}: {fault}"
    return fault or (_words(keys, _OTHERWISE) if "prompt" not in keys else None)


def _words(keys: Mapping[str, Any], names: Iterable[str]) -> str | None:
    values = (keys.get(name) for name in names)
    return next((v for v in values if isinstance(v, str) and len(v.split()) >= _FAULT_WORDS), None)


def _inner(message: str) -> Mapping[str, Any] | None:
    if not message.startswith("{") or len(message) > 1 << 20:
        return None
    try:
        entry = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and is_shipped(flat(entry)) else None


def _log_name(name: str) -> str:
    """`projects/p/logs/kubelet` → `kubelet`, where that is a program known to speak."""
    last = name.rsplit("/", 1)[-1]
    return last if channel_of(last) != "host" else ""


def _time(keys: Mapping[str, Any]) -> RawStamp | None:
    for name in _TIME:
        value = keys.get(name)
        stamp = moment(f"{value}Z" if name == "timegeneratedutc" else value) if value is not None else None
        if stamp is not None:
            return stamp
    return None


def moment(value: Any) -> RawStamp | None:
    """ISO 8601 with or without zone, or Unix time in seconds, milli-, micro- or nanoseconds, by its size."""
    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        power = next((p for p in (0, 3, 6, 9) if number < 1e11 * 10.0**p), 9)
        return stamps.instant(round(number / 10.0**power, 6), "shipper", 1e-3 if power or "." in text else 1.0)
    if found := _AMERICAN.fullmatch(text) or _WORDED.fullmatch(text):
        month = int(found["month"]) if found["month"].isdigit() else stamps.month_number(found["month"]) or 0
        half = (found["half"] or "").upper()
        hour = int(found["hour"]) % 12 + (12 if half == "PM" else 0) if half else int(found["hour"])
        text = f"{found['year']}-{month:02d}-{int(found['day']):02d} {hour:02d}:{found['rest']}{found['zone']}"
    if found := _SPACED.fullmatch(text):
        zone = found["zone"].strip()
        zone = "Z" if zone in ("UTC", "GMT", "Z") else zone
        text = f"{found['date'].replace('/', '-')}T{found['time']}{zone}"
    return stamps.iso(text, "shipper")


def _owner(keys: Mapping[str, Any]) -> Scope:
    parts: dict[str, str | None] = {}
    for part, names in _OWNER.items():
        for name in names:
            value = str(keys.get(name) or "")
            found = {"pod_uid": _UID, "container_id": _ID}.get(part, _NAME).fullmatch(value)
            if found:
                parts[part] = found.groupdict().get("id") or found.groupdict().get("name") or found[0]
                break
    scope = Scope.from_parts(parts)
    for key in ("logstreamname", "logstream", "filename", "filepath", "logfilepath", "source", "tag"):
        tail = _TAIL.search(str(keys.get(key) or ""))
        if tail:
            scope = scope.merged(owner(f"/{tail['path']}")).merged(owner(f"/pods/{tail['path']}"))
    return scope


_STREAM = lazy_regex(
    r"(?P<stream>\S{0,200}[./](?:containers|pods)[./]\S{1,400}?\.log)[ \t](?P<rest>.*)", regex.DOTALL
)


def stream_name(text: str) -> Layer | None:
    """`…application.var.log.containers.<pod>_<namespace>_<container>-<id>.log message`, of `aws logs tail`."""
    found = _STREAM.match(text) if "containers" in text[:200] and ".log" in text[:600] else None
    if found is None:
        return None
    scope = _owner({"logstreamname": found["stream"]})
    if not scope.pod:
        return None
    layer = shipped({"logstream": "", "message": found["rest"]}, certain=True)
    if layer is None:
        return Layer(found["rest"], channel="container", scope=scope, output=True)
    return replace(layer, channel="container", scope=layer.scope.merged(scope), output=True)


_LABELS = lazy_regex(
    r'\{(?P<labels>[a-zA-Z_]\w*="(?:[^"\\]|\\.)*+"(?:, ?[a-zA-Z_]\w*="(?:[^"\\]|\\.)*+")*+)\}[ \t](?P<rest>.*)',
    regex.DOTALL,
)
_LABEL = lazy_regex(r'(?P<name>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)"')


def loki_labels(text: str) -> Layer | None:
    """`{container="vllm", pod="vllm-0"} message`, as `logcli query` prints it behind the time."""
    if not text.startswith("{") or '="' not in text[:80]:
        return None
    found = _LABELS.match(text)
    if not found:
        return None
    labels = {m["name"]: m["value"] for m in _LABEL.finditer(found["labels"])}
    scope = _owner(flat(labels))
    if scope.pod or scope.container:
        return Layer(found["rest"], channel="container", scope=scope, output=True)
    return _of_node(found["rest"], flat(labels), scope)
