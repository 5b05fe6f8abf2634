"""The clock table: what was found for each source and layer, and what it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..model import Basis, Clock, ClockAnchor, Diagnostic, Severity, StampForm
from .ages import Capture
from .apply import Clocks
from .lanes import EMBEDDED_LAYER, Lane
from .skew import Skew
from .solution import Solution

_SHOWN = 12
_NOTHING = "nothing ties it to UTC"


def of_sources(clocks: Clocks) -> dict[str, tuple[Clock, ...]]:
    """The clocks of each source; boots of one source in their order, ages last."""
    found: dict[str, list[Clock]] = defaultdict(list)
    for lane in clocks.lanes.lanes:
        if lane.key.layer != EMBEDDED_LAYER and lane.key.form is not StampForm.AGE:
            found[lane.key.source].append(_clock(lane, clocks))
    for source, capture in clocks.captures.items():
        found[source].append(_ages(source, capture))
    return {source: tuple(rows) for source, rows in sorted(found.items())}


def _ages(source: str, capture: Capture) -> Clock:
    return Clock(
        source=source,
        layer="kubectl",
        form=StampForm.AGE,
        zone="",
        offset_s=None,
        year=None,
        boot_epoch_s=None,
        skew_s=0.0,
        captured_at_s=capture.seconds,
        basis=Basis.RELATIVE_AGE,
        verdict=capture.verdict,
        anchors=tuple(ClockAnchor(window.place, window.witness, 0.0) for window in capture.windows[:_SHOWN]),
        residual_s=round(capture.doubt_s, 3),
        note=capture.note,
    )


def _clock(lane: Lane, clocks: Clocks) -> Clock:
    key = lane.key
    solution = clocks.solutions.get(lane.index)
    skew = clocks.skews.get(solution.frame) if solution is not None and solution.frame else None
    host_skew_s = skew.seconds if skew is not None else 0.0
    boot = key.form is StampForm.BOOT
    epoch_s = None
    if boot and solution is not None:
        epoch_s = solution.at(lane.lines[-1], lane.walls[-1])[0] - lane.walls[-1] - host_skew_s
    captured = [seconds for (source, _), seconds in clocks.recorded.items() if source == key.source]
    return Clock(
        source=key.source,
        layer=key.layer,
        form=key.form,
        zone=solution.zone if solution is not None else "",
        offset_s=solution.offset_s if solution is not None else None,
        year=lane.year,
        boot_epoch_s=epoch_s,
        skew_s=round(solution.skew_s + host_skew_s, 3) if solution is not None and not boot else 0.0,
        captured_at_s=max(captured, default=None),
        basis=_basis(solution, skew),
        verdict=_verdict(solution, skew),
        anchors=solution.anchors if solution is not None else (),
        residual_s=solution.residual_s if solution is not None else None,
        note=_note(lane, solution, skew, clocks),
    )


def _basis(solution: Solution | None, skew: Skew | None) -> Basis:
    if solution is None:
        return Basis.FILE_ORDER
    return Basis.SKEW_CORRECTED if skew is not None and skew.seconds else solution.basis


def _verdict(solution: Solution | None, skew: Skew | None) -> str:
    """The weaker of what is known about the lane and about its host."""
    if solution is None:
        return "refused"
    if skew is None or not skew.verdict or solution.verdict in ("assumed", "refused"):
        return solution.verdict
    return skew.verdict


def _note(lane: Lane, solution: Solution | None, skew: Skew | None, clocks: Clocks) -> str:
    notes = [f"boot {lane.boot + 1} of the file" if lane.boot else "", solution.note if solution else _NOTHING]
    if lane.key.form is StampForm.YEARLESS:
        notes.append(lane.year_note)
    notes.append(skew.note if skew is not None else "")
    notes += [step.note for step in clocks.steps.of(lane.index) if step.ahead_s]
    return "; ".join(filter(None, notes))


def diagnostics(clocks: Clocks, table: Mapping[str, Sequence[Clock]]) -> tuple[Diagnostic, ...]:
    """What was refused, one sentence a source, and every clock that runs wrong."""
    said = []
    for source, rows in table.items():
        refused = next((clock for clock in rows if clock.verdict == "refused"), None)
        if refused is not None:
            said.append(
                Diagnostic(
                    source,
                    None,
                    Severity.WARNING,
                    f"the {refused.layer} clock was not solved: {refused.note}",
                    "give its zone with --tz, or add a source that prints both times",
                )
            )
    notes = [skew.note for skew in clocks.skews.values()] + [s.note for s in clocks.steps.steps if s.ahead_s]
    said += [Diagnostic("", None, Severity.NOTICE, note, "") for note in dict.fromkeys(notes) if note]
    return tuple(said)
