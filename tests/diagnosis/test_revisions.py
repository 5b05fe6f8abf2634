"""What was changed before the failure: revisions of a Deployment, and runs of one engine."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Finding, Scope

PLENTY = {f"VLLM_SETTING_{n}": "1" for n in range(9)}


def changed(diagnosis: Any) -> list[Finding]:
    return [f for f in diagnosis.incidents[0].contributing if f.signature == "derived.settings_changed"]


def revision(w: Any, number: int, seconds: float, name: str, args: tuple[str, ...], **spec: Any) -> None:
    containers = {"vllm": {"image": "vllm/vllm-openai:v0.11.0", "args": args, "gpus": 1, **spec}}
    w.add(
        "replicasets.yaml", seconds, f"replicaset {name}", "workload", "k8s", Scope(namespace="llm"),
        workload_kind="ReplicaSet", workload_name=name, owner="chat", revision=str(number), containers=containers,
    )  # fmt: skip


def loop(b: ModuleType, w: Any) -> None:
    """A pod that cannot load its weights."""
    w.pod()
    w.start("vllm.log", 0, Scope(pod=b.POD), loaded=False, model="acme/chat-14b")
    w.fail("vllm.log", 30, frames=b.LOADING, scope=Scope(pod=b.POD), envelope="EngineCore failed to start.")
    w.exited("describe.txt", 33, 1, started=0)


@pytest.mark.parametrize(("old", "new", "told"), [
    (("--tensor-parallel-size", "4"), (), "--tensor-parallel-size 4 → unset"),
    ((), ("--enforce-eager",), "--enforce-eager unset → true"),
    (("--max-model-len", "8192"), ("--max-model-len=32k", "--api-key", "sesame"), "--max-model-len 8192 → 32000"),
    (("--tensor-parallel-size", "4"), ("-tp", "4"), ""),
], ids=["lost", "added", "raised-beside-a-secret", "other-spelling"])  # fmt: skip
def test_the_revision_before(b: ModuleType, old: tuple[str, ...], new: tuple[str, ...], told: str) -> None:
    w = b.World()
    revision(w, 30, -900_000, "chat-77c59b9d8", ("--model", "acme/chat-14b", *old))
    revision(w, 31, -60, "chat-6f9c7d5b8", ("--model", "acme/chat-14b", *new))
    loop(b, w)
    diagnosis = w.diagnosis()
    assert [f.fields["changed"] for f in changed(diagnosis)] == ([told] if told else [])
    assert diagnosis.verdict.cause.id == "gpu_oom.weights"
    for finding in changed(diagnosis):
        assert (finding.fields["previous_revision"], finding.fields["revision"]) == (30, 31)
        assert finding.id
        assert finding.event.fields["workload_name"] == "chat-6f9c7d5b8"


def test_image_limit_and_variables_count(b: ModuleType) -> None:
    w = b.World()
    old = {"image": "vllm/vllm-openai:v0.10.2", "memory_limit_bytes": 64 << 30, "env": {"HOME": "/a", "HF_TOKEN": "x"}}
    new = {"memory_limit_bytes": 32 << 30, "env": {"HOME": "/b", "HF_TOKEN": "y", "VLLM_USE_V1": "0"}}
    revision(w, 4, -9000, "chat-77c59b9d8", (), **old)
    revision(w, 5, -60, "chat-6f9c7d5b8", (), **new)
    loop(b, w)
    (finding,) = changed(w.diagnosis())
    assert finding.fields["changed"] == (
        "VLLM_USE_V1 unset → 0; image vllm/vllm-openai:v0.10.2 → vllm/vllm-openai:v0.11.0;"
        " limits.memory 64 GiB → 32 GiB"
    )


@pytest.mark.parametrize(("number", "seconds", "name", "spec"), [
    (31, -900_000.0, "chat-6f9c7d5b8", {}),
    (31, -60.0, "other-6f9c7d5b8", {}),
    (29, -60.0, "chat-6f9c7d5b8", {}),
    (31, -60.0, "chat-6f9c7d5b8", {"env": PLENTY}),
], ids=["long-ago", "another-pod", "first-revision", "another-thing"])  # fmt: skip
def test_no_change_to_tell(b: ModuleType, number: int, seconds: float, name: str, spec: dict[str, Any]) -> None:
    w = b.World()
    revision(w, 30, -950_000, "chat-77c59b9d8", ("--tensor-parallel-size", "4"))
    revision(w, number, seconds, name, (), **spec)
    loop(b, w)
    assert not changed(w.diagnosis())


@pytest.mark.parametrize(("before", "ready", "told"), [
    ({"max_model_len": 8192}, True, "--max-model-len 8192 → unset"),
    ({"max_model_len": 8192}, False, ""),
    ({}, True, ""),
], ids=["changed", "never-worked", "unchanged"])  # fmt: skip
def test_the_run_before(b: ModuleType, before: dict[str, Any], ready: bool, told: str) -> None:
    """Only a run that was ready shows settings that worked."""
    w = b.World()
    w.start("previous.log", -4000, Scope(pod=b.POD), ready=ready, model="acme/chat-14b", **before)
    loop(b, w)
    assert [f.fields["changed"] for f in changed(w.diagnosis())] == ([told] if told else [])


def test_a_change_is_no_factor_in_a_broken_card(b: ModuleType) -> None:
    w = b.World()
    revision(w, 30, -9000, "chat-77c59b9d8", ("--tensor-parallel-size", "4"))
    revision(w, 31, -60, "chat-6f9c7d5b8", ())
    w.pod()
    w.start("vllm.log", 0, Scope(pod=b.POD), model="acme/chat-14b")
    text = "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    w.add("dmesg.txt", 300, text, "xid", "kernel", xid=79, pci_bus_id="0000:17:00")
    w.fail("vllm.log", 301, "torch.AcceleratorError: CUDA error: unspecified launch failure", scope=Scope(pod=b.POD))
    w.exited("describe.txt", 303, 1, started=0)
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "gpu_hardware"
    assert not changed(diagnosis)


HALVED = ("- - --tensor-parallel-size=4", "+ - --tensor-parallel-size=2")


@pytest.mark.parametrize(("lines", "told"), [
    (HALVED, "--tensor-parallel-size 4 → 2"),
    (("- - --tensor-parallel-size", '- - "4"', "+ - --tensor-parallel-size", '+ - "2"'), "--tensor-parallel-size 4 → 2"),
    (("- tensorParallelSize: 4  # two cards less", "+ tensorParallelSize: 2"), "--tensor-parallel-size 4 → 2"),
    (("- - --max-model-len=8192",), "--max-model-len 8192 → unset"),
    (("- - --tensor-parallel-size=2", "+ - --tensor-parallel-size=4"), ""),
    (("- replicas: 2", "+ replicas: 3"), ""),
    (("+ - --max-model-len=8192",), ""),
], ids=["flag", "two-lines", "values", "lost", "the-way-back", "another-thing", "a-proposal"])  # fmt: skip
def test_a_diff_whose_new_side_ran(b: ModuleType, lines: tuple[str, ...], told: str) -> None:
    w = b.World()
    for line in lines:
        w.add("helm-diff.txt", None, line, "change", "notes", sign=line[0], object="Deployment chat")
    w.pod(args=("--model", "acme/chat-14b", "--tensor-parallel-size", "2"))
    w.start("vllm.log", 0, Scope(pod=b.POD), loaded=False, model="acme/chat-14b", tensor_parallel_size=2)
    w.fail("vllm.log", 30, frames=b.LOADING, scope=Scope(pod=b.POD), envelope="EngineCore failed to start.")
    w.exited("describe.txt", 33, 1, started=0)
    assert [f.fields["changed"] for f in changed(w.diagnosis())] == ([told] if told else [])
