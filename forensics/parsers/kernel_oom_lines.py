"""Shapes of the lines of a kernel OOM report, each known by itself.

From `mm/oom_kill.c`, `mm/memcontrol.c`, `mm/page_alloc.c` of Linux 3.10 to 7.x. Vendor kernels mix
versions, so no line is tied to one. A process name is 15 bytes that its owner chose: it may hold commas,
brackets, newlines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import regex

from ..regexes import lazy_regex
from .envelopes.kernel import unescape
from .layer import clean

INVOKED = " invoked oom-killer: gfp_mask="
MAX_TASKS = 20_000
"""Rows of one task table that are read."""
_NO_LIMIT_KIB = 1 << 50

_INVOKED = lazy_regex(
    r"(?P<comm>.*?) invoked oom-killer: gfp_mask=0x[0-9a-f]+.*?order=(?P<order>-?\d{1,18})", regex.DOTALL
)
_CPU = lazy_regex(r"CPU: \d+ (?:UID: \d+ )?PID: (?P<pid>\d{1,18}) Comm: ")
_USAGE = lazy_regex(
    r"memory: usage (?P<usage>\d{1,18})kB, limit (?P<limit>\d{1,18})kB, failcnt (?P<failcnt>\d{1,18})"
)
_LEGACY = lazy_regex(r"Task in (?P<task>\S+) killed as a result of limit of (?P<limit>\S+)\s*")
_STATS = lazy_regex(r"Memory cgroup stats for (?P<path>/.*?): ?(?P<values>\w+:\d+KB .*)?\s*", regex.DOTALL)
_STAT = lazy_regex(
    r"(?<![\w])(?P<key>anon|file|shmem|kernel|rss|cache)(?: (?P<bytes>\d{1,18})|:(?P<kib>\d{1,18})KB)\b"
)
_STAT_KEYS = {"rss": "anon", "cache": "file"}  # up to 5.2
_PAGES = lazy_regex(r"(?P<pages>\d{1,18}) pages (?P<what>RAM|reserved)\s*")
_SWAP = lazy_regex(r"(?P<which>Free|Total) swap += (?P<kib>\d{1,18})kB\s*")
_HEADER = lazy_regex(r"\[ *pid *\] +(?P<columns>uid .*?) +name\s*")
_ROW = lazy_regex(r"\[ *(?P<pid>\d{1,18})\] +(?P<rest>\d{1,18} +\d+ .*)", regex.DOTALL)
_SUMMARY = lazy_regex(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_[A-Z_]+),.*?"
    r"(?:oom_memcg=(?P<oom_memcg>[^,]*)|(?P<global>global_oom)),task_memcg=(?P<task_memcg>.*?),"
    r"task=(?P<comm>.*),pid=(?P<pid>\d{1,18}),uid=(?P<uid>\d{1,18})\s*",
    regex.DOTALL,
)
_PREFIX = r"(?P<prefix>(?:Memory cgroup o|O)ut of memory(?: \([^)]*\))?): "
_CHOSEN = lazy_regex(
    rf"{_PREFIX}Kill process (?P<pid>\d{{1,18}}) \((?P<comm>.*)\) score (?P<score>\d{{1,9}}) or .*", regex.DOTALL
)
_KILLED = lazy_regex(
    rf"(?:{_PREFIX})?Killed process (?P<pid>\d{{1,18}})(?:, UID (?P<uid>\d{{1,18}}),)? "
    r"\((?P<comm>.*)\),? (?P<sizes>total-vm:.*)",
    regex.DOTALL,
)
_KILLED_TORN = lazy_regex(
    rf"(?:{_PREFIX})?Killed process (?P<pid>\d{{1,18}}) \((?P<comm>[^\n]{{0,16}})", regex.DOTALL
)
_SIZE = lazy_regex(r"(total-vm|anon-rss|file-rss|shmem-rss):(\d{1,18})kB")
_UID = lazy_regex(r"UID:(\d{1,18}) ")
_ADJ = lazy_regex(r"oom_score_adj:(-?\d{1,18})\s*$")
_GROUP = lazy_regex(r"Tasks in (?P<path>/.*?) are going to be killed due to memory\.oom\.group set")
_BODY = lazy_regex(
    r"\s*(?:(?:Hardware name|Workqueue|Call [Tt]race|Mem-Info|R[A-Z0-9]{2}|Code|FS|CS|CR2|EFLAGS|Stack):.*|"
    r"</?(?:TASK|IRQ|NMI|EOI|SOFTIRQ)>|(?:\? )?[\w.]+\+0x[0-9a-f]+/0x.*|\[<[0-9a-f]+>\].*|"
    r"(?:active_|inactive_|isolated_|unevictable|slab_|mapped|sec_pagetables|kernel_misc|free)\w*:\d.*|"
    r"Node \d+ .*|lowmem_reserve\[\].*|\d+ total pagecache pages|\d+ pages .*|Swap cache stats:.*|"
    r"Tasks state .*|(?:swap|memory\+swap|kmem): usage .*|Memory cgroup min protection .*|[a-z_0-9]+ \d+|"
    r"COMPACTION is disabled.*|.{0,16} cpuset=\S+ mems_allowed=\S+)\s*",
    regex.DOTALL,
)
_ORPHAN = lazy_regex(r"[a-z_0-9]+ \d+\s*|\[ *\d+\] +\d+ +\d+ +\d+ .*", regex.DOTALL)
_SIZE_FIELDS = {
    "total-vm": "victim_total_vm_kib", "anon-rss": "victim_anon_rss_kib", "file-rss": "victim_file_rss_kib",
    "shmem-rss": "victim_shmem_rss_kib",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Task:
    """A row of the task table."""

    pid: int
    comm: str
    uid: int
    rss_pages: int
    oom_score_adj: int | None


@dataclass(slots=True)
class Table:
    """The task table: its columns changed four times, so they are read from the header."""

    columns: list[str]
    tasks: list[Task] = field(default_factory=list)

    def add(self, pid: int, rest: str) -> None:
        """One row; a name may hold blanks or be empty."""
        values = rest.split(None, len(self.columns))
        if len(values) < len(self.columns) or len(self.tasks) >= MAX_TASKS:
            return
        row = dict(zip(self.columns, values, strict=False))
        comm = values[len(self.columns)] if len(values) > len(self.columns) else ""
        try:
            adj = int(row["oom_score_adj"]) if "oom_score_adj" in row else None
            self.tasks.append(Task(pid, name(comm.rstrip()), int(row["uid"]), int(row["rss"]), adj))
        except (KeyError, ValueError):
            return


@dataclass(frozen=True, slots=True)
class Victim:
    """A `Killed process` line."""

    pid: int
    comm: str
    prefix: str
    """`Out of memory`, `Memory cgroup out of memory`, or empty (before 5.1 it stood in a line of its own)."""
    fields: dict[str, Any]
    whole: bool
    """False when the line is cut before its sizes."""


def name(printed: str) -> str:
    """A process name without the escapes of dmesg and without terminal codes."""
    return clean(unescape(printed))


def wanted_end(text: str) -> str:
    """What a torn line still needs: a newline in a name splits `Killed process` and the summary in two."""
    if "Killed process " in text and "total-vm:" not in text and _KILLED_TORN.match(text):
        return "total-vm:"
    if text.startswith("oom-kill:constraint=") and ",uid=" not in text:
        return ",uid="
    return ""


def invoked(text: str) -> dict[str, Any] | None:
    """Who asked for memory; order -1 is a SysRq key."""
    found = _INVOKED.match(text) if INVOKED in text else None
    return {"invoker_comm": name(found["comm"]), "order": int(found["order"])} if found else None


def invoker_pid(text: str) -> int | None:
    """Thread id of the invoker, from the line after `invoked`."""
    found = _CPU.match(text) if text.startswith("CPU: ") else None
    return int(found["pid"]) if found else None


def usage(text: str) -> dict[str, Any] | None:
    """Use and limit of the cgroup whose limit was hit, not of the victim; no limit is left out."""
    found = _USAGE.match(text) if text.startswith("memory: usage ") else None
    if not found:
        return None
    fields = {"memcg_usage_kib": int(found["usage"]), "memcg_failcnt": int(found["failcnt"])}
    limit = int(found["limit"])
    return {**fields, "memcg_limit_kib": limit} if limit < _NO_LIMIT_KIB else fields


def legacy(text: str) -> dict[str, Any] | None:
    """`Task in A killed as a result of limit of B`, up to 4.20: A holds the victim, B owns the limit."""
    found = _LEGACY.match(text) if text.startswith("Task in ") else None
    return {"task_memcg": found["task"], "oom_memcg": found["limit"], "global_oom": False} if found else None


def stats_path(text: str) -> tuple[str, str] | None:
    """(cgroup path, values that follow on the same line) of `Memory cgroup stats for`."""
    found = _STATS.fullmatch(text) if text.startswith("Memory cgroup stats for ") else None
    return (found["path"], found["values"] or "") if found else None


def stats_kib(text: str) -> dict[str, int]:
    """The few counters that say what filled a cgroup; bytes from 5.3 on, KB before."""
    found = {}
    for stat in _STAT.finditer(text):
        key = f"memcg_{_STAT_KEYS.get(stat['key'], stat['key'])}_kib"
        found[key] = int(stat["kib"]) if stat["kib"] else int(stat["bytes"]) // 1024
    return found


def node(text: str) -> dict[str, int] | None:
    """Figures of the node: `ram_pages`, `reserved_pages`, `swap_free_kib`, `swap_total_kib`."""
    if found := _PAGES.fullmatch(text):
        return {f"{found['what'].lower()}_pages": int(found["pages"])}
    if found := _SWAP.fullmatch(text):
        return {f"swap_{found['which'].lower()}_kib": int(found["kib"])}
    return None


def table(text: str) -> Table | None:
    """A header of the task table."""
    found = _HEADER.fullmatch(text) if text.startswith("[") else None
    return Table(found["columns"].split()) if found else None


def row(text: str) -> tuple[int, str] | None:
    """(pid, the other columns) of a row of the task table."""
    found = _ROW.match(text) if text.startswith("[") else None
    return (int(found["pid"]), found["rest"]) if found else None


def summary(text: str) -> dict[str, Any] | None:
    """`oom-kill:constraint=…` of 5.0 and later, with the chosen victim."""
    found = _SUMMARY.fullmatch(text) if text.startswith("oom-kill:constraint=") else None
    if not found:
        return None
    fields = {
        "constraint": found["constraint"], "global_oom": found["global"] is not None,
        "task_memcg": found["task_memcg"], "victim_uid": int(found["uid"]),
        "victim_pid": int(found["pid"]), "victim_comm": name(found["comm"]),
    }  # fmt: skip
    return {**fields, "oom_memcg": found["oom_memcg"]} if found["oom_memcg"] else fields


def chosen(text: str) -> Victim | None:
    """`Kill process N (c) score S or sacrifice child`, up to 5.0: a child may die in its place."""
    found = _CHOSEN.fullmatch(text) if "Kill process " in text else None
    if not found:
        return None
    score = {"chosen_oom_score": int(found["score"])}
    return Victim(int(found["pid"]), name(found["comm"]), found["prefix"], score, False)


def killed(text: str) -> Victim | None:
    """The line that names the victim; a line that is cut still tells its pid."""
    if "Killed process " not in text:
        return None
    found = _KILLED.fullmatch(text)
    if not found:
        found = _KILLED_TORN.match(text)
        return Victim(int(found["pid"]), name(found["comm"]), found["prefix"] or "", {}, False) if found else None
    sizes = found["sizes"]
    fields: dict[str, Any] = {_SIZE_FIELDS[key]: int(kib) for key, kib in _SIZE.findall(sizes)}
    uid, adj = _UID.search(sizes), _ADJ.search(sizes)
    if uid or found["uid"]:
        fields["victim_uid"] = int(uid[1] if uid else found["uid"])
    if adj:
        fields["victim_oom_score_adj"] = int(adj[1])
    return Victim(int(found["pid"]), name(found["comm"]), found["prefix"] or "", fields, True)


def group_path(text: str) -> str:
    """The cgroup whose tasks all die (`memory.oom.group`)."""
    found = _GROUP.match(text) if text.startswith("Tasks in ") else None
    return str(found["path"]) if found else ""


def is_body(text: str) -> bool:
    """A line of a report that carries no fact we need: stack, registers, zones, counters."""
    return _BODY.fullmatch(text) is not None


def is_orphan(text: str) -> bool:
    """A row of a table, or a counter, which says nothing without its report."""
    return _ORPHAN.fullmatch(text) is not None
