"""What all commands share: errors as one sentence with an exit code, and progress on a terminal."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ForensicsError, InputError, NothingReadableError

if TYPE_CHECKING:
    from ..model import Diagnostic

USAGE = 2
UNREADABLE = 3


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn the program's own errors into one message on stderr and an exit code; never a traceback."""
    try:
        yield
    except NothingReadableError as error:
        _stop(str(error), UNREADABLE)
    except InputError as error:
        _stop(str(error), UNREADABLE)
    except ForensicsError as error:
        _stop(str(error), USAGE)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing to say, and nothing to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _stop(message: str, code: int) -> None:
    click.echo(f"oomforensics: {message}", err=True)
    sys.exit(code)


@contextmanager
def progress() -> Iterator[Callable[[str, int], None] | None]:
    """A progress line on stderr when it is a terminal, else none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    with Status("reading", console=console) as status:
        yield lambda path, read: status.update(f"{read / 1e6:,.0f} MB  {path[-60:]}")


def say_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """What could not be read or had to be assumed, on stderr, as far as it matters for the answer."""
    for diagnostic in diagnostics:
        if diagnostic.severity in ("warning", "error"):
            hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
            click.echo(f"oomforensics: {diagnostic.message}{hint}", err=True)


def write(text: str | bytes, output: Path | None) -> None:
    """To a file in one piece (written beside it, then renamed), or to standard output; text as UTF-8."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    except OSError as error:
        raise ForensicsError(f"cannot write {output}: {error.strerror}; choose another place with -o") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(output)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ForensicsError(f"cannot write {output}: {error.strerror}; choose another place with -o") from None
