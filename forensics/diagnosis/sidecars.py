"""Containers of a pod that serve nothing beside one that does: their ends are not the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model import Event
from .entities import ENGINE_COMM, Entities, hits_engine, shown_as_engine, words_of


def limited(kill: Event, containers: Mapping[str, tuple[bool, int | None]]) -> str:
    """The one container whose limit a kill enforced."""
    names = [name for name, (_, size) in containers.items() if size == int(kill.fields["memcg_limit_kib"]) * 1024]
    return names[0] if len(names) == 1 else ""


def containers(events: Sequence[Event], entities: Entities) -> dict[str, dict[str, tuple[bool, int | None]]]:
    """Entity → container → (serves a model, memory limit in bytes), from pod specs with several containers.

    Beside a container that is shown to be an engine's, one that merely runs Python is none.
    """
    found: dict[str, dict[str, Event]] = {}
    for event in events:
        name = str(event.fields.get("container") or event.scope.container)
        if event.kind == "pod_spec" and name and not event.fields.get("init"):
            found.setdefault(entities.of(event), {})[name] = event
    several = {entity: specs for entity, specs in found.items() if len(specs) > 1}
    return {
        entity: {name: (name in serving, spec.fields.get("memory_limit_bytes")) for name, spec in specs.items()}
        for entity, specs in several.items()
        for serving in [_that_serve(specs)]
    }


def _that_serve(specs: Mapping[str, Event]) -> set[str]:
    """Names of the containers that run an engine; where none is shown to, of those that run Python."""
    shown = {name for name, spec in specs.items() if shown_as_engine(spec)}
    return shown or {name for name, spec in specs.items() if ENGINE_COMM.search(words_of(spec))}


def is_of_sidecar(event: Event, containers: Mapping[str, tuple[bool, int | None]]) -> bool:
    """True when a witness speaks of a container that serves nothing, beside one that does."""
    if not any(serves for serves, _ in containers.values()):
        return False
    if event.scope.container in containers:
        return not containers[event.scope.container][0]
    limit = event.fields.get("memcg_limit_kib")
    if event.kind != "kernel_oom" or not isinstance(limit, int):
        return False
    owners = [serves for serves, size in containers.values() if size == limit * 1024]
    return bool(owners) and not any(owners) and not hits_engine(event)
