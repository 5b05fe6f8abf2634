"""Tables of `kubectl get`, `kubectl events`, `kubectl top` and `kubectl rollout history`.

Times are ages before the capture. STATUS of a pod is computed by the API server: a container's reason
overrides the pod's reason, which overrides the phase (kubernetes `pkg/printers/internalversion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from .. import stamps
from ..model import Event, Locator, RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from .k8s_cluster import Occurrence, occurrence_events, with_age
from .k8s_containers import Lines
from .k8s_values import AGE, instant, known, quantity, shown, terminated_text, whole
from .numerals import is_whole
from .tables import Header, header_of

Cells = Mapping[str, str]
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_RESTARTS = lazy_regex(r"(?P<count>\d{1,9})(?: \((?P<age>\S+) ago\))?")
_READY = lazy_regex(r"(?P<ready>\d{1,9})/(?P<total>\d{1,9})")
_SOURCE_HOST = lazy_regex(r"(?P<component>[^,]*)(?:, (?P<host>\S+))?")
_NAME_PREFIX = lazy_regex(r"(?P<kind>[a-z]+)(?:\.[a-z0-9.-]+)?/(?=\S)")
_CUT = lazy_regex(r"(?<!<[a-z]{1,9})>$")
"""The mark of a pager at the right edge; `<none>` is no such mark."""
_PROMPT = lazy_regex(r"\S*[$#+>] ?kubectl ")
_NUMBERED = lazy_regex(r"(?P<what>ExitCode|Signal):(?P<number>\d{1,3})")
_END_REASONS = ("OOMKilled", "Error", "ContainerCannotRun", "StartError", "ContainerStatusUnknown")
_EMPTY = ("<none>", "<unknown>", "<unset>", "<nil>", "")

_POD = ("NAME", "READY", "STATUS", "RESTARTS")
_LAST_SEEN = ("LAST SEEN", "LASTSEEN", "LAST", "LASTTIMESTAMP", "TIMESTAMP", "TIME", "AGE")
_FIRST_SEEN = ("FIRST SEEN", "FIRSTSEEN", "FIRST", "FIRSTTIMESTAMP")
_OBJECT = ("OBJECT", "INVOLVEDOBJECT", "POD")
_WORKLOAD_COLUMNS = {
    # columns that tell the kind of a workload table
    ("READY", "UP-TO-DATE", "AVAILABLE"): "Deployment",
    ("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE"): "DaemonSet",
    ("DESIRED", "CURRENT", "READY"): "ReplicaSet",
    ("COMPLETIONS", "DURATION"): "Job",
    ("READY", "AGE"): "StatefulSet",
}


_Reader = Callable[[Cells, Locator], Sequence[Event]]


def reader_of(header: Header) -> _Reader | None:
    """How to read the rows below a header; none for tables that carry no facts for this tool."""
    names = header.names
    if all(name in names for name in _POD):
        return _pod
    if "REASON" in names and "MESSAGE" in names:
        return _event
    if {"NAME", "POD"} & {*names[:2]} and any("REASON" in name for name in names):
        return _ended_row
    if {"NAME", "STATUS", "ROLES", "VERSION"} <= set(names):
        return _node
    if "MEMORY(bytes)" in names:
        return _top
    if {"NAME", "STATUS", "VOLUME", "CAPACITY"} <= set(names):
        return _claim
    if names[:2] == ("REVISION", "CHANGE-CAUSE"):
        return _revision
    if "NAME" in names:
        after = names[names.index("NAME") + 1 :]
        for columns, kind in _WORKLOAD_COLUMNS.items():
            if after[: len(columns)] == columns:
                return lambda cells, place: _workload(kind, cells, place)
    return None


def is_known(header: Header) -> bool:
    """True for a table of kubectl, whether or not its rows are read."""
    first = header.names[1] if header.names[0] == "NAMESPACE" else header.names[0]
    return reader_of(header) is not None or (first == "NAME" and "AGE" in header.names)


_PLAIN_POD = lazy_regex(
    r"(?:(?P<namespace>[a-z0-9-]+) +)?(?P<name>[a-z0-9][a-z0-9.-]+) +(?P<ready>\d{1,9}/\d{1,9})"
    r" +(?P<status>[A-Z][\w:/.-]+) +(?P<restarts>\d+(?: \(\S+ ago\))?)"
    r" +(?P<age>\d\w*)(?: +(?P<ip>\S+) +(?P<node>\S+).*)?"
)


def plain_pod(line: str) -> Cells | None:
    """A row of `kubectl get pods --no-headers`."""
    found = _PLAIN_POD.fullmatch(line.rstrip())
    return {name.upper(): value or "" for name, value in found.groupdict().items()} if found else None


_ISO = (
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?=\s+(?:Normal|Warning)\s+\w+\s+"
    r"(?i:pod|node|deployment|replicaset|statefulset|daemonset|job|cronjob|horizontalpodautoscaler|service)[.a-z]*/)"
)
"""Of custom columns in the usual order; a log begins so as well, hence the known kind of the object."""
_PLAIN_EVENT = lazy_regex(
    rf"\s*(?:(?P<namespace>[a-z0-9-]+)\s+)?(?P<last>{AGE}|{_ISO})\s+(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)"
    r"\s+(?P<object>[A-Za-z][\w.]*/\S+)\s+(?P<message>\S.*)"
)


def plain_event(line: str) -> Cells | None:
    """A row of `kubectl get events` whose header a filter took away."""
    found = _PLAIN_EVENT.fullmatch(line.rstrip())
    return {name.upper(): value or "" for name, value in found.groupdict().items()} if found else None


def table_events(lines: Lines, source: str) -> Iterator[Event]:
    """Facts of one or more tables. A line that is no row goes on with the message of the row above it."""
    read: _Reader | None = None
    header: Header | None = None
    rows: list[tuple[Cells, int, int, _Reader]] = []
    open_row = False
    for number, line in lines:
        new = header_of(line)
        if new is not None and is_known(new):
            header, read, open_row = new, reader_of(new), False
        elif not line.strip() or _PROMPT.match(line):
            open_row = False
        elif header is None:
            if (pod := plain_pod(line)) is not None:
                rows.append((pod, number, number, _pod))
            elif (event := plain_event(line)) is not None:
                rows.append((event, number, number, _event))
        elif read is _event and not _is_event_row(header, line):
            if open_row:
                cells, first, _, reader = rows.pop()
                rows.append(({**cells, "MESSAGE": f"{cells['MESSAGE']}\n{line}"}, first, number, reader))
        elif read is not None:
            rows.append((header.cells(_CUT.sub("", line.rstrip())), number, number, read))
            open_row = True
    for cells, first, last, reader in rows:
        yield from reader(cells, Locator(source, first, last))


def _is_event_row(header: Header, line: str) -> bool:
    cells = header.cells(line)
    kind = _cell(cells, ("TYPE",))
    return (
        kind in ("Normal", "Warning")
        or "TYPE" not in header.names
        or _age(_cell(cells, _LAST_SEEN)) is not None
    )


def _cell(cells: Cells, names: tuple[str, ...]) -> str:
    """The first of some columns that holds something."""
    return next((cells[name] for name in names if cells.get(name, "") not in _EMPTY), "")


def _age(text: str) -> float | None:
    stamp = stamps.age(text.partition(" ")[0], "kubectl")
    return stamp.seconds if stamp is not None else None


def _made(kind: str, text: str, place: Locator, scope: Scope, fields: dict[str, Any]) -> tuple[Event]:
    return (Event(place, kind, "k8s", text, scope=scope, fields=known(fields)),)


def _name(cells: Cells) -> tuple[str, str]:
    """(kind in lower case or empty, name) of `pod/x`, `deployment.apps/x`, `x`."""
    name = cells.get("NAME", "")
    found = _NAME_PREFIX.match(name)
    return (found["kind"], name[found.end() :]) if found else ("", name)


def _pod(cells: Cells, place: Locator) -> Sequence[Event]:
    name, status = _name(cells)[1], cells["STATUS"]
    restarts = _RESTARTS.match(cells["RESTARTS"])
    if not name or not status or restarts is None:
        return ()
    ready = _READY.match(cells["READY"])
    node, ip = _cell(cells, ("NODE",)), _cell(cells, ("IP",))
    scope = Scope(namespace=cells.get("NAMESPACE", ""), pod=name, host=node)
    terminating = status == "Terminating"
    told = _made("pod_status", f"pod {name} {status}", place, scope, {
        "phase": status if status in _PHASES else "",
        "reason": status if status not in _PHASES and not terminating else "",
        "terminating": True if terminating else None,
        "node": node, "pod_ip": ip, "restart_count": int(restarts["count"]),
        "last_restart_age_s": _age(restarts["age"] or ""), "created_age_s": _age(cells.get("AGE", "")),
        "containers_ready": int(ready["ready"]) if ready else None,
        "containers": int(ready["total"]) if ready else None,
    })  # fmt: skip
    ended = _ended(status, int(restarts["count"]))
    if ended is None:
        return told
    reason, code = ended.get("reason", ""), ended.get("exit_code")
    text = f"pod {name} container terminated: reason={reason} exit_code={shown(code)}"
    return (*told, *_made("container_terminated", text, place, scope, ended))


def _ended(status: str, restarts: int) -> dict[str, Any] | None:
    """What STATUS says about the end of a container, none when it says nothing.

    The reason of a terminated container, `ExitCode:1` or `Signal:9` when it has none; a restart loop says that
    there was an end. No column says when it was: the age beside RESTARTS is that of the run before.
    """
    word = status.removeprefix("Init:")
    if word == "CrashLoopBackOff":
        return {"last_state": True, "restart_count": restarts} if restarts else None
    number = _NUMBERED.fullmatch(word)
    if number:
        code = int(number["number"]) + (128 if number["what"] == "Signal" else 0)
        return {"exit_code": code, "restart_count": restarts} if code else None
    return {"reason": word, "restart_count": restarts} if word in _END_REASONS else None


_CODES = ("CODE", "EXIT CODE", "EXITCODE", "EXIT_CODE", "EXIT")
_COUNTS = ("RESTARTS", "RESTART COUNT", "RESTARTCOUNT", "RESTART_COUNT", "RESTART")
_ENDS = ("FINISHED", "FINISHEDAT", "FINISHED AT", "FINISHED_AT", "ENDED", "TERMINATED AT", "LAST FINISHED")


def _ended_row(cells: Cells, place: Locator) -> Sequence[Event]:
    """A row of `-o custom-columns` that asks for the reason of the last end: who asks chooses the names of columns.

    Of a pod's containers each has its own part, with commas between; the first that ended badly is told.
    """
    pod = _cell(cells, ("POD", "NAME")).rpartition("/")[2]
    reasons = [word for name, cell in cells.items() if "REASON" in name for word in cell.split(",")]
    at, reason = next(((i, word) for i, word in enumerate(reasons) if word in _END_REASONS), (0, ""))
    if not pod or not reason:
        return ()

    def one(names: tuple[str, ...]) -> str:
        parts = _cell(cells, names).split(",")
        return parts[min(at, len(parts) - 1)]

    code, count = one(_CODES), one(_COUNTS)
    stamp = instant(one(_ENDS))
    fields = {
        "reason": reason, "exit_code": int(code) if is_whole(code) else None, "last_state": True,
        "restart_count": int(count) if is_whole(count) else None,
        "finished_s": stamp.seconds if stamp is not None else None,
    }  # fmt: skip
    text = terminated_text("", reason, fields["exit_code"] if isinstance(fields["exit_code"], int) else None)
    container = cells.get("CONTAINER", "") if "," not in cells.get("CONTAINER", "") else ""
    scope = Scope(namespace=cells.get("NAMESPACE", ""), pod=pod, container=container)
    return (Event(place, "container_terminated", "k8s", text, (stamp,) if stamp else (), scope, known(fields)),)


def _event(cells: Cells, place: Locator) -> Sequence[Event]:
    reason, message = cells["REASON"], cells["MESSAGE"]
    if not reason:
        return ()
    kind, _, name = _cell(cells, _OBJECT).rpartition("/")
    origin = _SOURCE_HOST.fullmatch(_cell(cells, ("SOURCE", "FROM", "COMPONENT")))
    seen = Occurrence(
        reason=reason, message=message, event_type=cells.get("TYPE", ""),
        object_kind=_KINDS.get(kind.lower(), kind.capitalize()), object_name=name,
        namespace=cells.get("NAMESPACE", ""), field_path=_cell(cells, ("SUBOBJECT",)),
        component=origin["component"] if origin else "", host=(origin["host"] or "") if origin else "",
        count=int(cells["COUNT"]) if is_whole(cells.get("COUNT", "")) else None,
    )  # fmt: skip
    last, first = _cell(cells, _LAST_SEEN), _cell(cells, _FIRST_SEEN)
    seen = with_age(seen, last)
    first_seen = seen.first_seen or instant(first) or stamps.age(first, "kubectl")
    seen = replace(seen, stamp=seen.stamp or instant(last) or _local(cells), first_seen=first_seen)
    return occurrence_events(seen, place)


_CLOCK = lazy_regex(r"(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)")


def _local(cells: Cells) -> RawStamp | None:
    """A time that whoever made the table turned into local time: `17:53:48` below `TIME (IST)`, with or without a date.

    An offset in the header (`TIME (UTC+8)`) is taken off; an abbreviation stays a remark.
    """
    for name, cell in cells.items():
        title, _, zone = name.rstrip(")").partition("(")
        if title.strip() not in _LAST_SEEN:
            continue
        clock = _CLOCK.fullmatch(cell)
        if clock is not None:
            seconds = int(clock["h"]) * 3600.0 + int(clock["m"]) * 60 + int(clock["s"])
            stamp: RawStamp | None = RawStamp(StampForm.CLOCK, "kubectl", seconds)
        else:
            stamp = stamps.iso(cell, "kubectl")
        if stamp is None or stamp.form is StampForm.INSTANT or not zone:
            return stamp
        known = stamps.zone(zone) if zone.startswith(("UTC", "GMT")) else None
        offset = known.utcoffset(datetime(2000, 1, 1)) if known is not None else None
        if offset is None:
            return stamps.with_zone(stamp, zone)
        ahead_s = offset.total_seconds()
        if stamp.form is StampForm.CLOCK:
            return RawStamp(StampForm.CLOCK, "kubectl", (stamp.seconds - ahead_s) % 86400.0, zone="UTC")
        return RawStamp(StampForm.INSTANT, "kubectl", stamp.seconds - ahead_s, stamp.resolution_s)
    return None


_KINDS = {
    "replicaset": "ReplicaSet", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "cronjob": "CronJob",
    "horizontalpodautoscaler": "HorizontalPodAutoscaler", "persistentvolumeclaim": "PersistentVolumeClaim",
}  # fmt: skip
"""Kinds whose capitals a table drops."""


def _node(cells: Cells, place: Locator) -> Sequence[Event]:
    name, status = _name(cells)[1], cells["STATUS"]
    if not name or not status:
        return ()
    words = status.split(",")
    ready = {"Ready": "True", "NotReady": "False"}.get(words[0], "Unknown")
    return _made("node_status", f"node {name} {status}", place, Scope(host=name), {
        "conditions": {"Ready": ready},
        "unschedulable": True if "SchedulingDisabled" in words else None,
        "kernel_version": _cell(cells, ("KERNEL-VERSION",)),
        "runtime_version": _cell(cells, ("CONTAINER-RUNTIME",)),
        "created_age_s": _age(cells.get("AGE", "")),
    })  # fmt: skip


def _claim(cells: Cells, place: Locator) -> Sequence[Event]:
    """A claim on a volume; one that is still pending has no size."""
    name, size = _name(cells)[1], whole(cells["CAPACITY"])
    if not name or size is None:
        return ()
    text = f"claim {name} {cells['STATUS']}: {cells['CAPACITY']}"
    return _made("volume_claim", text, place, Scope(namespace=cells.get("NAMESPACE", "")),
                 {"claim": name, "capacity_bytes": size})  # fmt: skip


def _workload(kind: str, cells: Cells, place: Locator) -> Sequence[Event]:
    prefix, name = _name(cells)
    kind = _KINDS.get(prefix, prefix.capitalize()) if prefix else kind
    ready = _READY.match(cells.get("READY") or cells.get("COMPLETIONS") or "")
    numbers = {column: int(cells[column]) for column in cells if is_whole(cells[column])}
    desired = int(ready["total"]) if ready else numbers.get("DESIRED")
    have = numbers.get("AVAILABLE", int(ready["ready"]) if ready else numbers.get("READY"))
    if not name or (desired is None and have is None):
        return ()
    text = f"{kind.lower()} {name} {shown(have, '?')}/{shown(desired, '?')} available"
    return _made("workload", text, place, Scope(namespace=cells.get("NAMESPACE", "")), {
        "workload_kind": kind, "workload_name": name, "desired": desired, "available": have,
        "updated": numbers.get("UP-TO-DATE"), "created_age_s": _age(cells.get("AGE", "")),
    })  # fmt: skip


def _top(cells: Cells, place: Locator) -> Sequence[Event]:
    """A row of `kubectl top`: working set of a pod, container or node at the capture. Never GPU memory."""
    memory = quantity(cells["MEMORY(bytes)"])
    cpu = quantity(cells.get("CPU(cores)", ""))
    pod = cells.get("POD", "")
    name = cells.get("NAME", "")
    if memory is None or not (pod or name):
        return ()
    mib = round(memory / 2**20)
    fields = {"memory_mib": mib, "cpu_millicores": round(cpu * 1000) if cpu is not None else None}
    if "MEMORY%" in cells or "MEMORY(%)" in cells:
        return _made("log", f"node {name} uses {mib} MiB of memory", place, Scope(host=name), fields)
    scope = Scope(namespace=cells.get("NAMESPACE", ""), pod=pod or name, container=name if pod else "")
    text = f"pod {scope.pod}{' container ' + name if pod else ''} uses {mib} MiB of memory"
    return _made("log", text, place, scope, fields)


def _revision(cells: Cells, place: Locator) -> Sequence[Event]:
    revision = cells["REVISION"]
    if not is_whole(revision):
        return ()
    cause = _cell(cells, ("CHANGE-CAUSE",))
    return _made("log", f"revision {revision}: {cause or 'no change cause recorded'}", place, Scope(),
                 {"revision": revision, "change_cause": cause})  # fmt: skip
