"""coredumpctl: which programs crashed, when, and by which signal (systemd 215 to 257, `src/coredump/coredumpctl.c`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..model import Event, Locator, Parsed, RawStamp, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .envelopes.journal import full_stamp
from .layer import clean

LAYER = "coredumpctl"
_STAMP = r"[A-Z][a-z]{2} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>\S+)"
_HEADER = lazy_regex(r"TIME +PID +UID +GID +SIG(?:NAL)? +COREFILE +EXE.*")
_ROW = lazy_regex(
    rf"{_STAMP} +(?P<pid>\d{{1,18}}) +(?P<uid>\d{{1,18}}) +\d+ +(?P<signal>SIG\w+|\d+) +(?P<core>\S+) +(?P<exe>\S+).*"
)
_KEY = lazy_regex(r" *(?P<key>[A-Z][A-Za-z ]{1,15}): (?P<value>.*)")
_OWNER = lazy_regex(r"(?P<pid>\d{1,18}) \((?P<comm>.*)\)")
_SIGNAL = lazy_regex(r"(?P<number>\d{1,3}) \((?P<name>\w+)\)")
_WHEN = lazy_regex(rf"{_STAMP}.*")


def _dumped(
    place: Locator, raw: str, when: RawStamp | None, who: tuple[str, str, str], fields: dict[str, Any], scope: Scope
) -> Event:
    """In the words of the journal's own message, so that one signature knows both."""
    pid, comm, uid = who
    text = f"Process {pid} ({comm}) of user {uid} dumped core."
    known = {key: value for key, value in fields.items() if value not in ("", None)}
    return Event(
        place, "log", "systemd", text, (when,) if when else (), scope,
        {"pid": int(pid), "comm": comm, **known}, raw=raw,
    )  # fmt: skip


def read_list(text: str, source: str) -> Parsed:
    """`coredumpctl list`: one event a row."""
    events = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := _ROW.fullmatch(clean(line).strip()):
            when = full_stamp(found["stamp"], found["zone"], LAYER)
            comm = found["exe"].rsplit("/", 1)[-1]
            fields = {"signal_name": found["signal"].removeprefix("SIG"), "executable": found["exe"]}
            who = (found["pid"], comm, found["uid"])
            events.append(_dumped(Locator(source, number, number), line, when, who, fields, Scope()))
    return Parsed(tuple(events))


def read_info(text: str, source: str) -> Parsed:
    """`coredumpctl info`: one event a dump, at its line with the time."""
    return Parsed(tuple(_infos(text.split("\n"), source)))


def _infos(lines: Sequence[str], source: str) -> Iterator[Event]:
    block: dict[str, tuple[str, int]] = {}
    for number, line in enumerate([*lines, " PID: "], 1):
        found = _KEY.fullmatch(clean(line))
        if found is None:
            continue
        key = found["key"].strip()
        if key == "PID" and block:
            event = _info(block, lines, source)
            if event is not None:
                yield event
            block = {}
        block.setdefault(key, (found["value"].strip(), number))


def _info(block: dict[str, tuple[str, int]], lines: Sequence[str], source: str) -> Event | None:
    value = {key: text for key, (text, _) in block.items()}
    owner = _OWNER.match(value.get("PID", ""))
    if owner is None:
        return None
    when, signal = _WHEN.match(value.get("Timestamp", "")), _SIGNAL.match(value.get("Signal", ""))
    line = block["Timestamp" if "Timestamp" in block else "PID"][1]
    fields = {
        "signal": int(signal["number"]) if signal else None, "signal_name": signal["name"] if signal else "",
        "executable": value.get("Executable", ""), "command": value.get("Command Line", ""),
    }  # fmt: skip
    stamp = full_stamp(when["stamp"], when["zone"], LAYER) if when else None
    scope = Scope(unit=value.get("Unit", ""), host=value.get("Hostname", ""))
    uid = value.get("UID", "").partition(" ")[0] or "0"
    who = (owner["pid"], owner["comm"], uid)
    return _dumped(Locator(source, line, line), lines[line - 1].rstrip("\r"), stamp, who, fields, scope)


def _sniff_list(head: Head) -> int:
    return 90 if any(_HEADER.fullmatch(clean(line).strip()) for line in head.lines[:5]) else 0


def _sniff_info(head: Head) -> int:
    keys = [found["key"].strip() for line in head.lines[:40] if (found := _KEY.fullmatch(clean(line)))]
    return 90 if keys[:1] == ["PID"] and {"Signal", "Executable", "Command Line"} & {*keys} and "UID" in keys else 0


FORMATS: tuple[Format, ...] = (
    Format("systemd.coredumps", "coredumpctl list", _sniff_list, read_list, 8 << 20, begins="T"),
    Format("systemd.coredump", "coredumpctl info", _sniff_info, read_info, 8 << 20, begins="P"),
)
