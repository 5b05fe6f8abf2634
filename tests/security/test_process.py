"""The process when the world around it gives way: full disks, signals, closed streams, odd locales."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from forensics.cli import common
from forensics.errors import ForensicsError, OptionError

ROOT = Path(__file__).resolve().parent.parent.parent
LOG = (
    "(APIServer pid=1) INFO 11-29 21:20:00 [api_server.py:1839] vLLM API server version 0.11.0\n"
    "(EngineCore_DP0 pid=142) ERROR 11-29 21:21:00 [core.py:708] EngineCore failed to start.\n"
    "(EngineCore_DP0 pid=142) ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine. – 显存\n"
)
COMMAND = (sys.executable, "-m", "forensics")
CLEAN = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "bundle" / "vllm.log"
    path.parent.mkdir()
    path.write_text(LOG, encoding="utf-8")
    return path


def start(*args: str | Path, **more: object) -> subprocess.Popen[bytes]:
    options: dict[str, object] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": CLEAN}
    return subprocess.Popen([*COMMAND, *map(str, args)], **(options | more))  # type: ignore[call-overload,no-any-return]


def end(process: subprocess.Popen[bytes]) -> tuple[int, bytes, str]:
    """(exit code, standard output, standard error); a traceback is a failure."""
    out, err = process.communicate(timeout=120)
    said = (err or b"").decode("utf-8", "replace")
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    return process.returncode, out or b"", said


def ends(processes: Sequence[subprocess.Popen[bytes]]) -> list[tuple[int, bytes, str]]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(end, processes))


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_the_same_bytes_whatever_the_surroundings(log: Path) -> None:
    """Hash seeds, missing and odd locales, no HOME, an odd zone and width: one report."""
    surroundings = [
        CLEAN,
        {**CLEAN, "PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "America/St_Johns"},
        {**CLEAN, "PYTHONHASHSEED": "2", "LC_ALL": "POSIX", "COLUMNS": "20"},
        {**CLEAN, "PYTHONHASHSEED": "random", "LC_ALL": "zh_CN.GB18030", "PYTHONIOENCODING": "ascii"},
        {name: value for name, value in CLEAN.items() if name != "HOME"},
    ]
    results = ends([start("analyze", log.parent, "--format", "json", env=env) for env in surroundings])
    assert {code for code, _, _ in results} == {0}
    assert len({out for _, out, _ in results}) == 1
    assert "显存".encode() in results[0][1]


def test_narrow_terminals(log: Path) -> None:
    """Twenty columns: everything is said, in short lines."""
    commands = (("analyze", "--format", "text"), ("timeline",), ("sources",), ("explain",))
    narrow = {**CLEAN, "COLUMNS": "20", "LC_ALL": "C"}
    results = ends([start(*command[:1], log.parent, *command[1:], env=narrow) for command in commands])
    assert [code for code, _, _ in results] == [0, 0, 0, 0]
    assert max(map(len, results[0][1].decode().splitlines())) <= 20


def test_signals_stop_it_cleanly(log: Path, tmp_path: Path) -> None:
    """One line, the exit code that shells expect, no file."""
    waiting = {"stdin": subprocess.PIPE}
    runs = [start("analyze", "-", log, "-o", tmp_path / "report.md", **waiting) for _ in range(2)]
    for process in runs:
        assert process.stdin is not None
        process.stdin.write(LOG.encode() * 200_000 if process is runs[0] else LOG.encode())
        process.stdin.flush()
    for process, number in zip(runs, (signal.SIGINT, signal.SIGTERM), strict=True):
        _wait_for_handler(process)
        process.send_signal(number)
    results = ends(runs)
    assert [code for code, _, _ in results] == [130, 143]
    assert [said for _, _, said in results] == [
        "oomforensics: stopped by SIGINT before the end\n", "oomforensics: stopped by SIGTERM before the end\n"
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle"]


def _wait_for_handler(process: subprocess.Popen[bytes]) -> None:
    """Until the process catches SIGTERM: field SigCgt of /proc."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.is_file():
        pytest.skip("needs /proc")
    mask = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & mask:
            return


def test_closed_and_full_outputs(log: Path) -> None:
    """`| head`, `>&-`, `2>&-`, `<&-`, a full disk: a code and one sentence, never a traceback."""
    python = f"{sys.executable} -m forensics"
    shell = {
        f"{python} analyze {log} >&-": (2, "cannot write to standard output"),
        f"{python} analyze {log} 2>&- | grep -q 显存": (0, ""),
        f"{python} analyze - <&-": (3, "empty file"),
        f"{python} analyze {log} > /dev/full": (2, "No space left on device"),
        f"{python} analyze {log} -o /dev/full": (2, "cannot write /dev/full: No space left on device"),
        f"{python} patterns list > /dev/full": (2, "No space left on device"),
        f"{python} timeline {log} --format jsonl > /dev/full": (2, "No space left on device"),
        f"set -o pipefail; {python} patterns list | head -1": (0, ""),
        f"set -o pipefail; {python} analyze {log} --format html | true": (0, ""),
    }
    runs = [
        subprocess.Popen(["bash", "-c", command], env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for command in shell
    ]
    for (code, _, said), (wanted, sentence) in zip(ends(runs), shell.values(), strict=True):
        assert code == wanted, said
        assert sentence in said
        assert said.count("\n") <= 1
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_the_bundle_is_never_overwritten(log: Path, tmp_path: Path) -> None:
    """An output that is an input, by any name, is refused before anything is read."""
    link = tmp_path / "link.md"
    link.symlink_to(log)
    with pytest.raises(OptionError, match="is a file of the bundle"):
        common.refuse_inputs([link], [str(log.parent)])
    (code, _, said), = ends([start("analyze", log, "-o", log.parent / ".." / "bundle" / "vllm.log")])
    assert code == 2
    assert "choose a place outside" in said
    assert log.read_text(encoding="utf-8") == LOG
    common.refuse_inputs([None, log.parent / "report.md", tmp_path / "report.md"], [str(log.parent), "-"])


def test_two_runs_at_once(log: Path, tmp_path: Path) -> None:
    """Whoever is last wins; the file is whole, and nothing else is left."""
    out = tmp_path / "out" / "report.json"
    out.parent.mkdir()
    results = ends([start("analyze", log, "--format", "json", "-o", out) for _ in range(3)])
    assert [code for code, _, _ in results] == [0, 0, 0]
    assert out.read_bytes().endswith(b"}\n")
    assert leftovers(tmp_path) == []


def test_all_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up while the second of two reports is written: both are as they were."""
    first, second = tmp_path / "report.md", tmp_path / "report.html"
    first.write_text("old", encoding="utf-8")
    staged = common._stage

    def fail(path: Path, data: bytes, mode: int) -> None:
        staged(path, data[:2], mode)
        if data == b"second":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(common, "_stage", fail)
    with pytest.raises(ForensicsError, match=r"cannot write .*report\.html: No space left"):
        common.write_files([("first", first), ("second", second)])
    assert first.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    """A missing folder, a file in its place, /proc: one sentence that names the file."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place in (tmp_path / "none" / "r.md", tmp_path / "file" / "r.md", Path("/proc/r.md"), tmp_path / ("n" * 300)):
        with pytest.raises(ForensicsError, match=r"cannot write .*; choose another place"):
            common.write("text", place)


def test_permissions_and_links(tmp_path: Path) -> None:
    """A new file follows the umask, a replaced one keeps its mode, a link stays a link, a private file is private."""
    before = os.umask(0o027)
    try:
        common.write("one", tmp_path / "new")
        (tmp_path / "old").touch(0o600)
        (tmp_path / "link").symlink_to(tmp_path / "old")
        common.write("two", tmp_path / "link")
        common.write_files([("three", tmp_path / "new2")], private=True)
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "old", "new2")}
    assert modes == {"new": 0o640, "old": 0o600, "new2": 0o600}
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text(encoding="utf-8") == "two"
