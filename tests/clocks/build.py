"""Sources for the tests of the clocks: lines whose true instant is known, printed by a clock."""

from __future__ import annotations

import math
import zoneinfo
from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forensics import clocks
from forensics.clocks import ClockOptions, Solved
from forensics.model import Clock, Event, Locator, Parsed, RawStamp, Samples, Scope, Source, StampForm
from forensics.stamps import epoch

INSTANT, LOCAL, YEARLESS = StampForm.INSTANT, StampForm.LOCAL, StampForm.YEARLESS


def at(text: str) -> float:
    """`2026-05-06 02:15:03` as UTC → Unix time."""
    return epoch(datetime.fromisoformat(text).replace(tzinfo=UTC))


def stamp(form: StampForm, layer: str, shown_s: float, zone: str = "UTC", resolution_s: float = 1.0, printed: str = "") -> RawStamp:
    """What a clock that shows `shown_s` prints in a zone."""
    cut = math.floor(shown_s / resolution_s + 1e-6) * resolution_s
    if form is INSTANT:
        return RawStamp(form, layer, cut, resolution_s)
    moment = datetime.fromtimestamp(cut, UTC).astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)
    if form is YEARLESS:
        moment = moment.replace(year=2000)
    return RawStamp(form, layer, epoch(moment), resolution_s, printed)


def boot(seconds: float) -> RawStamp:
    return RawStamp(StampForm.BOOT, "dmesg", round(seconds, 6), 1e-6)


def age(seconds: float, width_s: float) -> RawStamp:
    """An age as kubectl prints it: truncated, kept as the middle of what it may be."""
    return RawStamp(StampForm.AGE, "kubectl", seconds // width_s * width_s + width_s / 2, width_s)


@dataclass
class Print:
    """One source under construction, with the true instant of every line."""

    path: str
    format: str = "log"
    scope: Scope = field(default_factory=Scope)
    mtime_s: float | None = None
    events: list[Event] = field(default_factory=list)
    truth: dict[int, float] = field(default_factory=dict)
    samples: list[Samples] = field(default_factory=list)

    def line(
        self, true_s: float, text: str, stamps: tuple[RawStamp, ...] = (), channel: str = "host", kind: str = "log",
        scope: Scope | None = None, **fields: Any,
    ) -> None:
        number = len(self.events) + 1
        self.truth[number] = true_s
        owner = (scope or Scope()).merged(self.scope)
        self.events.append(Event(Locator(self.path, number, number), kind, channel, text, stamps, owner, fields))

    def series(self, name: str, form: StampForm, layer: str, rows: list[tuple[float, float]]) -> None:
        """Rows of (printed seconds, value), one a line from line 2."""
        self.samples.append(
            Samples(
                name, self.path, Scope(gpu="0"), form, layer, array("q", range(2, len(rows) + 2)),
                array("d", [when for when, _ in rows]), array("d", [value for _, value in rows]),
            )
        )

    def parsed(self) -> tuple[Source, Parsed]:
        source = Source(self.path, self.format, "", 1, "", len(self.events), self.scope, self.mtime_s, 1.0)
        return source, Parsed(tuple(self.events), tuple(self.samples))


def solve(*prints: Print, **options: Any) -> Solved:
    return clocks.solve([one.parsed() for one in prints], ClockOptions(**options))


def clock(solved: Solved, path: str, layer: str) -> Clock:
    """The clock of one layer of a source."""
    return next(found for found in solved.clocks[path] if found.layer == layer)


def errors(solved: Solved, one: Print) -> list[float]:
    """Reported minus true, for the dated lines of a source."""
    return [
        event.time.utc_s - one.truth[event.locator.line]
        for event in solved.events
        if event.locator.source == one.path and event.time.utc_s is not None
    ]


def message(serial: int) -> str:
    """A distinctive line, different for every serial."""
    return f"cni plugin assigned address 10.42.{serial % 250}.17 to sandbox {7919 * (serial + 1)} after {serial} tries"


def journal(path: str, zone: str, times: list[float], host: str = "gpu-node-7", form: StampForm = YEARLESS, runtime_every: int = 2, skew_s: float = 0.0) -> Print:
    """A node's journal; every n-th line is the runtime's and prints UTC inside."""
    found = Print(path, scope=Scope(host=host))
    for serial, true_s in enumerate(times):
        outer = stamp(form, "journal", true_s + skew_s, zone)
        if runtime_every and serial % runtime_every == 0:
            found.line(true_s, message(serial), (outer, stamp(INSTANT, "runtime", true_s + skew_s, "UTC", 1e-6)), "runtime")
        else:
            found.line(true_s, message(serial), (outer,), "host")
    return found
