"""Broken pattern files: every problem of every file, with key, reason, place and hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.errors import LibraryError
from forensics.signatures import load
from forensics.signatures.library import read
from forensics.signatures.snippets import caret, find

GOOD = """\
id = "acme.gateway"
title.en = "Gateway out of buffers"
title.zh = "网关缓冲区耗尽"
status = "test"
severity = "error"
role = "symptom"
channels = ["engine"]
anchors = ["gateway: out of buffers"]
description = '''
The gateway has no buffers left.
role = "not a key, but text"
'''

[[versions]]
program = "acme"
range = "1.0"
source = "gateway.py"

[[patterns]]
name = "core"
regex = '''gateway: out of buffers \\((?P<used>\\d+) of (?P<size_gib>[\\d.]+ GiB)\\)'''
types = { used = "int", size_gib = "gib" }

[[examples]]
text = '''gateway: out of buffers (3 of 8.5 GiB)'''
match = "core"
fields = { used = 3, size_gib = 8.5 }

[[examples]]
text = '''gateway: out of buffers soon'''
match = false
"""


def write(root: Path, text: str, name: str = "acme/gateway.toml") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


def test_good_file_loads(tmp_path: Path) -> None:
    """The file that the cases below break is sound."""
    signature = load(write(tmp_path, GOOD)).signatures["acme.gateway"]
    assert signature.examples[0].fields == {"used": 3, "size_gib": 8.5}
    assert signature.description.startswith("The gateway")


CASES = [
    ('role = "symptom"', 'role = "villain"', "role", "is 'villain'", "one of: cause", 6),
    ("severity", "severty", "severty", "unknown key", "did you mean severity?", 5),
    ('id = "acme.gateway"', 'id = "acme.other"', "id", "the path demands 'acme.gateway'", "<family>/<name>.toml", 1),
    ('channels = ["engine"]', 'channels = ["engin"]', "channels", "unknown channel 'engin'", "known: engine", 7),
    ('channels = ["engine"]', "channels = []", "channels", "at least one entry", "", 7),
    ('anchors = ["gateway: out of buffers"]', 'anchors = "gateway"', "anchors", "list of non-empty strings", "[", 8),
    ('title.zh = "网关缓冲区耗尽"', 'title.fr = "passerelle"', "title.fr", "unknown key", "en, zh", 3),
    ('program = "acme"', 'program = ""', "versions.1.program", "must not be empty", "", 15),
    (r"out of buffers \((?P", "out of buffers ((?P", "patterns.core.regex", "is no valid regex", "literal string", 21),
    (r"(?P<used>\d+)", r"(?P<used>(\d+)+)", "patterns.core.regex", "nested repetition", "every round", 21),
    (r"(?P<used>\d+)", r"(?P<used>\d++)", "patterns.core.regex", "possessive", "time limit", 21),
    ('used = "int", ', "", "patterns.core.types.used", "has no type", "exactly the groups", 22),
    ('"gib" }', '"gigs" }', "patterns.core.types.size_gib", "unknown type 'gigs'", "known: bytes", 22),
    ('match = "core"', 'match = "kore"', "examples.1.match", "is 'kore'", "name of a pattern", 26),
    ("match = false", "", "examples.2.match", "is missing", "name of a pattern", 29),
    ('status = "test"', 'status = "test"\nquotable = "yes"', "quotable", "must be true or false", "", 5),
    ('name = "core"', 'name = "Core 1"', "patterns.Core 1.name", "is no name", "lower-case", 20),
]


@pytest.mark.parametrize(("old", "new", "key", "reason", "hint", "line"), CASES, ids=lambda value: str(value)[:20])
def test_each_defect_is_located(
    tmp_path: Path, old: str, new: str, key: str, reason: str, hint: str, line: int
) -> None:
    """Key, reason, hint, and the line with a caret."""
    assert GOOD.count(old) >= 1
    found = read(write(tmp_path, GOOD.replace(old, new, 1)))
    assert found.signatures == {}
    problem = next(p for p in found.problems if p.key == key)
    assert reason in problem.reason
    assert hint in problem.hint
    assert problem.path == "acme/gateway.toml"
    shown, marks = problem.snippet.split("\n")
    assert shown.startswith(f"{line} | ")
    assert "^" in marks


@pytest.mark.parametrize(
    ("text", "reason", "snippet"),
    [('id = "x\n', "is not valid TOML", "1 | id"), ("id = 1\nid = 2\n", "is not valid TOML", "2 | id"),
     ("[[patterns]\n", "is not valid TOML", "1 | [[pat"), ("x = [", "is not valid TOML", "1 | x"),
     ("a = " + "[" * 3000, "is nested too deeply", ""), ("#" * (1 << 20) + "\n#", "is larger than", "")],
    ids=lambda text: text[:14],
)  # fmt: skip
def test_unreadable_toml(tmp_path: Path, text: str, reason: str, snippet: str) -> None:
    """A syntax error shows its line; nothing raises."""
    (problem,) = read(write(tmp_path, text)).problems
    assert reason in problem.reason
    assert snippet in problem.snippet


def test_other_unreadable_files(tmp_path: Path) -> None:
    """Wrong encoding, a folder that is called like a file, a file outside of a family."""
    write(tmp_path, "x").joinpath("acme/bytes.toml").write_bytes(b'id = "a"\n\xff\n')
    (tmp_path / "acme/folder.toml").mkdir()
    write(tmp_path, GOOD, "stray.toml")
    write(tmp_path, GOOD, "acme/deep/er.toml")
    reasons = {problem.path: problem.reason for problem in read(tmp_path).problems}
    assert "not UTF-8: byte 0xff in line 2" in reasons["acme/bytes.toml"]
    assert "cannot be read" in reasons["acme/folder.toml"]
    assert "family's folder" in reasons["stray.toml"]
    assert "family's folder" in reasons["acme/deep/er.toml"]
    assert "not valid TOML" in reasons["acme/gateway.toml"]


def test_all_broken_files_are_reported(tmp_path: Path) -> None:
    """Not the first problem, not the first file."""
    for number in range(5):
        write(tmp_path, GOOD.replace("symptom", "villain").replace('severity = "error"', "severity = 3"), f"acme/f{number}.toml")
    with pytest.raises(LibraryError) as caught:
        load(tmp_path)
    assert len(caught.value.problems) == 15  # id, role and severity in each
    assert str(caught.value).startswith("15 problems in the pattern library\nacme/f0.toml: id: ")


def test_dangling_names(tmp_path: Path) -> None:
    """`overlaps` and the evidence of causes must name something; a broken file that exists is not reported twice."""
    write(tmp_path, GOOD.replace("[[versions]]", 'overlaps = ["acme.nothing", "acme.broken"]\n[[versions]]', 1))
    write(tmp_path, "x = ", "acme/broken.toml")
    problems = []
    try:
        load(tmp_path)
    except LibraryError as error:
        problems = [str(problem) for problem in error.problems]
    assert len(problems) == 2
    assert any("no signature is called 'acme.nothing'" in problem for problem in problems)


def test_places_of_keys() -> None:
    """Keys inside a multi-line string are text; tables are called by number and by name."""
    assert find(GOOD, "role") == 6
    assert find(GOOD, "patterns.core.types.used") == 22
    assert find(GOOD, "patterns.1.regex") == 21
    assert find(GOOD, "examples.2.text") == 30
    assert find(GOOD, "examples.2.fields.used") == 29
    assert find(GOOD, "nothing") is None


def test_caret_fits_long_and_wide_text() -> None:
    """A window around the place; Chinese characters take two columns; control characters are not printed."""
    shown, marks = caret("x" * 300 + "HERE" + "y" * 300, 300, 304, 7).split("\n")
    assert len(shown) < 120
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "HERE"
    assert caret("中文ab", 2, 3).split("\n")[1] == "    ^"
    assert "\x1b" not in caret("a\x1b[31mb", 0)
    assert caret("one\ntwo", 4, 7) == "two\n^^^"
