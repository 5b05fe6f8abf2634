"""`oomforensics patterns`: look at the library and check it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from .common import clear_errors


@click.group(epilog="""\b
Examples:
  oomforensics patterns list --family vllm --role cause
  oomforensics patterns show kernel.oom_kill_memcg
  oomforensics patterns test
  oomforensics patterns test my-patterns/
""")
def patterns() -> None:
    """List, show and test signatures."""


@patterns.command("list")
@click.option("--family", help="Only this family (the part before the dot).")
@click.option("--role", type=click.Choice(["cause", "consequence", "symptom", "context", "benign"]))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def list_(family: str | None, role: str | None, form: str) -> None:
    """List signatures and causes."""
    with clear_errors():
        from ..pipeline import load_library

        library = load_library()
        chosen = [
            s for s in library.signatures.values()
            if (family is None or s.id.split(".")[0] == family) and (role is None or s.role == role)
        ]  # fmt: skip
        if form == "json":
            click.echo(json.dumps([_summary(s) for s in chosen], indent=1, ensure_ascii=False))
            return
        width = max((len(s.id) for s in chosen), default=0)
        for s in chosen:
            click.echo(f"{s.id:<{width}}  {s.role:<11}  {s.severity:<8}  {s.title}")
        click.echo(f"{len(chosen)} signatures, {len(library.causes)} causes", err=True)


def _summary(signature: Any) -> dict[str, Any]:
    return {
        "id": signature.id,
        "title": signature.title,
        "title_zh": signature.title_zh,
        "role": signature.role.value,
        "severity": signature.severity.value,
        "status": signature.status,
        "channels": list(signature.channels),
        "anchors": list(signature.anchors),
        "patterns": {p.name: p.regex.pattern for p in signature.patterns},
        "examples": len(signature.examples),
    }


@patterns.command()
@click.argument("identity", metavar="ID")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(identity: str, form: str) -> None:
    """Show one signature or cause in full."""
    with clear_errors():
        from ..errors import OptionError
        from ..pipeline import load_library

        library = load_library()
        if identity in library.causes:
            _show_cause(library.causes[identity])
            return
        if identity not in library.signatures:
            close = [name for name in library.signatures if identity.split(".")[-1] in name][:5]
            hint = f"; did you mean {', '.join(close)}?" if close else "; see `oomforensics patterns list`"
            raise OptionError(f"no signature or cause is called {identity!r}{hint}")
        signature = library.signatures[identity]
        if form == "json":
            click.echo(json.dumps(_summary(signature), indent=1, ensure_ascii=False))
            return
        click.echo(f"{signature.id}: {signature.title}\n{signature.title_zh}\n")
        click.echo(f"role {signature.role}, severity {signature.severity}, status {signature.status}")
        click.echo(f"channels {', '.join(signature.channels)}\n\n{signature.description}\n")
        for version in signature.versions:
            click.echo(f"printed by {version.program} {version.range} ({version.source})")
        for pattern in signature.patterns:
            click.echo(f"\npattern {pattern.name}: {pattern.regex.pattern}")
        for example in signature.examples:
            click.echo(f"\n{'matches' if example.pattern else 'must not match'}: {example.text}")
            for name, value in example.fields.items():
                click.echo(f"    {name} = {value}")


def _show_cause(cause: Any) -> None:
    click.echo(f"{cause.id}: {cause.title.en}\n{cause.title.zh}\n\n{cause.summary.en}\n\n{cause.mechanism.en}\n")
    for name in ("decisive", "supporting", "contradicting", "explains"):
        click.echo(f"{name}: {', '.join(getattr(cause, name)) or '-'}")


@patterns.command()
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
def test(path: Path | None) -> None:
    """Run the law of the library on the whole library, or on the library in folder PATH."""
    with clear_errors():
        from ..diagnosis.case import DERIVED
        from ..pipeline import load_library
        from ..signatures import law, load

        library = load_library() if path is None else load(path, DERIVED)
        problems = law.check(library)
        for problem in problems:
            click.echo(str(problem), err=True)
        examples = sum(len(s.examples) for s in library.signatures.values())
        click.echo(f"{len(library.signatures)} signatures, {len(library.causes)} causes, {examples} examples, "
                   f"{len(problems)} problems")  # fmt: skip
        if problems:
            sys.exit(1)
