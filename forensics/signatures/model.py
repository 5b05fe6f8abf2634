"""What a library holds: signatures, causes, and the library itself. No I/O; all values are immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex

from ..model import Role, Severity
from .regex_parser import FLAGS

PHASES = ("", "starting", "loading", "profiling", "capturing", "serving", "draining", "dead")
"""Phases of an engine's run that a signature may begin."""
STATUSES = ("experimental", "test", "stable", "deprecated")
CHANNELS = (
    "engine", "kernel", "kubelet", "runtime", "systemd", "oomd", "clock", "host", "ray", "nvidia", "k8s",
    "container", "metrics", "cgroup",
)  # fmt: skip
LANGUAGES = ("en", "zh")
EVIDENCE_KEYS = ("decisive", "supporting", "contradicting", "explains", "onset", "contributing")
"""Keys of a cause that name findings."""
ENGINES = ("vllm", "sglang", "tgi", "trtllm", "lmdeploy", "llamacpp", "ollama")
"""Inference servers that differ in their flags. A death whose engine nothing tells gets the advice for the first."""


PLATFORMS = ("kubernetes", "docker", "podman", "systemd", "slurm", "ray", "bare")
"""What runs a server. An incident of which nothing tells it gets the advice for the first; `bare` is a machine on
which somebody just started it."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text in both languages."""

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


Compiled = regex.Pattern[str]


@cache
def compiled(source: str) -> Compiled:
    """A regex of the library. Raises `regex.error`."""
    return regex.compile(source, FLAGS)


@dataclass(frozen=True, slots=True)
class Pattern:
    name: str
    source: str
    """The regex as it is written."""
    types: Mapping[str, str]
    """Group name → converter name of `fields.CONVERTERS`."""

    @property
    def regex(self) -> Compiled:
        """Compiled when it is first needed: to compile all of a library takes longer than to analyse most bundles."""
        return compiled(self.source)


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    """A message as it is matched: without stamps and process prefixes."""
    pattern: str
    """Name of the pattern that must hit, or empty for a line that must not match at all."""
    fields: Mapping[str, Any]
    """Values that must be captured, exactly."""
    channel: str
    level: str
    note: str


@dataclass(frozen=True, slots=True)
class Version:
    program: str
    range: str
    source: str


@dataclass(frozen=True, slots=True)
class Signature:
    id: str
    title: str
    title_zh: str
    status: str
    severity: Severity
    role: Role
    channels: tuple[str, ...]
    kinds: tuple[str, ...]
    """Event kinds it may fire on; empty for any."""
    anchors: tuple[str, ...]
    """Literals of which every matching line holds at least one; they feed the scan."""
    patterns: tuple[Pattern, ...]
    versions: tuple[Version, ...]
    description: str
    false_positives: tuple[str, ...]
    references: tuple[str, ...]
    overlaps: tuple[str, ...]
    """Signatures that may fire on the same line on purpose."""
    examples: tuple[Example, ...]
    phase: str
    """Phase of an engine's run that this line begins (one of `PHASES`), or empty."""
    witness: bool
    """True when the message reports the end of a process or container; `exit_code`, `signal` and `container` are its
    fields where it names them.
    """
    quotable: bool
    """True when the message counts at level INFO and in the middle of a line, too."""


def serves(engines: str, engine: str) -> bool:
    """True when a text for `engines` (words of `ENGINES`, empty for all) holds for an engine (empty when unknown)."""
    return not engines or (engine or ENGINES[0]) in engines.split()


def runs_on(words: str, platforms: Sequence[str]) -> bool:
    """True when a text for some platforms (words of `PLATFORMS`, empty for all) holds where an incident ran."""
    return not words or any(word in (platforms or PLATFORMS[:1]) for word in words.split())


@dataclass(frozen=True, slots=True)
class Confirm:
    """Evidence that would confirm or refute a cause, and the command that shows it."""

    evidence: Text
    command: str
    engine: str = ""
    """As in `Condition`."""
    platform: str = ""
    """As in `Condition`. A command for `kubectl` is translated where it has a counterpart (`report.commands`)."""


@dataclass(frozen=True, slots=True)
class Condition:
    """When a text of a cause holds."""

    when: str
    """Empty for always, or words of which one must hold: a key fact (`max_num_seqs`), a key fact with its value
    (`resource=memory`), or a finding among the evidence (`hub.gated`, `oomd.*`).
    """
    engine: str
    """Empty for every engine, or words of `ENGINES`: a flag of one server means nothing to another."""
    platform: str = ""
    """Empty for everywhere, or words of `PLATFORMS`: a field of a pod means nothing to a unit."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Ids of findings that it names."""
        return tuple(word for word in self.when.split() if "." in word and "=" not in word)


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to change, not to do, or to prepare for the next time."""

    condition: Condition
    text: Text


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which a cause comes about, where the general texts would say something that did not happen."""

    condition: Condition
    texts: Mapping[str, Text]
    """`summary`, `mechanism`, `verify`: those that differ."""


@dataclass(frozen=True, slots=True)
class Cause:
    id: str
    title: Text
    summary: Text
    mechanism: Text
    decisive: tuple[str, ...]
    supporting: tuple[str, ...]
    contradicting: tuple[str, ...]
    explains: tuple[str, ...]
    """Findings that are consequences when this cause holds."""
    onset: tuple[str, ...]
    """Findings that decide nothing alone but, beside a decisive one, mark where the trouble began."""
    confirm: tuple[Confirm, ...]
    remedies: tuple[Advice, ...]
    avoid: tuple[Advice, ...]
    verify: Text
    prevent: tuple[Advice, ...]
    variants: tuple[Variant, ...] = ()
    contributing: tuple[str, ...] = ()
    """Findings that say why it could come about, beside the symptoms that no cause explains."""

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """All conditions, with the place of each in the file."""
        for key in ("remedies", "avoid", "prevent", "variants"):
            for number, item in enumerate(getattr(self, key), 1):
                yield f"{key}.{number}", item.condition

    def names(self, finding: str) -> tuple[str, ...]:
        """The keys under which this cause names a finding, by id or by `family.*`."""
        return tuple(
            key for key in EVIDENCE_KEYS
            if any(finding == name or _is_family(name, finding) for name in getattr(self, key))
        )  # fmt: skip


def _is_family(name: str, finding: str) -> bool:
    return name.endswith(".*") and finding.startswith(name[:-1])


@dataclass(frozen=True, slots=True)
class Library:
    signatures: Mapping[str, Signature]
    causes: Mapping[str, Cause]

    def anchors(self) -> frozenset[str]:
        """All literals that the scan has to look for."""
        return frozenset(anchor for signature in self.signatures.values() for anchor in signature.anchors)


def path_of(identity: str, cause: bool = False) -> str:
    """File of a signature or a cause, relative to the root of its library."""
    return f"causes/{identity}.toml" if cause else identity.replace(".", "/", 1) + ".toml"
