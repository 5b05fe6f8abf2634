"""Competing hypotheses: for each cause, what speaks for it and what against it; no tuned weights.

A cause needs a decisive finding to become the verdict. Findings that another, earlier cause explains are taken away
from the rest first. Then: a finding that fixes the member before those that fix only the family, fewest
contradictions, earliest decisive finding, most decisive, most supporting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..model import Basis, Finding, Role
from ..signatures import Cause, Library
from .ends import is_dated
from .entities import GENERIC_COMM
from .model import Confidence, Hypothesis
from .nodes import OF_NODES

DETECTION_S = 120.0
"""A consequence may be logged this much before its cause is noticed."""
SAME_MOMENT_S = 5.0
_OOM_MARKS = (
    "runtime.task_oom",
    "runtime.conmon_oom",
    "runtime.docker_oom",
    "runtime.docker_state_oom",
    "runtime.docker_inspect_oom",
    "systemd.scope_oom",
    "systemd.unit_oom_killed",
    "systemd.result_oom_kill",
    "k8s.oomkilled_told",
)
"""What others noticed of a kernel kill: that there was one, not whose limit was hit."""
_RETOLD = frozenset({"k8s.system_oom", "kubelet.sys_oom"})
"""The kubelet reads these out of the kernel log; beside the kernel's own report they are consequences."""
WEAK = frozenset(
    {
        "derived.oom_unknown_site",
        "llamacpp.alloc_failed",
        "derived.kill_unknown_limit",
        "derived.killed_while_starting",
        "derived.oomkilled_child",
        "derived.oomkilled_engine",
        "derived.oomkilled_status",
        "derived.oom_counter",
        "derived.kv_full_once",
        *_OOM_MARKS,
        "derived.probe_kill_unseen",
        "derived.probe_budget_met",
        "derived.gpu_leak_suspected",
        "torch.unknown_error",
        "slurm.oom_kill",
        "slurm.task_oom",
        "slurm.accounting_oom",
        "nomad.oom_killed",
        "ecs.oom",
        "k8s.terminated_illegal",
        "ecs.health_check_failed",
        "kernel.amdgpu_ring_timeout",
        "kernel.amdgpu_reset",
        "nvidia.smi_gpu_silent",
        "host.typed_kill",
        "nvidia.smi_driver_unreachable",
        "nccl.connect_failed",
        "lmdeploy.cuda_oom",
        "trtllm.cuda_oom",
        "host.illegal_instruction",
        "torch.cuda_init_unknown",
        "kernel.fork_rejected",
        "k8s.taint_eviction",
        "k8s.node_rebooted",  # by whom, or why, the API server does not know
        "trtllm.executor_oom",
        "rocm.gpu_hang",
        "torch.xpu_device_lost",
        "torch.kernel_image_invalid",
        "shm.child_sigbus",
        "python.memory_error",
        "torch.cpu_alloc_failed",
    }
)
"""Findings that fix the family of a cause, not the member."""
BARE = frozenset({
    "torch.cuda_error_oom", "lmdeploy.cuda_oom", "trtllm.cuda_oom", "torch.xpu_error_oom", "rocm.out_of_memory",
})  # fmt: skip
"""The driver's error without a number: who holds the memory, and how much was asked for, stays open."""
_OF_PROGRAMS = frozenset({"derived.kill_unknown_limit", "nvidia.xid_application"})
"""What the kernel and the driver say of a program, without its container."""
DIFFERENCE = "difference"
"""Basis of a number that no source states: what is left when all others are taken away."""
UNPROVED_LOAD = frozenset({"derived.oom_serving"})
"""Findings that blame load; only a sign of load shows that it was there."""
LOAD_SIGNS = frozenset(
    {
        "derived.kv_full",
        "derived.queue_grew",
        "derived.traffic_grew",
        "vllm.preempted_v0",
        "sglang.retract",
        "sglang.pool_high",
    }
)
UNKNOWN_ERRORS = frozenset({"derived.uncaught_exception", "derived.request_exception", "derived.config_exception"})
"""Errors that no signature knows: never more than likely."""
NO_FAULT = ("healthy", "insufficient_evidence")


def rank(
    library: Library, evidence: Sequence[Finding], context_lines: int, reporters: frozenset[str] = frozenset()
) -> tuple[Hypothesis, ...]:
    """Hypotheses in order, best first.

    `context_lines` is how much was seen at all; it caps the confidence. `reporters` are sources that tell of the end.
    """
    drafts = [_draft(cause, evidence) for cause in library.causes.values() if cause.id not in NO_FAULT]
    drafts = [draft for draft in drafts if draft.decisive or draft.supporting]
    drafts = _folded(drafts)
    drafts.sort(key=key)
    ranked = [
        replace(draft, confidence=_confidence(draft, context_lines, reporters), doubt=_doubt(draft)) for draft in drafts
    ]
    return tuple(h for h in ranked if h is ranked[0] or _adds(h, ranked[0]))


def _adds(hypothesis: Hypothesis, top: Hypothesis) -> bool:
    """An alternative is worth a row when it has a decisive finding.

    Without one it is worth a row when the first has none either, or when it rests on a fault line that the first
    does not use.
    """
    if hypothesis.decisive or not top.decisive:
        return accuses(hypothesis)
    used = set(map(id, top.evidence))
    return any(f.role is Role.CAUSE and id(f) not in used for f in hypothesis.supporting)


def accuses(hypothesis: Hypothesis) -> bool:
    """True when some of the evidence is more than a circumstance."""
    return any(f.role is not Role.CONTEXT for f in hypothesis.evidence)


def rank_one(cause: Cause, evidence: Sequence[Finding]) -> Hypothesis:
    """One cause against the evidence, without competitors and without a confidence."""
    return _draft(cause, evidence)


def matches(names: Sequence[str], finding: Finding) -> bool:
    """True when a finding's signature is listed, by id or by `family.*`."""
    return _listed(tuple(names), finding.signature)


@lru_cache(maxsize=65536)
def _listed(names: tuple[str, ...], signature: str) -> bool:
    """Cached: every death of a restart loop asks all causes about the same signatures."""
    return any(signature == name or (name.endswith(".*") and signature.startswith(name[:-1])) for name in names)


def _draft(cause: Cause, evidence: Sequence[Finding]) -> Hypothesis:
    def pick(names: Sequence[str]) -> tuple[Finding, ...]:
        return tuple(finding for finding in evidence if matches(names, finding))

    decisive = pick(cause.decisive)
    if any(f.event.kind == "kernel_oom" for f in decisive):
        decisive = tuple(f for f in decisive if f.signature not in _RETOLD)
    return Hypothesis(
        cause,
        Confidence.UNDETERMINED,
        decisive,
        pick(cause.supporting),
        pick(cause.contradicting),
        pick(cause.onset),
    )


def _folded(drafts: list[Hypothesis]) -> list[Hypothesis]:
    """Take decisive findings away from a cause when another one explains them.

    Of two causes that explain each other's findings, the earlier one keeps its own.
    """
    rivals = [d for d in drafts if d.decisive]
    folded = [
        replace(
            draft,
            decisive=tuple(
                f
                for f in draft.decisive
                if not any(_explains(other, f) and not _prior(draft, other) for other in rivals)
            ),
        )
        if draft.decisive
        else draft
        for draft in drafts
    ]
    return [d for d in folded if d.decisive or d.supporting]


def _explains(cause: Hypothesis, finding: Finding) -> bool:
    """True when a cause that stands uncontradicted, and was there in time, has a finding as its consequence."""
    if cause.against or any(f is finding for f in cause.decisive) or not matches(cause.cause.explains, finding):
        return False
    if not is_weak(finding) and all(map(is_anybodys, cause.decisive)):
        return False
    if finding.time.utc_s is None or first_s(cause.decisive) <= finding.time.utc_s + DETECTION_S:
        return True
    return any(_may_precede(f, finding) for f in cause.decisive)


def is_weak(finding: Finding) -> bool:
    """True for a finding that fixes the family of a cause, not the member; or not whose trouble it was."""
    return finding.signature in WEAK or is_anybodys(finding)


_SLOW_STOP = frozenset(
    {"derived.killed_after_grace", "runtime.docker_kill", "systemd.stop_timeout", "systemd.killing_process"}
)
"""Who stopped it says in these words that it took too long."""


def is_slow_stop(hypothesis: Hypothesis) -> bool:
    """True where something was told to stop, and killed when it took too long: nothing else is known against it."""
    decisive = {f.signature for f in hypothesis.decisive}
    return decisive <= _SLOW_STOP and bool(decisive & {"derived.killed_after_grace", "systemd.stop_timeout"})


_SCHEDULED = frozenset({"slurm.time_limit", "pbs.time_limit", "sge.time_limit"})


def is_scheduled(hypothesis: Hypothesis) -> bool:
    """True for the end of a job at the time limit that it was submitted with, and nothing else known against it."""
    decisive = {f.signature for f in hypothesis.decisive}
    return bool(decisive) and decisive <= _SCHEDULED


def is_anybodys(finding: Finding) -> bool:
    """True for what the machine says of some program in Python, at a time that is open: anybody's, at any time."""
    comm = finding.fields.get("victim_comm", finding.fields.get("comm"))
    generic = GENERIC_COMM.fullmatch(str(comm)) is not None
    return finding.signature in _OF_PROGRAMS and generic and not is_dated(finding.time)


def _may_precede(cause: Finding, finding: Finding) -> bool:
    """True for a line that stands behind a consequence only by a clock that nothing ties: a zone was assumed.

    It was taken as evidence for that doubt, so that the doubt holds for the order as well. Lines of one file have none.
    """
    assumed = Basis.ZONE_ASSUMED in (cause.time.basis, finding.time.basis)
    if cause.locator.source == finding.locator.source or not assumed:
        return False
    return cause.time.earliest_s <= finding.time.latest_s + DETECTION_S


def _prior(draft: Hypothesis, other: Hypothesis) -> bool:
    """True when a cause explains everything that is decisive for another one, and came first."""
    if draft.cause.id == other.cause.id:
        return True
    key, rival = ((first_s(d.decisive), len(d.against), d.cause.id) for d in (draft, other))
    return key < rival and all(_explains(draft, f) for f in other.decisive)


_WHENEVER_S = 1e12
"""Later than everything that has a date."""


def _may_be_old(finding: Finding) -> bool:
    """True for a fault of the machine without a time: a kernel log goes back for months, and so may it."""
    return finding.time.utc_s is None and finding.event.channel in OF_NODES


def first_s(findings: Sequence[Finding]) -> float:
    """Time of the earliest dated finding; 0 when none has a time, infinity when there is none at all."""
    dated = [f.time.utc_s for f in findings if f.time.utc_s is not None]
    return min(dated, default=0.0 if findings else float("inf"))


def key(draft: Hypothesis) -> tuple[bool, tuple[bool, bool], int, float, int, int, str]:
    """What hypotheses are ranked by, in this order; the smallest wins.

    No decisive finding, only hearsay or only weak ones, contradictions, time of the first decisive finding, decisive
    ones, supporting ones, id.
    """
    moment = first_s(draft.decisive)
    if draft.decisive and all(map(_may_be_old, draft.decisive)):
        moment = _WHENEVER_S
    bucket = moment if moment == float("inf") else moment // SAME_MOMENT_S
    return (
        not draft.decisive,
        (all(map(is_hearsay, draft.decisive)), all(map(is_weak, draft.decisive))),
        len({f.signature for f in draft.against}),
        bucket,
        -len({f.signature for f in draft.decisive}),
        -len({f.signature for f in draft.supporting}),
        draft.cause.id,
    )


def is_hearsay(finding: Finding) -> bool:
    """True for what a person told, and for what was concluded from it."""
    return finding.hearsay or any(map(is_hearsay, finding.rests_on))


def _is_bare(finding: Finding) -> bool:
    """True where the decisive number is not printed."""
    inferred = finding.fields.get("basis") == DIFFERENCE
    return inferred or all(f.signature in BARE for f in finding.rests_on or (finding,))


def _doubt(draft: Hypothesis) -> str:
    """Why a hypothesis is no more than possible; empty when it may be more."""
    if draft.against:
        return "against"
    known = [f for f in draft.decisive if not is_weak(f)]
    if not known:
        return "family"
    return "hearsay" if all(map(is_hearsay, known)) else ""


def _confidence(draft: Hypothesis, context_lines: int, reporters: frozenset[str]) -> Confidence:
    if not draft.decisive:
        return Confidence.POSSIBLE if draft.supporting else Confidence.UNDETERMINED
    if _doubt(draft):
        return Confidence.POSSIBLE
    strong = [f for f in draft.decisive if not is_weak(f) and not is_hearsay(f)]
    if all(f.signature in UNKNOWN_ERRORS or _is_bare(f) for f in strong):
        return Confidence.LIKELY
    if all(f.signature in UNPROVED_LOAD for f in strong) and not any(f.signature in LOAD_SIGNS for f in draft.evidence):
        return Confidence.LIKELY
    places = {f.locator for f in draft.evidence}
    corroborated = len(places) >= 2 and len({f.signature for f in draft.evidence}) >= 2
    corroborated |= any(reporters - {f.locator.source} for f in strong)
    if corroborated and context_lines >= 10:
        return Confidence.ESTABLISHED
    return Confidence.LIKELY
