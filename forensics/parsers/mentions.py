"""What people say of errors beside a log of their own: titles, quotations, other people's comments, an old trouble.

A line without a header is the rest of what the engine printed, unless a person wrote it. Where the log shows an error
of its own, one that is only mentioned is somebody else's, or of another day. Where it shows none, the mention is the
best that is known, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..regexes import lazy_regex
from . import prose
from .records import MACHINE, Record, is_engine

ANCHORS = (" commented", " wrote:", " replied", " answered", "Comment", "Answer")
"""Literals of lines with which the words of another person begin."""
_RAISED = lazy_regex(r"\s*(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception): ")
_TOLD_ON = lazy_regex(
    r"EngineDeadError|[Ee]ngine core initialization failed|[Ee]ngine process failed|died unexpectedly"
)
"""Errors that only say that another one came before."""
_TITLE = lazy_regex(
    r"#{1,6} |\*\*.+\*\*\s*$|(?i:title|subject|summary|betreff|re|fwd?|标题|主题)\s*[:：]"
    r"|\[(?i:bug|usage|installation|performance|feature|question|help|doc|misc|rfc|solved|closed)[^\]]*\]"
)
_SPAN = lazy_regex(r"`[^`]+`|\"[^\"]+\"|“[^”]+”|「[^」]+」")
_FAULT = lazy_regex(r"(?:Error|Exception)\b|(?i:error: |out of memory|no space left|illegal memory|too old)")
_LOGGED = lazy_regex(rf"{_FAULT.pattern}|(?i:failed to )")
_WARNED = lazy_regex(r"\S+:\d+:\d+ \[\d+\] \S*:\d+ NCCL WARN ")
"""What NCCL calls a warning ends the communicator."""
_BAD = frozenset({"ERROR", "CRITICAL", "FATAL"})
_TRACEBACK = "Traceback (most recent call last)"
_CLAUSE = lazy_regex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}][，、。？！,?]")
"""What a sentence of East Asia goes on with; programs print a name and a colon in front of an exception."""
_NAMED = lazy_regex(rf"{prose.EXCEPTION}: ")
REFERS = lazy_regex(r"#\d+|(?i)\b(?:similar|same|duplicate|related|before|earlier|previous(?:ly)?)\b")
ANOTHER_TIME = lazy_regex(
    r"(?i)\blast (?:week|month|year|time)\b|\b(?:letzte|vorige)\w* (?:woche|monat|jahr|mal)\b|上周|上个?月|上次|去年"
)
_NOBODY = r"(?!(?i:i|we|you|he|she|it|they|who|has|had|have|is|was|and|be)\b)"
_COMMENT = lazy_regex(
    rf"\W*{_NOBODY}(?P<name>[\w.-]+)(?: \([^)]*\))?\W* (?:commented(?! out)|replied|answered|wrote)\b"
    r"|On .{5,80} wrote:\s*$|#+ (?:Comment|Answer|Reply)s?\b.{0,20}$|(?:\d+ )?(?:Comment|Answer)s?(?: #?\d+)?(?::.*)?$"
    r"|(?:---+|\W*)\*\*@?(?P<name>[\w.-]+)\*\*\W*\d{4}-\d\d-\d\d\b"
)
_POSTER = lazy_regex(rf"\W*{_NOBODY}(?P<name>[\w.-]+)\W* (?:opened|asked|posted|created|reported)\b")
_PAST = lazy_regex(
    r"(?i)\b(?:before|previously|first|yesterday|earlier|used to|originally|last (?:week|month|night|time|year))\b"
    r"|之前|以前|昨天"
)
_OVERCOME = lazy_regex(r"(?i)\b(?:solved|fixed|helped|resolved|gone|went away|worked around|got past)\b|解决|修复")
_COMMAND = lazy_regex(
    r"\b(?:vllm serve|vllm\.entrypoints\.\S+|sglang\.launch_server|vllm-openai\S*) .*\s-{1,2}[a-z]"
)
"""How an engine is started: what somebody says of that is no error, whatever stands before it."""
_DAY_S = 86400.0
_NEAR = 6
"""So many lines around an error a person says when it was, and that it is over."""


def settle(records: Sequence[Record], source: str) -> list[Record]:
    """Take from the log what a person only tells of."""
    return _mentioned(_quoted(list(records)), source)


def _quoted(records: list[Record]) -> list[Record]:
    """Lines quoted with `>` beside an engine's lines that are not: somebody else's trouble, in a thread or a mail.

    Where all of the log is quoted, that is how its sender pastes.
    """
    own = any(is_engine(record) and record.envelopes and not record.raw.startswith(">") for record in records)
    if not own:
        return records
    return [replace(r, channel="notes", output=True) if r.raw.startswith(">") else r for r in records]


def _mentioned(records: list[Record], source: str) -> list[Record]:
    faults = [record.line for record in records if _is_fault(record)]
    if not faults or not any(record.envelopes or record.text.startswith(_TRACEBACK) for record in records):
        return records
    told = {record.line for record in records if _is_headless(record) and is_mention(record.raw)}
    if not prose.is_output(source):  # in an engine's own output, such lines are what users asked
        told |= set(_others(records, faults)) | set(_overcome(records, faults))
    if not any(line not in told for line in faults):
        return records
    return [replace(r, channel="notes", output=True) if r.line in told else r for r in records]


def is_mention(line: str) -> bool:
    """Whether a person names an error in a title, between quotation marks, or in a sentence."""
    text = line.strip()
    if _COMMAND.search(text) and not _FAULT.search(text):
        return False
    if _TITLE.match(text):
        return True
    if _RAISED.match(text):
        return False
    bare = _SPAN.sub(" ", text)
    quoted = any(_FAULT.search(span) for span in _SPAN.findall(text))
    words = prose.talks(bare) or REFERS.search(bare) or (prose.is_prose(bare) and not _FAULT.search(bare))
    if quoted and words:
        return True
    found = _NAMED.search(text)
    lead = text[: found.start()] if found else ""
    return (len(lead.split()) > 1 and prose.talks(lead)) or (_CLAUSE.search(lead) is not None and prose.is_prose(lead))


def _is_headless(record: Record) -> bool:
    return not record.envelopes


def _is_fault(record: Record) -> bool:
    """An error that the log itself shows, in its own words."""
    own = record.channel in ("engine", "ray", "container") or _is_headless(record)
    logged = bool(record.envelopes) and record.level in _BAD and _LOGGED.search(record.text) is not None
    printed = logged or _RAISED.match(record.text) is not None or _WARNED.match(record.text) is not None
    return own and printed and not _TOLD_ON.search(record.text)


def _others(records: Sequence[Record], faults: Sequence[int]) -> Iterator[int]:
    """Lines behind the head of a comment that somebody else than the poster wrote, below the poster's own log."""
    poster, other = "", False
    first = next(record for record in records if record.line == faults[0])
    for record in records:
        text = record.text.strip()
        if _is_headless(record) and (head := _COMMENT.match(text)) is not None:
            other = record.line > faults[0] and (not poster or head["name"] != poster)
        elif _is_headless(record) and not poster and (begun := _POSTER.match(text)) is not None:
            poster = begun["name"]
        if other and record.channel not in MACHINE and not _at_once(record, first):
            yield record.line


def _at_once(one: Record, other: Record) -> bool:
    """Whether both have times of one day: several people wrote of one incident."""
    pairs = zip(one.stamps[-1:], other.stamps[-1:], strict=False)
    return any(a.form is b.form and abs(a.seconds - b.seconds) < _DAY_S for a, b in pairs)


def _overcome(records: Sequence[Record], faults: Sequence[int]) -> Iterator[int]:
    """Errors that a person says were before, and are over, above the log of what is now."""
    for place, record in enumerate(records):
        if not _is_headless(record) or record.line >= faults[-1] or not _RAISED.match(record.text):
            continue
        above = _words(reversed(records[max(0, place - _NEAR) : place]))
        below = _words(records[place + 1 : place + _NEAR])
        if _PAST.search(above) and _OVERCOME.search(below):
            yield record.line


def _words(records: Iterator[Record] | Sequence[Record]) -> str:
    """The nearest line that a person wrote."""
    return next((r.text for r in records if _is_headless(r) and r.text.strip("`~ ") and not _RAISED.match(r.text)), "")
