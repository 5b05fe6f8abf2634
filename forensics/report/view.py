"""What several formats show alike, arranged from the admitted document: pure functions of the dictionary.

Nothing here touches a `Report`: what a format shows has passed the gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from ..clocks.years import YEAR_S
from . import escape, text
from .attempts import ENDS

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
    """`34 s`, `12 min`, `24 h`; empty when the time is precise or unknown. That a year is assumed is told elsewhere."""
    seconds = within_year(row.get("uncertainty_s"))
    if seconds is None or row.get("utc") is None or seconds < VAGUE_S:
        return ""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


def within_year(uncertainty_s: float | None) -> float | None:
    """The doubt of a time without that of its year."""
    assumed = uncertainty_s is not None and uncertainty_s >= YEAR_S
    return uncertainty_s - YEAR_S if assumed and uncertainty_s is not None else uncertainty_s


def assumed_years(rows: Iterable[Doc]) -> str:
    """`2026`, or `2025, 2026`: the years that nothing in the bundle tells, empty when there are none."""
    doubted = (row for row in rows if row.get("uncertainty_s") is not None and row["uncertainty_s"] >= YEAR_S)
    return ", ".join(sorted({day(row.get("utc"))[:4] for row in doubted} - {""}))


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


def told(data: Doc) -> list[dict[str, Any]]:
    """The story with what divides it: `head`, the run that begins here; `skipped`, runs that only the restart table
    tells; `aside`, the earlier run that a late row belongs to."""
    rows, run = [], 0
    many = len(data["restarts"]) > 1
    for row in data["story"]["rows"]:
        number = (row["attempt"] or 0) if many else 0
        new = number > run
        skipped = [run + 1, number - 1] if new and run and number > run + 1 else None
        late = number if 0 < number < run else None
        rows.append({**row, "head": number if new else None, "skipped": skipped, "aside": late})
        run = max(run, number)
    return rows


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
    nodes = [{**_node(ref), "kind": "contributing"} for ref in one_of_each(before)[:3]]
    nodes += [{**_node(link), "kind": link["why"]} for link in one_of_each(links)[:7]]
    ends = [death for death in main["deaths"] if not death["graceful"]]
    if ends:
        first = next((death for death in ends if not _earlier(death, links[0])), ends[0])
        coded = text.fill(t["chain_text"]["end_code"], {"exit_code": first["exit_code"]}) or t["chain_text"]["end"]
        reason = f"{t['comma']}{first['reason']}" if first["reason"] not in ("", "Error") else ""
        told = sorted(first["witnesses"], key=lambda witness: witness["kind"] not in ENDS)
        place = told[0] if told else {"source": None, "line": None}
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


def one_of_each(refs: Sequence[Doc]) -> list[Doc]:
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
