"""Who tells of the end of a process, and what: the witnesses that `deaths` joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Event, Finding
from ..regexes import lazy_regex
from .entities import ENGINE_COMM, Entities

KINDS = frozenset({"container_terminated", "container_died", "unit_exit", "kernel_oom", "docker_state"})
INSTANCE = lazy_regex(r"[-_]\d+$")
"""`vllm-1` is the first instance of the compose service `vllm`."""
_KILLED = frozenset({"Killed", "SIGKILL"})


def of_ends(
    events: Sequence[Event], findings: Sequence[Finding], signatures: frozenset[str], entities: Entities
) -> Iterator[Event]:
    """Reports of an end, in their order: events of a kind that tells one, and what such signatures hit."""
    seen: set[tuple[str, int]] = set()
    for event in events:
        if event.kind in KINDS and not _harmless(event):
            seen.add((event.locator.source, event.locator.order))
            yield event
    told = [f for f in findings if f.signature in signatures and not f.quoted]
    for finding in told:
        key = (finding.locator.source, finding.locator.order)
        if key not in seen:
            seen.add(key)
            yield _told(finding, told, entities)


def _told(finding: Finding, others: Sequence[Finding], entities: Entities) -> Event:
    """A report of an end as a witness: what the signature read is among its fields, and whom it names is its owner."""
    fields = {**finding.event.fields, **finding.fields}
    signal = fields.get("signal")
    if "exit_code" not in fields and isinstance(signal, int):
        fields["exit_code"] = 128 + signal
    elif "exit_code" not in fields and fields.get("signal_name") in _KILLED:
        fields["exit_code"] = 137
    event = replace(finding.event, fields=fields)
    name = _named(finding)
    if not name or event.scope.container or event.scope.pod:
        return event
    alone = {_named(f) for f in others if f.locator.source == finding.locator.source} == {name}
    known = f"ctr:{name}" in entities
    if known or not (alone or ENGINE_COMM.search(name)):
        return replace(event, scope=replace(event.scope, container=name))
    return event  # whoever writes the log


def _named(finding: Finding) -> str:
    """The container or program that a report of an end names, without the number of its instance."""
    name = finding.fields.get("container") or finding.fields.get("process") or ""
    return INSTANCE.sub("", str(name))


def _harmless(event: Event) -> bool:
    if event.kind == "docker_state":
        return event.fields.get("status") == "running" and not event.fields.get("oom_killed")
    if event.kind == "unit_exit":
        return event.fields.get("status") == 0
    return False


def exit_code(event: Event, known: int | None) -> int | None:
    """The code that a witness gives; systemd prints a status, and a signal's number when the process was killed."""
    code, status = event.fields.get("exit_code"), event.fields.get("status")
    if isinstance(code, int):
        return code
    if event.kind == "unit_exit" and isinstance(status, int):
        return status if event.fields.get("code") == "exited" else 128 + status
    return known


def trust(event: Event) -> tuple[int, str, int]:
    """Kubernetes objects speak last: they hold the code and the reason together."""
    return (1 if event.channel == "k8s" else 0, event.locator.source, event.locator.order)


def place(event: Event) -> tuple[float, str, int]:
    return (event.time.utc_s or 0.0, event.locator.source, event.locator.order)


def is_completed(event: Event) -> bool:
    """A container that ended with 0 and stays so: a batch job that is done. A server would have been started again."""
    return (
        event.kind == "container_terminated"
        and event.fields.get("reason") == "Completed"
        and event.fields.get("exit_code") == 0
        and event.fields.get("last_state") is False
        and event.fields.get("restart_count") == 0
    )
