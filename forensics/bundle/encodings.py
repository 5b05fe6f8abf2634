"""Bytes of unknown encoding → text; for names and for lines."""

from __future__ import annotations

from ..regexes import lazy_re

_GBK_PAIRS = lazy_re(rb"[\xa1-\xf7][\xa1-\xfe]")


def decode(raw: bytes) -> str:
    """UTF-8; GBK when it cannot be UTF-8 and looks like Chinese; else with replacement characters.

    Chinese in GBK is nearly all pairs of high bytes, while the accented letters of Latin-1 stand between ASCII ones.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    pairs = len(_GBK_PAIRS.findall(raw))
    if pairs >= 2 and 2 * pairs >= 0.9 * sum(byte >= 0x80 for byte in raw):
        try:
            return raw.decode("gb18030")
        except UnicodeDecodeError:
            pass
    return raw.decode("utf-8", "replace")
