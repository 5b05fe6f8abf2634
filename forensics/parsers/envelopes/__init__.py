"""The envelopes that collectors and loggers put in front of a message, one function each, in the order tried.

Each takes the text and returns a `Layer`, or none when it is not there. Formats: docker compose and kubectl
prefixes, CRI (`/var/log/pods`), journalctl's text and JSON modes, syslog (RFC 3164, RFC 5424), dmesg in its
modes, klog, logrus, vLLM's header in all its families, uvicorn, c10, Ray, and JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import regex

from ..layer import Layer
from .container import (
    autoheal,
    compose_prefix,
    cri,
    gitlab_section,
    go_log,
    hclog,
    iso_prefix,
    klog,
    kubectl_prefix,
    logrus,
    slurm,
    slurm_daemon,
)
from .engine import c10, gin, glog, process, rank_prefix, ray, sglang, slog, tracing, uvicorn, vllm
from .identity import channel_of
from .journal import (
    journal_full,
    journal_iso,
    journal_monotonic,
    journal_note,
    journal_short,
    journal_unix,
    rfc5424,
)
from .json_lines import json_line
from .kernel import (
    dmesg,
    dmesg_ctime,
    dmesg_delta,
    dmesg_iso,
    dmesg_minute,
    dmesg_names,
    kernel_unstamped,
    kmsg,
    talos,
    vmware_guest,
)
from .shippers import loki_labels, stream_name

__all__ = ["ENVELOPES", "channel_of", "starting_with"]

ENVELOPES: tuple[tuple[str, Callable[[str], Layer | None]], ...] = (
    # what collectors put around a line comes first: vLLM's header is found anywhere in a line
    ("json", json_line),
    ("labels", loki_labels),
    ("stream", stream_name),
    ("kubectl-prefix", kubectl_prefix),
    ("cri", cri),
    ("compose", compose_prefix),
    ("dmesg-iso", dmesg_iso),
    ("rfc5424", rfc5424),
    ("ray", ray),
    ("journal-iso", journal_iso),
    ("slurm-daemon", slurm_daemon),
    ("hclog", hclog),
    ("iso", iso_prefix),
    ("journal-monotonic", journal_monotonic),
    ("dmesg", dmesg),
    ("dmesg-ctime", dmesg_ctime),
    ("dmesg-minute", dmesg_minute),
    ("dmesg-delta", dmesg_delta),
    ("dmesg-names", dmesg_names),
    ("kernel-unstamped", kernel_unstamped),
    ("kmsg", kmsg),
    ("talos", talos),
    ("vmware", vmware_guest),
    ("journal-short", journal_short),
    ("journal-full", journal_full),
    ("journal-unix", journal_unix),
    ("journal-note", journal_note),
    ("klog", klog),
    ("logrus", logrus),
    ("slog", slog),
    ("gin", gin),
    ("autoheal", autoheal),
    ("go-log", go_log),
    ("slurm", slurm),
    ("gitlab", gitlab_section),
    ("process", process),
    ("vllm", vllm),
    ("sglang", sglang),
    ("c10", c10),
    ("glog", glog),
    ("rank", rank_prefix),
    ("uvicorn", uvicorn),
    ("tracing", tracing),
)

_BEGINS = {
    "json": r"[{\x1ed]", "labels": r"\{", "kubectl-prefix": r"\[", "cri": r"[\p{Nd}\p{No}]", "compose": r"[a-zA-Z0-9]",
    "dmesg-iso": r"[\d<a-z]", "rfc5424": "<", "ray": r"[\[\dDIWEC]", "journal-iso": r"[\p{Nd}\p{No}]",
    "hclog": r"[ \d]",
    "iso": r"[\[\p{Nd}\p{No}]", "journal-monotonic": r"\[", "dmesg-ctime": r"[\[<a-z]", "dmesg-minute": r"[\[<a-z]",
    "dmesg-delta": r"[\[<a-z]", "dmesg-names": "[a-z]", "kmsg": r"[\d ]", "journal-short": r"[<\p{L}\d ]",
    "kernel-unstamped": "[A-Za-z0-9]",
    "journal-full": "[A-Z]", "journal-unix": "1", "journal-note": "[░-]", "klog": "[A-Z]", "logrus": "t",
    "slog": "t", "gin": r"\[",
    "autoheal": r"\d", "go-log": r"\d", "slurm": "s", "gitlab": "s", "slurm-daemon": r"\[",
    "process": r"\(", "sglang": r"\[", "c10": r"\[", "glog": "[IWEF]", "rank": r"\[", "uvicorn": "[A-Z]",
}  # fmt: skip
"""How a text begins that has this envelope; those not named here are found anywhere in a line."""


@lru_cache(maxsize=1024)
def starting_with(first: str) -> tuple[tuple[str, Callable[[str], Layer | None]], ...]:
    """The envelopes that a text with this first character may have, in the order tried."""
    return tuple(
        (name, envelope) for name, envelope in ENVELOPES
        if name not in _BEGINS or regex.match(_BEGINS[name], first, regex.VERSION1)
    )  # fmt: skip
