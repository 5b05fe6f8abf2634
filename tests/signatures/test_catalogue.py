"""The library as text: catalogue and confusion matrix are reviewed when they change."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from forensics import resources
from forensics.pipeline import load_library
from forensics.signatures import law, schema
from forensics.signatures.catalogue import BEGIN, catalogue, confusion, renewed

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
