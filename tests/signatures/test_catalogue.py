"""The library as text: catalogue and confusion matrix are reviewed when they change."""

from __future__ import annotations

import pytest
import regex
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from forensics import resources
from forensics.model import Role
from forensics.pipeline import load_library
from forensics.signatures import cause_file, law, schema, signature_file
from forensics.signatures.catalogue import BEGIN, catalogue, confusion, renewed
from forensics.signatures.fields import CONVERTERS
from forensics.signatures.model import CHANNELS, PHASES, STATUSES
from forensics.signatures.reader import Reader

LIBRARY = load_library()


class TextExtension(SingleFileSnapshotExtension):
    """One snapshot, one `.txt` file."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def text_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TextExtension)


def test_confusion_matrix(text_snapshot: SnapshotAssertion) -> None:
    """All signatures × all examples: own examples behave, others fire only where it is declared."""
    assert confusion(LIBRARY) == text_snapshot


def test_catalogue(text_snapshot: SnapshotAssertion) -> None:
    """Nothing is added, lost or changes its role unseen."""
    rows = (
        f"{s.id}  {s.role}  {s.severity}  {'+'.join(s.channels)}  {s.title}  {s.title_zh}"
        for s in sorted(LIBRARY.signatures.values(), key=lambda s: s.id)
    )
    assert "\n".join(rows) + "\n" == text_snapshot


def test_matrix_shows_a_stranger() -> None:
    """The matrix is computed, not assumed: its off-diagonal entries are the crossings of the law."""
    crossings = {(owner.id, hit.signature.id) for owner, _, hit in law.crossings(LIBRARY, LIBRARY.signatures, declared=True)}
    rows = confusion(LIBRARY).splitlines()
    assert crossings
    for owner, stranger in crossings:
        assert any(row.startswith(f"{owner}  ") and f"also {stranger} " in row for row in rows)


def test_readme_holds_the_catalogue() -> None:
    """`oomforensics patterns catalogue --write` was run after the last change."""
    readme = (resources.patterns() / "README.md").read_text(encoding="utf-8")
    assert renewed(readme, LIBRARY) == readme


def test_catalogue_lists_everything() -> None:
    """Every signature and every cause has a row."""
    text = catalogue(LIBRARY)
    assert all(f"| `{name}` |" in text for name in (*LIBRARY.signatures, *LIBRARY.causes))


def test_renewing_needs_the_marks() -> None:
    """A README without marks is not overwritten."""
    with pytest.raises(ValueError, match="marks"):
        renewed("# nothing here", LIBRARY)
    with pytest.raises(ValueError, match="marks"):
        renewed(f"{BEGIN} no end", LIBRARY)


@pytest.mark.parametrize("path", schema.FILES)
def test_committed_schemas_are_the_generated_ones(path: str) -> None:
    """`oomforensics patterns catalogue --write` was run after the last change."""
    assert (resources.patterns() / path).read_text(encoding="utf-8") == schema.texts()[path]


README = (resources.patterns() / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [signature_file.KEYS, signature_file.VERSION_KEYS, signature_file.PATTERN_KEYS, signature_file.EXAMPLE_KEYS,
     cause_file.KEYS, tuple(CONVERTERS), CHANNELS, STATUSES, tuple(role.value for role in Role), PHASES[1:]],
    ids=["signature", "versions", "patterns", "examples", "cause", "converters", "channels", "statuses", "roles", "phases"],
)  # fmt: skip
def test_field_reference_is_complete(words: tuple[str, ...]) -> None:
    """Every key and every choice is explained by hand."""
    reference = README.partition(BEGIN)[0]
    missing = [word for word in words if not any(f"`{mark}" in reference for mark in (f"{word}`", f"{word} =", f"{word}.en`", f"[[{word}]]`"))]
    assert missing == []


def test_rules_for_regexes_are_told_truly() -> None:
    """What the README calls refused is refused, what it recommends is not."""
    rows = [row for row in README.splitlines() if row.startswith("| ") and row.count(" | ") == 2]
    rules = rows[rows.index("| rule | refused | instead |") + 1 :][:7]
    columns = [[c.replace("\\|", "|") for c in regex.split(r"(?<!\\)\|", row)] for row in rules]
    refused = [found for c in columns for found in regex.findall(r"`([^`]+)`", c[2])]
    allowed = [found for c in columns for found in regex.findall(r"`([^`]+)`", c[3])]
    assert len(refused) >= 15
    assert len(allowed) >= 4
    for text in refused:
        assert problems_of(text), text
    for text in allowed:
        assert not problems_of(text), text


def problems_of(text: str) -> list[str]:
    reader = Reader(resources.patterns(), "x/y.toml")
    signature_file.compile_regex(reader, "regex", text)
    return [problem.reason for problem in reader.problems]
