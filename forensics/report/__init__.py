"""`Report` → document → gate → Markdown, HTML, JSON, CSV. Every format shows what passed the gate, and nothing else."""

from .model import BundleInfo, Report

__all__ = ["BundleInfo", "Report"]
