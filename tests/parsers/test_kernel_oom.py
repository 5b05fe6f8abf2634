"""Kernel OOM reports: one event per kill, whatever is missing, torn or mixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forensics import scan, sources
from forensics.model import Event, Parsed
from forensics.parsers import DIALECTS, FORMATS, kernel, log
from forensics.parsers.cgroup_path import job_in, owner_kind, path_scope

UID = "1c2d3e4f-0a1b-4c2d-8e3f-5a6b7c8d9e0f"
CID = "5d0c" * 16
POD = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
CONTAINER = f"{POD}/cri-containerd-{CID}.scope"


def read(text: str, prefilter: bool = True) -> Parsed:
    """Bytes → scan with the dialect's own anchors only → events."""
    kernel_only = {"kernel": kernel.DIALECT}
    scanned = scan.scan(iter([text.encode()]), kernel.DIALECT.anchors, kernel.DIALECT.windows, prefilter=prefilter)
    return log.read(scanned, "dmesg", "kernel", kernel_only)


def kills(text: str) -> list[Event]:
    return [event for event in read(text).events if event.kind == "kernel_oom"]


def read_file(path: Path) -> list[Event]:
    """A capture, recognised and read as the pipeline would."""
    data = path.read_bytes()
    head = sources.make_head(path.name, data[: sources.HEAD_BYTES], len(data) <= sources.HEAD_BYTES)
    form = sources.identify(head, FORMATS)
    if form is not None and form.read is not None:
        parsed = form.read(data.decode("utf-8", "replace"), path.name)
    else:
        windows = tuple(w for dialect in DIALECTS.values() for w in dialect.windows)
        anchors = [anchor for dialect in DIALECTS.values() for anchor in dialect.anchors]
        parsed = log.read(scan.scan(iter([data]), anchors, windows), path.name, log.kind_of(head).channel, DIALECTS)
    return [event for event in parsed.events if event.kind == "kernel_oom"]


def killed(
    pid: int, comm: str = "VLLM::EngineCor", anon: int = 8000, prefix: str = "Memory cgroup out of memory"
) -> str:
    return (
        f"{prefix}: Killed process {pid} ({comm}) total-vm:99000kB, anon-rss:{anon}kB, file-rss:40kB, "
        f"shmem-rss:700kB, UID:1000 pgtables:228kB oom_score_adj:992"
    )


def invoked(comm: str = "cuda-EvtHandlr") -> str:
    return f"{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=992"


def usage(limit: int) -> str:
    return f"memory: usage {limit}kB, limit {limit}kB, failcnt 79"


def summary(pid: int, oom_memcg: str = CONTAINER, task_memcg: str = CONTAINER, comm: str = "VLLM::EngineCor") -> str:
    return (
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg={oom_memcg},"
        f"task_memcg={task_memcg},task={comm},pid={pid},uid=1000"
    )


TABLE = [
    "Tasks state (memory values in pages):",
    "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
    "[    401]  1000   401      271      200      100       50        50    28672        0           992 npm start",
    "[    402]  1000   402    24847     2185     2000       10       175   233472        0           992 VLLM::EngineCor",
    "[    403]  1000   403      300      210      100       50        60    28672        0           992 ",
]
STATS = [
    f"Memory cgroup stats for {CONTAINER}:",
    "anon 8192000",
    "file 716800",
    "kernel 266240",
    "kernel_stack 0",
    "shmem 716800",
]


def dmesg(*lines: str, start: float = 100.0) -> str:
    return "".join(f"[{start + i / 1e4:12.6f}] {line}\n" for i, line in enumerate(lines))


REPORT = (invoked(), "CPU: 3 UID: 0 PID: 412 Comm: cuda-EvtHandlr Not tainted 6.12.1 #1", "Call Trace:", " <TASK>",
          " dump_stack_lvl+0x5d/0x80", usage(98304), "swap: usage 0kB, limit 9007199254740988kB, failcnt 0", *STATS,
          *TABLE, summary(402), killed(402))  # fmt: skip


def test_a_whole_report_is_one_event() -> None:
    """Who asked, whose limit, who died, what filled it, and where it stands; its head stays a line of its own."""
    text = dmesg("eth0: link up", *REPORT, "eth0: link down")
    (event,) = kills(text)
    assert event.text == killed(402)
    assert (event.locator.line, event.fields["report_line"], event.complete) == (len(REPORT) + 1, 2, True)
    fields = {k: v for k, v in event.fields.items() if k not in ("tasks", "report_line")}
    assert fields == {
        "invoker_comm": "cuda-EvtHandlr", "invoker_pid": 412, "order": 0, "constraint": "CONSTRAINT_MEMCG",
        "oom_memcg": CONTAINER, "task_memcg": CONTAINER, "global_oom": False, "oom_scope": "container",
        "victim_pid": 402, "victim_comm": "VLLM::EngineCor", "victim_uid": 1000, "victim_total_vm_kib": 99000,
        "victim_anon_rss_kib": 8000, "victim_file_rss_kib": 40, "victim_shmem_rss_kib": 700,
        "victim_oom_score_adj": 992, "memcg_usage_kib": 98304, "memcg_limit_kib": 98304, "memcg_failcnt": 79,
        "memcg_anon_kib": 8000, "memcg_file_kib": 700, "memcg_kernel_kib": 260, "memcg_shmem_kib": 700,
        "task_count": 3, "tasks_rss_kib": (200 + 2185 + 210) * 4,
    }  # fmt: skip
    assert [(task["comm"], task["rss_kib"]) for task in event.fields["tasks"]] == [
        ("VLLM::EngineCor", 8740), ("", 840), ("npm start", 800),
    ]  # fmt: skip
    assert (event.scope.pod_uid, event.scope.container_id, event.scope.pid) == (UID, CID, 402)
    others = [e.text for e in read(text, prefilter=False).events if e.kind == "log"]
    assert others == ["eth0: link up", REPORT[0], "eth0: link down"]


def test_the_prefilter_changes_nothing() -> None:
    """The dialect's own anchors and windows are enough."""
    text = dmesg(*(f"eth0: line {n}" for n in range(200)), *REPORT, *(f"eth0: line {n}" for n in range(200)))
    assert [e for e in read(text, prefilter=False).events if e.kind == "kernel_oom"] == kills(text)


@pytest.mark.parametrize(
    ("oom_memcg", "task_memcg", "scope"),
    [
        (CONTAINER, CONTAINER, "container"),
        (POD, CONTAINER, "pod"),
        ("/kubepods.slice/kubepods-burstable.slice", CONTAINER, "qos"),
        ("/kubepods.slice", CONTAINER, "kubepods"),
        (f"/kubepods/besteffort/pod{UID}/{CID}", f"/kubepods/besteffort/pod{UID}/{CID}", "container"),
        (f"/kubepods/pod{UID}", f"/kubepods/pod{UID}/{CID}", "pod"),
        (f"/lxc.payload.k-lxc{POD}", f"/lxc.payload.k-lxc{CONTAINER}", "pod"),
        (f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UID.replace('-', '_')}.slice", CONTAINER, "pod"),
        (f"/docker/{CID}", f"/docker/{CID}", "container"),
        ("/system.slice/vllm.service", "/system.slice/vllm.service", "unit"),
        ("/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-1000.slice/session-3.scope", "user"),
        ("/batch", "/batch/job", "other"),
    ],
)  # fmt: skip
def test_the_limit_has_an_owner(oom_memcg: str, task_memcg: str, scope: str) -> None:
    """From the path of the cgroup whose limit was hit; a QoS class is the node in disguise."""
    (event,) = kills(dmesg(invoked(), usage(4096), summary(7, oom_memcg, task_memcg), killed(7)))
    assert event.fields["oom_scope"] == scope


@pytest.mark.parametrize(
    ("constraint", "scope"),
    [("CONSTRAINT_NONE", "node"), ("CONSTRAINT_CPUSET", "cpuset"), ("CONSTRAINT_MEMORY_POLICY", "cpuset")],
)
def test_a_kill_of_the_node(constraint: str, scope: str) -> None:
    """global_oom; the figures are the node's."""
    line = (
        f"oom-kill:constraint={constraint},nodemask=1,cpuset=/,mems_allowed=0-1,global_oom,"
        f"task_memcg={CONTAINER},task=python3,pid=9,uid=0"
    )
    (event,) = kills(
        dmesg(invoked(), "Mem-Info:", "Free swap  = 12kB", "Total swap = 64kB", "130942 pages RAM", "11674 pages reserved", *TABLE[:2],
              "[      9]     0     9    24847     2185     2000       10       175   233472        0             0 python3",
              line, killed(9, "python3", prefix="Out of memory"))
    )  # fmt: skip
    expected = {
        "global_oom": True,
        "oom_scope": scope,
        "node_ram_kib": 130942 * 4,
        "node_memory_kib": (130942 - 11674) * 4,
        "swap_free_kib": 12,
        "swap_total_kib": 64,
    }
    assert {key: event.fields[key] for key in expected} == expected
    assert event.scope.pod_uid == UID


def test_pages_of_64_kib() -> None:
    """The victim is printed in pages and in kB: their ratio is the page size."""
    row = "[      9]     0     9    24847      136      125        1        10   233472        0             0 python3"
    (event,) = kills(dmesg(invoked(), "130942 pages RAM", *TABLE[:2], row, killed(9, "python3")))
    assert event.fields["node_ram_kib"] == 130942 * 64


def test_only_the_last_line_is_left() -> None:
    """Dumps are rate limited; the kill is certain, its circumstances are not."""
    events = kills(dmesg("oom_kill_process: 70 callbacks suppressed", killed(5), killed(6, prefix="Out of memory")))
    assert [(e.fields["victim_pid"], e.fields["global_oom"], e.complete) for e in events] == [
        (5, False, False),
        (6, True, False),
    ]
    assert "oom_scope" not in events[0].fields
    assert events[1].fields["oom_scope"] == "node"


def test_kernels_before_5_1() -> None:
    """Two lines of cgroups, statistics in one line each, the prefix in the line before, a child instead of its parent."""
    text = dmesg(
        "python invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=999", "python cpuset=docker-5d0c.scope mems_allowed=0",
        f"Task in /kubepods/burstable/pod{UID}/{CID} killed as a result of limit of /kubepods/burstable/pod{UID}",
        usage(1048576), "memory+swap: usage 1048576kB, limit 9007199254740988kB, failcnt 0",
        f"Memory cgroup stats for /kubepods/burstable/pod{UID}: cache:0KB rss:0KB rss_huge:0KB mapped_file:0KB",
        f"Memory cgroup stats for /kubepods/burstable/pod{UID}/{CID}: cache:2048KB rss:1046528KB rss_huge:0KB shmem:1024KB",
        "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
        "[ 1234]     0  1234    24847      200      28       4        0           999 sh",
        "[ 1240]     0  1240   624847   261632     528       4        0           999 python",
        "Memory cgroup out of memory: Kill process 1234 (sh) score 1994 or sacrifice child",
        "Killed process 1240 (python) total-vm:2499388kB, anon-rss:1046528kB, file-rss:0kB",
    )  # fmt: skip
    (event,) = kills(text)
    assert (
        event.text
        == "Memory cgroup out of memory: Killed process 1240 (python) total-vm:2499388kB, anon-rss:1046528kB, file-rss:0kB"
    )
    wanted = {
        "victim_pid": 1240, "oom_scope": "pod", "global_oom": False, "memcg_limit_kib": 1048576, "victim_oom_score_adj": 999,
        "memcg_anon_kib": 1046528, "memcg_file_kib": 2048, "memcg_shmem_kib": 1024, "task_count": 2, "order": 0,
        "chosen_oom_score": 1994,
    }  # fmt: skip
    assert {key: event.fields.get(key) for key in wanted} == wanted
    assert (event.scope.pod_uid, event.scope.container_id) == (UID, CID)


def test_a_group_dies_together() -> None:
    """memory.oom.group: each process once, though the first victim is printed twice."""
    group = f"Tasks in {CONTAINER} are going to be killed due to memory.oom.group set"
    events = kills(
        dmesg(*REPORT, group, killed(401, "npm start"), killed(403, "x"), killed(402)) + dmesg(killed(900), start=900)
    )
    assert [e.fields["victim_pid"] for e in events] == [402, 401, 403, 900]
    assert [e.fields.get("group_kill") for e in events[:3]] == [True] * 3
    assert {e.fields["memcg_limit_kib"] for e in events[:3]} == {98304}
    assert {e.scope.container_id for e in events[:3]} == {CID}


def test_groups_without_reports() -> None:
    """A kill before `Tasks in` begins a group of its own, also while the last one is still open."""
    one, two = f"/docker/{'ab' * 32}", f"/docker/{'cd' * 32}"
    lines = []
    for path, pids in ((one, (5, 6)), (two, (8, 9))):
        lines += [killed(pids[0]), f"Tasks in {path} are going to be killed due to memory.oom.group set"]
        lines += [killed(pid) for pid in pids]
    events = kills(dmesg(*lines))
    assert [e.fields["victim_pid"] for e in events] == [5, 6, 8, 9]
    assert [e.scope.container_id for e in events if e.fields["victim_pid"] in (6, 9)] == ["ab" * 32, "cd" * 32]


def test_interleaved_reports() -> None:
    """Before 4.x two reports could mix: the n-th figures belong to the n-th report, summaries go by pid."""
    text = dmesg(
        invoked("first"), invoked("second"), usage(1000), usage(2000), summary(22, "/b.slice", "/b.slice"),
        summary(11, "/a.slice", "/a.slice"), killed(11), killed(22),
    )  # fmt: skip
    found = [
        (e.fields["invoker_comm"], e.fields["victim_pid"], e.fields["memcg_limit_kib"], e.fields["oom_memcg"])
        for e in kills(text)
    ]
    assert found == [("first", 11, 1000, "/a.slice"), ("second", 22, 2000, "/b.slice")]


def test_a_torn_report_lends_nothing() -> None:
    """The first report ends after its head; what follows is the second's."""
    text = dmesg(invoked("torn"), "Call Trace:", start=1) + dmesg(*REPORT, start=500)
    (event,) = kills(text)
    assert (event.fields["invoker_comm"], event.fields["report_line"]) == ("cuda-EvtHandlr", 3)
    assert [e.text for e in read(text).events if e.kind == "log"] == [invoked("torn"), REPORT[0]]


def test_a_kill_without_a_report_borrows_nothing() -> None:
    """The second dump was suppressed; its circumstances are not those of the first."""
    first, second = kills(dmesg(*REPORT, killed(900)))
    assert (first.fields["memcg_limit_kib"], first.fields["task_count"]) == (98304, 3)
    assert not {"memcg_limit_kib", "tasks", "task_memcg", "invoker_comm", "report_line"} & set(second.fields)


def test_a_log_that_ends_too_early() -> None:
    """After the summary the victim is known; after the head nothing is."""
    (event,) = kills(dmesg(*REPORT[:-1]))
    assert (event.fields["victim_pid"], event.fields["memcg_limit_kib"], event.complete) == (402, 98304, False)
    (cut,) = kills(dmesg(*REPORT)[:-72])
    assert cut.fields["victim_anon_rss_kib"] == 8000
    assert "victim_file_rss_kib" not in cut.fields
    (torn,) = kills(dmesg("Out of memory: Killed process 77 (VLLM::Eng"))
    assert (torn.fields["victim_pid"], torn.complete) == (77, False)
    assert kills(dmesg(*REPORT[:3])) == []


def test_reports_without_a_victim() -> None:
    """Nobody may be killed, or the kernel panics: what it says stays, the dump goes."""
    for end in (
        "Out of memory and no killable processes...",
        "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled",
    ):
        events = read(dmesg(*REPORT[:-2], end)).events
        assert [e.kind for e in events] == ["log", "log"]
        assert [e.text for e in events] == [invoked(), end]


@pytest.mark.parametrize(
    "comm", ["a, b) (c", ") total-vm:9kB,", "a,pid=1,uid=0", "", "npm start", "x[1]: y", "推理引擎", "Out of memory: "]
)
def test_names_are_chosen_by_their_owner(comm: str) -> None:
    """Commas, brackets, and pieces of the report itself."""
    (event,) = kills(dmesg(invoked(comm), usage(98304), summary(402, comm=comm), killed(402, comm)))
    assert (event.fields["victim_comm"], event.fields["victim_anon_rss_kib"]) == (comm, 8000)
    assert (event.fields["task_memcg"], event.fields["victim_pid"]) == (CONTAINER, 402)


def test_a_newline_in_a_name() -> None:
    """dmesg indents the second half, the console gives it a time, `dmesg -t` nothing."""
    for second in ("               ", "[  100.000900] ", ""):
        text = dmesg(invoked("python3"), usage(98304), summary(402, comm="@"), killed(402, "@")).replace(
            "@", f"x\n{second}Killed p"
        )
        (event,) = kills(text)
        assert (event.fields["victim_comm"], event.fields["memcg_limit_kib"]) == ("x\nKilled p", 98304)
        assert event.fields["oom_scope"] == "container"


def test_endless_numbers_are_no_numbers() -> None:
    """Python refuses to read numbers of more than 4300 digits; a report may hold any text."""
    huge = "9" * 5000
    lines = [*REPORT, "NVRM: Xid (PCI:0000:3b:00): 79, x", killed(402)]
    for line in lines:
        for number in ("402", "98304", "79", "8192000", "99000", "1000"):
            read(dmesg(line.replace(number, huge)))
            read(dmesg(*REPORT[:6], line.replace(number, huge), *REPORT[6:]))


def test_storms_are_counted_not_kept() -> None:
    """Thousands of reports: a few in full, the rest as a number."""
    text = "".join(dmesg(*(line.replace("402", str(1000 + n)) for line in REPORT), start=100.0 + n) for n in range(150))
    events = kills(text)
    assert sum(event.count for event in events) == 150
    assert len(events) < 60


def test_a_reversed_journal() -> None:
    """`journalctl -r`: the newest line first; each kill keeps its own limit."""
    lines = dmesg(invoked(), usage(1000), summary(1), killed(1), start=10) + dmesg(
        invoked(), usage(2000), summary(2), killed(2), start=20
    )
    events = kills("".join(reversed(lines.splitlines(keepends=True))))
    assert {e.fields["victim_pid"]: e.fields["memcg_limit_kib"] for e in events} == {1: 1000, 2: 2000}


def test_other_dumps_are_left_alone() -> None:
    """A failed allocation prints the same memory figures and kills nobody."""
    text = dmesg("python3: page allocation failure: order:4, mode:0xdc0(GFP_KERNEL), nodemask=(null)", "Call Trace:", "Mem-Info:",
                 "130942 pages RAM", "12 pages reserved")  # fmt: skip
    events = read(text).events
    assert [e.kind for e in events] == ["log"] * 5


def test_paths_and_their_owners() -> None:
    """conmon runs beside the container; a systemd inside a container is still the container."""
    assert path_scope(f"{POD}/crio-conmon-{CID}.scope").container_id == ""
    assert path_scope(f"{POD}/crio-{CID}.scope/container").container_id == CID
    assert owner_kind(f"{POD}/crio-{CID}.scope/container") == "container"
    assert path_scope("/system.slice/docker-5d0c5d0c5d0c.scope").container_id == "5d0c5d0c5d0c"
    assert path_scope("/docker/5d0c5d0c5d0c").container_id == ""
    assert path_scope("/system.slice/session-12345678.scope").container_id == ""
    assert path_scope("/system.slice/vllm.service").unit == "vllm.service"
    assert path_scope(f"/kubepods/burstable/pod{'0a' * 16}/{CID}").pod_uid == "0a" * 16
    assert owner_kind("/") == "other"
    for path in ("/lxc/104", "/lxc/104/ns", "/lxc.payload.web", "/lxc.payload/web"):
        assert owner_kind(path) == "container"
    assert owner_kind("/lxc") == "other"
    assert owner_kind("/slurm/uid_1001/job_4711/step_0") == "job"
    assert owner_kind("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0") == "job"
    assert owner_kind("/system.slice/render.service/job_4711") == "unit"


@pytest.mark.parametrize(
    ("path", "job"),
    [
        ("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "4711"),
        ("/system.slice/node7_slurmstepd.scope/job_4711", "4711"),
        ("/slurm/uid_1001/job_4711/step_batch", "4711"),
        ("/system.slice/render.service/job_4711", ""),
        ("/system.slice/slurmstepd.scope", ""),
    ],
)
def test_the_jobs_of_slurm(path: str, job: str) -> None:
    """All jobs of a node share one scope; only the number tells whose a kill was."""
    assert (job_in(path), path_scope(path).unit) == (job, "render.service" if "render" in path else "")


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("NVRM: Xid (0000:01:00): 31, Ch 00000008, engmask 00000101", {"xid": 31, "pci_bus_id": "0000:01:00"}),
        ("NVRM: Xid (PCI:0000:08:00): 69, Class Error: ChId 0008", {"xid": 69, "pci_bus_id": "0000:08:00"}),
        ("NVRM: Xid (PCI:0000:3B:00): 63, pid=1896, Row Remapper: New row", {"xid": 63, "pci_bus_id": "0000:3b:00", "pid": 1896}),
        ("NVRM: Xid (PCI:0000:3b:00): 45, pid='<unknown>', name=<unknown>, Ch 00000010", {"xid": 45, "pci_bus_id": "0000:3b:00"}),
        (
            "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=VLLM::Worker_TP, Ch 00000010 caused by previous Xid 31",
            {"xid": 45, "pci_bus_id": "0000:3b:00", "pid": 7, "comm": "VLLM::Worker_TP", "caused_by_xid": 31},
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 94, pid=7, name=python3, Contained: SM",
            {"xid": 94, "pci_bus_id": "0000:3b:00", "pid": 7, "comm": "python3", "gpu_instance": 5},
        ),
        ("NVRM: Xid (PCI:00000000:3b:00.0): 79, GPU has fallen off the bus.", {"xid": 79, "pci_bus_id": "0000:3b:00"}),
    ],
)  # fmt: skip
def test_xid_lines_of_all_drivers(line: str, fields: dict[str, Any]) -> None:
    """R390 to R595, MIG, unknown processes."""
    (event,) = read(dmesg(line)).events
    assert (event.kind, event.fields, event.scope.gpu) == ("xid", fields, fields["pci_bus_id"])


def test_other_lines_of_the_driver_know_their_gpu() -> None:
    """The UUID of a card, and a lost card whose report is torn into three lines."""
    uuid = "GPU-0d9c6c0e-1111-2222-3333-444455556666"
    card, lost = read(
        dmesg(f"NVRM: GPU at PCI:0000:9b:00: {uuid}", "NVRM: The NVIDIA GPU 0000:b3:00.0",
              "NVRM: (PCI ID: 10de:26b5) installed in this system has",
              "NVRM: fallen off the bus and is not responding to commands.")
    ).events  # fmt: skip
    assert (card.kind, card.fields) == ("gpu_state", {"uuid": uuid, "pci_bus_id": "0000:9b:00"})
    assert (lost.scope.gpu, lost.locator.line_end) == ("0000:b3:00", 4)
    assert "has fallen off the bus" in lost.text


@pytest.mark.parametrize("kernel_version", ["5.10", "6.1", "6.12", "7.2"])
@pytest.mark.parametrize(
    ("case", "container"),
    [("b1_group0", "after"), ("d_child_killed", "after"), ("b2_group1", "after"), ("b4_shmem", "after"), ("b5_tmpfs", "after"),
     ("b3_pod_limit", "after_pod"), ("b8_three_kills", "after")],
)  # fmt: skip
def test_limits_equal_the_cgroup_files(captures: Path, kernel_version: str, case: str, container: str) -> None:
    """Real kernels: the limit in the report is memory.max, the kills are those that memory.events counted."""
    folder = captures / "kernel" / kernel_version / "memcg_v2" / case
    events = read_file(folder / "dmesg.txt")
    limit = int((folder / container / "memory.max.txt").read_text())
    assert {e.fields["memcg_limit_kib"] * 1024 for e in events} == {limit}
    counted = dict(line.split() for line in (folder / container / "memory.events.txt").read_text().splitlines())
    assert len(events) <= int(counted["oom_kill"])
    assert all(e.complete or e.fields.get("group_kill") for e in events)
    assert {e.scope.pod_uid for e in events} == {"7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"}
    assert {e.fields["oom_scope"] for e in events} == {"pod" if case == "b3_pod_limit" else "container"}


@pytest.mark.parametrize("kernel_version", ["6.1", "7.2"])
def test_every_mode_of_dmesg_gives_the_same_kill(captures: Path, kernel_version: str) -> None:
    """One ring buffer in all modes of three dmesg versions, busybox and /dev/kmsg."""
    folder = captures / "kernel" / kernel_version / "global" / "dmesg"
    seen = set()
    for path in sorted(folder.iterdir()):
        if path.name in ("dmesg_-u.txt", "dmesg_-Tk_-l_err+.txt"):
            continue  # user messages, and errors only
        (event,) = read_file(path)
        seen.add((event.text, event.fields["invoker_comm"], event.fields["node_ram_kib"], event.fields["task_count"],
                  event.fields["victim_anon_rss_kib"], event.channel))  # fmt: skip
    assert len(seen) == 1
