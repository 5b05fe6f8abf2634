"""Rotated logs: which files are one log, and in which order.

The files stay apart, so that every line keeps its own file and number; who reads them as one log asks for the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..regexes import lazy_re

_PACKED = lazy_re(r"(?:\.(?:gz|bz2|xz|zst|lzma|Z))?!*$")
_DAY = r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_ROTATED = tuple(
    lazy_re(pattern)
    for pattern in (
        # logrotate, Python's RotatingFileHandler, docker's json-file, Ray: engine.log.1 is younger than engine.log.2
        r"(?P<log>.*[^\d.])\.(?P<number>\d{1,3})",
        # logrotate with dateext, -%s or a counter behind it: messages-20260611, messages-20260611-1749600000
        rf"(?P<log>.+?)-(?P<date>{_DAY}(?:[-_.]?\d{{1,10}})?)",
        # kubelet: 0.log.20260611-060455; Python's TimedRotatingFileHandler: engine.log.2026-06-11_06-04-55
        rf"(?P<log>.+?)\.(?P<date>{_DAY}(?:[-_T.]?\d\d[-_.:]?\d\d[-_.:]?\d\d|[-_]\d\d(?:[-_]\d\d)?)?)",
        # lumberjack (Go): engine-2026-06-11T06-04-55.123.log
        rf"(?P<head>.+)-(?P<date>{_DAY}T\d\d-\d\d-\d\d(?:\.\d{{3}})?)(?P<tail>\.[A-Za-z]+)",
        # spdlog, as in Ray: raylet.1.out
        r"(?P<head>.*[^\d.])\.(?P<number>\d{1,3})(?P<tail>\.(?:log|out|err))",
    )
)
_LOG_NAME = lazy_re(r".*\.(?:log|out|err)")


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a file name says about its place in a rotated log; order: dated, then numbered, then the log itself."""

    log: str
    date: str = ""
    number: int | None = None
    sure: bool = True
    """False for a number that may as well count something else: `rank.0.log` and `rank.1.log` are two logs."""

    @property
    def age(self) -> tuple[int, str, int]:
        """Sorts from old to young."""
        kind = 0 if self.date else 1 if self.number is not None else 2
        return kind, self.date, -(self.number or 0)


def rotation_of(paths: Iterable[str]) -> Mapping[str, tuple[str, int]]:
    """Path → (path of the log that it is a piece of, position from 0, the oldest first), for logs of several pieces.

    `engine.log`, `engine.log.1` and `engine.log.2.gz!` in one folder are `engine.log` at 2, 1 and 0. A path that is not
    in the result is a log of its own. Where numbers and dates are mixed, the dated pieces are taken as the older ones.
    """
    logs: dict[str, list[tuple[_Piece, str]]] = {}
    for path in sorted(set(paths)):
        piece = _piece(path)
        logs.setdefault(piece.log, []).append((piece, path))
    return {
        path: (log, position)
        for log, pieces in logs.items()
        if any(piece.sure for piece, _ in pieces) and len({piece.age for piece, _ in pieces}) > 1
        for position, (_, path) in enumerate(sorted(pieces, key=lambda item: (item[0].age, item[1])))
    }


def _piece(path: str) -> _Piece:
    folder, slash, name = path.rpartition("/")
    name = _PACKED.sub("", name, count=1)
    for pattern in _ROTATED:
        found = pattern.fullmatch(name)
        if found is None:
            continue
        part = found.groupdict()
        log = part["log"] if "log" in part else part["head"] + part["tail"]
        if "number" in part:
            sure = "log" in part and _LOG_NAME.fullmatch(log) is not None
            return _Piece(folder + slash + log, "", int(part["number"]), sure)
        return _Piece(folder + slash + log, "".join(c for c in part["date"] if c.isdigit()))
    return _Piece(folder + slash + name)
