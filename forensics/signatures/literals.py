"""Which of many literals a text holds, without looking for each of them.

For texts that are few or short; lines by the million are for polars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

_GRAM = 4
"""Characters of the fragment that stands for a literal."""


class Literals:
    """Every literal is filed under one of its fragments, the one that fewest others have; a text is cut into its
    fragments once, and only literals whose fragment it holds are looked for."""

    def __init__(self, literals: Iterable[str]) -> None:
        wanted = sorted(set(literals))
        common = Counter(gram for literal in wanted for gram in _grams(literal))
        self._short = tuple(literal for literal in wanted if len(literal) < _GRAM)
        self._filed: dict[str, list[str]] = {}
        for literal in wanted:
            if len(literal) >= _GRAM:
                rarest = min(_grams(literal), key=lambda gram: (common[gram], gram))
                self._filed.setdefault(rarest, []).append(literal)
        self._known = frozenset(self._filed)

    def found(self, text: str) -> Iterator[str]:
        """The literals that stand in a text, each once, in no order that means anything."""
        for literal in self._short:
            if literal in text:
                yield literal
        for gram in self._known & _grams(text):
            for literal in self._filed[gram]:
                if literal in text:
                    yield literal


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}
