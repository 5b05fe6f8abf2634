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
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import bundles
from measure import Cost, in_turn

ROOT = bundles.ROOT
MB = 1_000_000
sys.path.insert(0, str(ROOT))


@dataclass(frozen=True)
class Task:
    """One bundle, and the commands that are run on it in turn; the first one is ours."""

    name: str
    bytes: int
    commands: dict[str, str]
    files: int = 0
    note: str = ""


@dataclass
class Bench:
    folder: Path
    large: bool
    anchors: Path = field(init=False)

    def __post_init__(self) -> None:
        self.anchors = self.folder / "anchors.txt"
        self.anchors.write_text("".join(f"{anchor}\n" for anchor in sorted(_anchors())), encoding="utf-8")

    def tasks(self) -> Iterator[Task]:
        yield Task("start", 0, {"`--help`": _ours("--help"), "bare interpreter": f"{shlex.quote(sys.executable)} -c pass"})
        small = bundles.tar_gz(bundles.day(self.folder / "day-10m", 10 * MB))
        yield self._archive("day, 10 MB, tar.gz", small, 10 * MB)
        for size in (500 * MB, 1000 * MB, *((4000 * MB,) if self.large else ())):
            folder = bundles.day(self.folder / f"day-{size // MB}m", size)
            yield self._folder(f"day, {size // MB:,} MB, directory", folder, size)
            yield self._archive(f"day, {size // MB:,} MB, tar.gz", bundles.tar_gz(folder), size)
            if size == 1000 * MB:
                yield self._archive(f"day, {size // MB:,} MB, tar.zst", bundles.tar_zst(folder), size)
            shutil.rmtree(folder)
        for size in (200 * MB, 400 * MB):
            noisy = bundles.noisy(self.folder / f"noisy-{size // MB}m", size)
            yield self._folder(f"half of the lines are candidates, {size // MB} MB", noisy, size)
        signatures = bundles.signatures(self.folder / "signatures", 50 * MB)
        yield self._folder("every signature hits, 50 MB", signatures, 50 * MB)
        for count in (10_000, 20_000, *((200_000,) if self.large else ())):
            files = bundles.small_files(self.folder / f"files-{count}", count)
            yield self._folder(f"{count:,} small files", files, _size(files), count)

    def _archive(self, name: str, path: Path, size: int) -> Task:
        file, anchors = shlex.quote(str(path)), shlex.quote(str(self.anchors))
        packed = path.suffix == ".gz"
        unpack = f"tar -xzOf {file}" if packed else f"zstd -dcq {file} | tar -xOf -"
        commands = {"`analyze`": _ours(f"analyze {file} -o {self._report}")}
        if shutil.which("rg"):
            commands["`tar -xO \\| rg -F`"] = f"{unpack} | rg -a -F -f {anchors} -c"
        commands["`tar -xO \\| grep -F`"] = f"{unpack} | grep -a -F -f {anchors} -c"
        if packed:
            commands["`zcat`"] = f"zcat {file}"
        return Task(name, size, commands, note=f"{path.stat().st_size / MB:.0f} MB packed")

    def _folder(self, name: str, path: Path, size: int, files: int = 0) -> Task:
        folder, anchors = shlex.quote(str(path)), shlex.quote(str(self.anchors))
        commands = {"`analyze`": _ours(f"analyze {folder} -o {self._report}")}
        if shutil.which("rg"):
            commands["`rg -F`"] = f"rg -a -F -f {anchors} -c --no-ignore --hidden {folder}"
        commands["`grep -F -r`"] = f"grep -a -F -f {anchors} -r -c {folder}"
        if shutil.which("lnav") and size <= 1000 * MB and not files:
            commands["`lnav -n`, count of lines"] = f"lnav -n -c ';SELECT count(*) FROM all_logs' {folder}"
        return Task(name, size, commands, files)

    @property
    def _report(self) -> str:
        return shlex.quote(str(self.folder / "report.md"))


def _anchors() -> frozenset[str]:
    from forensics import clocks, ingest, pipeline

    return ingest.literals(pipeline.load_library().anchors() | set(clocks.ANCHORS))


def _ours(arguments: str) -> str:
    return f"PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m forensics {arguments}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def rows(task: Task, costs: dict[str, Cost], half: Cost | None) -> Iterator[str]:
    """Lines of the table: ours, then each reference with our ratio to it."""
    ours = next(iter(costs.values()))
    for number, (name, cost) in enumerate(costs.items()):
        ratio = "" if number == 0 else f"{ours.wall_s / cost.wall_s:.2f}"
        rate = f"{task.files / cost.wall_s:,.0f} files/s" if task.files else ""
        rate = rate or (f"{task.bytes / MB / cost.wall_s:,.0f} MB/s" if task.bytes else "")
        growth = f"{ours.wall_s / half.wall_s:.2f}" if number == 0 and half is not None else ""
        label = task.name + (f" ({task.note})" if task.note else "") if number == 0 else ""
        yield (
            f"| {label} | {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_mib:.0f} | {rate} | {ratio} | {growth} |"
        )


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
        header = HEADER.format(
            options=" ".join(filter(None, ("--large" * options.large, f"--rounds {options.rounds}"))),
            rounds=options.rounds, anchors=f"{len(_anchors()):,}", machine=began_on,
        )  # fmt: skip
        print(header, end="", flush=True)
        table: list[str] = []
        done: dict[tuple[str, int], Cost] = {}
        for task in bench.tasks():
            if options.only not in task.name:
                continue
            costs = in_turn(task.commands, options.rounds)
            kind = task.name.translate(str.maketrans("", "", "0123456789,"))
            amount = task.files or task.bytes
            lines = list(rows(task, costs, done.get((kind, amount // 2))))
            done[kind, amount] = next(iter(costs.values()))
            print("\n".join(lines), flush=True)
            table += lines
    if not options.only:
        (ROOT / "BENCHMARKS.md").write_text(header + "\n".join(table) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
