"""The real client's output: describe, JSON and YAML of a pod say the same; every file is recognised as what
it is."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from forensics.model import Event, StampForm
from forensics.parsers import FORMATS, k8s_objects, k8s_text
from forensics.sources import identify, make_head
from forensics.stamps import iso_utc

NOT_IN_DESCRIBE = {"grace_s", "restart_policy", "pod_ip", "disruption_reason"}
"""Fields that kubectl describe does not print."""
OCCURRENCES = ("k8s_event", "k8s_first_seen")


def _comparable(event: Event, as_described: bool) -> str:
    fields, scope = dict(event.fields), event.scope.to_dict()
    stamps = [stamp.seconds for stamp in event.stamps]
    if as_described:
        for name in NOT_IN_DESCRIBE | {name for name in fields if name.endswith("_grace_s")}:
            fields.pop(name, None)
        if event.kind == "container_waiting":
            fields.pop("message", None)
        if event.kind == "pod_status":
            stamps = []
        scope = {name: value for name, value in scope.items() if name not in ("pod_uid", "container_id")}
    return json.dumps(
        [event.kind, event.channel, event.text, stamps, scope, fields], sort_keys=True, default=str
    )


def _facts(events: tuple[Event, ...], as_described: bool = False) -> Counter[str]:
    kinds = {*OCCURRENCES, "pod_created"} if as_described else OCCURRENCES
    return Counter(_comparable(event, as_described) for event in events if event.kind not in kinds)


@pytest.fixture(scope="module")
def pods_json(captures: Path) -> tuple[Event, ...]:
    return k8s_objects.read((captures / "kubectl/get/pods_-o_json.json").read_text(), "json").events


def test_yaml_equals_json(captures: Path, pods_json: tuple[Event, ...]) -> None:
    text = (captures / "kubectl/get/pods_-o_yaml.yaml").read_text()
    assert _facts(k8s_objects.read(text, "yaml").events) == _facts(pods_json)


def test_describe_equals_json(captures: Path, pods_json: tuple[Event, ...]) -> None:
    """Twelve pods: waiting, evicted, init, sidecars, lost; only what describe never prints may differ."""
    text = (captures / "kubectl/describe/all_pods.txt").read_text()
    described = k8s_text.read(text, "describe").events
    assert _facts(described, as_described=True) == _facts(pods_json, as_described=True)
    assert sum(event.kind == "container_terminated" for event in pods_json) >= 8


def test_locators_point_at_the_fact(pods_json: tuple[Event, ...], captures: Path) -> None:
    """A death is quoted by its reason, where that says more than `Error`, else by its time; its text holds the code."""
    described = k8s_text.read((captures / "kubectl/describe/all_pods.txt").read_text(), "describe").events
    for event in (*pods_json, *described):
        if event.kind == "container_terminated":
            reason = event.fields["reason"]
            assert ("inished" if reason in ("Error", "Completed") else reason) in event.raw
            assert str(event.fields["exit_code"]) in event.text
        if event.kind == "container_waiting":
            assert event.fields["reason"] in event.raw


def test_time_zones_of_the_client(captures: Path) -> None:
    """The same pod described in Shanghai and in UTC has the same instants."""
    names = ("oomkilled_TZ_Asia-Shanghai.txt", "vllm-qwen3-32b-7d9c5b6f4-x2k8p.txt")
    shanghai, utc = (
        k8s_text.read((captures / "kubectl/describe" / name).read_text(), name).events for name in names
    )
    assert _facts(shanghai) == _facts(utc)


def test_ages_agree_with_instants(captures: Path) -> None:
    """Events of describe (ages) and of JSON (instants) agree on one capture, within the ages' rounding."""
    folder = captures / "kubectl-ray-sar/kubectl"
    captured = 1795987850.0
    assert iso_utc(captured, 0) == (folder / "CAPTURED_AT").read_text().strip()
    instants = {
        e.text: e.stamps[0].seconds
        for e in k8s_objects.read((folder / "events.json").read_text(), "e").events
        if e.kind == "k8s_event"
    }
    aged = [
        e
        for e in k8s_text.read((folder / "describe-pod.txt").read_text(), "d").events
        if e.kind == "k8s_event"
    ]
    assert len(aged) >= 5
    for event in aged:
        (stamp,) = event.stamps
        assert stamp.form is StampForm.AGE
        assert captured - stamp.seconds == pytest.approx(instants[event.text], abs=stamp.resolution_s / 2 + 3)


def test_dump_directory_and_standard_output_agree(captures: Path) -> None:
    folder = captures / "kubectl-ray-sar/kubectl"
    whole = k8s_objects.read((folder / "cluster-info-dump.stdout.txt").read_text(), "dump")
    parts: list[Event] = []
    for path in sorted((folder / "cluster-info-dump").rglob("*.json")):
        parts += k8s_objects.read(path.read_text(), path.name).events
    told, in_files = (tuple(e for e in events if e.channel == "k8s") for events in (whole.events, parts))
    assert _facts(told) == _facts(in_files)
    logs = [event for event in whole.events if event.channel == "engine"]
    assert [(event.text, event.scope.container) for event in logs] == [("hello", "vllm"), ("second", "vllm")]
    assert whole.diagnostics == ()


EXPECTED = {
    "describe/*": "k8s.describe",
    "get/*.json": "k8s.objects",
    "get/*.yaml": "k8s.objects",
    "get/events*.txt": "k8s.table",
    "get/kubectl_events*.txt": "k8s.table",
    "get/pods*.txt": "k8s.table",
    "get/pod_oomkilled_-o_wide.txt": "k8s.table",
    "get/*_none.txt": "k8s.message",
    "get/pod_not_found.txt": "k8s.message",
    "logs/no_previous.txt": "k8s.message",
    "logs/waiting_to_start.txt": "k8s.message",
    "logs/pod_not_found.txt": "k8s.message",
    "logs/previous*": "log",
    "logs/cuda_oom*": "log",
    "node/describe_node.txt": "k8s.describe",
    "node/get_node.yaml": "k8s.objects",
    "node/get_nodes_-o_wide.txt": "k8s.table",
    "node/top_*": "k8s.table",
    "cluster-info_dump.json.gz": "k8s.objects",
    "cluster-info_dump_dir/nodes.json": "k8s.objects",
    "cluster-info_dump_dir/*/*.json": "k8s.objects",
}


def test_every_capture_is_recognised(captures: Path) -> None:
    """Patterns are tried in order, the last that fits decides."""
    folder = captures / "kubectl"
    wrong = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        fitting = [name for pattern, name in EXPECTED.items() if path.relative_to(folder).match(pattern)]
        if fitting:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found = identify(make_head(path.name, data[: 256 << 10], len(data) <= 256 << 10), FORMATS)
            if found is None or found.name != fitting[-1]:
                wrong.append((path.name, found.name if found else None))
    assert wrong == []
