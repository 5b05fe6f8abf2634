"""One journal in every mode of journalctl gives the same messages, times and kills."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from forensics import scan, sources
from forensics.model import Event, Parsed, StampForm
from forensics.parsers import DIALECTS, FORMATS, log

BOOT = "8d1f0c3b5a7e4f2c9b6d8e0f1a3c5b7d"
START = 1795987457000000  # 2026-11-29T21:24:17Z


def read(data: bytes, name: str = "journal.txt", prefilter: bool = True) -> tuple[str, Parsed]:
    """(format, events) as the pipeline would read it."""
    head = sources.make_head(name, data[: sources.HEAD_BYTES], len(data) <= sources.HEAD_BYTES)
    form = sources.identify(head, FORMATS)
    if form is not None and form.read is not None:
        return form.name, form.read(data.decode("utf-8", "replace"), name)
    windows = tuple(window for dialect in DIALECTS.values() for window in dialect.windows)
    anchors = [anchor for dialect in DIALECTS.values() for anchor in dialect.anchors]
    scanned = scan.scan(iter([data]), anchors, windows, prefilter=prefilter)
    parsed = log.read(scanned, name, log.kind_of(head).channel, DIALECTS)
    if form is not None and form.samples is not None and form.name != "log":
        parsed = form.samples(scanned, name, head)
    return form.name if form else "", parsed


def messages(parsed: Parsed) -> list[tuple[str, str, str]]:
    """What does not depend on the mode: kind, speaker, text."""
    return [(event.kind, event.channel, event.text) for event in parsed.events if event.kind != "boot_separator"]


ENTRIES: list[tuple[str, int, str]] = [
    ("systemd", 1, "Started vllm.service - vLLM."),
    ("vllm", 2301, "INFO 11-29 21:24:18 [__init__.py:216] Automatically detected platform cuda."),
    ("kernel", 0, "VLLM::EngineCor invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
    ("kernel", 0, "memory: usage 98304kB, limit 98304kB, failcnt 79"),
    ("kernel", 0, "Memory cgroup stats for /system.slice/vllm.service:"),
    ("kernel", 0, "anon 91897856\nfile 8388608\nkernel 376832\nshmem 8388608"),
    (
        "kernel", 0,
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/system.slice/vllm.service,"
        "task_memcg=/system.slice/vllm.service,task=VLLM::EngineCor,pid=2417,uid=0",
    ),
    (
        "kernel", 0,
        "Memory cgroup out of memory: Killed process 2417 (VLLM::EngineCor) total-vm:99388kB, anon-rss:97884kB, "
        "file-rss:4kB, shmem-rss:704kB, UID:0 pgtables:228kB oom_score_adj:0",
    ),
    ("vllm", 2301, "EngineCore died\n  caused by a signal\n\nlast line"),
    ("systemd", 1, "vllm.service: Main process exited, code=killed, status=9/KILL"),
    ("kernel", 0, "NVRM: Xid (PCI:0000:3b:00): 45, pid=2417, name=VLLM::EngineCor, Ch 00000008"),
]  # fmt: skip


def fields(index: int) -> dict[str, str]:
    ident, pid, message = ENTRIES[index]
    transport = {"kernel": "kernel", "systemd": "journal"}.get(ident, "stdout")
    entry = {
        "__CURSOR": f"s=1;i={index:x};b={BOOT};m={index * 1000:x};t={START + index * 1000000:x};x=ab",
        "__REALTIME_TIMESTAMP": str(START + index * 1000000), "_BOOT_ID": BOOT, "_HOSTNAME": "gpu-node-7",
        "SYSLOG_IDENTIFIER": ident, "_TRANSPORT": transport, "MESSAGE": message,
    }  # fmt: skip
    return {**entry, "_PID": str(pid)} if pid else entry


def short(stamp: Callable[[int], str]) -> bytes:
    """A text mode: further lines are indented to the message's column."""
    lines = [f"-- Boot {BOOT} --"]
    for index, (ident, pid, message) in enumerate(ENTRIES):
        prefix = f"{stamp(index)}gpu-node-7 {ident}{f'[{pid}]' if pid else ''}: "
        first, *more = message.split("\n")
        lines += [prefix + first, *(" " * len(prefix) + line for line in more)]
    return "\n".join(lines).encode() + b"\n"


def export() -> bytes:
    out = b""
    for index in range(len(ENTRIES)):
        for key, value in fields(index).items():
            data = value.encode()
            out += (
                f"{key}\n".encode() + len(data).to_bytes(8, "little") + data + b"\n"
                if b"\n" in data
                else f"{key}={value}\n".encode()
            )
        out += b"\n"
    return out


def verbose() -> bytes:
    lines = []
    for index in range(len(ENTRIES)):
        entry = fields(index)
        lines.append(f"Sun 2026-11-29 21:24:{17 + index}.000000 UTC [{entry['__CURSOR']}]")
        for key, value in entry.items():
            if not key.startswith("__"):
                pad = "\n" + " " * (5 + len(key))
                lines.append(f"    {key}={value.replace(chr(10), pad)}")
    return "\n".join(lines).encode() + b"\n"


def arrays(entry: dict[str, str]) -> dict[str, object]:
    """vLLM's lines as journald prints coloured ones."""
    if entry["SYSLOG_IDENTIFIER"] == "vllm":
        return {**entry, "MESSAGE": list(f"\x1b[36m{entry['MESSAGE']}\x1b[0m".encode())}
    return dict(entry)


MODES = {
    "short": short(lambda i: f"Nov 29 21:24:{17 + i} "),
    "short-precise": short(lambda i: f"Nov 29 21:24:{17 + i}.000000 "),
    "short-full": short(lambda i: f"Sun 2026-11-29 21:24:{17 + i} UTC "),
    "short-iso": short(lambda i: f"2026-11-29T21:24:{17 + i}+0000 "),
    "short-iso-precise": short(lambda i: f"2026-11-29T21:24:{17 + i}.000000+00:00 "),
    "short-unix": short(lambda i: f"{START // 1000000 + i}.000000 "),
    "short-monotonic": short(lambda i: f"[{100 + i:5}.000000] "),
    "short-delta": short(lambda i: f"[{100 + i:5}.000000 <    1.000000 >] "),
    "json": "\n".join(json.dumps(fields(i)) for i in range(len(ENTRIES))).encode(),
    "json-arrays": "\n".join(json.dumps(arrays(fields(i))) for i in range(len(ENTRIES))).encode(),
    "json-sse": "\n\n".join(f"data: {json.dumps(fields(i))}" for i in range(len(ENTRIES))).encode(),
    "json-seq": "\n".join(f"\x1e{json.dumps(fields(i))}" for i in range(len(ENTRIES))).encode(),
    "json-pretty": "\n".join(
        json.dumps(fields(i), indent="\t", separators=(",", " : ")) for i in range(len(ENTRIES))
    ).encode(),
    "export": export(),
    "verbose": verbose(),
}


def test_all_modes_tell_the_same() -> None:
    """Kind, speaker and text of every message; the kill with its figures."""
    told = {name: read(data, prefilter=False)[1] for name, data in MODES.items()}
    wanted = messages(told["json"])
    assert [kind for kind, _, _ in wanted] == ["log", "log", "log", "kernel_oom", "log", "unit_exit", "xid"]
    for name, parsed in told.items():
        assert messages(parsed) == wanted, name
        (kill,) = (event for event in parsed.events if event.kind == "kernel_oom")
        assert (kill.fields["memcg_shmem_kib"], kill.fields["oom_scope"], kill.scope.unit) == (
            8192,
            "unit",
            "vllm.service",
        ), name
        assert kill.scope.host == "gpu-node-7"


def test_all_modes_tell_the_same_times() -> None:
    """The kill's time, as far as the mode prints it."""
    for name, data in MODES.items():
        (kill,) = (event for event in read(data)[1].events if event.kind == "kernel_oom")
        (stamp,) = kill.stamps
        wanted = {"short": 975533064, "short-precise": 975533064, "short-monotonic": 107, "short-delta": 107}.get(
            name, 1795987464
        )
        assert stamp.seconds == wanted, name


def test_places_are_those_of_the_file() -> None:
    """A fact found in a document is quoted by the line of its message."""
    for name in ("json-pretty", "export", "verbose", "json-arrays"):
        data = MODES[name]
        _, parsed = read(data)
        lines = data.decode("utf-8", "replace").split("\n")
        (kill,) = (event for event in parsed.events if event.kind == "kernel_oom")
        assert "Killed process 2417" in lines[kill.locator.line - 1], name
        assert "invoked oom-killer" in lines[kill.fields["report_line"] - 1], name
        assert kill.raw == lines[kill.locator.line - 1]


def test_formats_are_recognised() -> None:
    """Documents by their own shape, line modes as logs."""
    found = {name: read(data)[0] for name, data in MODES.items()}
    assert {name: form for name, form in found.items() if form != "log"} == {
        "json-arrays": "journal.json", "json-pretty": "journal.pretty", "export": "journal.export", "verbose": "journal.verbose",
    }  # fmt: skip


def test_boots_and_the_reach_of_a_journal() -> None:
    """Separators, the header of older journalctl, and the table of boots in three shapes."""
    text = (
        "-- Logs begin at Sat 2025-11-01 11:58:00 UTC, end at Sun 2026-03-08 03:07:46 EDT. --\n"
        f"Mar 07 01:00:00 gpu-node-7 kernel: x\n-- Boot {BOOT} --\n-- Reboot --\n-- No entries --\n-- cursor: s=1\n"
    )
    reach, kernel, boot, reboot = read(text.encode(), prefilter=False)[1].events
    assert (reach.kind, reach.fields["first_s"], reach.fields["last_zone"]) == ("journal_range", 1761998280.0, "EDT")
    assert (kernel.channel, kernel.text) == ("kernel", "x")
    assert [(e.kind, e.channel, e.fields) for e in (boot, reboot)] == [
        ("boot_separator", "host", {"boot_id": BOOT}), ("boot_separator", "host", {}),
    ]  # fmt: skip
    header = "IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY\n"
    row = f" -1 {BOOT} Sat 2025-11-01 11:58:00 UTC{{}}Thu 2026-01-01 00:40:02 UTC\n"
    rows = [{"index": -1, "boot_id": BOOT, "first_entry": 1761998280000000, "last_entry": 1767228002000000}]
    for table in (header + row.format(" "), row.format("—"), json.dumps(rows, separators=(",", ":"))):
        form, parsed = read(table.encode())
        (event,) = parsed.events
        assert (form, event.kind, event.stamps[0].form) == ("journal.boots", "boot", StampForm.INSTANT)
        assert event.fields == {"index": -1, "boot_id": BOOT, "first_s": 1761998280.0, "last_s": 1767228002.0}


def test_explanations_say_nothing() -> None:
    """`journalctl -x` adds catalogue texts that repeat the message in other words."""
    text = (
        "Nov 29 21:24:17 n systemd[1]: vllm.service: Failed with result 'oom-kill'.\n"
        "░░ Subject: Unit failed\n░░ \n░░ The unit vllm.service has entered the 'failed' state with result 'oom-kill'.\n"
    )
    assert len(read(text.encode(), prefilter=False)[1].events) == 1


def test_a_binary_journal_is_named() -> None:
    """Nothing in it can be read here; the reader is told how to."""
    form, parsed = read(b"LPKSHHRH" + bytes(200), "var/log/journal/system.journal")
    assert (form, parsed.events) == ("journal.binary", ())
    assert "journalctl --file system.journal -o json" in parsed.diagnostics[0].hint


@pytest.mark.parametrize("name", ["json-arrays", "json-pretty", "export", "verbose"])
def test_cut_documents_keep_what_stands_before_the_cut(name: str) -> None:
    """Every prefix is read without an error; a cut in the last entry costs that entry only."""
    data = MODES[name]
    for end in range(0, len(data), 397):
        read(data[:end])
    events = read(data[:-30])[1].events
    assert [e.kind for e in events if e.kind != "log"][:2] == ["kernel_oom", "unit_exit"]


def test_export_values_with_bad_bytes() -> None:
    """A length or a text that is no UTF-8 costs nothing but the bad bytes; texts may look like fields."""
    body = b"caf\xe9 \xcf\xd4\nPATH=/bin\n\nHOME=/" + b"x" * 130
    entry = (
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795987457000000\n_BOOT_ID="
        + BOOT.encode()
        + b"\nSYSLOG_IDENTIFIER=vllm\n"
        b"COREDUMP_ENVIRON\n" + len(body).to_bytes(8, "little") + body + b"\nMESSAGE=after\n\n"
    )
    events = read(entry * 2)[1].events
    assert [event.text for event in events] == ["after", "after"]


def load(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def facts(events: tuple[Event, ...]) -> set[tuple[object, ...]]:
    """The structured events of a story."""
    kept = {
        "kernel_oom": ("victim_pid", "memcg_limit_kib", "invoker_comm", "oom_scope", "task_count"),
        "xid": ("xid", "pci_bus_id", "pid"), "unit_exit": ("code", "status"),
    }  # fmt: skip
    return {
        (e.kind, e.channel.replace("plain", "kernel" if e.kind != "unit_exit" else "systemd"), *(e.fields.get(k) for k in kept[e.kind]))
        for e in events if e.kind in kept
    }  # fmt: skip


def test_one_story_in_all_modes_zones_and_versions(captures: Path) -> None:
    """Real journalctl 247, 252 and 257, three time zones, every output mode: the same kills, errors and exits."""
    folder = captures / "journal"
    wanted = facts(read(load(folder / "systemd-252/tz-independent/json.txt"))[1].events)
    assert len(wanted) == 5 + 6 + 2
    names = ("short", "short-iso", "short-full", "short-precise", "short-unix", "short-monotonic", "short-delta", "verbose",
             "with-unit", "json", "export", "cat")  # fmt: skip
    paths = [
        path for path in sorted(folder.rglob("*.txt*"))
        if path.name.split(".")[0].split("_TZ")[0] in (*names, "short-iso-precise", "json-pretty", "json-sse")
        and "options" not in path.parts and not path.match("systemd-247/short-delta*")
    ]  # fmt: skip
    assert len(paths) > 40
    for path in paths[::6]:
        assert facts(read(load(path))[1].events) == wanted, path


OFFSETS_H = {"EDT": -4, "EST": -5, "CST": 8, "UTC": 0, "": 0}


def test_instants_agree_in_all_modes_and_zones(captures: Path) -> None:
    """Every entry that two modes word alike has one instant, in New York, Shanghai and UTC; short modes show its wall time."""
    folder = captures / "journal/systemd-252"
    instants: dict[tuple[str, str], list[float]] = {}
    for event in read(load(folder / "tz-independent/json.txt"))[1].events:
        instants.setdefault((event.kind, event.text), []).append(event.stamps[0].seconds)
    paths = [*folder.glob("TZ_*/*.txt*"), *(folder / f"tz-independent/{name}" for name in ("export.txt", "short-unix.txt"))]
    compared = 0
    for path in sorted(path for path in paths if "list-boots" not in path.name):
        zone = ZoneInfo(path.parent.name.removeprefix("TZ_").replace("-", "/", 1)) if path.parent.name.startswith("TZ_") else UTC
        for event in read(load(path))[1].events:
            wanted = instants.get((event.kind, event.text))
            if wanted is None or not event.stamps:
                continue
            stamp = event.stamps[0]
            if stamp.form is StampForm.YEARLESS:
                shown = datetime.fromtimestamp(stamp.seconds, UTC)
                local = [datetime.fromtimestamp(second, zone) for second in wanted]
                assert (shown.month, shown.day, shown.time()) in [
                    (t.month, t.day, t.replace(microsecond=shown.microsecond).time()) for t in local], (path, event.text)  # fmt: skip
            else:
                second = stamp.seconds - 3600 * OFFSETS_H[stamp.zone]
                assert min(abs(second - other) for other in wanted) < 1, (path, event.text)
            compared += 1
    assert compared > 2500
