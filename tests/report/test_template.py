"""Templates of the user's own: the same document, in a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forensics.report import Report
from forensics.report.render import TemplateError, prepare, write_template


@pytest.fixture(scope="module")
def data(report: Report) -> dict[str, Any]:
    return prepare(report)


def render(data: dict[str, Any], source: str, tmp_path: Path, name: str = "own.md.j2") -> str:
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    return write_template(data, path)


def test_the_context_is_the_json(data: dict[str, Any], tmp_path: Path) -> None:
    """`data` as in the JSON, `t` for labels, the filters of the built-in templates."""
    source = "{{ data.verdict.cause }} {{ t.head.timeline }} {{ data.incidents[0].hypotheses[0]['for'][0].quote | code }}"
    shown = render(data, source, tmp_path)
    assert shown.startswith("gpu_oom.runtime_load Timeline `torch.OutOfMemoryError")


def test_a_template_may_extend_nothing_but_use_the_built_in_ones(data: dict[str, Any], tmp_path: Path) -> None:
    """`include` reaches the built-in templates, never the file system."""
    assert "## Timeline" in render(data, "{% include 'report.md.j2' %}", tmp_path)
    with pytest.raises(TemplateError, match="line 2"):
        render(data, "x\n{% include '../../../etc/passwd' %}", tmp_path)


def test_html_templates_escape_by_themselves(data: dict[str, Any], tmp_path: Path) -> None:
    """A name with `.html` switches autoescape on."""
    assert render({**data, "x": "<b>"}, "{{ data.x }}", tmp_path, "own.html") == "&lt;b&gt;\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a\n{{ data.verdict.caus }}", r"line 2: .*caus"),
        ("a\nb\n{% if %}", r"line 3: "),
        ("{{ data | nofilter }}", r"line 1: .*nofilter"),
        ("{{ data.__class__.__mro__ }}", r"line 1: .*unsafe"),
        ("{{ ''.__class__ }}", r"line 1: .*unsafe"),
        ("{{ data.update({}) }}", r"line 1: "),
        ("{{ view.text.resources }}", r"line 1: .*no attribute 'text'"),
        ("{{ tables.duration.__globals__ }}", r"line 1: .*unsafe"),
        ("{{ zone.__class__ }}", r"line 1: "),
        ("{{ t.head.clear() }}", r"line 1: "),
        ("{{ 1 / 0 }}", r"line 1: division by zero"),
    ],
)
def test_mistakes_and_escapes_end_with_a_line(data: dict[str, Any], source: str, said: str, tmp_path: Path) -> None:
    """One sentence with file and line, whatever a template does."""
    with pytest.raises(TemplateError, match=said):
        render(data, source, tmp_path)


def test_a_missing_template(data: dict[str, Any], tmp_path: Path) -> None:
    """Said in one sentence."""
    with pytest.raises(TemplateError, match="cannot be read"):
        write_template(data, tmp_path / "none.j2")
