"""What the diagnosis thinks in: lives, deaths, evidence, hypotheses, incidents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..model import Event, Finding, Locator
from ..signatures import Cause


class Confidence(StrEnum):
    """How sure; the rules are in ARCHITECTURE.md, “Confidence”."""

    ESTABLISHED = "established"
    LIKELY = "likely"
    POSSIBLE = "possible"
    UNDETERMINED = "undetermined"


CONFIDENCE_ORDER = tuple(Confidence)


class Phase(StrEnum):
    """How far a run of an engine got; taken from lifecycle lines."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    LOADING = "loading"
    PROFILING = "profiling"
    CAPTURING = "capturing"
    SERVING = "serving"
    DRAINING = "draining"
    """An orderly stop was asked for."""
    DEAD = "dead"
    """The engine says that it, or a part it cannot do without, is gone."""


@dataclass(frozen=True, slots=True)
class Life:
    """One run of one engine, from its first line to its end."""

    entity: str
    sources: tuple[str, ...]
    """Files that show it; a life may stand in several."""
    start: Event
    end: Event
    """Last event seen of this run."""
    ready: Event | None
    phase: Phase
    findings: tuple[Finding, ...]
    """In file order."""
    last_activity: Event | None
    """Last sign that the service did useful work."""
    last_sign: int
    """Place (`Locator.order`) of the last progress (work done, or a later phase reached) in the first of `sources`; 0
    for none. An error before it was survived."""
    fatal: Finding | None
    """The line at which the run is lost: the first error that nothing survived."""
    crash: Event | None
    """An exception that ended the program, whether a signature knows it or not."""
    shutdown: Finding | None
    """First line of an orderly stop."""
    from_start: bool
    """True when the log shows the start; false for an excerpt that begins in the middle."""
    unfinished: bool = False
    """True when it was asked to stop, and its last word is a report of requests still running."""
    job: str = ""
    """The scheduler's number of the job that it was, as far as its own lines tell."""

    def holds(self, event: Event) -> bool:
        """True when a line lies inside this run, in the file that tells it best."""
        place, start = event.locator, self.start.locator
        return place.source == start.source and start.order <= place.order <= self.end.locator.order


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a process or container: what is known from all sources together."""

    entity: str
    time_s: float | None
    witnesses: tuple[Event, ...]
    life: Life | None
    exit_code: int | None
    reason: str
    """`OOMKilled`, `Error`, `Evicted` … as a source says, or empty."""
    graceful: bool
    """An orderly stop that somebody asked for and that finished in time."""
    container: str = ""
    """The container that died, as far as a witness names it: of a pod, one of several."""


@dataclass(frozen=True, slots=True)
class Decoy:
    """Something that looks like the cause, and the reason why it is not."""

    finding: Finding
    reason: str
    """Key of a text in `templates/texts.*.toml`, section `decoy`."""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """Evidence that is missing, and the command that would fill it."""

    key: str
    """Key of a text in `templates/texts.*.toml`, section `gap`."""
    command: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause with everything that speaks for and against it."""

    cause: Cause
    confidence: Confidence
    decisive: tuple[Finding, ...]
    supporting: tuple[Finding, ...]
    against: tuple[Finding, ...]
    onset: tuple[Finding, ...] = ()
    """Lines at which this cause begins; they decide nothing."""
    doubt: str = ""
    """Why it is only possible: a key of the labels, section `doubt`; empty where no special reason is known."""

    @property
    def evidence(self) -> tuple[Finding, ...]:
        return (*self.decisive, *self.supporting)


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One arrow of the causal chain."""

    finding: Finding
    why: str
    """Key of a text in section `chain`: `root`, `explained`, `death`, `restart`."""


@dataclass(frozen=True, slots=True)
class Incident:
    id: str
    entity: str
    start_s: float | None
    end_s: float | None
    deaths: tuple[Death, ...]
    hypotheses: tuple[Hypothesis, ...]
    """Ranked; the first is the verdict."""
    chain: tuple[ChainLink, ...]
    consequences: tuple[Finding, ...]
    decoys: tuple[Decoy, ...]
    contributing: tuple[Finding, ...]
    observations: tuple[Finding, ...] = ()
    """What the rules concluded about the death that was judged, used or not."""
    container: str = ""
    """The container of the judged death, where a witness names it."""
    evidence: tuple[Finding, ...] = ()
    """Everything that counted when that death was judged; each cause took its part of it."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One term of the GPU memory equation."""

    term: str
    """`total`, `utilization`, `budget`, `weights`, `activation`, `non_torch`, `overhead` (activation peak and all other
    CUDA memory together), `graphs`, `kv_cache` …
    """
    gib: float | None
    place: Locator | None
    """The line that prints it."""
    derived: bool
    """True when it follows from the other terms."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the GPU memory of one rank went in one run."""

    entity: str
    source: str
    rows: tuple[LedgerRow, ...]
    difference_gib: float | None
    """What remains unexplained when all terms are known."""
    facts: Mapping[str, float]
    """KV arithmetic: `kv_tokens`, `bytes_per_token`, `request_gib`, `max_concurrency`."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The shape of a series, in words."""

    name: str
    source: str
    entity: str
    gpu: str
    word: str
    """`flat`, `plateau`, `climb`, `step`, `sawtooth`, `spike`, `too_few`."""
    points: int
    minimum: float
    maximum: float
    first: float
    last: float
    start_s: float
    end_s: float
    slope_per_h: float | None
    sparkline: str
    first_line: int
    last_line: int
    curve: tuple[tuple[float, float], ...] = ()
    """(Unix time, value), thinned so that every peak and valley stays; for charts."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom people ask about."""

    entities: frozenset[str] = frozenset()
    """Empty where they name none of which the bundle shows more."""
    place: Locator | None = None
    """The line that says so."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The answer."""

    incidents: tuple[Incident, ...]
    """The main one first."""
    verdict: Hypothesis
    first_cause: Finding | None
    findings: tuple[Finding, ...]
    lives: tuple[Life, ...]
    ledgers: tuple[Ledger, ...]
    trends: tuple[Trend, ...]
    key_facts: Mapping[str, Any]
    gaps: tuple[Gap, ...]
    decoys: tuple[Decoy, ...]
    impact: Mapping[str, Any]
    platforms: tuple[str, ...] = ()
    """What the main incident ran on, words of `signatures.model.PLATFORMS`; empty when nothing tells."""
    engine: str = ""
    """The inference server of the main incident, one of `signatures.model.ENGINES`; empty when nothing tells."""
    asked: Asked = field(default_factory=Asked)
    """Whom people ask about, where what befell others was set aside for it."""
