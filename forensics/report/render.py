"""`Report` → text in one format. Everything is rendered from the document that passed the gate.

`prepare` makes that document once for all formats of a run; `write` renders one format from it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.sandbox
import regex
from markupsafe import Markup

from .. import resources
from ..errors import ForensicsError
from . import charts, escape, svg, tables, text, view
from .gate import Gate
from .model import Report

FORMATS = ("md", "html", "json", "csv")
SUFFIXES = {"md": "md", "html": "html", "json": "json", "csv": "csv", "text": "txt"}


class TemplateError(ForensicsError):
    """A template of the user's own cannot be used; the text says where and why."""


def prepare(report: Report, language: str = "en", gate: Gate | None = None) -> dict[str, Any]:
    """The document that every format shows, redacted. Raises `redact.RedactionError` when a rule does not work."""
    return (gate or Gate()).admit(report.to_dict(language), report.seeds())


def render(report: Report, form: str = "md", language: str = "en", redact: str = "default") -> str:
    """The report in one format (`FORMATS`) and language. Deterministic; lines end in LF only."""
    return write(prepare(report, language, Gate(redact)), form)


def write(data: Mapping[str, Any], form: str, zone: tzinfo | None = None) -> str:
    """A prepared document as text; `zone` adds a column with its time to timelines."""
    if form == "json":
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return _csv(data)
    rendered = _environment(form).get_template(f"report.{form}.j2").render(**_context(data, zone))
    return _tidy(rendered)


def write_template(data: Mapping[str, Any], path: Path, zone: tzinfo | None = None) -> str:
    """A prepared document in a template of the user's own, in a sandbox. Raises `TemplateError` with the line.

    The context is that of the built-in templates: `data` (the JSON), `t` (texts), the filters of `escape`. A template
    named `*.html*` escapes by itself. It can include the built-in templates, and nothing else.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"template {path} cannot be read: {error}") from None
    try:
        environment = _environment("html" if ".htm" in path.name else "md")
        return _tidy(environment.from_string(source).render(**_context(data, zone)))
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"template {path}, line {error.lineno}: {error.message}") from None
    except Exception as error:  # whatever a template does wrong is the template's fault
        raise TemplateError(f"template {path}, line {_template_line(error)}: {error}") from None


def _template_line(error: BaseException) -> str:
    line, trace = "?", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = str(trace.tb_lineno)
        trace = trace.tb_next
    return line


@cache
def _environment(form: str) -> jinja2.Environment:
    """One per target syntax: compiling the templates costs more than filling them."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(resources.templates()),
        undefined=jinja2.StrictUndefined,
        autoescape=form == "html",  # Markdown: cells and code are escaped by the filters
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # folding constants takes longer than it saves in one report
    )
    prose = escape.html_prose if form == "html" else escape.prose
    environment.filters.update(
        cell=escape.cell, code=escape.code, cellcode=escape.cellcode, prose=prose, cellprose=escape.cellprose,
        fence=escape.fence, num=escape.number, when=view.when, spread=view.spread, points=view.points, fill=text.fill,
    )  # fmt: skip
    return environment


def _context(data: Mapping[str, Any], zone: tzinfo | None) -> dict[str, Any]:
    css = _style()
    return {
        "data": data, "t": text.texts(data["language"]), "zone": zone, "short": view.short(data), "css": Markup(css),
        "csp": _policy(css), **_FUNCTIONS,
    }  # fmt: skip


_FUNCTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "view": {f.__name__: f for f in (view.told, view.days, view.assumed_years, view.chain, view.flowchart)},
    "tables": {
        f.__name__: f
        for f in (
            tables.ledgers, tables.equation, tables.kv_facts, tables.alternatives, tables.restarts, tables.clock_rows,
            tables.decoys, tables.duration, tables.others, tables.owner,
        )
    },
    "charts": {f.__name__: f for f in (charts.telling, charts.xychart)},
    "svg": {f.__name__: f for f in (svg.swimlanes, svg.chart)},
}  # fmt: skip
"""What templates may call. Functions, never modules: through a module a template would reach the file system."""


def _style() -> str:
    """The style sheet, as it will stand in the page."""
    return _tidy((resources.templates() / "report.css").read_text(encoding="utf-8")).strip()


def _policy(css: str) -> str:
    """A page that loads, runs and sends nothing; its one style sheet is named by its digest."""
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _tidy(rendered: str) -> str:
    """No trailing blanks, never two empty lines."""
    return regex.sub(r"\n{3,}", "\n\n", regex.sub(r"[ \t]+\n", "\n", rendered)).strip() + "\n"


_CSV_COLUMNS = ("utc", "uncertainty_s", "basis", "kind", "channel", "title", "summary", "role", "count", "source",
                "line")  # fmt: skip


def _csv(data: Mapping[str, Any]) -> str:
    """The timeline as a table for spreadsheets; no cell is a formula."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for row in data["timeline"]:
        writer.writerow([escape.csv(row[name]) for name in _CSV_COLUMNS])
    return buffer.getvalue()
