"""When the evidence itself may be wrong."""

from __future__ import annotations

from dataclasses import replace

from .model import Confidence, Diagnosis, Hypothesis


def doubted(diagnosis: Diagnosis) -> Diagnosis:
    """The same answer where a checksum says that some of what was read is not what was packed.

    A changed byte may have removed the very line that decides, or broken one into another. Nothing is established then.
    """
    incidents = tuple(
        replace(incident, hypotheses=tuple(map(_less_sure, incident.hypotheses))) for incident in diagnosis.incidents
    )
    return replace(diagnosis, incidents=incidents, verdict=incidents[0].hypotheses[0])


def _less_sure(hypothesis: Hypothesis) -> Hypothesis:
    sure = hypothesis.confidence is Confidence.ESTABLISHED
    return replace(hypothesis, confidence=Confidence.LIKELY) if sure else hypothesis
