"""What a template cuts out of `docker inspect`: `docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' vllm`.

The values stand alone in a row; what they are, only the command above them says. Read where the template holds
nothing but texts and paths, since a loop or a condition prints what cannot be told apart.

Formats: docker CLI 20 to 28, podman, nerdctl (Go `text/template`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from ..model import Event, Parsed
from ..regexes import lazy_regex
from ..sources import Format, Head
from .commands import is_command, owner_of, title_of
from .docker import inspected
from .located import Object, dig, quoted

_INSPECT = lazy_regex(
    r"(?:sudo )?(?:docker|podman|nerdctl) (?:container )?inspect "
    r"(?=.*?(?:-f|--format)[ =](?:'(?P<form>[^']+)'|\"(?P<form>[^\"]+)\"))"
)
_PATH = lazy_regex(r"\{\{-? ?\.(?P<path>[A-Z]\w*(?:\.[A-Z]\w*)*) ?-?\}\}")
_SHAPES = {"OOMKilled": "true|false", "Running": "true|false", "ExitCode": r"\d{1,3}", "Memory": r"\d{1,18}"}
"""How values look, so that no error of the command is taken for them."""
_WORDS = {"true": True, "false": False}


def _form_of(line: str) -> str:
    """The template of a command, empty when the line is no such command or the template does more than print paths."""
    found = _INSPECT.match(title_of(line))
    form = found["form"] if found else ""
    return form if _PATH.search(form) and "{{" not in _PATH.sub("", form) else ""


def _values(form: str, row: str) -> dict[str, str]:
    """What a row printed by a template holds, by path; empty when it is no such row."""
    paths = [found["path"] for found in _PATH.finditer(form)]
    between = _PATH.split(form.replace("\\t", "\t").replace("\\n", ""))[::2]
    cells = [f"({_SHAPES.get(path.rpartition('.')[2], '.*?')})" for path in paths]
    shape = "".join(regex.escape(text) + cell for text, cell in zip(between, [*cells, ""], strict=True))
    found = regex.fullmatch(shape, row.strip())
    return dict(zip(paths, found.groups(), strict=True)) if found else {}


def _entry(values: dict[str, str], line: int, name: str) -> Object:
    """The values at their places in the document that they were cut out of."""
    entry = Object(line)
    for path, text in {"Name": name, **values}.items():
        *outer, last = path.split(".")
        place = entry
        for step in outer:
            if not isinstance(place.get(step), Object):
                place.put(step, Object(line), line)
            place = place[step]
        place.put(last, _WORDS.get(text, text), line)
    return entry


def read(text: str, source: str) -> Parsed:
    """The state of each container whose values a template printed below its command."""
    lines = text.split("\n")
    events: list[Event] = []
    for index, line in enumerate(lines):
        if form := _form_of(line.rstrip()):
            events += _rows(form, owner_of(title_of(line.rstrip())).container, lines, index, source)
    return quoted(events, lines)


def _rows(form: str, name: str, lines: Sequence[str], at: int, source: str) -> Iterator[Event]:
    for index in range(at + 1, len(lines)):
        row = lines[index].strip()
        if not row or is_command(row) or not (values := _values(form, row)):
            return
        entry = _entry(values, index + 1, name)
        if isinstance(entry.get("State"), Object) and _tells_its_state(entry):
            yield from inspected(entry, source)


def _tells_its_state(entry: Object) -> bool:
    """Whether an end, or none, can be told: code 0 is also what a container shows that runs."""
    state = entry["State"]
    named = any(key in state for key in ("Status", "Running"))
    return named or dig(state, "OOMKilled") is True or str(dig(state, "ExitCode") or "0") != "0"


def _sniff(head: Head) -> int:
    return 96 if head.filled and _form_of(head.filled[0].rstrip()) else 0


FORMAT = Format("docker.template", "values cut out of docker inspect", _sniff, read)
