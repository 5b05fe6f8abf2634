"""Host state: memory, processes, file systems, clocks, sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Event, Parsed, StampForm
from forensics.parsers import FORMATS
from forensics.parsers.dates import date_command, is_time
from forensics.parsers.sizes import human, size_bytes
from forensics.sources import identify, make_head


def read(text: str, path: str = "state.txt") -> Parsed:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    assert form is not None
    assert form.name in ("host.state", "host.time"), form.name
    assert form.read is not None
    return form.read(text, path)


def kinds(text: str, kind: str, path: str = "state.txt") -> list[Event]:
    return [event for event in read(text, path).events if event.kind == kind]


FREE = """               total        used        free      shared  buff/cache   available
Mem:          {0}         {1}        {2}         131         142        {3}
Swap:              0           0           0
"""


@pytest.mark.parametrize(
    ("path", "cells", "total_kib"),
    [
        ("free_-m.txt", ("515324", "100", "200", "300"), 515324 * 1024),
        ("free.txt", ("527691776", "100", "200", "300"), 527691776),
        ("free.txt", ("515324", "100", "200", "300"), 515324 * 1024),
        ("free.txt", ("503", "10", "20", "30"), 503 * 1024 * 1024),
        ("free.txt", ("503Gi", "10Gi", "20Gi", "30Gi"), 503 * 1024 * 1024),
        ("free_-t_--mega.txt", ("515324", "1", "2", "3"), 515324 * 10**6 // 1024),
        ("free.txt", ("540356378624", "1", "2", "3"), 540356378624 // 1024),
    ],
)
def test_free_in_all_units(path: str, cells: tuple[str, ...], total_kib: int) -> None:
    """The option in the name decides, else the size of the number."""
    (event,) = kinds(FREE.format(*cells), "meminfo", path)
    assert event.fields["mem_total_kib"] == total_kib


def test_meminfo_and_counters() -> None:
    """/proc/meminfo in KiB, kill counters of /proc/vmstat, pressure by resource."""
    (meminfo,) = kinds(
        "MemTotal:        1496284 kB\nMemFree:         1316540 kB\nMemAvailable:    1249148 kB\n"
        "Active(anon):      28540 kB\n",
        "meminfo",
    )
    assert meminfo.fields == {
        "mem_total_kib": 1496284,
        "mem_free_kib": 1316540,
        "mem_available_kib": 1249148,
        "active_anon_kib": 28540,
    }
    (counters,) = kinds("allocstall_normal 22011\npgmajfault 2201118\noom_kill 9\n", "meminfo", "proc/vmstat")
    assert counters.fields["oom_kill_total"] == 9
    (pressure,) = kinds(
        "==> /proc/pressure/memory <==\nsome avg10=0.71 avg60=0.15 avg300=0.03 total=123773\n", "meminfo"
    )
    assert pressure.fields["memory_some_avg10_pct"] == 0.71


def test_vmstat_rows_with_times_are_samples() -> None:
    """`vmstat -t` names the zone of its times in the header."""
    parsed = read(
        "--procs-- -----------------------memory---------------------- ---swap-- -----io---- -system-- "
        "----------cpu---------- -----timestamp-----\n"
        "   r    b         swpd         free         buff        cache   si   so    bi    bo   in   cs  us  "
        "sy  id  wa  st                 UTC\n"
        "   1    0            5       591140            0       146092    0    0     0     0  220  394  18  "
        "37  45   0   0 2026-11-29 21:25:17\n"
        "   1    0            6       591000            0       146092    0    0     0     0  220  394  18  "
        "37  45   0   0 2026-11-29 21:25:18\n"
    )
    (swap,) = [sample for sample in parsed.samples if sample.name == "swap_used_kib"]
    assert (list(swap.values), swap.form) == ([5.0, 6.0], StampForm.INSTANT)


def test_processes() -> None:
    """ps aux, custom columns with long start times, threads, zombies; kernel threads are left out."""
    events = kinds(
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        "root           2  0.0  0.0      0     0 ?        S    Mar07   0:00 [kthreadd]\n"
        "root     2180296  1.1  0.9 19811220 2411020 ?    Ssl  Nov25  33:10 VLLM::APIServer --port 8000\n"
        "root      811285  0.0  0.0      0     0 ?        Zl   Dec06   0:00 [VLLM::Worker_TP5] "
        "<defunct>\n", "process",
    )  # fmt: skip
    assert [(e.fields["pid"], e.fields["command"]) for e in events] == [
        (2180296, "VLLM::APIServer --port 8000"), (811285, "[VLLM::Worker_TP5] <defunct>"),
    ]  # fmt: skip
    assert (events[0].fields["rss_kib"], events[0].fields["vsz_kib"], events[0].fields["user"]) == (
        2411020,
        19811220,
        "root",
    )
    (own,) = kinds(
        "    PID    PPID USER       RSS STAT                  STARTED     ELAPSED COMMAND         COMMAND\n"
        "    107       1 root      8432 Ss   Sat Mar  7 23:59:32 2026       00:46 python3       "
        "  python3 -m vllm serve m\n", "process",
    )  # fmt: skip
    assert (own.fields["command"], own.fields["rss_kib"], own.fields["ppid"]) == ("python3 -m vllm serve m", 8432, 1)
    (thread,) = kinds(
        "UID          PID    PPID     LWP  C NLWP STIME TTY          TIME CMD\n"
        "root         124       1     124  0    2 Mar07 ?        00:00:00 rsyslogd -n\n"
        "root         124       1     125  0    2 Mar07 ?        00:00:00 rsyslogd -n\n", "process",
    )  # fmt: skip
    assert thread.fields["pid"] == 124
    (status,) = kinds(
        "Name:\tVLLM::EngineCor\nPid:\t172\nPPid:\t166\nVmHWM:\t  717248 kB\nVmRSS:\t  717240 kB\n", "process"
    )
    assert (status.fields["rss_kib"], status.fields["peak_rss_kib"]) == (717240, 717248)


def test_file_systems() -> None:
    """Human and block units, a type column, and a device name on its own line."""
    (shm,) = kinds(
        "Filesystem                Size      Used Available Use% Mounted on\n"
        "shm                      64.0M     62.9M      1.1M  98% /dev/shm\n",
        "df",
    )
    assert (shm.fields["mount"], shm.fields["size_bytes"]) == ("/dev/shm", 64 * 2**20)
    assert shm.text == "/dev/shm: 62.9 MiB used of 64.0 MiB (98%)"
    root, long = kinds(
        "Filesystem     Type     1K-blocks  Used Available Use% Mounted on\n"
        "overlay        overlay       1000   400       600  40% /\n"
        "nfs.example:/export/models/with/a/long/name\n"
        "               nfs4          2000  1000      1000  50% /models\n", "df",
    )  # fmt: skip
    assert (root.fields["used_bytes"], long.fields["mount"]) == (400 * 1024, "/models")


def test_clocks_of_a_capture() -> None:
    """date, uptime, timedatectl, boot time, chrony."""
    (when,) = kinds("2026-11-29T21:25:17Z\n", "capture", "CAPTURED_AT")
    assert (when.stamps[0].form, when.stamps[0].seconds) == (StampForm.INSTANT, 1795987517.0)
    (up,) = kinds(" 12:42:35 up 22 days,  9:30,  1 user,  load average: 18.20, 31.02, 29.77\n", "capture", "uptime")
    assert (up.stamps[0].form, up.fields["uptime_s"]) == (StampForm.CLOCK, (22 * 24 * 60 + 9 * 60 + 30) * 60)
    _, up = kinds("$ date -u; cat /proc/uptime\nSun Nov 29 21:25:17 UTC 2026\n1936200.25 9120448.02\n", "capture")
    assert (up.stamps[0].seconds, up.fields["uptime_s"]) == (1795987517.0, 1936200.25)
    (zone,) = kinds(
        "               Local time: Sun 2026-10-25 06:31:40 CET\n"
        "           Universal time: Sun 2026-10-25 05:31:40 UTC\n"
        "                Time zone: Europe/Berlin (CET, +0100)\nSystem clock synchronized: yes\n", "capture",
    )  # fmt: skip
    assert zone.fields == {"timezone": "Europe/Berlin", "utc_offset_s": 3600, "synchronized": True}
    assert zone.stamps[1].seconds - zone.stamps[0].seconds == 3600
    (boot,) = kinds("cpu  1 2 3\nbtime 1759386641\nprocesses 9\n", "capture")
    assert boot.fields["boot_epoch_s"] == 1759386641
    (chrony,) = read(
        "Reference ID    : 00000000 ()\nStratum         : 0\n"
        "System time     : 90.250000000 seconds fast of NTP time\nLeap status     : Normal\n"
    ).events
    assert (chrony.channel, chrony.fields["offset_s"]) == ("clock", 90.25)
    (settings,) = read(
        '{"timezone": "Asia/Singapore", "ntp_synchronized": true, "ntp_active": true}', "system/time.json"
    ).events
    assert settings.fields == {"timezone": "Asia/Singapore", "synchronized": True}


def test_a_session_keeps_its_owner_and_its_time() -> None:
    """`kubectl exec` says whose output follows; a shell stays until exit; `date` gives the time."""
    parsed = read("""$ date -u
Sun Nov 29 21:25:17 UTC 2026
$ kubectl debug -n inference vllm-0 -it --image=busybox --target=vllm
/ # df -h /dev/shm
Filesystem                Size      Used Available Use% Mounted on
shm                      64.0M     62.9M      1.1M  98% /dev/shm
/ # exit
$ kubectl exec -n inference vllm-1 -c engine -- free -m
               total        used        free      shared  buff/cache   available
Mem:          515324         100         200           0         142         300
$ nvidia-smi
| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |
|   0  NVIDIA L40S                    On  |   00000000:25:00.0 Off |                    0 |
| N/A   49C    P0             88W /  350W |   15278MiB /  46068MiB |     11%      Default |
""")
    by_kind = {event.kind: event for event in parsed.events}
    assert (by_kind["df"].scope.pod, by_kind["df"].scope.container) == ("vllm-0", "vllm")
    assert (by_kind["meminfo"].scope.pod, by_kind["meminfo"].scope.container) == ("vllm-1", "engine")
    assert by_kind["meminfo"].stamps[0].seconds == 1795987517.0
    assert by_kind["gpu_state"].fields["memory_used_mib"] == 15278
    assert {sample.name for sample in parsed.samples} >= {"host_memory_used_kib", "gpu_memory_used_mib"}


@pytest.mark.parametrize(
    ("text", "form", "seconds"),
    [
        ("Sun Nov 29 21:25:17 UTC 2026", StampForm.INSTANT, 1795987517.0),
        ("Sun Nov 29 09:25:17 PM CET 2026", StampForm.LOCAL, 1795987517.0),
        ("So 29. Nov 21:25:17 CET 2026", StampForm.LOCAL, 1795987517.0),
        ("Sun 29 Nov 21:25:17 GMT 2026", StampForm.INSTANT, 1795987517.0),
        ("sø. 29. nov. 21:25:17 +0000 2026", StampForm.INSTANT, 1795987517.0),
        ("nie, 29 lis 2026, 21:25:17 CET", StampForm.LOCAL, 1795987517.0),
        ("dom 29 nov 2026, 21:25:17, CET", StampForm.LOCAL, 1795987517.0),
        ("2026年 11月 29日 日曜日 21:25:17 JST", StampForm.LOCAL, 1795987517.0),
        ("2026. 11. 29. (일) 21:25:17 KST", StampForm.LOCAL, 1795987517.0),
        ("29 words 2026 21:25:17", None, 0.0),
        ("So 29 Nov 2026 21:25:17 CET", StampForm.LOCAL, 1795987517.0),
        ("2026年 11月 29日 星期日 21:25:17 CST", StampForm.LOCAL, 1795987517.0),
        ("2026-11-29T21:25:17+0000", StampForm.INSTANT, 1795987517.0),
        ("2026-11-29 21:25:17.118402113 +0000 UTC m=+0.201331045", StampForm.INSTANT, 1795987517.118402),
        ("1795987517", StampForm.INSTANT, 1795987517.0),
        ("Sun Nov 31 21:25:17 2026", None, 0.0),
        ("hello", None, 0.0),
    ],
)
def test_dates_of_commands(text: str, form: StampForm | None, seconds: float) -> None:
    """Only UTC and offsets decide a zone."""
    stamp = date_command(text, "host")
    assert (stamp.form if stamp else None) == form
    if stamp:
        assert stamp.seconds == pytest.approx(seconds)


def test_a_time_alone_on_its_line() -> None:
    """A log line that begins with a time is none."""
    assert is_time("Sun Nov 29 21:25:17 2026")
    assert is_time("2026-11-29T21:25:17Z")
    assert not is_time("2026-11-29T21:25:17Z vllm started")
    assert not is_time("1795987517")


def test_sizes() -> None:
    """Prefixes are powers of 1024; a bare number has the table's unit."""
    assert size_bytes("64.0M") == 64 * 2**20
    assert size_bytes("1,4Gi") == int(1.4 * 2**30)
    assert size_bytes("5", 1024) == 5120
    assert size_bytes("0B") == 0
    assert size_bytes("98%") is None
    assert (human(3 * 2**30), human(2**20)) == ("3.0 GiB", "1.0 MiB")


def test_logs_are_not_claimed() -> None:
    """A few known words in a log do not make it a snapshot."""
    log = "".join(f"INFO 11-29 21:25:1{i} [a.py:1] started\n" for i in range(9)) + "oom_kill 1\n"
    form = identify(make_head("x.log", log.encode(), True), FORMATS)
    assert form is not None
    assert form.name == "log"


def test_genuine_captures_are_recognised(captures: Path) -> None:
    """Every file of the sysstat captures, except the lone score of a process and the binary data file."""
    known = 0
    for path in sorted((captures / "sysstat").rglob("*.txt")):
        form = identify(make_head(str(path), path.read_bytes(), True), FORMATS)
        if "oom_score" in path.name:
            continue
        assert form is not None, path
        assert form.name in ("host.state", "cgroup", "sysstat.sar", "sysstat.sadf", "sysstat.other", "log"), (
            path,
            form.name,
        )
        known += 1
    assert known > 100


def test_a_list_of_processes_taken_again_and_again_is_a_series() -> None:
    """`date` as a heading and `ps` below it, every half hour: resident sizes of large processes; one list is none."""
    lines = [
        f"=== 2026-05-12 0{hour}:00:00\n    PID USER         RSS CMD\n   4711 svc   {8_000_000 + hour * 1_000_000} VLLM::APIServer\n"
        "    812 root       4096 sshd\n"
        for hour in range(4)
    ]
    (watched,) = read("".join(lines)).samples
    assert (watched.name, watched.scope.process, watched.scope.pid) == ("process_rss_mib", "VLLM::APIServer", 4711)
    assert list(watched.values) == [(8_000_000 + hour * 1_000_000) / 1024 for hour in range(4)]
    assert watched.stamps[1] - watched.stamps[0] == 3600.0
    assert read(lines[0]).samples == ()


def test_limits_of_a_process() -> None:
    """What a shell and the kernel print: locked memory and open files are told, each at its line."""
    shell = """me@box:~$ ulimit -a
core file size              (blocks, -c) 0
max locked memory           (kbytes, -l) 8192
open files                          (-n) 1024
stack size                  (kbytes, -s) 8192
"""
    proc = """Limit                     Soft Limit           Hard Limit           Units
Max processes             127000               127000               processes
Max locked memory         8388608              8388608              bytes
"""
    assert [(e.locator.line, e.text.split(" (")[0].strip()) for e in kinds(shell, "log")] == [
        (3, "max locked memory"), (4, "open files"),
    ]  # fmt: skip
    assert [e.locator.line for e in kinds(proc, "log", "limits.txt")] == [3]
    form = identify(make_head("a.txt", b"max tokens (of a request) 8192\nplain talk\n", True), FORMATS)
    assert form is None or form.name != "host.state"
