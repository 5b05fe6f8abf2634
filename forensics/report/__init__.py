"""`Report` → Markdown and JSON. Nothing is computed here that is not in the report."""

from .model import BundleInfo, Report

__all__ = ["BundleInfo", "Report"]
