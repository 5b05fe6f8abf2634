"""The process and its surroundings: signals, and standard streams that are closed.

A run that is stopped leaves nothing half written, says so in one line, and ends with the code that shells expect of a
process stopped by that signal. A stream that was closed before the start gets its number back from the null device, so
that no file that is opened later takes its place and receives what was meant for the terminal.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def prepare() -> None:
    """Call once, before anything is read."""
    _fill_streams()
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup, background jobs
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # the next one ends the process at once
    click.echo(f"oomforensics: stopped by {signal.Signals(number).name} before the end", err=True)
    raise SystemExit(128 + number)


def _fill_streams() -> None:
    """Reading finds the end, writing to standard output fails, and what nobody can hear is not said."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def silence_stdout() -> None:
    """Nobody reads any more: what is still buffered goes nowhere, also when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
