"""`oomforensics patterns test`: the law of the library."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..common import clear_errors
from .common import read_path


@click.command()
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
def test(path: Path | None) -> None:
    """Run the law on the built-in library, or on the signatures in PATH (a folder, one family's folder, or a file).

    Every problem of every file is listed, with its key, the reason, the place and a hint. Your own signatures are
    checked together with the built-in ones: neither may fire on the other's examples unless it is declared.
    """
    with clear_errors():
        found = read_path(path)
        for problem in found.problems:
            click.echo(str(problem), err=True)
        own = [found.library.signatures[i] for i in sorted(found.own) if i in found.library.signatures]
        both = sum({bool(e.pattern) for e in s.examples} == {True, False} for s in own)
        examples = sum(len(s.examples) for s in own)
        share = f"{100 * both // len(own)} %" if own else "none"
        click.echo(
            f"{len(own)} signatures, {len(found.own_causes)} causes, {examples} examples, "
            f"{len(found.problems)} problems; {share} of the signatures have examples that must match and must not"
        )
        if found.problems:
            sys.exit(1)
