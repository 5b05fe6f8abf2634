"""The parts of README.md that are real output. `python tests/readme.py` writes them; a test compares them."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from forensics import analyze
from forensics.cli import cli
from forensics.report.render import render

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SAMPLE = ROOT / "samples" / "kv-cache-startup" / "bundle"
HELP_WIDTH = 80


def report() -> str:
    """The manager's lines, the impact and the timeline of the sample's report."""
    text = render(analyze(SAMPLE), "md")
    return "````markdown\n" + text.partition("\n## Root cause")[0].strip() + "\n````"


def help_text() -> str:
    printed = CliRunner().invoke(cli, ["--help"], prog_name="oomforensics", terminal_width=HELP_WIDTH).stdout
    return "```\n$ oomforensics --help\n" + "\n".join(line.rstrip() for line in printed.splitlines()) + "\n```"


def filled(readme: str) -> str:
    """README text with both blocks as they are printed now."""
    for name, block in (("report", report()), ("help", help_text())):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        readme = pattern.sub(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", readme)
    return readme


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
