"""`oomforensics timeline`: all events on one axis, with what is known about their times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import subjects, tables, timeline_table
from .common import clear_errors, progress, refuse_inputs, say_diagnostics, write
from .options import BundleOptions, bundle_options, display_tz, instant_of, output_file, redact, zone_of

if TYPE_CHECKING:
    from ..model import Event, Finding
    from ..pipeline import Reading
    from ..report import Report
    from ..timeline.query import Key, Mark, Query

FORMATS = ("table", "csv", "jsonl", "parquet", "timesketch")
WINDOW = "10m"
_USES = ("root", "decisive", "supporting", "consequence", "decoy", "")
"""From what decided the verdict to what was not used."""


@click.command(epilog="""\b
Examples:
  oomforensics timeline bundle.tgz --around first-cause --display-tz +08:00
  oomforensics timeline bundle.tgz --around F12 --window 90s
  oomforensics timeline logs/ --source 'journal*' --since 2026-11-29T21:00Z
  oomforensics timeline logs/ --severity error --format csv -o errors.csv
  oomforensics timeline bundle.tgz --format parquet -o events.parquet
  oomforensics timeline bundle.tgz --format timesketch -o events.jsonl

± is the half width of the interval in which an event lies. Neighbours under one bracket overlap: their order is
not provable. Times in a filter are compared with the middle of the interval; with such a filter, events without
a time are left out. --format timesketch writes JSON lines, and CSV into a file that ends in .csv.

Exit codes: 0 done, 2 usage, 3 nothing readable.
""", short_help="All events in order, each with its uncertainty.")  # fmt: skip
@click.option("--since", metavar="TIME", help="First instant (ISO 8601; the display zone where it names none).")
@click.option("--until", metavar="TIME", help="Last instant.")
@click.option("--around", metavar="EVENT",
              help="A finding (F12), a cause, first-cause, or a place such as vllm.log:812.")  # fmt: skip
@click.option("--window", metavar="SPAN", default=WINDOW, show_default=True,
              help="With --around: so much on either side.")  # fmt: skip
@click.option("--source", "globs", multiple=True, metavar="GLOB", help="Only files whose path or name fits.")
@click.option("--kind", "kinds", multiple=True, help="Only events of this kind, such as kernel_oom or traceback.")
@click.option("--channel", "channels", multiple=True, help="Only from this speaker, such as engine, kernel or k8s.")
@click.option("--severity", type=click.Choice(["info", "notice", "warning", "error", "critical"]), default="info",
              show_default=True, help="At least this.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@output_file
@display_tz
@redact
@bundle_options
def timeline(
    paths: tuple[str, ...],
    bundle: BundleOptions,
    since: str | None,
    until: str | None,
    around: str | None,
    window: str,
    globs: tuple[str, ...],
    kinds: tuple[str, ...],
    channels: tuple[str, ...],
    severity: str,
    form: str,
    output: Path | None,
    display_tz: str,
    redact: str,
) -> None:
    """Show all events of BUNDLE in order, each with its uncertainty and why its time is believed."""
    with clear_errors():
        from .. import pipeline
        from ..errors import OptionError
        from ..model import Severity
        from ..report.gate import Gate
        from ..report.view import short
        from ..timeline import query, rows

        refuse_inputs([output], paths)
        zone = zone_of(display_tz, "--display-tz")
        if form == "parquet" and tables.on_terminal(output):
            raise OptionError("--format parquet is binary; write it to a file with -o events.parquet")
        wanted = query.Query(
            None if since is None else instant_of(since, "--since", zone),
            None if until is None else instant_of(until, "--until", zone),
            globs, kinds, channels, Severity(severity),
        )  # fmt: skip
        reach_s = _span(window)
        with progress() as hook:
            reading = pipeline.read(*paths, options=bundle.pipeline(), progress=hook)
            report = pipeline.judge(reading)
        say_diagnostics(reading.diagnostics)
        if around is not None:
            wanted = _around(wanted, reading, report, around, reach_s)
        marks = _marks(report)
        chosen = list(query.select(reading.events, wanted, marks))
        _say_left_out(reading, wanted, chosen)
        built = list(rows.build(chosen, marks, zone, display_tz, _quoting(report)))
        members = [{"path": source.path} for source in reading.sources]
        admitted = Gate(redact).admit({"rows": built, "sources": members}, report.seeds())
        shown = [_with_message(row) for row in admitted["rows"]]
        if form == "table":
            timeline_table.show(shown, zone, display_tz, short(admitted), output)
        else:
            write(_exported(shown, form, output), output)


def _span(value: str) -> float:
    from .. import stamps
    from ..errors import OptionError

    found = stamps.duration(value) or stamps.duration(f"{value}s")
    if found is None or found[0] <= 0:
        raise OptionError(f"--window {value}: expected a span such as 90s, 10m or 1h30m")
    return found[0]


def _around(wanted: Query, reading: Reading, report: Report, name: str, reach_s: float) -> Query:
    """The query with the window around an event; around an event without a time, the file it stands in."""
    from dataclasses import replace

    event = subjects.anchor(reading, report.diagnosis, name)
    moment = event.time.utc_s
    if moment is None:
        click.echo(f"oomforensics: {event.locator} has no time in UTC; showing its file instead", err=True)
        return replace(wanted, sources=(*wanted.sources, event.locator.source))
    since = moment - reach_s if wanted.since_s is None else max(wanted.since_s, moment - reach_s)
    until = moment + reach_s if wanted.until_s is None else min(wanted.until_s, moment + reach_s)
    return replace(wanted, since_s=since, until_s=until)


def _marks(report: Report) -> Mapping[Key, Mark]:
    """What the analysis says about each event: all findings there, led by the one that mattered most."""
    from ..timeline.query import SEVERITIES, Mark, key

    grouped: dict[Key, list[Finding]] = {}
    for finding in report.diagnosis.findings:
        grouped.setdefault(key(finding.event), []).append(finding)
    marks = {}
    for where, found in grouped.items():
        found.sort(key=lambda f: (_USES.index(report.used_as(f)), f.signature.startswith("derived.")))
        worst = max((finding.severity for finding in found), key=SEVERITIES.index)
        lead = found[0]
        use = report.used_as(lead) or lead.role.value
        marks[where] = Mark(tuple(f.id for f in found), report.title_of(lead, "en"), use, worst)
    return marks


def _quoting(report: Report) -> Callable[[Event], Mapping[str, Any]]:
    from ..report import contract

    return lambda event: {**report.quoted(event), "summary": event.text, "fields": contract.plain(event.fields)}


def _with_message(row: Mapping[str, Any]) -> dict[str, Any]:
    from ..timeline.rows import COLUMNS

    full = {**row, "message": row["summary"] or row["quote"]}
    return {name: full[name] for name in COLUMNS if full.get(name) not in (None, "", {})}


def _say_left_out(reading: Reading, wanted: Query, chosen: Sequence[Event]) -> None:
    """Undated events that a time filter dropped, and what could be asked for when nothing fits."""
    from dataclasses import replace

    from ..timeline import query

    if wanted.timed:
        always = replace(wanted, since_s=None, until_s=None)
        undated = sum(e.time.utc_s is None for e in query.select(reading.events, always, {}))
        if undated:
            click.echo(f"oomforensics: {undated} events without a time are left out", err=True)
    if not chosen:
        kinds = sorted({event.kind for event in reading.events})
        channels = sorted({event.channel for event in reading.events})
        click.echo(f"oomforensics: no event fits; kinds: {', '.join(kinds)}; channels: {', '.join(channels)}", err=True)


def _exported(rows: Sequence[Mapping[str, Any]], form: str, output: Path | None) -> str | bytes:
    from ..timeline import frame
    from ..timeline.rows import flat, timesketch

    if form == "parquet":
        return frame.parquet([flat(row) for row in rows])
    if form == "csv":
        return frame.csv([_harmless(flat(row)) for row in rows])
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    imported = [row for row in map(timesketch, rows) if row is not None]
    left = len(rows) - len(imported)
    if left:
        click.echo(f"oomforensics: {left} events without a time are left out: Timesketch cannot hold them", err=True)
    if output is not None and output.suffix == ".csv":
        return frame.csv([_harmless(row) for row in imported])
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in imported)


def _harmless(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose cells no spreadsheet takes for formulas."""
    from ..report import escape

    return {name: None if value is None else escape.csv(value) for name, value in row.items()}
