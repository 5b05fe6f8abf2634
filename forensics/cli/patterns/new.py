"""`oomforensics patterns new`: a signature to start from."""

from __future__ import annotations

import sys

import click

from ..common import clear_errors


@click.command()
@click.argument("line", required=False)
@click.option("--id", "identity", metavar="FAMILY.NAME", help="Id of the signature, which also names its file.")
@click.option("--channel", help="Who says it (engine, kernel, kubelet …); read from the line's header if not given.")
def new(line: str | None, identity: str | None, channel: str | None) -> None:
    """Print a signature for LINE (or standard input), with everything that a line can tell.

    Numbers, sizes and ids become typed fields, the longest fixed text the anchor. Save it as FAMILY/NAME.toml;
    `oomforensics patterns test` on that file says what is missing until it is complete.
    """
    with clear_errors():
        from ...errors import OptionError
        from ...signatures.model import CHANNELS
        from ...signatures.skeleton import skeleton

        text = line if line not in (None, "-") else sys.stdin.read()
        lines = [part for part in (text or "").splitlines() if part.strip()]
        if not lines:
            raise OptionError("there is no line: give it as an argument, or on standard input")
        if identity is not None and (identity.count(".") != 1 or not all(identity.split("."))):
            raise OptionError(f"--id {identity}: expected FAMILY.NAME, such as acme.gateway_oom")
        if channel is not None and channel not in CHANNELS:
            raise OptionError(f"--channel {channel}: expected one of {', '.join(CHANNELS)}")
        if len(lines) > 1:
            click.echo(f"oomforensics: {len(lines)} lines were given; the last one is taken", err=True)
        click.echo(skeleton(lines[-1], identity, channel), nl=False)
