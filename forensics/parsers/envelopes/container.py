"""What container tools put in front of a line, and the headers of the programs that run containers.

docker compose and kubectl prefixes, CRI (`/var/log/pods`), plain ISO stamps, klog (Kubernetes), logrus
(containerd, dockerd, CRI-O).
"""

from __future__ import annotations

import re

from ... import stamps
from ...model import Scope
from ..layer import Layer
from .identity import LEVELS

LETTER = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "C": "CRITICAL", "D": "DEBUG"}
"""Level letters of klog, c10 and Ray."""

_KUBECTL_PREFIX = re.compile(r"\[pod/(?P<pod>[^/\]]+)/(?P<container>[^\]]+)\] (?P<rest>.*)", re.DOTALL)
_COMPOSE = re.compile(r"(?P<name>[a-zA-Z0-9][\w.-]*?)(?:[-_]\d+)? +\| ?(?P<rest>.*)", re.DOTALL)


def kubectl_prefix(text: str) -> Layer | None:
    """`[pod/<pod>/<container>] ` of `kubectl logs --prefix`."""
    if not text.startswith("[pod/"):
        return None
    found = _KUBECTL_PREFIX.match(text)
    if not found:
        return None
    return Layer(found["rest"], scope=Scope(pod=found["pod"], container=found["container"]), output=True)


def compose_prefix(text: str) -> Layer | None:
    """`vllm-openai_1  | ` of docker compose."""
    if "|" not in text[:80]:
        return None
    found = _COMPOSE.match(text)
    if not found or found["name"].upper() in LEVELS:  # `INFO | …` is a logger
        return None
    return Layer(found["rest"], ident=found["name"], scope=Scope(container=found["name"]), output=True)


_CRI = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) (?P<tag>[FP]) ?(?P<rest>.*)",
    re.DOTALL,
)
_ISO_HEAD = re.compile(
    r"(?P<open>\[(?=.{10}T))?"
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?)(?(open)\])"
    r"(?P<pipe> \| |[ \t])(?P<rest>.*)",
    re.DOTALL,
)


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
    """An ISO stamp in front of any text: `kubectl logs --timestamps`, docker `-t`, shippers; in brackets Jenkins."""
    begin = 1 if text.startswith("[") else 0
    if text[begin + 4 : begin + 5] != "-" or not text[begin : begin + 4].isdigit():
        return None
    found = _ISO_HEAD.match(text)
    stamp = stamps.iso(found["stamp"], "prefix") if found else None
    return Layer(found["rest"], stamp) if found and stamp else None


_KLOG = re.compile(
    r"(?P<level>[IWEF])(?P<mon>\d\d)(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d+) "
    r"(?P<file>[\w.-]+\.go):(?P<line>\d+)\] (?P<rest>.*)",
    re.DOTALL,
)
_LOGRUS = re.compile(r'time="(?P<stamp>[^"]+)" level=(?P<level>\w+) msg=(?P<rest>.*)', re.DOTALL)


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
