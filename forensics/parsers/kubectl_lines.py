"""What kubectl itself writes between the lines of logs: errors, notices, and the sections of a cluster dump.

People redirect standard error into the same file, so such a line may be all that a log file holds: then the
log does not exist, which is a fact of its own. `kubectl cluster-info dump` puts the logs of all containers of
a pod into one file, between START and END lines; those lines say whose the lines between them are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_re
from ..sources import Format, Head
from .records import Record, unwrap

SECTION_START = "==== START logs for container "
SECTION_END = "==== END logs for container "
DEFAULTED = "Defaulted container "
"""What kubectl says before the log, when it chose the container itself."""
ANCHORS = (
    SECTION_START, SECTION_END, "Request log error: ", "Error from server (", DEFAULTED,
    "unable to retrieve container logs for ", "failed to try resolving symlinks in path ",
)  # fmt: skip
"""Literals of the lines that must be seen in a log."""

_SECTION = lazy_re(
    r"==== (?:START|END) logs for container (?P<container>\S+)"
    r" of pod (?P<namespace>[^\s/]+)/(?P<pod>\S+) ===="
)
_NOTE = lazy_re(
    r"Error from server(?: \(\w+\))?: |Request log error: |Defaulted container \"|"
    r"unable to retrieve container logs for \w+://|failed to try resolving symlinks in path "
)
_ALONE = lazy_re(
    rf"(?:{_NOTE.pattern})|No resources found(?: in \S+ namespace)?\.?$|error: |"
    r"Unable to connect to the server: |The connection to the server \S+ was refused|Warning: "
)
"""Also wordings that are too common to be told apart in the middle of a log."""
_NAMED = lazy_re(
    r'container "(?P<container>[^"]+)" in pod "(?P<pod>[^"]+)"|\(get pods (?P<pod2>[a-z0-9.-]+)\)|'
    r'pods? "(?P<pod3>[^"]+)" not found|in (?P<namespace>\S+) namespace\.?$'
)


_WRAPPED = frozenset({"cri", "json"})
"""Headers of a runtime's own log files, in which kubectl cannot write."""


def _scope_of(text: str) -> Scope:
    found = _NAMED.search(text)
    if found is None:
        return Scope()
    return Scope(
        namespace=found["namespace"] or "", pod=found["pod"] or found["pod2"] or found["pod3"] or "",
        container=found["container"] or "",
    )  # fmt: skip


def settle(records: Iterable[Record]) -> list[Record]:
    """Give the lines of a section their owner, drop the section lines, and mark what kubectl says itself."""
    settled: list[Record] = []
    section, named = Scope(), False
    for record in records:
        if record.text.startswith("==== ") and (found := _SECTION.match(record.text)):
            opens = record.text.startswith(SECTION_START)
            section = Scope.from_parts(found.groupdict()) if opens else Scope()
            named = section != Scope()
            continue
        if named and not record.output:
            record = unwrap(record.raw, record.line, record.count, record.last_line, output=True)
        if record.channel in ("", "container") and not _WRAPPED & {*record.envelopes} and _NOTE.match(record.text):
            own = _scope_of(record.text)
            record = replace(record, channel="k8s", scope=record.scope.merged(own))
        settled.append(replace(record, scope=record.scope.merged(section)) if named else record)
    return settled


def read(text: str, source: str) -> Parsed:
    """A file that holds nothing but what kubectl says about itself."""
    lines = text.split("\n")
    records = settle(
        Record(number, line.strip(), line) for number, line in enumerate(lines, 1) if line.strip()
    )
    return Parsed(tuple(
        Event(Locator(source, record.line, record.line), "log", "k8s", record.text,
              scope=_scope_of(record.text).merged(record.scope), raw=record.raw)
        for record in records
    ))  # fmt: skip


def _sniff_alone(head: Head) -> int:
    lines = head.filled
    few = head.whole and 0 < len(lines) <= 200
    return 92 if few and all(_ALONE.match(line) or _SECTION.match(line) for line in lines) else 0


def _sniff_sections(head: Head) -> int:
    return 88 if head.text.lstrip().startswith(SECTION_START) else 0


MESSAGE = Format("k8s.message", "kubectl message in place of data", _sniff_alone, read, begins="=DENRTUWefu")
SECTIONS = Format("k8s.dump_logs", "container logs of a kubectl cluster dump", _sniff_sections, begins="=")
