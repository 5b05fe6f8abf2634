"""Memory of the host before a death: who climbed, what was left, and what a program counted of itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

import regex

from ...model import Finding, Samples, Scope
from ...regexes import lazy_regex
from .. import rank, trends
from ..case import Case, conclude
from ..entities import ENGINE_COMM
from ..model import Death
from . import foreign
from .series import belongs, climb_fields, held, last_climb

RECENT_S = 7200.0
_HOST_SERIES = ("container_memory_mib", "process_rss_mib", "host_memory_used_kib")


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """A climb of hours until the death."""
    moment = death.time_s or 0.0
    for column in case.samples if moment else ():
        if column.name not in _HOST_SERIES or not belongs(case, column, death.entity) or _of_another(column, death):
            continue
        scale = max(column.values, default=0.0) or 1.0
        segment = last_climb(case, column, moment, scale, RECENT_S)
        if not segment:
            continue
        if trends.is_leak_like(trends.thin(segment), scale) and segment[-1][0] - segment[0][0] >= 3600.0:
            unit = column.name.rsplit("_", 1)[1]
            killed = any(e.kind == "kernel_oom" or e.fields.get("reason") == "OOMKilled" for e in death.witnesses)
            cache = _host_cache(case, death)
            fields: dict[str, Any] = dict(climb_fields(segment, unit))
            if not killed and _killed_when_all_was_gone(case, death, moment):
                killed, fields["basis"] = True, rank.DIFFERENCE
            name = "host_leak" if killed and cache is None else "host_climb"
            yield conclude(name, trends.event_at(column, segment[0]), fields)
            yield from held(case, death, segment)
            if cache is not None:
                yield cache
            elif killed:
                yield from foreign.loaded(case, death)


NONE_LEFT = 0.05
"""Of the most memory that was ever available, so much is as good as none."""


def _killed_when_all_was_gone(case: Case, death: Death, moment: float) -> bool:
    """True for an end by SIGKILL where the host's available memory had fallen to next to nothing, or to less than it
    lost from one reading to the next: the kernel's own word is not in the bundle.
    """
    findings = death.life.findings if death.life is not None else ()
    if death.exit_code != 137 and not any(f.signature == "python.killed" for f in findings):
        return False
    for column in case.samples:
        if column.name == "host_memory_available_kib" and belongs(case, column, death.entity):
            points = trends.segment_before(column, moment, max(column.values, default=0.0))
            if len(points) >= trends.MIN_STEADY_POINTS and moment - points[-1][0] <= RECENT_S:
                loss = median(a[1] - b[1] for a, b in pairwise(points))
                return points[-1][1] <= max(loss, NONE_LEFT * max(column.values))
    return False


def counted_climb(case: Case, death: Death, least_mib: float) -> Finding | None:
    """A count in the log of one of the dead pod's containers that climbed by so much until the end."""
    owners = {source.path: source.scope for source in case.sources}
    for column in case.samples if death.time_s else ():
        scope = column.scope.merged(owners.get(column.source, Scope()))
        if column.name != "counted_mib" or not case.entities.same(
            case.entities.name_of(scope, column.source), death.entity
        ):
            continue
        scale = max(column.values, default=0.0) or 1.0
        segment = trends.segment_before(column, death.time_s or 0.0, scale)
        if not trends.is_leak_like(trends.thin(segment), scale):
            continue
        climb = climb_fields(segment, "mib")
        if climb["climb_mib"] >= least_mib:
            fields = {"counter": column.scope.process, **climb}
            return conclude("counted_climb", trends.event_at(column, segment[0]), fields)
    return None


_ENGINE_ROLE = lazy_regex(r"(?:api|engine|worker|main)_?(?:server|core|proc(?:ess)?)?_?\d*", regex.IGNORECASE)
"""What a loop that somebody wrote calls the processes of an engine: `apiserver_rss_kib`."""


def _of_another(column: Samples, death: Death) -> bool:
    """True for the memory of a process that is neither the killed one nor an engine's."""
    if column.name != "process_rss_mib" or not column.scope.process:
        return False
    killed = {e.fields.get("victim_pid") for e in death.witnesses if e.kind == "kernel_oom"}
    if death.life is not None:  # by the shell's word
        killed |= {f.fields.get("pid", 0) for f in death.life.findings if f.signature == "python.killed"}
    named = column.scope.process
    if named == death.entity.partition(":")[2]:
        return False
    return column.scope.pid not in killed and not (ENGINE_COMM.search(named) or _ENGINE_ROLE.fullmatch(named))


_CACHE_SETTINGS = lazy_regex(
    r"(?i)(LMCACHE_\w*CPU\w*|swap[_-]space|cpu[_-]offload[_-]gb|kv[_-]offloading[_-]size|num_cpu_blocks|cpu_bytes_to_use|OffloadingConnector|LMCacheConnector)\W{1,6}(\d[\d.]*)?"
)


def _host_cache(case: Case, death: Death) -> Finding | None:
    """A cache in host memory that somebody configured: it grows until it is full, and is no leak."""
    spec = case.spec(death.entity)
    lives = case.lives_of(death.entity)
    events = [spec] if spec is not None else []
    events += [
        e
        for e in case.of_kind("engine_args", "engine_config")
        if any(e.locator.source in life.sources for life in lives)
    ]
    for event in events:
        words = " ".join(f"{key}={value}" for key, value in sorted(event.fields.items()))
        for found in _CACHE_SETTINGS.finditer(words):
            if found[2] is None or float(found[2].rstrip(".") or 0) > 4.0:  # 4 GiB of swap space is the old default
                return conclude("host_cache", event, {"setting": found[1], "size": found[2]})
    return None
