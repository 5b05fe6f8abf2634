"""`oomforensics patterns show`: one signature or cause in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..common import clear_errors
from .common import find, library_option, load

if TYPE_CHECKING:
    from ...signatures import Cause, Library, Signature
    from ...signatures.model import Condition


@click.command()
@click.argument("identity", metavar="ID")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of a cause.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@library_option
def show(identity: str, lang: str, form: str, folder: Path | None) -> None:
    """Show one signature or cause in full."""
    with clear_errors():
        from ...signatures import Cause

        library = load(folder)
        found = find(library, identity)
        if form == "json":
            data = cause_summary(found) if isinstance(found, Cause) else summary(found)
            click.echo(json.dumps(data, indent=1, ensure_ascii=False))
        elif isinstance(found, Cause):
            _show_cause(found, lang)
        else:
            _show_signature(found, library)


def summary(signature: Signature) -> dict[str, Any]:
    """A signature as JSON."""
    return {
        "id": signature.id,
        "title": signature.title,
        "title_zh": signature.title_zh,
        "role": signature.role.value,
        "severity": signature.severity.value,
        "status": signature.status,
        "channels": list(signature.channels),
        "kinds": list(signature.kinds),
        "anchors": list(signature.anchors),
        "patterns": {p.name: p.source for p in signature.patterns},
        "versions": [{"program": v.program, "range": v.range, "source": v.source} for v in signature.versions],
        "overlaps": list(signature.overlaps),
        "phase": signature.phase,
        "examples": len(signature.examples),
    }


def cause_summary(cause: Cause) -> dict[str, Any]:
    """A cause as JSON."""
    from ...signatures.model import EVIDENCE_KEYS

    parts = ("title", "summary", "mechanism")
    texts = {key: {"en": getattr(cause, key).en, "zh": getattr(cause, key).zh} for key in parts}
    return {"id": cause.id, **texts, **{key: list(getattr(cause, key)) for key in EVIDENCE_KEYS}}


def _show_signature(signature: Signature, library: Library) -> None:
    click.echo(f"{signature.id}: {signature.title}\n{signature.title_zh}\n")
    click.echo(f"role {signature.role}, severity {signature.severity}, status {signature.status}")
    click.echo(f"channels {', '.join(signature.channels)}")
    if signature.kinds:
        click.echo(f"only on events of kind {', '.join(signature.kinds)}")
    if signature.phase:
        click.echo(f"begins the phase {signature.phase!r} of an engine's run")
    click.echo(f"\n{signature.description}\n")
    for text in signature.false_positives:
        click.echo(f"beware: {text}")
    for version in signature.versions:
        click.echo(f"printed by {version.program} {version.range} ({version.source})")
    for reference in signature.references:
        click.echo(f"see {reference}")
    for cause in library.causes.values():
        for key in cause.names(signature.id):
            click.echo(f"{key} for the cause {cause.id}")
    if signature.overlaps:
        click.echo(f"may fire together with {', '.join(signature.overlaps)}")
    click.echo(f"\nanchors: {', '.join(map(repr, signature.anchors))}")
    for pattern in signature.patterns:
        click.echo(f"\npattern {pattern.name}: {pattern.source}")
    for example in signature.examples:
        verb = f"matches ({example.pattern})" if example.pattern else "must not match"
        click.echo(f"\n{verb}: {example.text}" + (f"\n    # {example.note}" if example.note else ""))
        for name, value in example.fields.items():
            click.echo(f"    {name} = {value}")


def _show_cause(cause: Cause, lang: str) -> None:
    click.echo(f"{cause.id}: {cause.title[lang]}\n\n{cause.summary[lang]}\n\n{cause.mechanism[lang]}\n")
    for name in ("decisive", "supporting", "contradicting", "explains"):
        click.echo(f"{name}: {', '.join(getattr(cause, name)) or '-'}")
    for confirm in cause.confirm:
        click.echo(f"\nlook at: {confirm.evidence[lang]}\n    {confirm.command}")
    for name, items in (("remedy", cause.remedies), ("avoid", cause.avoid)):
        for item in items:
            click.echo(f"\n{name}: {item.text[lang]}{_condition(item.condition)}")
    click.echo(f"\nverify: {cause.verify[lang]}")
    for item in cause.prevent:
        click.echo(f"\nprevent: {item.text[lang]}{_condition(item.condition)}")
    for variant in cause.variants:
        for name, text in variant.texts.items():
            click.echo(f"\n{name}: {text[lang]}{_condition(variant.condition)}")


def _condition(condition: Condition) -> str:
    """When an advice holds: ` (for sglang, when mem_fraction_static is known)`."""
    said = [f"for {condition.engine}"] if condition.engine else []
    said += [f"on {condition.platform}"] if condition.platform else []
    said += [f"when {condition.when} is known"] if condition.when else []
    return f" ({', '.join(said)})" if said else ""
