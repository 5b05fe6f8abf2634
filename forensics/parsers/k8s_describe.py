"""`kubectl describe` of pods, nodes and workloads, turned back into API objects.

The text is aligned by a tab writer, so keys are found by their indentation: 0 the object, 2 (3 in a template)
a container's name, 4 its keys, 6 its values and states. A message of several lines is printed raw, its
further lines start in column 0; it ends where the key that must follow it stands. Times are RFC 1123 with the
offset of the kubectl client. Source: kubectl `pkg/describe`, 1.27 to 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..model import Event, Locator
from ..regexes import lazy_regex
from .k8s_blocks import (
    Block,
    Blocks,
    add_conditions,
    blocks_of,
    child,
    fill_node,
    fill_workload,
    put_text,
    put_time,
)
from .k8s_cluster import Occurrence, node_events, occurrence_events, with_age, workload_events
from .k8s_containers import Lines, add_containers, add_volumes, container_of, starts_container
from .k8s_facts import pod_events, without_defaults
from .located import Array, Object
from .tables import titled

_AFTER_NAME = (
    "Namespace:",
    "Roles:",
    "Labels:",
    "Priority:",
    "Annotations:",
    "CreationTimestamp:",
    "Selector:",
    "Service Account:",
    "Node:",
    "Start Time:",
)
"""Keys of the head; a ticket may have lost any of its lines, so some stand here that never follow at once."""
_POD_KEYS = ("Containers", "Init Containers", "QoS Class", "Node-Selectors")
"""Keys that in column 0 only a pod has: a workload's are in its template."""
_FIELD_PREFIX = lazy_regex(r"(?P<path>spec\.\w+\{[^}]+\}): ")
_ROW = lazy_regex(r"  (?:Normal|Warning)\s")
_NAMED = lazy_regex(r"Name:\s+\S")
_STATE = lazy_regex(r"(?P<indent> *)(?:Last )?State: +(?:Running|Waiting|Terminated)\s*")
_HEADED = lazy_regex(r" {0,8}(?P<name>[a-z0-9][a-z0-9.-]*):\s*")
_FIRST_KEYS = lazy_regex(r" +(?:Container ID|Image|Port|Host Port|State):\s")
_TOLD = r"(?:Reason|Exit [Cc]ode|Signal|Started|Finished|Restart Count|Ready)"
_IN_A_ROW = lazy_regex(
    rf" *(?:Last )?State: +Terminated[ ,;|·(\t]+(?=.*\bExit [Cc]ode: *\d)(?:{_TOLD}: *[^\n]{{1,80}})+"
)
"""A state whose lines somebody, or the template of an alert, put into one."""
_BETWEEN = lazy_regex(rf"[ ,;|·()\t]+(?={_TOLD}:|$)")
_PROBE_ROW = lazy_regex(r" *(?:Liveness|Readiness|Startup): +\S.* delay=\d+s timeout=\d+s period=\d+s ")
"""What only a described container has, also where nothing else of it was copied."""
_BLOCK_LINES = 60
"""Lines from the name of a container to its states: arguments stand between them."""
_ANY_KEY = lazy_regex(r" *[A-Z][\w ()-]*:(?:\s|$)")
_OWN_KEY = lazy_regex(
    r" *(?:(?:Last )?State|Ready|Restart Count|Limits|Requests|Liveness|Readiness|Startup|Environment|Mounts):(?:\s|$)"
)
"""What may stand below a piece that had no shape of its own."""
_KEY_INDENT = 4
_OBJECT_LINES = 150
"""Lines from the head of a described pod to the states of its containers."""
_CONTAINER_LISTS = (
    ("Init Containers", "initContainers", "initContainerStatuses"),
    ("Containers", "containers", "containerStatuses"),
    ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
)


def starts_object(lines: Sequence[str], index: int) -> bool:
    """True where a described object begins: `Name:` in column 0, soon followed by another key of the head."""
    if not lines[index].startswith("Name:") or not _NAMED.match(lines[index]):
        return False
    return any(line.startswith(_AFTER_NAME) for line in lines[index + 1 : index + 4])


def starts_state(lines: Sequence[str], index: int) -> bool:
    """True where the states of a container stand without the object around them: the part that seems to matter.

    Its block may begin with its name, or be no more than a state in one line, or the probes.
    """
    line = lines[index]
    if line.rstrip().endswith(":"):
        return _starts_block(lines, index)
    alone = ("State: " in line and _IN_A_ROW.match(line)) or (" delay=" in line and _PROBE_ROW.match(line))
    if not alone and not ("State: " in line and _STATE.fullmatch(line)):
        return False
    deeper = index + 1 < len(lines) and _indent(lines[index + 1]) > _indent(line)
    above = range(max(0, index - _OBJECT_LINES), index) if alone or deeper else range(0)
    return bool(alone or deeper) and not any(starts_object(lines, number) for number in above)


def _starts_block(lines: Sequence[str], index: int) -> bool:
    """True for the name of a container above its keys, outside of a described object."""
    following = lines[index + 1 : index + 2]
    if not _HEADED.fullmatch(lines[index]) or not following or not _FIRST_KEYS.match(following[0]):
        return False
    belongs = state_goes_on(lines, index)
    states = (i for i in range(index + 1, min(len(lines), index + _BLOCK_LINES)) if _STATE.fullmatch(lines[i]))
    first = next(states, None)
    above = range(max(0, index - _OBJECT_LINES), index)
    whole = first is not None and all(map(belongs, range(index + 1, first)))
    return whole and not any(starts_object(lines, number) for number in above)


def state_goes_on(lines: Sequence[str], first: int) -> Callable[[int], bool]:
    """The keys of the same container, and what stands below them."""
    indent = _indent(lines[first])
    key = _OWN_KEY if _IN_A_ROW.match(lines[first]) or _PROBE_ROW.match(lines[first]) else _ANY_KEY

    def belongs(index: int) -> bool:
        line = lines[index]
        deep = _indent(line) - indent
        return bool(line.strip()) and (deep > 0 or (deep == 0 and key.match(line) is not None))

    return belongs


def state_events(lines: Sequence[str], first: int, source: str) -> list[Event]:
    """The facts of a container whose states begin at an index. Its pod is unknown, and its name if none heads it."""
    belongs = state_goes_on(lines, first)
    end = next((i for i in range(first + 1, len(lines)) if not belongs(i)), len(lines))
    headed = _HEADED.fullmatch(lines[first])
    start = first + 1 if headed else first
    indent = _indent(lines[start])
    block = [(i + 1, " " * _KEY_INDENT + row) for i in range(start, end) for row in _rows(lines[i][indent:])]
    pod = Object(first + 1)
    spec, status = container_of(block, headed["name"] if headed else "")
    for part, key, of_one in (("spec", "containers", spec), ("status", "containerStatuses", status)):
        every = Array(first + 1)
        every.add(of_one, first + 1)
        child(pod, part, first + 1).put(key, every, first + 1)
    events = pod_events(pod, source, printed_lines=True)
    return events if any("Mounts:" in line for _, line in block) else [without_defaults(event) for event in events]


def _rows(line: str) -> list[str]:
    """The lines of a state that were put into one; any other line as it is."""
    if not _IN_A_ROW.match(line):
        return [line]
    state, *told = _BETWEEN.split(line)
    rows = (row.replace("Exit code:", "Exit Code:") for row in told if row)
    return [state, *(row if row.startswith(("Restart Count", "Ready")) else f"  {row}" for row in rows)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def object_events(lines: Lines, source: str) -> list[Event]:
    """The facts of one described object: a pod, a node, a workload; other kinds give their events only."""
    blocks = blocks_of(lines)
    entry = Object(lines[0][0])
    metadata = child(entry, "metadata", entry.line)
    put_text(metadata, "name", blocks, "Name")
    put_text(metadata, "namespace", blocks, "Namespace")
    put_time(metadata, "creationTimestamp", blocks, "CreationTimestamp")
    kind = _kind_of(blocks)
    events: list[Event] = []
    host = ""
    if kind == "Pod":
        _fill_pod(entry, blocks)
        host = entry["spec"].get("nodeName", "")
        events += pod_events(entry, source, printed_lines=True)
    elif kind == "Node":
        fill_node(entry, blocks)
        events += node_events(entry, source)
    elif kind:
        fill_workload(entry, blocks)
        events += workload_events(entry, kind, source)
    about = Occurrence(
        "",
        "",
        object_kind=kind,
        object_name=blocks.value("Name"),
        namespace=blocks.value("Namespace"),
        host=host,
    )
    return [*events, *_table_events(blocks.get("Events"), about, source)]


def _kind_of(blocks: Blocks) -> str:
    if any(key in blocks for key in _POD_KEYS) or ("Node" in blocks and "Start Time" in blocks):
        return "Pod"
    if "System Info" in blocks or "Capacity" in blocks:
        return "Node"
    if "Pod Template" not in blocks:
        return ""
    if "StrategyType" in blocks:
        return "Deployment"
    if "Desired Number of Nodes Scheduled" in blocks:
        return "DaemonSet"
    if "Completions" in blocks or "Parallelism" in blocks:
        return "Job"
    if "Update Strategy" in blocks or "Volume Claims" in blocks:
        return "StatefulSet"
    return "ReplicaSet"


def _fill_pod(pod: Object, blocks: Blocks) -> None:
    spec, status = child(pod, "spec", pod.line), child(pod, "status", pod.line)
    node = blocks.value("Node").partition("/")[0]
    if node:
        spec.put("nodeName", node, blocks.get("Node").line)
    put_time(status, "startTime", blocks, "Start Time")
    phase = blocks.value("Status")
    if phase.startswith("Terminating"):
        pod["metadata"].put("deletionTimestamp", "", blocks.get("Status").line)
    if phase:
        status.put("phase", phase.partition(" (")[0], blocks.get("Status").line)
    for title, key in (("Reason", "reason"), ("IP", "podIP"), ("QoS Class", "qosClass")):
        put_text(status, key, blocks, title)
    message = blocks.get("Message")
    if message.value:
        rest = [line for _, line in message.body]
        status.put("message", "\n".join([message.value, *rest]).strip(), message.line)
    _put_owner(pod["metadata"], blocks)
    for title, spec_key, status_key in _CONTAINER_LISTS:
        body = blocks.get(title).body
        if title == "Containers" and title not in blocks:
            body = _untitled_containers(blocks)
        add_containers(body, spec, spec_key, status, status_key)
    add_volumes(blocks.get("Volumes").body, spec)
    selector = child(spec, "nodeSelector", blocks.get("Node-Selectors").line)
    for name, value, number in blocks.get("Node-Selectors").pairs():
        selector.put(name, value, number)
    add_conditions(status, blocks)


def _untitled_containers(blocks: Blocks) -> Lines:
    """The lines of the containers where `Containers:` itself was cut away: they stand below the key before it."""
    for block in blocks:
        if block.key not in ("Init Containers", "Ephemeral Containers"):
            first = next((i for i, (_, line) in enumerate(block.body) if _STATE.fullmatch(line)), None)
            if first is not None:
                named = (i for i in range(first, -1, -1) if starts_container(block.body[i][1]))
                return block.body[next(named, first) :]
    return []


def _put_owner(metadata: Object, blocks: Blocks) -> None:
    kind, mark, name = blocks.value("Controlled By").partition("/")
    if mark:
        line = blocks.get("Controlled By").line
        owners, owner = Array(line), Object(line)
        owner.put("kind", kind, line)
        owner.put("name", name, line)
        owners.add(owner, line)
        metadata.put("ownerReferences", owners, line)


def _table_events(block: Block, about: Occurrence, source: str) -> Iterator[Event]:
    """The Events table. A row's message may go on in column 0; ages count back from the capture.

    From 1.35 on, kubectl puts the container before the message, `spec.containers{vllm}: Started …`.
    """
    header, first = titled(block.body, "Type", "Reason", "Age", "From", "Message")
    if header is None:
        return
    rows: list[tuple[int, str]] = []
    for number, line in block.body[first:]:
        if _ROW.match(line):
            rows.append((number, line))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]}\n{line}")
    for number, row in rows:
        cells = header.cells(row.rstrip())
        message = cells["Message"]
        prefix = _FIELD_PREFIX.match(message)
        of_pod = not about.object_kind and about.namespace and cells["From"].startswith("kubelet")
        seen = replace(
            about, object_kind="Pod" if of_pod else about.object_kind, reason=cells["Reason"],
            event_type=cells["Type"], component=cells["From"],
            message=message[prefix.end() :] if prefix else message,
            field_path=prefix["path"] if prefix else "",
            host=about.host if cells["From"] == "kubelet" else "",
        )  # fmt: skip
        place = Locator(source, number, number + row.rstrip().count("\n"))
        yield from occurrence_events(with_age(seen, cells["Age"]), place)
