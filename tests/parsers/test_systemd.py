"""systemd's lines and systemctl's documents: how units ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import sources
from forensics.model import Event, Parsed, StampForm
from forensics.parsers import FORMATS, systemd
from forensics.parsers.embedded import read_text

CID = "5d0c" * 16


def lines(*messages: str) -> list[Event]:
    text = "".join(f"Nov 29 21:37:54 gpu-node-7 systemd[1]: {message}\n" for message in messages)
    return list(read_text(text, "journal.txt", "plain").events)


def read(text: str, name: str = "status.txt") -> tuple[str, Parsed]:
    form = sources.identify(sources.make_head(name, text.encode(), True), FORMATS)
    assert form is not None
    assert form.read is not None
    return form.name, form.read(text, name)


@pytest.mark.parametrize(
    ("message", "unit", "fields"),
    [
        (
            "vllm.service: Main process exited, code=killed, status=9/KILL", "vllm.service",
            {"code": "killed", "status": 9, "status_name": "KILL", "process": "main"},
        ),
        (
            "vllm.service: main process exited, code=exited, status=1/FAILURE", "vllm.service",
            {"code": "exited", "status": 1, "status_name": "FAILURE", "process": "main"},
        ),
        (
            "vllm@a.service: Control process exited, code=dumped, status=11/SEGV", "vllm@a.service",
            {"code": "dumped", "status": 11, "status_name": "SEGV", "process": "control"},
        ),
        ("vllm.service: Main process exited, code=exited, status=143", "vllm.service",
         {"code": "exited", "status": 143, "process": "main"}),
    ],
)  # fmt: skip
def test_ends_of_processes(message: str, unit: str, fields: dict[str, object]) -> None:
    """Old and new wording; the status is a number, its name beside it."""
    (event,) = lines(message)
    assert (event.kind, event.channel, event.scope.unit, event.fields) == ("unit_exit", "systemd", unit, fields)
    assert (event.scope.host, event.scope.pid) == ("gpu-node-7", None)


@pytest.mark.parametrize(
    "message",
    [
        "vllm.service: Failed with result 'oom-kill'.", "Started vllm.service - vLLM.", "Stopping vllm.service...",
        "vllm.service: State 'stop-sigterm' timed out. Killing.", "Failed to start vllm.service.",
        "Unit vllm.service entered failed state.",
    ],
)  # fmt: skip
def test_other_lines_know_their_unit(message: str) -> None:
    """They stay plain events for the signatures."""
    (event,) = lines(message)
    assert (event.kind, event.text, event.scope.unit) == ("log", message, "vllm.service")


def test_scopes_of_containers() -> None:
    """With the systemd driver a container is a scope: a witness of its OOM kill without any kernel log."""
    (event,) = lines(f"cri-containerd-{CID}.scope: A process of this unit has been killed by the OOM killer.")
    assert (event.scope.container_id, event.scope.unit) == (CID, f"cri-containerd-{CID}.scope")
    (pod,) = lines(
        f"kubepods-burstable-pod{'1c2d3e4f_0a1b_4c2d_8e3f_5a6b7c8d9e0f'}.slice: Failed with result 'oom-kill'."
    )
    assert pod.scope.pod_uid == "1c2d3e4f-0a1b-4c2d-8e3f-5a6b7c8d9e0f"


def test_a_restart_that_systemd_counts() -> None:
    (event,) = lines("vllm.service: Scheduled restart job, restart counter is at 3.")
    assert (event.kind, event.fields["n_restarts"], event.scope.unit) == ("unit_restart", 3, "vllm.service")


def test_a_few_properties_asked_for_by_name() -> None:
    """`systemctl show -p NRestarts,Result`; settings of a shell with one such name are none."""
    form, _ = read("NRestarts=3\nResult=success\n", "show.txt")
    assert form == "systemd.show"
    form, _ = read("RESULT=ok\nResult=success\nPATH=/usr/bin\nHOME=/root\nUSER=x\n", "vars.txt")
    assert form != "systemd.show"


def test_lines_without_a_unit_are_left_alone() -> None:
    """Descriptions may stand in place of names."""
    (event,) = lines("Reached target Multi-User System.")
    assert event is systemd.refine(event)


STATUS = """\
× vllm.service - vLLM OpenAI-compatible server
     Loaded: loaded (/etc/systemd/system/vllm.service; static)
     Active: failed (Result: oom-kill) since Sun 2026-11-29 21:37:54 UTC; 4s ago
   Duration: 387ms
 Invocation: 43c5525ac0d4469e89f434eb19e459b3
    Process: 174 ExecStart=/opt/vllm/bin/vllm serve (code=killed, signal=KILL)
   Main PID: 174 (code=killed, signal=KILL)
   Mem peak: 128.5M
        CPU: 335ms

Nov 29 21:37:54 gpu-node-7 systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL
Nov 29 21:37:54 gpu-node-7 vllm[174]: ready
"""


def test_a_status_and_its_journal_tail() -> None:
    """The state with its time, the time of the call, and the tail as log lines."""
    form, parsed = read(STATUS)
    assert form == "systemd.status"
    state, capture, exited, line = parsed.events
    assert (state.kind, state.channel, state.scope.unit, state.locator.line) == (
        "unit_state",
        "systemd",
        "vllm.service",
        3,
    )
    assert state.text == "vllm.service: failed (Result: oom-kill)"
    assert state.fields == {
        "active": "failed", "result": "oom-kill", "exec_main_pid": 174, "exec_main_code": "killed", "exec_main_status": 9,
        "exec_main_status_name": "KILL", "memory_peak_bytes": round(128.5 * 2**20),
    }  # fmt: skip
    assert (state.stamps[0].form, state.stamps[0].seconds) == (StampForm.INSTANT, 1795988274.0)
    assert (capture.kind, capture.stamps[0].seconds, capture.stamps[0].resolution_s) == ("capture", 1795988278.0, 2)
    assert (exited.kind, exited.locator.line, line.locator.line) == ("unit_exit", 11, 12)
    assert parsed.scope.host == "gpu-node-7"


@pytest.mark.parametrize(
    ("line", "expected", "captured"),
    [
        ("active (running) since Mon 2026-11-30 05:38:04 CST; 5min ago", {"active": "active", "sub": "running"}, True),
        ("active (running) since Mon 2026-11-30 05:38:04 CST; 3h 5min ago", {"active": "active", "sub": "running"}, True),
        ("active (running) since Mon 2026-11-30 05:38:04 CST; 2 days ago", {"active": "active", "sub": "running"}, False),
        ("failed (Result: oom-kill) since Mon 2026-11-30 05:38:04 CST; 6min left", {"active": "failed", "result": "oom-kill"}, False),
        ("activating (auto-restart) (Result: oom-kill) since Mon 2026-11-30 05:38:04 CST; 1s ago",
         {"active": "activating", "sub": "auto-restart", "result": "oom-kill"}, True),
        ("inactive (dead)", {"active": "inactive", "sub": "dead"}, False),
    ],
)  # fmt: skip
def test_states(line: str, expected: dict[str, str], captured: bool) -> None:
    """A zone abbreviation decides nothing; a coarse or impossible age dates no capture."""
    text = f"● vllm.service - vLLM\n     Loaded: loaded (/x; static)\n     Active: {line}\n     Memory: 180.0K (max: 128.0M available: 127.8M)\n"
    state, *more = read(text)[1].events
    memory = {
        "memory_current_bytes": 184320,
        "memory_max_bytes": 128 << 20,
        "memory_available_bytes": round(127.8 * 2**20),
    }
    assert state.fields == expected | memory
    assert [(s.form, s.zone) for s in state.stamps] == ([(StampForm.LOCAL, "CST")] if "since" in line else [])
    assert [event.kind for event in more] == ["capture"] * captured


def test_several_units_and_other_output() -> None:
    """Colours, a unit without description, and the lines of other commands in one capture."""
    text = (
        "[user@gpu-node-7 ~]$ systemctl status vllm other\n\x1b[0;1;31m●\x1b[0m vllm.service\n     Loaded: loaded (/x)\n"
        "     Active: \x1b[0;1;31mfailed\x1b[0m (Result: signal)\n   Main PID: 7 (code=exited, status=203/EXEC)\n\n"
        f"● docker-{CID}.scope - libcontainer container\n   Loaded: loaded (/run/x; transient)\n   Active: active (running)\n"
        " Main PID: 187 (sleep)\n\n[   12.000001] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )
    events = read(text)[1].events
    states = [event for event in events if event.kind == "unit_state"]
    assert [(s.scope.unit[:6], s.fields.get("exec_main_status"), s.fields.get("main_pid")) for s in states] == [
        ("vllm.s", 203, None), ("docker", None, 187),
    ]  # fmt: skip
    assert states[1].scope.container_id == CID
    assert [event.kind for event in events if event.kind == "xid"] == ["xid"]


@pytest.mark.parametrize("zone", ["UTC", "CEST"])
def test_the_journal_below_a_status_is_in_its_zone(zone: str) -> None:
    """One call printed both; the lines themselves name no zone."""
    text = (
        "× vllm.service - inference\n     Loaded: loaded (/etc/vllm.service)\n"
        f"     Active: failed (Result: exit-code) since Wed 2026-06-03 05:58:40 {zone}; 41min ago\n\n"
        "Jun 03 05:58:40 gpu-node-7 vllm[2813]: no fabric\n"
    )
    (line,) = (event for event in read(text)[1].events if event.text == "no fabric")
    assert [(s.form, s.zone) for s in line.stamps] == [(StampForm.YEARLESS, zone)]


SHOW = """\
Type=simple
Restart=always
NRestarts=7
MainPID=0
Result=oom-kill
ExecMainStartTimestamp=Sun 2026-11-29 21:37:53 UTC
ExecMainExitTimestamp=Sun 2026-11-29 21:37:54 UTC
ExecMainPID=174
ExecMainCode=2
ExecMainStatus=9
ExecStart={ path=/opt/vllm ; argv[]=/opt/vllm serve --x=1 ; status=9 }
MemoryCurrent=[not set]
MemoryPeak=134217728
MemoryMax=infinity
Id=vllm.service
LoadState=loaded
ActiveState=failed
SubState=failed
"""


def test_show_has_what_status_has_not() -> None:
    """Restarts, and the times of the last run; what is not set is left out."""
    form, parsed = read(
        SHOW + "\n" + SHOW.replace("vllm.service", "other.service").replace("ExecMainCode=2", "ExecMainCode=0")
    )
    assert form == "systemd.show"
    state, spec, other, _ = parsed.events
    assert (spec.kind, spec.scope.unit, spec.locator.line) == ("pod_spec", "vllm.service", 11)
    assert spec.fields == {"command": ("/opt/vllm",), "args": ("serve", "--x=1"), "restart_policy": "always"}
    assert (state.kind, state.scope.unit, state.text) == (
        "unit_state",
        "vllm.service",
        "vllm.service: failed (Result: oom-kill)",
    )
    assert state.fields == {
        "active": "failed", "sub": "failed", "result": "oom-kill", "restart": "always", "n_restarts": 7, "main_pid": 0,
        "exec_main_pid": 174, "exec_main_code": "killed", "exec_main_status": 9, "memory_peak_bytes": 134217728,
        "exec_main_start_s": 1795988273.0, "exec_main_exit_s": 1795988274.0,
    }  # fmt: skip
    assert [stamp.seconds for stamp in state.stamps] == [1795988274.0]
    assert (other.scope.unit, "exec_main_status" in other.fields) == ("other.service", False)


@pytest.mark.parametrize(
    "text", ["● a.service\n  Loaded: ", "Id=\nResult=\nActiveState=\nSubState=\n", STATUS[:200], SHOW[:90]]
)
def test_cut_documents_do_not_raise(text: str) -> None:
    """Whatever is recognised is read."""
    form = sources.identify(sources.make_head("x", text.encode(), True), FORMATS)
    if form is not None and form.read is not None:
        form.read(text, "x")


@pytest.mark.parametrize("version", ["252", "257"])
def test_real_units(captures: Path, version: str) -> None:
    """Eleven ways a unit can end, as systemctl tells them."""
    folder = captures / "systemd" / version / "boot-1" / "systemctl"
    found = {}
    for path in sorted(folder.glob("status_*.txt")):
        if path.name in ("status_system.txt", "status_vllm_running.txt"):
            continue
        state = read(path.read_text(), path.name)[1].events[0]
        found[path.stem] = (state.fields["active"], state.fields.get("result"), state.fields.get("exec_main_status"))
    assert found == {
        "status_before": ("inactive", None, None), "status_dumped_segv": ("failed", "core-dump", 11),
        "status_exec_203": ("failed", "exit-code", 203), "status_exit1_start_limit": ("failed", "exit-code", 1),
        "status_main_process_oom_killed": ("failed", "oom-kill", 9), "status_oompolicy_continue": ("active", None, None),
        "status_oompolicy_kill": ("failed", "oom-kill", 9), "status_sigkill_from_outside": ("failed", "signal", 9),
        "status_start_timeout": ("failed", "timeout", 15), "status_stop_timeout": ("failed", "timeout", 9),
        "status_vllm_LANG_C": ("failed", "oom-kill", 15), "status_vllm_SYSTEMD_COLORS_1": ("failed", "oom-kill", 15),
        "status_vllm_TZ_Asia-Shanghai": ("failed", "oom-kill", 15),
        "status_vllm_after_first_kill": ("activating", "oom-kill", 15), "status_vllm_start_limit": ("failed", "oom-kill", 15),
        "status_watchdog": ("failed", "watchdog", 6),
    }  # fmt: skip
