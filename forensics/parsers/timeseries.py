"""Time series that somebody exported: Prometheus range queries as JSON or CSV, Grafana CSV, hand-made loops.

A table is known by its time column. Columns whose names are understood become samples; the others are left
alone.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import regex

from .. import stamps
from ..model import Diagnostic, Event, Locator, Parsed, RawStamp, Scope, Severity, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from . import kube_state, nvidia_csv
from .dates import date_command
from .k8s_values import terminated_text
from .numerals import is_whole
from .points import Points
from .series_names import (
    counts_restarts,
    legend_owner,
    limit_factor,
    meaning,
    owner_of,
    panel_meaning,
    scope_of,
    tells_oomkilled,
)
from .sizes import size_bytes

LAYER = "metrics"
_TIME_NAMES = lazy_regex(
    r'"?(?:timestamp|time|date|datetime|ts|minute|when|epoch|unix_?time)(?:[_ ]?\w{0,12})?"?', regex.IGNORECASE
)
_LABELS = frozenset({
    "pod", "container", "namespace", "instance", "node", "gpu", "uuid", "gpu_uuid", "engine", "pid",
    "process",
    "job", "hostname", "host", "index", "name", "model_name", "command", "comm", "pod_name", "container_name",
})  # fmt: skip
_GRAFANA = lazy_regex(r"(?P<metric>[A-Za-z_:][\w:]*)?\{(?P<labels>[^}]*)\}")
_SELECTOR = lazy_regex(r"#+\s*(?P<selector>(?P<metric>[A-Za-z_:][\w:]*)\{[^}]*\})")
_LABEL = lazy_regex(r'(\w+)="+([^"]*)"+')
_EPOCH_S = lazy_regex(r"1\d{9}(?:\.\d{1,12})?")
_EPOCH_MS = lazy_regex(r"1\d{12}")
_CLOCK = lazy_regex(r"(\d\d):(\d\d):(\d\d)")
_REMARK_CHARS = 200
_UNIT_REMARK = lazy_regex(r"[(\[](?:in )?(?P<unit>[KMG]i?B|bytes)[)\]]", regex.IGNORECASE)
_SIZE = lazy_regex(r"\d+(?:\.\d+)? ?(?:[kmgt]i?)?b", regex.IGNORECASE)
_USAGE = lazy_regex(r"mem(?:ory)?_(?:us(?:age|ed)_|(?:[kmgt]i?b|b|bytes)$)", regex.IGNORECASE)
_CONTAINERS = frozenset({"container", "container_name", "pod", "pod_name"})
_ANSWER = lazy_regex(r'\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{\s*"resultType"')


def _time(text: str, utc: bool) -> RawStamp | None:
    """Unix seconds or milliseconds, ISO 8601, `date` output, or a time of day."""
    text = text.strip().strip('"')
    if _EPOCH_S.fullmatch(text):
        return stamps.instant(float(text), LAYER, 1.0 if "." not in text else 1e-3)
    if _EPOCH_MS.fullmatch(text):
        return stamps.instant(int(text) / 1000, LAYER, 1e-3)
    stamp = date_command(text.replace("/", "-") if text[4:5] == "/" else text, LAYER)
    if stamp is not None and utc and stamp.form is StampForm.LOCAL:
        return replace(stamp, form=StampForm.INSTANT)
    clock = _CLOCK.fullmatch(text) if stamp is None else None
    if clock:
        return RawStamp(StampForm.CLOCK, LAYER, int(clock[1]) * 3600.0 + int(clock[2]) * 60 + int(clock[3]))
    return stamp


def _header(lines: Sequence[str]) -> tuple[int, list[str], str] | None:
    """(index of the header line, column names, separator) of a table with a time column first or last."""
    for i, line in enumerate(lines[:6]):
        if line.lstrip()[:1].isdigit():
            continue  # a row
        if (named := _named_in_comment(line)) and any(len(row.split()) == len(named) for row in lines[i + 1 : i + 3]):
            return i, named, " "
        for separator in (",", ";", "\t"):
            cells = _split(line, separator) if separator in line else []
            timed = len(cells) >= 2 and (_TIME_NAMES.fullmatch(cells[0]) or _TIME_NAMES.fullmatch(cells[-1]))
            if timed and not any(cell[:1].isdigit() for cell in cells):
                return i, cells, separator
    return None


def _named_in_comment(line: str) -> list[str]:
    """The columns that a remark above bare rows names: `# every 10 min: epoch rss_kib comm`, `# (kB) date api_rss`."""
    if not line.startswith("#") or len(line) > _REMARK_CHARS:
        return []
    unit = _UNIT_REMARK.search(line)
    words = _UNIT_REMARK.sub(" ", line.lstrip("# ").rpartition(": ")[2]).split()
    if len(words) < 2 or not _TIME_NAMES.fullmatch(words[0]):
        return []
    return [f"{word}_{unit['unit']}" if unit and _lacks_unit(word) else word for word in words]


def _split(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]


def _sniff_csv(head: Head) -> int:
    lines = [line for line in head.lines[:40] if line.strip()]
    found = _header(lines)
    if found is None:
        return 0
    at, names, separator = found
    if nvidia_csv.columns_of(lines[at]):
        return 0
    rows = [_split(line, separator) for line in lines[at + 1 :]]
    place = 0 if _TIME_NAMES.fullmatch(names[0]) else -1
    good = sum(len(row) == len(names) and _time(row[place], False) is not None for row in rows)
    return 91 if rows and good >= 0.7 * len(rows) else 0


def _read_csv(text: str, source: str) -> Parsed:
    """Samples of the columns that are understood; a memory limit becomes a `cgroup` event, an OOM kill an end.

    The scope comes from label columns or from the header.
    """
    lines = text.split("\n")
    found = _header(lines)
    if found is None:
        return Parsed()
    at, names, separator = found
    rows = (_split(line, separator) for line in lines[at + 1 :])
    first = next((row for row in rows if len(row) == len(names)), names)
    names = _with_units(names, first)
    place = 0 if _TIME_NAMES.fullmatch(names[0]) else len(names) - 1
    utc = "utc" in names[place].lower()
    labels = [i for i, name in enumerate(names) if name.lower() in _LABELS]
    told = [i for i in range(len(names)) if i != place and i not in labels]
    hint = _caption(lines[:at]) or PurePosixPath(source).stem
    values = [(i, *known, scope) for i in told
              for known, scope in [_column(names[i], hint, first[i])] if known is not None]  # fmt: skip
    limits = [(i, unit) for i, name in enumerate(names) if (unit := limit_factor(name)) is not None]
    kills = _Kills(names)
    if not values and not limits and not kills.flags:
        message = f"time series without a column that is understood ({', '.join(names)}); not used"
        return Parsed(diagnostics=(Diagnostic(source, at + 1, Severity.INFO, message),))
    points = Points(source)
    scopes: dict[tuple[str, ...], Scope] = {}
    events: list[Event] = []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        plain = '"' not in line and separator != " "
        row = line.rstrip("\r").split(separator) if plain else _split(line, separator)
        if len(row) != len(names):
            continue
        stamp = _time(row[place], utc)
        if stamp is None:
            continue
        key = tuple(row[i].strip() for i in labels)
        if key not in scopes:
            scopes[key] = scope_of({names[i]: cell for i, cell in zip(labels, key, strict=True)})
            events += _limit_events(row, limits, Event(
                Locator(source, number, number), "cgroup", "cgroup", "", (stamp,), scopes[key], raw=line,
            ))  # fmt: skip
        if kills.flags:
            end = kills.told(row, Event(
                Locator(source, number, number), "cgroup", "cgroup", "", (stamp,), scopes[key], raw=line,
            ))  # fmt: skip
            events += [end] if end is not None else []
        for i, series, factor, scope in values:
            value = _value(row[i], series, factor)
            if value is not None:
                points.add(series, scope.merged(scopes[key]), stamp, number, value)
    return Parsed(tuple(events), points.samples())


def _with_units(names: Sequence[str], row: Sequence[str]) -> list[str]:
    """The names of columns, with the unit that stands in their cells instead: `mem_usage` of `31.0GiB`.

    What is used of a limit beside it, or beside the name of a container, is a container's (`docker stats`), and so is
    a bare `name`.
    """
    sized = [f"{name}_bytes" if _SIZE.fullmatch(cell) and _lacks_unit(name) else name
             for name, cell in zip(names, row, strict=True)]  # fmt: skip
    named = not _CONTAINERS.isdisjoint(map(str.lower, sized))
    if not named and not any(limit_factor(name) is not None for name in sized):
        return sized
    sized = [f"container_{name}" if _USAGE.match(name) else name for name in sized]
    return sized if named else ["container" if name.lower() == "name" else name for name in sized]


def _lacks_unit(name: str) -> bool:
    """True for a quantity of memory that would be understood if its name said the unit."""
    named = f"{name}_bytes"
    known = bool(meaning(named)) or limit_factor(named) is not None or _USAGE.match(named) is not None
    return known and meaning(name) is None and limit_factor(name) is None


def _limit_events(row: Sequence[str], limits: Sequence[tuple[int, int]], event: Event) -> list[Event]:
    """The memory limit that a table repeats in every row, told once."""
    found = []
    for i, factor in limits:
        amount = row[i].strip()
        limit = int(amount) * factor if is_whole(amount) else size_bytes(amount) if _SIZE.fullmatch(amount) else None
        if limit is not None:
            fields = {"file": "memory.max", "memory_max_bytes": int(limit)}
            found.append(replace(event, text=f"memory.max = {int(limit)}", fields=fields))
    return found


def _caption(above: Sequence[str]) -> str:
    """The selector that a remark above a table names: `# DCGM_FI_DEV_FB_USED{gpu="2"}  step 30m`; empty when none."""
    found = (_SELECTOR.match(line) for line in above)
    return next((match["selector"] for match in found if match and meaning(match["metric"])), "")


def _column(name: str, hint: str, cell: str) -> tuple[tuple[str, float] | None, Scope]:
    """The meaning of a column; Grafana writes labels or a legend into the name, or only `Value` below a file, or a
    caption, that says what it is; below a caption it may be only the unit. `cell` is the first one below the name.
    """
    labels, panel = _GRAFANA.fullmatch(name.strip()), panel_meaning(hint) if _counts_bytes(cell) else None
    if labels:
        known = meaning(labels["metric"] or hint) or panel
        return known, scope_of(dict(_LABEL.findall(labels["labels"])))
    if panel and (owner := legend_owner(name)) != Scope():
        return panel, owner
    captioned, size = _GRAFANA.fullmatch(hint), size_bytes(f"1 {name}")
    known = meaning(captioned["metric"] or "") if captioned and (size or name.lower() == "value") else None
    if captioned and known is not None:
        unit = 2**20 if known[0].endswith("_mib") else 2**10 if known[0].endswith("_kib") else 0
        known = (known[0], size / unit) if size and unit else known
        return known, scope_of(dict(_LABEL.findall(captioned["labels"])))
    known = meaning(name)
    if known is None and name.lower() in ("value", "working_set", "bytes", "usage"):
        words = [hint, *regex.findall(r"[A-Za-z_:][\w:]+", hint)]  # `prom-container_memory_working_set_bytes`
        known = next(filter(None, map(meaning, (*words, f"{hint}_bytes"))), None)
    return known, owner_of(name)


def _counts_bytes(cell: str) -> bool:
    """True for a size with its unit, and for a whole number that can only be bytes."""
    return _SIZE.fullmatch(cell) is not None or (is_whole(cell) and int(cell) >= 2**20)


class _Kills:
    """OOM kills that a table tells: a flag for the reason of the last end, beside a counter of restarts."""

    def __init__(self, names: Sequence[str]) -> None:
        self.flags = [i for i, name in enumerate(names) if tells_oomkilled(name)]
        self.counters = [i for i, name in enumerate(names) if counts_restarts(name)]
        self.last: dict[Scope, tuple[float, float, float]] = {}
        """Flag, counter and time of a container's row before."""

    def told(self, row: Sequence[str], event: Event) -> Event | None:
        """An end between the row before and this one; what the first row shows happened nobody knows when."""
        flag, count = (max((_value(row[i], "", 1.0) or 0.0 for i in columns), default=0.0)
                       for columns in (self.flags, self.counters))  # fmt: skip
        stamp = event.stamps[0]
        before = self.last.get(event.scope)
        self.last[event.scope] = (flag, count, stamp.seconds)
        if before is None or not flag or stamp.seconds <= before[2] or not (count > before[1] or flag > before[0]):
            return None
        step_s = stamp.seconds - before[2]
        between = replace(stamp, seconds=stamp.seconds - step_s / 2, resolution_s=step_s)
        fields = {"reason": "OOMKilled", "last_state": True, **({"restart_count": int(count)} if count else {})}
        text = terminated_text(event.scope.container, "OOMKilled", None)
        return replace(event, kind="container_terminated", channel="k8s", text=text, stamps=(between,), fields=fields)


def _value(cell: str, series: str, factor: float) -> float | None:
    cell = cell.strip().strip('"')
    try:
        return float(cell) * factor
    except ValueError:
        size = size_bytes(cell)  # Grafana prints `1.72 GB` when the panel has a unit
        unit = 2**20 if series.endswith("_mib") else 2**10 if series.endswith("_kib") else 0
        return size / unit if size is not None and unit else None


def _sniff_json(head: Head) -> int:
    return 95 if _ANSWER.match(head.text) else 0


def _read_json(text: str, source: str) -> Parsed:
    """The answer of Prometheus' HTTP API (`query_range`, `query`)."""
    try:
        results = json.loads(text)["data"]["result"]
        series = list(_series(results))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        message = f"the Prometheus answer could not be read ({type(error).__name__})"
        return Parsed(diagnostics=(Diagnostic(source, None, Severity.WARNING, message),))
    points = Points(source)
    hint = PurePosixPath(source).stem
    ends = _ends(series, text, source)
    for labels, values in series:
        known = meaning(str(labels.get("__name__") or hint))
        if known is None:
            continue
        scope = scope_of({key: str(value) for key, value in labels.items()})
        for when, value in values:
            stamp = stamps.instant(float(when), LAYER, 1e-3)
            if stamp is not None:
                points.add(known[0], scope, stamp, 1, float(value) * known[1])
    return Parsed(ends, points.samples())


def _ends(
    series: Sequence[tuple[Mapping[str, Any], list[tuple[float, float]]]], text: str, source: str
) -> tuple[Event, ...]:
    """Ends of containers, each at the first line that names its pod."""
    found = []
    for labels, values in series:
        told = {key: str(value) for key, value in labels.items()}
        line = 1 + text.count("\n", 0, max(0, text.find(f'"{told.get("pod")}"')))
        end = kube_state.end_of(told.get("__name__", ""), told, values[-1][1] if values else 0.0,
                                Locator(source, line, line))  # fmt: skip
        found += [end] if end is not None else []
    return tuple(found)


def _series(results: Any) -> Iterator[tuple[Mapping[str, Any], list[tuple[float, float]]]]:
    for result in results:
        rows = result.get("values") or ([result["value"]] if "value" in result else [])
        yield result.get("metric", {}), [(float(when), float(value)) for when, value in rows]


FORMATS = (
    Format("metrics.csv", "time series (CSV)", _sniff_csv, _read_csv, begins=r"\D"),
    Format("metrics.json", "Prometheus query result", _sniff_json, _read_json, begins="{"),
)
