"""Rows of Slurm's accounting."""

from __future__ import annotations

from forensics.parsers import sacct
from forensics.sources import make_head

TABLE = """\
JobID           JobName      State ExitCode     MaxRSS
------------ ---------- ---------- -------- ----------
40122              vllm OUT_OF_ME+    0:125
40122.batch       batch OUT_OF_ME+    0:125  268112340K
40122.0            vllm  COMPLETED      0:0
a note of mine
"""


def test_rows() -> None:
    """A row is one message; rules, headers and other text are none."""
    events = sacct.read(TABLE, "sacct.txt").events
    assert [e.locator.line for e in events] == [3, 4, 5]
    assert events[0].text == "40122              vllm OUT_OF_ME+    0:125"
    assert {(e.kind, e.channel) for e in events} == {("log", "host")}


def test_parsable() -> None:
    text = "JobIDRaw|JobName|State|ExitCode\n40122_3|vllm|TIMEOUT|0:0\n"
    assert [e.text for e in sacct.read(text, "x").events] == ["40122_3|vllm|TIMEOUT|0:0"]


def test_recognised_by_its_header() -> None:
    """Below a prompt too, and not by the words alone."""
    assert sacct.sniff(make_head("x", b"$ sacct -j 40122\n" + TABLE.encode(), True)) >= 90
    assert sacct.sniff(make_head("x", b"The JobID is 40122.\nState of things: good\n", True)) == 0


def test_damaged() -> None:
    """A table cut in the middle of a row keeps its rows; no header, no rows."""
    assert len(sacct.read(TABLE[:190], "x").events) == 2
    assert sacct.read(TABLE.split("\n", 1)[1], "x").events == ()


def test_rows_name_their_job() -> None:
    """A step and its job are one job; a task of an array is its own."""
    text = "JobID|State|ExitCode\n40122_3.batch|FAILED|1:0\n40123+0|FAILED|1:0\n"
    assert [e.fields["job"] for e in sacct.read(text, "x").events] == ["40122_3", "40123"]


def test_memory_of_a_job() -> None:
    """What was asked for stands in the job's row, what was used in a step's: both are told of the job."""
    table = """\
JobID           State     ReqMem     MaxRSS   Timelimit
------------ ---------- ---------- ---------- ----------
40122        OUT_OF_ME+        96G            1-06:00:00
40122.batch  OUT_OF_ME+            100588412K
"""
    events = sacct.read(table, "x").events
    told = {"job": "40122", "requested_memory_kib": 100663296, "max_rss_kib": 100588412, "time_limit_s": 108000}
    assert [event.fields for event in events] == [told, told]
    parsable = sacct.read("JobID|State|ReqMem|MaxRSS\n7|OUT_OF_MEMORY|4Gc|\n7.0|OUT_OF_MEMORY||12G\n", "x").events
    assert parsable[0].fields == {"job": "7", "max_rss_kib": 12 << 20}


def test_memory_of_a_job_without_a_rule() -> None:
    """Pasted without the rule of dashes, a cell is of the column whose name it stands below; empty cells move none."""
    table = """\
JobID           JobName      State ExitCode     ReqMem     MaxRSS
40122              vllm OUT_OF_ME+    0:125        96G
40122.0            vllm OUT_OF_ME+    0:125            100588412K
"""
    told = {"job": "40122", "requested_memory_kib": 100663296, "max_rss_kib": 100588412}
    assert [event.fields for event in sacct.read(table, "x").events] == [told, told]


def test_a_table_that_is_a_blank_off() -> None:
    """A word is of the column that it shares most with; a state of two words stays one cell."""
    table = """\
JobID               State    Elapsed     MaxRSS
------------ ------------ ---------- ----------
40122         CANCELLED by 1007   01:00:20
40122.0        CANCELLED   01:00:21  100588412K
"""
    told = {"job": "40122", "elapsed_s": 3621, "max_rss_kib": 100588412}
    assert [event.fields for event in sacct.read(table, "x").events] == [told, told]


def test_a_rule_that_is_out_of_line() -> None:
    """Somebody widened a column and left the rule as it was: cells still end where their names end."""
    table = """\
JobID             JobName        State     MaxRSS     ReqMem
------------ ---------- ---------- ---------- ----------
40122          vllm-serve    PREEMPTED                  256G
40122.0              vllm    CANCELLED  88120220K
"""
    (job, step) = sacct.read(table, "x").events
    assert job.fields == step.fields == {"job": "40122", "requested_memory_kib": 256 << 20, "max_rss_kib": 88120220}
