"""`oomforensics explain`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import regex
from click.testing import Result

from forensics import resources
from forensics.cli import tables

Run = Callable[..., Result]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def section(text: str, head: str) -> str:
    """The lines below a heading, as one text."""
    below = text.split(f"\n{head}\n", 1)
    assert len(below) == 2, f"no heading {head!r} in:\n{text}"
    return below[1].split("\n\n", 1)[0]


def test_without_a_subject_the_verdict_is_explained(run: Run, incident: Path) -> None:
    """What decides, supports and contradicts, the first cause, decoys, and what would change the answer."""
    result = run("explain", incident)
    out = result.stdout
    assert result.exit_code == 0
    assert "host_oom.container_limit – " in out
    assert "established" in out.splitlines()[2]
    assert "dmesg-T.txt:96" in section(out, "First cause")
    assert "Kernel killed a process at the container's memory limit" in section(out, "Decisive for it")
    assert section(out, "Speaks against it") == "  none"
    decoys = section(out, "Looks like a cause, and is none")
    assert "logs-previous.txt:58" in decoys
    assert "survived: the service went on after it" in decoys
    assert "$ journalctl" in section(out, "What would confirm or refute it")


def test_a_line_is_quoted_once(run: Run, incident: Path) -> None:
    """A line that several findings rest on stands in full only where it is named first."""
    assert run("explain", incident).stdout.count("Killed process 1288114") == 1


def test_a_cause_that_another_one_explains_is_folded(run: Run) -> None:
    """Why it lost names the finding, and the cause whose consequence it is."""
    bundle = SAMPLES / "fragmentation-after-three-weeks" / "bundle"
    why = section(run("explain", bundle, "gpu_oom.runtime_load").stdout, "Why it is not the answer")
    assert "is a consequence of gpu_oom.fragmentation" in why
    rivals = section(run("explain", bundle).stdout, "Rivals")
    assert "gpu_oom.runtime_load" in rivals


def test_a_cause_that_findings_contradict_says_which(run: Run) -> None:
    """Its own contradictions are named, and the winner that has fewer."""
    bundle = SAMPLES / "probe-finishes-a-dead-engine" / "bundle"
    out = run("explain", bundle, "gpu_oom.runtime_load").stdout
    assert regex.search(r"It is contradicted by F\d+ “.*”; fewer", section(out, "Why it is not the answer"))
    assert "The KV cache was not full" in section(out, "Speaks against it")
    assert "hypothesis 2 of " in out


def test_a_cause_without_evidence_says_what_would_decide(run: Run, incident: Path) -> None:
    """Nothing for it, what was set aside and why, which findings are not in the bundle, and how to get them."""
    out = run("explain", incident, "gpu_oom.runtime_load").stdout
    assert out.startswith("no hypothesis of its own in this bundle")
    assert section(out, "Decisive for it") == "  none"
    assert "survived: the service went on after it" in section(out, "Would speak for it, but was set aside")
    assert "derived.oom_serving" in section(out, "Would decide it, and is not in this bundle")
    assert "$ kubectl" in section(out, "What would confirm or refute it")


def test_a_cause_that_won_says_why(run: Run, incident: Path) -> None:
    """The verdict as a subject."""
    out = run("explain", incident, "host_oom.container_limit").stdout
    assert out.startswith("verdict of incident I1")
    assert section(out, "Why it is the answer").strip()


def test_health_is_the_answer_only_without_a_fault(run: Run, incident: Path) -> None:
    """`healthy` and `insufficient_evidence` compete with nothing."""
    out = run("explain", incident, "healthy").stdout
    assert "only where no cause is shown; here host_oom.container_limit is" in out


def test_the_root_finding_is_told_in_full(run: Run, incident: Path) -> None:
    """The quoted line, its fields, its clock, its uses, and the causes it speaks for."""
    out = run("explain", incident, "first-cause").stdout
    assert out.startswith("F")
    assert "(cause, critical)" in out.splitlines()[0]
    assert section(out, "The line").startswith("  dmesg-T.txt:96\n  Memory cgroup out of memory: Killed process")
    assert "victim_pid = 1288114" in section(out, "What was read from it")
    assert "2026-03-11 13:21:45" in section(out, "Its time")
    assert " UTC ±" in section(out, "Its time")
    assert "clock dmesg" in section(out, "Its time")
    used = section(out, "How it was used")
    assert "root cause: the line to look at first" in used
    assert "supports the verdict host_oom.container_limit" in used
    assert "host_oom.container_limit (supporting, verdict of incident I1)" in section(out, "Speaks for")


def test_a_decoy_has_its_reason(run: Run, incident: Path) -> None:
    """A place names all findings that stand there; one that was set aside says why."""
    out = run("explain", incident, "logs-previous.txt:58").stdout
    assert "torch.oom" in out
    assert "set aside: survived: the service went on after it" in section(out, "How it was used")


def test_an_id_and_its_place_are_the_same(run: Run, incident: Path) -> None:
    """F-numbers are those of the timeline and of the report."""
    by_place = run("explain", incident, "logs-previous.txt:58").stdout
    assert run("explain", incident, by_place.split()[0].lower()).stdout == by_place


def test_a_line_without_a_finding_is_explained(run: Run, incident: Path) -> None:
    """What a parser made of it, and where to ask why no signature fires."""
    out = run("explain", incident, "logs-previous.txt:152").stdout
    assert out.startswith("access on channel engine")
    assert "no signature fires on this line" in out
    assert "patterns match" in out


def test_a_line_that_nothing_reads_names_its_neighbours(run: Run, incident: Path) -> None:
    """Lines without meaning are not kept; the nearest that are help to find the right number."""
    out = run("explain", incident, "describe.txt:2").stdout
    assert "describe.txt:2 was read, and nothing in it matters" in out
    assert "describe.txt:" in section(out, "Nearest lines that do")


def test_times_are_shown_in_the_zone_asked_for(run: Run, incident: Path) -> None:
    """And the zone is named."""
    out = run("explain", incident, "dmesg-T.txt:96", "--display-tz", "Asia/Kolkata").stdout
    assert regex.search(r"2026-03-11 18:51:4\d\.\d{3} Asia/Kolkata ±", section(out, "Its time"))


def test_chinese(run: Run, incident: Path) -> None:
    """Headings and texts of the diagnosis are Chinese; quoted lines stay as they are."""
    out = run("explain", incident, "--lang", "zh").stdout
    assert "没有其他原因留有决定性证据" in section(out, "为什么是它")
    assert "Memory cgroup out of memory" in out
    assert not regex.search(r"(?m)^(Decisive|Supports|Rivals|Why)", out)


def test_the_last_argument_is_a_file_when_there_is_one(
    run: Run, incident: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file called `healthy` is read, not explained."""
    monkeypatch.chdir(tmp_path)
    Path("healthy").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    out = run("explain", incident / "dmesg-T.txt", "healthy").stdout
    assert out.startswith("Incident I1")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("F9999", "no finding is called F9999"),
        ("gpu_oom.wieghts", "did you mean gpu_oom.weights"),
        ("logs-previous.text:3", "did you mean logs-previous.txt"),
        ("no-such-folder/", "is no file, cause, finding or line"),
    ],
)
def test_a_subject_that_is_none_says_what_is(run: Run, incident: Path, subject: str, said: str) -> None:
    """Exit code 2, and what could have been meant."""
    result = run("explain", incident, subject)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_terminal_gets_wrapped_lines(run: Run, incident: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wider than the terminal, and continuation lines keep their indent."""
    monkeypatch.setattr(tables, "on_terminal", lambda output: output is None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    out = run("explain", incident).stdout
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b[" not in out


def leaves(table: Mapping[str, Any], path: str = "") -> dict[str, str]:
    found = {}
    for name, value in table.items():
        found |= leaves(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return found


def test_both_languages_say_the_same_things() -> None:
    """Same keys, same placeholders."""
    texts = {
        language: leaves(tomllib.loads((resources.templates() / f"explain.{language}.toml").read_text(encoding="utf-8")))
        for language in ("en", "zh")
    }
    assert texts["en"].keys() == texts["zh"].keys()
    for key, english in texts["en"].items():
        names = [sorted(set(regex.findall(r"\{(\w+)\}", text))) for text in (english, texts["zh"][key])]
        assert names[0] == names[1], key
