"""What a user points at: a finding (`F12`), a cause, `first-cause`, or a place (`logs/vllm.log:812`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import regex

from ..errors import OptionError

if TYPE_CHECKING:
    from ..diagnosis.model import Diagnosis, Hypothesis
    from ..model import Event, Finding

FINDING = regex.compile(r"[Ff]\d+")
PLACE = regex.compile(r"(?P<source>.+):(?P<line>\d+)")
FIRST_CAUSE = "first-cause"


def finding(diagnosis: Diagnosis, name: str) -> Finding | None:
    """The finding with an id, or none for a name that is no such id. Raises `OptionError` for an id that is not used."""
    if not FINDING.fullmatch(name):
        return None
    found = next((f for f in diagnosis.findings if f.id == name.upper()), None)
    if found is None:
        count = len(diagnosis.findings)
        there = f"there are F1 to F{count}" if count else "there are none"
        raise OptionError(f"no finding is called {name.upper()} in this bundle; {there}")
    return found


def hypotheses(diagnosis: Diagnosis, cause: str) -> tuple[Hypothesis, ...]:
    """The hypotheses of all incidents about one cause, the main incident's first."""
    return tuple(h for incident in diagnosis.incidents for h in incident.hypotheses if h.cause.id == cause)


def at(events: Iterable[Event], place: str) -> tuple[Event, ...]:
    """The events at `file:line`; a file is named by its path in the bundle or by an end of it."""
    found = PLACE.fullmatch(place)
    if found is None:
        return ()
    source, line = found["source"], int(found["line"])
    return tuple(
        event for event in events
        if event.locator.line <= line <= event.locator.line_end and is_end(event.locator.source, source)
    )  # fmt: skip


def is_end(path: str, end: str) -> bool:
    """True when `end` is the path or its last parts: `vllm.log` for `logs/vllm.log`."""
    return path == end or path.endswith(f"/{end}")


def anchor(diagnosis: Diagnosis, events: Iterable[Event], name: str) -> Event:
    """The event that a name points at; for a cause the line that a reader should look at first.

    Raises `OptionError` with what can be named instead.
    """
    from ..diagnosis.judge import first_cause

    named = finding(diagnosis, name)
    if named is None and name == FIRST_CAUSE:
        named = diagnosis.first_cause
        if named is None:
            raise OptionError(f"the bundle shows no first cause (verdict: {diagnosis.verdict.cause.id}); name a finding")
    if named is None:
        firsts = (first_cause(hypothesis) for hypothesis in hypotheses(diagnosis, name))
        named = next((first for first in firsts if first is not None), None)
    if named is not None:
        return named.event
    places = at(events, name)
    if places:
        return places[0]
    causes = dict.fromkeys(h.cause.id for incident in diagnosis.incidents for h in incident.hypotheses if h.decisive)
    raise OptionError(
        f"nothing in this bundle is called {name!r}; name a finding (F1 … F{len(diagnosis.findings)}), a place such as "
        f"logs/vllm.log:812, {FIRST_CAUSE}{''.join(f', {cause}' for cause in causes)}"
    )
