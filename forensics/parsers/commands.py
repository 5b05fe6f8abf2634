"""Headings over the output of a command, and whose output it is: `$ kubectl logs vllm-0`, `### COMMAND: dmesg -T`."""

from __future__ import annotations

from .. import sources
from ..model import Scope
from ..regexes import lazy_regex
from . import sections

_COMMAND = lazy_regex(
    r"(?:\[?[\w.:@~/\\ -]{0,80}\]?[$#%>❯➜]+ ?|[-#=*+>]{1,12} ?)(?:[A-Za-z]{3,12}(?: \d+)?: ?)?(?:sudo (?:-\S+ )*)?"
    r"(?P<title>(?:kubectl|oc|k3s|microk8s|docker|podman|nerdctl|crictl|nvidia-smi|journalctl|dmesg|free|df|ps|top|cat"
    r"|tail|head|grep|cd|ssh|systemctl|ray|curl|date|uptime|sar|vmstat|ls|echo|helm|squeue|sacct|scontrol|exit)\b"
    r"(?:[ \t].*)?)"
)
_RULED = lazy_regex(r"(?=.*\w)(?P<rule>[=*#-])(?P=rule){2,} ?(?P<title>\S.*?\S) ?(?P=rule){3,}\s*")
"""With a word in it: dashes alone are the rule below a table's header."""
_WORDS = lazy_regex(r"'[^']*'|\"[^\"]*\"|[^\s|;>&]+|[|;>&]")
_WITH_VALUE = frozenset({
    "-n", "--namespace", "-c", "--container", "-l", "--selector", "--tail", "--since", "--since-time", "--context",
    "--kubeconfig", "-s", "--server", "--cluster", "--user", "--limit-bytes", "-o", "--output", "--target", "-p", "-i",
    "-F", "-J", "--format", "--type",
})  # fmt: skip
_NAME = lazy_regex(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_ID = lazy_regex(r"(?:sha256:)?[0-9a-f]{12,64}")
_HOST = lazy_regex(r"(?:[\w.-]+@)?(?P<host>[A-Za-z][\w.-]*)")
_PODS = frozenset({"po", "pod", "pods"})
_REPLICA = lazy_regex(rf"(?:pods?[/: ] ?)?(?P<pod>[a-z0-9][a-z0-9.-]{{0,200}}-{sources.REPLICA})(?![\w.-])")
_READERS = frozenset({"cat", "zcat", "tail", "head", "less", "grep", "zgrep", "gsutil", "gcloud", "aws", "az"})
"""Programs that print a file, whose path may name its owner."""
_RUNTIMES = frozenset({"docker", "podman", "nerdctl", "crictl"})


def title_of(line: str) -> str:
    """The heading or command in a line, empty when it is neither."""
    if len(line) > 300 or line[:1].isspace() or not line or "NVSMI LOG" in line or "Autoscaler status:" in line:
        return ""
    line = line.rstrip()
    found = _COMMAND.fullmatch(line) or _RULED.fullmatch(line)
    return str(found["title"]) if found else sections.title_of(line)


def is_command(line: str) -> bool:
    """Whether a line is a prompt or a heading with a known command."""
    return len(line) <= 300 and _COMMAND.fullmatch(line.rstrip()) is not None


def owner_of(command: str) -> Scope:
    """Whose lines a command prints: pod and container of `kubectl logs` and `docker inspect`, the host behind `ssh`,
    the pod in the path of a log. A heading may be a pod's name: `=== chat-6f9c7d5b8-x2k4p (previous) ===`.
    """
    words = _WORDS.findall(command)
    for index, word in enumerate(words):
        if word in ("kubectl", "oc"):
            own = _until_pipe(words[index + 1 :])
            return _pod(own, words[index + 1 + len(own) :][:1] == ["|"])
        if word in _RUNTIMES and "logs" in words[index + 1 : index + 3]:
            given = _positional(_until_pipe(words[index + 1 :]), flags={"-f", "-t"})[0]
            name = given[1] if len(given) > 1 else ""
            return Scope(container=name) if _NAME.fullmatch(name) and word != "crictl" else Scope()
        if word in _RUNTIMES and "inspect" in words[index + 1 : index + 3]:
            asked = ["--format" if other == "-f" else other for other in _until_pipe(words[index + 1 :])]
            given = _positional(asked, flags=set())[0]
            named = given[-1] if len(given) > 1 and word != "crictl" else ""
            return Scope(container=named) if _NAME.fullmatch(named) and not _ID.fullmatch(named) else Scope()
        if word == "ssh":
            given = _positional(words[index + 1 :], flags={"-t", "-T", "-q"})[0]
            found = _HOST.fullmatch(given[0]) if given else None
            return Scope(host=found["host"]) if found else Scope()
        if word in _READERS:
            owners = {sources.owner(path) for path in _until_pipe(words[index + 1 :]) if "/" in path}
            return next(iter(owners)) if len(owners) == 1 else Scope()
    replica = _REPLICA.match(command)
    return Scope(pod=replica["pod"]) if replica else Scope()


def _until_pipe(words: list[str]) -> list[str]:
    end = next((i for i, word in enumerate(words) if word in ("|", ";", ">", "&")), len(words))
    return words[:end]


def _pod(words: list[str], filtered: bool) -> Scope:
    given, options = _positional(words, flags={"-p", "-f", "-i"})
    if _cuts_out(given, options) or (filtered and _describes_one(given)):  # a piece of a pod does not say whose it is
        given = ["logs", *given[2:3]] if given[1] in _PODS else ["logs", given[1]]
    namespace = options.get("-n") or options.get("--namespace") or ""
    if given[:1] != ["logs"]:
        return Scope(namespace=namespace)
    name = given[1].removeprefix("pods/").removeprefix("pod/") if len(given) > 1 else ""
    container = given[2] if len(given) > 2 else options.get("-c") or options.get("--container") or ""
    if not _NAME.fullmatch(name):
        name = ""
    return Scope(
        namespace=namespace, pod=name,
        container=container if name and _NAME.fullmatch(container) else "",
    )  # fmt: skip


def _cuts_out(given: list[str], options: dict[str, str]) -> bool:
    """True for `kubectl get pod <name> -o jsonpath=…`, and for a template of Go."""
    form = options.get("-o") or options.get("--output") or ""
    of_pod = given[:1] == ["get"] and len(given) > 1 and (given[1] in _PODS or given[1].startswith(("pod/", "pods/")))
    return of_pod and form.startswith(("jsonpath", "go-template"))


def _describes_one(given: list[str]) -> bool:
    """True for `kubectl describe pod <name>`; what a filter leaves of it has lost the name."""
    form = given[1:2] and ((given[1] in _PODS and len(given) == 3) or given[1].startswith(("pod/", "pods/")))
    return given[:1] == ["describe"] and bool(form)


def _positional(words: list[str], flags: set[str]) -> tuple[list[str], dict[str, str]]:
    """Words that are no option, and the options with their values."""
    given: list[str] = []
    options: dict[str, str] = {}
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif word.startswith("-"):
            name, mark, value = word.partition("=")
            skip = not mark and name in _WITH_VALUE and name not in flags
            options[name] = value if mark else words[index + 1] if skip and index + 1 < len(words) else ""
        else:
            given.append(word)
    return given, options
