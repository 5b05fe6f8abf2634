"""Words that sound like a crash and are none: every false friend that has cost somebody hours.

Each line may be seen by a signature, but by none that claims a fault.
"""

from __future__ import annotations

import pytest

from forensics.model import Event, Locator, Role
from forensics.parsers.records import unwrap
from forensics.pipeline import load_library
from forensics.signatures import Matcher

LIBRARY = load_library()
MATCHER = Matcher(LIBRARY)

ENGINE = "WARNING 11-02 06:00:00 [a.py:1] "
KERNEL = "[   39.447599] "
LINES = {
    "long-context": ENGINE + "The model has a long context length (131072). This may causeOOM during memory profiling.",
    "running-out": ENGINE + "If you are running out of memory, consider decreasing gpu_memory_utilization or max_num_seqs.",
    "graph-hint": ENGINE + "If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization`.",
    "autotuner": ENGINE + "First inference may OOM due to autotuner",
    "kill-on-oom-flag": ENGINE + "args: Namespace(kill_on_oom=False, model='/models/a')",
    "oom-file": ENGINE + "wrote the report to /var/tmp/oom/oom-kill.txt",
    "dummy-weights": ENGINE + "0 out of memory pages moved, 12 rooms free",
    "ray-boilerplate": (
        "[2026-11-02 06:00:00,123 E 812 812] (raylet) worker_pool.cc:1: A worker exited. Some common causes include: "
        "(1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called."
    ),
    "ray-raylet-note": "[2026-11-02 06:00:00,123 W 812 812] (gcs_server) a.cc:1: the raylet crashes unexpectedly (OOM, etc.)",
    "oom-score": KERNEL + "python3 (4242): /proc/4242/oom_adj is deprecated, please use /proc/4242/oom_score_adj instead.",
    "oom-enabled": KERNEL + "OOM killer enabled.",
    "oom-disabled": KERNEL + "OOM killer disabled.",
    "kernel-xid-database": KERNEL + "postgres: transaction Xid 79 has wrapped",
    "kernel-userspace-text": KERNEL + "vllm[12]: prompt says: Out of disk quota, Zoom room",
    "xid-recovery": KERNEL + "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "xid-row-remap": KERNEL + "NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
    "oomd-unit": "Nov 02 06:00:00 gpu-node-7 systemd[1]: Started systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer.",
    "oom-kill-service": "Nov 02 06:00:00 gpu-node-7 systemd[1]: Started oom-kill.service - nightly test of the alert.",
    "oom-policy": "Nov 02 06:00:00 gpu-node-7 systemd[1]: vllm.service: OOMPolicy=kill, OOMScoreAdjust=-500",
    "postgres-xid": "Nov 02 06:00:00 gpu-node-7 postgres[9]: LOG: oldest xid 79 in database 1, Xid (PCI) is not ours",
    "forged-kernel-line": "Nov 02 06:00:00 gpu-node-7 my-app[9]: Memory cgroup out of memory: Killed process 1 (x) total-vm:1kB, anon-rss:1kB",
    "containerd-config": 'time="2026-11-02T06:00:00.1Z" level=info msg="runc spec: oomScoreAdj=997 disableOOMKiller=false"',
    "kubelet-flag": 'I1102 06:00:00.123456    1184 flags.go:64] "FLAG: --oom-score-adj=\\"-999\\""',
    "shim-gone": 'time="2026-11-02T06:00:00.1Z" level=info msg="shim disconnected" id=9b1f5d3c7e8a namespace=k8s.io',
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_not_taken_for_a_fault(name: str) -> None:
    """No cause fires, whatever the words."""
    record = unwrap(LINES[name])
    event = Event(Locator("x.log", 1, 1), "log", record.channel or "engine", record.text, level=record.level)
    assert record.envelopes, "the line needs a header that says who speaks"
    claims = [hit.signature.id for hit in MATCHER.hits(event) if hit.signature.role is Role.CAUSE and not hit.quoted]
    assert claims == []


@pytest.mark.parametrize(
    ("text", "must", "must_not"),
    [
        ("python3: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
         "kernel.page_allocation_failure", ("kernel.oom_kill_node", "kernel.oom_invoked")),
        ("Killed process 7310 (python3) total-vm:9120044kB, anon-rss:8291820kB, file-rss:1204kB, shmem-rss:0kB",
         "kernel.oom_kill_unscoped", ("kernel.oom_kill_memcg", "kernel.oom_kill_node")),
        ("Memory cgroup out of memory: OOM victim 48213 (VLLM::EngineCor) is already exiting. Skip killing the task",
         "kernel.oom_already_exiting", ("kernel.oom_kill_memcg",)),
    ],
    ids=["page-allocation", "kill-of-unknown-scope", "already-exiting"],
)  # fmt: skip
def test_near_relatives_are_told_apart(text: str, must: str, must_not: tuple[str, ...]) -> None:
    """Messages of one family mean different things."""
    event = Event(Locator("dmesg.txt", 1, 1), "log", "kernel", text)
    fired = {hit.signature.id for hit in MATCHER.hits(event)}
    assert must in fired
    assert not fired & set(must_not)


def test_user_text_is_no_evidence() -> None:
    """A prompt with the most convincing crash in it."""
    crash = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    for text in (f"Received request c-1: prompt: '{crash}', params: SamplingParams(n=1)", f'{{"content": "{crash}"}}'):
        event = Event(Locator("x.log", 1, 1), "log", "engine", text, level="ERROR")
        assert all(hit.quoted for hit in MATCHER.hits(event) if hit.signature.role is Role.CAUSE)
