"""Signals in the records of the kernel's audit: who sent which signal to which process.

A rule like `-a always,exit -F arch=b64 -S kill -k signals` writes records of one serial number: `SYSCALL` holds the
sender and the arguments (hexadecimal; signed pids), each `OBJ_PID` a process that got the signal. They come as
`/var/log/audit/audit.log` and `ausearch --raw` print them, with numbers, or interpreted (`ausearch -i`), with names and
the machine's local time (audit 2.x-4.x; include/uapi/asm-generic/unistd.h for the numbers of the calls). The journal of
systemd keeps them without their serial number, one below the other (`audit[411]: SYSCALL arch=…`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import regex

from .. import stamps
from ..model import Event, RawStamp
from ..regexes import lazy_regex
from .log import Assembled, Dialect, event_of
from .records import Record

LAYER = "audit"
_RECORD = lazy_regex(
    r"(?:(?:node=\S+ )?type=(?P<type>SYSCALL|OBJ_PID) msg=audit\((?P<when>[^()]{10,40}):(?P<serial>\d{1,12})\) ?:"
    r"|(?P<type>SYSCALL|OBJ_PID)) (?P<rest>\w+=.*)"
)
_FIELD = lazy_regex(r"(?<!\S)(?P<name>\w+)=(?:\"(?P<value>[^\"]*)\"|(?P<value>\S+))")
_DAY = lazy_regex(r"(?P<a>\d\d)/(?P<b>\d\d)/(?P<year>(?:20)?\d\d) (?P<hms>[\d:.]+)")
_CALLS = {
    "c000003e": {"62": "kill", "200": "tkill", "234": "tgkill", "424": "pidfd_send_signal"},
    "c00000b7": {"129": "kill", "130": "tkill", "131": "tgkill", "424": "pidfd_send_signal"},
}
"""Of x86_64 and aarch64."""
_SIGNAL_AT = {"kill": "a1", "tkill": "a1", "tgkill": "a2", "pidfd_send_signal": "a1"}
_SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 15: "SIGTERM"}
_MAX_PID = 1 << 22

Fields = Mapping[str, str]


def _fields(rest: str) -> Fields:
    return {found["name"]: found["value"] for found in _FIELD.finditer(rest)}


def _name(call: Fields) -> str:
    """What the system call is called, where it is printed by its number."""
    name = call.get("syscall", "")
    return _CALLS.get(call.get("arch", ""), {}).get(name, name)


def _signal(call: Fields) -> str:
    """The signal's name; empty for other calls, for those that failed, and for signals that end nothing."""
    name = _name(call)
    if name not in _SIGNAL_AT or call.get("success") != "yes":
        return ""
    sent = call.get(_SIGNAL_AT[name], "")
    number = int(sent, 16) if regex.fullmatch(r"(?:0x)?[0-9a-f]{1,16}", sent) else 0
    return sent if sent in _SIGNALS.values() else _SIGNALS.get(number, "")


def _stamp(when: str) -> RawStamp | None:
    if regex.fullmatch(r"\d{9,10}\.\d{3}", when):
        return stamps.instant(float(when), LAYER, 0.001)
    day = _DAY.fullmatch(when)
    if day is None:
        return None
    month, date = (day["b"], day["a"]) if int(day["a"]) > 12 else (day["a"], day["b"])  # of most locales the American
    return stamps.iso(f"20{day['year'][-2:]}-{month}-{date} {day['hms']}", LAYER)


def _target(call: Fields, objects: Sequence[Fields]) -> tuple[str, str]:
    """Pid and name of the process that got the signal; of several the first."""
    if objects:
        return objects[0].get("opid", ""), objects[0].get("ocomm", "")
    pid = int(call["a0"], 16) if regex.fullmatch(r"(?:0x)?[0-9a-f]{1,8}", call.get("a0", "")) else 0
    return (str(pid) if 0 < pid <= _MAX_PID and _name(call) != "pidfd_send_signal" else ""), ""


def assemble(channel: str, records: Sequence[Record], source: str) -> Assembled:
    """One line of the host a signal that ends processes, at the `SYSCALL`; it states sender, signal and target."""
    found: dict[str, list[tuple[Record, regex.Match[str]]]] = {}
    serial = ""
    for record in records:
        match = _RECORD.fullmatch(record.text)
        if match is not None and (match["serial"] or record.ident == "audit"):
            serial = match["serial"] or (f"line {record.line}" if match["type"] == "SYSCALL" else serial)
            found.setdefault(serial, []).append((record, match))
    events: list[Event] = []
    for group in found.values():
        parts = [(record, match, _fields(match["rest"])) for record, match in group]
        objects = [fields for _, match, fields in parts if match["type"] == "OBJ_PID"]
        for record, match, call in parts:
            if match["type"] != "SYSCALL" or not (signal := _signal(call)):
                continue
            pid, comm = _target(call, objects)
            stamp = _stamp(match["when"] or "")
            text = (
                f"audit: auid {call.get('auid', '?')} uid {call.get('uid', '?')} {call.get('exe', '?')} sent {signal}"
                f" to pid {pid or '?'}{f' ({comm})' if comm else ''}"
            )
            own = (stamp,) if stamp else ()
            events.append(replace(event_of(record, source, "host"), text=text, stamps=(*record.stamps, *own)))
    return Assembled(tuple(events), frozenset(event.locator.line for event in events))


ANCHORS = ("type=SYSCALL", "type=OBJ_PID", "SYSCALL arch=", "OBJ_PID opid=")
PLAIN, HOST = (Dialect(channel, anchors=ANCHORS, assemble=partial(assemble, channel)) for channel in ("plain", "host"))
