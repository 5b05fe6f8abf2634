"""Patterns are compiled late: none may be wrong, and none may differ from a compiled one."""

from __future__ import annotations

import gc
import importlib
import pkgutil

import pytest
import regex

import forensics
from forensics.regexes import Late, lazy_re, lazy_regex


def test_every_pattern_compiles() -> None:
    for module in pkgutil.walk_packages(forensics.__path__, "forensics."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    late = [thing for thing in gc.get_objects() if isinstance(thing, Late)]
    assert len(late) > 500
    for pattern in late:
        assert pattern.pattern


@pytest.mark.parametrize("make", [lazy_re, lazy_regex])
def test_a_late_pattern_is_one(make) -> None:  # type: ignore[no-untyped-def]
    pattern = make(r"(?P<n>\d+)")
    assert pattern.search("a 12")["n"] == "12"
    assert pattern.sub("x", "1 2", count=1) == "x 2"
    assert [found[0] for found in pattern.finditer("1 2")] == ["1", "2"]
    assert pattern.groupindex == {"n": 1}


def test_a_wrong_pattern_raises_at_its_first_use() -> None:
    pattern = lazy_regex("(")
    with pytest.raises(regex.error):
        pattern.search("x")
