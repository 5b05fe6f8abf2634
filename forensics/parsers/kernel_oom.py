"""The kernel's OOM report: messages of one kernel log → one `kernel_oom` event per kill.

`mm/oom_kill.c` prints, in this order: who asked for memory (`invoked oom-killer`), a stack, either the
memory cgroup's figures or `Mem-Info:`, a table of tasks, a summary (5.0 on), and who was killed. Any part
may be missing: reports are rate limited, filtered by level, cut by a ring buffer, and before 4.x two of
them could interleave.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import regex

from ..model import Event, Locator, Scope
from . import kernel_oom_lines as lines
from .cgroup_path import owner_kind, path_scope
from .log import MAX_RECORD_CHARS, Assembled
from .records import Record

TOP_TASKS = 10
"""Tasks of the table kept in an event, by resident memory."""
MAX_GAP = 3000
"""Lines of other speakers that may lie between two lines of one report."""
_DIGITS = regex.compile(r"[0-9a-f]{12,}|\d+")


@dataclass(slots=True)
class _Kill:
    record: Record
    text: str
    end: int
    victim: lines.Victim
    group: str = ""
    """Cgroup whose tasks all die with this one."""
    members: list[_Kill] = field(default_factory=list)
    """Those tasks; the first victim is printed again among them."""


@dataclass(slots=True)
class _Group:
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
    kills: list[_Kill] = field(default_factory=list)
    facts_line: int = 0
    used: set[int] = field(default_factory=set)
    last_line: int = 0

    @property
    def open(self) -> bool:
        """True while a kill is still to come."""
        started = max(len(self.heads), 1 if self.facts_line else 0)
        return started > len(self.kills)


class _Assembly:
    def __init__(self, source: str) -> None:
        self.source = source
        self.events: list[Event] = []
        self.used: set[int] = set()
        self._group = _Group()
        self._storms: dict[str, list[int]] = {}

    def take(self, record: Record, text: str, numbers: Sequence[int]) -> None:
        group = self._group
        if group.open and abs(record.line - group.last_line) > MAX_GAP:
            self.close()
        if head := lines.invoked(text):
            if self._group.kills:
                self.close()
            self._group.heads.append({**head, "report_line": record.line})
        elif victim := lines.killed(text):
            self._kill(_Kill(record, text, numbers[-1], victim))
        elif path := lines.group_path(text):
            self._begin_group(path)
            return
        elif text.startswith(("Out of memory and no killable", "Kernel panic - not syncing")):
            self.close()
            return
        elif not (self._fact(record, text) or (self._group.open and self._detail(text))):
            if lines.is_orphan(text):
                self.used.update(numbers)
            return
        self._group.last_line = record.line
        self._group.used.update(numbers)

    def _kill(self, kill: _Kill) -> None:
        group = self._group
        self._storms.setdefault(_DIGITS.sub("#", kill.record.raw), []).append(kill.record.line)
        last = group.kills[-1] if group.kills else None
        if last is not None and last.group and not group.open:
            last.members.append(kill)
        else:
            group.kills.append(kill)

    def _begin_group(self, path: str) -> None:
        """`Tasks in … are going to be killed`: those to come die with the kill printed last."""
        kills = self._group.kills
        if kills and kills[-1].members:  # the last one was no member, but the first of another group
            kills.append(kills[-1].members.pop())
        if kills:
            kills[-1].group = path

    def _fact(self, record: Record, text: str) -> bool:
        """Facts that belong to a report even when its beginning is lost."""
        usage, legacy, summary = lines.usage(text), lines.legacy(text), lines.summary(text)
        victim, table = lines.chosen(text), lines.table(text)
        if not (usage or legacy or summary or victim or table):
            return False
        if self._group.kills and not self._group.open:
            self.close()
        group = self._group
        group.facts_line = group.facts_line or record.line
        group.stats_path = ""
        if usage:
            group.usages.append(usage)
        if legacy:
            group.legacies.append(legacy)
        if summary:
            group.summaries.append({**summary, "record": record})
        if victim:
            group.chosen.append((record, victim))
        if table:
            group.tables.append(table)
        return True

    def _detail(self, text: str) -> bool:
        """Lines that mean something only inside a report."""
        group = self._group
        if group.tables and (row := lines.row(text)):
            group.tables[-1].add(*row)
            return True
        if stats := lines.stats_path(text):
            group.stats_path, text = stats
            group.stats_kib.setdefault(group.stats_path, {})
        if group.stats_path and (found := lines.stats_kib(text)):
            group.stats_kib[group.stats_path].update(found)
            return True
        if figures := lines.node(text):
            group.node.update(figures)
            return True
        if group.heads and (pid := lines.invoker_pid(text)) is not None:
            group.heads[-1].setdefault("invoker_pid", pid)
            return True
        return stats is not None or lines.is_body(text)

    def close(self) -> None:
        """Turn what was gathered into events."""
        group, self._group = self._group, _Group()
        if not group.kills:
            self._add_cut_kill(group)
            return
        self.used |= group.used - {head["report_line"] for head in group.heads[: -len(group.kills)]}
        for index, kill in enumerate(group.kills):
            facts = _facts_of(group, index)
            self.events.append(self._event(kill, facts, group))
            self.used.add(kill.record.line)
            shared = {key: value for key, value in facts.items() if not key.startswith("victim_")}
            shared["task_memcg"] = kill.group
            others = {member.victim.pid: member for member in reversed(kill.members)}
            for pid, member in reversed(others.items()):
                if pid != kill.victim.pid:
                    self.events.append(self._event(member, dict(shared), group, member=True))

    def _add_cut_kill(self, group: _Group) -> None:
        """A log that ends after the summary, or after `Kill process`: decided, not yet done."""
        self.used |= group.used - {head["report_line"] for head in group.heads}
        if group.summaries:
            chosen = group.summaries[-1]
            record: Record = chosen["record"]
            victim = lines.Victim(chosen["victim_pid"], chosen["victim_comm"], "", {}, False)
        elif group.chosen:
            record, victim = group.chosen[-1]
        else:
            return
        self.events.append(
            self._event(_Kill(record, record.text, record.line, victim), _facts_of(group, 0), group)
        )

    def _event(self, kill: _Kill, facts: dict[str, Any], group: _Group, member: bool = False) -> Event:
        victim, record = kill.victim, kill.record
        prefix = victim.prefix or facts.pop("prefix", "")
        fields = {**facts, **victim.fields, "victim_pid": victim.pid, "victim_comm": victim.comm}
        fields.pop("prefix", None)
        if prefix:
            fields.setdefault("global_oom", not prefix.startswith("Memory cgroup"))
        table = group.tables[-1] if group.tables else None
        if table is not None:
            fields.update(_table_fields(table, fields, group.node))
        if member or kill.group:
            fields["group_kill"] = True
        if scope := oom_scope(fields):
            fields["oom_scope"] = scope
        owner = path_scope(fields.get("task_memcg", ""))
        text = f"{prefix}: {kill.text}" if prefix and kill.text.startswith("Killed") else kill.text
        return Event(
            locator=Locator(self.source, record.line, kill.end),
            kind="kernel_oom",
            channel=record.channel,
            text=text[:MAX_RECORD_CHARS],
            stamps=record.stamps,
            scope=Scope(
                pod_uid=owner.pod_uid, container_id=owner.container_id, unit=owner.unit, pid=victim.pid
            ).merged(record.scope),
            fields=fields,
            level=record.level,
            count=record.count,
            last_line=record.last_line or None,
            complete=victim.whole and "invoker_comm" in fields,
            raw=record.raw[:MAX_RECORD_CHARS],
        )

    def finish(self) -> Assembled:
        """All kills; a thinned line does not count those that are events of their own."""
        self.close()
        return Assembled(tuple(self._counted(event) for event in self.events), frozenset(self.used))

    def _counted(self, event: Event) -> Event:
        if event.count <= 1 or event.last_line is None:
            return event
        equal = sorted(self._storms.get(_DIGITS.sub("#", event.raw), []))
        own = bisect_left(equal, event.last_line) - bisect_right(equal, event.locator.line)
        return replace(event, count=max(1, event.count - max(own, 0)))


def _facts_of(group: _Group, index: int) -> dict[str, Any]:
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
        facts["prefix"] = old[1].prefix
    if place < total:
        facts |= _memcg_stats(group, facts.get("oom_memcg", ""))
        facts |= {key: value for key, value in group.node.items() if key.startswith("swap_")}
    return facts


def _memcg_stats(group: _Group, owner: str) -> dict[str, int]:
    """What filled the cgroup. Up to 5.2 each cgroup below it has a line of its own: they add up."""
    total: dict[str, int] = {}
    for path, values in group.stats_kib.items():
        if not owner or path == owner or path.startswith(f"{owner.rstrip('/')}/"):
            for key, kib in values.items():
                total[key] = total.get(key, 0) + kib
    return total


def _table_fields(table: lines.Table, fields: dict[str, Any], node: dict[str, int]) -> dict[str, Any]:
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
    """Whose limit was hit: `container`, `pod`, `qos`, `kubepods`, `unit`, `user`, `node`, `cpuset`, `other`.

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


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """One `kernel_oom` event per kill, at its `Killed process` line; `report_line` begins the report."""
    assembly = _Assembly(source)
    if _is_reversed(records):
        records = records[::-1]
    for record, text, numbers in _messages(records):
        assembly.take(record, text, numbers)
    return assembly.finish()


def _is_reversed(records: Sequence[Record]) -> bool:
    """`journalctl -r` prints the newest line first."""
    times = [record.stamps[0].seconds for record in records if record.stamps]
    steps = [after - before for before, after in pairwise(times) if after != before]
    return 2 * sum(step < 0 for step in steps) > len(steps)


def _messages(records: Sequence[Record]) -> Iterator[tuple[Record, str, tuple[int, ...]]]:
    """(record, text, line numbers), with torn lines joined."""
    index = 0
    while index < len(records):
        count = 1 + _missing(records, index)
        parts = records[index : index + count]
        yield parts[0], "\n".join(part.text for part in parts), tuple(part.line for part in parts)
        index += count


def _missing(records: Sequence[Record], index: int) -> int:
    """How many of the next records complete this one."""
    end = lines.wanted_end(records[index].text)
    if end:
        for count, further in enumerate(records[index + 1 : index + 4], 1):
            if "Killed process " in further.text or "oom-kill:" in further.text:
                break
            if end in further.text:
                return count
    return 0
