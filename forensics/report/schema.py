"""The JSON Schema of the report, and the quick look that tells a report from other JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from .. import resources

_NEEDED = ("schema_version", "verdict", "sources", "findings")


@cache
def schema() -> Mapping[str, Any]:
    """JSON Schema 2020-12 of `Report.to_dict()` after redaction; also published as `templates/report.schema.json`."""
    loaded: Mapping[str, Any] = json.loads((resources.templates() / "report.schema.json").read_text(encoding="utf-8"))
    return loaded


def unfit(document: Any) -> str:
    """Why a value cannot be a report that this version reads; empty when it can."""
    if not isinstance(document, Mapping):
        return "it is no JSON object"
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        return f"{', '.join(missing)} missing"
    version = str(document["schema_version"])
    return "" if version.partition(".")[0] == "1" else f"schema version {version} is not 1.x"
