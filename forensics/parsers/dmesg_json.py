"""`dmesg -J` of util-linux 2.38 and later: the one mode of dmesg that keeps newlines.

`{"dmesg": [{"pri": 4, "time": 39.447599, "msg": "…"}, …]}`, with `fac` under `-x`, `caller` where the
kernel prints it, and a text as time under `--time-format`. Its records are read like lines of /dev/kmsg.
Version 2.38 with `-F` repeats the rest of the buffer inside every message; that part is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..model import Diagnostic, Parsed, Severity
from ..regexes import lazy_regex
from ..sources import Format, Head
from .embedded import read_text

_REPEATED = lazy_regex(r"\n(?:<\d{1,3}>)?(?:\[ *\d+\.\d{6}\]|\d+,\d+,\d+,)")
_PRINTABLE = lazy_regex(r"[^\x20-\x7e\u0080-\uffff]|\\")


def read(text: str, source: str) -> Parsed:
    """Kernel events; a document that is cut gives what stands before the cut."""
    places, lines, broken = [0], [], 0
    for line, entry in _entries(text):
        if entry is None:
            broken = line
        elif message := _as_kmsg(entry):
            places.append(line)
            lines.append(message)
    parsed = read_text("\n".join(lines), source, "kernel")
    events = tuple(
        replace(
            event,
            locator=replace(event.locator, line=places[event.locator.line], line_end=places[event.locator.line_end]),
            last_line=places[event.last_line] if event.last_line else None,
            fields={key: places[value] if key == "report_line" else value for key, value in event.fields.items()},
        )
        for event in parsed.events
    )
    diagnostics = parsed.diagnostics
    if broken:
        diagnostics += (Diagnostic(
            source, broken, Severity.WARNING, f"{source} ends in the middle: later messages are missing",
            "save it again with `dmesg -J`",
        ),)  # fmt: skip
    return replace(parsed, events=events, diagnostics=diagnostics)


def _entries(text: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(line of the message, record), and none for a record that is cut."""
    decoder = json.JSONDecoder()
    position = text.find("[")
    line = 1 + text.count("\n", 0, max(position, 0))
    while position >= 0 and (start := text.find("{", position)) >= 0:
        line += text.count("\n", position, start)
        try:
            entry, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            yield line, None
            return
        message = text.find('"msg"', start, end)
        yield line + text.count("\n", start, max(message, start)), entry
        line += text.count("\n", start, end)
        position = end


def _as_kmsg(entry: dict[str, Any]) -> str:
    message, when = entry.get("msg"), entry.get("time")
    if not isinstance(message, str):
        return ""
    message = _REPEATED.split(message, 1)[0]
    escaped = _PRINTABLE.sub(lambda m: "".join(f"\\x{byte:02x}" for byte in m[0].encode("utf-8", "replace")), message)
    if isinstance(when, int | float) and 0 <= when < 1e12:
        return f"6,0,{round(when * 1e6)},-;{escaped}"
    return f"{when} {message}" if isinstance(when, str) and "\n" not in message else f"6,0,0,-;{escaped}"


def _sniff(head: Head) -> int:
    return 90 if head.text.lstrip().startswith("{") and '"dmesg":' in head.text[:200] else 0


FORMAT = Format("kernel.dmesg_json", "kernel log (dmesg -J)", _sniff, read, begins="{")
