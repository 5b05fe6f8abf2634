"""How often things happened in an incident: ends of each kind, restarts, failures with other numbers, preemptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Event, Finding
from ..regexes import lazy_regex
from . import bystanders
from .case import Case
from .entities import LOG_CHANNELS
from .model import Incident
from .rules.oom_site import first_failure, refused_start
from .rules.probes import probe_kill_of

_COUNTED = ("container_state", "container_terminated", "container_waiting", "docker_state", "pod_status")
MAX_REPEATS = 5
_CODE = lazy_regex(r": (-?\d{1,3})\b")
"""In what vLLM prints of the processes that failed: `{'EngineCore_DP0': -7}`."""


def of_ends(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """How the process ended, how often, and how often it was restarted."""
    ends = case.of_entity(case.of_kind("container_terminated"), incident.entity)
    codes = [death.exit_code for death in incident.deaths if death.exit_code is not None] or [
        code for event in ends if isinstance(code := event.fields.get("exit_code"), int)
    ]  # a sidecar's end is no death of the engine, but it has a code
    if codes:
        facts["exit_code"] = codes[-1]
    facts["deaths_seen"] = len(incident.deaths)
    _count_ends(case, incident, facts)
    counted = [
        event for event in _told_of(case, incident, *_COUNTED) if isinstance(event.fields.get("restart_count"), int)
    ]
    own = [event for event in counted if incident.container and event.scope.container == incident.container]
    if counted:
        facts["restart_count"] = max(int(event.fields["restart_count"]) for event in own or counted)


def of_processes(incident: Incident, facts: dict[str, Any]) -> None:
    """The code with which the engine's processes ended, as their parent tells: that of a container is the parent's.

    1 is any exception, which the log shows.
    """
    told = (f.fields.get("failed_procs") for f in (*incident.consequences, *incident.evidence))
    codes = {int(code) for procs in told for code in _CODE.findall(str(procs or ""))}
    if len(codes) == 1 and not codes & {0, 1}:
        facts["engine_process_exit_code"] = codes.pop()


def of_rank(root: Finding | None, facts: dict[str, Any]) -> None:
    """Which of several ranks failed first. `[rank0]` alone is printed where there is only one, too."""
    scope = root.event.scope if root is not None and root.event.channel in LOG_CHANNELS else None
    if scope is None or scope.rank is None or not (scope.rank or scope.process):
        return
    facts["failing_rank"] = scope.rank
    named = scope.process.endswith(str(scope.rank))
    facts["failing_process"] = scope.process if named else f"{scope.process} rank {scope.rank}".strip()


def of_lost_messages(incident: Incident, facts: dict[str, Any]) -> None:
    """How many lines the journal or the kernel dropped around the end: what is not there proves nothing."""
    lost = sum(f.fields.get("lost_count", 0) for f in incident.evidence if f.signature == "kernel.printk_dropped")
    if lost:
        facts["lost_messages"] = lost


def _count_ends(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """How often each kind of end was seen: allocation failures, kernel kills, probe kills, refused starts."""
    lives = case.lives_of(incident.entity)
    counts = {
        "cuda_oom_count": sum(first_failure(life) is not None for life in lives),
        "refused_starts_count": sum(refused_start(life) is not None for life in lives),
        "kill_count": len(
            {
                (event.fields.get("victim_pid"), event.fields.get("victim_comm"))
                for death in incident.deaths
                for event in death.witnesses
                if event.kind == "kernel_oom"
            }
        ),
        "probe_kill_count": len({kill.locator for death in incident.deaths if (kill := probe_kill_of(case, death))}),
    }
    facts.update({name: count for name, count in counts.items() if count})


def _told_of(case: Case, incident: Incident, *kinds: str) -> Iterator[Event]:
    """What is told of the incident's entity; where nobody is named at all, what names nobody."""
    if incident.entity:
        return case.of_entity(case.of_kind(*kinds), incident.entity)
    return (event for event in case.of_kind(*kinds) if not case.entities.of(event))


def of_repeats(incident: Incident, facts: dict[str, Any]) -> None:
    """What happened several times in one incident with different numbers: allocation failures, orderly stops."""
    failures = [first_failure(death.life) for death in incident.deaths]
    stops = [f for f in incident.hypotheses[0].decisive if f.signature == "derived.graceful_stop"]
    for findings, names in (
        (failures, ("tried_to_allocate_gib", "gpu_free_gib", "allocated_gib", "reserved_unallocated_gib")),
        (stops, ("drain_s",)),
    ):
        rows = [f.fields for f in findings if f is not None and names[0] in f.fields][:MAX_REPEATS]
        differ = any(row.get(name) != rows[0].get(name) for row in rows for name in names)
        for number, row in enumerate(rows if differ else (), 1):
            for name in names:
                stem, _, unit = name.rpartition("_")
                if name in row:
                    facts[f"{stem}_{number}_{unit}"] = row[name]


def of_preemptions(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """The counter as the last scrape shows it, and how much it grew since the first one (a restart begins at zero)."""
    totals = []
    for event in case.of_kind("metrics"):
        owner = case.entities.of(event)
        mine = (
            case.entities.same(owner, incident.entity)
            if owner
            else bystanders.may_tell_of(case, event.locator.source, incident.entity)
        )
        if mine and event.fields.get("preemptions_total") is not None:
            totals.append(event.fields["preemptions_total"])
    logged = [f.fields["preemptions"] for f in case.named("vllm.preempted_v0") if f.fields.get("preemptions")]
    facts.update(("preemptions_total", total) for total in totals[-1:] or sorted(logged)[-1:])
    if len(totals) > 1 and totals == sorted(totals):
        facts |= {"preemptions_at_first": totals[0], "preemptions_grew_by": totals[-1] - totals[0]}


def of_pool(case: Case, facts: dict[str, Any]) -> None:
    """How many tokens the KV cache holds, where only the scrape of an engine's metrics tells its blocks."""
    told = {
        (event.fields.get("num_gpu_blocks"), event.fields.get("block_size"))
        for event in case.of_kind("engine_args")
        if event.channel == "metrics"
    }
    for blocks, size in told if len(told) == 1 and "kv_tokens" not in facts else ():
        if isinstance(blocks, int) and isinstance(size, int) and blocks > 0 and size > 0:
            facts |= {"gpu_blocks": blocks, "kv_tokens": blocks * size}
