"""What the program never does, whatever it reads; and that SECURITY.md names tests that exist."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import regex

ROOT = Path(__file__).resolve().parent.parent.parent
FORBIDDEN_IMPORTS = {"socket", "ssl", "http", "urllib", "subprocess", "pickle", "marshal", "shelve", "multiprocessing", "ctypes"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "extractall", "extract", "unpack_archive"}
WATCH = """
import os, sys
seen = []
def hook(event, args):
    if event == "open" and args[0] is not None and not isinstance(args[0], int):
        if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) and os.fsdecode(args[0]) != os.devnull:
            seen.append(f"open {os.fsdecode(args[0])}")
    elif event.split(".")[0] in ("socket", "subprocess", "ftplib", "smtplib", "urllib", "webbrowser") or event in (
        "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "os.rmdir", "os.mkdir", "os.rename", "os.symlink",
        "os.link", "os.chmod", "os.chown", "os.truncate", "shutil.rmtree", "pickle.find_class"):
        seen.append(f"{event} {args!r}")
from forensics import cli
sys.dont_write_bytecode = True
sys.addaudithook(hook)
try:
    cli.main()
finally:
    print("\\n".join(seen), file=sys.stderr)
"""


def test_only_the_output_is_written(tmp_path: Path) -> None:
    """Seen from inside the interpreter: files opened for writing, processes, sockets, changes of the file system."""
    bundle = ROOT / "samples" / "kv-cache-startup" / "bundle"
    out = tmp_path / "report.html"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, "analyze", bundle, "--format", "html", "-o", out],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    acts = [line for line in done.stderr.splitlines() if line and not line.startswith("oomforensics: ")]
    assert acts
    assert [act for act in acts if f"{tmp_path}" not in act] == []
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("path", sorted((ROOT / "forensics").rglob("*.py")), ids=lambda path: path.stem)
def test_no_dangerous_calls(path: Path) -> None:
    """No network, no processes, no code from data, nothing unpacked to disk."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert (node.module or "").split(".")[0] not in FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
                name = node.func.attr
            assert name not in FORBIDDEN_CALLS, f"{path}:{node.lineno}"


def test_every_promise_has_its_test() -> None:
    """SECURITY.md names files and functions that exist."""
    path = ""
    named = 0
    for file, function in regex.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")):
        path = file or path
        if not file and not function:
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, f"{path}::{function}"
        named += 1
    assert named > 30
