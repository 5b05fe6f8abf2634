"""Commands of the library where there is no Kubernetes."""

from __future__ import annotations

import pytest

from forensics.pipeline import load_library
from forensics.report import commands
from forensics.signatures.model import PLATFORMS, runs_on

LOGS = "kubectl -n <namespace> logs <pod> -c <container> --previous --timestamps | grep -E 'KV cache; usage' "


@pytest.mark.parametrize(
    ("platforms", "command", "said"),
    [
        ((), LOGS, LOGS),
        (("kubernetes", "ray"), LOGS, LOGS),
        (("docker",), LOGS, "docker logs <container> | grep -E 'KV cache; usage' "),
        (("systemd", "podman"), LOGS, "podman logs <container> | grep -E 'KV cache; usage' "),
        (("systemd",), LOGS, "journalctl -u <unit> -o cat | grep -E 'KV cache; usage' "),
        (("slurm",), "kubectl logs <pod> --previous --timestamps --all-containers", "cat slurm-<job>.out"),
        (("bare",), "kubectl -n <namespace> exec <pod> -c <container> -- sh -c 'df -h; ls' ", "sh -c 'df -h; ls' "),
        (("systemd",), "journalctl -k; kubectl describe pod -n <namespace> <pod>", "journalctl -k; systemctl show <unit>"),
        (("docker",), "kubectl get events -A; date -u", "date -u"),
        (("docker",), "kubectl -n <namespace> logs deployment/<gateway> --since=2h | grep 5", "cat <gateway log> | grep 5"),
        (("docker",), "kubectl get events -A", ""),
        (("bare",), "curl -s http://<pod-ip>:8000/metrics", "curl -s http://localhost:8000/metrics"),
    ],
)
def test_commands_are_those_of_the_platform(platforms: tuple[str, ...], command: str, said: str) -> None:
    assert commands.on(command, platforms) == said


def test_every_cause_has_advice_and_no_kubectl_everywhere() -> None:
    """On each platform something can be done, and nothing is said that exists in Kubernetes only."""
    for cause in load_library().causes.values():
        for platform in PLATFORMS:
            here = [r for r in cause.remedies if runs_on(r.condition.platform, (platform,))]
            assert here or cause.id == "eviction", (cause.id, platform)
            if platform != "kubernetes" and cause.id != "eviction":
                told = " ".join(r.text["en"] for r in (*here, *cause.prevent) if runs_on(r.condition.platform, (platform,)))
                assert "kubectl" not in told, (cause.id, platform)
                assert "kube_" not in told, (cause.id, platform)
