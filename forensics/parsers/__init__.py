"""One module a format. The registries below are the only place that names them all.

Documents are read whole (`Format.read`); line logs are all read by `log`, with a `Dialect` for each speaker.
"""

from __future__ import annotations

from ..sources import Format
from . import log
from .log import Dialect

DIALECTS: dict[str, Dialect] = {}

FORMATS: tuple[Format, ...] = (log.FORMAT,)
