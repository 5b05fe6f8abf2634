"""What container tools put in front of a line, and the headers of the programs that run containers.

docker compose and kubectl prefixes, CRI (`/var/log/pods`), plain ISO stamps, klog (Kubernetes), logrus
(containerd, dockerd, CRI-O), zerolog's console (agents of a node), Slurm's daemons.
"""

from __future__ import annotations

import re

from ... import stamps
from ...model import Scope
from ...regexes import lazy_re
from ..layer import UNKNOWN, Layer
from .identity import LEVELS

LETTER = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "C": "CRITICAL", "D": "DEBUG"}
"""Level letters of klog, c10 and Ray."""

_KUBECTL_PREFIX = lazy_re(r"\[pod/(?P<pod>[^/\]]+)/(?P<container>[^\]]+)\] (?P<rest>.*)", re.DOTALL)
_COMPOSE = lazy_re(
    r"(?P<name>[a-zA-Z0-9][\w.-]*?)(?:[-_]\d+|\.\d+\.[a-z0-9]+@(?P<host>[\w.-]+))? +\| ?(?P<rest>.*)", re.DOTALL
)


def kubectl_prefix(text: str) -> Layer | None:
    """`[pod/<pod>/<container>] ` of `kubectl logs --prefix`."""
    if not text.startswith("[pod/"):
        return None
    found = _KUBECTL_PREFIX.match(text)
    if not found:
        return None
    return Layer(found["rest"], scope=Scope(pod=found["pod"], container=found["container"]), output=True)


def compose_prefix(text: str) -> Layer | None:
    """`vllm-openai_1  | ` of docker compose, `llm_vllm.1.k3j9x2m4@gpu-node-7  | ` of `docker service logs`."""
    if "|" not in text[:80]:
        return None
    found = _COMPOSE.match(text)
    if not found or found["name"].upper() in LEVELS:  # `INFO | …` is a logger
        return None
    scope = Scope(host=found["host"] or "", container=found["name"])
    return Layer(found["rest"], ident=found["name"], scope=scope, output=True)


_CRI = lazy_re(
    r"(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) (?P<tag>[FP]) ?(?P<rest>.*)",
    re.DOTALL,
)
_ISO_HEAD = lazy_re(
    r"(?P<open>\[(?=.{10}T))?"
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?)(?(open)\])"
    r"(?P<pipe> \| |[ \t])(?P<rest>.*)",
    re.DOTALL,
)


_BLANK_ZONE = lazy_re(r" ([+-])")


def cri(text: str) -> Layer | None:
    """`<RFC3339Nano> stdout F ` of containerd and CRI-O; `P` marks a partial line."""
    if " std" not in text or not text[:4].isdigit():
        return None
    found = _CRI.match(text)
    if not found:
        return None
    stamp = stamps.iso(found["stamp"], "cri")
    return Layer(found["rest"], stamp, channel="container", partial=found["tag"] == "P", output=True)


def iso_prefix(text: str) -> Layer | None:
    """An ISO stamp in front of any text: `kubectl logs --timestamps`, docker `-t`, shippers; in brackets Jenkins.

    GitLab's runner puts the stream behind it (`00O `, `01E+`; 17.0 and later, `FF_TIMESTAMPS`).
    """
    begin = 1 if text.startswith("[") else 0
    if text[begin + 4 : begin + 5] != "-" or not text[begin : begin + 4].isdigit():
        return None
    found = _ISO_HEAD.match(text)
    stamp = stamps.iso(_BLANK_ZONE.sub(r"\1", found["stamp"]), "prefix") if found else None
    if not found or not stamp:
        return None
    rest = found["rest"]
    return Layer(rest[4:] if _GITLAB_STREAM.match(rest) else rest, stamp)


_GITLAB_STREAM = lazy_re(r"\d\d[OE][ +]")
_SECTION = lazy_re(
    r"(?:section_(?:start|end):(?P<when>\d{10}):[\w.-]{1,100}(?:\[[^\]\r]{0,100}\])?\r?)+(?P<rest>.*)", re.DOTALL
)


def gitlab_section(text: str) -> Layer | None:
    """`section_start:1774861200:step_script` in front of what a GitLab job prints: the stages of the job, dated."""
    found = _SECTION.match(text) if text.startswith("section_") else None
    stamp = stamps.instant(float(found["when"]), "gitlab", 1.0) if found else None
    return Layer(found["rest"], stamp) if found and stamp else None


_AUTOHEAL = lazy_re(
    r"(?P<day>\d\d)-(?P<mon>\d\d)-(?P<year>\d{4}) (?P<hms>\d\d:\d\d:\d\d) "
    r"(?P<rest>Container /?[\w.-]+ \([0-9a-f]{12}.*)",
    re.DOTALL,
)


def autoheal(text: str) -> Layer | None:
    """`05-11-2025 12:03:48 Container /chat-1 (5e0d7a91c3b2) …` of docker-autoheal: day first, its container's time."""
    if text[2:3] != "-" or (found := _AUTOHEAL.match(text)) is None:
        return None
    stamp = stamps.iso(f"{found['year']}-{found['mon']}-{found['day']} {found['hms']}", "prefix")
    return Layer(found["rest"], stamp, "runtime", "autoheal") if stamp else None


_SLURM = lazy_re(r"(?:slurmstepd|srun|sbatch|salloc): (?:error|warning|Job|\*)")
_SLURM_STAMP = lazy_re(r" AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) ")


def slurm(text: str) -> Layer | None:
    """`slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT <time> DUE TO … ***`, in the job's output; the words stay."""
    if text[:1] != "s" or _SLURM.match(text) is None:
        return None
    found = _SLURM_STAMP.search(text, 0, 400)
    return Layer(text, stamps.iso(found[1], "slurm") if found else None, "host")


_GO_LOG = lazy_re(
    r"(?P<date>\d{4}/\d\d/\d\d) (?P<hms>\d\d:\d\d:\d\d(?:\.\d{1,6})?) "
    r"(?:(?P<level>TRC|DBG|INF|WRN|ERR|FTL|PNC) )?(?P<rest>.*)",
    re.DOTALL,
)
_NODE_FIELD = lazy_re(r"\bnode[-_]name=(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)")
_ZEROLOG = {"TRC": "DEBUG", "DBG": "DEBUG", "INF": "INFO", "WRN": "WARNING", "ERR": "ERROR", "FTL": "CRITICAL",
            "PNC": "CRITICAL"}  # fmt: skip


def go_log(text: str) -> Layer | None:
    """`2025/11/19 04:40:10 ` of Go's `log`, and zerolog's console with its level (agents on a node print so)."""
    if text[4:5] != "/" or (found := _GO_LOG.match(text)) is None:
        return None
    stamp = stamps.iso(f"{found['date'].replace('/', '-')} {found['hms']}", "prefix")
    level = found["level"]
    if stamp is None:
        return None
    node = _NODE_FIELD.search(found["rest"]) if level else None
    scope = Scope(host=node["host"]) if node else UNKNOWN
    return Layer(found["rest"], stamp, "host" if level else "", level=_ZEROLOG.get(level or "", ""), scope=scope)


_SLURM_DAEMON = lazy_re(
    r"\[(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3,6})?)\] "
    r"(?P<rest>(?:error: |debug\d?: |sched(?:/\w+)?: |_\w+: |(?=[^\n]{0,200}\bJobId=\d)|[Nn]odes? |[Ss]lurm|[Rr]equeu"
    r"|[Ll]aunch(?:ing batch job| task)|\[\d+(?:_\d+)?\.(?:\d+|batch|extern|interactive)\] ).*)",
    re.DOTALL,
)


def slurm_daemon(text: str) -> Layer | None:
    """`[2026-11-29T21:25:17.123] error: …` of slurmctld and slurmd: the stamp alone would be anybody's.

    What a job's step says through slurmd has its name in front, `[4711.batch] `.
    """
    found = _SLURM_DAEMON.match(text)
    stamp = stamps.iso(found["stamp"], "host") if found else None
    return Layer(found["rest"], stamp, "host", ident="slurm") if found and stamp else None


_KLOG = lazy_re(
    r"(?P<level>[IWEF])(?P<mon>\d\d)(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d+) "
    r"(?P<file>[\w.-]+\.go):(?P<line>\d+)\] (?P<rest>.*)",
    re.DOTALL,
)
_LOGRUS = lazy_re(r'time="(?P<stamp>[^"]+)" level=(?P<level>\w+) msg=(?P<rest>.*)', re.DOTALL)


def klog(text: str) -> Layer | None:
    """`I1129 21:25:17.123456    1184 file.go:123] ` of kubelet and its kin: node local time, no year."""
    if text[:1] not in LETTER or not text[1:5].isdigit():
        return None
    found = _KLOG.match(text)
    if not found:
        return None
    stamp = stamps.month_day(int(found["mon"]), int(found["day"]), found["hms"], "klog")
    logger = f"{found['file']}:{found['line']}"
    return Layer(found["rest"], stamp, "kubelet", level=LETTER[found["level"]], logger=logger)


def logrus(text: str) -> Layer | None:
    """`time="…" level=info msg="…"` of containerd, dockerd and CRI-O; quotes inside are escaped."""
    if not text.startswith('time="'):
        return None
    found = _LOGRUS.match(text)
    if not found:
        return None
    rest = found["rest"].replace('\\"', '"').removeprefix('"')
    return Layer(rest, stamps.iso(found["stamp"], "runtime"), "runtime", level=found["level"].upper())


_HCLOG = lazy_re(
    r" {0,8}(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d{4})) "
    r"\[(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) ?\] {1,2}(?P<logger>[a-z][\w.-]{0,80}): (?P<rest>.*)",
    re.DOTALL,
)


def hclog(text: str) -> Layer | None:
    """`    2026-11-29T21:25:17.123+0100 [INFO]  client.driver_mgr: …` of Nomad, Consul and their kin (go-hclog)."""
    found = _HCLOG.match(text) if "] " in text[:48] else None
    if not found:
        return None
    stamp = stamps.iso(found["stamp"], "runtime")
    return Layer(found["rest"], stamp, "runtime", level=found["level"], logger=found["logger"])
