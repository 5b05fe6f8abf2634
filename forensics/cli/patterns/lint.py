"""`oomforensics patterns lint`: what the law allows and an author should know."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from ..common import clear_errors
from .common import read_path


@click.command()
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--no-hostile", is_flag=True, help="Do not run the regexes on text made to slow them down.")
def lint(path: Path | None, no_hostile: bool) -> None:
    """Look for weak and slow patterns in the built-in library or in PATH, beyond what `test` demands.

    Warnings: regexes that explode on hostile text, anchors that nearly every line holds, causes that nothing uses.
    Advice: patterns that could be loosened without any example noticing. Exit 1 when there are warnings.
    """
    with clear_errors():
        from ... import resources
        from ...signatures.lint import lint as remarks
        from ...signatures.snippets import located

        found = read_path(path)
        for problem in found.problems:
            click.echo(f"error: {problem}")
        root = resources.patterns() if path is None else found.root
        warnings = advice = 0
        own = [i for i in sorted(found.own) if i in found.library.signatures]
        for remark in remarks(found.library, own, not no_hostile):
            warnings, advice = warnings + remark.warning, advice + (not remark.warning)
            problem = located(remark.problem, root)
            shown = replace(problem, path=(root / problem.path).as_posix())
            click.echo(f"{'warning' if remark.warning else 'advice'}: {shown}")
        errors = len(found.problems)
        click.echo(f"{len(own)} signatures, {errors} errors, {warnings} warnings, {advice} pieces of advice")
        if warnings or found.problems:
            sys.exit(1)
