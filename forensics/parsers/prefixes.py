"""Whose line it is, where that stands in front of every line and can be told only from the file: stern, kail, kubetail.

`vllm-0 vllm message` (stern; with `-A` the namespace before it), `llm/vllm-0[vllm]: message` (kail),
`[vllm-0 vllm] message` (kubetail). One such line may be anything; a file in which nearly all lines begin with few such
names was made by one of these tools, and then also the lines of a traceback lose them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from ..model import Scope
from ..regexes import lazy_regex
from ..sources import mostly, owner
from .layer import UNKNOWN, clean
from .records import Record, unwrap

_NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_POD = r"(?P<pod>[a-z0-9](?:[a-z0-9.-]{0,250}?)-(?:\d{1,4}|[a-z0-9]{5}))"
_SHAPES = tuple(
    lazy_regex(pattern + r"(?P<rest>.*)", regex.DOTALL)
    for pattern in (
        rf"(?:(?P<namespace>{_NAME}) )?{_POD} (?P<container>{_NAME})(?: |$)",
        rf"(?P<namespace>{_NAME})/{_POD}\[(?P<container>{_NAME})\]: ?",
        rf"\[{_POD}(?: (?P<container>{_NAME}))?\](?: |$)",
    )
)
_HEADING = lazy_regex(r"==> (?P<path>\S*/\S+) <==")
_OWNER = frozenset({"namespace", "pod", "container"})
_FOLLOWED = lazy_regex(r"[+-] .{1,600} [›>] .{1,200}")
"""stern's notes on the pods that it begins and ends to follow."""
MIN_LINES = 3
MIN_SHARE = 0.75
MAX_OWNERS = 200


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How the lines of one file begin."""

    shape: regex.Pattern[str]
    owners: frozenset[Scope]

    def unwrap(self, raw: str, number: int = 0, count: int = 1, last: int = 0) -> Record:
        """A record whose owner is named by the prefix; a line of another form is read as it is."""
        found = self.shape.match(clean(raw))
        scope = _scope(found) if found else Scope()
        if found is None or scope not in self.owners:
            record = unwrap(raw, number, count, last)
            return replace(record, text="") if _FOLLOWED.fullmatch(record.text) else record
        record = unwrap(found["rest"], number, count, last, output=True)
        envelopes, owned = ("stern", *record.envelopes), record.scope.merged(scope)
        return replace(record, raw=raw, envelopes=envelopes, scope=owned)


def _scope(found: regex.Match[str]) -> Scope:
    return Scope.from_parts({name: value for name, value in found.groupdict().items() if name in _OWNER})


def with_headings(records: Iterable[Record]) -> list[Record]:
    """Lines below `==> /var/log/pods/…/3.log <==` of head and tail belong to whom the path names."""
    settled: list[Record] = []
    section = UNKNOWN
    for record in records:
        if record.text.startswith("==> ") and (found := _HEADING.fullmatch(record.text.strip())):
            section = owner(found["path"])
        elif section is not UNKNOWN:
            record = replace(record, scope=record.scope.merged(section))
        settled.append(record)
    return settled


@lru_cache(maxsize=1)
def of_lines(lines: tuple[str, ...]) -> Prefixes | None:
    """The prefix that some lines agree on, if any. Asked when a file is recognised, and when it is read."""
    texts = [text for line in lines if (text := clean(line)).strip()]
    texts = [text for text in texts if not _FOLLOWED.fullmatch(text)]
    if len(texts) < MIN_LINES:
        return None
    for shape in _SHAPES:
        if not mostly(shape.match, texts, MIN_SHARE):
            continue
        found = [match for text in texts if (match := shape.match(text)) is not None]
        owners = Counter(map(_scope, found))
        headed = sum(bool(unwrap(match["rest"], output=True).envelopes) for match in found)
        few = len(owners) <= min(MAX_OWNERS, max(1, len(found) // 2))
        if few and headed >= 0.2 * len(found):
            return Prefixes(shape, frozenset(owners))
    return None
