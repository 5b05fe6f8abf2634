"""Pod templates inside of objects that are no pods: what operators are told to run, and the values of a chart.

Argo Rollouts, Knative Services, LeaderWorkerSets, JobSets, RayServices and RayClusters hold whole pod templates,
KServe's InferenceServices and ServingRuntimes pod specs and, under `model`, a container without its list. Values of
Helm charts have no fixed shape; a mapping in them with a probe is taken for a container.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import regex

from ..model import Event, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .json_yaml import read_yaml
from .k8s_facts import spec_events, without_defaults
from .located import Object, holding, listed, object_at, objects_at, text_at

MAX_BYTES = 4 << 20
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_TELLING = ("image", "args", "command", "resources", *_PROBES)
_SHORT = ("startup", "liveness", "readiness")
_BUDGET = ("initialDelaySeconds", "periodSeconds", "failureThreshold", "timeoutSeconds")
_PROBE_LINE = lazy_regex(r"^ *(?:startup|liveness)(?:Probe)?: *(?:\{.*)?$", regex.MULTILINE)
_BUDGET_LINE = lazy_regex(r"\b(?:failureThreshold|periodSeconds): *\d", regex.MULTILINE)
_OBJECT_LINE = lazy_regex(r"^kind: *\w", regex.MULTILINE)


def template_events(entry: Object, kind: str, source: str) -> Iterator[Event]:
    """One `pod_spec` for each container that an object of another kind describes."""
    metadata = object_at(entry, "metadata")
    name, scope = text_at(metadata, "name"), Scope(namespace=text_at(metadata, "namespace"))
    for pod in _pod_specs(object_at(entry, "spec"), set()):
        for event in spec_events(pod, Object(), source, scope, f"{kind.lower()} {name}"):
            yield replace(event, fields={**event.fields, "workload_kind": kind, "workload_name": name})


def _pod_specs(value: object, seen: set[int]) -> Iterator[Object]:
    if not _is_new(value, seen):
        return
    if isinstance(value, list):
        for item in value:
            yield from _pod_specs(item, seen)
    if not isinstance(value, Object):
        return
    if any(key in one for one in objects_at(value, "containers") for key in _TELLING):
        yield value
        return
    for key, inner in value.items():
        if key == "model" and isinstance(inner, Object) and any(name in inner for name in _TELLING):
            yield _alone(inner, "kserve-container")
        else:
            yield from _pod_specs(inner, seen)


def _is_new(value: object, seen: set[int]) -> bool:
    """True at the first visit of a part: aliases of YAML share it, and a few of them nested stand for millions."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    return True


def _alone(container: Object, name: str) -> Object:
    """A container without a list around it, as a pod's spec."""
    if not text_at(container, "name"):
        container.put("name", name, container.line)
    return holding("containers", listed([container]))


def read_values(text: str, source: str) -> Parsed:
    """The containers of a chart's values, or of a piece of a manifest; whose they are is not said."""
    events: list[Event] = []
    for document in read_yaml(text):
        for pod in _probed(document.value, "", set()):
            found = spec_events(pod, Object(), source, Scope(), "values")
            for event in map(without_defaults, found):
                events.append(replace(event, fields={**event.fields, "workload_kind": "values"}))
    return Parsed(tuple(events))


def _probed(value: object, name: str, seen: set[int]) -> Iterator[Object]:
    if not _is_new(value, seen):
        return
    if isinstance(value, list):
        for item in value:
            yield from _probed(item, name, seen)
    elif isinstance(value, Object):
        _lengthen(value)
        if any(isinstance(value.get(probe), Object) for probe in _PROBES):
            yield _alone(value, name or "main")
            return
        for key, inner in value.items():
            yield from _probed(inner, key, seen)


def _lengthen(values: Object) -> None:
    """Give a container the probes that a chart keeps in a mapping of its own (`probes: {liveness: {…}}`)."""
    for inner in [*values.values()]:
        for short in _SHORT:
            probe = inner.get(short) if isinstance(inner, Object) else None
            if isinstance(probe, Object) and any(key in probe for key in _BUDGET) and f"{short}Probe" not in values:
                values.put(f"{short}Probe", probe, probe.line)


def _sniff_values(head: Head) -> int:
    text = head.text
    if _OBJECT_LINE.search(text) or not _PROBE_LINE.search(text) or not _BUDGET_LINE.search(text):
        return 0
    lines = [line for line in head.filled if not line.lstrip().startswith("#")]
    shaped = [line for line in lines if regex.match(r" *(?:- *)?(?:[\w./-]+:(?:\s|$)|- )", line)]
    return 80 if len(shaped) >= 0.8 * len(lines) else 0


VALUES = Format("helm.values", "values of a chart, or a piece of a manifest", _sniff_values, read_values, MAX_BYTES)
