"""What collectors put around a line: every prefix is peeled, and its time and speaker kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import stamps
from forensics.model import StampForm
from forensics.parsers.envelopes import ENVELOPES, channel_of, starting_with
from forensics.parsers.records import Record, unwrap
from forensics.stamps import iso_utc

MESSAGE = "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
AT = 1795987457.0  # 2026-11-29T21:24:17Z
YEARLESS_AT = 975533057.0  # the same in the year 2000


def peel(line: str) -> Record:
    return unwrap(line, 1)


@pytest.mark.parametrize(
    ("prefix", "form", "seconds"),
    [
        ("[   39.447599] ", StampForm.BOOT, 39.447599),
        ("[1934709.674410] ", StampForm.BOOT, 1934709.67441),
        ("<4>[   39.447599] ", StampForm.BOOT, 39.447599),
        ("kern  :warn  : [   39.447599] ", StampForm.BOOT, 39.447599),
        ("local0:notice: [   39.447599] ", StampForm.BOOT, 39.447599),
        ("[   39.447599 <    0.000301>] ", StampForm.BOOT, 39.447599),
        ("[   39.447599][ T1234] ", StampForm.BOOT, 39.447599),
        ("[   39.447599] [    C3] ", StampForm.BOOT, 39.447599),
        ("gpu-node-7 login: [   39.447599] ", StampForm.BOOT, 39.447599),
        ("4,550,39447599,-;", StampForm.BOOT, 39.447599),
        ("4,550,39447599,-,caller=T77;", StampForm.BOOT, 39.447599),
        ("[Sun Nov 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("kern  :err   : [Sun Nov 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("[Sun Nov 29 21:24:17 2026 <    0.000301>] ", StampForm.LOCAL, AT),
        ("[So Nov 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("[日 11月 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("[nie lis 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("[su marras 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("[Вс ноя 29 21:24:17 2026] ", StampForm.LOCAL, AT),
        ("2026-11-29T21:24:17,000000+00:00 ", StampForm.INSTANT, AT),
        ("2026-11-30T05:24:17,000000+08:00 ", StampForm.INSTANT, AT),
        ("[Nov29 21:24] ", StampForm.YEARLESS, YEARLESS_AT - 17),
        ("10.5.0.2: kern: warning: [2026-11-29T21:24:17.0Z]: ", StampForm.INSTANT, AT),
    ],
)
def test_every_kernel_prefix_is_peeled(prefix: str, form: StampForm, seconds: float) -> None:
    """dmesg in its modes, /dev/kmsg, a login prompt on the console, Talos: same message, channel kernel."""
    record = peel(prefix + MESSAGE)
    assert (record.text, record.channel) == (MESSAGE, "kernel")
    assert [(stamp.form, stamp.layer) for stamp in record.stamps] == [(form, "dmesg")]
    assert record.stamps[0].seconds == pytest.approx(seconds)


@pytest.mark.parametrize("prefix", ["[  +0.000301] ", "[ +12.000301] ", "[<    0.000010>] ", "kern  :warn  : "])
def test_prefixes_without_a_time_are_peeled(prefix: str) -> None:
    """A distance to the line before is no time of its own."""
    record = peel(prefix + MESSAGE)
    assert (record.text, record.channel, record.stamps) == (MESSAGE, "kernel", ())


def test_the_minute_of_reltime_is_wide() -> None:
    """`[Nov29 21:24]` says the minute only; the day may be padded."""
    assert peel("[Nov29 21:24] x").stamps[0].resolution_s == 60
    assert peel("[Nov 9 21:24] x").text == "x"


@pytest.mark.parametrize(("name", "month"), [
    ("Nov", 11), ("November", 11), ("mars", 3), ("marras", 11), ("sept.", 9), ("Mär", 3), ("lis", 11), ("Eki", 10),
    ("út", None), ("12月", 12), ("13月", None), ("vas.", None),
])  # fmt: skip
def test_months_of_the_common_locales(name: str, month: int | None) -> None:
    """What a language calls so comes before what English begins so."""
    assert stamps.month_number(name) == month


def test_a_month_in_an_unknown_language_loses_its_time_only() -> None:
    """The message is still the kernel's."""
    record = peel("[Al. lapkr. 29 21:24:17 2026] NVRM: text")
    assert (record.text, record.channel) == ("NVRM: text", "kernel")


@pytest.mark.parametrize(
    ("line", "forms"),
    [
        ("Nov 29 21:24:17 gpu-node-7 kernel: [   39.447599] ", [StampForm.YEARLESS, StampForm.BOOT]),
        ("Nov  9 21:24:17 gpu-node-7 kernel: [   39.447599] ", [StampForm.YEARLESS, StampForm.BOOT]),
        ("2026-11-29T21:24:17.123456+00:00 gpu-node-7 kernel: [   39.447599] ", [StampForm.INSTANT, StampForm.BOOT]),
        ("<4>1 2026-11-29T21:24:17.1Z gpu-node-7 kernel - - -  [   39.447599] ", [StampForm.INSTANT, StampForm.BOOT]),
        ("2026-11-29T21:24:17,123456+00:00 [   39.447599] ", [StampForm.INSTANT, StampForm.BOOT]),
        ("Nov 29 21:24:17 gpu-node-7 kernel:", [StampForm.YEARLESS]),
        ("Nov 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("Nov 29 21:24:17 kernel: ", [StampForm.YEARLESS]),
        ("Nov 29 21:24:17.123456 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("11月 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        (" 9월 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("wrz 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("août 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("Ağu 29 21:24:17 gpu-node-7 kernel: ", [StampForm.YEARLESS]),
        ("Sun 2026-11-29 21:24:17 UTC gpu-node-7 kernel: ", [StampForm.INSTANT]),
        ("Sun 2026-11-29 16:24:17 EST gpu-node-7 kernel: ", [StampForm.LOCAL]),
        ("Sun 2026-11-29 21:24:17 +08 gpu-node-7 kernel: ", [StampForm.INSTANT]),
        ("2026-11-29T21:24:17-0500 gpu-node-7 kernel: ", [StampForm.INSTANT]),
        ("2026-11-29T21:24:17.123456-05:00 kernel: ", [StampForm.INSTANT]),
        ("1795987457.123456 gpu-node-7 kernel: ", [StampForm.INSTANT]),
        ("[   39.447599] gpu-node-7 kernel: ", [StampForm.BOOT]),
        ("[   39.447599                ] gpu-node-7 kernel: ", [StampForm.BOOT]),
        ("[   39.447599 <    0.000010 >] gpu-node-7 kernel: ", [StampForm.BOOT]),
        ("[   39.447599 <    0.000010*>] gpu-node-7 kernel: ", [StampForm.BOOT]),
        ("[   39.447599] kernel: ", [StampForm.BOOT]),
    ],
)
def test_every_journal_and_syslog_prefix_is_peeled(line: str, forms: list[StampForm]) -> None:
    """journalctl's text modes and rsyslog's templates; imklog's inner time is a second stamp."""
    record = peel(line + MESSAGE)
    assert (record.text, record.channel) == (MESSAGE, "kernel")
    assert [stamp.form for stamp in record.stamps] == forms


def test_monotonic_journal_lines_keep_their_host() -> None:
    """The journal's boot seconds are a layer of their own: its lines are not only the kernel's."""
    record = peel("[  101.100000] gpu-node-7 systemd[1]: Started vllm.service.")
    assert (record.channel, record.scope.host, record.stamps[0].layer) == ("systemd", "gpu-node-7", "journal")


@pytest.mark.parametrize(
    ("header", "channel"),
    [
        ("kubelet[1184]", "kubelet"), ("containerd[901]", "runtime"), ("docker.service[88]", "runtime"),
        ("init.scope[1]", "systemd"), ("(vllm[209]", "systemd"), ("(vllm)[209]", "systemd"), ("earlyoom[77]", "oomd"),
        ("chronyd[612]", "clock"), ("vllm[2301]", "host"), ("vllm.service[2301]", "host"), ("unknown", "host"),
    ],
)  # fmt: skip
def test_the_identifier_tells_who_speaks(header: str, channel: str) -> None:
    """Units name programs in with-unit; systemd's child has a bracket before exec."""
    assert peel(f"Nov 29 21:24:17 gpu-node-7 {header}: hello").channel == channel
    assert channel_of("/usr/sbin/chronyd") == "clock"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("active_anon:1591 inactive_anon:75326 isolated_anon:0", None),
        ("nvme nvme0: pci function 0000:00:04.0", None),
        ("IOAPIC[0]: apic_id 0, version 32", None),
        ("python3[104]: segfault at 10 ip 401964 sp 7ffe error 6 in eater", None),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", None),
        ("systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL", "systemd"),
    ],
)
def test_kernel_messages_are_not_mistaken_for_headers(text: str, message: str | None) -> None:
    """Colons are everywhere in kernel text; only systemd and its kin sign what they write to /dev/kmsg."""
    record = peel(f"[   12.000001] {text}")
    assert record.channel == (message or "kernel")
    assert record.text == (text if message is None else text.partition(": ")[2])


@pytest.mark.parametrize(
    "text",
    ["ValueError: key: missing", "KeyError: model: x", "Using device: cuda", "Bus error: core dumped"],
)
def test_runtime_stamps_prove_no_syslog(text: str) -> None:
    """`kubectl logs --timestamps` puts UTC in front of any text."""
    assert peel(f"2026-11-29T21:24:17.123456789Z {text}").text == text


def test_engine_headers_stay_inside_their_journal_header() -> None:
    """vLLM's header is found anywhere in a line, but the journal's time and name come first."""
    record = peel("Nov 29 21:24:17 gpu-node-7 vllm[7]: (APIServer pid=7) INFO 11-29 21:24:17 [api_server.py:18] up")
    assert record.envelopes == ("journal-short", "process", "vllm")
    assert (record.text, record.channel, record.ident, record.scope.host) == ("up", "engine", "vllm", "gpu-node-7")
    assert [stamp.layer for stamp in record.stamps] == ["journal", "engine"]


def test_escapes_are_undone() -> None:
    """rsyslog writes newline as #012, /dev/kmsg bytes as two hex digits."""
    assert peel("Nov 29 21:24:17 n kernel: anon 5#012file 7").text == "anon 5\nfile 7"
    assert peel(r"4,1,2000000,-;\xe6\x98\xbe\xe5\xad\x98\x0arest").text == "显存\nrest"
    assert peel(" SUBSYSTEM=pci").text == ""


def test_journal_json_entries() -> None:
    """Arrays of bytes, null and repeated fields; the kernel's transport cannot be forged by a name."""
    base = '"__REALTIME_TIMESTAMP":"1795987457000000","_HOSTNAME":"n"'
    coloured = peel('{"MESSAGE":[27,91,51,49,109,104,105,27,91,48,109],"SYSLOG_IDENTIFIER":"vllm",' + base + "}")
    assert (coloured.text, coloured.channel, coloured.stamps[0].seconds) == ("hi", "host", AT)
    assert peel('{"MESSAGE":null,"SYSLOG_IDENTIFIER":"vllm",' + base + "}").text == ""
    assert peel('{"MESSAGE":["one","two"],"_COMM":"sshd",' + base + "}").text == "one"
    forged = peel('{"MESSAGE":"Killed process 1","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"syslog",' + base + "}")
    assert forged.channel == "host"
    kernel = peel('data: {"MESSAGE":"x","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"kernel",' + base + "}")
    assert kernel.channel == "kernel"
    unit = peel(
        '\x1e{"MESSAGE":"x","SYSLOG_IDENTIFIER":"systemd","_SYSTEMD_UNIT":"init.scope","UNIT":"v.service",' + base + "}"
    )
    assert (unit.channel, unit.scope.unit) == ("systemd", "v.service")


def test_names_of_envelopes_are_unique() -> None:
    """A layer is peeled once; the name is how that is known."""
    names = [name for name, _ in ENVELOPES]
    assert len(names) == len(set(names))


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "[", "<", "{", "-- ", "[Nov", "4,,,;", "\x00\x00", "Nov 99 99:99:99 a b: c", HUGE,
        f"[{HUGE}.000001] x", f"4,1,{HUGE},-;x", f"Nov 29 21:24:17 n vllm[{HUGE}]: x", f"<4>1 - n vllm {HUGE} - - x",
        "<4>1 - n vllm ² - - x", f'{{"__REALTIME_TIMESTAMP":"{HUGE}","_PID":"{HUGE}","MESSAGE":"x"}}',
        f'{{"ts":{"9" * 400},"msg":"x"}}', f'{{"label":"a","source_type":"b","message":"c","timestamp":"{HUGE}"}}',
        f"(EngineCore pid={HUGE}) x", f"[rank{HUGE}]: x",
    ],
)  # fmt: skip
def test_nothing_raises(text: str) -> None:
    """Bad input is a line without layers, or without its numbers."""
    assert isinstance(peel(text), Record)


def lines() -> list[str]:
    """Lines of all samples, with one and two of their headers taken off as well."""
    found = []
    for path in sorted((Path(__file__).resolve().parents[2] / "samples").rglob("*")):
        if path.is_file() and path.suffix in (".txt", ".log"):
            found += path.read_text(encoding="utf-8", errors="replace").split("\n")[::5]
    return found + [line.partition(" ")[2] for line in found] + [line.partition("] ")[2] for line in found]


def test_the_first_character_rules_out_no_envelope() -> None:
    """Only envelopes that such a text cannot have are left untried."""
    extra = ["", "-", "░░ Subject", " DEVICE=+pci:0", "\x1e{}", 'data: {"a": 1}', "٣", "1728129601.123456 h a[1]: x", "<4>[1.000000] x"]
    for text in {*lines(), *extra}:
        tried = starting_with(text[:1])
        for name, envelope in ENVELOPES:
            assert (name, envelope) in tried or envelope(text) is None, (name, text[:80])


def test_a_progress_bar_keeps_its_collectors_stamp() -> None:
    """`kubectl logs --timestamps` stamps a line that begins with a carriage return; what a terminal shows is the last piece."""
    record = unwrap("2026-04-07T20:15:57.117527444Z (EngineCore_DP0 pid=70) \rLoading shards: 7%\rLoading shards: 14% | 2/14")
    assert record.text == "Loading shards: 14% | 2/14"
    assert [stamp.layer for stamp in record.stamps] == ["prefix"]
    glued = unwrap("Loading shards: 7%\rINFO 05-06 02:33:20 [core.py:77] Initializing")
    assert (glued.text, [stamp.layer for stamp in glued.stamps]) == ("Initializing", ["engine"])


@pytest.mark.parametrize(
    ("line", "text", "channel", "shown"),
    [
        ("2026/05/12 08:00:00 WRN cordon failed error=timeout", "cordon failed error=timeout", "host", "2026-05-12T08:00:00"),
        ("2026/05/12 08:00:00 http: Server closed", "http: Server closed", "", "2026-05-12T08:00:00"),
        ("12-05-2026 08:00:00 Container /chat-1 (5e0d7a91c3b2) found", "Container /chat-1 (5e0d7a91c3b2) found", "runtime",
         "2026-05-12T08:00:00"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-05-12T08:00:00 DUE TO PREEMPTION ***",
         "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-05-12T08:00:00 DUE TO PREEMPTION ***", "host",
         "2026-05-12T08:00:00"),
        ("srun: error: n1: task 0: Killed", "srun: error: n1: task 0: Killed", "host", ""),
        ("2026-05-12 08:00:00 +0200 ready", "ready", "", "2026-05-12T06:00:00"),
    ],
    ids=["zerolog", "go", "autoheal", "slurm", "srun", "blank before the zone"],
)  # fmt: skip
def test_headers_of_agents_and_schedulers(line: str, text: str, channel: str, shown: str) -> None:
    record = peel(line)
    assert (record.text, record.channel) == (text, channel)
    assert [iso_utc(stamp.seconds, 0)[:19] for stamp in record.stamps] == ([shown] if shown else [])
def test_agents_of_a_node_speak_on_host() -> None:
    """zerolog's console, as aws-node-termination-handler prints it: what it tells of is its node, not its pod."""
    record = peel("2026/11/29 21:24:17 WRN Draining failed node_name=gpu-node-7 error=timeout")
    assert (record.channel, record.level, record.scope.host) == ("host", "WARNING", "gpu-node-7")
    assert record.text == "Draining failed node_name=gpu-node-7 error=timeout"
    assert peel("2026/11/29 21:24:17 listening on :8080").channel == "", "Go's own logger is anybody's"


@pytest.mark.parametrize(
    ("line", "channel"),
    [
        ("[2026-11-29T21:24:17.123] error: Nodes gpu-node-7 not responding, setting DOWN", "host"),
        ("[2026-11-29T21:24:17.123] _job_complete: JobId=40120 Node failure", "host"),
        ("[2026-11-29T21:24:17.123] [40120.batch] done with step", "host"),
        ("[2026-11-29T21:24:17.123] [40120_7.0] error: Detected 1 oom_kill event in StepId=40120_7.0.", "host"),
        ("[2026-11-29T21:24:17.123] launch task StepId=40121.0 request from UID:10 GID:10", "host"),
        ("[2026-11-29T21:24:17.123] preempted JobId=40120 has been requeued to reclaim resources for JobId=40177", "host"),
        ("[2026-11-29T21:24:17.123] cleanup_completing: JobId=40120 completion process took 31 seconds", "host"),
        ("[2026-11-29T21:24:17.123] [40120] done", ""),
        ("[2026-11-29T21:24:17.123] GET /health", ""),  # a CI's log, or anybody's
    ],
)
def test_daemons_of_slurm(line: str, channel: str) -> None:
    """`[stamp] ` alone would be anybody's; behind it stands what only slurmctld and slurmd say."""
    record = peel(line)
    assert record.channel == channel
    assert len(record.stamps) == 1


def test_a_kernel_message_whose_stamp_was_cut_off() -> None:
    """`cut` and people take the stamp away; only what the kernel alone prints is believed without it."""
    for head in ("kernel: ", "gpu-node-7 kernel: "):
        record = unwrap(f"{head}Out of memory: Killed process 7 (python3) total-vm:1kB")
        assert (record.channel, record.text[:13]) == ("kernel", "Out of memory")
    assert unwrap("kernel: compiled for sm_90").channel == ""


def test_a_stamp_in_brackets() -> None:
    """Jenkins' timestamper; SGLang's own header has a blank in it."""
    record = unwrap("[2026-05-12T10:41:00.123Z] ValueError: no")
    assert (record.text, record.envelopes) == ("ValueError: no", ("iso",))
    assert unwrap("[2026-05-12 10:41:00] Load weight end.").channel == "engine"


def test_the_headers_of_ollama() -> None:
    """Go's `slog` with the file that speaks, and the access line of its web framework; others' `slog` is nobody's."""
    record = unwrap('time=2026-05-12T08:31:02.771+02:00 level=WARN source=sched.go:722 msg="no room" gpu=GPU-1')
    assert (record.text, record.level, record.channel) == ('msg="no room" gpu=GPU-1', "WARNING", "engine")
    assert [stamp.form for stamp in record.stamps] == [StampForm.INSTANT]
    record = unwrap('[GIN] 2026/05/12 - 08:31:10 | 200 |  2.5s |  127.0.0.1 | POST     "/api/chat"')
    assert record.text == '[GIN] | 200 |  2.5s |  127.0.0.1 | POST     "/api/chat"'
    assert [stamp.form for stamp in record.stamps] == [StampForm.LOCAL]
    assert unwrap('time=2026-05-12T08:31:02.771+02:00 level=WARN msg="slow" attempt=3').envelopes == ()


@pytest.mark.parametrize(("line", "level", "text"), [
    ("(EngineCore_DP0 pid=117) ERROR torch.OutOfMemoryError: CUDA out of memory.", "ERROR", "torch.OutOfMemoryError: CUDA out of memory."),
    ("(EngineCore_DP0 pid=117) ERROR     self.model = load()", "ERROR", "    self.model = load()"),
    ("(EngineCore_DP0 pid=117) ERRORS were seen", "", "ERRORS were seen"),
    ("(raylet pid=117) ERROR here", "", "ERROR here"),
])  # fmt: skip
def test_a_header_without_its_time(line: str, level: str, text: str) -> None:
    """Somebody cut time and file out of each line; the process and the level stayed."""
    record = unwrap(line)
    assert (record.level, record.text) == (level, text)


def test_a_controller_is_no_engine() -> None:
    """controller-runtime's JSON: the keys behind the message say what it is about, `Node` whose machine."""
    head = '{"level":"INFO","time":"2026-11-29T21:24:17.310Z","logger":"controller","message":"initiating delete"'
    told = peel(head + ',"controller":"interruption","messageKind":"spot_interrupted","Node":{"name":"gpu-node-7"}}')
    assert (told.channel, told.scope.host) == ("host", "gpu-node-7")
    assert told.text == "initiating delete controller=interruption messageKind=spot_interrupted"
    assert peel(head + ',"processName":"APIServer"}').channel == "engine"


def test_the_logs_of_nomad_and_consul() -> None:
    """go-hclog indents on a terminal; a word in brackets behind a stamp is anybody's."""
    record = peel("    2026-11-29T22:24:17.000+0100 [INFO]  client.driver_mgr.docker: started container: driver=docker")
    assert (record.text, record.channel, record.level, record.logger) == (
        "started container: driver=docker", "runtime", "INFO", "client.driver_mgr.docker")  # fmt: skip
    assert (record.stamps[0].form, record.stamps[0].seconds) == (StampForm.INSTANT, AT)
    assert peel("2026-11-29T22:24:17.000+0100 [INFO] Nobody calls a logger so: x").channel == ""
    assert peel("2026-11-29T21:24:17Z stdout F     2026-11-29T22:24:17.000+0100 [INFO]  agent: joined").channel == "container"
