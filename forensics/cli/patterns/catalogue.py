"""`oomforensics patterns catalogue`: make the generated files of the library anew. For maintainers."""

from __future__ import annotations

import click

from ..common import clear_errors, write
from .common import load


@click.command(hidden=True)
@click.option("--write", "save", is_flag=True, help="Write patterns/README.md and the JSON Schemas in place.")
def catalogue(save: bool) -> None:
    """Print the catalogue of the built-in library, or write it into patterns/README.md, with the schemas."""
    with clear_errors():
        from ... import resources
        from ...signatures import schema
        from ...signatures.catalogue import catalogue as table
        from ...signatures.catalogue import renewed

        library = load(None)
        if not save:
            click.echo(table(library))
            return
        root = resources.patterns()
        readme = root / "README.md"
        write(renewed(readme.read_text(encoding="utf-8"), library), readme)
        for path, text in schema.texts().items():
            write(text, root / path)
