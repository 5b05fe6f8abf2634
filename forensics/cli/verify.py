"""`oomforensics verify`: does a report still stand on its bundle?"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import clear_errors, write

if TYPE_CHECKING:
    from ..report.seal import Check


@click.command(epilog="""\b
Examples:
  oomforensics verify report.json bundle.tar.gz
  oomforensics verify report.json logs/ --format json

Exit codes: 0 every claim holds, 1 some do not, 2 usage, 3 nothing readable.
""", short_help="Does a report still stand on its bundle?")  # fmt: skip
@click.argument("report", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("bundle", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(report: Path, bundle: tuple[str, ...], form: str) -> None:
    """Check REPORT (JSON) against BUNDLE: every file, and every line that a finding rests on.

    A claim fails when the lines it quotes are not, byte for byte, those it was made from.
    """
    with clear_errors():
        from ..errors import OptionError
        from ..report import seal

        if "-" in bundle:
            raise OptionError("standard input cannot be verified; give the bundle as a file or folder")
        found = seal.check(_document(report), bundle)
        if form == "json":
            write(json.dumps(_as_dict(found), ensure_ascii=False, indent=1) + "\n", None)
        else:
            write(_as_text(found), None)
        if not found.intact:
            sys.exit(1)


def _document(path: Path) -> dict[str, Any]:
    """The JSON report, checked only for what is used here. Raises `OptionError`."""
    from ..errors import OptionError
    from ..report import schema

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{path} cannot be read as a JSON report: {error}") from None
    problem = schema.unfit(document)
    if problem:
        raise OptionError(f"{path} is no report of this program: {problem}; make one with analyze --format json")
    return dict(document)


def _as_text(found: Check) -> str:
    from ..report import seal, text

    states = Counter(found.sources.values())
    lines = [f"files: {states[seal.HOLDS]} of {len(found.sources)} unchanged"]
    lines += [f"  {state:9} {path}" for path, state in found.sources.items() if state != seal.HOLDS]
    lines += [f"  new       {path}" for path in found.added]
    held = sum(claim.state == seal.HOLDS for claim in found.claims)
    lines.append(f"claims: {held} of {len(found.claims)} hold")
    for claim in seal.failed(found.claims):
        use = f" [{claim.used_as}]" if claim.used_as else ""
        lines.append(f"  {claim.state:9} {claim.finding} {claim.title}{use}  {claim.source}:{claim.line}")
    return "".join(f"{line[: len(line) - len(line.lstrip())]}{text.printable(line)}\n" for line in lines)


def _as_dict(found: Check) -> dict[str, Any]:
    from ..report import seal

    return {
        "intact": found.intact,
        "sources": dict(found.sources),
        "added": list(found.added),
        "claims": [
            {"finding": c.finding, "title": c.title, "source": c.source, "line": c.line, "line_end": c.line_end,
             "used_as": c.used_as, "state": c.state}
            for c in seal.failed(found.claims)
        ],
        "claims_checked": len(found.claims),
    }  # fmt: skip
