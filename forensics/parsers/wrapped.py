"""Text that a terminal or a mail program folded: its lines are joined again before anything else reads them.

A terminal breaks at its last column, in the middle of a word; a mail program or a person breaks between words. Either
way a number and its unit, or an error and its reason, stand on two lines, and only the first has a header. Each
message is put into its first line and its further lines are left empty, so that the numbers of lines stay true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import regex

from ..regexes import lazy_regex
from ..sources import Head
from .commands import title_of

NARROWEST, WIDEST = 40, 300
"""Columns of terminals."""
MAX_FILLED = 130
"""Columns at which people and mail programs break lines."""
LEAST_FILLED = 45
RAGGED = 25
"""By how many columns lines of one paragraph differ: as much as a long word."""
MAX_LINES = 80
"""Lines of one message."""
MIN_FULL = 3
"""Lines that end in the last column before a width is believed; of a usual one, one less."""
MIN_CLEAR = 6
"""Lines that end in one column before it is believed beside longer ones."""
_CANDIDATES = 3
USUAL = frozenset({80, 100, 120, 132, 160, 200})
BEGINNING = 8
"""Characters by which further headers are told: those of a collector that `_HEADER` does not know."""
_HEADER = lazy_regex(
    r"(?:\x1b\[[\d;]*m)*(?:\(\w+ (?:pid|rank|ip)=|\([\w ]+? pid=\d|(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b|"
    r"<\d{1,3}>|\[ *\d+\.\d{3,6}\]|\[?\d{4}[-/]\d\d[-/]\d\d|\[?\p{L}{1,6}\.? (?:\p{L}{3,6}\.? )?[ \d]\d \d\d:\d\d|"
    r"[IWEFDC]\d{4} \d\d:|\[\w+\]? |\[rank\d|\d\d:\d\d:\d\d|Traceback \(most recent|\{\"|[\w.@~-]+[:~]\S*[$#] |"
    r"[$#>|] |\w[\w.-]* +\| |(?:Mem|Swap|Total): +\d)"  # the last: rows of `free`, whose table is 80 wide
)
"""How the first line of a message begins, in all that people copy out of a terminal."""
_MESSAGE = lazy_regex(r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)\b(?: ?\(|: )")
_BULLET = lazy_regex(r"[-*•+#=]+ |-- |\d{1,3}[.)] |```|~~~|File \"")
_ALLOCATION = lazy_regex(r"out of memory\. Tried to allocate \S+ ")
_ALLOCATION_END = "unallocated"
MAX_PIECES = 8
_QUOTE = lazy_regex(r"(?:> ?)*[ \t]*")
_LONG = lazy_regex(
    r"(?:Error|Exception)\b(?: ?\(|: )"
    r"|^(?:> ?)*(?:\([^()]{1,40}\) )?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d "
    r"|^(?:> ?)*\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,20}\] ",
    regex.MULTILINE,
)
"""What has messages longer than a mail's line: errors, and the reports of engines."""


def unfolded(head: Head, data: bytes) -> bytes | None:
    """The same text with its messages joined; none when nothing was folded. `data` is UTF-8."""
    if len(head.lines) < 2:
        return None
    width = _terminal_width(head.lines)
    filled = not width and head.whole and "\x1b" not in head.text and _LONG.search(head.text) is not None
    if not width and not filled:
        return None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    joined = _at_width(lines, width, _beginnings(head.lines, width)) if width else _allocations(_filled(lines))
    return "\n".join(joined).encode("utf-8", "surrogateescape") if joined != lines else None


def _terminal_width(lines: Sequence[str]) -> int:
    """The column at which all long lines end, 0 when they do not.

    A few may go on beyond it, where many end there: who copies a screen types lines of their own above and below.
    """
    lines = _copied(lines)
    lengths = Counter(len(line) for line in lines)
    width = max(lengths, default=0)
    least = MIN_FULL - 1 if width in USUAL else MIN_FULL
    if lengths[width] >= least and _is_folded_at(lines, width, 0.85):
        return width
    plain = Counter(len(line) for line in lines if line[:1] not in "|+") if "\x1b" not in "".join(lines) else Counter()
    for width, times in plain.most_common(_CANDIDATES):
        longer = sum(others for length, others in lengths.items() if length > width)
        if times >= MIN_CLEAR and longer <= times / 3 and _is_folded_at(lines, width, 0.75):
            return width
    return 0


def _is_folded_at(lines: Sequence[str], width: int, share: float) -> bool:
    """Whether a terminal's last column was the `width`, as so many of the lines behind the full ones show.

    What tells a fold from lines that happen to be equally long: the line behind has no header, and goes on with text.
    """
    if not NARROWEST <= width <= WIDEST:
        return False
    own = _beginnings(lines, width)
    behind = [lines[i + 1] for i, line in enumerate(lines[:-1]) if len(line) == width]
    on = sum(bool(line.strip()) and not line[:2].isspace() and not _is_headed(line, own) for line in behind)
    headers = sum(_is_headed(line, own) for line in lines)
    framed = sum(line[:1] in "|+" for line in behind)
    least = MIN_FULL - 1 if width in USUAL else MIN_FULL
    enough = on >= share * len(behind) >= least * share
    folded = enough and headers >= 0.1 * len(lines) and headers >= 2 and not framed
    return folded and not _breaks_at_words(lines, width)


def _breaks_at_words(lines: Sequence[str], width: int) -> bool:
    """Whether messages are broken before the last column too, wherever the next word does not fit: so mails do.

    Reports of one length are broken at the same words, so that many of their lines are equally long as well.
    """
    groups = [_paragraph(lines, index) for index in range(len(lines))]
    short = [g for g in groups if len(g) > 2 and min(map(len, g[:-1])) < width - 1 and _is_filled(g)]
    return len(short) >= 2


def _copied(lines: Sequence[str]) -> list[str]:
    """The paragraphs in which something has a header: what people type above and below may be as wide as they like."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if not line.strip():
            paragraphs.append([])
        paragraphs[-1].append(line)
    headed = [paragraph for paragraph in paragraphs if any(map(_HEADER.match, paragraph))]
    return [line for paragraph in headed or paragraphs for line in paragraph]


def _beginnings(lines: Sequence[str], width: int) -> frozenset[str]:
    """How messages begin in this text, whoever wrote it: what stands again and again at the margin, but for folds."""
    begins = Counter(_beginning(line) for before, line in pairwise(["", *lines]) if len(before) != width)
    return frozenset(begin for begin, times in begins.items() if times >= MIN_FULL and begin.strip())


def _beginning(line: str) -> str:
    return line[:BEGINNING] if len(line) > BEGINNING and not line[0].isspace() else ""


def _is_headed(line: str, own: frozenset[str]) -> bool:
    return _HEADER.match(line) is not None or _beginning(line) in own


def _at_width(lines: Sequence[str], width: int, own: frozenset[str]) -> list[str]:
    joined: list[str] = []
    first = 0
    for index, raw in enumerate(lines):
        line = raw.removesuffix("\r")
        before = lines[index - 1].removesuffix("\r") if index else ""
        full = len(before) == width or (len(before) == width - 1 and line[:1].strip() != "")
        if index and full and line and not _is_headed(line, own) and index - first < MAX_LINES:
            pad = " " * (width - len(before))
            joined[first] = joined[first].removesuffix("\r") + pad + line
            joined.append("")
        else:
            first = index
            joined.append(raw)
    return joined


def _filled(lines: Sequence[str]) -> list[str]:
    """Join paragraphs that begin with a header or the name of an error and were broken between words, or cut.

    A break into two lines is believed only where some paragraph shows the width at which its lines were broken.
    """
    joined = list(lines)
    groups: list[tuple[int, list[str]]] = []
    index = 0
    while index < len(lines):
        group = _paragraph(lines, index)
        if cut := _cut(lines[index : index + len(group)]):
            joined[index] = _quote(lines[index]) + "".join(cut)
            joined[index + 1 : index + len(cut)] = [""] * (len(cut) - 1)
            group = group[: len(cut)]
        elif len(group) > 1 and _is_filled(group):
            groups.append((index, group))
        index += max(1, len(group))
    if any(_shows_width(group) for _, group in groups):
        for index, group in groups:
            joined[index] = _quote(lines[index]) + " ".join(group)
            joined[index + 1 : index + len(group)] = [""] * (len(group) - 1)
    return joined


def _allocations(lines: Sequence[str]) -> list[str]:
    """Join torch's message about a failed allocation, which is known by its end, wherever and how often it was broken.

    It is the longest message that people paste, and they break it by hand at the width of their form.
    """
    joined = list(lines)
    for index, line in enumerate(lines):
        if not _ALLOCATION.search(line) or _ALLOCATION_END in line:
            continue
        group = [line.rstrip()]
        for further in lines[index + 1 : index + 1 + MAX_PIECES]:
            text = further[len(_quote(further)) :].strip()
            if not text or _HEADER.match(text) or _MESSAGE.match(text) or _BULLET.match(text):
                break
            group.append(text)
            if _ALLOCATION_END in text:
                if len(group) > 2 and len({len(piece) for piece in group[:-1]}) == 1:
                    break  # a terminal's width: it breaks words
                joined[index] = " ".join(group)
                joined[index + 1 : index + len(group)] = [""] * (len(group) - 1)
                break
    return joined


def _quote(line: str) -> str:
    found = _QUOTE.match(line)
    return found[0] if found else ""


def _paragraph(lines: Sequence[str], index: int) -> list[str]:
    """The message that begins at a line, as its lines without quotation marks; one line when nothing belongs to it."""
    quote = _quote(lines[index])
    first = lines[index][len(quote) :].rstrip()
    if not (_MESSAGE.match(first) or (_HEADER.match(first) and not first.startswith(("$", "#", ">", "|")))):
        return [first]
    group = [first]
    for line in lines[index + 1 : index + MAX_LINES]:
        text = line[len(_quote(line)) :].rstrip()
        if not text or _quote(line).count(">") != quote.count(">") or len(_quote(line)) > len(quote) + 4:
            break
        if _HEADER.match(text) or _MESSAGE.match(text) or _BULLET.match(text) or "   " in text or title_of(text):
            break
        group.append(text)
    return group


def _is_filled(group: Sequence[str]) -> bool:
    """Whether every line was broken only because the next word did not fit."""
    width = max(map(len, group[1:]))
    breaks = [len(line) + 1 + len(behind.split(" ", 1)[0]) for line, behind in pairwise(group)]
    return width <= MAX_FILLED and min(breaks) > max(width, LEAST_FILLED)


def _cut(paragraph: Sequence[str]) -> list[str]:
    """The pieces of an error that a terminal cut at one column, its blanks among them; none where none did.

    All are of one length, but the last. Four lines of one length are no chance; of two, one has to begin with the blank
    that such a cut leaves to it.
    """
    quote = len(_quote(paragraph[0]))
    pieces = [line.removesuffix("\r")[quote:] for line in paragraph]
    width = len(pieces[0])
    full = next((i for i, piece in enumerate(pieces) if len(piece) != width), len(pieces) - 1)
    cut = pieces[: full + 1]
    blank = any(piece[:1] == " " != piece[1:2] for piece in cut[1:])
    fits = LEAST_FILLED <= width <= MAX_FILLED and len(cut[-1]) <= width and _MESSAGE.match(pieces[0])
    return cut if fits and (full >= 4 or (full >= 2 and blank)) else []


def _shows_width(group: Sequence[str]) -> bool:
    """Whether further lines of a paragraph are about equally long and go on, not repeat, what stands before them."""
    further = [len(line) for line in group[1:-1]]
    begins = [line.split(" ", 1)[0] for line in group[1:]]
    even = len(further) >= 4 or (len(further) >= 2 and max(further) - min(further) <= RAGGED)
    return even and len({*begins}) == len(begins)
