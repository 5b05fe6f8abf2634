"""earlyoom's status lines as a series: `mem avail:   439 of  1197 MiB (36.69%), swap free: …` (earlyoom 1.3 to 1.8)."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Samples, Scope
from ..scan import Scanned, SeriesSpec
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


DIALECT = Dialect(channel="oomd", series=(STATUS,), samples=samples)
