"""The periodic statistics of engines as series, extracted while scanning.

vLLM (`engine/metrics.py`, `v1/metrics/loggers.py`, 0.4 to 0.33) has worded its line in seven ways; their
stable core is `Running: N reqs`. SGLang prints a line a batch (`managers/scheduler*.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan

from .. import stamps
from ..model import RawStamp, Samples, Scope, StampForm
from ..regexes import lazy_regex
from ..scan import Scanned, SeriesRows, SeriesSpec
from .points import Column, Points
from .records import unwrap

VLLM = SeriesSpec(
    anchor="Running: ",
    pattern=(
        r"^(.*?)(?:Engine (\d+): |(\d+ Engines Aggregated): )?"
        r"(?:Avg prompt throughput: ([\d.]+) tokens/s, Avg generation throughput: ([\d.]+) tokens/s, )?"
        r"Running: (\d+) reqs, (?:Swapped: (\d+) reqs, )?(?:Waiting|Pending): (\d+) reqs"
        r"(?:.*?[A-Z]+ KV cache usage: ([\d.]+)%)?(?:.*?, Prefix cache hit rate: ([\d.]+)%)?(.*)$"
    ),
    groups=(
        "stamp",
        "engine",
        "all",
        "prompt",
        "generation",
        "running",
        "swapped",
        "waiting",
        "usage",
        "hits",
        "tail",
    ),
    keys=("engine", "all"),
)
VLLM_V0_PREFIX = SeriesSpec(
    anchor="Prefix cache hit rate: GPU: ",
    pattern=r"^(.*?)Prefix cache hit rate: GPU: ([\d.]+)%(.*)$",
    groups=("stamp", "hits", "tail"),
)
SGLANG = SeriesSpec(
    anchor="#running-req: ",
    pattern=(
        r"^(.*?)(?:Prefill batch.*? token usage: ([\d.]+).*?#running-req: (\d+), #queue-req: (\d+)"
        r"|Decode batch.*?#running-req: (\d+).*? token usage: ([\d.]+)"
        r"(?:.*?gen throughput \(token/s\): ([\d.]+))?(?:.*?#queue-req: (\d+))?)(.*)$"
    ),
    groups=(
        "stamp", "prefill_usage", "prefill_running", "prefill_waiting", "running", "usage_fraction",
        "generation", "waiting", "tail",
    ),
)  # fmt: skip
SERIES = (VLLM, VLLM_V0_PREFIX, SGLANG)

_NAMES = {
    "prompt": ("prompt_tokens_per_s", 1.0),
    "generation": ("generation_tokens_per_s", 1.0),
    "running": ("requests_running", 1.0),
    "swapped": ("requests_swapped", 1.0),
    "waiting": ("requests_waiting", 1.0),
    "usage": ("kv_cache_usage_pct", 1.0),
    "hits": ("prefix_cache_hit_pct", 1.0),
    "usage_fraction": ("kv_cache_usage_pct", 100.0),
    "prefill_usage": ("kv_cache_usage_pct", 100.0),
    "prefill_running": ("requests_running", 1.0),
    "prefill_waiting": ("requests_waiting", 1.0),
}
_ENGINE_STAMP = lazy_regex(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d) \[?[\w./-]+:\d+\] ?$")
_SGLANG_STAMP = lazy_regex(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: [A-Z]+\d+)*)\] ?$")


def samples(scanned: Scanned, source: str) -> Sequence[Samples]:
    """Rows of the statistics lines → samples, in the time of the engine's own header where it has one.

    `scope.process` is `Engine 000` where the line names its engine, `TP0` for a rank of SGLang. Percent
    stays percent; SGLang's fraction of used tokens becomes percent.
    """
    points = Points(source)
    for rows in scanned.series:
        if rows.spec in SERIES:
            _read(rows, points)
    return points.samples()


def _read(rows: SeriesRows, points: Points) -> None:
    columns = rows.columns
    heads, tails = columns["stamp"], columns["tail"]
    engines = columns.get("engine") or [None] * len(heads)
    totals = columns.get("all") or [None] * len(heads)
    values = [(_NAMES[name], columns[name]) for name in rows.spec.groups if name in _NAMES]
    outer = _cached_scope()
    same: tuple[Scope, StampForm, str] | None = None
    known: dict[str, Column] = {}
    for row, line in enumerate(rows.lines):
        head = heads[row] or ""
        stamp, process = _stamp(head, tails[row] or "")
        if engines[row]:
            process = f"Engine {engines[row]}"
        elif totals[row]:
            process = totals[row] or ""
        scope = outer(head, tails[row] or "", process)
        form, layer, seconds = (
            (stamp.form, stamp.layer, stamp.seconds) if stamp else (StampForm.LOCAL, "", nan)
        )
        if same is None or scope is not same[0] or form is not same[1] or layer != same[2]:
            same, known = (scope, form, layer), {}
        for (name, factor), column in values:
            text = column[row]
            if text is not None:
                if name not in known:
                    known[name] = points.column(name, scope, form, layer)
                known[name].append(line, seconds, _number(text) * factor)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # 1.2.3
        return nan


def _stamp(head: str, tail: str) -> tuple[RawStamp | None, str]:
    """The engine's stamp before the text, else the innermost envelope's; and SGLang's rank."""
    found = _ENGINE_STAMP.search(head)
    if found:
        return stamps.month_day(int(found[1]), int(found[2]), found[3], "engine"), ""
    found = _SGLANG_STAMP.search(head)
    if found:
        return stamps.iso(found[1], "engine"), found[2].strip()
    around = unwrap(f"{head}-{tail}").stamps  # JSON needs its end to be read
    return (around[-1] if around else None), ""


_STERN = lazy_regex(r"(?P<pod>[a-z0-9][a-z0-9.-]*-(?:\d{1,4}|[a-z0-9]{5})) (?P<container>[a-z0-9][a-z0-9-]*) ")


def _cached_scope() -> Callable[[str, str, str], Scope]:
    """Pod or container of a line that a collector labelled (`[pod/…]`, compose, stern, JSON, Loki), and the process."""
    known: dict[tuple[str, str], Scope] = {}

    def scope(head: str, tail: str, process: str) -> Scope:
        prefix = ""
        if head.startswith("{") or (head[:4].isdigit() and " {" in head[:48]):
            owner = unwrap(f"{head}-{tail}").scope
            return Scope(process=process, pod=owner.pod, container=owner.container)
        if head.startswith("[pod/"):
            prefix = head.partition("] ")[0] + "] "
        elif " | " in head[:80]:
            prefix = head.partition(" | ")[0] + " | "
        elif (named := _STERN.match(head)) is not None:
            return Scope(process=process, pod=named["pod"], container=named["container"])
        key = (prefix, process)
        if key not in known:
            owner = unwrap(f"{prefix}-").scope if prefix else Scope()
            known[key] = Scope(process=process, pod=owner.pod, container=owner.container)
        return known[key]

    return scope
