"""systemd unit files, `systemctl cat`, and Podman's Quadlet files: what a service was started with, and its limits.

One `pod_spec` a unit, as a pod's manifest gives one a container: the command and its arguments, the environment, the
limit of memory, how long a stop may take. Drop-ins count after the file that they amend. Syntax: systemd.unit(5),
systemd.service(5), systemd.resource-control(5) of systemd 219 to 257; podman-systemd.unit(5).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .healthchecks import health_fields
from .k8s_facts import DEFAULT_SHM_BYTES
from .k8s_values import known
from .numerals import is_whole
from .sizes import size_bytes

_SECTION = lazy_regex(r"\[(?P<name>[A-Za-z][\w -]{0,40})\]\s*")
_KEY = lazy_regex(r"(?P<key>[A-Z][A-Za-z]{1,40})\s*=\s*(?P<value>.*)")
_PATH = lazy_regex(r"# (?P<path>/\S+\.(?:service|scope|slice|container|conf|socket|timer|mount))\s*")
"""How `systemctl cat` announces a file."""
_UNIT = lazy_regex(
    r"(?P<unit>[\w@.\\:-]+\.(?:service|scope|slice|container|socket|timer|mount))(?:\.d/[^/]+\.conf|[.~_-]?(?:bak|old|orig|txt)?)!?$"
)
_SERVICE_SECTIONS = frozenset({"Service", "Scope", "Slice", "Container"})
_SECTIONS = frozenset({*_SERVICE_SECTIONS, "Unit", "Install", "Socket", "Timer", "Mount", "Path"})
_SPAN = lazy_regex(
    r"(\d{1,12}(?:\.\d{1,6})?) ?(us|µs|ms|min|m|hours?|hr|h|days?|d|seconds?|sec|s|minutes?)?(?=\s|\d|$)"
)
_SPAN_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PREFIXES = "-@:+!|"
"""Characters before a command that change how it is run, not what."""
_RUNNERS = frozenset({"docker", "podman", "nerdctl"})
_FLAGS_ALONE = frozenset({
    "--rm", "--init", "--privileged", "-d", "--detach", "-i", "-t", "-it", "-ti", "-dit", "-itd", "--interactive",
    "--tty", "--read-only", "--oom-kill-disable", "--no-healthcheck", "--replace", "--sdnotify",
})  # fmt: skip
"""Options of `docker run` without a value."""


@dataclass(slots=True)
class Unit:
    """The assignments of one unit, of its file and its drop-ins."""

    name: str
    values: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def set(self, key: str, value: str, line: int) -> None:
        """An empty value takes back what was said before."""
        if value:
            self.values.setdefault(key, []).append((value, line))
        else:
            self.values.pop(key, None)

    def last(self, *keys: str) -> str:
        return next((self.values[key][-1][0] for key in keys if key in self.values), "")


def span_s(text: str) -> float | None:
    """`90`, `2min 30s`, `1h`: systemd.time(7); `infinity` is none."""
    parts = _SPAN.findall(text.strip())
    if not parts or not text.strip()[:1].isdigit():
        return None
    small = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6}
    return sum(float(number) * (small.get(unit) or _SPAN_S[unit[:1]]) for number, unit in parts)


def read(text: str, source: str) -> Parsed:
    """A `pod_spec` for each unit that starts something or limits its memory."""
    lines = text.split("\n")
    events = [spec for unit in _units(lines, source) if (spec := _spec(unit, source, lines)) is not None]
    scopes = {event.scope for event in events}
    return Parsed(tuple(events), scope=scopes.pop() if len(scopes) == 1 else Scope())


def _units(lines: Sequence[str], source: str) -> Iterable[Unit]:
    named = _UNIT.search(source)
    unit = Unit(named["unit"] if named else PurePosixPath(source.removesuffix("!")).stem)
    units: dict[str, Unit] = {unit.name: unit}
    section = ""
    for number, key, value in _assignments(lines):
        if key == "#":
            found = _UNIT.search(value)
            name = found["unit"] if found else unit.name
            unit = units.setdefault(name, Unit(name))
        elif key == "[":
            section = value
        elif section in _SERVICE_SECTIONS:
            unit.set(key, value, number)
    return units.values()


def _assignments(lines: Sequence[str]) -> Iterable[tuple[int, str, str]]:
    """(line, key, value); `[` for the head of a section, `#` for the path that `systemctl cat` prints."""
    start, joined = 0, ""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r")
        if joined and text.lstrip().startswith(("#", ";")):  # a comment between continued lines
            continue
        if not joined and text.startswith(("#", ";")):
            if found := _PATH.fullmatch(text):
                yield number, "#", found["path"]
            continue
        start = start if joined else number
        joined += text
        if text.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        if found := _SECTION.fullmatch(joined.strip()):
            yield start, "[", found["name"]
        elif found := _KEY.fullmatch(joined.strip()):
            yield start, found["key"], found["value"].strip()
        joined = ""


def _spec(unit: Unit, source: str, lines: Sequence[str]) -> Event | None:
    started = [*unit.values.get("ExecStart", ()), *unit.values.get("Exec", ())]
    limit = unit.last("MemoryMax", "MemoryLimit", "Memory")
    if not started and not limit:
        return None
    command, line = started[-1] if started else ("", 0)
    if not started:
        line = next(at for key in ("MemoryMax", "MemoryLimit", "Memory") for _, at in unit.values.get(key, ()))
    quadlet = unit.name.endswith(".container")
    name = unit.name.removesuffix(".container") + ".service" if quadlet else unit.name
    fields: dict[str, Any] = {
        **({"args": words(command)} if quadlet else command_fields(words(command.lstrip(_PREFIXES)))),
        "restart_policy": unit.last("Restart"),
        "grace_s": span_s(unit.last("TimeoutStopSec", "TimeoutSec", "StopTimeout")),
        "start_timeout_s": span_s(unit.last("TimeoutStartSec", "TimeoutSec")),
        "watchdog_s": span_s(unit.last("WatchdogSec")),
        "memory_high_bytes": size_bytes(unit.last("MemoryHigh")),
        "kill_signal": unit.last("KillSignal"),
        "kill_mode": unit.last("KillMode"),
        "oom_policy": unit.last("OOMPolicy"),
        "oom_score_adjust": unit.last("OOMScoreAdjust"),
    }
    if image := unit.last("Image"):
        fields["image"] = image
    if quadlet:
        fields["container"] = unit.last("ContainerName") or f"systemd-{name.removesuffix('.service')}"
    if unit.last("HealthCmd") not in ("", "none"):
        fields |= _health(unit)
    env = dict(environment([value for value, _ in unit.values.get("Environment", ())]))
    fields["env"] = {**env, **fields.get("env", {})}
    for key, value in (("memory_limit_bytes", limit), ("shm_size_bytes", unit.last("ShmSize"))):
        if size_bytes(value) is not None:
            fields[key] = size_bytes(value)
    if quadlet and "ipc=host" not in unit.last("PodmanArgs").replace(" ", "="):
        fields.setdefault("shm_size_bytes", DEFAULT_SHM_BYTES)
    raw = lines[line - 1].rstrip("\r")
    return Event(
        Locator(source, line, line), "pod_spec", "systemd", f"unit {name} spec", scope=Scope(unit=name),
        fields=known(fields), raw=raw,
    )  # fmt: skip


def _health(unit: Unit) -> dict[str, Any]:
    retries = unit.last("HealthRetries")
    return health_fields(
        span_s(unit.last("HealthStartPeriod")), span_s(unit.last("HealthInterval")), span_s(unit.last("HealthTimeout")),
        int(retries) if is_whole(retries) else None, unit.last("HealthOnFailure"),
    )  # fmt: skip


def words(command: str) -> tuple[str, ...]:
    """A command line as words; an open quote is no reason to lose it."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return tuple(command.split())


def environment(values: Iterable[str]) -> Iterable[tuple[str, str]]:
    """`Environment=A=1 "B=2 3"` → pairs."""
    for value in values:
        for word in words(value):
            name, mark, text = word.partition("=")
            if mark:
                yield name, text


def command_fields(command: Sequence[str]) -> Mapping[str, Any]:
    """What a command line says: `command` and `args`; of `docker run` the limits and what follows the image."""
    if not command:
        return {}
    program = PurePosixPath(command[0]).name
    if program in _RUNNERS and "run" in command[1:4]:
        return _run(command[command.index("run") + 1 :])
    return {"command": tuple(command[:1]), "args": tuple(command[1:])}


def _run(options: Sequence[str]) -> Mapping[str, Any]:
    """Options of `docker run` up to the image, and the arguments behind it."""
    given: dict[str, str] = {}
    env: list[str] = []
    at = 0
    while at < len(options) and options[at].startswith("-"):
        name, mark, value = options[at].partition("=")
        at += 1
        if not mark and name not in _FLAGS_ALONE and at < len(options):
            value = options[at]
            at += 1
        if name in ("-e", "--env"):
            env.append(value)
        given[name] = value
    cards = given.get("--gpus", "").strip("\"'").removeprefix("device=")
    shared = given.get("--ipc", "").startswith(("host", "container:"))
    shm = size_bytes(given.get("--shm-size", ""))
    return {
        "container": given.get("--name", ""),
        "image": options[at] if at < len(options) else "",
        "args": tuple(options[at + 1 :]),
        "env": dict(environment(env)),
        "gpus": len(cards.split(",")) if cards[:1].isdigit() and "device=" in given["--gpus"] else None,
        "memory_limit_bytes": size_bytes(given.get("--memory", "") or given.get("-m", "")),
        "shm_size_bytes": shm if shm is not None else None if shared else DEFAULT_SHM_BYTES,
    }


def _sniff(head: Head) -> int:
    """Sections that only units have, and little besides assignments."""
    filled = [line for line in head.lines if line.strip() and not line.startswith(("#", ";"))]
    sections = {found["name"] for line in filled if (found := _SECTION.fullmatch(line))}
    if not sections & _SECTIONS or not filled:
        return 0
    ours = continued = 0
    for line in filled:
        ours += bool(continued or _SECTION.fullmatch(line) or _KEY.fullmatch(line.strip()))
        continued = line.endswith("\\")
    return 88 if ours >= 0.9 * len(filled) and len(sections & _SECTIONS) >= 0.5 * len(sections) else 0


FORMAT = Format("systemd.unit", "systemd unit file", _sniff, read, 1 << 20, begins=r"\[")
