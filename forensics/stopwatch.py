"""Where the time of an analysis goes: seconds and amounts by stage, for `--profile`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Stopwatch:
    """Adds up. Stages may run side by side in several threads, but one stage in one thread at a time."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Stage → wall seconds, in the order in which the stages ended first."""
    amounts: dict[str, Counter[str]] = field(default_factory=dict)
    """Stage → what it handled: bytes, lines, candidates, events …"""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of the body."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def count(self, name: str, **amounts: int) -> None:
        """More of what a stage handled."""
        self.amounts.setdefault(name, Counter()).update(amounts)

    def table(self) -> str:
        """One line a stage."""
        rows = [f"{'stage':<12}{'seconds':>9}"]
        for name, seconds in self.seconds.items():
            told = ", ".join(f"{number:,} {what}" for what, number in self.amounts.get(name, {}).items())
            rows.append(f"{name:<12}{seconds:>9.3f}  {told}".rstrip())
        return "\n".join(rows)
