"""Headers of inference engines and of what runs below them: vLLM in all its families, uvicorn, torch, Ray."""

from __future__ import annotations

import re
from functools import lru_cache

from ... import stamps
from ...model import Scope
from ...regexes import lazy_re
from ..layer import Layer
from .container import LETTER

_PROCESS = lazy_re(
    r"\((?P<name>[A-Za-z][\w.:<>-]*)(?: (?P<dims>rank=\d+|[A-Z]+\d+(?:_[A-Z]+\d+)*))?"
    r"(?: pid=(?P<pid>\d{1,18}))?(?:, ip=(?P<ip>[0-9A-Fa-f.:]+))?\) ?(?P<rest>.*)",
    re.DOTALL,
)
_TIMELESS = lazy_re(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?!\d\d-\d\d )(?P<rest> *\S.*)", re.DOTALL)
"""What is left of vLLM's header where somebody cut out its time and file."""
_RANK_PREFIX = lazy_re(r"\[rank(?P<rank>\d{1,18})\]: ?(?P<rest>.*)", re.DOTALL)
_VLLM = lazy_re(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<mon>\d\d)-(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d) "
    r"\[?(?P<file>[\w./-]+\.(?:py|rs)):(?P<line>\d+)\] ?(?P<rest>.*)",
    re.DOTALL,
)
_VLLM_ANYWHERE = lazy_re(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+\.(?:py|rs):\d+\]"
)
_QUOTES = lazy_re(r"['\"]|(?i:prompt|message|content)\b")
"""Behind one of these a header is what somebody wrote to the engine."""
_UVICORN = lazy_re(r"(?P<level>INFO|WARNING|ERROR|DEBUG|CRITICAL): {2,}(?P<rest>.*)", re.DOTALL)
_C10 = lazy_re(
    r"(?:\[rank(?P<rank>\d{1,18})\]:)?\[(?P<sev>[IWEF])(?P<mon>\d{1,2})(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d)"
    r"(?P<frac>\.\d+) (?P<file>[\w.]+):(?P<line>\d+)\] (?P<rest>.*)",
    re.DOTALL,
)
_GLOG = lazy_re(
    r"(?P<sev>[IWEF])(?P<mon>\d\d)(?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d\.\d{6}) +\d{1,18} "
    r"(?P<file>[\w.-]+\.(?:cc|cpp|cu|h|hpp)):(?P<line>\d+)\] (?P<rest>.*)",
    re.DOTALL,
)
_RANK_IN_DIMS = lazy_re(r"(?:rank=|TP)(\d{1,18})")


def process(text: str) -> Layer | None:
    """`(EngineCore_DP0 pid=117) `, `(VllmWorker rank=1 pid=9) `, `(RayWorkerWrapper pid=9, ip=…) `."""
    if not text.startswith("("):
        return None
    found = _PROCESS.match(text)
    if not found:
        return None
    name, dims, pid, ip, rest = found.groups()
    if not (pid or name in ("raylet", "autoscaler") or ip):
        return None
    channel = "ray" if name in ("raylet", "autoscaler") else "engine"
    timeless = _TIMELESS.fullmatch(rest) if pid and channel == "engine" else None
    level, rest = timeless.groups() if timeless else ("", rest)
    return Layer(rest, channel=channel, level=level, scope=_process_scope(name, dims, pid, ip))


@lru_cache(maxsize=1024)
def _process_scope(name: str, dims: str | None, pid: str | None, ip: str | None) -> Scope:
    """Cached: the lines of a log come from few processes."""
    rank = _RANK_IN_DIMS.search(dims or name)
    return Scope(
        process=f"{name}_{dims}" if dims and "=" not in dims else name,
        pid=int(pid) if pid else None,
        rank=int(rank[1]) if rank else None,
        host=ip or "",
    )


def rank_prefix(text: str) -> Layer | None:
    """`[rank3]: ` that torch's excepthook puts before each line of a traceback."""
    if not text.startswith("[rank"):
        return None
    found = _RANK_PREFIX.match(text)
    return Layer(found["rest"], channel="engine", scope=Scope(rank=int(found["rank"]))) if found else None


def vllm(text: str) -> Layer | None:
    """`LEVEL MM-DD HH:MM:SS [file.py:LINE] ` of vLLM 0.4–0.33 and its Rust part; the bracket is optional."""
    found = _VLLM.match(text)
    if found is None:
        if ".py:" not in text[:400] and ".rs:" not in text[:400]:
            return None
        glued = _VLLM_ANYWHERE.search(text, 1, 400)  # VLLM_LOGGING_PREFIX, or a progress bar before it
        if glued is None or _QUOTES.search(text, 0, glued.start()):
            return None
        found = _VLLM.match(text, glued.start())
    if found is None:
        return None
    stamp = stamps.month_day(int(found["mon"]), int(found["day"]), found["hms"], "engine")
    logger = f"{found['file']}:{found['line']}"
    return Layer(found["rest"], stamp, "engine", level=found["level"], logger=logger)


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
        level=LETTER[found["sev"]], logger=f"{found['file']}:{found['line']}",
        scope=Scope(rank=int(found["rank"])) if found["rank"] else Scope(),
    )  # fmt: skip


def glog(text: str) -> Layer | None:
    """`E1129 21:25:17.123456 1 model_lifecycle.cc:654] ` of C++ servers (Triton); Triton quotes the message."""
    if text[:1] not in LETTER or not text[1:5].isdigit():
        return None
    found = _GLOG.match(text)
    if not found:
        return None
    rest = found["rest"]
    return Layer(
        rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] == '"' else rest,
        stamps.month_day(int(found["mon"]), int(found["day"]), found["hms"], "engine"), "engine",
        level=LETTER[found["sev"]], logger=f"{found['file']}:{found['line']}",
    )  # fmt: skip


_RAY = lazy_re(
    r"\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>[DIWEFC]) (?P<pid>\d{1,18}) (?P<tid>\d{1,18})\]"
    r"(?: \((?P<ident>\w+)\))? (?P<file>[\w.]+):(?P<line>\d+): (?P<rest>.*)",
    re.DOTALL,
)
_RAY_PY = lazy_re(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\s+(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<file>[\w.]+\.py):(?P<line>\d+) -- (?P<rest>.*)",
    re.DOTALL,
)
_SERVE = lazy_re(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) "
    r"(?P<ident>\S+) (?:\S+ )*?-- (?P<rest>.*)",
    re.DOTALL,
)


def ray(text: str) -> Layer | None:
    """Ray's C++ and Python headers and Serve's: node local time, no zone."""
    pattern = _RAY if text.startswith("[") else _RAY_PY if text[:1].isdigit() else _SERVE
    found = pattern.match(text) if pattern is _RAY or "-- " in text else None
    if not found:
        return None
    parts = found.groupdict()
    level = LETTER.get(found["level"], found["level"])
    logger = f"{parts['file']}:{parts['line']}" if parts.get("file") else "serve"
    stamp = stamps.iso(found["stamp"], "ray")
    return Layer(found["rest"], stamp, "ray", parts.get("ident") or "", level, logger)


_BRACKETED = lazy_re(
    r"\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<rank>(?: (?:TP|DP|PP|EP)\d+)+)?\] (?P<rest>.*)",
    re.DOTALL,
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


_TRACING = lazy_re(
    r"\s*(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) (?:[\w.-]+(?:\{[^}]*\})?: ?(?:\{[^}]*\}:)?)*?"
    r"(?P<target>text_generation\w*(?:::\w+)*|[a-z_]+(?:::[a-z_]+)+): (?:[\w/.-]+\.rs:\d+: )?(?P<rest>.*)",
    re.DOTALL,
)


def tracing(text: str) -> Layer | None:
    """` INFO shard-manager: text_generation_launcher: ` of Rust's tracing, as TGI 2 and 3 print it after the stamp."""
    if "::" not in text[:400] and "text_generation" not in text[:400]:
        return None
    found = _TRACING.match(text)
    if not found:
        return None
    level = {"WARN": "WARNING", "TRACE": "DEBUG"}.get(found["level"], found["level"])
    return Layer(found["rest"], channel="engine", level=level, logger=found["target"])


_SLOG = lazy_re(
    r"time=(?P<stamp>\d{4}-\d\d-\d\dT\S{8,24}) level=(?P<level>DEBUG|INFO|WARN|ERROR)(?:[+-]\d+)? "
    r"source=(?P<file>[\w.-]+\.go:\d+) (?P<rest>msg=.*)",
    re.DOTALL,
)


def slog(text: str) -> Layer | None:
    """`time=2026-05-12T08:31:02.771+02:00 level=INFO source=sched.go:722 msg="…" key=value` of Ollama, since 0.1.21.

    The keys behind the message are part of it: signatures read them.
    """
    found = _SLOG.fullmatch(text)
    if not found:
        return None
    stamp, level = stamps.iso(found["stamp"], "engine"), found["level"].replace("WARN", "WARNING")
    return Layer(found["rest"], stamp, "engine", level=level, logger=found["file"])


_GIN = lazy_re(r"\[GIN\] (?P<day>\d{4}/\d\d/\d\d) - (?P<hms>\d\d:\d\d:\d\d) (?P<rest>\|.*)", re.DOTALL)


def gin(text: str) -> Layer | None:
    """`[GIN] 2026/05/12 - 08:31:10 | 200 | …`, the access line of Ollama's web framework: local time, no zone."""
    found = _GIN.fullmatch(text)
    if not found:
        return None
    stamp = stamps.iso(f"{found['day'].replace('/', '-')} {found['hms']}", "engine")
    return Layer(f"[GIN] {found['rest']}", stamp, "engine")
