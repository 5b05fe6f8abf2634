"""What was changed: unified diffs, as diff, git, `kubectl diff` and `helm diff upgrade` print them.

Each added or removed line is a `change`, on the channel `notes`: it says what an operator did, not what happened, so
no signature looks at it. helm diff (databus23/helm-diff 3) heads each object with `ns, name, Kind (group) has …:`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import regex

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head, mostly
from .layer import clean, cleaned
from .notes import CHANNEL

MAX_CHANGES = 2000
_HELM = lazy_regex(
    r"(?P<namespace>[\w.-]*), (?P<name>[\w.:-]+), (?P<kind>\w+) \((?P<group>[\w./-]*)\) "
    r"has (?:changed|been added|been removed)"
    r"(?:, but diff is empty after suppression\.?|:)?\s*"
)
_FILE = lazy_regex(
    r"(?:diff (?:--git |-[\w-]+ )?.*|--- (?P<old>\S.*)|\+\+\+ (?P<new>\S.*)|index [0-9a-f]+\.\.[0-9a-f]+.*)"
)
_HUNK = lazy_regex(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
_KEPT = (" ", "+", "-", "@@", "diff ", "index ", "...")
"""How lines of a diff begin."""
_SIGNED = lazy_regex(r"(?P<sign>[+-])(?P<text>.*)", regex.DOTALL)


def read(text: str, source: str) -> Parsed:
    """One `change` for each line added or removed: `sign`, `object` (helm's heading or the file's name)."""
    return Parsed(tuple(_changes(text.split("\n"), source)))


def _changes(lines: Sequence[str], source: str) -> Iterator[Event]:
    subject, scope, told = "", Scope(), 0
    for number, line in enumerate(map(clean, lines), 1):
        if helm := _HELM.fullmatch(line):
            subject, scope = f"{helm['kind']} {helm['name']}", Scope(namespace=helm["namespace"])
        elif file := _FILE.fullmatch(line):
            named = (file["new"] or file["old"] or "").partition("\t")[0]
            if named and named != "/dev/null":
                subject, scope = named.removeprefix("a/").removeprefix("b/"), Scope()
        elif (found := _SIGNED.fullmatch(line)) and found["text"].strip() and told < MAX_CHANGES:
            told += 1
            fields = {"sign": found["sign"], **({"object": subject} if subject else {})}
            yield Event(
                Locator(source, number, number), "change", CHANNEL, f"{found['sign']} {found['text'].strip()}",
                scope=scope, fields=fields, raw=line,
            )  # fmt: skip


def _sniff(head: Head) -> int:
    lines = cleaned(head)
    if "has" in head.text and any(map(_HELM.fullmatch, lines[:200])):
        return 91
    if not mostly(lambda line: line.startswith(_KEPT), lines, 0.8):
        return 0
    signed = any(_SIGNED.fullmatch(line) and not line.startswith(("+++ ", "--- ")) for line in lines)
    hunks = any(map(_HUNK.fullmatch, lines))
    pair = any(a.startswith("--- ") and b.startswith("+++ ") for a, b in pairwise(lines))
    return 91 if signed and (hunks or pair) else 0


FORMAT = Format("diff", "differences between two versions", _sniff, read, 8 << 20)
