"""Kernel messages: OOM kills, NVIDIA Xid errors, and the GPU that a driver line speaks of.

Shapes of the driver's lines from `krcReportXid` in NVIDIA/open-gpu-kernel-modules, R390 to R595.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from ..model import Event, Locator
from ..regexes import lazy_regex
from ..scan import Window
from . import kernel_oom
from .layer import clean
from .log import Assembled, Dialect, event_of
from .records import Record

ENGINE_COMM = lazy_regex(
    r"vllm|EngineCore?|python|pt_main_thread|ray::|sglang|text-generat|trtllm|ollama|llama-server|lmdeploy|tritonserver",
    regex.IGNORECASE,
)
"""Process names of inference engines in kernel lines (`comm`, 15 bytes)."""


def hits_engine(kill: Event) -> bool:
    """True when the victim of a kernel kill looks, by its name, like a process of an engine."""
    return bool(ENGINE_COMM.search(str(kill.fields.get("victim_comm", ""))))


_PCI = r"(?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
_XID = lazy_regex(
    rf"NVRM: Xid \({_PCI}(?: GPU-I:(?P<gi>\d{{1,18}}))?(?: GPU-CI:(?P<ci>\d{{1,18}}))?\): (?P<xid>\d{{1,18}})"
    r"(?:, pid='?(?P<pid>\d{1,18}|<unknown>)'?)?(?:, name=(?P<name>[^,]*))?(?:,.*?)?"
    r"(?: caused by previous Xid (?P<previous>\d{1,18}))?",
    regex.DOTALL,
)
_GPU_UUID = lazy_regex(rf"NVRM: GPU at {_PCI}: (?P<uuid>GPU-[0-9a-f-]{{36}})\s*")
_GPU_LINE = lazy_regex(rf"NVRM: .*?(?<![0-9a-fA-F:]){_PCI}(?![0-9a-fA-F:])", regex.DOTALL)
_LOST = "NVRM: The NVIDIA GPU "


def bus_id(printed: str) -> str:
    """`00000000:3B:00.0`, `PCI:0000:3b:00` → `0000:3b:00`: what joins driver lines and nvidia-smi."""
    domain, bus, device = printed.lower().removeprefix("pci:").split(".")[0].split(":")
    return f"{domain[-4:].rjust(4, '0')}:{bus}:{device}"


def refine(event: Event) -> Event:
    """Xid lines become `xid`, the line with a card's UUID `gpu_state`; others learn their GPU."""
    if not event.text.startswith("NVRM: "):
        return event
    if found := _XID.fullmatch(event.text.rstrip()):
        return _xid(event, found)
    if found := _GPU_UUID.fullmatch(event.text):
        pci = bus_id(found["pci"])
        fields = {"uuid": found["uuid"], "pci_bus_id": pci}
        return replace(event, kind="gpu_state", fields=fields, scope=replace(event.scope, gpu=pci))
    if found := _GPU_LINE.match(event.text):
        return replace(event, scope=replace(event.scope, gpu=bus_id(found["pci"])))
    return event


def _xid(event: Event, found: regex.Match[str]) -> Event:
    pci = bus_id(found["pci"])
    fields: dict[str, int | str] = {"xid": int(found["xid"]), "pci_bus_id": pci}
    pid = int(found["pid"]) if (found["pid"] or "").isdecimal() else None
    if pid is not None:
        fields["pid"] = pid
    if found["name"] and found["name"] != "<unknown>":
        fields["comm"] = clean(found["name"])
    if found["previous"]:
        fields["caused_by_xid"] = int(found["previous"])
    if found["gi"]:
        fields["gpu_instance"] = int(found["gi"])
    return replace(event, kind="xid", fields=fields, scope=replace(event.scope, gpu=pci, pid=pid))


def assemble(records: Sequence[Record], source: str) -> Assembled:
    """OOM reports, and the driver's report of a lost GPU, which is torn into three lines."""
    assembled = kernel_oom.assemble(records, source)
    events, used = list(assembled.events), set(assembled.used)
    for index, record in enumerate(records):
        if not record.text.startswith(_LOST) or "\n" in record.text:
            continue
        parts = [record]
        for further in records[index + 1 : index + 3]:
            if not further.text.startswith("NVRM: ") or further.line - parts[-1].line > 3:
                break
            parts.append(further)
        if parts[-1].text.startswith("NVRM: fallen off the bus"):
            text = " ".join([record.text, *(part.text.removeprefix("NVRM: ") for part in parts[1:])])
            event = replace(event_of(record, source), text=text, locator=Locator(source, record.line, parts[-1].line))
            events.append(refine(event))
            used |= {part.line for part in parts}
    return Assembled(tuple(events), frozenset(used))


_MONTHS = tuple(f"[{month}" for month in (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
))  # fmt: skip

PLAIN = Dialect(channel="plain", assemble=assemble, refine=refine)
"""Pasted text and `journalctl -o cat`, where nothing says who speaks."""
DIALECT = Dialect(
    channel="kernel",
    anchors=(
        " invoked oom-killer: ", "oom-kill:constraint=", "Killed process ", "total-vm:", "Kill process ",
        "killed as a result of limit of", "due to memory.oom.group set", "memory: usage ",
        "Memory cgroup stats for ", "oom_score_adj name", "pages RAM", "Free swap ", "Total swap ", " Comm: ",
        "no killable processes", "Kernel panic - not syncing",
        "NVRM: Xid (", "NVRM: GPU at PCI:", _LOST, *_MONTHS,
    ),
    windows=(
        Window("Memory cgroup stats for ", ("Tasks state", "oom_score_adj name"), 14),
        Window("oom_score_adj name", ("oom-kill:", "total-vm:", "Kill process ", "Out of memory"), 4000),
        Window(_LOST, ("not responding",), 3),
    ),
    assemble=assemble,
    refine=refine,
)  # fmt: skip
