"""sar, pidstat and sadf in every locale."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from forensics.model import Parsed, Samples, StampForm
from forensics.parsers import FORMATS
from forensics.sources import identify, make_head


def read(text: str, path: str = "sar.txt") -> Parsed:
    form = identify(make_head(path, text.encode(), True), FORMATS)
    assert form is not None
    assert form.name.startswith("sysstat."), form.name
    assert form.read is not None
    return form.read(text, path)


def series(parsed: Parsed, name: str) -> Samples:
    (sample,) = [sample for sample in parsed.samples if sample.name == name]
    return sample


def sar(date: str, times: tuple[str, str, str, str], decimal: str = ".", average: str = "Average:") -> str:
    columns = "kbmemfree   kbavail kbmemused  %memused kbbuffers"
    return (
        f"Linux 6.1.0-57-amd64 (gpu-node-7) \t{date} \t_x86_64_\t(64 CPU)\n\n"
        f"{times[0]}     LINUX RESTART\t(64 CPU)\n\n"
        f"{times[0]}    {columns}\n"
        f"{times[1]}      1317120   1249804     21564      1{decimal}44         0\n"
        f"{times[2]}      1273804   1206528     64160      4{decimal}29         0\n"
        f"{average}      1273804   1206528     64160      4{decimal}29         0\n\n"
        f"{times[2]}    {columns}\n"
        f"{times[3]}      1183336   1116060    154624     10{decimal}33         0\n"
    )


C = ("23:59:40", "23:59:50", "00:00:00", "00:00:10")


@pytest.mark.parametrize(
    "text",
    [
        sar("03/07/26", C),
        sar("03/07/2026", ("11:59:40 PM", "11:59:50 PM", "12:00:00 AM", "12:00:10 AM")),
        sar("07.03.2026", C, ",", "Durchschn.:"),
        sar("2026年03月07日", ("23时59分40秒", "23时59分50秒", "00时00分00秒", "00时00分10秒"), ".", "平均时间:"),
        sar("2026-03-07", C),
    ],
    ids=["C", "en_US", "de_DE", "zh_CN", "ISO"],
)
def test_every_locale_gives_the_same_series(text: str) -> None:
    """Dates, 12 hours, decimal commas, translated averages, and midnight."""
    parsed = read(text)
    used = series(parsed, "host_memory_used_kib")
    assert list(used.values) == [21564.0, 64160.0, 154624.0]
    assert (used.form, used.layer) == (StampForm.LOCAL, "sar")
    assert list(used.stamps) == [1772927990.0, 1772928000.0, 1772928010.0]
    assert parsed.scope.host == "gpu-node-7"
    (boot,) = parsed.events
    assert boot.text.startswith("LINUX RESTART")
    assert boot.stamps[0].seconds == 1772927980.0


def test_human_units_and_colours() -> None:
    """`sar -h` rounds; colours are stripped."""
    text = sar("2026-03-07", C).replace("     21564 ", "     21.1M ").replace("23:59:40    kb", "\x1b[0m23:59:40    kb")
    assert series(read(text), "host_memory_used_kib").values[0] == pytest.approx(21.1 * 1024, abs=1)


def test_an_ambiguous_date_is_said_so() -> None:
    """03/07 may be March or July; a day above 12 decides."""
    assert "month/day" in read(sar("03/07/26", C)).diagnostics[0].message
    assert read(sar("03/27/26", C)).diagnostics == ()
    assert series(read(sar("27/03/26", C)), "host_memory_used_kib").stamps[0] == 1772927990.0 + 20 * 86400


def test_reports_of_one_day_follow_each_other() -> None:
    """`sar -A`: the second report starts the day again; its restart is not told twice."""
    text = sar("2026-03-07", C) + (
        "Average:      1273804   1206528     64160      4.29         0\n\n"
        "23:59:40     LINUX RESTART\t(64 CPU)\n\n"
        "23:59:40    kbswpfree kbswpused  %swpused\n23:59:50          100         7      0.00\n"
    )
    parsed = read(text)
    assert series(parsed, "swap_used_kib").stamps[0] == 1772927990.0
    assert len(parsed.events) == 1


def test_process_memory_of_pidstat() -> None:
    """One series a process."""
    parsed = read(
        "Linux 6.1.0 (gpu-node-7) \t2026-03-07 \t_x86_64_\t(64 CPU)\n\n"
        "23:59:54      UID       PID  minflt/s  majflt/s     VSZ     RSS   %MEM  Command\n"
        "23:59:55        0       172      1.00      0.00  742472  717824  47.94  VLLM::EngineCore\n"
    )
    rss = series(parsed, "process_rss_mib")
    assert (rss.scope.process, rss.scope.pid, rss.values[0]) == ("VLLM::EngineCore", 172, 701.0)


@pytest.mark.parametrize(
    ("stamp", "form"),
    [
        ("2026-03-07 23:59:50 UTC", StampForm.INSTANT),
        ("2026-03-07 23:59:50", StampForm.LOCAL),
        ("1772927990", StampForm.INSTANT),
    ],
)
def test_database_exports(stamp: str, form: StampForm) -> None:
    """sadf -d in UTC, local and Unix time."""
    used = series(
        read(f"# hostname;interval;timestamp;kbmemfree;kbavail;kbmemused;%memused\ngpu-node-7;1;{stamp};1;2;3;4.0\n"),
        "host_memory_used_kib",
    )
    assert (used.values[0], used.stamps[0], used.form) == (3.0, 1772927990.0, form)


def test_json_exports_and_unused_ones() -> None:
    """sadf -j is read, -x is recognised."""
    record = '{"timestamp": {"date": "2026-03-07", "time": "23:59:50", "utc": 1}, "memory": {"memused": 3, "avail": 2}}'
    parsed = read(f'{{"sysstat": {{"hosts": [{{"nodename": "gpu-node-7", "statistics": [{record}]}}]}}}}')
    assert series(parsed, "host_memory_used_kib").form is StampForm.INSTANT
    assert parsed.scope.host == "gpu-node-7"
    assert read('{"sysstat": {"hosts": [').diagnostics[0].message.startswith("the sadf export")
    assert read('<?xml version="1.0"?>\n<!DOCTYPE sysstat PUBLIC "x">\n<sysstat>\n') == Parsed()


def test_genuine_exports_agree(captures: Path) -> None:
    """Every locale and export of one recording tells the same memory."""
    for version in ("12.6.1", "12.7.5"):
        folder = captures / "sysstat" / version
        seen = {}
        for path in [*folder.glob("sar/sar_-r_*.txt"), *folder.glob("sadf_-[djp]*")]:
            if any(word in path.name for word in ("-h", "_5", "-s_")):
                continue
            text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
            seen[path.name] = tuple(series(read(text, path.name), "host_memory_used_kib").values)
        assert len(seen) > 12
        assert len(set(seen.values())) == 1
