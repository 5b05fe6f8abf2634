"""Whole reports: contract, Markdown, languages and formats, over the samples of the repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import regex
from markdown_it import MarkdownIt

from forensics import analyze, resources
from forensics.cli import terminal
from forensics.report import Report
from forensics.report.gate import Gate
from forensics.report.render import prepare, write
from forensics.report.schema import schema, unfit
from forensics.report.text import LANGUAGES, texts

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted(path.parent for path in (ROOT / "samples").glob("*/case.toml"))[::8]
"""Every eighth sample: of all kinds, and quick enough."""
LABELS = regex.compile(r"\{[a-z][a-z_]*\}")
VALIDATOR = jsonschema.Draft202012Validator(schema())


@pytest.fixture(scope="module", params=CASES or [None], ids=lambda p: p.name if p else "none")
def sample(request: pytest.FixtureRequest) -> Report:
    if request.param is None:
        pytest.skip("no samples in this checkout")
    folder = request.param / "bundle"
    inputs = [p for p in sorted(request.param.iterdir()) if p.name != "case.toml"]
    return analyze(folder if folder.is_dir() else inputs[0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sample_in_every_format(sample: Report, language: str) -> None:
    """No template error, valid JSON, whole Markdown, deterministic bytes."""
    data = prepare(sample, language)
    assert write(prepare(sample, language), "json") == write(data, "json")
    check_contract(json.loads(write(data, "json")))
    check_markdown(write(data, "md"), language)
    assert terminal.render(data, width=100)
    assert "</html>" in write(data, "html")
    assert write(data, "csv").startswith("utc,")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("mode", ["default", "strict", "off"])
def test_the_incident_in_every_mode(report: Report, language: str, mode: str) -> None:
    """Redaction never breaks the contract."""
    data = prepare(report, language, Gate(mode))
    check_contract(json.loads(write(data, "json")))
    check_markdown(write(data, "md"), language)


def check_contract(data: dict[str, Any]) -> None:
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in VALIDATOR.iter_errors(data)]
    assert not errors, errors[:3]
    assert data["verdict"]["cause"] == data["incidents"][0]["hypotheses"][0]["cause"]
    known = {source["path"] for source in data["sources"]}
    places = [p["source"] for row in data["story"]["rows"] for p in row["places"]]
    places += [ref["source"] for h in data["incidents"][0]["hypotheses"] for ref in (*h["for"], *h["against"])]
    assert set(places) <= known, "a claim names a file that the report does not list"
    assert len(data["summary"]) <= 8


def check_markdown(source: str, language: str) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(source)
    t = texts(language)
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) == len(set(headings))
    for name in ("root_cause", "fix", "conclusion", "appendix"):
        assert t["head"][name] in headings
    check_sections(tokens)
    plain = "\n".join(token.content for token in tokens if token.type == "inline")
    prose = regex.sub(r"(`+).*?\1", "", plain)
    assert not LABELS.search(prose), "an unfilled label"
    assert not regex.search(r"\bNone\b|\bnan\b|Undefined", prose)
    if language == "zh":
        assert not [h for h in headings if not regex.search(r"\p{Han}", h)]


def check_sections(tokens: list[Any]) -> None:
    """Tables are whole and no section is empty."""
    columns = cells = 0
    previous = None
    for token in tokens:
        if token.type == "heading_open" and previous is not None and previous.type == "heading_close":
            assert int(token.tag[1]) > int(previous.tag[1]), "an empty section"
        columns = 0 if token.type == "table_open" else columns + (token.type == "th_open")
        cells = 0 if token.type == "tr_open" else cells + (token.type == "td_open")
        if token.type == "tr_close" and cells:
            assert cells == columns
        if token.type not in ("inline",):
            previous = token


def test_headings_of_a_chinese_report_follow_the_usual_order(report: Report) -> None:
    """影响, 时间线, 根因, 修复, 防再发, 结论: what a Chinese reader expects, in that order; quotes stay as they are."""
    shown = write(prepare(report, "zh"), "md")
    positions = [shown.index(f"## {word}") for word in ("影响", "时间线", "根因", "修复", "防再发", "结论")]
    assert positions == sorted(positions)
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB" in shown


def test_both_languages_have_the_same_texts() -> None:
    """Same sections, same keys, same placeholders."""

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: shape(v) for k, v in value.items() if k != "source_title"}
        return sorted(LABELS.findall(value))

    english, chinese = shape(texts("en")), shape(texts("zh"))
    assert english == chinese


def test_every_text_of_a_section_is_used_or_filled() -> None:
    """No label without a user: its key occurs in a template or in the code."""
    labels = tomllib.loads((resources.templates() / "labels.en.toml").read_text(encoding="utf-8"))
    sources = [*resources.templates().glob("*.j2"), *(ROOT / "forensics").rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    looked_up = ("confidence", "impact", "kind", "lane", "mark", "phase", "ledger", "series", "shape", "clock", "summary",
                 "chain", "unit", "ledger_note")  # fmt: skip
    for section, values in labels.items():
        assert regex.search(rf"\b{section}\b", code), section
        if isinstance(values, dict) and section not in looked_up:
            unused = [key for key in values if not regex.search(rf"\b{key}\b", code)]
            assert not unused, (section, unused)


def test_the_schema_describes_itself() -> None:
    """A valid schema of draft 2020-12 that allows no unknown keys at the top."""
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["additionalProperties"] is False
    assert unfit({"schema_version": "1.7", "verdict": {}, "sources": [], "findings": []}) == ""
    assert unfit({"schema_version": "2.0", "verdict": {}, "sources": [], "findings": []})
    assert unfit([])
    assert unfit({"verdict": {}})


def test_the_wheel_holds_schema_and_templates(tmp_path: Path) -> None:
    """What the report needs travels in the wheel."""
    pytest.importorskip("hatchling")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for name in ("report.schema.json", "report.md.j2", "report.html.j2", "report.css", "redaction.toml", "labels.zh.toml"):
        assert f"forensics/_data/templates/{name}" in names
