"""Whom people ask about, where a bundle holds the trouble of several: tickets attach whatever lay around.

A request names its subject first: in a header of the message, in its title, or in the first sentence that names
anybody at all. What befell another service then may be an incident, but it is not the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..model import Event
from ..parsers import mentions, notes
from ..regexes import lazy_regex
from . import bystanders, told
from .case import Case
from .entities import CLUSTER_NAME, NO_ENGINE
from .model import Asked

_SUBJECT = lazy_regex(
    r"(?i)[\W_]*(?:subj(?:ect)?|betr(?:eff)?|objet|asunto|assunto|oggetto|onderwerp|title|titel|titre|тема|件名|主题|标题)"
    r"[\W_]*[:：]"
)
"""What a message is about: its own header, whatever its body fears or mentions."""
_PASSING = lazy_regex(
    r"(?i)\b(?:neighbou?rs?|unrelated|not ours|theirs|for context|(?:another|other|different) team|by the way|fyi"
    r"|nachbar\w*|nicht unser\w*|anderes team|nebenbei|voisin\w*|autre équipe|vecino\w*|otro equipo|vizinh\w+"
    r"|outr[ao] (?:time|equipe))\b"
    r"|邻居|其他团队|别的(?:组|团队)|无关|他のチーム|隣の"
)
"""How people mention what stands beside the one that they ask about."""
_TOKENS = lazy_regex(r"[\s`'\"“”„«»(),;|<>]+|[.:](?=\s|$)")
_WORDS = lazy_regex(r"(?P<letters>\p{Latin}*)[\p{Latin}\p{N}]*")
"""Latin words stand without a space in Chinese and Japanese."""


def of(case: Case) -> Asked:
    """The first that anybody names of those of whom the bundle shows more, and where."""
    requests = list(_requests(case))
    candidates = _candidates(case) if requests else []
    names = {entity: words for entity in candidates if (words := bystanders.called(case, entity))}
    for event, words in requests:
        if named := _named(words, names):
            return Asked(named, event.locator)
    return Asked()


def is_beside(case: Case, entity: str) -> bool:
    """True for what befell another service than the one that people ask about, whose log is here."""
    if not entity or entity.startswith(("cid:", "uid:")):
        return False
    return any(map(case.lives_of, case.asked.entities)) and not _is_of_asked(case, entity)


def _is_of_asked(case: Case, entity: str) -> bool:
    """True for the one that is asked about, what is named like it, and a log of nobody that may be its own."""
    if any(case.entities.same(entity, name) or bystanders.are_alike(entity, name) for name in case.asked.entities):
        return True
    own = bystanders.called(case, entity)
    if any(own & bystanders.called(case, name) for name in case.asked.entities):
        return True
    if not entity.startswith("file:"):
        return False
    if not own or not any(bystanders.speaks_as_engine(case, name) for name in case.asked.entities):
        return True
    return case.nodes.spanning and not any(own & _words(event.text) for event in case.said)


def _candidates(case: Case) -> list[str]:
    """Whoever speaks as an engine here, and whatever has a state that may be one."""
    speaking = {name for name in bystanders.speakers(case) if not bystanders.is_something_else(case, name)}
    states = {case.entities.of(event) for event in case.of_kind(*bystanders.STATES)} - {""}
    return [*speaking, *(name for name in states - speaking if not _stands_beside(case, name))]


def _stands_beside(case: Case, entity: str) -> bool:
    name = entity.partition(":")[2]
    strange = bool(CLUSTER_NAME.match(name) or NO_ENGINE.search(name.lower()))
    return strange or bystanders.is_something_else(case, entity)


def _requests(case: Case) -> Iterator[tuple[Event, frozenset[str]]]:
    """What people wrote, with its words: subjects first, then notes, then other texts without a log, from the top.

    The names of files are left out: what is attached is not yet what is asked about.
    """
    logs = {source for life in case.lives for source in life.sources}
    files = {source.path.rpartition("/")[2].lower() for source in case.sources}
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
        if not _PASSING.search(event.text) and not mentions.ANOTHER_TIME.search(event.text):
            yield event, _words(" ".join(token for token in _TOKENS.split(event.text.lower()) if token not in files))


def _named(said: frozenset[str], names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Whom words name; of `chat` and `chat-embed` only the one that explains more of them."""
    held = {entity: words & said for entity, words in names.items() if words & said}
    return frozenset(entity for entity, words in held.items() if not any(words < other for other in held.values()))


def _words(text: str) -> frozenset[str]:
    """The words of a text, with their numbers and without."""
    return frozenset(part for word in _WORDS.finditer(text.lower()) for part in (word[0], word["letters"]))
