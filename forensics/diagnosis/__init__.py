"""Findings → incidents with ranked hypotheses, and the answer."""

from .decide import diagnose
from .model import Confidence, Diagnosis

__all__ = ["Confidence", "Diagnosis", "diagnose"]
