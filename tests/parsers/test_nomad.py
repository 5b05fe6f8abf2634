"""`nomad alloc status` as text."""

from __future__ import annotations

from forensics.parsers import nomad
from forensics.sources import make_head

STATUS = """\
ID                  = 1b9d4c7e-0a5f-4e4b-9d0e-5f6a7b8c9d0e
Eval ID             = 0a1b2c3d
Name                = chat.serve[0]
Client Status       = failed

Task "serve" is "dead"
Task Resources:
CPU          Memory          Disk     Addresses
0/16000 MHz  0 B/24 GiB      300 MiB
Device Stats
nvidia/gpu/NVIDIA L40S[GPU-5c1f]  431 / 46068 MiB

Task Events:
Started At     = 2026-08-30T21:12:09Z
Total Restarts = 3

Recent Events:
Time                       Type            Description
2026-08-31T00:14:55+03:00  Not Restarting  Exceeded allowed attempts 3 in interval 30m0s and mode is "fail"
2026-08-31T00:14:55+03:00  Terminated      Exit Code: 137, Exit Message: "OOM Killed"
"""


def test_limit_restarts_and_rows() -> None:
    spec, state, _, ended = nomad.read(STATUS, "x").events
    assert spec.fields["memory_limit_bytes"] == 24 << 30
    assert state.fields == {"state": "dead", "restart_count": 3}
    assert (ended.text, ended.locator.line) == ('Terminated: Exit Code: 137, Exit Message: "OOM Killed"', 20)
    assert ended.stamps[0].seconds == 1788124495.0
    assert {event.scope.container for event in (spec, state, ended)} == {"serve"}


def test_what_was_wanted() -> None:
    """Why the allocation is to stop: a drain, an update."""
    wanted = STATUS.replace("Client Status ", "Desired Description = alloc is being migrated\nClient Status ")
    assert "Desired Description: alloc is being migrated" in {event.text for event in nomad.read(wanted, "x").events}
    nothing = STATUS.replace("Client Status ", "Desired Description = <none>\nClient Status ")
    assert not any("Desired" in event.text for event in nomad.read(nothing, "x").events)


def test_a_start_and_a_restart_for_a_health_check() -> None:
    rows = """\
2026-08-31T00:11:40+03:00  Restart Signaled  healthcheck: check "chat-alive" unhealthy
2026-08-31T00:09:40+03:00  Started           Task started by client
"""
    told, started = nomad.read(STATUS.replace("Type            ", "Type              ") + rows, "x").events[-2:]
    assert told.text == 'Restart Signaled: healthcheck: check "chat-alive" unhealthy'
    assert (started.kind, started.text, started.locator.line) == ("container_started", "container serve started", 22)
    assert told.stamps[0].seconds - started.stamps[0].seconds == 120.0


def test_recognised_and_damaged() -> None:
    assert nomad.FORMAT.sniff(make_head("x", STATUS.encode(), True)) > 90
    assert nomad.FORMAT.sniff(make_head("x", b'ID = 1\nTask "serve" is "dead"\n', True)) == 0
    assert nomad.read(STATUS[:300], "x").events[0].kind == "pod_spec"
    assert nomad.read("", "x").events == ()


def test_what_stands_behind_it_is_read() -> None:
    events = nomad.read(f"{STATUS}\nValueError: No available memory for the cache blocks.\n", "x").events
    assert (events[-1].locator.line, events[-1].text) == (22, "ValueError: No available memory for the cache blocks.")
