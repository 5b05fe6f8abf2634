"""Whom people ask about, where a bundle holds the trouble of several: tickets attach whatever lay around.

A request names its subject first: in a header of the message, in its title, or in the first sentence that names
anybody at all. What befell another service then may be an incident, but it is not the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Event
from ..parsers import commands, mentions, notes
from ..regexes import lazy_regex
from . import bystanders, told
from .case import Case
from .entities import CLUSTER_NAME, NO_ENGINE, models_of
from .model import Asked
from .pod_names import telling_words

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
_QUESTION = lazy_regex(
    r"(?i)[`*\"„“«「].*[?？]|\b(?:frage|question|pregunta|pergunta|domanda|vraag|вопрос|why|warum|wieso|weshalb|pourquoi|waarom|perché"
    r"|почему|por ?qu[eé])\b|为什么|为何|怎么回事|なぜ|質問|问题是"
)
"""How people ask, or mark a name in what they ask."""
_SUSPECTS = lazy_regex(
    r"(?i)\b(?:because|caus\w*|due to|blame|related|fault|wegen|schuld|ursache|à cause|culpa|oorzaak|colpa|из-за"
    r"|(?:is|could|can|kann|est-ce|será|es) (?:it|that|es|que)|ignor\w+|tickets?)\b|因为|导致|引起|のせい|原因"
)
"""Whom a question suspects, it does not ask about."""
_OTHERS = lazy_regex(
    r"(?i)(?:^|/)(?:others?|otros?|autres?|andere|altr[io]|outros|neighbou?rs?|unrelated|rest[-_]of|misc)(?=[-_./])"
)
"""Folders and files of what stands beside."""
_TOKENS = lazy_regex(r"[\s`'\"“”„«»(),;|<>]+|[.:](?=\s|$)")
_WORDS = lazy_regex(r"(?P<letters>\p{Latin}*)[\p{Latin}\p{N}]*")
"""Latin words stand without a space in Chinese and Japanese."""

_STATES = (*bystanders.STATES, "container_terminated", "container_waiting")


def of(case: Case) -> Asked:
    """The first that anybody names of those of whom the bundle shows more, with what is called like it, and where."""
    requests = list(_requests(case))
    candidates = _candidates(case) if requests else []
    called = {entity: case.called(entity) for entity in candidates}
    models = _models(case) if requests else {}
    for event, said, pointed in requests:
        held = {e: said & (words | models.get(e, frozenset()) if pointed else words) for e, words in called.items()}
        best = {name for name, words in held.items() if words and not any(words < other for other in held.values())}
        if best:
            kin = {name for name, words in called.items() if any(words & called[one] for one in best)}
            return Asked(frozenset(best | kin), event.locator)
    return Asked()


def is_beside(case: Case, entity: str) -> bool:
    """True for what befell another service than the one that people ask about, of which a log or an end is here.

    Without a word of theirs, what they put into a folder of other things is beside what they did not.
    """
    if not entity or entity.startswith(("cid:", "uid:")):
        return False
    if not case.asked.entities:
        return _is_put_aside(case, entity)
    shown = any(map(case.lives_of, case.asked.entities)) or any(
        not death.graceful and death.entity in case.asked.entities for death in case.deaths
    )
    return shown and not _is_of_asked(case, entity)


def is_elsewhere(case: Case, event: Event) -> bool:
    """True for a fact of a machine on which none of those ran that somebody asks about."""
    homes = [name for name in case.asked.entities if case.nodes.homes.get(name)]
    return bool(homes) and all(case.nodes.apart(name, event) for name in homes)


def _is_put_aside(case: Case, entity: str) -> bool:
    def aside(name: str) -> bool:
        return all(_OTHERS.search(source) for life in case.lives_of(name) for source in life.sources)

    return bool(case.lives_of(entity)) and aside(entity) and not all(map(aside, bystanders.speakers(case)))


def _is_of_asked(case: Case, entity: str) -> bool:
    """True for the one that is asked about, what is named like it, and a log of nobody that may be its own."""
    if any(case.entities.same(entity, name) or bystanders.are_kin(case, entity, name) for name in case.asked.entities):
        return True
    own = case.called(entity)
    if not entity.startswith("file:"):
        return False
    if not own or not any(bystanders.speaks_as_engine(case, name) for name in case.asked.entities):
        return True
    return case.nodes.spanning and not any(own & _words(event.text) for event in case.said)


def _candidates(case: Case) -> list[str]:
    """Whoever speaks as an engine here, and whatever has a state that may be one."""
    speaking = {name for name in bystanders.speakers(case) if not bystanders.is_something_else(case, name)}
    states = {case.entities.of(event) for event in case.of_kind(*_STATES)} - {""}
    return sorted(speaking | {name for name in states - speaking if not _stands_beside(case, name)})


def _stands_beside(case: Case, entity: str) -> bool:
    name = entity.partition(":")[2]
    strange = bool(CLUSTER_NAME.match(name) or NO_ENGINE.search(name.lower()))
    return strange or bystanders.is_something_else(case, entity)


def _requests(case: Case) -> Iterator[tuple[Event, frozenset[str], bool]]:
    """What people wrote, with its words: subjects first, then questions, then notes and other texts, from the top.

    The last is true for subjects and questions: there a model's name means the engine that serves it. The names of
    files are left out: what is attached is not yet what is asked about.
    """
    logs = {source for life in case.lives for source in life.sources}
    files = {source.path.rpartition("/")[2].lower() for source in case.sources}
    written = sorted(
        (
            event
            for event in case.said
            if event.channel == notes.CHANNEL or event.locator.source not in logs
            if not told.is_row(event.text) and not commands.is_command(event.text)
        ),
        key=lambda event: (event.channel != notes.CHANNEL, event.locator.source, event.locator.order),
    )
    subjects = [(event, event.text) for event in written if _SUBJECT.match(event.text)]
    questions = [
        (event, sentence)
        for event in written
        for sentence in told.SENTENCE.findall(event.text)
        if _QUESTION.search(sentence) and not _SUSPECTS.search(sentence)
    ]
    pointed = [*subjects, *questions]
    for number, (event, text) in enumerate((*pointed, *((event, event.text) for event in written))):
        if not _PASSING.search(text) and not mentions.ANOTHER_TIME.search(text):
            words = _words(" ".join(token for token in _TOKENS.split(text.lower()) if token not in files))
            yield event, words, number < len(pointed)


def _models(case: Case) -> dict[str, frozenset[str]]:
    """The words by which people call the models that engines serve, by engine."""
    found: dict[str, frozenset[str]] = {}
    for event in case.of_kind("engine_args", "engine_config"):
        names = (name.rstrip("/").rpartition("/")[2] for name in models_of(event.fields))
        words = frozenset(word for name in names for word in telling_words(name.replace(".", "-")))
        found[case.entities.of(event)] = found.get(case.entities.of(event), frozenset()) | words
    return found


def _words(text: str) -> frozenset[str]:
    """The words of a text, with their numbers and without."""
    return frozenset(part for word in _WORDS.finditer(text.lower()) for part in (word[0], word["letters"]))
