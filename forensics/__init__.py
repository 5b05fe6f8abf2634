"""Post-mortems of LLM inference incidents, offline and reproducible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .pipeline import analyze
    from .report.model import Report

__all__ = ["Report", "__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """Load the engine only when it is used: `--help` must not import polars."""
    if name == "analyze":
        from .pipeline import analyze

        return analyze
    if name == "Report":
        from .report.model import Report

        return Report
    raise AttributeError(f"module 'forensics' has no attribute {name!r}")
