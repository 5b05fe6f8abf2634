"""Several outputs in one file: a saved terminal, a collector's single log, a ticket with fenced pieces.

A document parser reads its own document and passes over everything else, so such a file is cut first: at headings,
prompts and fences, and where a document of a known shape begins or ends without any. Each document goes to its own
parser; everything else stays where it stands, the documents blanked out, and is read as the log or the notes that it
is. A line is never lost: it belongs to a document or to the rest.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..model import Event, Locator, Parsed, Samples, Scope
from ..scan import Scanner
from ..sources import HEAD_BYTES, HEAD_LINES, Format, Head, identify
from . import notes, prose
from .commands import owner_of, title_of
from .newest_first import placed_all
from .shapes import EVENT_ROWS, EVENTS, SHAPES, STATES, Shape, complains, is_fence, may_begin, speaks

NAME = "mixed"
"""Id of the format of such a file in the list of sources."""
LOOK_BYTES = 8 << 20
"""Documents are looked for in so many first bytes of a file; what follows is read as a log."""
_SNIFF_LINES = 5000
"""A part is recognised by so many first lines."""
_SESSIONS = frozenset({"host.state", "cgroup", "metrics.prometheus", "nvidia.smi", "docker.template"})
"""Formats whose parser wants the headings, since they say which file, time or fields the output below them has."""
_FAMILIES = {"cgroup": "host.state", "k8s.describe": "k8s.text", "k8s.table": "k8s.text"}
"""Formats that one parser reads together."""
_NO_DOCUMENTS = (
    "notes", "code", "settings", "versions", "collector.summary", "systemd.other", "command.error", "k8s.message",
    "k8s.reply", "json", "yaml",
)  # fmt: skip
"""Formats that are left in the rest: the log reader knows such lines, or they hold no facts."""
_UNCUT = ("notes.manual", "notes.report", "nvidia.bug_report")
"""Formats of files that are one thing, whatever stands in them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of lines that is one output, or text between outputs."""

    title: str
    """The heading or command above it, if any."""
    first: int
    """Index of its first line, the heading left out."""
    end: int
    """Index behind its last line."""
    shape: str = ""
    form: Format | None = None
    """Set for a document."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """A file that was cut."""

    documents: tuple[Part, ...]
    lines: tuple[str, ...]
    """All lines that were looked at, without CR."""
    rest: bytes
    """The same bytes, the lines of the documents blanked out."""
    head: Head
    """The beginning of the rest, without the blanked lines."""
    owners: tuple[tuple[int, int, Scope], ...]
    """(first line, last line, owner) where a heading names the owner of the lines below it."""

    @property
    def title(self) -> str:
        """The formats of the documents, in order."""
        return ", ".join(dict.fromkeys(part.form.title for part in self.documents if part.form is not None))

    def owned(self, event: Event) -> Event:
        """The event with the owner that the heading above it names."""
        owner = self._owner_at(event.locator.line)
        return event if owner is None else replace(event, scope=event.scope.merged(owner))

    def owned_rows(self, samples: Samples) -> Iterator[Samples]:
        """The series, as one for each owner that the headings above its rows name."""
        rows: dict[Scope | None, list[int]] = {}
        for row, order in enumerate(samples.lines):
            rows.setdefault(self._owner_at(Locator.at(samples.source, order).line), []).append(row)
        for owner, own in rows.items():
            yield replace(
                samples, scope=samples.scope if owner is None else samples.scope.merged(owner),
                lines=array("q", (samples.lines[i] for i in own)), stamps=array("d", (samples.stamps[i] for i in own)),
                values=array("d", (samples.values[i] for i in own)),
            )  # fmt: skip

    def _owner_at(self, line: int) -> Scope | None:
        return next((scope for first, last, scope in self.owners if first <= line <= last), None)


def cut(head: Head, data: bytes, whole: Format | None, formats: tuple[Format, ...]) -> Outputs | None:
    """The outputs in the first bytes of a file; none when it is a single one, as `whole` says.

    `data` is UTF-8 and may end in the middle of a line when the file is larger.
    """
    if whole is not None and whole.name in _UNCUT:
        return None
    looked = data[:LOOK_BYTES]
    written = head.whole and (notes.is_named(head.path) or (whole is not None and whole.name == "notes"))
    if not written and not may_begin(looked):
        return None
    text = looked.decode("utf-8", "replace").removeprefix("\ufeff")
    if written:
        text = "\n".join(notes.unquoted(text.split("\n")))
        if not may_begin(text.encode()):
            return None
    lines = tuple(line.rstrip("\r") for line in text.split("\n"))
    printed = prose.is_output(head.path)
    parts = [
        part if _may_be_printed(part, lines, printed) else _identified(part, lines, formats) for part in _parts(lines)
    ]
    owners = tuple(
        (max(part.first, 1), part.end, scope) for part in parts if (scope := owner_of(part.title)) != Scope()
    )  # fmt: skip
    documents = _runs([part for part in parts if part.form is not None], parts, lines)
    logs_of_several = not documents and len({scope for *_, scope in owners if scope.pod or scope.container}) > 1
    if not logs_of_several and not (documents and _is_mixed(documents, parts, lines, whole)):
        return None
    raw = looked.split(b"\n")
    taken = bytearray(len(lines))
    for part in documents:
        taken[part.first : part.end] = b"\1" * (part.end - part.first)
    rest = b"\n".join(b"" if taken[i] else line for i, line in enumerate(raw)) + data[LOOK_BYTES:]
    kept = [line for i, line in enumerate(lines) if not taken[i] and line.strip()]
    shown = Head(head.path, "\n".join(kept), tuple(kept[:HEAD_LINES]), head.whole)
    return Outputs(tuple(documents), lines, rest, shown, owners)


def read(part: Part, lines: Sequence[str], source: str) -> Parsed:
    """What the parser of a document makes of its lines, with the line numbers of the file."""
    form = part.form
    if form is None:
        return Parsed()
    body = lines[part.first : part.end]
    text = "\n".join(body)
    if form.read is not None:
        return _moved(form.read(text, source), part.first)
    head = Head(source, text, tuple(body[:HEAD_LINES]), True)
    if form.samples is None or form.series is None:
        return Parsed()
    scanned = Scanner((), series=form.series(head)).whole(text.encode("utf-8", "replace"))
    return _moved(form.samples(scanned, source, head), part.first)


def _moved(parsed: Parsed, by: int) -> Parsed:
    return placed_all(parsed, lambda line: line + by) if by else parsed


def _parts(lines: Sequence[str]) -> list[Part]:
    """Cut at headings, fences and where a known shape begins or ends."""
    parts: list[Part] = []
    title, first = "", 0
    shape: Shape | None = None
    belongs: Callable[[int], bool] = _never

    def close(end: int) -> None:
        if any(line.strip() for line in lines[first:end]):
            parts.append(Part(title, first, end, shape.name if shape else ""))

    index = 0
    while index < len(lines):
        line = lines[index]
        if is_fence(line) or (heading := title_of(line)):
            close(index)
            title, first, shape = "" if is_fence(line) else heading, index + 1, None
        elif line and (begun := next((s for s in SHAPES if s.begins(lines, index)), None)) is not None:
            if begun is not shape:
                close(index)
                first, shape = index, begun
            belongs = begun.membership(lines, index)
            if begun.exact:
                index = next((i for i in range(index + 1, len(lines)) if not belongs(i)), len(lines)) - 1
                belongs = _never
        elif shape is not None and line.strip() and not belongs(index):
            close(index)
            first, shape = index, None
        index += 1
    close(len(lines))
    return parts


def _never(index: int) -> bool:
    return False


def _identified(part: Part, lines: Sequence[str], formats: tuple[Format, ...]) -> Part:
    """The part with its format when it is a document."""
    body = lines[part.first : part.end]
    begin = tuple(body[:_SNIFF_LINES])
    for text in ([begin, (part.title, *begin)] if part.title else [begin]):
        head = Head(part.title, "\n".join(text)[:HEAD_BYTES], text[:HEAD_LINES], len(begin) == len(body))
        form = identify(head, formats)
        readable = form is not None and (form.read is not None or form.samples is not None)
        if form is not None and readable and not form.name.startswith(_NO_DOCUMENTS):
            return replace(part, form=form)
    return part


def _may_be_printed(part: Part, lines: Sequence[str], printed: bool) -> bool:
    """Whether an engine may have printed a part of its log: a user asked about the states or the events of a pod.

    What stands above or below all lines of the engine was put there. `printed`: the whole file is a program's output.
    """
    if part.shape not in (STATES, EVENTS, EVENT_ROWS):
        return False
    goes_on = part.shape != STATES and part.first > 0 and speaks(lines[part.first - 1])
    between = any(map(speaks, lines[: part.first])) and any(map(speaks, lines[part.end :]))
    return between and (printed or goes_on)


def _runs(documents: Sequence[Part], parts: Sequence[Part], lines: Sequence[str]) -> list[Part]:
    """Neighbours that one parser reads together, with the headings between them."""
    before = {id(part): parts[i - 1] if i else None for i, part in enumerate(parts)}
    runs: list[Part] = []
    for part in documents:
        if part.form is None or part.form.name not in _SESSIONS:
            runs.append(part)
            continue
        last = runs[-1] if runs else None
        previous = before[id(part)]
        joins = (
            last is not None and last.form is not None and previous is not None and previous.end == last.end
            and _family(last.form) == _family(part.form)
        )  # fmt: skip
        if joins and last is not None:
            runs[-1] = replace(last, end=part.end)
        else:
            headed = part.first > 0 and title_of(lines[part.first - 1]) == part.title != ""
            runs.append(replace(part, first=part.first - 1) if headed else part)
    return runs


def _family(form: Format) -> str:
    return _FAMILIES.get(form.name, form.name)


def _is_mixed(documents: Sequence[Part], parts: Sequence[Part], lines: Sequence[str], whole: Format | None) -> bool:
    """Whether reading the file as `whole` would lose something."""
    families = {_family(part.form) for part in documents if part.form is not None}
    if whole is None or (whole.read is None and whole.samples is None):
        return True
    if whole.name == "notes":
        return any(part.shape for part in documents)
    if _family(whole) not in families:
        return False  # a document with pieces of others in it
    if len(families) > 1:
        return True
    texts = [part for part in parts if part.form is None]
    told = [line for part in texts for line in lines[part.first : part.end] if line.strip() and not is_fence(line)]
    if _family(whole) == "k8s.text":
        return bool(told)  # objects and rows are all that its parser reads
    headed = _family(whole) != "host.state" and any(part.title for part in texts)  # the output of another command
    return headed or any(speaks(line) or complains(line) for line in told)
