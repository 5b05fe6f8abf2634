"""The law of the pattern library: one named case per signature, and the library as a whole."""

from __future__ import annotations

import pytest

from forensics import resources
from forensics.diagnosis.case import DERIVED
from forensics.pipeline import load_library
from forensics.signatures import Matcher, law

LIBRARY = load_library()
CAUSE_IDS = frozenset({
    "gpu_oom.weights", "gpu_oom.kv_cache_startup", "gpu_oom.kv_max_len", "gpu_oom.cuda_graph", "gpu_oom.activation_peak",
    "gpu_oom.sampler_warmup", "gpu_oom.runtime_load", "gpu_oom.fragmentation", "gpu_oom.leak", "gpu_oom.other_process",
    "gpu_oom.reserved_memory", "kv_saturation", "host_oom.container_limit", "host_oom.node", "host_oom.leak", "ray_oom",
    "eviction", "probe_kill", "probe_restart_storm", "external_sigkill", "shm_exhausted", "gpu_hardware",
    "gpu_illegal_access", "nccl_failure", "engine_timeout", "config_error", "model_download", "driver_mismatch",
    "unsupported_hardware", "app_bug", "request_rejected", "healthy", "insufficient_evidence",
})  # fmt: skip


@pytest.mark.parametrize("identity", sorted(LIBRARY.signatures))
def test_signature_obeys_the_law(identity: str) -> None:
    """Examples hit as stated, near misses do not, nobody else fires on them."""
    problems = law.examples_of(LIBRARY.signatures[identity], Matcher(LIBRARY))
    assert [] == [str(problem) for problem in problems]


def test_no_signature_fires_on_anothers_examples() -> None:
    """The confusion matrix is diagonal, apart from overlaps that are declared."""
    assert [] == [str(problem) for problem in law.strangers(LIBRARY)]


def test_all_causes_are_there_and_carry_evidence() -> None:
    """Every cause id exists; every fault names what is decisive for it, by signatures and rules that exist."""
    assert CAUSE_IDS == frozenset(LIBRARY.causes)
    for cause in LIBRARY.causes.values():
        assert cause.decisive or cause.id in ("insufficient_evidence",), cause.id


def test_every_rule_and_every_fault_signature_serves_a_cause() -> None:
    """A cause-role finding that no cause names would be found and never used."""
    named = [
        name for cause in LIBRARY.causes.values()
        for name in (*cause.decisive, *cause.supporting, *cause.contradicting, *cause.explains)
    ]  # fmt: skip

    def used(identity: str) -> bool:
        return identity in named or any(n.endswith(".*") and identity.startswith(n[:-1]) for n in named)

    faults = [s.id for s in LIBRARY.signatures.values() if s.role == "cause"]
    assert [] == [identity for identity in (*faults, *DERIVED) if not used(identity)]


def test_library_lies_where_it_is_looked_for() -> None:
    """The folders that the package reads exist."""
    assert (resources.patterns() / "causes").is_dir()
    assert (resources.templates() / "report.md.j2").is_file()
