"""Ray: kills of the memory monitor, ends of workers, status; and earlyoom's figures."""

from __future__ import annotations

from forensics.model import StampForm
from forensics.parsers import FORMATS, earlyoom, ray
from forensics.parsers.embedded import read_text
from forensics.scan import scan
from forensics.sources import identify, make_head

NODE = "5f3ee84b07c26d19a8f4c1570be92d63aa10c7f85b9e4d2036ac71fe"
KILL = f"""[2026-11-29 21:25:17,361 I 118 118] (raylet) node_manager.cc:3199: Killing 1 worker(s), kill \
details: Memory on the node (IP: 10.0.9.32, ID: {NODE}) was 380.21GB used / 400.00GB limit (0.950532)
OOM kill reason: Memory usage 408250195968B exceeded threshold of 408021893120B (95.0% of 429496729600B limit)
Object store memory usage: [- objects spillable: 0
- bytes spillable: 0
Ray killed 1 worker(s) based on the killing policy
Considered workers: [
Selected to kill: (Actor(d3b0): job ID=0d00, lease ID=d7b2, task name=RayWorkerProc.__init__, required \
resources={{GPU: 1}}, pid=30718, actual memory used=61.92GB, worker ID={NODE})
]
Top 10 memory users: PID\tMEM(GB)\tCOMMAND
41877\t301.44\tpython3 /opt/ingest/loader.py --shards 512
30718\t61.92\tray::RayWorkerProc.run
 suggestions: Refer to the documentation on how to address the out of memory issue
[2026-11-29 21:25:17,400 I 118 118] (raylet) node_manager.cc:1477: Disconnecting worker, graceful=false
"""


def test_a_kill_is_one_event() -> None:
    """Reason, victim and the largest processes stand together."""
    events = [event for event in read_text(KILL, "raylet.out", "ray").events if "Killing" in event.text]
    (kill,) = events
    assert (kill.locator.line, kill.locator.line_end) == (1, 11)
    assert kill.channel == "ray"
    assert "exceeded threshold" in kill.text
    assert "Selected to kill" in kill.text
    assert "spillable" not in kill.text
    assert kill.fields["top_memory_users"] == (
        {"pid": 41877, "memory_gib": 301.44, "command": "python3 /opt/ingest/loader.py --shards 512"},
        {"pid": 30718, "memory_gib": 61.92, "command": "ray::RayWorkerProc.run"},
    )
    assert (kill.scope.pid, kill.scope.host) == (30718, "10.0.9.32")
    assert kill.fields["node_id"] == NODE


def test_an_older_kill_begins_with_its_stamp() -> None:
    """Up to 2.54 the raylet prints a stamp, the task, a blank line, and then what was used."""
    head = "[2025-02-27 16:04:50,590 I 214 214] (raylet) node_manager.cc:3016: Killing worker with task {Type=ACTOR_TASK}"
    used = f"""Memory on the node (IP: 10.0.9.32, ID: {NODE}) where the task (actor ID: d3b0, name=RayWorkerWrapper.__init__, \
pid=9, memory used=61.92GB) was running was 380.21GB / 400.00GB (0.95), which exceeds the memory usage threshold of 0.95."""
    (kill,) = read_text(f"{head}\n\n{used}\n", "raylet.out", "ray").events
    assert (kill.locator.line, kill.locator.line_end, kill.text) == (1, 3, used)
    assert kill.stamps[0].form is StampForm.LOCAL


def test_the_driver_tells_the_same_kill() -> None:
    """Older wording: the exception, then the node, raw in the engine's output."""
    text = f"""INFO 11-29 21:20:00 [a.py:1] serving
Traceback (most recent call last):
  File "/opt/vllm/executor.py", line 3, in run
ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
Memory on the node (IP: 10.0.9.32, ID: {NODE}) where the task (actor ID: d3b0, \
name=RayWorkerWrapper.__init__, pid=9, memory used=61.92GB) was running was 380.21GB / 400.00GB (0.95), \
which exceeds the memory usage threshold of 0.95.
Top 10 memory users:
PID\tMEM(GB)\tCOMMAND
9\t61.92\tray::RayWorkerWrapper
"""
    events = read_text(text, "driver.log", "engine").events
    assert [event.kind for event in events if event.locator.line > 1][:1] == ["traceback"]
    (told,) = [event for event in events if event.text.startswith("Memory on the node")]
    assert (told.channel, told.scope.pid, told.scope.host) == ("ray", 9, "10.0.9.32")


def test_a_worker_exit_names_its_worker() -> None:
    """The GCS's report and the raylet's echo in the driver."""
    gcs = (
        f"[2026-11-29 21:25:17,361 W 41 41] (gcs_server) gcs_worker_manager.cc:70: Reporting worker exit, "
        f"worker id = {NODE}, "
        f"node id = {NODE}, address = 10.0.2.8, exit_type = SYSTEM_ERROR, exit_detail = Worker unexpectedly "
        f"exits"
    )
    (event,) = read_text(gcs, "gcs_server.out", "ray").events
    assert event.fields["exit_type"] == "SYSTEM_ERROR"
    assert event.scope.host == "10.0.2.8"
    echo = "\x1b[33m(raylet)\x1b[0m A worker died or was killed while executing a task. Worker IP address: 10.0.2.8 Worker PID: 5265 Worker exit type: SYSTEM_ERROR"
    (event,) = read_text(echo, "driver.log", "engine").events
    assert (event.channel, event.scope.pid, event.fields["exit_type"]) == ("ray", 5265, "SYSTEM_ERROR")


def test_ray_status() -> None:
    """One line of facts a report; empty sections are left out."""
    text = """======== Autoscaler status: 2026-11-29 21:25:17.527310 ========
Node status
---------------------------------------------------------------
Pending:
 (no pending nodes)
Total Usage:
 3.0/6.0 CPU
 2.0/2.0 GPU
Pending Demands:
 {'GPU': 1.0}: 1+ pending tasks/actors
"""
    form = identify(make_head("status.txt", text.encode(), True), FORMATS)
    assert form is ray.STATUS
    assert form.read is not None
    (event,) = form.read(text, "status.txt").events
    assert event.text == (
        "ray status: Total Usage: 3.0/6.0 CPU; Total Usage: 2.0/2.0 GPU; Pending Demands: {'GPU': 1.0}: 1+ "
        "pending tasks/actors"
    )
    assert event.stamps[0].form is StampForm.LOCAL


def test_earlyoom_is_a_free_memory_series() -> None:
    """Its status lines are samples where a journal gave them a time; on a console they have none."""
    status = "mem avail:   439 of  1197 MiB (36.69%), swap free:    0 of    0 MiB ( 0.00%)"
    timed = f"Nov 29 21:25:17 gpu-node-7 earlyoom[9]: {status}"
    specs = earlyoom.DIALECT.series
    found = [earlyoom.samples(scan(iter([line.encode()]), ["x"], (), specs), "x") for line in (timed, status)]
    assert found[1] == ()
    (sample,) = found[0]
    assert (sample.name, sample.values[0]) == ("host_memory_available_kib", 439.0 * 1024)
    assert sample.form is StampForm.YEARLESS
