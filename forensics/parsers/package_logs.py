"""What package managers write of their work: `/var/log/apt/history.log` (apt 1.0 to 3.0) and `/var/log/dpkg.log`.

Times are the machine's local ones, without a zone. Only what changed a version is an event.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp
from ..regexes import lazy_regex
from ..sources import Format, Head, mostly

LAYER = "package"
_BEGAN = lazy_regex(r"Start-Date: (?P<day>\d{4}-\d\d-\d\d) {1,3}(?P<time>\d\d:\d\d:\d\d)\s*")
_APT = lazy_regex(
    r"(?:Start-Date|End-Date|Commandline|Requested-By|Install|Upgrade|Downgrade|Remove|Purge|Error): .*|\s*|#.*"
)
_DONE = ("Upgrade: ", "Downgrade: ", "Install: ")
_DPKG = lazy_regex(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) "
    r"(?P<said>(?P<verb>startup|status|install|upgrade|configure|remove|purge|trigproc|conffile) .*)"
)
_TEXT_CHARS = 8000


def read_apt(text: str, source: str) -> Parsed:
    """A `log` event on `host` for what was installed or upgraded, with the time at which that began."""
    return Parsed(tuple(_apt(text.split("\n"), source)))


def _apt(lines: list[str], source: str) -> Iterator[Event]:
    began: RawStamp | None = None
    for number, line in enumerate(lines, 1):
        if found := _BEGAN.fullmatch(line):
            began = stamps.iso(f"{found['day']} {found['time']}", LAYER)
        elif line.startswith(_DONE):
            yield _event(line[:_TEXT_CHARS].rstrip(), began, number, line, source)


def read_dpkg(text: str, source: str) -> Parsed:
    """The same, from rows with a time each."""
    rows = ((number, line, _DPKG.fullmatch(line.rstrip())) for number, line in enumerate(text.split("\n"), 1))
    return Parsed(tuple(
        _event(found["said"][:_TEXT_CHARS], stamps.iso(found["stamp"], LAYER), number, line, source)
        for number, line, found in rows if found and found["verb"] in ("install", "upgrade")
    ))  # fmt: skip


def _event(text: str, stamp: RawStamp | None, number: int, line: str, source: str) -> Event:
    return Event(Locator(source, number, number), "log", "host", text, (stamp,) if stamp else (), raw=line)


def _sniff_apt(head: Head) -> int:
    began = any(map(_BEGAN.fullmatch, head.lines))
    return 90 if began and mostly(_APT.fullmatch, list(head.lines), 0.9) else 0


def _sniff_dpkg(head: Head) -> int:
    lines = [line for line in head.lines if line.strip()]
    return 90 if lines and mostly(_DPKG.fullmatch, lines, 0.9) else 0


FORMATS = (
    Format("apt.history", "apt history", _sniff_apt, read_apt, 16 << 20, begins="S#"),
    Format("dpkg.log", "dpkg log", _sniff_dpkg, read_dpkg, 16 << 20, begins=r"\d"),
)
