"""`oomforensics sources`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from forensics.cli import tables

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def document(run: Run, incident: Path) -> dict[str, Any]:
    return dict(json.loads(run("sources", incident, "--format", "json").stdout))


def row(document: dict[str, Any], path: str) -> dict[str, Any]:
    return next(source for source in document["sources"] if source["path"] == path)


def test_every_file_has_a_row(run: Run, incident: Path) -> None:
    """One line a file, the path in full and last, with what it is, its span, its coverage and its clock."""
    result = run("sources", incident)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [line.rsplit(maxsplit=1)[-1] for line in lines[1:]] == sorted(p.name for p in incident.iterdir())
    kernel = next(line for line in lines if line.endswith("dmesg-T.txt"))
    assert "kernel log (dmesg -T)" in kernel
    assert "2026-03-11 06:39:22 – 13:21:45" in kernel
    assert "100 %" in kernel
    assert "UTC+01:00, " in kernel


def test_nothing_is_cut_when_piped(run: Run, tmp_path: Path) -> None:
    """A path of 300 characters stands whole in its line."""
    folder = tmp_path / "x" / ("a" * 150) / ("b" * 150)
    folder.mkdir(parents=True)
    (folder / "vllm.log").write_text("INFO 03-11 08:40:51 [api_server.py:1] vLLM API server version 0.20.0\n")
    (tmp_path / "x" / "other.log").write_text("INFO 03-11 08:40:51 [api_server.py:1] vLLM API server version 0.20.0\n")
    result = run("sources", tmp_path / "x")
    assert f"{'a' * 150}/{'b' * 150}/vllm.log" in result.stdout


def test_the_json_holds_what_the_table_shows(document: dict[str, Any]) -> None:
    """Format, owner, lines, events, span, coverage and clocks of each file."""
    describe = row(document, "describe.txt")
    assert describe["scope"]["pod"] == "glm4-chat-894554c8bf-ccqbv"
    assert describe["lines"] == 88
    assert describe["events"] >= 5
    assert describe["first_utc"] == "2026-03-11T07:40:41.500Z"  # an age in whole seconds: the middle of what it may be
    assert 0.0 <= describe["coverage"] <= 1.0
    assert {clock["verdict"] for clock in describe["clock"]} <= {"exact", "solved", "assumed", "refused"}
    assert document["bundle"]["sha256"]


def test_a_log_without_a_name_is_given_to_its_pod(document: dict[str, Any]) -> None:
    """An engine log that names no owner carries the pod that was found for it, and what gave it away."""
    joined = row(document, "logs-previous.txt")["joined"]
    assert joined["entity"] == "pod:glm4-chat-894554c8bf-ccqbv"
    assert joined["reason"]


def test_a_series_is_covered_and_spans_its_points(run: Run, tmp_path: Path) -> None:
    """Every row of a table of measurements counts as understood, and its points make the span."""
    rows = "".join(f"2026/03/11 08:00:{s:02d}.000, 0, 81559 MiB, {70000 + s} MiB\n" for s in range(60))
    (tmp_path / "gpu.csv").write_text("timestamp, index, memory.total [MiB], memory.used [MiB]\n" + rows)
    source = json.loads(run("sources", tmp_path / "gpu.csv", "--format", "json").stdout)["sources"][0]
    assert source["coverage"] == 1.0
    assert source["first_utc"] is not None
    assert source["first_utc"][14:19] == "00:00"
    assert source["last_utc"][14:19] == "00:59"


def test_an_unrecognised_file_is_listed_with_the_reason(run: Run, incident: Path, tmp_path: Path) -> None:
    """A picture beside a log: the log is read, the picture is named with why it is not."""
    picture = tmp_path / "grafana.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
    result = run("sources", incident / "dmesg-T.txt", picture)
    line = next(line for line in result.stdout.splitlines() if line.endswith("grafana.png"))
    assert line.startswith("unrecognised: PNG picture")
    assert result.exit_code == 0


def test_nothing_readable_is_shown_and_is_exit_code_3(run: Run, tmp_path: Path) -> None:
    """The table is the answer to why nothing could be read."""
    picture = tmp_path / "grafana.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
    result = run("sources", picture)
    assert result.exit_code == 3
    assert "grafana.png" in result.stdout
    assert "nothing readable" in result.stderr


def test_a_zone_given_by_the_user_is_the_clock(run: Run, incident: Path) -> None:
    """--tz ties a clock, and the table says so."""
    result = run("sources", incident / "dmesg-T.txt", "--tz", "dmesg*=Asia/Kolkata")
    assert "Asia/Kolkata" in result.stdout


def test_a_terminal_gets_a_table_that_fits(run: Run, incident: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal; owners and clocks stand below what they belong to."""
    monkeypatch.setattr(tables, "on_terminal", lambda output: output is None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    result = run("sources", incident)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "≈ glm4-chat-894554c8bf-ccqbv" in result.stdout
    assert "5 files, none unrecognised." in result.stdout
    assert "\x1b[" not in result.stdout


def test_the_table_goes_to_a_file(run: Run, incident: Path, tmp_path: Path) -> None:
    """-o writes what would be piped."""
    result = run("sources", incident, "-o", tmp_path / "sources.txt")
    assert result.stdout == ""
    assert (tmp_path / "sources.txt").read_text(encoding="utf-8") == run("sources", incident).stdout
