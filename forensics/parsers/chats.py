"""Chats and tickets exported as JSON: Slack, Discord, GitHub, Jira – whatever names an author beside a text.

What people say in them is prose and no evidence; what they pasted, also as a snippet or an attachment, is read like
every log (`notes`). The last message tells when the incident was talked about, and so the year of lines without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import unescape
from typing import Any

from ..model import Event, Locator, RawStamp
from ..regexes import lazy_regex
from ..sources import Carried, Format, Head
from .envelopes.shippers import AUTHORS, moment
from .json_yaml import read_json
from .located import Array, Object, dig, line_at, objects_at, text_at
from .newest_first import is_newest_first
from .recordings import Piece, carried

MAX_BYTES = 64 << 20
_AUTHOR = lazy_regex(rf'"(?:{"|".join(sorted(AUTHORS))})"\s*:')
_SAID = ("title", "pretext", "text", "content", "body", "description", "fallback", "plain_text", "preview")
"""Keys of what was written or uploaded, in the order in which it is shown."""
_SHOWN_TWICE = frozenset({"fallback", "preview"})
"""Keys that repeat another one for those who cannot show it."""
_OF_A_LOG = frozenset({"level", "severity", "levelname", "log", "message", "logger"})
_POSTED = ("ts", "timestamp", "created_at", "createdAt", "create_at", "createdDateTime", "created")
_LINK = lazy_regex(r"<(?:https?|mailto):[^|<>\s]*\|([^<>\n]*)>")
"""Slack writes a link as `<address|text>`."""
SNIFF_CHARS = 64 << 10


def is_said(value: Mapping[str, Any]) -> bool:
    """Whether somebody wrote this: an author beside a text, and nothing of a log's entry."""
    keys = {key.lower() for key in value}
    return bool(keys & AUTHORS) and not keys & _OF_A_LOG and any(_texts(value))


def read(text: str) -> Carried:
    """Messages, oldest first, each with what is attached to it."""
    said = [message for document in read_json(text) for message in _messages(document.value)]
    times = [stamp.seconds for message in said if (stamp := _posted(message)) is not None]
    if is_newest_first(times):
        said.reverse()
    found = carried([piece for message in said for piece in _pieces(message)])
    return replace(found, events=_captured(said))


def _messages(value: Any) -> Iterator[Object]:
    """Everything that somebody wrote; comments and replies follow what they are about."""
    if isinstance(value, Object) and is_said(value):
        yield value
    for item in value.values() if isinstance(value, Object) else value if isinstance(value, Array) else ():
        yield from _messages(item)


def _texts(message: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Paths of its texts; Teams puts that of a body one level deeper."""
    paths = [path for key in _SAID for path in ((key,), (key, "content")) if isinstance(dig(message, *path), str)]
    yield from (path for path in paths if path[0] not in _SHOWN_TWICE or len(paths) == 1)


def _pieces(message: Object) -> Iterator[Piece]:
    """Texts of a message and of what hangs on it, without the messages of others."""
    for path in _texts(message):
        yield Piece(unescape(_LINK.sub(r"\1", text_at(message, *path))) + "\n", line_at(message, *path))
    for key in message:
        for item in objects_at(message, key):
            if not is_said(item):
                yield from _pieces(item)


def _posted(message: Object) -> RawStamp | None:
    return next((stamp for key in _POSTED if (stamp := moment(text_at(message, key))) is not None), None)


def _captured(said: list[Object]) -> tuple[Event, ...]:
    dated = [(stamp, message.line) for message in said if (stamp := _posted(message)) is not None]
    if not dated:
        return ()
    stamp, line = max(dated, key=lambda pair: pair[0].seconds)
    return (Event(Locator("", line, line), "capture", "host", "last message of the chat", (stamp,)),)


def _sniff(head: Head) -> int:
    """A document of messages; objects of which each fills one line are a log, whoever they name."""
    text = head.text.lstrip()
    if text[:1] not in ("{", "[") or '"apiVersion"' in text[:400] or not _AUTHOR.search(text):
        return 0
    if text[:1] == "{" and len(head.lines) > 1 and head.lines[0].rstrip().endswith("}"):
        return 0
    found = (message for document in read_json(text[:SNIFF_CHARS]) for message in _messages(document.value))
    return 73 if any(True for _ in found) else 0


FORMAT = Format("chat", "exported chat", _sniff, max_bytes=MAX_BYTES, carried=read, begins="{[")
