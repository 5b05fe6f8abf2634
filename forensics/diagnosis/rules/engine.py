"""The engine's own story: exceptions that no signature knows, hangs, silent deaths, and runs that are fine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...model import Event, Finding, Role
from ...parsers import traceback
from ...regexes import lazy_regex
from .. import rank
from ..case import Case, conclude
from ..ends import ECHOES, SILENT_ENDS
from ..model import Death, Life, Phase
from .oom_site import phase_at

CONFIG_ERRORS = lazy_regex(
    r"(?:^|\.)(?:ValueError|ValidationError|NotImplementedError|ArgumentError|ArgumentTypeError|JSONDecodeError|FileNotFoundError)$"
)
_CHECKS = lazy_regex(r":_{0,2}(?:validate|verify|check)_\w*(?:arg|config|flag|option|param)\w*$")
"""Functions that look at what somebody set: whatever they raise is about that."""
AT_WORK = lazy_regex(
    r":(?:run_busy_loop|execute_model|step|process_input_sockets|output_handler|generate|update_from_output)$"
)
"""Functions that run only after the start."""
_SETTING_UP = lazy_regex(r":(?:init_app_state|init_static_loras|build_app|setup_server)$")
"""Functions of an API server between the start of its engine and its first request."""
_BUILT = frozenset({"vllm.init_engine_took", "sglang.capacity"})
"""Lines behind which the engine is built, and only the server is not ready."""
NEAR_LINES = 10
"""An exception without its traceback stands this close to the words of those who noticed it."""
HANG_WAITS = 3


def rules(case: Case, death: Death) -> Iterator[Finding]:
    life = death.life
    if life is None:
        return
    known = [f for f in life.findings if f.role is Role.CAUSE and f.locator.order > life.last_sign]
    event = first_uncaught(case, life)
    if event is not None and all(_long_before(event, f) for f in known):
        yield _exception(case, life, event)
    if not known:
        yield from _silent(life)
    yield from _hang(life)
    yield from _phase(life)
    yield from _kv_budget(life)
    yield from _disk(life)


def _disk(life: Life) -> Iterator[Finding]:
    """A warning that a file will not fit, before the disk was full: there stand the sizes."""
    full = next((f for f in life.findings if f.signature == "hub.no_space" and f.locator.order > life.last_sign), None)
    if full is None:
        return
    for finding in life.findings:
        if finding.signature == "hub.low_disk" and life.last_sign < finding.locator.order < full.locator.order:
            yield conclude("disk_too_small", finding.event, finding.fields, (full,))
            return


def _kv_budget(life: Life) -> Iterator[Finding]:
    """The measured KV budget is zero or negative, or not one block: the engine cannot start, whatever it says next."""
    for finding in life.findings:
        available = finding.fields.get("kv_available_gib", finding.fields.get("gpu_blocks"))
        if isinstance(available, int | float) and available <= 0:
            yield conclude("kv_budget_spent", finding.event, finding.fields, (finding,))
            return


def _long_before(event: Event, known: Finding) -> bool:
    """True when an exception came well before an error that a signature knows: a timeout may be its late echo."""
    a, b = event.time.utc_s, known.time.utc_s
    return event.locator.order < known.locator.order and a is not None and b is not None and b - a > rank.SAME_MOMENT_S


def _exception(case: Case, life: Life, event: Event) -> Finding:
    phase = phase_at(case, life, event)
    exception = traceback.exception_of(event)
    frames = event.fields.get("frames", ())
    working = any(AT_WORK.search(frame) for frame in frames)
    built = any(f.signature in _BUILT and f.locator.order < event.locator.order for f in life.findings)
    built = built or any(_SETTING_UP.search(frame) for frame in frames)
    checking = (phase in (Phase.UNKNOWN, Phase.STARTING) or built) and life.ready is None and not working
    name = "config_exception" if checking and is_of_settings(exception, frames) else "uncaught_exception"
    return conclude(name, event, {"exception": exception, "phase": phase.value})


def is_of_settings(exception: str, frames: Sequence[str]) -> bool:
    """True for the exceptions that programs raise for what they were told, and for those of who checks that."""
    return CONFIG_ERRORS.search(exception) is not None or any(_CHECKS.search(frame) for frame in frames[-1:])


def first_uncaught(case: Case, life: Life) -> Event | None:
    """The first traceback of the dying run that is no mere echo of somebody else's death."""
    for event in case.of_kind("traceback"):
        if event.locator.source not in life.sources or event.locator.source != life.start.locator.source:
            continue
        inside = life.start.locator.order <= event.locator.order <= life.end.locator.order
        if not inside or event.locator.order <= life.last_sign or event.fields.get("chained"):
            continue
        if not traceback.exception_of(event):
            continue  # its last line is missing: what was raised is not known
        if any(f.event is event and f.role is Role.CONSEQUENCE for f in life.findings):
            continue
        if not ECHOES.search(event.text):
            return event
    return _bare_exception(case, life)


def _bare_exception(case: Case, life: Life) -> Event | None:
    """An exception whose traceback was cut out: the engine printed it beside the words that it is lost."""
    words = [f.locator.order for f in life.findings if f.role is Role.CONSEQUENCE and f.locator.order > life.last_sign]
    for event in case.of_kind("log") if words else ():
        place = event.locator
        if event.channel != "engine" or not life.holds(event) or place.order <= life.last_sign:
            continue
        near = any(abs(place.order - order) <= NEAR_LINES for order in words)
        told = any(f.event is event and f.role is not Role.CONTEXT for f in life.findings)
        named = traceback.exception_of(event) not in ("", "Error", "Exception")  # Rust and shells say `Error: …`
        if near and named and not told and not ECHOES.search(event.text):
            return event
    return None


def _silent(life: Life) -> Iterator[Finding]:
    for finding in life.findings:
        if finding.signature in SILENT_ENDS:
            yield conclude("silent_death", finding.event, finding.fields, (finding,))
            return


def _hang(life: Life) -> Iterator[Finding]:
    waits = [
        f for f in life.findings if f.signature == "vllm.shm_broadcast_wait" and f.locator.order > life.last_sign
    ]
    if sum(f.event.count for f in waits) >= HANG_WAITS and life.ready is not None:
        yield conclude("first_hang", waits[0].event, {"waits": sum(f.event.count for f in waits)}, tuple(waits))


def _phase(life: Life) -> Iterator[Finding]:
    if life.ready is not None or life.phase is Phase.SERVING:
        yield conclude("ready_at_death", life.ready or life.start, {"phase": life.phase.value})
    elif life.phase not in (Phase.UNKNOWN, Phase.DEAD):
        # a question below the log is not its last word
        own = (life.end.channel == "engine" and bool(life.end.stamps)) or not life.findings
        yield conclude("not_ready_at_death", life.end if own else life.findings[-1].event, {"phase": life.phase.value})
