"""How documents look from outside: with which line they begin, and which lines still belong to them.

Only what people print next to a log: described objects, tables, manifests, the views of nvidia-smi, the state of a
host, metrics. What a document says is its parser's business; here it is only told from the lines around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from ..regexes import lazy_re, lazy_regex
from . import k8s_event_rows, k8s_states, nvidia_csv, prose, typed_memory
from .commands import is_command
from .dates import is_time
from .docker import is_ps_header
from .k8s_describe import starts_object, starts_state, state_goes_on
from .k8s_tables import plain_event, reader_of
from .layer import clean
from .nvidia_text import BOX_TITLES, is_listed, is_loose
from .records import unwrap
from .sections import begins_output
from .tables import header_of

Lines = Sequence[str]
STATES, EVENTS, EVENT_ROWS = "container states", "rows of events", "rows of a pod's events"
"""Shapes of a few lines, which a prompt may hold as well."""
_AHEAD = 400
"""Lines within which a message inside a described object ends."""
_ERROR = lazy_regex(prose.ERROR)
_COMPLAINT = lazy_regex(
    r"(?:[\w./@-]+:? ){0,3}(?:\[?(?:fatal|panic|critical|error)\]?(?: \(\w+\))?: |terminate called )\S"
    r"|.{0,120}\bcore dumped\b",
    regex.IGNORECASE,
)
"""How programs begin the message with which they end: argparse, C++ and Rust runtimes, shells."""
_NO_HEADERS = frozenset({"process", "rank", "iso"})
_FENCE = lazy_regex(r"\s{0,3}(?:`{3,}|~{3,})[\w+-]*\s*$|\{(?:code|noformat)\b[^}]*\}\s*$")
_AFTER_MESSAGE = lazy_regex(r"\s{2,}(?:Exit Code|Signal|Started|Finished|Ready|Restart Count):\s")
_YAML_LINE = lazy_regex(r"\s|#|-(?:\s|$)|---\s*$|[A-Za-z_\"'][\w./\"'-]*:(?:\s|$)|$")
_METRIC_LINE = lazy_regex(
    r"#|[a-zA-Z_:][\w:]*(?:\{.*\})? +(?:[-+]?[\d.]+(?:[eE][-+]?\d+)?|[-+]?Inf|NaN)(?: \d+)?$|$"
)
_STATUS = lazy_regex(r"[●×○↻*] \S+\.(?:service|scope|slice|socket|timer|mount|target)\b")
_JOURNAL_LINE = lazy_regex(r"\s|$|(?:\p{L}{3,6}\.?|\d{1,2}\p{L}) [ \d]\d \d\d:\d\d:\d\d |\d{4}-\d\d-\d\dT|Warning: ")
_COUNTER = lazy_regex(r"(?:low|high|max|oom|oom_kill|oom_group_kill|sock_throttled) \d+\s*$")
_BOX_LINE = lazy_regex(r"[|+]|\s*$")
_HEADED = lazy_regex(
    r"# ?gpu .*\b(?:pwr|pid|sm)\b|#Date .*\bgpu\b"  # nvidia-smi dmon and pmon
    r"|Linux \S+ \([^)]*\)\s+\S+\s+_\S+_\s+\(\d+ CPU\)"  # sar
    r"|JobID(?:Raw)?[ |].*\bState\b|(?:JobId=\d|NodeName=\S+ )\S* ?\w+=?"  # sacct, scontrol
    r"|TIME +PID +UID +GID +SIG|\s*UNIT +LOAD +ACTIVE +SUB|IDX BOOT ID"  # coredumpctl, systemctl, journalctl
    r"|=+ Autoscaler status: "  # ray
    r"|REVISION *\tUPDATED|NAME *\tNAMESPACE *\tREVISION"  # helm
)
"""The first line of a table, or of a summary, that goes on until a log speaks."""
_COMPOSE = lazy_regex(r"(?:services|version|name):")


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of document."""

    name: str
    begins: Callable[[Lines, int], bool]
    membership: Callable[[Lines, int], Callable[[int], bool]]
    """(lines, index of the first) → whether the line at an index still belongs to it."""
    exact: bool = False
    """True when a line that belongs cannot be anything else, not even a heading; what does not belong ends it."""


def speaks(line: str) -> bool:
    """Whether a line in column 0 comes from a log: it has a header, or is an error that a program printed."""
    if not line or line[0].isspace():
        return False
    if _ERROR.match(clean(line)):
        return True
    return any(name not in _NO_HEADERS for name in unwrap(line[:2000]).envelopes)


def complains(line: str) -> bool:
    """Whether a line without a header may be a program's last word: `serve: error: …`, `fatal: …`, `FATAL: …`."""
    return _COMPLAINT.match(clean(line)) is not None


def is_fence(line: str) -> bool:
    """A line that opens or closes a piece of code in Markdown, or in a ticket."""
    return line.lstrip()[:1] in ("`", "~", "{") and _FENCE.match(line) is not None


def _quiet(lines: Lines, first: int) -> Callable[[int], bool]:
    return lambda index: not (speaks(lines[index]) or complains(lines[index]))


def _object_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    """The further lines of a termination message stand in column 0; a key of the container follows them."""
    until = first

    def belongs(index: int) -> bool:
        nonlocal until
        if index < until or not speaks(lines[index]):
            return True
        ahead = range(index + 1, min(len(lines), index + _AHEAD))
        end = next((i for i in ahead if _AFTER_MESSAGE.match(lines[i]) or lines[i].startswith("Name:")), None)
        until = end if end is not None and not lines[end].startswith("Name:") else until
        return index < until

    return belongs


def _is_table(lines: Lines, index: int) -> bool:
    line = lines[index]
    if not (line[:1].isupper() and line[1:2].isupper()):
        return False
    header = header_of(line)
    return header is not None and (reader_of(header) is not None or is_ps_header(header))


def _starts_events(lines: Lines, index: int) -> bool:
    """A described object has a table of its own, which is its parser's."""
    if not k8s_event_rows.starts(lines, index):
        return False
    for above in range(index - 1, max(-1, index - _AHEAD), -1):
        if starts_object(lines, above):
            return False
        if is_fence(lines[above]) or lines[above].startswith("Events:"):
            break
    return True


def _row_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    def belongs(index: int) -> bool:
        row = lines[index]
        if not row.strip() or complains(row):
            return False
        parted = index > first and not lines[index - 1].strip() and "  " not in row.strip()  # a text below the table
        return row.count("   ") >= 2 or not (parted or speaks(row))

    return belongs


def _is_event_row(lines: Lines, index: int) -> bool:
    """The first row of a table of events whose header was filtered away."""
    before = lines[index - 1] if index else ""
    return plain_event(lines[index]) is not None and header_of(before) is None and plain_event(before) is None


_NO_DIGITS = str.maketrans("123456789", "000000000")
_ROW_HEAD_CHARS = 24
"""A row is known by its beginning: no header of a log is told apart by what stands behind it."""


def _csv_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    commas = lines[first].count(",")
    seen = ""

    def belongs(index: int) -> bool:
        nonlocal seen
        line = lines[index]
        begins = line[:_ROW_HEAD_CHARS].translate(_NO_DIGITS)
        if begins and begins == seen and line.count(",") == commas:
            return True
        if not line.strip() or is_time(line):
            return True
        goes_on = line.count(",") == commas and not speaks(line) and (commas > 0 or line[:1].isdigit())
        seen = begins if goes_on else ""
        return goes_on

    return belongs


def _is_compose(lines: Lines, index: int) -> bool:
    """`services:` with a service below it, or what may stand above that."""
    if _COMPOSE.match(lines[index]) is None:
        return False
    ahead = [line.rstrip() for line in lines[index : index + 4] if line.strip()]
    at = next((i for i, line in enumerate(ahead) if line == "services:"), len(ahead))
    return at + 1 < len(ahead) and regex.fullmatch(r" +[\w.-]+:", ahead[at + 1]) is not None


def _compose_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    return lambda index: _YAML_LINE.match(lines[index]) is not None and not speaks(lines[index])


def _is_box(lines: Lines, index: int) -> bool:
    ahead = lines[index : index + 4]
    if lines[index].startswith(BOX_TITLES) or is_loose(lines, index):
        return True
    if lines[index].startswith("+--"):
        return any(line.startswith(BOX_TITLES) for line in ahead[1:2])
    return len(ahead) > 2 and any(line.startswith("| NVIDIA-SMI ") for line in ahead[1:3]) and is_time(lines[index])


def _box_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    return lambda index: index == first or _BOX_LINE.match(lines[index]) is not None


def _is_list(lines: Lines, index: int) -> bool:
    return lines[index].startswith("GPU ") and is_listed(lines[index])


def _json_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    last = next((i for i in range(first + 1, len(lines)) if lines[i][:1] in ("}", "]")), len(lines))
    return lambda index: index <= last


def _status_goes_on(lines: Lines, first: int) -> Callable[[int], bool]:
    """One line of JSON, or the lines of YAML."""
    if lines[first][:1] in ("{", "["):
        return lambda index: index == first
    return _matching(_YAML_LINE)(lines, first)


def _matching(pattern: regex.Pattern[str]) -> Callable[[Lines, int], Callable[[int], bool]]:
    return lambda lines, first: lambda index: (
        index == first or (
            pattern.match(lines[index]) is not None
            and not _ERROR.match(lines[index])
            and not (lines[index].startswith("#") and is_command(lines[index]))
        )
    )


SHAPES: tuple[Shape, ...] = (
    Shape("described object", starts_object, _object_goes_on),
    Shape(STATES, starts_state, state_goes_on, exact=True),
    Shape("table", _is_table, _row_goes_on),
    Shape(EVENTS, _is_event_row, lambda lines, first: lambda i: plain_event(lines[i]) is not None, exact=True),
    Shape(EVENT_ROWS, _starts_events, k8s_event_rows.goes_on, exact=True),
    Shape("nvidia-smi", _is_box, _box_goes_on, exact=True),
    Shape("nvidia-smi -L", _is_list, lambda lines, first: lambda index: is_listed(lines[index]), exact=True),
    Shape(
        "nvidia-smi -q", lambda lines, i: lines[i].startswith("=====") and "NVSMI LOG" in lines[i], _quiet
    ),
    Shape(
        "nvidia-smi CSV", lambda lines, i: lines[i][:1].islower() and bool(nvidia_csv.columns_of(lines[i])),
        _csv_goes_on, exact=True,
    ),
    Shape("headed table", lambda lines, i: _HEADED.match(lines[i]) is not None, _quiet),
    Shape("compose file", _is_compose, _compose_goes_on, exact=True),
    Shape("manifest", lambda lines, i: lines[i].startswith("apiVersion: "), _matching(_YAML_LINE), exact=True),
    Shape("container status", k8s_states.begins, _status_goes_on, exact=True),
    Shape("JSON", lambda lines, i: lines[i] in ("{", "["), _json_goes_on, exact=True),
    Shape(
        "metrics", lambda lines, i: lines[i].startswith(("# HELP ", "# TYPE ")), _matching(_METRIC_LINE), exact=True
    ),
    Shape("unit status", lambda lines, i: _STATUS.match(lines[i]) is not None, _matching(_JOURNAL_LINE), exact=True),
    Shape(
        "memory.events",
        lambda lines, i: lines[i].startswith("low ") and "".join(lines[i + 1 : i + 2]).startswith("high "),
        _matching(_COUNTER), exact=True,
    ),
    Shape("typed memory", typed_memory.begins, typed_memory.goes_on, exact=True),
    Shape("host state", lambda lines, i: begins_output(lines[i]), _quiet),
)  # fmt: skip

_HINT = lazy_re(
    rb"\n(?:Name: +\S|[ ]*(?:(?:Last )?State: +[RWT]|(?:Liveness|Readiness|Startup): +\S)|"
    rb"(?:[a-z0-9-]+[ \t]+)?\d\w*(?: \(x\d+ over \w+\))?[ \t]+(?:Normal|Warning)[ \t]|"
    rb"[ ]*(?:[-*] )?(?:Normal|Warning)[ \t]+[A-Z]|"
    rb"NAME(?:S|SPACE)?[ \t]|LAST SEEN|POD |NODE |CONTAINER ID |CONTAINER  |REVISION[ \t]|"
    rb"\| (?:NVIDIA-SMI|Processes:) |"
    rb"GPU \d+: |=====|[a-z][a-z_0-9.]{2,40}(?: \[[A-Za-z/%]+\])?, |memory\.\w+ \[|# ?gpu |#Date |apiVersion: |"
    rb"services:|"
    rb"Linux \S+ \(|JobI[Dd]|NodeName=|TIME +PID |[ ]*UNIT +LOAD |IDX BOOT ID|[{\[]\r?\n|# (?:HELP|TYPE) |"
    rb"[ -]*(?:containerStatuses|lastState|terminated|containerID):|[{\[][^\n]{0,400}\"exitCode\":|"
    rb"\|[ ]+\d+[ ]+\S|\| MIG devices:|"
    rb"\xe2\x97\x8f |\xc3\x97 |\xe2\x97\x8b |"
    rb"[ ]+total +used|Filesystem |procs -|--procs-- |MemTotal: |top - |[ \d:]{9} up |(?:USER|UID) +PID|[ ]+PID |"
    rb"[ \t|*-]{0,6}(?:20\d\d-\d\d-\d\d|[A-Z][a-z]{2} +\d{1,2}|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)|\d\d:\d\d)"
    rb"[ :\t|,\w.=-]{1,60}\d ?[MG]i?B?[ \t|\r]*\n|"
    rb"[=*#-]{2,} ?(?:pods?[/: ] ?)?[a-z0-9][a-z0-9-]{2,80}-[a-z0-9]{5}[ <=*#-]|"
    rb"[ ]+Local time: |low \d+\r?\n|```|\{code|\{noformat|[-#*=+>]{1,12} ?(?:\w+: ?)?"
    rb"(?:kubectl|oc|docker|nvidia-smi|journalctl|dmesg|free|df|ps|top|cat|ssh|systemctl|ray|curl|date)\b|==> |### |"
    rb"[\w.@:~/\[ -]{0,60}[$#%] (?:sudo )?"
    rb"(?:kubectl|oc|docker|nvidia-smi|journalctl|dmesg|free|df|ps|top|cat|ssh|systemctl|ray|curl|date)\b)"
)


def may_begin(data: bytes) -> bool:
    """Whether any document of `SHAPES`, or a heading, may stand in a text: a quick look before it is cut."""
    return _HINT.search(b"\n" + data[: 1 << 16]) is not None or _HINT.search(data, 1 << 16) is not None
