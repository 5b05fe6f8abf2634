"""Who held the memory that was missing: of a node, a card, a host, or a node of Ray. Often not the victim."""

from __future__ import annotations

from math import inf
from typing import Any

from .case import Case
from .model import Incident
from .rules.host import kill_fields
from .rules.neighbours import MOST_OF_IT, used_mib

SAME_CARD = 0.05
"""By how much what is used of a card may differ from what a start found taken."""
_FULL = frozenset({"hub.no_space", "host.disk_full", "kernel.no_space", "derived.disk_too_small"})
"""Who says that a disk had no room."""


def of_node(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """For an exhausted node: its memory, and how much its largest process held when it was killed itself."""
    for event in case.of_kind("meminfo"):
        if event.fields.get("mem_total_kib"):
            facts["node_memory_kib"] = event.fields["mem_total_kib"]
            break
    for event in case.of_kind("kernel_oom"):
        rss = kill_fields(event).get("victim_rss_kib")
        if rss is not None and event.fields.get("victim_pid") == facts.get("largest_task_pid"):
            facts["largest_task_rss_at_its_kill_kib"] = rss  # it outlived the first kill and grew on


def of_card(case: Case, facts: dict[str, Any]) -> None:
    """Who holds the card that a start found full: the process with most memory in a snapshot, and with enough of it.

    Of several cards it is the one of which as much is used as the start found taken; the others serve others.
    """
    total, free = facts.get("gpu_total_gib"), facts.get("gpu_free_gib")
    if not isinstance(total, int | float) or not isinstance(free, int | float) or "tried_to_allocate_gib" in facts:
        return
    facts["held_at_start_gib"] = round(total - free, 2)
    known = [event for event in case.of_kind("gpu_process") if used_mib(event)]
    cards = _cards_with(case, (total - free) * 1024)
    largest = max([e for e in known if e.scope.gpu in cards] or known, key=used_mib, default=None)
    if largest is not None and used_mib(largest) >= MOST_OF_IT * (total - free) * 1024:
        facts |= {
            f"foreign_{key}": largest.fields[key] for key in ("pid", "name", "used_mib") if key in largest.fields
        }


def of_volume(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """The size of the volume that was full: of the only claim, else of that which a StatefulSet made for the pod."""
    if not any(f.signature in _FULL for f in incident.hypotheses[0].decisive):
        return
    claims = {str(e.fields["claim"]): e.fields["capacity_bytes"] for e in case.of_kind("volume_claim")}
    pod = incident.entity.removeprefix("pod:")
    own = claims if len(claims) == 1 else {name: size for name, size in claims.items() if name.endswith(f"-{pod}")}
    if len(own) == 1:
        facts["volume_capacity_gib"] = round(next(iter(own.values())) / 1024**3, 2)


def of_driver(case: Case, facts: dict[str, Any]) -> None:
    """The CUDA of the image; the driver and the newest CUDA that it can run, as nvidia-smi heads its table."""
    for image in case.named("nvidia.image_cuda"):
        facts.setdefault("image_cuda_version", image.fields["image_cuda_version"])
    for event in case.of_kind("log"):
        if event.channel == "nvidia" and "driver_cuda" in event.fields:
            facts |= {name: event.fields[name] for name in ("driver_version", "driver_cuda") if name not in facts}
            return


def _cards_with(case: Case, held_mib: float) -> set[str]:
    """The cards of which about as much is used; the driver's own reserve makes a small difference."""
    used = [(e.scope.gpu, e.fields.get("memory_used_mib")) for e in case.of_kind("gpu_state")]
    near = (gpu for gpu, mib in used if isinstance(mib, int | float) and abs(mib - held_mib) <= SAME_CARD * held_mib)
    return set(near) - {""}


def of_host(case: Case, incident: Incident, facts: dict[str, Any]) -> None:
    """Who held most of the host's memory in a process list, where it was not the victim, and how much there is."""
    status = [f for f in case.named("oomd.earlyoom_status") if (f.time.utc_s or inf) <= (incident.start_s or 0.0)]
    if status:
        facts |= {name: value for name, value in status[-1].fields.items() if name not in facts}
    known = [e for e in case.of_kind("process") if isinstance(e.fields.get("rss_kib"), int)]
    largest = max(known, key=lambda e: e.fields["rss_kib"], default=None)
    if largest is not None and largest.fields.get("pid") != facts.get("victim_pid"):
        facts.setdefault("largest_process_pid", largest.fields.get("pid"))
        facts.setdefault("largest_process_rss_kib", largest.fields["rss_kib"])
        facts.setdefault("largest_process", str(largest.fields.get("command", ""))[:80])


def of_ray_node(case: Case, facts: dict[str, Any]) -> None:
    """Who held most memory when Ray's monitor looked: often not the worker that it killed, and often many of a kind."""
    for event in case.events:
        users = event.fields.get("top_memory_users")
        if users:
            facts |= {f"largest_process_{key}": users[0][key] for key in ("pid", "memory_gib") if key in users[0]}
            facts["largest_process"] = str(users[0].get("command", ""))[:80]
            alike = [user for user in users if user.get("command") == users[0].get("command") and "memory_gib" in user]
            if len(alike) > 1:
                facts["largest_process_alike"] = len(alike)
                facts["largest_process_alike_gib"] = round(sum(user["memory_gib"] for user in alike), 2)
            return
