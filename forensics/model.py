"""The types that travel through the pipeline. No I/O here; all values are immutable.

Units stand in names: `_s` seconds, `_kib`, `_mib`, `_gib`, `_pct`. Times without a zone are never mixed with
instants: a `RawStamp` is what a line says, a `Timestamp` is what we believe.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

Value = str | int | float | bool | None


class StampForm(StrEnum):
    """What a printed time leaves open."""

    INSTANT = "instant"
    """Zone or epoch given: nothing is open."""
    LOCAL = "local"
    """Date and time, no zone."""
    YEARLESS = "yearless"
    """Month, day, time; neither year nor zone."""
    CLOCK = "clock"
    """Time of day only."""
    BOOT = "boot"
    """Seconds since boot."""
    AGE = "age"
    """Time before the capture, truncated to a unit."""


@dataclass(frozen=True, slots=True)
class RawStamp:
    """A time as printed, before any clock is known."""

    form: StampForm
    layer: str
    """Which clock wrote it: `cri`, `journal`, `klog`, `engine`, `dmesg`, `kubectl` … One clock per (source, layer)."""
    seconds: float
    """INSTANT: Unix time. LOCAL: the wall time read as if it were UTC. YEARLESS: the same in the year 2000.
    CLOCK: seconds since midnight, of the first row's day where rows have weekdays. BOOT: seconds since boot. AGE:
    seconds before the capture."""
    resolution_s: float = 1.0
    """Size of the last printed unit; for ages the width of the truncation."""
    zone: str = ""
    """A printed zone abbreviation (`CST`) that does not decide the offset by itself."""


class Basis(StrEnum):
    """Why we believe a time."""

    EXACT = "exact"
    ZONE_ASSUMED = "zone_assumed"
    ZONE_SOLVED = "zone_solved"
    YEAR_SOLVED = "year_solved"
    BOOT_SOLVED = "boot_solved"
    SKEW_CORRECTED = "skew_corrected"
    RELATIVE_AGE = "relative_age"
    FILE_ORDER = "file_order"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """An instant with its honesty: UTC ± uncertainty, and the reason to believe it."""

    utc_s: float | None
    """Unix time, or none when the clock of the source could not be tied to UTC."""
    uncertainty_s: float
    """Half width of the interval around `utc_s`."""
    basis: Basis

    @property
    def earliest_s(self) -> float:
        return float("-inf") if self.utc_s is None else self.utc_s - self.uncertainty_s

    @property
    def latest_s(self) -> float:
        return float("inf") if self.utc_s is None else self.utc_s + self.uncertainty_s


UNKNOWN_TIME = Timestamp(None, float("inf"), Basis.FILE_ORDER)


_MORE_THAN_LINES = 1 << 40


def reading_order(line: int, newest_first: bool) -> int:
    """What grows as a file was written, from its line numbers; and back."""
    return _MORE_THAN_LINES - line if newest_first else line


@dataclass(frozen=True, slots=True)
class Locator:
    """A place in the bundle; lines count from 1 and end at LF only."""

    source: str
    """Member path relative to the bundle; `x.gz!` is the content of the gzip member `x.gz`."""
    line: int
    line_end: int
    newest_first: bool = False
    """True in a file that is to be read from its end, as log backends show it."""

    @property
    def order(self) -> int:
        """Grows from line to line in the direction in which the file was written."""
        return reading_order(self.line, self.newest_first)

    @classmethod
    def at(cls, source: str, order: int) -> Locator:
        """The single line that has this `order`."""
        newest_first = order > _MORE_THAN_LINES // 2
        line = reading_order(order, newest_first)
        return cls(source, line, line, newest_first)

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose an event is, as far as its source knows. Empty means unknown, never 'none'."""

    host: str = ""
    namespace: str = ""
    pod: str = ""
    """Pod name."""
    pod_uid: str = ""
    """Lower case with dashes."""
    container: str = ""
    container_id: str = ""
    """64 hex digits, without the runtime's scheme."""
    unit: str = ""
    """systemd unit."""
    process: str = ""
    """Process title or log prefix: `EngineCore_DP0`, `Worker_TP1`, `APIServer`."""
    pid: int | None = None
    """As printed: kernel pids are host pids, engine pids are container pids. Never join by pid alone."""
    gpu: str = ""
    """Index, UUID or PCI bus id, as printed (bus ids normalised to `dddd:bb:dd`)."""
    rank: int | None = None

    @classmethod
    def from_parts(cls, parts: Mapping[str, str | None]) -> Scope:
        """A scope from named text parts, as the groups of a regex give them; blank ones stay unknown."""
        known = {name: value for name, value in parts.items() if value}
        numbers = {name: int(known.pop(name)) for name in ("pid", "rank") if name in known}
        return cls(**known, **numbers)  # type: ignore[arg-type]

    def merged(self, outer: Scope) -> Scope:
        """This scope, with its unknown parts taken from `outer`."""
        return _merged(self, outer)

    def to_dict(self) -> dict[str, Value]:
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) not in ("", None)}


@lru_cache(maxsize=4096)
def _merged(inner: Scope, outer: Scope) -> Scope:
    """Cached: the lines of a file have few scopes among them."""
    missing = {
        f.name: getattr(outer, f.name)
        for f in fields(inner)
        if getattr(inner, f.name) in ("", None) and getattr(outer, f.name) not in ("", None)
    }
    return replace(inner, **missing) if missing else inner


class Severity(StrEnum):
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Event:
    """Something a source says. `text` is the message core, free of stamps, prefixes, colours and CR."""

    locator: Locator
    kind: str
    """`log` for a plain line; otherwise the structured kinds listed in ARCHITECTURE.md."""
    channel: str
    """Who speaks: `engine`, `kernel`, `kubelet`, `runtime`, `systemd`, `k8s`, `nvidia`, `ray`, `host`, `plain` …"""
    text: str
    stamps: tuple[RawStamp, ...] = ()
    """Outer to inner."""
    scope: Scope = Scope()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Typed facts, units in names."""
    level: str = ""
    """The level that the line claims, upper case (`ERROR`), or empty."""
    count: int = 1
    """How many identical lines (digits masked) this one stands for."""
    last_line: int | None = None
    """Line of the last of them."""
    complete: bool = True
    """False when a part of a multi-line record is missing."""
    raw: str = ""
    """The quoted line as it stands in the file (cleaned of control characters only when shown)."""
    time: Timestamp = UNKNOWN_TIME
    """Filled by `clocks`."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A series as columns of equal length; one row is one measured point."""

    name: str
    """Series name with its unit: `gpu_memory_used_mib`, `kv_cache_usage_pct`, `requests_waiting`."""
    source: str
    scope: Scope
    form: StampForm
    layer: str
    lines: array[int]
    """As `Locator.order`."""
    stamps: array[float]
    """As `RawStamp.seconds`; after `clocks` Unix time (NaN when unknown)."""
    values: array[float]
    doubt_s: float = 0.0
    """After `clocks`: how far off all of the times may be."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What could not be read, or had to be assumed."""

    source: str
    line: int | None
    severity: Severity
    message: str
    """What, and what it means for the analysis."""
    hint: str = ""
    """What to try next."""


@dataclass(frozen=True, slots=True)
class ClockAnchor:
    """One fact that ties a clock to UTC."""

    place: Locator
    witness: Locator
    residual_s: float


@dataclass(frozen=True, slots=True)
class Clock:
    """How the stamps of one (source, layer) become UTC: utc = printed + offset - skew."""

    source: str
    layer: str
    form: StampForm
    zone: str
    """IANA name, `UTC`, `UTC+08:00`, `boot`, or empty."""
    offset_s: float | None
    """Added to the printed local time to get UTC."""
    year: int | None
    """Year of the first line where none is printed."""
    boot_epoch_s: float | None
    skew_s: float
    captured_at_s: float | None
    basis: Basis
    verdict: str
    """`exact`, `solved`, `assumed` or `refused`."""
    anchors: tuple[ClockAnchor, ...]
    residual_s: float | None
    """Median absolute deviation over the anchors."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One member of the bundle."""

    path: str
    format: str
    """Format id, `unrecognised` or `empty`."""
    title: str
    """The format in words."""
    size_bytes: int
    sha256: str
    lines: int
    scope: Scope
    mtime_s: float | None
    """Member time from the archive; weak evidence."""
    coverage: float | None
    """Share of lines understood or knowingly skipped, none where lines make no sense."""
    clocks: tuple[Clock, ...] = ()
    reason: str = ""
    """Why it is unrecognised, or what was cut."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser makes of one source."""

    events: tuple[Event, ...] = ()
    samples: tuple[Samples, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    scope: Scope = Scope()
    """What the content says about the owner of the whole file."""


class Role(StrEnum):
    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    SYMPTOM = "symptom"
    CONTEXT = "context"
    BENIGN = "benign"


@dataclass(frozen=True, slots=True)
class Finding:
    """A signature, or a rule of the diagnosis, seen at one event."""

    id: str
    """`F1`, `F2` … in timeline order."""
    signature: str
    """Signature id, or `derived.<name>` for a rule of `diagnosis/`."""
    title: str
    role: Role
    severity: Severity
    event: Event
    fields: Mapping[str, Any]
    quoted: bool = False
    """True when the text is talk about an error (a prompt, an INFO message), not the error itself."""
    hearsay: bool = False
    """True when a person told it, and no engine's log is there to confirm it."""
    rests_on: tuple[Finding, ...] = ()
    """For derived findings: what they were concluded from; their sentence is a text filled with `fields`."""

    @property
    def time(self) -> Timestamp:
        return self.event.time

    @property
    def locator(self) -> Locator:
        return self.event.locator
