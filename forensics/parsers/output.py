"""Output of programs without any header: tracebacks and the last words of shells and C++ runtimes.

It is read like a log, and is one as soon as some line has a header. Recognised by lines that only a dying process
or its shell prints (CPython, bash, dash, glibc).
"""

from __future__ import annotations

from ..regexes import lazy_regex
from ..sources import Format, Head

_LAST_WORDS = lazy_regex(
    r"\s*(?:\w+ )?Traceback \(most recent call last\):\s*"
    r"|Fatal Python error: .*"
    r"|(?:\S+: line \d+: +\d+ )?(?:Killed|Aborted|Segmentation fault|Bus error|Terminated)"
    r"(?: \(core dumped\))?(?: {2,}.*)?"
    r"|terminate called after throwing an instance of .*"
    r"|.*\bexitcode=-SIG[A-Z]+.*"
    r"|.*\bterminated by signal \d+(?: \(\w.*\))?"
    r"|:job_id:[0-9a-f]{8}"  # a worker's output file of Ray
)
_WORDS = (
    "Traceback (", "Fatal Python error: ", "Killed", "Aborted", "Segmentation fault", "Bus error", "Terminated",
    "terminate called ", "exitcode=-SIG", "terminated by signal ", ":job_id:",
)  # fmt: skip
"""Literals of which every such line holds one."""


def ends_badly(head: Head) -> bool:
    """Whether a program's or a shell's last words are among the first lines."""
    return any(word in head.text for word in _WORDS) and any(map(_LAST_WORDS.fullmatch, head.lines))


FORMAT = Format("output", "program output", lambda head: 15 if ends_badly(head) else 0, most=15)
