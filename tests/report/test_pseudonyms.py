"""Strict redaction: names vanish, and the same name is the same everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.report import Report, pseudonyms
from forensics.report.gate import Gate
from forensics.report.pseudonyms import Pseudonyms
from forensics.report.render import prepare, write

POD = "chat-7b-6d5f4c7b9d-x2x4z"
NAMES = (POD, "chat-7b", "gpu-node-7", "serving/", "Atlas-7B", "acme", "10.1.2.3", "10.1.2.9", "engine.log")


def test_no_name_is_left_in_any_format(report: Report) -> None:
    """Hosts, pods, workloads, models, addresses, files and the bundle's own name are gone; lines and times stay."""
    for language in ("en", "zh"):
        data = prepare(report, language, Gate("strict"))
        for form in ("md", "json", "csv", "html"):
            shown = write(data, form)
            assert not [name for name in NAMES if name in shown], form
            assert ":19" in shown or form in ("json", "csv")


def test_pseudonyms_are_the_same_in_every_format_and_language(report: Report) -> None:
    """One value, one name."""
    one, other = Gate("strict"), Gate("strict")
    prepare(report, "en", one)
    prepare(report, "zh", other)
    assert one.names.table == other.names.table
    assert one.names.table["pod"][POD] == "pod-1"


def test_the_map_keeps_names_over_runs(report: Report, tmp_path: Path) -> None:
    """A second report with the map of the first uses the same names, and adds to them."""
    first = Gate("strict")
    prepare(report, "en", first)
    path = tmp_path / "map.json"
    path.write_text(pseudonyms.dump(first.names), encoding="utf-8")
    known = pseudonyms.load(path)
    known.learn("host", "gpu-node-99")
    assert known.name("host", "gpu-node-7") == first.names.name("host", "gpu-node-7")
    assert known.name("host", "gpu-node-99") not in first.names.table["host"].values()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"names": 3}', "\x00"])
def test_a_file_that_is_no_map_is_refused(content: str, tmp_path: Path) -> None:
    """Nothing of the user's is overwritten by mistake."""
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ForensicsError, match="no map of pseudonyms"):
        pseudonyms.load(path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Get http://10.2.3.4:8000/health from 10.2.3.4", "Get http://ip-1:8000/health from ip-1"),
        ("listen on 0.0.0.0 and 127.0.0.1 and ::1", "listen on 0.0.0.0 and 127.0.0.1 and ::1"),
        ("peer fd00:10:244::1a down", "peer ip-1 down"),
        ("at 02:41:10 std::bad_alloc in VLLM::Worker, bus 0000:a8:00.0", "at 02:41:10 std::bad_alloc in VLLM::Worker, bus 0000:a8:00.0"),
        ("mounted /data/team-x/models read-only", "mounted /path-1 read-only"),
        ("File /usr/lib/python3.12/site.py, GET /v1/models", "File /usr/lib/python3.12/site.py, GET /v1/models"),
        ("sudo: jdoe : USER=root", "sudo: user-1 : USER=root"),
        ("pull from hub.corp.example.com, see https://pytorch.org/docs", "pull from host-1, see https://pytorch.org/docs"),
        ("core.py:710 and vllm.service 1.2.3", "core.py:710 and vllm.service 1.2.3"),
    ],
)  # fmt: skip
def test_names_are_found_by_their_form(text: str, shown: str) -> None:
    """Addresses, paths, users and hosts of quoted lines; clocks, C++ names and system paths are none."""
    assert Pseudonyms().apply(text)[0] == shown


def test_names_that_are_plain_words_are_replaced_only_in_their_place() -> None:
    """A namespace called `inference` must not eat the word."""
    names = Pseudonyms()
    names.learn("namespace", "inference")
    shown = names.apply('inference engine log; kubectl -n inference get; pod="inference/a-1"; pod a_inference(6b)')[0]
    assert shown == 'inference engine log; kubectl -n namespace-1 get; pod="namespace-1/a-1"; pod a_namespace-1(6b)'


def test_pseudonyms_are_not_renamed_again() -> None:
    """A real pod that is called `pod-2` gets a name like any other, in one pass."""
    names = Pseudonyms()
    names.learn("pod", "alpha-0")
    names.learn("pod", "pod-1")
    assert names.apply("alpha-0 pod-1")[0] == "pod-1 pod-2"
    assert json.loads(pseudonyms.dump(names))["names"]["pod"] == {"alpha-0": "pod-1", "pod-1": "pod-2"}
