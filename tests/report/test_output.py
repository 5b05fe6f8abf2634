"""What `analyze` and `verify` write, where, and how they refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import regex
from click.testing import CliRunner, Result

from forensics.cli import cli, terminal
from forensics.report import Report
from forensics.report.render import prepare


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def test_several_formats_go_into_a_folder(folder: Path, tmp_path: Path) -> None:
    """One run, one analysis, one file a format; the JSON is sealed."""
    out = tmp_path / "new" / "out"
    done = run("analyze", folder, *(x for f in ("md", "html", "json", "text", "csv") for x in ("--format", f)), "-o", out)
    assert done.exit_code == 0, done.output
    names = ["report.csv", "report.html", "report.json", "report.md", "report.txt"]
    assert sorted(p.name for p in out.iterdir()) == names
    document = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert all(finding["locator"]["sha256"] for finding in document["findings"])
    checked = run("verify", out / "report.json", folder)
    assert checked.exit_code == 0
    assert "claims: " in checked.output


def test_verify_names_what_fails(folder: Path, tmp_path: Path) -> None:
    """Exit 1, and the claim with its place; as JSON for programs."""
    report = tmp_path / "report.json"
    run("analyze", folder, "--format", "json", "-o", report)
    document = json.loads(report.read_text(encoding="utf-8"))
    document["findings"][0]["locator"]["sha256"] = "0" * 64
    next(s for s in document["sources"] if s["path"] == document["findings"][0]["locator"]["source"])["sha256"] = "0" * 64
    report.write_text(json.dumps(document), encoding="utf-8")
    done = run("verify", report, folder)
    assert done.exit_code == 1
    assert regex.search(r"changed +F1 ", done.output)
    machine = json.loads(run("verify", report, folder, "--format", "json").output)
    assert machine["intact"] is False
    assert [claim["finding"] for claim in machine["claims"]] == ["F1"]


@pytest.mark.parametrize("content", ["", "[]", "{}", "\x00\x01", '{"schema_version": "9.0", "verdict": 1, "sources": [], "findings": []}'])
def test_verify_refuses_what_is_no_report(content: str, folder: Path, tmp_path: Path) -> None:
    """One sentence, exit 2, no traceback."""
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    done = run("verify", path, folder)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert "x.json" in done.output


def test_impossible_outputs_are_refused(folder: Path, tmp_path: Path) -> None:
    """Two formats on standard output, a file where a folder is needed, a map without strict redaction."""
    taken = tmp_path / "taken"
    taken.write_text("x", encoding="utf-8")
    for args, said in (
        (("--format", "md", "--format", "html"), "-o DIR"),
        (("--format", "md", "--format", "html", "-o", taken), "is a file"),
        (("--redact-map", tmp_path / "m.json"), "--redact strict"),
        (("--template", tmp_path / "none.j2"), "cannot be read"),
        (("--display-tz", "Nowhere/City"), "is no zone"),
    ):
        done = run("analyze", folder, *args)
        assert done.exit_code == 2, args
        assert said in done.output
    assert taken.read_text(encoding="utf-8") == "x"


def test_the_map_of_names_is_private(folder: Path, tmp_path: Path) -> None:
    """Only its owner may read it, and it explains the report."""
    names, report = tmp_path / "names.json", tmp_path / "r.md"
    done = run("analyze", folder, "--redact", "strict", "--redact-map", names, "-o", report)
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(names.stat().st_mode) == 0o600
    assert json.loads(names.read_text(encoding="utf-8"))["names"]["pod"]
    assert "pod-1" in report.read_text(encoding="utf-8")


def test_a_display_zone_adds_a_column(folder: Path) -> None:
    """UTC stays beside it."""
    shown = run("analyze", folder, "--display-tz", "Asia/Shanghai").output
    assert "| UTC | Asia/Shanghai | ± |" in shown
    assert "| 02:11:09 | 10:11:09 |" in shown


def test_a_template_of_the_users_own(folder: Path, tmp_path: Path) -> None:
    """It replaces the default format, or joins others in a folder under its own name."""
    template = tmp_path / "ours.md.j2"
    template.write_text("cause={{ data.verdict.cause }}", encoding="utf-8")
    assert run("analyze", folder, "--template", template).output == "cause=gpu_oom.runtime_load\n"
    run("analyze", folder, "--template", template, "--format", "md", "-o", tmp_path / "both")
    assert sorted(p.name for p in (tmp_path / "both").iterdir()) == ["ours.md", "report.md"]


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_text_fits_the_width(report: Report, width: int, language: str) -> None:
    """No line is wider than the terminal; wide characters count twice."""
    from rich.cells import cell_len

    shown = terminal.render(prepare(report, language), width=width)
    assert max(map(cell_len, shown.splitlines())) <= width


def test_colours_obey_no_color(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours on a terminal, none with NO_COLOR, none in a file."""
    data = prepare(report)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[3" in terminal.render(data, terminal=True)
    assert "\x1b" not in terminal.render(data)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not regex.search(r"\x1b\[[0-9;]*3[0-9]", terminal.render(data, terminal=True))


def test_the_terminal_tells_the_story(report: Report) -> None:
    """Cause, evidence with place and quote, what to do: readable without any other format."""
    shown = terminal.render(prepare(report), width=110)
    for part in ("GPU memory ran out while serving requests", "engine.log:19", "ROOT CAUSE", "--max-num-seqs", "Run 2 of 2"):
        assert part in shown
