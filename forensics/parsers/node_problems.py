"""Kills that a node problem detector copied out of the kernel's log into events of the node.

Source: `OOMKilling` of kubernetes/node-problem-detector, config/kernel-monitor.json: the kernel's line is the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Event
from . import kernel_oom
from .records import Record
from .retold import REPORT

REASON = "OOMKilling"


def with_kills(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events, and behind each that tells of a kill the kill itself, unless a log of the kernel has it as well."""
    known = {_victim(event) for event in events if event.kind == "kernel_oom"}
    told: list[Event] = []
    for event in events:
        told.append(event)
        if event.kind == "k8s_event" and event.fields.get("reason") == REASON:
            kills = [kill for kill in _kills(event) if _victim(kill) not in known]
            told += kills
            known.update(map(_victim, kills))
    return tuple(told)


def _kills(event: Event) -> Iterator[Event]:
    found = REPORT.search(event.text)
    if found is None:
        return
    record = Record(event.locator.line, event.text[found.start() :], channel="k8s", count=event.count)
    for kill in kernel_oom.assemble([record], event.locator.source).events:
        yield replace(
            kill, locator=event.locator, stamps=event.stamps, time=event.time, scope=event.scope.merged(kill.scope),
            raw=event.raw,
        )  # fmt: skip


def _victim(kill: Event) -> tuple[object, object]:
    return kill.fields.get("victim_pid"), kill.fields.get("victim_comm")
