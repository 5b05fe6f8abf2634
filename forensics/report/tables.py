"""Tables of a report, arranged from the admitted document: ledger, alternatives, restarts, clocks, decoys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import advice, escape, text
from .view import one_of_each

Doc = Mapping[str, Any]
ROUNDED_GIB = 0.05
"""Terms are printed with two decimals or one: a sum of them is off by this much."""
MAX_OTHERS = 8
"""Rows in the table of other incidents; the JSON report has all."""


def ledgers(data: Doc) -> list[dict[str, Any]]:
    """Ledgers without repeats: runs that print the same figures are counted."""
    found: list[tuple[set[tuple[str, Any]], dict[str, Any]]] = []
    for ledger in sorted(data["ledger"], key=lambda x: -len(x["rows"])):
        own = [row for row in ledger["rows"] if row["source"] == ledger["source"]]
        terms = {(row["term"], row["value"]) for row in own}
        known = next((shown for wider, shown in found if terms <= wider), None)
        if known is not None:
            known["same"] += 1
        else:
            found.append((terms, {**ledger, "same": 0}))
    return [shown for _, shown in found[:3]]


def equation(ledger: Doc, t: Doc) -> str:
    """The ledger as one line of arithmetic, with what is known; none where it does not hold."""
    value = {row["term"]: row["value"] for row in ledger["rows"] if row["value"] is not None}
    if "budget" not in value:
        return ""
    terms = [term for term in ("consumed", "weights", "non_torch", "activation", "overhead") if term in value]
    terms = [term for term in terms if not ("consumed" in value and term in ("weights", "non_torch"))]
    if not terms or "kv_cache" not in value:
        return ""
    rest = value["budget"] - sum(value[term] for term in terms) - value["kv_cache"]
    planned = value.get("graphs_planned", 0.0)
    if planned > ROUNDED_GIB and abs(rest - planned) <= ROUNDED_GIB:  # only engines that count graphs take them off
        terms, rest = [*terms, "graphs_planned"], rest - planned
    parts = "".join(f" − {value[term]:.2f} {t['ledger'][term]}" for term in terms)
    if rest < -ROUNDED_GIB:
        return ""
    if rest > ROUNDED_GIB:
        parts += f" − {rest:.2f} {t['ledger_note']['untold']}"
    whole = ""
    if {"total", "utilization"} <= value.keys():
        whole = f"{value['total']:.2f} × {value['utilization']:g} = {value['budget']:.2f} GiB; "
    return f"{whole}{value['budget']:.2f}{parts} = {value['kv_cache']:.2f} GiB {t['ledger']['kv_cache']}"


def kv_facts(data: Doc, ledger: Doc, t: Doc) -> str:
    """KV arithmetic in one sentence."""
    facts = {name: escape.number(value) for name, value in ledger["facts"].items()}
    sequences = data["key_facts"].get("max_num_seqs")
    tokens = ledger["facts"].get("kv_tokens")
    if isinstance(sequences, int) and sequences > 0 and isinstance(tokens, int | float):
        facts["max_num_seqs"] = escape.number(sequences)
        facts["tokens_per_sequence"] = escape.number(int(tokens // sequences))
    names = ("kv_tokens", "kv_bytes_per_token", "kv_gib_per_request", "max_concurrency_x")
    said = [text.fill(t["ledger_note"][name], facts) for name in names if name in facts]
    said.append(text.fill(t["ledger_note"]["per_sequence"], facts))
    return str(t["semicolon"]).join(filter(None, said))


def alternatives(data: Doc, t: Doc) -> list[dict[str, Any]]:
    """The runners-up with what speaks for each and why it lost."""
    rows = []
    verdict = {(ref["source"], ref["line"]) for ref in data["incidents"][0]["hypotheses"][0]["for"]}
    for hypothesis in data["incidents"][0]["hypotheses"][1:5]:
        own = [ref for ref in hypothesis["for"] if (ref["source"], ref["line"]) not in verdict]
        against = one_of_each(hypothesis["against"])[:3]
        rows.append({
            **hypothesis,
            "signs": [ref["title"] for ref in one_of_each(hypothesis["for"])[:3]],
            "why_not": [ref["title"] for ref in against] or [t["alternatives"]["less" if own else "folded"]],
            "places": [{"source": ref["source"], "line": ref["line"]} for ref in against],
        })  # fmt: skip
    return rows


def others(data: Doc) -> list[dict[str, Any]]:
    """The incidents that the report is not about: when, who, the cause, and the line to look at first."""
    rows = []
    for incident in data["incidents"][1 : 1 + MAX_OTHERS]:
        best = incident["hypotheses"][0]
        first = next(iter([*incident["chain"], *best["for"]]), {"source": None, "line": None})
        kind, mark, name = incident["scope"]["entity"].partition(":")
        rows.append({
            "utc": incident["start"], "uncertainty_s": 1, "entity": name if mark else kind, "cause": best["cause"],
            "title": best["title"], "confidence": best["confidence"], "source": first["source"], "line": first["line"],
        })  # fmt: skip
    return rows


def restarts(data: Doc) -> list[dict[str, Any]]:
    """The restart table; of four or more alike in a row the first and the last, with the number between them."""
    rows: list[dict[str, Any]] = []
    alike: list[dict[str, Any]] = []

    def flush() -> None:
        rows.extend(alike if len(alike) < 4 else [alike[0], {"alike": len(alike) - 2}, alike[-1]])
        alike.clear()

    for row in data["restarts"]:
        if alike and _fate(alike[-1]) != _fate(row):
            flush()
        alike.append(row)
    flush()
    return rows


def _fate(row: Doc) -> tuple[Any, ...]:
    return (row["exit_code"], row["reason"], row["phase"], row["ready"] is None, (row["lost_at"] or {}).get("title"))


_SAME_CLOCK = ("layer", "zone", "offset_s", "year", "boot_epoch", "skew_s", "captured_at", "verdict", "note")


def clock_rows(data: Doc) -> list[dict[str, Any]]:
    """The clock table; files whose clocks were solved alike share a row."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for source in data["sources"]:
        for clock in source["clock"]:
            key = tuple(clock[name] for name in _SAME_CLOCK)
            row = found.setdefault(key, {**clock, "paths": []})
            row["paths"].append(source["path"])
            row["anchor_count"] = max(row["anchor_count"], clock["anchor_count"])
            if clock["residual_s"] is not None:
                row["residual_s"] = max(row["residual_s"] or 0.0, clock["residual_s"])
    return list(found.values())


def decoys(data: Doc) -> list[dict[str, Any]]:
    """Decoys by what they are and why they are none: one row with its first place and a count.

    What came later is listed only where it might be taken for a cause of its own: repeats of what the verdict rests on
    or explains, and consequences, are no false signs.
    """
    main = data["incidents"][0]
    known = (*main["chain"], *main["consequences"], *main["contributing"], *main["hypotheses"][0]["for"])
    told = {ref["signature"] for ref in known}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for item in data["decoys"]:
        later = item["reason"] in ("other_run", "after")
        if later and (item["signature"] in told or item["role"] == "consequence"):
            continue
        row = found.setdefault((item["title"], item["text"]), {**item, "count": 0})
        row["count"] += 1
    return list(found.values())


def duration(seconds: float | None, t: Doc) -> str:
    """`45 s`, `21 min`, `3 h 31 min`; a dash when unknown."""
    return "–" if seconds is None else advice.duration(seconds, t)


def owner(scope: Doc) -> str:
    """The most telling name of a scope."""
    return str(next((scope[name] for name in ("pod", "container", "unit", "host") if scope.get(name)), "–"))
