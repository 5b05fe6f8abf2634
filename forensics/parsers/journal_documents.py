"""journalctl's modes whose entries span lines: json-pretty, export, verbose, and JSON with arrays; journal
files.

Entries are brought into the form of `journalctl -o json`, one a line, and then read like any line log, so
that every mode gives the same events. Shapes from systemd 239–257 (`src/shared/logs-show.c`,
`docs/JOURNAL_EXPORT_FORMATS.md`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from ..model import Diagnostic, Event, Parsed, Severity
from ..regexes import lazy_regex
from ..scan import Scanned
from ..sources import Format, Head
from .embedded import read_text
from .envelopes.json_lines import JOURNAL_FIELDS, journal_text
from .layer import clean
from .log import MAX_RECORD_CHARS
from .newest_first import placed_rows

MAX_BYTES = 128 << 20
_KEY = lazy_regex(r"[A-Z0-9_]{1,64}")
# an entry begins with `__CURSOR=`; a binary field goes on with its length, of which the last bytes are zero
_NEXT_FIELD = lazy_regex(r"\n(?=[A-Z0-9_]{1,64}(?:=|\n(?s:.{0,7})\x00)|\n__|\n*\Z)")
_VERBOSE_HEAD = lazy_regex(
    r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d [\d:.]+ \S+ \[s=[0-9a-f]+;.*?;t=(?P<micros>[0-9a-f]{1,16});x=[0-9a-f]+\]"
)
_ARRAY = lazy_regex(r'"MESSAGE"\s*:\s*\[')


@dataclass(slots=True)
class _Entry:
    fields: dict[str, str]
    line: int
    """Line of its message."""
    raw: str
    """That line as it stands in the file."""


def _read(entries: Iterable[_Entry], source: str, bad: list[int]) -> Parsed:
    """Read entries like the lines of `journalctl -o json`, then put their own places back."""
    places: list[tuple[int, str]] = [(0, "")]
    lines = []
    for entry in entries:
        fields = entry.fields
        if "__REALTIME_TIMESTAMP" not in fields:
            bad.append(entry.line)
        elif fields.get("MESSAGE"):
            places.append((entry.line, entry.raw))
            lines.append(json.dumps({"MESSAGE": fields["MESSAGE"], **fields}, ensure_ascii=False))
    parsed = read_text("\n".join(lines), source, "plain")
    diagnostics = list(parsed.diagnostics)
    if bad:
        diagnostics.append(Diagnostic(
            source, bad[0], Severity.INFO, f"{len(bad)} journal entries are cut or damaged and were skipped",
            "save the journal again with `journalctl -o json`",
        ))  # fmt: skip
    events = tuple(_event_at(event, places) for event in parsed.events)
    return replace(
        parsed, events=events, samples=tuple(placed_rows(s, lambda row: places[row][0]) for s in parsed.samples),
        diagnostics=tuple(diagnostics),
    )  # fmt: skip


def _event_at(event: Event, places: list[tuple[int, str]]) -> Event:
    line, raw = places[event.locator.line]
    locator = replace(event.locator, line=line, line_end=max(line, places[event.locator.line_end][0]))
    last = places[event.last_line][0] if event.last_line else None
    fields: Mapping[str, object] = event.fields
    if "report_line" in fields:
        fields = {**fields, "report_line": places[event.fields["report_line"]][0]}
    return replace(event, locator=locator, last_line=last, raw=raw[:MAX_RECORD_CHARS], fields=fields)


def _kept(entry: Mapping[str, object]) -> dict[str, str]:
    return {key: journal_text(value) for key, value in entry.items() if key in JOURNAL_FIELDS}


def _objects(text: str, bad: list[int]) -> Iterator[_Entry]:
    """JSON objects one after the other, each on one line or on many."""
    decoder = json.JSONDecoder()
    position, line = 0, 1
    while (start := text.find("{", position)) >= 0:
        line += text.count("\n", position, start)
        try:
            entry, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            bad.append(line)
            end = text.find("\n", start)
            if end < 0:
                return
        else:
            found = text.find('"MESSAGE"', start, end)
            place = found if found >= 0 else start
            begin, finish = text.rfind("\n", 0, place) + 1, text.find("\n", place)
            raw = text[begin : finish if finish >= 0 else len(text)]
            yield _Entry(_kept(entry), line + text.count("\n", start, place), raw)
        line += text.count("\n", start, end)
        position = end


def _export(text: str, _bad: list[int]) -> Iterator[_Entry]:
    """`KEY=value` lines, binary fields as `KEY`, 8 bytes of length, bytes; an empty line ends an entry.

    The text reaches us decoded, so a length may have been replaced; then the next thing that looks like a
    field ends the value.
    """
    position, line = 0, 1
    entry = _Entry({}, 0, "")
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        row = text[position:end]
        key, equals, value = row.partition("=")
        if not row:
            if entry.fields and text.startswith("__", end + 1):  # else a value that was read too short
                yield entry
                entry = _Entry({}, 0, "")
        elif equals:
            _put(entry, key, value, line, row)
        elif _KEY.fullmatch(key):
            first, end = _binary(text, end + 1)
            value = text[first:end]
            _put(entry, key, value, line + 1, value.partition("\n")[0])
            line += text.count("\n", position, end) - row.count("\n")
        line += 1
        position = end + 1
    if entry.fields:
        yield entry


def _put(entry: _Entry, key: str, value: str, line: int, raw: str) -> None:
    if key.startswith("_") and entry.fields.get(key, value) != value:
        value = entry.fields[key] = "?"  # journald gives its own fields once: the message was read too short
    if key in JOURNAL_FIELDS:
        entry.fields.setdefault(key, value)
    if key == "MESSAGE":
        entry.line, entry.raw = line, raw


def _binary(text: str, start: int) -> tuple[int, int]:
    """(begin, end) of the bytes of a binary field whose length begins at `start`."""
    first, least, most, shift = start, 0, 0, 0
    while first < len(text) and shift < 64:
        char = text[first]
        for byte in b"?" if char == "\ufffd" else char.encode("utf-8", "surrogatepass"):
            low, high = (0x80, 0xFF) if char == "\ufffd" else (byte, byte)
            least, most, shift = least | low << shift, most | high << shift, shift + 8
        first += 1
    seen, position = 0, first
    for found in _NEXT_FIELD.finditer(text, first):
        seen += sum(_width(char) for char in text[position : found.start()])
        position = found.start()
        if least <= seen <= most:
            return first, position
        if seen > most:
            break
    nearest = _NEXT_FIELD.search(text, first)
    return first, nearest.start() if nearest else len(text)


def _width(char: str) -> int:
    """Bytes that a character was; a replaced one was a single bad byte."""
    return 1 if char == "\ufffd" else len(char.encode("utf-8", "surrogatepass"))


def _verbose(text: str, bad: list[int]) -> Iterator[_Entry]:
    """A line with stamp and cursor, then `    KEY=value`; further lines of it are indented to its column."""
    entry = _Entry({}, 0, "")
    key, column = "", 0
    for number, row in enumerate(text.split("\n"), 1):
        if head := _VERBOSE_HEAD.match(row):
            if entry.fields:
                yield entry
            entry = _Entry({"__REALTIME_TIMESTAMP": str(int(head["micros"], 16))}, 0, "")
        elif column and row.startswith(" " * column):
            if key in entry.fields:
                entry.fields[key] += f"\n{row[column:]}"
        elif row.startswith("    ") and "=" in row and _KEY.fullmatch(row[4 : row.index("=")]):
            key, column = row[4 : row.index("=")], row.index("=") + 1
            _put(entry, key, row[column:], number, row)
        elif row.strip() and not row.startswith("-- "):
            bad.append(number)
    if entry.fields:
        yield entry


_Reader = Callable[[str, list[int]], Iterator[_Entry]]


def _document(reader: _Reader) -> Callable[[str, str], Parsed]:
    def read(text: str, source: str) -> Parsed:
        bad: list[int] = []
        return _read(reader(text, bad), source, bad)

    return read


def _first_lines(head: Head, count: int = 3) -> list[str]:
    told = (line for line in head.filled if not line.startswith("-- "))
    return [clean(line) for line in islice(told, count)]


def _sniff_pretty(head: Head) -> int:
    first = _first_lines(head, 2)
    return 90 if first[:1] == ["{"] and '"__REALTIME_TIMESTAMP" : ' in head.text else 0


def _sniff_arrays(head: Head) -> int:
    first = _first_lines(head, 1)
    begins = bool(first) and first[0].removeprefix("\x1e").removeprefix("data: ").startswith('{"')
    return 90 if begins and '"__REALTIME_TIMESTAMP"' in first[0] and _ARRAY.search(head.text) else 0


def _sniff_export(head: Head) -> int:
    first = _first_lines(head)
    begins = bool(first) and first[0].startswith(("__CURSOR=", "__REALTIME_TIMESTAMP="))
    return 90 if begins and "\n_BOOT_ID=" in head.text else 0


def _sniff_verbose(head: Head) -> int:
    first = _first_lines(head, 2)
    return 90 if len(first) == 2 and _VERBOSE_HEAD.match(first[0]) and first[1].startswith("    ") else 0


def _sniff_binary(head: Head) -> int:
    return 100 if head.text.startswith("LPKSHHRH") else 0


def _binary_file(scanned: Scanned, source: str, head: Head) -> Parsed:
    """A journal file itself: its entries are compressed objects that only journalctl can read."""
    name = source.rpartition("/")[2]
    return Parsed(diagnostics=(Diagnostic(
        source, None, Severity.WARNING,
        f"{source} is a binary journal: what the kernel, systemd and the services logged in it was not read",
        f"add its text to the bundle: journalctl --file {name} -o json > {name}.json",
    ),))  # fmt: skip


FORMATS: tuple[Format, ...] = (
    Format("journal.pretty", "journalctl json-pretty", _sniff_pretty, _document(_objects), MAX_BYTES, begins="{"),
    Format("journal.json", "journalctl json", _sniff_arrays, _document(_objects), MAX_BYTES, begins="{d"),
    Format("journal.export", "journalctl export", _sniff_export, _document(_export), MAX_BYTES, begins="_"),
    Format("journal.verbose", "journalctl verbose", _sniff_verbose, _document(_verbose), MAX_BYTES, begins="A-Z"),
    Format("journal.binary", "systemd journal file (binary)", _sniff_binary, samples=_binary_file, begins="L"),
)
