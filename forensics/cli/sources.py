"""`oomforensics sources`: what the bundle holds, file by file, and what was understood of it."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import tables
from .common import UNREADABLE, clear_errors, progress, refuse_inputs, say_diagnostics, write
from .options import BundleOptions, bundle_options, output_file, redact
from .tables import Cell, Column

if TYPE_CHECKING:
    from ..pipeline import Reading

VAGUE_S = 60.0
"""A span less sure than this is marked with `~`."""
VERDICTS = ("exact", "solved", "assumed", "refused")
"""Of a clock, best first."""


@click.command(epilog="""\b
Examples:
  oomforensics sources bundle.tar.gz
  oomforensics sources logs/ dmesg.txt --tz 'dmesg*=Asia/Shanghai'
  oomforensics sources bundle.tgz --format json | jq '.sources[].clock'

Coverage is the share of lines that were understood or knowingly skipped. ~ marks a span that is not sure to the
minute, ≈ an owner that follows from arguments, times or names.

Exit codes: 0 done, 2 usage, 3 nothing readable.
""", short_help="What each file is, whose it is, and its clock.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@output_file
@redact
@bundle_options
def sources(paths: tuple[str, ...], bundle: BundleOptions, form: str, output: Path | None, redact: str) -> None:
    """Show every file of BUNDLE: its format, owner, lines, time span, coverage and clock.

    Unrecognised files are listed with the reason.
    """
    with clear_errors():
        from .. import pipeline
        from ..report.gate import Gate

        refuse_inputs([output], paths)
        with progress() as hook:
            reading = pipeline.read(*paths, options=bundle.pipeline(), progress=hook)
        say_diagnostics(reading.diagnostics)
        document = Gate(redact).admit(_document(reading), _names(reading))
        if form == "json":
            write(json.dumps(document, ensure_ascii=False, indent=1) + "\n", output)
        else:
            _show(document, output)
        if not reading.readable:
            click.echo("oomforensics: nothing readable in any of these files", err=True)
            sys.exit(UNREADABLE)


def _document(reading: Reading) -> dict[str, Any]:
    from .. import __version__
    from ..report import contract
    from ..report.model import SCHEMA_VERSION

    spans, joined = _spans(reading), _joined(reading)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "oomforensics", "version": __version__},
        "bundle": {
            "name": reading.bundle.name,
            "sha256": reading.bundle.sha256,
            "captured_at": contract.iso(reading.bundle.captured_at_s),
        },
        "sources": [
            {**contract.source(source), **spans[source.path], "joined": joined.get(source.path)}
            for source in reading.sources
        ],
    }


def _names(reading: Reading) -> Iterator[tuple[str, str]]:
    """(kind, name) of everything that strict redaction renames."""
    yield "bundle", reading.bundle.name
    yield from (("file", source.path) for source in reading.sources)
    for scope in dict.fromkeys([*(s.scope for s in reading.sources), *(e.scope for e in reading.events)]):
        yield from (("pod", scope.pod), ("host", scope.host), ("namespace", scope.namespace))


def _joined(reading: Reading) -> Mapping[str, dict[str, str]]:
    """Path → the entity that a file without an owner was found to belong to, and what gave it away."""
    from ..diagnosis import placing

    known = placing.build(reading.events, reading.samples)
    reasons = {join.left: join.reason for join in known.joins} | {join.right: join.reason for join in known.joins}
    found = {}
    for source in reading.sources:
        entity = known.name_of(source.scope, source.path)
        reason = reasons.get(f"file:{source.path}")
        if reason and not entity.startswith("file:"):
            found[source.path] = {"entity": entity, "reason": reason}
    return found


def _spans(reading: Reading) -> Mapping[str, dict[str, Any]]:
    """Path → number of events, first and last instant of its events and measured points, and how sure they are."""
    from ..report import contract

    counts: dict[str, int] = defaultdict(int)
    moments: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in reading.events:
        counts[event.locator.source] += 1
        if event.time.utc_s is not None:
            moments[event.locator.source].append((event.time.utc_s, event.time.uncertainty_s))
    for samples in reading.samples:
        known = [stamp for stamp in samples.stamps if math.isfinite(stamp)]
        if known:
            moments[samples.source] += [(min(known), 0.0), (max(known), 0.0)]

    def span(path: str) -> dict[str, Any]:
        found = moments.get(path)
        first, last = (min(found), max(found)) if found else ((None, 0.0), (None, 0.0))
        return {
            "events": counts[path],
            "first_utc": contract.iso(first[0]),
            "last_utc": contract.iso(last[0]),
            "uncertainty_s": contract.rounded(max(first[1], last[1])) if found else None,
        }

    return {source.path: span(source.path) for source in reading.sources}


COLUMNS = (
    Column("file", least=12), Column("format", least=10), Column("owner", least=8),
    Column("lines", right=True, whole=True), Column("span, UTC", least=10), Column("coverage", right=True),
    Column("clock", least=10),
)  # fmt: skip
NARROW = (
    Column("file, format, owner"), Column("lines", right=True, whole=True), Column("span in UTC, clock", least=30),
)  # fmt: skip
FULL_WIDTH = 160
"""Columns of a terminal from which each fact has its own column."""


def _show(document: Mapping[str, Any], output: Path | None) -> None:
    rows = [_row(source) for source in document["sources"]]
    if not tables.on_terminal(output):
        turned = [[*row[1:], row[0]] for row in rows]  # paths last: they are as long as they like
        write(tables.plain((*COLUMNS[1:], COLUMNS[0]), turned), output)
        return
    unread = sum(source["format"] == "unrecognised" for source in document["sources"])
    note = f"{len(rows)} files, {unread or 'none'} unrecognised."
    if any(source["joined"] for source in document["sources"]):
        note += " ≈ owners follow from arguments, times or names."
    if shutil.get_terminal_size().columns < FULL_WIDTH:
        tables.draw(NARROW, [_narrow(row) for row in rows], note=note)
    else:
        tables.draw(COLUMNS, rows, note=note)


def _narrow(row: Sequence[Cell]) -> list[Cell]:
    """Seven facts in three columns."""
    path, form, owner, lines, span, coverage, clock = row
    whose = "" if owner.text == "-" else owner.text.replace("\n", ", ")
    return [
        Cell(path.text, path.style, "\n".join(filter(None, (form.text, whose)))),
        Cell(lines.text, coverage.style, coverage.text),
        Cell(span.text, clock.style, "" if clock.text == "-" else clock.text),
    ]


def _row(source: Mapping[str, Any]) -> list[Cell]:
    unread = source["format"] == "unrecognised"
    form = source["title"] if source["format"] != "unrecognised" else "unrecognised"
    reason = f": {source['reason']}" if source["reason"] else ""
    share = source["coverage"]
    return [
        Cell(source["path"], "bad" if unread else ""),
        Cell(form + reason, "bad" if unread else "doubt" if reason else ""),
        Cell(_owner(source)),
        Cell(str(source["lines"])),
        Cell(_span(source)),
        Cell("-" if share is None or unread else f"{100 * share:.0f} %", "doubt" if share and share < 0.5 else ""),
        _clocks(source["clock"]),
    ]


def _owner(source: Mapping[str, Any]) -> str:
    """Whose a file is: pod and container, unit, host; `-` when nothing says so. `≈` marks what had to be found out."""
    scope, words = source["scope"], []
    if source["joined"]:
        words.append(f"≈ {source['joined']['entity'].partition(':')[2]}")
    if scope.get("pod"):
        words.append("/".join(filter(None, (scope["pod"], scope.get("container")))))
    elif scope.get("container") or scope.get("container_id"):
        words.append(f"container {scope.get('container') or scope['container_id'][:12]}")
    if scope.get("unit"):
        words.append(f"unit {scope['unit']}")
    if scope.get("host"):
        words.append(f"host {scope['host']}")
    return "\n".join(words) or "-"


def _span(source: Mapping[str, Any]) -> str:
    if source["first_utc"] is None:
        return "-"
    start, end = (str(source[key])[:19].replace("T", " ") for key in ("first_utc", "last_utc"))
    about = "~" if (source["uncertainty_s"] or 0.0) > VAGUE_S else ""
    if start == end:
        return about + start
    return f"{about}{start} – {end[11:] if start[:10] == end[:10] else end}"


def _clocks(clocks: Iterable[Mapping[str, Any]]) -> Cell:
    """`journal: Asia/Shanghai, solved`, one line a clock."""
    known = list(clocks)
    lines = dict.fromkeys(_clock(clock, len(known) > 1) for clock in known)
    worst = max((clock["verdict"] for clock in known), key=VERDICTS.index, default="exact")
    return Cell("\n".join(lines) or "-", {"assumed": "doubt", "refused": "bad"}.get(worst, ""))


def _clock(clock: Mapping[str, Any], named: bool) -> str:
    zone = "age before capture" if clock["form"] == "age" else clock["zone"]
    skew = f", {clock['skew_s']:+g} s" if clock["skew_s"] else ""
    said = ", ".join(filter(None, (zone, clock["verdict"]))) + skew
    return f"{clock['layer']}: {said}" if named else said
