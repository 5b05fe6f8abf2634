"""`oomforensics patterns …`, as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from forensics import resources
from forensics.cli import cli

GATEWAY = (
    'id = "acme.gateway"\ntitle = { en = "Gateway", zh = "网关" }\nstatus = "test"\nseverity = "critical"\nrole = "symptom"\n'
    'channels = ["engine"]\nanchors = ["gateway: out of buffers"]\ndescription = "x"\n'
    '[[versions]]\nprogram = "acme"\nsource = "a.py"\n'
    "[[patterns]]\nname = \"core\"\nregex = '''gateway: out of buffers \\((?P<used>\\d+) used'''\ntypes = { used = \"int\" }\n"
    '[[examples]]\ntext = "gateway: out of buffers (3 used)"\nmatch = "core"\nfields = { used = 3 }\n'
    '[[examples]]\ntext = "gateway: out of buffers soon"\nmatch = false\n'
)


def run(*arguments: object, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, ["patterns", *map(str, arguments)], input=stdin, catch_exceptions=False)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with one sound signature."""
    (tmp_path / "mine/acme").mkdir(parents=True)
    (tmp_path / "mine/acme/gateway.toml").write_text(GATEWAY, encoding="utf-8")
    return tmp_path / "mine"


def test_list_filters_and_json() -> None:
    """Family, role and cause narrow the list."""
    rows = json.loads(run("list", "--family", "kernel", "--role", "cause", "--format", "json").stdout)
    assert {row["role"] for row in rows} == {"cause"}
    assert all(row["id"].startswith("kernel.") and row["versions"] for row in rows)
    table = run("list", "--cause", "shm_exhausted")
    assert "shm.bus_error" in table.stdout
    assert "decisive" in table.stdout
    assert "nccl.error" in table.stdout  # named as nccl.*
    assert "vllm.args" not in table.stdout


def test_list_shows_own_signatures(mine: Path) -> None:
    """`--patterns` lays a folder over the library."""
    assert "acme.gateway" in run("list", "--family", "acme", "--patterns", mine).stdout


@pytest.mark.parametrize("identity", ["torch.oom", "gpu_oom.weights"])
def test_show(identity: str) -> None:
    """A signature with its patterns and examples, a cause with its evidence; both also as JSON."""
    assert identity in run("show", identity).stdout
    assert json.loads(run("show", identity, "--format", "json").stdout)["id"] == identity


def test_show_a_cause_in_chinese() -> None:
    """Texts exist in both languages."""
    assert "共享内存" in run("show", "shm_exhausted", "--lang", "zh").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("show", "vllm.kv_maxlen"), "did you mean vllm.kv_max_len"), (("list", "--cause", "torch.oom"), "is a signature, not a cause"),
     (("match", "healthy", "-"), "is a cause; only signatures"), (("new", "--id", "x", "line"), "expected FAMILY.NAME"),
     (("new", "--channel", "x", "line"), "expected one of engine"), (("new", "   "), "there is no line"),
     (("drift", ".", "--program", "x"), "no signature names the program 'x'")],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str) -> None:
    """One sentence and exit code 2, never a traceback."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_built_in_library_passes() -> None:
    """At least 220 signatures, no problem, all with both kinds of examples."""
    result = run("test")
    assert result.exit_code == 0, result.stderr
    count, rest = result.stdout.split(" ", 1)
    assert int(count) >= 220
    assert ", 0 problems; 100 % of the signatures have examples that must match and must not" in rest


@pytest.mark.parametrize("place", ["", "acme", "acme/gateway.toml"])
def test_folder_family_or_file(mine: Path, place: str) -> None:
    """All three can be tested alone."""
    result = run("test", mine / place)
    assert result.stdout.startswith("1 signatures, 0 causes, 2 examples, 0 problems; 100 %")
    assert result.exit_code == 0


def test_one_built_in_file() -> None:
    """As a maintainer does after a change."""
    result = run("test", resources.patterns() / "torch" / "oom.toml")
    assert (result.exit_code, result.stdout[:12]) == (0, "1 signatures")


def test_five_broken_files_give_five_located_errors(mine: Path) -> None:
    """Differently broken, each named with its line and a caret."""
    breaks = {
        "syntax": ('severity = "critical"', 'severity = "critical'),
        "typo": ("severity", "severty"),
        "regex": (r"\((?P<used>", r"((?P<used>"),
        "value": ("used = 3 }", "used = 4 }"),
        "catastrophic": (r"(?P<used>\d+)", r"(?P<used>(\d+)+)"),
    }
    (mine / "acme/gateway.toml").unlink()
    for name, (old, new) in breaks.items():
        text = GATEWAY.replace("acme.gateway", f"acme.{name}").replace("gateway:", f"{name}:")
        (mine / f"acme/{name}.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    result = run("test", mine)
    assert result.exit_code == 1
    for name in breaks:
        assert f"acme/{name}.toml: " in result.stderr
    assert result.stderr.count("^") >= 5
    assert result.stderr.count("hint: ") >= 5


def test_analyze_stops_at_a_broken_folder(mine: Path, tmp_path: Path) -> None:
    """Exit code 2, everything that is wrong, no report."""
    (mine / "acme/bad.toml").write_text("x = ", encoding="utf-8")
    (mine / "settings.toml").write_text('[tool]\ndisable = ["no.such"]\n', encoding="utf-8")
    log = tmp_path / "engine.log"
    log.write_text("ERROR 11-02 06:00:00 [a.py:1] gateway: out of buffers (3 used)\n", encoding="utf-8")
    result = CliRunner().invoke(cli, ["analyze", str(log), "--patterns", str(mine)], catch_exceptions=False)
    assert result.exit_code == 2
    assert "2 problems in the pattern library" in result.stderr
    assert "acme/bad.toml: is not valid TOML" in result.stderr
    assert "no signature is called 'no.such'" in result.stderr
    assert not result.stdout


LOG = """\
ERROR 11-02 06:00:00 [a.py:1] gateway: out of buffers (3 used)
ERROR 11-02 06:00:01 [a.py:1] gateway: out of buffers (many used)
=== journalctl -k ===
Nov 02 06:00:02 gpu-node-7 kernel: gateway: out of buffers (4 used)
INFO 11-02 06:00:03 [a.py:1] nothing to see
"""


def test_match_says_why(mine: Path, tmp_path: Path) -> None:
    """A hit with its fields, a miss with the place where the regex stopped, a wrong speaker."""
    log = tmp_path / "engine.log"
    log.write_text(LOG, encoding="utf-8")
    result = run("match", "acme.gateway", log, "--patterns", mine)
    assert result.exit_code == 0
    first, second, third, end = result.stdout.split("\n\n")
    assert "engine.log:1" in first
    assert "used = 3" in first
    assert first.endswith("→ hit")
    assert "pattern  core does not match: stops before the end" in second
    regex_line, marks = second.splitlines()[5:7]
    assert regex_line[marks.index("^") :].startswith("(?P<used>")
    assert "channel  NO: the line is kernel" in third
    assert end == "1 hits on 3 lines near one\n"


def test_match_without_a_near_line(tmp_path: Path) -> None:
    """Says what was looked for; exit code 1."""
    log = tmp_path / "engine.log"
    log.write_text(LOG, encoding="utf-8")
    result = run("match", "torch.oom", log)
    assert result.exit_code == 1
    assert "no line holds an anchor of torch.oom" in result.stdout


def test_match_shows_no_control_characters(mine: Path, tmp_path: Path) -> None:
    """A log cannot write to the terminal."""
    log = tmp_path / "engine.log"
    log.write_text("ERROR 11-02 06:00:00 [a.py:1] gateway: out of buffers (\x9b2J\x07x used)\n" * 3, encoding="utf-8")
    result = run("match", "acme.gateway", log, "--patterns", mine, "--limit", 1)
    assert not {"\x07", "\x9b", "\x1b"} & set(result.stdout)
    assert "… and 2 more lines near a hit" in result.stdout


def test_new_reads_argument_and_stdin() -> None:
    """Both give the same skeleton; of several lines the last one counts, as in a traceback."""
    line = "ERROR 11-02 06:00:00 [a.py:1] gateway: out of buffers (3 used)"
    assert run("new", line, "--id", "acme.gateway").stdout == run("new", "--id", "acme.gateway", stdin=line + "\n").stdout
    several = run("new", stdin=f"Traceback (most recent call last):\n{line}\n")
    assert "2 lines were given; the last one is taken" in several.stderr
    assert "gateway: out of buffers (3 used)" in several.stdout


def test_lint_warns(mine: Path) -> None:
    """Sound: exit 0. With a warning: exit 1, and the place."""
    assert run("lint", mine).stdout == "1 signatures, 0 errors, 0 warnings, 0 pieces of advice\n"
    (mine / "acme/gateway.toml").write_text(GATEWAY.replace("\"symptom\"", "\"cause\""), encoding="utf-8")
    result = run("lint", mine, "--no-hostile")
    assert result.exit_code == 1
    assert f"warning: {mine}/acme/gateway.toml: role: is cause, but no cause names the signature" in result.stdout
    assert '5 | role = "cause"' in result.stdout


def test_drift_text_and_json(mine: Path, tmp_path: Path) -> None:
    """Found: exit 0. Vanished: exit 1, named with where it was."""
    source = tmp_path / "acme" / "server.py"
    source.parent.mkdir()
    source.write_text('log.error(f"gateway: out of buffers ({used} used)")', encoding="utf-8")
    found = run("drift", source.parent, "--patterns", mine, "--format", "json")
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert data["program"] == "acme"
    assert data["counts"] == {"found": 1, "assembled": 0, "changed": 0, "vanished": 0, "ended": 0}
    assert data["signatures"][0]["anchors"][0]["path"] == "server.py"
    source.write_text('log.error("gateway: no space")', encoding="utf-8")
    gone = run("drift", source.parent, "--patterns", mine)
    assert gone.exit_code == 1
    assert "vanished: acme.gateway: Gateway" in gone.stdout
    assert "was in a.py" in gone.stdout
    assert "1 vanished" in gone.stdout


def test_catalogue_is_printed() -> None:
    """The hidden command of the maintainers."""
    assert "| `torch.oom` | cause |" in run("catalogue").stdout
    assert "catalogue" not in run("--help").stdout.partition("Commands:")[2]


def test_help_is_light() -> None:
    """Nothing heavy is imported for help."""
    code = (
        "import sys; from click.testing import CliRunner; from forensics.cli import cli; "
        "CliRunner().invoke(cli, ['patterns', '--help']); print([m for m in ('polars', 'jinja2', 'yaml') if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert result.stdout == "[]\n"
