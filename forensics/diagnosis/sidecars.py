"""Containers of a pod that serve nothing beside one that does: their ends are not the engine's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..model import Event
from .entities import ENGINE_COMM, Entities, hits_engine, shown_as_engine, words_of


@dataclass(frozen=True, slots=True)
class Containers:
    """The containers of a pod; empty for one that is not described, or has a single one."""

    serving: frozenset[str] = frozenset()
    """Names of those that serve a model."""
    limits: Mapping[str, int | None] = field(default_factory=dict)
    """Memory limit in bytes, by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names by container id, of all runs that somebody tells of."""

    def of(self, event: Event) -> str:
        """The container that a witness speaks of: by its name, by its id, or as the only one that has such a limit."""
        scope = event.scope
        return scope.container or self.names.get(scope.container_id, "") or _limited(event, self.limits)

    def is_of_sidecar(self, event: Event) -> bool:
        """True when a witness speaks of a container that serves nothing, beside one that does."""
        if not self.serving:
            return False
        if name := self.of(event):
            return name in self.limits and name not in self.serving
        owners = _having(event, self.limits)
        return bool(owners) and self.serving.isdisjoint(owners) and not hits_engine(event)


def containers(events: Sequence[Event], entities: Entities) -> dict[str, Containers]:
    """Entity → its containers, from pod specs with several.

    Beside a container that is shown to be an engine's, one that merely runs Python is none.
    """
    found: dict[str, dict[str, Event]] = {}
    for event in events:
        name = str(event.fields.get("container") or event.scope.container)
        if event.kind == "pod_spec" and name and not event.fields.get("init"):
            found.setdefault(entities.of(event), {})[name] = event
    several = {entity: specs for entity, specs in found.items() if len(specs) > 1}
    told: dict[str, list[Event]] = {entity: [] for entity in several}
    for event in events if several else ():
        if event.scope.container_id and (own := told.get(entities.of(event))) is not None:
            own.append(event)
    return {entity: _of_specs(specs, told[entity]) for entity, specs in several.items()}


def _of_specs(specs: Mapping[str, Event], told: Iterable[Event]) -> Containers:
    limits = {name: spec.fields.get("memory_limit_bytes") for name, spec in specs.items()}
    names = {e.scope.container_id: name for e in told if (name := e.scope.container or _limited(e, limits))}
    return Containers(_that_serve(specs), limits, names)


def _that_serve(specs: Mapping[str, Event]) -> frozenset[str]:
    """Names of the containers that run an engine; where none is shown to, of those that run Python."""
    shown = frozenset(name for name, spec in specs.items() if shown_as_engine(spec))
    return shown or frozenset(name for name, spec in specs.items() if ENGINE_COMM.search(words_of(spec)))


def _having(kill: Event, limits: Mapping[str, int | None]) -> list[str]:
    """The containers whose limit a kill may have enforced."""
    limit = kill.fields.get("memcg_limit_kib")
    if kill.kind != "kernel_oom" or not isinstance(limit, int):
        return []
    return [name for name, size in limits.items() if size == limit * 1024]


def _limited(kill: Event, limits: Mapping[str, int | None]) -> str:
    """The one container whose limit a kill enforced; an engine is killed in its own."""
    names = _having(kill, limits)
    return names[0] if len(names) == 1 and not hits_engine(kill) else ""
