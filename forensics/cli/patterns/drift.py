"""`oomforensics patterns drift`: do the messages still stand in a program's source?"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..common import clear_errors
from .common import library_option, load

if TYPE_CHECKING:
    from ...signatures.drift import Drift


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--program", help="Program whose source PATH is; guessed from the path if not given.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@library_option
def drift(path: Path, program: str | None, form: str, folder: Path | None) -> None:
    """Look for the anchors of a program's signatures in PATH, a source tree or an installed package of it.

    Lists signatures of which no wording is left. Placeholders (`{x}`, %s) are allowed for; signatures whose stated
    versions ended earlier are expected to be gone. Exit 1 when a signature has drifted.
    """
    with clear_errors():
        from ...errors import OptionError
        from ...signatures import drift as watch

        library = load(folder)
        name = program or watch.guess_program(path, library)
        if name not in watch.programs(library):
            raise OptionError(f"no signature names the program {name!r}; known: {', '.join(watch.programs(library))}")
        results, files = watch.drift(library, path, name)
        if form == "json":
            click.echo(json.dumps(_as_json(name, files, results), indent=1, ensure_ascii=False))
        else:
            _tell(name, files, results)
        if any(result.drifted for result in results):
            sys.exit(1)


def _counts(results: tuple[Drift, ...]) -> dict[str, int]:
    counts = Counter("ended" if r.ended and r.best.status <= 1 else r.best.status.name.lower() for r in results)
    return {name: counts[name] for name in ("found", "assembled", "changed", "vanished", "ended")}


def _tell(program: str, files: int, results: tuple[Drift, ...]) -> None:
    for result in results:
        if result.drifted:
            best = result.best
            click.echo(f"{best.status.name.lower()}: {result.signature.id}: {result.signature.title}")
            for trace in result.traces:
                left = f"; {trace.path} still has {trace.piece!r}" if trace.piece else ""
                click.echo(f"    {trace.anchor!r}{left}")
            for version in result.signature.versions:
                if version.program == program:
                    click.echo(f"    was in {version.source} ({version.range})")
    counts = _counts(results)
    click.echo(
        f"{program}: {len(results)} signatures, {files} files; {counts['found']} found, {counts['assembled']} found "
        f"around a placeholder, {counts['changed']} changed, {counts['vanished']} vanished, "
        f"{counts['ended']} gone as stated"
    )


def _as_json(program: str, files: int, results: tuple[Drift, ...]) -> dict[str, Any]:
    return {
        "program": program,
        "files": files,
        "counts": _counts(results),
        "signatures": [
            {
                "id": result.signature.id,
                "status": result.best.status.name.lower(),
                "ended": result.ended,
                "anchors": [
                    {"anchor": t.anchor, "status": t.status.name.lower(), "piece": t.piece, "path": t.path}
                    for t in result.traces
                ],
            }
            for result in results
        ],
    }
