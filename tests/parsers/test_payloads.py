"""What alerts, tickets and error trackers carry as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import analyze
from forensics.parsers import payloads

BLOCKS = (
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the engine."
)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
FRAME = {"filename": "vllm/v1/core/sched/scheduler.py", "function": "_free", "lineno": 7, "context_line": "  del self.x[i]"}
EVIDENCE: dict[str, tuple[object, str]] = {
    "PagerDuty": ({"event": {"data": {"title": "Pod killed", "body": {"details": {
        "reason": "Killing", "message": "Container chat failed liveness probe, will be restarted"}}}}}, "probe_kill"),
    "Opsgenie": ({"alert": {"message": "GPU node down", "description": f"kernel: {XID}"}}, "gpu_hardware"),
    "Alertmanager": ({"alerts": [{"status": "firing", "labels": {"alertname": "PodEnded", "reason": "OOMKilled"}}],
                      "commonAnnotations": {"summary": "a pod of the chat ended"}}, "host_oom.container_limit"),
    "state": ([{"name": "chat", "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}], "host_oom.container_limit"),
    "ticket": ({"title": "crash", "body": f"It crashes\n```\n{BLOCKS}\n```\n"}, "gpu_oom.kv_cache_startup"),
    "message only": ({"message": BLOCKS}, "gpu_oom.kv_cache_startup"),
    "strings": ([BLOCKS], "gpu_oom.kv_cache_startup"),
    "Sentry": ({"exception": {"values": [{"type": "KeyError", "value": "'r-1'", "stacktrace": {"frames": [FRAME]}}]},
                "timestamp": "2026-02-03T04:05:06Z", "logentry": {"message": "EngineCore encountered a fatal error."}}, "app_bug"),
}  # fmt: skip
NONE: dict[str, object] = {
    "request": {"model": "m", "messages": [{"role": "user", "content": f"why {BLOCKS}?"}]},
    "answer": {"object": "text_completion", "output": [{"text": f"{BLOCKS} means that"}]},
    "data set": [{"instruction": f"Explain {BLOCKS}", "output": f"{BLOCKS} means that"}],
    "rules": {"rules": [{"alert": "X", "expr": "up == 0", "annotations": {"description": XID}}]},
    "dashboard": {"panels": [{"title": "errors", "targets": [{"expr": f'{{app="x"}} |= "{XID}"'}]}]},
    "talk": {"alerts": [{"annotations": {"description": "Pod waits (CrashLoopBackOff). Check whether it was OOMKilled."}}]},
}


def verdict(folder: Path, document: object) -> str:
    (folder / "x.json").write_text(json.dumps(document, indent=1))
    return str(analyze(folder / "x.json").to_dict()["verdict"]["cause"])


@pytest.mark.parametrize("kind", EVIDENCE)
def test_what_is_quoted_is_evidence(tmp_path: Path, kind: str) -> None:
    document, cause = EVIDENCE[kind]
    assert verdict(tmp_path, document) == cause


@pytest.mark.parametrize("kind", NONE)
def test_what_is_asked_or_looked_for_is_none(tmp_path: Path, kind: str) -> None:
    assert verdict(tmp_path, NONE[kind]) == "insufficient_evidence"


def test_a_text_stands_where_its_key_does() -> None:
    found = payloads.read(json.dumps({"a": {"note": "one two three four\nfive"}, "reason": "OOMKilled"}, indent=1))
    lines = [(found.line(row), line) for row, line in enumerate(found.text.split("\n"), 1)]
    assert lines == [
        (5, "Last State:     Terminated"), (5, "  Reason:       OOMKilled"), (5, ""), (3, "one two three four"), (3, "five"),
    ]  # fmt: skip
