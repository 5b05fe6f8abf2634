"""Amounts and durations as Slurm prints them (`src/common/slurm_protocol_api.c`, `src/common/parse_time.c`)."""

from __future__ import annotations

from ..regexes import lazy_regex
from .sizes import size_bytes

_MEMORY = lazy_regex(r"(?P<amount>[\d.]+[KMGT])n?")
"""Of a node; `4Gc` is of each core, and says nothing without their number."""
_TIME = lazy_regex(r"(?:(?P<days>\d{1,5})-)?(?P<hours>\d{1,4}):(?P<minutes>\d\d):(?P<seconds>\d\d)")


def memory_kib(text: str) -> int | None:
    """`96G`, `128Gn`, `100588412K` → KiB."""
    found = _MEMORY.fullmatch(text.strip())
    size = size_bytes(found["amount"]) if found else None
    return size // 1024 if size else None


def duration_s(text: str) -> int | None:
    """`12:00:00`, `1-06:00:00` → seconds; none for `UNLIMITED` and `Partition_Limit`."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
