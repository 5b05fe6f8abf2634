"""Logs downloaded from a log backend as one document: a JSON array or API answer, or a CSV table.

Google Cloud Logging (JSON and YAML), CloudWatch (`filter-log-events`, Insights), Loki's API and Grafana's downloads,
Elasticsearch and Kibana, Datadog, Splunk, Azure Log Analytics, OpenTelemetry (OTLP). Each entry is read as the line of
a log that it once was (`envelopes.shippers`). Backends show the newest entry first: such a file is read from its end.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

from ..model import Diagnostic, Event, Parsed, Severity
from ..regexes import lazy_regex
from ..sources import Format, Head, mostly
from .embedded import read_text
from .envelopes.shippers import AUTHORS, flat, is_shipped, message_of, moment, shipped
from .json_yaml import read_json, read_yaml
from .k8s_cluster import event_events
from .layer import Layer
from .located import Array, Object, dig, objects_at, text_at
from .newest_first import is_newest_first, placed_all

MAX_BYTES = 512 << 20
MAX_YAML_BYTES = 64 << 20
MAX_ENTRIES = 1_000_000
MAX_ENTRY_VALUES = 10_000
SNIFF_CHARS = 64 << 10
_LISTS: tuple[tuple[str, ...], ...] = (
    ("events",), ("hits", "hits"), ("entries",), ("logs",), ("data",), ("results",), ("items",), ("Records",),
)  # fmt: skip
"""Where an API's answer keeps its entries."""
WRAPPERS = ("jsonPayload", "_source", "attributes")
"""Keys under which backends keep the entry that they were sent."""
_PAYLOADS = frozenset({"jsonPayload", "protoPayload", "textPayload"})
"""Of a `LogEntry` of Google Cloud Logging."""


@dataclass(frozen=True, slots=True)
class _Entry:
    line: int
    value: Mapping[str, Any]
    stream: int = 0


def _entries(text: str) -> Iterator[_Entry]:
    for document in read_json(text):
        yield from _of_document(document.value)


def _of_document(value: Any) -> Iterator[_Entry]:
    if isinstance(value, Array):
        for item, line in zip(value, value.lines, strict=True):
            if isinstance(item, Object):
                yield _Entry(line, item)
            elif isinstance(item, Array):
                yield _Entry(line, _pairs(item))
        return
    if not isinstance(value, Object):
        return
    if isinstance(value.get("resourceLogs"), Array):
        yield from _otel(value)
        return
    streams = dig(value, "data", "result")
    if isinstance(streams, Array):
        yield from _loki(streams)
        return
    for path in _LISTS:
        found = dig(value, *path)
        if isinstance(found, Array):
            yield from _of_document(found)
            return
    yield _Entry(value.line, value)


def _pairs(item: Array) -> Mapping[str, Any]:
    """CloudWatch Insights: a row is a list of `{"field": …, "value": …}`."""
    cells = [cell for cell in item if isinstance(cell, Object)]
    return {str(cell["field"]): cell["value"] for cell in cells if "field" in cell and "value" in cell}


def _otel(value: Object) -> Iterator[_Entry]:
    """OTLP in JSON: attributes of the resource once, then its records."""
    for resource in objects_at(value, "resourceLogs"):
        labels = {
            text_at(attribute, "key"): text_at(attribute, "value", "stringValue")
            for attribute in objects_at(resource, "resource", "attributes")
        }
        for scope in objects_at(resource, "scopeLogs"):
            for record in objects_at(scope, "logRecords"):
                when = text_at(record, "timeUnixNano") or text_at(record, "observedTimeUnixNano")
                body = text_at(record, "body", "stringValue")
                yield _Entry(record.line, {"labels": labels, "timestamp": when, "line": body})


def _loki(streams: Array) -> Iterator[_Entry]:
    """Loki's `query_range`: labels once, then `["<ns>", "<line>"]` for each line; merged by their times."""
    found: list[tuple[str, _Entry]] = []
    for number, stream in enumerate(streams):
        labels, values = dig(stream, "stream"), dig(stream, "values")
        if not isinstance(values, Array):
            continue
        for item in values:
            if isinstance(item, Array) and len(item) >= 2 and isinstance(item[1], str):
                entry = {"labels": labels if isinstance(labels, dict) else {}, "timestamp": item[0], "line": item[1]}
                found.append((str(item[0]).rjust(20), _Entry(item.lines[1], entry, number)))
    found.sort(key=lambda pair: pair[0])
    yield from (entry for _, entry in found)


def read(text: str, source: str) -> Parsed:
    """Entries of a JSON document, oldest first, each at its line."""
    return _read(list(_entries(text)), source)


def read_yaml_entries(text: str, source: str) -> Parsed:
    """What `gcloud logging read` prints unless it is asked for JSON: a YAML document an entry."""
    found = (entry for document in read_yaml(text) for entry in _of_document(document.value))
    return _read([entry for entry in found if _is_small(entry.value)], source)


def _is_small(value: Any) -> bool:
    """Whether an entry, written out, stays small: an alias of YAML may stand for another's aliases, and so on."""
    waiting = [value]
    for _ in range(MAX_ENTRY_VALUES):
        if not waiting:
            return True
        item = waiting.pop()
        waiting += item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ()
    return False


def _read(entries: list[_Entry], source: str) -> Parsed:
    problems: list[Diagnostic] = []
    if len(entries) > MAX_ENTRIES:
        said = f"{source}: only the first {MAX_ENTRIES:,} of {len(entries):,} entries were read"
        problems.append(Diagnostic(source, None, Severity.WARNING, said, "cut the export to the time of the incident"))
        del entries[MAX_ENTRIES:]
    if _newest_first(entries):
        entries.reverse()
    newest_first = _fall(entries)
    if newest_first:
        problems.append(Diagnostic(source, None, Severity.INFO, f"{source}: newest entry first, read from its end"))
    events: list[Event] = []
    lines, places = [], []
    for entry in entries:
        if (told := _event(entry.value)) is not None:
            _date(told, entry)
            events += event_events(told, source)
            continue
        lines.append(json.dumps(_named(entry.value), ensure_ascii=False))
        places.append(_line(entry))
    parsed = read_text("\n".join(lines), source, "plain") if lines else Parsed()
    read = placed_all(parsed, lambda row: _at(places, row), newest_first)
    return replace(read, events=(*events, *read.events), diagnostics=(*problems, *parsed.diagnostics))


def _event(value: Mapping[str, Any]) -> Object | None:
    """The Kubernetes event that an entry holds."""
    for key in WRAPPERS:
        inner = value.get(key)
        if isinstance(inner, Object) and inner.get("kind") == "Event" and isinstance(inner.get("reason"), str):
            return inner
    return None


def _line(entry: _Entry) -> int:
    """Where an entry says what it says: the line of its message, not that of its bracket."""
    message = message_of(entry.value)
    return (message and _line_of(entry.value, message)) or entry.line


def _line_of(value: Mapping[str, Any], text: str) -> int | None:
    """The line of the first value of an entry with which a message begins."""
    if not isinstance(value, Object):
        return None
    for key, item in value.items():
        if isinstance(item, Object):
            if (line := _line_of(item, text)) is not None:
                return line
        elif isinstance(item, str) and item and text.startswith(item) and (len(item) == len(text) or " " in item):
            return int(value.lines[key])
    return None


def _date(event: Object, entry: _Entry) -> None:
    """Give an event that states no time the one of its entry."""
    stated = any(event.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp", "series"))
    when = entry.value.get("timestamp") or entry.value.get("receiveTimestamp")
    if not stated and isinstance(when, str):
        event.put("lastTimestamp", when, entry.line)


def _named(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry that the envelope will know again, though it names no owner."""
    keys = flat(value)
    return value if is_shipped(keys) else {**value, "logstream": ""}


def _newest_first(entries: Sequence[_Entry]) -> bool:
    """Whether the times fall from entry to entry; equal ones say nothing."""
    step = max(1, len(entries) // 500)
    times = []
    for entry in entries[::step]:
        layer = shipped(entry.value, certain=True)
        if layer is not None and layer.stamp is not None:
            times.append(layer.stamp.seconds)
    return is_newest_first(times)


def _fall(entries: Iterable[_Entry]) -> bool:
    """Whether the lines of entries in the order of time mostly fall; lines of several streams are not compared."""
    pairs = pairwise(sorted(entries, key=lambda entry: entry.stream))
    steps = [after.line - before.line for before, after in pairs if after.stream == before.stream]
    return sum(step < 0 for step in steps) > sum(step > 0 for step in steps)


def _at(places: Sequence[int], row: int) -> int:
    """The line of the document at which an entry stands."""
    return places[min(max(row, 1), len(places)) - 1]


WRAPPED = lazy_regex(rf'"(?:{"|".join(WRAPPERS)})"\s*:\s*\{{')
"""Where an entry's content begins, which may be an object of Kubernetes."""


def _names_object(text: str) -> bool:
    """Whether the beginning of a JSON text names a kind and a version, which are not those of an entry's content."""
    if '"kind"' not in text or '"apiVersion"' not in text:
        return False
    wrapper = WRAPPED.search(text)
    return wrapper is None or wrapper.start() > text.index('"apiVersion"')


def _sniff_json(head: Head) -> int:
    text = head.text.lstrip()
    if text[:1] not in ("{", "[") or _names_object(text[:400]):
        return 0
    if '"resourceLogs"' in text[:200] and '"scopeLogs"' in text[:8000]:
        return 97
    if text[:1] == "{" and len(text.rstrip().split("\n", 1)) > 1 and _is_object(head.lines[0]):
        return 0  # an object a line is a log
    if '"streams"' in text[:200] and '"values"' in text:
        return 97  # Loki's answer, which looks like Prometheus'
    found = [entry for entry, _ in zip(_entries(text[:SNIFF_CHARS]), range(20), strict=False)]
    ours = sum(_is_entry(entry.value) for entry in found)
    return 72 if found and ours >= 0.8 * len(found) else 0


def _sniff_yaml(head: Head) -> int:
    keys = {line.partition(":")[0] for line in head.lines if line[:1].isalpha()}
    return 97 if {"insertId", "logName", "timestamp"} <= keys and keys & _PAYLOADS else 0


def _is_object(line: str) -> bool:
    return line.startswith("{") and line.rstrip().endswith("}")


def _is_entry(value: Mapping[str, Any]) -> bool:
    """A message with a time or an owner, and no Kubernetes object."""
    if "metadata" in value and ("spec" in value or "status" in value or "involvedObject" in value):
        return False
    if AUTHORS & {key.lower() for key in value} and not is_shipped(flat(value)):  # a chat
        return False
    layer = shipped(value, certain=True)
    timed = layer is not None and layer.stamp is not None
    return timed or _event(value) is not None or (layer is not None and is_shipped(flat(value)))


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of each record; a quoted cell may hold line ends."""
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=_delimiter(text.partition("\n")[0]))
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a NUL, or a cell beyond all limits
            start = reader.line_num + 1
            continue
        yield start, cells
        start = reader.line_num + 1


def read_csv(text: str, source: str) -> Parsed:
    """Rows of a table whose columns are named like the keys of an entry."""
    header: list[str] = []
    entries: list[_Entry] = []
    for line, cells in _rows(text):
        if not header:
            header = [cell.strip().removeprefix("\ufeff") for cell in cells]
        elif any(cells):
            named = {name: cell for name, cell in zip(header, cells, strict=False) if name and cell}
            entries.append(_Entry(line, _with_json_cells(named)))
    return _read(entries, source)


def _with_json_cells(row: Mapping[str, str]) -> Mapping[str, Any]:
    """Grafana puts all labels into one cell, as JSON."""
    found: dict[str, Any] = {}
    for name, cell in row.items():
        value: Any = cell
        if name.lower() in ("labels", "tags", "attributes", "resource") and cell.startswith("{"):
            try:
                value = json.loads(cell)
            except (ValueError, RecursionError):
                value = cell
        found[name] = value
    return found


def _sniff_csv(head: Head) -> int:
    first = next(iter(head.lines), "")
    if _delimiter(first) not in first or len(head.lines) < 2:
        return 0
    reader = _rows(head.text)
    _, first_row = next(reader, (0, []))
    header = [cell.strip() for cell in first_row]
    if not 2 <= len(header) <= 300 or any(not cell for cell in header) or len(set(header)) < len(header):
        return 0
    rows = list(islice(reader, 11))
    if not head.whole and len(rows) > 1:
        rows.pop()
    named = [_with_json_cells(dict(zip(header, cells, strict=False))) for _, cells in rows if cells]
    if not named or not mostly(_dated, named, 0.8):
        return 0
    ours = filter(None, map(_dated, named))
    return 94 if any(len(layer.rest) > 20 and moment(layer.rest) is None for layer in ours) else 0


def _dated(row: Mapping[str, Any]) -> Layer | None:
    layer = shipped(row, certain=True)
    return layer if layer is not None and layer.stamp is not None else None


FORMATS: tuple[Format, ...] = (
    Format("log.export", "log download (JSON)", _sniff_json, read, MAX_BYTES, begins=r"\[{"),
    Format("log.yaml", "log download (YAML)", _sniff_yaml, read_yaml_entries, MAX_YAML_BYTES, begins="i"),
    Format("log.csv", "log download (CSV)", _sniff_csv, read_csv, MAX_BYTES),
)
