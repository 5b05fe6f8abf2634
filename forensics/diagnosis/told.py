"""What people say beside a log that shows no end: that it ended all the same, or with which code.

Tickets cut what is attached, and a log that stops in the middle of work proves nothing. What somebody asks, denies,
fears or quotes is no word of an end; nor is one of another time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model import Event, Finding
from ..parsers import mentions, notes, prose
from ..regexes import lazy_regex
from . import bystanders
from .case import Case, conclude

_EXIT = lazy_regex(
    r"(?:(?i:\bexit(?:ed with)?[ -]?(?:code|status))|退出码|(?i:code (?:de )?(?:sortie|retour))|(?i:código de salida))"
    r"\W{1,4}(?P<code>\d{1,3})\b"
)
_STATUS = lazy_regex(r"\bExited \((?P<code>\d{1,3})\) (?:about )?(?:an?|\d+) \w+ ago")
"""What `docker ps` showed, as people quote it."""
_NO_FAULT = frozenset({0, 130, 143})
"""Exit codes of what was done, or was asked to end."""
_ENDED = lazy_regex(
    r"(?i)\b(?:crashed|died|(?:got|was|were) (?:oom-?)?killed|went down|oom-?killed|oom(?:ed|'d)|went oom"
    r"|restarted (?:once|twice|\d+ ?(?:x|times)|itself|by itself|on its own|overnight)"
    r"|abgestürzt|gestorben|abgeschmiert|von (?:selbst|allein) neu gestartet"
    r"|(?:a|est) (?:planté|crashé)e?|se (?:cayó|murió)|caiu|morreu|упал[аио]?)\b"
    r"|崩溃了|挂了|挂掉了|宕机了|自[己动]重启了"
)
_UNSURE = lazy_regex(
    r"(?i)\b(?:no|not|never|nothing|nobody|none|without|if|whether|would|could|may|might|will|until|unless|almost|nearly"
    r"|nicht|nie|kein\w*|ohne|wenn|ob|falls|könnte|wird|pas|jamais|sans|si|nunca|sin|não|nem|sem|не|ни|если)\b"
    r"|n't\b|\b(?:expected|erwartet|attendu|esperado)\b|没|未|不|是否|如果|会|吗|预期"
)
_ROW = lazy_regex(r"\S {2,}\S.*? {2,}\S")
"""Columns: a program's table, whatever sentence stands in the last one."""
SENTENCE = lazy_regex(r"[^.!?。！？]+(?:\.(?=\w)[^.!?。！？]*)*[.!?。！？]*")
_QUOTED = lazy_regex(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|`[^`\n]{1,200}`|'[^'\n]{3,200}'"
)


def ends(case: Case) -> list[Finding]:
    """The first word of an end that no source shows; a status that says that it runs, and never ended, knows better.

    What `docker ps` showed of an end that nothing here explains counts, whatever was done since.
    """
    deaths = (death for death in case.deaths if not bystanders.is_of_another_namespace(case, death.entity))
    for event in case.said:
        status = _STATUS.search(event.text)
        if status is not None and int(status["code"]) not in _NO_FAULT:
            return [conclude("told_end", event, {"exit_code": int(status["code"])})]
    if any(deaths) or bystanders.seen_running(case):
        return []
    for event in case.said:
        for sentence in SENTENCE.findall(_QUOTED.sub(" ", event.text)):
            if (code := _end_in(sentence)) is not None:
                return [conclude("told_end", event, {"exit_code": code} if code else {})]
    return []


def by_people(events: Sequence[Event]) -> Iterator[Event]:
    """Lines of notes, sentences without a header, and what stands above the first dated line of a log."""
    printed: dict[str, int] = {}
    for event in events:
        if event.stamps and event.channel != notes.CHANNEL:
            place = event.locator
            printed[place.source] = min(place.order, printed.get(place.source, place.order))
    for event in events:
        if event.kind != "log":
            continue
        above = not event.stamps and event.locator.order < printed.get(event.locator.source, 0)
        bare = event.channel == "plain" and not event.stamps and prose.is_prose(event.text)
        bare = bare and not is_row(event.text)
        if above or bare or event.channel == notes.CHANNEL:
            yield event


def is_row(text: str) -> bool:
    """True for a line of a program's table."""
    return _ROW.search(text) is not None


def _end_in(sentence: str) -> int | None:
    """The exit code that a sentence tells, 0 where it tells of an end without one; none where it tells of no end."""
    if sentence.rstrip().endswith(("?", "？")) or _UNSURE.search(sentence) or mentions.ANOTHER_TIME.search(sentence):
        return None
    if mentions.REFERS.search(sentence.replace("--previous", "")):
        return None
    if (said := _EXIT.search(sentence)) is not None:
        code = int(said["code"])
        return None if code in _NO_FAULT else code
    return 0 if _ENDED.search(sentence) else None
