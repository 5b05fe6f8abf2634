"""Who speaks behind a syslog header: `host ident[pid]: ` → channel, host, unit, pid."""

from __future__ import annotations

import re

from ...model import Scope
from ...regexes import lazy_re
from ..layer import Layer

_IDENT_CHANNEL = {
    "kernel": "kernel",
    "kubelet": "kubelet",
    "hyperkube": "kubelet",
    "k3s": "kubelet",
    "rke2": "kubelet",
    "kubelite": "kubelet",
    "microk8s.daemon-kubelite": "kubelet",
    "containerd": "runtime",
    "docker.service": "runtime",
    "dockerd": "runtime",
    "cri-dockerd": "runtime",
    "crio": "runtime",
    "conmon": "runtime",
    "systemd": "systemd",
    "init.scope": "systemd",
    "systemd-oomd": "oomd",
    "earlyoom": "oomd",
    "nohang": "oomd",
    "ollama": "engine",
    "llama-server": "engine",
    "chrony": "clock",
    "chronyd": "clock",
    "systemd-timesyncd": "clock",
    "ntpd": "clock",
    "systemd-journald": "clock",
}
LEVELS = {"TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRIT", "CRITICAL", "FATAL"}
_PODMAN_EVENT = lazy_re(r"\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4} [A-Z]{1,5} (?:m=\S+ )?container \w+ [0-9a-f]{64} \(")
UNIT_SUFFIXES = (".service", ".scope", ".slice", ".socket", ".mount", ".timer")
# A host may be an IPv6 address but never ends in a colon: `ValueError: text: more` is no header.
_HOST = r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.:-]*[A-Za-z0-9_])?)"
_REST = r"(?:\[(?P<pid>\d{1,18})\])?: ?(?P<rest>.*)"
_HOST_IDENT = lazy_re(rf"{_HOST} (?P<ident>[^\s\[\]:(][^\[\]:]{{0,80}}?){_REST}", re.DOTALL)
# systemd's own child before exec: `(vllm)[209]: `, in systemd 252 `(vllm[209]: `
_HOST_FORKED = lazy_re(
    rf"{_HOST} \((?P<ident>[^\s()\[\]]{{1,40}})\)?\[(?P<pid>\d{{1,18}})\]: ?(?P<rest>.*)", re.DOTALL
)
_WORD = lazy_re(r"[a-zA-Z][\w./@-]*")


def channel_of(ident: str) -> str:
    """Channel of a syslog identifier or unit; unknown programs speak on `host`.

    `docker` is the client, which prints what a container prints when a unit runs it; `docker.service` is the daemon.
    """
    name = ident.rsplit("/", 1)[-1]
    return _IDENT_CHANNEL.get(name) or _IDENT_CHANNEL.get(name.removesuffix(".service"), "host")


def speaker(ident: str, rest: str, pid: int | None) -> str:
    """Channel of a journal or syslog entry, where an identifier alone may be another's.

    The kernel has no pid: with one it is a program that calls itself so. conmon passes on a container's output
    under its own name, and signs what it says itself. So does podman, whose own events have one shape.
    """
    channel = "runtime" if ident == "podman" and _PODMAN_EVENT.match(rest) else channel_of(ident)
    foreign = (channel == "kernel" and pid is not None) or (ident == "conmon" and not rest.startswith("conmon "))
    return "host" if foreign else channel


def host_ident(rest: str, strict: bool = False) -> Layer | None:
    """`host ident[pid]: message`. `strict` demands a pid or a known program: a stamp proves no syslog."""
    found = _HOST_IDENT.match(rest)
    if found and found["host"] not in LEVELS:
        return _layer(found, found["host"], strict)
    forked = _HOST_FORKED.match(rest)
    return _forked(forked, forked["host"]) if forked else None


def ident_only(rest: str) -> Layer | None:
    """`ident[pid]: message` of `journalctl --no-hostname`; without a pid only for known programs."""
    text = f"0 {rest}"
    if found := _HOST_IDENT.match(text):
        return _layer(found, "", True)
    forked = _HOST_FORKED.match(text)
    return _forked(forked, "") if forked else None


def unit_named(ident: str) -> str:
    """The unit that a message is from, where its identifier is one; empty for programs."""
    return ident if ident.endswith(UNIT_SUFFIXES) and ident != "init.scope" else ""


def _layer(found: re.Match[str], host: str, strict: bool) -> Layer | None:
    ident = found["ident"].strip()
    pid = int(found["pid"]) if found["pid"] else None
    unit = unit_named(ident)
    channel = speaker(ident, found["rest"], pid)
    if pid is None and channel == "host" and (strict or not _WORD.fullmatch(ident)):
        return None
    scope = Scope(host=host, unit=unit, pid=pid)
    return Layer(found["rest"], channel=channel, ident=ident, scope=scope, machine=True)


def _forked(found: re.Match[str], host: str) -> Layer:
    scope = Scope(host=host, pid=int(found["pid"]))
    return Layer(found["rest"], channel="systemd", ident=found["ident"], scope=scope, machine=True)
