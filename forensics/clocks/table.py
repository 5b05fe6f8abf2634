"""The clock table: what was found for each source and layer, and what it rests on."""

from __future__ import annotations

from collections import defaultdict

from ..model import Basis, Clock, ClockAnchor, Diagnostic, Severity, StampForm
from .apply import Clocks
from .lanes import EMBEDDED_LAYER, Lane
from .solution import Solution


def of_sources(clocks: Clocks) -> dict[str, tuple[Clock, ...]]:
    """The clocks of each source, outermost layer as printed first."""
    found: dict[str, list[Clock]] = defaultdict(list)
    for lane in clocks.lanes.lanes:
        if lane.key.layer == EMBEDDED_LAYER:
            continue
        if lane.key.form is StampForm.AGE:
            continue
        found[lane.key.source].append(_clock(lane, clocks.solutions.get(lane.index), clocks))
    for source, capture in clocks.captures.items():
        anchors = tuple(ClockAnchor(w.place, w.witness, 0.0) for w in capture.windows[:12])
        found[source].append(
            Clock(
                source,
                "age",
                StampForm.AGE,
                "",
                None,
                None,
                None,
                0.0,
                capture.seconds,
                Basis.RELATIVE_AGE,
                capture.verdict,
                anchors,
                round(capture.doubt_s, 3),
                capture.note,
            )
        )
    return {source: tuple(rows) for source, rows in sorted(found.items())}


def _clock(lane: Lane, solution: Solution | None, clocks: Clocks) -> Clock:
    key = lane.key
    if solution is None:
        return Clock(
            key.source,
            key.layer,
            key.form,
            "boot" if key.form is StampForm.BOOT else "",
            None,
            lane.year,
            None,
            0.0,
            None,
            Basis.FILE_ORDER,
            "refused",
            (),
            None,
            "nothing ties it to UTC",
        )
    skew = clocks.skews.get(solution.frame) if solution.frame else None
    skew_s = solution.skew_s + (skew.seconds if skew else 0.0)
    epoch = None
    if key.form is StampForm.BOOT:
        epoch = solution.at(lane.lines[-1], lane.walls[-1])[0] - lane.walls[-1]
        epoch -= skew.seconds if skew else 0.0
    notes = [
        solution.note,
        lane.year_note if key.form is StampForm.YEARLESS else "",
        skew.note if skew else "",
    ]
    notes += [step.note for step in clocks.steps.of(lane.index) if step.ahead_s]
    if lane.boot:
        notes.insert(0, f"boot {lane.boot + 1} of the file")
    return Clock(
        key.source,
        key.layer,
        key.form,
        solution.zone,
        solution.offset_s,
        lane.year,
        epoch,
        round(skew_s, 3) if key.form is not StampForm.BOOT else 0.0,
        None,
        Basis.SKEW_CORRECTED if skew and skew.seconds else solution.basis,
        _verdict(solution, skew.verdict if skew else ""),
        solution.anchors,
        solution.residual_s,
        "; ".join(filter(None, notes)),
    )


def _verdict(solution: Solution, skew_verdict: str) -> str:
    if not skew_verdict or solution.verdict in ("assumed", "refused"):
        return solution.verdict
    return skew_verdict


def diagnostics(clocks: Clocks) -> tuple[Diagnostic, ...]:
    """What had to be assumed or was refused, one sentence a source."""
    said = []
    for source, rows in of_sources(clocks).items():
        for clock in rows:
            if clock.verdict == "refused":
                said.append(
                    Diagnostic(
                        source,
                        None,
                        Severity.WARNING,
                        f"the {clock.layer} clock was not solved: {clock.note}",
                        "give its zone with --tz, or add a source that prints both times",
                    )
                )
                break
    for host, skew in clocks.skews.items():
        said.append(Diagnostic("", None, Severity.NOTICE, skew.note or f"skew of {host} given", ""))
    return tuple(said)
