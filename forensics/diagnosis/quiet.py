"""Bundles in which nothing died, and yet not all was well: faults without a victim, saturation, refused requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..model import Event, Finding, Locator, Role
from ..regexes import lazy_regex
from . import asked, bystanders, jobs, rank, rules, saturated, unowned
from . import evidence as evidence_stage
from .case import Case
from .deaths import ONE_INCIDENT_S
from .ends import RESTART_S
from .entities import ENGINE_COMM
from .health import broke_before_stop, outlived
from .judge import Judged, assemble, judge
from .model import Confidence, Death, Incident, Life
from .raised import raised
from .rules import refusals, serving
from .rules.series import rising

INTERNAL_ERROR = 500
"""What a web framework answers for an exception that nobody caught."""

_INTERPRETER = lazy_regex(r"python[\d.]*")
"""What a script is called that gives itself no name; engines of today name their processes."""


def without_death(
    case: Case, known: Sequence[Incident], used: frozenset[Locator] = frozenset()
) -> Iterator[Incident]:
    """Trouble that nobody died of here: a fault line without its victim, a full KV cache, refused requests.

    Lines that are `used` are the evidence of an end, and no such fault.
    """
    if known:
        return
    finished = bool(case.lives) and all(jobs.completed(case.named(jobs.COMPLETED), life) for life in case.lives)
    causes = [] if finished else [f for f in case.findings if f.role is Role.CAUSE and not f.quoted]
    faults = [f for f in causes if f.locator not in used and not _survived(case, f)]
    others = [f for f in faults if bystanders.tells_of_one(case, f.event) or rank.is_anybodys(f)]
    full = () if broke_before_stop(case) else (_saturated,)
    first, last = partial(_fault, [f for f in faults if f not in others]), partial(_fault, others)
    trouble = (_counted, *full, _standing, _queueing, _leaking, _starved, _unpaired, _failing, _refused)
    for build in (first, *trouble, last, _raised):
        found = build(case)
        if found is not None and not asked.is_beside(case, found.entity):
            yield found
            return


def _fault(faults: Sequence[Finding], case: Case) -> Incident | None:
    """The first of some fault lines that explains something."""
    for finding in faults:
        death = Death(case.entities.of(finding.event), finding.time.utc_s, (finding.event,), None, None, "", False)
        judged = judge(case, death)
        if judged.decided:
            return assemble(case, judged, judged.hypotheses, (), evidence_stage.decoys(case, death))
    return None


def long_after(case: Case, known: Sequence[Incident]) -> Iterator[Incident]:
    """A KV cache that is full long after the last end: the service overcame that one, and the present leads.

    What was told to stop, and killed because it was slow, was not ailing: after it, at once.
    """
    ends = [(death.time_s or 0.0, rank.is_slow_stop(i.hypotheses[0])) for i in known for death in i.deaths]
    since_s = max((end_s + (0.0 if stopped else ONE_INCIDENT_S) for end_s, stopped in ends if end_s), default=0.0)
    found = saturated.for_long(case, since_s) if since_s else None
    if found is not None:
        yield _full(case, *found)


def _survived(case: Case, finding: Finding) -> bool:
    """True when some engine went on working after a fault, or the fault is another's."""
    owner = case.entities.of(finding.event)
    machine = finding.event.channel in ("kernel", "runtime", "systemd")
    if machine and owner and case.lives and not bystanders.may_be_engine(case, owner):
        return True
    comm = str(finding.event.fields.get("victim_comm") or "")
    if comm and not owner and case.lives and not ENGINE_COMM.search(comm):
        return True
    event = finding.event
    logs = [life for life in case.lives if life.holds(event)]
    if len(case.lives) > len(logs) and any(bystanders.went_on(life) for life in logs):
        return True
    if finding.signature == "nvidia.xid_application" and _of_some_script(case, event):
        return True
    if unowned.is_nobodys_fault(case, finding):
        return True
    kills = (kill for kill in case.of_kind("kernel_oom") if kill.locator == event.locator)  # an event retells one
    if any(unowned.fits_no_run(case, kill) for kill in kills):
        return True
    if asked.is_beside(case, owner) or bystanders.is_of_another_namespace(case, owner):
        return True
    if _is_after_all(case, event) or (finding.signature in evidence_stage.REBOOTS and _was_drained(case)):
        return True
    if asked.is_elsewhere(case, event) and bystanders.is_unidentified(case, owner):
        return True
    return bystanders.is_elsewhere(case, event) or bystanders.is_past(case, event) or outlived(case, event)


def _was_drained(case: Case) -> bool:
    """True where a node was cordoned or drained, and all that ended was stopped in an orderly way."""
    drained = any(case.named("k8s.drain", "nomad.drain")) or any(map(_empties_node, case.of_kind("operation")))
    return drained and bool(case.deaths) and all(death.graceful for death in case.deaths)


def _empties_node(done: Event) -> bool:
    return done.fields.get("object_kind") == "node" and done.fields.get("verb") in ("cordoned", "drained")


def _is_after_all(case: Case, fault: Event) -> bool:
    """True for what happened when every engine had been stopped: a node is rebooted after it was drained."""
    begins = fault.time.earliest_s if fault.time.utc_s is not None else 0.0
    return bool(case.lives) and all(
        life.shutdown is not None and life.fatal is None and life.end.time.utc_s is not None
        and life.end.time.latest_s < begins
        for life in case.lives
    )


def _of_some_script(case: Case, fault: Event) -> bool:
    """True for a fault of a bare interpreter before the lines of an engine at work, where none starts soon after it.

    Whoever faults so ends at once, and an engine that comes back prints its start, or is counted as restarted.
    """
    moment = fault.time.utc_s
    if moment is None or not _INTERPRETER.fullmatch(str(fault.fields.get("comm") or "")) or bystanders.restarted(case):
        return False
    begun = [(life, life.start.time) for life in case.lives if life.start.time.utc_s is not None]
    again = any(life.from_start and t.latest_s >= moment and t.earliest_s <= moment + RESTART_S for life, t in begun)
    return not again and any(
        not life.from_start and life.last_activity is not None and t.earliest_s >= moment for life, t in begun
    )


def _saturated(case: Case) -> Incident | None:
    """A full KV cache, by the best of the ways to know it."""
    found = saturated.by_any(case)
    return _full(case, *found) if found else None


def _full(case: Case, found: tuple[Finding, ...], owner: str) -> Incident:
    """The incident of a full KV cache; a series that names nobody is of the only engine there is."""
    engines = {life.entity for life in case.lives}
    nameless = not owner or owner.startswith("file:")
    return _alone(case, "kv_saturation", found, next(iter(engines)) if nameless and len(engines) == 1 else owner)


def _counted(case: Case) -> Incident | None:
    """A kill for memory of which only a counter is left."""
    found = rules.host.counted_kill(case)
    return _alone(case, "host_oom.container_limit", (found,), case.entities.of(found.event)) if found else None


def _standing(case: Case) -> Incident | None:
    """An engine that does not move while requests run: whoever saved the log did so before anything ended it."""
    found = sorted(serving.standstills(case), key=lambda item: (not item[1], evidence_stage.order(item[0][0])))
    for evidence, clear in found[:1]:
        most = Confidence.LIKELY if clear else Confidence.POSSIBLE
        return _alone(case, "engine_timeout", evidence, _printed_by(case, evidence[0]), most)
    return None


def _queueing(case: Case) -> Incident | None:
    """Requests that wait and wait although the cache has room: what runs at once is limited by something else."""
    for evidence in serving.queues(case):
        return _alone(case, "kv_saturation", evidence, _printed_by(case, evidence[0]))
    return None


def _printed_by(case: Case, finding: Finding) -> str:
    """Whose log a line, or a point of a series, stands in."""
    return case.entities.name_of(finding.event.scope, finding.locator.source)


def _leaking(case: Case) -> Incident | None:
    """GPU memory that climbs and climbs: what dies of it has not died yet, or was restarted in time."""
    found = rising(case)
    owners = {life.entity for life in case.lives}
    return _alone(case, "gpu_oom.leak", tuple(found), owners.pop() if len(owners) == 1 else "") if found else None


def _starved(case: Case) -> Incident | None:
    """Connections that an engine could not accept for want of a file descriptor, while those it had went on."""
    logs = {source for life in case.lives for source in life.sources}
    wants = tuple(f for f in case.named("python.too_many_files") if f.locator.source in logs)
    if sum(f.event.count for f in wants) < serving.MANY:
        return None
    limits = tuple(case.named("vllm.ulimit_low"))
    return _alone(case, "config_error", (*wants, *limits), case.entities.of(wants[0].event))


def _unpaired(case: Case) -> Incident | None:
    """Requests that need blocks of a peer which does not fit: both sides serve on, and are healthy."""
    found = tuple(f for f in case.named("vllm.kv_peer_mismatch") if not outlived(case, f.event))
    return _alone(case, "config_error", found, _printed_by(case, found[0])) if found else None


def _failing(case: Case) -> Incident | None:
    """Requests that the engine answered with a server error, again and again: it serves on."""
    for finding, life in serving.spoilt(case):
        return _as_an_end(case, life, finding.event) or _alone(case, "app_bug", (finding,), life.entity)
    failure = serving.unexplained_failures(case)
    if failure is not None and failure.fields["http_status"] == INTERNAL_ERROR and "failed_requests" in failure.fields:
        return _alone(case, "app_bug", (failure,), case.entities.of(failure.event), Confidence.POSSIBLE)
    return None


def _as_an_end(case: Case, life: Life, raised: Event) -> Incident | None:
    """What spoilt requests, judged as if the run had ended of it: memory that ran out is no bug of the code."""
    lost = next((f for f in life.findings if f.locator == raised.locator and f.role is Role.CAUSE), None)
    if lost is None:
        return None
    before = raised.locator.order - 1
    worked = serving.answered_before(case, life, raised)
    cut = replace(life, end=raised, last_sign=before, fatal=lost, crash=None, shutdown=None, last_activity=worked)
    death = Death(life.entity, raised.time.utc_s, (), cut, None, "", False)
    judged = judge(case, death)
    if not judged.decided:
        return None
    top = judged.hypotheses[0]
    if top.confidence is Confidence.ESTABLISHED:
        judged = replace(judged, hypotheses=(replace(top, confidence=Confidence.LIKELY), *judged.hypotheses[1:]))
    return assemble(case, judged, judged.hypotheses, (), evidence_stage.decoys(case, death))


def _refused(case: Case) -> Incident | None:
    """Requests that the server answered with a refusal, or messages that say why."""
    found = refusals.found(case)
    return _alone(case, "request_rejected", found, case.entities.of(found[0].event)) if found else None


def _raised(case: Case) -> Incident | None:
    """An exception that nothing surrounds: it is all that is known of the engine that raised it."""
    found = raised(case)
    return _alone(case, found[0], (found[1],), case.entities.of(found[1].event)) if found is not None else None


def _alone(
    case: Case, cause: str, evidence: tuple[Finding, ...], entity: str, most: Confidence = Confidence.LIKELY
) -> Incident:
    death = Death(entity, evidence[0].time.utc_s, (), None, None, "", False)
    hypothesis = rank.rank_one(case.library.causes[cause], evidence)
    lines = sum(source.lines for source in case.sources)
    weak = all(map(rank.is_weak, hypothesis.decisive))
    confidence = most if lines >= 10 and not weak else Confidence.POSSIBLE
    decoys = tuple(d for d in evidence_stage.decoys(case, death) if d.finding not in evidence)
    return assemble(case, Judged(death, (), evidence), (replace(hypothesis, confidence=confidence),), (), decoys)
