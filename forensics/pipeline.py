"""The drawing of ARCHITECTURE.md as code: each arrow is one call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from . import __version__, clocks, ingest, resources, timeline
from .bundle import BLOCK_BYTES, Budget, Bundle
from .clocks import ClockOptions
from .diagnosis import diagnose
from .diagnosis.case import DERIVED
from .diagnosis.doubt import doubted
from .errors import NothingReadableError
from .model import Diagnostic, Event, Finding, Role, Samples, Severity, Source
from .parsers import node_problems, prose
from .parsers.notes import CHANNEL, is_named
from .parsers.records import APPLICATIONS
from .regexes import lazy_regex
from .report import BundleInfo, Report
from .report.text import derived_title
from .signatures import Hit, Library, Matcher, load, load_over
from .stopwatch import Stopwatch


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set; the defaults fit most bundles."""

    clocks: ClockOptions = field(default_factory=ClockOptions)
    budget: Budget = field(default_factory=Budget)
    patterns: Path | None = None
    """A folder of signatures and causes that add to the built-in library, or replace those with the same id."""
    prefilter: bool = True
    """False makes the scan keep every line: slow, and the report must be the same."""
    block_bytes: int = BLOCK_BYTES
    """How much of a member is read at once; the report must not depend on it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a bundle says, before anything is concluded from it."""

    bundle: BundleInfo
    sources: tuple[Source, ...]
    """With their clocks."""
    events: tuple[Event, ...]
    """All of them, in timeline order."""
    samples: tuple[Samples, ...]
    findings: tuple[Finding, ...]
    """All signature hits, in timeline order; they get their ids in the diagnosis."""
    library: Library
    diagnostics: tuple[Diagnostic, ...]
    altered: bool = False
    """True when a checksum says that not everything that was read is what was packed."""

    @property
    def readable(self) -> bool:
        """False when no member held anything that can be analysed."""
        return any(source.format not in ("empty", "unrecognised") for source in self.sources)


def analyze(
    *paths: str | Path,
    options: Options = Options(),
    progress: ingest.ProgressHook | None = None,
    stopwatch: Stopwatch | None = None,
) -> Report:
    """Analyse one or more bundles, folders, log files or `-`, as one incident.

    Raises `InputError` for a path that cannot be used, `NothingReadableError` when no member held anything readable,
    `LibraryError` for a broken pattern library.
    """
    stopwatch = stopwatch or Stopwatch()
    reading = read(*paths, options=options, progress=progress, stopwatch=stopwatch)
    with stopwatch.stage("diagnosis"):
        return judge(reading)


def read(
    *paths: str | Path,
    options: Options = Options(),
    progress: ingest.ProgressHook | None = None,
    stopwatch: Stopwatch | None = None,
) -> Reading:
    """Read everything, solve the clocks, find the signatures. Raises as `analyze`, but not for unreadable members."""
    stopwatch = stopwatch or Stopwatch()
    with stopwatch.stage("library"):
        library = load_library(options.patterns)
    bundle = Bundle(tuple(map(str, paths)), options.budget)
    found = ingest.read_bundle(
        bundle, library.anchors() | set(clocks.ANCHORS), options.prefilter, progress, options.block_bytes, stopwatch
    )
    with stopwatch.stage("clocks"):
        solved = clocks.solve([(item.source, item.parsed) for item in found], options.clocks)
        ordered = tuple(timeline.build(solved.events))
    stopwatch.count("clocks", events=len(ordered), points=sum(len(samples.values) for samples in solved.samples))
    matcher = Matcher(library)
    with stopwatch.stage("signatures"):
        ordered = node_problems.with_kills(pasted(matcher, ordered))
        findings = find(matcher, ordered)
    stopwatch.count("signatures", findings=len(findings))
    sources = tuple(replace(item.source, clocks=tuple(solved.clocks.get(item.source.path, ()))) for item in found)
    diagnostics = [*bundle.diagnostics, *solved.diagnostics, *matcher.diagnostics]
    diagnostics += [d for item in found for d in item.parsed.diagnostics]
    info = BundleInfo(bundle.name, _bundle_digest(sources), _captured_at(sources), "")
    return Reading(
        info, sources, ordered, tuple(solved.samples), findings, library, _sorted(diagnostics), bundle.altered
    )


def judge(reading: Reading) -> Report:
    """What a reading means. Raises `NothingReadableError`."""
    if not reading.readable:
        raise NothingReadableError(_nothing(reading))
    findings, library = reading.findings, reading.library
    diagnosis = diagnose(reading.sources, reading.events, reading.samples, findings, library)
    return Report(
        __version__,
        reading.bundle,
        doubted(diagnosis) if reading.altered else diagnosis,
        reading.sources,
        _worth_showing(reading.events, findings),
        reading.diagnostics,
        _titles(library),
    )


def load_library(root: Path | None = None) -> Library:
    """The pattern library with its derived findings known; the signatures and causes below `root` are laid over it.

    Raises `LibraryError` with all problems of a broken folder.
    """
    return _built_in() if root is None else load_over(_built_in(), root, DERIVED)


@cache
def _built_in() -> Library:
    """Read once a process: reading takes longer than most bundles, and the library never changes."""
    return load(resources.patterns(), DERIVED, trusted=True)


_RAISED = lazy_regex(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt): \S")
"""The last line of a traceback."""
_LEAD = lazy_regex(
    r"\s*(?:\S+:\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL [A-Z]+ )?(?:(?:[\w./<>()-]+(?: [\w./<>()-]+){0,2}: |Value error, ))*"
)
"""How programs begin a message: `vllm serve: error: `, `init: `, pydantic, NCCL with host, process, thread, rank."""
_OWN_WORDS, _OWN_SHARE = 5, 0.8
"""A message without a number is a program's own when it has so many words, and is so much of its line."""


def pasted(matcher: Matcher, events: Sequence[Event]) -> tuple[Event, ...]:
    """The events; lines of notes that are messages of a program, word for word, are pasted text, not talk.

    Programs print sentences as well: what tells theirs is a signature of a fault that the line consists of.
    """
    notes = [replace(event, channel="plain") for event in events if event.channel == CHANNEL and event.kind == "log"]
    lines = {
        event.locator for event, hit in matcher.hits_in(notes)
        if hit.signature.role not in (Role.BENIGN, Role.CONTEXT) and _is_own(event, hit) and not prose.talks(event.text)
    }  # fmt: skip
    if not lines:
        return tuple(events)
    return tuple(replace(e, channel="plain") if e.channel == CHANNEL and e.locator in lines else e for e in events)


def find(matcher: Matcher, events: Iterable[Event]) -> tuple[Finding, ...]:
    """All signature hits, in timeline order.

    A text without any header, beside real sources or sentences, is hearsay (notes, a README), unless it is clearly some
    program's output. It is a quotation beside an engine's own log; where there is none, an error with its numbers, or
    word for word as the program prints it, is the best that is known.
    """
    events = tuple(events)
    channels = {event.channel for event in events}
    structured = channels != {"plain"}
    heard = not channels & APPLICATIONS
    hits = list(matcher.hits_in(events))
    programs = _program_outputs(hits) if structured else frozenset()
    outputs = _outputs(events, heard) if structured else frozenset()
    found = []
    for event, hit in hits:
        own = _is_own(event, hit)
        source = event.locator.source
        told = structured and event.channel == "plain" and source not in programs and not (own and source in outputs)
        numbers = any(type(value) in (int, float) for value in hit.fields.values())
        verbatim = own or numbers or prose.is_logged(event.text)
        hearsay = told and heard and verbatim
        s, quoted = hit.signature, hit.quoted or (told and not hearsay)
        found.append(
            Finding("", s.id, s.title, s.role, s.severity, event, hit.fields, quoted=quoted, hearsay=hearsay)
        )
    return tuple(found)


def _is_own(event: Event, hit: Hit) -> bool:
    """Whether a hit stands where the program that prints the message puts it, and nobody added words of their own."""
    if hit.quoted:
        return False
    text = event.text
    if _RAISED.match(text):
        return True
    lead = _LEAD.match(text)
    begins = lead is not None and hit.start <= lead.end()
    words, share = len(text[hit.start : hit.end].split()), (hit.end - hit.start) / max(1, len(text.strip()))
    numbers = any(type(value) in (int, float) for value in hit.fields.values())
    return (begins or share >= _OWN_SHARE) and (numbers or words >= _OWN_WORDS)


def _program_outputs(hits: Iterable[tuple[Event, Hit]]) -> frozenset[str]:
    """Sources without headers that are a program's output all the same: a traceback, or several different messages."""
    messages: dict[str, set[str]] = {}
    tracebacks: set[str] = set()
    for event, hit in hits:
        if event.channel == "plain" and not hit.quoted:
            messages.setdefault(event.locator.source, set()).add(hit.signature.id)
            if event.kind == "traceback":
                tracebacks.add(event.locator.source)
    return frozenset(tracebacks | {source for source, seen in messages.items() if len(seen) >= 3})


def _outputs(events: Iterable[Event], heard: bool) -> frozenset[str]:
    """Sources that are a program's output by their names; where no application is heard, also those without talk."""
    texts: dict[str, list[str]] = {}
    for event in events:
        if event.channel in ("plain", CHANNEL):
            texts.setdefault(event.locator.source, []).append(event.text)
    return frozenset(
        source for source, lines in texts.items()
        if not is_named(source)
        and (prose.is_output(source) or (heard and 2 * sum(map(prose.is_prose, lines)) <= len(lines)))
    )  # fmt: skip


_SHOWN_KINDS = frozenset({
    "kernel_oom", "container_started", "container_terminated", "container_kill", "unit_exit", "docker_state", "xid",
    "traceback", "engine_args", "k8s_event",
})  # fmt: skip


def _worth_showing(events: Sequence[Event], findings: Sequence[Finding]) -> tuple[Event, ...]:
    marked = {f.locator for f in findings if f.role is not Role.BENIGN}
    failed = {(event.locator.source, event.fields["status"]): event for event in reversed(events) if _is_failure(event)}
    marked |= {event.locator for event in failed.values()}  # the first of each kind and log
    return tuple(event for event in events if event.locator in marked or event.kind in _SHOWN_KINDS)


def _is_failure(event: Event) -> bool:
    status = event.fields.get("status")
    return event.kind == "access" and isinstance(status, int) and status >= 500


def _titles(library: Library) -> dict[str, tuple[str, str]]:
    titles = {s.id: (s.title, s.title_zh) for s in library.signatures.values()}
    return titles | {name: (derived_title(name, "en"), derived_title(name, "zh")) for name in DERIVED}


def _bundle_digest(sources: Sequence[Source]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{source.path}\0{source.sha256}\n".encode())
    return digest.hexdigest()


def _captured_at(sources: Sequence[Source]) -> float | None:
    known = [c.captured_at_s for s in sources for c in s.clocks if c.captured_at_s is not None]
    return max(known) if known else None


def _nothing(reading: Reading) -> str:
    told = [d for d in reading.diagnostics if d.severity in (Severity.WARNING, Severity.ERROR)]
    problems = [diagnostic.message for diagnostic in told]
    silent = [source for source in reading.sources if source.path not in {d.source for d in told}]
    problems += [f"{source.path}: {source.reason or source.title}" for source in silent]
    shown = "; ".join(problems[:5]) or "no files"
    return f"nothing readable in {reading.bundle.name}: {shown}. Try a folder, a .tar.gz, or a log file in text form."


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(sorted(set(diagnostics), key=lambda d: (d.source, d.line or 0, d.message)))
