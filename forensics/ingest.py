"""bundle → sources → scan → parsers: read every member once and keep what it says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from .bundle import BLOCK_BYTES, Bundle, Member
from .model import Diagnostic, Event, Parsed, Samples, Scope, Severity, Source
from .parsers import DIALECTS, FORMATS, log, margins, mixed, wrapped
from .parsers.newest_first import placed_all
from .scan import Looked, Scanned, Scanner, binary_kind, encoding_of
from .sources import HEAD_BYTES, Carried, Format, Head, identify, make_head, owner
from .stopwatch import Stopwatch

BINARY_BYTES = 64 << 20
"""Bytes read of what is no text, for its checksum: a core dump or a model would take minutes."""

_WINDOWS = tuple(window for dialect in DIALECTS.values() for window in dialect.windows)
_SERIES = tuple(spec for dialect in DIALECTS.values() for spec in dialect.series)
_THREADS = 2
"""Pieces looked at side by side; each takes some 40 MB."""

_T = TypeVar("_T")
ProgressHook = Callable[[str, int], None]
"""Called with (member path, bytes read so far)."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A source with what its parser made of it."""

    source: Source
    parsed: Parsed


def literals(anchors: Iterable[str]) -> frozenset[str]:
    """Everything that the scan looks for: the given anchors, and what the dialects need."""
    plain = frozenset(anchors).union(*(dialect.anchors for dialect in DIALECTS.values()))
    return plain | {anchor.replace('"', '\\"') for anchor in plain if '"' in anchor}  # as JSON lines spell it


def read_bundle(
    bundle: Bundle,
    anchors: Iterable[str],
    prefilter: bool = True,
    progress: ProgressHook | None = None,
    block_bytes: int = BLOCK_BYTES,
    stopwatch: Stopwatch | None = None,
) -> list[ReadSource]:
    """All members, parsed; paths relative to a common top folder if there is one. Order: by path."""
    stopwatch = stopwatch or Stopwatch()

    def blocks(member: Member) -> Iterator[bytes]:
        unpacked = member.blocks(block_bytes)
        while True:
            with stopwatch.stage("unpack"):
                block = next(unpacked, b"")
            if not block:
                return
            if progress is not None:
                progress(member.path, bundle.used_bytes)
            yield block

    with ThreadPoolExecutor(_THREADS) as threads:
        search = _Search(literals(anchors), prefilter, threads, stopwatch)
        found = [_read_member(member, blocks(member), search) for member in bundle.members()]
    stopwatch.count("unpack", files=len(found), bytes=bundle.used_bytes)
    found, bundle.diagnostics[:] = _without_common_top(found, bundle.diagnostics)
    return _without_copies(sorted(found, key=lambda item: item.source.path))


@dataclass(frozen=True, slots=True)
class _Search:
    """What to look for in every member, who does it, and who takes the time."""

    anchors: frozenset[str]
    prefilter: bool
    threads: ThreadPoolExecutor
    """They look at pieces while the next blocks are unpacked; few and long-lived, for each compiles the anchors."""
    stopwatch: Stopwatch


COPY_BYTES = 512
"""Equal files below this size are no copies: `memory.max` of two containers may well say the same."""


def _without_copies(found: list[ReadSource]) -> list[ReadSource]:
    """A file that lies in the bundle twice speaks once; its copies stay in the list of sources, with a reason."""
    first: dict[str, str] = {}
    kept = []
    for item in found:
        source = item.source
        original = first.setdefault(source.sha256, source.path)
        if original != source.path and source.size_bytes >= COPY_BYTES:
            item = ReadSource(replace(source, reason=f"a copy of {original}"), Parsed(scope=item.parsed.scope))
        kept.append(item)
    return kept


def _read_member(member: Member, blocks: Iterator[bytes], search: _Search) -> ReadSource:
    first = next(blocks, b"")
    while first and not first.strip(b"\0"):  # a log that was truncated while it was written begins with a hole
        first = next(blocks, b"")
    first = _beginning(first, blocks)
    encoding = encoding_of(first)
    if encoding != "utf-8" and len(first) <= HEAD_BYTES:
        first, encoding = first.decode(encoding, "replace").encode("utf-8", "replace"), "utf-8"
    start = first.lstrip(b"\0")[:HEAD_BYTES] if encoding == "utf-8" else first[:HEAD_BYTES]
    text = start.replace(b"\0", b"") if encoding == "utf-8" else start
    head = make_head(member.path, text, len(first) <= HEAD_BYTES, encoding)
    if not head.text:
        reason = member.cut or ("nothing but NUL bytes" if member.size_bytes > 4 else "")
        return _result(member, "empty", "empty file", Parsed(), Scanned(), None, reason)
    if encoding == "utf-8":
        head, first, blocks = _as_printed(head, first, blocks)
    with search.stopwatch.stage("recognise"):
        form = identify(head, FORMATS)
    if form is None and encoding == "utf-8" and (binary := binary_kind(start[:4096])) is not None:
        return _skip_binary(member, blocks, *binary)
    if form is not None and form.carried is not None:
        whole = _whole(member, first, blocks, form).decode(encoding, "replace").removeprefix("\ufeff")
        return _read_carried(member, form, form.carried, whole, search)
    return _read_text(member, head, form, first, encoding, blocks, search)


def _read_carried(
    member: Member, form: Format, carry: Callable[[str], Carried], whole: str, search: _Search
) -> ReadSource:
    """A text that another kind of file carries is read like notes; its lines become those of the file."""
    as_it_is = Carried(whole, range(1, whole.count("\n") + 2))
    with search.stopwatch.stage("parse"):
        carried = _guarded(member, form.title, lambda: carry(whole)) or as_it_is
    data = carried.text.encode("utf-8", "replace")
    head = make_head(f"{member.path}.md", data[:HEAD_BYTES], len(data) <= HEAD_BYTES)
    text = _read_text(member, head, identify(head, FORMATS), data, "utf-8", iter(()), search)
    parsed = placed_all(text.parsed, carried.line)
    own = (replace(event, locator=replace(event.locator, source=member.path)) for event in carried.events)
    events = sorted((*parsed.events, *own), key=lambda event: event.locator.line)
    source = replace(text.source, format=form.name, title=form.title, lines=whole.count("\n") + 1, reason=member.cut)
    return ReadSource(source, replace(parsed, events=tuple(events)))


def _read_text(
    member: Member, head: Head, form: Format | None, first: bytes, encoding: str, blocks: Iterator[bytes],
    search: _Search,
) -> ReadSource:  # fmt: skip
    """A member as one document, as the several that it holds, or as a log."""
    if encoding == "utf-8":
        with search.stopwatch.stage("recognise"):
            outputs = mixed.cut(head, first, form, FORMATS)
        if outputs is not None:
            return _read_outputs(member, outputs, blocks, search)
    return _read_as(member, head, form, first, encoding, blocks, search)


def _as_printed(head: Head, first: bytes, blocks: Iterator[bytes]) -> tuple[Head, bytes, Iterator[bytes]]:
    """The same member without what copying did to its lines: folds and margins, the outermost first."""
    for _ in range(margins.MAX_DEPTH):
        if (joined := wrapped.unfolded(head, first)) is not None:
            first, head = joined, make_head(head.path, joined.lstrip(b"\0")[:HEAD_BYTES], head.whole)
        if (margin := margins.of(head)) is None:
            break
        blocks = margins.off(chain((first,), blocks), margin)
        first = _beginning(b"", blocks)
        head = make_head(head.path, first.lstrip(b"\0")[:HEAD_BYTES], len(first) <= HEAD_BYTES)
    return head, first, blocks


def _beginning(first: bytes, blocks: Iterator[bytes]) -> bytes:
    """The first bytes and as many blocks as tell whether the member ends within its head."""
    while len(first) <= HEAD_BYTES and (more := next(blocks, b"")):
        first += more
    return first


def _read_outputs(member: Member, outputs: mixed.Outputs, blocks: Iterator[bytes], search: _Search) -> ReadSource:
    """Each document of a file by its own parser, and the rest as what it is."""
    found: list[Parsed] = []
    with search.stopwatch.stage("parse"):
        for part in outputs.documents:
            title = part.form.title if part.form is not None else ""
            read = partial(mixed.read, part, outputs.lines, member.path)
            found.append(_guarded(member, title, read) or Parsed())
    form = identify(outputs.head, FORMATS)
    rest = _read_as(member, outputs.head, form, outputs.rest, "utf-8", blocks, search)
    found.append(rest.parsed)
    events = [outputs.owned(event) for parsed in found for event in parsed.events]
    events.sort(key=lambda event: (event.locator.line, event.locator.line_end))
    samples = chain.from_iterable(map(outputs.owned_rows, chain.from_iterable(parsed.samples for parsed in found)))
    parsed = Parsed(
        tuple(events), tuple(samples),
        tuple(chain.from_iterable(parsed.diagnostics for parsed in found)), rest.parsed.scope,
    )  # fmt: skip
    title = f"several outputs ({', '.join(filter(None, (outputs.title, rest.source.title)))})"
    scanned = Scanned(lines=rest.source.lines)
    return _result(member, mixed.NAME, title, parsed, scanned, rest.source.coverage, member.cut)


def _read_as(
    member: Member, head: Head, form: Format | None, first: bytes, encoding: str, blocks: Iterator[bytes],
    search: _Search,
) -> ReadSource:  # fmt: skip
    """Read a member in one format. `first`: its beginning, which `blocks` continue."""
    if form is not None and form.read is not None:
        data = _whole(member, first, blocks, form)
        whole = data.decode(encoding, "replace").removeprefix("\ufeff")
        read = form.read
        with search.stopwatch.stage("parse"):
            parsed = _guarded(member, form.title, lambda: read(whole, member.path))
        if parsed is not None:
            lines = whole.count("\n") + (not whole.endswith("\n"))
            return _result(member, form.name, form.title, parsed, Scanned(lines=lines), 1.0, member.cut)
        form, first = None, data
    scanned = _scan(first, blocks, head, form, search)
    search.stopwatch.count("scan", lines=scanned.lines, candidates=len(scanned.candidates))
    with search.stopwatch.stage("parse"):
        return _read_lines(member, head, form, scanned)


def _skip_binary(member: Member, blocks: Iterator[bytes], kind: str, hint: str) -> ReadSource:
    for _ in blocks:
        if member.size_bytes >= BINARY_BYTES:
            break
    reason = f"{kind}, no text" + (f"; {hint}" if hint else "")
    return _result(member, "unrecognised", kind, Parsed(), Scanned(), None, member.cut or reason)


def _whole(member: Member, first: bytes, blocks: Iterator[bytes], form: Format) -> bytes:
    data = bytearray(first[: form.max_bytes])
    size = len(first)
    for block in blocks:
        data += block[: form.max_bytes - len(data)]
        size += len(block)
    if size > form.max_bytes:
        member.report(Diagnostic(member.path, None, Severity.WARNING,
                                 f"{member.path}: only the first {form.max_bytes:,} of {size:,} bytes were read",
                                 "a document this large is unusual; split it"))  # fmt: skip
    return bytes(data)


def _scan(first: bytes, blocks: Iterator[bytes], head: Head, form: Format | None, search: _Search) -> Scanned:
    series = form.series(head) if form is not None and form.series is not None else ()
    scanner = Scanner(search.anchors, _WINDOWS, (*series, *_SERIES), search.prefilter)

    second = next(blocks, b"")
    if not second:
        with search.stopwatch.stage("scan"):
            return scanner.whole(first)
    waiting: deque[Future[Looked]] = deque()

    def take(most: int) -> None:
        """Leave at most so many pieces waiting."""
        with search.stopwatch.stage("scan"):
            while len(waiting) > most:
                scanner.take(waiting.popleft().result())

    for block in chain((first, second), blocks):
        for piece in scanner.pieces(block):
            take(_THREADS - 1)
            waiting.append(search.threads.submit(scanner.look, piece))
    take(0)
    with search.stopwatch.stage("scan"):
        return scanner.finish()


def _read_lines(member: Member, head: Head, form: Format | None, scanned: Scanned) -> ReadSource:
    kind = log.kind_of(head)
    parsed = _guarded(member, kind.title, lambda: log.read(scanned, member.path, kind.channel, DIALECTS)) or Parsed()
    title, name, coverage = kind.title, form.name if form is not None else "text", kind.known_share
    if form is not None and form.samples is not None:
        samples = form.samples
        table = _guarded(member, form.title, lambda: samples(scanned, member.path, head)) or Parsed()
        parsed = replace(
            parsed, events=(*table.events, *parsed.events) if form.name == log.FORMAT.name else table.events,
            samples=(*table.samples, *parsed.samples), diagnostics=(*table.diagnostics, *parsed.diagnostics),
            scope=table.scope.merged(parsed.scope),
        )  # fmt: skip
        title = form.title
        if form.name != log.FORMAT.name:
            coverage = _rows_read(table, max(1, scanned.lines - scanned.dropped_rows))
    _report_losses(member, scanned)
    reason = member.cut or ("no known log header in its first lines" if form is None else "")
    return _result(member, name, title, parsed, scanned, coverage, reason)


def _rows_read(table: Parsed, lines: int) -> float:
    """Share of the `lines` of a table that gave a value, its header among them."""
    read = {line for samples in table.samples for line in samples.lines}
    read.update(event.locator.line for event in table.events)
    return min(1.0, (len(read) + 1) / lines) if read else 0.0


def _guarded(member: Member, title: str, read: Callable[[], _T]) -> _T | None:
    """What `read` makes of a member; none, with a diagnostic, when it fails on content that nobody foresaw.

    One strange file must not cost the analysis of all others.
    """
    try:
        return read()
    except Exception as error:
        problem = f"{member.path}: reading it as {title} failed ({type(error).__name__}: {error})"
        hint = "this is a defect of the program, please report it; the other files are analysed"
        member.report(Diagnostic(member.path, None, Severity.ERROR, problem, hint))
        return None


def _report_losses(member: Member, scanned: Scanned) -> None:
    """Say what of the text was not read as it stands."""

    def say(severity: Severity, problem: str, hint: str = "") -> None:
        member.report(Diagnostic(member.path, None, severity, f"{member.path}: {problem}", hint))

    shorter = "cut the file to the time of the incident"
    if scanned.one_line:
        say(Severity.WARNING, "no LF but many CR, read as one line", "convert it: tr '\\r' '\\n' < FILE")
    if scanned.dropped_lines:
        say(Severity.WARNING, f"too many lines of interest, {scanned.dropped_lines:,} in the middle left out", shorter)
    if scanned.dropped_rows:
        say(Severity.WARNING, f"series too long, {scanned.dropped_rows:,} rows in the middle left out", shorter)
    if scanned.long_lines:
        say(Severity.INFO, f"overlong lines of which only the beginning was read: {scanned.long_lines:,}")
    if scanned.bad_lines:
        say(Severity.INFO, f"lines that are not UTF-8, read as well as possible: {scanned.bad_lines:,}")
    if scanned.nul_bytes:
        say(Severity.INFO, f"NUL bytes left out: {scanned.nul_bytes:,}")


def _result(
    member: Member, name: str, title: str, parsed: Parsed, scanned: Scanned, coverage: float | None, reason: str
) -> ReadSource:
    scope = owner(member.path).merged(parsed.scope)
    source = Source(
        member.path, name, title, member.size_bytes, member.sha256, scanned.lines, scope, member.mtime_s, coverage,
        reason=reason,
    )  # fmt: skip
    events = tuple(_owned(event, scope) for event in parsed.events)
    return ReadSource(source, replace(parsed, events=events, scope=scope))


def _owned(event: Event, owner: Scope) -> Event:
    merged = event.scope.merged(owner)
    return event if merged is event.scope else replace(event, scope=merged)


def _without_common_top(
    found: list[ReadSource], diagnostics: list[Diagnostic]
) -> tuple[list[ReadSource], list[Diagnostic]]:
    """`incident-1/logs/x` → `logs/x` when everything lies in `incident-1/`: an archive and its folder read the same."""
    tops = {item.source.path.partition("/")[0] for item in found}
    if len(tops) != 1 or any("/" not in item.source.path for item in found):
        return found, list(diagnostics)
    top = tops.pop() + "/"
    return (
        [_moved(item, item.source.path.removeprefix(top)) for item in found],
        [
            replace(d, source=d.source[len(top) :], message=d.message.replace(d.source, d.source[len(top) :], 1))
            if d.source.startswith(top) else d
            for d in diagnostics
        ],
    )  # fmt: skip


def _moved(item: ReadSource, path: str) -> ReadSource:
    parsed = Parsed(
        tuple(_event_at(event, path) for event in item.parsed.events),
        tuple(_samples_at(samples, path) for samples in item.parsed.samples),
        tuple(replace(diagnostic, source=path) for diagnostic in item.parsed.diagnostics),
        item.parsed.scope,
    )
    return ReadSource(replace(item.source, path=path), parsed)


def _event_at(event: Event, path: str) -> Event:
    return replace(event, locator=replace(event.locator, source=path))


def _samples_at(samples: Samples, path: str) -> Samples:
    return replace(samples, source=path)
