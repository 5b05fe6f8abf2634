"""Exported chats and tickets: what was pasted into them is read, what people say is no evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle

DIED = "(APIServer pid=1) ERROR 11-18 02:41:07 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly."
KILLED = (
    "Nov 18 02:41:07 gpu-node-7 kernel: Memory cgroup out of memory: Killed process 4242 (VLLM::EngineCor) "
    "total-vm:90000000kB, anon-rss:50000000kB, file-rss:400000kB, shmem-rss:0kB, UID:0 pgtables:99000kB oom_score_adj:0"
)
STATE = """    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 18 Nov 2025 01:00:00 +0000
      Finished:     Tue, 18 Nov 2025 02:41:08 +0000"""


def fenced(text: str) -> str:
    return f"look:\n```\n{text}\n```"


SLACK = [
    {"type": "message", "user": "U1", "text": "I think that the GPU ran out of memory again: CUDA out of memory, as last week.", "ts": "1763433700.000100"},
    {"type": "message", "user": "U2", "text": fenced(DIED.replace('"', "&quot;")), "ts": "1763433800.000200"},
    {"type": "message", "user": "U2", "text": "", "ts": "1763433900.000200",
     "files": [{"name": "dmesg.txt", "preview": KILLED}]},
    {"type": "message", "user": "U2", "text": fenced(STATE), "ts": "1763434000.000200"},
]  # fmt: skip
TICKET = {
    "title": "engine vanishes", "author": {"login": "kim"}, "body": fenced(DIED),
    "comments": [{"author": {"login": "noor"}, "createdAt": "2025-11-18T03:00:00Z", "body": fenced(KILLED)},
                 {"author": {"login": "kim"}, "createdAt": "2025-11-18T03:05:00Z", "body": fenced(STATE)}],
}  # fmt: skip
TEAMS = {"value": [
    {"from": {"user": {"displayName": "Kim"}}, "createdDateTime": f"2025-11-18T03:0{n}:00Z",
     "body": {"contentType": "text", "content": text}}
    for n, text in enumerate((fenced(DIED), fenced(KILLED), fenced(STATE)))
]}  # fmt: skip


def read(folder: Path, document: object, name: str = "export.json") -> ReadSource:
    (folder / name).write_text(json.dumps(document, indent=1))
    (item,) = read_bundle(Bundle((str(folder / name),)), ())
    return item


CHATS = {"slack": SLACK, "newest-first": SLACK[::-1], "ticket": TICKET, "teams": TEAMS}


@pytest.mark.parametrize("document", CHATS.values(), ids=CHATS)
def test_what_was_pasted_into_messages_is_diagnosed(tmp_path: Path, document: object) -> None:
    item = read(tmp_path, document)
    assert item.source.format == "chat"
    (kill,) = (event for event in item.parsed.events if event.kind == "kernel_oom")
    lines = (tmp_path / "export.json").read_text().split("\n")
    assert "Killed process 4242" in lines[kill.locator.line - 1]
    verdict = pipeline.analyze(tmp_path / "export.json").to_dict()["verdict"]
    assert (verdict["cause"], verdict["confidence"]) == ("host_oom.container_limit", "established")


def test_what_people_say_is_no_evidence(tmp_path: Path) -> None:
    item = read(tmp_path, SLACK[:1])
    assert {event.channel for event in item.parsed.events if event.kind == "log"} == {"notes"}


def test_the_last_message_dates_lines_without_a_year(tmp_path: Path) -> None:
    item = read(tmp_path, SLACK)
    (capture,) = (event for event in item.parsed.events if event.kind == "capture")
    assert capture.stamps[0].seconds == pytest.approx(1763434000.0002)


@pytest.mark.parametrize("document", [
    {"model": "acme/chat", "user": "u-1", "messages": [{"role": "user", "content": "CUDA out of memory?"}]},
    [{"timestamp": "2025-11-18T02:41:07Z", "level": "ERROR", "user": "svc", "message": DIED}],
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"author": "a", "text": "b"}},
], ids=["request", "log", "object"])  # fmt: skip
def test_a_request_a_log_or_an_object_is_no_chat(tmp_path: Path, document: object) -> None:
    assert read(tmp_path, document).source.format != "chat"
