"""The law of the library: what must hold for every signature, as a list of problems.

Every pattern is used by an example and every example hits exactly the pattern it names, with the values it states;
anchors stand in every positive example; every signature has an example that must not match; no signature fires on
another one's examples unless both say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import Problem
from ..model import Event, Locator
from .library import Example, Library, Signature
from .matching import Matcher

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


def path_of(signature_id: str) -> str:
    return signature_id.replace(".", "/", 1) + ".toml"


def examples_of(signature: Signature, matcher: Matcher) -> Iterator[Problem]:
    """What is wrong with a signature's own patterns and examples."""
    path = path_of(signature.id)
    used = {example.pattern for example in signature.examples}
    for pattern in signature.patterns:
        if pattern.name not in used:
            yield Problem(path, f"patterns.{pattern.name}", "no example uses it", f'add one with match = "{pattern.name}"')
    if not any(not example.pattern for example in signature.examples):
        yield Problem(path, "examples", "no near miss", "add a similar line that must not match, with match = false")
    for number, example in enumerate(signature.examples, 1):
        key = f"examples.{number}"
        if example.pattern and not any(anchor in example.text for anchor in signature.anchors):
            yield Problem(path, f"{key}.text", "holds none of the anchors", "an anchor must be in every matching line")
        hits = [hit for hit in matcher.hits(event_of(example, signature)) if hit.signature.id == signature.id]
        solid = [hit for hit in hits if not hit.quoted]
        if not example.pattern:
            if solid:
                yield Problem(path, f"{key}.text", f"must not match, but pattern {solid[0].pattern!r} does")
            continue
        if not solid:
            reason = "is taken for a quotation (level INFO, middle of a line)" if hits else "no pattern matches"
            yield Problem(path, f"{key}.text", reason, f"expected pattern {example.pattern!r}")
        elif solid[0].pattern != example.pattern:
            yield Problem(path, f"{key}.match", f"pattern {solid[0].pattern!r} matches first",
                          f"expected {example.pattern!r}: order or narrow the patterns")  # fmt: skip
        else:
            yield from _fields(path, key, example, solid[0].fields)


def _fields(path: str, key: str, example: Example, got: dict[str, object]) -> Iterator[Problem]:
    for name in sorted({*example.fields, *got}):
        if name not in example.fields:
            yield Problem(path, f"{key}.fields", f"{name} = {got[name]!r} is captured but not stated")
        elif got.get(name) != example.fields[name]:
            yield Problem(path, f"{key}.fields.{name}", f"is {got.get(name)!r}, stated {example.fields[name]!r}")


def strangers(library: Library, chosen: frozenset[str] | None = None) -> Iterator[Problem]:
    """Signatures that fire on another one's examples without a declared overlap; `chosen` limits to pairs with these."""
    matcher = Matcher(library)
    for owner in library.signatures.values():
        for number, example in enumerate(owner.examples, 1):
            for hit in matcher.hits(event_of(example, owner)):
                stranger = hit.signature
                if stranger.id == owner.id or hit.quoted:
                    continue
                if chosen is not None and not {stranger.id, owner.id} & chosen:
                    continue
                if stranger.id in owner.overlaps or owner.id in stranger.overlaps:
                    continue
                if not example.pattern:
                    continue  # a near miss of one may be a true hit of another
                yield Problem(path_of(owner.id), f"examples.{number}", f"{stranger.id} fires on it as well",
                              "narrow one of them, or list the other under `overlaps`")  # fmt: skip
