"""When and where a capture was made: date, uptime, timedatectl, chronyc (coreutils, procps, systemd,
chrony).
"""

from __future__ import annotations

from .. import stamps
from ..model import Event, Locator, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from .dates import date_command, is_time
from .sections import Section

LAYER = "host"
_UPTIME = lazy_regex(
    r"\s*(?:top - )?(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d) up\s+(?P<up>.*?),\s+(?:\d+ users?,\s+)?"
    r"load average: (?P<load>[\d., ]+)"
)
_UP_PART = lazy_regex(r"(?:(?P<days>\d+) days?,\s*)?(?:(?P<h>\d+):(?P<m>\d\d)|(?P<min>\d+) min)?,?")
_LOCAL = lazy_regex(r"\s*Local time: \w{3} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>\S+)")
_UNIVERSAL = lazy_regex(r"\s*Universal time: \w{3} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")
_ZONE = lazy_regex(r"\s*Time zone: (?P<name>\S+) \((?P<short>\S+), (?P<offset>[+-]\d{4})\)")
_SYNCED = lazy_regex(r"\s*(?:System clock|NTP) synchronized: (?P<answer>yes|no)")
_CHRONY_OFFSET = lazy_regex(r"System time\s+: (?P<amount>[\d.]+) seconds (?P<side>fast|slow) of NTP time")
_BTIME = lazy_regex(r"btime (?P<epoch>1\d{9})")
_PROC_UPTIME = lazy_regex(r"(?P<up>\d{1,10}\.\d\d) \d{1,12}\.\d\d\s*")
_STAT = lazy_regex(r"btime \d+|\d+\.\d\d \d+\.\d\d")
"""Lines of /proc/stat and /proc/uptime that people pick out to note a time."""
_UNAME = lazy_regex(
    r"Linux (?P<host>[\w.-]+) (?P<release>\d+\.\d+\S*) #\S+ .*(?:GNU/Linux|x86_64|aarch64)\s*"
)
_CHRONY_LEAP = lazy_regex(r"Leap status\s+: (?P<status>.+)")


def kind_of(section: Section) -> str:
    """`date`, `uptime`, `proc_uptime`, `timedatectl`, `chronyc`, `stat`, `uname` or an empty string."""
    lines = section.filled
    if not lines:
        return ""
    if any(_LOCAL.match(line) for line in lines[:3]):
        return "timedatectl"
    if _UPTIME.match(lines[0]):
        return "uptime"
    if len(lines) == 1 and _PROC_UPTIME.fullmatch(lines[0]):
        return "proc_uptime"
    if lines[0].startswith("Reference ID") and any(line.startswith("Stratum") for line in lines):
        return "chronyc"
    if any(line.startswith("btime ") and _BTIME.fullmatch(line) for line in lines) and (
        lines[0].startswith("cpu ") or all(map(_STAT.fullmatch, lines))
    ):
        return "stat"
    if len(lines) == 1 and _UNAME.fullmatch(lines[0]):
        return "uname"
    return "date" if len(lines) <= 4 and all(is_time(line) for line in lines) else ""


def read(section: Section, source: str) -> list[Event]:
    """`capture` events, whose stamp is the time of the capture.

    timedatectl gives `timezone` (IANA name), `utc_offset_s` and `synchronized`, and both its local and its
    universal time as stamps; uptime gives a time of day and `uptime_s`; /proc/uptime gives `uptime_s` and /proc/stat
    `boot_epoch_s`, without a stamp. chronyc's offset is a `log` event of the channel `clock` with `offset_s`
    (positive: the system clock is ahead).
    """
    kind = kind_of(section)
    if kind == "timedatectl":
        return [_timedatectl(section, source)]
    if kind == "chronyc":
        return _chronyc(section, source)
    events = []
    for number, line in enumerate(section.lines, section.line):
        if kind in ("stat", "uname"):
            events += _identity(section, source, number, line)
        elif kind == "proc_uptime" and (up := _PROC_UPTIME.fullmatch(line)) is not None:
            events.append(_capture(section, source, number, line, (), {"uptime_s": float(up["up"])}))
        elif kind == "uptime":
            event = _uptime(section, source, number, line)
            if event is not None:
                events.append(event)
        elif is_time(line):
            stamp = date_command(line, LAYER)
            if stamp is not None:
                events.append(_capture(section, source, number, line, (stamp,), {}))
    return events


def _uptime(section: Section, source: str, number: int, line: str) -> Event | None:
    found = _UPTIME.match(line)
    if not found:
        return None
    seconds = int(found["h"]) * 3600 + int(found["m"]) * 60 + int(found["s"])
    fields: dict[str, object] = {"load_average": found["load"].strip()}
    up = _UP_PART.match(found["up"])
    if up and any(up.groups()):
        minutes = (
            int(up["min"] or 0) + int(up["h"] or 0) * 60 + int(up["m"] or 0) + int(up["days"] or 0) * 1440
        )
        fields["uptime_s"] = minutes * 60
    stamp = RawStamp(StampForm.CLOCK, LAYER, float(seconds))
    return _capture(section, source, number, line, (stamp,), fields)


def _identity(section: Section, source: str, number: int, line: str) -> list[Event]:
    """The boot time of /proc/stat, or host name and kernel of `uname -a`."""
    place = Locator(source, number, number)
    if (boot := _BTIME.fullmatch(line.strip())) is not None:
        fields: dict[str, object] = {"boot_epoch_s": int(boot["epoch"])}
        return [
            Event(place, "capture", "host", f"booted at {boot['epoch']}", (), section.scope, fields, raw=line)
        ]
    if (name := _UNAME.fullmatch(line)) is not None:
        scope = Scope(host=name["host"])
        return [
            Event(
                place,
                "capture",
                "host",
                line.strip(),
                (),
                scope,
                {"kernel_version": name["release"]},
                raw=line,
            )
        ]
    return []


def _timedatectl(section: Section, source: str) -> Event:
    found: list[RawStamp] = []
    fields: dict[str, object] = {}
    for line in section.lines:
        if (local := _LOCAL.match(line)) is not None:
            stamp = stamps.iso(local["stamp"], LAYER)
            found += [stamps.with_zone(stamp, local["zone"])] if stamp else []
        elif (universal := _UNIVERSAL.match(line)) is not None:
            stamp = stamps.iso(f"{universal['stamp']}Z", "timedatectl")
            found = [*([stamp] if stamp else []), *found]
        elif (zone := _ZONE.match(line)) is not None:
            offset = zone["offset"]
            fields["timezone"] = zone["name"]
            fields["utc_offset_s"] = (int(offset[1:3]) * 3600 + int(offset[3:]) * 60) * (
                -1 if offset[0] == "-" else 1
            )
        elif (synced := _SYNCED.match(line)) is not None:
            fields["synchronized"] = synced["answer"] == "yes"
    return _capture(section, source, section.line, section.filled[0].strip(), tuple(found), fields)


def _chronyc(section: Section, source: str) -> list[Event]:
    fields: dict[str, object] = {}
    place, raw = section.line, ""
    for number, line in enumerate(section.lines, section.line):
        if (offset := _CHRONY_OFFSET.match(line)) is not None:
            fields["offset_s"] = float(offset["amount"]) * (1 if offset["side"] == "fast" else -1)
            place, raw = number, line
        elif (leap := _CHRONY_LEAP.match(line)) is not None:
            fields["leap_status"] = leap["status"].strip()
    text = f"chronyc tracking: offset {fields.get('offset_s', '?')} s, {fields.get('leap_status', 'unknown')}"
    return [Event(Locator(source, place, place), "log", "clock", text, (), section.scope, fields, raw=raw)]


def _capture(
    section: Section,
    source: str,
    number: int,
    line: str,
    when: tuple[RawStamp, ...],
    fields: dict[str, object],
) -> Event:
    text = f"captured at {line.strip()}"
    return Event(
        Locator(source, number, number), "capture", "host", text, when, section.scope, fields, raw=line
    )
