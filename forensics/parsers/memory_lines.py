"""Memory figures inside log lines: status lines of earlyoom, loops that log `mem_avail=… rss=…`.

Any log may carry them, so this dialect has no channel of its own, only series (earlyoom 1.3 to 1.8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..model import RawStamp, Samples, Scope
from ..scan import Scanned, SeriesSpec
from .log import Dialect
from .points import Points
from .records import unwrap
from .sizes import size_bytes

_SIZE = r"([\d.]+ ?[KMGT]?i?B?)"
EARLYOOM = SeriesSpec(
    anchor="mem avail: ",
    pattern=r"^(.*?)mem avail: +(\d+) of +(\d+) MiB",
    groups=("head", "available_mib", "total_mib"),
    consume=False,
)
AVAILABLE = SeriesSpec(
    anchor="mem_avail",
    pattern=rf"^(.*?\b)(?:host_|node_)?mem_avail(?:able)?[=: ]+{_SIZE}",
    groups=("head", "available"),
    consume=False,
)
PROCESS = SeriesSpec(
    anchor="rss=",
    pattern=rf"^(.*?)([\w:./-]+) pid=(\d+),? rss={_SIZE}",
    groups=("head", "name", "pid", "rss"),
    consume=False,
)


def samples(scanned: Scanned, source: str) -> Sequence[Samples]:
    """`host_memory_available_kib`, and `process_rss_mib` of the first process that a line names."""
    points = Points(source)
    readers: dict[SeriesSpec, Callable[[dict[str, str], RawStamp | None, int], None]] = {
        EARLYOOM: lambda row, stamp, line: _host(points, f"{row['available_mib']}MiB", stamp, line),
        AVAILABLE: lambda row, stamp, line: _host(points, row["available"], stamp, line),
        PROCESS: lambda row, stamp, line: _process(points, row, stamp, line),
    }
    for rows in scanned.series:
        read = readers.get(rows.spec)
        if read is None:
            continue
        for i, line in enumerate(rows.lines):
            row = {name: column[i] or "" for name, column in rows.columns.items()}
            around = unwrap(f"{row['head']}-").stamps
            if around:
                read(row, around[-1], line)
    return points.samples()


def _host(points: Points, text: str, stamp: RawStamp | None, line: int) -> None:
    size = size_bytes(text)
    if size is not None:
        points.add("host_memory_available_kib", Scope(), stamp, line, size / 1024)


def _process(points: Points, row: dict[str, str], stamp: RawStamp | None, line: int) -> None:
    size = size_bytes(row["rss"])
    if size is not None:
        name = row["name"].rpartition("=")[2]
        points.add("process_rss_mib", Scope(process=name, pid=int(row["pid"])), stamp, line, size / 2**20)


DIALECT = Dialect(channel="", series=(EARLYOOM, AVAILABLE, PROCESS), samples=samples)
