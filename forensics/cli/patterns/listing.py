"""`oomforensics patterns list`: which signatures there are."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..common import clear_errors
from .common import find, library_option, load

ROLES = ("cause", "consequence", "symptom", "context", "benign")


@click.command("list")
@click.option("--family", help="Only this family (the part of the id before the dot).")
@click.option("--role", type=click.Choice(ROLES), help="Only this role.")
@click.option("--cause", metavar="ID", help="Only signatures that this cause names, and as what.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@library_option
def list_(family: str | None, role: str | None, cause: str | None, form: str, folder: Path | None) -> None:
    """List signatures."""
    with clear_errors():
        from ...errors import OptionError
        from .show import summary

        library = load(folder)
        named = library.causes.get(cause) if cause is not None else None
        if cause is not None and named is None:
            find(library, cause)
            raise OptionError(f"{cause} is a signature, not a cause; causes: {', '.join(library.causes)}")
        chosen = [
            s for s in library.signatures.values()
            if (family is None or s.id.partition(".")[0] == family)
            and (role is None or s.role == role)
            and (named is None or named.names(s.id))
        ]  # fmt: skip
        if form == "json":
            click.echo(json.dumps([summary(s) for s in chosen], indent=1, ensure_ascii=False))
            return
        width = max((len(s.id) for s in chosen), default=0)
        for s in chosen:
            use = f"{', '.join(named.names(s.id)):<13}  " if named else ""
            click.echo(f"{s.id:<{width}}  {use}{s.role:<11}  {s.severity:<8}  {s.title}")
        click.echo(f"{len(chosen)} of {len(library.signatures)} signatures, {len(library.causes)} causes", err=True)
