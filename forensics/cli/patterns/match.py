"""`oomforensics patterns match`: why a signature fires on a file's lines, or does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..common import clear_errors
from .common import library_option, load, signature

if TYPE_CHECKING:
    from ...model import Event
    from ...signatures import Signature
    from ...signatures.explain import Attempt, Explanation

WHOLE_BYTES = 32 << 20
"""Files up to this size are looked at line by line; larger ones only where part of an anchor stands."""
SHOWN_CHARS = 4
"""Shorter pieces of a message that a regex matches are chance."""


@click.command()
@click.argument("identity", metavar="ID")
@click.argument("file", type=click.Path(exists=True, allow_dash=True))
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Most lines to explain.")
@library_option
def match(identity: str, file: str, limit: int, folder: Path | None) -> None:
    """Say for each line of FILE near a hit why signature ID fires on it, or does not.

    FILE is read as `analyze` reads it: any log, kubectl output, a folder or an archive, - for standard input. A line
    is near when it holds an anchor or a good part of one. Exit 1 when there is no hit.
    """
    with clear_errors():
        from ...signatures.explain import explain

        chosen = signature(load(folder), identity)
        near = [e for e in (explain(chosen, event) for event in _events(file, chosen)) if e.anchor or e.near]
        hits = sum(explanation.hit and not explanation.quoted for explanation in near)
        for explanation in near[:limit]:
            click.echo("\n".join(_lines(explanation, chosen)) + "\n")
        if len(near) > limit:
            click.echo(f"… and {len(near) - limit} more lines near a hit: see them with --limit {len(near)}\n")
        if not near:
            anchors = ", ".join(map(repr, chosen.anchors))
            click.echo(f"no line holds an anchor of {identity}, or half of one: {anchors}")
        click.echo(f"{hits} hits on {len(near)} lines near one")
        if not hits:
            sys.exit(1)


def _events(file: str, chosen: Signature) -> Iterator[Event]:
    from ...bundle import Bundle
    from ...ingest import read_bundle
    from ...signatures.explain import fragments

    path = Path(file)
    whole = path.is_file() and path.stat().st_size <= WHOLE_BYTES
    anchors = {piece for anchor in chosen.anchors for piece in fragments(anchor)}
    for item in read_bundle(Bundle((file,)), anchors.union(chosen.anchors), prefilter=not whole):
        yield from item.parsed.events


def _lines(e: Explanation, chosen: Signature) -> Iterator[str]:
    from ...signatures.snippets import caret

    event = e.event
    yield f"{event.locator}  ({event.channel}, {event.kind}{', ' + event.level if event.level else ''})"
    if e.matched is None:
        yield f"    {caret(event.text, 0).splitlines()[0]}"
    if e.anchor:
        yield f"  anchor   yes: {e.anchor!r}"
    else:
        yield f"  anchor   NO: only {e.near!r} stands there"
    listens = ", ".join(chosen.channels)
    yield f"  channel  {'yes' if e.listens else 'NO'}: the line is {event.channel}, the signature listens to {listens}"
    if chosen.kinds:
        kinds = ", ".join(chosen.kinds)
        yield f"  kind     {'yes' if e.kind_fits else 'NO'}: the event is {event.kind}, wanted {kinds}"
    for attempt in e.attempts:
        yield from _attempt(attempt, event.text)
        if attempt.matched:
            yield from _fields(attempt, event.text)
            break
    yield f"  → {_verdict(e)}"


def _attempt(attempt: Attempt, text: str) -> Iterator[str]:
    from ...signatures.snippets import caret

    name = attempt.pattern.name
    if attempt.matched:
        yield f"  pattern  {name} matches"
        yield from (f"    {line}" for line in caret(text, attempt.text_start, attempt.text_stop).splitlines())
        return
    yield f"  pattern  {name} does not match: {attempt.reason}"
    source = attempt.pattern.source
    yield from (f"    {line}" for line in caret(source, min(attempt.regex_stop, len(source) - 1)).splitlines())
    if attempt.text_stop - attempt.text_start >= SHOWN_CHARS:
        yield from (f"    {line}" for line in caret(text, attempt.text_start, attempt.text_stop).splitlines())


def _fields(attempt: Attempt, text: str) -> Iterator[str]:
    from ...signatures.matching import captured

    found = attempt.pattern.regex.search(text, attempt.text_start)
    for name, value in (captured(attempt.pattern, found) or {}).items() if found else ():
        yield f"    {name} = {value!r}"


def _verdict(e: Explanation) -> str:
    if e.hit:
        return f"hit, but not as evidence: {e.quoted}" if e.quoted else "hit"
    if e.matched is None:
        return "no hit: the message is another one"
    missing = [
        name for name, fits in (("anchor", e.anchor), ("channel", e.listens), ("kind", e.kind_fits)) if not fits
    ]
    return f"no hit, although a pattern matches: {' and '.join(missing)} must fit as well"
