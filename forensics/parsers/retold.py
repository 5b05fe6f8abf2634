"""The kernel's words about an OOM kill behind something that no envelope knows: somebody passed the line on.

`> `, `- ` and backticks of a message, `kern.log:` of `grep -H`, `gpu-3: ` of pdsh, a platform's `app[id] ams [info]`, a
cell of a table. Of a log line only what begins its message counts; a kill that
was passed on is as whole as the kernel printed it, its sizes to the end, behind a header or a mark instead of a
sentence. What a program prints of its users (a prompt, a request) has words or a key in front of it, and stays theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from .. import stamps
from ..regexes import lazy_re
from . import examples
from . import kernel_oom_lines as lines
from .layer import UNKNOWN
from .records import Record, unwrap

REPORT = lazy_re(
    r"(?:(?:Memory cgroup o|O)ut of memory(?: \([^)]{1,40}\))?: )?Kill(?:ed)? process \d|"
    r"oom-kill:constraint=CONSTRAINT_|\S{1,16} invoked oom-killer: gfp_mask=|memory: usage \d+kB, limit \d|"
    r"Task in /\S+ killed as a result of limit of /"
)
"""How the lines of a report begin that say who was killed, and at whose limit."""
_CLOSING = "\"'`*_|])~ \t"
"""What closes a quotation, a cell or emphasis."""
_TORN = lazy_re(r".{0,60}Killed process \d+ \([^()]{1,16}\)")
_SIGNS = "\"'`*_|>[](){}~#+-•·,;: \t"
_SPACE = lazy_re(r"[\s|>]+")
_FILE = lazy_re(r"[\w./-]{2,255}:(?:\d{1,9}:)?(?=\D|\d{4}-)")
"""`grep -H`, also with `-n`."""
_HEADER_WORDS = lazy_re(
    r"(?:kernel|kern|dmesg|journal|syslog|console|serial|node|host|worker|master|vm|"
    r"debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|alert|emerg|oomkilling|kernel-monitor|"
    r"mon|tue|wed|thu|fri|sat|sun|utc)",
    re.IGNORECASE,
)
_MONTH = lazy_re(r"([^\W\d_]{3,6})\.? +\d{1,2} \d\d:\d\d:\d\d")
_USERS = lazy_re(
    r"\b(?:prompt|content|message|user|role|text|query|question|input|output|body|payload|request|system|assistant|"
    r"human|explain|q)\b|=",
    re.IGNORECASE,
)
"""What stands before the words of a user."""
MAX_HEADER_CHARS = 160


def settle(records: Iterable[Record]) -> list[Record]:
    """The records of a log; of what nobody speaks, the lines of a kernel's report without what stands before them."""
    settled: list[Record] = []
    before = ""
    for record in records:
        told = record.channel in ("", "host") and not record.output and not examples.introduces(before)
        before = record.text
        settled.append(_as_printed(record) if told else record)
    return settled


def _as_printed(record: Record) -> Record:
    found = REPORT.search(record.text, 0, MAX_HEADER_CHARS + 100)
    if found is None or not 0 < found.start() <= MAX_HEADER_CHARS:
        return record
    before, message = record.text[: found.start()], record.text[found.start() :].rstrip(_CLOSING)
    marked = not before.strip(_SIGNS)
    if not (marked or _is_header(before)) or not _is_whole(message, marked):
        return record
    if marked:
        return replace(record, text=message)
    inner = _inner(record.text)
    stamps = inner.stamps if inner is not None else ()
    scope = record.scope if inner is None or inner.scope is UNKNOWN else inner.scope.merged(record.scope)
    return replace(
        record, text=message, stamps=(*record.stamps, *stamps), scope=scope, channel="kernel", ident="kernel",
        envelopes=(*record.envelopes, "retold"), machine=True,
    )  # fmt: skip


def _is_header(before: str) -> bool:
    """Names, numbers and times, and no more than one word that might be anybody's."""
    if _USERS.search(before):
        return False
    dated = _MONTH.search(before)
    month = dated[1] if dated and stamps.month_number(dated[1]) else ""  # in the reader's language
    words = [word for part in before.split() if (word := part.strip(_SIGNS)).isalpha() and word != month]
    return sum(_HEADER_WORDS.fullmatch(word) is None for word in words) <= 1


def _is_whole(message: str, marked: bool) -> bool:
    """As the kernel prints it: a sentence goes on where the kernel prints numbers, or stops before them."""
    if not message.startswith(("Memory cgroup out", "Out of memory", "Killed", "Kill", "oom-kill")):
        return True
    victim = lines.killed(message)
    if victim is not None:
        sized = victim.whole and "victim_total_vm_kib" in victim.fields  # an ellipsis stands in somebody's example
        return sized or (not marked and not victim.whole and _TORN.fullmatch(message) is not None)
    return lines.chosen(message) is not None or lines.summary(message) is not None


def _inner(text: str) -> Record | None:
    """The kernel's own header, where one stands behind the first words: its time and its host."""
    starts = [found.end() for found in _SPACE.finditer(text, 0, MAX_HEADER_CHARS)]
    if found := _FILE.match(text):
        starts = [found.end(), *starts]
    return next((record for at in starts if (record := unwrap(text[at:])).channel == "kernel"), None)
