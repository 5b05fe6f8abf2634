"""Genuine output of healthy systems: nothing but context and benign findings."""

from __future__ import annotations

from pathlib import Path

from forensics.bundle import Bundle
from forensics.ingest import read_bundle
from forensics.model import Role
from forensics.pipeline import load_library
from forensics.signatures import Matcher

LIBRARY = load_library()


def accusations(*paths: Path) -> tuple[int, list[str]]:
    """(lines read, findings that claim trouble)."""
    matcher = Matcher(LIBRARY)
    found: list[str] = []
    lines = 0
    for item in read_bundle(Bundle(tuple(map(str, paths))), LIBRARY.anchors()):
        lines += item.source.lines
        for event in item.parsed.events:
            for hit in matcher.hits(event):
                if hit.signature.role not in (Role.CONTEXT, Role.BENIGN) and not hit.quoted:
                    found.append(f"{event.locator} {hit.signature.id}: {event.text[:120]}")
    assert not matcher.diagnostics
    return lines, found


def test_statistics_are_quiet(captures: Path) -> None:
    """sar, free, ps, vmstat and cgroup files of two machines; only the file of kernel lines tells of a kill."""
    lines, found = accusations(captures / "sysstat")
    assert lines > 10_000
    assert [line for line in found if "dmesg_oom_lines" not in line] == []


def test_a_healthy_pod_is_quiet(captures: Path) -> None:
    """Described by kubectl, with its log."""
    _, found = accusations(
        captures / "kubectl/describe/vllm-healthy-75b6c8d9f-m2n3b.txt", captures / "kubectl/logs/healthy_--tail_2.txt"
    )
    assert found == []
