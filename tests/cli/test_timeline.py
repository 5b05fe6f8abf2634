"""`oomforensics timeline`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result

from forensics.cli import tables

Run = Callable[..., Result]
Rows = list[dict[str, Any]]


def parsed(result: Result) -> Rows:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows(run: Run, incident: Path) -> Rows:
    """All events of the incident."""
    return parsed(run("timeline", incident, "--format", "jsonl"))


def root(rows: Rows) -> dict[str, Any]:
    return next(row for row in rows if row.get("role") == "root")


def test_all_events_come_in_order(rows: Rows) -> None:
    """Also those that no signature knows; with uncertainty and basis; undated ones last."""
    times = [row["utc"] for row in rows if "utc" in row]
    assert times == sorted(times)
    assert all("utc" in row for row in rows[: len(times)])
    assert sum("finding" not in row for row in rows) > 50
    assert all(row["uncertainty_s"] >= 0 and row["basis"] for row in rows if "utc" in row)


def test_the_root_cause_is_marked(rows: Rows) -> None:
    """The event of the first cause carries its finding, its use and the severity of the finding."""
    found = root(rows)
    assert (found["source"], found["line"]) == ("dmesg-T.txt", 96)
    assert found["finding"].startswith("F")
    assert found["severity"] == "critical"


def test_order_that_is_not_provable_is_a_group(run: Run, incident: Path, rows: Rows) -> None:
    """Overlapping neighbours of different files share a group in data, and a bracket in the table."""
    group = root(rows)["order_group"]
    members = [row for row in rows if row.get("order_group") == group]
    assert len({row["source"] for row in members}) > 1
    table = run("timeline", incident, "--around", "first-cause", "--window", "30s").stdout
    brackets = [line[0] for line in table.splitlines()[1:] if line[0] in "╭│╰"]
    assert brackets[0] == "╭"
    assert brackets[-1] == "╰"


@pytest.mark.parametrize("name", ["{finding}", "host_oom.container_limit", "first-cause", "dmesg-T.txt:96"])
def test_around_takes_a_finding_a_cause_or_a_place(run: Run, incident: Path, rows: Rows, name: str) -> None:
    """All four names mean the same event, and the window lies around it."""
    centre = root(rows)
    name = name.format(finding=centre["finding"].split()[0])
    shown = parsed(run("timeline", incident, "--around", name, "--window", "5s", "--format", "jsonl"))
    moment = datetime.fromisoformat(centre["utc"])
    assert any(row["line"] == 96 and row["source"] == "dmesg-T.txt" for row in shown)
    assert all(abs((datetime.fromisoformat(row["utc"]) - moment).total_seconds()) <= 5 for row in shown)


def test_around_shows_ten_minutes_on_either_side(run: Run, incident: Path, rows: Rows) -> None:
    """The window without --window."""
    moment = datetime.fromisoformat(root(rows)["utc"])
    shown = parsed(run("timeline", incident, "--around", "first-cause", "--format", "jsonl"))
    expected = [r for r in rows if "utc" in r and abs((datetime.fromisoformat(r["utc"]) - moment).total_seconds()) <= 600]
    assert [row["line"] for row in shown] == [row["line"] for row in expected]


def test_filters_narrow_the_timeline(run: Run, incident: Path) -> None:
    """Source globs fit path or name; kinds, channels and severities are exact or at least."""
    by_source = parsed(run("timeline", incident, "--source", "logs-*", "--format", "jsonl"))
    assert {row["source"] for row in by_source} == {"logs-previous.txt", "logs-current.txt"}
    by_kind = parsed(run("timeline", incident, "--kind", "kernel_oom", "--kind", "access", "--format", "jsonl"))
    assert {row["kind"] for row in by_kind} == {"kernel_oom", "access"}
    by_channel = parsed(run("timeline", incident, "--channel", "runtime", "--format", "jsonl"))
    assert {row["channel"] for row in by_channel} == {"runtime"}
    severe = parsed(run("timeline", incident, "--severity", "error", "--format", "jsonl"))
    assert {row["severity"] for row in severe} <= {"error", "critical"}
    assert severe


def test_bounds_are_read_in_the_display_zone(run: Run, incident: Path) -> None:
    """14:21 in Oslo is 13:21 UTC; a bound with a zone of its own keeps it."""
    oslo = ["--display-tz", "Europe/Oslo", "--format", "jsonl"]
    local = parsed(run("timeline", incident, "--since", "2026-03-11 14:21", "--until", "2026-03-11T14:22", *oslo))
    utc = parsed(run("timeline", incident, "--since", "2026-03-11T13:21Z", "--until", "2026-03-11T13:22Z", *oslo))
    assert [row["line"] for row in local] == [row["line"] for row in utc]
    assert {row["utc"][:16] for row in local} == {"2026-03-11T13:21"}


def test_the_display_zone_is_always_named(run: Run, incident: Path) -> None:
    """In the head of the table and in a column of its own; the UTC column stays."""
    arguments = ["--around", "first-cause", "--window", "5s"]
    assert "time, UTC" in run("timeline", incident, *arguments).stdout.splitlines()[0]
    table = run("timeline", incident, *arguments, "--display-tz", "Asia/Kolkata").stdout
    assert "time, Asia/Kolkata (UTC+05:30)" in table.splitlines()[0]
    assert "2026-03-11 18:51:45" in table
    row = parsed(run("timeline", incident, *arguments, "--display-tz", "+08:00", "--format", "jsonl"))[0]
    assert row["zone"] == "+08:00"
    assert row["local"].endswith("+08:00")
    assert datetime.fromisoformat(row["local"]) == datetime.fromisoformat(row["utc"])


def test_a_change_of_the_clocks_shows_both_offsets(run: Run, tmp_path: Path) -> None:
    """Events before and after the end of summer time: the head names both offsets."""
    log = tmp_path / "syslog.txt"
    log.write_text(
        "2026-10-25T00:30:00+00:00 gpu-node-7 systemd[1]: Started vllm.service - vLLM.\n"
        "2026-10-25T01:30:00+00:00 gpu-node-7 systemd[1]: Stopped vllm.service - vLLM.\n"
    )
    table = run("timeline", log, "--display-tz", "Europe/Berlin").stdout
    assert "Europe/Berlin (UTC+02:00, UTC+01:00)" in table.splitlines()[0]
    assert table.count("2026-10-25 02:30:00") == 2


def test_csv_holds_no_formula(run: Run, tmp_path: Path) -> None:
    """A message that a spreadsheet would execute is text."""
    log = tmp_path / "=evil.log"
    log.write_text('ERROR 03-11 08:40:51 [core.py:1] =HYPERLINK("http://x.test/";"CUDA out of memory.")\n' * 2)
    result = run("timeline", log, "--format", "csv")
    table = list(csv.DictReader(io.StringIO(result.stdout)))
    assert table
    assert all(not str(value).startswith(("=", "+", "-", "@")) for row in table for value in row.values())


def test_csv_and_parquet_hold_the_same_rows(run: Run, incident: Path, rows: Rows, tmp_path: Path) -> None:
    """All columns, always the same ones; Parquet with real types."""
    table = list(csv.DictReader(io.StringIO(run("timeline", incident, "--format", "csv").stdout)))
    run("timeline", incident, "--format", "parquet", "-o", tmp_path / "events.parquet")
    frame = pl.read_parquet(tmp_path / "events.parquet")
    assert frame.columns == list(table[0])
    assert len(table) == len(frame) == len(rows)
    assert frame.schema["utc"] == pl.Datetime("ms", "UTC")
    assert frame.schema["uncertainty_s"] == pl.Float64
    assert frame.filter(pl.col("role") == "root")["line"].to_list() == [96]
    assert json.loads(frame.filter(pl.col("role") == "root")["fields"][0])["victim_pid"] == 1288114


def test_parquet_is_not_thrown_at_a_terminal(run: Run, incident: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Binary output needs a file."""
    monkeypatch.setattr(tables, "on_terminal", lambda output: output is None)
    result = run("timeline", incident, "--format", "parquet")
    assert result.exit_code == 2
    assert "-o events.parquet" in result.stderr


def test_timesketch_gets_its_three_columns(run: Run, incident: Path, rows: Rows, tmp_path: Path) -> None:
    """`message`, `datetime`, `timestamp_desc` in every row; undated events are left out, and said so."""
    result = run("timeline", incident, "--format", "timesketch")
    imported = parsed(result)
    dated = [row for row in rows if "utc" in row]
    assert len(imported) == len(dated)
    assert f"{len(rows) - len(dated)} events without a time" in result.stderr
    for row in imported:
        assert row["message"]
        assert row["timestamp_desc"]
        assert datetime.fromisoformat(row["datetime"]).utcoffset() is not None
    run("timeline", incident, "--format", "timesketch", "-o", tmp_path / "events.csv")
    with (tmp_path / "events.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [row["message"] for row in table[:20]] == [row["message"] for row in imported[:20]]


@pytest.mark.parametrize("form", ["table", "csv", "jsonl", "timesketch"])
def test_no_secret_leaves(run: Run, tmp_path: Path, form: str) -> None:
    """A token in a log line is redacted in every format, and shown only on request."""
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    log = tmp_path / "vllm.log"
    log.write_text(f"ERROR 03-11 08:40:51 [hub.py:1] 401 Client Error: Unauthorized, token {token}, CUDA out of memory\n" * 2)
    arguments = ["--year", "2026", "--tz", "*=UTC", "--format", form]
    assert token not in run("timeline", log, *arguments).stdout
    assert token in run("timeline", log, *arguments, "--redact", "off").stdout


def test_an_event_without_a_time_shows_its_file(run: Run, tmp_path: Path) -> None:
    """A pasted line has no time: its neighbours are those of its file."""
    (tmp_path / "paste.txt").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    result = run("timeline", tmp_path / "paste.txt", "--around", "F1", "--format", "jsonl")
    assert len(parsed(result)) >= 1
    assert "has no time in UTC" in result.stderr


def test_an_empty_selection_says_what_there_is(run: Run, incident: Path) -> None:
    """Nothing fits: exit 0, and the kinds and channels of the bundle on stderr."""
    result = run("timeline", incident, "--kind", "kernel-oom")
    assert result.exit_code == 0
    assert "no event fits; kinds: " in result.stderr
    assert "kernel_oom" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--around", "F9999"], "no finding is called F9999"),
        (["--around", "gpu_oom.wieghts"], "did you mean gpu_oom.weights"),
        (["--around", "gpu_oom.weights"], "nothing in this bundle speaks for gpu_oom.weights"),
        (["--around", "dmesg-T.text:96"], "did you mean dmesg-T.txt"),
        (["--around", "first-cause", "--window", "soon"], "expected a span such as 90s"),
        (["--since", "yesterday"], "expected a date and a time"),
        (["--display-tz", "Mars/Olympus"], "is no zone"),
        (["--format", "xlsx"], "xlsx"),
    ],
)
def test_wrong_values_are_usage_errors(run: Run, incident: Path, arguments: list[str], said: str) -> None:
    """Exit code 2 and one sentence that says what would be right."""
    result = run("timeline", incident, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_terminal_gets_days_and_short_paths(run: Run, incident: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 80 columns: one row names the day, the zone stands above, the brackets have a legend."""
    monkeypatch.setattr(tables, "on_terminal", lambda output: output is None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    out = run("timeline", incident, "--around", "first-cause", "--window", "5s").stdout
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("Times in UTC")
    assert out.count("2026-03-11\n") + out.count("2026-03-11 ") >= 1
    assert "their order is not provable" in " ".join(out.split())
