"""Lines that lean on the one before: further lines of a message, and times told as a distance.

journalctl and util-linux dmesg print the further lines of a message without a header, indented to the
column where the message began. `dmesg -H` stamps the first line of a minute and gives the others only their
distance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model import RawStamp
from .envelopes import ENVELOPES
from .layer import clean
from .records import Record

MIN_INDENT = 10
"""Blanks before a further line; the narrowest header is wider."""
_READERS = {name: read for name, read in ENVELOPES if name.startswith(("dmesg", "journal"))}


def settle(records: Iterable[Record]) -> list[Record]:
    """Records with further lines joined to their first one, and with the minute of `dmesg -H`."""
    return _with_minutes(_joined(records))


def _joined(records: Iterable[Record]) -> list[Record]:
    groups: list[list[Record]] = []
    for record in records:
        last = groups[-1][-1] if groups else None
        follows = last is not None and record.line == last.line + 1 + last.raw.count("\n")
        if follows and _is_further(record) and _column(groups[-1][0]):
            groups[-1].append(record)
        else:
            groups.append([record])
    return [_merged(group) if len(group) > 1 else group[0] for group in groups]


def _is_further(record: Record) -> bool:
    return not record.envelopes and record.text[:MIN_INDENT] == " " * MIN_INDENT


def _column(record: Record) -> int:
    """Where the message of a record begins, 0 when its header is of another kind."""
    read = _READERS.get(record.envelopes[0]) if record.envelopes else None
    if read is None:
        return 0
    text = clean(record.raw.partition("\n")[0])
    layer = read(text)
    return len(text) - len(layer.rest) if layer is not None else 0


def _merged(group: list[Record]) -> Record:
    first, column = group[0], _column(group[0])
    texts = [first.text]
    for record in group[1:]:
        indent = len(record.text) - len(record.text.lstrip(" "))
        texts.append(record.text[min(column, indent) :])
    return replace(first, text="\n".join(texts), raw="\n".join(record.raw for record in group))


def _with_minutes(records: list[Record]) -> list[Record]:
    minute: RawStamp | None = None
    settled = []
    for record in records:
        if "dmesg-minute" in record.envelopes:
            minute = record.stamps[-1] if record.stamps else None
        elif minute is not None and not record.stamps and "dmesg-delta" in record.envelopes:
            record = replace(record, stamps=(minute,))
        settled.append(record)
    return settled
