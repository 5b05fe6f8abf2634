"""Prometheus exposition text (`curl /metrics`): one scrape, or several below each other.

vLLM 0.4 to 0.33 (`vllm:*`), SGLang, DCGM exporter, cAdvisor and node exporter. Usage gauges are fractions.
Nothing in the text says when it was scraped, unless a loop printed the time above it or the samples carry a
stamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from .. import stamps
from ..model import Diagnostic, Event, Locator, Parsed, RawStamp, Scope, Severity
from ..regexes import lazy_re
from ..sources import Format, Head, mostly
from . import kube_state, reprs
from .dates import date_command
from .points import Points
from .series_names import meaning, scope_of

LAYER = "metrics"
_COMMENT = lazy_re(r"# (?:HELP|TYPE) [a-zA-Z_:][\w:]* .*")
_SAMPLE = lazy_re(
    r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{.*\})?(?: =>)? +[-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|NaN|Inf|\+Inf)"
    r"(?: \d{12,14}| @\[\d{10}(?:\.\d+)?\])?"
)
_PROMTOOL = lazy_re(r"(?P<name>.*) => (?P<value>\S+)(?: @\[(?P<at>[\d.]+)\])?")
"""`promtool query instant` and the page of Prometheus."""
_WANTED = lazy_re(
    r"vllm:|vllm_|sglang:|tgi_|DCGM_FI_|process_(?:resident|start|virtual)_|container_memory_|container_oom|container_spec_memory"
    r"|node_memory_(?:MemTotal|MemAvailable)|node_vmstat_oom_kill|nvidia_(?:smi|gpu)_|kube_pod_container_status_"
)
_FIELDS = {
    "vllm:num_preemptions_total": "preemptions_total",
    "process_start_time_seconds": "process_start_s",
    "process_virtual_memory_bytes": "process_virtual_bytes",
    "vllm:prompt_tokens_total": "prompt_tokens_total",
    "vllm:generation_tokens_total": "generation_tokens_total",
    "vllm:prefix_cache_queries_total": "prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total": "prefix_cache_hits_total",
    "vllm:corrupted_requests_total": "corrupted_requests_total",
    "container_spec_memory_limit_bytes": "memory_limit_bytes",
    "container_memory_failcnt": "failcnt",
    "container_oom_events_total": "oom_events_total",
    "node_vmstat_oom_kill": "oom_kill_total",
}
_WITHOUT_CLOCK = frozenset({"kv_cache_usage_pct", "requests_running", "requests_waiting", "preemptions_total"})
"""What a scrape says even when nothing tells its time: a full cache, a queue, a counter that grew since another."""
_CONFIG = ("vllm:cache_config_info", "vllm:cache_config")


@dataclass(slots=True)
class _Scrape:
    """Samples between two repetitions."""

    line: int
    stamp: RawStamp | None
    last: int = 0
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = field(default_factory=set)
    owners: dict[Scope, dict[str, Any]] = field(default_factory=dict)


def _sniff(head: Head) -> int:
    lines = [line for line in head.lines[:200] if line.strip()]
    if not lines or not mostly(lambda line: _COMMENT.fullmatch(line) or _SAMPLE.fullmatch(line), lines, 0.7):
        return 0
    comments = sum(_COMMENT.fullmatch(line) is not None for line in lines)
    samples = sum(_SAMPLE.fullmatch(line) is not None for line in lines)
    # without labels, comments and known names any file of `word number` lines would do
    told = comments or any("{" in line or _WANTED.match(line) for line in lines)
    return 95 if told and samples and comments + samples > 0.7 * len(lines) else 0


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.points = Points(source)
        self.events: list[Event] = []
        self.stamp: RawStamp | None = None
        self.scrape: _Scrape | None = None
        self.broken = 0

    def feed(self, number: int, line: str) -> None:
        if not line or line.startswith(("# HELP", "# TYPE")):
            return
        if not _SAMPLE.fullmatch(line):
            stamp = _printed_time(line)
            if stamp is not None:
                self.finish()
                self.stamp = stamp
            elif line[0] != "#" and _WANTED.match(line):
                self.broken += 1
            return
        if not _WANTED.match(line):
            return
        sample = _parse(line)
        if sample is None:
            self.broken += 1
            return
        name, labels, value, stamp = sample
        key = (name, frozenset(labels.items()))
        if self.scrape is not None and key in self.scrape.seen:
            self.finish()
        if self.scrape is None:
            self.scrape = _Scrape(number, self.stamp)
        self.scrape.seen.add(key)
        self.scrape.last = number
        self._take(self.scrape, number, line, name, labels, value, stamp or self.scrape.stamp)

    def finish(self) -> None:
        scrape, self.scrape, self.stamp = self.scrape, None, None
        if scrape is None:
            return
        for scope, fields in scrape.owners.items():
            kind, channel = (
                ("gpu_state", "nvidia")
                if scope.gpu and "memory_used_mib" in fields
                else ("metrics", "metrics")
            )
            self.events.append(Event(
                Locator(self.source, scrape.line, scrape.last), kind, channel, _text(fields),
                (scrape.stamp,) if scrape.stamp else (), scope, fields,
            ))  # fmt: skip

    def _take(
        self, scrape: _Scrape, number: int, line: str, name: str, labels: Mapping[str, str], value: float,
        stamp: RawStamp | None,
    ) -> None:  # fmt: skip
        scope = scope_of(labels)
        if name in _CONFIG:
            fields = {key: reprs.literal(text) for key, text in labels.items() if key != "engine"}
            self.events.append(Event(
                Locator(self.source, number, number), "engine_args", "metrics", f"cache_config_info {fields}",
                (stamp,) if stamp else (), scope, fields, raw=line,
            ))  # fmt: skip
            return
        if not isfinite(value):
            return
        if (end := kube_state.end_of(name, labels, value, Locator(self.source, number, number), line)) is not None:
            self.events.append(end)
        if name.startswith(kube_state.PREFIX):
            return
        known = meaning(name)
        if known is not None:
            series, factor = known
            if stamp is not None or series in _WITHOUT_CLOCK:
                self.points.add(series, scope, stamp, number, value * factor)
            key = series.removeprefix("gpu_") if scope.gpu else series
            scrape.owners.setdefault(scope, {})[key] = round(value * factor, 6)
        elif name in _FIELDS:
            scrape.owners.setdefault(scope, {})[_FIELDS[name]] = int(value) if value.is_integer() else value
        elif name == "DCGM_FI_DEV_XID_ERRORS":  # the last Xid, not a count, and perhaps days old
            scrape.owners.setdefault(scope, {})["last_xid"] = int(value)
        elif name == "DCGM_FI_DEV_FB_FREE":
            scrape.owners.setdefault(scope, {})["memory_free_mib"] = value
        elif name == "vllm:request_success_total":
            reason = labels.get("finished_reason", "all")
            fields = scrape.owners.setdefault(scope, {})
            fields[f"requests_{reason}_total"] = fields.get(f"requests_{reason}_total", 0) + int(value)


def _parse(line: str) -> tuple[str, dict[str, str], float, RawStamp | None] | None:
    from prometheus_client.parser import text_string_to_metric_families  # brings a web server and TLS with it

    if told := _PROMTOOL.fullmatch(line):
        line = f"{told['name']} {told['value']}" + (f" {float(told['at']) * 1000:.0f}" if told["at"] else "")
    try:
        for family in text_string_to_metric_families(f"{line}\n"):
            for sample in family.samples:
                when = sample.timestamp
                stamp = stamps.instant(float(when), LAYER, 1e-3) if when is not None else None
                return sample.name, dict(sample.labels), float(sample.value), stamp
    except (ValueError, OverflowError, IndexError, KeyError, TypeError):
        return None
    return None


_AT_END = lazy_re(r"#.{1,120}?[\s(@](?P<when>20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)\W*")
_OF_ANOTHER = lazy_re(r"(?i)build|built|creat|start|since|expir|until|updat|version|generat")
"""Dates of a comment that tell of something other than the scrape below it."""


def _printed_time(line: str) -> RawStamp | None:
    """`# scraped at 2026-…`, `=== Sun Nov 29 … ===`, `# curl :8000/metrics  2026-…`, or a bare time."""
    noted = _AT_END.fullmatch(line.rstrip())
    if noted and not _OF_ANOTHER.search(line) and (stamp := stamps.iso(noted["when"].rstrip(")]"), LAYER)):
        return stamp
    text = line.strip().strip("#=-*> ").strip()
    for word in ("scraped at", "scrape", "captured at", "date:", "time:", "timestamp:", "at"):
        if text.lower().startswith(word):
            text = text[len(word) :].strip(" :=")
    return (
        date_command(text, LAYER)
        if text[:1].isalnum() and any(char.isdigit() for char in text[:30])
        else None
    )


def _text(fields: Mapping[str, Any]) -> str:
    return " ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in fields.items()
    )


def _read(text: str, source: str) -> Parsed:
    """One `metrics` event a scrape and owner (engine, pod, process), with the figures that matter as fields.

    GPU figures become `gpu_state` events, `cache_config_info` an `engine_args` event. Scrapes with a time
    also become samples, of the scheduler's figures those without one, too. Lines that no parser understands are
    counted and skipped.
    """
    reader = _Reader(source)
    lines: Iterable[str] = text.split("\n")
    for number, line in enumerate(lines, 1):
        reader.feed(number, line.rstrip("\r"))
    reader.finish()
    diagnostics: tuple[Diagnostic, ...] = ()
    if reader.broken:
        message = f"{reader.broken} broken metric lines were skipped"
        diagnostics = (Diagnostic(source, None, Severity.NOTICE, message),)
    reader.events.sort(key=lambda event: event.locator.line)
    return Parsed(tuple(reader.events), reader.points.samples(), diagnostics)


FORMAT = Format("metrics.prometheus", "Prometheus metrics", _sniff, _read, begins="#a-zA-Z_:")
