"""What holds for all commands: help, exit codes, bad input, bad options."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import regex
from click.testing import CliRunner, Result

from forensics import cli as package
from forensics.cli import cli

Run = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[2]
READERS = ("analyze", "explain", "timeline", "sources")
"""Commands that read a bundle."""
HELP_WIDTH = 78
"""What click fills of a terminal with 80 columns."""


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.fixture(scope="module")
def packed(run: Run, incident: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A bundle as .tar.gz."""
    target = tmp_path_factory.mktemp("packed") / "bundle.tar.gz"
    subprocess.run(["tar", "czf", target, "-C", incident.parent, incident.name], check=True)
    return target.read_bytes()


def test_help_loads_no_engine() -> None:
    """`--help` answers at once: nothing heavy is imported for it."""
    heavy = ["polars", "rich", "jinja2", "yaml", "dateutil", "regex", "isal", "zstandard", "prometheus_client"]
    code = f"""
import sys
from forensics.cli import cli
try:
    cli(["--help"], prog_name="oomforensics")
except SystemExit:
    pass
print("loaded:", *[name for name in {heavy!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_the_module_is_the_command() -> None:
    """`python -m forensics` and `oomforensics` are one function, under one name."""
    script = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["oomforensics"]
    module, _, name = script.partition(":")
    assert getattr(import_module(module), name) is package.main
    for arguments in (["--version"], ["explain", "--help"], ["analyze"]):
        narrow = {**os.environ, "COLUMNS": "80"}
        done = subprocess.run(
            [sys.executable, "-m", "forensics", *arguments], capture_output=True, text=True, cwd=ROOT, env=narrow
        )
        here = CliRunner().invoke(cli, arguments, prog_name="oomforensics", terminal_width=HELP_WIDTH)
        assert (done.stdout, done.stderr, done.returncode) == (here.stdout, here.stderr, here.exit_code)


def test_the_readme_shows_the_help() -> None:
    """The block between the markers is what `oomforensics --help` prints in 80 columns."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = regex.search(r"<!-- help -->\n```\w*\n(.*?)```\n<!-- /help -->", readme, regex.DOTALL)
    assert block is not None, "README.md has no fenced block between <!-- help --> and <!-- /help -->"
    shown = regex.sub(r"\A\$ oomforensics --help\n", "", block[1])
    printed = CliRunner().invoke(cli, ["--help"], prog_name="oomforensics", terminal_width=80).stdout
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in printed.splitlines()]


@pytest.mark.parametrize("path", [path for path, _ in commands(cli)], ids=" ".join)
def test_every_command_explains_itself(run: Run, path: tuple[str, ...]) -> None:
    """It has a help text and answers to --help."""
    assert run(*path, "--help").exit_code == 0
    assert dict(commands(cli))[path].help


def test_the_list_of_commands_is_not_cut(run: Run) -> None:
    """Each command fits into its line."""
    listed = run("--help").stdout.split("Commands:")[1].split("\n\n")[0]
    assert len(listed.strip().splitlines()) == len(cli.commands)
    assert "..." not in listed


@pytest.mark.parametrize("command", READERS)
def test_help_teaches_by_example(run: Run, command: str) -> None:
    """Two to six examples that start with the command itself."""
    text = run(command, "--help").stdout
    examples = regex.findall(rf"(?m)^\s+(?:.*\| )?oomforensics {command} .*", text)
    assert command == "analyze" or max(map(len, examples)) <= 80
    assert 2 <= len(examples) <= 6
    assert "Exit codes" in text


@pytest.mark.parametrize("command", READERS)
def test_without_a_bundle_it_is_a_usage_error(run: Run, command: str) -> None:
    """Exit code 2, and the way to the help."""
    result = run(command)
    assert result.exit_code == 2
    assert "--help" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_a_path_that_is_not_there(run: Run, command: str, tmp_path: Path) -> None:
    """Exit code 3, with the path."""
    result = run(command, tmp_path / "nowhere.tar.gz")
    assert result.exit_code == 3
    assert "nowhere.tar.gz: no such file or folder" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_nothing_to_read(run: Run, command: str, tmp_path: Path) -> None:
    """/dev/null, a picture, an empty folder: exit code 3 and one sentence."""
    picture = tmp_path / "grafana.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
    (tmp_path / "empty").mkdir()
    for path in (os.devnull, picture, tmp_path / "empty"):
        result = run(command, path)
        assert result.exit_code == 3, path
        assert "nothing readable" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_standard_input(run: Run, command: str, packed: bytes) -> None:
    """`-` reads a log or an archive; a single letter is no error."""
    assert run(command, "-", stdin=b"x").exit_code == 0
    result = run(command, "-", stdin=packed)
    assert result.exit_code == 0
    assert "dmesg-T.txt" in result.stdout


@pytest.mark.parametrize("command", READERS)
def test_a_torn_archive(run: Run, command: str, packed: bytes, tmp_path: Path) -> None:
    """What came before the tear is analysed, and stderr says what is missing; a stump alone is exit code 3."""
    torn = tmp_path / "torn.tar.gz"
    torn.write_bytes(packed[: len(packed) * 2 // 3])
    result = run(command, torn)
    assert result.exit_code == 0
    assert "ends before its gzip stream does" in result.stderr
    torn.write_bytes(packed[:30])
    result = run(command, torn)
    assert result.exit_code == 3
    assert "ends before its gzip stream does" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tz", "Asia/Shanghai"], "expected PATTERN=ZONE"),
        (["--tz", "journal*=Mars/Olympus"], "'Mars/Olympus' is no zone"),
        (["--captured-at", "noon"], "expected a date and a time"),
        (["--captured-at", "21:25:17"], "expected a date and a time"),
        (["--skew", "gpu-node-7"], "expected HOST=SECONDS"),
        (["--year", "20026"], "--year"),
        (["--max-bytes", "lots"], "write it like 500M"),
        (["--max-bytes", "0"], "write it like 500M"),
        (["--max-depth", "-1"], "--max-depth"),
        (["--patterns", "/nowhere/at/all"], "--patterns"),
    ],
)
@pytest.mark.parametrize("command", READERS)
def test_wrong_options_are_usage_errors(run: Run, incident: Path, command: str, arguments: list[str], said: str) -> None:
    """The same words and exit code 2 in all commands."""
    result = run(command, incident, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_limits_reach_the_bundle(run: Run, incident: Path) -> None:
    """--max-members and --max-bytes cut, and say so with the flag that raises the limit."""
    few = run("sources", incident, "--max-members", "2")
    assert "--max-members" in few.stderr
    assert len(few.stdout.splitlines()) == 3
    assert "--max-bytes" in run("sources", incident, "--max-bytes", "8k").stderr


def test_the_display_zone_of_a_report_is_named(run: Run, incident: Path) -> None:
    """`analyze --display-tz` prints the zone beside its times."""
    out = run("analyze", incident, "--display-tz", "Asia/Kolkata").stdout
    assert "Asia/Kolkata" in out
    assert "18:51:4" in out


def test_a_reader_that_goes_away_is_no_error(incident: Path) -> None:
    """`… | head -1` ends quietly."""
    command = f"{sys.executable} -m forensics timeline {incident} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written(run: Run, incident: Path, tmp_path: Path) -> None:
    """Exit code 2 and where; nothing half-written stays."""
    result = run("sources", incident, "-o", tmp_path / "no" / "such" / "sources.txt")
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_strict_redaction_reaches_every_command(run: Run, incident: Path, command: str) -> None:
    """No pod or node of the bundle is named."""
    out = run(command, incident, "--redact", "strict").stdout
    assert out
    assert "glm4-chat" not in out
    assert "gpu-osl-2" not in out


@pytest.mark.parametrize("command", ["analyze", "timeline", "sources"])
def test_a_dash_is_standard_output(run: Run, incident: Path, command: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(command, incident, "-o", "-").stdout == run(command, incident).stdout != ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "begins"), [
    ("r.html", "<!doctype html>"), ("r.json", "{"), ("r.csv", "utc,"), ("r.md", "# "), ("r", "# ")
])  # fmt: skip
def test_the_ending_of_a_file_chooses_the_format(run: Run, incident: Path, tmp_path: Path, name: str, begins: str) -> None:
    assert run("analyze", incident, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text().lstrip().startswith(begins)
