"""Times as `date`, `nvidia-smi` and other commands print them, alone on a line or at its start."""

from __future__ import annotations

import regex

from .. import stamps
from ..model import RawStamp
from ..regexes import lazy_regex

_CLOCK = (
    r"(?P<h>\d{1,2})[:时時](?P<m>\d\d)[:分](?P<s>\d\d)秒?"
    r"(?: (?P<half>AM|PM))?(?:,? (?P<zone>[A-Z]{2,5}|[+-]\d{2,4}))?"
)
_DATE = lazy_regex(
    r"(?:\p{L}{1,5}\.? +)?(?P<month>\p{L}{3,6}\.?|\d{1,2}月) +(?P<day>\d{1,2})"
    rf" +{_CLOCK} (?P<year>\d{{4}})"
)
_DAY_FIRST = r"(?:\p{L}{1,9}\.?,? +)?(?P<day>\d{1,2})\.? +(?P<month>\p{L}{3,9}\.?)"
_DATE_DAY_FIRST = lazy_regex(rf"{_DAY_FIRST} +(?P<year>\d{{4}}),? +{_CLOCK}")
_DATE_YEAR_LAST = lazy_regex(rf"{_DAY_FIRST} +{_CLOCK} (?P<year>\d{{4}})")
_YEAR_FIRST = lazy_regex(
    r"(?P<year>\d{4})(?: ?年|\.) *(?P<month>\d{1,2})(?: ?月|\.) *(?P<day>\d{1,2})(?: ?日|\.)(?: ?\(?\p{L}+\)?)?"
    rf" +{_CLOCK}"
)
_DATES = (_DATE, _DATE_DAY_FIRST, _DATE_YEAR_LAST, _YEAR_FIRST)
"""glibc's `date_fmt`: en_US and ctime; most of Europe; de, da, nb and en_GB; zh, ja and ko."""
SPELLED = (
    r"(?:\p{L}{1,9}\.?,? +)?(?:\p{L}{3,6}\.? +\d{1,2}|\d{1,2}\.? +\p{L}{3,9}\.?(?: +\d{4},?)?)"
    r" +\d{1,2}:\d\d:\d\d(?: [AP]M)?(?:,? (?:[A-Z]{2,5}|[+-]\d{2,4}))?(?: \d{4})?"
)
"""A date with the name of its month, as part of another pattern."""
_ISO_ONLY = lazy_regex(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d(?: [A-Z]{2,5})?))?(?: m=\S+)?"
)
_GO_ZONE = lazy_regex(r"(?<=\d) ([+-]\d\d:?\d\d)\b")
"""Go prints a blank before the offset: `2025-09-24 09:37:31.118402113 +0000 UTC`."""
_EPOCH = lazy_regex(r"1\d{9}(?:\.\d{1,9})?")


def date_command(text: str, layer: str) -> RawStamp | None:
    """A time at the start of `text`: ISO 8601, the output of `date` in a common locale, ctime, or Unix
    time.

    `Tue Dec  9 04:48:10 UTC 2025` is an instant; other zone names (`CST`, `IST`) stay a remark on a local
    time, because they do not decide the offset.
    """
    text = text.strip()
    iso = stamps.iso(_GO_ZONE.sub(r"\1", text, count=1), layer)
    if iso is not None:
        return iso
    for pattern in _DATES:
        found = pattern.match(text)
        if found:
            return _moment(found, layer)
    found = _EPOCH.match(text)
    if found and found.end() == len(text):
        return stamps.instant(float(text), layer, 1.0 if "." not in text else 1e-3)
    return None


def is_time(line: str) -> bool:
    """True for a line that is a date with a time and nothing else."""
    text = line.strip()
    if not 10 <= len(text) <= 60 or not any(char.isdigit() for char in text):
        return False
    return any(pattern.fullmatch(text) for pattern in (_ISO_ONLY, *_DATES))


def _moment(found: regex.Match[str], layer: str) -> RawStamp | None:
    month = int(found["month"]) if found["month"].isdigit() else stamps.month_number(found["month"])
    if month is None:
        return None
    hour = int(found["h"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "PM" else 0)
    zone = found["zone"] or ""
    fixed = zone if zone in ("UTC", "GMT") else f"{zone}00" if zone[:1] in "+-" and len(zone) == 3 else zone
    known = fixed if fixed in ("UTC", "GMT") or fixed[:1] in ("+", "-") else ""
    stamp = stamps.iso(
        f"{found['year']}-{month:02d}-{int(found['day']):02d} {hour:02d}:{found['m']}:{found['s']}{known}",
        layer,
    )
    return stamps.with_zone(stamp, zone) if stamp and zone and not known else stamp
