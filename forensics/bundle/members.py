"""One regular file of a bundle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..model import Diagnostic, Severity
from .budget import ALTERED, Altered, Meter, OverBudget, Stream
from .streams import read_up_to

BLOCK_BYTES = 8 << 20


@dataclass(slots=True)
class Member:
    """One regular file of the bundle; read it with `blocks()` once, in order."""

    path: str
    """Relative, unique, fit for display; `x.gz!` is the content of the compressed file `x.gz`."""
    mtime_s: float | None
    """From the folder or the archive; weak evidence."""
    stream: Stream
    report: Callable[[Diagnostic], None]
    meter: Meter
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    size_bytes: int = 0
    """Read so far."""
    cut: str = ""
    """Why reading ended early, or empty."""

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The content in full blocks and a last shorter one; damage ends it with a diagnostic, not an exception."""
        while not self.cut:
            block, error = read_up_to(self.stream, block_bytes)
            if block:
                try:
                    self.meter.count_content(len(block), self.size_bytes + len(block))
                except OverBudget as limit:
                    self._stop(limit)
                    return
                self._digest.update(block)
                self.size_bytes += len(block)
                yield block
            if error is not None:
                self._stop(error)
            if len(block) < block_bytes:
                return

    def _stop(self, error: Exception) -> None:
        self.cut = reason_of(error)
        self.report(Diagnostic(self.path, None, Severity.WARNING, f"{self.path} {self.cut}", hint_of(error)))

    @property
    def sha256(self) -> str:
        """Of what was read."""
        return self._digest.hexdigest()


def reason_of(error: Exception) -> str:
    """Why reading ended early, as the end of the sentence "it …"."""
    return f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def hint_of(error: Exception) -> str:
    """What to do about it."""
    if isinstance(error, Altered):
        return ALTERED
    return error.hint if isinstance(error, OverBudget) else "copy it again; what came before is analysed"
