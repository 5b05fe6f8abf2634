"""What kubectl answers to a person: `rollout status`, and the one-line replies to commands that change something.

Wordings of kubectl 1.20 to 1.34 (`pkg/cmd/rollout`, `polymorphichelpers/rollout_status.go`, the printers of
`cli-runtime`) and of `oc`. The lines have no time: they tell what was done, in order.
"""

from __future__ import annotations

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head, mostly
from .layer import clean

_WAITING = lazy_regex(
    r'Waiting for (?:(?P<kind>deployment|daemon set|statefulset) "?(?P<name>[\w.-]*)"? rollout to finish'
    r"|\d+ pods? to be ready|partitioned roll ?out|[\w ]{0,60}spec update to be observed).*"
)
_DONE = lazy_regex(
    r'(?P<kind>deployment|daemon set|statefulset)(?:\.apps/| )"?(?P<name>[\w.-]+)"? successfully rolled out'
    r"|(?:partitioned roll out|statefulset rolling update|rolling update) complete.*"
)
_FAILED = lazy_regex(
    r'error: (?P<kind>deployment|daemon set|statefulset) "(?P<name>[\w.-]+)" exceeded its progress deadline'
    r"|error: timed out waiting for the condition(?: on \S+)?|error: watch closed before .*"
)
_VERBS = (
    "restarted|scaled|patched|created|configured|unchanged|deleted|annotated|labeled|edited|replaced|exposed|autoscaled|"
    "rolled back|cordoned|uncordoned|already cordoned|drained|evicted|tainted|paused|resumed|condition met|"
    "resource requirements updated|image updated|env updated|force deleted|serverside-applied|pruned"
)
_REPLY = lazy_regex(
    r"(?:(?P<kind>[a-z]+(?:\.[a-z0-9.-]+)?)/(?P<name>[\w.:-]+)"
    r"|(?P<kind2>[a-z]+(?:\.[a-z0-9.-]+)?) \"(?P<name2>[\w.:-]+)\")"
    rf" (?P<verb>{_VERBS})(?: \(.*\))?(?: from \S+ namespace)?"
)
_EVICTING = lazy_regex(r"evicting pod (?:(?P<namespace>[\w-]+)/)?(?P<name>[\w.-]+)(?: \(.*)?")
_MORE = lazy_regex(
    r"[Ww]arning: .*|WARNING: .*|There are pending nodes to be drained:|\s+[\w.-]+|error when evicting pods?\b.*|"
    r"Flag --\S+ has been deprecated.*|pods? \"?[\w.-]+\"? deleted.*|rollout history.*|"
    r"(?:\S+ ?)?(?:[$#>] (?:kubectl|oc)|\+ \S+) .*"  # a prompt, or the trace of a script
)


def _event(line: str, number: int, source: str) -> Event | None:
    text = clean(line).strip()
    if not text[:1].islower() and not text.startswith("Waiting for "):
        return None  # as most lines of other files
    for pattern, state in ((_FAILED, "failed"), (_DONE, "done"), (_WAITING, "waiting")):
        if found := pattern.fullmatch(text):
            kind, name = found.groupdict().get("kind"), found.groupdict().get("name")
            fields: dict[str, object] = {"rollout": state}
            fields |= {"workload_kind": kind.title().replace(" ", "")} if kind else {}
            fields |= {"workload_name": name} if name else {}
            return Event(Locator(source, number, number), "workload", "k8s", text, fields=fields, raw=line)
    if found := _REPLY.fullmatch(text):
        kind, name = found["kind"] or found["kind2"], found["name"] or found["name2"]
        kind, verb = kind.partition(".")[0], found["verb"]
    elif found := _EVICTING.fullmatch(text):
        kind, name, verb = "pod", found["name"], "evicted"
    else:
        return None
    scope = Scope(pod=name) if kind == "pod" else Scope(host=name) if kind == "node" else Scope()
    return Event(
        Locator(source, number, number), "operation", "k8s", text, scope=scope,
        fields={"verb": verb, "object_kind": kind, "object_name": name}, raw=line,
    )  # fmt: skip


def read(text: str, source: str) -> Parsed:
    """`workload` with `rollout` (waiting, done, failed), and `operation` for what a command did."""
    events = (_event(line, number, source) for number, line in enumerate(text.split("\n"), 1))
    return Parsed(tuple(event for event in events if event is not None))


def _sniff(head: Head) -> int:
    lines = head.filled
    if not lines or not mostly(lambda line: _event(line, 0, ""), lines, 0.5):
        return 0
    other = sum(_event(line, 0, "") is None and not _MORE.fullmatch(clean(line)) for line in lines)
    return 90 if other <= 0.1 * len(lines) else 0


FORMAT = Format("k8s.reply", "kubectl rollout status or replies", _sniff, read, 4 << 20, begins=r"\D")
