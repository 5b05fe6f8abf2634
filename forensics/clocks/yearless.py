"""Month, day and time in a given year. Without a year they are kept as seconds in a leap year, see `stamps`."""

from __future__ import annotations

import calendar

from .. import stamps

DAY_S = 86400.0
START_S = float(calendar.timegm((stamps.YEARLESS_YEAR, 1, 1, 0, 0, 0)))
_TURN_S = 365.2425 * DAY_S
LEAP_DAY_S = 59 * DAY_S
"""Start of 29 February, counted from the start of a leap year."""


def in_year(seconds: float, year: int) -> float:
    """A year-less time (seconds as in `RawStamp`) in a year; 29 February becomes 1 March where there is none."""
    since_s = seconds - START_S
    if since_s >= LEAP_DAY_S + DAY_S and not calendar.isleap(year):
        since_s -= DAY_S
    return calendar.timegm((year, 1, 1, 0, 0, 0)) + since_s


def without_year(wall: float) -> tuple[float, int]:
    """(year-less seconds, year) of a local time."""
    year = stamps.wall(wall).year
    since_s = wall - calendar.timegm((year, 1, 1, 0, 0, 0))
    if since_s >= LEAP_DAY_S and not calendar.isleap(year):
        since_s += DAY_S
    return START_S + since_s, year


def nearest_year(seconds: float, moment_s: float) -> int:
    """The year in which a year-less time comes nearest to a moment."""
    near = stamps.wall(moment_s).year
    return min((near, near - 1, near + 1), key=lambda year: abs(in_year(seconds, year) - moment_s))


def nearest_turn_s(moment_s: float, to_s: float) -> float:
    """A Unix time whose year is a guess, moved by whole years to where it is nearest to another; a day may be lost."""
    return moment_s + round((to_s - moment_s) / _TURN_S) * _TURN_S


def is_leap_day(seconds: float) -> bool:
    return LEAP_DAY_S <= seconds - START_S < LEAP_DAY_S + DAY_S
