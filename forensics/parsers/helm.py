"""What Helm says about its releases: `helm history`, `helm list`, `helm status` (Helm 3.0 to 3.18, `cmd/helm`).

When a release was upgraded or rolled back is a fact that explains many an incident. history and status print the
time of the client's zone without naming it, list prints an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import regex

from .. import stamps
from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .dates import date_command

LAYER = "helm"
_HISTORY = ("REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION")
_LIST = ("NAME", "NAMESPACE", "REVISION", "UPDATED", "STATUS", "CHART")
_STATUS = lazy_regex(r"(?P<key>NAME|LAST DEPLOYED|NAMESPACE|STATUS|REVISION|CHART): *(?P<value>.*)")


def _cells(line: str) -> tuple[str, ...]:
    """Helm puts a tab behind each padded cell."""
    return tuple(cell.strip() for cell in line.rstrip("\r").split("\t"))


def _release(place: Locator, row: Mapping[str, str], raw: str) -> Event:
    when = row.get("UPDATED") or row.get("LAST DEPLOYED", "")
    stamp = stamps.iso(regex.sub(r" ([+-]\d{4})(?: \w+)?$", r"\1", when), LAYER) or date_command(when, LAYER)
    fields = {
        "release": row.get("NAME"), "revision": row.get("REVISION"), "status": row.get("STATUS"),
        "chart": row.get("CHART"), "app_version": row.get("APP VERSION"), "description": row.get("DESCRIPTION"),
    }  # fmt: skip
    words = ("helm release", row.get("NAME"), f"revision {row.get('REVISION', '?')}", row.get("STATUS"))
    named = " ".join(filter(None, words))
    more = f": {row['DESCRIPTION']}" if row.get("DESCRIPTION") else ""
    return Event(
        place, "release", "k8s", named + more, (stamp,) if stamp else (), Scope(namespace=row.get("NAMESPACE", "")),
        {key: value for key, value in fields.items() if value}, raw=raw,
    )  # fmt: skip


def _rows(text: str, source: str) -> Iterator[Event]:
    header: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        cells = _cells(line)
        if cells[:2] in (_HISTORY[:2], _LIST[:2]):
            header = cells
        elif header and len(cells) >= 4:
            yield _release(Locator(source, number, number), dict(zip(header, cells, strict=False)), line)


def read_table(text: str, source: str) -> Parsed:
    """One `release` a row, at the time of the upgrade."""
    return Parsed(tuple(_rows(text, source)))


def read_status(text: str, source: str) -> Parsed:
    """One `release`, at the line with its time."""
    row: dict[str, str] = {}
    place, raw = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        found = _STATUS.fullmatch(line.rstrip("\r"))
        if found is None:
            if row and line.startswith(("NOTES:", "RESOURCES:", "HOOKS:")):
                break
            continue
        row.setdefault(found["key"], found["value"].strip())
        if found["key"] == "LAST DEPLOYED":
            place, raw = number, line
    return Parsed((_release(Locator(source, place, place), row, raw),) if "REVISION" in row else ())


def _sniff_table(head: Head) -> int:
    cells = _cells(next(iter(head.filled), ""))
    return 91 if cells[:5] == _HISTORY[:5] or cells[:6] == _LIST else 0


def _sniff_status(head: Head) -> int:
    keys = [found["key"] for line in head.lines[:12] if (found := _STATUS.fullmatch(line))]
    return 91 if keys[:1] == ["NAME"] and {"LAST DEPLOYED", "STATUS", "REVISION"} <= {*keys} else 0


FORMATS: tuple[Format, ...] = (
    Format("helm.releases", "helm history or list", _sniff_table, read_table, 1 << 20, begins="RN"),
    Format("helm.status", "helm status", _sniff_status, read_status, 4 << 20, begins="N"),
)
