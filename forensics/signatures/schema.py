"""JSON Schemas of pattern files, for editors (Taplo, Even Better TOML), made from the same tables as the reader.

They say which keys exist, what they mean and which values they take. What needs a regex engine, the path of the file or
other files is checked by `oomforensics patterns test` alone.
"""

from __future__ import annotations

import json
from typing import Any

from ..model import Role, Severity
from . import cause_file, signature_file
from .fields import CONVERTERS
from .model import CHANNELS, ENGINES, EVIDENCE_KEYS, LANGUAGES, PHASES, PLATFORMS, STATUSES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES = ("schema/signature.schema.json", "schema/cause.schema.json")
"""Where they lie in the library, in the order of `texts()`."""


def texts() -> dict[str, str]:
    """Path in the library → content."""
    return dict(zip(FILES, (_text(signature_schema()), _text(cause_schema())), strict=True))


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _string(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _filled(description: str) -> dict[str, Any]:
    return _string(description, pattern=r"\S")


def _strings(description: str, least: int = 0, items: dict[str, Any] | None = None) -> dict[str, Any]:
    schema = {"type": "array", "description": description, "items": items or {"type": "string", "pattern": r"\S"}}
    return {**schema, "uniqueItems": True, **({"minItems": least} if least else {})}


def _object(
    properties: dict[str, Any], required: tuple[str, ...], description: str = "", keys: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """A closed table; `keys` are those that the reader accepts, to make sure that none is forgotten."""
    if keys is not None and set(keys) != set(properties):
        raise ValueError(f"schema and reader disagree about {sorted(set(keys) ^ set(properties))}")
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required)}
    return {**({"description": description} if description else {}), **schema, "additionalProperties": False}


def _tables(item: dict[str, Any], description: str, least: int = 0) -> dict[str, Any]:
    schema = {"type": "array", "description": description, "items": item}
    return {**schema, **({"minItems": least} if least else {})}


def _languages(description: str) -> dict[str, Any]:
    texts = {language: _filled(f"In {name}.") for language, name in zip(LANGUAGES, ("English", "Chinese"), strict=True)}
    return _object(texts, LANGUAGES, description)


def signature_schema() -> dict[str, Any]:
    """Schema of `<family>/<name>.toml`."""
    version = _object(
        {
            "program": _filled("Program that prints the message: vllm, torch, kubernetes, linux …"),
            "range": _string("First to last version in which it was seen, such as 0.8.5-0.33.0."),
            "source": _string("File, and function if that helps, of the program's source."),
        },
        ("program",), keys=signature_file.VERSION_KEYS,
    )  # fmt: skip
    pattern = _object(
        {
            "name": _string("Short name; examples refer to it.", pattern="^[a-z][a-z0-9_]*$"),
            "regex": _filled("Shortest stable core, searched in the message; a literal string '''…'''."),
            "types": {
                "type": "object",
                "description": "Group of the regex = converter; exactly the named groups.",
                "additionalProperties": {"enum": sorted(CONVERTERS)},
            },
            "note": _string("Version or option that produces this wording."),
        },
        ("name", "regex"), keys=signature_file.PATTERN_KEYS,
    )  # fmt: skip
    example = _object(
        {
            "text": _filled("A message as it is matched: without stamps and process prefixes."),
            "match": {
                "description": "Name of the pattern that must hit, or false for a line that must not match.",
                "anyOf": [{"type": "string"}, {"const": False}],
            },
            "fields": {"type": "object", "description": "Every captured value, exactly, with its type."},
            "channel": {"enum": [*CHANNELS, "plain"], "description": "Speaker; the first of `channels` if absent."},
            "level": _string("Level that the line claims; ERROR if absent."),
            "note": _string("Version, or why it must not match."),
        },
        ("text", "match"), keys=signature_file.EXAMPLE_KEYS,
    )  # fmt: skip
    properties = {
        "id": _string("<family>.<name>, as the path says.", pattern=r"^[^.\s]+\.[^.\s]+$"),
        "title": _languages("One line for the report."),
        "status": {"enum": list(STATUSES), "description": "How much it is trusted."},
        "severity": {"enum": [s.value for s in Severity], "description": "How bad the message is by itself."},
        "role": {"enum": [r.value for r in Role], "description": "What it can be in an incident."},
        "channels": _strings("Who may say it.", 1, {"enum": list(CHANNELS)}),
        "kinds": _strings("Event kinds it may fire on; absent: any."),
        "anchors": _strings("Literals of which every matching line holds at least one.", 1),
        "description": _filled("What the message means, and what it does not mean."),
        "false_positives": _strings("When it fires and nothing is wrong."),
        "references": _strings("Links to documentation."),
        "overlaps": _strings("Signatures that may fire on the same line on purpose."),
        "versions": _tables(version, "Programs that print the message.", 1),
        "patterns": _tables(pattern, "Wordings; the first that matches wins.", 1),
        "examples": _tables(example, "At least one for each pattern, and one that must not match.", 2),
        "quotable": {"type": "boolean", "description": "True when it counts at level INFO within a line, too."},
        "phase": {"enum": list(PHASES), "description": "Phase of an engine's run that the line begins."},
        "witness": {"type": "boolean", "description": "True when it reports the end of a process or container."},
    }
    optional = ("kinds", "false_positives", "references", "overlaps", "quotable", "phase", "witness")
    required = tuple(key for key in properties if key not in optional)
    schema = _object(properties, required, keys=signature_file.KEYS)
    return {"$schema": DIALECT, "title": "oomforensics signature", **schema}


def cause_schema() -> dict[str, Any]:
    """Schema of `causes/<id>.toml`."""
    engine = _string("Empty for every engine, or one or more of: " + " ".join(ENGINES) + ".")
    platform = _string("Empty for everywhere, or one or more of: " + " ".join(PLATFORMS) + ".")
    condition = {
        "when": _string("Empty, or words of which one must hold: a fact, fact=value, or a finding."),
        "engine": engine,
        "platform": platform,
    }
    text = _object({**condition, "text": _languages("One sentence or two.")}, ("text",),
                   keys=cause_file.TABLE_KEYS["avoid"])  # fmt: skip
    ids = "Ids of signatures or rules; family.* names a whole family. "
    evidence = {
        "decisive": _strings(ids + "Each of them alone carries the cause."),
        "supporting": _strings(ids + "They make it more likely."),
        "contradicting": _strings(ids + "They speak against it."),
        "explains": _strings(ids + "Consequences when this cause holds."),
        "onset": _strings(ids + "Beside a decisive one: the line at which the trouble began, to be read first."),
        "contributing": _strings(ids + "They decide nothing, and say why it could come about."),
    }
    properties = {
        "id": _filled("As the file name says."),
        "title": _languages("A few words."),
        "summary": _languages("One sentence: what happened."),
        "mechanism": _languages("Why that leads to what was seen."),
        **{key: evidence[key] for key in EVIDENCE_KEYS},
        "confirm": _tables(
            _object({"evidence": _languages("What would confirm or refute it."), "command": _filled("Shows it."),
                     "engine": engine, "platform": platform},
                    ("evidence", "command"), keys=cause_file.TABLE_KEYS["confirm"]),
            "What to look at next.",
        ),
        "remedies": _tables(
            _object({**condition,
                     "text": _languages("One change, with its arithmetic: {name} inserts a number of the report.")},
                    ("text",), keys=cause_file.TABLE_KEYS["remedies"]),
            "What to change, one parameter at a time.",
        ),
        "avoid": _tables(text, "What not to do."),
        "verify": _languages("How to prove that the change worked."),
        "prevent": _tables(text, "How to see it coming next time."),
        "variants": _tables(
            _object({**condition, "summary": _languages("Instead of the general one."),
                     "mechanism": _languages("Instead of the general one."),
                     "verify": _languages("Instead of the general one.")},
                    (), keys=cause_file.TABLE_KEYS["variants"]),
            "One way in which it comes about; the first that holds and has a text replaces the general one.",
        ),
    }  # fmt: skip
    required = ("id", "title", "summary", "mechanism", "verify")
    return {"$schema": DIALECT, "title": "oomforensics cause", **_object(properties, required, keys=cause_file.KEYS)}
