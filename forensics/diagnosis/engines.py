"""Which inference server an incident is about: it decides whose flags the advice may name.

Asked are, the nearest first: the messages of the run that died, the code in its tracebacks, what the pod was told to
run, and last the messages of the whole bundle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model import Event, Finding
from ..signatures.model import ENGINES
from .case import Case
from .entities import words_of
from .facts import life_of
from .model import Incident, Life

_RUNS_ANOTHER = {"ollama": "llamacpp"}
"""Servers that start another one and print its lines among their own: the outer one has the flags."""
_NAMES = {
    "sglang": ("sglang", "sgl-project"),
    "tgi": ("text-generation", "text_generation"),
    "trtllm": ("tensorrt_llm", "tensorrt-llm", "trtllm"),
    "lmdeploy": ("lmdeploy",),
    "ollama": ("ollama",),
    "llamacpp": ("llama-server", "llama.cpp", "llama_cpp"),
    "vllm": ("vllm",),
}
"""How programs, images and code paths call them. vLLM comes last: others import its kernels."""


def engine_of(case: Case, incident: Incident) -> str:
    """One of `ENGINES`, or empty when nothing tells."""
    life = life_of(case, incident)
    evidence = (base for h in incident.hypotheses[:1] for f in h.evidence for base in (f, *f.rests_on))
    spec = case.spec(incident.entity)
    return (
        _by_messages((*(life.findings if life is not None else ()), *evidence))
        or _by_name(_frames(case, life))
        or _by_name((words_of(spec),) if spec is not None else ())
        or _by_messages(f for f in case.findings if not f.quoted)
    )


def _by_messages(findings: Iterable[Finding]) -> str:
    """The family with most different messages; one engine's line may look like another's."""
    spoken = {f.signature for f in findings}
    votes = Counter(family for signature in spoken if (family := signature.partition(".")[0]) in ENGINES)
    for outer, inner in _RUNS_ANOTHER.items():
        if votes[outer]:
            votes[outer] += votes.pop(inner, 0)
    return max(sorted(votes), key=lambda family: votes[family], default="")


def _by_name(texts: Iterable[str]) -> str:
    texts = [text.lower() for text in texts]
    return next((e for e, names in _NAMES.items() if any(name in text for text in texts for name in names)), "")


def _frames(case: Case, life: Life | None) -> Iterable[str]:
    def inside(event: Event) -> bool:
        return life is None or event.locator.source in life.sources

    for event in case.of_kind("traceback"):
        if inside(event):
            yield from event.fields.get("frames") or ()
