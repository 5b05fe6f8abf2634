"""Health checks of containers outside Kubernetes: docker compose, docker inspect, Podman's Quadlet files.

They become the fields of a probe named `health`, with the defaults that docker and Podman share (docker run and
podman run, `--health-*`). Failures in the start period do not count, so the budget is delay + period × failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Event, Locator, Scope
from .k8s_values import known
from .located import Object, dig, int_at, line_at, strings_at, text_at

_PERIOD_S = 30.0
_TIMEOUT_S = 30.0
_RETRIES = 3


def health_fields(
    delay_s: float | None, period_s: float | None, timeout_s: float | None, retries: int | None, action: str = ""
) -> dict[str, Any]:
    """The fields of a health check that is set; `action` is what Podman does when it has failed (`HealthOnFailure`)."""
    return known({
        "health_delay_s": delay_s or 0.0,
        "health_period_s": period_s or _PERIOD_S,
        "health_timeout_s": timeout_s or _TIMEOUT_S,
        "health_failure": retries or _RETRIES,
        "health_action": action,
    })  # fmt: skip


def inspected(check: Object, scope: Scope, source: str, image: str = "") -> Iterator[Event]:
    """The check that docker inspect tells (`Config.Healthcheck`, in nanoseconds), as a piece of a spec."""
    if strings_at(check, "Test")[:1] in ((), ("NONE",)):
        return
    delay_s, period_s, timeout_s = (_seconds(dig(check, key)) for key in ("StartPeriod", "Interval", "Timeout"))
    line = line_at(check, "Test")
    yield Event(
        Locator(source, line, line), "pod_spec", "runtime", f"container {scope.container} health check", scope=scope,
        fields=known({
            "container": scope.container, "image": image,
            **health_fields(delay_s, period_s, timeout_s, int_at(check, "Retries")),
        }),
    )  # fmt: skip


def is_inspected(entry: Object) -> bool:
    """True for a health check alone, as `docker inspect -f '{{json .Config.Healthcheck}}'` prints it."""
    return bool(strings_at(entry, "Test")) and "Interval" in entry and not text_at(entry, "Name")


def _seconds(nanoseconds: Any) -> float | None:
    return nanoseconds / 1e9 if isinstance(nanoseconds, int) and nanoseconds > 0 else None
