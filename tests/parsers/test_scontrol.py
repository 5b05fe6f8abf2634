"""Records of Slurm's controller."""

from __future__ import annotations

from forensics.parsers import scontrol
from forensics.sources import make_head

JOB = """\
JobId=40122 JobName=chat-srv
   UserId=ada(1042) GroupId=ml(1042) MCS_label=N/A
   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)
"""
NODE = """\
NodeName=gpu-node-7 Arch=x86_64 CoresPerSocket=32
   State=DOWN+NOT_RESPONDING ThreadsPerCore=1
"""


def test_lines_belong_to_their_record() -> None:
    """The state of a job is some lines below its number."""
    events = scontrol.read(JOB + "\n" + NODE, "scontrol.txt").events
    assert [(e.locator.line, e.fields) for e in events] == [
        (1, {"job": "40122"}), (2, {"job": "40122"}), (3, {"job": "40122"}),
        (5, {"node": "gpu-node-7"}), (6, {"node": "gpu-node-7"}),
    ]  # fmt: skip
    assert events[2].text == "JobState=NODE_FAIL Reason=NodeDown Dependency=(null)"
    assert {(e.kind, e.channel) for e in events} == {("log", "host")}


def test_other_text_ends_a_record() -> None:
    assert len(scontrol.read(JOB + "my note\n   Key=value\n", "x").events) == 3


def test_recognised() -> None:
    for text in (JOB, NODE):
        assert scontrol.sniff(make_head("x", text.encode(), True)) >= 90
    assert scontrol.sniff(make_head("x", b"Killing JobId=40122 on failed node gpu-node-7\n", True)) == 0


def test_limits_of_a_job() -> None:
    text = JOB + "   RunTime=12:00:12 TimeLimit=12:00:00 TimeMin=N/A\n   TRES=cpu=16,mem=128G,node=1\n"
    told = {"job": "40122", "time_limit_s": 43200, "requested_memory_kib": 128 << 20}
    assert [event.fields for event in scontrol.read(text, "x").events] == [told] * 5
    assert "time_limit_s" not in scontrol.read(JOB + "   TimeLimit=UNLIMITED\n", "x").events[0].fields
