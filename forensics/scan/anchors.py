"""Lines that hold one of many literals, as expressions of polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from .lines import SeriesSpec, Window

_MOST_CHARS = 200_000
"""Length of an alternation up to which it is compiled; far below the limit of Rust's `regex`."""

_BATCH_TEXTS = 8192


@dataclass(frozen=True, slots=True)
class Tests:
    """What lines (column `t`) are asked."""

    worth: pl.Expr
    """Does it hold an anchor, open a window, or may it belong to a series?"""
    anchored: pl.Expr
    """Does it hold an anchor or open a window?"""
    opening: pl.Expr
    """Does it open a window?"""


@lru_cache(maxsize=32)
def tests(anchors: frozenset[str], windows: tuple[Window, ...], series: tuple[SeriesSpec, ...]) -> Tests:
    """Made once for all members of a bundle: small files are many."""
    openings = frozenset(window.opening for window in windows)
    wanted = anchors | openings
    return Tests(
        holds_any(wanted | {spec.anchor for spec in series if spec.anchor}), holds_any(wanted), holds_any(openings)
    )


def holds_any(literals: frozenset[str]) -> pl.Expr:
    """True for lines that hold one of the literals.

    One regex of all literals runs at the speed of ripgrep, `contains_any` at a third of it; but a regex has a limit.
    """
    line = pl.col("t").str
    if not literals:
        return pl.lit(False)
    if sum(map(len, literals)) > _MOST_CHARS:
        return line.contains_any(sorted(literals))
    return line.contains("|".join(map(pl.escape_regex, sorted(literals))))


def literals_in(texts: Sequence[str], literals: Iterable[str]) -> Iterator[list[str]]:
    """For each text the literals that it holds, some perhaps twice. Raises `UnicodeEncodeError` for half characters."""
    wanted = list(literals)
    for start in range(0, len(texts), _BATCH_TEXTS):
        batch = pl.Series(texts[start : start + _BATCH_TEXTS], dtype=pl.String)
        yield from batch.str.extract_many(wanted, overlapping=True).to_list()
