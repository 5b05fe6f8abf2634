"""README.md cannot lie: its report and its help text are real output."""

from __future__ import annotations

import readme


def test_readme_shows_real_output() -> None:
    """The blocks between the markers equal what the program prints; `python tests/readme.py` renews them."""
    text = readme.README.read_text(encoding="utf-8")
    assert readme.filled(text) == text
