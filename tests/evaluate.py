"""How right is the diagnosis? Runs every case with a stated truth and prints the scores.

Cases are `samples/*/case.toml`, and bundles with a `*.truth.json` in the folders given as arguments.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
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
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, int | float) or not isinstance(b, int | float):
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
    return value in facts.values() or str(value) in text


def main(folders: list[str]) -> int:
    cases = [*samples(), *(truth for folder in folders for truth in bundles(Path(folder)))]
    words: dict[str, Counter[bool]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for truth in cases:
        report = analyze(truth.bundle)
        data = report.to_dict()
        verdict = data["verdict"]
        exact = verdict["cause"] == truth.cause
        right = exact or verdict["cause"] in truth.acceptable
        first = verdict["first_cause"]
        place = f"{first['source']}:{first['line']}" if first else "-"
        evidence = {f"{e['source']}:{e['line']}" for e in data["incidents"][0]["hypotheses"][0]["for"]}
        fallen = evidence & set(truth.decoys)
        text = render(report, "md")
        missing = [name for name, value in truth.key_facts.items() if not fact_found(value, data["key_facts"], text)]
        first_right = not truth.first_cause or place in truth.first_cause
        totals["cases"] += 1
        totals["exact"] += exact
        totals["right"] += right
        totals["harmful"] += verdict["cause"] in truth.must_not
        totals["first_cause"] += first_right
        totals["facts"] += len(truth.key_facts)
        totals["facts_found"] += len(truth.key_facts) - len(missing)
        totals["decoy_falls"] += bool(fallen)
        words[verdict["confidence"]][right] += 1
        flag = "ok  " if exact else "acc " if right else "HARM" if verdict["cause"] in truth.must_not else "MISS"
        print(f"{flag} {truth.name:<42} {verdict['cause']:<26} {verdict['confidence']:<12}", end="")
        print("" if exact else f" truth {truth.cause}", "" if first_right else f" first {place[-40:]}≠{truth.first_cause[0][-40:]}", end="")
        print(f" decoys {sorted(fallen)}" if fallen else "", f" missing {missing}" if missing else "")
    n = totals["cases"] or 1
    print(f"\n{n} cases: exact {totals['exact']}, right {totals['right']}, harmful {totals['harmful']}, "
          f"first cause {totals['first_cause']}, decoy falls {totals['decoy_falls']}, "
          f"key facts {totals['facts_found']}/{totals['facts']}")  # fmt: skip
    for word, counts in sorted(words.items()):
        print(f"  {word}: {counts[True]} right of {counts.total()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
