"""Texts that people put beside a log: drafts about an old incident, and talk of an error that the log shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline

DRAFT = """# Incident review: loss of node amber-3

**Date:** {date}

```
{xid}
{dead}
```
- 02:50 on-call paged
- 03:40 traffic moved, card replaced in the following week
"""
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=8121, name=VLLM::Worker_TP, GPU has fallen off the bus."
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
STATS = (
    "INFO {stamp} [loggers.py:257] Engine 000: Avg prompt throughput: 812.4 tokens/s, Avg generation throughput: 402.5 "
    "tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 21.2%, Prefix cache hit rate: 40.1%\n"
)


def draft(date: str, day: str, month: str) -> str:
    """A review of an incident on `date`; its lines bear the day without a year."""
    xid = f"{month} {day} 02:41:07 amber-3 kernel: {XID}"
    return DRAFT.format(date=date, xid=xid, dead=f"ERROR {date[5:]} 02:41:09 [async_llm.py:546] {DEAD}")


def at_work(date: str) -> str:
    return "".join(STATS.format(stamp=f"{date[5:]} 10:12:{second:02}") for second in range(8, 58, 10))


def cause_of(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return pipeline.analyze(folder).diagnosis.verdict.cause.id


def test_a_review_of_an_old_incident_beside_todays_log(tmp_path: Path) -> None:
    """Its lines are true, and half a year old; the engine works today."""
    written = draft("2026-02-11", "11", "Feb")
    assert cause_of(tmp_path, review__md=written, today__log=at_work("2026-08-19")) == "healthy"


def test_a_kill_in_a_review_of_an_old_incident_is_no_doubt(tmp_path: Path) -> None:
    """Nobody was killed today because somebody wrote down who was killed in February."""
    kill = (
        "Memory cgroup out of memory: Killed process 51377 (VLLM::EngineCor) total-vm:61213004kB, anon-rss:20104112kB, "
        "file-rss:80120kB, shmem-rss:0kB, UID:0 pgtables:48012kB oom_score_adj:0"
    )
    written = DRAFT.format(date="2026-02-11", xid=f"[Wed Feb 11 02:41:07 2026] {kill}", dead="")
    assert cause_of(tmp_path, review__md=written, today__log=at_work("2026-08-19")) == "healthy"
    assert cause_of(tmp_path, review__md=written, today__log=at_work("2026-02-12")) != "healthy"


@pytest.mark.parametrize(("today", "healthy"), [("2026-08-19", True), ("2026-02-12", False)])
def test_a_review_whose_lines_bear_no_day(tmp_path: Path, today: str, healthy: bool) -> None:
    """The days that it names are those of what it pastes; a status of then, which lies beside it, is a memory."""
    kill = "Memory cgroup out of memory: Killed process 51377 (VLLM::EngineCor) total-vm:61213004kB, anon-rss:20104112kB"
    written = DRAFT.format(date="2026-02-11", xid=f"[1204411.883990] {kill}, file-rss:80120kB, shmem-rss:0kB", dead="")
    status = (
        "Name:             chat-0\nNamespace:        llm\nContainers:\n  vllm:\n    State:          Waiting\n"
        "      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n      Reason:       OOMKilled\n"
        "      Exit Code:    137\n      Started:      Wed, 11 Feb 2026 02:31:18 +0100\n"
        "      Finished:     Wed, 11 Feb 2026 02:41:07 +0100\n    Ready:          False\n    Restart Count:  6\n"
    )
    log = "".join(f"{today}T10:12:59Z {line}" for line in at_work(today).splitlines(keepends=True))
    found = cause_of(tmp_path, review__md=written, then__txt=status, today__log=log)
    assert (found == "healthy") is healthy
    asks = written.replace("# Incident review: loss of node amber-3", "It died this morning. Upgraded lately.")
    assert cause_of(tmp_path, review__md=asks, then__txt=status, today__log=log) != "healthy"


@pytest.mark.parametrize(
    ("written", "log"),
    [
        (draft("2026-02-11", "11", "Feb"), ""),
        (draft("2026-08-18", "18", "Aug"), at_work("2026-08-19")),
        (draft("2026-02-11", "11", "Feb").replace("2026-", ""), at_work("2026-08-19")),
        (draft("2026-02-11", "11", "Feb"), "INFO 08-19 10:12:08 [importing.py:53] Triton module has been replaced\n"),
    ],
    ids=["no log", "yesterday", "no year", "no engine at work"],
)
def test_a_review_that_may_be_of_the_incident(tmp_path: Path, written: str, log: str) -> None:
    files = {"review__md": written} | ({"today__log": log} if log else {})
    assert cause_of(tmp_path, **files) == "gpu_hardware"


def test_a_review_with_evidence_of_its_day(tmp_path: Path) -> None:
    """The kernel's log of that day lies there, too: the bundle is about it."""
    written, kernel = draft("2026-02-11", "11", "Feb"), f"2026-02-11T02:41:07.120311+00:00 amber-3 kernel: {XID}\n"
    files = {"review__md": written, "today__log": at_work("2026-08-19"), "kern__log": kernel}
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    found = pipeline.analyze(tmp_path).diagnosis
    assert not any(f.quoted for f in found.findings if f.locator.source == "review.md")


ASKED = 'forum/homelab - "cudaMalloc failed: out of memory", but it works?\n\nChat is fine. Is my card dying, do you think?\n'
FAILED = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 2210.00 MiB on device 0: cudaMalloc failed: out of memory\n"
RETRIED = "llama_context: compute buffer allocation failed, retrying without pipeline parallelism\n"
SERVES = (
    "main: model loaded\nmain: server is listening on http://127.0.0.1:8081 - starting the main loop\n"
    "srv  update_slots: all slots are idle\nsrv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200\n"
)


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (FAILED + RETRIED + SERVES, "healthy"),
        (FAILED + "llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers\n",
         "gpu_oom.activation_peak"),
    ],
    ids=["a fallback serves", "it gave up"],
)  # fmt: skip
def test_talk_of_an_error_is_settled_by_the_log(tmp_path: Path, log: str, cause: str) -> None:
    """What became of the error that somebody names is told where the program printed it."""
    assert cause_of(tmp_path, post__txt=ASKED, server__log=log) == cause


def test_talk_of_an_error_that_no_log_shows(tmp_path: Path) -> None:
    """Then it is all that is known of it."""
    assert cause_of(tmp_path, post__txt=ASKED, server__log="main: loading model\n").startswith("gpu_oom")


CUT = """    return self._engine.start()
  File "/usr/lib/python3.12/site-packages/vllm/v1/engine/utils.py", line 790, in wait_for_engine_startup
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
OOM = (
    "ERROR 09-03 07:41:52 [core.py:586] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has "
    "a total capacity of 23.57 GiB of which 61.19 MiB is free. Including non-PyTorch memory, this process has 23.47 GiB "
    "memory in use. Of the allocated memory 23.16 GiB is allocated by PyTorch, and 14.20 MiB is reserved by PyTorch but "
    "unallocated.\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
)
KEPT = "# lab-4, 2025-09-03, another model, ended with the same words\n" + OOM


@pytest.mark.parametrize(
    "rest",
    [
        {"ticket__md": "Please look at h200-7, it is down since today (2026-03-12).\n", "console__txt": CUT},
        {"console__log": CUT, "today__log": "2026-03-12T08:00:01+00:00 h200-7 systemd[1]: Started vllm.service - vLLM.\n"},
        {"engine__log": "INFO 03-12 08:00:11 [gpu_model_runner.py:2602] Starting to load model acme/large...\n" + CUT},
    ],
    ids=["today in a ticket", "a year in a log", "days without a year, and the remark compares"],
)
def test_a_kept_log_of_another_day_is_no_evidence(tmp_path: Path, rest: dict[str, str]) -> None:
    """Somebody put it beside what is left of today's, because it looks alike."""
    assert cause_of(tmp_path, look__log=KEPT, **rest) == "insufficient_evidence"


@pytest.mark.parametrize(
    ("kept", "rest"),
    [
        (KEPT, {"ticket__md": "Please look at lab-4, it is down since today (2025-09-03).\n", "console__txt": CUT}),
        (KEPT, {"ticket__md": "Please look at lab-4. The card was bought on 2026-03-12.\n", "console__txt": CUT}),
        (KEPT, {"ticket__md": "Please look at lab-4, today (2026-03-12) I find the time to ask.\n"}),
        (KEPT.replace("2025-09-03, ", ""), {"ticket__md": "Today (2026-03-12) it is down.\n", "console__txt": CUT}),
        (KEPT.replace("09-03, ", "05-21, "), {"ticket__md": "Today (2026-03-12) it is down.\n", "console__txt": CUT}),
    ],
    ids=["of this day", "a day of something else", "nothing beside it", "no day", "its stamps are of another day"],
)
def test_a_log_below_a_remark_that_may_be_of_the_incident(tmp_path: Path, kept: str, rest: dict[str, str]) -> None:
    assert cause_of(tmp_path, look__log=kept, **rest).startswith("gpu_oom")


UNDATED = f"[ 4211.120311] {XID}\n[ 4230.000127] nvidia 0000:3b:00.0: enabling device\n"


@pytest.mark.parametrize(
    ("remark", "cause"),
    [
        ("# old dmesg of amber-5, from the outage in March", "healthy"),
        ("# last year it looked like this, kept to compare with", "healthy"),
        ("# last month we had the same on another machine", "healthy"),
        ("# the other machine of the pair, saved in August", "gpu_hardware"),
        ("# dmesg of amber-3, the driver is new since March", "gpu_hardware"),
        ("# dmesg of the other machine of the pair", "gpu_hardware"),
    ],
    ids=["a month", "last year", "last month", "this month", "not set apart", "no time"],
)
def test_an_undated_log_that_was_kept_from_another_time(tmp_path: Path, remark: str, cause: str) -> None:
    """The kernel's log has no day of its own; only the remark above it says that it is not of this incident."""
    assert cause_of(tmp_path, kernel__txt=f"{remark}\n{UNDATED}", today__log=at_work("2026-08-19")) == cause


def test_a_kept_log_alone_is_what_somebody_asks_about(tmp_path: Path) -> None:
    assert cause_of(tmp_path, kernel__txt=f"# old dmesg of amber-5, from the outage in March\n{UNDATED}") == "gpu_hardware"


RUNNING = "NAME        READY   STATUS    RESTARTS   AGE\nchat-vllm-0   1/1     Running   {}          9d\n"


@pytest.mark.parametrize(
    ("said", "beside", "cause"),
    [
        ("Pod chat-vllm-0 came back at night, Last State Terminated, Exit Code 1, log of --previous:\n\n", {}, "insufficient_evidence"),
        ("容器凌晨自己重启了，退出码 137，日志如下：\n\n", {}, "insufficient_evidence"),
        ("The rollout ended the old pod with exit code 143, log:\n\n", {}, "healthy"),
        ("Is this the same as #4711 (exit code 137)? Log:\n\n", {}, "healthy"),
        ("Monitoring shows exit code 1, log:\n\n", {"pods__txt": RUNNING.format(0)}, "healthy"),
        ("The chat server crashed this morning around 10:20, log of it:\n\n", {}, "insufficient_evidence"),
        ("Der Pod ist heute Nacht abgestürzt, Log anbei.\n\n", {}, "insufficient_evidence"),
        ("Has it crashed? Customers say so, here is the log:\n\n", {}, "healthy"),
        ("It never crashed so far, is the memory growing:\n\n", {}, "healthy"),
        ("The scanner found two \"engine crashed\" in this log:\n\n", {}, "healthy"),
        ("The old server exited with code 1 as expected, the new one:\n\n", {}, "healthy"),
        ("Last month it died of a full disk, today's log:\n\n", {}, "healthy"),
        ("", {}, "healthy"),
    ],
    ids=[
        "a code", "a code, in Chinese", "was asked to end", "another incident", "the status says that it runs",
        "no code", "in German", "asked", "denied", "quoted", "wanted", "another time", "nothing said",
    ],
)
def test_an_end_that_only_a_person_tells_of(tmp_path: Path, said: str, beside: dict[str, str], cause: str) -> None:
    """The log was cut before the end: that it shows none proves nothing."""
    log = at_work("2026-08-19").replace("INFO", "2026-08-19T10:12:58.120311Z INFO")
    assert cause_of(tmp_path, ticket__txt=said + log, **beside) == cause
    assert cause_of(tmp_path, ticket__txt=said, chat__log=log, **beside) == cause


def test_an_exit_code_in_a_prompt_is_nobodys_end(tmp_path: Path) -> None:
    prompt = "INFO 08-19 10:12:30 [logger.py:41] Received request cmpl-7: prompt: 'why does it stop with\nExit Code: 137 ?',"
    log = at_work("2026-08-19").splitlines()
    assert cause_of(tmp_path, chat__log="\n".join((*log[:2], prompt, *log[2:]))) == "healthy"
