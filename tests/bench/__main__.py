"""Measure `oomforensics analyze` beside what a user would do instead, on the same bytes, in one run.

    python tests/bench [--large] [--rounds N] [--only NAME] [--keep DIR]

Bundles are made below a temporary folder. The table goes to standard output and into `BENCHMARKS.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import bundles
from measure import Cost, in_turn

ROOT = bundles.ROOT
MB = 1_000_000
PYTHON = shlex.quote(sys.executable)


@dataclass(frozen=True)
class Subject:
    """One bundle as it lies on the disk, and the commands that are run on it in turn; the first one is ours."""

    bytes: int
    commands: dict[str, str]
    files: int = 0
    note: str = ""


@dataclass(frozen=True)
class Bench:
    folder: Path
    large: bool

    def tasks(self) -> Iterator[tuple[str, Callable[[], Subject]]]:
        """Names, and what makes the bundle; a day's folder is made once and serves the archives behind it."""
        yield "start", lambda: Subject(0, {"`--help`": _ours("--help"), "bare interpreter": f"{PYTHON} -c pass"})
        yield "day, 10 MB, tar.gz", lambda: self._archive(bundles.tar_gz(self._day(10)), 10 * MB)
        for size in (500, 1000, *((4000,) if self.large else ())):
            yield f"day, {size:,} MB, directory", lambda n=size: self._folder(self._day(n), n * MB)
            yield f"day, {size:,} MB, tar.gz", lambda n=size: self._archive(bundles.tar_gz(self._day(n)), n * MB)
        yield "day, 1,000 MB, tar.zst", lambda: self._archive(bundles.tar_zst(self._day(1000)), 1000 * MB)
        for size in (200, 400):
            yield (
                f"half of the lines are candidates, {size} MB, directory",
                lambda n=size: self._folder(bundles.noisy(self.folder / f"noisy-{n}", n * MB), n * MB),
            )
        yield (
            "every signature hits, 50 MB, directory",
            lambda: self._folder(bundles.signatures(self.folder / "signatures", 50 * MB), 50 * MB),
        )
        for count in (10_000, 20_000, *((200_000,) if self.large else ())):
            yield f"{count:,} small files, directory", lambda n=count: self._small(n)

    def _day(self, size: int) -> Path:
        folder = self.folder / f"day-{size}"
        return folder if folder.exists() else bundles.day(folder, size * MB)

    def _small(self, count: int) -> Subject:
        folder = bundles.small_files(self.folder / f"files-{count}", count)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return self._folder(folder, size, count)

    def _archive(self, path: Path, size: int) -> Subject:
        file = shlex.quote(str(path))
        packed = path.suffix == ".gz"
        unpack = f"tar -xzOf {file}" if packed else f"zstd -dcq {file} | tar -xOf -"
        commands = {"`analyze`": _ours(f"analyze {file} -o {self._report}")}
        if shutil.which("rg"):
            commands["`tar -xO \\| rg -a -F -f anchors -c`"] = f"{unpack} | rg -a -F -f {self._anchors} -c"
        commands["`tar -xO \\| grep -a -F -f anchors -c`"] = f"{unpack} | grep -a -F -f {self._anchors} -c"
        if packed:
            commands["`zcat`"] = f"zcat {file}"
        return Subject(size, commands, note=f"{path.stat().st_size / MB:.0f} MB packed")

    def _folder(self, path: Path, size: int, files: int = 0) -> Subject:
        folder = shlex.quote(str(path))
        commands = {"`analyze`": _ours(f"analyze {folder} -o {self._report}")}
        if shutil.which("rg"):
            commands["`rg -a -F -f anchors -c`"] = f"rg -a -F -f {self._anchors} -c --no-ignore --hidden {folder}"
        # through a pipe: grep stops at the first hit when it writes to /dev/null
        commands["`grep -a -F -f anchors -r -c`"] = f"grep -a -F -f {self._anchors} -r -c {folder} | cat"
        return Subject(size, commands, files)

    @property
    def _report(self) -> str:
        return shlex.quote(str(self.folder / "report.md"))

    @property
    def _anchors(self) -> str:
        return shlex.quote(str(self.folder / "anchors.txt"))

    def write_anchors(self) -> int:
        """The literals that our scan looks for, one a line; their number. In a process of its own, which keeps this
        one small: the peak of a child is never below that of its parent."""
        code = (
            "from forensics import clocks, ingest, pipeline; "
            "print(*sorted(ingest.literals(pipeline.load_library().anchors() | set(clocks.ANCHORS))), sep='\\n')"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
        (self.folder / "anchors.txt").write_bytes(done.stdout)
        return done.stdout.count(b"\n")


def _ours(arguments: str) -> str:
    """With compiled modules, as `pip` installs them: the first round, which does not count, leaves them."""
    return f"PYTHONDONTWRITEBYTECODE= PYTHONPATH={shlex.quote(str(ROOT))} {PYTHON} -m forensics {arguments}"


def rows(name: str, subject: Subject, costs: dict[str, Cost], half: Cost | None) -> Iterator[str]:
    """Lines of the table: ours, then each reference with our ratio to it."""
    ours = next(iter(costs.values()))
    for number, (command, cost) in enumerate(costs.items()):
        ratio = "" if number == 0 else f"{ours.wall_s / cost.wall_s:.2f}"
        rate = f"{subject.files / cost.wall_s:,.0f} files/s" if subject.files else ""
        rate = rate or (f"{subject.bytes / MB / cost.wall_s:,.0f} MB/s" if subject.bytes else "")
        growth = f"{ours.wall_s / half.wall_s:.2f}" if number == 0 and half is not None else ""
        label = name + (f" ({subject.note})" if subject.note else "") if number == 0 else ""
        cells = (f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", f"{cost.peak_mib:.0f}", rate, ratio, growth)
        yield f"| {label} | {command} | {' | '.join(cells)} |"


def machine() -> str:
    """What was measured on."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {int(memory) >> 20} GiB, {platform.system()} "
        f"{platform.release().partition('-')[0]}, Python {platform.python_version()}, load when it began {os.getloadavg()[0]:.1f}"
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


HEADER = """\
# Benchmarks

Made by `make bench` ({options}): seeded bundles, all commands of a bundle in turn, medians of {rounds} rounds after one that is
not counted. `analyze` does the whole job, to the written report; the references only unpack, or count the lines that
hold one of the {anchors} anchors. CPU is user and system time of all processes of a pipe, peak that of the largest one. *Ratio* is
our wall time over the reference's, *growth* ours over the one for half of the input.

Machine: {machine}.

| bundle | command | wall s | CPU s | peak MiB | rate | ratio | growth |
|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 4 GB and 200,000 files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only bundles whose name holds this; BENCHMARKS.md stays as it is")
    parser.add_argument("--keep", type=Path, help="make the bundles here, and leave them")
    options = parser.parse_args()
    began_on = machine()
    with tempfile.TemporaryDirectory(prefix="oomforensics-bench-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, options.large)
        anchors = bench.write_anchors()
        header = HEADER.format(
            options=" ".join(filter(None, ("--large" * options.large, f"--rounds {options.rounds}"))),
            rounds=options.rounds, anchors=anchors, machine=began_on,
        )  # fmt: skip
        print(header, end="", flush=True)
        table: list[str] = []
        done: dict[tuple[str, int], Cost] = {}
        for name, make in bench.tasks():
            if options.only not in name:
                continue
            subject = make()
            costs = in_turn(subject.commands, options.rounds)
            kind = name.translate(str.maketrans("", "", "0123456789,"))
            amount = subject.files or subject.bytes
            lines = list(rows(name, subject, costs, done.get((kind, amount // 2))))
            done[kind, amount] = next(iter(costs.values()))
            print("\n".join(lines), flush=True)
            table += lines
    if not options.only:
        (ROOT / "BENCHMARKS.md").write_text(header + "\n".join(table) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
