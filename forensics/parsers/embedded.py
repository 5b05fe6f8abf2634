"""Log text that stands inside another document: a termination message, the log sections of a cluster dump."""

from __future__ import annotations

from ..model import Parsed
from ..scan import Scanner
from . import log


def read_text(text: str, source: str, channel: str) -> Parsed:
    """Read a text as a line log, every line of it; line numbers count from its beginning.

    `channel` is the speaker of lines without a header of their own.
    """
    from . import DIALECTS  # the registry imports every format, and so this module

    dialects = DIALECTS.values()
    scanner = Scanner(
        (),
        tuple(window for dialect in dialects for window in dialect.windows),
        tuple(spec for dialect in dialects for spec in dialect.series),
        prefilter=False,
    )
    scanner.feed(text.encode("utf-8", "replace"))
    return log.read(scanner.finish(), source, channel, DIALECTS)
