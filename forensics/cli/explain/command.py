"""`oomforensics explain`: the reasoning behind the answer, for a cause, a finding or a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import subjects, tables
from ..common import clear_errors, progress, say_diagnostics
from ..options import BundleOptions, bundle_options, display_tz, redact, zone_of

if TYPE_CHECKING:
    from ...pipeline import Reading
    from ...report import Report


@click.command(epilog="""\b
Examples:
  oomforensics explain bundle.tgz                    the verdict, its rivals
  oomforensics explain bundle.tgz gpu_oom.weights    why it lost, or won
  oomforensics explain bundle.tgz F12                how a finding was used
  oomforensics explain bundle.tgz vllm.log:812       what was made of a line
  oomforensics explain logs/ dmesg.txt first-cause --lang zh

Exit codes: 0 done, 2 usage, 3 nothing readable.
""", short_help="The reasoning behind the answer, for and against.")  # fmt: skip
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language.")
@display_tz
@redact
@partial(bundle_options, metavar="BUNDLE... [EVENT|CAUSE]")
def explain(paths: tuple[str, ...], bundle: BundleOptions, lang: str, display_tz: str, redact: str) -> None:
    """Show why the answer for BUNDLE is what it is, and what became of one EVENT or CAUSE.

    EVENT is a finding (F12), first-cause, or a place (file:line). Without one, the verdict and its rivals are
    explained: what decides, what supports, what contradicts, what is missing, and what would change the answer.
    """
    with clear_errors():
        from ... import pipeline
        from ...report.gate import Gate
        from ...report.view import short
        from . import wording

        zone = zone_of(display_tz, "--display-tz")
        inputs, subject = _split(paths)
        with progress() as hook:
            reading = pipeline.read(*inputs, options=bundle.pipeline(), progress=hook)
            report = pipeline.judge(reading)
        say_diagnostics(reading.diagnostics)
        gate = Gate(redact)
        members = gate.admit({"sources": [{"path": source.path} for source in reading.sources]}, report.seeds())
        ends = short(members) if tables.on_terminal(None) else {}
        shown: list[wording.Line] = []
        for document in _documents(reading, report, lang, subject):
            writer = wording.Writer(lang, zone, display_tz, ends)
            shown += [wording.Line(0, "")] if shown else []
            shown += writer.lines(gate.admit(document))
        wording.show(shown)


def _split(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """(bundles, subject): the last argument is a subject when it names no file."""
    *inputs, last = arguments
    if not inputs or last == "-" or Path(last).exists():
        return arguments, ""
    return tuple(inputs), last


def _documents(reading: Reading, report: Report, language: str, subject: str) -> Iterator[Mapping[str, Any]]:
    """One explanation, or one for each finding of a line. Raises `OptionError` for a subject that is none."""
    from .causes import Causes
    from .lines import Lines

    causes, lines = Causes(reading, report, language), Lines(reading, report, language)
    if not subject:
        yield causes.verdict()
        return
    if subject in reading.library.causes:
        yield causes.cause(subject)
        return
    place = subjects.PLACE.fullmatch(subject)
    if place is None:
        named = subjects.finding(report.diagnosis, subject) or subjects.first_cause(report.diagnosis, subject)
        yield lines.finding(named or subjects.unknown(reading, report.diagnosis, subject))
        return
    source, line = subjects.source(reading.sources, place["source"]), int(place["line"])
    events = subjects.at(reading.events, source, line)
    findings = [f for f in report.diagnosis.findings if subjects.covers(f.locator, source, line)]
    yield from (lines.finding(finding) for finding in findings)
    if not findings and events:
        yield lines.place(events[0])
    elif not findings:
        yield lines.quiet(source, line)
