"""The command line. One module a command; the engine is imported only when a command needs it."""

from __future__ import annotations

import gc

import click

from .. import __version__
from . import process
from .analyze import analyze
from .explain import explain
from .patterns import patterns
from .sources import sources
from .timeline import timeline
from .verify import verify

EPILOG = """\b
Examples:
  oomforensics analyze bundle.tar.gz                  the post-mortem
  oomforensics analyze logs/ dmesg.txt -o report.md   several inputs
  kubectl logs pod --previous | oomforensics analyze -
  oomforensics analyze bundle.tgz --format json | jq .verdict
  oomforensics explain bundle.tgz gpu_oom.weights     why is it not that?
  oomforensics timeline bundle.tgz --around first-cause
  oomforensics sources bundle.tgz                     what was read, and clocks
  oomforensics verify report.json bundle.tgz          does it still stand?
  oomforensics patterns show vllm.kv_no_blocks

Exit codes: 0 done, 1 --fail-on met, 2 usage, 3 nothing readable.
"""


class InOrder(click.Group):
    """Lists commands as they were added, the most used first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=InOrder,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="oomforensics")
def cli() -> None:
    """Post-mortems of LLM inference incidents (vLLM, GPUs, Kubernetes), offline and reproducible.

    Reads what was saved after an incident – engine logs, journal and dmesg, kubectl output, nvidia-smi samples –
    puts it on one timeline and says what happened, how sure that is, and what to change.
    """


cli.add_command(analyze)
cli.add_command(explain)
cli.add_command(timeline)
cli.add_command(sources)
cli.add_command(verify)
cli.add_command(patterns)


def main() -> None:
    """Entry point of the `oomforensics` command and of `python -m forensics`."""
    process.prepare()
    gc.set_threshold(100_000, 20, 50)  # a short life with few cycles: looking for them takes a seventh of the time
    cli(prog_name="oomforensics")
