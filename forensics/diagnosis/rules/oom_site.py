"""Where in the engine a GPU allocation failed: by the frames of the traceback, else by how far the run had got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from ...model import Event, Finding, Role
from ...regexes import lazy_regex
from ..case import Case, conclude
from ..model import Death, Life, Phase

OOM_SIGNATURES = frozenset(
    {
        "torch.oom",
        "torch.oom_old",
        "torch.memory_fraction",
        "torch.cuda_error_oom",
        "torch.cublas_alloc_failed",
        "torch.mps_oom",
        "torch.xla_oom",
        "torch.xpu_error_oom",
        "rocm.out_of_memory",
        "triton.cuda_oom",
        "nccl.cuda_oom",
        "vllm.weights_do_not_fit",
        "vllm.weights_create_failed",
        "vllm.sampler_warmup_oom",
        "vllm.pooler_warmup_oom",
        "trtllm.alloc_failed",
        "trtllm.cuda_oom",
        "lmdeploy.cuda_oom",
    }
)


def _functions(*names: str) -> str:
    """A pattern for frames `path:function` that end in one of the functions."""
    return f":(?:{'|'.join(names)})$"


_SITES: tuple[tuple[str, regex.Pattern[str]], ...] = tuple(
    (name, lazy_regex(pattern))
    for name, pattern in (
        ("oom_waking_up", _functions("wake_up", "create_and_map")),
        ("oom_sampler_warmup", r":_?dummy_(?:sampler|pooler)_run"),
        (
            "oom_capturing_graphs",
            _functions(
                "capture_model",
                "_?capture_cudagraphs?",
                "graph_capture",
                "profile_cudagraph_memory",
                "capture_graph",
                "init_cuda_graphs",
                "compile_or_warm_up_model",
                r"_?warmup_and_capture",
            )
            + r"|cuda_graph_runner|cuda_?graph\w*\.py:_?capture\w*$",
        ),
        (
            "oom_allocating_kv",
            _functions(
                r"initialize_kv_cache\w*",
                r"_?allocate_kv_cache\w*",
                "initialize_cache",
                "_init_cache_engine",
                "init_memory_pool",
                "_create_buffers",
            )
            + r"|cache_engine\.py",
        ),
        (
            "oom_loading_weights",
            _functions(
                "load_model",
                "load_weights",
                "create_weights",
                "process_weights_after_loading",
                "initialize_model",
                "get_model",
                "from_pretrained",
                "_load_pretrained_model",
                "weight_loader",
                "load_state_dict",
            ),
        ),
        (
            "oom_profiling",
            _functions(
                "profile_run",
                "_?dummy_run",
                "determine_available_memory",
                "determine_num_available_blocks",
                r"profile_multimodal\w*",
            ),
        ),
        (
            "oom_big_prefill",
            _functions(
                r"\w*prompt_logprobs?\w*",
                "embed_multimodal",
                "get_multimodal_embeddings",
                "_execute_mm_encoder",
                r"\w*vision\w*",
            ),
        ),
        (
            "oom_serving",
            _functions(
                "execute_model",
                "step",
                "_?engine_step",
                "run_busy_loop",
                "forward_batch_generation",
                "forward_decode",
                "forward_extend",
                "prefill",
                "decode_token",
            ),
        ),
    )
)
"""From the most special site to the most general: `capture_model` calls `_dummy_run`."""
_CREATION = lazy_regex(r"torch/utils/_device\.py:__torch_function__$")
"""A model is created under `with torch.device(…)`: where the frames above are cut off, this one tells."""
_COMPUTING = lazy_regex(_functions("forward", "_call_impl", "_wrapped_call_impl", "generate"))
_LOG_PROBS = lazy_regex(_functions(r"\w*log_?probs?\w*"))
_SITE_OF_SIGNATURE = {
    "vllm.weights_do_not_fit": "oom_loading_weights",
    "vllm.sampler_warmup_oom": "oom_sampler_warmup",
    "vllm.pooler_warmup_oom": "oom_sampler_warmup",
}
_SITE_NAMED_AFTER = {
    "llamacpp.model_alloc_failed": "oom_loading_weights",
    "llamacpp.kv_alloc_failed": "oom_allocating_kv",
    "llamacpp.compute_alloc_failed": "oom_profiling",
    "vllm.sampler_warmup_oom": "oom_sampler_warmup",
    "vllm.pooler_warmup_oom": "oom_sampler_warmup",
}
"""These print the failed allocation first, and a line or two later what it was for."""
_CAPTURED = "vllm.graph_capture_finished"
AFTER_LINES = 5
_SITE_ANNOUNCED = {
    "lmdeploy.kv_budget": "oom_allocating_kv",
    "trtllm.kv_blocks": "oom_allocating_kv",
}
"""Engines that say how many blocks the KV cache gets, and allocate them next."""
_PREFILL = "llamacpp.prompt_progress"
_SITE_OF_PHASE = {
    Phase.LOADING: "oom_loading_weights",
    Phase.PROFILING: "oom_profiling",
    Phase.CAPTURING: "oom_capturing_graphs",
    Phase.SERVING: "oom_serving",
    Phase.DRAINING: "oom_serving",
}


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The site of the first allocation failure of the dying run."""
    failure = first_failure(death.life)
    if failure is not None:
        yield from _site(case, death, failure)


def first_failure(life: Life | None) -> Finding | None:
    """The first GPU allocation failure that the run did not survive."""
    if life is None:
        return None
    lost = [f for f in life.findings if f.signature in OOM_SIGNATURES]
    return next(
        (f for f in lost if f.locator.order > life.last_sign), lost[0] if lost and life.fatal in lost else None
    )


def is_of_stub(failure: Finding) -> bool:
    """True for an error of a Python model of Triton: it runs in a process of its own, beside the server's.

    Source: Triton's python_backend, `src/pb_stub.cc`.
    """
    return str(failure.event.fields.get("logger") or "").startswith("pb_stub")


def refused_start(life: Life | None) -> Finding | None:
    """The refusal of an engine to start on a card that has too little free memory."""
    return next((f for f in life.findings if f.signature == "vllm.free_memory_low"), None) if life is not None else None


def _site(case: Case, death: Death, failure: Finding) -> Iterator[Finding]:
    name, fields = site_of(case, death, failure)
    yield conclude(name, failure.event, {**failure.fields, **fields}, (failure,))


def site_of(case: Case, death: Death, failure: Finding) -> tuple[str, dict[str, str]]:
    """Name of the derived finding for the place of a failure, with the basis and the phase."""
    life = death.life
    findings = life.findings if life is not None else ()
    said = [_SITE_OF_SIGNATURE.get(f.signature, "") for f in findings if f.locator == failure.locator]
    said += [_SITE_NAMED_AFTER.get(f.signature, "") for f in findings if _is_just_after(f, failure)]
    name = next(filter(None, said), "") or site_of_frames(_frames(life, failure))
    phase = phase_at(case, life, failure.event) if life is not None else Phase.UNKNOWN
    if name == "oom_serving" and phase is Phase.CAPTURING and life is not None and _serves_unheard(life, failure):
        phase = Phase.SERVING
    basis = "frames" if name else "phase"
    if not name and phase is Phase.CAPTURING and _has_captured(findings, failure):
        name = "oom_unknown_site"  # behind the graphs come warm-ups, and requests
    if not name or (name == "oom_serving" and phase not in (Phase.SERVING, Phase.DRAINING, Phase.UNKNOWN)):
        name = _announced(findings, failure, phase) or _SITE_OF_PHASE.get(phase, name or "oom_unknown_site")
    return name, {"basis": basis, "phase": phase.value}


def _announced(findings: Sequence[Finding], failure: Finding, phase: Phase) -> str:
    """What the engine said last that it would allocate, where it got no further; empty when it said nothing."""
    place = failure.locator
    before = [f for f in findings if f.locator.source == place.source and f.locator.order < place.order]
    if phase is Phase.PROFILING:
        return next((_SITE_ANNOUNCED[f.signature] for f in reversed(before) if f.signature in _SITE_ANNOUNCED), "")
    reading = any(f.signature == _PREFILL and place.order - f.locator.order <= AFTER_LINES for f in before)
    return "oom_big_prefill" if reading and phase in (Phase.UNKNOWN, Phase.SERVING) else ""


def _has_captured(findings: Sequence[Finding], failure: Finding) -> bool:
    """True when the last word on graphs before a failure is that all of them are captured."""
    place = failure.locator
    told = [
        f.signature for f in findings
        if f.locator.source == place.source and f.locator.order < place.order
        and f.signature in (_CAPTURED, "vllm.graph_capture_started")
    ]  # fmt: skip
    return told[-1:] == [_CAPTURED]


STARTED_S = 3600.0
"""No engine captures graphs for longer."""


def _serves_unheard(life: Life, failure: Finding) -> bool:
    """True for a worker on another machine than the server: its log never says that it serves, nor what it does."""
    told = [f for f in life.findings if f.event.kind == "engine_args" and f.locator.source == failure.locator.source]
    if any(f.event.fields.get("headless") or f.event.fields.get("node_rank") for f in told):
        return True
    times = [
        f.time.utc_s for f in life.findings
        if f.locator.source == failure.locator.source and f.role is Role.CONTEXT
        and f.locator.order < failure.locator.order and f.time.utc_s is not None
    ]  # fmt: skip
    return bool(times) and failure.time.utc_s is not None and failure.time.utc_s - max(times) >= STARTED_S


def _is_just_after(finding: Finding, failure: Finding) -> bool:
    place, failed = finding.locator, failure.locator
    return place.source == failed.source and 0 <= place.order - failed.order <= AFTER_LINES


def site_of_frames(frames: Sequence[str]) -> str:
    """The most telling frame of a traceback, as the name of a derived finding; empty when none tells.

    Special sites win over the general ones that call them: `capture_model` calls `_dummy_run`.
    """
    for name, pattern in _SITES:
        if any(pattern.search(frame) for frame in frames):
            return name
    created = any(_CREATION.search(frame) for frame in frames)
    return "oom_loading_weights" if created and not any(_COMPUTING.search(frame) for frame in frames) else ""


def is_of_log_probs(life: Life | None, failure: Finding) -> bool:
    """True when the buffer that did not fit held log-probabilities: tokens of all requests of a step × vocabulary."""
    return any(_LOG_PROBS.search(frame) for frame in _frames(life, failure))


def _frames(life: Life | None, failure: Finding) -> Sequence[str]:
    frames = failure.event.fields.get("frames")
    if frames or life is None:
        return frames or ()
    for other in life.findings:  # the same text may have been logged without its traceback first
        if (
            other.event.kind == "traceback"
            and other.signature in OOM_SIGNATURES
            and other.locator.source == failure.locator.source
        ):
            return other.event.fields.get("frames") or ()
    return ()


def phase_at(case: Case, life: Life, event: Event) -> Phase:
    """How far the run had got when a line was written."""
    phase, place = Phase.UNKNOWN, 0
    for finding in life.findings:
        if finding.locator.source != event.locator.source:
            continue
        if finding.locator.order >= event.locator.order:
            break
        signature = case.library.signatures.get(finding.signature)
        if signature is not None and signature.phase and signature.phase != Phase.DEAD:
            phase, place = max(phase, Phase(signature.phase), key=list(Phase).index), finding.locator.order
    worked = life.last_activity is not None and place < life.last_activity.locator.order < event.locator.order
    return Phase.SERVING if worked and list(Phase).index(phase) < list(Phase).index(Phase.SERVING) else phase
