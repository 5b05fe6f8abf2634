"""The JSON Schemas for editors agree with the reader."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

from forensics import resources
from forensics.signatures import schema

SIGNATURE = jsonschema.Draft202012Validator(schema.signature_schema())
CAUSE = jsonschema.Draft202012Validator(schema.cause_schema())
FILES = sorted(resources.patterns().rglob("*.toml"))

GOOD = {
    "id": "acme.gateway", "title": {"en": "Gateway", "zh": "网关"}, "status": "test", "severity": "error",
    "role": "symptom", "channels": ["engine"], "anchors": ["gateway: "], "description": "x",
    "versions": [{"program": "acme"}], "patterns": [{"name": "core", "regex": "gateway: down"}],
    "examples": [{"text": "gateway: down", "match": "core"}, {"text": "gateway: up", "match": False}],
}  # fmt: skip


def test_all_files_of_the_library_fit() -> None:
    """What the reader accepts, the schema accepts."""
    assert len(FILES) > 250
    for path in FILES:
        validator = CAUSE if path.parent.name == "causes" else SIGNATURE
        errors = [error.message for error in validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))]
        assert errors == [], path


@pytest.mark.parametrize(
    "change",
    [{"severty": "error"}, {"role": "villain"}, {"channels": []}, {"anchors": [""]}, {"patterns": []}, {"title": {"en": "x"}},
     {"examples": [{"text": "x"}, {"text": "y", "match": False}]}, {"patterns": [{"name": "Core", "regex": "x"}]},
     {"patterns": [{"name": "core", "regex": "x", "types": {"a": "gigs"}}]}, {"quotable": "yes"}, {"phase": "asleep"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_broken_files_do_not_fit(change: dict[str, object]) -> None:
    """A typo in a key, an unknown choice, an empty list: the editor marks it."""
    assert not list(SIGNATURE.iter_errors(GOOD))
    assert list(SIGNATURE.iter_errors({**GOOD, **change}))


def test_schema_and_reader_cannot_drift_apart() -> None:
    """A key that only one of them knows is an error when the schema is made."""
    with pytest.raises(ValueError, match="disagree"):
        schema._object({"a": {}}, (), keys=("a", "b"))


def test_schemas_are_shipped() -> None:
    """Both lie in the library's folder."""
    assert all((Path(resources.patterns()) / path).is_file() for path in schema.FILES)
    assert all(validator.check_schema(validator.schema) is None for validator in (SIGNATURE, CAUSE))
