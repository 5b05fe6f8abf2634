"""How right is the diagnosis? Runs every case with a stated truth and prints the scores.

Cases are `samples/*/case.toml`, and bundles with a `*.truth.json` in the folders given as arguments.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics import analyze
from forensics.report.render import render

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Truth:
    name: str
    bundle: Path
    cause: str
    acceptable: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    first_cause: tuple[str, ...] = ()
    decoys: tuple[str, ...] = ()
    key_facts: dict[str, Any] = field(default_factory=dict)


def samples() -> Iterator[Truth]:
    for path in sorted((ROOT / "samples").glob("*/case.toml")):
        case = tomllib.loads(path.read_text(encoding="utf-8"))
        bundle = path.parent / "bundle"
        if not bundle.is_dir():
            bundle = next(p for p in sorted(path.parent.iterdir()) if p.name != "case.toml")
        yield Truth(
            path.parent.name, bundle, case["cause"], tuple(case.get("acceptable", ())), tuple(case.get("must_not", ())),
            tuple(case.get("first_cause", ())), tuple(case.get("decoys", ())), case.get("key_facts", {}),
        )  # fmt: skip


def bundles(folder: Path) -> Iterator[Truth]:
    for path in sorted(folder.glob("*/*.truth.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        bundle = next(p for p in sorted(path.parent.iterdir()) if not p.name.endswith(".truth.json"))
        first = case.get("first_cause_event") or {}
        yield Truth(
            path.parent.name, bundle, case["expected_root_cause"], tuple(case.get("acceptable", ())),
            tuple(case.get("must_not", ())), (f"{first.get('file')}:{first.get('line')}",) if first else (),
            tuple(f"{d['file']}:{d['line']}" for d in case.get("decoys", ())), case.get("key_facts", {}),
        )  # fmt: skip


def near(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return bool(a == b)
    return abs(a - b) <= 0.011 * max(abs(a), abs(b), 1e-9)


_SCALES = (1.0, 1024.0, 1 / 1024, 1024.0**2, 1 / 1024**2, 1024.0**3, 60.0, 1 / 60, 3600.0, 100.0, 0.01)


def fact_found(value: Any, facts: dict[str, Any], text: str) -> bool:
    """The number is among the key facts, in any common unit, or printed in the report."""
    if isinstance(value, list):
        return all(fact_found(item, facts, text) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if any(near(value * scale, other) for other in facts.values() for scale in _SCALES):
            return True
        return str(value) in text or f"{value:,}".replace(",", " ") in text
    return any(near(value, other) for other in facts.values()) or str(value) in text


@dataclass(frozen=True)
class Score:
    """How one case went."""

    truth: Truth
    cause: str
    confidence: str
    place: str
    """`source:line` of the first cause, `-` for none."""
    fallen: tuple[str, ...]
    """Decoys that were taken as evidence."""
    missing: tuple[str, ...]
    """Key facts that are neither a key fact of the report nor printed in it."""

    @property
    def exact(self) -> bool:
        return self.cause == self.truth.cause

    @property
    def right(self) -> bool:
        return self.exact or self.cause in self.truth.acceptable

    @property
    def harmful(self) -> bool:
        return self.cause in self.truth.must_not

    @property
    def abstained(self) -> bool:
        return self.cause == "insufficient_evidence" and not self.right

    @property
    def first_right(self) -> bool:
        return not self.truth.first_cause or self.place in self.truth.first_cause

    def line(self) -> str:
        flag = "ok  " if self.exact else "acc " if self.right else "HARM" if self.harmful else "MISS"
        notes = [
            "" if self.exact else f"truth {self.truth.cause}",
            "" if self.first_right else f"first {self.place[-40:]}≠{self.truth.first_cause[0][-40:]}",
            f"decoys {list(self.fallen)}" if self.fallen else "",
            f"missing {list(self.missing)}" if self.missing else "",
        ]
        head = f"{flag} {self.truth.name:<42} {self.cause:<26} {self.confidence:<12}"
        return " ".join([head, *filter(None, notes)]).rstrip()


def score(truth: Truth) -> Score:
    report = analyze(truth.bundle)
    data = report.to_dict()
    verdict = data["verdict"]
    first = verdict["first_cause"]
    evidence = {f"{e['source']}:{e['line']}" for e in data["incidents"][0]["hypotheses"][0]["for"]}
    text = render(report, "md")
    return Score(
        truth, verdict["cause"], verdict["confidence"], f"{first['source']}:{first['line']}" if first else "-",
        tuple(sorted(evidence & set(truth.decoys))),
        tuple(name for name, value in truth.key_facts.items() if not fact_found(value, data["key_facts"], text)),
    )  # fmt: skip


def summary(scores: Sequence[Score]) -> Iterator[str]:
    """Counts over all cases, the mean over causes (a rare cause weighs as much as a frequent one), and what each
    confidence word was worth."""
    facts = sum(len(s.truth.key_facts) for s in scores)
    found = facts - sum(len(s.missing) for s in scores)
    by_cause: dict[str, list[bool]] = defaultdict(list)
    words: dict[str, list[bool]] = defaultdict(list)
    for s in scores:
        by_cause[s.truth.cause].append(s.exact)
        words[s.confidence].append(s.right)
    macro = sum(sum(hits) / len(hits) for hits in by_cause.values()) / max(1, len(by_cause))
    yield f"{len(scores)} cases, {len(by_cause)} causes"
    yield f"exact {sum(s.exact for s in scores)}, right {sum(s.right for s in scores)}, macro per cause {macro:.3f}"
    yield f"harmful {sum(s.harmful for s in scores)}, abstained {sum(s.abstained for s in scores)}"
    yield f"first cause {sum(s.first_right for s in scores)}, decoy falls {sum(bool(s.fallen) for s in scores)}"
    yield f"key facts {found}/{facts}"
    for word, right in sorted(words.items()):
        yield f"{word}: {sum(right)} right of {len(right)}"


def main(folders: list[str]) -> int:
    scores = []
    for truth in (*samples(), *(truth for folder in folders for truth in bundles(Path(folder)))):
        scores.append(score(truth))
        print(scores[-1].line())
    print("", *summary(scores), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
