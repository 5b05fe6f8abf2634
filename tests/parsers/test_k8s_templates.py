"""Pod templates in objects of operators, in charts' values and in pieces of manifests."""

from __future__ import annotations

import pytest

from forensics.parsers import k8s_objects, k8s_templates
from forensics.sources import make_head

PROBE = "startupProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 30, periodSeconds: 5, failureThreshold: 40}"
CONTAINER = f"- name: vllm\n  image: vllm/vllm-openai:v0.11.0\n  {PROBE}"


def nested(depth: int, text: str) -> str:
    return "\n".join(" " * depth + line for line in text.split("\n"))


OBJECTS = {
    "rollout": f"spec:\n  template:\n    spec:\n      containers:\n{nested(6, CONTAINER)}",
    "kserve": f"spec:\n  predictor:\n    model:\n      modelFormat: {{name: huggingface}}\n      args: [--model_name=x]\n      {PROBE}",
    "kserve containers": f"spec:\n  predictor:\n    containers:\n{nested(4, CONTAINER)}",
    "runtime": f"spec:\n  containers:\n{nested(2, CONTAINER)}",
    "leader": f"spec:\n  leaderWorkerTemplate:\n    leaderTemplate:\n      spec:\n        containers:\n{nested(8, CONTAINER)}",
    "ray": "spec:\n  rayClusterConfig:\n    workerGroupSpecs:\n    - groupName: g\n      template:\n        spec:\n"
    f"          containers:\n{nested(10, CONTAINER)}",
    "jobs": f"spec:\n  replicatedJobs:\n  - name: a\n    template:\n      spec:\n        template:\n          spec:\n            containers:\n{nested(12, CONTAINER)}",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_templates_of_operators(name: str) -> None:
    text = f"apiVersion: x.example.com/v1\nkind: Thing\nmetadata:\n  name: chat\n  namespace: llm\n{OBJECTS[name]}\n"
    specs = [e for e in k8s_objects.read(text, "a.yaml").events if e.kind == "pod_spec"]
    assert [(e.fields["startup_delay_s"], e.fields["startup_period_s"], e.fields["startup_failure"]) for e in specs] == [
        (30, 5, 40)
    ]
    assert specs[0].fields["workload_name"] == "chat"
    assert specs[0].scope.namespace == "llm"


@pytest.mark.parametrize("text", [
    "servingEngineSpec:\n  modelSpec:\n  - name: m\n    replicaCount: 1\n  startupProbe:\n    initialDelaySeconds: 15\n"
    "    failureThreshold: 60\n    periodSeconds: 10\n    httpGet:\n      path: /health\n      port: 8000\n",
    "image:\n  tag: v1\nstartupProbe:\n  initialDelaySeconds: 15\n  failureThreshold: 60\n  periodSeconds: 10\n",
    "        startupProbe:\n          initialDelaySeconds: 15\n          failureThreshold: 60\n          periodSeconds: 10\n",
    "- name: vllm\n  startupProbe:\n    initialDelaySeconds: 15\n    failureThreshold: 60\n    periodSeconds: 10\n",
    "image:\n  tag: v1\nhealth:\n  startup:\n    httpGet: {path: /health, port: http}   # since 2.0\n"
    "    initialDelaySeconds: 15\n    failureThreshold: 60\n    periodSeconds: 10\n",
])  # fmt: skip
def test_values_and_pieces(text: str) -> None:
    assert k8s_templates.VALUES.sniff(make_head("values.yaml", text.encode(), True)) == 80
    (spec,) = k8s_templates.read_values(text, "values.yaml").events
    assert (spec.fields["startup_delay_s"], spec.fields["startup_failure"], spec.fields["startup_period_s"]) == (15, 60, 10)
    assert "shm_size_bytes" not in spec.fields


@pytest.mark.parametrize("text", [
    "replicaCount: 1\nimage:\n  tag: v1\n",
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - startupProbe:\n      periodSeconds: 5\n",
    "We set\n  startupProbe:\nto periodSeconds: 5 last week, and it did not help at all.\nWhat now?\nRegards\n",
    "startupProbe:\n",
    "startup: fast\nperiodSeconds: 5\n",
])  # fmt: skip
def test_no_values(text: str) -> None:
    assert k8s_templates.VALUES.sniff(make_head("values.yaml", text.encode(), True)) == 0


def test_a_mapping_called_startup_is_no_probe() -> None:
    """A chart's own settings have such names too; a probe has a period, a threshold or a delay."""
    text = "server:\n  startup:\n    timeout: 600\nother:\n  periodSeconds: 5\n"
    assert k8s_templates.read_values(text, "values.yaml").events == ()
