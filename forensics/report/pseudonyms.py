"""`--redact strict`: names of hosts, pods, users, models, paths and addresses become stable pseudonyms.

What a name stands for is taken from the typed parts of the report (scopes, engine arguments, member paths), so that
it is then found in every sentence and quoted line; addresses, paths and users of quoted lines are found by their form.
The same value gets the same name in every format, and, with a map file, in every report.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import regex

from ..errors import ForensicsError
from ..regexes import lazy_regex

KINDS = ("pod", "workload", "host", "namespace", "model", "user", "file", "path", "ip", "bundle", "image")

_KEPT_NAMES = frozenset({
    "default", "kube-system", "vllm", "sglang", "node", "localhost", "main", "server", "engine", "model", "root",
    "stdin", "kernel", "unknown", "none", "auto", "pod", "host", "user",
})  # fmt: skip
_KEPT_PATHS = lazy_regex(
    r"/(?:usr|proc|sys|dev|bin|sbin|lib|lib64|run|v1|v2|health|metrics|ping|version|tokenize|detokenize|generate|docs"
    r"|openapi|load|tmp/ray|kubepods|system|user|init|kubelet|var/log/pods|var/log|var/lib/kubelet|var/lib/containerd|etc)"
    r"(?:[/.?-]|$)"
)
_PUBLIC_HOSTS = lazy_regex(
    r"(?i)(?:^|\.)(?:pytorch\.org|huggingface\.co|hf\.co|github\.com|vllm\.ai|kubernetes\.io|k8s\.io|nvidia\.com"
    r"|docker\.io|quay\.io|ghcr\.io|nvcr\.io|python\.org|pypi\.org|modelscope\.cn|ray\.io)$"
)
_SUFFIX = lazy_regex(r"\.[A-Za-z0-9]{1,6}")
_FORMS = r"""(?P<ip6>(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:]))
|(?P<ip4>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d))
|(?P<fqdn>(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:internal|local|lan|corp|intra|cluster|svc
|com|net|org|io|cn|cloud|dev|ai|de|eu|uk|fr|jp|in|us|co)(?![\w-]|\.[a-z]))
|(?P<path>(?<![\w:/.<>)\]}-])/(?:[\w.@%+~-]+/)*[\w.@%+~-]*[\w~])
|(?P<before>\buser=['"]?|/home/|\b(?:for|invalid) user |\bfor (?=\S+ from )|\bsudo: +|\bUSER=)
(?P<user>[A-Za-z_][\w.-]*)"""


class Pseudonyms:
    """Assigns names. Mutable on purpose: one object serves all formats of a run."""

    def __init__(self, known: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.table: dict[str, dict[str, str]] = {
            kind: dict((known or {}).get(kind, {})) for kind in KINDS
        }
        self._pattern: regex.Pattern[str] | None = None
        self._literals: dict[str, str] = {}
        self._spaces: dict[str, str] = {}
        """Namespaces: often plain words, so they are replaced only where a namespace stands."""

    def learn(self, kind: str, value: str, shown: str = "") -> None:
        """Give a value a name of its kind; short or generic words are left alone."""
        value = value.strip()
        known = self._spaces if kind == "namespace" else self._literals
        if len(value) < 3 or value.lower() in _KEPT_NAMES or value in known:
            return
        known[value] = shown or self.name(kind, value)
        self._pattern = None

    def name(self, kind: str, value: str) -> str:
        """`host-1`; files keep their suffix."""
        table = self.table[kind]
        if value not in table:
            suffix = Path(value.rstrip("!")).suffix if kind == "file" else ""
            table[value] = f"{kind}-{len(table) + 1}{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        return table[value]

    def apply(self, text: str) -> tuple[str, int]:
        """A text with all names replaced in one pass, and how many were."""
        if self._pattern is None:
            space = _SPACE.format(_either(self._spaces))
            forms = _FORMS.replace("\n", "")
            known = rf"(?<![A-Za-z0-9])(?:{_either(self._literals)})(?![A-Za-z0-9])"
            self._pattern = regex.compile(rf"(?P<known>{known})|(?P<space>{space})|{forms}")
        count = 0

        def put(match: regex.Match[str]) -> str:
            nonlocal count
            shown = self._shown(match)
            count += shown != match[0]
            return shown

        return self._pattern.sub(put, text), count

    def _shown(self, match: regex.Match[str]) -> str:
        if match["known"]:
            return self._literals[match["known"]]
        if match["space"]:
            return self._spaces[match["space"]]
        if match["ip4"] or match["ip6"]:
            return self._address(match[0])
        if match["fqdn"]:
            return match[0] if _PUBLIC_HOSTS.search(match[0]) else self.name("host", match[0].lower())
        if match["path"]:
            kept = _KEPT_PATHS.match(match[0]) or match[0].count("/") < 2
            return match[0] if kept else f"/{self.name('path', match[0])}"
        user = match["user"]
        return match[0] if user in _KEPT_NAMES else match["before"] + self.name("user", user)

    def _address(self, text: str) -> str:
        if ":" in text and "::" not in text and text.count(":") != 7:
            return text  # a clock time or a PCI address
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return text
        return text if address.is_loopback or address.is_unspecified else self.name("ip", text)


_SPACE = (
    r"(?<=(?:-n |[Nn]amespaces?[=:/ ]\s?[\"']?|/pods/))(?:{0})(?![\w-])"
    r"|(?<![\w-])(?:{0})(?=/[a-z0-9])|(?<=_)(?:{0})(?=[_(])"
)


def _either(words: Iterable[str]) -> str:
    """A pattern for any of the words, longest first; one that never matches when there are none."""
    return "|".join(map(regex.escape, sorted(words, key=lambda w: (-len(w), w)))) or "(?!)"


def seed(names: Pseudonyms, seeds: Iterable[tuple[str, str]]) -> None:
    """Teach the typed names of a report, in their order of appearance."""
    for kind, value in seeds:
        names.learn(kind, value)
        if kind == "pod":
            for workload in _workloads(value):
                names.learn("workload", workload)
        elif kind == "model" and "/" in value:
            names.learn("model", value.rstrip("/").rpartition("/")[2], names.name("model", value))
        elif kind == "host" and "." in value and not value.replace(".", "").isdigit():
            names.learn("host", value.partition(".")[0], names.name("host", value))


_HASHES = tuple(map(regex.compile, (r"^(.+)-[a-z0-9]{5}$", r"^(.+)-[a-f0-9]{6,10}-[a-z0-9]{5}$", r"^(.+)-\d+$")))


def _workloads(pod: str) -> list[str]:
    """`chat-6fb6bcbb89-jkzmh` → the names of its replica set and of its deployment."""
    return [found[1] for found in (form.match(pod) for form in _HASHES) if found and len(found[1]) > 3]


def load(path: Path) -> Pseudonyms:
    """Names from a map file, an empty set when there is none yet. Raises `ForensicsError` for any other file."""
    if not path.exists():
        return Pseudonyms()
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return Pseudonyms({k: {str(a): str(b) for a, b in v.items()} for k, v in data["names"].items()})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        problem = f"{path} is no map of pseudonyms ({error})"
        raise ForensicsError(f"{problem}; give a new file name to --redact-map") from None


def dump(names: Pseudonyms) -> str:
    """The private map, as JSON: kind → real value → pseudonym."""
    table: Mapping[str, Mapping[str, str]] = {k: v for k, v in names.table.items() if v}
    return json.dumps({"private": "real names; do not share", "names": table}, ensure_ascii=False, indent=1) + "\n"


def strings(value: Any) -> Sequence[str]:
    """A scalar or a list of scalars as texts."""
    if isinstance(value, str):
        return [value]
    return [str(v) for v in value] if isinstance(value, list | tuple) else []
