"""The law of the pattern library: one named case per file and per example, and the library as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forensics import resources
from forensics.diagnosis.case import DERIVED
from forensics.signatures import Matcher, law, load

LIBRARY = load(resources.patterns(), DERIVED)
MATCHER = Matcher(LIBRARY)
CAUSE_IDS = frozenset({
    "gpu_oom.weights", "gpu_oom.kv_cache_startup", "gpu_oom.kv_max_len", "gpu_oom.cuda_graph", "gpu_oom.activation_peak",
    "gpu_oom.sampler_warmup", "gpu_oom.runtime_load", "gpu_oom.fragmentation", "gpu_oom.leak", "gpu_oom.other_process",
    "gpu_oom.reserved_memory", "kv_saturation", "host_oom.container_limit", "host_oom.node", "host_oom.leak", "ray_oom",
    "eviction", "probe_kill", "probe_restart_storm", "external_sigkill", "shm_exhausted", "gpu_hardware",
    "gpu_illegal_access", "nccl_failure", "engine_timeout", "config_error", "model_download", "driver_mismatch",
    "unsupported_hardware", "app_bug", "request_rejected", "healthy", "insufficient_evidence",
})  # fmt: skip


def examples() -> Iterator[object]:
    for signature in LIBRARY.signatures.values():
        for number, example in enumerate(signature.examples, 1):
            verb = example.pattern or "not"
            yield pytest.param(signature.id, number, id=f"{signature.id}-{number}-{verb}")


@pytest.mark.parametrize("identity", sorted(LIBRARY.signatures))
def test_file_is_complete(identity: str) -> None:
    """Every pattern is used by an example, and there is a line that must not match."""
    assert [str(problem) for problem in law.completeness(LIBRARY.signatures[identity])] == []


@pytest.mark.parametrize(("identity", "number"), list(examples()))
def test_example_does_what_it_says(identity: str, number: int) -> None:
    """It hits exactly the pattern it names, with the values it states, or nothing at all."""
    problems = law.example_of(LIBRARY.signatures[identity], number, MATCHER)
    assert [str(problem) for problem in problems] == []


def test_no_signature_fires_on_anothers_examples() -> None:
    """The confusion matrix is diagonal, apart from overlaps that are declared."""
    assert [str(problem) for problem in law.strangers(LIBRARY)] == []


def test_library_is_large_and_proved() -> None:
    """At least 220 signatures, every one with a line that must match and one that must not."""
    assert len(LIBRARY.signatures) >= 220
    for signature in LIBRARY.signatures.values():
        assert {bool(example.pattern) for example in signature.examples} == {True, False}, signature.id


def test_all_causes_are_there_and_carry_evidence() -> None:
    """Every cause id exists; every fault names what is decisive for it, by signatures and rules that exist."""
    assert frozenset(LIBRARY.causes) == CAUSE_IDS
    for cause in LIBRARY.causes.values():
        assert cause.decisive or cause.id in ("insufficient_evidence",), cause.id


def test_every_rule_and_every_fault_signature_serves_a_cause() -> None:
    """A finding that no cause names, as evidence or as the condition of a remedy, would be found and never used."""
    faults = [s.id for s in LIBRARY.signatures.values() if s.role == "cause"]
    causes = LIBRARY.causes.values()
    remedied = {finding for cause in causes for _, condition in cause.conditions() for finding in condition.findings}
    idle = [i for i in (*faults, *DERIVED) if i not in remedied and not any(cause.names(i) for cause in causes)]
    assert idle == []


def test_library_lies_where_it_is_looked_for() -> None:
    """The folders that the package reads exist."""
    assert (resources.patterns() / "causes").is_dir()
    assert (resources.templates() / "report.md.j2").is_file()
