"""Patterns of modules, compiled when the first text is held against them.

A bundle meets a third of the formats; compiling the patterns of all others took a third of the time to start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import regex

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")


class Late:
    """Stands for a compiled pattern; from the first use on its methods are the pattern's own, and as fast."""

    __slots__ = ("_compile", *_METHODS)

    def __init__(self, compile_now: Callable[[], Any]) -> None:
        self._compile = compile_now

    def __getattr__(self, name: str) -> Any:
        compiled = self._compile()
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_re(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, later: for patterns that `re` is faster at. A wrong one raises at its first use."""
    return cast("re.Pattern[AnyStr]", Late(lambda: re.compile(pattern, flags)))


def lazy_regex(pattern: AnyStr, flags: int = 0) -> regex.Pattern[AnyStr]:
    """`regex.compile`, later; the module too is loaded then."""

    def compile_now() -> Any:
        import regex

        return regex.compile(pattern, flags)

    return cast("regex.Pattern[AnyStr]", Late(compile_now))
