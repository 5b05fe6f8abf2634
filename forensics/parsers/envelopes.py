"""The envelopes that collectors and loggers put in front of a message, one function each, in the order they are tried.

Each takes the text and returns a `Layer`, or none when it is not there. Formats: docker compose and kubectl prefixes,
CRI (`/var/log/pods`), journalctl's short family, syslog (RFC 3164, RFC 5424), dmesg in its modes, klog, logrus,
vLLM's header in all its families, uvicorn, c10, Ray, and JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import regex

from .. import stamps
from ..model import Scope
from .records import Layer

_IDENT_CHANNEL = {
    "kernel": "kernel",
    "kubelet": "kubelet",
    "containerd": "runtime",
    "dockerd": "runtime",
    "crio": "runtime",
    "conmon": "runtime",
    "systemd": "systemd",
    "systemd-oomd": "oomd",
    "earlyoom": "oomd",
    "nohang": "oomd",
    "chronyd": "clock",
    "systemd-timesyncd": "clock",
    "ntpd": "clock",
    "systemd-journald": "clock",
}


def channel_of(ident: str) -> str:
    """Channel of a syslog identifier; unknown programs speak on `host`."""
    name = ident.rsplit("/", 1)[-1]
    return _IDENT_CHANNEL.get(name, "host")


_KUBECTL_PREFIX = regex.compile(r"\[pod/(?P<pod>[^/\]]+)/(?P<container>[^\]]+)\] (?P<rest>.*)", regex.DOTALL)
_COMPOSE = regex.compile(r"(?P<name>[a-zA-Z0-9][\w.-]*?)(?:[-_]\d+)? +\| ?(?P<rest>.*)", regex.DOTALL)


def kubectl_prefix(text: str) -> Layer | None:
    """`[pod/<pod>/<container>] ` of `kubectl logs --prefix`."""
    if not text.startswith("[pod/"):
        return None
    found = _KUBECTL_PREFIX.match(text)
    if not found:
        return None
    return Layer(found["rest"], scope=Scope(pod=found["pod"], container=found["container"]))


def compose_prefix(text: str) -> Layer | None:
    """`vllm-openai_1  | ` of docker compose."""
    if "|" not in text[:80]:
        return None
    found = _COMPOSE.match(text)
    if not found:
        return None
    return Layer(found["rest"], ident=found["name"], scope=Scope(container=found["name"]))


_CRI = regex.compile(r"(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) (?P<tag>[FP]) ?(?P<rest>.*)", regex.DOTALL)
_ISO_HEAD = regex.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?)(?P<pipe> \| | )(?P<rest>.*)", regex.DOTALL
)
_HOST_IDENT = regex.compile(
    r"(?P<host>[A-Za-z0-9_.:-]+) (?P<ident>[^\s\[\]:(][^\[\]:]{0,80}?)(?:\[(?P<pid>\d+)\])?: ?(?P<rest>.*)", regex.DOTALL
)


def cri(text: str) -> Layer | None:
    """`<RFC3339Nano> stdout F ` of containerd and CRI-O; `P` marks a partial line."""
    if not text[:4].isdigit():
        return None
    found = _CRI.match(text)
    if not found:
        return None
    return Layer(found["rest"], stamps.iso(found["stamp"], "cri"), channel="container", partial=found["tag"] == "P")


def iso_prefix(text: str) -> Layer | None:
    """An ISO stamp in front: `kubectl logs --timestamps`, docker `-t`, journalctl short-iso, syslog high precision."""
    if not text[:4].isdigit() or text[4:5] != "-":
        return None
    found = _ISO_HEAD.match(text)
    if not found:
        return None
    rest = found["rest"]
    host = _host_ident(rest)
    if host is not None:
        stamp = stamps.iso(found["stamp"], "journal")
        return Layer(host.rest, stamp, host.channel, host.ident, scope=host.scope)
    stamp = stamps.iso(found["stamp"], "prefix")
    return Layer(rest, stamp) if stamp is not None else None


def _host_ident(rest: str) -> Layer | None:
    found = _HOST_IDENT.match(rest)
    if not found or found["host"] in _LEVELS:
        return None
    ident = found["ident"].strip()
    pid = int(found["pid"]) if found["pid"] else None
    if pid is None and channel_of(ident) == "host" and not regex.fullmatch(r"[a-zA-Z][\w./@-]*", ident):
        return None
    unit = ident if ident.endswith(".service") else ""
    scope = Scope(host=found["host"], unit=unit, pid=pid)
    return Layer(found["rest"], channel=channel_of(ident.removesuffix(".service")), ident=ident, scope=scope)


_SHORT = regex.compile(
    r"(?P<stamp>(?:\p{L}{3,5}\.?|\d{1,2}月) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?P<rest>.*)", regex.DOTALL
)
_FULL = regex.compile(
    r"(?P<wd>[A-Z][a-z]{2}) (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?P<zone>[A-Z]{2,5}|[+-]\d{2,4}) (?P<rest>.*)",
    regex.DOTALL,
)
_UNIX = regex.compile(r"(?P<stamp>1\d{9}\.\d{6}) (?P<rest>.*)", regex.DOTALL)
_RFC5424 = regex.compile(
    r"<\d{1,3}>1 (?P<stamp>\S+) (?P<host>\S+) (?P<ident>\S+) (?P<pid>\S+) \S+ (?:-|\[.*?\]) ?(?P<rest>.*)", regex.DOTALL
)
_PRI = regex.compile(r"<\d{1,3}>")


def journal_short(text: str) -> Layer | None:
    """`Nov 29 21:25:17 host ident[pid]: ` of journalctl and syslog; month names follow the reader's locale."""
    found = _SHORT.match(text)
    if not found:
        return None
    stamp = stamps.ctime(found["stamp"], "journal")
    return _with_host(found["rest"], stamp)


def journal_full(text: str) -> Layer | None:
    """`Sun 2026-11-29 21:25:17 EST host ident[pid]: ` of journalctl short-full and with-unit."""
    found = _FULL.match(text)
    if not found:
        return None
    stamp = stamps.iso(f"{found['stamp']}{found['zone'] if found['zone'] in ('UTC', 'GMT') else ''}", "journal")
    if stamp is not None and found["zone"] not in ("UTC", "GMT"):
        stamp = stamps.with_zone(stamp, found["zone"])
    return _with_host(found["rest"], stamp)


def journal_unix(text: str) -> Layer | None:
    """`1728129601.123456 host ident[pid]: ` of journalctl short-unix."""
    found = _UNIX.match(text)
    if not found:
        return None
    return _with_host(found["rest"], stamps.instant(float(found["stamp"]), "journal"))


def rfc5424(text: str) -> Layer | None:
    """`<0>1 2024-10-05T12:00:01.123456Z host kernel - - - msg`."""
    if not text.startswith("<"):
        return None
    found = _RFC5424.match(text)
    if not found:
        return None
    pid = int(found["pid"]) if found["pid"].isdigit() else None
    return Layer(
        found["rest"], stamps.iso(found["stamp"], "journal"), channel_of(found["ident"]), found["ident"],
        scope=Scope(host=found["host"], pid=pid),
    )  # fmt: skip


def _with_host(rest: str, stamp: Any) -> Layer | None:
    if stamp is None:
        return None
    host = _host_ident(rest)
    if host is None:
        without = _HOST_IDENT.match(f"- {rest}")  # journalctl --no-hostname
        if not without or not (without["pid"] or channel_of(without["ident"]) != "host"):
            return None
        pid = int(without["pid"]) if without["pid"] else None
        return Layer(without["rest"], stamp, channel_of(without["ident"]), without["ident"], scope=Scope(pid=pid))
    return Layer(host.rest, stamp, host.channel, host.ident, scope=host.scope)


_DMESG = regex.compile(
    r"(?:<(?P<pri>\d{1,3})>)?(?:[a-z]+ *:[a-z]+ *: )?\[ *(?P<boot>\d+\.\d{6})(?: <[ \d.]+>)?\](?:\[ *[TC]\d+\])?(?: \[ *[TC]\d+\])? ?(?P<rest>.*)",
    regex.DOTALL,
)
_DMESG_T = regex.compile(
    r"(?:[a-z]+ *:[a-z]+ *: )?\[(?P<stamp>\p{L}{2,4}\.? +(?:\p{L}{3,5}\.?|\d{1,2}月) +\d{1,2} \d\d:\d\d:\d\d \d{4})(?: <[ \d.]+>)?\] (?P<rest>.*)",
    regex.DOTALL,
)
_DMESG_ISO = regex.compile(r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d) (?P<rest>.*)", regex.DOTALL)


def dmesg(text: str) -> Layer | None:
    """`[   39.447599] `, with priority (`-r`), names (`-x`) or caller; also inside a syslog line of imklog."""
    if "[" not in text[:24]:
        return None
    found = _DMESG.match(text)
    if not found:
        return None
    return Layer(found["rest"], stamps.boot(found["boot"]), channel="kernel", ident="kernel")


def dmesg_ctime(text: str) -> Layer | None:
    """`[Sun Nov 29 21:25:17 2026] ` of `dmesg -T`: the reader's zone and language."""
    if "[" not in text[:24]:
        return None
    found = _DMESG_T.match(text)
    if not found:
        return None
    stamp = stamps.ctime(found["stamp"], "dmesg")
    return Layer(found["rest"], stamp, channel="kernel", ident="kernel") if stamp else None


def dmesg_iso(text: str) -> Layer | None:
    """`2026-11-29T21:25:17,447599+00:00 ` of `dmesg --time-format iso`: the comma tells it from others."""
    if text[19:20] != ",":
        return None
    found = _DMESG_ISO.match(text)
    if not found:
        return None
    return Layer(found["rest"], stamps.iso(found["stamp"], "dmesg"), channel="kernel", ident="kernel")


_KLOG = regex.compile(
    r"(?P<level>[IWEF])(?P<mon>\d\d)(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d+) (?P<file>[\w.-]+\.go):(?P<line>\d+)\] (?P<rest>.*)",
    regex.DOTALL,
)
_LETTER = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "C": "CRITICAL", "D": "DEBUG"}
_LOGRUS = regex.compile(r'time="(?P<stamp>[^"]+)" level=(?P<level>\w+) msg=(?P<rest>.*)', regex.DOTALL)


def klog(text: str) -> Layer | None:
    """`I1129 21:25:17.123456    1184 file.go:123] ` of kubelet and its kin: node local time, no year."""
    if text[:1] not in _LETTER or not text[1:5].isdigit():
        return None
    found = _KLOG.match(text)
    if not found:
        return None
    stamp = stamps.month_day(int(found["mon"]), int(found["day"]), found["hms"], "klog")
    return Layer(
        found["rest"], stamp, "kubelet", level=_LETTER[found["level"]], logger=f"{found['file']}:{found['line']}",
    )  # fmt: skip


def logrus(text: str) -> Layer | None:
    """`time="…" level=info msg="…"` of containerd, dockerd and CRI-O; quotes inside are escaped."""
    if not text.startswith('time="'):
        return None
    found = _LOGRUS.match(text)
    if not found:
        return None
    rest = found["rest"].replace('\\"', '"').removeprefix('"')
    return Layer(rest, stamps.iso(found["stamp"], "runtime"), "runtime", level=found["level"].upper())


_LEVELS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
_PROCESS = regex.compile(
    r"\((?P<name>[A-Za-z][\w.:<>-]*)(?: (?P<dims>rank=\d+|[A-Z]+\d+(?:_[A-Z]+\d+)*))?(?: pid=(?P<pid>\d+))?(?:, ip=(?P<ip>[0-9A-Fa-f.:]+))?\) ?(?P<rest>.*)",
    regex.DOTALL,
)
_RANK_PREFIX = regex.compile(r"\[rank(?P<rank>\d+)\]: ?(?P<rest>.*)", regex.DOTALL)
_VLLM = regex.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<mon>\d\d)-(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d) \[?(?P<file>[\w./-]+\.(?:py|rs)):(?P<line>\d+)\] ?(?P<rest>.*)",
    regex.DOTALL,
)
_VLLM_ANYWHERE = regex.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+\.(?:py|rs):\d+\]")
_UVICORN = regex.compile(r"(?P<level>INFO|WARNING|ERROR|DEBUG|CRITICAL): {2,}(?P<rest>.*)", regex.DOTALL)
_C10 = regex.compile(
    r"(?:\[rank(?P<rank>\d+)\]:)?\[(?P<sev>[IWEF])(?P<mon>\d{1,2})(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d)(?P<frac>\.\d+) (?P<file>[\w.]+):(?P<line>\d+)\] (?P<rest>.*)",
    regex.DOTALL,
)
_RANK_IN_DIMS = regex.compile(r"(?:rank=|TP)(\d+)")


def process(text: str) -> Layer | None:
    """`(EngineCore_DP0 pid=117) `, `(VllmWorker rank=1 pid=9) `, `(RayWorkerWrapper pid=9, ip=…) `, `(raylet) `."""
    if not text.startswith("("):
        return None
    found = _PROCESS.match(text)
    if not found or not (found["pid"] or found["name"] in ("raylet", "autoscaler") or found["ip"]):
        return None
    name = found["name"]
    rank = _RANK_IN_DIMS.search(found["dims"] or name)
    scope = Scope(
        process=f"{name}_{found['dims']}" if found["dims"] and "=" not in found["dims"] else name,
        pid=int(found["pid"]) if found["pid"] else None,
        rank=int(rank[1]) if rank else None,
        host=found["ip"] or "",
    )
    return Layer(found["rest"], channel="ray" if name in ("raylet", "autoscaler") else "engine", scope=scope)


def rank_prefix(text: str) -> Layer | None:
    """`[rank3]: ` that torch's excepthook puts before each line of a traceback."""
    if not text.startswith("[rank"):
        return None
    found = _RANK_PREFIX.match(text)
    return Layer(found["rest"], channel="engine", scope=Scope(rank=int(found["rank"]))) if found else None


def vllm(text: str) -> Layer | None:
    """`LEVEL MM-DD HH:MM:SS [file.py:LINE] ` of vLLM 0.4–0.33, with or without the bracket; also of its Rust part."""
    found = _VLLM.match(text)
    if not found:
        glued = _VLLM_ANYWHERE.search(text, 1, 400)  # VLLM_LOGGING_PREFIX, or a progress bar before it
        found = _VLLM.match(text, glued.start()) if glued else None
        if not found:
            return None
    stamp = stamps.month_day(int(found["mon"]), int(found["day"]), found["hms"], "engine")
    return Layer(found["rest"], stamp, "engine", level=found["level"], logger=f"{found['file']}:{found['line']}")


def uvicorn(text: str) -> Layer | None:
    """`INFO:     ` of uvicorn: no stamp at all."""
    found = _UVICORN.match(text)
    return Layer(found["rest"], channel="engine", level=found["level"], logger="uvicorn") if found else None


def c10(text: str) -> Layer | None:
    """`[rank0]:[W419 10:05:27.841846807 CUDAGuardImpl.h:126] ` of torch's C++ logger."""
    if not text.startswith("["):
        return None
    found = _C10.match(text)
    if not found:
        return None
    hms = found["hms"] + found["frac"][:7]
    return Layer(
        found["rest"], stamps.month_day(int(found["mon"]), int(found["day"]), hms, "engine"), "engine",
        level=_LETTER[found["sev"]], logger=f"{found['file']}:{found['line']}",
        scope=Scope(rank=int(found["rank"])) if found["rank"] else Scope(),
    )  # fmt: skip


_RAY = regex.compile(
    r"\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>[DIWEFC]) (?P<pid>\d+) (?P<tid>\d+)\](?: \((?P<ident>\w+)\))? (?P<file>[\w.]+):(?P<line>\d+): (?P<rest>.*)",
    regex.DOTALL,
)
_RAY_PY = regex.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\s+(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<file>[\w.]+\.py):(?P<line>\d+) -- (?P<rest>.*)",
    regex.DOTALL,
)
_SERVE = regex.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<ident>\S+) (?:\S+ )*?-- (?P<rest>.*)",
    regex.DOTALL,
)


def ray(text: str) -> Layer | None:
    """Ray's C++ and Python headers and Serve's: node local time, no zone."""
    for pattern in (_RAY, _RAY_PY, _SERVE):
        found = pattern.match(text)
        if found:
            parts = found.groupdict()
            level = _LETTER.get(found["level"], found["level"])
            logger = f"{parts['file']}:{parts['line']}" if parts.get("file") else "serve"
            return Layer(
                found["rest"], stamps.iso(found["stamp"], "ray"), "ray", parts.get("ident") or "", level, logger
            )
    return None


_BRACKETED = regex.compile(
    r"\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<rank>(?: (?:TP|DP|PP|EP)\d+)+)?\] (?P<rest>.*)", regex.DOTALL
)


def sglang(text: str) -> Layer | None:
    """`[2026-11-29 21:25:17 TP0] ` of SGLang."""
    if not text.startswith("["):
        return None
    found = _BRACKETED.match(text)
    if not found:
        return None
    rank = _RANK_IN_DIMS.search(found["rank"] or "")
    scope = Scope(process=(found["rank"] or "").strip(), rank=int(rank[1]) if rank else None)
    return Layer(found["rest"], stamps.iso(found["stamp"], "engine"), "engine", scope=scope)


def json_line(text: str) -> Layer | None:
    """One JSON object a line: docker json-file, journald, vLLM's JSON logging, kubelet, Ray events."""
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    for reader in (_docker_json, _journal_json, _engine_json, _klog_json, _ray_json):
        layer = reader(entry)
        if layer is not None:
            return layer
    return None


def _docker_json(entry: dict[str, Any]) -> Layer | None:
    if not (isinstance(entry.get("log"), str) and isinstance(entry.get("time"), str)):
        return None
    log = entry["log"]
    return Layer(log.rstrip("\n"), stamps.iso(entry["time"], "cri"), "container", partial=not log.endswith("\n"))


def _journal_json(entry: dict[str, Any]) -> Layer | None:
    if "__REALTIME_TIMESTAMP" not in entry:
        return None
    message = entry.get("MESSAGE")
    if isinstance(message, list):
        if message and all(isinstance(value, int) and 0 <= value < 256 for value in message):
            message = bytes(message).decode("utf-8", "replace")
        else:
            message = next((value for value in message if isinstance(value, str)), "")
    micros = entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry["__REALTIME_TIMESTAMP"]
    stamp = stamps.instant(int(micros) / 1e6, "journal") if str(micros).isdigit() else None
    ident = str(entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM") or "")
    kernel = entry.get("_TRANSPORT") == "kernel"
    channel = "kernel" if kernel else channel_of(ident) if ident != "kernel" else "host"
    pid = str(entry.get("_PID") or entry.get("SYSLOG_PID") or "")
    scope = Scope(
        host=str(entry.get("_HOSTNAME") or ""), unit=str(entry.get("_SYSTEMD_UNIT") or entry.get("UNIT") or ""),
        pid=int(pid) if pid.isdigit() else None, container=str(entry.get("CONTAINER_NAME") or ""),
        container_id=str(entry.get("CONTAINER_ID_FULL") or ""),
    )  # fmt: skip
    from .records import clean

    return Layer(clean(str(message or "")), stamp, channel, ident, scope=scope)


def _engine_json(entry: dict[str, Any]) -> Layer | None:
    """vLLM 0.31+ `--logging-config.formatter json`, and python-json-logger with its usual names."""
    level = entry.get("levelname") or entry.get("level")
    message = entry.get("message")
    if not (isinstance(level, str) and isinstance(message, str)):
        return None
    when = entry.get("asctime") or entry.get("timestamp") or entry.get("time") or ""
    text = message
    if isinstance(entry.get("exc_info"), str):
        text = f"{message}\n{entry['exc_info']}"
    pid = entry.get("process")
    scope = Scope(process=str(entry.get("processName") or ""), pid=pid if isinstance(pid, int) else None)
    return Layer(
        text, stamps.iso(str(when), "engine"), "engine", level=level.upper(), logger=str(entry.get("name") or ""),
        scope=scope,
    )  # fmt: skip


def _klog_json(entry: dict[str, Any]) -> Layer | None:
    if not (isinstance(entry.get("ts"), int | float) and isinstance(entry.get("msg"), str)):
        return None
    rest = [f'"{entry["msg"]}"']
    for key, value in entry.items():
        if key not in ("ts", "msg", "v", "caller", "logger"):
            rest.append(f"{key}={json.dumps(value, ensure_ascii=False)}")
    level = "ERROR" if "err" in entry else "INFO"
    return Layer(
        " ".join(rest), stamps.instant(entry["ts"] / 1000.0, "klog"), "kubelet", level=level,
        logger=str(entry.get("caller") or ""),
    )  # fmt: skip


def _ray_json(entry: dict[str, Any]) -> Layer | None:
    if not (isinstance(entry.get("label"), str) and "source_type" in entry and "message" in entry):
        return None
    when = entry.get("timestamp")
    stamp = stamps.instant(float(when), "ray") if isinstance(when, int | float) or str(when).isdigit() else None
    return Layer(
        f"{entry['label']}: {entry['message']}", stamp, "ray", str(entry["source_type"]),
        str(entry.get("severity") or ""), scope=Scope(host=str(entry.get("host_name") or "")),
    )  # fmt: skip


ENVELOPES: tuple[tuple[str, Callable[[str], Layer | None]], ...] = (
    ("json", json_line),
    ("kubectl-prefix", kubectl_prefix),
    ("cri", cri),
    ("dmesg-iso", dmesg_iso),
    ("rfc5424", rfc5424),
    ("ray", ray),
    ("iso", iso_prefix),
    ("process", process),
    ("vllm", vllm),
    ("sglang", sglang),
    ("c10", c10),
    ("rank", rank_prefix),
    ("dmesg", dmesg),
    ("dmesg-ctime", dmesg_ctime),
    ("journal-short", journal_short),
    ("journal-full", journal_full),
    ("journal-unix", journal_unix),
    ("klog", klog),
    ("logrus", logrus),
    ("uvicorn", uvicorn),
    ("compose", compose_prefix),
)
