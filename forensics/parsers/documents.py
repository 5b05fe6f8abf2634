"""Documents that are recognised by their syntax: docker compose files, and JSON or YAML without facts for
this tool.

Recognising the rest keeps the list of sources honest: a bundle's `analysis.json` or Helm values are read
knowingly, not left over as unknown. Compose: the Compose Specification (compose-spec.io).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import regex

from ..model import Diagnostic, Event, Locator, Parsed, Scope, Severity
from ..regexes import lazy_regex
from ..sources import Format, Head
from .healthchecks import health_fields
from .json_yaml import read_json, read_yaml
from .k8s_facts import DEFAULT_SHM_BYTES
from .k8s_values import known
from .located import Object, dig, int_at, object_at, objects_at, quoted, strings_at, text_at
from .sizes import size_bytes

_SERVICES = lazy_regex(r"^services:\s*(?:#.*)?$", regex.MULTILINE)
_SERVICE_KEY = lazy_regex(r"^\s+(?:image|build):", regex.MULTILINE)
_YAML_PATH = lazy_regex(r"\.ya?ml(?:[.~_-][\w.-]*)?$", regex.IGNORECASE)
_BACKUP = lazy_regex(r"(?:[._-](?:bak|old|orig|save|backup)\b|~$)", regex.IGNORECASE)
_DURATION = lazy_regex(r"(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m)?(?:(?P<s>\d{1,9})s)?")


def _duration_s(text: str) -> int | None:
    found = _DURATION.fullmatch(text.strip())
    if not text.strip() or found is None:
        return None
    return int(found["h"] or 0) * 3600 + int(found["m"] or 0) * 60 + int(found["s"] or 0)


def read_compose(text: str, source: str) -> Parsed:
    """One `pod_spec` for each service. A backup file tells of the past: its services name no container."""
    events: list[Event] = []
    problems: list[Diagnostic] = []
    for document in read_yaml(text):
        if document.problem:
            problems.append(Diagnostic(
                source, document.problem_line, Severity.WARNING, f"the file {document.problem}",
                "what stands before it is analysed",
            ))  # fmt: skip
        services = object_at(document.value, "services")
        for name, service in services.items():
            if isinstance(service, Object):
                events.append(_service(name, service, services.lines[name], source))
    return quoted(events, text.split("\n"), problems)


def _service(name: str, service: Object, line: int, source: str) -> Event:
    limits = object_at(service, "deploy", "resources", "limits")
    shm = text_at(service, "shm_size")
    shared_ipc = text_at(service, "ipc").startswith(("host", "service:", "container:"))
    memory = text_at(limits, "memory") or text_at(service, "mem_limit")
    backup = _BACKUP.search(source) is not None
    fields: dict[str, Any] = {
        "container": name,
        "image": text_at(service, "image"),
        "command": _words(dig(service, "entrypoint")),
        "args": _words(dig(service, "command")),
        "env": dict(_environment(service)),
        "memory_limit_bytes": size_bytes(memory) or None,
        "shm_size_bytes": size_bytes(shm) if shm else None if shared_ipc else DEFAULT_SHM_BYTES,
        "gpus": _gpus(service),
        "restart_policy": text_at(service, "restart"),
        "grace_s": _duration_s(text_at(service, "stop_grace_period")),
        "backup": True if backup else None,
        **_health(service),
    }
    return Event(
        Locator(source, line, line), "pod_spec", "runtime", f"compose service {name} spec",
        scope=Scope() if backup else Scope(container=name),
        fields=known(fields),
    )  # fmt: skip


def _health(service: Object) -> Mapping[str, Any]:
    check = service.get("healthcheck")
    if not isinstance(check, Object) or dig(check, "disable") is True or "test" not in check:
        return {}
    delay_s, period_s, timeout_s = (_duration_s(text_at(check, k)) for k in ("start_period", "interval", "timeout"))
    return health_fields(delay_s, period_s, timeout_s, int_at(check, "retries"))


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return strings_at(value)
    if not isinstance(value, str):
        return ()
    try:
        return tuple(shlex.split(value))
    except ValueError:  # an open quote
        return tuple(value.split())


def _environment(service: Object) -> Iterator[tuple[str, str]]:
    value = service.get("environment")
    if isinstance(value, Object):
        yield from ((key, text_at(value, key)) for key in value)
    elif isinstance(value, list):
        for item in value:
            key, mark, text = str(item).partition("=")
            if mark:
                yield key, text


def _gpus(service: Object) -> int | None:
    for device in objects_at(service, "deploy", "resources", "reservations", "devices"):
        ids, count = dig(device, "device_ids"), dig(device, "count")
        if isinstance(ids, list):
            return len(ids)
        if isinstance(count, int):
            return count
    return None


def sniff_compose(head: Head) -> int:
    return 92 if _SERVICES.search(head.text) and _SERVICE_KEY.search(head.text) else 0


def sniff_json(head: Head) -> int:
    """A JSON document that no other format claims."""
    if head.text.lstrip()[:1] not in ("{", "["):
        return 0
    documents = list(read_json(head.text))
    whole = [d for d in documents if not d.problem or (not head.whole and d is documents[-1])]
    return 22 if documents and len(whole) == len(documents) else 0


def sniff_yaml(head: Head) -> int:
    """A mapping or a list in a file of that name; the name decides, since many tools print `key: value`."""
    if not _YAML_PATH.search(head.path):
        return 0
    first = next(iter(read_yaml(head.text)), None)
    return 22 if first is not None and isinstance(first.value, dict | list) and len(first.value) > 0 else 0


def _no_facts(text: str, source: str) -> Parsed:
    return Parsed()


COMPOSE = Format("docker.compose", "docker compose file", sniff_compose, read_compose, 4 << 20)
JSON = Format("json", "JSON document without facts for this analysis", sniff_json, _no_facts, begins=r"\[{", most=22)
YAML = Format("yaml", "YAML document without facts for this analysis", sniff_yaml, _no_facts, most=22)
