"""Text to `RawStamp` and back.

Every parser gets its times from here, so that a format is understood in one way everywhere. A function returns
none for text that is no time or lies outside the calendar; it never guesses a zone or a year.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import regex
from dateutil import parser as dateutil_parser

from .model import RawStamp, StampForm
from .regexes import lazy_re, lazy_regex

YEARLESS_YEAR = 2000
"""Stands for an unknown year: a leap year, so 29 February exists."""

MONTHS = {name: i for i, name in enumerate(calendar.month_abbr) if name}
_LOCAL_MONTHS = {
    name: number
    for names in (
        # journalctl, syslog, date and dmesg follow LC_TIME: `%b` of glibc 2.36's locales, without a dot behind it
        "jan feb mär apr mai jun jul aug sep okt nov dez",  # de
        "jän feb mär apr mai jun jul aug sep okt nov dez",  # de_AT
        "janv févr mars avril mai juin juil août sept oct nov déc",  # fr
        "jan fév mar avr mai jun jui aoû sep oct nov déc",  # fr_CA
        "ene feb mar abr may jun jul ago sep oct nov dic",  # es
        "gen feb mar apr mag giu lug ago set ott nov dic",  # it
        "jan fev mar abr mai jun jul ago set out nov dez",  # pt
        "ian feb mar apr mai iun iul aug sep oct nov dec",  # ro
        "jan feb mrt apr mei jun jul aug sep okt nov dec",  # nl
        "jan feb mar apr maj jun jul aug sep okt nov dec",  # da, sv, sl
        "jan feb mars april mai juni juli aug sep okt nov des",  # nb, nn
        "jan feb mar apr maí jún júl ágú sep okt nóv des",  # is
        "tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu",  # fi
        "jaan veebr märts apr mai juuni juuli aug sept okt nov dets",  # et
        "jan feb mar apr mai jūn jūl aug sep okt nov dec",  # lv
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",  # pl
        "led úno bře dub kvě čen čec srp zář říj lis pro",  # cs
        "jan feb mar apr máj jún júl avg sep okt nov dec",  # sk, sl
        "jan febr márc ápr máj jún júl aug szept okt nov dec",  # hu
        "oca şub mar nis may haz tem ağu eyl eki kas ara",  # tr
        "янв фев мар апр май июн июл авг сен окт ноя дек",  # ru
        "янв фев мар апр мая июн июл авг сен окт ноя дек",  # ru, as a date says it
        "січ лют бер кві тра чер лип сер вер жов лис гру",  # uk
        "яну фев мар апр май юни юли авг сеп окт ное дек",  # bg
        "јан феб мар апр мај јун јул авг сеп окт нов дец",  # sr
        "ιαν φεβ μαρ απρ μαΐ ιουν ιουλ αυγ σεπ οκτ νοε δεκ",  # el
        "ιαν φεβ μάρ απρ μάι ιούν ιούλ αύγ σεπ οκτ νοέ δεκ",  # el, as a date says it
        "jan feb mar apr mei jun jul agu sep okt nov des",  # id
    )
    for number, name in enumerate(names.split(), 1)
}
"""Croatian is left out: its `lip`, `srp` and `lis` are other months than those of its neighbours."""

_ISO = lazy_re(
    r"(?P<minute>\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?::(?P<s>\d\d)(?P<frac>[.,]\d{1,9})?)?"
    r"(?P<zone>Z| ?UTC| ?GMT|[+-]\d\d:?\d\d)?"
)
_CTIME = lazy_regex(
    r"(?:(?P<wd>\p{L}{1,5}\.?) +)?(?P<mon>\p{L}{3,6}\.?|\d{1,2}[月월]) +(?P<d>\d{1,2})"
    r" (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<frac>\.\d{1,9})?(?: (?P<y>\d{4}))?"
)
_HMS = lazy_re(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_RFC1123 = lazy_regex(r"\p{L}{3}, \d\d \p{L}{3} (?!000|1970)\d{4} \d\d:\d\d:\d\d(?: (?:[+-]\d{4}|[A-Z]{2,5}))?")
_AGE_PART = lazy_regex(r"(\d+)([ywdhms])")
_AGE = lazy_regex(r"(?:\d{1,9}[ywdhms])+")
_LEAP = 60
"""The last second of a minute, once in some years."""
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_UTC_OFFSET = lazy_regex(r"(?i)UTC(?P<sign>[+-])(?P<h>\d{1,2})(?::(?P<m>\d\d))?", regex.ASCII)
_ZONE_NAME = lazy_regex(r"[A-Za-z][\w+-]{0,30}(?:/[\w+-]{1,30}){0,2}", regex.ASCII)
_SIZE_OFFSET = lazy_regex(r"([+-])(\d\d):?(\d\d)")


def epoch(moment: datetime) -> float:
    """Unix time of an aware datetime; of a naive one, its wall time read as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)


def wall(seconds: float) -> datetime:
    """The naive UTC wall time of a Unix time (or of a local time kept in that form)."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).replace(tzinfo=None)


def iso_utc(seconds: float, digits: int = 3) -> str:
    """`2026-11-29T21:25:17.447Z`. Years outside 1–9999 come back as the bare number of seconds."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(seconds, digits))
    except (OverflowError, ValueError):
        return f"{seconds:.0f}s"
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{moment.microsecond // 1000:03d}Z" if digits else f"{text}Z"


def _moment(y: int, mo: int, d: int, h: int, mi: int, s: int, fraction: float = 0.0) -> float | None:
    midnight = _midnight(y, mo, d)
    if midnight is None or h > 23 or mi > 59 or s > _LEAP:
        return None
    return midnight + (3600 * h + 60 * mi + s) + fraction


@lru_cache(maxsize=1024)
def _midnight(y: int, mo: int, d: int) -> float | None:
    """Cached: a log has few days, and their lines are many."""
    try:
        return epoch(datetime(y, mo, d, tzinfo=UTC))
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _minute(text: str) -> float | None:
    """`2026-11-29T21:25`; cached for the same reason."""
    return _moment(int(text[:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:]), 0)


def _resolution(fraction: str | None) -> float:
    return 10.0 ** -(len(fraction) - 1) if fraction else 1.0


def fixed_zone(text: str) -> timezone | None:
    """`+0800`, `-04:00`, `Z`, `UTC` as a zone; none for anything else."""
    text = text.strip()
    if text in ("Z", "UTC", "GMT", "z"):
        return UTC
    found = _SIZE_OFFSET.fullmatch(text)
    if not found:
        return None
    sign = -1 if found[1] == "-" else 1
    minutes = int(found[2]) * 60 + int(found[3])
    return timezone(timedelta(minutes=sign * minutes)) if minutes < 24 * 60 else None


@lru_cache(maxsize=1024)
def _ahead_s(zone: str) -> int | None:
    """Seconds by which a fixed zone is ahead of UTC."""
    found = fixed_zone(zone)
    return None if found is None else found.utcoffset(None) // timedelta(seconds=1)


def iso(text: str, layer: str) -> RawStamp | None:
    """ISO 8601 and its cousins: `T` or blank, `.` or `,`, zone optional (`Z`, `+08:00`, `+0800`, ` UTC`)."""
    found = _ISO.match(text.strip())
    if found is None:
        return None
    minute, seconds, fraction, zone = found.groups()
    since = _minute(minute)
    if since is None or (second := int(seconds or 0)) > _LEAP:
        return None
    ahead = _ahead_s(zone) if zone else None
    whole = since + (second - (ahead or 0))
    form = StampForm.INSTANT if ahead is not None else StampForm.LOCAL
    exact = whole + float("0." + fraction[1:]) if fraction else whole
    return RawStamp(form, layer, exact, _resolution(fraction) if seconds else 60.0)


def month_number(name: str) -> int | None:
    """Month from an abbreviation in English or a common locale, or from `11月`, `11월`."""
    if name.endswith(("月", "월")) and name[:-1].isdigit():
        number = int(name[:-1])
        return number if 1 <= number <= 12 else None
    return _LOCAL_MONTHS.get(name.lower().rstrip(".")) or MONTHS.get(name[:3].capitalize())


def ctime(text: str, layer: str, zone: str = "") -> RawStamp | None:
    """`[Sun ]Nov 29 21:25:17[.123456][ 2026]`, also localised (`月 1月 26 01:49:41 2026`)."""
    found = _CTIME.match(text.strip())
    if not found:
        return None
    month = month_number(found["mon"])
    if month is None:
        return None
    fraction = found["frac"]
    year = int(found["y"]) if found["y"] else YEARLESS_YEAR
    seconds = _moment(
        year, month, int(found["d"]), int(found["h"]), int(found["mi"]), int(found["s"]),
        float("0" + fraction) if fraction else 0.0,
    )  # fmt: skip
    if seconds is None:
        return None
    form = StampForm.LOCAL if found["y"] else StampForm.YEARLESS
    return RawStamp(form, layer, seconds, _resolution(fraction), zone)


@lru_cache(maxsize=1024)
def month_day(month: int, day: int, hms: str, layer: str) -> RawStamp | None:
    """`11`, `29`, `21:25:17[.123456]`: the yearless stamps of vLLM and klog. Cached: a second has many lines."""
    found = _HMS.fullmatch(hms)
    if found is None:
        return None
    h, mi, s, fraction = found.groups()
    seconds = _moment(
        YEARLESS_YEAR, month, day, int(h), int(mi), int(s), float("0." + fraction) if fraction else 0.0
    )
    if seconds is None:
        return None
    return RawStamp(StampForm.YEARLESS, layer, seconds, _resolution("." + fraction if fraction else None))


def instant(seconds: float, layer: str, resolution_s: float = 1e-6) -> RawStamp | None:
    """A Unix time; none outside the years 1990 to 2100, which no log of this field can mean."""
    if not 631152000 <= seconds < 4102444800:
        return None
    return RawStamp(StampForm.INSTANT, layer, seconds, resolution_s)


def boot(seconds: str | float, layer: str = "dmesg") -> RawStamp:
    """Seconds since boot, `39.447599`."""
    fraction = str(seconds).partition(".")[2]
    return RawStamp(StampForm.BOOT, layer, float(seconds), _resolution("." + fraction if fraction else None))


def rfc1123(text: str, layer: str) -> RawStamp | None:
    """`Sun, 29 Nov 2026 21:08:42 +0000` as kubectl describe prints it; none for its zero times (years 1 and 1970)."""
    if not _RFC1123.fullmatch(text.strip()):
        return None  # dateutil would read any word, relative to today
    try:
        moment = dateutil_parser.parse(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        return RawStamp(StampForm.LOCAL, layer, epoch(moment))
    return instant(epoch(moment), layer, 1.0)


@lru_cache(maxsize=4096)
def duration(text: str) -> tuple[float, float] | None:
    """kubectl's HumanDuration: `5m32s` → (332, 1): the shown seconds and the width of the truncation.

    The true age lies in [shown, shown + width): 1 s below 10 minutes, 1 min below 8 h, 1 h below 8 days, then 1 day
    (kubernetes apimachinery `duration.HumanDuration`).
    """
    if not _AGE.fullmatch(text):
        return None
    shown = float(sum(int(n) * _UNIT_S[u] for n, u in _AGE_PART.findall(text)))
    last = text[-1]
    width = float(_UNIT_S[last])
    return shown, width


def age(text: str, layer: str) -> RawStamp | None:
    """An age before the capture; `seconds` is the middle of the truncation interval."""
    parsed = duration(text)
    if parsed is None:
        return None
    shown, width = parsed
    return RawStamp(StampForm.AGE, layer, shown + width / 2, width)


def zone(name: str) -> ZoneInfo | timezone | None:
    """An IANA zone, a fixed offset (`+08:00`, `UTC+8`), or none."""
    fixed = fixed_zone(name)
    if fixed is not None:
        return fixed
    if found := _UTC_OFFSET.fullmatch(name):
        return fixed_zone(f"{found['sign']}{found['h']:0>2}:{found['m'] or '00'}")
    try:
        return ZoneInfo(name) if _ZONE_NAME.fullmatch(name) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def with_zone(stamp: RawStamp, abbreviation: str) -> RawStamp:
    """A local stamp that prints an ambiguous zone abbreviation (`EST`, `CST`); the clock solver may use it."""
    return RawStamp(stamp.form, stamp.layer, stamp.seconds, stamp.resolution_s, abbreviation)
