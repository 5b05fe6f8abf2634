"""Kills and faults that name nobody, or a container that nothing else tells of: which runs they may have ended.

`Killed process 4711 (python3)` says neither whose process it was nor, in a ring buffer, when. Most of what runs on a
node is called so. Such a line is an engine's end only where one is missing it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Event, Finding
from . import bystanders, jobs
from .case import Case
from .ends import is_dated, may_have_ended
from .entities import GENERIC_COMM
from .model import Death, Life
from .rank import is_anybodys

NEAR_S = 3600.0
"""A kill further from an end, by clocks that are good to this, has nothing to do with it."""


def is_strangers(case: Case, death: Death, others: Sequence[Death]) -> bool:
    """True for the kill of an unidentified process that fits no end which the bundle shows: somebody else's.

    `others` are all ends that may count. Only where a run, or another end, is known: else it is all that there is.
    """
    kills = [event for event in death.witnesses if event.kind == "kernel_oom"]
    if not kills or not all(may_be_anybodys(case, kill) for kill in kills):
        return False
    if not all(event in kills or jobs.is_of_others(event, case.jobs, case.lives) for event in death.witnesses):
        return False
    if all(fits_no_run(case, kill) or _is_of_known_stranger(case, kill) for kill in kills):
        return True
    ends = [other for other in others if other.time_s and all(is_dated(event.time) for event in other.witnesses)]
    ends = [end for end in ends if not bystanders.is_unidentified(case, end.entity)]
    all_told = all(any(case.entities.same(o.entity, life.entity) for o in ends) for life in case.lives)
    return bool(ends) and all_told and not any(_is_near(end, kill) for end in ends for kill in kills)


def _is_of_known_stranger(case: Case, kill: Event) -> bool:
    """True where a status says that what is no engine was killed for its memory, on the node of the kill."""
    killed = [death.entity for death in case.deaths if death.reason == "OOMKilled" and death.entity]
    return bool(case.lives) and bool(case.nodes.of(kill)) and any(
        case.nodes.homes.get(name) and not case.nodes.apart(name, kill) and not bystanders.may_be_engine(case, name)
        for name in killed
    )


def fits_no_run(case: Case, kill: Event) -> bool:
    """True for the kill of an unidentified process that ended none of the runs whose logs are here."""
    ours = any(may_have_ended(life, kill) and not _is_well(case, life) for life in case.lives)
    return bool(case.lives) and not ours and may_be_anybodys(case, kill)


def _is_well(case: Case, life: Life) -> bool:
    """True for a run that still goes on, or a job that ended well, as a status says."""
    return bystanders.runs_on(case, life.entity) or jobs.completed(case.named(jobs.COMPLETED), life)


def is_nobodys_fault(case: Case, fault: Finding) -> bool:
    """True for what is anybody's, at an open time, beside engines that neither failed nor were restarted."""
    well = [life for life in case.lives if life.last_activity is not None and life.fatal is None and life.crash is None]
    return is_anybodys(fault) and bool(well) and len(well) == len(case.lives) and not bystanders.restarted(case)


def may_be_anybodys(case: Case, kill: Event) -> bool:
    """True for a victim whose name says no more than that Python ran there, in a container that nothing else names."""
    generic = GENERIC_COMM.fullmatch(str(kill.fields.get("victim_comm", "")))
    return generic is not None and bystanders.is_unidentified(case, case.entities.of(kill))


def _is_near(death: Death, kill: Event) -> bool:
    if not is_dated(kill.time) or death.time_s is None or kill.time.utc_s is None:
        return True
    return abs(kill.time.utc_s - death.time_s) <= NEAR_S
