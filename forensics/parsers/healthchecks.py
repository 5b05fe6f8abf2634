"""Health checks of containers outside Kubernetes: docker compose, docker inspect, Podman's Quadlet files.

They become the fields of a probe named `health`, with the defaults that docker and Podman share (docker run and
podman run, `--health-*`). Failures in the start period do not count, so the budget is delay + period × failures.
"""

from __future__ import annotations

from typing import Any

from .k8s_values import known

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
