"""Small streams that the containers are built of; see `budget.Stream` for what they promise."""

from __future__ import annotations

from .budget import Damaged, OverBudget, Stream

STEP_BYTES = 64 << 10


def read_up_to(stream: Stream, size: int) -> tuple[bytes, Exception | None]:
    """`size` bytes, fewer at the end or before an error, which is given back instead of raised."""
    parts: list[bytes] = []
    while size > 0:
        try:
            part = stream.read(size)
        except (Damaged, OverBudget, OSError) as error:
            return b"".join(parts), error
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts), None


def read_exactly(stream: Stream, size: int) -> bytes:
    """`size` bytes; raises `Damaged` when there are fewer, and what the stream raises."""
    data, error = read_up_to(stream, size)
    if error is not None:
        raise error
    if len(data) < size:
        raise Damaged("ends early")
    return data


def skip(stream: Stream, size: int) -> None:
    """Pass over `size` bytes; raises `Damaged` when there are fewer."""
    while size > 0:
        part = stream.read(min(size, STEP_BYTES))
        if not part:
            raise Damaged("ends early")
        size -= len(part)


class Pushback:
    """A stream that can be looked at ahead, and to which bytes can be given back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._held = b""
        self._at = 0
        self._error: Exception | None = None

    def peek(self, size: int) -> bytes:
        """The next bytes without taking them; an error is raised by the read that reaches it."""
        if len(self._held) - self._at < size and self._error is None:
            self._held, self._at = self._held[self._at :], 0
            more, self._error = read_up_to(self._stream, size - len(self._held))
            self._held += more
        return self._held[self._at : self._at + size]

    def give_back(self, data: bytes) -> None:
        self._held, self._at = data + self._held[self._at :], 0

    def read(self, size: int, /) -> bytes:
        part = self._held[self._at : self._at + size]
        if part:
            self._at += len(part)
            return part
        self._held, self._at = b"", 0
        if self._error is not None:
            raise self._error
        return self._stream.read(size)


class Limited:
    """The next `size` bytes of a stream, as a stream."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self.left = size

    def read(self, size: int, /) -> bytes:
        if self.left <= 0:
            return b""
        data = self._stream.read(min(size, self.left))
        if not data:
            raise Damaged(f"ends {self.left:,} bytes early")
        self.left -= len(data)
        return data
