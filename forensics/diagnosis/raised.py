"""An exception without its log: a traceback or its last line, pasted alone, of an engine that nothing else tells of."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from ..model import Event, Finding, Role
from ..parsers import traceback
from ..regexes import lazy_regex
from .case import Case, conclude
from .ends import ECHOES
from .rules.engine import AT_WORK, is_of_settings

_ENGINE = lazy_regex(
    r"(?:^|/)(?:vllm|sglang|text_generation_server|lmdeploy|tensorrt_llm|transformers|safetensors|llama_cpp"
    r"|flashinfer|torch)/"
)
"""Packages of which an engine is made; a client's own libraries are none of them."""
_LINE = lazy_regex(
    r"(?:\[rank\d+\]: ?)?(?P<exception>(?:\w+\.){0,6}(?:Value|Type|Key|Attribute|Import|NotImplemented|Assertion|Index"
    r"|Name|UnboundLocal|ZeroDivision|FileNotFound|Permission|Argument|Validation|JSONDecode)Error): \S.*",
    regex.DOTALL,
)
"""What is raised by a program about itself. Errors of the network may be a client's, those of CUDA have signatures."""
FEW_LINES = 9
"""A paste of so few lines is about its error; in a longer text the error may have been survived."""


def raised(case: Case) -> tuple[str, Finding] | None:
    """(cause, finding) of the first such exception; none where an engine is seen at work, or a signature knows it."""
    if any(life.ready is not None or life.last_activity is not None for life in case.lives):
        return None
    known = {id(f.event) for f in case.findings if f.role in (Role.CAUSE, Role.CONSEQUENCE)}
    for event, exception in _exceptions(case):
        if id(event) in known or ECHOES.search(event.text):
            continue
        frames = event.fields.get("frames", ())
        refused = is_of_settings(exception, frames) and not any(map(AT_WORK.search, frames))
        name, cause = ("config_exception", "config_error") if refused else ("uncaught_exception", "app_bug")
        return cause, conclude(name, event, {"exception": exception, "phase": "unknown"})
    return None


def _exceptions(case: Case) -> Iterator[tuple[Event, str]]:
    lines = {source.path: source.lines for source in case.sources}
    for event in case.events:
        if event.kind == "traceback":
            ours = any(_ENGINE.search(frame) for frame in event.fields.get("frames", ()))
            if ours and event.complete and not event.fields.get("chained"):
                yield event, traceback.exception_of(event)
        elif event.kind == "log" and event.channel in ("plain", "engine") and lines[event.locator.source] <= FEW_LINES:
            found = _LINE.fullmatch(event.text)
            if found is not None:
                yield event, str(found["exception"])
