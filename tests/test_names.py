"""What a file is called changes nothing: a pasted text gets the same cause as `paste.txt`, as notes and from a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics import analyze

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("paste.txt", "notes.txt", "slack.txt", "incident.md", "stdin")
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.49 GiB of "
    "which 1.25 GiB is free."
)
BLOCKS = (
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the engine."
)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


def logs() -> Iterator[Path]:
    """Samples that are a single text."""
    for case in sorted((ROOT / "samples").glob("*/case.toml")):
        others = [path for path in case.parent.iterdir() if path.name != "case.toml"]
        if len(others) == 1 and others[0].is_file() and others[0].suffix in (".log", ".txt", ".out", ".md"):
            yield others[0]


def causes(text: bytes, folder: Path) -> set[str]:
    found = set()
    for name in NAMES:
        (folder / name).write_bytes(text)
        found.add(str(analyze(folder / name).to_dict()["verdict"]["cause"]))
    return found


@pytest.mark.parametrize("path", list(logs()), ids=lambda path: path.parent.name)
def test_a_log_under_another_name(tmp_path: Path, path: Path) -> None:
    assert causes(path.read_bytes(), tmp_path) == {str(analyze(path).to_dict()["verdict"]["cause"])}


PASTED = {
    "process": (f"Maya\n  09:12\nthe new pod does not start, can you look?\n(EngineCore pid=311) {BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "rank": (f"it does not start since the update\n[rank0]: {BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "grep": (f"chat-7b.log:{BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "program": ("docker: Error response from daemon: OCI runtime create failed\nnvidia-container-cli: requirement error: "
                "unsatisfied condition: cuda>=12.9, please update your driver to a newer version, or use an earlier cuda "
                "container: unknown\n", "driver_mismatch"),
    "bullet with a time": (f"INC-4\n- 02:41:07 {OOM}\n- 02:41:30 pod restarted\n", "gpu_oom.runtime_load"),
    "numbered report": (f"1. start the server\n2. send ten requests\n3. {OOM}\n", "gpu_oom.runtime_load"),
    "bullets of a report": (f"- raised the utilization to 0.97\n- now: {OOM}\n", "gpu_oom.runtime_load"),
    "first person": (f"If I set it to 65536 I get\n{BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "a change before": (f"We bumped it to 0.19.1 (#77). Since then:\n{BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "settings above": (f"engine:\n  args:\n    - --max-model-len=8192\n\nand then it printed\n{BLOCKS}\n", "gpu_oom.kv_cache_startup"),
    "sample of an alert": ("[ALERT] error rate\nHost: gpu-7\nSample:   [2026-02-01 08:02:38] ERROR engine crashed: RuntimeError: "
                           "CUDA error: uncorrectable ECC error encountered\n", "gpu_hardware"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PASTED)
def test_a_pasted_error_under_another_name(tmp_path: Path, kind: str) -> None:
    text, cause = PASTED[kind]
    assert causes(text.encode(), tmp_path) == {cause}


TOLD = {
    "runbook": f"# Memory runbook\n\n## Symptoms\n\n```\n{OOM}\n```\n\n## Steps\n\n1. If it comes back, lower --max-num-seqs.\n",
    "what to do": f"# GPU box: what to do when a pod dies\n1. `kubectl describe pod`.\n2. On the node, example:\n   `{XID}`\n3. If the log has `{OOM}`, lower it.\n",
    "step": f"Step 3: if you see {OOM} lower the batch size.\n",
    "questions": f"FAQ\n\nQ: What does `{BLOCKS}` mean?\nA: No room for the KV cache.\n",
    "errors and advice": f"Common errors:\n\n{BLOCKS}\n  -> raise the utilization\n\n{XID}\n  -> drain the node\n",
    "table": f"| error | action |\n|---|---|\n| {OOM} | lower it |\n| {BLOCKS} | raise it |\n",
    "release notes": f"## [2.4.0] - 2026-03-01\n### Fixed\n- server: fix {OOM} in warm-up (#811)\n- no longer ignores `{BLOCKS}` (#812)\n",
    "a line of them": f"v1.4\n- Fixed: {OOM}\n- Improved docs\n",
    "commit": f"commit 99aa\nAuthor: A <a@b>\n\n    engine: avoid {OOM}\n",
    "comment": f"engine:\n  args:\n    - --gpu-memory-utilization=0.85   # 0.95 gave {OOM}\n    - --max-model-len=8192\n",
    "comment above": f"# was: {OOM}\nargs: [--gpu-memory-utilization=0.85]\n",
    "rules": f"groups:\n- name: gpu\n  rules:\n  - alert: Fallen\n    expr: increase(xid[5m]) > 0\n    annotations:\n      description: '{XID}'\n",
    "chinese": f"显存不足排障手册\n\n1. 如果日志中出现 {OOM}，请调低。\n2. 如果出现 Xid 79，请联系机房。\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", TOLD)
def test_what_may_happen_is_no_incident(tmp_path: Path, kind: str) -> None:
    assert causes(TOLD[kind].encode(), tmp_path) == {"insufficient_evidence"}
