"""The law of the library: what must hold for every signature, as a list of problems.

Every pattern is used by an example, and every example hits exactly the pattern it names, with the values it states;
anchors stand in every positive example; every signature has an example that must not match; no signature fires on
another one's examples unless one of them says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import Problem
from ..model import Event, Locator
from .explain import attempt
from .matching import Hit, Matcher
from .model import Example, Library, Signature, path_of
from .snippets import caret


def event_of(example: Example, signature: Signature) -> Event:
    """The event that an example stands for."""
    kind = signature.kinds[0] if signature.kinds else "log"
    return Event(Locator("example", 1, 1), kind, example.channel, example.text, level=example.level)


def check(library: Library, only: Iterable[str] | None = None) -> tuple[Problem, ...]:
    """All breaches of the law, for all signatures or for those named in `only`."""
    chosen = library.signatures.values() if only is None else [library.signatures[i] for i in only]
    matcher = Matcher(library)
    problems: list[Problem] = []
    for signature in chosen:
        problems += examples_of(signature, matcher)
    problems += strangers(library, frozenset(s.id for s in chosen))
    return tuple(problems)


def examples_of(signature: Signature, matcher: Matcher) -> Iterator[Problem]:
    """What is wrong with a signature's own patterns and examples."""
    yield from completeness(signature)
    for number in range(1, len(signature.examples) + 1):
        yield from example_of(signature, number, matcher)


def completeness(signature: Signature) -> Iterator[Problem]:
    """Which examples a signature lacks."""
    path = path_of(signature.id)
    used = {example.pattern for example in signature.examples}
    for pattern in signature.patterns:
        if pattern.name not in used:
            hint = f'add a line that it matches, with match = "{pattern.name}"'
            yield Problem(path, f"patterns.{pattern.name}", "no example uses it", hint)
    if "" not in used:
        hint = "add a similar line that must not match, with match = false"
        yield Problem(path, "examples", "there is no example that must not match", hint)


def example_of(signature: Signature, number: int, matcher: Matcher) -> Iterator[Problem]:
    """What is wrong with one example; examples count from 1."""
    example = signature.examples[number - 1]
    path, key = path_of(signature.id), f"examples.{number}"
    if example.pattern and not any(anchor in example.text for anchor in signature.anchors):
        yield Problem(path, f"{key}.text", "holds none of the anchors", "an anchor must be in every matching line")
        return
    hits = [hit for hit in matcher.hits(event_of(example, signature)) if hit.signature.id == signature.id]
    solid = [hit for hit in hits if not hit.quoted]
    if not example.pattern:
        if solid:
            yield Problem(path, f"{key}.text", f"must not match, but pattern {solid[0].pattern!r} does",
                          "narrow the pattern", _shown(example, solid[0]))  # fmt: skip
    elif hits and not solid:
        yield Problem(path, f"{key}.text", "is taken for a quotation (level INFO, or text of a user)",
                      "give the example its level, or set quotable = true", _shown(example, hits[0]))  # fmt: skip
    elif not solid:
        yield _miss(signature, example, key)
    elif solid[0].pattern != example.pattern:
        yield Problem(path, f"{key}.match", f"pattern {solid[0].pattern!r} matches first",
                      f"expected {example.pattern!r}: order or narrow the patterns")  # fmt: skip
    else:
        yield from _fields(path, key, example, solid[0].fields)


def _shown(example: Example, hit: Hit) -> str:
    return caret(example.text, hit.start, hit.end)


def _miss(signature: Signature, example: Example, key: str) -> Problem:
    """The expected pattern does not match: show where it stops."""
    path = path_of(signature.id)
    if example.channel not in signature.channels:
        return Problem(path, f"{key}.channel", f"no pattern matches: channel {example.channel!r} is not listened to",
                       "add it to `channels`, or correct the example")  # fmt: skip
    pattern = next((p for p in signature.patterns if p.name == example.pattern), None)
    if pattern is None:
        return Problem(path, f"{key}.match", f"no pattern is called {example.pattern!r}", "correct the name")
    tried = attempt(pattern, example.text)
    source = tried.pattern.source
    stop = min(tried.regex_stop, max(len(source) - 1, 0))
    snippet = f"{caret(source, stop)}\n{caret(example.text, min(tried.text_stop, max(len(example.text) - 1, 0)))}"
    return Problem(path, f"{key}.text", f"pattern {example.pattern!r} does not match: {tried.reason}",
                   "the carets show how far the pattern and the text agree", snippet)  # fmt: skip


def _fields(path: str, key: str, example: Example, got: dict[str, object]) -> Iterator[Problem]:
    for name in sorted({*example.fields, *got}):
        if name not in example.fields:
            yield Problem(path, f"{key}.fields", f"{name} = {got[name]!r} is captured but not stated",
                          "state every captured value, exactly")  # fmt: skip
        elif name not in got:
            yield Problem(path, f"{key}.fields.{name}", f"stated {example.fields[name]!r}, but nothing is captured",
                          f"pattern {example.pattern!r} has the groups that `types` names")  # fmt: skip
        elif got[name] != example.fields[name]:
            yield Problem(path, f"{key}.fields.{name}", f"is {got[name]!r}, stated {example.fields[name]!r}",
                          "the unit in a field's name is the unit of its value")  # fmt: skip


def strangers(library: Library, chosen: frozenset[str] | None = None) -> Iterator[Problem]:
    """Signatures that fire on another one's examples without a declared overlap.

    `chosen` limits the pairs to those with one of these; the problem then is that one's.
    """
    own = frozenset(library.signatures) if chosen is None else chosen
    if not own:
        return
    for owner, number, hit in crossings(library, own):
        yield Problem(
            path_of(owner.id), f"examples.{number}", f"{hit.signature.id} fires on it as well",
            "narrow one of them, or list the other under `overlaps`", _shown(owner.examples[number - 1], hit),
        )  # fmt: skip
    few = Library({i: library.signatures[i] for i in own}, {})
    for owner, number, hit in crossings(few, library.signatures.keys() - own, library):
        yield Problem(
            path_of(hit.signature.id), f"patterns.{hit.pattern}", f"fires on example {number} of {owner.id} as well",
            f"narrow it, or list {owner.id} under `overlaps`", _shown(owner.examples[number - 1], hit),
        )  # fmt: skip


def crossings(
    library: Library, owners: Iterable[str], examples: Library | None = None, declared: bool = False
) -> Iterator[tuple[Signature, int, Hit]]:
    """(owner, number of its matching example, hit of another signature): the confusion matrix off its diagonal.

    `library` fires, `examples` (the same one, if not given) holds the owners' examples. A near miss of one signature
    may be a true hit of another, so only matching examples count. Declared overlaps are left out unless asked for.
    """
    matcher = Matcher(library)
    for owner in ((examples or library).signatures[i] for i in sorted(owners)):
        for number, example in enumerate(owner.examples, 1):
            if not example.pattern:
                continue
            for hit in matcher.hits(event_of(example, owner)):
                stranger = hit.signature
                if stranger.id == owner.id or hit.quoted:
                    continue
                if declared or not (stranger.id in owner.overlaps or owner.id in stranger.overlaps):
                    yield owner, number, hit
