"""The tz database, asked about offsets."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from types import ModuleType

import pytest

from forensics.clocks import zones
from forensics.model import Scope
from forensics.stamps import epoch


def at(*moment: int) -> float:
    return epoch(datetime(*moment, tzinfo=UTC))


def test_every_offset_in_civil_use_is_known() -> None:
    """No zone had an offset since 2000 that the list lacks, and the list holds none that nobody had."""
    used = set()
    for name in zoneinfo.available_timezones():
        zone = zoneinfo.ZoneInfo(name)
        for year in range(2000, 2031):
            for month in (1, 4, 7, 10):
                offset = datetime(year, month, 15, tzinfo=UTC).astimezone(zone).utcoffset()
                assert offset is not None
                used.add(offset.total_seconds() / 60)
    assert used <= set(zones.UTCOFFSETS_MIN)
    assert set(zones.UTCOFFSETS_MIN) - used <= {-150}  # Newfoundland's summer time begins after midnight


@pytest.mark.parametrize(
    ("measured", "offset", "name"),
    [(-28799.6, -28800, "UTC+08:00"), (-20699.0, -20700, "UTC+05:45"), (0.4, 0, "UTC"), (12599.2, 12600, "UTC-03:30"),
     (-31501.0, -31500, "UTC+08:45")],
)  # fmt: skip
def test_measured_offsets_snap_to_zones(measured: float, offset: float, name: str) -> None:
    """Quarter hours exist; the name says how far local time is ahead of UTC."""
    assert zones.nearest_offset(measured) == offset
    assert zones.label(offset) == name


def test_rules_group_zones_by_behaviour() -> None:
    """Zones that run alike over a span stand in one rule, with the instant of the change."""
    found = zones.rules(at(2026, 10, 20), at(2026, 10, 30))
    berlin = next(rule for rule in found if "Europe/Berlin" in rule.names)
    assert "Europe/Madrid" in berlin.names
    assert "Africa/Lagos" not in berlin.names
    assert berlin.changes == ((at(2026, 10, 25, 1), 3600.0),)
    assert (berlin.utcoffset_s(at(2026, 10, 25, 0)), berlin.utcoffset_s(at(2026, 10, 25, 1))) == (7200, 3600)


def test_local_times_in_folds_and_gaps() -> None:
    """An hour that occurs twice has two instants, one that is skipped has none."""
    autumn = next(r for r in zones.rules(at(2026, 10, 20), at(2026, 10, 30)) if "Europe/Berlin" in r.names)
    assert autumn.instants(at(2026, 10, 25, 2, 30)) == (at(2026, 10, 25, 0, 30), at(2026, 10, 25, 1, 30))
    spring = next(r for r in zones.rules(at(2026, 3, 25), at(2026, 4, 2)) if "Europe/Berlin" in r.names)
    assert spring.instants(at(2026, 3, 29, 2, 30)) == ()


def test_a_repeated_hour_tells_the_zones() -> None:
    """Three o'clock that becomes two on that Sunday is central Europe, and neither London nor Athens."""
    found = zones.fold_rules(at(2026, 10, 25, 2, 59, 50), at(2026, 10, 25, 2, 0, 10))
    names = {name for rule in found for name in rule.names}
    assert "Europe/Berlin" in names
    assert not {"Europe/London", "Europe/Athens", "America/New_York"} & names


def test_abbreviations_are_ambiguous() -> None:
    """`CST` is printed on three continents, `CEST` on one."""
    assert {"Asia/Shanghai", "America/Chicago"} <= zones.names_printing([(at(2026, 1, 15, 12), "CST")])
    assert "America/Chicago" not in zones.names_printing([(at(2026, 7, 15, 12), "CST")])
    assert zones.names_printing([(at(2026, 7, 15, 12), "UTC")]) == {"Etc/UTC"}
    central = zones.names_printing([(at(2026, 7, 15, 12), "CEST")])
    assert "Europe/Berlin" in central
    assert all(zones.printed_offset(name, at(2026, 7, 15, 12), "CEST") == -7200 for name in central)


def test_a_file_of_a_century(b: ModuleType) -> None:
    """A clock that began at its zero: zones are followed through the last years, older lines say their doubt."""
    one = b.Print("journal.txt", scope=Scope(host="gpu-node-7"))
    times = [b.at("1980-07-01 00:00:10") + i for i in range(3)] + [b.at("2026-05-06 02:00:00") + 60 * i for i in range(12)]
    for serial, true_s in enumerate(times):
        stamps = (b.stamp(b.LOCAL, "journal", true_s, "Europe/Berlin"),)
        stamps += (b.stamp(b.INSTANT, "runtime", true_s),) if serial > 2 else ()
        one.line(true_s, b.message(serial), stamps, "runtime")
    solved = b.solve(one)
    doubts = [event.time.uncertainty_s for event in solved.events]
    assert all(abs(error) <= doubt for error, doubt in zip(b.errors(solved, one), doubts, strict=True))
    assert max(doubts[3:]) <= 2
    assert min(doubts[:3]) > 3600


@pytest.mark.parametrize(
    ("zone", "moment", "shown"),
    [
        ("Europe/Berlin", (2026, 10, 25, 0, 21, 7), "02:21:07 CEST"),
        ("Europe/Berlin", (2026, 10, 25, 1, 21, 7), "02:21:07 CET"),
        ("Europe/Berlin", (2026, 10, 25, 2, 21, 7), ""),
        ("Europe/Berlin", (2026, 10, 24, 23, 59, 59), ""),
        ("Europe/Berlin", (2026, 3, 29, 1, 30, 0), ""),  # the hour that is left out
        ("Asia/Tokyo", (2026, 10, 25, 1, 21, 7), ""),
        ("UTC+01:00", (2026, 10, 25, 1, 21, 7), ""),
    ],
)
def test_an_hour_that_is_shown_twice(zone: str, moment: tuple[int, ...], shown: str) -> None:
    """In autumn 02:00 to 03:00 comes once in summer time and once in winter time."""
    assert zones.shown_twice(zone, at(*moment)) == shown


def test_the_journal_below_a_unit_s_status_is_of_its_zone(b: ModuleType) -> None:
    """`systemctl status` prints the zone in its first lines only; the lines of the journal below are of that node."""
    stop = b.at("2026-06-12 13:13:10")
    status = b.Print("status.txt", scope=Scope(host="waka"))
    status.line(stop + 90, "failed", (b.stamp(b.LOCAL, "systemctl", stop + 90, "Asia/Tokyo", printed="JST"),), "systemd", "unit_state")
    for second, text in ((0, "Stopping"), (90, "Killing")):
        status.line(stop + second, text, (b.stamp(b.YEARLESS, "journal", stop + second, "Asia/Tokyo"),), "systemd")
    solved = b.solve(status)
    assert b.errors(solved, status) == [0, 0, 0]
    assert max(event.time.uncertainty_s for event in solved.events) <= 1
