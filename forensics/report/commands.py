"""Commands where there is no Kubernetes: the library writes them for `kubectl`, this says the same for others.

A command that has no counterpart is not shown: nobody can run it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..regexes import lazy_regex


@dataclass(frozen=True, slots=True)
class _Tools:
    logs: str
    """Prints the engine's log."""
    inside: str
    """Begins a command that runs where the engine runs; empty on the machine itself."""
    state: str
    """Shows what was started, with which limits, and how it ended."""


_TOOLS = {
    "podman": _Tools("podman logs <container>", "podman exec <container> ", "podman inspect <container>"),
    "docker": _Tools("docker logs <container>", "docker exec <container> ", "docker inspect <container>"),
    "systemd": _Tools("journalctl -u <unit> -o cat", "", "systemctl show <unit>"),
    "slurm": _Tools("cat slurm-<job>.out", "", "sacct -j <job> -o JobID,State,ExitCode,DerivedExitCode,MaxRSS,ReqMem"),
    "ray": _Tools("cat <engine log>", "", "ray status"),
    "bare": _Tools("cat <engine log>", "", "ps -o pid,ppid,etime,rss,args -p <pid>"),
}
"""In the order in which they are asked: the container's tools before those of the unit that runs it."""
_WHERE = r"(?:-n <?[\w.-]+>? )?"
_POD = r"<?[\w.-]+>?"
_LOGS = lazy_regex(
    rf"kubectl {_WHERE}logs {_WHERE}{_POD}(?: -c <?[\w.-]+>?)?"
    r"(?: --(?:previous|timestamps|all-containers|since=\w+)){0,4}(?= |;|$)"
)
_GATEWAY = lazy_regex(rf"kubectl {_WHERE}logs deployment/<gateway>(?: --since(?:-time)?=\S+)?(?= |;|$)")
_EXEC = lazy_regex(rf"kubectl {_WHERE}exec {_POD}(?: -c <?[\w.-]+>?)? -- ")
_STATE = lazy_regex(
    rf"kubectl {_WHERE}(?:describe pod {_WHERE}{_POD}|get pod {_POD}(?: -o (?:wide|yaml))?)(?= *(?:;|$|>))"
)
_ONLY_CLUSTER = lazy_regex(r"\bkubectl |\bcrictl |/var/log/pods|/var/lib/kubelet")
_ADDRESS = lazy_regex(r"<pod[ -]ip>")
_SEPARATOR = lazy_regex(r"; (?=(?:[^']*'[^']*')*[^']*$)")
"""Between commands, outside of quotes."""


def on(command: str, platforms: Sequence[str]) -> str:
    """A command as it is given on the platforms of an incident; empty when it cannot be.

    Without any platform the command stays what it is.
    """
    if not platforms or "kubernetes" in platforms:
        return command
    tools = next(_TOOLS[name] for name in _TOOLS if name in platforms)
    parts = []
    for part in _SEPARATOR.split(command):
        said = _GATEWAY.sub("cat <gateway log>", _LOGS.sub(tools.logs, part))
        said = _STATE.sub(tools.state, _EXEC.sub(tools.inside, said))
        said = _ADDRESS.sub("localhost", said)
        if not _ONLY_CLUSTER.search(said):
            parts.append(said)
    return "; ".join(parts)
