"""Loops of the shell that watch memory."""

from __future__ import annotations

import pytest

from forensics.parsers import memory_loops
from forensics.sources import make_head

T = 1_775_711_400
GIB = 1024.0
TOP = "POD        NAME   CPU(cores)   MEMORY(bytes)\n"


def loop(form: str, count: int = 5) -> str:
    def hour(n: int) -> str:
        return f"2026-04-09T{5 + n:02d}:10:00"

    return "".join(
        form.format(epoch=T + 3600 * n, iso=hour(n) + "Z", spaced=hour(n).replace("T", " "), n=n, bytes=(20 + n) << 30,
                    date=f"Thu Apr  9 {5 + n:02d}:10:00 UTC 2026",
                    british=f"Thu  9 Apr {5 + n:02d}:10:00 UTC 2026", gib=20 + n, mib=(20 + n) * 1024, kib=(20 + n) << 20)
        for n in range(count)
    )  # fmt: skip


@pytest.mark.parametrize("form", [
    "{date}\n" + TOP + "ocr-0      vllm   3387m        {mib}Mi\n",
    "{date}\nocr-0      3387m        {mib}Mi\n",
    "--- {iso} ---\nvllm-7f9c8d6b5-x2k4p   12m   {gib}Gi\n\n",
    "{iso} {bytes}\n", "{epoch} {bytes}\n", "{epoch},{bytes}\n", "[{spaced}] {bytes}\n", "{date}\n{bytes}\n", "{british} {bytes}\n",
    "{epoch}\n{bytes}\n", "{iso} memory.current={bytes}\n", "{spaced}  RSS: {kib} KiB\n", "{iso}\t{gib}.0GiB\n",
    "{iso} 1b2c3d4e5f60   ocr   312.11%   {gib}.00GiB / 64GiB   32.21%\n",
    "{date}\nCONTAINER ID   NAME   CPU %   MEM USAGE / LIMIT   MEM %\n1b2c3d4e5f60   ocr   3.1%   {gib}GiB / 64GiB   32.2%\n",
    "{iso}\nocr   312.11%   {gib}GiB / 64GiB   32.21%   1.2GB / 3GB   0B / 0B   812\n",
])  # fmt: skip
def test_a_loop_is_a_series(form: str) -> None:
    text = loop(form)
    assert memory_loops.FORMAT.sniff(make_head("n/memory.log", text.encode(), True)) == 94
    (series,) = memory_loops.read(text, "memory.log").samples
    assert series.name == "container_memory_mib"
    assert list(series.values) == [GIB * (20 + n) for n in range(5)]
    assert [stamp - T for stamp in series.stamps] == [3600.0 * n for n in range(5)]


@pytest.mark.parametrize("form", ["{hour}:10  ocr-0   vllm    3387m   {mib}Mi\n", "{hour}:10:00 memory.current={bytes} anon=1\n"])
def test_times_of_day(form: str) -> None:
    """The day is that of the newest dated line, and falls behind midnight."""
    rows = [form.format(hour=f"{n % 24:02d}", mib=1024 * n, bytes=n << 30) for n in range(20, 27)]
    assert memory_loops.FORMAT.sniff(make_head("top.txt", "".join(rows).encode(), True)) == 94
    text = "every hour: kubectl top pod ocr-0\n" + "".join(rows)
    (series,) = memory_loops.read(text, "top.txt").samples
    assert [s // 3600 for s in series.stamps] == [20, 21, 22, 23, 0, 1, 2]


@pytest.mark.parametrize(("path", "text"), [
    ("offsets.log", loop("{epoch} {bytes}\n")),  # may be anything
    ("memory.log", loop("{iso} {n}\n")),  # too small for bytes
    ("memory.log", loop("{iso} {bytes}\n", 2)),
    ("memory.log", loop("{iso} request {n} took {bytes}\n")),
    ("memory.log", loop("{iso} INFO memory is fine: {gib}GiB\n")),
    ("memory.log", f"{TOP}ocr-0 vllm 3387m 21111Mi\n"),
    ("mem.txt", "POD NAME\n" + loop("total {gib}\nfree {n}\n")),
])  # fmt: skip
def test_what_is_no_such_loop(path: str, text: str) -> None:
    assert memory_loops.FORMAT.sniff(make_head(path, text.encode(), True)) == 0
