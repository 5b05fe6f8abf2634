"""Integrity: digests of the evidence as it stands in the files, and the check of a report against its bundle.

The digest of a claim is the sha256 of the exact bytes of its lines, line ends included: what
`sed -n 'A,Bp' FILE | sha256sum` prints. It is taken from the bundle, not from what a parser made of it, so anybody can
re-check it without this program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..bundle import Budget, Bundle, Member
from ..scan import encoding_of
from .model import Report

Span = tuple[int, int]
"""First and last line, counted from 1; a line ends at LF."""
HOLDS, CHANGED, MISSING, UNCHECKED = "holds", "changed", "missing", "unchecked"


@dataclass(slots=True)
class _Read:
    """One member as read again."""

    path: str
    sha256: str
    spans: dict[Span, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding of a report, checked."""

    finding: str
    title: str
    source: str
    line: int
    line_end: int
    used_as: str
    state: str
    """`holds`, `changed`, `missing` (no such file or line), `unchecked` (the report carries no digest for it)."""


@dataclass(frozen=True, slots=True)
class Check:
    """A report against a bundle."""

    sources: Mapping[str, str]
    """Member path → `holds`, `changed` or `missing`."""
    added: tuple[str, ...]
    """Members that the report does not know."""
    claims: tuple[Claim, ...]

    @property
    def intact(self) -> bool:
        return all(s == HOLDS for s in self.sources.values()) and all(c.state == HOLDS for c in self.claims)


def sealed(report: Report, paths: Sequence[str], budget: Budget | None = None) -> Report:
    """The report with the digest of every finding's lines, for which the bundle is read once more.

    Standard input cannot be read twice: then the report stays as it is, and only whole files can be checked.
    """
    if "-" in paths:
        return report
    wanted: dict[str, set[Span]] = {}
    for finding in report.diagnosis.findings:
        where = finding.locator
        wanted.setdefault(where.source, set()).add((where.line, where.line_end))
    known = {source.path: source.sha256 for source in report.sources}
    digests = {
        (source, *span): digest
        for read in _read(paths, wanted, budget)
        for source in _names(read.path)
        if known.get(source) == read.sha256
        for span, digest in read.spans.items()
    }
    return replace(report, digests=digests)


def check(document: Mapping[str, Any], paths: Sequence[str], budget: Budget | None = None) -> Check:
    """Re-check each claim of a JSON report. A file is found by its content first, then by its path."""
    wanted: dict[str, set[Span]] = {}
    for finding in document["findings"]:
        where = finding["locator"]
        wanted.setdefault(where["source"], set()).add((where["line_start"], where["line_end"]))
    members = _read(paths, wanted, budget)
    by_content = {read.sha256: read for read in members}
    by_path = {name: read for read in members for name in reversed(_names(read.path))}
    found: dict[str, tuple[str, _Read | None]] = {}
    for source in document["sources"]:
        read = by_content.get(source["sha256"])
        state = HOLDS
        if read is None:
            read = by_path.get(source["path"])
            state = MISSING if read is None else CHANGED
        found[source["path"]] = (state, read)
    known = {read.path for _, read in found.values() if read is not None}
    return Check(
        {path: state for path, (state, _) in found.items()},
        tuple(read.path for read in members if read.path not in known),
        tuple(_claim(finding, found) for finding in document["findings"]),
    )


def _claim(finding: Mapping[str, Any], found: Mapping[str, tuple[str, _Read | None]]) -> Claim:
    where = finding["locator"]
    state, read = found.get(where["source"], (MISSING, None))
    if state == CHANGED and read is not None:
        if where["sha256"] is None:
            state = UNCHECKED
        else:
            seen = read.spans.get((where["line_start"], where["line_end"]))
            state = MISSING if seen is None else HOLDS if seen == where["sha256"] else CHANGED
    return Claim(
        finding["id"], finding["title"], where["source"], where["line_start"], where["line_end"], finding["used_as"],
        state,
    )  # fmt: skip


def _names(path: str) -> tuple[str, ...]:
    """What a report may call a member: its path, or its path without a top folder that all members share."""
    return (path, path.partition("/")[2]) if "/" in path else (path,)


def _read(paths: Sequence[str], wanted: Mapping[str, set[Span]], budget: Budget | None) -> list[_Read]:
    bundle = Bundle(tuple(paths), budget or Budget())
    return [
        _digest(member, sorted(span for name in _names(member.path) for span in wanted.get(name, ())))
        for member in bundle.members()
    ]


def _digest(member: Member, spans: Sequence[Span]) -> _Read:
    """Hash the wanted lines while the member streams by; blocks without any are only counted."""
    hashes = {span: hashlib.sha256() for span in spans}
    line, text, ended = 1, True, False
    for block in member.blocks():
        if line == 1 and not ended:
            text = encoding_of(block) == "utf-8"  # lines of UTF-16 are no lines of bytes
        ended = True
        ends = block.count(b"\n")
        here = [span for span in hashes if text and span[0] <= line + ends and span[1] >= line]
        if here:
            _feed(block.split(b"\n"), line, {span: hashes[span] for span in here})
        line += ends
    return _Read(member.path, member.sha256, {s: h.hexdigest() for s, h in hashes.items() if text and s[0] <= line})


def _feed(pieces: Sequence[bytes], line: int, hashes: Mapping[Span, Any]) -> None:
    """Add the pieces of a block, of which the first belongs to `line`, to the digests they belong to."""
    last = line + len(pieces) - 1
    for (start, end), digest in hashes.items():
        for number in range(max(start, line), min(end, last) + 1):
            digest.update(pieces[number - line] + (b"\n" if number < last else b""))


def failed(claims: Iterable[Claim]) -> list[Claim]:
    """Claims that do not hold, those that carry the verdict first."""
    weight = {name: i for i, name in enumerate(("root", "decisive", "supporting", "consequence", "decoy"))}
    return sorted((c for c in claims if c.state != HOLDS), key=lambda c: (weight.get(c.used_as, 9), c.finding))
