"""Third-party code inside the engine's processes: the first suspect when memory climbs without load."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding
from ...regexes import lazy_regex
from .. import ledger
from ..case import Case, conclude
from ..model import Death

_ARGUMENTS = frozenset(
    {
        "io_processor_plugin",
        "logits_processors",
        "middleware",
        "reasoning_parser_plugin",
        "scheduler_cls",
        "stat_loggers",
        "tool_parser_plugin",
        "worker_cls",
        "worker_extension_cls",
    }
)
"""vLLM arguments (`EngineArgs`, `FrontendArgs`) that name code to import: a class, a function or a file."""
_IMPORTED = lazy_regex(r"(?<![\w./:])(?!vllm[.:])(?:/?[\w-]+(?:/[\w.-]+)*\.py\b|[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+)")


def loaded(case: Case, death: Death) -> Iterator[Finding]:
    """What the arguments, printed by the engine or given in the pod's spec, load into it beside vLLM."""
    spec = case.spec(death.entity)
    sources = {source for life in case.lives_of(death.entity) for source in life.sources}
    printed = [e for e in case.of_kind("engine_args") if e.locator.source in sources]
    seen: set[str] = set()
    for event in (*printed, *((spec,) if spec is not None else ())):
        told = {**ledger.flags_of(event), **event.fields}
        for name in sorted(_ARGUMENTS & told.keys()):
            for code in _IMPORTED.findall(str(told[name])):
                if code not in seen:
                    seen.add(code)
                    yield conclude("foreign_code", event, {"loaded_by": name, "foreign_code": code})
