"""systemd's lines about units: how a main process ended, and which unit a line is about.

Wordings of `src/core/service.c` and `unit.c`, systemd 219–257. Containers are scopes here
(`cri-containerd-<id>.scope` with the systemd cgroup driver), so a line may name a container where no kernel
log was saved.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Event
from ..regexes import lazy_regex
from .cgroup_path import path_scope
from .log import Dialect

_SUFFIX = r"(?:service|scope|slice|socket|mount|timer|target|swap)"
_ABOUT = lazy_regex(rf"(?P<unit>[^\s:]+\.{_SUFFIX}): ")
_JOB = lazy_regex(
    r"(?:Started|Starting|Stopped|Stopping|Finished|Reloading|Reloaded|Failed to start|"
    r"Created slice|Removed slice|Unit|Closed|Listening on|Dependency failed for) "
    rf"(?P<unit>[^\s:]+\.{_SUFFIX})\b"
)
_EXIT = lazy_regex(
    rf"(?P<unit>[^\s:]+\.{_SUFFIX}): (?P<process>[Mm]ain|[Cc]ontrol) process exited, "
    r"code=(?P<code>exited|killed|dumped), status=(?P<status>\d{1,18})(?:/(?P<name>[\w-]+))?"
)
_AGAIN = lazy_regex(r"Scheduled restart job, restart counter is at (?P<count>\d{1,9})")


def refine(event: Event) -> Event:
    """Ends of processes become `unit_exit`, counted restarts `unit_restart`.

    Every line learns its unit, and its container if it is one.
    """
    found = _ABOUT.match(event.text) or _JOB.match(event.text)
    if not found:
        return event
    unit = found["unit"]
    owner = path_scope(unit.removesuffix(".slice").rsplit("/", 1)[-1] if "pod" in unit else unit)
    scope = replace(
        event.scope, unit=unit, container_id=owner.container_id or event.scope.container_id,
        pod_uid=owner.pod_uid or event.scope.pod_uid, pid=None,
    )  # fmt: skip
    exited, again = _EXIT.match(event.text), _AGAIN.search(event.text)
    if again:
        counted = {**event.fields, "n_restarts": int(again["count"])}
        return replace(event, kind="unit_restart", fields=counted, scope=scope)
    if not exited:
        return replace(event, scope=scope)
    fields: dict[str, str | int] = {"code": exited["code"], "status": int(exited["status"])}
    if exited["name"]:
        fields["status_name"] = exited["name"]
    return replace(
        event, kind="unit_exit", fields={**fields, "process": exited["process"].lower()}, scope=scope
    )


PLAIN = Dialect(channel="plain", refine=refine)
DIALECT = Dialect(
    channel="systemd",
    anchors=(
        "ain process exited, code=", "ontrol process exited, code=", "killed by the OOM killer",
        "systemd-oomd killed", "Failed with result", "entered failed state", "Scheduled restart job",
        "Start request repeated too quickly", "timed out. ", "Watchdog timeout (", "with signal SIG",
        "]: Started ", "]: Starting ", "]: Stopped ", '"Started ', '"Starting ', '"Stopped ',
    ),
    refine=refine,
)  # fmt: skip
