"""Fuzz for a bounded time: `python tests/fuzz/run.py --seconds 60 [--target line] [--seed 7] [--coverage]`.

Without `--coverage` Hypothesis generates and shrinks; with it atheris (a developer's tool, `pip install atheris`) steers
by code coverage. A failing input is written to `tests/fuzz/regressions/<target>/`, where the tests replay it from then
on: name it after the defect. Exit code 1 when there was one.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent)]
BATCH = 60


def run(name: str, seconds: float, seed: int) -> int:
    """Fuzz one target; returns the number of examples, negative when the last one failed."""
    from fuzz.inputs import STRATEGIES
    from fuzz.targets import TARGETS
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    target, tried, last = TARGETS[name], 0, b""
    warnings.simplefilter("ignore")  # about the length of the inputs

    @settings(
        max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink), report_multiple_bugs=False,
    )  # fmt: skip
    @given(STRATEGIES[name])
    def batch(data: bytes) -> None:
        nonlocal tried, last
        tried, last = tried + 1, data
        target(data)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            seeded(seed)(batch)()
        except Exception:
            sys.stderr.write(traceback.format_exc(limit=-6)[:3000] + "\n")
            print(f"{name}: failed after {tried} examples; input kept as {keep(name, last)}", flush=True)
            return -tried
        seed += 1
    return tried


def keep(name: str, data: bytes) -> Path:
    """Write a failing input to where the tests find it."""
    path = HERE / "regressions" / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def cover(name: str, seconds: float, seed: int) -> int:
    """The same, steered by code coverage; in a process of its own, which libFuzzer ends."""
    found = HERE / "regressions" / name
    with tempfile.TemporaryDirectory() as corpus:
        command = [sys.executable, __file__, "--atheris", name, corpus]
        limits = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-max_len=20000", "-timeout=60", "-rss_limit_mb=3000"]
        found.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*command, *limits, f"-artifact_prefix={found}/", "-verbosity=0"], check=False)
    if not any(found.iterdir()):
        found.rmdir()
    return -1 if done.returncode else 1


def atheris_main(name: str, corpus: Path, options: list[str]) -> None:
    """Inside the process that `cover` started."""
    import atheris

    with atheris.instrument_imports(include=["forensics"]):
        from fuzz.targets import TARGETS
    from fuzz.inputs import archives, patterns, pieces

    seeds = {"bundle": archives, "signature": patterns}.get(name, pieces)()
    for number, data in enumerate(seeds):
        (corpus / f"{number:04d}").write_bytes((b"" if name not in ("document", "log") else bytes([number % 256])) + data)
    atheris.Setup([sys.argv[0], str(corpus), *options], TARGETS[name])
    atheris.Fuzz()


def main() -> None:
    if sys.argv[1:2] == ["--atheris"]:
        atheris_main(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
        return
    from fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="in all, shared by the targets")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--coverage", action="store_true", help="steer by code coverage, with atheris")
    given = parser.parse_args()
    names = given.target or sorted(TARGETS)
    print(f"fuzzing {len(names)} targets for {given.seconds:.0f} s, seed {given.seed}", flush=True)
    one = cover if given.coverage else run
    results = Counter({name: one(name, given.seconds / len(names), given.seed) for name in names})
    for name in names:
        print(f"{name:10} {'FAILED' if results[name] < 0 else 'ok':6} {abs(results[name])} examples")
    sys.exit(any(count < 0 for count in results.values()))


if __name__ == "__main__":
    main()
