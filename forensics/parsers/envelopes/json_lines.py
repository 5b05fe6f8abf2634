"""One JSON object a line: docker json-file, journald, log backends, vLLM's JSON logging, kubelet, Ray events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import regex

from ... import stamps
from ...model import Scope
from ...regexes import lazy_regex
from ..layer import Layer, clean
from .identity import channel_of, speaker
from .shippers import logged, shipped

_HEAD_KEYS = frozenset({"level", "time", "logger", "message", "commit"})
_WHOLE = lazy_regex(r"\d{1,18}")
_SECONDS = lazy_regex(r"\d{1,18}(?:\.\d{1,12})?")


def json_line(text: str) -> Layer | None:
    """A JSON object; `data: ` of `journalctl -o json-sse` and json-seq's record separator are taken off."""
    if text.startswith(("\x1e", "data: {")):
        text = text.removeprefix("\x1e").removeprefix("data: ")
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    for reader in (
        _journal_json, _klog_json, shipped, _docker_json, _controller_json, _engine_json, _ray_json, _access_json,
        logged,
    ):  # fmt: skip
        layer = reader(entry)
        if layer is not None:
            return layer
    return None


def _docker_json(entry: dict[str, Any]) -> Layer | None:
    if not (isinstance(entry.get("log"), str) and isinstance(entry.get("time"), str)):
        return None
    log, stamp = entry["log"], stamps.iso(entry["time"], "cri")
    return Layer(log.rstrip("\n"), stamp, "container", partial=not log.endswith("\n"), output=True)


def journal_text(value: Any) -> str:
    """A journal field: text, an array of byte values (unprintable), an array of texts (field given twice)."""
    if isinstance(value, list):
        if value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return bytes(value).decode("utf-8", "replace")
        value = next((journal_text(item) for item in value if isinstance(item, str | list)), "")
    return "" if value is None else str(value)


def _journal_json(entry: dict[str, Any]) -> Layer | None:
    if "__REALTIME_TIMESTAMP" not in entry:
        return None
    field = {key: journal_text(value) for key, value in entry.items() if key in JOURNAL_FIELDS}
    get = field.get
    micros = get("_SOURCE_REALTIME_TIMESTAMP") or get("__REALTIME_TIMESTAMP", "")
    stamp = stamps.instant(int(micros) / 1e6, "journal") if _WHOLE.fullmatch(micros) else None
    ident, message = get("SYSLOG_IDENTIFIER") or get("_COMM", ""), clean(get("MESSAGE", ""))
    container, container_id = get("CONTAINER_NAME", ""), get("CONTAINER_ID_FULL", "")
    channel = "container" if container or container_id else _journal_speaker(field, ident, message)
    pid = get("_PID") or get("SYSLOG_PID", "")
    unit = get("_SYSTEMD_UNIT", "")
    if channel == "systemd":  # the manager tells about another unit than its own
        unit = get("UNIT") or get("USER_UNIT") or (unit if unit != "init.scope" else "")
    scope = Scope(
        host=get("_HOSTNAME", ""), unit=unit, pid=int(pid) if _WHOLE.fullmatch(pid) else None, container=container,
        container_id=container_id,
    )  # fmt: skip
    return Layer(message, stamp, channel, ident, scope=scope, machine=True)


def _journal_speaker(field: Mapping[str, str], ident: str, message: str) -> str:
    """Any program may choose its identifier; the fields that begin with `_` are journald's own findings."""
    if field.get("_TRANSPORT") == "kernel":
        return "kernel" if ident in ("", "kernel") else speaker(ident, message, None)
    channel = speaker(ident, message, None)
    program, unit = field.get("_COMM", ""), field.get("_SYSTEMD_UNIT", "")
    if channel == "systemd":  # a child bears the manager's name in brackets, or its own, until exec
        proven = not program or program.startswith(("systemd", "(")) or unit == "init.scope"
    elif channel == "kernel":
        proven = False
    else:  # of a long name journald knows 15 bytes; a wrapper script has the unit's name only
        proven = not program or program[:15] == ident[:15] or channel in (channel_of(program), channel_of(unit))
    return channel if proven else "host"


JOURNAL_FIELDS = frozenset({
    "MESSAGE", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "SYSLOG_IDENTIFIER", "_COMM",
    "_TRANSPORT", "_PID", "SYSLOG_PID", "_HOSTNAME", "_SYSTEMD_UNIT", "UNIT", "USER_UNIT", "CONTAINER_NAME",
    "CONTAINER_ID_FULL",
})  # fmt: skip


def _controller_json(entry: dict[str, Any]) -> Layer | None:
    """A controller of a cluster (controller-runtime on zap: Karpenter …), its keys behind the message; no engine."""
    level, message, when = (entry.get(key) for key in ("level", "message", "time"))
    if not (isinstance(entry.get("controller"), str) and all(isinstance(v, str) for v in (level, message, when))):
        return None
    told = (f"{key}={value}" for key, value in entry.items() if key not in _HEAD_KEYS and isinstance(value, str))
    node = entry.get("Node")
    name = node.get("name") if isinstance(node, dict) else ""
    scope = Scope(host=name) if isinstance(name, str) else Scope()
    text = " ".join((str(message), *told))
    return Layer(text, stamps.iso(str(when), "zap"), "host", level=str(level).upper(), scope=scope, logger="controller")


def _engine_json(entry: dict[str, Any]) -> Layer | None:
    """vLLM 0.31+ `--logging-config.formatter json`, and python-json-logger with its usual names."""
    level = entry.get("levelname") or entry.get("level")
    message = entry.get("message")
    if not (isinstance(level, str) and isinstance(message, str)):
        return None
    when = entry.get("asctime") or entry.get("timestamp") or entry.get("time") or ""
    text = message
    if isinstance(entry.get("exc_info"), str):
        text = f"{message}\n{entry['exc_info']}"
    pid = entry.get("process")
    scope = Scope(process=str(entry.get("processName") or ""), pid=pid if isinstance(pid, int) else None)
    stamp, logger = stamps.iso(str(when), "engine"), str(entry.get("name") or "")
    return Layer(text, stamp, "engine", level=level.upper(), logger=logger, scope=scope)


def _klog_json(entry: dict[str, Any]) -> Layer | None:
    if isinstance(entry.get("kubernetes"), dict):  # an application's line, labelled by an agent
        return None
    when = entry.get("ts")
    if not (isinstance(when, int | float) and isinstance(entry.get("msg"), str) and 1e11 < when < 1e18):
        return None  # in seconds it is zap's
    rest = [f'"{entry["msg"]}"']
    for key, value in entry.items():
        if key not in ("ts", "msg", "v", "caller", "logger"):
            rest.append(f"{key}={json.dumps(value, ensure_ascii=False)}")
    level = "ERROR" if "err" in entry else "INFO"
    return Layer(
        " ".join(rest), stamps.instant(when / 1000.0, "klog"), "kubelet", level=level,
        logger=str(entry.get("caller") or ""),
    )  # fmt: skip


def _ray_json(entry: dict[str, Any]) -> Layer | None:
    if not (isinstance(entry.get("label"), str) and "source_type" in entry and "message" in entry):
        return None
    when = entry.get("timestamp")
    unit_s = 1e-3 if "." in str(when) else 1.0
    stamp = stamps.instant(float(str(when)), "ray", unit_s) if _SECONDS.fullmatch(str(when)) else None
    return Layer(
        f"{entry['label']}: {entry['message']}", stamp, "ray", str(entry["source_type"]),
        str(entry.get("severity") or ""), scope=Scope(host=str(entry.get("host_name") or "")),
    )  # fmt: skip


_METHOD_KEYS = ("method", "request_method", "http_method", "requestMethod", "RequestMethod")
STATUS_KEYS = ("response_code", "status", "status_code", "http_status", "responseStatus", "DownstreamStatus")
_PATH_KEYS = ("path", "uri", "request_uri", "url", "requestUrl", "RequestPath")
_TIME_KEYS = ("start_time", "time_iso8601", "timestamp", "@timestamp", "time", "ts", "StartUTC")


def _access_json(entry: dict[str, Any]) -> Layer | None:
    """A gateway's answer: Envoy and Istio, nginx with a JSON log_format, Traefik, Google's `httpRequest`."""
    inner = entry.get("httpRequest")
    answer = {**entry, **inner} if isinstance(inner, dict) else entry
    method, status, path = (_first(answer, keys) for keys in (_METHOD_KEYS, STATUS_KEYS, _PATH_KEYS))
    if not method.isalpha() or not method.isupper() or not regex.fullmatch(r"[1-5]\d\d", status):
        return None
    return Layer(f'"{method} {path or "/"}" {status}', stamps.iso(_first(answer, _TIME_KEYS), "access"), "plain")


def _first(entry: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The first of some keys that holds a text or a whole number."""
    values = (entry.get(key) for key in keys)
    return next((str(v) for v in values if isinstance(v, str | int) and not isinstance(v, bool)), "")
