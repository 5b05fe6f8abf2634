"""Who is who: join pod names, uids, container ids, units and files into entities.

An entity is one running thing that can die: a pod, a plain container, a systemd unit, or – when nothing says more –
the file that holds a log. Kernel pids are host pids and an engine's are container pids, so nothing is joined by pid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from ..model import Event, Scope
from ..parsers.kernel import ENGINE_COMM as ENGINE_COMM
from ..parsers.kernel import hits_engine as hits_engine
from ..regexes import lazy_regex

GENERIC_COMM = lazy_regex(r"python[\d.]*|pt_main_thread")
"""Those process names that an engine shares with every other program in Python."""
CLUSTER_NAME = lazy_regex(
    r"(?:kube-|calico|cilium|coredns|dns-|etcd|flannel|weave|canal|node-exporter|node-problem|nvidia-|dcgm|gpu-|nfd-|prometheus"
    r"|grafana|alertmanager|loki|promtail|fluent|metrics-|ingress|cert-manager|istio|envoy|local-path|csi-|ebs-|efs-|aws-"
    r"|gke-|azure-|kindnet|konnectivity|otel|opentelemetry|datadog|filebeat|vector|keda|argo|velero|external-|kubelet"
    r"|containerd|docker|crio|systemd-|sshd|cron|chrony|rsyslog|tuned|snapd|user@|session-)"
)
"""Beginnings of the names of what runs on every node."""
ENGINE_PROGRAM = lazy_regex(
    r"vllm|sglang|text-generation|text-embeddings|tensorrt[-_]?llm|trtllm|tritonserver|llama[-_.]?(?:server|cpp)|lmdeploy|ollama",
    regex.IGNORECASE,
)
"""What images and commands of inference engines are called; unlike a process, a bare `python` says nothing there."""
NO_ENGINE = lazy_regex(
    r"(?<![a-z])(?:gateway|proxy|ingress|router|envoy|nginx|haproxy|traefik|istio|kong|apisix|litellm|redis|postgres\w*|mysql|mongo\w*|minio|qdrant|milvus|kafka"
    r"|rabbitmq|frontend|web|ui|cron|backup|exporter|operator|controller|scheduler|autoscaler|jupyter\w*|notebook"
    r"|spark|flink|airflow|trino|clickhouse|elasticsearch|opensearch|cassandra|zookeeper|kaniko|jenkins|gitlab|runner)(?![a-z])"
)
"""Words in the names of what stands beside an engine and is none."""
_TRAINER = lazy_regex(
    r"(?<![a-z])(?:train(?:er|ing)?|fine-?tun(?:e|er|ing)|sft|trl|axolotl|llama-?factory|unsloth|torchtune"
    r"|jupyter\w*|notebook|comfyui)(?![a-z])",
    regex.IGNORECASE,
)
"""What images, containers and scripts of other users of GPUs are called."""
_MODEL_FLAG = lazy_regex(r"(?:^|\s)(?:--model(?:[-_](?:path|id|tag|name))?[ =]|serve\s)\s*(?!\S*\$)\S")
"""Arguments that say which model is served, other than by a variable."""
ENGINE_CHANNELS = frozenset({"engine", "container"})
LOG_CHANNELS = ENGINE_CHANNELS | {"plain"}
"""Where an engine's own lines stand; on `plain` nothing proves that they are an engine's."""
_INFRASTRUCTURE_UNITS = frozenset(
    f"{name}.service"
    for name in (
        "kubelet", "containerd", "docker", "crio", "systemd-journald", "sshd", "chronyd", "init.scope",
        "nvidia-fabricmanager", "nvidia-persistenced", "nvidia-imex", "nvidia-dcgm",
        "earlyoom", "nohang", "systemd-oomd",
    )
)  # fmt: skip
"""Services of the machine: what they say is about all that run on it."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two names that mean the same thing, and why we think so."""

    left: str
    right: str
    reason: str
    """`stated`, `arguments`, `start_time`, `end_time`, `file_name`, `only_candidate`, `kill`, `signalled`,
    `restarted`, `crash_loop`."""


@dataclass(slots=True)
class Entities:
    """Names joined into entities; `of` gives the key of an event's owner."""

    _parent: dict[str, str] = field(default_factory=dict)
    _members: dict[str, list[str]] = field(default_factory=dict)
    """Names by entity, as long as nothing is joined."""
    speakers: dict[str, str] = field(default_factory=dict)
    """Syslog identifier → the systemd unit, without `.service`, that it speaks for."""
    joins: list[Join] = field(default_factory=list)

    def key(self, name: str) -> str:
        """The name that stands for the entity of a name."""
        self._parent.setdefault(name, name)
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, left: str, right: str, reason: str) -> None:
        """Two names as one entity. Two pods never are: an id that both bear was blanked out or copied."""
        a, b = self.key(left), self.key(right)
        if a == b or (a.startswith("pod:") and b.startswith("pod:")):
            return
        first, second = sorted((a, b), key=_rank)
        self._parent[second] = first
        self._members.clear()
        self.joins.append(Join(left, right, reason))

    def name_of(self, scope: Scope, source: str = "") -> str:
        """The entity that a scope speaks of; `file:<source>` when it says nothing; empty for the node itself."""
        names = names_of(scope)
        if names:
            return self.key(names[0])
        return self.key(f"file:{source}") if source else ""

    def of(self, event: Event) -> str:
        unit = self.speakers.get(event.fields.get("ident") or "")
        if unit and not names_of(event.scope):
            return self.key(f"unit:{unit}")
        if event.channel in LOG_CHANNELS:
            return self.name_of(event.scope, event.locator.source)
        return self.name_of(event.scope)

    def same(self, left: str, right: str) -> bool:
        return bool(left) and bool(right) and self.key(left) == self.key(right)

    def __contains__(self, name: str) -> bool:
        return name in self._parent

    def members(self, entity: str) -> tuple[str, ...]:
        root = self.key(entity)
        if not self._members:
            for name in sorted(self._parent):
                self._members.setdefault(self.key(name), []).append(name)
        return tuple(self._members.get(root, (root,)))  # a name that was only asked about is one by itself

    def with_uid(self) -> frozenset[str]:
        """The entities that have a uid among their names."""
        return frozenset(self.key(name) for name in tuple(self._parent) if name.startswith("uid:"))


def _rank(name: str) -> tuple[int, str]:
    """The most telling name becomes the key: pod before uid before container id before unit before file."""
    kind = name.partition(":")[0]
    return ({"pod": 0, "uid": 1, "ctr": 2, "cid": 3, "unit": 4, "file": 5}.get(kind, 9), name)


def names_of(scope: Scope) -> tuple[str, ...]:
    """All names of the entity that a scope gives, most telling first."""
    names = []
    if scope.pod:
        names.append(f"pod:{scope.pod}")
    if scope.pod_uid:
        names.append(f"uid:{scope.pod_uid}")
    if scope.container_id:
        names.append(f"cid:{scope.container_id}")
    if not names and scope.unit and scope.unit not in _INFRASTRUCTURE_UNITS:
        names.append(f"unit:{scope.unit.removesuffix('.service')}")
    if not names and scope.container:
        names.append(f"ctr:{scope.container}")
    return tuple(names)


def stated(events: Sequence[Event]) -> Entities:
    """Join everything that one event states about itself."""
    entities = Entities()
    units: set[str] = set()
    pods = any(event.scope.pod or event.scope.pod_uid for event in events)
    for event in events:
        names = names_of(event.scope)
        unique = not pods or event.kind == "docker_state"  # on a docker host; pods share the names of their containers
        if unique and event.scope.container and event.scope.container_id:
            names = (*names, f"ctr:{event.scope.container}")
        if names and names[0].startswith("unit:"):
            units.add(names[0].removeprefix("unit:"))
            if event.kind == "pod_spec" and event.fields.get("container") and not pods:  # a unit that runs a container
                names = (*names, f"ctr:{event.fields['container']}")
        for other in names[1:]:
            entities.join(names[0], other, "stated")
    entities.speakers.update(_speakers(units))
    return entities


def _speakers(units: Collection[str]) -> dict[str, str]:
    """Syslog identifiers → units: a unit's name, and that of the template of a single instance, as of `vllm@chat`.

    systemd takes the name of the program for an identifier, which a template is called after as a rule; who runs
    several writes `SyslogIdentifier=%p-%i`.
    """
    instances: dict[str, list[str]] = {}
    for unit in units:
        template, at, _ = unit.partition("@")
        if at:
            instances.setdefault(template, []).append(unit)
    named = {unit.replace("@", "-", 1): unit for unit in units if "@" in unit}
    return {template: only[0] for template, only in instances.items() if len(only) == 1} | named | {u: u for u in units}


def shown_as_engine(spec: Event) -> bool:
    """True when a container's image or command is an inference engine's, or it asks for GPUs and trains nothing."""
    words = words_of(spec)
    scripts = " ".join(word for word in words.split() if word.endswith(".py"))
    called = f"{spec.fields.get('image')} {spec.fields.get('container') or spec.scope.container} {scripts}"
    return bool(ENGINE_PROGRAM.search(words)) or (bool(spec.fields.get("gpus")) and not _TRAINER.search(called))


def may_run_engine(spec: Event) -> bool:
    """True when nothing forbids that a described container serves: it is shown to, or runs Python under any limits.

    Python with limits among which is no GPU is somebody's program.
    """
    limited = spec.kind == "pod_spec" and spec.fields.get("memory_limit_bytes") is not None
    return shown_as_engine(spec) or (not limited and bool(ENGINE_COMM.search(words_of(spec))))


def models_of(arguments: Mapping[str, object]) -> set[str]:
    """What an engine's arguments call its model."""
    model = str(arguments.get("model") or arguments.get("model_tag") or "")
    served = arguments.get("served_model_name")
    return {model, *(map(str, served) if isinstance(served, list | tuple) else [str(served or "")])} - {""}


def serves(arguments: Mapping[str, object], command: str) -> bool | None:
    """Whether a command serves the model that an engine's arguments name; none when one of them names no model."""
    names = models_of(arguments)
    if any(name in command for name in names):
        return True
    return False if names and _MODEL_FLAG.search(command) else None


def words_of(spec: Event) -> str:
    """Image, command and arguments of a described container."""
    values = (spec.fields.get(key) or () for key in ("command", "args", "image"))
    return " ".join(str(word) for value in values for word in ((value,) if isinstance(value, str) else value))
