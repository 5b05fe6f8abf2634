"""Kernel log prefixes: util-linux and busybox dmesg in all modes, /dev/kmsg, Talos, VMware guests.

Shapes from util-linux 2.36–2.41 `dmesg.c`, the kernel's `Documentation/ABI/testing/dev-kmsg`, and `talosctl`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import regex

from ... import stamps
from ...model import RawStamp, Scope
from ...regexes import lazy_re, lazy_regex
from ..layer import Layer
from .identity import channel_of

_LEVEL = r"(?:[a-z]+\d? *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: |<\d{1,3}>)?"
_DELTA = r"(?: <[ \d.]+>)?"
_MONTH_DAY = r"(?:\p{L}{3,6}\.?|\d{1,2}\p{L}) +\d{1,2}"
_BOOT = lazy_regex(
    rf"(?:.{{0,80}}? login: )?{_LEVEL}\[ *(?P<boot>\d{{1,18}}\.\d{{6}}){_DELTA}\](?: ?\[ *[TC]\d+\])? ?(?P<rest>.*)",
    regex.DOTALL,
)
_CTIME = lazy_regex(
    rf"{_LEVEL}\[\p{{L}}{{1,5}}\.? +"
    rf"(?P<stamp>{_MONTH_DAY} \d\d:\d\d:\d\d \d{{4}}){_DELTA}\] (?P<rest>.*)",
    regex.DOTALL,
)
_ISO = lazy_re(
    rf"{_LEVEL}(?P<stamp>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d){_DELTA} (?P<rest>.*)",
    re.DOTALL,
)
_MINUTE = lazy_regex(
    rf"{_LEVEL}\[(?P<month>\p{{L}}{{3,5}}\.?) ?(?P<day>\d{{1,2}}) (?P<clock>\d\d:\d\d)\] (?P<rest>.*)",
    regex.DOTALL,
)
_DELTA_ONLY = lazy_regex(rf"{_LEVEL}\[ *(?:\+\d+\.\d{{6}}|< *\d+\.\d{{6}}>)\] (?P<rest>.*)", regex.DOTALL)
_NAMES_ONLY = lazy_re(
    r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *"
    r":(?:emerg|alert|crit|err|warn|notice|info|debug) *: (?P<rest>.*)",
    re.DOTALL,
)
_KMSG = lazy_re(r"\d{1,3},\d+,(?P<usec>\d{1,18}),[-c+](?:,[^;]*)?;(?P<rest>.*)", re.DOTALL)
_KMSG_KEYS = lazy_re(r" (?:SUBSYSTEM|DEVICE)=\S+")
_TALOS = lazy_re(
    r"(?:\S+: +)?(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d): +[a-z]+: "
    r"\[(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+Z)\]: (?P<rest>.*)",
    re.DOTALL,
)
_VMWARE = lazy_re(r".{0,60}?\bGuest: (?P<rest><\d{1,3}>\[.*)", re.DOTALL)
_UNSTAMPED = lazy_re(r"(?:[A-Za-z0-9][\w.-]{0,62} )?kernel: (?P<rest>.*)", re.DOTALL)
_ESCAPED = lazy_re(r"(?:\\x[0-9a-f]{2})+")
_PROGRAM = lazy_re(r"(?P<ident>[A-Za-z][\w.@/-]{0,60})\[(?P<pid>\d{1,18})\]: (?P<rest>.*)", re.DOTALL)

_BARE = lazy_re(
    r"(?:Linux version \d|(?:Kernel c|C)ommand line: |BIOS-(?:provided|e820)|NVRM: |"
    r"nvidia(?!-(?:container|ctk|cdi|smi|persistenced))[\w-]*: |"
    r"audit: type=\d|"
    r"(?:tsc|clocksource|ACPI|IPv6|cgroup|mce|EDAC|perf|systemd\[1\]|smpboot|TCP|EXT4-fs|XFS|md/raid\S*): |"
    r"(?:pci|pcieport|nvme|usb|ata\d|scsi|mlx5_core) [\d:.-]+: |.{0,40}: link (?:becomes ready|is not ready)|"
    r".{0,16} invoked oom-killer: |(?:Memory cgroup o|O)ut of memory: Kill|oom-kill:constraint=|"
    r"Killed process \d+ \(|"
    r"(?:memory|swap|memory\+swap|kmem): usage \d+kB|Memory cgroup stats for /|Memory: \d+K/\d+K available|"
    r"Tasks? in /.* (?:killed as a result|are going to be killed)|CPU: \d+ (?:UID: \d+ )?PID: |"
    r"Code: [0-9a-f]{2} |"
    r"Hardware name: |Call Trace:$| </?TASK>$| (?:\? )?[\w.]+\+0x[0-9a-f]+/0x|Mem-Info:$|"
    r"R[A-Z0-9]{2}: [0-9a-f]{4}|"
    r"Node \d+ |lowmem_reserve\[\]: |\d+ pages |Tasks state \(memory|\[ *(?:pid|\d+) *\] +(?:uid|\d+) +|"
    r"traps: |\S.{0,15}\[\d+\]: segfault at |"
    # so does the service manager
    r"\S+\.(?:service|scope): |"
    r"(?:Started|Starting|Stopped|Stopping|Failed to start) \S+\.(?:service|scope)\b)"
)


def is_bare(text: str) -> bool:
    """A message of kernel or systemd without any prefix: `dmesg -t`, printk.time=0, `journalctl -o cat`."""
    return _BARE.match(text) is not None


def unescape(text: str) -> str:
    r"""`\xe6\x98\xbe` → `显`: dmesg and /dev/kmsg print bytes they hold to be unprintable in this form."""
    if "\\x" in text:
        text = _ESCAPED.sub(lambda m: bytes.fromhex(m[0].replace("\\x", "")).decode("utf-8", "replace"), text)
    return text


def _said(rest: str, stamp: RawStamp | None = None) -> Layer:
    """A kernel message, or what the service manager or its kin wrote to /dev/kmsg (`systemd[1]: …`)."""
    found = _PROGRAM.match(rest) if "]: " in rest[:90] else None
    channel = channel_of(found["ident"]) if found else "host"
    if found and channel != "host":
        return Layer(found["rest"], stamp, channel, found["ident"], scope=Scope(pid=int(found["pid"])), machine=True)
    return Layer(rest, stamp, "kernel", "kernel", machine=True)


def dmesg(text: str) -> Layer | None:
    """`[   39.447599] `, with priority (`-r`), names (`-x`), delta (`-d`) or caller; imklog keeps it."""
    if "[" not in text[:24] and "login: [" not in text[:90]:
        return None
    found = _BOOT.match(text)
    return _said(found["rest"], stamps.boot(found["boot"])) if found else None


def dmesg_ctime(text: str) -> Layer | None:
    """`[Sun Nov 29 21:25:17 2026] ` of `dmesg -T`: the reader's zone and language (`[日 11月 29 …]`)."""
    if "[" not in text[:24]:
        return None
    found = _CTIME.match(text)
    return _said(found["rest"], stamps.ctime(found["stamp"], "dmesg")) if found else None


def dmesg_iso(text: str) -> Layer | None:
    """`2026-11-29T21:25:17,447599+00:00 ` of `dmesg --time-format iso`: the comma tells it from others."""
    if "," not in text[:36]:
        return None
    found = _ISO.match(text)
    return _said(found["rest"], stamps.iso(found["stamp"], "dmesg")) if found else None


def dmesg_minute(text: str) -> Layer | None:
    """`[Nov29 21:24] ` of `dmesg -H` or `-e`: the first line of a minute."""
    if "[" not in text[:24]:
        return None
    found = _MINUTE.match(text)
    month = stamps.month_number(found["month"]) if found else None
    if not found or month is None:
        return None
    stamp = stamps.month_day(month, int(found["day"]), f"{found['clock']}:00", "dmesg")
    return _said(found["rest"], replace(stamp, resolution_s=60.0) if stamp else None)


def dmesg_delta(text: str) -> Layer | None:
    """`[  +0.000301] ` (`-H`, further lines of a minute), `[<    0.000010>] `: time since the line before."""
    if "[" not in text[:24]:
        return None
    found = _DELTA_ONLY.match(text)
    return _said(found["rest"]) if found else None


def dmesg_names(text: str) -> Layer | None:
    """`kern  :warn  : ` of `dmesg -x` where no time follows."""
    if ":" not in text[:8]:
        return None
    found = _NAMES_ONLY.match(text)
    return _said(found["rest"]) if found else None


def kernel_unstamped(text: str) -> Layer | None:
    """`host kernel: ` of a syslog whose stamps were cut off, before what only the kernel prints."""
    found = _UNSTAMPED.match(text) if "kernel: " in text[:80] else None
    return _said(found["rest"]) if found and is_bare(found["rest"]) else None


def kmsg(text: str) -> Layer | None:
    r"""`4,550,30985380,-;text` of /dev/kmsg: µs since boot, newline `\x0a`; ` DEVICE=` lines are empty."""
    if text.startswith((" SUBSYSTEM=", " DEVICE=")):
        return Layer("", channel="kernel", ident="kernel", machine=True) if _KMSG_KEYS.fullmatch(text) else None
    if ";" not in text[:80]:
        return None
    found = _KMSG.match(text)
    if not found:
        return None
    return _said(unescape(found["rest"]), stamps.boot(f"{int(found['usec']) / 1e6:.6f}"))


def talos(text: str) -> Layer | None:
    """`10.5.0.2: kern:    info: [2026-01-12T20:27:31.913975631Z]: ` of `talosctl dmesg`"""
    if "Z]: " not in text[:100]:
        return None
    found = _TALOS.match(text)
    return _said(found["rest"], stamps.iso(found["stamp"], "dmesg")) if found else None


def vmware_guest(text: str) -> Layer | None:
    """`In(05) vcpu-5 - Guest: <4>[39261021.091603] `: a guest's console inside the host's vmware.log."""
    if "Guest: <" not in text[:80]:
        return None
    found = _VMWARE.match(text)
    return Layer(found["rest"], machine=True) if found else None
