"""bundle → sources → scan → parsers: read every member once and keep what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .bundle import Bundle, Member
from .model import Diagnostic, Event, Parsed, Samples, Severity, Source
from .parsers import DIALECTS, FORMATS, log
from .scan import Scanned, Scanner, encoding_of
from .sources import HEAD_BYTES, Format, Head, identify, make_head, owner

ProgressHook = Callable[[str, int], None]
"""Called with (member path, bytes read so far)."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A source with what its parser made of it."""

    source: Source
    parsed: Parsed


def read_bundle(
    bundle: Bundle, anchors: Iterable[str], prefilter: bool = True, progress: ProgressHook | None = None
) -> list[ReadSource]:
    """All members, parsed; paths relative to a common top folder if there is one. Order: as in the bundle, sorted."""
    wanted = frozenset(anchors).union(*(dialect.anchors for dialect in DIALECTS.values()))
    found = []
    for member in bundle.members():
        found.append(_read_member(member, wanted, prefilter))
        if progress is not None:
            progress(member.path, bundle.used_bytes)
    found = _without_common_top(found, bundle)
    return sorted(found, key=lambda item: item.source.path)


def _read_member(member: Member, anchors: frozenset[str], prefilter: bool) -> ReadSource:
    blocks = member.blocks()
    first = next(blocks, b"")
    if not first:
        return _result(member, "empty", "empty file", Parsed(), Scanned(), None, "" if not member.cut else member.cut)
    encoding = encoding_of(first)
    head = make_head(member.path, first[:HEAD_BYTES], len(first) <= HEAD_BYTES, encoding)
    form = identify(head, FORMATS)
    if form is not None and form.read is not None:
        return _read_document(member, first, blocks, form, form.read, encoding)
    if form is None and _is_binary(first[:4096], encoding):
        for _ in blocks:
            pass  # the checksum covers the whole file
        return _result(member, "unrecognised", "binary data", Parsed(), Scanned(), None,
                       "binary data in no known format")  # fmt: skip
    series = form.series(head) if form is not None and form.series is not None else ()
    scanner = Scanner(
        anchors,
        tuple(window for dialect in DIALECTS.values() for window in dialect.windows),
        (*series, *(spec for dialect in DIALECTS.values() for spec in dialect.series)),
        prefilter,
    )
    scanner.feed(first)
    for block in blocks:
        scanner.feed(block)
    scanned = scanner.finish()
    return _read_lines(member, head, form, scanned)


def _read_document(
    member: Member, first: bytes, blocks: Iterator[bytes], form: Format, read: Callable[[str, str], Parsed], encoding: str
) -> ReadSource:
    data = bytearray(first)
    cut = False
    for block in blocks:
        if len(data) < form.max_bytes:
            data += block
        else:
            cut = True
    if cut:
        member.report(Diagnostic(member.path, None, Severity.WARNING,
                                 f"{member.path}: only the first {form.max_bytes} bytes were read",
                                 "a document this large is unusual; split it"))  # fmt: skip
    text = bytes(data).decode(encoding, "replace").removeprefix("\ufeff")
    parsed = read(text, member.path)
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    return _result(member, form.name, form.title, parsed, Scanned(lines=lines), 1.0, member.cut)


def _read_lines(member: Member, head: Head, form: Format | None, scanned: Scanned) -> ReadSource:
    kind = log.kind_of(head)
    parsed = log.read(scanned, member.path, kind.channel, DIALECTS)
    title, name = kind.title, form.name if form is not None else "text"
    if form is not None and form.samples is not None:
        table = form.samples(scanned, member.path, head)
        parsed = replace(
            parsed, events=(*table.events, *parsed.events) if form.name == log.FORMAT.name else table.events,
            samples=(*table.samples, *parsed.samples), diagnostics=(*table.diagnostics, *parsed.diagnostics),
            scope=table.scope.merged(parsed.scope),
        )  # fmt: skip
        title = form.title
    notes = []
    if scanned.long_lines:
        notes.append(f"{scanned.long_lines} overlong lines were cut")
    if scanned.bad_encoding:
        notes.append("some bytes are not UTF-8 and were replaced")
    if notes:
        member.report(Diagnostic(member.path, None, Severity.INFO, f"{member.path}: {'; '.join(notes)}"))
    reason = member.cut or ("no known log header in its first lines" if form is None else "")
    return _result(member, name, title, parsed, scanned, kind.known_share, reason)


def _result(
    member: Member, name: str, title: str, parsed: Parsed, scanned: Scanned, coverage: float | None, reason: str
) -> ReadSource:
    scope = owner(member.path).merged(parsed.scope)
    source = Source(
        member.path, name, title, member.size_bytes, member.sha256, scanned.lines, scope, member.mtime_s, coverage,
        reason=reason,
    )  # fmt: skip
    events = tuple(replace(event, scope=event.scope.merged(scope)) for event in parsed.events)
    return ReadSource(source, replace(parsed, events=events, scope=scope))


def _is_binary(data: bytes, encoding: str) -> bool:
    if encoding != "utf-8":
        return False
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in data)
    return odd > 0.1 * len(data)


def _without_common_top(found: list[ReadSource], bundle: Bundle) -> list[ReadSource]:
    """`incident-1/logs/x` → `logs/x` when everything lies in `incident-1/`: an archive and its folder read the same."""
    tops = {item.source.path.partition("/")[0] for item in found}
    if len(tops) != 1 or any("/" not in item.source.path for item in found):
        return found
    length = len(tops.pop()) + 1
    bundle.diagnostics[:] = [
        replace(d, source=d.source[length:], message=d.message.replace(d.source, d.source[length:], 1))
        if d.source[length:] else d
        for d in bundle.diagnostics
    ]  # fmt: skip
    return [_moved(item, item.source.path[length:]) for item in found]


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
