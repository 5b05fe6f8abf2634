"""Who, of those that the bundle names, may be the engine: an end or a restart of a bystander is none of its own.

An engine log often names nobody, and a table of pods often shows no log. As long as nothing proves that a name is
another service's, what happened to it may have happened to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from ..model import Event, StampForm
from ..regexes import lazy_regex
from ..signatures.model import ENGINES
from .case import Case
from .ends import LINGER_S
from .entities import (
    CLUSTER_NAME,
    ENGINE_PROGRAM,
    GENERIC_COMM,
    NO_ENGINE,
    may_run_engine,
    serves,
    shown_as_engine,
    words_of,
)
from .model import Death, Life
from .pod_names import named_in, workload_of

_NAMED = (
    "pod_spec", "pod_status", "container_state", "container_terminated", "container_waiting", "docker_state",
    "unit_exit", "unit_restart", "unit_state",
)  # fmt: skip
STATES = ("docker_state", "container_state", "unit_state", "unit_restart", "pod_status")
"""Kinds that say whether something runs, or how often it was restarted."""
_OF_MACHINES = frozenset({"kernel", "nvidia", "oomd"})
_RUNNING = frozenset({"running", "Running", "active"})
_LIVE = ("pod_status", "container_state", "container_terminated", "container_waiting")
"""What tells how a pod is; a manifest only says how it should be."""
_TRITON = frozenset({"triton.start", "triton.server_ready", "triton.model_load_failed", "triton.shutdown"})
"""The server's words; the compiler of the same name speaks in every engine."""
_CALM = ("INFO", "[INFO", "DEBUG", "[DEBUG")
"""How the lines of a program begin that reports its work, as most loggers print them behind the time."""
LONG_PAST_S = 3 * 86400.0
"""What happened this long before all that the bundle shows at work is history."""


def may_be_engine(case: Case, entity: str) -> bool:
    """True when an end of this entity may be the engine's: it serves, is a replica of what serves, or stands alone."""
    if not entity:
        return not case.lives
    if _serves(case, entity) is True:
        return True
    if case.lives_of(entity):
        return not is_foreign(case, entity)
    if _serves(case, entity) is False or CLUSTER_NAME.match(_bare(entity)):
        return False
    owners = {life.entity for life in case.lives if not life.entity.startswith("file:")}
    if owners:
        return entity.startswith("pod:") and any(workload_of(owner) == workload_of(entity) for owner in owners)
    known = set(_candidates(case))
    if entity in known and all(_are_replicas(entity, other) for other in known):
        return True  # whichever of them wrote the log, it is the service that ended
    return len(known - {entity}) <= 1 and _is_only_container(case, entity, known)


def is_foreign(case: Case, entity: str) -> bool:
    """True for a program that uses a GPU, and never speaks as an inference engine, beside one that does.

    A trainer or an image generator in the same log fails with the same words of torch. A rank of the engine may say no
    more than that: what bears the engine's name, or is named like it, is no stranger, nor a log that is called like any
    other (`worker-1.log`), nor what stands beside one.
    """
    if speaks_as_engine(case, entity) is not False or is_named_after_engine(_bare(entity)):
        return False
    engines = speakers(case)
    return bool(engines) and not any(may_be_one(case, entity, other) for other in engines)


def may_be_one(case: Case, entity: str, other: str) -> bool:
    """True for names of one service, and where a file's name tells nothing."""
    nameless = any(name.startswith("file:") and not case.called(name) for name in (entity, other))
    return nameless or are_kin(case, entity, other)


def are_kin(case: Case, one: str, other: str) -> bool:
    """True for names that are alike, or share a word by which people call them: those of one service."""
    return are_alike(one, other) or not case.called(one).isdisjoint(case.called(other))


def is_another_unit(case: Case, death: Death) -> bool:
    """True for a killed Python program of a systemd unit, where the engine is another unit."""
    if death.life is not None or not death.entity.startswith("unit:"):
        return False
    killed = [str(event.fields["victim_comm"]) for event in death.witnesses if event.fields.get("victim_comm")]
    engines = speakers(case)
    units = bool(engines) and all(name.startswith("unit:") for name in engines)
    return units and all(map(GENERIC_COMM.fullmatch, killed)) and not any(are_alike(death.entity, e) for e in engines)


def speakers(case: Case) -> frozenset[str]:
    """The entities whose logs say what only an inference engine says."""
    return frozenset(life.entity for life in case.lives if _speaks_as_engine(life))


def _speaks_as_engine(life: Life) -> bool:
    """True for a run with a message that only an inference engine prints, or a sign of its work."""
    if life.last_activity is not None:
        return True
    return any(f.signature in _TRITON or f.signature.partition(".")[0] in ENGINES for f in life.findings)


def speaks_as_engine(case: Case, entity: str) -> bool | None:
    """Whether the logs of an entity say what only an inference engine says; none when it has no log."""
    own = case.lives_of(entity)
    return any(map(_speaks_as_engine, own)) if own else None


def went_on(life: Life) -> bool:
    """True for a program that never speaks as an engine and was calmly at work minutes after its error.

    A trainer that ran out of memory tries again. The last word of a rank that failed is no report of work.
    """
    lost, end = life.fatal, life.end
    if lost is None or lost.time.utc_s is None or end.time.utc_s is None or _speaks_as_engine(life):
        return False
    said = all(f.locator != end.locator for f in life.findings)
    calm = end.kind == "log" and said and (end.level == "INFO" or end.text.startswith(_CALM))
    return calm and end.time.utc_s - lost.time.utc_s > LINGER_S


def are_alike(one: str, other: str) -> bool:
    """True where one's name begins the other's, or they differ only in what tells ranks apart."""
    names = sorted((_calling(one), _calling(other)), key=len)
    return (bool(names[0]) and names[1].startswith(names[0])) or _are_replicas(one, other)


def _calling(entity: str) -> str:
    """The name without what tells replicas apart, and a log's without what tells its pieces: `chat.debug.log`."""
    kind, _, name = entity.partition(":")
    return name.rpartition("/")[2].partition(".")[0] if kind == "file" else workload_of(entity)


def _are_replicas(one: str, other: str) -> bool:
    """True where two names differ only in what tells pods of a Deployment, or ranks, apart."""
    return _KIN.sub("0", workload_of(one)) == _KIN.sub("0", workload_of(other))


def _is_only_container(case: Case, entity: str, known: set[str]) -> bool:
    """True for the only container, or pod, that events name, where no state names any but the pod it may be of."""
    told = {case.entities.of(event) for event in case.of_kind("k8s_event")} - {""}
    of_pod = entity.startswith("ctr:") and all(name.startswith("pod:") for name in known)
    return told <= {entity, *known} and entity in told and (of_pod or not known) and not _HELPER.search(_bare(entity))


def _candidates(case: Case) -> Iterator[str]:
    """Entities with a state that no spec and no name gives to somebody else."""
    for event in case.of_kind(*_NAMED):
        entity = case.entities.of(event)
        if entity and not CLUSTER_NAME.match(_bare(entity)) and _serves(case, entity) is not False:
            yield entity


def _serves(case: Case, entity: str) -> bool | None:
    """Whether what is known of an entity's command, image and GPUs is an inference engine's; none when nothing is.

    A piece of a manifest that shows only probes or limits tells nothing of it, nor does a command that runs Python.
    """
    described = [event for event in _described(case, entity) if shown_as_engine(event) or words_of(event).strip()]
    if any(map(shown_as_engine, described)):
        return True
    return None if not described or any(map(may_run_engine, described)) else False


def is_something_else(case: Case, entity: str) -> bool:
    """True for what is described, by command, image and limits, as no inference engine."""
    return _serves(case, entity) is False


def is_of_another_namespace(case: Case, entity: str) -> bool:
    """True for another stage of the service, or what its name says to be no engine, that nobody asked for.

    It lies in none of the namespaces whose pods somebody listed or described as they are. Exports of logs and events
    hold all tenants and stages of a cluster; who collects asks for the state of his own.
    """
    own = case.namespaces.get(case.entities.key(entity), frozenset()) if entity else frozenset()
    if not own:
        return False
    asked = {case.entities.of(event) for event in case.of_kind(*_LIVE)}
    asked = {owner for owner in asked if case.namespaces.get(owner) and not CLUSTER_NAME.match(_bare(owner))}
    elsewhere = bool(asked) and all(own.isdisjoint(case.namespaces[owner]) for owner in asked)
    return elsewhere and (bool(NO_ENGINE.search(_bare(entity))) or any(are_alike(entity, owner) for owner in asked))


def cannot_be(case: Case, entity: str, life: Life) -> bool:
    """True when what is described is no engine, or serves another model than a run does."""
    spec = case.spec(entity)
    if is_something_else(case, entity) or spec is None:
        return spec is not None
    arguments = [e.fields for e in case.of_kind("engine_args", "engine_config") if life.holds(e)]
    return any(serves(told, words_of(spec)) is False for told in arguments)


def shows_engine(case: Case, entity: str) -> bool:
    """True when a description, or where there is none the name, says that an entity is an inference engine."""
    described = [event for event in _described(case, entity) if words_of(event).strip() or shown_as_engine(event)]
    if described:
        return any(map(shown_as_engine, described))
    return is_named_after_engine(_bare(entity))


def may_tell_of(case: Case, path: str, entity: str) -> bool:
    """True for nobody's measurements that may be an engine's: the only one served, or the file bears its name."""
    served = {life.entity for life in case.lives if life.last_activity is not None or life.ready is not None}
    named = {f"{owner.partition(':')[0]}:{_calling(owner)}": owner for owner in served}
    apart = {(case.called(owner), *_NUMBERS.findall(name)) for name, owner in named.items()}
    return len(apart) <= 1 or case.entities.same(named.get(named_in(path, named), ""), entity)


def is_named_after_engine(name: str) -> bool:
    """True for `vllm` or `sglang@chat`, not for what stands beside one: `vllm-router`, `ollama-webui`."""
    return bool(ENGINE_PROGRAM.search(name)) and not _HELPER.search(name)


_NUMBERS = lazy_regex(r"\d+")
_KIN = lazy_regex(r"\d+|(?:head|worker|leader|master|prefill|decode)(?![a-z])")
"""What tells the ranks of one engine apart in their names."""
_HELPER = lazy_regex(
    r"(?:gateway|proxy|ingress|router|ui|exporter|operator|controller|scheduler|autoscaler|cache|redis|db|sidecar|init"
    r"|bench\w*|test\w*|client|load\w*|job)(?![a-z])",
    regex.IGNORECASE,
)


def is_beside_engine(case: Case, entity: str) -> bool:
    """True for a gateway, a store, or what runs in every cluster, by its name, where something else may serve.

    Its end is an incident too, but the one that is asked about only when nothing ails the engine.
    """
    if not _is_beside(entity) or _serves(case, entity):
        return False
    served = any(s.name == "requests_running" for s in case.samples)
    return served or any(not _is_beside(other) for other in _candidates(case))


def _is_beside(entity: str) -> bool:
    name = _bare(entity)
    return CLUSTER_NAME.match(name) is not None or NO_ENGINE.search(name.lower()) is not None


def _described(case: Case, entity: str) -> list[Event]:
    spec = case.spec(entity)
    if spec is not None:
        return [spec]
    states = case.of_entity(case.of_kind("docker_state", "container_terminated"), entity)
    return [event for event in states if event.fields.get("image") or event.fields.get("args")]


def is_unidentified(case: Case, entity: str) -> bool:
    """True for nobody, and for a container of which only a cgroup's path tells."""
    if not entity:
        return True
    names = case.entities.members(entity)
    return all(name.startswith(("uid:", "cid:")) for name in names) and not case.lives_of(entity)


def is_elsewhere(case: Case, event: Event) -> bool:
    """True for a fact that nobody owns, or nobody known, of a machine on which none of the engines ran."""
    if not case.lives or not is_unidentified(case, case.entities.of(event)):
        return False
    engines = [life for life in case.lives if _speaks_as_engine(life)] or case.lives
    return all(case.nodes.apart(life.entity, event) for life in engines)


def is_past(case: Case, fault: Event) -> bool:
    """True for a machine's fault days before the first sign of an engine that then worked: kernel logs hold months."""
    if fault.channel not in _OF_MACHINES or fault.time.utc_s is None or is_shaky(case, fault):
        return False
    sharing = [life for life in case.lives if _may_share(case, life.entity, fault)]
    starts = [life.start.time for life in sharing]
    worked = any(life.last_activity is not None for life in sharing)
    return worked and all(t.utc_s is not None and t.earliest_s - fault.time.latest_s > LONG_PAST_S for t in starts)


def _may_share(case: Case, entity: str, fault: Event) -> bool:
    """True when an engine ran on the machine of a fault, or it is the engine's; where one machine is named, so must be
    the other."""
    if case.entities.same(case.entities.of(fault), entity):
        return True
    named = bool(case.nodes.homes.get(entity))
    return not named or (bool(case.nodes.of(fault)) and not case.nodes.apart(entity, fault))


def is_shaky(case: Case, event: Event) -> bool:
    """True for a stamp without a year that nothing ties to UTC."""
    return any(
        stamp.form is StampForm.YEARLESS and case.shaky(event.locator.source, stamp.layer) for stamp in event.stamps
    )


def is_stale(case: Case, death: Death) -> bool:
    """An exit that only a status remembers, days before everything else: a service that works since is no incident."""
    if death.life is not None or not death.time_s:
        return False
    if death.witnesses and all(is_shaky(case, event) for event in death.witnesses):
        return False  # its year is a guess
    working = [life.last_activity for life in case.lives if life.last_activity is not None]
    long_after_s = death.time_s + LONG_PAST_S
    return any(event.time.utc_s is not None and event.time.utc_s > long_after_s for event in working)


def tells_of_one(case: Case, event: Event) -> bool:
    """True for what Kubernetes tells of a pod that is no replica of an engine which is seen at work."""
    owner = case.entities.of(event)
    known = any(life.last_activity is not None for life in case.lives)
    return event.channel == "k8s" and known and bool(owner) and not may_be_engine(case, owner)


def _bare(entity: str) -> str:
    return entity.partition(":")[2]


def restarted(case: Case) -> Event | None:
    """Whose restart counter says that the engine, or what may be it, ended, although no source shows the end."""
    for event in case.of_kind(*STATES):
        count = restarts(event)
        name = case.entities.of(event)
        if not isinstance(count, int) or count <= 0 or _of_sidecar(case, name, event.scope.container):
            continue
        seen = any(case.entities.same(death.entity, name) for death in case.deaths)
        if not seen and may_be_engine(case, name):
            return event
    return None


def restarts(event: Event) -> Any:
    """What a status says of how often its owner was started again; none where it says nothing."""
    return event.fields.get("restart_count", event.fields.get("n_restarts"))


def _of_sidecar(case: Case, entity: str, container: str) -> bool:
    spec = case.spec(entity)
    main = str(spec.fields.get("container") or spec.scope.container) if spec is not None else ""
    return bool(main) and container not in ("", main)


def seen_running(case: Case) -> bool:
    """True when a status says that what may be the engine runs, and was never restarted."""
    return any(may_be_engine(case, name) for name in _unbroken(case))


def runs_on(case: Case, entity: str) -> bool:
    """True when a status says that an entity runs, and was never restarted."""
    return any(case.entities.same(name, entity) for name in _unbroken(case))


def _unbroken(case: Case) -> Iterator[str]:
    """Entities of which a status says that they run, and were never restarted."""
    for event in case.of_kind(*STATES):
        word = str(event.fields.get("status") or event.fields.get("state") or event.fields.get("phase") or "")
        name = case.entities.of(event)
        if word in _RUNNING and not restarts(event) and not _of_sidecar(case, name, event.scope.container):
            yield name
