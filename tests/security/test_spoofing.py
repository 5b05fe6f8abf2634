"""What came through an untrusted channel is never a fact of the kernel, the kubelet, systemd or a runtime."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from forensics import analyze
from forensics.parsers.embedded import read_text
from forensics.parsers.journal_documents import FORMATS
from forensics.parsers.records import MACHINE, unwrap
from forensics.pipeline import read

SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"
KILL = (
    "Out of memory: Killed process 4711 (VLLM::EngineCor) total-vm:98765432kB, anon-rss:65432100kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:0 pgtables:12345kB oom_score_adj:0"
)
JOURNAL_ENTRY = {
    "__REALTIME_TIMESTAMP": "1795987637000000", "_HOSTNAME": "victim-node", "_TRANSPORT": "kernel",
    "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": KILL,
}  # fmt: skip
FORGERIES = {
    "dmesg": f"[123.456789] {KILL}",
    "dmesg -x": f"kern  :err   : [  123.456789] {KILL}",
    "dmesg -x without time": f"kern  :err   : {KILL}",
    "dmesg -T": f"[Sun Nov 29 21:27:17 2026] {KILL}",
    "dmesg iso": f"2026-11-29T21:27:17,000000+00:00 {KILL}",
    "kmsg": f"3,550,123456789,-;{KILL}",
    "talos": f"10.5.0.2: kern:     err: [2026-11-29T21:27:17.0Z]: {KILL}",
    "xid": "[123.456789] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.",
    "journal": f"Nov 29 21:27:17 victim-node kernel: {KILL}",
    "journal iso": f"2026-11-29T21:27:17+0000 victim-node kernel: {KILL}",
    "journal json": json.dumps(JOURNAL_ENTRY),
    "without a time of its own": f"victim-node kernel: {KILL}",
    "rfc5424": f"<3>1 2026-11-29T21:27:17Z victim-node kernel - - - {KILL}",
    "systemd": "Nov 29 21:27:17 victim-node systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL",
    "oomd": "Nov 29 21:27:17 victim-node systemd-oomd[700]: Killed /system.slice/vllm.service due to memory pressure",
    "kubelet": "E1129 21:27:17.000000    1184 eviction_manager.go:614] "
    '"Eviction manager: pod is evicted successfully" pod="inference/vllm-llama-0"',
    "kubelet in a journal": "Nov 29 21:27:17 victim-node kubelet[1184]: I1129 21:27:17.000000    1184 "
    'kuberuntime_container.go:808] "Killing container with a grace period" pod="inference/vllm-llama-0" gracePeriod=30',
    "containerd": 'time="2026-11-29T21:27:17.0Z" level=info msg="TaskOOM event container_id:\\"'
    f'{"ab" * 32}\\""',
    "bare": KILL,
}
"""Lines as somebody may write them into a prompt, each on a line of its own."""


def _lines(wrap: Callable[[int, str], str]) -> Callable[[Sequence[str]], str]:
    return lambda lines: "".join(f"{wrap(number, line)}\n" for number, line in enumerate(lines))


def _clock(number: int) -> str:
    return f"21:{20 + number // 60:02d}:{number % 60:02d}"


def _docker_json(number: int, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-11-29T{_clock(number)}.123456789Z"})


def _journald_container(number: int, line: str) -> str:
    return json.dumps({
        "__REALTIME_TIMESTAMP": str(1795987200000000 + number), "_TRANSPORT": "journal", "CONTAINER_NAME": "vllm",
        "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": line,
    })  # fmt: skip


COLLECTORS: dict[str, Callable[[Sequence[str]], str]] = {
    "kubectl logs": _lines(lambda _, line: line),
    "kubectl logs --timestamps": _lines(lambda n, line: f"2026-11-29T{_clock(n)}.123456789Z {line}"),
    "kubectl logs --prefix": _lines(lambda _, line: f"[pod/vllm-llama-0/vllm] {line}"),
    "CRI": _lines(lambda n, line: f"2026-11-29T{_clock(n)}.123456789Z stderr F {line}"),
    "docker json-file": _lines(_docker_json),
    "docker compose": _lines(lambda _, line: f"vllm-1  | {line}"),
    "journal of a unit": _lines(lambda n, line: f"Nov 29 {_clock(n)} gpu-node-7 vllm[209]: {line}"),
    "docker run in a unit": _lines(lambda n, line: f"Nov 29 {_clock(n)} gpu-node-7 docker[209]: {line}"),
    "docker's journald driver": _lines(lambda n, line: f"Nov 29 {_clock(n)} gpu-node-7 1f2e3d4c5b6a[88]: {line}"),
    "journald driver, json": _lines(_journald_container),
    "conmon": _lines(lambda n, line: f"Nov 29 {_clock(n)} gpu-node-7 conmon[88]: {line}"),
    "journal with boot seconds": _lines(lambda n, line: f"[{900 + n}.000001] gpu-node-7 vllm[209]: {line}"),
    "syslog, RFC 5424": _lines(lambda n, line: f"<30>1 2026-11-29T{_clock(n)}Z gpu-node-7 vllm 209 - - {line}"),
}


def engine_log(count: int = 30) -> list[str]:
    """A vLLM that serves; every line has its header."""
    lines = [
        "(APIServer pid=1) INFO 11-29 21:20:00 [api_server.py:1839] vLLM API server version 0.11.0",
        "(EngineCore_DP0 pid=142) INFO 11-29 21:20:02 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: "
        "model='org/model'",
    ]
    stats = (
        "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, "
        "Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
    )
    for number in range(count):
        lines.append(f"(APIServer pid=1) INFO 11-29 21:2{1 + number // 6}:{number % 6}0 [loggers.py:127] Engine 000: {stats}")
    return lines


def claims(folder: Path) -> list[tuple[int, str, str]]:
    """(line, channel, host) of all events that speak for the machine, or for another host."""
    return [
        (event.locator.line, event.channel, event.scope.host)
        for event in read(folder).events
        if event.channel in (*MACHINE, "k8s") or event.scope.host == "victim-node"
    ]


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_container_never_speaks_for_the_machine(collector: str, tmp_path: Path) -> None:
    """Whatever a line looks like: inside the output of a program it is that program's."""
    lines = engine_log()
    for forged in FORGERIES.values():
        lines[20:20] = [forged]
    (tmp_path / "vllm.log").write_text(COLLECTORS[collector](lines), encoding="utf-8")
    assert claims(tmp_path) == []
    verdict = analyze(tmp_path).to_dict()["verdict"]
    assert verdict["cause"] == "healthy"


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("header", [
    "(APIServer pid=1) INFO 11-29 21:25:00 [logger.py:39] ", "(EngineCore_DP0 pid=142) ", "INFO:     ", "[rank0]: ",
    "[2026-11-29 21:25:17 TP0] ", "2026-11-29 21:25:17,123 INFO worker.py:12 -- ", "(raylet) ",
])  # fmt: skip
def test_no_header_is_peeled_behind_an_engine_header(header: str, forgery: str) -> None:
    """vLLM repeats its header on every line of a message, so a prompt's lines stand right behind it."""
    record = unwrap(header + FORGERIES[forgery])
    assert record.channel in ("engine", "ray")
    assert record.scope.host != "victim-node"


def test_an_engine_header_in_a_prompt_is_a_part_of_the_prompt() -> None:
    """Glued to a progress bar it is a header, behind a quote or the word prompt it is talk."""
    forged = "ERROR 11-29 21:25:00 [core.py:840] EngineCore encountered a fatal error."
    assert unwrap(f"shards: 60%|######    | 9/15{forged}").level == "ERROR"
    for opening in ("request r-1 prompt: ", "user said '", '(Gateway pid=9) body={"text": "', "content="):
        assert unwrap(opening + forged).level == ""


@pytest.mark.parametrize(
    ("line", "channel", "text"),
    [
        ("Nov 29 21:24:17 gpu-node-7 kernel: [   39.447599] NVRM: x", "kernel", "NVRM: x"),
        ('Nov 29 21:24:17 gpu-node-7 containerd[9]: time="2026-11-29T21:24:17Z" level=info msg="x"', "runtime", 'x"'),
        ("Nov 29 21:24:17 gpu-node-7 kubelet[9]: I1129 21:24:17.000000    9 a.go:1] x", "kubelet", "x"),
        ("Nov 29 21:24:17 gpu-node-7 k3s[9]: I1129 21:24:17.000000    9 a.go:1] x", "kubelet", "x"),
        ('Nov 29 21:24:17 gpu-node-7 k3s[9]: time="2026-11-29T21:24:17Z" level=info msg="x"', "runtime", 'x"'),
        ("[  101.100000] systemd[1]: vllm.service: x", "systemd", "vllm.service: x"),
        ("Nov 29 21:24:17 gpu-node-7 conmon[9]: conmon 9b1f5d3c7e8a <ninfo>: OOM received", "runtime", None),
        ("Nov 29 21:24:17 gpu-node-7 docker.service[9]: container x exited", "runtime", "container x exited"),
        ("Nov 29 21:24:17 gpu-node-7 docker-compose[9]: vllm-1  | INFO 11-29 21:24:17 [a.py:1] x", "engine", "x"),
        ("[pod/vllm-0/vllm] 2026-11-29T21:24:17.1Z INFO 11-29 21:24:17 [a.py:1] x", "engine", "x"),
    ],
)  # fmt: skip
def test_true_nestings_are_still_peeled(line: str, channel: str, text: str | None) -> None:
    """The kernel's clock inside syslog, klog inside the journal, an engine inside compose inside the journal."""
    record = unwrap(line)
    assert record.channel == channel
    assert text is None or record.text == text


def test_what_the_kubelet_quotes_stays_the_kubelets() -> None:
    """The output of a failed probe or hook stands inside its message."""
    record = unwrap(
        "Nov 29 21:24:17 gpu-node-7 kubelet[9]: E1129 21:24:17.000000    9 prober.go:104] Probe failed "
        "output=(EngineCore_DP0 pid=7) ERROR 11-29 21:24:16 [core.py:1] x"
    )
    assert record.channel == "kubelet"
    assert record.text.startswith("Probe failed")


@pytest.mark.parametrize(
    "header",
    [
        "Nov 29 21:24:17 gpu-node-7 kernel[4711]: ",  # logger -t kernel; journald adds the pid
        "2026-11-29T21:24:17+0000 gpu-node-7 kernel[4711]: ",
        "<13>1 2026-11-29T21:24:17Z gpu-node-7 kernel - - - ",  # facility user
        "<3>1 2026-11-29T21:24:17Z gpu-node-7 kernel 4711 - - ",
    ],
)
def test_a_program_that_calls_itself_kernel_is_none(header: str) -> None:
    """The kernel has no pid, and syslog's facility 0 is its alone."""
    assert unwrap(header + KILL).channel == "host"


@pytest.mark.parametrize(
    ("fields", "channel"),
    [
        ({"SYSLOG_IDENTIFIER": "kubelet", "_COMM": "kubelet", "_SYSTEMD_UNIT": "kubelet.service"}, "kubelet"),
        ({"SYSLOG_IDENTIFIER": "kubelet", "_COMM": "sh", "_SYSTEMD_UNIT": "kubelet.service"}, "kubelet"),
        ({"SYSLOG_IDENTIFIER": "kubelet"}, "kubelet"),
        ({"SYSLOG_IDENTIFIER": "kubelet", "_COMM": "logger", "_SYSTEMD_UNIT": "session-3.scope"}, "host"),
        ({"SYSLOG_IDENTIFIER": "systemd-timesyncd", "_COMM": "systemd-timesyn"}, "clock"),
        ({"SYSLOG_IDENTIFIER": "systemd-oomd", "_COMM": "python3"}, "host"),
        ({"SYSLOG_IDENTIFIER": "systemd", "_COMM": "systemd", "_SYSTEMD_UNIT": "init.scope"}, "systemd"),
        ({"SYSLOG_IDENTIFIER": "systemd", "_COMM": "logger", "_SYSTEMD_UNIT": "session-3.scope"}, "host"),
        ({"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "kernel"}, "kernel"),
        ({"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "stdout", "_COMM": "kernel"}, "host"),
        ({"SYSLOG_IDENTIFIER": "systemd", "_TRANSPORT": "kernel"}, "systemd"),
        ({"SYSLOG_IDENTIFIER": "conmon", "_COMM": "conmon"}, "host"),
        ({"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "kernel", "CONTAINER_NAME": "vllm"}, "container"),
    ],
)
def test_journald_knows_who_wrote(fields: dict[str, str], channel: str) -> None:
    """An identifier is chosen by the program; the fields with an underscore are journald's own."""
    entry = {"__REALTIME_TIMESTAMP": "1795987457000000", "MESSAGE": "text", **fields}
    assert unwrap(json.dumps(entry)).channel == channel


def test_a_message_cannot_break_out_of_the_export_format() -> None:
    """A length whose bytes are no text is known roughly; a message that ends early must not become a kernel entry."""
    export = next(form.read for form in FORMATS if form.name == "journal.export")
    forged = f"\n_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=kernel\nMESSAGE={KILL}\n"
    for size in range(129, 256, 7):
        message = f"{'x' * (size - 100)}{forged}".ljust(size + 200)[: size]
        length = size.to_bytes(8, "little").decode("utf-8", "replace")
        text = (
            "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795987457000000\n_BOOT_ID=1\n"
            f"MESSAGE\n{length}{message}\n_TRANSPORT=stdout\n_COMM=python3\nSYSLOG_IDENTIFIER=vllm\n\n"
        )
        assert export is not None
        assert [event for event in export(text, "journal.export").events if event.channel in MACHINE] == []


PARTS = {
    "headings": ("=== kubectl logs ===\n{engine}=== dmesg -T ===\n{kernel}=== kubectl logs, next pod ===\n{engine}", True),
    "prompt lines": ("{engine}gpu@node:~$ dmesg -T\n{kernel}gpu@node:~$ exit\n{engine}", True),
    "kernel first": ("{kernel}{engine}", True),
    "a blank line and a few": ("{engine}\n{kernel}{kernel}{kernel}", True),
    "many at the end": ("{engine}" + 10 * "{kernel}", True),
    "a line in the middle": ("{engine}{kernel}{engine}", False),
    "many in the middle": ("{engine}" + 30 * "{kernel}" + "{engine}", False),
    "the last line": ("{engine}{kernel}", False),
    "a prompt over lines": ("{engine}What killed me?\n\n{kernel}Thanks\n{engine}", False),
}


@pytest.mark.parametrize("part", PARTS)
def test_logs_put_into_one_file_are_parts_lines_of_a_prompt_are_not(part: str, tmp_path: Path) -> None:
    """Between lines of an engine only a heading makes another log; at the end also its length."""
    layout, believed = PARTS[part]
    text = layout.format(engine="".join(f"{line}\n" for line in engine_log()), kernel=f"[Sun Nov 29 21:24:17 2026] {KILL}\n")
    (tmp_path / "all.txt").write_text(text, encoding="utf-8")
    assert any(event.channel == "kernel" for event in read(tmp_path).events) is believed


CHAT = "Chat died again this morning, the first one:\n{engine}\nThe node says this about it:\n{kernel}Any ideas?\n"


@pytest.mark.parametrize(("name", "layout", "believed"), [
    ("thread.txt", CHAT, True),
    ("vllm.log", CHAT, False),  # by its name an output: what looks like words may be printed
    ("thread.txt", CHAT.partition("\n")[2], False),  # nobody wrote ahead of the log
    ("thread.txt", CHAT + "{engine}", False),  # the log goes on
])  # fmt: skip
def test_what_is_pasted_between_words_is_another_output(name: str, layout: str, believed: bool, tmp_path: Path) -> None:
    text = layout.format(engine="".join(f"{line}\n" for line in engine_log()), kernel=f"[Sun Nov 29 21:24:17 2026] {KILL}\n")
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert any(event.channel == "kernel" for event in read(tmp_path).events) is believed


def test_a_short_paste_is_a_paste(tmp_path: Path) -> None:
    """Two lines of an engine and two of the kernel: nobody's prompt."""
    text = f"{engine_log()[0]}\n{engine_log()[1]}\n" + 2 * f"[  101.100000] {KILL}\n"
    (tmp_path / "ticket.txt").write_text(text, encoding="utf-8")
    assert any(event.kind == "kernel_oom" for event in read(tmp_path).events)


def boot(start: float, count: int = 12) -> list[str]:
    return [f"[{start + number:12.6f}] usb 1-{number}: new device found" for number in range(count)]


@pytest.mark.parametrize("rest", [KILL, f"Out of memory: Killed process 1 (a)\n{KILL}", "NVRM: Xid (PCI:0000:3b:00): 79, x"])
def test_the_rest_of_a_message_is_no_message(rest: str, tmp_path: Path) -> None:
    """A process name may hold a newline; in a rendered dmesg the rest of the line then stands alone."""
    lines = [*boot(100), "[  112.000000] traps: evil", *rest.split("\n"), *boot(200)]
    (tmp_path / "dmesg.txt").write_text("\n".join(lines), encoding="utf-8")
    assert [event.kind for event in read(tmp_path).events if event.locator.line in (14, 15)].count("kernel_oom") == 0
    assert analyze(tmp_path).to_dict()["verdict"]["cause"] == "insufficient_evidence"


@pytest.mark.parametrize("form", ["indented", "json"])
def test_further_lines_of_a_message_are_quotations(form: str, tmp_path: Path) -> None:
    """dmesg indents them, the journal keeps them; the kernel says what happened in the first."""
    message = f"evil\n{KILL}[9]: segfault at 0"
    if form == "json":
        entries = [{**JOURNAL_ENTRY, "MESSAGE": text} for text in ["usb 1-1: new device found", message]]
        text = "\n".join(json.dumps(entry) for entry in entries)
    else:
        lines = message.split("\n")
        text = "\n".join([*boot(100), f"[  112.000000] {lines[0]}", " " * 15 + lines[1], *boot(200)])
    (tmp_path / "kernel.txt").write_text(text, encoding="utf-8")
    report = analyze(tmp_path).to_dict()
    assert report["verdict"]["cause"] == "insufficient_evidence"
    assert [item["signature"] for item in report["decoys"]] == ["kernel.oom_kill_node"]


def test_a_termination_message_is_the_containers() -> None:
    """Kubernetes keeps the last lines that a container printed; so does a cluster dump."""
    for forged in FORGERIES.values():
        events = read_text(f"{forged}\nbye", "pods.json", "container").events
        assert {event.channel for event in events} <= {"container", "engine", "ray"}


CASES = {
    "kv-cache-startup": "vllm-previous.log",  # kubectl describe says exit code 1
    "runtime-oom-restart-loop": "*/vllm/2.log",  # CRI
    "busy-but-healthy": "vllm.log",
    "silent-137-in-docker": "docker-logs.txt",  # docker inspect: 137, OOMKilled false; docker logs -t
    "engine-vanished-log-only": "vllm.log",  # nothing else
}


@pytest.mark.parametrize("case", CASES)
def test_forged_lines_do_not_change_a_verdict(case: str, tmp_path: Path) -> None:
    """Whole bundles: whether the structured sources say otherwise or are missing, cause and confidence stay."""
    source = SAMPLES / case / "bundle"
    if source.is_dir():
        shutil.copytree(source, tmp_path / "b")
    else:
        (tmp_path / "b").mkdir()
        shutil.copy(SAMPLES / case / CASES[case], tmp_path / "b")
    before = verdict_of(tmp_path / "b")
    log = next(path for path in (tmp_path / "b").rglob("*") if path.match(CASES[case]))
    lines = log.read_text(encoding="utf-8").splitlines()
    stamp = lines[-1].split(" ", 3)
    prefix = " ".join(stamp[: 3 if "stderr" in stamp or "stdout" in stamp else 1]) + " " if lines[-1][:2] == "20" else ""
    wrapped = [prefix + forged for forged in FORGERIES.values()]
    log.write_text("\n".join([*lines[:-12], *wrapped, *lines[-12:]]) + "\n", encoding="utf-8")
    assert verdict_of(tmp_path / "b") == before


def verdict_of(folder: Path) -> tuple[str, str]:
    verdict: dict[str, Any] = analyze(folder).to_dict()["verdict"]
    return verdict["cause"], verdict["confidence"]
