"""Cut a saved terminal session or a concatenation of files into its parts.

Parts begin at a heading (`==> path <==` of head and tail, a shell prompt with its command, `=== title ===`),
at a line that is nothing but a time, or at a line with which the output of a known command begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model import Scope
from ..regexes import lazy_re
from .dates import is_time

_HEADINGS = tuple(
    lazy_re(pattern)
    for pattern in (
        r"==> (?P<title>.+?) <==\s*",
        r"(?:\[?[\w.-]+@[\w.-]+[ :][^$#]*[$#] |[\w.-]*\$ |/[\w/.-]* [$#] |\+ )(?P<title>\S.*)",
        r"[=*#-]{2,} *(?P<title>[^=*#\s-][^=*]*?) *[=*#-]*\s*",
        r"# (?P<title>(?:cat|head|tail|grep|cd) .*/\S.*)",  # the prompt of root
        r"(?P<title>(?:kubectl|oc) exec \S.* -- \S.*|(?:docker|podman|nerdctl) exec \S+ .*)",
    )
)
_HEADING_BEGINS = frozenset("=*#-+")
"""First characters of headings other than those with the prompt of a shell."""
_STARTS = lazy_re(
    "|".join((
        r"\s+total\s+used\s+free\s+.*",  # free
        r"Filesystem\s+.*Mounted on\s*",  # df
        r"\s*(?:[%A-Z+-]+\s+)*PID\s+(?:\S+\s+)*(?:COMMAND|CMD)\s*",  # ps, top
        r"procs -+memory-+.*|--procs-- .*",  # vmstat
        r"MemTotal: .*",  # /proc/meminfo
        r"top - \d\d:\d\d:\d\d up .*",  # top
        r"\s*\d\d:\d\d:\d\d up .*load average.*",  # uptime
        r"\s+Local time: .*",  # timedatectl
        r"Reference ID    : .*",  # chronyc tracking
    ))
)  # fmt: skip
_KUBECTL = lazy_re(r"(?:kubectl|oc) (?:exec|debug)\b(?P<rest>.*)")
_OPTION = lazy_re(r"(?:-n|--namespace|-c|--container|--target)[ =]\S+")
_OPTION_PAIR = lazy_re(r"(?<!\S)(--?\w+)[ =](\S+)")
NOBODY = Scope()


@dataclass(frozen=True)
class Section:
    """One part."""

    title: str
    """Heading or command; for the first part of a file without one, the file's name."""
    line: int
    """Number of the first line of the body."""
    lines: tuple[str, ...]
    """The body, without CR."""
    scope: Scope = NOBODY
    """Whose output it is, as far as the command says; a shell opened by `kubectl exec` stays until `exit`."""

    @cached_property
    def filled(self) -> tuple[str, ...]:
        """Lines that are not blank."""
        return tuple(line for line in self.lines if line.strip())


def _owner(command: str) -> Scope:
    """Whose output a command shows: `kubectl exec -n ns pod -c container -- …`."""
    found = _KUBECTL.search(command)
    if not found:
        return Scope()
    options = found["rest"].partition(" -- ")[0]
    words = _OPTION.sub("", options).split()
    pod = next((word for word in words if not word.startswith("-")), "").removeprefix("pod/")
    given = {name.lstrip("-")[0]: value for name, value in _OPTION_PAIR.findall(options)}
    return Scope(namespace=given.get("n", ""), pod=pod, container=given.get("c", "") or given.get("t", ""))


def cut(lines: Sequence[str], name: str) -> list[Section]:
    """The parts of a text, in order; parts without content are left out."""
    parts: list[Section] = []
    title, start = name, 0
    scope = shell = NOBODY

    def close(end: int) -> None:
        if any(line.strip() for line in lines[start:end]):
            parts.append(
                Section(title, start + 1, tuple(line.rstrip("\r") for line in lines[start:end]), scope)
            )

    for i, line in enumerate(lines):
        begins = is_time(line) or begins_output(line)
        heading = "" if begins else title_of(line)
        if heading:
            close(i)
            title, start = heading, i + 1
            owner = _owner(heading)
            shell = (
                NOBODY if heading == "exit" else owner if owner != NOBODY and " -- " not in heading else shell
            )
            scope = owner if owner != NOBODY else shell
        elif begins:
            if any(other.strip() for other in lines[start:i]):
                close(i)
                start = i
        elif i > start and is_time(lines[i - 1]):
            close(i)
            start = i
    close(len(lines))
    return parts


def begins_output(line: str) -> bool:
    """Whether the output of a known command about a host begins here."""
    return _STARTS.fullmatch(line.rstrip()) is not None


def title_of(line: str) -> str:
    """The title when a line is a heading, else empty."""
    if line[:1].isspace() or len(line) > 300:
        return ""
    if line[:1] not in _HEADING_BEGINS and "$ " not in line and "# " not in line and " exec " not in line[:14]:
        return ""
    for pattern in _HEADINGS:
        found = pattern.fullmatch(line.rstrip())
        if found:
            return str(found["title"]).strip()
    return ""
