"""What a metric or column name means: our series and the factor into its unit.

Names come from vLLM, DCGM exporter, cAdvisor, node exporter, Python's process collector, cgroup files and
hand-made loops.
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

from ..model import Scope
from ..regexes import lazy_regex
from ..sources import REPLICA
from .numerals import is_whole
from .nvidia_rows import bus_id

_MIB = 1 / 2**20
_EXACT: dict[str, tuple[str, float]] = {
    "vllm:kv_cache_usage_perc": ("kv_cache_usage_pct", 100.0),
    "vllm:gpu_cache_usage_perc": ("kv_cache_usage_pct", 100.0),
    "vllm:num_requests_running": ("requests_running", 1.0),
    "vllm:num_requests_waiting": ("requests_waiting", 1.0),
    "vllm:num_requests_swapped": ("requests_swapped", 1.0),
    "vllm:num_preemptions_total": ("preemptions_total", 1.0),
    "vllm:num_preemptions": ("preemptions_total", 1.0),
    "vllm:avg_prompt_throughput_toks_per_s": ("prompt_tokens_per_s", 1.0),
    "vllm:avg_generation_throughput_toks_per_s": ("generation_tokens_per_s", 1.0),
    "vllm:gpu_prefix_cache_hit_rate": ("prefix_cache_hit_pct", 100.0),
    "sglang:token_usage": ("kv_cache_usage_pct", 100.0),
    "sglang:num_running_reqs": ("requests_running", 1.0),
    "sglang:num_queue_reqs": ("requests_waiting", 1.0),
    "sglang:gen_throughput": ("generation_tokens_per_s", 1.0),
    "tgi_queue_size": ("requests_waiting", 1.0),
    "tgi_batch_current_size": ("requests_running", 1.0),
    "memory.used [mib]": ("gpu_memory_used_mib", 1.0),  # as nvidia-smi heads its columns, the dot among them
    "memory.total [mib]": ("gpu_memory_total_mib", 1.0),
    "memory.reserved [mib]": ("gpu_memory_reserved_mib", 1.0),
    "utilization.gpu [%]": ("gpu_utilization_pct", 1.0),
    "dcgm_fi_dev_fb_used": ("gpu_memory_used_mib", 1.0),
    "dcgm_fi_dev_fb_total": ("gpu_memory_total_mib", 1.0),
    "dcgm_fi_dev_fb_reserved": ("gpu_memory_reserved_mib", 1.0),
    "dcgm_fi_dev_gpu_util": ("gpu_utilization_pct", 1.0),
    "dcgm_fi_dev_gpu_temp": ("gpu_temperature_c", 1.0),
    "dcgm_fi_dev_power_usage": ("gpu_power_w", 1.0),
    "process_resident_memory_bytes": ("process_rss_mib", _MIB),
    "container_memory_working_set_bytes": ("container_memory_mib", _MIB),
    "container_memory_rss": ("container_memory_mib", _MIB),
    "node_memory_memavailable_bytes": ("host_memory_available_kib", 1 / 1024),
    "nvidia_smi_memory_used_bytes": ("gpu_memory_used_mib", _MIB),
    "nvidia_gpu_memory_used_bytes": ("gpu_memory_used_mib", _MIB),
    "nvidia_smi_memory_total_bytes": ("gpu_memory_total_mib", _MIB),
    "nvidia_smi_utilization_gpu_ratio": ("gpu_utilization_pct", 100.0),
}
_CGROUP = r"container|pod|cgroup|memcg|unit|service|slice"
_HOST = r"(?:host|node|system|sys)_"
_TORCH = r"(?:(?:py)?torch_)?(?:(?:py)?torch|cuda|caching_allocator)_"
"""torch's own figures, under the names of its functions (`torch.cuda.memory_reserved`): the driver knows no such."""
_QUANTITIES = tuple(
    (lazy_regex(words), series, unit_bytes)
    for words, series, unit_bytes in (
        # the words of a column name → series, and bytes of its unit
        (r"(?:gpu_)?(?:gpu|cuda|fb|framebuffer|vram)_?(?:mem(?:ory)?_?)?(?:used|usage)", "gpu_memory_used_mib", 2**20),
        (r"(?:gpu|cuda|vram)_mem(?:ory)?", "gpu_memory_used_mib", 2**20),
        (r"(?:(?:fb|vram)_)?(?:mem(?:ory)?_)?(?:used|usage)_gpu", "gpu_memory_used_mib", 2**20),
        (r"(?:gpu_)?(?:gpu|cuda|fb|framebuffer|vram)_?(?:mem(?:ory)?_?)?total", "gpu_memory_total_mib", 2**20),
        (rf"{_TORCH}(?:mem(?:ory)?_)?allocated", "torch_allocated_mib", 2**20),
        (rf"{_TORCH}(?:mem(?:ory)?_)?reserved", "torch_reserved_mib", 2**20),
        (r"(?:\w+_)?memory_current|memory_usage_in|(?:pod_)?(?:memory_)?working_?set", "container_memory_mib", 2**20),
        (rf"(?:{_CGROUP})_mem(?:ory)?(?:_used|_usage|_rss)?|(?:{_CGROUP}|total)_rss", "container_memory_mib", 2**20),
        (rf"(?:{_HOST})?mem(?:ory)?_?avail(?:able)?", "host_memory_available_kib", 2**10),
        (rf"(?:{_HOST})?mem(?:ory)?_?used", "host_memory_used_kib", 2**10),
        (r"(?:\w+_)?(?:rss|resident(?:_memory)?)(?:_anon)?", "process_rss_mib", 2**20),
        (r"swap_?used", "swap_used_kib", 2**10),
    )
)
_NUMBERED = lazy_regex(r"(?<![a-z0-9])(?:gpu|cuda)[\s_#:]{0,2}(?P<index>\d{1,2})(?![a-z0-9.])", regex.IGNORECASE)
"""A card in the words of a legend: `gpu 0 fb used (MiB)`, `memory used GPU3`. With a hyphen it is a host's name."""
_UNIT = lazy_regex(r"[_ ]?(?P<unit>bytes?|b|kib|kb|mib|mb|gib|gb)$")
_UNIT_BYTES = {
    "b": 1, "byte": 1, "bytes": 1, "kib": 2**10, "kb": 2**10, "mib": 2**20, "mb": 2**20, "gib": 2**30,
    "gb": 2**30,
}  # fmt: skip
_PERCENT = lazy_regex(r"(?:kv|gpu)_?cache_?usage(?:_(?P<unit>pct|perc|percent|ratio|fraction))?")


def meaning(name: str) -> tuple[str, float] | None:
    """`container_memory_working_set_bytes` → (`container_memory_mib`, 2**-20); none for a name that is not
    understood.

    A memory column must carry its unit (`rss_gib`, `memory.used [MiB]`, `DCGM_FI_DEV_FB_USED_MiB`): a bare
    number could mean anything. Decimal names (MB, GB) are read as powers of 1024, as the tools of this field
    mean them.
    """
    plain = name.strip().strip('"').lower()
    plain = plain.partition("{")[0]
    exact = _EXACT.get(plain) or _EXACT.get(plain.replace("_", ":", 1))
    if exact is not None:
        return exact
    plain = _NUMBERED.sub("gpu", plain)
    words = regex.sub(r"[^a-z0-9]+", "_", plain.replace("%", "pct")).strip("_")
    unit = _UNIT.search(words)
    stem = words[: unit.start()] if unit else words
    if stem in _EXACT:
        return _EXACT[stem]
    percent = _PERCENT.fullmatch(words)
    if percent and percent["unit"]:
        return "kv_cache_usage_pct", 100.0 if percent["unit"] in ("ratio", "fraction", "perc") else 1.0
    if unit is None:
        return None
    for pattern, series, target in _QUANTITIES:
        if pattern.fullmatch(stem):
            return series, _UNIT_BYTES[unit["unit"]] / target
    return None


_PANEL = lazy_regex(r"(?P<title>.+?)-data(?:-as-[a-z]+)?-\d{4}-\d\d-\d\d.*")
_OF_CONTAINERS = lazy_regex(
    r"(?i)(?=.*\bmem(?:ory)?\b)(?=.*\b(?:rss|wss|working set|usage|used|by (?:container|pod))\b)"
    r"(?!.*(?:\b(?:gpu|vram|fb|framebuffer|swap|nodes?|hosts?|quota|utili[sz]ation|available|free)\b|%|\(cache\))).*"
)
_LEGEND = lazy_regex(
    rf"(?P<pod>[a-z0-9][a-z0-9.-]*-(?:{REPLICA}|\d{{1,4}}))(?: ?[/:|,] ?(?P<container>[a-z0-9][a-z0-9-]*))?"
)


def panel_meaning(stem: str) -> tuple[str, float] | None:
    """What a panel of Grafana shows in bytes, by the name of its CSV: `Memory Usage (WSS)-data-2026-05-12 10_41_07`."""
    panel = _PANEL.fullmatch(stem)
    return ("container_memory_mib", _MIB) if panel and _OF_CONTAINERS.fullmatch(panel["title"]) else None


def legend_owner(name: str) -> Scope:
    """Whose a curve is, by a legend of `{{pod}}` or `{{pod}} / {{container}}`; nobody for `limits` and the like."""
    found = _LEGEND.fullmatch(name.strip())
    return Scope(pod=found["pod"], container=found["container"] or "") if found else Scope()


_PROCESS = lazy_regex(
    r"(?P<process>[a-z]\w*?)_(?:rss|resident)(?![a-z])\w*|(?P<process>[a-z][\w.-]*) (?:rss|resident)\b.*",
    regex.IGNORECASE,
)


def owner_of(name: str) -> Scope:
    """What a column's name counts, if it says so: `memory used GPU3`, `apiserver_rss_kib`, `chat-7b rss (GiB)`."""
    card = _NUMBERED.search(name)
    if card is not None:
        return Scope(gpu=card["index"])
    process, known = _PROCESS.fullmatch(name.strip()), meaning(name)
    if process is None or process["process"].lower() == "process" or known is None or known[0] != "process_rss_mib":
        return Scope()
    return Scope(process=process["process"])


_LIMIT = lazy_regex(r"(?:container_|cgroup_|pod_)?(?:spec_)?mem(?:ory)?_(?:max|limit)(?:_in)?")


_SPEC_LIMIT = lazy_regex(
    r'kube_pod_container_resource_limits(?:_memory(?:_bytes)?|\{[^}]*\bresource="*memory"*[^}]*\})'
)
"""kube-state-metrics: bytes, which the name says in no version or only in old ones."""
_RESTARTS = lazy_regex(
    r"(?:kube_pod_)?(?:container_)?(?:status_)?(?:restarts?_total|restart_?count|restarts)(?:\{.*\})?"
)
_OOM_FLAG = lazy_regex(r"\w*last_\w*oom_?killed|\w*last_terminated_reason\{[^}]*\breason=\"*OOMKilled\"*[^}]*\}")
"""kube-state-metrics' flag, under its own name or a legend's; a count of kills is none."""


def counts_restarts(name: str) -> bool:
    """Whether a column is a container's restart counter."""
    return _RESTARTS.fullmatch(name.strip().strip('"')) is not None


def tells_oomkilled(name: str) -> bool:
    """Whether a column is 1 while a container's last end was an OOM kill (kube-state-metrics)."""
    return _OOM_FLAG.fullmatch(name.strip().strip('"')) is not None


def limit_factor(name: str) -> int | None:
    """Bytes of the unit of a column with a memory limit (`memory.max_bytes`, `mem_limit_mib`), or none."""
    if _SPEC_LIMIT.fullmatch(name.strip()):
        return 1
    words = regex.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    unit = _UNIT.search(words)
    return _UNIT_BYTES[unit["unit"]] if unit and _LIMIT.fullmatch(words[: unit.start()]) else None


def scope_of(labels: Mapping[str, str]) -> Scope:
    """Whose a metric is, from the labels of exporters (`pod`, `exported_pod`, `container`, `UUID`, `gpu`,
    `engine` …).
    """
    found = {key.lower(): value for key, value in labels.items() if value}

    def first(*names: str) -> str:
        return next((found[name] for name in names if name in found), "")

    pid = first("pid")
    engine = first("engine", "engine_index")
    container = first("exported_container", "container", "container_name")
    return Scope(
        host=first("node", "hostname", "nodename"),
        namespace=first("exported_namespace", "namespace"),
        pod=first("exported_pod", "pod", "pod_name"),
        container="" if container == "POD" else container,
        gpu=first("uuid", "gpu_uuid")
        or bus_id(first("gpu", "gpu_index", "index", "minor_number", "pci_bus_id")),
        pid=int(pid) if is_whole(pid) else None,
        process=f"Engine {int(engine):03d}"
        if is_whole(engine)
        else first("process", "process_name", "command", "comm"),
    )
