"""What Ray Serve says of its applications: `serve status` (YAML), the dashboard's `/api/serve/applications/` (JSON),
and the status of a RayService object.

Ray 2.x, `python/ray/serve/schema.py`: `applications: {<app>: {status, message, deployments: {<name>: {status,
status_trigger, replica_states, message}}}}`. KubeRay, `rayservice_types.go`: the same below `applicationStatuses`, with
`serveDeploymentStatuses`. The message of what failed to start ends with the exception of the replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import regex

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import embedded
from .json_yaml import read_json, read_yaml
from .k8s_values import instant_at, known
from .located import Object, dig, int_at, line_at, object_at, quoted, text_at

_APPLICATIONS = ("applications", "applicationStatuses")
_DEPLOYMENTS = ("deployments", "serveDeploymentStatuses")
_SHAPE = lazy_regex(
    r"^applications:\s*$.*?^\s+deployments:|\"applications\"\s*:.*?\"(?:status_trigger|replica_states|last_deployed_time_s)\"",
    regex.MULTILINE | regex.DOTALL,
)


def service_events(entry: Object, source: str) -> Iterator[Event]:
    """Both clusters of a RayService: the one that serves, and the one that is being made."""
    scope = Scope(namespace=text_at(entry, "metadata", "namespace"))
    for cluster in ("activeServiceStatus", "pendingServiceStatus"):
        yield from _applications(object_at(entry, "status", cluster), source, scope)


def read(text: str, source: str) -> Parsed:
    """A `log` event on `ray` for each deployment, and what its message holds of the replica's own output."""
    documents = read_json(text) if text.lstrip()[:1] == "{" else read_yaml(text)
    told = (event for document in documents for event in _applications(document.value, source, Scope()))
    return quoted(told, text.split("\n"))


def _applications(value: Any, source: str, scope: Scope) -> Iterator[Event]:
    for key in _APPLICATIONS:
        for name, application in object_at(value, key).items():
            if not isinstance(application, Object):
                continue
            yield from _told(application, f"application '{name}'", source, scope)
            for below in _DEPLOYMENTS:
                for part, deployment in object_at(application, below).items():
                    if isinstance(deployment, Object):
                        yield from _told(deployment, f"deployment '{part}' of '{name}'", source, scope)


def _told(value: Object, who: str, source: str, scope: Scope) -> Iterator[Event]:
    status, message = text_at(value, "status"), text_at(value, "message").strip()
    if not status:
        return
    line = line_at(value, "status")
    stamp = instant_at(value, "healthLastUpdateTime")
    fields = {
        "status": status, "status_trigger": text_at(value, "status_trigger"),
        "replicas_running": int_at(dig(value, "replica_states"), "RUNNING"),
    }  # fmt: skip
    place, told = Locator(source, line, line), f"Serve {who} is {status}"
    yield Event(place, "log", "ray", told, (stamp,) if stamp else (), scope, known(fields))
    if "\n" in message or "Error" in message:
        line = line_at(value, "message")
        for event in embedded.read_text(message, source, "container").events:
            yield replace(event, locator=Locator(source, line, line), last_line=None, scope=event.scope.merged(scope))


def _sniff(head: Head) -> int:
    return 93 if _SHAPE.search(head.text) else 0


FORMAT = Format("ray.serve_status", "serve status", _sniff, read, 4 << 20)
