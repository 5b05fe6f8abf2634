"""Whose a file is, as its path tells; and which format wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from forensics.bundle import Bundle
from forensics.parsers import FORMATS
from forensics.sources import Format, Head, identify, make_head, mostly, owner

UID = "7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"
CID = "9b1f" * 16
POD = "vllm-llama-6d5b9c7f4b-x2kqp"

PATHS = {
    f"var/log/pods/inference_vllm-0_{UID}/vllm/2.log": {
        "namespace": "inference", "pod": "vllm-0", "pod_uid": UID, "container": "vllm"},
    f"var/log/pods/inference_vllm-0_{UID}/vllm/2.log.20261129-101010.gz!": {
        "namespace": "inference", "pod": "vllm-0", "pod_uid": UID, "container": "vllm"},
    f"containers/vllm-0_inference_vllm-{CID}.log": {
        "namespace": "inference", "pod": "vllm-0", "container": "vllm", "container_id": CID},
    "support-bundle-2026-11-29T10_00_00/cluster-resources/pods/logs/inference/vllm-0/vllm-previous.log": {
        "namespace": "inference", "pod": "vllm-0", "container": "vllm"},
    "support-bundle-2026-11-29T10_00_00/cluster-resources/pods/inference.json": {"namespace": "inference"},
    f"support-bundle-2026-11-29T10_00_00/logs/{POD}/vllm-previous.log": {"pod": POD, "container": "vllm"},
    f"must-gather.local.1/x-sha256-{CID}/namespaces/inference/pods/vllm-0/vllm/vllm/logs/current.log": {
        "namespace": "inference", "pod": "vllm-0", "container": "vllm"},
    f"must-gather.local.1/x-sha256-{CID}/namespaces/inference/core/events.yaml": {"namespace": "inference"},
    f"must-gather.local.1/quay-io-x-sha256-{CID}/version": {},
    f"dump/inference/{POD}/logs.txt": {"namespace": "inference", "pod": POD},
    "sosreport-gpu-node-7-2026-11-29-abcdefg/sos_commands/kernel/dmesg": {"host": "gpu-node-7"},
    "sosreport-gpu-node-7-03456789-2026-11-29-abcdefg/sos_commands/kernel/dmesg": {"host": "gpu-node-7"},
    "sosreport-gpu-node-7-CS0045671-2026-11-29-abcdefg/sos_commands/kernel/dmesg": {"host": "gpu-node-7"},
    f"sosreport-n1-2026-11-29-abcdefg/sos_commands/docker/containers/docker_logs_-t_{CID}": {
        "host": "n1", "container_id": CID},
    "sosreport-n1-2026-11-29-abcdefg/sos_commands/kubernetes/cluster-info/inference/podlogs/vllm-0/"
    "kubectl_--kubeconfig__etc_x_-n_inference_logs_vllm-0_-c_vllm": {
        "host": "n1", "namespace": "inference", "pod": "vllm-0", "container": "vllm"},
    "gpu-node-7-2026-11-29_10_11_12/journald/kubelet": {"host": "gpu-node-7"},
    "gpu-node-7-2026-11-29_10_11_12/rke2/podlogs/kube-system-coredns-abc-previous": {
        "host": "gpu-node-7", "namespace": "kube-system", "pod": "coredns-abc"},
    f"runai-logs-29-11-2026_10-11/logs/{POD}_vllm.log": {"pod": POD, "container": "vllm"},
    f"pods/{POD}/describe.txt": {"pod": POD},
    f"pods/{POD}/previous.log": {"pod": POD},
    f"ml/{POD}/2026-11-29.log": {"pod": POD},
    "nodes/gpu-node-7/dmesg.txt": {"host": "gpu-node-7"},
    f"var/lib/docker/containers/{CID}/{CID}-json.log": {"container_id": CID},
    "kubectl/fluent-bit-x2k4p-describe.txt": {"pod": "fluent-bit-x2k4p"},
    "describe_pod_fluent-bit-x2k4p.txt": {"pod": "fluent-bit-x2k4p"},
    # names that only look like one of these
    "gpu-nodes-describe.txt": {},
    "incident-2026-11-29_10_11_12/logs/vllm.log": {},
    "incident-20251118-gpu07/engine.log": {},
    "host_service_logs/masters/kubelet_service.log": {},
    "logs/vllm_previous.log": {},
    "run-0/engine.log": {},
    f"images/vllm@sha256:{CID}/history.txt": {},
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_owner(path: str) -> None:
    assert owner(path).to_dict() == PATHS[path]


def _fixed(name: str, score: int) -> Format:
    sniff: Callable[[Head], int] = lambda head: score  # noqa: E731
    return Format(name, name, sniff)


def test_the_surest_format_wins_and_ties_go_to_the_first() -> None:
    head = make_head("x", b"text", True)
    found = identify(head, (_fixed("a", 0), _fixed("b", 50), _fixed("c", 60), _fixed("d", 60)))
    assert found is not None
    assert found.name == "c"
    assert identify(head, (_fixed("a", 0),)) is None


def test_one_id_means_one_format() -> None:
    """The table of sources, `mixed` and reports name a format by its id; a format may be known in two ways (notes)."""
    assert len({form.name for form in FORMATS}) == len({(form.name, form.title) for form in FORMATS})


def test_a_format_is_asked_where_some_line_begins_like_it() -> None:
    """Blanks do not count; a colour in front of a line may hide how it begins."""
    form = Format("json", "json", lambda head: 90, begins=r"\[{")
    for text, found in ((b"text\n  {", form), (b"2026 [x]\n", None), (b"\x1b[1mx\x1b[0m", form), (b"\n \n", form)):
        assert identify(make_head("x", text, True), (form,)) is found


BUNDLES = sorted((Path(__file__).parent.parent / "samples").glob("*/bundle"))


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.parent.name)
def test_no_format_is_left_out_by_how_lines_begin(bundle: Path) -> None:
    """What a format recognises begins, and is as sure, as the format says, also where only a part of a file is there."""
    anywhere = tuple(replace(form, begins="", most=100) for form in FORMATS)
    for member in Bundle((str(bundle),)).members():
        lines = b"".join(member.blocks()).split(b"\n")[:200]
        for first in range(0, len(lines), 1 + len(lines) // 5):
            head = make_head(member.path, b"\n".join(lines[first : first + 40]), True)
            one, other = identify(head, FORMATS), identify(head, anywhere)
            assert (one and one.name) == (other and other.name)


@pytest.mark.parametrize("passing", range(6))
def test_mostly(passing: int) -> None:
    """The same as counting, with fewer questions."""
    lines = ["yes"] * passing + ["no"] * (5 - passing)
    assert mostly("yes".__eq__, lines, 0.6) == (passing >= 0.6 * len(lines))
    assert mostly("yes".__eq__, lines[::-1], 0.6) == (passing >= 0.6 * len(lines))


def test_head_drops_a_torn_line() -> None:
    """The last line of a head is torn unless the member ends there; CR and byte order mark are no text."""
    assert make_head("x", b"\xef\xbb\xbfone\r\ntwo", False).lines == ("one",)
    assert make_head("x", b"one\r\ntwo", True).lines == ("one", "two")
