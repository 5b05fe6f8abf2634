"""What somebody changed before the failure: the settings of this run against those of the run, or revision, before.

Revisions are a Deployment's ReplicaSets, runs print their arguments, and a diff counts where the run has its new side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...model import Event, Finding
from ...regexes import lazy_regex
from .. import ledger
from ..case import Case, conclude
from ..model import Death, Life
from ..pod_names import workload_of

RECENT_S = 3 * 24 * 3600.0
"""A change that the service survived for longer did not break it at once, and is no news."""
MOST = 6
"""So many changes are told; more are another deployment, not a change of this one."""
_SECRET = lazy_regex(r"(?i)(?:.*[_-])?(?:key|token|secret|password|passwd|credentials?|auth|headers?)(?:[_-].*)?")
_TELLING_ENV = lazy_regex(
    r"(?:VLLM|SGLANG|PYTORCH|NCCL|CUDA|HF_HUB|TRANSFORMERS|RAY|LMCACHE|OMP|NVIDIA|HIP|ROCR)_\w+"
)
_VALUE = lazy_regex(r"(?P<key>[a-z][A-Za-z0-9_-]*): +(?P<value>[^\s#{\[][^#]*?)(?: +#.*)?")
_HUMP = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_ARGUMENTS = frozenset({"args", "logger", "engine_version", "ident"})


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The surest witness of a change; the others would tell of the same one."""
    for witness in (_of_revisions, _of_runs, _of_diffs):
        found = list(witness(case, death))
        if found:
            yield from found
            return


def _of_revisions(case: Case, death: Death) -> Iterator[Finding]:
    """The ReplicaSet of the dead pod against the one before it."""
    known = [e for e in case.of_kind("workload") if e.fields.get("containers") and _revision(e) is not None]
    pods = [name.partition(":")[2] for name in case.entities.members(death.entity) if name.startswith("pod:")]
    own = next((e for e in known if any(_made(e, pod) for pod in pods)), None)
    if own is None:
        return
    before = [e for e in known if _service(e) == _service(own) and (_revision(e) or 0) < (_revision(own) or 0)]
    if not before:
        return
    last = max(before, key=lambda e: _revision(e) or 0)
    old, new = (_settings_of_revision(e, death.container) for e in (last, own))
    fields = {"revision": _revision(own), "previous_revision": _revision(last)}
    namespace, workload = _service(own)
    yield from _told(own, old, new, death, {**fields, "namespace": namespace, "workload": workload})


def _of_runs(case: Case, death: Death) -> Iterator[Finding]:
    """The arguments that the dead run printed against those of the last run of this service that was ready."""
    life = death.life
    if life is None or life.ready is not None:
        return
    earlier = [
        other for other in case.lives
        if other is not life and other.ready is not None and workload_of(other.entity) == workload_of(life.entity)
        and _is_before(other, life)
    ]  # fmt: skip
    own = _printed(case, life)
    last = _printed(case, max(earlier, key=lambda other: other.start.time.utc_s or 0.0)) if earlier else None
    if own is not None and last is not None:
        yield from _told(own, _arguments(last), _arguments(own), death, {})


def _of_diffs(case: Case, death: Death) -> Iterator[Finding]:
    """Lines of a diff whose new side the dead run ran with; a remedy that somebody only proposed is none."""
    spec = case.spec(death.entity)
    arguments = ledger.flags_of(spec) if spec is not None else {}
    arguments |= ledger.arguments_of(case, death.life) if death.life is not None else {}
    own = _shown({key: value for key, value in arguments.items() if key not in _NO_ARGUMENTS})
    sides: dict[str, dict[str, list[Event]]] = {}
    for event in case.of_kind("change") if own else ():
        side = sides.setdefault(event.locator.source, {"-": [], "+": []})
        side[event.fields["sign"]].append(event)
    for side in sides.values():
        old, new = (_settings_of_lines([e.text[2:] for e in side[sign]]) for sign in "-+")
        names = [name for name in {*old, *new} if old.get(name) != new.get(name) and own.get(name) == new.get(name)]
        if names:
            kept = [{name: side[name] for name in names if name in side} for side in (old, new)]
            yield from _told((side["+"] or side["-"])[0], kept[0], kept[1], death, {})


def _told(
    event: Event, old: Mapping[str, str], new: Mapping[str, str], death: Death, fields: Mapping[str, Any]
) -> Iterator[Finding]:
    made_s = event.time.utc_s
    if made_s is not None and death.time_s and death.time_s - made_s > RECENT_S:
        return
    changed = [
        f"{name} {old.get(name, 'unset')} → {new.get(name, 'unset')}"
        for name in sorted({*old, *new}) if old.get(name) != new.get(name)
    ]  # fmt: skip
    if 0 < len(changed) <= MOST:
        yield conclude("settings_changed", event, {**fields, "changed": "; ".join(changed)})


def _is_before(one: Life, other: Life) -> bool:
    a, b = one.start, other.start
    if a.time.utc_s is not None and b.time.utc_s is not None:
        return a.time.utc_s < b.time.utc_s
    return a.locator.source == b.locator.source and a.locator.order < b.locator.order


def _printed(case: Case, life: Life) -> Event | None:
    """The line on which a run printed its arguments; a banner without any says nothing about them."""
    return next((event for event in case.of_kind("engine_args") if life.holds(event) and _arguments(event)), None)


def _arguments(event: Event) -> dict[str, str]:
    return _shown({key: value for key, value in event.fields.items() if key not in _NO_ARGUMENTS})


def _revision(event: Event) -> int | None:
    text = str(event.fields.get("revision") or "")
    return int(text) if text.isdecimal() else None


def _service(event: Event) -> tuple[str, str]:
    name = str(event.fields.get("workload_name") or "")
    return event.scope.namespace, str(event.fields.get("owner") or name.rpartition("-")[0])


def _made(event: Event, pod: str) -> bool:
    """Whether a pod is of a ReplicaSet: its name and five letters."""
    return pod.rpartition("-")[0] == event.fields.get("workload_name")


def _settings_of_revision(event: Event, container: str) -> dict[str, str]:
    """What the engine's container of a revision ran: flags, image, limits, GPUs and telling variables."""
    containers: Mapping[str, Mapping[str, Any]] = event.fields["containers"]
    spec = containers.get(container) or max(containers.values(), key=lambda c: c.get("gpus") or 0)
    words: Sequence[Any] = (*spec.get("command", ()), *spec.get("args", ()))
    limit = spec.get("memory_limit_bytes")
    settings = _shown(ledger.flags(words))
    if spec.get("image"):
        settings["image"] = str(spec["image"])
    if limit:
        settings["limits.memory"] = f"{limit / 2**30:g} GiB"
    if spec.get("gpus"):
        settings["GPUs"] = str(spec["gpus"])
    variables = {str(k): v for k, v in spec.get("env", {}).items() if _TELLING_ENV.fullmatch(str(k))}
    return settings | {key: str(value) for key, value in variables.items() if not _SECRET.fullmatch(key)}


def _settings_of_lines(lines: Sequence[str]) -> dict[str, str]:
    """The flags in lines of a manifest (`- --max-model-len`, `- "8192"`), and the keys of a chart's values."""
    words: list[str] = []
    values: dict[str, Any] = {}
    for line in lines:
        word = line.removeprefix("- ").strip("\"' ,")
        pair = _VALUE.fullmatch(word)
        if word.startswith("--") or (words and words[-1].startswith("--") and "=" not in words[-1] and pair is None):
            words.append(word)
        elif pair is not None:
            key = _HUMP.sub("_", pair["key"]).lower()
            values |= ledger.flags([f"--{key}={pair['value'].strip(chr(34) + chr(39))}"])
    return _shown(values | (ledger.flags(words) if words else {}))


def _shown(flags: Mapping[str, Any]) -> dict[str, str]:
    """Flags as they are typed; those that may hold a secret are left out."""
    return {
        f"--{key.replace('_', '-')}": str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in flags.items() if not _SECRET.fullmatch(key)
    }  # fmt: skip
