"""What the rules of the diagnosis look at: everything known, indexed, never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import Event, Finding, Role, Samples, Severity, Source
from ..signatures import Library
from . import templates
from .entities import Entities
from .model import Asked, Death, Life, Trend
from .nodes import Nodes
from .pod_names import telling_words, workload_of


@dataclass(frozen=True, slots=True)
class Case:
    """All facts of a bundle. Rules read it; none of them writes."""

    sources: Sequence[Source]
    events: Sequence[Event]
    """In timeline order."""
    findings: Sequence[Finding]
    """Signature hits, in timeline order."""
    samples: Sequence[Samples]
    lives: Sequence[Life]
    deaths: Sequence[Death]
    entities: Entities
    trends: Sequence[Trend]
    library: Library
    kinds: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    """Events by kind."""
    hits: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    """Findings by signature id."""
    specs: Mapping[str, Event] = field(default_factory=dict)
    """The main container's spec by entity: the one with GPUs, else the first."""
    containers: Mapping[tuple[str, str], Event] = field(default_factory=dict)
    """Specs by (entity, container)."""
    asides: Sequence[Death] = ()
    """Ends of containers that serve nothing beside one that does: a log shipper's, a proxy's, an init container's."""
    in_runs: frozenset[tuple[str, int]] = frozenset()
    """(source, line) of the findings that lie inside some run of an engine."""
    jobs: frozenset[str] = frozenset()
    """Numbers of the scheduler's jobs that the bundle tells of."""
    nodes: Nodes = field(default_factory=Nodes)
    namespaces: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Namespaces by entity, as far as anything names them."""
    said: Sequence[Event] = ()
    """What people say, not programs."""
    asked: Asked = field(default_factory=Asked)
    """Whom they ask about (`asked.of`)."""
    _templates: dict[str, Event | None] = field(default_factory=dict, repr=False)
    """Specs of workloads' templates, by entity, as far as they were asked for."""
    _runs: dict[str, list[Life]] = field(default_factory=dict, repr=False)
    """Lives by their owner, once they were asked for."""
    _owners: set[str] = field(default_factory=set, repr=False)
    """Who owns a life or a death, once that was asked for."""
    _called: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)
    """The words by which people call an entity, as far as they were asked for."""

    def of_kind(self, *kinds: str) -> Iterator[Event]:
        for kind in kinds:
            yield from self.kinds.get(kind, ())

    def named(self, *signatures: str) -> Iterator[Finding]:
        """Unquoted findings of some signatures; `family.*` names a family."""
        for name in signatures:
            if name.endswith(".*"):
                for key, found in self.hits.items():
                    if key.startswith(name[:-1]):
                        yield from (f for f in found if not f.quoted)
            else:
                yield from (f for f in self.hits.get(name, ()) if not f.quoted)

    def of_entity(self, events: Iterable[Event], entity: str) -> Iterator[Event]:
        return (event for event in events if self.entities.same(self.entities.of(event), entity))

    def lives_of(self, entity: str) -> Sequence[Life]:
        if not self._runs:
            for life in self.lives:
                self._runs.setdefault(self.entities.key(life.entity), []).append(life)
        return self._runs.get(self.entities.key(entity), ()) if entity else ()

    def called(self, entity: str) -> frozenset[str]:
        """The telling words of an entity's names; of its log's, where it has none but an id."""
        if entity not in self._called:
            known = [n for n in self.entities.members(entity) if not n.startswith(("cid:", "uid:", "file:"))]
            names = [workload_of(name) if name.startswith("pod:") else name.partition(":")[2] for name in known]
            names = names or [source for life in self.lives_of(entity) for source in life.sources]
            self._called[entity] = frozenset(word for name in names for word in telling_words(name))
        return self._called[entity]

    def shaky(self, source: str, layer: str) -> bool:
        """True when nothing ties a source's printed times to UTC, so that they may be hours off."""
        clocks = [c for s in self.sources if s.path == source for c in s.clocks if c.layer == layer]
        return any(c.verdict in ("assumed", "refused") for c in clocks)

    def spec(self, entity: str, container: str = "") -> Event | None:
        """The spec of an entity's main container, or of the named one, where that is described."""
        if not entity:
            return None
        main = self.specs.get(self.entities.key(entity)) or self._template(entity)
        if not container or main is None or _container_of(main) in ("", container):
            return main
        return self.containers.get((self.entities.key(entity), container))

    def _template(self, entity: str) -> Event | None:
        """What an entity was made of, where only the manifest of its workload is there."""
        key = self.entities.key(entity)
        if key not in self._templates:
            known = [event for event in self.of_kind("pod_spec") if event.fields.get("workload_kind")]
            found = templates.spec_of(known, self.entities.members(entity)) if known else None
            if key.startswith("unit:"):
                found = self.specs.get(f"{key.partition('@')[0]}@")  # `vllm@.service` describes all its instances
            self._templates[key] = found or (self.specs.get("") if self._is_alone(key) else None)
        return self._templates[key]

    def _is_alone(self, key: str) -> bool:
        """True when all that ran and all that died is one thing: a description that names nobody is then its own."""
        if not self._owners:
            names = (*(life.entity for life in self.lives), *(death.entity for death in self.deaths))
            self._owners.update(self.entities.key(name) for name in names if name)
        return self._owners == {key}


def _container_of(spec: Event) -> str:
    return str(spec.fields.get("container") or spec.scope.container)


@dataclass(frozen=True, slots=True)
class Derived:
    """A finding that a rule makes; its text lives in `templates/texts.*.toml`, section `derived`."""

    role: Role
    severity: Severity


DERIVED: dict[str, Derived] = {
    f"derived.{name}": Derived(role, severity)
    for role, severity, names in (
        (
            Role.CAUSE,
            Severity.CRITICAL,
            (
                "oom_loading_weights",
                "oom_profiling",
                "oom_sampler_warmup",
                "oom_allocating_kv",
                "oom_capturing_graphs",
                "oom_serving",
                "oom_big_prefill",
                "oom_first_request",
                "oom_unknown_site",
                "oom_waking_up",
                "kill_container_limit",
                "kill_pod_limit",
                "kill_node",
                "kill_node_allocatable",
                "kill_unit_limit",
                "kill_job_limit",
                "kill_unknown_limit",
                "killed_while_starting",
                "probe_kill_loading",
                "probe_kill_serving",
                "probe_kill_unseen",
                "probe_budget_met",
                "gpu_leak_suspected",
                "gpu_leak",
                "gpu_leak_asleep",
                "gpu_rise",
                "link_lost",
                "host_leak",
                "config_exception",
                "uncaught_exception",
                "request_exception",
                "first_hang",
                "stalled",
                "still_hanging",
                "killed_after_grace",
                "kv_budget_spent",
            ),
        ),
        (
            Role.SYMPTOM,
            Severity.ERROR,
            (
                "gpu_neighbour",
                "foreign_process",
                "taken_meanwhile",
                "gpu_fragmented",
                "gpu_climb",
                "gpu_reserve_climb",
                "host_climb",
                "counted_climb",
                "held_climb",
                "oomkilled_status",
                "oom_counter",
                "evicted_over_request",
                "oomkilled_child",
                "oomkilled_engine",
                "gpu_smaller_than_before",
                "gpu_smaller_than_named",
                "gpu_is_slice",
                "share_above_free",
                "page_cache_shared",
                "gpu_is_share_of_ram",
                "probe_budget_short",
                "kv_saturated",
                "kv_full_once",
                "kv_preempting",
                "queue_lasting",
                "requests_failed",
                "unwell",
                "unexplained_exit",
                "silent_death",
                "node_kill_nearby",
                "commit_exhausted",
                "hugepages_idle",
                "kill_in_output",
                "told_end",
                "restarts_counted",
                "machine_restarted",
                "foreign_code",
            ),
        ),
        (
            Role.CONTEXT,
            Severity.NOTICE,
            (
                "kv_full",
                "kv_low",
                "traffic_flat",
                "traffic_grew",
                "free_but_refused",
                "request_absurd",
                "queue_grew",
                "not_ready_at_death",
                "ready_at_death",
                "graceful_stop",
                "usage_exit",
                "service_healthy",
                "past_end",
                "job_succeeded",
                "gpu_plateau",
                "memory_below_limit",
                "no_neighbour",
                "requests_refused",
                "stop_requested",
                "engine_error_before_probe",
                "host_cache",
                "shm_small",
                "settings_changed",
                "stood_still",
                "disk_too_small",
                "driver_upgraded",
                "cards_cut_anew",
            ),
        ),
    )
    for name in names
}

Rule = Callable[[Case, Death], Iterator[Finding]]


def conclude(
    name: str, event: Event, fields: Mapping[str, Any] | None = None, rests_on: Sequence[Finding] = ()
) -> Finding:
    """A derived finding standing at `event`. Its id is given later, in timeline order."""
    identity = f"derived.{name}"
    rule = DERIVED[identity]
    return Finding("", identity, name, rule.role, rule.severity, event, dict(fields or {}), rests_on=tuple(rests_on))
