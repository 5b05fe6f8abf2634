"""`oomforensics analyze`: the post-mortem."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .common import clear_errors, progress, say_diagnostics, write
from .options import BundleOptions, bundle_options

CONFIDENCES = ("established", "likely", "possible", "undetermined")


@click.command()
@click.option("--format", "form", type=click.Choice(["md", "json"]), default="md", show_default=True,
              help="Markdown post-mortem, or the JSON contract.")  # fmt: skip
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the report.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file instead of stdout.")
@click.option("--fail-on", type=click.Choice(CONFIDENCES[:3]),
              help="Exit 1 when a fault is found with at least this confidence.")  # fmt: skip
@click.option("--no-redact", is_flag=True, help="Keep tokens, credentials and e-mail addresses in quoted lines.")
@bundle_options
def analyze(
    paths: tuple[str, ...],
    bundle: BundleOptions,
    form: str,
    lang: str,
    output: Path | None,
    fail_on: str | None,
    no_redact: bool,
) -> None:
    """Analyse BUNDLE (folder, .tar, .tar.gz, log file, or - for stdin) and print a post-mortem.

    Several inputs are analysed together, as one incident.
    """
    with clear_errors():
        from .. import pipeline
        from ..report.render import render

        with progress() as hook:
            report = pipeline.analyze(*paths, options=bundle.pipeline(), progress=hook)
        say_diagnostics(report.diagnostics)
        write(render(report, form, lang, redact=not no_redact), output)
        verdict = report.diagnosis.verdict
        fault = verdict.cause.id not in ("healthy", "insufficient_evidence")
        if fail_on and fault and CONFIDENCES.index(verdict.confidence) <= CONFIDENCES.index(fail_on):
            sys.exit(1)
