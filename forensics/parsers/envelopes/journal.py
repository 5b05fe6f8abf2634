"""journalctl's text modes and syslog: short and its kin, RFC 3164, RFC 5424, separators between boots.

Shapes from systemd 239–257 `src/shared/logs-show.c` and rsyslog 8's built-in templates.
"""

from __future__ import annotations

import re
from dataclasses import replace

import regex

from ... import stamps
from ...model import RawStamp, Scope
from ...regexes import lazy_re, lazy_regex
from ..layer import Layer
from .identity import host_ident, ident_only, speaker

_SHORT = lazy_regex(
    r"(?:<\d{1,3}>)? ?(?P<stamp>(?:\p{L}{3,6}\.?|\d{1,2}\p{L}) +\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?) "
    r"(?P<rest>.*)",
    regex.DOTALL,
)
_FULL = lazy_re(
    r"(?P<wd>[A-Z][a-z]{2}) (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) "
    r"(?P<zone>[A-Z]{2,5}|[+-]\d{2,4}) (?P<rest>.*)",
    re.DOTALL,
)
_ISO = lazy_re(
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)?) (?P<rest>.*)",
    re.DOTALL,
)
_UNIX = lazy_re(r"(?P<stamp>1\d{9}\.\d{6}) (?P<rest>.*)", re.DOTALL)
_MONOTONIC = lazy_re(
    r"\[ *(?P<boot>\d{1,18}\.\d{6})\*?(?: <[ \d.]+\*? ?>| {16,18})?\*?\] (?P<rest>.*)", re.DOTALL
)
_RFC5424 = lazy_re(
    r"<(?P<priority>\d{1,3})>1 (?P<stamp>\S+) (?P<host>\S+) (?P<ident>\S+) (?P<pid>\S+) \S+ "
    r"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: \ufeff?(?P<rest>.*))?",
    re.DOTALL,
)
_PID = lazy_re(r"\d{1,18}")
_KERNEL_PRIORITIES = 7
"""Facility 0, which syslog(3) gives to nobody but the kernel."""
_TELLS = lazy_re(r"-- (?:Boot [0-9a-f]{32}|Reboot|(?:Logs|Journal) begins? at .*) --")
_NOTES = (
    "░░", "-- No entries --", "-- cursor: ", "-- Subject: ",
    "-- Defined-By: ", "-- Support: ", "-- Documentation: ",
)  # fmt: skip


def journal_short(text: str) -> Layer | None:
    """`Nov 29 21:25:17 host ident[pid]: ` of journalctl and syslog; months follow the reader's locale.

    Those of East Asia are two columns wide, ` 9月`.
    """
    if text[:1] == " " and text[2:3] not in ("月", "월"):
        return None
    found = _SHORT.match(text)
    if not found:
        return None
    return _with_host(found["rest"], stamps.ctime(found["stamp"], "journal"))


def journal_full(text: str) -> Layer | None:
    """`Sun 2026-11-29 21:25:17 EST host ident[pid]: ` of journalctl short-full and with-unit."""
    if text[3:4] != " ":
        return None
    found = _FULL.match(text)
    return _with_host(found["rest"], full_stamp(found["stamp"], found["zone"], "journal")) if found else None


def full_stamp(stamp: str, zone: str, layer: str) -> RawStamp | None:
    """systemd's `2026-11-29 21:25:17` and `EST`: an instant where the zone is clear, else local."""
    offset = f"{zone}00" if len(zone) == 3 and zone[0] in "+-" else zone
    if zone in ("UTC", "GMT") or zone[0] in "+-":
        return stamps.iso(f"{stamp}{offset}", layer)
    local = stamps.iso(stamp, layer)
    return stamps.with_zone(local, zone) if local else None


def journal_iso(text: str) -> Layer | None:
    """`2026-11-29T21:25:17+0000 host ident[pid]: ` of journalctl short-iso (`+00:00` in 257) and rsyslog."""
    if not text[:4].isdigit() or text[4:5] != "-":
        return None
    found = _ISO.match(text)
    if not found:
        return None
    # container runtimes write `Z` in front of any text; journalctl and rsyslog write an offset
    zone = found["zone"]
    layer = host_ident(found["rest"], strict=zone == "Z")
    if layer is None and zone not in (None, "Z"):
        layer = ident_only(found["rest"])
    return replace(layer, stamp=stamps.iso(found["stamp"], "journal")) if layer else None


def journal_unix(text: str) -> Layer | None:
    """`1728129601.123456 host ident[pid]: ` of journalctl short-unix."""
    found = _UNIX.match(text)
    return _with_host(found["rest"], stamps.instant(float(found["stamp"]), "journal")) if found else None


def journal_monotonic(text: str) -> Layer | None:
    """`[  101.100000] host ident[pid]: ` of short-monotonic, `[  101.100010 <    0.000010 >] ` of short-delta

    dmesg looks alike; a host name in front of `kernel: ` or `ident[pid]: ` tells them apart. `*` marks times
    that journalctl made up from the wall clock.
    """
    if not text.startswith("["):
        return None
    found = _MONOTONIC.match(text)
    if not found:
        return None
    layer = host_ident(found["rest"], strict=True)
    if layer is None and found["rest"].startswith("kernel: "):
        layer = ident_only(found["rest"])
    return replace(layer, stamp=stamps.boot(found["boot"], "journal")) if layer else None


def rfc5424(text: str) -> Layer | None:
    """`<0>1 2024-10-05T12:00:01.123456Z host kernel - - - msg`; rsyslog puts two blanks before it."""
    if not text.startswith("<"):
        return None
    found = _RFC5424.match(text)
    if not found:
        return None
    pid = int(found["pid"]) if _PID.fullmatch(found["pid"]) else None
    ident, host = found["ident"], found["host"] if found["host"] != "-" else ""
    rest, stamp = (found["rest"] or "").removeprefix(" "), stamps.iso(found["stamp"], "journal")
    channel = speaker(ident, rest, pid)
    if channel == "kernel" and int(found["priority"]) > _KERNEL_PRIORITIES:
        channel = "host"
    return Layer(rest, stamp, channel, ident, scope=Scope(host=host, pid=pid), machine=True)


def journal_note(text: str) -> Layer | None:
    """journalctl's own lines: boot separators and reach, on `host`; cursors and `-x` texts say nothing."""
    if text.startswith(_NOTES):
        return Layer("", channel="host", ident="journalctl", machine=True)
    if text.startswith("-- ") and _TELLS.fullmatch(text):
        return Layer(text, channel="host", ident="journalctl", machine=True)
    return None


def _with_host(rest: str, stamp: RawStamp | None) -> Layer | None:
    layer = host_ident(rest) or ident_only(rest)
    return replace(layer, stamp=stamp) if layer else None
