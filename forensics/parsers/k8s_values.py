"""Values as Kubernetes prints them: quantities, times, ids, and the texts that its events share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import stamps
from ..model import RawStamp, Scope, StampForm
from ..regexes import lazy_regex
from .located import Object, dig, int_at, strings_at, text_at

LAYER = "k8s"
"""The API server's clock: UTC, printed to the second."""
_QUANTITY = lazy_regex(
    r"(?P<sign>[-+]?)(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<suffix>[numkMGTPE]?|[KMGTPE]i|[eE][-+]?\d{1,3})"
)
AGE = r"(?:(?:\d{1,9}[smhdy])+|<unknown>|<invalid>)(?: \(x\d+ over \S+\))?"
"""How kubectl prints when an event was, and how often: `3m`, `42s (x7 over 9m)`."""
_SCALES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_GPU_RESOURCE = lazy_regex(r"(?:^|/)(?:gpu|mig-)|[./]gpu(?:\.|$)|/vgpu$")
_CONTAINER_ID = lazy_regex(r"(?:^|[/:])([0-9a-f]{64})\b")
_FIELD_PATH = lazy_regex(r"spec\.(?:init|ephemeral)?[cC]ontainers\{(?P<container>[^}]+)\}")
_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_POD_IN_MESSAGE = lazy_regex(
    rf"\b(?:in pod |pod=)(?P<pod>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)\((?P<uid>{_UID})\)"
)
_CONTAINER_IN_MESSAGE = lazy_regex(
    r"^(?:(?:Created|Started|Stopping) container:? (?P<a>[a-z0-9-]+)$"
    r"|(?:Init c|C)ontainer (?P<b>[a-z0-9-]+) (?:failed|definition|resize)"
    r"|Back-off restarting failed container (?P<c>[a-z0-9-]+)(?: in pod|$))"
)


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without those that are unknown or empty: absent means unknown."""
    return {key: value for key, value in fields.items() if value not in (None, "", (), {})}


def quantity(value: object) -> float | None:
    """`64Gi`, `500m`, `1e3`, `128974848`, 4 → a plain number; none for anything else.

    Format: kubernetes apimachinery `resource.Quantity`.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    suffix = found["suffix"]
    scale = _SCALES.get(suffix)
    number = float(found["number"]) * (scale if scale is not None else 10.0 ** int(suffix[1:]))
    return -number if found["sign"] == "-" else number


def whole(value: object) -> int | None:
    """A quantity as a whole number: bytes, devices."""
    number = quantity(value)
    return None if number is None or abs(number) > 2**63 else round(number)


def gpus(resources: Object) -> int | None:
    """Devices in a `limits`, `capacity` or `allocatable` map, also MIG slices; none when no kind is named."""
    counts = [whole(value) or 0 for name, value in resources.items() if _GPU_RESOURCE.search(name)]
    return sum(counts) if counts else None


def instant(value: object) -> RawStamp | None:
    """An RFC 3339 time of the API. Go's zero (year 1) and Unix's (1970, of a StartError) are no times."""
    stamp = stamps.iso(value, LAYER) if isinstance(value, str) else None
    if stamp is None or stamp.form is not StampForm.INSTANT or stamp.seconds < 86400:
        return None
    return stamp


def instant_at(value: object, *path: str | int) -> RawStamp | None:
    """The time at a path."""
    return instant(dig(value, *path))


_RFC1123 = lazy_regex(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} (?P<year>\d{4}) \d\d:\d\d:\d\d [+-]\d{4}")


def utc(text: str) -> str:
    """`Sun, 29 Nov 2026 21:08:42 +0800` of describe as the API prints it; empty for zero times."""
    found = _RFC1123.fullmatch(text.strip())
    stamp = stamps.rfc1123(text.strip(), LAYER) if found and found["year"] > "1970" else None
    return stamps.iso_utc(stamp.seconds, 0) if stamp is not None else ""


def container_id(text: str) -> str:
    """`containerd://<64 hex>` → the hex digits; empty for anything else."""
    found = _CONTAINER_ID.search(text)
    return found[1] if found else ""


def container_of_path(path: str) -> str:
    """`spec.containers{vllm}` → `vllm`."""
    found = _FIELD_PATH.match(path)
    return found["container"] if found else ""


def scope_of_message(message: str) -> Scope:
    """What the wording of an event says about its owner: the container it names, a pod with its uid."""
    pod = _POD_IN_MESSAGE.search(message)
    container = _CONTAINER_IN_MESSAGE.match(message)
    name = next((n for n in container.groups() if n), "") if container else ""
    if pod is None:
        return Scope(container=name)
    return Scope(namespace=pod["namespace"], pod=pod["pod"], pod_uid=pod["uid"], container=name)


def terminated_text(container: str, reason: str, exit_code: int | None) -> str:
    """The one wording of the end of a container, whoever reports it."""
    return f"container {container} terminated: reason={reason} exit_code={shown(exit_code)}"


def shown(number: int | None, unknown: str = "") -> str:
    """A number in a text, or the mark of an unknown one."""
    return unknown if number is None else str(number)


_PROBE_KINDS = {"httpGet": "http", "exec": "exec", "tcpSocket": "tcp", "grpc": "grpc"}
_PROBE_NUMBERS = {
    # API name: (field, value of the API server when absent)
    "initialDelaySeconds": ("delay_s", 0),
    "timeoutSeconds": ("timeout_s", 1),
    "periodSeconds": ("period_s", 10),
    "successThreshold": ("success", 1),
    "failureThreshold": ("failure", 3),
    "terminationGracePeriodSeconds": ("grace_s", None),
}


def probe_fields(prefix: str, probe: Object) -> dict[str, object]:
    """A probe as flat fields, `liveness_kind`, `liveness_period_s` …; none when there is no probe."""
    if not probe:
        return {}
    fields: dict[str, object] = {}
    for key, kind in _PROBE_KINDS.items():
        if key in probe:
            fields["kind"] = kind
            port = int_at(probe, key, "port")
            fields["port"] = port if port is not None else text_at(probe, key, "port")
            fields["path"] = text_at(probe, key, "path") or text_at(probe, key, "service")
            if kind == "exec":
                fields["path"] = " ".join(strings_at(probe, key, "command"))
    for key, (name, default) in _PROBE_NUMBERS.items():
        number = int_at(probe, key)
        fields[name] = default if number is None else number
    return {f"{prefix}_{name}": value for name, value in fields.items() if value not in (None, "")}
