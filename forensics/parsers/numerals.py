"""Whole numbers in text that nobody vouches for."""

from __future__ import annotations


def is_whole(text: str) -> bool:
    """Whether a text is a whole number that any machine counts with: 1 to 18 ASCII digits.

    `str.isdigit` also takes digits that `int` refuses (`²`), and thousands of them.
    """
    return 0 < len(text) <= 18 and text.isascii() and text.isdigit()
