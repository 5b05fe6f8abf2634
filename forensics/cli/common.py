"""What all commands share: errors as one sentence with an exit code, and progress on a terminal."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ForensicsError, InputError, NothingReadableError, OptionError
from . import process

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
        process.silence_stdout()  # the reader went away (`| head`): nothing to say
        sys.exit(0)
    except OSError as error:  # inputs and outputs have words of their own: this is standard output
        process.silence_stdout()
        _stop(f"cannot write to standard output: {error.strerror}; give a file with -o", USAGE)


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


def refuse_inputs(outputs: Iterable[Path | None], inputs: Iterable[str]) -> None:
    """Raise `OptionError` when an output would overwrite a file of the bundle: evidence is never touched."""
    for output in outputs:
        if output is None or not output.is_file():
            continue
        real = output.resolve()
        for given in inputs:
            source = Path(given).resolve()
            if real == source or (source.is_dir() and source in real.parents):
                raise OptionError(f"{output} is a file of the bundle {given}; choose a place outside of it with -o")


def write(text: str | bytes, output: Path | None) -> None:
    """To a file, or to standard output; text as UTF-8. Raises `ForensicsError`."""
    if output is None:
        sys.stdout.buffer.write(_data(text))
        sys.stdout.buffer.flush()
    else:
        write_files([(text, output)])


def write_files(files: Sequence[tuple[str | bytes, Path]], private: bool = False) -> None:
    """All of them or none: each is written beside its place, and moved there when all are complete.

    `private` files are readable by their owner only. What is no regular file (`/dev/stdout`, a pipe) is written to.
    Raises `ForensicsError` when there is no room or no permission; then all files are as they were.
    """
    staged: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for text, path in files:
            if path.exists() and not path.is_file():
                path.write_bytes(_data(text))
            else:
                staged.append((path.resolve().parent / f".oomforensics-{secrets.token_hex(8)}", path.resolve()))
                _stage(staged[-1][0], _data(text), 0o600 if private else _mode(path))
        for temporary, path in staged:
            temporary.replace(path)
    except OSError as error:
        where = files[-1][1] if path == Path() else path
        raise ForensicsError(f"cannot write {where}: {error.strerror}; choose another place") from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink()


def _stage(path: Path, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced; those of a new one follow the umask."""
    return path.stat().st_mode & 0o777 if path.exists() else 0o666


def _data(text: str | bytes) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else text
