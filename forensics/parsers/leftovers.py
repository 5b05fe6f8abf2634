"""Files that a collector or a person packs along, and that say nothing about an incident: known, and put aside.

Versions, lists of packages, scripts, settings, the collector's own summary, state of systemd without a fact, and the
error that a command printed instead of its output. They are recognised so that a list of sources is honest: what is
left over as `text` is worth a look. Scripts and settings quote errors, and are no evidence of one.
"""

from __future__ import annotations

import regex

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head, mostly
from . import log, output
from .k8s_values import known
from .layer import clean, cleaned
from .notes import CHANNEL
from .unit_files import command_fields, words

_VERSION_NAME = lazy_regex(
    r"(?:^|[/._-])(?:versions?|os-release|release|requirements|constraints|packages?|pip[-_ ]?(?:list|freeze)|"
    r"conda[-_]list|rpm[-_]qa|dpkg[-_]l|installed-\w+)(?:[._-][\w.-]*)?!?$",
    regex.IGNORECASE,
)
_PACKAGE = lazy_regex(
    r"[\w.+-]+(?:\[[\w,-]+\])?(?:==| @ |>=|~=)\S.*|[A-Za-z][\w.+-]* +v?\d+(?:[.\d]+)?[\w.+~!-]*(?: +\S+)*|"
    r"-{3,}(?: +-{3,})*|(?:Package|Name) +Version.*|-e \S+|# .*|ii  .*"
)
_CODE = lazy_regex(
    r"\.(?:py|sh|bash|zsh|c|cc|cpp|cu|h|go|rs|js|ts|lua|pl|rb|java|tf|hcl|jinja2?|j2|sql|ps1|tpl|mk)"
    r"(?:\.(?:txt|bak|orig))?!?$|(?:^|/)(?:Dockerfile|Makefile|Containerfile|Jenkinsfile)[\w.-]*$",
    regex.IGNORECASE,
)
_DOCKER_RUN = lazy_regex(r"\b(?:docker|podman|nerdctl) run ")
_SETTINGS_PATH = lazy_regex(
    r"\.(?:conf|cfg|ini|toml|env|properties)(?:\.(?:txt|bak|orig))?!?$|(?:^|/)\.?env(?:\.txt)?!?$"
)
_SETTING = lazy_regex(
    r"\s*(?:[\w.-]+(?:\[\d*\])? *[=:] *.*|export \w+=.*|\[+[\w. :/\"'-]+\]+|[#;!].*|[}\])]+,?|include .*)"
)
_VARIABLE = lazy_regex(r"(?:export )?[A-Za-z_][A-Za-z0-9_]*=.*")
_SUMMARY = lazy_regex(r"=+ Collectors summary =+")
_COLLECTOR = lazy_regex(r"(?P<name>\S.*?) +\((?P<state>[SXF])\) *: (?P<took>[\d,.]+\w*)")
_SYSTEMD = lazy_regex(
    r"(?:(?:Control group|CGroup) [/\w.-]*:|Dry Run: (?:yes|no)|Swap Used Limit: .*|● \S+|-\.slice)"
    r"|File path: .*\.journal|/ +\d+ +(?:-|[\d.]+) +\S+ +\S+ +\S+|CGROUP|Control Group +Tasks +.*"
)
_SYSTEMD_BODY = lazy_regex(
    r"\s*[├└│─●].*|\s+[A-Z][\w ]+: .*|[A-Z][\w ]+:.*|[\w./\\-]+ +(?:-|\d+) +(?:-|[\d.]+%?) +\S+ +\S+ +\S+|\s*"
)
_UNITS_HEADER = lazy_regex(r"\s*UNIT +LOAD +ACTIVE +SUB +(?:JOB +)?DESCRIPTION\s*")
_UNIT_ROW = lazy_regex(
    r"[●○×↻* ]*(?P<unit>\S+\.\w+) +(?P<load>[\w-]+) +(?P<active>[a-z-]+) +(?P<sub>[a-z-]+)(?: +(?P<text>.*))?"
)
_COMMAND_ERRORS = lazy_regex("|".join((
    r"(?:[\w./-]+: )?(?:line \d+: |\d+: )?[\w./-]+: (?:command )?not found",
    r"Failed to (?:open|get|connect|search|add|seek|parse) .*|Unknown output format .*",
    r"(?:cat|ls|tail|head|dmesg|journalctl|cp|tar|grep|sudo|su|ps|df|cd|find|zcat|stat): .*"
    r"(?:No such file or directory|Permission denied|Operation not permitted|No such process|password is required|"
    r"not permitted|Is a directory|cannot (?:open|access) .*)",
    r"Error response from daemon: (?:No such (?:container|image|object|network|volume|service|process)\b.*"
    r"|.* is not running.*|page not found.*|.* not found: does not exist.*)",
    r"Cannot connect to the Docker daemon .*|error during connect: .*",
    r"Error: No such (?:object|container): .*|No journal files were (?:found|opened)\b.*|-- No entries --",
    r"Hint: You are currently not seeing messages from other users.*|\s+Users in groups .*|\s+Pass -q to turn off .*",
    r"No coredumps? found\.?|Unit \S+ could not be found\.|Permission denied.*",
    r"curl: \(\d+\) .*|ssh: .*|Connection (?:to|closed|refused).*",
    r"command terminated with exit code \d+|OCI runtime exec failed: .*",
)))  # fmt: skip


def _no_log(head: Head) -> bool:
    """Whether nothing in it looks like a log or a program's last words; those must not be put aside."""
    return log.kind_of(head).known_share <= 0.1 and not output.ends_badly(head) and "Error: " not in head.text


def _sniff_versions(head: Head) -> int:
    lines = cleaned(head)
    if not lines or not _no_log(head):
        return 0
    if len(lines) >= 8 and mostly(_PACKAGE.fullmatch, lines, 0.95):
        return 40
    named = head.whole and len(lines) <= 60 and _VERSION_NAME.search(head.path)
    return 40 if named and any(char.isdigit() for char in head.text) else 0


def _sniff_code(head: Head) -> int:
    first = next(iter(cleaned(head)), "")
    if first.startswith("#!/") or (head.whole and _CODE.search(head.path) and _no_log(head)):
        return 85
    return 0


def read_code(text: str, source: str) -> Parsed:
    """No facts, but a `docker run` is how a container was started."""
    events: list[Event] = []
    lines = text.split("\n")
    start, joined = 0, ""
    for number, line in enumerate(lines, 1):
        start = start if joined else number
        joined += line.rstrip("\r")
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        command, joined = joined.strip(), ""
        at = _DOCKER_RUN.search(command[:200])
        if at is None or command.startswith("#"):
            continue
        fields = known(command_fields(words(command[at.start() :])))
        name = str(fields.get("container", ""))
        if name and "$" not in name:
            events.append(Event(
                Locator(source, start, number), "pod_spec", "host", f"container {name} spec",
                scope=Scope(container=name), fields=fields, raw="\n".join(lines[start - 1 : number]),
            ))  # fmt: skip
    return Parsed(tuple(events))


def _sniff_settings(head: Head) -> int:
    lines = cleaned(head)
    if not lines or not _no_log(head):
        return 0
    if len(lines) >= 5 and mostly(_VARIABLE.fullmatch, lines, 0.95):
        return 36
    return 36 if _SETTINGS_PATH.search(head.path) and mostly(_SETTING.fullmatch, lines, 0.8) else 0


def _sniff_summary(head: Head) -> int:
    return 90 if any(_SUMMARY.fullmatch(line.strip()) for line in head.lines[:5]) else 0


def read_summary(text: str, source: str) -> Parsed:
    """Collectors of a support bundle that failed or were left out: what the bundle lacks."""
    events = []
    for number, line in enumerate(text.split("\n"), 1):
        found = _COLLECTOR.fullmatch(line.strip())
        if found and found["state"] != "S":
            told = "failed" if found["state"] == "F" else "was excluded"
            events.append(Event(
                Locator(source, number, number), "log", CHANNEL, f"collector {found['name']} {told}",
                fields={"collector": found["name"], "state": found["state"]}, raw=line,
            ))  # fmt: skip
    return Parsed(tuple(events))


def _sniff_systemd(head: Head) -> int:
    lines = cleaned(head)
    if len(lines) < 2 or not _SYSTEMD.fullmatch(lines[0]):
        return 0
    return 70 if mostly(lambda line: _SYSTEMD_BODY.fullmatch(line) or _SYSTEMD.fullmatch(line), lines, 0.9) else 0


def _sniff_units(head: Head) -> int:
    return 82 if any(_UNITS_HEADER.fullmatch(clean(line)) for line in head.lines[:4]) else 0


def read_units(text: str, source: str) -> Parsed:
    """`systemctl list-units` and `--failed`: one `unit_state` for each unit that failed."""
    events = []
    for number, line in enumerate(text.split("\n"), 1):
        found = _UNIT_ROW.fullmatch(clean(line).rstrip())
        if found and found["active"] == "failed" and found["load"] in ("loaded", "not-found", "masked", "error"):
            fields = {"active": found["active"], "sub": found["sub"]}
            events.append(Event(
                Locator(source, number, number), "unit_state", "systemd", f"{found['unit']}: failed ({found['sub']})",
                scope=Scope(unit=found["unit"]), fields=fields, raw=line,
            ))  # fmt: skip
    return Parsed(tuple(events))


def _sniff_errors(head: Head) -> int:
    lines = cleaned(head)
    return 60 if head.whole and 0 < len(lines) <= 12 and all(map(_COMMAND_ERRORS.fullmatch, lines)) else 0


def read_errors(text: str, source: str) -> Parsed:
    """What a command said instead of its output; its data is missing from the bundle."""
    lines = enumerate(text.split("\n"), 1)
    return Parsed(tuple(
        Event(Locator(source, number, number), "log", CHANNEL, clean(line).strip(), raw=line)
        for number, line in lines if line.strip()
    ))  # fmt: skip


def _nothing(text: str, source: str) -> Parsed:
    return Parsed()


FORMATS: tuple[Format, ...] = (
    Format("versions", "versions or packages", _sniff_versions, _nothing, most=40),
    Format("code", "script or source code", _sniff_code, read_code),
    Format("settings", "settings without facts for this analysis", _sniff_settings, _nothing, most=36),
    Format("collector.summary", "summary of a collector", _sniff_summary, read_summary, begins="="),
    Format(
        "systemd.other", "systemd state without facts for this analysis", _sniff_systemd, _nothing, begins="CDSF●/-"
    ),
    Format("systemd.units", "systemctl list-units", _sniff_units, read_units, begins="U"),
    Format("command.error", "error of a command, in place of its output", _sniff_errors, read_errors, most=60),
)
