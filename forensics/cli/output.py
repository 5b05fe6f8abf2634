"""Where reports go: standard output, one file, or a folder with one file per format."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

from ..errors import ForensicsError, OptionError
from .common import write, write_files
from .options import STDOUT

FORMATS = ("md", "html", "json", "text", "csv")
"""`text` is for terminals; `csv` is the timeline for spreadsheets."""
_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json", ".csv": "csv", ".txt": "text"}


def targets(forms: Sequence[str], template: Path | None, output: str | None) -> list[tuple[str, Path | None]]:
    """(format, file) pairs; format `template` is the user's own. Raises `OptionError` for an impossible choice.

    A file's ending chooses the format where no option does.
    """
    wanted = list(dict.fromkeys(forms)) or ([] if template else [_BY_ENDING.get(Path(output or "").suffix, "md")])
    wanted += ["template"] if template else []
    if output is None or output == STDOUT:
        if len(wanted) > 1:
            raise OptionError(f"{' and '.join(wanted)} do not fit on standard output; give a folder with -o DIR")
        return [(wanted[0], None)]
    path = Path(output)
    if len(wanted) == 1 and not path.is_dir() and not output.endswith(("/", os.sep)):
        return [(wanted[0], path)]
    if path.exists() and not path.is_dir():
        raise OptionError(f"-o {output} is a file, but {len(wanted)} formats need a folder")
    return [(form, path / _name(form, template)) for form in wanted]


def _name(form: str, template: Path | None) -> str:
    if form == "template" and template is not None:
        return template.name.removesuffix(".j2")
    return f"report.{'txt' if form == 'text' else form}"


def write_all(
    data: Mapping[str, Any], chosen: Sequence[tuple[str, Path | None]], template: Path | None, zone: tzinfo | None
) -> None:
    """Render every format from the same admitted document, then write them: all or none."""
    from ..report import render

    rendered = []
    for form, path in chosen:
        if form == "text":
            from . import terminal

            shown = terminal.render(data, zone, terminal=path is None and sys.stdout.isatty())
        elif form == "template" and template is not None:
            shown = render.write_template(data, template, zone)
        else:
            shown = render.write(data, form, zone)
        rendered.append((shown, path))
    files = [(shown, path) for shown, path in rendered if path is not None]
    for _, path in files:
        _make_folder(path.parent)
    if files:
        write_files(files)
    else:
        write(rendered[0][0], None)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ForensicsError(f"cannot make folder {path}: {error.strerror}; choose another place with -o") from None


def write_private(text: str, path: Path) -> None:
    """A file that only its owner may read."""
    write_files([(text, path)], private=True)
