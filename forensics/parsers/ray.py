"""Ray: deaths of workers as the raylet, the GCS, the driver and `ray status` tell them (Ray 2.0 to 2.60).

The memory monitor's message goes over many lines without a header; here it is one event, so that the kill,
its reason, its victim and the largest processes stand together. Ray's own list of possible reasons for a
lost worker, with the words "OOM killer", is the same for every sudden end and proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .. import stamps
from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_re
from ..scan import Window
from ..sources import Format, Head
from . import traceback
from .log import MAX_RECORD_CHARS, Assembled, Dialect, event_of
from .records import Record

MAX_KILL_LINES = 80
_HEAD, MAX_HEAD_LINES = "Killing worker with task", 3
"""How the raylet begins the message up to 2.54, with its stamp; what was used stands below a blank line."""
_OPENING = lazy_re(
    r"(?:.*\bworker\(s\) were killed due to the node running low on memory"
    r"|Killing \d+ worker\(s\), kill details: |Memory on the node \(IP: )"
)
_PART = lazy_re(
    r"OOM kill reason: |Selected to kill: \(|Memory on the node \(IP: |Ray killed \d+ worker"
)
_USERS = "Top 10 memory users"
_USER = lazy_re(r"(?P<pid>\d{1,18})\s+(?P<gb>\d{1,18}\.\d{1,18})\s+(?P<command>\S.*)")
_VICTIM = lazy_re(r"Selected to kill: \(.*?\bpid=(\d{1,18})|where the task \(.*?\bpid=(\d{1,18})")
_EXIT_TYPE = lazy_re(r"(?:exit_type = |Worker exit type: )(\w+)")
_WORKER_PID = lazy_re(r"(?:Worker PID: |worker process with pid |pgid=)(\d{1,18})")
_ADDRESS = lazy_re(
    r"(?:Worker IP address: |address = |on the node \(IP: |, IP: )(\d+\.\d+\.\d+\.\d+|[0-9a-f:]{3,39})\b"
)
_NODE_ID = lazy_re(r"(?:Node ID: |node id = |node_id=|\(IP: [^,)]+, ID: )([0-9a-f]{56})")
_WORKER_ID = lazy_re(r"(?:Worker ID: |worker id = |worker_id=|worker ID=)([0-9a-f]{56})")


@dataclass(slots=True)
class _Kill:
    """A message of the memory monitor that is being joined."""

    first: Record
    texts: list[str]
    last: int
    used: list[int] = field(default_factory=list)
    users: list[dict[str, object]] = field(default_factory=list)
    in_users: bool = False


def join_kills(records: Sequence[Record], source: str, taken: frozenset[int] = frozenset()) -> Assembled:
    """Messages of the memory monitor as one `log` event each, lines joined by blanks.

    `top_memory_users` holds the largest processes (`pid`, `memory_gib`, `command`); Ray's GB are 2**30 bytes.
    """
    events: list[Event] = []
    used: set[int] = set()
    kill: _Kill | None = None
    head: Record | None = None

    def close() -> None:
        if kill is not None and (len(kill.texts) > 1 or kill.users or len(kill.used) > 1):
            events.append(_event(kill, source))
            used.update(kill.used)

    for record in records:
        if record.line in taken:
            continue
        text = record.text
        if kill is not None and (
            record.line - kill.first.line > MAX_KILL_LINES or (record.logger and not kill.in_users)
        ):
            close()
            kill = None
        if kill is not None and _PART.match(text):
            kill.texts.append(text.strip())
            _take(kill, record)
        elif text.startswith(_HEAD) and "Memory on " not in text:
            close()
            kill, head = None, record
        elif (text.startswith("Memory on ") or "worker(s)" in text) and _OPENING.match(text):
            close()
            headed = head is not None and not record.stamps and record.line - head.line <= MAX_HEAD_LINES
            first = head if head is not None and headed else record
            kill = _Kill(first, [text.strip()], record.line, sorted({first.line, record.line}))
            kill.in_users = text.rstrip().endswith((_USERS, f"{_USERS}:"))  # up to 2.54 in the same line
        elif kill is not None and text.startswith(_USERS):
            kill.in_users = True
            _take(kill, record)
        elif kill is not None and kill.in_users and text.startswith("PID"):
            _take(kill, record)
        elif kill is not None and kill.in_users:
            user = _USER.match(text.strip())
            if user:
                kill.users.append(
                    {"pid": int(user["pid"]), "memory_gib": float(user["gb"]), "command": user["command"]}
                )
                _take(kill, record)
            else:
                close()
                kill = None
    close()
    return Assembled(tuple(events), frozenset(used))


def _take(kill: _Kill, record: Record) -> None:
    kill.last = record.line
    kill.used.append(record.line)


def _event(kill: _Kill, source: str) -> Event:
    event = event_of(kill.first, source, "ray")
    fields = {**event.fields, "top_memory_users": tuple(kill.users)} if kill.users else event.fields
    place = Locator(source, kill.first.line, kill.last)
    return refine(replace(event, locator=place, text=" ".join(kill.texts)[:MAX_RECORD_CHARS], fields=fields))


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """Tracebacks, then messages of the memory monitor in what is left."""
    first = traceback.assemble(records, source)
    second = join_kills(records, source, first.used)
    return Assembled((*first.events, *second.events), first.used | second.used)


def refine(event: Event) -> Event:
    """Whose end a message tells: node address and worker pid into the scope, ids and `exit_type` into the
    fields.

    The pid is the one inside the node's container.
    """
    text = event.text
    if not any(word in text for word in ("orker", "node", "IP: ")):
        return event
    fields: dict[str, object] = {}
    for name, pattern in (("exit_type", _EXIT_TYPE), ("node_id", _NODE_ID), ("worker_id", _WORKER_ID)):
        found = pattern.search(text)
        if found:
            fields[name] = found[1]
    victim = _VICTIM.search(text) or _WORKER_PID.search(text)
    address = _ADDRESS.search(text)
    pid = next((int(group) for group in victim.groups() if group), None) if victim else None
    told = Scope(host=address[1] if address else "", pid=pid)
    scope = told.merged(event.scope)
    if not fields and scope == event.scope:
        return event
    return replace(event, scope=scope, fields={**event.fields, **fields})


ANCHORS = (
    _HEAD,
    "killed due to the node running low on memory", "worker(s), kill details:", "Memory on the node (IP: ",
    "OOM kill reason: ", "Selected to kill: (", "Ray killed ", _USERS, "killed due to memory pressure (OOM)",
    "System memory low at node", "Reporting worker exit", "Worker exit type: ",
)  # fmt: skip
DIALECT = Dialect(
    channel="ray",
    anchors=ANCHORS,
    windows=(Window(_USERS, ("suggestions:", "Refer to the documentation"), 12),),
    assemble=assemble,
    refine=refine,
)

_STATUS = lazy_re(r"=+ Autoscaler status: (?P<stamp>\S+ \S+) =+")


def _sniff_status(head: Head) -> int:
    return 92 if any(_STATUS.match(line) for line in head.lines[:3]) else 0


def _read_status(text: str, source: str) -> Parsed:
    """`ray status`: one event a report, with usage, pending demands and failures on one line."""
    events: list[Event] = []
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _STATUS.match(line)]
    for i, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        found = _STATUS.match(lines[i])
        stamp = stamps.iso(found["stamp"], "ray") if found else None
        told, section = [], ""
        for line in lines[i + 1 : end]:
            if line.rstrip().endswith(":") and not line.startswith(" "):
                section = line.strip().rstrip(":")
            elif line.startswith(" ") and line.strip()[:4] not in ("(no ", "(non"):
                told.append(f"{section}: {line.strip()}")
        events.append(Event(
            Locator(source, i + 1, end), "log", "ray", f"ray status: {'; '.join(told)}",
            (stamp,) if stamp else (), raw=lines[i],
        ))  # fmt: skip
    return Parsed(tuple(events))


STATUS = Format("ray.status", "ray status", _sniff_status, _read_status, max_bytes=4 << 20, begins="=")
