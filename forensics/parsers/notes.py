"""What people put beside the evidence: READMEs, notes, tickets, and earlier reports of this tool.

Prose is kept, so that it can be quoted, but on a channel of its own: what somebody thought is never evidence. Pieces
of logs and tracebacks that were pasted between the sentences are read like every log. A time of the capture
(`$ date` and its answer, `Collected at: …`) is a fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from ..model import Event, Locator, Parsed
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import examples, host_clock, log, prose
from .dates import date_command
from .embedded import read_text
from .layer import clean
from .records import unwrap
from .sections import cut

CHANNEL = "notes"
MAX_BYTES = 4 << 20
_NAMED = lazy_regex(
    r"(?:^|/)(?:(?:readme|notes?|notiz\w*|to-?do|changelog|post-?mortem|rca|runbook|hand-?over|ticket|slack|chat)"
    r"(?![a-z])[^/.]*(?:\.(?:txt|text|md|rst|org|adoc))?|[^/]+\.(?:md|markdown|rst|adoc))$",
    regex.IGNORECASE,
)
_MANUAL = lazy_regex(
    r"(?:^|[/_.-])(?:run-?book|play-?book|faq|sop)s?(?![a-z])[^/]*\.(?:md|markdown|rst|adoc)$", regex.IGNORECASE
)
_INDENTED = lazy_regex(r" {4}")
_QUOTED = lazy_regex(r" {4}|> ?")
"""How Markdown marks a block that was pasted."""
_COLLECTED = lazy_regex(
    r"\W*(?i:collected|captured|gathered|taken|exported|saved|generated|collection time|capture time)"
    r"(?i: (?:at|on))?[:= ]+(?P<when>\d{4}-\d\d-\d\d.*|\p{L}{3,}.*\d{4}\b.*?)\W*"
)


def read(text: str, source: str) -> Parsed:
    """Sentences on the channel `notes`, pasted lines as a log, and the times of the capture."""
    lines = text.split("\n")
    fenced = _fenced(lines)
    parsed = read_text("\n".join(unquoted(lines)), source, "plain")
    events = [replace(event, channel=CHANNEL) if _is_talk(event, lines, fenced) else event for event in parsed.events]
    events += _captures(lines, source)
    return replace(parsed, events=tuple(events))


def unquoted(lines: Sequence[str]) -> list[str]:
    """The lines, blocks that Markdown quotes or indents as a whole moved to the margin; fences keep what they hold.

    Beside a log of its writer, what a file quotes with `>` is somebody else's, and stays quoted (`claims`).
    """
    fenced = _fenced(lines)
    own = any(not line.startswith(">") and unwrap(line[:2000]).channel == "engine" for line in lines)
    mark = _INDENTED if own else _QUOTED
    found = list(lines)
    block: list[int] = []
    for index in range(len(lines) + 1):
        if index < len(lines) and lines[index].strip() and index + 1 not in fenced:
            block.append(index)
            continue
        if all(mark.match(lines[i]) for i in block):
            for i in block:
                found[i] = mark.sub("", lines[i], count=1)
        block = []
    return found


def is_named(path: str) -> bool:
    """Whether a file is notes by its name."""
    return _NAMED.search(path.removesuffix("!")) is not None


def _is_talk(event: Event, lines: list[str], fenced: frozenset[int]) -> bool:
    number = event.locator.line
    bare = event.kind == "log" and not event.stamps
    if not bare or number in fenced or number > len(lines):
        return False
    line = clean(lines[number - 1]).rstrip("\r")
    return prose.is_prose(line) and not prose.quotes_error(line)


def _fenced(lines: Sequence[str]) -> frozenset[int]:
    """Numbers of the lines between the fences of Markdown."""
    inside, found = False, set()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(prose.FENCES):
            inside = not inside
        elif inside:
            found.add(number)
    return frozenset(found)


def _captures(lines: list[str], source: str) -> list[Event]:
    found: list[Event] = []
    for section in cut(lines, source):
        if host_clock.kind_of(section) == "date":
            found += host_clock.read(section, source)
    for number, line in enumerate(lines, 1):
        said = _COLLECTED.fullmatch(line.rstrip("\r"))
        stamp = date_command(said["when"], host_clock.LAYER) if said else None
        if stamp is not None:
            text = f"captured at {line.strip()}"
            found.append(Event(Locator(source, number, number), "capture", "host", text, (stamp,), raw=line))
    return found


def _sniff_named(head: Head) -> int:
    """By name; a log that somebody called `notes.txt` is surer of itself."""
    return 30 if head.whole and is_named(head.path) else 0


def _sniff_manual(head: Head) -> int:
    """What may happen and what to do then: its errors are examples, whatever they look like."""
    return 98 if _MANUAL.search(head.path.removesuffix("!")) or (head.whole and examples.is_manual(head.lines)) else 0


def _sniff_prose(head: Head) -> int:
    """Sentences in a file of any name stay pasted text: a single error may have been typed without its header."""
    return 14 if log.kind_of(head).known_share <= 0.02 and prose.is_notes(head.path, head.lines) else 0


_OWN = (
    (1500, '<meta name="generator" content="oomforensics'), (400, '"name": "oomforensics"'),
    (60, "utc,uncertainty_s,basis,kind,channel,title"),
)  # fmt: skip
"""Marks of the report's formats, and within how many characters of its beginning they stand."""


def _sniff_own(head: Head) -> int:
    text = head.text.lstrip()
    marked = any(mark in text[:reach] for reach, mark in _OWN)
    return 99 if marked or (text.startswith("# ") and "`oomforensics verify " in text) else 0


def _nothing(text: str, source: str) -> Parsed:
    return Parsed()


FORMATS: tuple[Format, ...] = (
    Format("notes", "notes", _sniff_named, read, MAX_BYTES, most=30),
    Format("notes", "notes", _sniff_prose, most=14),
    Format("notes.manual", "manual, its errors are examples", _sniff_manual, _nothing),
    Format("notes.report", "report of this tool, not evidence", _sniff_own, _nothing),
)
