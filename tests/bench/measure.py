"""Run a command, and what the operating system says it cost."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from statistics import median
from typing import IO


@dataclass(frozen=True)
class Cost:
    """Of one run, or the medians of several."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    """Of the largest process of a pipe."""


def run(command: str, stderr: IO[bytes] | int = subprocess.DEVNULL) -> Cost:
    """Run a shell command to its end. Raises `RuntimeError` when it fails; `grep -c` may find nothing."""
    start = time.perf_counter()
    process = subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.DEVNULL, stderr=stderr)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"exit code {process.returncode}: {command}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def in_turn(commands: dict[str, str], rounds: int) -> dict[str, Cost]:
    """Medians over the rounds; in each round every command runs once, so that all see the same machine.

    One round before is not counted: it fills the page cache.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost = run(command)
            if number:
                costs[name].append(cost)
    return {
        name: Cost(median(c.wall_s for c in found), median(c.cpu_s for c in found), median(c.peak_mib for c in found))
        for name, found in costs.items()
    }
