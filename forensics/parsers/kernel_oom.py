"""The kernel's OOM report: messages of one kernel log → one `kernel_oom` event per kill.

`mm/oom_kill.c` prints, in this order: who asked for memory (`invoked oom-killer`), a stack, either the
memory cgroup's figures or `Mem-Info:`, a table of tasks, a summary (5.0 on), and who was killed. Any part
may be missing: reports are rate limited, filtered by level, cut by a ring buffer, and before 4.x two of
them could interleave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..model import Event, Locator
from . import kernel_oom_lines as lines
from .cgroup_path import job_in, path_scope
from .kernel_oom_facts import Group, Kill, facts_of, oom_scope, table_fields
from .log import MAX_RECORD_CHARS, Assembled
from .records import Record

MAX_GAP = 3000
"""Lines of other speakers that may lie between two lines of one report."""


class _Assembly:
    def __init__(self, source: str) -> None:
        self.source = source
        self.events: list[Event] = []
        self.used: set[int] = set()
        self._group = Group()

    def take(self, record: Record, text: str, numbers: Sequence[int]) -> None:
        group = self._group
        if group.open and abs(record.line - group.last_line) > MAX_GAP:
            self.close()
        if head := lines.invoked(text):
            if self._group.kills:
                self.close()
            self._group.heads.append({**head, "report_line": record.line})
        elif victim := lines.killed(text):
            self._kill(Kill(record, text, numbers[-1], victim))
        elif path := lines.group_path(text):
            self._begin_group(path)
            return
        elif text.startswith(("Out of memory and no killable", "Kernel panic - not syncing")):
            self.close()
            return
        elif not (self._fact(record, text) or (self._group.open and self._detail(text))):
            if record.channel == "kernel" and lines.is_orphan(text):
                self.used.update(numbers)
            return
        self._group.last_line = record.line
        self._group.used.update(numbers)

    def _kill(self, kill: Kill) -> None:
        group = self._group
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
        group, self._group = self._group, Group()
        self.used |= group.used - {head["report_line"] for head in group.heads}
        if not group.kills:
            self._add_cut_kill(group)
            return
        for index, kill in enumerate(group.kills):
            facts, table = facts_of(group, index)
            self.events.append(self._event(kill, facts, table, group.node))
            self.used.add(kill.record.line)
            shared = {key: value for key, value in facts.items() if not key.startswith("victim_")}
            shared["task_memcg"] = kill.group
            others = {member.victim.pid: member for member in reversed(kill.members)}
            for pid, member in reversed(others.items()):
                if pid != kill.victim.pid:
                    self.events.append(self._event(member, dict(shared), table, group.node, member=True))

    def _add_cut_kill(self, group: Group) -> None:
        """A log that ends after the summary, or after `Kill process`: decided, not yet done."""
        if group.summaries:
            chosen = group.summaries[-1]
            record: Record = chosen["record"]
            victim = lines.Victim(chosen["victim_pid"], chosen["victim_comm"], "", {}, False)
        elif group.chosen:
            record, victim = group.chosen[-1]
        else:
            return
        facts, table = facts_of(group, 0)
        self.events.append(self._event(Kill(record, record.text, record.line, victim), facts, table, group.node))

    def _event(
        self,
        kill: Kill,
        facts: dict[str, Any],
        table: lines.Table | None,
        node: dict[str, int],
        member: bool = False,
    ) -> Event:
        victim, record = kill.victim, kill.record
        prefix = victim.prefix or facts.pop("prefix", "")
        fields = {**facts, **victim.fields, "victim_pid": victim.pid, "victim_comm": victim.comm}
        fields.pop("prefix", None)
        if prefix:
            fields.setdefault("global_oom", not prefix.startswith("Memory cgroup"))
        if table is not None:
            fields.update(table_fields(table, fields, node))
        if member or kill.group:
            fields["group_kill"] = True
        if scope := oom_scope(fields):
            fields["oom_scope"] = scope
        if job := job_in(fields.get("task_memcg", "")):
            fields["job"] = job
        owner = path_scope(fields.get("task_memcg", ""))
        text = f"{prefix}: {kill.text}" if prefix and kill.text.startswith("Killed") else kill.text
        return Event(
            locator=Locator(self.source, record.line, kill.end),
            kind="kernel_oom",
            channel=record.channel,
            text=text[:MAX_RECORD_CHARS],
            stamps=record.stamps,
            scope=replace(owner, pid=victim.pid).merged(record.scope),
            fields=fields,
            level=record.level,
            count=record.count,
            last_line=record.last_line or None,
            complete=victim.whole and "invoker_comm" in fields,
            raw=record.raw[:MAX_RECORD_CHARS],
        )

    def finish(self) -> Assembled:
        self.close()
        return Assembled(tuple(self.events), frozenset(self.used))


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """One `kernel_oom` event per kill, at its `Killed process` line; `report_line` begins the report.

    That line stays an event of its own: it says when memory was short and who asked for more.
    """
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
