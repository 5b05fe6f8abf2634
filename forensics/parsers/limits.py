"""Limits of a process: `ulimit -a` (bash 4 and 5, `builtins/ulimit.def`), /proc/PID/limits (Linux, `fs/proc/base.c`).

Only those are told that stop an engine: memory that it may lock, for RDMA and pinned buffers, and open files.
"""

from __future__ import annotations

from ..model import Event, Locator
from ..regexes import lazy_re
from ..sources import mostly
from .sections import Section

_SHELL = lazy_re(r"[a-z][a-z -]+\s+\((?:[a-z0-9 -]+, )?-[a-zA-Z]\) (?:unlimited|\d+)\s*")
_PROC = lazy_re(r"Limit +Soft Limit +Hard Limit +Units\s*")
_TOLD = ("max locked memory", "Max locked memory", "open files", "Max open files")


def matches(section: Section) -> bool:
    """True for the table of either."""
    lines = section.filled
    if not lines:
        return False
    return _PROC.fullmatch(lines[0]) is not None or (len(lines) > 2 and mostly(_SHELL.fullmatch, lines, 0.9))


def read(section: Section, source: str) -> list[Event]:
    """A `log` event on `host` for each limit that matters; its text is the row."""
    return [
        Event(Locator(source, number, number), "log", "host", line.strip(), scope=section.scope, raw=line)
        for number, line in enumerate(section.lines, section.line)
        if line.startswith(_TOLD)
    ]
