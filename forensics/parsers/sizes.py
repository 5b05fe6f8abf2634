"""Amounts of memory as tools print them."""

from __future__ import annotations

import regex

from ..regexes import lazy_regex

_SIZE = lazy_regex(r"(\d{1,18}(?:[.,]\d{1,18})?)\s?([KMGTPE]?)(i?)(B?)", regex.IGNORECASE)
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def size_bytes(text: str, unit: int = 1) -> int | None:
    """`64.0M`, `1.4Gi`, `0B`, `16G` or a bare number of `unit` bytes → bytes; prefixes are powers of 1024.

    df, free, docker (`8gb`, `512m`) and systemd's unit files (`64G`) mean powers of 1024 with or without the `i`; none
    for text that is no amount, and for `infinity` and percentages.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    number = float(found[1].replace(",", "."))
    if not found[2] and not found[4]:
        return int(number * unit)
    return int(number * 1024 ** _POWER[found[2].upper()])


def human(amount: float) -> str:
    """Bytes for people: `12.3 GiB`, `62.9 MiB`."""
    return f"{amount / 2**30:.1f} GiB" if amount >= 2**30 else f"{amount / 2**20:.1f} MiB"
