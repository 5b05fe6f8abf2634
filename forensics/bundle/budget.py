"""Limits against hostile input, and the two ways in which reading ends early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

RATIO_FLOOR_BYTES = 64 << 20
"""A stream may give as much whatever its ratio: small files of equal lines pack very well."""
BUNDLE_RATIO_FLOOR_BYTES = 1 << 30
"""The same for all streams together."""
READ_AHEAD_BYTES = 64 << 10
"""Packed bytes that may sit in buffers, so that they count for no stream yet."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits against hostile input; each can be raised by a flag.

    There is no limit on time: it would make the report depend on the speed of the machine.
    """

    total_bytes: int = 64 << 30
    """Unpacked bytes over all members; one member may take a quarter of them."""
    ratio: int = 500
    """Unpacked over packed, above a floor. Logs with time stamps stay below 200."""
    members: int = 200_000
    """Files, folders and links, over all inputs."""
    depth: int = 6
    """Archives inside archives; a compression inside a compression counts as well."""

    @property
    def member_bytes(self) -> int:
        return self.total_bytes // 4


class Damaged(Exception):  # noqa: N818 - a state of the input, not an error of the program
    """A stream cannot be read further; the text completes the sentence "it …"."""


class Altered(Damaged):
    """Everything was read, and a checksum says that it is not what was packed."""


ALTERED = "parts of it may be wrong; copy the file again"
"""What to do about it."""


class OverBudget(Exception):  # noqa: N818
    """A limit was reached; the text completes the sentence "it …", `flag` raises the limit."""

    def __init__(self, reason: str, flag: str) -> None:
        super().__init__(reason)
        self.flag = flag

    @property
    def hint(self) -> str:
        return f"what came before is analysed; if you trust the file, raise the limit with {self.flag}"


class Stream(Protocol):
    """What every layer offers: up to `size` bytes, fewer when it likes, none at the end.

    Raises `Damaged`, `OverBudget` or `OSError`, and only when nothing was read: no byte is lost to an error.
    """

    def read(self, size: int, /) -> bytes: ...


@dataclass(slots=True)
class Meter:
    """What a bundle has used of its budget."""

    budget: Budget
    packed_bytes: int = 0
    """Read from the inputs themselves."""
    unpacked_bytes: int = 0
    """Given to the reader of members."""
    entries: int = 0
    full: bool = False
    """True when nothing more may be read from any input."""

    def count_entry(self) -> None:
        """Raises `OverBudget` when there are too many."""
        self.entries += 1
        if self.entries > self.budget.members:
            self.full = True
            raise OverBudget(f"is one of more than {self.budget.members:,} files", "--max-members")

    def count_content(self, size: int, of_member: int) -> None:
        """`size` more bytes of a member that has given `of_member` in all. Raises `OverBudget`."""
        self.unpacked_bytes += size
        budget = self.budget
        if self.unpacked_bytes > budget.total_bytes:
            self.full = True
            raise OverBudget(f"takes the bundle over {budget.total_bytes:,} unpacked bytes", "--max-bytes")
        if of_member > budget.member_bytes:
            raise OverBudget(f"is larger than {budget.member_bytes:,} bytes", "--max-bytes")
        if self.unpacked_bytes > max(BUNDLE_RATIO_FLOOR_BYTES, budget.ratio * self.packed_bytes):
            self.full = True
            raise OverBudget(_bomb(budget), "--max-ratio")


class Guard:
    """Stops a decompression bomb: unpacked against packed bytes since a stream began, over all layers below it."""

    def __init__(self, root: Counted, budget: Budget) -> None:
        self._root = root
        self._start = root.count
        self._budget = budget
        self._unpacked = 0

    def count(self, size: int) -> None:
        """`size` more bytes were unpacked. Raises `OverBudget`."""
        self._unpacked += size
        packed = self._root.count - self._start + READ_AHEAD_BYTES
        if self._unpacked > RATIO_FLOOR_BYTES and self._unpacked > self._budget.ratio * packed:
            raise OverBudget(_bomb(self._budget), "--max-ratio")


class Counted:
    """An outermost file, or an archive that is held in memory: counts the packed bytes."""

    def __init__(self, stream: Stream, meter: Meter | None) -> None:
        self._stream = stream
        self._meter = meter
        self.count = 0

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        if self._meter is not None:
            self._meter.packed_bytes += len(data)
        return data


def _bomb(budget: Budget) -> str:
    return f"unpacks to more than {budget.ratio:,} times its size, as a decompression bomb does"
