"""Which lines of one file may speak for the machine, where their own headers do not settle it.

A header behind a container's or an application's header is settled line by line (`records.unwrap`). What is left are
files in which an engine's bare lines and lines with a header of the kernel, the journal or the kubelet stand side by
side. Either a person put several logs into one file, and then each of them is a part of its own; or the lines are a
piece of the engine's output: a prompt, a traceback of somebody else, a log that a user asked about. And a line without
any header between lines that have one is the rest of a message, not a message.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

from ..regexes import lazy_re
from . import prose
from .envelopes.kernel import is_bare
from .records import APPLICATIONS, MACHINE, Record, is_engine, unwrap
from .sections import title_of

PART_LINES, PART_LINES_APART = 10, 3
"""Machine's lines at the end of an application's log that make a part of its own without a heading; behind a blank
line fewer will do, and behind as few lines of the application a paste is the likelier story."""
_BACKENDS = frozenset({"json", "labels"})
"""Envelopes that a log backend makes of each line, with its labels."""
ANCHORS = ("==> ", "=== ", "--- ", "### ", "*** ", "```", "dmesg", "journalctl", "kern", "syslog")
"""Literals of headings between the parts of a file."""
_NAMED = lazy_re(
    r"\W*(?:[^\W\d_]+ ){0,3}(?:[dD]mesg|journalctl|syslog|[kK]ern(?:el)?[ ._]log|/var/log/\S+)(?:[ |].{0,40})?\W*"
)
"""How a person says in a few words that a log of the machine is pasted below: `dmesg output:`, `kern.log`."""
_CAPTION = lazy_re(r"\W*[^\W\d_][^.:\[]{0,40}[:：]\W*")
"""The same of anything: `**Host side:**`."""
_STAMP = lazy_re(r"\[?\d{4}-\d\d-\d\d(?P<t>[T ])\d\d:\d\d:\d\d(?:[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?\]? ")


def settle(records: Sequence[Record], channel: str, source: str = "") -> list[Record]:
    """Take back what lines claim that stand inside an application's output. `channel`: that of lines without header."""
    return _headless(_enclosed(list(records), channel, source))


def _enclosed(records: list[Record], channel: str, source: str) -> list[Record]:
    engines = [record for record in records if is_engine(record)]
    # klog and logrus are what tells speakers apart in `journalctl -o cat`, whose default is nobody's
    claims = [r for r in records if not r.output and r.channel in MACHINE and (r.machine or channel in APPLICATIONS)]
    if all(map(_is_labelled, engines)):
        claims = [r for r in claims if not (r.machine and _BACKENDS & {*r.envelopes})]
    if not engines or not claims:
        return records
    lines = [record.line for record in engines]
    shapes = {_shape(record) for record in engines} - {""}
    printed = prose.is_output(source)
    borders = [record.line for record in records if not record.envelopes and _is_heading(record.text)]
    borders = sorted((*borders, *(() if printed else _fences(records, lines[0]))))
    tail = _is_part([record for record in records if record.line > lines[-1]], claims, len(engines))
    written = None if printed else _written_around(records, lines)
    taken = set()
    for record in claims:
        before = bisect(lines, record.line)
        headed = before == 0 or bisect(borders, record.line) > bisect(borders, lines[before - 1])
        behind = before == len(lines) and (tail or (written is not None and written < record.line))
        if not (headed or behind) or _shape(record) in shapes:
            taken.add(record.line)
    return [_output(record) if record.line in taken else record for record in records]


def _is_labelled(engine: Record) -> bool:
    """True for a line to which a log backend put the name of its container: what it labels otherwise is another's."""
    return bool(_BACKENDS & {*engine.envelopes}) and bool(engine.scope.pod or engine.scope.container)


def _is_part(tail: Sequence[Record], claims: Sequence[Record], engines: int) -> bool:
    """Whether what follows the last line of an engine looks like another log that was put behind it."""
    ends = [record.line for record in claims if tail and record.line >= tail[0].line]
    blank = bool(ends) and any(not record.raw.strip() and record.line < ends[0] for record in tail)
    return len(ends) >= min(PART_LINES_APART if blank else PART_LINES, engines)


def _written_around(records: Sequence[Record], lines: Sequence[int]) -> int | None:
    """The first line that a person wrote behind the lines of an engine, in a file that a person also began, or that
    says which log is pasted below it.

    A chat or a ticket: what is pasted next is another output. A prompt that an engine prints is printed inside its log.
    """
    own = [record for record in records if not record.envelopes]
    words = [record.line for record in own if prose.is_prose(record.text)]
    began = bool(words) and words[0] < lines[0]
    below = (record for record in own if record.line > lines[-1])
    said = (
        r.line for r in below
        if _NAMED.fullmatch(r.text) or (began and (prose.is_prose(r.text) or _CAPTION.fullmatch(r.text)))
    )  # fmt: skip
    return next(said, None)


def _fences(records: Sequence[Record], first: int) -> list[int]:
    """The fences of Markdown, where the engine's first line stands between two: then each piece is an output.

    Where it does not, a fence below it is a prompt's.
    """
    found = [r.line for r in records if not r.envelopes and r.text.lstrip().startswith(prose.FENCES)]
    return found if bisect(found, first) % 2 else []


def _is_heading(text: str) -> bool:
    return any(anchor in text for anchor in ANCHORS) and title_of(text) != ""


def _shape(record: Record) -> str:
    """How the collector writes its stamp, when there is one: equal shapes came through the same collector."""
    found = _STAMP.match(record.raw)
    return f"{found['t']}{'Z' if found['zone'] == 'Z' else bool(found['zone'])}" if found else ""


def _output(record: Record) -> Record:
    return unwrap(record.raw, record.line, record.count, record.last_line, output=True)


def _headless(records: list[Record]) -> list[Record]:
    """Among the machine's lines with headers, one without is the rest of a message: a name may hold a newline."""
    bare = [record.line for record in records if not record.envelopes and not record.output and is_bare(record.text)]
    if len(bare) >= sum(record.machine for record in records):
        return records
    rests = set(bare)
    return [replace(r, channel="host", output=True) if r.line in rests else r for r in records]
