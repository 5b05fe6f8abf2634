"""The dialect of inference engines: what their messages mean.

vLLM 0.4 to 0.33, SGLang, Ollama; also the output of containers and pasted text in which an engine speaks without a
header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Event
from ..regexes import lazy_re
from . import engine_stats, ray, reprs, traceback
from .log import Dialect

_VERSION = r"v?(?P<version>\d+\.\d+[\w.+-]*)"
_CONFIG = lazy_re(
    rf"Initializing an? (?:(?P<generation>V[01]) )?LLM engine \({_VERSION}\) with config: (?P<rest>.*)",
    re.DOTALL,
)
_NON_DEFAULT = lazy_re(r"(?:vLLM (?:API )?server )?non-default args: (?P<rest>\{.*)", re.DOTALL)
_NAMESPACE = lazy_re(r"(?:vLLM (?:API )?server )?args: Namespace\((?P<rest>.*)", re.DOTALL)
_SERVER_ARGS = lazy_re(r"server_args=ServerArgs\((?P<rest>.*)", re.DOTALL)
_BANNER = lazy_re(rf"vLLM (?:API )?server version {_VERSION}(?:, serving model (?P<model>\S+))?")
_LOGO = lazy_re(rf"[^\w]*(?:version {_VERSION}|model   (?P<model>\S+))\s*")
_ACCESS = lazy_re(
    r'(?:\S+:\d+|-) - "(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+" (?P<status>\d{3})\b.*'
)
_GIN = lazy_re(
    r'\[GIN\] (?:\d{4}/\d\d/\d\d - \d\d:\d\d:\d\d )?\| +(?P<status>\d{3}) \|[^|]*\|[^|]*\| +(?P<method>[A-Z]+) +'
    r'"(?P<path>/(?:api/(?:chat|generate|embed)|v1/)[^"]*)"'
)
"""Ollama's access line, which is that of the Go framework: only calls of a model tell an engine at work."""

_SLOTS = lazy_re(
    r"srv +log_server_r\w*: request: (?P<method>[A-Z]+) (?P<path>/\S*) \S+ (?P<status>\d{3})"
)
"""llama.cpp's access line, in which the function's name is cut to twelve characters."""

_ROUTER = lazy_re(
    r"\s*(?:INFO +)?(?P<span>[a-z_]{3,40})\{[^\n]{0,4000}\}: (?:text_(?:generation|embeddings)_router(?:::\w+)*: )?"
    r'(?:\S+\.rs:\d+: )?Success(?: total_time="[^\n]{0,2000})?'
)
"""What the routers of TGI and TEI print of a request that they answered, the name of its handler first; its times stand
in the braces, or behind."""
_ROUTER_JSON = lazy_re(
    r'"target": ?"text_(?:generation|embeddings)_router(?:::\w+)*".*?'
    r'"span": ?\{[^{}]{0,4000}?"name": ?"(?P<span>\w{3,40})"', re.DOTALL
)
"""The same with `--json-output`; the message is `Success` alone, and all else stands beside it."""

ANCHORS = (
    *traceback.ANCHORS,
    "non-default args: ",
    "args: Namespace(",
    "server_args=ServerArgs(",
    " LLM engine (v",
    "server version ",
    "  version ",
    "  model   ",
    "[GIN] ",
    "log_server_r",
    '"Success"',
    'HTTP/1.1" 4',
    'HTTP/1.1" 5',
    'HTTP/1.0" 4',
    'HTTP/1.0" 5',
)


def refine(event: Event) -> Event:
    """Give engine messages their kind: `engine_args`, `engine_config`, `access`; others stay `log`.

    Arguments become fields by their name with underscores, typed; `engine_version` comes from the banner,
    from the lines of the start-up logo, or from the config line, whose key for the maximum model length is
    `max_seq_len`.
    """
    text = event.text
    if event.kind != "log":
        return event
    if "HTTP/" in text or text.startswith("[GIN] ") or ": request: " in text:
        found = _ACCESS.fullmatch(text) or _GIN.match(text) or _SLOTS.fullmatch(text)
        if found:
            fields = {"method": found["method"], "path": found["path"], "status": int(found["status"])}
            return _as(event, "access", fields)
    if text == "Success" and (found := _ROUTER_JSON.search(event.raw)):
        return _as(event, "access", {"method": "POST", "path": f"/{found['span']}", "status": 200})
    if ": Success" in text and "total_time=" in text and (found := _ROUTER.fullmatch(text)):
        return _as(event, "access", {"method": "POST", "path": f"/{found['span']}", "status": 200})
    if "args" in text[:400]:
        for pattern, read in (
            (_NON_DEFAULT, reprs.mapping),
            (_NAMESPACE, reprs.keywords),
            (_SERVER_ARGS, reprs.keywords),
        ):
            found = pattern.match(text)
            if found:
                return _as(event, "engine_args", read(found["rest"]))
    if "LLM engine (v" in text[:60]:
        found = _CONFIG.match(text)
        if found:
            fields = reprs.keywords(found["rest"])
            generation = {"generation": found["generation"]} if found["generation"] else {}
            return _as(event, "engine_config", {**fields, **generation, "engine_version": found["version"]})
    if "version " in text or "  model   " in text:
        found = _BANNER.match(text) or _LOGO.fullmatch(text)
        if found:
            named = {"engine_version": found["version"], "model": found["model"]}
            return _as(event, "engine_args", {key: value for key, value in named.items() if value})
    return event


def _as(event: Event, kind: str, fields: Mapping[str, Any]) -> Event:
    return replace(event, kind=kind, fields={**event.fields, **fields})


DIALECT = Dialect(
    channel="engine",
    anchors=ANCHORS,
    series=engine_stats.SERIES,
    assemble=ray.assemble,
    refine=refine,
    samples=engine_stats.samples,
)
OUTPUT = Dialect(channel="container", assemble=ray.assemble, refine=refine)
"""Output that no engine header claims: perhaps the traceback of an engine that died before its first line."""
