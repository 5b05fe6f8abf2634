"""Run commands as a user does, and look at what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forensics import pipeline
from forensics.cli import cli

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="package")
def _read_once() -> Iterator[None]:
    """The library and the samples are the same for all runs: read them once."""
    read, plain = pipeline.read, pipeline.Options()

    @cache
    def remembered(*paths: str, options: pipeline.Options) -> pipeline.Reading:
        return read(*paths, options=options)

    def reading(*paths: str, options: pipeline.Options = plain, **others: Any) -> pipeline.Reading:
        if all(str(path).startswith(str(SAMPLES)) for path in paths):
            return remembered(*paths, options=options)
        return read(*paths, options=options, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "load_library", cache(pipeline.load_library))
        patch.setattr(pipeline, "read", reading)
        yield


@pytest.fixture(scope="session")
def run() -> Run:
    """`run("sources", path, …)`; an exception of the program is a failure of the test."""

    def invoke(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture(scope="session")
def incident() -> Path:
    """A memcg kill seen by kernel, kubelet and describe; an older CUDA OOM that the engine survived."""
    return SAMPLES / "container-limit-after-recovered-oom" / "bundle"


@pytest.fixture(scope="session")
def neighbour() -> Path:
    """A GPU that another process fills: several causes with evidence."""
    return SAMPLES / "other-process-at-start"
