"""From a physical line to a `Record`: peel off the envelopes that collectors put around a message.

A line may be wrapped several times (compose prefix, journal prefix, klog header …). `unwrap` tries the envelopes of
`envelopes.py` again and again until none fits; what remains is the message. Each layer leaves its stamp, so that a
record with two stamps later ties one clock to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..model import RawStamp, Scope
from .envelopes import starting_with
from .layer import UNKNOWN, Layer, clean

MAX_LAYERS = 6


@dataclass(slots=True, unsafe_hash=True)
class Record:
    """One line without its envelopes. Nobody changes it once `unwrap` gave it; frozen, it would take thrice as long."""

    line: int
    text: str
    """The message, without colours and CR."""
    raw: str = ""
    """The physical line."""
    stamps: tuple[RawStamp, ...] = ()
    """Outer to inner."""
    envelopes: tuple[str, ...] = ()
    """Names of the layers that were peeled, outer to inner."""
    channel: str = ""
    """Speaker, when a layer decides it."""
    ident: str = ""
    """syslog identifier or logger component."""
    level: str = ""
    logger: str = ""
    """`file.py:123` as printed by the program."""
    scope: Scope = UNKNOWN
    count: int = 1
    last_line: int = 0
    partial: bool = False
    """True for a CRI line tagged `P`: it goes on in the next line."""
    machine: bool = False
    """True when a header of the machine's own logs was peeled."""
    output: bool = False
    """True when an application, or whoever writes into a container, chose the text."""


APPLICATIONS = frozenset({"engine", "ray", "container"})
"""Channels of programs that print what strangers sent them."""
MACHINE = frozenset({"kernel", "kubelet", "runtime", "systemd", "oomd", "clock"})
"""Channels whose word counts as a fact about the machine."""


def is_engine(record: Record) -> bool:
    """Whether an inference engine printed a line, or the Ray around it."""
    return record.output and not record.machine and record.channel in ("engine", "ray")


def unwrap(raw: str, line: int = 0, count: int = 1, last_line: int = 0, output: bool = False) -> Record:
    """Peel all envelopes off a physical line. Never fails: an unknown line is a record without layers.

    `output` says that the line is known to be a container's output, whatever it looks like.
    """
    bare = _remembered(raw, output) if len(raw) <= _REMEMBERED_CHARS else _peeled(raw, output)
    return Record(
        line, bare.text, raw, bare.stamps, bare.envelopes, bare.channel, bare.ident, bare.level, bare.logger,
        bare.scope, count, last_line, bare.partial, bare.machine, bare.output,
    )  # fmt: skip


def _peeled(raw: str, output: bool) -> Record:
    record = Record(0, clean(raw), channel="container" if output else "", output=output)
    for _ in range(MAX_LAYERS):
        text, peeled = record.text, record.envelopes
        for name, envelope in starting_with(text[:1]):
            layer = envelope(text)
            if layer is None or (name in peeled and name not in _REPEATABLE):
                continue
            if _may_say(record, layer):
                _apply(record, name, layer)
                break
        else:
            if "\r" not in text:
                break
            # a progress bar behind its collector's stamp: the last non-empty piece is what a terminal shows
            record.text = next((piece for piece in reversed(text.split("\r")) if piece.strip()), "")
    return record


_remembered = lru_cache(maxsize=1024)(_peeled)
"""The first lines of a file are looked at to recognise it, and again to read it."""
_REMEMBERED_CHARS = 2000
_REPEATABLE = frozenset({"process"})


def _may_say(record: Record, layer: Layer) -> bool:
    """Whether a further header may be the collector's, not a part of what somebody wrote.

    What an application prints may look like a line of the kernel, the journal or another container; what the kernel
    or the kubelet prints may quote an engine. Neither changes who speaks.
    """
    if record.output:
        wrapped = bool(record.envelopes) and record.channel != "host"
        return not layer.machine and not (layer.output and wrapped)
    return record.channel not in MACHINE or not (layer.output or layer.channel in APPLICATIONS)


def _apply(record: Record, name: str, layer: Layer) -> None:
    """Put the layer's findings into the record that is being made."""
    program = layer.machine and layer.channel == "host" and layer.ident != ""
    if layer.channel and not (record.output and layer.channel in MACHINE):
        record.channel = layer.channel
    elif layer.channel:  # klog and logrus are libraries: in a container anybody's
        record.channel = record.channel or "container"
    record.text = layer.rest
    record.envelopes = (*record.envelopes, name)
    if layer.stamp is not None:
        record.stamps = (*record.stamps, layer.stamp)
    record.ident = layer.ident or record.ident
    record.level = layer.level or record.level
    record.logger = layer.logger or record.logger
    if layer.scope is not UNKNOWN:
        record.scope = layer.scope.merged(record.scope)
    record.partial = record.partial or layer.partial
    record.machine = record.machine or layer.machine
    record.output = record.output or layer.output or layer.channel in APPLICATIONS or program
