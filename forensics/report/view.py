"""What several formats show alike, arranged from the admitted document: pure functions of the dictionary.

Nothing here touches a `Report`: what a format shows has passed the gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from . import escape, text

Doc = Mapping[str, Any]
BEFORE_S = 10.0
NO_FAULT = ("healthy", "insufficient_evidence")
VAGUE_S = 0.5
"""Below this a time is shown with milliseconds and without ±."""


def instant(iso: str | None) -> datetime | None:
    """`2025-11-18T02:41:10.420Z` → an aware datetime; none for absent or absurd times."""
    if not iso:
        return None
    try:
        return datetime.fromisoformat(iso.replace("Z", "+00:00")).astimezone(UTC)
    except ValueError:
        return None


def when(row: Doc, dated: bool = True, zone: tzinfo | None = None) -> str:
    """A time as precise as it is known: `02:41:10.420`, `02:59:11`; with the date on request, in a zone on request."""
    moment = instant(row.get("utc"))
    if moment is None:
        return "?"
    if zone is not None:
        moment = moment.astimezone(zone)
    precise = (row.get("uncertainty_s") or 0.0) < VAGUE_S and zone is None
    shown = moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 1000:03d}" if precise else "")
    return f"{moment:%Y-%m-%d} {shown}" if dated else shown


def spread(row: Doc) -> str:
    """`34 s`, `12 min`, `24 h`; empty when the time is precise or unknown."""
    seconds = row.get("uncertainty_s")
    if seconds is None or row.get("utc") is None or seconds < VAGUE_S:
        return ""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


def day(iso: str | None) -> str:
    moment = instant(iso)
    return f"{moment:%Y-%m-%d}" if moment else ""


def days(rows: Iterable[Doc]) -> list[str]:
    """The dates that rows fall on, in order."""
    return list(dict.fromkeys(filter(None, (day(row.get("utc")) for row in rows))))


def short(data: Doc) -> dict[str, str]:
    """Member path → its shortest end that no other member has."""
    paths = [str(source["path"]) for source in data["sources"]]
    ends: dict[str, int] = {}
    for path in paths:
        parts = path.split("/")
        for i in range(len(parts)):
            ends["/".join(parts[i:])] = ends.get("/".join(parts[i:]), 0) + 1
    found = {}
    for path in paths:
        parts = path.split("/")
        options = ("/".join(parts[i:]) for i in range(len(parts) - 1, -1, -1))
        found[path] = next((end for end in options if ends[end] == 1), path)
    return found


def points(refs: Sequence[Doc]) -> list[dict[str, Any]]:
    """Evidence by place: what several rules read from one line is one point with several titles."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for ref in refs:
        point = found.setdefault((ref["source"], ref["line"]), {**ref, "titles": []})
        said = {"title": ref["title"], "sentence": ref["sentence"]}
        if said not in point["titles"]:
            point["titles"].append(said)
        if ref.get("weight") == "decisive":
            point["weight"] = "decisive"
        point["quote"] = point["quote"] or ref["quote"]
    return _alike(sorted(found.values(), key=lambda p: p.get("weight") != "decisive"))


def _alike(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points of one file that say the same are one point with further lines under `also`."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point in points:
        key = (point["source"], *(said["title"] for said in point["titles"]))
        first = found.setdefault(key, {**point, "also": []})
        if first["line"] != point["line"]:
            first["also"].append(point["line"])
    return list(found.values())


def chain(data: Doc, t: Doc) -> list[dict[str, Any]]:
    """The causal chain as nodes: contributing factors, the root, its consequences, the end, what followed."""
    main = data["incidents"][0]
    links = main["chain"]
    if not links or data["verdict"]["cause"] in NO_FAULT:
        return []
    links = _printed([link for link in links if link["why"] == "root" or not _earlier(link, links[0])])
    start = links[0]["utc"] or "9"
    before = [ref for ref in main["contributing"] if ref["utc"] is None or ref["utc"] <= start]
    nodes = [{**_node(ref), "kind": "contributing"} for ref in _titles(before)[:3]]
    nodes += [{**_node(link), "kind": link["why"]} for link in _titles(links)[:7]]
    ends = [death for death in main["deaths"] if not death["graceful"]]
    if ends:
        first = next((death for death in ends if not _earlier(death, links[0])), ends[0])
        coded = text.fill(t["chain_text"]["end_code"], {"exit_code": first["exit_code"]}) or t["chain_text"]["end"]
        reason = f"{t['comma']}{first['reason']}" if first["reason"] not in ("", "Error") else ""
        place = first["witnesses"][0] if first["witnesses"] else {"source": None, "line": None}
        nodes.append({"kind": "death", "title": coded + reason, "utc": first["utc"], "source": place["source"],
                      "line": place["line"]})  # fmt: skip
    if len(ends) > 1:
        nodes.append({"kind": "restart", "title": text.fill(t["chain_text"]["restart"], {"n": len(ends) - 1}) or "",
                      "utc": None, "source": None, "line": None})  # fmt: skip
    return nodes


def _earlier(ref: Doc, root: Doc) -> bool:
    """True for a "consequence" that was there well before its cause: it belongs to the run, not to the chain."""
    a, b = instant(ref["utc"]), instant(root["utc"])
    return a is not None and b is not None and (b - a).total_seconds() > BEFORE_S


def _printed(links: Sequence[Doc]) -> list[Doc]:
    """One link a line; what the line says itself wins over what a rule concluded from it."""
    found: dict[tuple[str, int], Doc] = {}
    for link in links:
        place = (link["source"], link["line"])
        if place not in found or (found[place]["signature"].startswith("derived.") and found[place]["why"] != "root"):
            found[place] = link
    return list(found.values())


def _node(ref: Doc) -> dict[str, Any]:
    return {"title": ref["title"], "utc": ref["utc"], "source": ref["source"], "line": ref["line"]}


def _titles(refs: Sequence[Doc]) -> list[Doc]:
    """One of each title."""
    return list({ref["title"]: ref for ref in reversed(refs)}.values())[::-1]


def flowchart(nodes: Sequence[Doc]) -> str:
    """The chain as Mermaid source; contributing factors point at the root by dotted arrows."""
    lines = ["flowchart TD"]
    root = next((i for i, n in enumerate(nodes) if n["kind"] != "contributing"), 0)
    for i, node in enumerate(nodes):
        clock = when(node, dated=False)[:8] if node["utc"] else ""
        label = escape.mermaid(f"{clock} {node['title']}".strip())
        lines.append(f"  n{i}[{label}]:::{node['kind']}")
    for i in range(len(nodes)):
        if i < root:
            lines.append(f"  n{i} -.-> n{root}")
        elif i + 1 < len(nodes):
            lines.append(f"  n{i} --> n{i + 1}")
    lines += ["  classDef root fill:#b42318,color:#ffffff,stroke:#7a271a", "  classDef death stroke-width:3px"]
    return "\n".join(lines)


def ledgers(data: Doc) -> list[dict[str, Any]]:
    """Ledgers without repeats: runs that print the same figures are counted."""
    found: list[tuple[set[tuple[str, Any]], dict[str, Any]]] = []
    for ledger in sorted(data["ledger"], key=lambda x: -len(x["rows"])):
        terms = {(row["term"], row["value"]) for row in ledger["rows"] if row["line"]}
        known = next((shown for wider, shown in found if terms <= wider), None)
        if known is not None:
            known["same"] += 1
        else:
            found.append((terms, {**ledger, "same": 0}))
    return [shown for _, shown in found[:3]]


def equation(ledger: Doc, t: Doc) -> str:
    """The ledger as one line of arithmetic, with what is known."""
    value = {row["term"]: row["value"] for row in ledger["rows"] if row["value"] is not None}
    if "budget" not in value:
        return ""
    terms = [term for term in ("consumed", "weights", "non_torch", "activation") if term in value]
    terms = [term for term in terms if not ("consumed" in value and term in ("weights", "non_torch"))]
    if not terms or "kv_cache" not in value:
        return ""
    parts = "".join(f" − {value[term]:.2f} {t['ledger'][term]}" for term in terms)
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
        against = _titles(hypothesis["against"])[:3]
        rows.append({
            **hypothesis,
            "signs": [ref["title"] for ref in _titles(hypothesis["for"])[:3]],
            "why_not": [ref["title"] for ref in against] or [t["alternatives"]["less" if own else "folded"]],
            "places": [{"source": ref["source"], "line": ref["line"]} for ref in against],
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
    from .advice import duration as said

    return "–" if seconds is None else said(seconds, t)


def owner(scope: Doc) -> str:
    """The most telling name of a scope."""
    return str(next((scope[name] for name in ("pod", "container", "unit", "host") if scope.get(name)), "–"))
