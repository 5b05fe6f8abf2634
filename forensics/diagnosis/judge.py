"""Judge a death: its evidence, its hypotheses, and the incident that several deaths make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..model import Basis, Event, Finding, Role
from . import bystanders, jobs, rank, rules, timing, unowned
from . import evidence as evidence_stage
from .case import Case
from .deaths import ONE_INCIDENT_S, engine_like
from .model import ChainLink, Confidence, Death, Decoy, Hypothesis, Incident, Life

ONSET_S = 30.0
"""An onset lies this near its cause: an eviction takes this long from the threshold to the last kill."""
REPORT_DELAY_S = 2.0
"""The kernel's line, containerd's, kubelet's and the event of one fact come within this time."""
OVERCOME_S = 3600.0
"""A run that was at work this long had overcome whatever ended the one before it."""
_UNEXPLAINED = frozenset({"derived.unexplained_exit", "derived.restarts_counted", "derived.machine_restarted"})
"""What shows that something ended, where nothing shows why."""
_COUNTS_ERRORS = frozenset({"vllm.config_validation"})
"""Lines that only count the errors which stand, each with its reason, right below them."""
REASON_LINES = 6
_CLEAR = (Confidence.ESTABLISHED, Confidence.LIKELY)
_DISTANCES = {"kernel": 0, "nvidia": 0, "runtime": 3, "kubelet": 4, "k8s": 5}


@dataclass(frozen=True, slots=True)
class Judged:
    death: Death
    hypotheses: tuple[Hypothesis, ...]
    evidence: tuple[Finding, ...]

    @property
    def decided(self) -> bool:
        return bool(self.hypotheses) and bool(self.hypotheses[0].decisive)


def judge(case: Case, death: Death) -> Judged:
    derived = tuple(finding for rule in rules.ALL for finding in rule(case, death))
    found = evidence_stage.distinct((*evidence_stage.of_death(case, death), *derived))
    lines = sum(source.lines for source in case.sources)
    reporters = frozenset(event.locator.source for event in death.witnesses)
    return Judged(death, rank.rank(case.library, found, lines, reporters), found)


def incidents_of(case: Case, deaths: Sequence[Death]) -> list[Incident]:
    """The incidents that the deaths of one entity make, in their order.

    A restart loop is one incident: the first death that can be explained explains it. Where a run was at work for an
    hour, or until somebody stopped it, and a later end is of something else, and not less clearly, the former trouble
    was overcome: two incidents. So are the ends of two batch jobs.
    """
    parts: list[list[Judged]] = []
    for judged in (judge(case, death) for death in deaths):
        if not parts or _overcame(case, parts[-1], judged):
            parts.append([])
        parts[-1].append(judged)
    return [_incident(case, part) for part in parts]


def _overcame(case: Case, before: Sequence[Judged], later: Judged) -> bool:
    first = _telling(before).hypotheses
    if jobs.differ(before[-1].death.life, later.death.life):
        return True
    if not later.decided or not _telling(before).decided:
        return False
    if _worked_s(later.death) < OVERCOME_S and not _well_between(case, _telling(before).death, later.death):
        return False
    then, now = first[0], later.hypotheses[0]
    clear = now.confidence in _CLEAR or then.confidence not in _CLEAR
    return then.cause.id != now.cause.id and clear


def _well_between(case: Case, before: Death, later: Death) -> bool:
    """True when a run between two deaths served for an hour, or until somebody stopped it in an orderly way."""
    return any(
        before.time_s < death.time_s <= later.time_s
        and (_worked_s(death) >= OVERCOME_S or (death.graceful and served(death.life)))
        for death in case.deaths
        if before.time_s and death.time_s and later.time_s
        if death not in (before, later) and case.entities.same(death.entity, later.entity)
    )


def served(life: Life | None) -> bool:
    """True for a run that became ready and was seen at work."""
    return life is not None and life.ready is not None and life.last_activity is not None


def _worked_s(death: Death) -> float:
    """How long the run that died had been at work, by its log, or by its start where the log begins later."""
    life = death.life
    if life is None or life.last_activity is None:
        return 0.0
    began, worked = (life.ready or life.start).time.utc_s, life.last_activity.time.utc_s
    told = (event.fields.get("started_s") for event in death.witnesses)
    started = [float(moment) for moment in told if isinstance(moment, int | float)]
    if started and not life.from_start:
        began = min(started)
    return worked - began if began is not None and worked is not None else 0.0


def _telling(judged: Sequence[Judged]) -> Judged:
    """The death that explains a loop: the first that can be explained, by more than what may be anybody's.

    Where it only shows the family of its cause, a later lap that ended of the same, and proves it, speaks for both: the
    kernel's log may begin in the middle of a loop whose first laps only a status remembers.
    """
    decided = [j for j in judged if j.decided]
    decided = [j for j in decided if not _was_ordered(j)] or decided or [judged[0]]
    first = next((j for j in decided if not _is_anybodys(j)), decided[0])
    return next((j for j in judged if _proves_more(j, first)), first)


def _was_ordered(judged: Judged) -> bool:
    """True for a stop that took too long. That the starts after it failed, nobody ordered."""
    return judged.decided and rank.is_slow_stop(judged.hypotheses[0])


def _is_anybodys(judged: Judged) -> bool:
    return judged.decided and all(map(rank.is_anybodys, judged.hypotheses[0].decisive))


def _proves_more(later: Judged, first: Judged) -> bool:
    if not (first.decided and later.decided):
        return False
    then, now = first.hypotheses[0], later.hypotheses[0]
    containers = {first.death.container, later.death.container} - {""}
    same = then.cause.id == now.cause.id and len(containers) <= 1
    return same and then.doubt == "family" and now.confidence in _CLEAR


def _incident(case: Case, judged: Sequence[Judged]) -> Incident:
    chosen = _telling(judged)
    suspects = tuple(filter(rank.accuses, chosen.hypotheses))
    hypotheses = chosen.hypotheses if chosen.decided else (_unknown(case, chosen), *suspects)
    confidence, doubt = _agreed(case, judged, chosen)
    hypotheses = (replace(hypotheses[0], confidence=confidence, doubt=doubt), *hypotheses[1:])
    echoes = _echoes(judged, chosen)
    heard = {(f.signature, f.locator) for f in echoes}
    decoys = evidence_stage.decoys(case, chosen.death)
    return assemble(
        case,
        replace(chosen, evidence=(*chosen.evidence, *echoes)),
        hypotheses,
        tuple(j.death for j in judged),
        tuple(d for d in decoys if (d.finding.signature, d.finding.locator) not in heard),
    )


def _echoes(judged: Sequence[Judged], chosen: Judged) -> tuple[Finding, ...]:
    """What the runs that were at work when the judged death happened, and ended of it, say of its consequences.

    A peer's watchdog barks minutes after the rank died: that is no line of “another run”.
    """
    if not chosen.decided:
        return ()
    top = chosen.hypotheses[0]
    began = rank.first_s(top.decisive)
    seen = {(f.signature, f.locator) for f in chosen.evidence}
    return tuple({
        (f.signature, f.locator): f
        for other in judged
        if other is not chosen and _began_before(other.death, began)
        for f in other.evidence
        if (f.role is Role.CONSEQUENCE or rank.matches(top.cause.explains, f))
        and not f.signature.startswith("derived.")
        and (f.signature, f.locator) not in seen
    }.values())  # fmt: skip


def _began_before(death: Death, moment: float) -> bool:
    start = death.life.start.time.utc_s if death.life is not None else None
    return start is not None and start < moment


def _agreed(case: Case, judged: Sequence[Judged], chosen: Judged) -> tuple[Confidence, str]:
    """Deaths of a loop as witnesses: the same cause again corroborates, an unexplained first death takes certainty.

    Where two runs died of the same, and the unexplained ones before them with the same code, the loop is one thing.
    With the confidence goes why it is not more (`Hypothesis.doubt`).
    """
    if not chosen.decided:
        return Confidence.UNDETERMINED, ""
    top = chosen.hypotheses[0]
    again = sum(j.decided and j.hypotheses[0].cause.id == top.cause.id for j in judged)
    if top.confidence is Confidence.LIKELY and again >= 2 and not top.against:
        return Confidence.ESTABLISHED, ""
    before, code = [j for j in judged[: judged.index(chosen)] if not _was_ordered(j)], chosen.death.exit_code
    if before and top.confidence in (Confidence.ESTABLISHED, Confidence.LIKELY):
        same_code = all(None in (j.death.exit_code, code) or j.death.exit_code == code for j in before)
        if same_code and again >= 2:
            return top.confidence, top.doubt
        return (Confidence.LIKELY, "") if same_code else (Confidence.POSSIBLE, "codes")
    if not case.lives and not engine_like(chosen.death) and not bystanders.shows_engine(case, chosen.death.entity):
        return Confidence.POSSIBLE, top.doubt or "whose"  # something was killed; whether it was the engine is not shown
    kills = [event for event in chosen.death.witnesses if event.kind == "kernel_oom"]
    if case.lives and chosen.death.life is None and kills and all(unowned.may_be_anybodys(case, e) for e in kills):
        return Confidence.POSSIBLE, top.doubt or "whose"
    return top.confidence, top.doubt


def _is_dated(life: Life | None, told: Sequence[Event]) -> bool:
    """False for what is known only by an age that nobody knows since when: it tells no beginning and no end."""
    def vague(event: Event) -> bool:
        return event.time.basis is Basis.RELATIVE_AGE and event.time.uncertainty_s >= ONE_INCIDENT_S

    return life is not None or not told or not all(map(vague, told))


def assemble(
    case: Case, judged: Judged, hypotheses: tuple[Hypothesis, ...], deaths: tuple[Death, ...], decoys: tuple[Decoy, ...]
) -> Incident:
    top = hypotheses[0]
    used = {(f.signature, f.locator) for f in top.evidence}
    began = rank.first_s(top.decisive)
    explained = tuple(
        f
        for f in judged.evidence
        if (f.signature, f.locator) not in used
        and (f.role is Role.CONSEQUENCE or rank.matches(top.cause.explains, f))
        and (f.time.utc_s is None or began == float("inf") or f.time.latest_s >= began - REPORT_DELAY_S)
    )
    times = [death.time_s for death in deaths if death.time_s and _is_dated(death.life, death.witnesses)]
    times = times or [death.time_s for death in deaths if death.time_s]
    root = first_cause(top)
    dated = [f for f in (*top.decisive, *filter(None, [root])) if _is_dated(None, (f.event,))]
    _, first_s = timing.counted_stops(case, dated)
    moments = (first_s, rank.first_s(dated) if dated or times else began, *times)
    start = min((moment for moment in moments if moment), default=float("inf"))
    return Incident(
        id="",
        entity=judged.death.entity,
        start_s=start if start != float("inf") else None,
        end_s=max(times) if times else None,
        deaths=deaths,
        hypotheses=hypotheses,
        chain=_chain(top, explained, deaths),
        consequences=tuple(sorted(explained, key=evidence_stage.order)),
        decoys=decoys,
        contributing=tuple(
            f
            for f in judged.evidence
            if (f.role is Role.SYMPTOM or rank.matches(top.cause.contributing, f))
            and (f.signature, f.locator) not in used
            and f not in explained
            and not (top.decisive and f.signature == "derived.unexplained_exit")
        ),
        observations=tuple(f for f in judged.evidence if f.signature.startswith("derived.")),
        container=judged.death.container,
        evidence=judged.evidence,
    )


def _chain(top: Hypothesis, explained: Sequence[Finding], deaths: Sequence[Death]) -> tuple[ChainLink, ...]:
    root = first_cause(top)
    links = [ChainLink(root, "root")] if root is not None else []
    seen = {root.signature} if root is not None else set()
    for finding in sorted(explained, key=evidence_stage.order):
        if finding.signature not in seen and len(links) < 8:
            seen.add(finding.signature)
            links.append(ChainLink(finding, "explained"))
    return tuple(links)


def first_cause(hypothesis: Hypothesis) -> Finding | None:
    """The line that a reader should look at first: the earliest decisive finding, printed lines before derived ones.

    Findings that fix only the family of a cause count where there are no others.
    Where a line marks the onset of the same thing (the head of a kernel's report, the kubelet's order), it is that one.
    """
    if not hypothesis.decisive:
        ends = [f for f in hypothesis.supporting if f.signature in _UNEXPLAINED]
        return min(ends, key=evidence_stage.order, default=None)
    firm = [f for f in hypothesis.decisive if not rank.is_weak(f)] or hypothesis.decisive
    ground = [base for f in firm for base in (f.rests_on or (f,))]
    ground = [f for f in ground if not _is_explained_below(f, ground)]
    earliest = min(ground, key=evidence_stage.order)
    slack_s = REPORT_DELAY_S if earliest.time.uncertainty_s <= REPORT_DELAY_S else ONSET_S  # "9m ago" is no first word
    same_moment = [f for f in ground if f.time.earliest_s <= earliest.time.latest_s + slack_s]
    onset = [f for f in hypothesis.onset if _begins(f, same_moment) or _led_to(f, ground)]
    return min(
        onset or same_moment,
        key=lambda f: (_distance(f), evidence_stage.doubt_s(f), *evidence_stage.order(f)),
        default=earliest,
    )


def _is_explained_below(head: Finding, ground: Sequence[Finding]) -> bool:
    """True for the line above an error's own words, where a signature knows those."""
    place = head.locator
    return head.signature in _COUNTS_ERRORS and any(
        f.locator.source == place.source and 0 < f.locator.order - place.order <= REASON_LINES for f in ground
    )


def _begins(onset: Finding, moment: Sequence[Finding]) -> bool:
    """True for a line of the witness that tells the cause itself: from the same moment, or the head of its report."""
    return any(
        onset.event.channel == f.event.channel
        and (_heads(onset, f) if _is_in_report(onset, f) else _at_once(onset, f))
        for f in moment
    )


def _is_in_report(onset: Finding, finding: Finding) -> bool:
    return "report_line" in finding.event.fields and onset.locator.source == finding.locator.source


def _heads(onset: Finding, finding: Finding) -> bool:
    return bool(finding.event.fields["report_line"] == onset.locator.line)


def _at_once(one: Finding, other: Finding) -> bool:
    a, b = one.time.utc_s, other.time.utc_s
    return a is None or b is None or abs(a - b) <= ONSET_S


def _led_to(onset: Finding, ground: Sequence[Finding]) -> bool:
    """True for a beginning that a rule found by what it ended with, however much later that was."""
    return any(base.locator == f.locator for base in onset.rests_on for f in ground)


def _distance(finding: Finding) -> int:
    """How far a source is from the fact: the kernel acts, the kubelet hears of it, an event retells it."""
    return _DISTANCES.get(finding.event.channel, 1)


def _unknown(case: Case, judged: Judged) -> Hypothesis:
    cause = case.library.causes["insufficient_evidence"]
    draft = rank.rank_one(cause, judged.evidence)
    return replace(draft, confidence=Confidence.UNDETERMINED)
