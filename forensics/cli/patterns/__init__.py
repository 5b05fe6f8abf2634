"""`oomforensics patterns`: look at the signature library, extend it and check it. One module a subcommand."""

from __future__ import annotations

import click

from .catalogue import catalogue
from .drift import drift
from .lint import lint
from .listing import list_
from .match import match
from .new import new
from .show import show
from .test import test

EPILOG = """\b
Examples:
  oomforensics patterns list --family vllm --role cause
  oomforensics patterns show kernel.oom_kill_memcg
  oomforensics patterns match torch.oom engine.log        why it fires there, or does not
  grep 'gateway: out of' app.log | oomforensics patterns new --id acme.gateway > mine/acme/gateway.toml
  oomforensics patterns test mine/                        what is missing or wrong in my own signatures
  oomforensics analyze bundle.tgz --patterns mine/        use them

Exit codes: 0 done, 1 something found to be wrong (test, lint, drift) or no hit (match), 2 usage.
"""


@click.group(epilog=EPILOG)
def patterns() -> None:
    """List, show, write and test signatures."""


for command in (list_, show, test, match, new, lint, drift, catalogue):
    patterns.add_command(command)
