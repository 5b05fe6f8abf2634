"""Whose job it was: a scheduler's accounting lists the jobs of many people, and those of others explain nothing.

The number of a job stands in the scheduler's lines, and as a rule in the name of the file with the job's output
(`slurm-40120.out`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import regex

from ..model import Event, Finding
from ..regexes import lazy_regex
from .model import Death, Life

_NUMBER = lazy_regex(r"\d+(?:_\d+)?")
_OUTPUT = lazy_regex(r"(?:slurm|job)[-_.]?(?P<job>\d+(?:_\d+)?)(?!\d)", regex.IGNORECASE)
"""How schedulers, and people, name the file with the output of a job."""


def job_of(told: Finding | Event) -> str:
    """The job that a scheduler's line speaks of, without its step; empty when it names none."""
    fields = told.fields if isinstance(told, Event) else {**told.event.fields, **told.fields}
    found = _NUMBER.match(str(fields.get("job") or ""))
    return found[0] if found else ""


_AMOUNTS = ("requested_memory_kib", "max_rss_kib", "time_limit_s", "elapsed_s")


def facts_of(deaths: Iterable[Death], told: Iterable[Event], named: str) -> dict[str, int]:
    """What the scheduler granted the job that ended, and how much of it was used.

    `told` may be of any job; `named` is the job that the evidence names, where no witness of the end does.
    """
    found: dict[str, int] = {}
    for event in chain.from_iterable(death.witnesses for death in deaths):
        amounts = {name: value for name in _AMOUNTS if isinstance(value := event.fields.get(name), int)}
        job = job_of(event)
        found = {**amounts, **({"job_id": int(job)} if job.isdecimal() else {}), **found}
    number = _NUMBER.match(named)
    if number is not None and number[0].isdecimal():
        found.setdefault("job_id", int(number[0]))
    for event in told if "job_id" in found else ():
        if job_of(event) == str(found["job_id"]):
            found = {**{name: value for name in _AMOUNTS if isinstance(value := event.fields.get(name), int)}, **found}
    return found


COMPLETED = "slurm.accounting_completed"
HEADER = "slurm.job_header"
"""The line with which a batch script begins its output. Other programs have jobs too, and say when one starts."""


def submitted(events: Iterable[Event], findings: Iterable[Finding]) -> frozenset[str]:
    """The files in which the output of jobs stands: one of their headers bears a number that the scheduler tells of."""
    told = list(findings)
    numbers = known(events, told)
    return frozenset(f.locator.source for f in told if f.signature == HEADER and job_of(f) in numbers)


def told_in(findings: Iterable[Finding]) -> str:
    """The first job that the lines of a run name."""
    return next(filter(None, map(job_of, findings)), "")


def run_of(job: str, lives: Iterable[Life]) -> Life | None:
    """The last run that says that it was this job: a requeued one runs more than once."""
    runs = [life for life in lives if job and life.job == job]
    return runs[-1] if runs else None


def differ(one: Life | None, other: Life | None) -> bool:
    """True for runs of two submissions: what somebody submits anew, often changed, is no restart of what failed."""
    return one is not None and other is not None and bool(one.job) and bool(other.job) and one.job != other.job


def known(events: Iterable[Event], findings: Iterable[Finding]) -> frozenset[str]:
    """All jobs that a scheduler tells of; the headers of scripts are none of its words."""
    told: Iterable[Finding | Event] = chain(events, (f for f in findings if f.signature != HEADER))
    return frozenset(filter(None, map(job_of, told)))


def owner(job: str, known: Iterable[str], lives: Sequence[Life]) -> str:
    """The engine that ran as a job: its output bears the number, or it is the only engine and this the only job."""
    bearers = {life.entity for life in lives if life.job == job or bears(life.sources, job)}
    if not job or len(bearers) > 1:
        return ""
    engines = {life.entity for life in lives}
    sole = len(engines) == 1 and set(known) == {job} and not any(_is_of_another(life, job) for life in lives)
    return next(iter(bearers or engines)) if bearers or sole else ""


def bears(sources: Iterable[str], job: str) -> bool:
    """True when one of the files has the number of the job in its name."""
    number = regex.compile(rf"(?<!\d){job}(?!\d)")
    return bool(job) and any(number.search(source.rpartition("/")[2]) for source in sources)


def completed(ends: Iterable[Finding], life: Life) -> bool:
    """True for the run of a job of which the scheduler's accounting says that it ended well."""
    return any(job == life.job or bears(life.sources, job) for job in map(job_of, ends) if job)


def is_of_another(job: str, known: Iterable[str], life: Life) -> bool:
    """True when a run is a systemd unit, or names another job than this one, in its lines or in its file's name."""
    if not job or bears(life.sources, job):
        return False
    if life.entity.startswith("unit:"):
        return True  # what systemd starts, no scheduler submitted
    if life.job:
        return life.job != job
    return _is_of_another(life, job) or any(bears(life.sources, other) for other in known if other != job)


def is_of_others(told: Finding | Event, known: Iterable[str], lives: Sequence[Life]) -> bool:
    """True for what a scheduler says of a job that none of the runs was."""
    return bool(lives) and all(is_of_another(job_of(told), known, life) for life in lives)


def _is_of_another(life: Life, job: str) -> bool:
    named = [found["job"] for source in life.sources if (found := _OUTPUT.search(source.rpartition("/")[2]))]
    return bool(named) and job not in named
