"""A pod's spec where only the manifest of its workload is in the bundle."""

from __future__ import annotations

from types import ModuleType

import pytest

from forensics.diagnosis import templates


def template(b: ModuleType, name: str, period_s: int = 5, image: str = "vllm/vllm-openai:v0.11.0") -> object:
    named = {"workload_name": name} if name else {}
    return b.World().add(
        "a.yaml", None, f"deployment {name} container c spec", "pod_spec", "k8s", workload_kind="Deployment",
        startup_period_s=period_s, image=image, **named,
    )  # fmt: skip


@pytest.mark.parametrize(("workload", "pod"), [
    ("chat", "chat-6f9c7d5b8-x2k4p"), ("chat", "chat-0"), ("chat", "chat-0-1"), ("chat", "chat-x2k4p"),
    ("chat", "chat-predictor-00001-deployment-6f9c7d5b8-x2k4p"), ("chat", "chat-raycluster-x2k4p-head-8zq2m"),
    ("chat-qwen3", "chat-qwen3-6f9c7d5b8-x2k4p"), ("", "chat-0"),
])  # fmt: skip
def test_a_pod_is_made_of_its_template(b: ModuleType, workload: str, pod: str) -> None:
    known = [template(b, workload)]
    assert templates.spec_of(known, [f"pod:{pod}"]) is known[0]


@pytest.mark.parametrize(("workload", "pod"), [
    ("cha", "chat-0"), ("chat", "chatty-0"), ("chat", "gate-0"), ("chat", "chat-gateway-0"), ("chat", "chat-qwen3-0"),
])  # fmt: skip
def test_another_pod_is_not(b: ModuleType, workload: str, pod: str) -> None:
    assert templates.spec_of([template(b, workload)], [f"pod:{pod}"]) is None


def test_two_templates_that_differ_tell_nothing(b: ModuleType) -> None:
    assert templates.spec_of([template(b, "chat"), template(b, "chat", 10)], ["pod:chat-0"]) is None
    assert templates.spec_of([template(b, "chat"), template(b, "chat")], ["pod:chat-0"]) is not None


def test_values_of_another_program_are_not_the_engines(b: ModuleType) -> None:
    assert templates.spec_of([template(b, "", image="nginx:1.27")], ["pod:chat-0"]) is None
    assert templates.spec_of([template(b, "", image="")], ["pod:chat-0"]) is not None


def test_a_log_without_a_name_is_of_the_only_server(b: ModuleType) -> None:
    server, proxy = template(b, "chat"), template(b, "edge", image="envoy:v1")
    assert templates.spec_of([server, proxy], ["file:vllm.log"]) is server
    assert templates.spec_of([proxy], ["file:vllm.log"]) is None


@pytest.mark.parametrize("others", [0, 1])
def test_a_description_without_a_name_is_of_the_only_thing_that_ran(b: ModuleType, others: int) -> None:
    """The states of a container, cut out of `kubectl describe`, beside one log."""
    w = b.World()
    for number in range(others + 1):
        w.start(f"log{number}", 0, model=f"m{number}")
        w.fail(f"log{number}", 300)
    spec = w.add("states.txt", None, "container spec", "pod_spec", "k8s", memory_limit_bytes=96 << 30)
    case = w.case()
    assert case.spec(case.deaths[0].entity) is (None if others else spec)
