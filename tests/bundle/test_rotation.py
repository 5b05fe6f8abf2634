"""Which files are pieces of one log, in the order of their lines."""

from __future__ import annotations

import pytest

from forensics.bundle.rotation import rotation_of

ORDERS = {
    "logrotate": ["d/engine.log.10.gz!", "d/engine.log.2.gz!", "d/engine.log.1", "d/engine.log"],
    "logrotate with dates": ["messages-20260604.gz!", "messages-20260611", "messages"],
    "logrotate with seconds": ["a.log-20260611-1781157600.xz!", "a.log-20260612-1781244000", "a.log"],
    "dates before numbers": ["engine.log-20261128.gz!", "engine.log.2.gz!", "engine.log.1", "engine.log"],
    "kubelet": ["vllm/0.log.20260610-060455.gz!", "vllm/0.log.20260611-060455", "vllm/0.log"],
    "TimedRotatingFileHandler": ["a.log.2026-06-10", "a.log.2026-06-11_06-04-55", "a.log"],
    "lumberjack": ["s-2026-06-11T06-04-55.123.log", "s-2026-06-11T07-04-55.123.log.gz!", "s.log"],
    "docker": ["9b1f-json.log.2.gz!", "9b1f-json.log.1", "9b1f-json.log"],
    "Ray": ["raylet.2.out", "raylet.1.out", "raylet.out"],
    "syslog": ["dmesg.1.gz!", "dmesg.0", "dmesg"],
    "without the youngest": ["engine.log.3.gz!", "engine.log.2.gz!"],
}


@pytest.mark.parametrize("name", ORDERS)
def test_pieces_of_one_log_are_ordered(name: str) -> None:
    """The oldest comes first; all name the same log."""
    order = ORDERS[name]
    got = rotation_of(reversed(order))
    assert sorted(got, key=lambda path: got[path][1]) == order
    assert [position for _, position in sorted(got.values(), key=lambda item: item[1])] == list(range(len(order)))
    assert len({log for log, _ in got.values()}) == 1


@pytest.mark.parametrize(
    "paths",
    [
        ["vllm/0.log", "vllm/1.log", "vllm/2.log"],  # restarts of a container
        ["rank.0.log", "rank.1.log"],
        ["stdout.0", "stdout.1"],
        ["nodes/10.0.0.1", "nodes/10.0.0.2", "10.0.0.1.log", "10.0.0.2.log"],
        ["a/engine.log", "b/engine.log.1"],
        ["engine.log", "engine.log.gz!"],
        ["describe-20260611.txt", "describe-20260612.txt"],
        ["engine.log", "kernel.log"],
        [],
    ],
)
def test_other_files_stay_apart(paths: list[str]) -> None:
    """Numbers that count ranks, restarts or hosts do not make a rotated log."""
    assert rotation_of(paths) == {}


def test_names_of_the_log() -> None:
    """The log is called by the path that it has while it is written."""
    assert rotation_of(["d/engine.log.1", "d/engine.log", "x.txt"]) == {
        "d/engine.log.1": ("d/engine.log", 0), "d/engine.log": ("d/engine.log", 1),
    }  # fmt: skip
