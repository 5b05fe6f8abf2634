"""Memory readings of hand-made watchers: `… top1=VLLM::APIServer pid=2211 rss=64.9GiB …`, `mem_avail=53.6GiB`,
rows of `docker stats` or `kubectl top pod` behind a time, and what programs count of themselves (`spool_bytes=…`,
`308 conversations tracked`).

People leave loops running that log a process's resident size or the node's free memory; there is no standard form.
What is common is a key (`rss`, `VmRSS`, `mem_avail`, `MemAvailable`), `=` or `:`, a number and a binary unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..model import RawStamp, Samples, Scope
from ..regexes import lazy_regex
from ..scan import Scanned, SeriesRows, SeriesSpec
from .dates import date_command
from .log import Dialect
from .points import Points
from .records import unwrap
from .series_names import meaning

_UNIT = r" ?([KMGT]i?B|[KMGT]i?|kB)\b"
_SEPARATOR = r"(?:^|[\s,;(\[{])"
_RSS = (
    r"^({before}.*?)" + _SEPARATOR + r"(?:(?:\w+[=:])?([A-Za-z][\w:.@-]*)(?:[ ,]+|\())?"
    r"(?:\(?pid[=: ]*(\d+)\)?[ ,:]+|(\d+)\)[ ,:]+)?(?:{key})[=: ]+([\d.]+)" + _UNIT
)
_MORE = ("", r".*?{key}[=: ]+[\d.]+ ?[A-Za-z]*\b")
"""A line may tell the sizes of two processes."""
_AVAILABLE = r"^(.*?)" + _SEPARATOR + r"(?:{key})[=: ]+([\d.]+)" + _UNIT

RSS = tuple(
    SeriesSpec(
        anchor, _RSS.replace("{before}", before).replace("{key}", anchor),
        ("head", "name", "pid", "number", "value", "unit"), ("name", "pid", "number"), consume=False,
    )
    for anchor in ("rss", "RSS", "VmRSS")
    for before in _MORE
)
AVAILABLE = tuple(
    SeriesSpec(anchor, _AVAILABLE.replace("{key}", anchor), ("head", "value", "unit"), consume=False)
    for anchor in ("mem_avail", "mem_available", "MemAvailable", "mem avail")
)
_AMOUNT = r"([\d.]+)([KMGT]i?B|kB|B)"
STATS = SeriesSpec(
    "iB / ",
    r"^(.*?)(?:\b([0-9a-f]{12})[ \t]+)?\b([A-Za-z0-9][\w.-]+)[ \t]+(?:[\d.]+%[ \t]+)?" + f"{_AMOUNT} / {_AMOUNT}",
    ("head", "id", "name", "value", "unit", "limit", "limit_unit"), ("id", "name"), consume=False,
)  # fmt: skip
"""`docker stats`: id, name, CPU, memory in use, limit (docker 1.13 to 28, `podman stats` alike).

With `--format` people leave id and CPU out; then nothing but a time stands before the name.
"""
USED = tuple(
    SeriesSpec(
        anchor,
        r"^(.*?)(?:\b([A-Za-z][\w.-]*)[ \t,:|]+)?\b(?:mem|memory)(?:_?used|_?usage)?[=: ]+"
        rf"{_AMOUNT} ?/ ?{_AMOUNT}",
        ("head", "name", "value", "unit", "limit", "limit_unit"), ("name",), consume=False,
    )
    for anchor in ("iB/", "iB / ")
)  # fmt: skip
"""A watcher's line with what a container uses of its limit: `chat-api mem=33.4GiB/96GiB`."""
TOP = SeriesSpec(
    "Mi", r"^(.*\s)([a-z0-9][a-z0-9.-]*)\s+\d+m\s+(\d+)Mi\s*$", ("head", "name", "value"), ("name",), consume=False
)
"""`kubectl top pod`: name (behind its pod's where containers are listed), CPU in millicores, working set in MiB."""
COUNTED = SeriesSpec(
    "_bytes", r"""^(.*?[\s,;(\[{"])([A-Za-z][A-Za-z0-9_.]*_bytes)"?(?:=|: ?)"?(\d+)\b(.*)$""",
    ("head", "name", "value", "tail"), ("name",), consume=False,
)  # fmt: skip
"""A program's own count of what it holds, in its log: the first one of a line."""
HELD = tuple(
    SeriesSpec(
        word, r"^(.*?)\b(\d{1,15}) ((?:[a-z][\w-]{0,30} ){1,3}?)(?:are |is |were |now |currently )?" + word + r"\b",
        ("head", "value", "what"), ("what",), consume=False,
    )
    for word in ("tracked", "cached", "retained", "buffered", "in memory")
)  # fmt: skip
"""How many of something a program says that it keeps: what grows in it when its memory does."""
_SAYS = lazy_regex(r"[a-z]{4}")
_POD_BEFORE = lazy_regex(r"(?:.*\s)?(?P<pod>[a-z0-9][a-z0-9.-]*-(?:[a-z0-9]{5}|\d{1,3}))\s+")
_KIB = {"kB": 1} | {f"{letter}{rest}": 1024**n for n, letter in enumerate("KMGT") for rest in ("B", "iB", "", "i")}
_MARKS = "#>*- "
"""What a script prints in front of its own line, so that it is told from the output around it."""


def samples(scanned: Scanned, source: str) -> Sequence[Samples]:
    """`process_rss_mib` by process and pid, `host_memory_available_kib`; times are of the line's own envelopes."""
    points = Points(source)
    for rows in scanned.series:
        if rows.spec == STATS or rows.spec in USED:
            _stats(rows, points)
        if rows.spec == TOP:
            _top(rows, points)
        if rows.spec == COUNTED:
            _counted(rows, points)
        if rows.spec in HELD:
            _held(rows, points)
        if rows.spec not in (*RSS, *AVAILABLE):
            continue
        names = rows.columns.get("name") or [None] * len(rows.lines)
        pids, numbers = (rows.columns.get(key) or [None] * len(rows.lines) for key in ("pid", "number"))
        for row, line in enumerate(rows.lines):
            unit, text = rows.columns["unit"][row], rows.columns["value"][row]
            if unit is None or text is None or text.count(".") > 1 or not text.strip("."):
                continue
            kib = float(text) * _KIB[unit]
            around = unwrap(f"{(rows.columns['head'][row] or '').lstrip(_MARKS)} -")
            stamp = around.stamps[-1] if around.stamps else None
            if rows.spec in RSS:
                pid = pids[row] or numbers[row]
                scope = Scope(host=around.scope.host, process=names[row] or "", pid=int(pid) if pid else None)
                points.add("process_rss_mib", scope, stamp, line, kib / 1024)
            else:
                points.add("host_memory_available_kib", Scope(host=around.scope.host), stamp, line, kib)
    return points.samples()


def _stats(rows: SeriesRows, points: Points) -> None:
    """Memory of containers, of the rows that tell a time; docker leaves out the cache that can be given back."""
    columns = [rows.columns[name] for name in ("head", "name", "value", "unit")]
    identities = rows.columns.get("id") or [None] * len(rows.lines)
    for head, name, text, unit, identity, line in zip(*columns, identities, rows.lines, strict=True):
        if text is None or unit not in _KIB or text.count(".") > 1 or not text.strip("."):
            continue
        around = unwrap(f"{head or ''}-")
        keyed = identity is not None or rows.spec in USED
        stamp = (around.stamps[-1] if around.stamps else None) if keyed else _alone(head or "")
        if stamp is not None:
            scope = Scope(host=around.scope.host, container=name or "", container_id=identity or "")
            points.add("container_memory_mib", scope, stamp, line, float(text) * _KIB[unit] / 1024)


def _alone(head: str) -> RawStamp | None:
    """A time, where nothing else stands before the name of a container."""
    written = head.strip().strip("[]|,; ")
    return date_command(written, "metrics") if len(written) <= 40 and not _SAYS.search(written) else None


def _top(rows: SeriesRows, points: Points) -> None:
    """Working sets of pods or containers, of the rows that tell a time."""
    told = zip(*(rows.columns[name] for name in ("head", "name", "value")), rows.lines, strict=True)
    for head, name, text, line in told:
        around = unwrap(f"{head or ''}-")
        if text is None or not around.stamps:
            continue
        before = _POD_BEFORE.fullmatch(head or "")
        scope = Scope(pod=before["pod"], container=name or "") if before else Scope(pod=name or "")
        points.add("container_memory_mib", scope, around.stamps[-1], line, float(text))


def _counted(rows: SeriesRows, points: Points) -> None:
    """A known quantity under its name, any other as `counted_mib` of its counter; of the rows that tell a time."""
    told = zip(*(rows.columns[name] for name in ("head", "name", "value", "tail")), rows.lines, strict=True)
    for head, name, text, tail, line in told:
        head = head or ""
        around = unwrap(head + ('":0' if head.endswith('"') else "=") + (tail or ""))  # JSON is read as a whole
        if name is None or text is None or not around.stamps:
            continue
        series, factor = meaning(name) or ("counted_mib", 1 / 2**20)
        counter = name if series == "counted_mib" else ""
        scope = Scope(host=around.scope.host, pod=around.scope.pod, container=around.scope.container, process=counter)
        points.add(series, scope, around.stamps[-1], line, float(text) * factor)


def _held(rows: SeriesRows, points: Points) -> None:
    """`held_count` by what is held; of the rows that tell a time."""
    told = zip(*(rows.columns[name] for name in ("head", "value", "what")), rows.lines, strict=True)
    for head, text, what, line in told:
        around = unwrap(f"{head or ''}-")
        if text is not None and around.stamps:
            scope = Scope(host=around.scope.host, pod=around.scope.pod, container=around.scope.container)
            kind = f"{(what or '').strip()} {rows.spec.anchor}"
            points.add("held_count", replace(scope, process=kind), around.stamps[-1], line, float(text))


DIALECT = Dialect(channel="metrics", series=(*RSS, *AVAILABLE, STATS, *USED, TOP, COUNTED, *HELD), samples=samples)
