"""`oomforensics analyze`: the post-mortem."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from . import output as output_stage
from .common import clear_errors, progress, refuse_inputs, say_diagnostics
from .options import BundleOptions, bundle_options, display_tz, redact, zone_of

CONFIDENCES = ("established", "likely", "possible", "undetermined")
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog="""\b
Examples:
  oomforensics analyze bundle.tar.gz                        Markdown on standard output
  oomforensics analyze bundle.tgz --format text             for the terminal
  oomforensics analyze bundle.tgz --format html --format json -o out/
  oomforensics analyze bundle.tgz --lang zh --display-tz Asia/Shanghai -o report.md
  oomforensics analyze bundle.tgz --redact strict --redact-map private.json -o report.md
  oomforensics analyze bundle.tgz --template our-postmortem.md.j2

Exit codes: 0 done, 1 --fail-on met, 2 usage, 3 nothing readable.
""", short_help="The post-mortem: what happened, why, how sure, what to do.")  # fmt: skip
@click.option("--format", "forms", type=click.Choice(output_stage.FORMATS), multiple=True,
              help="Markdown, HTML, JSON, text for terminals, timeline as CSV; may be repeated.  [default: md]")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True,
              help="Language of the report.")
@click.option("-o", "--output", metavar="PATH",
              help="Write to a file, whose ending may name the format; several formats go into a folder.")
@click.option("--template", type=_FILE, metavar="FILE",
              help="A Jinja template of your own; it gets the JSON as `data`.")
@click.option("--fail-on", type=click.Choice(CONFIDENCES[:3]),
              help="Exit 1 when a fault is found with at least this confidence.")
@display_tz
@redact
@click.option("--redact-map", type=_FILE, metavar="FILE",
              help="With --redact strict: file that keeps which name stands for what. Private.")
@click.option("--no-redact", is_flag=True, help="The same as --redact off.")
@click.option("--profile", is_flag=True, help="Say on standard error where the time went.")
@bundle_options
def analyze(
    paths: tuple[str, ...],
    bundle: BundleOptions,
    forms: tuple[str, ...],
    lang: str,
    output: str | None,
    template: Path | None,
    fail_on: str | None,
    display_tz: str,
    redact: str,
    redact_map: Path | None,
    no_redact: bool,
    profile: bool,
) -> None:
    """Analyse BUNDLE (folder, archive, log file, or - for stdin) and print a post-mortem.

    Several inputs are analysed together, as one incident.
    """
    with clear_errors():
        from .. import pipeline
        from ..errors import OptionError
        from ..report import pseudonyms, seal
        from ..report.gate import Gate
        from ..report.render import prepare
        from ..stopwatch import Stopwatch

        chosen = output_stage.targets(forms, template, output)
        refuse_inputs([*(path for _, path in chosen), redact_map], paths)
        zone = None if display_tz == "UTC" else zone_of(display_tz, "--display-tz")
        if redact_map is not None and redact != "strict":
            raise OptionError("--redact-map says which pseudonym stands for what; it needs --redact strict")
        names = pseudonyms.load(redact_map) if redact_map is not None else None
        options = bundle.pipeline()
        stopwatch = Stopwatch()
        with progress() as hook:
            report = pipeline.analyze(*paths, options=options, progress=hook, stopwatch=stopwatch)
        say_diagnostics(report.diagnostics)
        if any(form in ("json", "template") for form, _ in chosen):
            report = seal.sealed(report, paths, options.budget)
        gate = Gate("off" if no_redact else redact, names)
        with stopwatch.stage("report"):
            output_stage.write_all(prepare(report, lang, gate), chosen, template, zone)
        if profile:
            click.echo(stopwatch.table(), err=True)
        if redact_map is not None:
            output_stage.write_private(pseudonyms.dump(gate.names), redact_map)
        verdict = report.diagnosis.verdict
        fault = verdict.cause.id not in ("healthy", "insufficient_evidence")
        if fail_on and fault and CONFIDENCES.index(verdict.confidence) <= CONFIDENCES.index(fail_on):
            sys.exit(1)
