"""What a user points at: a finding (`F12`), a cause, `first-cause`, or a place (`logs/vllm.log:812`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from ..errors import OptionError
from ..regexes import lazy_re

if TYPE_CHECKING:
    from ..diagnosis.model import Diagnosis
    from ..model import Event, Finding, Locator, Source
    from ..pipeline import Reading

FINDING = lazy_re(r"[Ff]\d+")
PLACE = lazy_re(r"(?P<source>.+):(?P<line>\d+)")
FIRST_CAUSE = "first-cause"


def finding(diagnosis: Diagnosis, name: str) -> Finding | None:
    """The finding with an id, none for a name that is no id. Raises `OptionError` for an unused id."""
    if not FINDING.fullmatch(name):
        return None
    found = next((f for f in diagnosis.findings if f.id == name.upper()), None)
    if found is None:
        count = len(diagnosis.findings)
        there = f"there are F1 to F{count}" if count else "there are none"
        raise OptionError(f"no finding is called {name.upper()} in this bundle; {there}")
    return found


def first_cause(diagnosis: Diagnosis, name: str) -> Finding | None:
    """The finding behind the word `first-cause`, none for other words. Raises `OptionError` when there is none."""
    if name != FIRST_CAUSE:
        return None
    if diagnosis.first_cause is None:
        raise OptionError(f"the bundle shows no first cause; its verdict is {diagnosis.verdict.cause.id}")
    return diagnosis.first_cause


def source(sources: Sequence[Source], name: str) -> str:
    """The path of a file that is named in full or by its last parts. Raises `OptionError` for none or several."""
    from ..report.view import short

    fitting = [s.path for s in sources if s.path.endswith(name)]
    whole = [path for path in fitting if path == name] or [path for path in fitting if path.endswith(f"/{name}")]
    fitting = whole or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ends = short({"sources": [{"path": path} for path in fitting]})
        raise OptionError(f"several files are called {name}; name {' or '.join(ends[path] for path in fitting[:5])}")
    close = difflib.get_close_matches(name, [s.path for s in sources], 3, 0.5)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; see `oomforensics sources`"
    raise OptionError(f"no file of the bundle is called {name}{hint}")


def at(events: Iterable[Event], path: str, line: int) -> tuple[Event, ...]:
    """The events that a line is part of."""
    return tuple(event for event in events if covers(event.locator, path, line))


def covers(locator: Locator, path: str, line: int) -> bool:
    return locator.source == path and locator.line <= line <= locator.line_end


def anchor(reading: Reading, diagnosis: Diagnosis, name: str) -> Event:
    """The event that a name points at; for a cause, the line that a reader should look at first.

    Raises `OptionError` with what can be named instead.
    """
    from ..diagnosis import judge

    named = finding(diagnosis, name) or first_cause(diagnosis, name)
    if named is None:
        hypotheses = (h for incident in diagnosis.incidents for h in incident.hypotheses if h.cause.id == name)
        named = next((first for h in hypotheses if (first := judge.first_cause(h)) is not None), None)
    if named is not None:
        return named.event
    place = PLACE.fullmatch(name)
    if place is None:
        unknown(reading, diagnosis, name)
    path, line = source(reading.sources, place["source"]), int(place["line"])
    there = at(reading.events, path, line)
    if not there:
        raise OptionError(f"{path}:{line} holds no event; `explain BUNDLE {path}:{line}` names its neighbours")
    return there[0]


def unknown(reading: Reading, diagnosis: Diagnosis, name: str) -> NoReturn:
    """Raises `OptionError`: nothing is called so; says what is, and what looks alike."""
    if name in reading.library.causes:
        raise OptionError(f"nothing in this bundle speaks for {name}; `oomforensics explain BUNDLE {name}` says more")
    close = difflib.get_close_matches(name, reading.library.causes, 3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    count = len(diagnosis.findings)
    raise OptionError(
        f"{name!r} is no file, cause, finding or line of this bundle{hint} "
        f"(findings: {'F1' + (f' to F{count}' if count > 1 else '') if count else 'none'}; a line is named file:number)"
    )
