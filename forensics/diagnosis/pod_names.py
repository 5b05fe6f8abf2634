"""What the names of pods and of files tell: whose replica a pod is, and whose log a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from ..regexes import lazy_regex
from ..sources import REPLICA

_HASHED_POD = lazy_regex(r"^(?P<workload>.+?)(?P<hash>-[a-f0-9]{6,10})?-(?P<own>[a-z0-9]{5})$")
_FILE_NOISE = lazy_regex(
    r"(?:^|[-_.])(?:previous|prev|current|curr|logs?|kubectl|pod|container|txt|gz|zst|old|new|first|last|run|node|saved|from|start(?:up)?|archive|\d+)(?=[-_.!]|$)",
    regex.IGNORECASE,
)
_RUN_WORDS = lazy_regex(r"(?i)(?:^|[-_.])(?:previous|prev|current|curr)(?=[-_.!]|$)")
"""Words by which people tell the runs of one container apart."""
_CUT_WORDS = lazy_regex(
    r"(?i)(?:^|[-_.])(?:head|tail|boot|start(?:up)?|begin(?:ning)?|first|last|end)(?:[-_.]of)?(?=[-_.]|$)[-_]?"
    r"|(?<=\.(?:out|err|log))\.txt$"
)
"""Words by which people tell the two ends of one log apart."""
_STREAM_WORDS = lazy_regex(r"(?i)(?<=[-_.])(?:std)?(?:out|err)(?=[-_.]|$)")
"""Endings of a job's, or a supervisor's, two streams: `slurm-4711.out` and `.err`, `vllm-stderr.log`."""
_COMMON_WORDS = frozenset({"vllm", "llama", "qwen", "model", "server", "serve", "inference", "engine", "service"})
_SAID_OF_ANY = frozenset({
    "after", "all", "and", "api", "apiserver", "attachment", "attachments", "before", "boot", "bug", "bundle",
    "cloudwatch", "cluster", "collected", "compose", "console", "crash", "cuda", "data", "describe", "dienstag",
    "dimanche", "dmesg", "docker", "domingo", "donnerstag", "driver", "dump", "engine", "err", "error", "errors",
    "event", "events", "exception", "excerpt", "export", "fault", "file", "files", "for", "freitag", "friday",
    "full", "gateway", "gpu", "gpus", "grafana", "head", "host", "incident", "insights", "issue", "jeudi", "job",
    "journal", "journalctl", "jueves", "k8s", "kern", "kernel", "kube", "leader", "lines", "llm", "llms",
    "lmdeploy", "logs", "loki", "lundi", "lunes", "main", "mardi", "martes", "mercredi", "messages", "metrics",
    "mittwoch", "model", "monday", "montag", "morning", "nccl", "new", "night", "node", "nodes", "note", "old",
    "ollama", "oom", "other", "out", "output", "part", "paste", "pasted", "pods", "problem", "prod", "python",
    "quarta", "query", "quinta", "rank", "raw", "ray", "readme", "replica", "report", "request", "requests", "rest",
    "result", "results", "router", "samedi", "samstag", "saturday", "screen", "segunda", "server", "service",
    "session", "sexta", "sglang", "slurm", "snippet", "sonntag", "stack", "staging", "status", "stderr", "stdout",
    "stern", "sunday", "syslog", "systemd", "tail", "terminal", "tgi", "the", "thursday", "today", "torch", "trace",
    "traceback", "triton", "tuesday", "vendredi", "viernes", "vllm", "wednesday", "with", "worker", "workers",
    "xid", "yesterday",
})  # fmt: skip
"""What the names of engines and of files share with every text about them."""


def workload_of(name: str) -> str:
    """`pod:chat-qwen3-14b-6fb6bcbb89-jkzmh` → `chat-qwen3-14b`."""
    bare = name.partition(":")[2] or name
    found = _HASHED_POD.match(bare)
    return found["workload"] if found else bare


def named_in(source: str, pods: Iterable[str]) -> str:
    """The pod whose whole name a file bears, or its folder is; the longest, where one name begins another.

    Else the only one whose name without the hash of its revision a file bears, as people shorten it.
    """
    *folders, base = source.split("/")
    bare = {pod.partition(":")[2]: pod for pod in pods}
    found = [name for name in bare if name in folders or (regex.search(r"\d", name) and _bears(base, name))]
    if found:
        return bare[max(found, key=len)]
    short = [name for name in bare if any(own in folders or _bears(base, own) for own in _short_names(name))]
    return bare[short[0]] if len(short) == 1 else ""


def _short_names(pod: str) -> Iterator[str]:
    """`chat-6f9c7d5b8-x2k4p` → `chat-x2k4p`, `x2k4p`. Letters alone may be a word."""
    if (found := _HASHED_POD.match(pod)) and found["hash"]:
        yield f"{found['workload']}-{found['own']}"
        if regex.search(r"\d", found["own"]):
            yield found["own"]


def replica_in(source: str, pods: Iterable[str]) -> str:
    """The pod whose whole name a file bears, of a Deployment of which only other pods are known; empty when none."""
    base = source.rpartition("/")[2]
    for workload in {workload_of(pod) for pod in pods if workload_of(pod) != pod.partition(":")[2]}:
        if found := regex.search(rf"(?<![a-z0-9]){regex.escape(workload)}-{REPLICA}(?![a-z0-9])", base):
            return f"pod:{found[0]}"
    return ""


def log_of(name: str) -> str:
    """A log's name without what tells its runs, its streams and its pieces apart: `vllm_boot.log` → `vllm.log`."""
    whole = name
    for words in (_CUT_WORDS, _RUN_WORDS, _STREAM_WORDS):
        whole = words.sub("", whole)
    return whole if regex.search(r"\p{L}{2}", whole.partition(".")[0]) else name


def tells_run(path: str) -> bool:
    """True for a file that bears such a word: `chat-previous.log`."""
    return _RUN_WORDS.search(path.rpartition("/")[2]) is not None


def stream_of(path: str) -> str:
    """The path without that, of a file that holds one of two streams; empty for any other."""
    folder, slash, name = path.rpartition("/")
    bare = _STREAM_WORDS.sub("", name)
    return f"{folder}{slash}{bare}" if bare != name else ""


def _bears(file: str, name: str) -> bool:
    """True for `chat-0_previous.log` and `chat-0`; not for `chat-0-1.log`, which is the second of a group."""
    return bool(regex.search(rf"(?<![a-z0-9]){regex.escape(name)}(?![a-z0-9]|-\d)", file))


def resembles(path: str, pod: str) -> bool:
    """True where a path and a pod's workload have a telling word in common, or a file's name begins the pod's."""
    return bool(_words(path) & _words(workload_of(pod))) or _begins(path, pod)


_ID = lazy_regex(r"(?=[a-f]*\d)[a-f\d]{6,}")


def telling_words(name: str) -> Iterator[str]:
    """The words of a pod's, a unit's or a file's name by which people call an engine, with numbers and without.

    Of a file whose own name says nothing, those of its folder: `chat/vllm.log`.
    """
    *folders, base = name.split("/")
    words = list(_telling(base.partition(".")[0]))
    yield from words or (word for folder in folders[-1:] for word in _telling(folder))


def _telling(text: str) -> Iterator[str]:
    for word in regex.findall(r"\p{Latin}[\p{Latin}\p{N}]*", text.lower()):
        bare = word.rstrip("0123456789")
        if bare not in _SAID_OF_ANY and not _FILE_NOISE.fullmatch(bare) and not _ID.fullmatch(word):
            yield from (part for part in {word, bare} if len(part) > 2 and part not in _COMMON_WORDS)


def _words(path: str) -> set[str]:
    words = set(regex.split(r"[^a-z]+", path.lower()))
    return {word for word in words if len(word) >= 4 and word not in _COMMON_WORDS and not _FILE_NOISE.fullmatch(word)}


def _begins(path: str, pod: str) -> bool:
    """True when a file's name without `previous`, `log` and the like begins the pod's: `phi4-prev.log`, `phi4-0`."""
    stem, shorter = "", path.rpartition("/")[2].lower()
    while stem != shorter:
        stem, shorter = shorter, _FILE_NOISE.sub("", shorter)
    stem = stem.strip("-_.")
    telling = len(stem) >= 3 and any(map(str.isalpha, stem)) and stem not in _COMMON_WORDS
    return telling and f"{pod.partition(':')[2]}-".startswith(f"{stem}-")
