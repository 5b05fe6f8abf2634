"""What a run's own log tells about its end: when it was, and whether a kill may have been it."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Event, Finding, Role, Timestamp
from ..regexes import lazy_regex
from .entities import LOG_CHANNELS
from .model import Life

JOIN_S = 45.0
"""Witnesses this close belong together."""
UNDATED_S = 3600.0
LINGER_S = 180.0
"""A container may outlive its dead engine this long (watchdogs, grace periods)."""
RESTART_S = 600.0
"""A restart follows its death within this, back-off and pulling of the image included."""
SILENT_ENDS = ("vllm.engine_process_died", "vllm.worker_process_died")
"""Words of those that are left when a process vanished."""
CAUGHT = frozenset({"vllm.engine_fatal_error", "vllm.engine_core_start_failed"})
"""Words of an engine that ends of an exception."""
PEER_LOST = lazy_regex(r"nccl\.|vllm\.(?:rpc_timeout|v0_engine_timeout|engine_ready_timeout)$|sglang\.watchdog$")
"""Signatures of what those say who waited for a process that is gone."""
OF_PEERS = ("nccl.", "ray.", "rdma.")
"""Families of what a run says of those that it worked with."""
ECHOES = lazy_regex(
    r"EngineDeadError|EngineCore initialization|RuntimeError: (?:Engine core|Executor failed)|BrokenProcessPool"
    r"|CancelledError|BrokenPipe|ConnectionReset|EOFError|SystemExit|KeyboardInterrupt|ClientDisconnect"
    r"|ActorDiedError|RayActorError|RuntimeError: Process \w+ \(PID: \d+\) died with exit code"
)
"""Exceptions that only tell of somebody else's end."""


def end_of(life: Life, siblings: Sequence[Life]) -> float | None:
    """When a life ended, 0.0 when that is unknown; none when it did not end within its log."""
    lost = life.fatal if life.fatal is not None else life.crash
    if lost is not None:
        return lost.time.utc_s or 0.0
    if life.shutdown is not None or _followed(life, siblings):
        stopped = life.shutdown.time.utc_s if life.shutdown is not None else None  # the last lines may have no time
        return life.end.time.utc_s or stopped or 0.0
    return None


def _followed(life: Life, siblings: Sequence[Life]) -> bool:
    """True when the same entity starts again after this life without an orderly stop in between."""
    for other in siblings:
        if other is life or not other.from_start:
            continue
        a, b = life.end.time.utc_s, other.start.time.utc_s
        begin, end = other.start.locator, life.end.locator
        later_in_file = begin.source == end.source and begin.order > end.order
        if later_in_file or (a is not None and b is not None and b >= a - 1.0):
            return True
    return False


def is_dated(time: Timestamp) -> bool:
    """True for a time that is known well enough to tell an order."""
    return time.utc_s is not None and time.uncertainty_s <= UNDATED_S


def may_have_ended(life: Life, kill: Event) -> bool:
    """True where a run, or the one before it, may have ended by a kernel kill.

    It worked no more, and ended just then or by nothing else; or it is the start that followed. Where a time is open,
    a run that told its own fault, or was stopped, was not killed.
    """
    time, began, ended = kill.time, life.start.time, life.end.time
    known = [moment for moment in (time, began, ended) if moment.utc_s is not None]
    otherwise = _ends_otherwise(life)
    if len(known) < 3 or (otherwise and not all(map(is_dated, known))):
        return not otherwise
    if began.latest_s >= time.earliest_s - JOIN_S and began.earliest_s <= time.latest_s + RESTART_S:
        return True
    worked = life.last_activity.time if life.last_activity is not None else began
    lingers_s = 0.0 if otherwise else LINGER_S  # who was stopped later had not been killed
    if worked.utc_s is not None and worked.earliest_s > time.latest_s + lingers_s:
        return False
    return time.earliest_s <= ended.latest_s + LINGER_S or not otherwise


def _ends_otherwise(life: Life) -> bool:
    """True for a run that was stopped in an orderly way, or that tells of a fault of its own.

    An engine that caught an exception says so; of a process that was killed only its parent and its peers can tell.
    """
    if life.shutdown is not None:
        return True
    if faults := faults_of(life):
        return not all(PEER_LOST.match(fault.signature) for fault in faults)
    names = {finding.signature for finding in _last_words(life)}
    caught = not names.isdisjoint(CAUGHT) and names.isdisjoint(SILENT_ENDS)
    return caught or (life.crash is not None and not ECHOES.search(life.crash.text))


def faults_of(life: Life) -> list[Finding]:
    """What a run's own log says that it failed of, behind the last sign of its work."""
    return [f for f in _last_words(life) if f.role is Role.CAUSE and f.event.channel in LOG_CHANNELS]


def _last_words(life: Life) -> list[Finding]:
    return [f for f in life.findings if not f.quoted and f.locator.order > life.last_sign]
