"""The import rule of ARCHITECTURE.md, proved with `ast`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "forensics"

# From top to bottom: a module may import from its own row and from rows below.
LAYERS = (
    ("cli", "__main__"),
    ("pipeline",),
    ("report",),
    ("diagnosis",),
    ("signatures",),
    ("timeline",),
    ("clocks",),
    ("ingest",),
    ("parsers",),
    ("scan", "sources"),
    ("bundle",),
    ("stamps",),
    ("model",),
    ("errors", "regexes", "resources", "stopwatch"),
)
ONLY_IN = {
    "click": ("cli",),
    "rich": ("cli",),
    "jinja2": ("report",),
    "polars": ("scan", "timeline"),
    "tarfile": ("bundle",),
    "zipfile": ("bundle",),
    "isal": ("bundle",),
    "zstandard": ("bundle",),
    "dateutil": ("stamps",),
    "yaml": ("parsers",),
    "prometheus_client": ("parsers",),
}
MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(name: str) -> int | None:
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


def place(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    """Top-level names that a module imports: `forensics.<name>` or a library."""
    found = []
    package = path.relative_to(ROOT.parent).with_suffix("").parts
    package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            full = ".".join([*base, *(node.module.split(".") if node.module else [])])
            found += [f"{full}.{alias.name}" for alias in node.names] if full == "forensics" else [full]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_down_only(path: Path) -> None:
    """A module imports only from its own row of the drawing or from below."""
    own = layer_of(place(path))
    if own is None:
        assert path.name == "__init__.py", f"{path} has no place in the drawing"
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "forensics" or len(parts) < 2 or parts[1] == "__version__":
            continue
        other = layer_of(parts[1])
        assert other is not None, f"{name} has no place in the drawing"
        assert own <= other, f"{place(path)} imports {name}, which lies above it"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_libraries_stay_in_their_place(path: Path) -> None:
    """A library named in the drawing is imported by its own row only."""
    for name in imports(path):
        allowed = ONLY_IN.get(name.split(".")[0])
        assert allowed is None or place(path) in allowed, f"{place(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_modules_fit_in_the_head(path: Path) -> None:
    """No module above 400 lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
