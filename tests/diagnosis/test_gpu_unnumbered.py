"""Who else holds the card, where the failure says no number."""

from __future__ import annotations

from types import ModuleType

import pytest

from forensics.diagnosis.rules import oom_site

NCCL = "Cuda failure 2 'out of memory'"


def failed_start(b: ModuleType, name: str, mib: int, listed_s: float | None = 40, loaded: bool = False) -> tuple[str, str]:
    """NCCL finds no memory in a start, and a list shows one process on a card of 80 GiB."""
    w = b.World()
    w.start("a", 0, loaded=loaded, ready=False, tensor_parallel_size=4) if loaded else w.add(
        "a", 0, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0", tensor_parallel_size=4
    )
    w.add("a", 38, NCCL, level="ERROR")
    w.add("a", 39, "EngineCore failed to start.", level="ERROR")
    w.add("a", 40, "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    w.add("gpus.csv", listed_s, "GPU 2", "gpu_state", "nvidia", index=2, memory_total_mib=81_559, memory_used_mib=mib)
    w.add("gpus.csv", listed_s, f"pid 771 {name} uses {mib} MiB", "gpu_process", "nvidia", pid=771, name=name, used_mib=mib)
    diagnosis = w.diagnosis()
    hypothesis = diagnosis.incidents[0].hypotheses[0]
    return hypothesis.cause.id, str(hypothesis.confidence)


@pytest.mark.parametrize("name", ["/opt/draw/venv/bin/python", "python train.py", "jupyter-lab", "Xorg"])
@pytest.mark.parametrize("listed_s", [None, 40])
def test_the_process_on_the_card_is_named(b: ModuleType, name: str, listed_s: float | None) -> None:
    assert failed_start(b, name, 79_000, listed_s) == ("gpu_oom.other_process", "likely")


@pytest.mark.parametrize("name", ["VLLM::Worker_TP2", "python3", "/usr/bin/python3.12", "[N/A]", "sglang::scheduler"])
def test_what_may_be_the_engine_is_no_stranger(b: ModuleType, name: str) -> None:
    assert failed_start(b, name, 79_000)[0] != "gpu_oom.other_process"


def test_a_small_or_distant_one_did_no_harm(b: ModuleType) -> None:
    assert failed_start(b, "jupyter-lab", 9_000)[0] != "gpu_oom.other_process"
    assert failed_start(b, "jupyter-lab", 79_000, -90_000)[0] != "gpu_oom.other_process"


def test_an_engine_with_its_weights_holds_the_card_itself(b: ModuleType) -> None:
    assert failed_start(b, "jupyter-lab", 45_000, loaded=True)[0] != "gpu_oom.other_process"


@pytest.mark.parametrize("lines", [(), ("Available KV cache memory: 30.20 GiB",), ("GPU KV cache size: 98,752 tokens",)])
def test_a_run_that_answers_serves_whatever_line_of_its_start_was_lost(b: ModuleType, lines: tuple[str, ...]) -> None:
    """A filter kept some lines of the start, and not the one that says that it was over."""
    w = b.World()
    for number, line in enumerate(lines):
        w.add("a", 30 + number, line)
    w.answer("a", 90)
    w.fail("a", 300, frames=())
    case = w.case()
    failure = oom_site.first_failure(case.deaths[0].life)
    assert failure is not None
    assert oom_site.site_of(case, case.deaths[0], failure)[0] == "oom_serving"
