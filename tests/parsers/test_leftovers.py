"""Files without a fact are known by kind; crashes, failed units and failed collectors are facts."""

from __future__ import annotations

import pytest

from forensics.model import StampForm
from forensics.parsers import FORMATS, coredumps, leftovers
from forensics.sources import identify, make_head

LIST = """TIME                        PID UID GID SIG     COREFILE EXE                   SIZE
Sun 2026-11-29 21:38:10 UTC 195 1000 1000 SIGSEGV present  /opt/vllm/bin/python3  8.2K
Sun 2026-11-29 22:38:10 CST 196 0 0 SIGBUS none  /opt/vllm/bin/python3  -
"""
INFO = """           PID: 217 (VLLM::EngineCor)
           UID: 1000 (vllm)
           GID: 1000 (vllm)
        Signal: 7 (BUS)
     Timestamp: Sun 2026-11-29 21:38:26 UTC (6min ago)
  Command Line: VLLM::EngineCore
    Executable: /opt/vllm/bin/python3
          Unit: vllm.service
      Hostname: gpu-node-7
       Message: Process 217 (VLLM::EngineCor) of user 1000 dumped core.

                Stack trace of thread 217:
                #0  0x00007f1 n/a (libc.so.6 + 0x1)

           PID: 300 (python3)
           UID: 0 (root)
        Signal: 11 (SEGV)
    Executable: /usr/bin/python3
"""
UNITS = """  UNIT                  LOAD   ACTIVE SUB    DESCRIPTION
● vllm.service          loaded failed failed vLLM
  dcgm.service          loaded active running DCGM exporter

LOAD   = Reflects whether the unit definition was properly loaded.
"""
SUMMARY = """============ Collectors summary =============
Suceeded (S), eXcluded (X), Failed (F)
=============================================
cluster-resources (S)      : 3,902ms
logs/llm (F)               : 811ms

Duration: 6,811ms
"""


def form_of(text: str, path: str = "x.txt") -> str:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    return form.name if form else ""


def test_coredumps() -> None:
    """One event a crash, in the words of the journal, with signal and time."""
    events = coredumps.read_list(LIST, "coredumps.txt").events
    assert [e.text for e in events] == ["Process 195 (python3) of user 1000 dumped core.", "Process 196 (python3) of user 0 dumped core."]
    assert [e.fields["signal_name"] for e in events] == ["SEGV", "BUS"]
    assert [e.stamps[0].form for e in events] == [StampForm.INSTANT, StampForm.LOCAL]
    first, second = coredumps.read_info(INFO, "info.txt").events
    assert (first.text, first.locator.line) == ("Process 217 (VLLM::EngineCor) of user 1000 dumped core.", 5)
    assert (first.scope.unit, first.scope.host, first.fields["signal"], first.fields["pid"]) == ("vllm.service", "gpu-node-7", 7, 217)
    assert (second.text, second.stamps) == ("Process 300 (python3) of user 0 dumped core.", ())
    assert (form_of(LIST), form_of(INFO)) == ("systemd.coredumps", "systemd.coredump")


def test_damaged_coredumps() -> None:
    """Cut and odd rows are left out, nothing raises."""
    assert coredumps.read_list(LIST[:140] + "\nSun 2026-13-45 99:99:99 UTC x\n", "x").events == ()
    assert coredumps.read_info("PID: x\nSignal: 7\n PID: 99999999999999999999 (y)\n", "x").events == ()


def test_failed_units() -> None:
    (event,) = leftovers.read_units(UNITS, "x").events
    assert (event.kind, event.scope.unit, event.fields) == ("unit_state", "vllm.service", {"active": "failed", "sub": "failed"})
    assert form_of(UNITS) == "systemd.units"


def test_collectors_that_failed() -> None:
    """What a bundle lacks; collectors that worked are no news."""
    (event,) = leftovers.read_summary(SUMMARY, "summary.txt").events
    assert (event.text, event.channel, event.locator.line) == ("collector logs/llm failed", "notes", 5)
    assert form_of(SUMMARY) == "collector.summary"


def test_errors_of_commands() -> None:
    """The output is missing; the words are kept, and are no message of an engine."""
    text = "dmesg: read kernel buffer failed: Operation not permitted\n"
    (event,) = leftovers.read_errors(text, "dmesg.txt").events
    assert (event.channel, event.text) == ("notes", text.strip())
    for one in (text, "bash: nvidia-smi: command not found\n", "No journal files were found.\n-- No entries --\n",
                "Error: No such container: vllm\n", "cat: /sys/fs/cgroup/memory.max: No such file or directory\n"):  # fmt: skip
        assert form_of(one) == "command.error"
    assert form_of('Error response from daemon: could not select device driver "" with capabilities: [[gpu]]\n') == "", (
        "a start that was refused is no missing output"
    )


@pytest.mark.parametrize(("path", "text", "form"), [
    ("version", "acme/must-gather\n4.18.22-1.p0\n", "versions"),
    ("pip.txt", "\n".join(f"package-{n}==1.{n}.0" for n in range(9)) + "\n", "versions"),
    ("etc/os-release", 'NAME="Debian"\nVERSION_ID="12"\n', "versions"),
    ("entrypoint", "#!/bin/sh\nset -e\nexec vllm serve acme/m\n", "code"),
    ("plugin/guard.py", "import torch\nraise RuntimeError('CUDA out of memory')\n", "code"),
    ("env.txt", "PATH=/bin\nHOME=/root\nVLLM_USE_V1=1\nHF_HOME=/models\nPYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n", "settings"),
    ("sysctl.conf", "# x\nvm.overcommit_memory = 1\nvm.panic_on_oom = 0\n", "settings"),
    ("cgls.txt", "Control group /:\n-.slice\n├─init.scope\n│ └─1 /init\n", "systemd.other"),
    # what only looks like one of these
    ("version.log", "2025-11-18T02:41:07Z vLLM version 0.11.0\n" * 3, "log"),
    ("error.txt", "ValueError: model type gpt_oss2 is not known\n", ""),
    ("run.sh.log", "INFO 11-18 02:41:07 [core.py:710] started\n" * 3, "log"),
    ("out.txt", "curl: (7) Failed to connect\nTraceback (most recent call last):\n", "output"),
    ("killed.txt", "Killed\n", "output"),
])  # fmt: skip
def test_kinds(path: str, text: str, form: str) -> None:
    assert form_of(text, path) == form
