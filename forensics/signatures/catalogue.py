"""The library as text for people: the catalogue in `patterns/README.md`, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from . import law
from .matching import Matcher
from .model import Library, Signature

BEGIN = "<!-- catalogue: begin; written by `oomforensics patterns catalogue --write`, do not edit -->"
END = "<!-- catalogue: end -->"


def catalogue(library: Library) -> str:
    """Markdown: one table of signatures a family, one of causes."""
    families: dict[str, list[Signature]] = {}
    for signature in sorted(library.signatures.values(), key=lambda s: s.id):
        families.setdefault(signature.id.partition(".")[0], []).append(signature)
    examples = sum(len(s.examples) for s in library.signatures.values())
    patterns = sum(len(s.patterns) for s in library.signatures.values())
    lines = [
        f"{len(library.signatures)} signatures in {len(families)} families, with {patterns} patterns and {examples} "
        f"examples; {len(library.causes)} causes.",
    ]
    for family, members in families.items():
        lines += ["", f"### {family}", "", "| id | role | severity | title | printed by |", "|---|---|---|---|---|"]
        lines += [_row(signature) for signature in members]
    lines += ["", "### causes", "", "| id | title | decided by |", "|---|---|---|"]
    for cause in sorted(library.causes.values(), key=lambda c: c.id):
        decided = ", ".join(f"`{name}`" for name in cause.decisive) or "the absence of other evidence"
        lines.append(f"| `{cause.id}` | {_cell(cause.title.en)} | {decided} |")
    return "\n".join(lines)


def _row(signature: Signature) -> str:
    printed = "; ".join(dict.fromkeys(f"{v.program} {v.range}".strip() for v in signature.versions))
    cells = (f"`{signature.id}`", signature.role.value, signature.severity.value, signature.title, printed)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def renewed(readme: str, library: Library) -> str:
    """The README with its catalogue made anew. Raises `ValueError` when the marks are missing."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("the marks around the catalogue are missing")
    return f"{head}{BEGIN}\n\n{catalogue(library)}\n\n{END}{tail}"


def confusion(library: Library) -> str:
    """Which signature fires on whose examples: one line a signature, sparse, because nearly all cells are zero.

    `7/7 3/3` = all seven matching examples hit, all three near misses do not; `also x.y 2` = signature x.y fires on
    two of its matching examples, and one of the two says so.
    """
    matcher = Matcher(library)
    others: dict[str, Counter[str]] = {}
    for owner, _, hit in law.crossings(library, library.signatures, declared=True):
        others.setdefault(owner.id, Counter())[hit.signature.id] += 1
    return "\n".join(_matrix_row(s, matcher, others.get(s.id, Counter())) for s in _sorted(library)) + "\n"


def _sorted(library: Library) -> Iterator[Signature]:
    yield from sorted(library.signatures.values(), key=lambda s: s.id)


def _matrix_row(signature: Signature, matcher: Matcher, others: Counter[str]) -> str:
    must: list[bool] = []
    must_not: list[bool] = []
    for example in signature.examples:
        hits = [h for h in matcher.hits(law.event_of(example, signature)) if h.signature.id == signature.id]
        solid = any(not hit.quoted for hit in hits)
        (must if example.pattern else must_not).append(solid == bool(example.pattern))
    row = f"{signature.id}  {sum(must)}/{len(must)} {sum(must_not)}/{len(must_not)}"
    return row + "".join(f"  also {name} {count}" for name, count in sorted(others.items()))
