"""Records of the kernel's audit: a signal, its sender and its target."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline

CALL = (
    "type=SYSCALL msg=audit(1775120400.217:{serial}): arch={arch} syscall={call} success=yes exit=0 a0=bc55 a1={signal} a2=0"
    " a3=0 items=0 ppid=90112 pid=90117 auid=1042 uid=0 gid=0 euid=0 tty=pts2 ses=88 comm=\"{comm}\" exe=\"{exe}\" key=\"sig\""
)
TARGET = 'type=OBJ_PID msg=audit(1775120400.217:{serial}): opid=48213 oauid=1000 ouid=1000 oses=3 ocomm="{comm}"'
INTERPRETED = (
    "----\ntype=OBJ_PID msg=audit(04/02/2026 09:00:00.217:4711) : opid=48213 oauid=svc ouid=svc oses=3 ocomm=VLLM::EngineCor\n"
    "type=SYSCALL msg=audit(04/02/2026 09:00:00.217:4711) : arch=x86_64 syscall=kill success=yes exit=0 a0=0xbc55"
    " a1=SIGKILL a2=0x0 a3=0x0 items=0 ppid=90112 pid=90117 auid=ann uid=root tty=pts2 comm=kill exe=/usr/bin/kill key=sig\n"
)
ENGINE = (
    "(APIServer pid=48001) INFO 04-02 08:59:50 [loggers.py:257] Engine 000: Avg prompt throughput: 812.4 tokens/s, Avg "
    "generation throughput: 402.5 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 21.2%\n"
    "(APIServer pid=48001) ERROR 04-02 09:00:00 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, "
    "shutting down client.\n"
)


def call(
    arch: str = "c000003e", number: int = 62, signal: str = "9", exe: str = "/usr/bin/kill", target: str = "VLLM::EngineCor"
) -> str:
    head = CALL.format(serial=4711, arch=arch, call=number, signal=signal, comm=exe.rsplit("/", 1)[-1][:15], exe=exe)
    return f"{head}\n{TARGET.format(serial=4711, comm=target)}\n" if target else f"{head}\n"


def journal() -> str:
    """journald's own copy: no serial numbers, the journal's times."""
    lines = [line.partition(": ")[2] for line in call().splitlines()]
    return f"Apr 02 09:00:00 gpu-node-7 audit[90117]: SYSCALL {lines[0]}\nApr 02 09:00:00 gpu-node-7 audit: OBJ_PID {lines[1]}\n"


def read(folder: Path, text: str) -> pipeline.Reading:
    (folder / "engine.log").write_text(ENGINE, encoding="utf-8")
    (folder / "signals.txt").write_text(text, encoding="utf-8")
    return pipeline.read(folder)


@pytest.mark.parametrize(
    "text",
    [call(), call("c00000b7", 129), call(target=""), INTERPRETED, f"$ sudo ausearch -k sig --raw\n{call()}$ uptime\n"],
    ids=["raw", "aarch64", "without its target's record", "interpreted", "pasted below its command"],
)
def test_who_sent_it_to_whom(tmp_path: Path, text: str) -> None:
    reading = read(tmp_path, text)
    (sent,) = [f for f in reading.findings if f.signature == "host.audited_kill"]
    assert (sent.fields["victim_pid"], sent.fields["signal"]) == (48213, "SIGKILL")
    assert sent.fields.get("killer_auid") == 1042 or sent.fields.get("user") == "ann"
    assert sent.time.utc_s == 1775120400.217
    assert pipeline.judge(reading).diagnosis.verdict.cause.id == "external_sigkill"


def test_the_journal_keeps_them_too(tmp_path: Path) -> None:
    reading = read(tmp_path, journal())
    (sent,) = [f for f in reading.findings if f.signature == "host.audited_kill"]
    assert (sent.fields["victim_pid"], sent.fields["victim_comm"]) == (48213, "VLLM::EngineCor")
    assert pipeline.judge(reading).diagnosis.verdict.cause.id == "external_sigkill"


@pytest.mark.parametrize(
    "text",
    [
        call(target="jupyter-lab"),
        call(signal="a"),
        call(number=62).replace("success=yes", "success=no"),
        call(number=59),
        call(exe="/usr/bin/containerd-shim-runc-v2"),
        call(exe="/usr/bin/python3.12"),
    ],
    ids=["another program", "SIGUSR1", "it failed", "another call", "the runtime", "the engine itself"],
)
def test_what_ended_nothing_of_ours(tmp_path: Path, text: str) -> None:
    assert pipeline.judge(read(tmp_path, text)).diagnosis.verdict.cause.id == "insufficient_evidence"


@pytest.mark.parametrize("damaged", [call()[:180], call().replace("a0=bc55", "a0=zz").replace("opid=48213", "opid=")])
def test_a_damaged_record_is_no_exception(tmp_path: Path, damaged: str) -> None:
    assert not any(f.signature == "host.audited_kill" for f in read(tmp_path, damaged).findings)
