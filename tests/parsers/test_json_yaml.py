"""JSON and YAML keep their line numbers, and give what stands before a damage."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
import yaml

from forensics.parsers import json_yaml
from forensics.parsers.json_yaml import read_json, read_yaml
from forensics.parsers.located import dig, int_at, line_at, objects_at, text_at

POD = {
    "kind": "Pod",
    "metadata": {
        "name": "vllm-llama-0",
        "labels": {"odd": 'quo"te \\ and ü', "n": None, "t": True, "f": 1.5},
    },
    "status": {"containerStatuses": [{"name": "vllm", "exitCode": -1}, {"name": "proxy", "exitCode": 137}]},
}


def test_json_values_equal_the_standard_library() -> None:
    """Whatever json.loads reads, the reader reads in the same way, pretty printed or in one line."""
    for text in (json.dumps(POD), json.dumps(POD, indent=4, ensure_ascii=False)):
        (document,) = read_json(text)
        assert document.value == json.loads(text)
        assert document.problem == ""


def test_json_lines_of_keys_and_items() -> None:
    """A path leads to the line where its key or item stands; a broken path to the last part that exists."""
    text = '{\n  "a": {\n    "b": [\n      1,\n      {"c": 2}\n    ]\n  }\n}'
    (document,) = read_json(text)
    assert line_at(document.value, "a", "b") == 3
    assert line_at(document.value, "a", "b", 1) == 5
    assert line_at(document.value, "a", "b", 1, "c") == 5
    assert line_at(document.value, "a", "x", "y") == 2


def test_several_json_documents() -> None:
    """Documents follow each other, with other text in between, each with its first line."""
    text = '$ kubectl get pod -o json\n{"a": 1}\n{"b": 2}{"c": 3}\nwarning: something\n[4]\n'
    documents = list(read_json(text))
    assert [d.value for d in documents] == [{"a": 1}, {"b": 2}, {"c": 3}, [4]]
    assert [d.line for d in documents] == [2, 3, 3, 5]


@pytest.mark.parametrize("cut", range(1, len(json.dumps(POD)) - 1, 7))
def test_cut_json_keeps_what_stands_before(cut: int) -> None:
    """A document cut anywhere is reported as cut, and holds no value that the whole one does not hold."""
    (document,) = read_json(json.dumps(POD)[:cut])
    assert document.problem
    assert _is_part(document.value, POD)


def test_torn_number_is_not_believed() -> None:
    """`13` at the very end may be the beginning of 137."""
    (document,) = read_json('{"reason": "Error", "exitCode": 13')
    assert document.value == {"reason": "Error"}


def test_broken_json_does_not_hide_the_next_document() -> None:
    """After damage, reading goes on at the next document that begins a line."""
    first, second = read_json('{"a": 1, oops}\n{"b": 2}\n')
    assert first.value == {"a": 1}
    assert "oops" in first.problem
    assert second.value == {"b": 2}
    assert second.line == 2


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and _is_part(v, whole[k]) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(_is_part(a, b) for a, b in zip(part, whole, strict=False))
    return bool(part == whole)


YAML = """\
apiVersion: v1
kind: Pod
metadata:
  name: "0123"
  annotations:
    note: |
      line one
      line two
spec:
  containers:
  - name: vllm
    args: ["--port", "8000"]
    weight: 1.5
    ready: false
    none: null
"""


@pytest.fixture(params=["c", "python"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(json_yaml, "_LOADER", yaml.SafeLoader)


@pytest.mark.usefixtures("_loader")
def test_yaml_values_and_lines() -> None:
    """kubectl's YAML reads as PyYAML's safe loader reads it, with lines, with and without libyaml."""
    (document,) = read_yaml(YAML)
    assert document.value == yaml.safe_load(YAML)
    assert line_at(document.value, "spec", "containers", 0, "args", 1) == 12
    assert line_at(document.value, "metadata", "annotations", "note") == 6


@pytest.mark.usefixtures("_loader")
def test_yaml_documents_are_independent() -> None:
    """A broken document is reported with its line; those around it are read, and lines go on counting."""
    first, broken, last = read_yaml("a: 1\n---\nb: [1, 2\nc: }\n---\nd: 4\n")
    assert (first.value, last.value) == ({"a": 1}, {"d": 4})
    assert broken.problem
    assert broken.problem_line >= 3
    assert line_at(last.value, "d") == 6


def test_yaml_alias_bomb_costs_nothing() -> None:
    """Ten levels of nine aliases are references, not three billion copies; a self-reference is nothing."""
    letters = "abcdefghijk"
    bomb = "a: &a [x]\n" + "".join(
        f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]\n" for p, c in pairwise(letters)
    )
    began = time.monotonic()
    (document,) = read_yaml(bomb)
    assert time.monotonic() - began < 1
    assert document.problem == ""
    (loop,) = read_yaml("&a [*a]\n")
    assert loop.value == [None]


def test_yaml_merge_keys() -> None:
    """Compose files share settings by `<<`; the mapping's own keys win."""
    (document,) = read_yaml("x: &base {a: 1, b: 2}\ny:\n  <<: *base\n  b: 3\n")
    assert document.value["y"] == {"a": 1, "b": 3}


def test_yaml_runs_no_tags() -> None:
    """A tag that would make PyYAML build an object is plain text here."""
    (document,) = read_yaml("a: !!python/object/apply:os.system ['true']\nb: !!int '5'\n")
    assert document.value == {"a": ["true"], "b": "5"}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_nesting_is_refused(text: str) -> None:
    """Nesting without end ends with a problem, not with a crash."""
    (json_document,) = read_json(text)
    assert "nested deeper" in json_document.problem
    (yaml_document,) = read_yaml(text)
    assert yaml_document.problem


def test_access_never_fails() -> None:
    """Paths through values of the wrong type lead to nothing."""
    (document,) = read_json('{"a": "text", "b": [1], "c": {"d": "12"}, "e": true}')
    value = document.value
    assert dig(value, "a", "b", 3) is None
    assert objects_at(value, "b") == []
    assert int_at(value, "c", "d") == 12
    assert int_at(value, "e") is None
    assert text_at(value, "e") == "true"
    assert text_at(value, "c") == ""
