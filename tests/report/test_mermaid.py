"""The diagrams parse with the real Mermaid parser, where npm can fetch it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import regex

from forensics.report import Report
from forensics.report.gate import Gate
from forensics.report.render import prepare, write

PACKAGES = ("mermaid@11", "jsdom@26")
CHECK = """
import { JSDOM } from 'jsdom';
const { window } = new JSDOM('');
Object.assign(globalThis, { window, document: window.document });
const { default: mermaid } = await import('mermaid');
const blocks = JSON.parse(await new Promise(r => { let s = ''; process.stdin.on('data', d => s += d).on('end', () => r(s)); }));
const types = [];
for (const block of blocks) types.push((await mermaid.parse(block)).diagramType);
console.log(JSON.stringify(types));
"""


@pytest.fixture(scope="module")
def mermaid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], list[str]]:
    """Diagram types of Mermaid sources; fails the test for one that does not parse."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("no npm here")
    cache = getattr(request.config, "cache", None)
    folder = Path(cache.mkdir("mermaid")) if cache is not None else tmp_path_factory.mktemp("mermaid")
    if not (folder / "node_modules" / "mermaid").is_dir():
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm took too long")
        if done.returncode:
            pytest.skip(f"npm cannot fetch Mermaid here: {done.stderr[-200:]}")
    (folder / "check.mjs").write_text(CHECK, encoding="utf-8")

    def parse(blocks: list[str]) -> list[str]:
        done = subprocess.run([node, "check.mjs"], cwd=folder, input=json.dumps(blocks), capture_output=True, text=True,
                              timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return list(json.loads(done.stdout))

    return parse


def test_diagrams_parse(
    report: Report, files: Callable[[str], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report],
    mermaid: Callable[[list[str]], list[str]],
) -> None:  # fmt: skip
    """In both languages, and with a hostile process name in the chain."""
    base = files("(EngineCore_DP0 pid=71) ERROR 11-18 02:11:08 [core.py:1] RuntimeError: CUDA error: out of memory \"] --> x; %%{init}%% end\n")
    blocks: list[str] = []
    for data in (prepare(report), prepare(report, "zh"), prepare(analyzed(base), "en", Gate("off"))):
        blocks += regex.findall(r"```mermaid\n(.*?)\n```", write(data, "md"), regex.DOTALL)
    assert len(blocks) >= 4
    assert {kind.partition("-")[0] for kind in mermaid(blocks)} == {"flowchart", "xychart"}
