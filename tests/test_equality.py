"""Speed changes no result: the same report whatever the size of a block, the packing, the threads, and the prefilter."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import bundles

from forensics import pipeline
from forensics.bundle import BLOCK_BYTES
from forensics.pipeline import Options
from forensics.report.render import render

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = (
    "container-limit-after-recovered-oom", "gpu-leak-adapter-loads", "healthy-rollout", "kv-cache-startup",
    "other-process-at-start", "stale-engine-after-restart",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A noisy engine log of many blocks with storms in it, and a whole incident beside it."""
    root = tmp_path_factory.mktemp("equality") / "bundle"
    shutil.copytree(ROOT / "samples" / SAMPLES[0] / "bundle", root)
    with (root / "noisy.log").open("wb") as file:
        file.writelines(bundles.engine_log(1_200_000, random.Random(8), troubled=0.3))
    for path in root.rglob("*"):
        os.utime(path, (bundles.END_S, bundles.END_S))
    return root


@pytest.fixture(scope="module")
def reference(folder: Path) -> tuple[dict[str, Any], str]:
    return told(folder)


def told(path: Path, block_bytes: int = BLOCK_BYTES) -> tuple[dict[str, Any], str]:
    """The report as data and as text, without the name of the bundle."""
    report = pipeline.analyze(path, options=Options(block_bytes=block_bytes))
    data = report.to_dict()
    text = render(report, "md").replace(data["bundle"].pop("name"), "bundle")
    return json.loads(json.dumps(data)), text


@pytest.mark.parametrize("block_bytes", [64 << 10, 1 << 20, 64 << 20])
def test_size_of_a_block(folder: Path, reference: object, block_bytes: int) -> None:
    """Lines, storms and windows are the same wherever the bytes are cut."""
    assert told(folder, block_bytes) == reference


def zipped(folder: Path) -> Path:
    target = folder.with_name("bundle.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, f"{folder.name}/{path.relative_to(folder).as_posix()}")
    return target


@pytest.mark.parametrize("pack", [bundles.tar_gz, bundles.tar_zst, zipped], ids=["tar.gz", "tar.zst", "zip"])
def test_packing(folder: Path, reference: object, pack: Callable[[Path], Path]) -> None:
    """An archive and the folder that it was made of are one bundle."""
    assert told(pack(folder)) == reference


def test_threads(folder: Path) -> None:
    """One thread for polars, or two: the same bytes."""
    command = [sys.executable, "-m", "forensics", "analyze", str(folder), "--format", "json"]
    reports = [
        subprocess.run(command, cwd=ROOT, env={**os.environ, "POLARS_MAX_THREADS": threads}, capture_output=True, check=True)
        for threads in ("1", "2")
    ]
    assert reports[0].stdout == reports[1].stdout


def conclusions(path: Path, prefilter: bool) -> dict[str, Any]:
    """What a report says happened. How exactly lines without a stamp can be dated depends on how many lines are seen."""
    data = pipeline.analyze(path, options=Options(prefilter=prefilter)).to_dict()
    evidence = ("signature", "source", "line")
    return {
        "verdict": [data["verdict"][key] for key in ("cause", "confidence", "headline")],
        "hypotheses": [
            [(h["cause"], h["confidence"], [[e[key] for key in evidence] for e in (*h["for"], *h["against"])])
             for h in incident["hypotheses"]]
            for incident in data["incidents"]
        ],
        "findings": sorted(
            (f["signature"], f["locator"]["source"], f["locator"]["line_start"], str(f["fields"]), f["role"], f["used_as"])
            for f in data["findings"]
        ),
        "key_facts": data["key_facts"], "ledger": data["ledger"], "series": data["series"],
    }  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_prefilter(name: str) -> None:
    """Lines that hold no anchor say nothing that a conclusion rests on."""
    bundle = ROOT / "samples" / name / "bundle"
    assert conclusions(bundle, prefilter=True) == conclusions(bundle, prefilter=False)


def test_a_killed_run_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    """Nothing is written while a bundle is read, neither to the temporary folder nor beside the report."""
    places = tmp_path / "tmp", tmp_path / "out"
    for place in places:
        place.mkdir()
    command = [sys.executable, "-m", "forensics", "analyze", "-", "-o", str(places[1] / "report.md")]
    environment = {**os.environ, "TMPDIR": str(places[0])}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write((folder / "noisy.log").read_bytes())  # more than fits a pipe: it has begun to read
        process.kill()
        process.stdin.close()
    assert [list(place.iterdir()) for place in places] == [[], []]
