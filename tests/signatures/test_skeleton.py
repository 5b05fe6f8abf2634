"""A signature out of one pasted line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forensics.pipeline import load_library
from forensics.signatures import Library
from forensics.signatures.skeleton import quote, skeleton
from forensics.signatures.user import overlay

BASE = load_library()
LINE = (
    "(EngineCore_DP0 pid=117) ERROR 11-29 21:25:17 [core.py:842] RuntimeError: gateway node 10.0.0.7: buffers 1,024 of "
    "2.50 GiB used at 0x1f, 87% full after 3.5s, job 9b1f5d3c7e8a0b12"
)


def test_header_channel_and_fields() -> None:
    """Headers go, the channel stays, numbers become typed fields named after the words before them."""
    data = tomllib.loads(skeleton(LINE, "acme.buffers"))
    (pattern,) = data["patterns"]
    example = data["examples"][0]
    assert data["id"] == "acme.buffers"
    assert data["channels"] == ["engine"]
    assert example["text"].startswith("RuntimeError: gateway node")
    assert example["fields"] == {
        "gateway_node": "10.0.0.7", "buffers": 1024, "of_gib": 2.5, "used_at": 31, "value_pct": 87, "full_after_s": 3.5,
        "job": "9b1f5d3c7e8a0b12",
    }  # fmt: skip
    assert pattern["types"]["of_gib"] == "gib"
    assert data["anchors"] == ["gateway node"]


@pytest.mark.parametrize(
    ("line", "channel"),
    [("[   39.447599] acme: card 3 lost", "kernel"), ("I1102 06:00:00.123456    1184 a.go:64] acme 3 lost", "kubelet"),
     ('time="2026-11-02T06:00:00.1Z" level=info msg="acme 3 lost"', "runtime"), ("acme 3 lost", "engine")],
)  # fmt: skip
def test_speaker(line: str, channel: str) -> None:
    """Who speaks is read from the header; a bare line is taken for the engine's."""
    assert tomllib.loads(skeleton(line))["channels"] == [channel]
    assert tomllib.loads(skeleton(line, channel="oomd"))["channels"] == ["oomd"]


def test_what_is_missing_is_listed_until_it_is_there(tmp_path: Path) -> None:
    """From a line to a sound signature: one file, and the law says what it lacks."""
    path = tmp_path / "acme" / "buffers.toml"
    path.parent.mkdir()
    text = skeleton(LINE, "acme.buffers")

    def missing() -> list[str]:
        path.write_text(text, encoding="utf-8")
        return [problem.key for problem in overlay(BASE, tmp_path).problems]

    assert missing() == ["title.en", "title.zh", "role", "versions.1.program", "description", "examples.2.text"]
    for old, new in (('title.en = ""', 'title.en = "Buffers"'), ('title.zh = ""', 'title.zh = "缓冲区"'),
                     ('role = ""', 'role = "symptom"'), ('program = ""', 'program = "acme"'),
                     ('description = ""', 'description = "x"'),
                     ('text = ""', "text = '''gateway node 10.0.0.7: buffers free'''")):  # fmt: skip
        before, text = len(missing()), text.replace(old, new)
        assert len(missing()) == before - 1, new
    assert missing() == []


def test_a_line_without_text_has_no_anchor(tmp_path: Path) -> None:
    """Nothing to hold on to: the law says so."""
    (tmp_path / "my").mkdir()
    (tmp_path / "my/new.toml").write_text(skeleton("12"), encoding="utf-8")
    problems = overlay(Library({}, {}), tmp_path).problems
    assert "anchors" in {problem.key for problem in problems}


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=200).filter(str.strip))
@example("used \U000116d0\U000116d1 blocks")
def test_any_line_gives_valid_toml(line: str) -> None:
    """Whatever is pasted: the file can be read, and its regex matches its own example."""
    data = tomllib.loads(skeleton(line.replace("\n", " ") or "x"))
    assert data["patterns"][0]["name"] == "core"


@given(st.text(max_size=60))
def test_quoting_keeps_the_text(text: str) -> None:
    """A TOML string of any text reads back as that text."""
    text = text.replace("\r", "")
    quoted = quote(text)
    assert tomllib.loads(f"x = {quoted}")["x"] == text
