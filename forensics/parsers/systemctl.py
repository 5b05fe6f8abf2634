"""`systemctl status` and `systemctl show`: what a unit is, and how its last run ended.

Shapes from systemd 219–257 (`src/systemctl/systemctl-show.c`). A status carries the last lines of the
unit's journal; they are read as a log, like every other line that does not belong to a status, so that
mixed captures lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from .cgroup_path import path_scope
from .embedded import read_text
from .envelopes.journal import full_stamp
from .k8s_values import known
from .layer import clean
from .unit_files import command_fields, environment, span_s, words

_SUFFIX = r"(?:service|scope|slice|socket|mount|timer|target|swap|path|device)"
_TITLE = lazy_regex(rf"(?:[●○×↻✗x*] )?(?P<unit>\S+\.{_SUFFIX})(?: - (?P<description>.*))?")
_FIELD = lazy_regex(r" {1,12}(?P<key>[A-Z][A-Za-z .]{2,12}): ?(?P<value>.*)")
_SINCE = lazy_regex(r" since [A-Z][a-z]{2} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>\S+?);")
_ACTIVE = lazy_regex(
    r"(?P<active>[a-z-]+)(?: \((?P<sub>[a-z-]+)\))?(?: \(Result: (?P<result>[a-z-]+)\))?"
    rf"(?:{_SINCE.pattern}(?: (?P<age>.*?) ago)?)?.*"
)
_PROCESS = lazy_regex(
    r"(?P<pid>\d{1,18}).*?\(code=(?P<code>exited|killed|dumped), "
    r"(?:status=(?P<status>\d{1,18})(?:/(?P<name>[\w-]+))?|signal=(?P<signal>\w+))\)"
)
_AGE_PART = lazy_regex(r"(\d{1,18}(?:\.\d+)?) ?(years?|months?|weeks?|days?|h|min|ms|s)\b")
_AGE_S = {
    "year": 31557600,
    "month": 2629800,
    "week": 604800,
    "day": 86400,
    "h": 3600,
    "min": 60,
    "s": 1,
    "ms": 0.001,
}
_MEMORY = lazy_regex(r"(?P<now>[\d.]{1,18}[BKMGTP])?\s*(?:\((?P<more>.*)\))?")
_MEMORY_PART = lazy_regex(r"(max|peak|high|limit|available): ([\d.]{1,18}[BKMGTP])")
_SIZE_POWER = {letter: power for power, letter in enumerate("BKMGTP")}
_SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
    "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "XCPU": 24, "XFSZ": 25, "SYS": 31,
}  # fmt: skip
_CLD = {"1": "exited", "2": "killed", "3": "dumped"}
"""`ExecMainCode` is siginfo's `si_code`."""
_WHOLE = lazy_regex(r"-?\d{1,20}")
_UNSET = frozenset({"", "[not set]", "infinity", "[no data]", "18446744073709551615"})
_SHOW_NUMBERS = {
    "NRestarts": "n_restarts", "MainPID": "main_pid", "ExecMainPID": "exec_main_pid",
    "ExecMainStatus": "exec_main_status", "MemoryCurrent": "memory_current_bytes",
    "MemoryPeak": "memory_peak_bytes", "MemoryMax": "memory_max_bytes", "MemoryHigh": "memory_high_bytes",
    "MemorySwapPeak": "memory_swap_peak_bytes", "OOMScoreAdjust": "oom_score_adjust", "TasksMax": "tasks_max",
}  # fmt: skip
_SHOW_WORDS = {
    "ActiveState": "active", "SubState": "sub", "Result": "result", "Restart": "restart",
    "OOMPolicy": "oom_policy", "TimeoutStartUSec": "timeout_start", "TimeoutStopUSec": "timeout_stop",
    "WatchdogUSec": "watchdog", "StatusText": "status_text",
}  # fmt: skip
_SHOW_TIMES = {
    "ExecMainStartTimestamp": "exec_main_start", "ExecMainExitTimestamp": "exec_main_exit",
    "ActiveEnterTimestamp": "active_enter", "StateChangeTimestamp": "state_change",
}  # fmt: skip
_SHOWN = frozenset({"Id", "LoadState", "ExecMainCode", *_SHOW_NUMBERS, *_SHOW_WORDS, *_SHOW_TIMES})
_SHOW_STAMP = lazy_regex(r"[A-Z][a-z]{2} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>\S+)")
_ARGV = lazy_regex(r"argv\[\]=(?P<words>.*?) ; ")
_WITHOUT_ZONE = frozenset({StampForm.LOCAL, StampForm.YEARLESS})
LAYER = "systemctl"


def read_status(text: str, source: str) -> Parsed:
    """`unit_state` per unit, `capture` where an age dates the call, and the events of all other lines."""
    rows = text.split("\n")
    events: list[Event] = []
    zones: set[str] = set()
    for start, end in _sections(rows):
        events += _status(rows, start, end, source)
        zones |= {found["zone"] for row in rows[start:end] if (found := _SINCE.search(row))}
        rows[start:end] = [""] * (end - start)
    rest = read_text("\n".join(rows), source, "plain")
    owner = _owner(events)
    events += _in_zone(rest.events, zones)
    events.sort(key=lambda event: event.locator.line)
    return replace(rest, events=tuple(events), scope=rest.scope.merged(owner))


def _in_zone(events: Sequence[Event], zones: set[str]) -> Iterable[Event]:
    """The journal's lines below a status, in the zone that the status prints: one call wrote both."""
    if len(zones) != 1:
        return events
    zone = next(iter(zones))
    return (
        replace(event, stamps=tuple(
            stamps.with_zone(stamp, zone) if stamp.form in _WITHOUT_ZONE and not stamp.zone else stamp
            for stamp in event.stamps
        )) for event in events
    )  # fmt: skip


def _owner(events: Sequence[Event]) -> Scope:
    """The unit, where a call was about one."""
    units = {event.scope.unit for event in events if event.kind == "unit_state"}
    return Scope(unit=units.pop()) if len(units) == 1 else Scope()


def _sections(rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(first, past the last) row of each head of a status: from its title to the empty line."""
    for index, row in enumerate(rows[:-1]):
        following = clean(rows[index + 1]).lstrip()
        if following.startswith("Loaded: ") and _TITLE.fullmatch(clean(row).rstrip()):
            end = index + 1
            while end < len(rows) and clean(rows[end]).startswith(" "):
                end += 1
            yield index, end


def _status(rows: Sequence[str], start: int, end: int, source: str) -> list[Event]:
    title = _TITLE.fullmatch(clean(rows[start]).rstrip())
    unit = title["unit"] if title else ""
    fields: dict[str, Any] = {}
    stamp: RawStamp | None = None
    events: list[Event] = []
    active, place = "", start
    for index in range(start + 1, end):
        row = _FIELD.fullmatch(clean(rows[index]))
        if row is None:
            continue
        key, value = row["key"].strip(), row["value"]
        if key == "Active" and (found := _ACTIVE.fullmatch(value)):
            active, place = value, index
            fields |= {name: found[name] for name in ("active", "sub", "result") if found[name]}
            stamp = full_stamp(found["stamp"], found["zone"], LAYER) if found["stamp"] else None
            if stamp and found["age"] and (capture := _capture(stamp, found["age"], source, index + 1, rows[index])):
                events.append(capture)
        elif key == "Main PID":
            fields |= _main_process(value)
        elif key == "Memory":
            fields |= _memory(value)
        elif key == "Mem peak":
            fields["memory_peak_bytes"] = _size(value.split()[0]) if value.split() else None
        elif key == "Status":
            fields["status_text"] = value.strip('"')
    fields = {name: value for name, value in fields.items() if value is not None}
    text = f"{unit}: {active.partition(' since ')[0]}"
    return [_state(source, place + 1, unit, text, fields, (stamp,) if stamp else (), rows[place]), *events]


def _state(
    source: str,
    line: int,
    unit: str,
    text: str,
    fields: dict[str, Any],
    stamps: tuple[RawStamp, ...],
    raw: str,
) -> Event:
    owner = path_scope(unit)
    scope = Scope(unit=unit, container_id=owner.container_id, pod_uid=owner.pod_uid)
    return Event(Locator(source, line, line), "unit_state", "systemd", text, stamps, scope, fields, raw=raw)


def _capture(since: RawStamp, age: str, source: str, line: int, raw: str) -> Event | None:
    """The moment of the call: `since …; 5min ago`. Ages are cut to their last unit; hours say too little."""
    parts = _AGE_PART.findall(age)
    if not parts or parts[-1][1] not in ("min", "s", "ms"):
        return None
    seconds = sum(float(number) * _AGE_S[_singular(unit)] for number, unit in parts)
    width = max(_AGE_S[_singular(parts[-1][1])], 1)
    stamp = replace(since, layer=f"{LAYER}-now", seconds=since.seconds + seconds, resolution_s=width + 1)
    return Event(Locator(source, line, line), "capture", "host", "captured at", (stamp,), raw=raw)


def _singular(unit: str) -> str:
    return unit if unit in _AGE_S else unit.removesuffix("s")


def _main_process(value: str) -> dict[str, Any]:
    """`174 (code=killed, signal=KILL)`, `208 (code=exited, status=1/FAILURE)`, `187 (sleep)`."""
    found = _PROCESS.search(value)
    if not found:
        pid = value.split(" ", 1)[0]
        return {"main_pid": int(pid)} if pid.isdecimal() and len(pid) < 19 else {}
    name = found["signal"] or found["name"]
    status = int(found["status"]) if found["status"] else _SIGNALS.get(found["signal"])
    return {
        "exec_main_pid": int(found["pid"]), "exec_main_code": found["code"], "exec_main_status": status,
        "exec_main_status_name": name,
    }  # fmt: skip


def _memory(value: str) -> dict[str, Any]:
    found = _MEMORY.match(value)
    if not found:
        return {}
    parts = {f"memory_{name}_bytes": _size(size) for name, size in _MEMORY_PART.findall(found["more"] or "")}
    if "memory_limit_bytes" in parts:  # the word of older versions
        parts["memory_max_bytes"] = parts.pop("memory_limit_bytes")
    return {"memory_current_bytes": _size(found["now"]) if found["now"] else None, **parts}


def _size(text: str) -> int | None:
    """`127.8M`, `180K`, `0B` → bytes; one decimal is all that is printed."""
    power = _SIZE_POWER.get(text[-1:])
    try:
        return None if power is None else round(float(text[:-1]) * 1024**power)
    except ValueError:
        return None


def read_show(text: str, source: str) -> Parsed:
    """`systemctl show UNIT…`: `Key=value` lines, an empty line between units."""
    events = []
    block: dict[str, tuple[int, str]] = {}
    for number, row in enumerate([*text.split("\n"), ""], 1):
        key, equals, value = row.rstrip("\r").partition("=")
        if equals:
            block.setdefault(key, (number, value))
        elif not row.strip() and block:
            events.append(_shown(block, source))
            if (spec := _started(block, source)) is not None:
                events.append(spec)
            block = {}
    return Parsed(tuple(events), scope=_owner(events))


def _started(block: dict[str, tuple[int, str]], source: str) -> Event | None:
    """What the unit was started with, as its file says (`unit_files`)."""
    values = {key: value for key, (_, value) in block.items() if value not in _UNSET}
    command = _ARGV.search(values.get("ExecStart", ""))
    unit = values.get("Id") or values.get("Names", "").split(" ")[0]
    if command is None or not unit.endswith(".service"):
        return None
    limit = values.get("MemoryMax") or values.get("MemoryLimit", "")
    fields = {
        **command_fields(words(command["words"])),
        "env": dict(environment([values.get("Environment", "")])),
        "restart_policy": values.get("Restart", ""),
        "grace_s": span_s(values.get("TimeoutStopUSec", "")),
        "start_timeout_s": span_s(values.get("TimeoutStartUSec", "")),
    }
    if _WHOLE.fullmatch(limit):
        fields["memory_limit_bytes"] = int(limit)
    line = block["ExecStart"][0]
    return Event(
        Locator(source, line, line), "pod_spec", "systemd", f"unit {unit} spec", scope=Scope(unit=unit),
        fields=known(fields), raw=f"ExecStart={values['ExecStart']}",
    )  # fmt: skip


def _shown(block: dict[str, tuple[int, str]], source: str) -> Event:
    values = {key: value for key, (_, value) in block.items() if value not in _UNSET}
    fields: dict[str, Any] = {name: values[key] for key, name in _SHOW_WORDS.items() if key in values}
    for key, name in _SHOW_NUMBERS.items():
        if _WHOLE.fullmatch(values.get(key, "")):
            fields[name] = int(values[key])
    if values.get("ExecMainCode") in _CLD:
        fields["exec_main_code"] = _CLD[values["ExecMainCode"]]
    else:
        fields.pop("exec_main_status", None)  # 0 while the process runs
    stamps: dict[str, RawStamp] = {}
    for key, name in _SHOW_TIMES.items():
        found = _SHOW_STAMP.fullmatch(values.get(key, ""))
        stamp = full_stamp(found["stamp"], found["zone"], LAYER) if found else None
        if stamp is not None:
            stamps[name] = stamp
            fields[f"{name}_s"] = stamp.seconds
    unit = values.get("Id") or values.get("Names", "").split(" ")[0]
    line = next(
        (block[key][0] for key in ("Result", "ActiveState", "Id") if key in block),
        min(n for n, _ in block.values()),
    )
    when = stamps.get("exec_main_exit") or stamps.get("state_change") or stamps.get("active_enter")
    text = f"{unit}: {fields.get('active', 'unknown')} (Result: {fields.get('result', 'unknown')})"
    raw = f"Result={values.get('Result', '')}"
    return _state(source, line, unit, text, fields, (when,) if when else (), raw)


def _sniff_status(head: Head) -> int:
    rows = [row for row in head.lines if row.strip()][:6]
    return 80 if any(True for _ in _sections(rows)) else 0


def _sniff_show(head: Head) -> int:
    """Many properties, or a few asked for by name (`-p NRestarts,Result`) and nothing else."""
    lines = {row.partition("=")[0] for row in head.lines if "=" in row}
    known = len(_SHOWN & lines)
    asked = known >= 2 and known >= 0.5 * len(lines) and all("=" in row for row in head.filled)
    return 80 if known >= 4 or asked else 0


FORMATS: tuple[Format, ...] = (
    Format("systemd.status", "systemctl status", _sniff_status, read_status, begins="L"),
    Format("systemd.show", "systemctl show", _sniff_show, read_show, begins="A-Z"),
)
