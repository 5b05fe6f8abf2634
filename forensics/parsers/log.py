"""All line logs, read in one way: candidate lines → records → events.

Records come from `records.unwrap`. Assemblers join records of one channel into one event (a traceback, a kernel OOM
report); refiners give single messages a kind and typed fields. Every other candidate stays a `log` event, for the
signatures to judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..model import Event, Locator, Parsed, Samples, Scope
from ..scan import Line, Scanned, SeriesSpec, Window
from ..scan.scanner import EDGE_LINES
from ..sources import Format, Head
from . import (
    claims,
    continuations,
    examples,
    kubectl_lines,
    mentions,
    newest_first,
    output,
    prefixes,
    prose,
    retold,
    test_runs,
)
from .envelopes.kernel import is_bare
from .records import Record, unwrap

MAX_RECORD_CHARS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Assembled:
    """Events made of several records, and the lines they used up."""

    events: tuple[Event, ...]
    used: frozenset[int]
    """Line numbers that no longer stand for themselves."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the messages of one channel are understood. One module a dialect."""

    channel: str
    anchors: tuple[str, ...] = ()
    """Literals of lines that the dialect needs, beyond those of signatures."""
    windows: tuple[Window, ...] = ()
    series: tuple[SeriesSpec, ...] = ()
    assemble: Callable[[Sequence[Record], str], Assembled] | None = None
    """(records of this channel in file order, source path)."""
    refine: Callable[[Event], Event] | None = None
    """Gives a message its kind and fields; returns the event itself when it has nothing to add."""
    samples: Callable[[Scanned, str], Sequence[Samples]] | None = None
    """Rows of the `series` → samples."""


def combined(channel: str, *dialects: Dialect) -> Dialect:
    """One dialect for a channel where several speakers may be heard; the first that understands a line has it."""

    def assemble(records: Sequence[Record], source: str) -> Assembled:
        events: list[Event] = []
        used: frozenset[int] = frozenset()
        for dialect in dialects:
            if dialect.assemble is not None:
                found = dialect.assemble([record for record in records if record.line not in used], source)
                events += found.events
                used |= found.used
        return Assembled(tuple(events), used)

    def refine(event: Event) -> Event:
        for dialect in dialects:
            if dialect.refine is not None and event.kind == "log":
                event = dialect.refine(event)
        return event

    return Dialect(
        channel,
        tuple(anchor for dialect in dialects for anchor in dialect.anchors),
        tuple(window for dialect in dialects for window in dialect.windows),
        tuple(spec for dialect in dialects for spec in dialect.series),
        assemble,
        refine,
    )


def event_of(record: Record, source: str, channel: str = "") -> Event:
    """A record as a plain event."""
    return Event(
        locator=Locator(source, record.line, record.line),
        kind="log",
        channel=channel or record.channel or "plain",
        text=record.text[:MAX_RECORD_CHARS],
        stamps=record.stamps,
        scope=record.scope,
        level=record.level,
        count=record.count,
        last_line=record.last_line or None,
        raw=record.raw[:MAX_RECORD_CHARS],
        fields={name: value for name, value in (("logger", record.logger), ("ident", record.ident)) if value},
    )


def read(scanned: Scanned, source: str, default_channel: str, dialects: Mapping[str, Dialect]) -> Parsed:
    """Events and samples of a scanned line log."""
    output = default_channel == "container"
    named = prefixes.of_lines(tuple(line.text for line in scanned.candidates if line.number <= EDGE_LINES))

    def peeled(line: Line) -> Record:
        if named is not None:
            return named.unwrap(line.text, line.number, line.count, line.last)
        return unwrap(line.text, line.number, line.count, line.last, output)

    first = [peeled(line) for line in scanned.candidates]
    backwards = newest_first.is_newest_first(newest_first.times_of(first))
    if backwards:
        first = [peeled(line) for line in newest_first.turned(scanned.candidates)]
    records = prefixes.with_headings(_join_partials(continuations.settle(first)))
    records = mentions.settle(retold.settle(kubectl_lines.settle(records)), source)
    records = test_runs.settle(claims.settle(records, default_channel, source))
    told = _examples(records) if default_channel == "plain" else frozenset()
    records = [replace(r, channel="notes") if r.line in told else r for r in _settle_channels(records, default_channel)]
    events: list[Event] = []
    used: set[int] = set()
    by_channel: dict[str, list[Record]] = {}
    for record in records:
        by_channel.setdefault(record.channel, []).append(record)
    for channel, group in by_channel.items():
        assemble = dialects[channel].assemble if channel in dialects else None
        if assemble is not None:
            assembled = assemble(group, source)
            events += assembled.events
            used |= assembled.used
    for record in records:
        if record.line in used or not record.text.strip():
            continue
        event = event_of(record, source)
        if record.line in told:
            events.append(replace(event, kind="example"))
            continue
        refine = dialects[record.channel].refine if record.channel in dialects else None
        events.append(refine(event) if refine else event)
    if backwards:
        events = newest_first.restored(events, scanned.candidates)
    events.sort(key=lambda event: (event.locator.line, event.locator.line_end))
    measured = dialects.values() if any(rows.lines for rows in scanned.series) else ()
    samples = [s for dialect in measured if dialect.samples for s in dialect.samples(scanned, source)]
    if backwards:
        samples = [newest_first.placed_rows(s, lambda number: number, turn=True) for s in samples]
    return Parsed(tuple(events), tuple(samples), (), common_scope(records))


def _examples(records: Sequence[Record]) -> frozenset[int]:
    """Numbers of the lines that tell what may happen, not what did; those with a header were printed."""
    lines: list[str] = []
    numbers: list[int] = []
    for record in records:
        if numbers and record.line != numbers[-1] + 1:  # neighbours in the scan need not be neighbours in the file
            lines.append("")
            numbers.append(record.line - 1)
        lines.append("" if record.envelopes else record.text[: examples.MAX_CHARS])
        numbers.append(record.line)
    return frozenset(numbers[index] for index in examples.in_lines(lines))


def _join_partials(records: Iterable[Record]) -> list[Record]:
    """CRI splits long lines: `P` pieces belong to the `F` piece that follows."""
    joined: list[Record] = []
    for record in records:
        if joined and joined[-1].partial and record.line == joined[-1].line + 1 + joined[-1].raw.count("\n"):
            first = joined.pop()
            text = first.text + record.text
            joined.append(replace(first, text=text, raw=f"{first.raw}\n{record.raw}", partial=record.partial))
        else:
            joined.append(record)
    return joined


def _settle_channels(records: list[Record], default_channel: str) -> list[Record]:
    """Lines without a header of their own belong to whoever speaks in their stream.

    A container's output is the engine's when any line of the same identifier carries an engine header. That a test
    printed one does not make the rest an engine's.
    """
    engines = {_voice(r) for r in records if r.channel == "engine"}
    if default_channel == "engine" and not engines and any(r.channel == test_runs.CHANNEL for r in records):
        default_channel = "plain"
    settled = []
    for record in records:
        channel = record.channel
        if not channel and default_channel == "kernel" and _is_remark(record.text):
            channel = "notes"
        if channel in ("", "container", "host") and (_voice(record) in engines or (not channel and not record.ident)):
            foreign = default_channel == "plain" and not any(_voice(record)) and is_bare(record.text)
            channel = "engine" if _voice(record) in engines and not foreign else default_channel
        channel = channel or default_channel
        settled.append(replace(record, channel=channel) if channel != record.channel else record)
    return settled


def _is_remark(text: str) -> bool:
    """What somebody wrote into a log of the kernel, which never begins a line so: `# dmesg of the other node`."""
    return text.startswith("# ") and prose.is_prose(text)


def _voice(record: Record) -> tuple[str, str, str]:
    return (record.scope.pod, record.scope.container, record.ident)


def common_scope(records: Sequence[Record]) -> Scope:
    """What all records agree on: the owner of the whole file.

    A file in which the machine speaks beside one container, as an export of a node's logs, is not that container's.
    """
    values: dict[str, set[str]] = {"host": set(), "pod": set(), "container": set(), "container_id": set()}
    for record in records:
        for name, seen in values.items():
            value = getattr(record.scope, name)
            if value and not (name == "host" and record.scope.process):  # Ray prints the worker's address there
                seen.add(value)
    owned = [name for name in values if name != "host"]
    if any(record.machine and not any(getattr(record.scope, name) for name in owned) for record in records):
        values = {"host": values["host"]}
    return Scope.from_parts({name: next(iter(seen)) for name, seen in values.items() if len(seen) == 1})


@dataclass(frozen=True, slots=True)
class LogKind:
    """What the head of a line log looks like."""

    title: str
    channel: str
    """Channel of lines without a header."""
    known_share: float


_CHANNEL_TITLES = {
    "engine": "inference engine log",
    "kernel": "kernel log",
    "kubelet": "kubelet log",
    "runtime": "container runtime log",
    "ray": "Ray log",
    "container": "container output",
    "systemd": "systemd journal",
    "oomd": "userspace OOM killer log",
    "host": "system log",
    "clock": "time service log",
}
_ENVELOPE_TITLES = {
    "cri": "CRI", "iso": "ISO stamps", "json": "JSON lines", "labels": "logcli", "kubectl-prefix": "kubectl --prefix",
    "compose": "docker compose", "stern": "stern", "gitlab": "GitLab job",
    "journal-short": "journalctl short", "journal-full": "journalctl short-full",
    "journal-iso": "journalctl short-iso", "journal-unix": "journalctl short-unix",
    "journal-monotonic": "journalctl short-monotonic", "rfc5424": "RFC 5424", "dmesg": "dmesg",
    "dmesg-ctime": "dmesg -T", "dmesg-iso": "dmesg iso", "dmesg-minute": "dmesg -H", "dmesg-delta": "dmesg -H",
    "dmesg-names": "dmesg -x", "kmsg": "/dev/kmsg", "talos": "talosctl dmesg",
}  # fmt: skip


MIN_BARE = 10
"""Messages of the kernel or the service manager without a header that tell `journalctl -o cat` from notes."""


def _title_of_text(head: Head) -> str:
    if output.ends_badly(head):
        return "program output"
    return "notes" if prose.is_notes(head.path, head.lines) else "text"


@lru_cache(maxsize=1)
def kind_of(head: Head) -> LogKind:
    """Describe a line log from its head; an unknown text has share 0 and channel `plain`."""
    named = prefixes.of_lines(head.lines[:EDGE_LINES])
    dump = head.text.lstrip().startswith(kubectl_lines.SECTION_START)
    lines = (
        unwrap(line, number, output=dump) if named is None else named.unwrap(line, number)
        for number, line in enumerate(head.lines, 1)
    )
    records = [record for record in continuations.settle(lines) if record.raw.strip()]
    if not records:
        return LogKind("text", "plain", 0.0)
    known = [record for record in records if record.envelopes]
    channels = Counter(record.channel for record in known if record.channel)
    envelopes = Counter(record.envelopes[0] for record in known)
    share = len(known) / len(records)
    bare = sum(not record.envelopes and is_bare(record.text) for record in records)
    if bare > max(len(known), 0.3 * len(records)):
        return LogKind("kernel log (without times)", "kernel", bare / len(records))
    if not known and bare >= MIN_BARE and bare >= 0.15 * len(records):  # journalctl -o cat
        return LogKind("messages of several programs", "plain", bare / len(records))
    if not known and records[0].text.startswith(kubectl_lines.DEFAULTED):
        return LogKind("container output", "container", 1 / len(records))
    if not known:
        return LogKind(_title_of_text(head), "plain", 0.0)
    wrapped = envelopes.most_common(1)[0][0]
    journal = wrapped.startswith("journal") or wrapped == "rfc5424"
    main = "engine" if channels["engine"] and not journal else channels.most_common(1)[0][0] if channels else "plain"
    if bare > 2 and main != "kernel" and not journal:  # journalctl -o cat: nothing says who speaks
        return LogKind("messages of several programs", "plain", share)
    title = "journal or syslog" if journal and len(channels) > 1 else _CHANNEL_TITLES.get(main, "log")
    shape = _ENVELOPE_TITLES.get(wrapped)
    default = (
        main if main in ("engine", "kernel", "kubelet", "runtime", "ray", "container") and not journal else "plain"
    )
    return LogKind(f"{title} ({shape})" if shape else title, default, share)


def sniff(head: Head) -> int:
    """Recognise a line log by its envelopes: the more lines carry one, the surer."""
    kind = kind_of(head)
    return round(20 + 40 * kind.known_share) if kind.known_share > 0.02 else 0


FORMAT = Format("log", "line log", sniff)
