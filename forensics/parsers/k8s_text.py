"""What kubectl prints for people: described objects and tables, also several of them in one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import stamps
from ..model import Event, Locator, Parsed, StampForm
from ..regexes import lazy_regex
from ..sources import Format, Head
from .k8s_containers import Lines
from .k8s_describe import object_events, starts_object, starts_state, state_events, state_goes_on
from .k8s_tables import is_known, plain_event, plain_pod, reader_of, table_events
from .located import quoted
from .tables import header_of

_NAMED_ROW = lazy_regex(
    r"(?:[a-z]+(?:\.[a-z0-9.]+)?/[a-z0-9.-]+$|[a-z0-9][a-z0-9.-]*-[a-z0-9]{5}(?:\s|$))"
)
"""`pod/x` of `-o name`; `x` of custom columns, when it looks like a generated pod name."""


def read(text: str, source: str) -> Parsed:
    """All facts of described objects and tables; other lines between them are passed over."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    events = list(_noted(lines, source))
    for described, part in _parts(lines):
        events += object_events(part, source) if described else table_events(part, source)
    return quoted(events, lines)


_NOTED = lazy_regex(
    r"(?:#|//|\$|kubectl |oc ).{0,200}?"
    r"\b(?i:collected|captured|gathered|taken|saved|exported|pulled|relative to|as of)\b"
    r"[^\d]{0,12}(?P<when>20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| ?UTC|[+-]\d\d:?\d\d))\b?\W*"
)
"""What somebody wrote above or below a table: `$ kubectl get events   (collected 2026-05-03T02:30:00Z)`."""


def _noted(lines: Sequence[str], source: str) -> Iterator[Event]:
    """The moment before which the ages of this text count, where a remark tells it."""
    for number, line in enumerate(lines, 1):
        said = _NOTED.fullmatch(line)
        stamp = stamps.iso(said["when"], "noted") if said else None
        if stamp is not None and stamp.form is StampForm.INSTANT:
            place, text = Locator(source, number, number), f"captured at {line.strip()}"
            yield Event(place, "capture", "host", text, (stamp,), fields={"ages_from": True}, raw=line)
            return


def _parts(lines: Sequence[str]) -> Iterator[tuple[bool, Lines]]:
    """Cut at the beginnings of objects and, outside of objects' own tables, of tables."""
    described = False
    part: Lines = []
    for index, line in enumerate(lines):
        begins = starts_object(lines, index)
        header = header_of(line) if not line.startswith(" ") else None
        is_table = header is not None and reader_of(header) is not None
        if (begins or (described and is_table)) and part:
            yield described, part
            part = []
        if begins or is_table:
            described = begins
        part.append((index + 1, line))
    if part:
        yield described, part


def sniff_describe(head: Head) -> int:
    begins = [i for i in range(len(head.lines)) if starts_object(head.lines, i)]
    if not begins:
        return 0
    return 96 if not any(line.strip() for line in head.lines[: begins[0]]) else 90


def sniff_table(head: Head) -> int:
    lines = head.filled
    for line in lines[:10]:
        header = header_of(line)
        if header is not None and reader_of(header) is not None:
            return 93
    if lines and all(plain_event(line) for line in lines):
        return 94
    if lines and all(plain_pod(line) or plain_event(line) for line in lines):
        return 85
    header = header_of(lines[0]) if lines else None
    if header is not None and is_known(header):
        return 60
    named = lines[1:] if header is not None and header.names[0] == "NAME" else lines
    return 45 if named and all(_NAMED_ROW.match(line) for line in named) else 0


def read_states(text: str, source: str) -> Parsed:
    """All facts of containers' states that were pasted without their objects."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    events: list[Event] = []
    ends = 0
    for index in range(len(lines)):
        if index < ends or not starts_state(lines, index):
            continue
        belongs = state_goes_on(lines, index)
        ends = next((i for i in range(index + 1, len(lines)) if not belongs(i)), len(lines))
        events += state_events(lines[:ends], index, source)
    return quoted(events, lines)


def _sniff_states(head: Head) -> int:
    begins = [i for i, line in enumerate(head.lines) if line.strip()][:1]
    return 90 if begins and starts_state(head.lines, begins[0]) else 0


STATES = Format("k8s.states", "container states (kubectl describe)", _sniff_states, read_states, begins=r" SLa-z0-9")
DESCRIBE = Format("k8s.describe", "kubectl describe", sniff_describe, read, begins="N")
TABLE = Format("k8s.table", "kubectl table", sniff_table, read)

