"""What an OOM report says about a kill: the facts of mixed and torn reports, put to the right victim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import kernel_oom_lines as lines
from .cgroup_path import owner_kind
from .records import Record

TOP_TASKS = 10
"""Tasks of the table kept in an event, by resident memory."""


@dataclass(slots=True)
class Kill:
    record: Record
    text: str
    end: int
    victim: lines.Victim
    group: str = ""
    """Cgroup whose tasks all die with this one."""
    members: list[Kill] = field(default_factory=list)
    """Those tasks; the first victim is printed again among them."""


@dataclass(slots=True)
class Group:
    """Reports whose lines may be mixed: from `invoked` to the last kill before the next `invoked`."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    usages: list[dict[str, Any]] = field(default_factory=list)
    legacies: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    chosen: list[tuple[Record, lines.Victim]] = field(default_factory=list)
    tables: list[lines.Table] = field(default_factory=list)
    node: dict[str, int] = field(default_factory=dict)
    stats_kib: dict[str, dict[str, int]] = field(default_factory=dict)
    """By cgroup path."""
    stats_path: str = ""
    kills: list[Kill] = field(default_factory=list)
    facts_line: int = 0
    used: set[int] = field(default_factory=set)
    last_line: int = 0

    @property
    def open(self) -> bool:
        """True while a kill is still to come."""
        started = max(len(self.heads), 1 if self.facts_line else 0)
        return started > len(self.kills)


def facts_of(group: Group, index: int) -> tuple[dict[str, Any], lines.Table | None]:
    """Facts of one kill. Where fewer reports end than began, the first were torn: count from the end."""
    total = max(len(group.heads), 1)
    place = index + max(0, total - max(len(group.kills), 1))

    def of(values: Sequence[Any]) -> Any:
        position = place - (total - len(values))
        return values[position] if 0 <= position < len(values) and place < total else None

    facts: dict[str, Any] = {
        **(of(group.heads) or {}),
        **(of(group.usages) or {}),
        **(of(group.legacies) or {}),
    }
    if "report_line" not in facts and group.facts_line and place < total:
        facts["report_line"] = group.facts_line
    pid = group.kills[index].victim.pid if index < len(group.kills) else None
    summary = next((s for s in group.summaries if s["victim_pid"] == pid), None) or of(group.summaries)
    if summary:
        facts |= {key: value for key, value in summary.items() if key != "record"}
    if old := of(group.chosen):
        facts |= {"prefix": old[1].prefix, **old[1].fields}
    if place >= total:
        return facts, None
    facts |= _memcg_stats(group, facts.get("oom_memcg", ""))
    facts |= {key: value for key, value in group.node.items() if key.startswith("swap_")}
    own = (table for table in group.tables if any(task.pid == pid for task in table.tasks))
    return facts, next(own, None) or of(group.tables)


def _memcg_stats(group: Group, owner: str) -> dict[str, int]:
    """What filled the cgroup. Up to 5.2 each cgroup below it has a line of its own: they add up."""
    total: dict[str, int] = {}
    for path, values in group.stats_kib.items():
        if not owner or path == owner or path.startswith(f"{owner.rstrip('/')}/"):
            for key, kib in values.items():
                total[key] = total.get(key, 0) + kib
    return total


def table_fields(table: lines.Table, fields: dict[str, Any], node: dict[str, int]) -> dict[str, Any]:
    own = next((task for task in table.tasks if task.pid == fields["victim_pid"]), None)
    page_kib = _page_kib(own, fields) or 4
    top = sorted(table.tasks, key=lambda task: (-task.rss_pages, task.pid))[:TOP_TASKS]
    found: dict[str, Any] = {
        "tasks": tuple(
            {
                "comm": t.comm,
                "pid": t.pid,
                "rss_kib": t.rss_pages * page_kib,
                "oom_score_adj": t.oom_score_adj,
            }
            for t in top
        ),
        "task_count": len(table.tasks),
        "tasks_rss_kib": sum(task.rss_pages for task in table.tasks) * page_kib,
    }
    if "ram_pages" in node:
        found["node_ram_kib"] = node["ram_pages"] * page_kib
    if {"ram_pages", "reserved_pages"} <= node.keys():
        found["node_memory_kib"] = (node["ram_pages"] - node["reserved_pages"]) * page_kib  # MemTotal of meminfo
    if own is not None:
        found.setdefault("victim_uid", fields.get("victim_uid", own.uid))
        if "victim_oom_score_adj" not in fields and own.oom_score_adj is not None:
            found["victim_oom_score_adj"] = own.oom_score_adj
    return found


def _page_kib(own: lines.Task | None, fields: dict[str, Any]) -> int | None:
    """Page size from the victim, who is printed in pages and in kB; 16 and 64 KiB pages exist on ARM."""
    sizes = [fields.get(f"victim_{part}_rss_kib", 0) for part in ("anon", "file", "shmem")]
    if own is None or own.rss_pages < 64 or not sum(sizes):
        return None
    ratio = sum(sizes) / own.rss_pages
    return min((4, 16, 64), key=lambda size: abs(size - ratio))


def oom_scope(fields: dict[str, Any]) -> str:
    """Whose limit was hit: `container`, `pod`, `job`, `qos`, `kubepods`, `unit`, `user`, `node`, `cpuset`, `other`.

    Empty when the report does not say. A limit of a QoS class or of all pods is the node's shortage,
    formally a cgroup's.
    """
    constraint = fields.get("constraint", "")
    if constraint in ("CONSTRAINT_CPUSET", "CONSTRAINT_MEMORY_POLICY"):
        return "cpuset"
    if fields.get("oom_memcg") and not fields.get("global_oom"):
        return owner_kind(fields["oom_memcg"])
    if constraint == "CONSTRAINT_NONE" or fields.get("global_oom"):
        return "node"
    return ""
