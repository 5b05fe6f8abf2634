"""Which template a pod was made of: a manifest names its workload, and the pod's name begins with that."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Event
from ..regexes import lazy_regex
from .entities import shown_as_engine, words_of
from .pod_names import workload_of

_MADE = lazy_regex(
    r"(?:-(?:\d{1,5}|predictor|default|deployment|raycluster|head|worker|group|[b-df-hj-np-tv-z2456789]{5,10}))*"
)
"""What operators put between the name of their object and a pod's own: `-predictor-00001-deployment`, and random
letters, of which Kubernetes uses no vowel (apimachinery `rand.String`).
"""
_TELLING = ("args", "command", "env", "gpus", "image", "memory_limit_bytes", "shm_size_bytes")


def spec_of(templates: Sequence[Event], names: Sequence[str]) -> Event | None:
    """The template of an entity with these names; none where several fit and differ.

    The values of a chart name no workload, and a log may name no pod: both belong together when nothing else can.
    """
    pods = [name.partition(":")[2] for name in names if name.startswith("pod:")]
    fitting = [event for event in templates if any(_is_of(event, pod) for pod in pods)]
    if not fitting and not any(event.fields.get("workload_name") for event in templates):
        fitting = [event for event in templates if shown_as_engine(event) or not words_of(event)]
    if not fitting and not pods:
        fitting = [event for event in templates if shown_as_engine(event)]
    serving = [event for event in fitting if shown_as_engine(event)] or fitting
    return serving[0] if serving and all(_alike(event, serving[0]) for event in serving) else None


def _is_of(template: Event, pod: str) -> bool:
    name = str(template.fields.get("workload_name") or "")
    if not name or not pod.startswith(name):
        return False
    return workload_of(pod) == name or _MADE.fullmatch(pod.removeprefix(name)) is not None


def _alike(one: Event, other: Event) -> bool:
    """True for two readings of one template."""
    probes = {key for event in (one, other) for key in event.fields if key.startswith(("startup_", "liveness_"))}
    return all(one.fields.get(key) == other.fields.get(key) for key in (*_TELLING, *probes))
