"""`oomforensics analyze`: the post-mortem."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import clear_errors, progress, write

if TYPE_CHECKING:
    from ..clocks import ClockOptions

CONFIDENCES = ("established", "likely", "possible", "undetermined")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="BUNDLE...")
@click.option("--format", "form", type=click.Choice(["md", "json"]), default="md", show_default=True,
              help="Markdown post-mortem, or the JSON contract.")  # fmt: skip
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the report.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file instead of stdout.")
@click.option("--tz", multiple=True, metavar="PATTERN=ZONE",
              help="Zone of files whose stamps have none, e.g. --tz 'journal*=Asia/Shanghai'.")  # fmt: skip
@click.option("--year", type=click.IntRange(1990, 2100), help="Year of stamps that have none.")
@click.option("--captured-at", metavar="TIME", help="When the bundle was collected (ISO 8601), for ages such as '5m ago'.")
@click.option("--skew", multiple=True, metavar="HOST=SECONDS", help="Seconds that a host's clock runs ahead.")
@click.option("--patterns", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another pattern library.")
@click.option("--fail-on", type=click.Choice(CONFIDENCES[:3]),
              help="Exit 1 when a fault is found with at least this confidence.")  # fmt: skip
@click.option("--no-redact", is_flag=True, help="Keep tokens, credentials and e-mail addresses in quoted lines.")
def analyze(
    paths: tuple[str, ...],
    form: str,
    lang: str,
    output: Path | None,
    tz: tuple[str, ...],
    year: int | None,
    captured_at: str | None,
    skew: tuple[str, ...],
    patterns: Path | None,
    fail_on: str | None,
    no_redact: bool,
) -> None:
    """Analyse BUNDLE (folder, .tar, .tar.gz, log file, or - for stdin) and print a post-mortem.

    Several inputs are analysed together, as one incident.
    """
    with clear_errors():
        from .. import pipeline
        from ..report.render import render

        options = pipeline.Options(clocks=_clock_options(tz, year, captured_at, skew), patterns=patterns)
        with progress() as hook:
            report = pipeline.analyze(*paths, options=options, progress=hook)
        for diagnostic in report.diagnostics:
            if diagnostic.severity in ("warning", "error"):
                hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
                click.echo(f"oomforensics: {diagnostic.message}{hint}", err=True)
        write(render(report, form, lang, redact=not no_redact), output)
        verdict = report.diagnosis.verdict
        fault = verdict.cause.id not in ("healthy", "insufficient_evidence")
        if fail_on and fault and CONFIDENCES.index(verdict.confidence) <= CONFIDENCES.index(fail_on):
            sys.exit(1)


def _clock_options(
    tz: tuple[str, ...], year: int | None, captured_at: str | None, skew: tuple[str, ...]
) -> ClockOptions:
    from .. import stamps
    from ..clocks import ClockOptions
    from ..errors import OptionError
    from ..model import StampForm

    zones = []
    for item in tz:
        pattern, separator, zone = item.partition("=")
        if not separator or stamps.zone(zone) is None:
            raise OptionError(f"--tz {item}: expected PATTERN=ZONE with a zone such as Asia/Shanghai or +08:00")
        zones.append((pattern, zone))
    captured = None
    if captured_at is not None:
        stamp = stamps.iso(captured_at, "option")
        if stamp is None:
            raise OptionError(f"--captured-at {captured_at}: expected a time such as 2026-11-29T21:25:17Z")
        if stamp.form not in (StampForm.INSTANT, StampForm.LOCAL):
            raise OptionError(f"--captured-at {captured_at}: a date and a time are needed")
        captured = stamp.seconds
    skews = []
    for item in skew:
        host, _, seconds = item.partition("=")
        try:
            skews.append((host, float(seconds)))
        except ValueError:
            raise OptionError(f"--skew {item}: expected HOST=SECONDS") from None
    return ClockOptions(tuple(zones), year, captured, tuple(skews))
