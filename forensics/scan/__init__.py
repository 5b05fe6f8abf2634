"""The hot path: bytes → the few lines that Python has to see, series as columns, and counts.

`text` cuts the blocks of a member into pieces of whole lines in UTF-8; `scanner` finds the lines that matter in them.
"""

from .anchors import literals_in
from .binary import binary_kind
from .lines import Line, Scanned, SeriesRows, SeriesSpec, Window
from .look import Looked
from .scanner import Scanner, scan
from .text import encoding_of

__all__ = [
    "Line", "Looked", "Scanned", "Scanner", "SeriesRows", "SeriesSpec", "Window", "binary_kind", "encoding_of",
    "literals_in", "scan",
]  # fmt: skip
