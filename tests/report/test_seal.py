"""A report stands on its bundle, byte for byte, or says where it does not."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from forensics.report import Report, seal
from forensics.report.gate import Gate
from forensics.report.render import prepare, write


@pytest.fixture(scope="module")
def document(report: Report, folder: Path) -> dict[str, Any]:
    return json.loads(write(prepare(seal.sealed(report, [str(folder)])), "json"))


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_digests_are_those_of_the_bytes_in_the_file(document: dict[str, Any], folder: Path) -> None:
    """What `sed -n 'A,Bp' FILE | sha256sum` prints, for every finding."""
    assert document["findings"]
    for finding in document["findings"]:
        where = finding["locator"]
        lines = (folder / where["source"]).read_bytes().splitlines(keepends=True)
        evidence = b"".join(lines[where["line_start"] - 1 : where["line_end"]])
        assert where["sha256"] == hashlib.sha256(evidence).hexdigest()


def test_an_untouched_bundle_holds_in_any_wrapping(document: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """As a folder and as an archive with a top folder."""
    assert seal.check(document, [str(folder)]).intact
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as archive:
        archive.add(folder, arcname="anything")
    found = seal.check(document, [str(tmp_path / "b.tgz")])
    assert found.intact
    assert not found.added


def test_one_changed_byte_names_its_claims_and_no_others(document: dict[str, Any], copy: Path) -> None:
    """The line of the root cause is altered: its findings fail, first of all the root; the rest of the file holds."""
    log = copy / "logs/engine.log"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[18] = lines[18].replace(b"512.00", b"513.00")
    log.write_bytes(b"".join(lines))
    found = seal.check(document, [str(copy)])
    assert found.sources["logs/engine.log"] == seal.CHANGED
    failed = seal.failed(found.claims)
    assert {(c.source, c.line) for c in failed} == {("logs/engine.log", 19)}
    assert failed[0].used_as == "root"
    assert not found.intact


def test_a_missing_file_and_a_new_one_are_named(document: dict[str, Any], copy: Path) -> None:
    """Claims on a missing file fail; a new file fails nothing and is listed."""
    (copy / "node/journal.txt").rename(copy / "other.txt")
    (copy / "other.txt").write_text("something else\n", encoding="utf-8")
    found = seal.check(document, [str(copy)])
    assert found.sources["node/journal.txt"] == seal.MISSING
    assert found.added == ("other.txt",)
    assert {c.state for c in found.claims if c.source == "node/journal.txt"} == {seal.MISSING}


def test_a_renamed_file_is_found_by_its_content(document: dict[str, Any], copy: Path) -> None:
    """Evidence does not depend on names."""
    (copy / "logs/engine.log").rename(copy / "logs/renamed.log")
    assert seal.check(document, [str(copy)]).intact


def test_a_report_with_pseudonyms_can_be_verified(report: Report, folder: Path) -> None:
    """Strict redaction hides names, not the proof."""
    data = prepare(seal.sealed(report, [str(folder)]), "en", Gate("strict"))
    assert seal.check(data, [str(folder)]).intact


def test_truncation_fails_the_lines_that_are_gone(document: dict[str, Any], copy: Path) -> None:
    """A file that ends early loses the claims behind its end, and only those."""
    log = copy / "logs/engine.log"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:20]))
    lost = {c.line for c in seal.failed(seal.check(document, [str(copy)]).claims) if c.source == "logs/engine.log"}
    assert lost
    assert min(lost) > 20


def test_standard_input_stays_unsealed(report: Report) -> None:
    """It cannot be read twice: digests are null, and a changed file leaves such claims unchecked."""
    data = prepare(seal.sealed(report, ["-"]))
    assert {finding["locator"]["sha256"] for finding in data["findings"]} == {None}


def test_lines_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks may end anywhere, also in the middle of a wanted line, and the last line may lack its end."""
    from forensics.bundle import Member

    original = Member.blocks
    monkeypatch.setattr(Member, "blocks", lambda self: original(self, 7))
    (tmp_path / "x.txt").write_bytes(b"one\ntwo is long\r\nthree\nfour")
    wanted = {"x.txt": {(1, 1), (2, 3), (4, 4), (5, 5)}}
    (read,) = seal._read([str(tmp_path / "x.txt")], wanted, None)
    expected = {(1, 1): b"one\n", (2, 3): b"two is long\r\nthree\n", (4, 4): b"four"}
    assert read.spans == {span: hashlib.sha256(data).hexdigest() for span, data in expected.items()}
