"""earlyoom: its status lines as a series, and its output where it was started by hand (earlyoom 1.3 to 1.8).

`mem avail:   439 of  1197 MiB (36.69%), swap free: …`; on a console it prints neither name nor time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Parsed, Samples, Scope
from ..regexes import lazy_regex
from ..scan import Scanned, SeriesSpec
from ..sources import Format, Head
from .embedded import read_text
from .log import Dialect
from .points import Points
from .records import unwrap

STATUS = SeriesSpec(
    anchor="mem avail: ",
    pattern=r"^(.*?)mem avail: +(\d+) of +\d+ MiB",
    groups=("head", "available_mib"),
    consume=False,
)


def samples(scanned: Scanned, source: str) -> Sequence[Samples]:
    """`host_memory_available_kib` of the lines that carry a time; alone on a console they have none."""
    points = Points(source)
    for rows in scanned.series:
        if rows.spec != STATUS:
            continue
        for i, line in enumerate(rows.lines):
            around = unwrap(f"{rows.columns['head'][i] or ''}-")
            amount = rows.columns["available_mib"][i] or "0"
            if around.stamps:
                scope = Scope(host=around.scope.host)
                stamp = around.stamps[-1]
                points.add("host_memory_available_kib", scope, stamp, line, float(amount) * 1024)
    return points.samples()


_BANNER = lazy_regex(r"earlyoom v?\d+\.\d+.*")
_STATUS_LINE = lazy_regex(r"mem avail: +\d+ of +\d+ MiB \(.*")


def _sniff(head: Head) -> int:
    return 80 if any(_BANNER.fullmatch(line) or _STATUS_LINE.match(line) for line in head.lines[:3]) else 0


def _read(text: str, source: str) -> Parsed:
    return read_text(text, source, "oomd")


FORMAT = Format("earlyoom", "earlyoom output", _sniff, _read, 16 << 20, begins="em")
DIALECT = Dialect(channel="oomd", series=(STATUS,), samples=samples)
