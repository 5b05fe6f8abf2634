"""What journalctl says about the journal itself: boots, where one ends, and how far the journal reaches.

Shapes from systemd 239–257: `-- Boot <id> --` (`-- Reboot --` up to 246), the header of the text modes up
to 251, `journalctl --list-boots` as a table and as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import regex

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp
from ..regexes import lazy_regex
from ..sources import Format, Head
from .envelopes.journal import full_stamp
from .log import Dialect

_BOOT = lazy_regex(r"-- (?:Boot (?P<boot>[0-9a-f]{32})|Reboot) --")
_FIRST, _LAST = (
    rf"[A-Z][a-z]{{2}} (?P<{name}>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d) "
    rf"(?P<{name}_zone>[A-Z]{{2,5}}|[+-]\d{{2,4}})"
    for name in ("first", "last")
)
_RANGE = lazy_regex(rf"-- (?:Logs|Journal) begins? at {_FIRST}, ends? at {_LAST}\.? --")
_BOOT_ROW = lazy_regex(rf" *(?P<index>-?\d{{1,18}}) +(?P<boot>[0-9a-f]{{32}}) {_FIRST}(?: |—){_LAST}\s*")


def refine(event: Event) -> Event:
    """Boot separators become `boot_separator`, the header of older journalctl `journal_range`."""
    if found := _BOOT.fullmatch(event.text):
        return replace(event, kind="boot_separator", fields={"boot_id": found["boot"]} if found["boot"] else {})
    if found := _RANGE.fullmatch(event.text):
        first, last = _stamps(found, "journal-range")
        return replace(event, kind="journal_range", fields=_reach(first, last), stamps=(last,) if last else ())
    return event


def _stamps(found: regex.Match[str], layer: str) -> tuple[RawStamp | None, RawStamp | None]:
    first = full_stamp(found["first"], found["first_zone"], layer)
    return first, full_stamp(found["last"], found["last_zone"], layer)


def _reach(first: RawStamp | None, last: RawStamp | None) -> dict[str, Any]:
    """`first_s` and `last_s` as printed (`RawStamp.seconds`) and the abbreviation that goes with them."""
    fields: dict[str, Any] = {}
    for name, stamp in (("first", first), ("last", last)):
        if stamp is not None:
            fields[f"{name}_s"] = stamp.seconds
            if stamp.zone:
                fields[f"{name}_zone"] = stamp.zone
    return fields


def _boot(
    source: str, line: int, raw: str, index: int, boot: str, first: RawStamp | None, last: RawStamp | None
) -> Event:
    return Event(
        locator=Locator(source, line, line), kind="boot", channel="host", text=f"boot {index} {boot}",
        stamps=(first,) if first else (), raw=raw,
        fields={"index": index, "boot_id": boot, **_reach(first, last)},
    )  # fmt: skip


def _read_boots(text: str, source: str) -> Parsed:
    """One `boot` event a row; after a clock step a boot may end before it began."""
    events = []
    for number, row in enumerate(text.split("\n"), 1):
        if found := _BOOT_ROW.fullmatch(row.rstrip("\r")):
            events.append(
                _boot(source, number, row, int(found["index"]), found["boot"], *_stamps(found, "journal-boots"))
            )
        elif row.startswith('[{"'):
            events += [_boot_of_json(source, number, row, entry) for entry in _json_rows(row)]
    return Parsed(tuple(events))


def _json_rows(row: str) -> list[Mapping[str, Any]]:
    try:
        rows = json.loads(row)
    except (ValueError, RecursionError):
        return []
    return [entry for entry in rows if isinstance(entry, dict) and isinstance(entry.get("index"), int)]


def _boot_of_json(source: str, line: int, raw: str, entry: Mapping[str, Any]) -> Event:
    times = [entry.get(key) for key in ("first_entry", "last_entry")]
    first, last = (
        stamps.instant(value / 1e6, "journal-boots") if isinstance(value, int) and value < 1e18 else None
        for value in times
    )
    return _boot(source, line, raw, entry["index"], str(entry.get("boot_id") or ""), first, last)


def _sniff_boots(head: Head) -> int:
    lines = head.filled[:3]
    table = any(_BOOT_ROW.fullmatch(line) for line in lines)
    return 90 if table or (lines and lines[0].startswith('[{"index":') and '"boot_id"' in lines[0]) else 0


DIALECT = Dialect(
    channel="host",
    # an array of byte values holds no literal that a search could find
    anchors=(
        "-- Boot ",
        "-- Reboot --",
        "-- Logs begin at ",
        "-- Journal begins at ",
        '"MESSAGE":[',
        '"MESSAGE": [',
    ),
    refine=refine,
)
FORMATS: tuple[Format, ...] = (
    Format("journal.boots", "journalctl --list-boots", _sniff_boots, _read_boots, begins=r"-\d\["),
)
