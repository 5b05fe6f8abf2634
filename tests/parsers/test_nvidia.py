"""nvidia-smi: CSV tables and text views."""

from __future__ import annotations

import pytest

from forensics.model import Parsed, Samples, StampForm
from forensics.parsers import FORMATS, nvidia_csv, nvidia_text
from forensics.parsers.nvidia_rows import bus_id
from forensics.scan import scan
from forensics.sources import identify, make_head

HEADER = "timestamp, index, uuid, memory.used [MiB], memory.total [MiB], utilization.gpu [%], power.draw [W]"
UUID = "GPU-9b1e44c0-2d0a-4f7e-8a10-6f1c5b2e7d01"


def table(text: str, path: str = "gpu.csv") -> Parsed:
    head = make_head(path, text.encode(), True)
    assert identify(head, FORMATS) is nvidia_csv.FORMAT
    assert nvidia_csv.FORMAT.series is not None
    assert nvidia_csv.FORMAT.samples is not None
    scanned = scan(iter([text.encode()]), ["no such line"], (), nvidia_csv.FORMAT.series(head))
    return nvidia_csv.FORMAT.samples(scanned, path, head)


def series(parsed: Parsed, name: str) -> list[Samples]:
    return [sample for sample in parsed.samples if sample.name == name]


def view(text: str) -> Parsed:
    assert nvidia_text.FORMAT.read is not None
    return nvidia_text.FORMAT.read(text, "smi.txt")


def test_a_looped_query_gives_one_series_a_gpu() -> None:
    """Values lose their units; the uuid names the GPU; the time is local without a zone."""
    parsed = table(f"""{HEADER}
2026/11/29 21:25:17.100, 0, {UUID}, 42064 MiB, 46068 MiB, 44 %, 199.80 W
2026/11/29 21:25:17.100, 1, {UUID[:-1]}2, 18 MiB, 46068 MiB, 0 %, [N/A]
2026/11/29 21:25:32.101, 0, {UUID}, 42066 MiB, 46068 MiB, 45 %, 187.81 W
2026/11/29 21:25:32""")
    used = series(parsed, "gpu_memory_used_mib")
    assert [list(sample.values) for sample in used] == [[42064.0, 42066.0], [18.0]]
    assert used[0].scope.gpu == UUID
    assert (used[0].form, used[0].layer) == (StampForm.LOCAL, "nvidia-smi")
    assert used[0].stamps[1] - used[0].stamps[0] == pytest.approx(15.001)
    assert list(used[0].lines) == [2, 4]
    assert len(series(parsed, "gpu_power_w")) == 1
    states = [event for event in parsed.events if event.kind == "gpu_state"]
    assert states[0].fields["index"] == 0
    assert states[0].fields["memory_total_mib"] == 46068
    assert parsed.diagnostics == ()


def test_a_repeated_header_may_redefine_the_columns() -> None:
    """Appended files: the order after the second header is another one."""
    parsed = table(f"""{HEADER}
2026/11/29 21:25:17.100, 0, {UUID}, 10 MiB, 46068 MiB, 44 %, 199.80 W
timestamp, index, uuid, memory.total [MiB], memory.used [MiB]
2026/11/29 21:26:17.100, 0, {UUID}, 46068 MiB, 20 MiB
{HEADER}
2026/11/29 21:27:17.100, 0, {UUID}, 30 MiB, 46068 MiB, 44 %, 199.80 W""")
    assert list(series(parsed, "gpu_memory_used_mib")[0].values) == [10.0, 20.0, 30.0]


def test_nounits_and_alias_headers() -> None:
    """The header keeps its unit, the cells do not."""
    parsed = table("timestamp, name, pci.bus_id, memory.used [MiB], memory.free [MiB]\n"
                   "2026/11/29 21:25:17.100, NVIDIA L40S, 00000000:A1:00.0, 77, 46000\n")  # fmt: skip
    (sample,) = series(parsed, "gpu_memory_used_mib")
    assert (sample.values[0], sample.scope.gpu) == (77.0, "0000:a1:00")


def test_a_table_without_header_is_guessed_and_said_so() -> None:
    """Two amounts: the constant larger one is the total. Three: used and free cannot be told apart."""
    two = table(
        "2026/11/29 21:25:17.100, 0, 41000 MiB, 46068 MiB, 5 %\n2026/11/29 21:25:27.100, 0, 41500 MiB, 46068 MiB, 5 %\n"
    )
    assert list(series(two, "gpu_memory_used_mib")[0].values) == [41000.0, 41500.0]
    assert list(series(two, "gpu_memory_total_mib")[0].values) == [46068.0, 46068.0]
    three = table(
        "2026/11/29 21:25:17.100, 0, 46068 MiB, 41000 MiB, 4459 MiB\n"
        "2026/11/29 21:25:27.100, 0, 46068 MiB, 41500 MiB, 3959 MiB\n"
    )
    assert series(three, "gpu_memory_used_mib") == []
    assert len(three.diagnostics) == 1


def test_a_lost_gpu_is_an_event() -> None:
    """Error cells of one GPU are one event with their count; N/A is only missing."""
    rows = "\n".join(
        f"2026/11/29 21:25:{i:02d}.100, 5, {UUID}, [GPU is lost], 46068 MiB, [GPU is lost], [N/A]" for i in range(5)
    )
    parsed = table(f"{HEADER}\n2026/11/29 21:24:17.100, 5, {UUID}, 70 MiB, 46068 MiB, 1 %, 9.00 W\n{rows}")
    (lost,) = [event for event in parsed.events if event.kind == "log"]
    assert lost.text == f"GPU 5 ({UUID}): [GPU is lost]"
    assert (lost.locator.line, lost.count, lost.last_line) == (3, 5, 7)
    assert lost.channel == "nvidia"


def test_dates_and_failures_between_the_rows() -> None:
    """A shell loop prints `date` before each call; a failing call prints its reason."""
    parsed = table(
        "Sun Nov 29 21:25:17 UTC 2026\nindex, memory.used [MiB]\n0, 100 MiB\n1, 200 MiB\n"
        "Sun Nov 29 21:25:27 UTC 2026\nindex, memory.used [MiB]\n0, 110 MiB\n1, 210 MiB\n"
        "Sun Nov 29 21:25:37 UTC 2026\nFailed to initialize NVML: Unknown Error\n"
    )
    used = series(parsed, "gpu_memory_used_mib")
    assert [(s.scope.gpu, list(s.values), s.form) for s in used] == [
        ("0", [100.0, 110.0], StampForm.INSTANT), ("1", [200.0, 210.0], StampForm.INSTANT),
    ]  # fmt: skip
    (failure,) = [event for event in parsed.events if event.kind == "log"]
    assert failure.stamps[0].seconds - used[0].stamps[0] == 20


def test_a_single_column_between_dates() -> None:
    """The shortest loop: `date; nvidia-smi --query-gpu=memory.used --format=csv`."""
    parsed = table(
        "memory.used [MiB]\n100 MiB\nSun Nov 29 21:25:27 UTC 2026\nmemory.used [MiB]\n110 MiB\n[N/A]\n"
    )
    assert [list(sample.values) for sample in parsed.samples] == [[100.0], [110.0]]
    assert parsed.samples[1].stamps[0] == 1795987527.0


def test_processes_and_names_with_commas() -> None:
    """Rows are cut from both ends; a process has one event and one series."""
    parsed = table(f"""timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]
2026/11/29 21:25:17.100, {UUID}, 2180411, VLLM::EngineCore, 42046 MiB
2026/11/29 21:25:17.100, {UUID}, 2211874, /opt/a, b/python, 412 MiB
2026/11/29 21:25:47.100, {UUID}, 2180411, VLLM::EngineCore, 42046 MiB""")
    first, second = parsed.events
    assert (first.fields["pid"], first.fields["used_mib"], first.count) == (2180411, 42046, 2)
    assert second.fields["name"] == "/opt/a, b/python"
    assert first.text == "pid 2180411 VLLM::EngineCore uses 42046 MiB"
    assert [len(sample.values) for sample in series(parsed, "gpu_process_memory_mib")] == [2, 1]


def test_dead_processes_and_remapped_rows() -> None:
    """Accounted apps tell the peak of processes that are gone."""
    dead = table(f"gpu_uuid, pid, gpu_utilization [%], max_memory_usage [MiB]\n{UUID}, 77, 31 %, 45000 MiB\n")
    assert dead.events[0].fields["peak_mib"] == 45000
    rows = table(
        f"gpu_uuid, remapped_rows.uncorrectable, remapped_rows.pending, remapped_rows.failure\n{UUID}, 2, Yes, No\n"
    )
    assert rows.events[0].fields["remapped_rows_pending"] == "Yes"
    assert rows.events[0].fields["remapped_rows_uncorrectable"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "timestamp,pod,container,container_memory_working_set_bytes\n1760428547,a,b,1\n",
        "minute_utc,requests,status_5xx\n2026-11-24T08:00Z,9,0\n",
        "name, index\na, 1\n",
        "INFO 11-29 21:25:17 [a.py:1] memory.used [MiB], yes\n",
    ],
)
def test_other_tables_are_not_claimed(text: str) -> None:
    """Only columns that nvidia-smi alone has count."""
    assert nvidia_csv.FORMAT.sniff(make_head("x.csv", text.encode(), True)) == 0


def test_a_log_with_slashed_dates_is_no_table() -> None:
    """Go prints such dates too; what follows is a message, with commas in it."""
    text = '2026/11/29 21:25:17 INF Event stored event={"Kind":"REBALANCE","Node":"a"}\n' * 4
    assert nvidia_csv.FORMAT.sniff(make_head("agent.log", text.encode(), True)) == 0


BOX_570 = """Sun Nov 29 21:25:17 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA L40S                    On  |   00000000:25:00.0 Off |                    2 |
| N/A   49C    P0             88W /  350W |   15278MiB /  46068MiB |     11%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA L40S                    On  |   00000000:A8:00.0 Off |                 ERR! |
|ERR!   ERR! ERR!            N/A  /  N/A  |    GPU is lost         |    ERR!         ERR! |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|    0   N/A  N/A         2211874      C   /home/dev/venv/bin/python             15260MiB |
+-----------------------------------------------------------------------------------------+
"""
BOX_470 = """| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|   0  Tesla T4            On   | 00000000:00:1E.0 Off |                    0 |
| N/A   62C    P0    70W /  70W |  14925MiB / 15109MiB |    100%      Default |
|    0   N/A  N/A     12345      C   python3                         14920MiB |
"""
BOX_MIG = """| NVIDIA-SMI 610.57.01              KMD Version: 610.57.01     CUDA UMD Version: 13.3     |
|   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |                   On |
| N/A   33C    P0            127W /  700W |   16959MiB / 143771MiB |     N/A      Default |
|  0    1   0   0  |           16925MiB / 71424MiB    | 26      0 |  3   0    3    0    3 |
|  0    1   1   1  |           16925MiB / 71424MiB    | 26      0 |  3   0    3    0    3 |
|    0    1    0            53120      C   VLLM::EngineCore                      16900MiB |
"""


def test_the_boxed_table() -> None:
    """States, samples, processes, the lost GPU and the driver."""
    parsed = view(BOX_570)
    states = [event for event in parsed.events if event.kind == "gpu_state"]
    assert states[0].fields["memory_used_mib"] == 15278
    assert states[0].fields["pci_bus_id"] == "0000:25:00"
    assert states[0].fields["ecc_uncorrected"] == 2
    assert states[0].fields["driver_version"] == "570.133.20"
    assert states[0].stamps[0].form is StampForm.LOCAL
    (process,) = [event for event in parsed.events if event.kind == "gpu_process"]
    assert process.fields == {"pid": 2211874, "name": "/home/dev/venv/bin/python", "used_mib": 15260}
    texts = [event.text for event in parsed.events if event.kind == "log"]
    assert texts == ["NVIDIA-SMI 570.133.20, driver 570.133.20, CUDA 12.8", "GPU 1 (1): [GPU is lost]"]
    told = next(event.fields for event in parsed.events if "CUDA" in event.text)
    assert told == {"driver_version": "570.133.20", "driver_cuda": "12.8"}
    assert list(series(parsed, "gpu_memory_used_mib")[0].values) == [15278.0]


def test_a_card_that_answers_with_errors() -> None:
    """The row of the box is kept as it is printed: one failed sensor is not a silent card."""
    silent = "| N/A  ERR!  ERR!            ERR! /  ERR! |   15278MiB /  46068MiB |    ERR!      Default |"
    lost = next(line for line in BOX_570.split("\n") if "GPU is lost" in line)
    parsed = view(BOX_570.replace(lost, silent))
    (note,) = [event for event in parsed.events if "ERR!" in event.text]
    assert (note.text, note.scope.gpu) == (silent, "1")


def test_a_row_without_a_single_value() -> None:
    """Every sensor of the card failed: that is told, and one failed sensor is not."""
    good = f"{HEADER}\n2026/11/29 21:25:17.100, 3, {UUID}, 9000 MiB, 46068 MiB, 40 %, 80.00 W\n"
    for cells, told in (
        ("{0}, 46068 MiB, {0}, {0}", "[Unknown Error] in all 3 columns"),
        ("9000 MiB, 46068 MiB, 40 %, {0}", "[Unknown Error]"),
    ):
        parsed = table(f"{good}2026/11/29 21:25:27.100, 3, {UUID}, {cells.format('[Unknown Error]')}")
        assert [e.text for e in parsed.events if e.kind == "log"] == [f"GPU 3 ({UUID}): {told}"]


@pytest.mark.parametrize("kept", [slice(1, 3), slice(1, None)], ids=["the rows of a card", "all but the head"])
def test_a_box_without_its_head(kept: slice) -> None:
    """People paste the lines that they wonder about; a log around them does not hide them."""
    rows = "\n".join(BOX_470.splitlines()[kept])
    head = make_head("paste.txt", rows.encode(), True)
    assert identify(head, FORMATS).name == "nvidia.smi"
    assert next(e for e in view(rows).events if e.kind == "gpu_state").fields["memory_used_mib"] == 14925


def test_a_row_of_another_box_is_none() -> None:
    assert not nvidia_text.is_loose(["|   0  fast lane            On   |", "| N/A   62C    P0    70W /  70W |  14925MiB / 15109MiB |"], 0)
    assert not nvidia_text.is_loose(["| Model | Version |", "+-------+---------+"], 0)


def test_older_and_newer_boxes() -> None:
    """Driver 470 is narrower, 610 renames the header; MIG instances share memory and are told once."""
    old = view(BOX_470)
    assert next(e for e in old.events if e.kind == "gpu_state").fields["memory_total_mib"] == 15109
    assert next(e for e in old.events if e.kind == "gpu_process").fields["used_mib"] == 14920
    new = view(BOX_MIG)
    instances = [e for e in new.events if "mig_instance" in e.fields]
    assert [(e.scope.gpu, e.fields["memory_used_mib"], e.fields["memory_total_mib"]) for e in instances] == [
        ("0/gi1", 16925, 71424)
    ]


def test_the_long_query() -> None:
    """`nvidia-smi -q`: only the framebuffer counts, ECC errors are summed."""
    parsed = view("""
==============NVSMI LOG==============

Timestamp                                 : Sun Nov 29 21:25:17 2026
Driver Version                            : 595.71.05
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H200
    Minor Number                          : 0
    GPU UUID                              : GPU-6b1f0a2c-1111-2222-3333-444455556666
    FB Memory Usage
        Total                             : 143771 MiB
        Reserved                          : 614 MiB
        Used                              : 32362 MiB
        Free                              : 110796 MiB
    BAR1 Memory Usage
        Used                              : 4 MiB
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 1
            DRAM Correctable              : 9
            DRAM Uncorrectable            : 2
    Remapped Rows
        Pending                           : Yes
    Processes
        Process ID                        : 53120
            Name                          : VLLM::EngineCore
            Used GPU Memory               : 32342 MiB
""")
    state, process = parsed.events
    assert state.fields["memory_used_mib"] == 32362
    assert state.fields["memory_reserved_mib"] == 614
    assert (state.fields["ecc_uncorrected"], state.fields["remapped_rows_pending"]) == (3, "Yes")
    assert state.scope.gpu == "GPU-6b1f0a2c-1111-2222-3333-444455556666"
    assert process.fields["used_mib"] == 32342


def test_lists_monitors_and_failures() -> None:
    """`-L`, `dmon -o DT`, `pmon`, and what nvidia-smi says when it cannot work."""
    listed = view("GPU 0: NVIDIA H200 (UUID: GPU-6b1f0a2c-1111)\n  MIG 1c.3g.71gb  Device  0: (UUID: MIG-aa-bb)\n")
    assert [event.fields["uuid"] for event in listed.events] == ["GPU-6b1f0a2c-1111", "MIG-aa-bb"]
    monitored = view("#Date       Time        gpu    pwr  gtemp     sm    fb\n"
                     "#YYYYMMDD   HH:MM:SS    Idx      W      C      %    MB\n"
                     " 20261129   21:25:17      0     71     33      5  32362\n")  # fmt: skip
    assert series(monitored, "gpu_memory_used_mib")[0].values[0] == 32362
    processes = view(
        "# gpu         pid   type     sm    fb    command\n"
        "    0      53120     C     31  72960    VLLM::EngineCor\n"
        "    1          -     -      -      -    -\n"
    )
    assert [event.fields["used_mib"] for event in processes.events] == [72960]
    text = (
        "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU"
    )
    assert [event.text for event in view(text).events] == [text]
    assert nvidia_text.FORMAT.sniff(make_head("smi.txt", text.encode(), True)) == 90


def test_bus_ids_are_written_in_one_way() -> None:
    """As in Xid lines."""
    assert bus_id("00000000:A8:00.0") == bus_id("0000:a8:00") == bus_id("A8:00.0") == "0000:a8:00"
    assert bus_id("3") == "3"


def test_recognition() -> None:
    """Boxes and reports are told from logs and from each other."""
    for text, name in (
        (BOX_570, "nvidia.smi"),
        ("Start of NVIDIA bug report log file.\n" + BOX_570, "nvidia.bug_report"),
    ):
        form = identify(make_head("x", text.encode(), True), FORMATS)
        assert form is not None
        assert form.name == name


def test_rows_between_remarks() -> None:
    """The command stands above rows without a header, and a remark below them; both hold commas."""
    text = """# cron, 1/min: nvidia-smi --query-compute-apps=timestamp,pid,process_name,used_gpu_memory --format=csv,noheader
2026/05/12 08:32:00.104, 40122, /opt/engine, 9146 MiB
2026/05/12 08:33:00.098, 40122, /opt/engine, 9146 MiB
2026/05/12 08:33:00.098, 47710, /usr/bin/python3, 14562 MiB
# 24564 MiB in all, 338 MiB reserved
"""
    form = identify(make_head("apps.txt", text.encode(), True), FORMATS)
    assert form is not None
    assert form.name == "nvidia.csv"
