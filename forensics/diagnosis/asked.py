"""Whom people ask about, where a bundle holds the trouble of several: tickets attach whatever lay around.

A request names its subject first: in a header of the message, in its title, or in the first sentence that names
anybody at all. What befell another service then may be an incident, but it is not the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import regex

from ..parsers import notes
from ..regexes import lazy_regex
from . import bystanders, told
from .case import Case
from .entities import CLUSTER_NAME, NO_ENGINE
from .pod_names import telling_words, workload_of

APART_S = 3600.0
"""An hour after an end, what is started is no answer to it."""
_SUBJECT = lazy_regex(
    r"(?i)[\W_]*(?:subj(?:ect)?|betr(?:eff)?|objet|asunto|assunto|oggetto|onderwerp|title|titel|titre|тема|件名|主题|标题)[\W_]*[:：]"
)
"""What a message is about: its own header, whatever its body fears or mentions."""
_WORDS = lazy_regex(r"(?P<letters>\p{L}*)[\p{L}\p{N}]*")


def of(case: Case) -> frozenset[str]:
    """The entities that people ask about; empty where they name none of which the bundle shows more."""
    names = {entity: words for entity in _candidates(case) if (words := _words_of(case, entity))}
    for text in _requests(case):
        if named := _named(text, names):
            return named
    return frozenset()


def is_beside(case: Case, entity: str, moment_s: float | None) -> bool:
    """True for what befell another service than the one that people ask about.

    Where somebody only mentions one, what it did an hour before it was started and worked is not asked about either.
    """
    if not entity or entity.startswith(("cid:", "uid:")) or not case.said:
        return False
    if any(map(case.lives_of, case.asked)) and not _is_of_asked(case, entity):
        return True
    return _failed_before(case, entity, moment_s)


def _is_of_asked(case: Case, entity: str) -> bool:
    """True for the one that is asked about, what is named like it, and a log of nobody that may be its own."""
    if any(case.entities.same(entity, name) or bystanders.are_alike(entity, name) for name in case.asked):
        return True
    own = _words_of(case, entity)
    if any(own & _words_of(case, name) for name in case.asked):
        return True
    if not entity.startswith("file:"):
        return False
    if not own or not any(bystanders.speaks_as_engine(case, name) for name in case.asked):
        return True
    return case.nodes.spanning and not any(own & _words(event.text) for event in case.said)


def _failed_before(case: Case, entity: str, moment_s: float | None) -> bool:
    """True where people name another engine, which was started an hour later, and works."""
    if entity.startswith("file:") or not moment_s:
        return False
    later = {
        life.entity
        for life in case.lives
        if life.from_start and life.last_activity is not None and life.fatal is None
        and (life.start.time.utc_s or 0.0) > moment_s + APART_S
        and not life.entity.startswith("file:") and not bystanders.are_alike(life.entity, entity)
    }  # fmt: skip
    said = [_words(event.text) for event in case.said] if later else []
    own = _words_of(case, entity)
    return any(words & _words_of(case, name) for name in later for words in said) and not any(own & w for w in said)


def _candidates(case: Case) -> list[str]:
    """Whoever speaks as an engine here, and whatever has a state that may be one."""
    speaking = [name for name in bystanders.speakers(case) if not bystanders.is_something_else(case, name)]
    states = dict.fromkeys(case.entities.of(event) for event in case.of_kind(*bystanders.STATES))
    return [
        *speaking,
        *(name for name in states if name and name not in speaking and not _stands_beside(case, name)),
    ]


def _stands_beside(case: Case, entity: str) -> bool:
    name = entity.partition(":")[2]
    strange = bool(CLUSTER_NAME.match(name) or NO_ENGINE.search(name.lower()))
    return strange or bystanders.is_something_else(case, entity)


def _words_of(case: Case, entity: str) -> frozenset[str]:
    """The telling words of an entity's names, and of its log's where no name but an id is known."""
    names = [workload_of(name) for name in case.entities.members(entity) if not name.startswith(("cid:", "uid:"))]
    names += (source for life in case.lives_of(entity) for source in life.sources)
    return frozenset(word for name in names for word in telling_words(name))


def _requests(case: Case) -> Iterator[str]:
    """What people wrote, subjects first, then notes, then other texts without a log, each from its top."""
    logs = {source for life in case.lives for source in life.sources}
    files = "|".join(regex.escape(source.path.rpartition("/")[2]) for source in case.sources)
    written = sorted(
        (
            event
            for event in case.said
            if (event.channel == notes.CHANNEL or event.locator.source not in logs) and not told.is_row(event.text)
        ),
        key=lambda event: (event.channel != notes.CHANNEL, event.locator.source, event.locator.order),
    )
    subjects = [event for event in written if _SUBJECT.match(event.text)]
    for event in (*subjects, *written):
        yield regex.sub(files, " ", event.text)  # what is attached is not yet what is asked about


def _named(text: str, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Whom a text names; of `chat` and `chat-embed` only the one that explains more of its words."""
    said = _words(text)
    held = {entity: words & said for entity, words in names.items() if words & said}
    return frozenset(entity for entity, words in held.items() if not any(words < other for other in held.values()))


def _words(text: str) -> frozenset[str]:
    """The words of a text, with their numbers and without."""
    return frozenset(part for word in _WORDS.finditer(text.lower()) for part in (word[0], word["letters"]))
